package name

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/isowatch/isowatch/alerts/glob"
)

// synonyms are what others call the anomalies, those who say most first: ANSI's
// phenomena as Berenson et al. number and name them ("A Critique of ANSI SQL
// Isolation Levels", P0 to P4, A5A, A5B), Bailis et al.'s ("Highly Available
// Transactions"), those of Elle's and Jepsen's reports, and plain words.
var synonyms = map[string][]string{
	"thin-air-read":               {"garbage-read", "out-of-thin-air-read"},
	"aborted-read":                {"dirty-read", "P1", "A1"},
	"intermediate-read":           {"dirty-read", "P1"},
	"future-read":                 {},
	"not-my-last-write":           {"internal-inconsistency"},
	"not-my-own-write":            {"internal-inconsistency"},
	"non-repeatable-reads":        {"fuzzy-read", "P2", "A2", "unrepeatable-read"},
	"session-guarantee-violation": {"session-violation"},
	"non-monotonic-read":          {"observed-transaction-vanishes", "OTV"},
	"fractured-read":              {"read-skew", "A5A"},
	"causality-violation":         {"causal-violation"},
	"long-fork":                   {"IRIW"},
	"lost-update":                 {"P4"},
	"write-skew":                  {"A5B"},
	"dirty-write":                 {"P0", "write-cycle"},
	"circular-information-flow":   {"cyclic-information-flow"},
	"read-skew":                   {"A5A"},
	"read-only-anomaly":           {"read-only-transaction-anomaly"},
	"stale-read":                  {},
	"real-time-violation":         {},
	"incompatible-order":          {"incompatible-version-orders"},
	"duplicate-elements":          {"duplicate-appends"},
	"commit-order-cycle":          {},
	"prefix-violation":            {},
	"snapshot-cycle":              {},
	"serialization-cycle":         {},
	"phantom":                     {"P3"},
	"predicate-lost-update":       {},
	"predicate-write-skew":        {},
}

// guarantees are the session guarantees' short names, and Bailis et al.'s of what
// breaks them.
var guarantees = map[string][]string{
	"read-your-writes":    {"RYW", "MYR"},
	"monotonic-reads":     {"MR", "N-MR"},
	"monotonic-writes":    {"MW", "N-MW"},
	"writes-follow-reads": {"WFR", "MRWD"},
}

// phantoms are names of anomalies that are about what matches a condition, and seenAgain of those of one row that was
// both seen and missed: ANSI's, in the strict reading, and Bailis et al.'s, as Hermitage has it.
var (
	phantoms  = []string{"phantom", "P3"}
	seenAgain = []string{"A3", "predicate-many-preceders", "PMP"}
)

// Divergence is MTC's name of the pattern by which two transactions show a lost
// update by themselves: they read one version and both overwrote it.
const Divergence = "DIVERGENCE"

// Aliases are other names of a violation, those that say most first: synonyms of its
// name, MTC's pattern, its phenomenon and what Elle calls that, and the session
// guarantee that is broken. A name that stands for more than this one, as G2 does
// for G-single, is none: who silences write skews by G2-item goes on hearing of
// lost updates.
func (n Name) Aliases() []string {
	out := slices.Clone(synonyms[n.Name])
	if n.Phantom {
		own := append(slices.Clone(phantoms), out...)
		if n.Again {
			own = append(own, seenAgain...)
		}
		if out = own; n.Item != "" {
			out = append(append(out, n.Item), synonyms[n.Item]...)
		}
	}
	if n.Divergence {
		out = append(out, Divergence)
	}
	for _, a := range adyas(n.Adya) {
		if !n.Phantom || !strings.Contains(a, "-item") {
			out = append(out, a)
		}
	}
	if n.Guarantee != "" {
		out = append(append(out, n.Guarantee), guarantees[n.Guarantee]...)
	}
	seen := map[string]bool{fold(n.Name): true}
	return slices.DeleteFunc(append([]string{}, out...), func(a string) bool {
		was := seen[fold(a)]
		seen[fold(a)] = true
		return was
	})
}

// adyas are the names of a phenomenon, with its suffix:
//
//   - G1a, G1b and G1c are the parts of G1 (Adya 4.2.2).
//   - G-SIa, interference (Adya 4.3.1): somebody read or overwrote what had not been
//     committed when they started. A cycle without anti-dependencies has such a step:
//     otherwise each of its transactions would have committed before itself.
//   - G-SIb, missed effects: a cycle with exactly one anti-dependency, which is G-single.
//   - A cycle whose anti-dependencies are not adjacent is one of the two, and which one
//     only the database's own times say: G-SI.
//   - Elle writes -item to say that no predicate is needed; then there is no difference between G2 and G2-item.
func adyas(adya string) []string {
	if adya == "" {
		return nil
	}
	base, suffix := unsuffixed(adya)
	var more []string
	switch base {
	case "G0":
		more = []string{"G-SI", "G-SIa"}
	case "G1a", "G1b":
		more = []string{"G1"}
	case "G1c":
		more = []string{"G1", "G-SI", "G-SIa"}
	case "G-single":
		more = []string{"G-single-item", "G-SI", "G-SIb"}
	case "G-nonadjacent":
		more = []string{"G-nonadjacent-item", "G-SI"}
	case "G2-item":
		more = []string{"G2"}
	}
	out := []string{adya}
	for _, m := range more {
		out = append(out, m+suffix)
	}
	return out
}

// unsuffixed is a phenomenon without Elle's suffix, and that.
func unsuffixed(adya string) (base, suffix string) {
	for _, s := range []string{"-realtime", "-process"} {
		if base, ok := strings.CutSuffix(adya, s); ok {
			return base, s
		}
	}
	return adya, ""
}

// Names are all names of anomalies, sorted.
func Names() []string { return slices.Sorted(maps.Keys(synonyms)) }

// Canonical are the names, of those that Names lists, that somebody may mean by a
// word: each that matches it as a pattern, or has a synonym that does. Phenomena and
// session guarantees are no one name's; they give nothing.
func Canonical(what string) []string {
	var out []string
	for _, n := range Names() {
		if Matches(n, synonyms[n], what) {
			out = append(out, n)
		}
	}
	return out
}

// Known tells whether a pattern can match any anomaly: its name, a synonym, a
// phenomenon, a session guarantee.
func Known(pattern string) bool {
	all := slices.Concat(Names(), []string{Divergence, "internal"}, phantoms, seenAgain)
	for _, s := range synonyms {
		all = append(all, s...)
	}
	for g, s := range guarantees {
		all = append(append(all, g), s...)
	}
	for _, p := range append([]string{"G1a", "G1b"}, phenomena...) {
		for _, suffix := range []string{"", "-process", "-realtime"} {
			all = append(all, adyas(p+suffix)...)
		}
	}
	return Matches("", all, pattern)
}

// Matches tells whether an anomaly with that name and those aliases is meant by a
// pattern: one of its names, in whatever case, with or without hyphens, underscores,
// spaces and a colon in front, so that lost-update, LostUpdate, :lost-update and P4
// are one. A * in the pattern stands for any characters, a ? for one: G-single* is
// G-single with any suffix. Linear in the names, times the stars of the pattern.
func Matches(name string, aliases []string, pattern string) bool {
	p := fold(pattern)
	if p == "" {
		return false
	}
	return glob.Match(p, fold(name)) || slices.ContainsFunc(aliases, func(a string) bool { return glob.Match(p, fold(a)) })
}

// fold is a name without what people write differently.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', ' ', ':':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}
