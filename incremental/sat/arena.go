package sat

import (
	"cmp"
	"fmt"
	"slices"
)

// ref is a clause's place in the arena, or one of two other kinds of reason.
//
//	place         the clause there
//	byTheory|n    the theory implied it when it had been told n literals
//	noRef         a decision, a unit clause, or nothing
type ref uint32

const (
	noRef    = ^ref(0)
	byTheory = ref(1) << 31
)

// arena holds clauses one after the other:
//
//	given     size<<2       derivation   literal … literal
//	learned   size<<2 | 1   derivation   literal … literal   levels   last use
//
// levels is the number of decision levels in the clause when it was last used
// (LBD, Audemard and Simon), last use the number of that conflict. Flag 2 marks
// a clause that is deleted, or moved; then the derivation is its new place.
type arena struct {
	words []Lit
	waste int // words of deleted clauses
}

const (
	flagLearned = 1
	flagGone    = 2
	sizeShift   = 2
	headWords   = 2
	tailWords   = 2 // of learned clauses
)

func (a *arena) alloc(lits []Lit, id deriv, flags Lit) ref {
	if len(a.words) > int(byTheory)-len(lits)-headWords-tailWords {
		panic(fmt.Sprintf("sat: %d words of clauses, which is more than can be addressed", len(a.words)))
	}
	r := ref(len(a.words))
	a.words = append(a.words, Lit(len(lits))<<sizeShift|flags, Lit(id))
	a.words = append(a.words, lits...)
	if flags&flagLearned != 0 {
		a.words = append(a.words, 0, 0)
	}
	return r
}

func (a *arena) size(r ref) int       { return int(a.words[r] >> sizeShift) }
func (a *arena) isLearned(r ref) bool { return a.words[r]&flagLearned != 0 }
func (a *arena) isGone(r ref) bool    { return a.words[r]&flagGone != 0 }
func (a *arena) deriv(r ref) deriv    { return deriv(a.words[r+1]) }

func (a *arena) lits(r ref) []Lit {
	return a.words[r+headWords : int(r)+headWords+a.size(r)]
}

// levels and used are the tail of a learned clause.
func (a *arena) levels(r ref) *Lit { return &a.words[int(r)+headWords+a.size(r)] }
func (a *arena) used(r ref) *Lit   { return &a.words[int(r)+headWords+a.size(r)+1] }

func (a *arena) whole(r ref) int {
	n := headWords + a.size(r)
	if a.isLearned(r) {
		n += tailWords
	}
	return n
}

func (a *arena) drop(r ref) {
	a.words[r] |= flagGone
	a.waste += a.whole(r)
}

// move copies a clause to another arena, once, and returns its new place.
func (a *arena) move(to *arena, r ref) ref {
	if a.isGone(r) {
		return ref(a.words[r+1])
	}
	n := ref(len(to.words))
	to.words = append(to.words, a.words[r:int(r)+a.whole(r)]...)
	a.words[r] |= flagGone
	a.words[r+1] = Lit(n)
	return n
}

// Deletion: the first time after reduceFirst conflicts, each time reduceMore
// later than the time before. Clauses of at most glue levels stay.
const (
	reduceFirst = 2000
	reduceMore  = 300
	glue        = 2
)

// locked tells whether a clause is the reason of an assignment.
func (s *Solver) locked(r ref) bool {
	c := s.arena.lits(r)
	return s.value[c[0]] > 0 && s.reason[c[0].Var()] == r || len(c) > 1 && s.value[c[1]] > 0 && s.reason[c[1].Var()] == r
}

// reduce deletes the worse half of the learned clauses that may go: those of
// most levels, of them those not used for longest.
func (s *Solver) reduce() {
	s.reductions++
	s.untilReduce = s.opt.ReduceFirst + reduceMore*s.reductions
	keepLazy := s.lazy[:0]
	for _, r := range s.lazy {
		if s.locked(r) {
			keepLazy = append(keepLazy, r)
		} else {
			s.arena.drop(r)
		}
	}
	s.lazy = keepLazy
	s.dropWorst()
	if s.arena.waste*4 > len(s.arena.words) {
		s.compact()
	}
}

func (s *Solver) dropWorst() {
	var may []ref
	for _, r := range s.learned {
		if s.arena.size(r) > 2 && *s.arena.levels(r) > glue && !s.locked(r) {
			may = append(may, r)
		}
	}
	slices.SortFunc(may, func(a, b ref) int {
		return cmp.Or(cmp.Compare(*s.arena.levels(b), *s.arena.levels(a)), cmp.Compare(*s.arena.used(a), *s.arena.used(b)),
			cmp.Compare(a, b))
	})
	for _, r := range may[:len(may)/2] {
		s.arena.drop(r)
		s.Stats.Deleted++
	}
	s.learned = slices.DeleteFunc(s.learned, s.arena.isGone)
	for l, ws := range s.watches {
		s.watches[l] = slices.DeleteFunc(ws, func(w watch) bool { return s.arena.isGone(w.clause()) })
	}
}

// compact moves all clauses that are left together, in the order in which they
// lie, and forgets derivations that nothing rests on any more.
func (s *Solver) compact() {
	to := arena{words: make([]Lit, 0, len(s.arena.words)-s.arena.waste)}
	for r := ref(0); int(r) < len(s.arena.words); {
		n := s.arena.whole(r)
		if !s.arena.isGone(r) {
			s.arena.move(&to, r)
			// Flag 2 now says "moved" for what was living; what was deleted is
			// named by nobody.
		}
		r += ref(n)
	}
	for _, list := range [][]ref{s.learned, s.lazy} {
		for i, r := range list {
			list[i] = s.arena.move(&to, r)
		}
	}
	for _, ws := range s.watches {
		for i := range ws {
			ws[i].place = s.arena.move(&to, ws[i].clause()) | ws[i].place&binary
		}
	}
	for _, l := range s.trail {
		if r := &s.reason[l.Var()]; *r < byTheory {
			*r = s.arena.move(&to, *r)
		}
	}
	s.arena = to
	if s.trace.worth(s.opt.ReduceFirst) {
		s.forget()
	}
}

// forget drops derivations that no living clause and no unit rests on.
func (s *Solver) forget() {
	s.trace.begin()
	s.eachDeriv(s.trace.keep)
	s.trace.end()
	s.eachDeriv(func(d *deriv) { *d = s.trace.renamed(*d) })
}

// eachDeriv visits all places that name a derivation.
func (s *Solver) eachDeriv(f func(*deriv)) {
	for r := ref(0); int(r) < len(s.arena.words); r += ref(s.arena.whole(r)) {
		d := s.arena.deriv(r)
		f(&d)
		s.arena.words[r+1] = Lit(d)
	}
	for v := range s.unit {
		if s.unit[v] != noDeriv {
			f(&s.unit[v])
		}
	}
}
