package incremental

import (
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// intake reads one transaction after the other into a history.
type intake struct {
	h     *history
	base  bool          // the transaction at hand is one of Engine.Base
	known []version.Key // of its operations' keys, or nil: what Engine.Number gave

	session   sessionID
	touched   []keyState          // what it did to keys, in order of first touch
	touchedAt map[version.Key]int // of many: where in touched
	inters    []cellID            // what it wrote and overwrote itself
	rereads   []cellID            // what it read of others after it had read another value of the key
	apps      []ownAppend         // what it appended
	sequence  []cellID            // what it read from others, in program order
	places    []int               // of sequence: which operations
	repeats   bool                // sequence is not just the first read of each key, in the order of touching them
	found     []verdict.Violation // what it breaks by itself
}

func newIntake(h *history) *intake { return &intake{h: h, touchedAt: map[version.Key]int{}} }

// ownAppend is an element that the transaction at hand appended.
type ownAppend struct {
	key     version.Key
	cell    cellID // of the element
	element record.Value
}

// keyState is what the transaction at hand did to a key.
type keyState struct {
	key   version.Key
	read  cellID // what its first read found before any own write, or none
	wrote cellID // its last write, or none
	apps  uint32 // how many elements it appended
	blind bool   // it holds what is not checked: written by a predicate, or a list mixed with plain writes
}

// keyOf is the number of the i-th operation's key.
func (in *intake) keyOf(i int, name string) version.Key {
	if in.known != nil {
		return in.known[i]
	}
	return in.h.keyNumber(name)
}

// fewKeys is how many keys of a transaction are looked through one by one.
const fewKeys = 24

// find returns what the transaction at hand did to k so far, or nil.
func (in *intake) find(k version.Key) *keyState {
	if len(in.touched) <= fewKeys {
		for i := range in.touched {
			if in.touched[i].key == k {
				return &in.touched[i]
			}
		}
		return nil
	}
	if len(in.touchedAt) == 0 {
		for i := range in.touched {
			in.touchedAt[in.touched[i].key] = i
		}
	}
	if i, ok := in.touchedAt[k]; ok {
		return &in.touched[i]
	}
	return nil
}

// state is find, for a key that is touched now. The pointer is good until the
// next call.
func (in *intake) state(k version.Key) *keyState {
	if st := in.find(k); st != nil {
		return st
	}
	in.h.touch(k)
	in.touched = append(in.touched, keyState{key: k, read: none, wrote: none})
	if len(in.touchedAt) > 0 {
		in.touchedAt[k] = len(in.touched) - 1
	}
	return &in.touched[len(in.touched)-1]
}

// read reads a record, and returns what it breaks by itself if it is known to have committed. It is to be followed by
// commit.
func (in *intake) read(t *record.Transaction, id verdict.TxnID, arrival int64) []verdict.Violation {
	in.found, in.touched = in.found[:0], in.touched[:0]
	clear(in.touchedAt)
	in.inters, in.rereads = in.inters[:0], in.rereads[:0]
	in.apps = in.apps[:0]
	in.sequence, in.places, in.repeats = in.sequence[:0], in.places[:0], false
	var ok bool
	if in.session, ok = in.h.sessions[t.Session]; !ok {
		in.session = sessionID(len(in.h.sessions))
		in.h.sessions[strings.Clone(t.Session)] = in.session
		in.h.last = append(in.h.last, newClock)
	}
	if t.HasSeq {
		switch last := &in.h.last[in.session]; {
		case t.Seq >= last.seq:
			last.seq = t.Seq
		case !in.base: // a base has no place in its session anyway
			in.session = in.h.apart(t.Session)
		}
	}
	in.h.several = in.h.several || severalObjects(t.Ops)
	if t.Status == record.Aborted {
		in.addAborted(t, id, arrival)
		return nil
	}
	in.h.total += len(t.Ops)
	predicate := false // a predicate write came before in this transaction
	for i := range t.Ops {
		op := &t.Ops[i]
		switch op.Kind {
		case record.PredicateRead:
			in.h.skipped++
			in.h.predicates = true
			continue
		case record.PredicateWrite:
			in.h.skipped++
			in.h.predicates, in.h.opaque, predicate = true, true, true
			for i := range in.touched {
				in.touched[i].blind = true
			}
			continue
		}
		k := in.keyOf(i, op.Key)
		st := in.state(k)
		st.blind = st.blind || predicate
		switch op.Kind {
		case record.Append:
			in.addAppend(k, st, op.Value, id)
		case record.Write:
			c := in.h.cellOf(k, op.Value)
			p := in.h.writtenTo(k, id, op.Value)
			if op.Value.Kind == record.KindInt {
				p.recent, p.recentNum = c, op.Value.Num
			}
			if p.appended { // who writes back what was appended has it there again
				for _, v := range op.Value.Elements() {
					in.h.sawAgain(k, in.h.cells.At(in.h.elementOf(k, v)).final != none)
				}
			}
			if st.wrote != none && st.wrote != c {
				in.inters = append(in.inters, st.wrote)
			}
			in.h.again = in.h.again || st.wrote == c
			st.wrote = c
			if !in.hadRead(st, c) {
				in.h.cells.At(c).about |= isMade
			}
			if !predicate {
				st.blind = st.apps > 0
			}
		case record.Read:
			in.addRead(t, i, k, st, id)
		}
	}
	if t.Status == record.Committed {
		return in.found
	}
	for _, v := range in.found {
		f := fault{v: v}
		for i := range t.Ops {
			if op := &t.Ops[i]; op.Kind == record.Read && op.Key == v.Key {
				f.reads = append(f.reads, in.h.cellOf(in.keyOf(i, op.Key), op.Value))
			}
		}
		in.h.blame(ordinal(in.h.txns.Len()), f)
	}
	return nil
}

// hadRead tells whether the transaction at hand read c of others, before it wrote the key.
func (in *intake) hadRead(st *keyState, c cellID) bool {
	return st.read == c || slices.Contains(in.rereads, c)
}

func (in *intake) addAppend(k version.Key, st *keyState, element record.Value, id verdict.TxnID) {
	in.h.appendedTo(k, id)
	c := in.h.elementOf(k, element)
	in.apps = append(in.apps, ownAppend{k, c, element})
	st.apps++
	if st.wrote != none {
		st.blind = true
	}
}

// addRead takes the i-th of the transaction's operations, which is a read.
func (in *intake) addRead(t *record.Transaction, i int, k version.Key, st *keyState, id verdict.TxnID) {
	op := &t.Ops[i]
	if st.blind {
		in.h.skipped++
		return
	}
	var kind verdict.Kind
	value := op.Value
	if st.apps > 0 {
		var ok bool
		if value, ok = in.withoutOwn(k, value); !ok {
			in.found = append(in.found, in.internal(verdict.NotMyOwnWrite, op, i, id))
			return
		}
	}
	c := in.h.readCellOf(k, value)
	if value.Kind == record.KindList {
		in.h.noteList(c, value)
		if st.wrote == none && in.h.isNothing(c) {
			p := in.h.perKey.At(k)
			p.emptied, p.surely = true, p.surely || t.Status == record.Committed
		}
	}
	if in.h.ordered && st.wrote == none {
		in.sequence, in.places = append(in.sequence, c), append(in.places, i)
		in.repeats = in.repeats || st.read != none || st.apps > 0
	}
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
	case in.sameList(k, st, c):
		if in.h.ordered {
			in.sequence[len(in.sequence)-1] = st.read
		}
		return
	default:
		kind = verdict.NonRepeatableRead
		in.rereads = append(in.rereads, c)
	}
	v := in.internal(kind, op, i, id)
	found := st.read
	if st.wrote != none {
		found = st.wrote
	}
	nothing := in.h.isNothing(c) && in.h.isNothing(found)
	appends := !nothing && st.wrote == none && slices.ContainsFunc(t.Ops, func(o record.Op) bool {
		return o.Kind == record.Append && o.Key == op.Key
	})
	if appends || nothing {
		in.h.suspects = append(in.h.suspects, suspect{k, v, appends})
		return
	}
	in.found = append(in.found, v)
}

