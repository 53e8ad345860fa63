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
// first; at least proved, the level that the engine says is broken. Lin is among
// them only if it is what was proved.
func Breaks(weakest, proved verdict.Level, asked Asked) []verdict.Level {
	return breaks(weakest, proved, false, asked)
}

// breaks is Breaks; with lin, that level is broken as well.
func breaks(weakest, proved verdict.Level, lin bool, asked Asked) []verdict.Level {
	var out []verdict.Level
	for _, l := range weakestFirst {
		broken := l == proved || l == verdict.LIN && lin || effective(l, asked.Clock).Implies(weakest)
		if broken && slices.Contains(asked.Levels, l) {
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
	whole := slices.DeleteFunc(slices.Clone(weakestFirst), func(l verdict.Level) bool { return l == verdict.LIN || l.Implies(n.Weakest) })
	return verdict.Maximal(whole)
}

// Fall corrects a name to what the evidence shows to be broken: level, and what
// implies it.
func (n *Name) Fall(level verdict.Level, asked Asked) {
	lin := slices.Contains(n.Breaks, verdict.LIN)
	n.Weakest = sequential(level)
	n.Breaks = breaks(n.Weakest, level, lin, asked)
	n.Severity = severity(*n)
}

// BreaksToo adds a level to those that are broken.
func (n *Name) BreaksToo(level verdict.Level) {
	n.Breaks = slices.DeleteFunc(slices.Clone(weakestFirst), func(l verdict.Level) bool { return l != level && !slices.Contains(n.Breaks, l) })
}

// MayNeedSessions tells whether a name is of a cycle that is not said to need the order
// of sessions, nor clocks.
func (n Name) MayNeedSessions() bool { return slices.Contains(phenomena, n.Adya) }

// NeedsSessions notes that a cycle needs the order of sessions.
func (n *Name) NeedsSessions() { n.Adya = suffixed(n.Adya, false, true) }

// effective is what a level means when the clocks are enforced.
func effective(l verdict.Level, c record.Clock) verdict.Level {
	if c != record.ClockEnforce {
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

// linearizable tells whether the violation breaks linearizability where that can
// be asked: its proof needs no session order, and its transactions keep to one
// key each.
func (k kinds) linearizable() bool {
	for _, id := range slices.Concat(k.v.Txns, k.v.Evidence) {
		t, ok := k.record(id)
		if id == verdict.NoTxn {
			continue
		}
		if !ok || slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Key != t.Ops[0].Key }) {
			return false
		}
	}
	if k.v.Kind == verdict.Cycle && len(k.v.Cycle) == 0 || k.v.Kind == verdict.Unsatisfiable && len(k.v.Cases) == 0 {
		return false // nothing is known of its proof
	}
	left := reasonsMax + edgesOf(k.v)
	return !slices.ContainsFunc(append([][]verdict.Edge{k.v.Cycle}, k.v.Cases...), func(c []verdict.Edge) bool { return needsSessions(c, 0, &left) })
}

// needsSessions tells whether an edge, or a reason of one, is session order, or
// may be as it is not told.
func needsSessions(c []verdict.Edge, depth int, left *int) bool {
	return slices.ContainsFunc(c, func(e verdict.Edge) bool {
		*left--
		told := reasons(e)
		switch {
		case e.Type == verdict.SO || e.Why == verdict.BySession || *left < 0:
			return true
		case e.Why == verdict.ByOrder || e.Why == verdict.ByElimination:
			return len(told) == 0 || depth >= becauseDepth ||
				slices.ContainsFunc(told, func(c []verdict.Edge) bool { return needsSessions(c, depth+1, left) })
		}
		return false
	})
}
