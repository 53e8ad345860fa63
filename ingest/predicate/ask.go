package predicate

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// OperationsMax is how many operations on registers there may be in the history without predicates.
const OperationsMax = 1 << 22

// ask adds that a statement read a row, the n-th of those that it returned or hit, or, with n < 0, one that was not
// there. false if that was asked before, is not to be asked, or if too much is asked already.
func (h *History) ask(st *statement, n int, r *row) bool {
	if st.asked == nil {
		st.asked = map[*row]bool{}
	}
	if st.asked[r] || h.size > h.Most || h.unasked.is(st.txn, r.key) {
		return false
	}
	if st.of.partly {
		return h.askReturned(st, n, r)
	}
	st.asked[r], r.isAsked = true, true
	var columns []string
	var seen *version
	if n >= 0 {
		seen = st.saw(n)
	}
	if seen != nil {
		if !r.mixed && (r.shape == nil || r.shape == seen.shape) && seen.matched(st.where) {
			st.reads = append(st.reads, read{row: r, value: seen.value}) // with all columns that it has: the row itself was read
			return true
		}
		columns = st.shown(seen)
	}
	had := len(r.registers)
	g := r.register(st, columns)
	h.size += 1 + r.writes*(len(r.registers)-had)
	value := record.Null
	switch {
	case seen != nil:
		value = g.show(seen)
	case n >= 0:
		value = boolean("true")
	}
	st.reads = append(st.reads, read{row: r, register: g, value: value})
	return true
}

// askReturned is ask in a table of which somebody unseen may have written rows: a row that was returned with all
// columns is a read of it. One that can't match whatever its row held is a read of a register that nobody writes.
func (h *History) askReturned(st *statement, n int, r *row) bool {
	if n < 0 || st.saw(n) == nil {
		return false
	}
	seen, can := st.saw(n), true
	if names := st.where.Predicate.columns(); !slices.ContainsFunc(slices.Collect(maps.Keys(names)),
		func(c string) bool { return !slices.Contains(*seen.shape, c) }) {
		match, err := st.where.match(seen.columns())
		can = match || err != nil
	}
	switch {
	case !can:
		g := &register{of: st.where, columns: *seen.shape,
			name: r.key + " (" + strings.Join(*seen.shape, ", ") + ") where " + st.where.canonical()}
		h.impossible = append(h.impossible, g.name)
		h.size++
		st.asked[r] = true
		st.reads = append(st.reads, read{row: r, register: g, value: g.show(seen)})
	case st.of.isWhole(seen) && !r.mixed && (r.shape == nil || r.shape == seen.shape):
		st.asked[r], r.isAsked = true, true
		st.reads = append(st.reads, read{row: r, value: seen.value})
	default:
		return false
	}
	return true
}

