package predicate

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// left is how a row was left, and the place in the order of who did it.
type left struct {
	made  *version
	place int32
	isOwn bool // by the transaction in work
}

// commits is Order for rc and g1. An order of commits comes by and by: a transaction is put behind the others, who
// ended first first, once somebody there has left each row as it was found; one that was not found may be as it was
// before anybody wrote it. As more may be found by then, g1 is broken where none can be put any more; rc may hold in
// another order. It finds none, and nothing near, where there are other keys than rows.
func (s *search) commits() (order []verdict.Event, near []int32) {
	h, all := s.h, map[*row][]left{}
	for _, r := range h.keys {
		if r == nil {
			return nil, nil
		}
	}
	ended := func(a, b int32) int { return cmp.Or(cmp.Compare(s.txns[a].end, s.txns[b].end), cmp.Compare(a, b)) }
	slices.SortFunc(s.coming, ended)
	waiting, behind := map[*row][]int32{}, map[int32][]int32{} // for a row to be left otherwise, for one of the session
	for next := s.coming; len(next) > 0; {
		var woken []int32
		for _, t := range next {
			if !h.look(nil, nil) || s.isTooMuch() {
				return nil, nil
			}
			x := &s.txns[t]
			if x.previous != none && !s.txns[x.previous].isDone {
				behind[x.previous] = append(behind[x.previous], t)
				continue
			}
			if r := s.waitsFor(t, all); r != nil {
				waiting[r] = append(waiting[r], t)
				continue
			}
			x.isDone, x.makes = true, h.makes(t)
			for _, m := range x.makes {
				for n, number := range m.rows {
					r := m.of.rows[number]
					all[r] = append(all[r], left{m.of.versions[m.as(n)], int32(len(s.order)), false})
					woken = append(woken, waiting[r]...)
					delete(waiting, r)
				}
			}
			woken = append(woken, behind[t]...)
			s.order = append(s.order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
		}
		slices.SortFunc(woken, ended)
		next = woken
	}
	near = slices.DeleteFunc(s.coming, func(t int32) bool {
		return s.txns[t].isDone || h.Txns[t].Status != record.Committed
	})
	switch {
	case len(near) == 0:
		return s.order, nil
	case s.size < nearLeast:
		return nil, nil
	}
	return nil, near
}

// waitsFor is a row that an operation did not find as its transaction had left it itself, or as somebody in the order, if
// there is one: only another who leaves it can change that. At rc, once they have read from one who wrote a row, they
// can't find with another operation how it was left before. So each row is taken to be from the first who left it so, or,
// where nothing is read behind it, from the last.
func (s *search) waitsFor(t int32, all map[*row][]left) *row {
	if s.txns[t].isUnasked {
		return nil
	}
	acts := s.h.acts[t]
	since := map[*row]left{} // who left a row, at least
	for i := range acts {
		isLast := i+1 == len(acts)
		var from []int32
		is := func(r *row, found func(v *version) bool) bool {
			s.h.look(nil, nil)
			l, known := since[r]
			if r.sign() == 0 || l.isOwn || !known && found(nil) {
				return r.sign() == 0 || found(l.made)
			}
			by := all[r]
			at, _ := slices.BinarySearchFunc(by, l.place, func(l left, at int32) int { return cmp.Compare(l.place, at) })
			by = by[at:]
			for n := range by {
				if l = by[n]; isLast || s.rules.Level == verdict.G1 {
					l = by[len(by)-1-n]
				}
				if s.h.look(nil, nil) && found(l.made) {
					from = append(from, l.place)
					return true
				}
			}
			return false
		}
		if a := &acts[i]; a.statement != nil {
			found := map[*row]bool{}
			for n := range a.statement.rows {
				r := a.statement.row(n)
				if len(since) > 0 {
					found[r] = true
				}
				if !is(r, func(v *version) bool { return a.statement.meets(n, v) }) {
					return r
				}
			}
			var lack *row
			for r := range since {
				if r.of == a.statement.of && !found[r] && (lack == nil || r.number < lack.number) &&
					!is(r, func(v *version) bool { return !v.matched(a.statement.where) }) {
					lack = r
				}
			}
			if lack != nil {
				return lack
			}
		} else if !a.isWrite && !is(a.row, func(v *version) bool { return v == a.made }) {
			return a.row
		}
		if isLast {
			break
		}
		slices.Sort(from)
		for _, place := range slices.Compact(from) {
			for _, m := range s.txns[s.order[place].Txn].makes {
				for _, r := range m.rows {
					if l := since[m.of.rows[r]]; !l.isOwn && s.rules.Level == verdict.RC {
						since[m.of.rows[r]] = left{place: max(l.place, place)}
					}
				}
			}
		}
		for r, v := range writes(acts[i : i+1]) {
			since[r] = left{made: v, isOwn: true}
		}
	}
	return nil
}
