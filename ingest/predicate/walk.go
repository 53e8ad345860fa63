package predicate

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// walk is an execution of the transactions, one after the other.
type walk struct {
	h      *History
	tables []*now
	own    map[*row]*version // what the transaction in work wrote
}

// now is what a table holds. Rows that hold the same are together, so that a condition is looked at once for all of
// them.
type now struct {
	of         *table
	held       []int32 // by row: its version
	next, last []int32 // by row: others that hold the same
	same       []same  // by version
	live       []int32 // the versions that rows hold
	named      []int32 // by row: a mark, where a statement names it
	mark       int32
	indexes    map[int]*index
}

// same are the rows that hold a version.
type same struct {
	sum   uint64 // of their signs
	sign  uint64 // of the version
	count int32
	asked int32 // how many of them are not left out
	first int32
	live  int32 // where the version stands in live
}

func (h *History) walk() *walk {
	w := &walk{h: h, own: map[*row]*version{}}
	w.grow()
	return w
}

// grow has room for the rows that there are.
func (w *walk) grow() {
	w.tables = append(w.tables, make([]*now, len(w.h.tables)-len(w.tables))...)
	for _, t := range w.h.tables {
		n := w.tables[t.number]
		if n == nil {
			n = &now{of: t, same: make([]same, len(t.versions)), indexes: map[int]*index{}}
			w.tables[t.number] = n
		}
		more := make([]int32, len(t.rows)-len(n.held))
		n.held, n.next, n.last = append(n.held, more...), append(n.next, more...), append(n.last, more...)
		n.named = append(n.named, more...)
	}
}

// holds is a row as the transaction in work finds it.
func (w *walk) holds(r *row) *version {
	if len(w.own) > 0 {
		if v, is := w.own[r]; is {
			return v
		}
	}
	return w.held(r)
}

// held is a row as it is but for what the transaction in work wrote.
func (w *walk) held(r *row) *version { return r.of.versions[w.tables[r.of.number].held[r.number]] }

// sum is what the signs of the rows that match a statement's condition add up to; see statement.
func (w *walk) sum(st *statement) (sum uint64) {
	isRead := st.op.Kind == record.PredicateRead
	for s := range w.alike(st.of, st.where) {
		if isRead {
			sum += s.sum * s.sign
		} else {
			sum += s.sum
		}
	}
	add := func(r *row, v *version, times uint64) {
		if v.matched(st.where) {
			if isRead {
				times *= v.sign()
			}
			sum += r.sign() * times
		}
	}
	for r, v := range w.own {
		if r.of == st.of {
			add(r, w.held(r), math.MaxUint64) // minus one
			add(r, v, 1)
		}
	}
	return sum
}

// alike are the versions that match a condition and that rows hold, but for what the transaction in work wrote.
func (w *walk) alike(t *table, p *condition) iter.Seq[*same] {
	return func(yield func(*same) bool) {
		n := w.tables[t.number]
		give := func(version int32) bool {
			v := t.versions[version]
			return w.h.look(p, v) && (!v.matched(p) || yield(&n.same[version]))
		}
		if !p.isBounded {
			for _, version := range n.live {
				if !give(version) {
					return
				}
			}
			return
		}
		x := n.indexes[p.column]
		if x == nil || x.isOld(len(t.versions)) {
			x = t.index(p.column)
			for _, version := range n.live {
				x.add(version)
			}
			n.indexes[p.column] = x
		}
		for version := range x.within(p.low, p.high) {
			if !give(version) {
				return
			}
		}
	}
}

// matching are the rows that match a condition, for the transaction in work.
func (w *walk) matching(t *table, p *condition) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for r, v := range w.own {
			if !w.h.look(p, v) || r.of == t && v.matched(p) && !yield(r) {
				return
			}
		}
		n := w.tables[t.number]
		for s := range w.alike(t, p) {
			for i := s.first; i != none; i = n.next[i] {
				if _, own := w.own[t.rows[i]]; !own && !yield(t.rows[i]) {
					return
				}
			}
		}
	}
}

// count is how many rows match a condition, for the transaction in work, but for those that are left out.
func (w *walk) count(t *table, p *condition) (count int) {
	for s := range w.alike(t, p) {
		count += int(s.asked)
	}
	for r, v := range w.own {
		if r.of == t && r.sign() != 0 {
			if w.held(r).matched(p) {
				count--
			}
			if v.matched(p) {
				count++
			}
		}
	}
	return count
}

// lack is a row that is not what operations found, if there is one; of is one that is not what a statement did.
func (w *walk) lack(acts []act, of func(st *statement) *row) (lacks *row) {
	clear(w.own)
	for i := range acts {
		switch a := &acts[i]; {
		case a.statement != nil:
			lacks = of(a.statement)
		case !a.isWrite && a.row.sign() != 0 && w.holds(a.row) != a.made:
			lacks = a.row
		}
		if lacks != nil {
			break
		}
		if i+1 < len(acts) {
			for r, v := range writes(acts[i : i+1]) {
				w.own[r] = v
			}
		}
	}
	return lacks
}

// first is the first row that is not what a statement found.
func (w *walk) first(st *statement) *row {
	for _, r := range w.lacks(st, 0) {
		return r
	}
	return nil
}

// put makes a row what it is from now on.
func (w *walk) put(r *row, v *version) { w.tables[r.of.number].put(r.number, v.num()) }

// put makes a row hold a version.
func (n *now) put(row, version int32) {
	old, sign := n.held[row], n.of.signs[row]
	if old == version {
		return
	}
	if n.held[row] = version; old != 0 {
		s, next, last := &n.same[old], n.next[row], n.last[row]
		if last == none {
			s.first = next
		} else {
			n.next[last] = next
		}
		if next != none {
			n.last[next] = last
		}
		s.sum -= sign
		s.asked -= int32(sign & 1)
		if s.count--; s.count == 0 {
			moved := n.live[len(n.live)-1]
			n.live[s.live], n.same[moved].live = moved, s.live
			n.live = n.live[:len(n.live)-1]
			for _, x := range n.indexes {
				x.remove(old)
			}
		}
	}
	if version == 0 {
		return
	}
	for int(version) >= len(n.same) {
		n.same = append(n.same, same{})
	}
	s := &n.same[version]
	if s.count++; s.count == 1 {
		s.first, s.live, s.sign = none, int32(len(n.live)), n.of.versions[version].sign()
		n.live = append(n.live, version)
		for _, x := range n.indexes {
			x.add(version)
		}
	}
	s.sum += sign
	s.asked += int32(sign & 1)
	if n.next[row], n.last[row] = s.first, none; s.first != none {
		n.last[s.first] = row
	}
	s.first = row
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
			(!st.isKnown || st.set != nil && len(*st.set.shape) < len(st.of.columns))
	}
	needed := false
	for _, a := range h.statements(0) {
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
