package incremental

import (
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// intake is what the engine keeps of the records: names as numbers, who wrote
// which value, and per committed transaction its external reads and final
// writes. What one transaction breaks by itself (INT, own writes) is found
// here.
type intake struct {
	keyOf map[string]version.Key
	keys  []string
	values
	rare     map[cellID]otherWriters
	waiters  []waiter
	freed    uint32 // list of waiters to use again
	sessions map[string]uint32

	txns    paged.Vec[txn] // committed, in the order of Step: "index"
	indexOf []uint32       // by TxnID: index, or none
	cellIDs []cellID       // slab of reads and writes
	key     []keyState     // by key: what the transaction at hand did to it
	stamp   uint32         // the transaction at hand
	touched []version.Key  // keys it touched, in order of first touch
	inters  []cellID       // what it wrote and overwrote itself
	perKey  []keyProps     // by key
	skipped int            // operations not checked
	total   int            // operations of committed transactions
	unknown int            // transactions of unknown outcome
	opaque  bool           // a predicate write may have written anything
	timed   int            // committed transactions with trusted times
	untimed int            // and those without
	last    []sessionClock // by session
}

const none = version.None

// cellID numbers the pairs of key and value that occur.
type cellID = uint32

// cell is a value of a key: who wrote it, and who waits for it.
type cell struct {
	num     int64 // the value, if it is an integer
	key     version.Key
	final   uint32     // index of the committed transaction whose last write it is, or none
	version version.ID // once a reader or writer has been admitted
	waiting uint32     // the latest reader that waits for the writer, in intake.waiters
	about   cellFlags
}

// cellFlags are what is to be known of a value itself, and of its writers.
type cellFlags uint8

const (
	isNull cellFlags = 1 << iota
	isZero
	duplicate // several transactions' last write: not decided by its value
	hasOthers // intake.otherWriters has more
)

// otherWriters are the writers of a value whose write is not their transaction's
// last to the key, or whose transaction did not commit, or may not have.
type otherWriters struct {
	inter   uint32 // index of the first committed transaction that overwrote it itself, or none
	inter2  uint32 // and of another one
	aborted verdict.TxnID
	unknown verdict.TxnID // of unknown outcome
}

// waiter is a read whose writer is awaited, and the one before it.
type waiter struct {
	index uint32
	next  uint32
}

// sessionClock is how far a session has come.
type sessionClock struct {
	start, end int64 // the greatest so far of transactions with times
	timed      bool  // there was one
	order      int64 // the greatest txn.order
}

// keyProps is what is known of a key as a whole.
type keyProps struct {
	appended bool
	written  bool   // by a plain write: the key is no list
	initial  cellID // the value it held at first, once known by a read
}

// keyState is what the transaction at hand did to a key.
type keyState struct {
	stamp uint32
	read  cellID // what its first read found before any own write, or none
	wrote cellID // its last write, or none
	blind bool   // it holds what is not checked: appended to, or written by a predicate
}

// txn is a committed transaction.
type txn struct {
	id         verdict.TxnID
	session    uint32
	start, end int64 // nanoseconds, if timed
	// order is when it ended, or, without times, when it arrived, and not before
	// its predecessor in the session.
	order  int64
	timed  bool
	reads  span         // external reads, by cell
	writes span         // final writes, by cell
	slot   version.Slot // once admitted
}

type span struct{ from, to uint32 }

func newIntake() *intake {
	return &intake{freed: none, rare: map[cellID]otherWriters{}, keyOf: map[string]version.Key{},
		sessions: map[string]uint32{}}
}

func (in *intake) keyNumber(name string) version.Key {
	if k, ok := in.keyOf[name]; ok {
		return k
	}
	k := version.Key(len(in.keys))
	in.keyOf[name] = k
	in.keys = append(in.keys, name)
	in.key = append(in.key, keyState{})
	in.perKey = append(in.perKey, keyProps{initial: none})
	return k
}

// interOf is a transaction other than index that overwrote c itself, or none.
func (o otherWriters) interOf(index uint32) uint32 {
	if o.inter == index {
		return o.inter2
	}
	return o.inter
}

// others are the writers of c that do not count as its writer.
func (in *intake) others(c cellID) otherWriters {
	if in.cells.At(c).about&hasOthers == 0 {
		return otherWriters{none, none, verdict.NoTxn, verdict.NoTxn}
	}
	return in.rare[c]
}

func (in *intake) setOthers(c cellID, o otherWriters) {
	in.cells.At(c).about |= hasOthers
	in.rare[c] = o
}

// wait notes that a transaction's read of c waits for the writer.
func (in *intake) wait(c cellID, index uint32) {
	cl := in.cells.At(c)
	w := waiter{index, cl.waiting}
	if in.freed == none {
		in.waiters = append(in.waiters, w)
		cl.waiting = uint32(len(in.waiters) - 1)
		return
	}
	at := in.freed
	in.freed = in.waiters[at].next
	in.waiters[at] = w
	cl.waiting = at
}

// unwait takes a read off the list again; false if it does not wait any more.
func (in *intake) unwait(c cellID, index uint32) bool {
	for at := &in.cells.At(c).waiting; *at != none; at = &in.waiters[*at].next {
		if w := *at; in.waiters[w].index == index {
			*at = in.waiters[w].next
			in.waiters[w].next = in.freed
			in.freed = w
			return true
		}
	}
	return false
}

// release empties c's list of waiting reads and calls f with them, oldest first.
func (in *intake) release(c cellID, f func(index uint32)) {
	cl := in.cells.At(c)
	var all []uint32
	for at := cl.waiting; at != none; {
		w := in.waiters[at]
		all = append(all, w.index)
		in.waiters[at].next = in.freed
		in.freed = at
		at = w.next
	}
	cl.waiting = none
	for i := len(all) - 1; i >= 0; i-- {
		f(all[i])
	}
}

func (in *intake) slab(s span) []cellID { return in.cellIDs[s.from:s.to] }

// state returns what the transaction at hand did to k so far.
func (in *intake) state(k version.Key) *keyState {
	st := &in.key[k]
	if st.stamp != in.stamp {
		*st = keyState{stamp: in.stamp, read: none, wrote: none}
		in.touched = append(in.touched, k)
	}
	return st
}

// take reads a record and returns the index of its transaction if it is
// committed, else none, and what it breaks by itself.
func (in *intake) take(t *record.Transaction, id verdict.TxnID, arrival int64, report func(verdict.Violation)) uint32 {
	in.stamp++
	in.touched = in.touched[:0]
	in.inters = in.inters[:0]
	session, ok := in.sessions[t.Session]
	if !ok {
		session = uint32(len(in.sessions))
		in.sessions[t.Session] = session
		in.last = append(in.last, sessionClock{order: math.MinInt64})
	}
	if t.Status != record.Committed {
		in.takeOther(t, id)
		in.indexOf = append(in.indexOf, none)
		return none
	}
	in.total += len(t.Ops)
	predicate := false // a predicate write came before in this transaction
	for i := range t.Ops {
		op := &t.Ops[i]
		switch op.Kind {
		case record.PredicateRead:
			in.skipped++
			continue
		case record.PredicateWrite:
			in.skipped++
			in.opaque, predicate = true, true
			for _, k := range in.touched {
				in.key[k].blind = true
			}
			continue
		}
		k := in.keyNumber(op.Key)
		st := in.state(k)
		st.blind = st.blind || predicate
		switch op.Kind {
		case record.Append:
			in.skipped++
			st.blind = true
			in.perKey[k].appended = true
		case record.Write:
			c := in.cellOf(k, op.Value)
			if st.wrote != none && st.wrote != c {
				in.inters = append(in.inters, st.wrote)
			}
			st.wrote = c
			in.perKey[k].written = true
			if !predicate {
				st.blind = false
			}
		case record.Read:
			in.takeRead(op, i, k, st, id, report)
		}
	}
	return in.commit(t, id, session, arrival)
}

func (in *intake) takeRead(op *record.Op, i int, k version.Key, st *keyState, id verdict.TxnID, report func(verdict.Violation)) {
	if st.blind {
		in.skipped++
		return
	}
	c := in.cellOf(k, op.Value)
	var kind verdict.Kind
	switch {
	case st.wrote == c:
		return
	case st.wrote != none && slices.Contains(in.inters, c):
		kind = verdict.NotMyLastWrite
	case st.wrote != none:
		kind = verdict.NotMyOwnWrite
	case st.read == none:
		st.read = c
		return
	case st.read == c:
		return
	default:
		kind = verdict.NonRepeatableRead
	}
	report(verdict.Violation{Kind: kind, Txns: []verdict.TxnID{id}, Key: op.Key, Read: i, Evidence: []verdict.TxnID{id},
		Exhibits: []verdict.Exhibit{{Txn: id, All: []string{op.Key}}}})
}

// takeOther notes what a transaction wrote that did not commit, or may not have.
func (in *intake) takeOther(t *record.Transaction, id verdict.TxnID) {
	if t.Status == record.Unknown {
		in.unknown++
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case op.Kind == record.PredicateWrite && t.Status == record.Unknown:
			in.opaque = true
		case op.Kind == record.Append: // a list, whose empty state may read as null
			in.perKey[in.keyNumber(op.Key)].appended = true
		case op.Kind == record.Write:
			c := in.cellOf(in.keyNumber(op.Key), op.Value)
			o := in.others(c)
			if t.Status == record.Aborted && o.aborted == verdict.NoTxn {
				o.aborted = id
			} else if t.Status == record.Unknown {
				if o.unknown != verdict.NoTxn && o.unknown != id {
					in.cells.At(c).about |= duplicate
				}
				o.unknown = id
			}
			in.setOthers(c, o)
		}
	}
}

