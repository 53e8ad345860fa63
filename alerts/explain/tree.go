package explain

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
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
	runs bool // it is the order of two runs of updates
	next node
}

// treeMax is how many cases a tree is tried for.
const treeMax = 4 * casesMax

// tree builds the tree of a violation's cases; false if the records don't
// show that it is complete, or it would be too large to read.
func tree(of records) (node, bool) {
	g := grower{records: of, runs: map[question]bool{}, left: casesMax}
	if len(g.v.Cases) > treeMax {
		return node{}, false
	}
	for _, c := range g.v.Cases {
		s, ok := g.suppositions(c)
		if !ok || len(s) == 0 && len(g.v.Cases) > 1 { // what it supposes is not among what can be asked
			return node{}, false
		}
		g.needs = append(g.needs, s)
	}
	return g.grow(nil)
}

type grower struct {
	records
	runs  map[question]bool // orders that stand for those of later updates too
	needs [][]answer        // by case, what it supposes
	left  int               // cycles that may still be told
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
		n.branches = append(n.branches, branch{a, g.runs[q], next})
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

// suppositions are what a cycle supposes; false if the records do not say
// between which writes.
func (g *grower) suppositions(c []verdict.Edge) ([]answer, bool) {
	var out []answer
	add := func(a answer) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	wrote := func(e verdict.Edge) bool {
		op, ok := g.choiceOf(e.To, e.Key)
		if ok = ok && slices.Contains(g.writersOf(op, e.To), e.From); ok {
			add(answer{question{key: e.Key, reader: e.To}, e.From})
		}
		return ok
	}
	for _, e := range c {
		if g.maybeInitial(e) {
			return nil, false // nobody's is no answer
		}
		if e.Why != verdict.ByCase {
			if w, ok := g.presumed(c, e); ok && !wrote(w) {
				return nil, false
			}
			// The opposite that its reason supposes is no case; a read on the way to it is.
			for _, b := range e.Because {
				if w, ok := g.presumed(e.Because, b); ok && !wrote(w) {
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
			w, ok := g.source(c, e)
			if !ok {
				return nil, false
			}
			first = w
		case verdict.WW:
		default:
			return nil, false
		}
		a, ok := g.before(e.Key, first, e.To)
		if !ok {
			return nil, false
		}
		add(a)
	}
	return out, len(c) > 0
}

// before is the answer that one write came before another. Updates of a version
// that was read follow it at once (from snapshot isolation up), so that the
// order of two runs of these is one question.
func (g *grower) before(key string, first, second verdict.TxnID) (answer, bool) {
	a, b := g.runOf(key, first), g.runOf(key, second)
	if a == b {
		return answer{}, false
	}
	q := question{key: key, reader: verdict.NoTxn, a: min(a, b), b: max(a, b)}
	if a != first || b != second {
		g.runs[q] = true
	}
	return answer{q, a}, true
}

// runMax bounds how far a run of updates is followed.
const runMax = 100

// branches tells a tree.
func (t teller) branches(w *writer, depth int, n node) {
	if len(n.branches) == 0 {
		t.steps(w, depth, n.cycle, 0, true)
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
		w.line(depth, "%s %s:", start, t.supposition(b))
		t.branches(w, depth+1, b.next)
	}
}

// supposition is an answer in words.
func (t teller) supposition(b branch) string {
	if b.reader != verdict.NoTxn {
		return t.say("$from wrote the $read that $to read", verdict.Edge{From: b.who, To: b.reader, Key: b.key})
	}
	e := verdict.Edge{From: b.a, To: b.b, Key: b.key}
	if b.who == b.b {
		e.From, e.To = b.b, b.a
	}
	if !t.written(e.From, e.Key).known || !t.written(e.To, e.Key).known {
		return t.say("$from wrote $key before $to", e)
	}
	if b.runs {
		return t.say("$from $did before $to $then", e) + oneRun(e.Key)
	}
	return t.say("$from $did before $to $then", e)
}
