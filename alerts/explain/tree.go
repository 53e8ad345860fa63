package explain

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// The cases of an unsatisfiable violation are cycles, each with what it
// supposes. A tree of questions, "which of two writes came first?" and "who wrote
// what was read?", in which every branch ends at a cycle that supposes no more
// than the answers on the way, shows that there is no other possibility. The
// records may not suffice to build one: then the cases are told in a row.

// question is asked of the order of two writes of a key, or of the writer of what
// a transaction read of it.
type question struct {
	key    string
	reader verdict.TxnID // NoTxn for an order
	a, b   verdict.TxnID // the writers of an order, a < b
}

// answer is one of them: who came first, or who was the writer.
type answer struct {
	question
	who verdict.TxnID
}

// node is a cycle that is run into, or a question with what follows from each
// answer.
type node struct {
	cycle    []verdict.Edge
	branches []branch
}

type branch struct {
	answer
	next node
}

// treeMax is how many cases a tree is tried for.
const treeMax = 4 * casesMax

// tree builds the tree of the violation's cases; false if the records don't
// show that it is complete, or it would be too large to read.
func (t teller) tree() (node, bool) {
	g := grower{teller: t, left: casesMax}
	if len(t.v.Cases) > treeMax {
		return node{}, false
	}
	for _, c := range t.v.Cases {
		s, ok := t.suppositions(c)
		if !ok || len(s) == 0 && len(t.v.Cases) > 1 { // what it supposes is not among what can be asked
			return node{}, false
		}
		g.needs = append(g.needs, s)
	}
	return g.grow(nil)
}

type grower struct {
	teller
	needs [][]answer // by case, what it supposes
	left  int        // cycles that may still be told
}

func (g *grower) grow(path []answer) (node, bool) {
	for i, need := range g.needs {
		if !slices.ContainsFunc(need, func(a answer) bool { return !slices.Contains(path, a) }) {
			g.left--
			return node{cycle: g.v.Cases[i]}, g.left >= 0
		}
	}
	q, ok := g.next(path)
	if !ok {
		return node{}, false
	}
	var n node
	for _, who := range g.answers(q) {
		a := answer{q, who}
		next, ok := g.grow(append(slices.Clip(path), a))
		if !ok {
			return node{}, false
		}
		n.branches = append(n.branches, branch{a, next})
	}
	return n, len(n.branches) > 0
}

// next is the first open question of the first case that may still be the one.
func (g *grower) next(path []answer) (question, bool) {
	for _, need := range g.needs {
		if slices.ContainsFunc(need, func(a answer) bool {
			return slices.ContainsFunc(path, func(p answer) bool { return p.question == a.question && p.who != a.who })
		}) {
			continue
		}
		for _, a := range need {
			if !slices.Contains(path, a) {
				return a.question, true
			}
		}
	}
	return question{}, false
}

// answers are all that a question may have.
func (g *grower) answers(q question) []verdict.TxnID {
	if q.reader == verdict.NoTxn {
		return []verdict.TxnID{q.a, q.b}
	}
	op, _ := g.choiceOf(q.reader, q.key)
	return g.writersOf(op, q.reader)
}

// choiceOf is the read of key whose writer is asked for; false if there is none,
// or its value may be the initial one, whose writer nobody is.
func (t teller) choiceOf(reader verdict.TxnID, key string) (record.Op, bool) {
	f := t.readNotOf(reader, key, verdict.NoTxn)
	return f.op, f.known && !f.op.Value.IsNull() && f.op.Value != record.Int(0)
}

// suppositions are what a cycle supposes; false if the records do not say
// between which writes.
func (t teller) suppositions(c []verdict.Edge) ([]answer, bool) {
	var out []answer
	add := func(a answer) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	wrote := func(e verdict.Edge) bool {
		op, ok := t.choiceOf(e.To, e.Key)
		if ok = ok && slices.Contains(t.writersOf(op, e.To), e.From); ok {
			add(answer{question{key: e.Key, reader: e.To}, e.From})
		}
		return ok
	}
	for _, e := range c {
		if t.maybeInitial(e) {
			return nil, false // nobody's is no answer
		}
		if e.Why != verdict.ByCase {
			if w, ok := t.presumed(c, e); ok && !wrote(w) {
				return nil, false
			}
			// The opposite that its reason supposes is no case; a read on the way to it is.
			for _, b := range e.Because {
				if w, ok := t.presumed(e.Because, b); ok && !wrote(w) {
					return nil, false
				}
				if b.Why == verdict.ByCase && b.Type == verdict.WR && !wrote(b) {
					return nil, false
				}
			}
			continue
		}
		first := e.From
		switch e.Type {
		case verdict.WR:
			if !wrote(e) {
				return nil, false
			}
			continue
		case verdict.RW:
			w, ok := t.source(c, e)
			if !ok {
				return nil, false
			}
			first = w
		case verdict.WW:
		default:
			return nil, false
		}
		a, ok := t.before(e.Key, first, e.To)
		if !ok {
			return nil, false
		}
		add(a)
	}
	return out, len(c) > 0
}