// commit stores the transaction whose operations have been taken.
func (in *intake) commit(t *record.Transaction, id verdict.TxnID, session uint32, arrival int64) uint32 {
	index := uint32(in.txns.Len())
	in.indexOf = append(in.indexOf, index)
	x := txn{id: id, session: session, start: t.Start, end: t.End, order: arrival, timed: t.HasTimes, slot: none}
	last := &in.last[session]
	if x.timed {
		// A clock that steps back within a session orders nothing.
		if last.timed && (x.start < last.start || x.end < last.end) {
			x.timed = false
		} else {
			last.timed, last.start, last.end = true, x.start, x.end
			x.order = x.end
		}
	}
	if x.timed {
		in.timed++
	} else {
		in.untimed++
	}
	x.order = max(x.order, last.order)
	last.order = x.order
	x.reads.from = uint32(len(in.cellIDs))
	for _, k := range in.touched {
		if st := &in.key[k]; st.read != none {
			in.cellIDs = append(in.cellIDs, st.read)
		}
	}
	x.reads.to = uint32(len(in.cellIDs))
	x.writes.from = x.reads.to
	for _, k := range in.touched {
		st := &in.key[k]
		if st.wrote == none {
			continue
		}
		c := in.cells.At(st.wrote)
		if c.final != none {
			c.about |= duplicate
		}
		if c.final == none {
			c.final = index
		}
		in.cellIDs = append(in.cellIDs, st.wrote)
	}
	x.writes.to = uint32(len(in.cellIDs))
	for _, c := range in.inters {
		if in.key[in.cells.At(c).key].wrote == c {
			continue
		}
		o := in.others(c)
		switch {
		case o.inter == none || o.inter == index:
			o.inter = index
		case o.inter2 == none:
			o.inter2 = index
		}
		in.setOthers(c, o)
	}
	in.txns.Push(x)
	return index
}
