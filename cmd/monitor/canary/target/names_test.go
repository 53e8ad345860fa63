package target

import "testing"

// A node is called by all hosts of its address, each with its port where it has one.
func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u@db-1:5432/x":                    "db-1:5432",
		"postgres://u@db-1:5432,db-2:5433/x":          "db-1:5432,db-2:5433",
		"postgres:///x?host=db-1,db-2&port=5432,5433": "db-1:5432,db-2:5433",
		"postgres:///x?host=db-1,db-2&port=5433":      "db-1:5433,db-2:5433",
		"postgres:///x?host=db-1,db-2":                "db-1,db-2",
		"postgres:///x?host=/var/run/postgresql":      "/var/run/postgresql",
		"postgres:///x?port=5433":                     "node",
		"postgres:///x":                               "node",
		"postgres://%zz":                              "node",
	} {
		if got := hostOf(address); got != want {
			t.Errorf("%s is called %s, not %s", address, got, want)
		}
	}
}
