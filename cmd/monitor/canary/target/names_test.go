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

// MySQL lists all rights of who may do anything, MariaDB says it.
func TestOfSuperuser(t *testing.T) {
	for grant, want := range map[string]bool{
		"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION":              true,
		"GRANT SELECT, SHOW DATABASES, SUPER, LOCK TABLES, DROP ROLE ON *.* TO `root`@`%`": true,
		"GRANT SELECT, SUPER ON *.* TO `admin`@`%`":                                        true,
		"GRANT ALL PRIVILEGES ON `isowatch_canary`.* TO `canary`@`%`":                      false,
		"GRANT SELECT, PROCESS, BINLOG ADMIN ON *.* TO `canary`@`%`":                       false,
		"GRANT SUPER_READER ON *.* TO `canary`@`%`":                                        false,
		"GRANT USAGE ON *.* TO `super`@`%`":                                                false,
	} {
		if ofSuperuser(grant) != want {
			t.Errorf("%s: %v", grant, !want)
		}
	}
}
