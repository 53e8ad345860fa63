package predicate

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// walk is an execution of the transactions, one after the other.
type walk struct {
	h      *History
	tables []*now
	own    map[*row]*version // what the transaction in work wrote
}

// now is what a table holds.
type now struct {
	held    []int32 // the versions by row
	indexes map[int]*index
}

func (h *History) walk() *walk {
	w := &walk{h: h, tables: make([]*now, len(h.tables)), own: map[*row]*version{}}
	for _, t := range h.tables {
		w.tables[t.number] = &now{held: make([]int32, len(t.rows)), indexes: map[int]*index{}}
	}
	return w
}

// holds is a row as the transaction in work finds it.
func (w *walk) holds(r *row) *version {
	if v, is := w.own[r]; is {
		return v
	}
	return w.held(r)
}

// held is a row as it is but for what the transaction in work wrote.
func (w *walk) held(r *row) *version { return r.of.versions[w.tables[r.of.number].held[r.number]] }

// matching are the rows that match a condition, for the transaction in work.
func (w *walk) matching(t *table, p *condition) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for r, v := range w.own {
			if !w.h.look(p, v) || r.of == t && v.matched(p) && !yield(r) {
				return
			}
		}
		held := w.tables[t.number].held
		give := func(i int32) bool {
			v := t.versions[held[i]]
			if !w.h.look(p, v) {
				return false
			}
			if !v.matched(p) {
				return true
			}
			if _, own := w.own[t.rows[i]]; own {
				return true
			}
			return yield(t.rows[i])
		}
		x := t.bounded(p, w.tables[t.number].indexes, func(column int) *index {
			x := t.index(column)
			for i, v := range held {
				x.move(int32(i), -1, x.list(t.versions[v], column))
			}
			return x
		})
		if x != nil {
			for i := range x.within(p.low, p.high) {
				if !give(i) {
					return
				}
			}
			return
		}
		for i := range held {
			if !give(int32(i)) {
				return
			}
		}
	}
}

// put makes a row what it is from now on.
func (w *walk) put(r *row, v *version) {
	n := w.tables[r.of.number]
	for column, x := range n.indexes {
		if x != nil {
			if from, to := x.list(w.held(r), column), x.list(v, column); from != to {
				x.move(r.number, from, to)
			}
		}
	}
	n.held[r.number] = v.num()
}

// writes are what the rows that a transaction writes become, each as often as it is written.
func writes(acts []act) iter.Seq2[*row, *version] {
	return func(yield func(*row, *version) bool) {
		for i := range acts {
			a := &acts[i]
			if a.isWrite && !yield(a.row, a.made) {
				return
			}
			st := a.statement
			if st == nil || st.op.Kind != record.PredicateWrite {
				continue
			}
			for n := range st.rows {
				if (st.follows == nil || !st.follows[n]) && !yield(st.row(n), st.makes(n)) {
					return
				}
			}
		}
	}
}

// supposeMax is how many parts of conditions are looked at to suppose what predicate writes hit.
const supposeMax = 1 << 26

// suppose runs the history in the order of its ends, and notes which rows its predicate writes would hit, and what
// they would make of them, where the records don't say it.
func (h *History) suppose() {
	unsaid := func(st *statement) bool {
		return st.op.Kind == record.PredicateWrite &&
			(!st.isKnown || st.set != nil && len(st.set.columns()) < len(st.of.columns))
	}
	needed := false
	for _, a := range h.statements() {
		needed = needed || unsaid(a.statement)
	}
	if !needed {
		h.supposes = true
		return
	}
	order := make([]int, len(h.Txns))
	for i := range order {
		order[i] = i
	}
	if !slices.ContainsFunc(h.Txns, func(t record.Transaction) bool { return !t.HasTimes }) {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(h.Txns[a].End, h.Txns[b].End) })
	}
	w := h.walk()
	for _, t := range order {
		clear(w.own) // what it wrote, or saw
		wrote := map[*row]bool{}
		for i := range h.acts[t] {
			a := &h.acts[t][i]
			st := a.statement
			switch {
			case st == nil:
				w.own[a.row] = a.made
				wrote[a.row] = wrote[a.row] || a.isWrite
			case st.op.Kind == record.PredicateWrite:
				if !st.isKnown {
					st.rows = nil
					for r := range w.matching(st.of, st.where) {
						st.rows = append(st.rows, r.number)
					}
					slices.Sort(st.rows)
				}
				if h.looked > supposeMax {
					return
				}
				st.made, st.seen = make([]*version, len(st.rows)), make([]int32, len(st.rows))
				for n := range st.rows {
					r := st.row(n)
					met := cmp.Or(w.holds(r), st.set) // what comes of no row comes of that, too
					st.seen[n], st.made[n] = met.num(), h.merged(st.of, met, st.set)
					w.own[r], wrote[r] = st.made[n], true
				}
			}
		}
		if h.Txns[t].Status == record.Aborted {
			continue
		}
		for r, is := range wrote {
			if is {
				w.put(r, w.own[r])
			}
		}
	}
	h.supposes = true
}
