package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// weakestFirst are the levels such that none stands before one that it implies.
var weakestFirst = []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.PC,
	verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER, verdict.LIN}

// Ordered are all levels but lin, such that none stands before one that it implies.
func Ordered() []verdict.Level { return slices.Clone(weakestFirst[:len(weakestFirst)-1]) }

// Breaks lists the levels of asked that a violation of weakest breaks, weakest
// first; at least proved, the level that the engine says is broken. Lin, which stands
// apart, is among them only if it is what was proved.
func Breaks(weakest, proved verdict.Level, asked Asked) []verdict.Level {
	var out []verdict.Level
	for _, l := range weakestFirst {
		if (l == proved || Effective(l, asked.Clock).Implies(weakest)) && slices.Contains(asked.Levels, l) {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		out = append(out, proved)
	}
	return out
}

// Holds are the strongest levels that a violation does not break, weakest first: a
// history of nothing but its evidence satisfies them. Lin, which is about other
// histories, is not among them.
func (n Name) Holds() []verdict.Level {
	whole := slices.DeleteFunc(slices.Clone(weakestFirst),
		func(l verdict.Level) bool { return l == verdict.LIN || l.Implies(n.Weakest) })
	return verdict.Maximal(whole)
}

// broken are, by name, the weakest levels that an anomaly of that name may break.
var broken = map[string][]verdict.Level{
	"thin-air-read": {verdict.G1}, "aborted-read": {verdict.G1}, "intermediate-read": {verdict.G1},
	"future-read":       {verdict.G1},
	"not-my-last-write": {verdict.G1}, "not-my-own-write": {verdict.G1}, "incompatible-order": {verdict.G1},
	"duplicate-elements":          {verdict.G1},
	"circular-information-flow":   {verdict.G1, verdict.RC},
	"dirty-write":                 {verdict.RC},
	"non-monotonic-read":          {verdict.RC},
	"non-repeatable-reads":        {verdict.RA},
	"fractured-read":              {verdict.RA},
	"session-guarantee-violation": {verdict.RA, verdict.RC},
	"causality-violation":         {verdict.CC},
	"commit-order-cycle":          {verdict.RC, verdict.RA, verdict.CC},
	"long-fork":                   {verdict.PC},
	"prefix-violation":            {verdict.PC},
	"read-skew":                   {verdict.PC, verdict.SI},
	"lost-update":                 {verdict.SI},
	"snapshot-cycle":              {verdict.SI},
	"write-skew":                  {verdict.SER},
	"read-only-anomaly":           {verdict.SER},
	"serialization-cycle":         {verdict.SER},
	"stale-read":                  {verdict.StrongSI},
	"real-time-violation":         {verdict.StrongSI, verdict.SSER},
	"phantom":                     {verdict.RA, verdict.PC, verdict.SI, verdict.SER},
	"predicate-lost-update":       {verdict.SI},
	"predicate-write-skew":        {verdict.SER},
}

// Fit corrects a name to the weakest level that the evidence was found to break: one that
// is of other levels was of how it was found, and makes room for the general one. What
// has no order in real time alone needs the clocks, whether a step says so or only its reason.
func (n *Name) Fit(weakest verdict.Level) {
	n.Weakest = weakest
	base, suffix := unsuffixed(n.Adya)
	// which knows no sessions: a weak level may be broken besides
	if !slices.Contains(broken[n.Shape()], weakest) && n.Breaks[0] != verdict.LIN {
		n.Guarantee, n.Divergence = "", false
		n.call(general(weakest))
		base = phenomena[max(phenomenon(base), least(weakest))]
	}
	if n.Name == "real-time-violation" && base != "" {
		suffix, n.ClockDependent = "-realtime", !n.Instants
	}
	n.Adya, n.Severity = base+suffix, severity(*n)
}

// Fall corrects a name to what the evidence shows to be broken: level, and what
// implies it.
func (n *Name) Fall(level verdict.Level, asked Asked) {
	n.Weakest = sequential(level)
	n.Breaks = Breaks(n.Weakest, level, asked)
	n.Severity = severity(*n)
}

// MayNeedSessions tells whether a name is of a cycle that is not said to need the order
// of sessions, nor clocks.
func (n Name) MayNeedSessions() bool { return slices.Contains(phenomena, n.Adya) }

// NeedsSessions notes that a cycle needs the order of sessions.
func (n *Name) NeedsSessions() { n.Adya = suffixed(n.Adya, false, true) }

// Effective is what a level is read as under a clock: that with real time where the clock is enforced.
func Effective(l verdict.Level, c record.Clock) verdict.Level {
	if !c.Enforces() {
		return l
	}
	switch l {
	case verdict.SI:
		return verdict.StrongSI
	case verdict.SER:
		return verdict.SSER
	}
	return l
}

// sequential is the level, in the order of the others, that a violation of l
// breaks: what has no order in real time that explains it has none that keeps to
// the sessions too.
func sequential(l verdict.Level) verdict.Level {
	if l == verdict.LIN {
		return verdict.SSER
	}
	return l
}

// snapshots tells whether a level has the rule that an update follows the version
// that it read immediately.
func snapshots(l verdict.Level) bool { return sequential(l).Implies(verdict.SI) }

// stronger is the weakest level that implies both.
func stronger(a, b verdict.Level) verdict.Level {
	switch {
	case a.Implies(b):
		return a
	case b.Implies(a):
		return b
	}
	return verdict.SSER
}

// weaker is the weaker of a and proved, and proved if neither implies the
// other.
func weaker(a, proved verdict.Level) verdict.Level {
	proved = sequential(proved)
	if proved.Implies(a) {
		return a
	}
	return proved
}

// Severity is how bad a violation is, in PagerDuty's words.
type Severity string

// The severities.
const (
	// Critical: data was lost, torn or invented. Snapshot isolation or a weaker
	// level is broken.
	Critical Severity = "critical"
	// Error: only serializability is; whether data is wrong depends on what
	// the application checks before it writes.
	Error Severity = "error"
	// Warning: it is a violation only if the recorded times are right.
	Warning Severity = "warning"
	// Info is of what is said of the monitor and its input. No anomaly has it by itself.
	Info Severity = "info"
)

// Severities are all of them, the mildest first.
func Severities() []Severity { return []Severity{Info, Warning, Error, Critical} }

func severity(n Name) Severity {
	switch {
	case n.ClockDependent:
		return Warning
	case verdict.SI.Implies(n.Weakest):
		return Critical
	}
	return Error
}

var levelPhrases = map[verdict.Level]string{
	verdict.RC:       "read committed",
	verdict.RA:       "read atomic",
	verdict.CC:       "causal consistency",
	verdict.G1:       "committed reads",
	verdict.PC:       "prefix consistency",
	verdict.SI:       "snapshot isolation",
	verdict.StrongSI: "strong snapshot isolation",
	verdict.SER:      "serializability",
	verdict.SSER:     "strict serializability",
	verdict.LIN:      "linearizability",
}

// LevelPhrase is a level in words alone: "snapshot isolation".
func LevelPhrase(l verdict.Level) string {
	if p, ok := levelPhrases[l]; ok {
		return p
	}
	return l.String()
}

// Level is a level in words with its short name: "snapshot isolation (si)".
func Level(l verdict.Level) string {
	if p, ok := levelPhrases[l]; ok {
		return p + " (" + l.String() + ")"
	}
	return l.String()
}
