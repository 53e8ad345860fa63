package alerts

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Finder tells what breaks a level in a small history, best first; the transactions of
// what it finds are numbered by their places. It must not keep what it is given.
type Finder func(level verdict.Level, header record.Header, txns []record.Transaction) []verdict.Violation

// story is an anomaly with its name and its proof, and what its transactions did.
type story struct {
	v      verdict.Violation
	n      name.Name
	p      proof
	lookup name.Lookup
}

// smallest leaves out of a proved story all that its level is broken without, even if
// the anomaly is another one then, and tells what is left. A cycle through two steps of
// which one alone breaks the level, a lost update that is an old read as well: what is
// not needed is not told. Nor is a reason told of which the evidence has lost a part: what
// was inferred is inferred again from what is left. Without a finder, and of evidence so
// large that it is judged but once, the story stays as it is.
func (s story) smallest(ctx Context) story {
	if ctx.Find == nil || len(s.p.txns) > reachMax {
		return s
	}
	level := s.n.Breaks[0]
	opt := shrink.Options{Calls: ctx.JudgeCalls, Unseen: *s.p.header.Coverage == record.CoveragePartial}
	violated := func(txns []record.Transaction) bool { return ctx.Judge(level, s.p.header, txns) == verdict.Violated }
	rest, _ := shrink.Shrink(s.p.txns, violated, opt)
	same := len(rest) == len(s.p.txns) && operations(rest) == operations(s.p.txns)
	if same && !inferred(s.v) {
		return s
	}
	told := rest
	if inferred(s.v) {
		told = loosen(rest, violated)
	}
	var found []story
	lookup := placed(rest)
	for _, v := range ctx.Find(level, s.p.header, told) {
		if next, ok := tell(v, level, proof{s.p.header, rest}, lookup, ctx); ok {
			found = append(found, next)
		}
	}
	if len(found) == 0 {
		return s
	}
	if i := slices.IndexFunc(found, func(f story) bool { return f.n.Name == s.n.Name }); i > 0 {
		return found[i]
	}
	return found[0]
}

// loosenMax bounds the transactions of which loosen tries to take sessions and times.
const loosenMax = 32

// loosen takes from transactions, one by one, the times and the place in a session that
// they break a level without as well: what is found in the rest does not tell them as
// reasons. They are the same operations in the same places.
func loosen(txns []record.Transaction, violated func([]record.Transaction) bool) []record.Transaction {
	out := slices.Clone(txns)
	if len(txns) > loosenMax {
		return out
	}
	try := func(change func([]record.Transaction) bool) {
		if less := slices.Clone(out); change(less) && violated(less) {
			out = less
		}
	}
	for i := range out {
		try(func(less []record.Transaction) bool {
			timed := less[i].HasTimes
			less[i].HasTimes, less[i].Start, less[i].End = false, 0, 0
			return timed
		})
	}
	for i := range out { // a session ends before i, and another one begins
		try(func(less []record.Transaction) bool {
			session := less[i].Session
			if !slices.ContainsFunc(less[:i], func(t record.Transaction) bool { return t.Session == session }) {
				return false
			}
			for k := i; k < len(less); k++ {
				if less[k].Session == session {
					less[k].Session = fmt.Sprintf("%s, from %d on", session, i)
				}
			}
			return true
		})
	}
	return out
}

// tell makes a story of what was found in a proof at a level; false if it is not of that
// level.
func tell(v verdict.Violation, level verdict.Level, p proof, lookup name.Lookup, ctx Context) (story, bool) {
	v = name.Plain(v, lookup)
	s := story{v: v, n: name.Of(v, lookup, ctx.asked()), p: p, lookup: lookup}
	if !slices.Contains(s.n.Breaks, level) {
		return s, false
	}
	s.p.header = header(v, ctx, *p.header.Coverage)
	for i, l := range s.n.Breaks {
		if ctx.Judge(l, s.p.header, p.txns) == verdict.Violated {
			if i > 0 {
				s.n.Fall(l, ctx.asked())
			}
			return s, true
		}
	}
	return s, false
}

// inferred tells whether a violation has steps that follow from others, or cases.
func inferred(v verdict.Violation) bool {
	return v.Kind == verdict.Unsatisfiable || slices.ContainsFunc(v.Cycle, func(e verdict.Edge) bool {
		return e.Why == verdict.ByOrder || e.Why == verdict.ByElimination || e.Why == verdict.ByCase
	})
}

// placed finds transactions by their places.
func placed(txns []record.Transaction) name.Lookup {
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if int64(id) >= int64(len(txns)) {
			return nil, false
		}
		return &txns[id], true
	}
}

func operations(txns []record.Transaction) int {
	n := 0
	for i := range txns {
		n += len(txns[i].Ops)
	}
	return n
}
