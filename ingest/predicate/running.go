package predicate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Running is an order, as History.Order finds it, of a history that comes by and by. Each transaction is looked at when
// it comes, and forgotten once others are far behind it in the order; what stays is what the tables hold. It is for one
// goroutine.
//
//	Begin   Add, Add, …   Extend      Add, …   Extend   …   Holds
//
// The order is found as if all had been there at once, and what is found of it is looked at once more, statement by
// statement, by an execution that is behind (check). Where it has ended another one may go on from what it left (Rows).
type Running struct {
	h       *History
	s       *search
	came    []Came
	done    int // of the transactions, how many statements are understood
	checked *walk
	at      int       // how much of the order that has executed
	wrote   [][]int32 // by table and row: who wrote it there, with starts
	started []int32   // by transaction: how much of the order that had executed when what it found was compared, or none
	logged  logged
	broken  bool
}

// Came is what is known of a transaction besides what it did.
type Came struct {
	At      int64 // its place among the others; who is behind another may have run beside it
	Unasked bool  // nothing that it read
	Started bool  // it had found what it found when an order ended of which this one goes on: see Placed
}

// NewRunning begins an order that keeps rules, in which nothing was read of the keys that unasked has; nil: none. stop
// is asked often, as Read has it.
func NewRunning(rules Rules, unasked func(key string) bool, stop func() bool) *Running {
	r := &Running{logged: logged{}}
	r.h = newHistory(Unasked{Key: unasked, Txn: func(t int) bool { return r.came[t].Unasked }}, stop)
	r.h.comes = true
	r.s, r.checked = newSearch(r.h, rules), r.h.walk()
	return r
}

// Meet learns which tables have predicates, of a transaction that will be added: rows that are written before anybody
// asks for them are known then.
func (r *Running) Meet(t *record.Transaction) error {
	for i := range t.Ops {
		if err := r.h.findTable(t, i, nil); err != nil {
			return err
		}
	}
	return r.h.Unread
}

// Begin has tables hold what Rows gave. It comes before all others.
func (r *Running) Begin(rows *record.Transaction) error {
	if err := r.Meet(rows); err != nil {
		return err
	}
	var acts []act
	for i := range rows.Ops {
		if isPredicate(&rows.Ops[i]) {
			continue
		}
		if err := r.h.findRows(rows, i, &acts); err != nil {
			return err
		}
	}
	for _, w := range []*walk{r.s.w, r.checked} {
		w.grow()
		for row, v := range writes(acts) {
			w.put(row, v)
		}
	}
	for row, v := range writes(acts) {
		row.wrote(v)
	}
	return nil
}

// Rows are what the rows of its tables hold, once it has ended: a transaction that would write them, and names the
// tables.
func (r *Running) Rows() (out record.Transaction) {
	r.checked.grow()
	out = record.Transaction{ID: "rows", Status: record.Committed}
	for _, name := range slices.Sorted(maps.Keys(r.h.tables)) {
		out.Ops = append(out.Ops, record.Op{Kind: record.PredicateRead, Key: name, Where: "false",
			Value: record.ObjectOf(nil)})
		for _, row := range r.h.tables[name].rows {
			if v := r.checked.held(row); v != nil {
				out.Ops = append(out.Ops, record.Op{Kind: record.Write, Key: row.key, Value: v.value})
			}
		}
	}
	return out
}

// Placed tells of the transaction that was added as the t-th, once it has ended, whether it is in the order, or needs
// not be as it was aborted, and if not whether it has found what it found.
func (r *Running) Placed(t int) (is, hasStarted bool) {
	x := &r.s.txns[t]
	return x.isDone || r.h.Txns[t].Status == record.Aborted, x.at != none && r.started[t] == x.at
}

// Add adds a transaction behind the others. It is an error if only the whole can be judged: there is something else
// than rows of tables with predicates, or what predicate writes made is not said by the records. O(size of the record).
func (r *Running) Add(t *record.Transaction, came Came) error {
	if err := r.Meet(t); err != nil {
		return err
	}
	h := r.h
	if len(h.Txns) > 0 && t.HasTimes != h.Txns[0].HasTimes {
		return errors.New("only some transactions have times")
	}
	x := record.Transaction{Session: h.kept(t.Session), ID: h.kept(t.ID), Start: t.Start, End: t.End, HasTimes: t.HasTimes,
		Status: t.Status, LSN: t.LSN}
	var acts []act
	for i := range t.Ops {
		if err := h.findRows(t, i, &acts); err != nil {
			return fmt.Errorf("transaction %s, operation %d: %w", t.ID, i, err)
		}
	}
	for i := range acts {
		if st := acts[i].statement; st != nil {
			if !st.isKnown {
				return errors.New("it is not known which rows a predicate write hit")
			}
			st.op = &record.Op{Kind: st.op.Kind}
		}
	}
	h.Txns, h.acts, r.came = append(h.Txns, x), append(h.acts, acts), append(r.came, came)
	return nil
}

