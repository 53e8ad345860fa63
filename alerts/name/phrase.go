package name

import (
	"github.com/isowatch/isowatch/incremental/verdict"
)

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
