package name_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Whatever people write for an anomaly, and what is none of it.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		n    name.Name
		yes  string
		none string
	}{
		{name.Name{Name: "lost-update", Adya: "G-single", Divergence: true},
			"lost-update|Lost Update|LostUpdate|LOSTUPDATE|:lost-update|P4|p4|DIVERGENCE|divergence|G-single|GSingle|:G-single|G-single-item|GSIb|G-SIb|G-SI|lost-*|lost-update*|*update|*|G-?ingle",
			"G2-item|G2|write-skew|P|P44|A5B|G-single-process|lost|update|GSIa|loss-*||-|G-single?"},
		{name.Name{Name: "lost-update", Adya: "G-single"}, "P4", "divergence"},
		{name.Name{Name: "write-skew", Adya: "G2-item"}, "write_skew|G2-item|G2|a5b|G2*", "G-single|G-single*|lost-update|A5A|G2-item-process"},
		{name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Guarantee: "read-your-writes"},
			"SessionGuaranteeViolation|G-single-process|G-single*|read-your-writes|RYW|g-SIb-process", "G-single|monotonic-reads|MR"},
		{name.Name{Name: "fractured-read", Adya: "G-single"}, "fractured-read|read-skew|A5A", "A5B|non-repeatable-reads"},
		{name.Name{Name: "circular-information-flow", Adya: "G1c"}, "cyclic-information-flow|G1c|G1|GSIa", "G0|G1a|GSIb"},
		{name.Name{Name: "dirty-write", Adya: "G0"}, "P0|G0|dirty write", "dirty-read|P1"},
		{name.Name{Name: "aborted-read", Adya: "G1a"}, "dirty-read|G1a|G1|P1|A1", "G1b|G1c"},
		{name.Name{Name: "not-my-own-write", Adya: "internal"}, "internal|:internal|NotMyOwnWrite", "not-my-last-write"},
		{name.Name{Name: "long-fork", Adya: "G-nonadjacent-realtime"}, "G-nonadjacent-realtime|G-SI-realtime|G-nonadjacent*|LongFork", "G-nonadjacent|G-SI"},
		{name.Name{Name: "duplicate-elements"}, "duplicate-elements|duplicateelements", "G1a|"},
	} {
		for _, p := range strings.Split(c.yes, "|") {
			if !name.Matches(c.n.Name, c.n.Aliases(), p) {
				t.Errorf("%s %s is not meant by %q", c.n.Name, c.n.Adya, p)
			}
			if !name.Known(p) {
				t.Errorf("%q is said to be nobody's name", p)
			}
		}
		for _, p := range strings.Split(c.none, "|") {
			if name.Matches(c.n.Name, c.n.Aliases(), p) {
				t.Errorf("%s %s is meant by %q: it is called %v", c.n.Name, c.n.Adya, p, c.n.Aliases())
			}
		}
	}
}

// A pattern of stars takes no exponential time.
func TestMatchesStars(t *testing.T) {
	if name.Matches(strings.Repeat("a", 200), nil, strings.Repeat("*a", 100)+"*b") {
		t.Error("there is no b")
	}
}

func TestCanonical(t *testing.T) {
	for what, want := range map[string][]string{
		"P4": {"lost-update"}, "Lost-Update": {"lost-update"}, "dirty-read": {"aborted-read", "intermediate-read"}, "read-skew": {"fractured-read", "read-skew"},
		"*-write": {"dirty-write", "not-my-last-write", "not-my-own-write"}, "G-single": nil, "phantom": {"phantom"}, "": nil,
	} {
		if d := cmp.Diff(want, name.Canonical(what)); d != "" {
			t.Errorf("%q: -want +got:\n%s", what, d)
		}
	}
}

// What nobody calls an anomaly is told apart from what matches none today.
func TestKnown(t *testing.T) {
	for what, want := range map[string]bool{
		"G2-item-realtime": true, "G-nonadjacent-process": true, "G1a": true, "G1": true, "G-SIa": true, "MRWD": true, "internal": true, "*": true, "g-si*": true,
		"lost-updat": false, "G3": false, "": false, "si": false,
	} {
		if got := name.Known(what); got != want {
			t.Errorf("%q: %v", what, got)
		}
	}
}

// Every name that there is can be looked up, and no name is its own alias.
func TestNamesAreKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range alerttest.Cases {
		seen[c.Want.Name] = true
		if !slices.Contains(name.Names(), c.Want.Name) {
			t.Errorf("%s is not among Names", c.Want.Name)
		}
		as := c.Want.Aliases()
		if name.Matches("", as, c.Want.Name) || c.Want.Adya != "" && !slices.Contains(as, c.Want.Phenomenon()) {
			t.Errorf("%s, %s: %v", c.Want.Name, c.Want.Adya, as)
		}
	}
	for _, n := range name.Names() {
		if !seen[n] && n != "commit-order-cycle" {
			t.Errorf("no case is called %s", n)
		}
	}
}

// MTC's pattern is one of two that read: a blind write is lost, or loses one, without it.
func TestDivergence(t *testing.T) {
	for history, want := range map[string]bool{
		"s1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)": true,
		"s1 T1: w(x,1)\ns2 T2: r(x,0) w(x,2)":        false,
		"s1 T1: w(x,1) r(x,1)\ns2 T2: r(x,0) w(x,2)": false,
		"s1 T1: r(x,5) w(x,1)\ns2 T2: r(x,0) w(x,2)": false,
	} {
		s, err := script.Parse("initial zero\n" + history)
		if err != nil {
			t.Fatal(err)
		}
		for _, cycle := range []string{"T1 ww(x,case) T2 rw(x,initial) T1", "T2 rw(x,initial) T1 ww(x,case) T2"} {
			v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Read: -1, Cycle: alerttest.NewParser(s.Txns).Cycle(t, cycle)}
			if n := name.Of(v, alerttest.Lookup(s.Txns), name.Asked{}); n.Name != "lost-update" || n.Divergence != want {
				t.Errorf("%s, %s: %s, divergence %v", history, cycle, n.Name, n.Divergence)
			}
		}
	}
}
