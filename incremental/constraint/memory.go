package constraint

import (
	"github.com/isowatch/isowatch/incremental/sat"
)

// memory is what the solver learned that serves the next time, when a stream
// has brought a little more: what it chose, which is tried first, and short
// clauses that it derived. What they were derived from stays, unless it was
// given up after a violation; so a refutation that uses one is found again
// without them before it is told.
type memory struct {
	read    map[choiceID]vid // by choice
	lemmas  [][]remembered
	learned [][]sat.Lit // of the search at hand
}

// remembered names a literal beyond the numbers of one problem.
type remembered struct {
	kind varKind
	id   [2]uint32 // the blocks of a pair; a choice and its candidate; a slot
	pos  bool
}

const (
	lemmaLength = 4
	lemmasMax   = 2000
)

// note keeps a derived clause, if it is short.
func (m *memory) note(lits []sat.Lit) {
	if len(lits) <= lemmaLength && len(m.learned) < lemmasMax {
		m.learned = append(m.learned, append([]sat.Lit(nil), lits...))
	}
}

// name is a variable's name beyond the problem; false for auxiliary ones.
func (q *problem) name(i int) (remembered, bool) {
	v := q.vars[i]
	switch v.kind {
	case pairVar:
		pr := q.p.subjects.pairs[v.pair]
		return remembered{kind: pairVar, id: [2]uint32{uint32(pr.a), uint32(pr.b)}}, true
	case candVar:
		return remembered{kind: candVar, id: [2]uint32{uint32(v.choice), uint32(v.v)}}, true
	case inVar:
		return remembered{kind: inVar, id: [2]uint32{uint32(v.slot), 0}}, true
	}
	return remembered{}, false
}

// remember keeps what a search that succeeded chose and derived.
func (m *memory) remember(q *problem, solver *sat.Solver) {
	m.read = map[choiceID]vid{}
	for i, v := range q.vars {
		if v.kind == candVar && solver.Value(i) {
			m.read[v.choice] = v.v
		}
	}
	m.lemmas = append(m.lemmas, m.named(q)...)
	if n := len(m.lemmas) - lemmasMax; n > 0 {
		m.lemmas = m.lemmas[n:]
	}
	m.learned = nil
}

// named are the clauses of the search at hand without auxiliary variables.
func (m *memory) named(q *problem) [][]remembered {
	var out [][]remembered
next:
	for _, lits := range m.learned {
		var c []remembered
		for _, l := range lits {
			n, ok := q.name(l.Var())
			if !ok {
				continue next
			}
			n.pos = l.Positive()
			c = append(c, n)
		}
		out = append(out, c)
	}
	return out
}

// recall tells the solver what is remembered of the problem's variables.
func (m *memory) recall(q *problem, s *sat.Solver) {
	for i, v := range q.vars {
		switch v.kind {
		case pairVar:
			if x := &q.p.subjects.pairs[v.pair]; x.tried {
				s.SetPhase(i, x.ab)
			}
		case candVar:
			if r, ok := m.read[v.choice]; ok {
				s.SetPhase(i, r == v.v)
			}
		}
	}
	if len(m.lemmas) == 0 {
		return
	}
	at := make(map[remembered]int, len(q.vars))
	for i := range q.vars {
		if n, ok := q.name(i); ok {
			at[n] = i
		}
	}
	kept := m.lemmas[:0]
next:
	for _, c := range m.lemmas {
		var lits []sat.Lit
		for _, n := range c {
			pos := n.pos
			n.pos = false
			i, ok := at[n]
			if !ok {
				continue next // decided since, or gone
			}
			if pos {
				lits = append(lits, sat.Pos(i))
			} else {
				lits = append(lits, sat.Neg(i))
			}
		}
		s.AddClause(lits...)
		kept = append(kept, c)
	}
	m.lemmas = kept
}