// Partly are the tables of which not all writes are known, or not what they held at first; sorted.
func (h *History) Partly() (names []string) {
	for name, t := range h.tables {
		if t.partly {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Impossible are registers, of rows that were returned, that nobody can have written: no row matches that was returned
// so. They are known when all is asked for that was returned, by Seed or AskAll.
func (h *History) Impossible() []string { return h.impossible }

// Again forgets what was asked for.
func (h *History) Again() {
	for _, r := range h.keys {
		if r != nil {
			r.isAsked, r.registers, r.byName = false, nil, nil
		}
	}
	for t := range h.acts {
		for i := range h.acts[t] {
			if a := &h.acts[t][i]; a.statement != nil {
				a.statement.reads, a.statement.asked = nil, nil
			} else {
				a.row.isAsked = a.row.isAsked || !a.isWrite
			}
		}
	}
	h.size, h.impossible = 0, nil
}

// Seed asks for what tells most of whom statements read from: one of the rows with each content that they returned, and
// rather one that others ask for. Of a table of which not all writes are known it asks for all.
func (h *History) Seed() {
	for t, a := range h.statements(0) {
		st, chosen := a.statement, map[int32]int{}
		if t%stopEvery == 0 && h.stop() {
			return
		}
		if h.Txns[t].Status == record.Aborted {
			continue
		}
		for n, v := range st.seen {
			if c, known := chosen[v]; !known || st.row(n).isAsked && !st.row(c).isAsked {
				chosen[v] = n
			}
		}
		for n, v := range st.seen {
			if chosen[v] == n || st.of.partly {
				h.ask(st, n, st.row(n))
			}
		}
	}
}

// AskAll asks for all that the statements say, or for some of it if that would be more operations than most: then there
// is an error.
func (h *History) AskAll(most int) error {
	defer func(most int) { h.Most = most }(h.Most)
	h.Most = min(h.Most, most)
	for _, r := range h.keys {
		if r != nil {
			r.isAsked = true
		}
	}
	rows := 0
	for _, a := range h.statements(0) {
		st := a.statement
		var missing []*row
		if !st.of.partly {
			missing = h.mayMatch(st.of, st.where)
		}
		if len(st.rows) > 0 {
			hit := make(map[int32]bool, len(st.rows))
			for _, r := range st.rows {
				hit[r] = true
			}
			missing = slices.DeleteFunc(slices.Clone(missing), func(r *row) bool { return hit[r.number] })
		}
		if rows += 1 + len(missing) + len(st.rows); rows > stopRows {
			if rows = 0; h.stop() {
				return nil
			}
		}
		for _, r := range missing {
			h.ask(st, -1, r)
		}
		for n := range st.rows {
			h.ask(st, n, st.row(n))
		}
		if err := h.TooMuch(); err != nil {
			return err
		}
	}
	return nil
}

// TooMuch is an error if more would have to be asked for than Most.
func (h *History) TooMuch() error {
	if h.size > h.Most {
		return fmt.Errorf("the rows and conditions come to more than %d operations", h.Most)
	}
	return nil
}

// Size is how many operations on registers Transactions have. Those on rows are no more than the records name. Once it
// is more than Most nothing more is asked for.
func (h *History) Size() int { return h.size }

// Explain executes the transactions in the order that proves a level, and asks for what it does not explain of the
// rows that statements returned and hit and of those that they did not; at si and strong-si also for rows that two
// write of which none starts when the other has committed, and for those that are not written in the order of the
// database's log. It returns how much that is. All that is asked for already is explained by the order.
func (h *History) Explain(level verdict.Level, order []verdict.Event) int {
	rules := Rules{Level: level}
	w := h.walk()
	added := 0
	started, written, log := make([]int, len(h.Txns)), map[*row]int{}, logged{}
	for at, s := range order {
		if h.size > h.Most || at%stopEvery == stopEvery-1 && h.stop() {
			return added
		}
		acts := h.acts[s.Txn]
		if !rules.starts() || !s.Commit {
			started[s.Txn] = at
			clear(w.own)
			for i := range acts {
				if st := acts[i].statement; st != nil && !st.of.partly {
					added += w.explain(st)
				}
				if i+1 == len(acts) {
					break
				}
				for r, v := range writes(acts[i : i+1]) {
					w.own[r] = v
				}
			}
		}
		if !s.Commit {
			continue
		}
		for r, v := range writes(acts) {
			overlaps := rules.excludes() && written[r] > started[s.Txn] && written[r] != at
			if !log.follows(r, &h.Txns[s.Txn]) || overlaps {
				if !r.isAsked {
					added++
				}
				r.isAsked = true
			}
			if rules.excludes() {
				written[r] = at
			}
			w.put(r, v)
		}
	}
	return added
}

// logged is, by row, where in the database's log those committed that wrote it so far, at most.
type logged map[*row]int64

// follows tells whether a row is written behind all whom the log has before.
func (l logged) follows(r *row, t *record.Transaction) bool {
	if t.LSN == 0 || t.Status != record.Committed {
		return true
	}
	was := l[r]
	l[r] = max(was, t.LSN)
	return was <= t.LSN
}

// stopEvery is how many transactions are looked at between two looks at stop, stopRows how many rows of statements.
const stopEvery, stopRows = 1 << 8, 1 << 10

// explain asks for what a statement would not find now as it found it.
func (w *walk) explain(st *statement) (added int) {
	var missing []*row
	for n, r := range w.lacks(st, 0) {
		if n < 0 {
			missing = append(missing, r)
		} else if w.h.ask(st, n, r) {
			added++
		}
	}
	slices.SortFunc(missing, func(a, b *row) int { return int(a.number - b.number) })
	for _, r := range missing {
		if w.h.ask(st, -1, r) {
			added++
		}
	}
	return added
}

// lacks are the rows that a statement would not find now as it found them, but for those that are left out: of those
// that it returned or hit, from one on and around, each with its place, then with -1 others that match.
func (w *walk) lacks(st *statement, from int) iter.Seq2[int, *row] {
	return func(yield func(int, *row) bool) {
		found, t, of := 0, w.tables[st.of.number], st.of
		last, matched, first := int32(0), false, from%max(1, len(st.rows))
		t.mark++
		for n := range st.rows {
			if n += first; n >= len(st.rows) {
				n -= len(st.rows)
			}
			r := st.rows[n]
			t.named[r] = t.mark
			holds := t.held[r]
			if len(w.own) > 0 {
				holds = w.holds(of.rows[r]).num()
			}
			if holds != last {
				last, matched = holds, of.versions[holds].matched(st.where)
			}
			if matched && (st.seen == nil || st.seen[n] == holds || st.sees(n, of.versions[holds])) {
				found += int(of.signs[r] & 1)
			} else if of.signs[r] != 0 && !yield(n, of.rows[r]) {
				return
			}
		}
		if mark := t.mark; w.count(st.of, st.where) != found {
			for r := range w.matching(st.of, st.where) {
				if t.named[r.number] != mark && r.sign() != 0 && !yield(-1, r) {
					return
				}
			}
		}
	}
}

// sees tells whether a version that matches is what the statement returned of its n-th row.
func (st *statement) sees(n int, v *version) bool {
	seen, r := st.saw(n), st.row(n)
	if seen == nil || v == seen || !r.mixed && r.shape == seen.shape {
		return seen == nil || v == seen
	}
	g := register{of: st.where, columns: st.shown(seen)}
	return g.show(v) == g.show(seen)
}

// Transactions are the transactions with reads and writes of rows and registers in place of their predicate
// operations: as much of these as was asked for. With less than all that the statements say more is allowed; what is
// not allowed then is not allowed by the statements. Each is good until the next, as are its operations.
//
// With few, a statement has one read, that of the first row that it found, and reads of a register that nobody writes in
// place of the others: it reads its rows at once, and not one after the other as the registers stand here. Of the levels
// rc alone depends on the order of reads; what of the registers breaks it is certain if it does so with one of each.
func (h *History) Transactions(few bool) iter.Seq[*record.Transaction] {
	return func(yield func(*record.Transaction) bool) {
		var ops []record.Op
		for i := range h.Txns {
			t := h.Txns[i]
			if len(h.acts[i]) > 0 || h.unasked.Any() || h.Unread != nil {
				ops = h.operations(ops[:0], i, few)
				t.Ops = ops
			}
			if !yield(&t) {
				return
			}
		}
	}
}

// operations are those of a transaction without predicates.
func (h *History) operations(out []record.Op, t int, few bool) []record.Op {
	acts := h.acts[t]
	for i := range h.Txns[t].Ops {
		op := &h.Txns[t].Ops[i]
		isRead := op.Kind == record.Read && !h.unasked.is(t, op.Key)
		if len(acts) == 0 || int(acts[0].op) != i {
			if isRead || op.Kind != record.Read && !isPredicate(op) {
				out = append(out, *op)
			}
			continue
		}
		a := &acts[0]
		switch {
		case a.statement != nil:
			out = a.statement.operations(out, few)
		case isRead:
			out = append(out, *op)
		}
		for r, v := range writes(acts[:1]) {
			out = r.write(out, v)
		}
		acts = acts[1:]
	}
	return out
}

// operations are a statement's reads: first of rows that it did not find, as these are often from older versions.
func (st *statement) operations(out []record.Op, few bool) []record.Op {
	slices.SortFunc(st.reads, func(a, b read) int {
		switch {
		case a.value.IsNull() && b.value.IsNull():
			return int(a.row.number - b.row.number)
		case a.value.IsNull():
			return -1
		case b.value.IsNull():
			return 1
		}
		return strings.Compare(a.row.key, b.row.key)
	})
	stays := max(0, slices.IndexFunc(st.reads, func(r read) bool { return !r.value.IsNull() }))
	for i, r := range st.reads {
		op := record.Op{Kind: record.Read, Key: r.row.key, Value: r.value}
		if r.register != nil {
			op.Key = r.register.name
		}
		if few && i != stays {
			op = record.Op{Kind: record.Read, Key: st.op.Key + ": where " + st.op.Where}
		}
		out = append(out, op)
	}
	return out
}

// write adds what writing a row means for the row and its registers, if it is asked for.
func (r *row) write(out []record.Op, v *version) []record.Op {
	if !r.isAsked {
		return out
	}
	op := record.Op{Kind: record.Write, Key: r.key}
	if v != nil {
		op.Value = v.value
	}
	out = append(out, op)
	for _, g := range r.registers {
		out = append(out, record.Op{Kind: record.Write, Key: g.name, Value: g.shows(v)})
	}
	return out
}

// Found is how many rows a statement of a transaction, by its ID, returned, or hit, that has a register's condition and
// did not find its row; false: there is none. O(transactions).
func (h *History) Found(id, register string) (rows int, is bool) {
	key, where, _ := Register(register)
	t, r := slices.IndexFunc(h.Txns, func(t record.Transaction) bool { return t.ID == id }), h.keys[key]
	if t < 0 || r == nil {
		return 0, false
	}
	for i := range h.acts[t] {
		if st := h.acts[t][i].statement; st != nil && st.of == r.of && st.where.canonical() == where &&
			!slices.Contains(st.rows, r.number) {
			return len(st.rows), true
		}
	}
	return 0, false
}

// Several tells whether some statement reads several rows.
func (h *History) Several() bool {
	for _, a := range h.statements(0) {
		if len(a.statement.reads) > 1 {
			return true
		}
	}
	return false
}
