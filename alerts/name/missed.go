package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// A missed write is a cycle of one anti-dependency, where all else is session
// order and reads: a path shows that a transaction was visible to another, which
// all the same read something older than what that wrote. These are the
// violations of rc, ra and cc, which differ in the paths that count, and of the
// session guarantees.

// missed names such a cycle.
func (k kinds) missed(s shape) string {
	switch {
	case s.so == len(s.edges)-1:
		return "session-guarantee-violation"
	case len(s.edges) > 2:
		return "causality-violation"
	}
	seen, missed := s.edges[0], s.edges[1]
	if seen.Type == verdict.RW {
		seen, missed = missed, seen
	}
	switch {
	case k.backwards(seen, missed):
		return "non-monotonic-read"
	case seen.Key == missed.Key && seen.Key != "":
		return "non-repeatable-reads" // first the old value, then the new
	}
	return "fractured-read"
}

// missedName tells whether a name is one of a missed write.
func missedName(name string) bool {
	switch name {
	case "session-guarantee-violation", "causality-violation", "non-monotonic-read", "non-repeatable-reads",
		"fractured-read":
		return true
	}
	return false
}

// guaranteeOf is the session guarantee that a missed write breaks, by the path to
// the reader; empty if it is none of the four.
func guaranteeOf(s shape) string {
	var path []verdict.EdgeType // sessions' orders in a row are one
	at := slices.IndexFunc(s.edges, func(e verdict.Edge) bool { return e.Type == verdict.RW })
	for _, e := range slices.Concat(s.edges[at+1:], s.edges[:max(at, 0)]) {
		typ := e.Type
		if reads(e) {
			typ = verdict.WR
		}
		if n := len(path); typ != verdict.SO || n == 0 || path[n-1] != verdict.SO {
			path = append(path, typ)
		}
	}
	is := func(types ...verdict.EdgeType) bool { return slices.Equal(path, types) }
	switch {
	case is(verdict.SO):
		return verdict.ReadYourWrites.String()
	case is(verdict.WR, verdict.SO):
		return verdict.MonotonicReads.String()
	case is(verdict.SO, verdict.WR):
		return verdict.MonotonicWrites.String()
	case is(verdict.WR, verdict.WR), is(verdict.WR, verdict.SO, verdict.WR):
		return verdict.WritesFollowReads.String()
	}
	return ""
}

// parts are the cycles that a cycle is made of in which something was missed: the
// cycle itself, if it is one, those from which its orders were inferred and, if
// eliminated is set, those that rule other writers of what was read out. Reasons
// may share parts; no more than reasonsMax of their edges are looked at.
func parts(c []verdict.Edge, eliminated bool) []shape {
	var out []shape
	left := reasonsMax + len(c)
	var visit func(c []verdict.Edge, depth int)
	visit = func(c []verdict.Edge, depth int) {
		if s := shapeOf(c); s.rw > 0 {
			out = append(out, s)
		}
		for _, e := range c {
			if left--; left < 0 || depth >= becauseDepth {
				return
			}
			if len(e.Because) > 0 {
				visit(e.Because, depth+1)
			}
			for _, o := range e.Others {
				if eliminated {
					visit(o, depth+1)
				}
			}
		}
	}
	visit(c, 0)
	return out
}

// misses tells whether a cycle is one missed write.
func (s shape) misses() bool { return s.rw == 1 && s.ww == 0 && s.rt == 0 }

// most is the name of a cycle that is made of several, and the session guarantee
// if all of these break the same: that of those which only the strongest level
// forbids, if they are all called alike.
func (k kinds) most(c []verdict.Edge) (name, guarantee string) {
	level := verdict.G1
	for i, s := range parts(c, true) {
		n := k.nameOf(s)
		l, g := shapeStrength(s, n), ""
		if s.misses() {
			g = guaranteeOf(s)
		}
		switch both := stronger(l, level); {
		case i == 0:
			name, guarantee, level = n, g, l
			continue
		case both != level:
			if name, level = n, both; both != l {
				name = general(both)
			}
		case l == level && n != name:
			name = general(level)
		}
		if g != guarantee {
			guarantee = ""
		}
	}
	if name == "" {
		return general(level), ""
	}
	return name, guarantee
}

// Woven are the transactions of a violation that is made of several missed
// writes, sorted: which of these makes the cycle and which are its reasons is a
// matter of where one begins. False if it is not of that kind.
func Woven(v verdict.Violation, n Name) ([]verdict.TxnID, bool) {
	if v.Kind != verdict.Cycle || !verdict.CC.Implies(n.Weakest) || n.Weakest == verdict.G1 {
		return nil, false
	}
	missed := slices.DeleteFunc(parts(v.Cycle, false), func(s shape) bool { return !s.misses() })
	if len(missed) < 2 {
		return nil, false
	}
	var out []verdict.TxnID
	for _, s := range append(missed, shapeOf(v.Cycle)) {
		for _, e := range s.edges {
			out = append(out, e.From)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), true
}