// presumed is the read that an inferred anti-dependency of a case takes for granted, where
// several may have written what was read and no other step of the cycle says whose it is:
// weak levels infer the order behind the version of one of them.
func (t teller) presumed(c []verdict.Edge, e verdict.Edge) (verdict.Edge, bool) {
	if len(t.v.Cases) == 0 || e.Type != verdict.RW || e.Why != verdict.ByOrder {
		return verdict.Edge{}, false
	}
	s, ok := name.Supposed(e)
	if !ok || s.Type != verdict.WW || s.From != e.To {
		return verdict.Edge{}, false
	}
	w := verdict.Edge{From: s.To, To: e.From, Type: verdict.WR, Key: e.Key, Why: verdict.ByCase}
	f := t.readFrom(e.From, e.Key, s.To)
	if !f.known || len(t.writersOf(f.op, e.From)) < 2 {
		return verdict.Edge{}, false
	}
	if said, ok := supposed(c, e.From, e.Key); ok && t.readFrom(e.From, e.Key, said.From).op.Value == f.op.Value {
		return verdict.Edge{}, false
	}
	return w, true
}

// maybeInitial: of a case, an anti-dependency takes what was read for the initial version,
// and somebody wrote the same.
func (t teller) maybeInitial(e verdict.Edge) bool {
	if len(t.v.Cases) == 0 || e.Type != verdict.RW || e.Why != verdict.ByInitial {
		return false
	}
	f := t.readNotOf(e.From, e.Key, e.To)
	return f.known && !f.own && len(t.writersOf(f.op, e.From)) > 0
}

// initialElsewhere tells whether a case takes what was read for the initial version, though
// somebody wrote the same: then that it is somebody's is only supposed, too.
func (t teller) initialElsewhere(reader verdict.TxnID, read fact) bool {
	return slices.ContainsFunc(slices.Concat(t.v.Cases...), func(e verdict.Edge) bool {
		return e.From == reader && e.Key == read.key && t.maybeInitial(e) &&
			t.readNotOf(reader, e.Key, e.To).op.Value == read.op.Value
	})
}

// source is who wrote the version that an anti-dependency's reader read: as the
// cycle supposes, or the only one who can have.
func (t teller) source(c []verdict.Edge, e verdict.Edge) (verdict.TxnID, bool) {
	if w, ok := supposed(c, e.From, e.Key); ok {
		return w.From, true
	}
	op, ok := t.choiceOf(e.From, e.Key)
	if !ok {
		return 0, false
	}
	if es, isList := list.Elements(op.Value); isList && len(es) > 0 {
		return t.writer(fact{key: e.Key, op: op, known: true})
	}
	ws := t.writersOf(op, e.From)
	if len(ws) != 1 {
		return 0, false
	}
	return ws[0], true
}

// before is the answer that one write came before another. Updates of a version
// that was read follow it at once (from snapshot isolation up), so that the
// order of two runs of these is one question.
func (t teller) before(key string, first, second verdict.TxnID) (answer, bool) {
	a, b := t.runOf(key, first), t.runOf(key, second)
	if a == b {
		return answer{}, false
	}
	q := question{key: key, reader: verdict.NoTxn, a: min(a, b), b: max(a, b)}
	if a != first || b != second {
		t.runs[q] = true
	}
	return answer{q, a}, true
}

// runMax bounds how far a run of updates is followed.
const runMax = 100

// hasRuns tells whether the level has the rule that updates follow each other
// without a gap.
func (t teller) hasRuns() bool { return t.v.Level.Implies(verdict.SI) || t.v.Level == verdict.LIN }

// runOf is the transaction with which the run of updates of key that id is part
// of begins.
func (t teller) runOf(key string, id verdict.TxnID) verdict.TxnID {
	if !t.hasRuns() {
		return id
	}
	for range runMax {
		op, ok := t.choiceOf(id, key)
		if !ok || !t.written(id, key).known {
			return id
		}
		ws := t.writersOf(op, id)
		if len(ws) != 1 {
			return id
		}
		id = ws[0]
	}
	return id
}

// branches tells a tree.
func (t teller) branches(w *writer, depth int, n node) {
	if len(n.branches) == 0 {
		t.steps(w, depth, n.cycle, 0)
		w.line(depth, "so %s would have to come before itself: a contradiction.", t.first(n.cycle))
		return
	}
	for i, b := range n.branches {
		start := "Or else"
		switch {
		case len(n.branches) == 1:
			start = "It can only be that"
		case i == 0:
			start = "Either"
		}
		w.line(depth, "%s %s:", start, t.supposition(b.answer))
		t.branches(w, depth+1, b.next)
	}
}

// supposition is an answer in words.
func (t teller) supposition(a answer) string {
	if a.reader != verdict.NoTxn {
		return fmt.Sprintf("%s wrote the %v that %s read", t.txn(a.who), t.readFrom(a.reader, a.key, a.who), t.txn(a.reader))
	}
	first, second := a.a, a.b
	if a.who == a.b {
		first, second = a.b, a.a
	}
	f, s := t.written(first, a.key), t.written(second, a.key)
	if !f.known || !s.known {
		return fmt.Sprintf("%s wrote %s before %s", t.txn(first), text.Name(a.key), t.txn(second))
	}
	words := fmt.Sprintf("%s %s before %s %s", t.txn(first), f.did(), t.txn(second), s.did())
	if t.runs[a.question] {
		words += fmt.Sprintf(" (updates of %s follow each other without a gap there, so the order of one is that of all)",
			text.Name(a.key))
	}
	return words
}