// weakestBroken is the weakest level that a read anomaly breaks: Read Consistency
// is part of all of them, that a key read twice gives the same is part of ra.
func weakestBroken(kind verdict.Kind) verdict.Level {
	switch kind {
	case verdict.NonRepeatableRead:
		return verdict.RA
	case verdict.Divergence:
		return verdict.SI
	}
	return verdict.G1
}

// internal is a violation within one transaction.
func (in *intake) internal(kind verdict.Kind, op *record.Op, i int, id verdict.TxnID) verdict.Violation {
	return verdict.Violation{Kind: kind, Level: weakestBroken(kind), Txns: []verdict.TxnID{id}, Key: op.Key, Read: i,
		Evidence: []verdict.TxnID{id},
		Exhibits: []verdict.Exhibit{{Txn: id, All: []string{op.Key}}}}
}

// addAborted notes what a transaction wrote that did not commit.
func (in *intake) addAborted(t *record.Transaction, id verdict.TxnID, arrival int64) {
	since := arrival
	if t.HasTimes {
		since = min(since, t.Start)
	}
	since = before(since, in.h.attempts)
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Kind > record.Append {
			continue
		}
		k := in.keyOf(i, op.Key)
		st := in.state(k)
		var c cellID
		switch op.Kind {
		case record.Read:
			if c := in.h.cellOf(k, op.Value); st.wrote == none && st.read == none {
				st.read = c
			} else if st.wrote == none {
				in.rereads = append(in.rereads, c)
			}
			continue
		case record.Append:
			in.h.appendedTo(k, id)
			c = in.h.elementOf(k, op.Value)
		default:
			in.h.writtenTo(k, id, op.Value)
			c = in.h.cellOf(k, op.Value)
			st.wrote = c
		}
		o := in.h.others(c)
		if op.Kind == record.Write && !in.hadRead(st, c) {
			in.h.cells.At(c).about |= isMade
			if o.maker == verdict.NoTxn {
				o.maker = id
				in.h.setOthers(c, o)
			}
		}
		in.h.retried = in.h.retried || in.h.cells.At(c).about&in.h.commonly == 0 &&
			(in.h.cells.At(c).final != none || o.aborted != verdict.NoTxn && o.aborted != id)
		if o.aborted == verdict.NoTxn {
			o.aborted, o.since = id, since
			in.h.setOthers(c, o)
		}
		if in.h.uniqueAttempts() { // else nothing follows from it as long as another attempt may come
			in.h.wake(c)
		}
	}
}