// Extend goes on with the order until the transaction that ended first of those that are not in it came at undecided or
// later: somebody may still come who ran beside it. Unless it ends, it stops some transactions before that; if it ends,
// none is added any more, and all of the order is looked at once more. false: no order goes on, as far as was looked, or
// what there is can't be judged; and so it stays.
func (r *Running) Extend(undecided int64, ends bool) bool {
	if r.broken || r.at > r.s.floor { // it has ended: what has executed can't be taken back
		return false
	}
	r.broken = true
	for _, t := range r.h.tables {
		if t.isSet && len(t.columns) > t.known {
			return false // what left none of the columns as it was may have
		}
	}
	if r.h.complete(r.done) != nil {
		return false
	}
	for ; r.done < len(r.h.Txns); r.done++ {
		if r.h.Txns[r.done].Status == record.Aborted {
			r.h.acts[r.done] = nil
		}
	}
	known := len(r.started)
	r.s.extend()
	r.started = append(r.started, slices.Repeat([]int32{none}, len(r.s.txns)-known)...)
	for t := known; t < len(r.started); t++ {
		if r.came[t].Started && r.s.rules.starts() {
			r.s.txns[t].ats, r.started[t] = []int32{0}, 0
			r.s.starts(int32(t), 0)
		}
	}
	isDecided := func(t int) bool { return r.came[t].At < undecided }
	if undecided == math.MaxInt64 { // nobody comes any more
		isDecided = nil
	}
	r.broken = !r.s.run(isDecided, ends)
	to := r.s.floor
	if ends {
		to = len(r.s.order)
	}
	r.broken = r.broken || !r.check(to)
	return !r.broken
}

// Logged tells whether the database's log says who wrote some row first, which Rows does not tell.
func (r *Running) Logged() bool { return len(r.logged) > 0 }

// Holds tells, once it has ended, whether all are in the order that committed, and it explains all that they found.
func (r *Running) Holds() bool { return !r.broken && r.s.undone == 0 }

// check executes the order up to a place, and tells whether it explains what was found. What is behind it is forgotten.
func (r *Running) check(to int) bool {
	if r.at == to {
		return true
	}
	s, w := r.s, r.checked
	w.grow()
	starting := make([][]verdict.TxnID, to-r.at)
	if s.rules.starts() {
		note := func(t int32) {
			if ats := s.txns[t].ats; len(ats) > 0 && ats[len(ats)-1] != r.started[t] {
				if at := int(ats[len(ats)-1]) - r.at; at >= 0 && at < len(starting) {
					starting[at] = append(starting[at], verdict.TxnID(t))
				}
			}
		}
		for _, e := range s.order[r.at:] {
			note(int32(e.Txn))
		}
		for _, t := range s.open {
			note(t)
		}
		for len(r.wrote) < len(r.h.tables) {
			r.wrote = append(r.wrote, nil)
		}
		for _, t := range r.h.tables {
			of := &r.wrote[t.number]
			*of = append(*of, slices.Repeat([]int32{none}, len(t.rows)-len(*of))...)
		}
	} else {
		for i, e := range s.order[r.at:to] {
			starting[i] = []verdict.TxnID{e.Txn}
		}
	}
	for ; r.at < to; r.at++ {
		for _, t := range starting[0] {
			if !s.txns[t].isUnasked && w.lack(r.h.acts[t], w.first) != nil {
				return false
			}
			r.started[t] = int32(r.at)
		}
		starting = starting[1:]
		t := s.order[r.at].Txn
		if r.started[t] != s.startOf(int32(t), int32(r.at)) {
			return false // it has started elsewhere since
		}
		for row, v := range writes(r.h.acts[t]) {
			if !r.logged.follows(row, &r.h.Txns[t]) {
				return false
			}
			if s.rules.excludes() {
				by := &r.wrote[row.of.number][row.number]
				if *by != none && *by >= r.started[t] && *by != int32(r.at) {
					return false
				}
				*by = int32(r.at)
			}
			w.put(row, v)
		}
		if r.at < s.floor {
			r.h.acts[t] = nil
		}
	}
	return true
}
