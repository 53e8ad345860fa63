package target

import "testing"

// What a server says of its version in the databases' own forms: those that are too old are refused by a sentence.
func TestTooOld(t *testing.T) {
	for _, x := range []struct {
		version string
		oldest  int
		refused bool
	}{
		{"9.6.24", 12, true}, {"11.22 (Debian 11.22-0+deb10u2)", 12, true}, {"12.17", 12, false}, {"15.18 (Debian 15.18-0+deb12u1)", 12, false}, {"5.7.44-log", 8, true},
		{"8.0.36", 8, false}, {"5.5.68", 10, true}, {"10.11.19", 10, false}, {"18devel", 12, false}, {"", 12, false},
	} {
		err := tooOld(Node{Name: "db-2:5432", option: "--replica"}, "PostgreSQL", x.version, x.oldest)
		if (err != nil) != x.refused {
			t.Errorf("%q: %v", x.version, err)
		}
		if want := "--replica: db-2:5432 is PostgreSQL 9.6.24; 12 is the oldest that is known to work"; x.version == "9.6.24" && err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