// commit stores the transaction that was read, and returns its ordinal, or none if it was aborted.
func (in *intake) commit(t *record.Transaction, id verdict.TxnID, arrival int64) ordinal {
	if t.Status == record.Aborted {
		in.h.indexOf = append(in.h.indexOf, none)
		return none
	}
	index := ordinal(in.h.txns.Len())
	in.h.indexOf = append(in.h.indexOf, index)
	x := txn{id: id, session: in.session, start: t.Start, end: t.End, order: arrival, timed: t.HasTimes, slot: none,
		open: t.Status == record.Unknown, base: in.base}
	switch {
	case x.open:
		in.h.open++
	case !x.base:
		x.lsn = t.LSN
	}
	in.h.date(&x, index)
	x.reads.from = uint32(len(in.h.cellIDs))
	for i := range in.touched {
		if st := &in.touched[i]; st.read != none {
			in.h.cellIDs = append(in.h.cellIDs, st.read)
		}
	}
	x.reads.to = uint32(len(in.h.cellIDs))
	x.writes.from = x.reads.to
	for i := range in.touched {
		if st := &in.touched[i]; st.wrote != none {
			in.h.wrote(st.wrote, index)
			about := in.h.cells.At(st.wrote).about
			back := in.hadRead(st, st.wrote)
			in.h.wroteFirst = in.h.wroteFirst || back || about&in.h.commonly != 0
			in.h.sawAgain(in.h.cells.At(st.wrote).key, back && about&in.h.commonly == 0) // somebody had written it before
			in.h.cellIDs = append(in.h.cellIDs, st.wrote)
		}
	}
	for _, a := range in.apps {
		if in.shownBefore(a.key) {
			continue
		}
		if cl := in.h.cells.At(a.cell); cl.final != none {
			in.h.perKey.At(a.key).mixed = true // the element does not name its transaction
		}
		in.h.wrote(a.cell, index)
		in.h.cellIDs = append(in.h.cellIDs, a.cell)
	}
	x.writes.to = uint32(len(in.h.cellIDs))
	for _, c := range in.inters {
		st := in.find(in.h.cells.At(c).key)
		if st.wrote == c {
			continue
		}
		o, made := in.h.others(c), !in.hadRead(st, c)
		in.h.again = in.h.again || o.inter != none || in.h.cells.At(c).final != none
		in.h.sawAgain(in.h.cells.At(c).key, in.h.cells.At(c).about&in.h.commonly == 0 &&
			(o.interOf(index) != none || in.h.cells.At(c).final != none || !made))
		switch {
		case o.inter == none || o.inter == index:
			o.inter = index
		case o.inter2 == none:
			o.inter2 = index
		}
		if made && o.maker == verdict.NoTxn {
			o.maker = id
		}
		in.h.setOthers(c, o)
		in.h.wake(c)
	}
	if in.repeats {
		if in.h.sequences == nil {
			in.h.sequences, in.h.placesOf = map[ordinal][]cellID{}, map[ordinal][]int{}
		}
		in.h.sequences[index], in.h.placesOf[index] = slices.Clone(in.sequence), slices.Clone(in.places)
	}
	if !in.mini(t) {
		in.h.large++
	}
	in.h.txns.Push(x)
	return index
}

// shownBefore tells whether the transaction at hand appended to k what a list has
// shown already that was decided without it: its version would count as later than
// that list. So what it did to k is taken for an unseen transaction's, as it was then.
func (in *intake) shownBefore(k version.Key) bool {
	return slices.ContainsFunc(in.apps, func(a ownAppend) bool {
		return a.key == k && in.h.cells.At(a.cell).
			about&givenUp != 0
	})
}

// severalObjects tells whether operations are on different objects. Predicates are
// on any.
func severalObjects(ops []record.Op) bool {
	for i := range ops {
		if ops[i].Key != ops[0].Key && record.Object(ops[i].Key) != record.Object(ops[0].Key) ||
			ops[i].Kind == record.PredicateRead || ops[i].Kind == record.PredicateWrite {
			return true
		}
	}
	return false
}

// mini tells whether the transaction at hand is a mini-transaction: one or two
// reads, two writes at most, and what it wrote it had read before (MTC,
// Definition 8).
func (in *intake) mini(t *record.Transaction) bool {
	reads, writes := 0, 0
	for i := range t.Ops {
		switch t.Ops[i].Kind {
		case record.Read:
			reads++
		case record.Write:
			writes++
		default:
			return false
		}
	}
	for i := range in.touched {
		if in.touched[i].wrote != none && in.touched[i].read == none {
			return false
		}
	}
	return reads >= 1 && reads <= 2 && writes <= 2
}
