package predicate

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// commits is an order of commits that satisfies rc or g1, which comes by and by: a transaction is put behind the
// others, who ended first first, once somebody there has left each row as it was found. As more may be found by
// then, g1 is broken where none can be put any more; rc may hold in another order, or with rows left by others.
//
// That a row was not found shows little at these levels: it may be as it was before anybody wrote it, unless, at
// rc, the transaction has read before, with another statement, from one that wrote it.
type commits struct {
	*search
	left    map[*row][]left   // in the order of those who did
	waiting map[*row][]int32  // for somebody who leaves it as they found it
	behind  map[int32][]int32 // who follows one in its session that waits
	own     map[*row]*version // what the transaction in work wrote
	least   map[*row]int32    // and where who left a row has to be at least: it has read from one there that wrote it
}

// left is how a row was left, and the place in the order of who did it.
type left struct {
	made  *version
	place int32
}

// commits is Order for rc and g1. It finds none, and nothing near, where other keys are read than rows.
func (s *search) commits() (order []verdict.Event, near []int32) {
	h := s.h
	c := &commits{search: s, left: map[*row][]left{}, waiting: map[*row][]int32{}, behind: map[int32][]int32{},
		own: map[*row]*version{}, least: map[*row]int32{}}
	ended := func(a, b int32) int { return cmp.Or(cmp.Compare(s.txns[a].end, s.txns[b].end), cmp.Compare(a, b)) }
	slices.SortFunc(s.coming, ended)
	for _, first := range s.coming {
		if h.readsOthers(first) {
			return nil, nil
		}
		for next := []int32{first}; len(next) > 0; {
			t := next[0]
			if next = next[1:]; c.follows(t) {
				next = append(next, c.put(t)...)
				slices.SortFunc(next, ended)
			}
			if !h.look(nil, nil) || s.isTooMuch() {
				return nil, nil
			}
		}
	}
	switch {
	case s.undone == 0:
		return s.order, nil
	case s.size < nearLeast:
		return nil, nil
	}
	return nil, slices.DeleteFunc(s.coming, func(t int32) bool {
		return s.txns[t].isDone || h.Txns[t].Status != record.Committed
	})
}

// readsOthers tells whether a transaction reads other keys than rows.
func (h *History) readsOthers(t int32) bool {
	reads := 0
	for i := range h.Txns[t].Ops {
		if k := h.Txns[t].Ops[i].Kind; k == record.Read || k == record.Append {
			reads++
		}
	}
	for i := range h.acts[t] {
		if a := &h.acts[t][i]; a.statement == nil && !a.isWrite {
			reads--
		}
	}
	return reads > 0
}

// follows tells whether a transaction can follow; if not, it waits until it may.
func (c *commits) follows(t int32) bool {
	if p := c.txns[t].previous; p != none && !c.txns[p].isDone {
		c.behind[p] = append(c.behind[p], t)
	} else if r := c.lack(t); r != nil {
		c.waiting[r] = append(c.waiting[r], t)
	} else {
		return true
	}
	return false
}

// put puts a transaction at the end of the order, and returns who waited for that.
func (c *commits) put(t int32) []int32 {
	x, woken := &c.txns[t], c.behind[t]
	x.isDone, x.makes = true, c.h.makes(t)
	for i := range x.makes {
		m := &x.makes[i]
		for n, number := range m.rows {
			r := m.of.rows[number]
			c.left[r] = append(c.left[r], left{m.of.versions[m.as(n)], int32(len(c.order))})
			woken = append(woken, c.waiting[r]...)
			delete(c.waiting, r)
		}
	}
	c.order = append(c.order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
	if c.h.Txns[t].Status == record.Committed {
		c.undone--
	}
	return woken
}

// lack is a row that nobody left as a transaction found it, if there is one.
func (c *commits) lack(t int32) *row {
	acts := c.h.acts[t]
	clear(c.own)
	clear(c.least)
	for i := range acts {
		a, isLast := &acts[i], i+1 == len(acts)
		var from []int32
		finds := func(r *row, agrees func(v *version) bool) bool {
			place, is := c.find(r, agrees, isLast)
			if place != none {
				from = append(from, place)
			}
			return is || r.sign() == 0 || c.txns[t].isUnasked
		}
		if st := a.statement; st != nil {
			for n := range st.rows {
				if r := st.row(n); !finds(r, func(v *version) bool { return st.meets(n, v) }) {
					return r
				}
			}
			for _, r := range c.others(st) {
				if !finds(r, func(v *version) bool { return !v.matched(st.where) }) {
					return r
				}
			}
		} else if !a.isWrite && !finds(a.row, func(v *version) bool { return v == a.made }) {
			return a.row
		}
		if isLast {
			break
		}
		for _, place := range from {
			c.readFrom(place)
		}
		for r, v := range writes(acts[i : i+1]) {
			c.own[r] = v
		}
	}
	return nil
}

// others are rows that a statement did not find, and that may not be as they were at first.
func (c *commits) others(st *statement) (rows []*row) {
	if len(c.own)+len(c.least) == 0 {
		return nil
	}
	found := map[int32]bool{}
	for _, r := range st.rows {
		found[r] = true
	}
	add := func(r *row) {
		if r.of == st.of && !found[r.number] {
			found[r.number] = true
			rows = append(rows, r)
		}
	}
	for r := range c.own {
		add(r)
	}
	for r := range c.least {
		add(r)
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.number, b.number) })
	return rows
}

// find finds where in the order somebody is who left a row as it was found, or none if nobody need have, and whether it
// can have been found so. Whoever it is from, what is read next can't be from before what that one wrote: so it is the
// first that can be, unless nothing is read next.
func (c *commits) find(r *row, agrees func(v *version) bool, isLast bool) (place int32, is bool) {
	if v, wrote := c.own[r]; wrote {
		return none, agrees(v)
	}
	least, later := c.least[r]
	if !later && agrees(nil) {
		return none, true
	}
	all := c.left[r]
	if later {
		from, _ := slices.BinarySearchFunc(all, least, func(l left, at int32) int { return cmp.Compare(l.place, at) })
		all = all[from:]
	}
	for n := range all {
		l := all[n]
		if isLast || c.rules.Level == verdict.G1 {
			l = all[len(all)-1-n]
		}
		if !c.h.look(nil, nil) {
			break
		}
		if agrees(l.made) {
			return l.place, true
		}
	}
	return none, false
}

// readFrom notes at rc that the transaction in work has read from the one at a place.
func (c *commits) readFrom(place int32) {
	if c.rules.Level != verdict.RC {
		return
	}
	for _, m := range c.txns[c.order[place].Txn].makes {
		for _, number := range m.rows {
			r := m.of.rows[number]
			c.least[r] = max(c.least[r], place)
		}
	}
}
