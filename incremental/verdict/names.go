package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// levelAliases are what others call a level: Adya's portable levels, as Elle and
// Jepsen write them and with the words that they use, and the words of the papers.
//
// Elle's levels without "strong session" in front have no session order. They mean
// the same level here, and whether sessions count is asked for by itself. What Elle
// calls read committed is Adya's PL-2, of which g1 is what reads show: it asks nothing of
// the order of writes. rc does, and is stricter otherwise.
var levelAliases = [numLevels][]string{
	G1: {"committed-reads", "PL-2", "read-committed", "adya-read-committed", "strong-session-PL-2",
		"strong-session-read-committed"},
	RC: {"axiomatic-read-committed"},
	RA: {"read-atomic", "read-atomicity"},
	CC: {"causal", "causal-consistency", "transactional-causal-consistency", "TCC", "causal-cerone"},
	PC: {"prefix", "prefix-consistency", "consistent-prefix"},
	SI: {"snapshot-isolation", "PL-SI", "strong-session-snapshot-isolation", "strong-session-SI",
		"generalized-snapshot-isolation"},
	StrongSI: {"strong-snapshot-isolation", "realtime-snapshot-isolation"},
	SER: {"serializable", "serializability", "PL-3", "conflict-serializable", "view-serializable", "1SR",
		"session-serializable",
		"strong-session-serializable", "strong-session-serializability"},
	SSER: {"strict-serializable", "strict-serializability", "PL-SS", "strong-serializable", "strong-serializability",
		"strong-1SR"},
	LIN: {"linearizable", "linearizability"},
}

// otherLevels are levels that have names and are not checked here, each with the
// advice what to ask for instead.
var otherLevels = []struct{ name, advice string }{
	{"read-uncommitted", "it forbids cycles of writes alone, which of the levels here rc forbids; g1, the weakest, asks " +
		"nothing of writes"},
	{"PL-1", "it forbids cycles of writes alone, which of the levels here rc forbids; g1, the weakest, asks nothing of " +
		"writes"},
	{"PL-2.99", "ask for ser, which is the same where no predicate is read"},
	{"cursor-stability", "the weakest level here that forbids lost updates is si"},
	{"PL-CS", "the weakest level here that forbids lost updates is si"},
	{"monotonic-atomic-view", "the nearest are rc, which is weaker, and ra, which implies it"},
	{"monotonic-view", "si implies it; rc is the nearest that is weaker"},
	{"PL-2L", "si implies it; rc is the nearest that is weaker"},
	{"monotonic-snapshot-read", "si implies it"},
	{"PL-MSR", "si implies it"},
	{"consistent-view", "si implies it"},
	{"PL-2+", "si implies it"},
	{"forward-consistent-view", "si implies it"},
	{"PL-FCV", "si implies it"},
	{"update-serializable", "ser implies it"},
	{"PL-3U", "ser implies it"},
	{"update-atomic", "si implies it"},
	{"ROLA", "si implies it"},
	{"parallel-snapshot-isolation", "si implies it"},
	{"PSI", "si implies it"},
	{"strong-read-committed", "it adds real time to g1; strong-si implies it"},
	{"strong-PL-2", "it adds real time to g1; strong-si implies it"},
	{"sequential", "ser implies it"},
	{"PRAM", "ask for all: the session guarantees are reported where cc fails"},
	{"read-your-writes", "ask for all: the session guarantees are reported where cc fails"},
	{"monotonic-reads", "ask for all: the session guarantees are reported where cc fails"},
	{"monotonic-writes", "ask for all: the session guarantees are reported where cc fails"},
	{"writes-follow-reads", "ask for all: the session guarantees are reported where cc fails"},
}

// Aliases are other names of the level, which FindLevel takes.
func (l Level) Aliases() []string { return slices.Clone(levelAliases[l]) }

// FindLevel is the level that a person means: its own name or one that others have
// for it, in whatever case, with hyphens, underscores or spaces, and a colon in front
// if it was copied out of Clojure; or that of a database (Databases), as in
// postgres:repeatable-read. The error names all levels, or what comes nearest
// to one that is known and not checked.
func FindLevel(s string) (Level, error) {
	want := foldLevel(s)
	if database, level, ok := strings.Cut(want, ":"); ok {
		return promised(strings.TrimSpace(database), strings.Trim(level, "-"))
	}
	for l := range numLevels {
		if want == l.String() || slices.ContainsFunc(levelAliases[l], func(a string) bool { return foldLevel(a) == want }) {
			return l, nil
		}
	}
	for _, o := range otherLevels {
		if foldLevel(o.name) == want {
			return 0, fmt.Errorf("%s is not checked: %s", o.name, o.advice)
		}
	}
	if advice := inDatabases(want); advice != "" {
		return 0, fmt.Errorf("%s is what databases call levels of their own: %s", want, advice)
	}
	return 0, fmt.Errorf("no level is called %q: want %s, what Adya, Elle or Jepsen call one of them, or a database's "+
		"name as in postgres:repeatable-read", s, strings.Join(levelNames[:], ", "))
}

// foldLevel is a name without what people write differently.
func foldLevel(s string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(strings.TrimPrefix(strings.TrimSpace(s), ":")))
}
