package verdict_test

import (
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// What people write for a level, and what they get.
func TestFindLevel(t *testing.T) {
	for text, want := range map[string]verdict.Level{
		"g1": verdict.G1, "PL-2": verdict.G1, "read-committed": verdict.G1, "READ COMMITTED": verdict.G1, "strong-session-PL-2": verdict.G1,
		"rc": verdict.RC, "RC": verdict.RC,
		"ra": verdict.RA, "read-atomic": verdict.RA,
		"cc": verdict.CC, "causal": verdict.CC, "Causal-Consistency": verdict.CC, ":causal-cerone": verdict.CC,
		"pc": verdict.PC, "prefix": verdict.PC, "prefix_consistency": verdict.PC,
		"si": verdict.SI, "SI": verdict.SI, "snapshot-isolation": verdict.SI, ":snapshot-isolation": verdict.SI, "PL-SI": verdict.SI,
		"strong-session-snapshot-isolation": verdict.SI,
		"strong-si":                         verdict.StrongSI, "strong-snapshot-isolation": verdict.StrongSI, "Strong_SI": verdict.StrongSI,
		"ser": verdict.SER, "serializable": verdict.SER, "pl-3": verdict.SER, "PL-3": verdict.SER, "strong-session-serializable": verdict.SER, "1sr": verdict.SER,
		"sser": verdict.SSER, "strict-serializable": verdict.SSER, " Strict Serializability ": verdict.SSER, "PL-SS": verdict.SSER, "strong-serializable": verdict.SSER,
		"lin": verdict.LIN, "linearizable": verdict.LIN,
	} {
		if got, err := verdict.FindLevel(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
}

// A name stands for one level, and every name of a level is found.
func TestLevelAliases(t *testing.T) {
	seen := map[string]verdict.Level{}
	for _, l := range verdict.Levels() {
		if len(l.Aliases()) == 0 {
			t.Errorf("%v has no other name", l)
		}
		for _, name := range append(l.Aliases(), l.String()) {
			if other, ok := seen[strings.ToLower(name)]; ok {
				t.Errorf("%s is both %v and %v", name, other, l)
			}
			seen[strings.ToLower(name)] = l
			if got, err := verdict.FindLevel(name); err != nil || got != l {
				t.Errorf("%s is %v, %v; want %v", name, got, err, l)
			}
		}
	}
}

// Levels of others that are not checked are no typing errors: the message says what
// to ask for.
func TestLevelsOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		"PL-2.99": "ask for ser", "read-uncommitted": "g1", "parallel-snapshot-isolation": "si", "Read-Your-Writes": "ask for all",
		"snapshots": `no level is called "snapshots"`, "": `no level is called ""`, "strict-serialisable": "want rc, ra,",
	} {
		if _, err := verdict.FindLevel(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
