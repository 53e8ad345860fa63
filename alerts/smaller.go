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

// told is what is told of a proved story: a function of the evidence, so that whatever
// leads to the same evidence is one alert.
//
//   - What the level is broken without is left out, even if the anomaly is another one
//     then. A cycle through two steps of which one alone breaks the level, a lost update
//     that is an old read as well: what is not needed is not told.
//   - The level is the weakest promised one that the rest breaks.
//   - Name, sentences and cycle are of what the finder finds in the rest at the weakest level
//     that it breaks, promised or not: what a strong level's rules make of some records may
//     be something simpler to a weak one. No reason is told of which the evidence has lost a
//     part, and no operation that it does not have.
//
// Without a finder the anomaly stays what it is, with the words that its evidence has.
// Evidence so large that it is judged but once is told as it was found.
func (s story) told(ctx Context) story {
	if ctx.Judge == nil || len(s.p.txns) > reachMax {
		s.p.large = s.p.large || ctx.Find != nil
		return s
	}
	stories, level, lowest := s.least(ctx)
	var next story
	var ok bool
	for _, s = range stories {
		if next, ok = s.again(lowest, ctx); ok && len(next.v.Cases) == 0 {
			break
		}
	}
	if !ok {
		next = s.within()
		if level != next.n.Breaks[0] {
			next.n.Fall(level, ctx.asked())
		}
	}
	next.judged(ctx, ctx.OneKey || slices.Contains(s.n.Breaks, verdict.LIN))
	return next
}

// least is a story with no more than it needs, and the weakest levels that it breaks. That
// is as few operations as will do (all of them where there is no finder). Before it comes
// what shows the same with fewer steps of sessions, if what it was found in has that: of two
// readers of two writes in two orders, one that follows its own session's write need not
// have read it, but if it has, that is what is told, unless it takes a tree of cases.
func (s story) least(ctx Context) (stories []story, promised, lowest verdict.Level) {
	if ctx.Find == nil {
		promised, lowest = s.weakest(ctx)
		return []story{s}, promised, lowest
	}
	level := s.n.Breaks[0]
	violated := s.p.breaking(level, ctx)
	promised, lowest = s.weakest(ctx)
	needed := steps(loosen(s.p.txns, violated))
	if needed == 0 || len(s.p.whole) > loosenMax {
		return []story{s}, promised, lowest
	}
	rest := shrink.Shrink(loosen(s.p.whole, violated), violated, s.p.options(ctx, everything(s.p)))
	if steps(rest) >= needed || ctx.over() {
		return []story{s}, promised, lowest
	}
	other := s
	other.p.txns = rest
	// With a step of a session less it has to break the same: what it is told for must not come back with that step.
	if p, l := other.weakest(ctx); p != promised || l != lowest {
		return []story{s}, promised, lowest
	}
	other.p.txns = nil
	for _, t := range s.p.whole { // as they were, with their sessions
		if len(rest) > 0 && rest[0].ID == t.ID {
			t.Ops, rest = rest[0].Ops, rest[1:]
			other.p.txns = append(other.p.txns, t)
		}
	}
	return []story{other, s}, promised, lowest
}

// steps is how many transactions come after another one of their session.
func steps(txns []record.Transaction) int {
	sessions := map[string]bool{}
	for i := range txns {
		sessions[txns[i].Session] = true
	}
	return len(txns) - len(sessions)
}

// weakest is the weakest promised level that a proof breaks, and the weakest of all that
// this one implies.
func (s story) weakest(ctx Context) (promised, lowest verdict.Level) {
	promised = s.n.Breaks[0]
	// The strongest first: what keeps one level keeps all that this one implies.
	levels := name.Ordered()
	slices.Reverse(levels)
	proved := promised
	for _, l := range levels[slices.Index(levels, proved)+1:] { // of lin, all
		if slices.Contains(ctx.Levels, l) && ctx.Judge(l, s.p.header, s.p.txns) == verdict.Violated {
			promised = l
		}
	}
	lowest = promised
	for _, l := range levels {
		if l != promised && promised.Implies(l) && judgeAs(l, s.p, ctx) == verdict.Violated {
			lowest = l
		}
	}
	return promised, lowest
}

// again is what the finder finds in the proof of a story at a level; false if it finds
// nothing that is of that level, or there is none. Where steps are inferred or of sessions, or
// there is a tree of cases, sessions and times that are not needed are not told.
func (s story) again(level verdict.Level, ctx Context) (story, bool) {
	if ctx.Find == nil {
		return s, false
	}
	lookup, h := placed(s.p.txns), s.p.header
	if level != s.n.Breaks[0] {
		h = literal(h)
	}
	h = untimed(level, h)
	find := func(txns []record.Transaction) (story, bool) {
		for _, v := range ctx.Find(level, h, txns) {
			if next, ok := tell(v, level, s.p, lookup, ctx); ok {
				return next, true
			}
		}
		return s, false
	}
	next, ok := find(s.p.txns)
	if ok && (inferred(next.v) || slices.ContainsFunc(next.v.Cycle,
		func(e verdict.Edge) bool { return e.Type == verdict.SO })) {
		violated := func(txns []record.Transaction) bool { return ctx.Judge(level, h, txns) == verdict.Violated }
		if looser, ok := find(loosen(s.p.txns, violated)); ok {
			return looser, true
		}
	}
	return next, ok
}

