package sat

import "slices"

// deriv numbers a derivation, from 1; noDeriv is none, as when nothing is traced.
type deriv uint32

const noDeriv = deriv(0)

// leafKind is what a derivation without premises is.
type leafKind uint32

const (
	given    leafKind = iota // a clause of AddClause
	objected                 // an objection of the theory
)

// trace remembers what every clause was derived from, also when the clause has
// been deleted: an Unsat answer is explained by what it rests on in the end. A
// derivation costs 4 bytes and 4 for each premise.
type trace struct {
	// start[d] is where d's words begin; start[d+1] where they end. A leaf has
	// one word, number<<2 | kind<<1 | 1; others have one for each premise, p<<1.
	start []uint32
	words []uint32

	kept   int // words after the last time that derivations were forgotten
	living []bool
	name   []deriv
}

func (t *trace) init() {
	t.start = []uint32{0, 0} // derivation 0 is none
}

func (t *trace) leaf(kind leafKind, number int) deriv {
	t.words = append(t.words, uint32(number)<<2|uint32(kind)<<1|1)
	return t.close()
}

func (t *trace) derive(from []deriv) deriv {
	for _, d := range from {
		t.words = append(t.words, uint32(d)<<1)
	}
	return t.close()
}

func (t *trace) close() deriv {
	t.start = append(t.start, uint32(len(t.words)))
	return deriv(len(t.start) - 2)
}

func (t *trace) of(d deriv) []uint32 { return t.words[t.start[d]:t.start[d+1]] }

// leaves are the numbers of the leaves of one kind that some derivations rest
// on, ascending.
func (t *trace) leaves(from []deriv, kind leafKind) []int {
	seen := make([]bool, len(t.start))
	todo := slices.Clone(from)
	var out []int
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[d] {
			continue
		}
		seen[d] = true
		for _, w := range t.of(d) {
			if w&1 == 0 {
				todo = append(todo, deriv(w>>1))
			} else if leafKind(w>>1&1) == kind {
				out = append(out, int(w>>2))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// worth tells whether so much has come since the last time, at some words for
// each of conflicts, that forgetting may pay.
func (t *trace) worth(conflicts int) bool { return len(t.words) > 2*t.kept+32*conflicts }

// begin, keep, end and renamed forget all derivations but the kept ones and
// what they rest on.
func (t *trace) begin() { t.living = make([]bool, len(t.start)-1) }

func (t *trace) keep(d *deriv) { t.living[*d] = true }

func (t *trace) end() {
	// Premises come before what is derived from them.
	for d := len(t.living) - 1; d > 0; d-- {
		if !t.living[d] {
			continue
		}
		for _, w := range t.of(deriv(d)) {
			if w&1 == 0 {
				t.living[w>>1] = true
			}
		}
	}
	t.name = make([]deriv, len(t.living))
	start, words := []uint32{0, 0}, t.words[:0]
	for d := 1; d < len(t.living); d++ {
		if !t.living[d] {
			continue
		}
		for _, w := range t.of(deriv(d)) {
			if w&1 == 0 {
				w = uint32(t.name[w>>1]) << 1
			}
			words = append(words, w)
		}
		start = append(start, uint32(len(words)))
		t.name[d] = deriv(len(start) - 2)
	}
	t.start, t.words, t.kept, t.living = start, slices.Clip(words), len(words), nil
}

func (t *trace) renamed(d deriv) deriv { return t.name[d] }
