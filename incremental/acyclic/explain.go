package acyclic

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/sat"
)

// path finds a way between two nodes along fixed arcs and those of the first
// before literals, with the fewest of the latter; parent and via lead back from
// to. A way from a node to itself is empty.
//
// It is a breadth-first search in levels of asserted arcs, each closed under
// fixed arcs, within the places of the two ends.
func (t *Theory) path(from, to int32, before int) bool {
	if from == to {
		return true
	}
	hi := t.pos[to]
	t.next()
	t.mark[from] = t.stamp
	level, next := append(t.fwd[:0], from), t.level[:0]
	visit := func(v, n, via int32) bool {
		if t.mark[v] == t.stamp || t.pos[v] > hi {
			return false
		}
		t.mark[v], t.parent[v], t.via[v] = t.stamp, n, via
		return true
	}
	found := false
search:
	for len(level) > 0 {
		t.looked += len(level)
		for i := 0; i < len(level); i++ {
			n := level[i]
			for _, v := range t.outTo[t.outAt[n]:t.outAt[n+1]] {
				if visit(v, n, none) {
					level = append(level, v)
				}
			}
			if t.mark[to] == t.stamp {
				found = true
				break search
			}
		}
		t.looked += len(level) // with those that came in
		for _, n := range level {
			for k := t.out[n]; k != none; k = t.links[k].nextOut {
				if int(t.place[t.links[k].lit]) >= before {
					continue
				}
				if v := t.links[k].To; visit(v, n, k) {
					next = append(next, v)
				}
			}
		}
		if t.mark[to] == t.stamp {
			found = true
			break
		}
		level, next = next, level[:0]
	}
	t.fwd, t.level = level[:0], next[:0]
	return found
}

// object notes the cycle that link i closes with the first before literals, and
// returns the literals in it but for i's own, and its number.
func (t *Theory) object(i int32, before int) ([]sat.Lit, int) {
	k := t.links[i]
	if !t.path(k.To, k.From, before) {
		panic("acyclic: an arc closes a cycle that is not found again, which can't happen, because what was asserted since " +
			"is left aside only")
	}
	var lits []sat.Lit
	from := len(t.cycles)
	for n := k.From; n != k.To; n = t.parent[n] {
		v := t.via[n]
		if v == none {
			continue
		}
		t.cycles = append(t.cycles, v)
		if l := t.links[v].lit; l != k.lit && !slices.Contains(lits, l) {
			lits = append(lits, l)
		}
	}
	t.cycles = append(t.cycles, i)
	slices.Reverse(t.cycles[from:])
	t.ends = append(t.ends, len(t.cycles))
	return lits, len(t.ends) - 1
}

// Cycle returns an objection. Its fixed paths are searched for now: ask for
// what is to be shown, not for all.
func (t *Theory) Cycle(objection int) Cycle {
	from := 0
	if objection > 0 {
		from = t.ends[objection-1]
	}
	links := t.cycles[from:t.ends[objection]]
	var c Cycle
	for i, k := range links {
		c.Arcs = append(c.Arcs, t.links[k].Arc)
		c.Lits = append(c.Lits, t.links[k].lit)
		c.join(t, t.links[k].To, t.links[links[(i+1)%len(links)]].From)
	}
	return c
}

// join adds fixed arcs between two nodes.
func (c *Cycle) join(t *Theory, from, to int32) {
	if !t.path(from, to, 0) {
		panic("acyclic: no fixed path where there was one, which can't happen, because fixed arcs stay")
	}
	at := len(c.Arcs)
	for n := to; n != from; n = t.parent[n] {
		c.Arcs = append(c.Arcs, Arc{t.parent[n], n})
		c.Lits = append(c.Lits, fixed)
	}
	slices.Reverse(c.Arcs[at:])
}
