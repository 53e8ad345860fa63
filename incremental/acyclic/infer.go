package acyclic

import "github.com/isowatch/isowatch/incremental/sat"

// infer collects literals that would close a cycle through the arc that is
// going in: those with an arc from what its head reaches (fwd) to
// what reaches its tail (bwd, marked). Only the nodes that the reordering
// visits are looked at, so an arc that agrees with the order costs nothing and
// implies nothing.
func (t *Theory) infer() {
	for _, n := range t.fwd {
		for k := t.may[n]; k != none; k = t.links[k].sibling {
			if l := t.links[k].lit; t.mark[t.links[k].To] == t.stamp && t.place[l] == none && t.place[l^1] == none {
				t.implied = append(t.implied, l.Not())
			}
		}
	}
}

// Implied implements sat.Propagator: the opposites of literals whose arcs would
// close a cycle, as far as the last Assert came across them.
func (t *Theory) Implied() []sat.Lit { return t.implied }

// Reason implements sat.Propagator.
func (t *Theory) Reason(l sat.Lit, before int) ([]sat.Lit, int) {
	for i := t.first[l.Not()]; i != none; i = t.links[i].next {
		k := t.links[i]
		if t.pos[k.To] < t.pos[k.From] && t.path(k.To, k.From, before) {
			return t.object(i, before)
		}
	}
	panic("acyclic: a literal was implied for no reason, which can't happen, because its cycle was seen")
}

// Prefer implements sat.Guide: the value whose arcs agree with the order as it
// is now, if the other's do not (VeriStrong 6.2).
func (t *Theory) Prefer(v int) int8 {
	pos, neg := t.against(sat.Pos(v)), t.against(sat.Neg(v))
	switch {
	case pos == neg:
		return 0
	case pos:
		return -1
	}
	return 1
}

// against tells whether an arc of l runs against the order.
func (t *Theory) against(l sat.Lit) bool {
	if int(l) >= len(t.first) {
		return false
	}
	for i := t.first[l]; i != none; i = t.links[i].next {
		if t.pos[t.links[i].From] >= t.pos[t.links[i].To] {
			return true
		}
	}
	return false
}
