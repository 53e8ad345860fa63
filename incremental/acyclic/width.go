package acyclic

import (
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/incremental/sat"
)

// Lemma is a clause that follows from the fixed graph: its literals cannot all
// be false. Objection is the cycle.
type Lemma struct {
	Lits      []sat.Lit
	Objection int
}

// Narrow finds choices that close a cycle with the fixed graph: literals that
// do so alone, and pairs that do so together (VeriStrong 6.1, cycles of one and
// of two choices). It stops after max lemmas or steps looks at a pair of arcs.
// Nothing may be asserted.
//
// It keeps who reaches whom in the fixed graph, n²/8 bytes, so it looks at no
// graph of more than nodesMax nodes.
func (t *Theory) Narrow(max, steps int) []Lemma {
	n := len(t.pos)
	if n > nodesMax || len(t.stack) > 0 {
		return nil
	}
	w := narrowing{t: t, words: (n + 63) / 64, max: max, steps: steps}
	w.close()
	w.alone = make([]bool, len(t.first))
	for i := range t.links {
		if k := &t.links[i]; k.lit != known && w.reaches(k.To, k.From) && !w.alone[k.lit] {
			w.alone[k.lit] = true
			w.add(nil, int32(i))
		}
	}
	w.tails = make([]uint64, w.words)
	for v, k := range t.may {
		if k != none {
			w.tails[v/64] |= 1 << (v % 64)
		}
	}
	w.seen = map[[2]sat.Lit]bool{}
	for i := range t.links {
		if t.links[i].lit != known && !w.alone[t.links[i].lit] && !w.pairs(int32(i)) {
			break
		}
	}
	return w.found
}

const nodesMax = 1 << 14

type narrowing struct {
	t          *Theory
	rows       []uint64 // by node: what it reaches along fixed arcs, itself too
	words      int
	tails      []uint64 // nodes that some literal has an arc from
	alone      []bool   // by literal: closes a cycle by itself
	seen       map[[2]sat.Lit]bool
	max, steps int
	found      []Lemma
}

func (w *narrowing) row(n int32) []uint64 { return w.rows[int(n)*w.words : (int(n)+1)*w.words] }

func (w *narrowing) reaches(a, b int32) bool {
	return w.rows[int(a)*w.words+int(b/64)]>>(b%64)&1 == 1
}

// close fills rows, against the topological order.
func (w *narrowing) close() {
	t := w.t
	w.rows = make([]uint64, len(t.pos)*w.words)
	order := make([]int32, len(t.pos))
	for v, p := range t.pos {
		order[p] = int32(v)
	}
	for _, u := range slices.Backward(order) {
		row := w.row(u)
		row[u/64] |= 1 << (u % 64)
		join := func(v int32) {
			if row[v/64]>>(v%64)&1 == 0 {
				for i, x := range w.row(v) {
					row[i] |= x
				}
			}
		}
		for _, v := range t.outTo[t.outAt[u]:t.outAt[u+1]] {
			join(v)
		}
		for k := t.out[u]; k != none; k = t.links[k].nextOut {
			join(t.links[k].To)
		}
	}
}

// pairs finds the arcs that close a cycle with arc i; false if that is enough.
func (w *narrowing) pairs(i int32) bool {
	t, a := w.t, w.t.links[i]
	for x, word := range w.row(a.To) {
		for word &= w.tails[x]; word != 0; word &= word - 1 {
			from := int32(x*64 + bits.TrailingZeros64(word))
			for k := t.may[from]; k != none; k = t.links[k].sibling {
				if w.steps--; w.steps < 0 {
					return false
				}
				b := &t.links[k]
				if b.lit <= a.lit || b.lit == a.lit^1 || w.alone[b.lit] || !w.reaches(b.To, a.From) {
					continue
				}
				if pair := [2]sat.Lit{a.lit, b.lit}; !w.seen[pair] {
					w.seen[pair] = true
					w.add([]int32{i}, k)
				}
			}
		}
		if len(w.found) >= w.max {
			return false
		}
	}
	return true
}

// add notes the lemma that the links cannot all hold, and its cycle.
func (w *narrowing) add(others []int32, k int32) {
	if len(w.found) >= w.max {
		return
	}
	t := w.t
	t.cycles = append(append(t.cycles, others...), k)
	t.ends = append(t.ends, len(t.cycles))
	var lits []sat.Lit
	for _, i := range append(others, k) {
		lits = append(lits, t.links[i].lit.Not())
	}
	w.found = append(w.found, Lemma{Lits: lits, Objection: len(t.ends) - 1})
}