// within is a story with what its evidence has of its transactions, if they are all there
// and no step has a reason that may be about others.
func (s story) within() story {
	if inferred(s.v) {
		return s
	}
	at := map[string]*record.Transaction{}
	for i := range s.p.txns {
		at[s.p.txns[i].ID] = &s.p.txns[i]
	}
	all := s.lookup
	kept := func(id verdict.TxnID) (*record.Transaction, bool) {
		r, ok := all.Find(id)
		if !ok {
			return nil, false
		}
		r, ok = at[r.ID]
		return r, ok
	}
	if slices.ContainsFunc(s.v.Txns, func(id verdict.TxnID) bool { _, ok := kept(id); return !ok }) {
		return s
	}
	if read := name.Read(s.v, all); read >= 0 {
		full, _ := all.Find(s.v.Txns[0])
		rest, _ := kept(s.v.Txns[0])
		if s.v.Read = placeIn(rest.Ops, full.Ops, read); s.v.Read < 0 {
			return s
		}
	}
	s.lookup = kept
	return s
}

// placeIn is the place that an operation of a transaction has among those that are left
// of them, in the same order; -1 if it is gone. Of several that are alike it is the first.
func placeIn(rest, full []record.Op, at int) int {
	i := 0
	for j, op := range full {
		if i == len(rest) {
			break
		}
		if j == at && rest[i] == op {
			return i
		}
		if rest[i] == op {
			i++
		}
	}
	return slices.Index(rest, full[at])
}

// judged makes what a story is said to break those of the promised levels that its evidence
// breaks: those that imply what it is proved at, and of the others what the judge says, lin
// only if it can be asked. A name may claim more, as what it is made of may not be all of
// the proof.
func (s *story) judged(ctx Context, lin bool) {
	first := s.n.Breaks[0]
	s.n.Breaks = slices.DeleteFunc(append(name.Ordered(), verdict.LIN), func(l verdict.Level) bool {
		asked := slices.Contains(ctx.Levels, l) && (lin || l != verdict.LIN)
		return l != first && !(asked && (l.Implies(first) || ctx.Judge(l, s.p.header, s.p.txns) == verdict.Violated))
	})
}

// loosenMax bounds the transactions of which loosen tries to take sessions and times.
const loosenMax = 32

// loosen takes from transactions the times and the places in sessions that they break a
// level without as well, the first ones first: what is found in the rest does not tell them
// as reasons. They are the same operations in the same places.
func loosen(txns []record.Transaction, violated func([]record.Transaction) bool) []record.Transaction {
	out := slices.Clone(txns)
	if len(txns) > loosenMax {
		return out
	}
	var timed, later []int
	seen := map[string]bool{}
	for i := range out {
		if out[i].HasTimes {
			timed = append(timed, i)
		}
		if seen[out[i].Session] {
			later = append(later, i)
		}
		seen[out[i].Session] = true
	}
	out = each(timed, out, violated, func(less []record.Transaction, i int) {
		less[i].HasTimes, less[i].Start, less[i].End = false, 0, 0
	})
	// a session ends before i, and another one begins
	return each(later, out, violated, func(less []record.Transaction, i int) {
		session := less[i].Session
		for k := i; k < len(less); k++ {
			if less[k].Session == session {
				less[k].Session = fmt.Sprintf("%s, from %d on", session, i)
			}
		}
	})
}

// each makes those changes, in order, that leave a violation with those before them: all of them, if that will do.
func each(changes []int, txns []record.Transaction, violated func([]record.Transaction) bool,
	change func([]record.Transaction, int)) []record.Transaction {
	try := func(some []int) bool {
		less := slices.Clone(txns)
		for _, i := range some {
			change(less, i)
		}
		if !violated(less) {
			return false
		}
		txns = less
		return true
	}
	if len(changes) < 2 || !try(changes) {
		shrink.Pick(changes, try)
	}
	return txns
}

// tell makes a story of what was found in a proof at a level; false if it is not of that
// level.
func tell(v verdict.Violation, level verdict.Level, p proof, lookup name.Lookup, ctx Context) (story, bool) {
	v = name.Plain(v, lookup)
	s := story{v: v, n: name.Of(v, lookup, ctx.asked()), p: p, lookup: lookup}
	if !level.Implies(s.n.Weakest) && !slices.Contains(s.n.Breaks, level) {
		return s, false
	}
	s.p.header = header(v, ctx, *p.header.Coverage, p.header.Tables)
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
