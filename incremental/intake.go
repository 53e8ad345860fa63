package incremental

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

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
	keys  names
	base  bool          // the transaction at hand is one of Engine.Base
	known []version.Key // of the operations' keys of the transaction at hand, or nil: what Engine.Key gave
	values
	rare     map[cellID]otherWriters
	waiters  []member
	freed    uint32 // list of waiters to use again
	sessions map[string]sessionID

	txns       paged.Vec[ordinal, txn]
	indexOf    []ordinal                        // by TxnID, or none
	cellIDs    []cellID                         // slab of reads and writes
	touched    []keyState                       // what the transaction at hand did to keys, in order of first touch
	touchedAt  map[version.Key]int              // of many: where in touched
	inters     []cellID                         // what it wrote and overwrote itself
	rereads    []cellID                         // what it read of others after it had read another value of the key
	perKey     paged.Vec[version.Key, keyProps] // by key
	skipped    int                              // operations not checked
	total      int                              // operations of committed transactions
	predicates bool                             // there are predicate operations
	opaque     bool                             // a predicate write may have written anything
	apps       []ownAppend                      // what the transaction at hand appended
	refs       []member                         // further writers of values
	suspects   []suspect
	looked     int                  // how many of them were looked at
	open       int                  // transactions of unknown outcome
	wroteFirst bool                 // a last write was of a common value, or of what had been read
	faults     map[ordinal][]fault  // what transactions of unknown outcome break by themselves, if they took effect
	lists      map[cellID]*list     // the values that are lists
	ordered    bool                 // the program order of reads is wanted where it is more than the order of keys
	sequence   []cellID             // of the transaction at hand: what it read from others, in program order
	repeats    bool                 // sequence is not just the first read of each key, in the order of touching them
	sequences  map[ordinal][]cellID // of transactions for which it is not
	places     []int                // of sequence: which operations
	placesOf   map[ordinal][]int    // of sequences
	large      int                  // transactions that are no mini-transactions
	again      bool                 // a value was written to a key a second time
	common     cellFlags            // of values that many write, which shows nothing of others; see Engine.common
	repeated   bool                 // any other value was written to a key by two transactions, neither of them aborted
	replaced   bool                 // a key was appended to and written as a whole
	retried    bool                 // one of an aborted transaction was written by another one
	// values awaited by readers that an aborted transaction wrote, or one that overwrote them
	woken        []cellID
	several      bool           // a transaction has several objects
	timed        int            // committed transactions with trusted times
	untimed      int            // and those without
	disbelieved  int            // of these, those whose times contradict their session's
	seeds        int            // Options.Seeds
	instants     bool           // times are the database's own
	attempts     int64          // how long before an attempt that is aborted another one may have ended
	untimedSeeds int            // of these, among the first, which are seeds
	last         []sessionClock // by session
}

const none = version.None

// ordinal numbers the transactions that are committed, or may be, in the order of Step. sessionID numbers sessions.
type (
	ordinal   uint32
	sessionID uint32
)

// cellID numbers the pairs of key and value that occur.
type cellID uint32

// cell is a value of a key: who wrote it, and who waits for it.
type cell struct {
	num   int64 // the value, if it is an integer
	key   version.Key
	final ordinal // the first transaction, committed or of unknown outcome, whose last write it is, or none
	more  uint32  // the latest of further ones, in intake.refs, or none
	// version is what final's write made of the key, once admitted.
	version version.ID
	waiting uint32 // the latest reader that waits for the writer, in intake.waiters, or none
	about   cellFlags
}

// cellFlags are what is to be known of a value itself, and of its writers.
type cellFlags uint8

const (
	isNull cellFlags = 1 << iota
	isZero
	hasOthers // intake.otherWriters has more
	isList
	isEmpty // the list without elements
	outside // somebody who committed wrote it, and is not among the transactions
	givenUp // an element of a list that was decided before anybody was seen to append it
	isMade  // somebody wrote it, of whatever outcome, who had not read it there before
)

// otherWriters are the writers of a value whose write is not their transaction's
// last to the key, or whose transaction did not commit.
type otherWriters struct {
	inter   ordinal // the first transaction that overwrote it itself, or none
	inter2  ordinal // and of another one
	aborted verdict.TxnID
	since   int64         // no attempt of the same ended earlier, by any clock
	maker   verdict.TxnID // the first of all these that made it
}

// ownAppend is an element that the transaction at hand appended.
type ownAppend struct {
	key     version.Key
	cell    cellID // of the element
	element record.Value
}

// member is a transaction that writes a value, or waits for its writer, and the next one to have come, in a ring:
// after the latest the oldest. Those that are freed are in a list.
type member struct {
	index ordinal
	next  uint32
}

// joined makes at, which nothing follows, the latest of last's ring, or one of its own, and returns it.
func joined(all []member, last, at uint32) uint32 {
	all[at].next = at
	if last != none {
		all[at].next, all[last].next = all[last].next, at
	}
	return at
}

// ring are the members of last's, oldest first. It may be joined, and all may grow, meanwhile.
func ring(all *[]member, last uint32) iter.Seq[ordinal] {
	return func(yield func(index ordinal) bool) {
		for at := last; at != none; {
			at = (*all)[at].next
			if !yield((*all)[at].index) || at == last {
				return
			}
		}
	}
}

// sessionClock is how far a session has come.
type sessionClock struct {
	start, end int64   // the greatest so far of transactions with times
	timed      bool    // there was one
	distrusted bool    // its clock is; see Engine.distrust
	order      int64   // the greatest txn.order
	seq        int64   // the greatest of its records that have one
	index      ordinal // the last committed transaction, or none
}

// keyProps is what is known of a key as a whole.
type keyProps struct {
	appended bool
	changer  verdict.TxnID // the first to append to it, or else to write a scalar, or else to write, whatever came of it
	written  bool          // by a plain write
	scalar   bool          // by one of a value that no list is, nor nothing
	met      bool          // a transaction touched it
	shared   bool          // and another one
	mixed    bool          // its lists can't be checked: an element was appended more than once, say
	lossy    bool          // somebody unseen may have written it
	emptied  bool          // an empty list was read of it
	surely   bool          // by one of known outcome
	reader   ordinal       // a transaction that shows what the initial version held, or none
	initial  cellID        // the value it held at first, once known by a read
	// recent is the value written last by order of Step, if it is an integer, and
	// null the cell of null: most reads find one of them, which spares the look-up.
	recent    cellID
	null      cellID
	recentNum int64
}

// isListKey: its values are lists, by what is known so far.
func (p *keyProps) isListKey() bool { return p.appended && !p.written && !p.mixed }

// changes is what shows that the key is not bare, and that it holds no lists if that is known.
func (p *keyProps) changes(name string) verdict.Exhibit {
	return verdict.Exhibit{Txn: p.changer, Writes: []string{name}}
}

// bare: nobody is seen to have changed it. If an empty list is read of it, it is a list,
// to which nothing has been appended yet.
func (p *keyProps) bare() bool { return !p.appended && !p.written }

// keyState is what the transaction at hand did to a key.
type keyState struct {
	key   version.Key
	read  cellID // what its first read found before any own write, or none
	wrote cellID // its last write, or none
	apps  uint32 // how many elements it appended
	blind bool   // it holds what is not checked: written by a predicate, or a list mixed with plain writes
}

// txn is a transaction that is committed or of unknown outcome.
type txn struct {
	id         verdict.TxnID
	session    sessionID
	start, end int64 // nanoseconds, if timed
	// order is when it ended, or, without times, when it arrived, and not before
	// its predecessor in the session.
	order   int64
	prev    ordinal // the committed transaction before it in its session, or none
	timed   bool
	open    bool         // its outcome is unknown
	arrived bool         // if open, online: its turn to be admitted has come
	base    bool         // of the time before all others; see Engine.Base
	doubt   doubt        // if open: whether it took effect
	reads   span         // external reads, by cell
	writes  span         // final writes, by cell; of lists the elements appended, in order
	slot    version.Slot // once admitted
}

// doubt is what is known of a transaction of unknown outcome.
type doubt uint8

const (
	unread    doubt = iota // nobody can have read from it
	uncertain              // somebody may have
	tookEffect
)

type span struct{ from, to uint32 }

func (s span) len() int { return int(s.to - s.from) }

// expect makes room.
func (in *intake) expect(x Expect) {
	in.indexOf = slices.Grow(in.indexOf, x.Transactions)
	in.cellIDs = slices.Grow(in.cellIDs, x.Operations)
}

// reuse takes the memory of old, which must not be used any more, for in, which is
// empty.
func (in *intake) reuse(old *intake) {
	clear(old.slots)
	clear(old.keys.slots)
	in.cells, in.slots, in.keys.slots = old.cells.Spare(), old.slots, old.keys.slots
	in.txns, in.perKey = old.txns.Spare(), old.perKey.Spare()
	in.indexOf, in.cellIDs = old.indexOf[:0], old.cellIDs[:0]
	in.waiters, in.touched = old.waiters[:0], old.touched[:0]
}

func newIntake() *intake {
	return &intake{freed: none, rare: map[cellID]otherWriters{}, touchedAt: map[version.Key]int{},
		sessions: map[string]sessionID{}}
}

func (in *intake) keyNumber(name string) version.Key { return in.numberOf(name, hashName(name)) }

// numberOf is keyNumber, of a name with that hash.
func (in *intake) numberOf(name string, h uint32) version.Key {
	k, fresh := in.keys.numberOf(name, h)
	if fresh {
		in.perKey.Push(keyProps{initial: none, reader: none, recent: none, null: none})
	}
	return k
}

// keyOf is the number of the i-th operation's key.
func (in *intake) keyOf(i int, name string) version.Key {
	if in.known != nil {
		return in.known[i]
	}
	return in.keyNumber(name)
}

func (in *intake) nameOf(k version.Key) string { return *in.keys.list.At(k) }

// interOf is a transaction other than index that overwrote c itself, or none.
func (o otherWriters) interOf(index ordinal) ordinal {
	if o.inter == index {
		return o.inter2
	}
	return o.inter
}

// writersOf are the transactions whose last write the value is, in the order of Step.
func (in *intake) writersOf(c cellID) iter.Seq[ordinal] {
	return func(yield func(index ordinal) bool) {
		if cl := in.cells.At(c); cl.final != none && yield(cl.final) {
			ring(&in.refs, cl.more)(yield)
		}
	}
}

// wrote notes that the value is the last write of index.
func (in *intake) wrote(c cellID, index ordinal) {
	cl := in.cells.At(c)
	in.again = in.again || cl.final != none || in.others(c).inter != none
	if cl.about&in.common == 0 {
		in.repeated = in.repeated || cl.final != none || in.others(c).interOf(index) != none
		in.retried = in.retried || in.others(c).aborted != verdict.NoTxn
	}
	if cl.final == none {
		cl.final = index
		return
	}
	in.refs = append(in.refs, member{index: index})
	cl.more = joined(in.refs, cl.more, uint32(len(in.refs)-1))
}

// others are the writers of c that do not count as its writer.
func (in *intake) others(c cellID) otherWriters {
	if in.cells.At(c).about&hasOthers == 0 {
		return otherWriters{inter: none, inter2: none, aborted: verdict.NoTxn, maker: verdict.NoTxn}
	}
	return in.rare[c]
}

func (in *intake) setOthers(c cellID, o otherWriters) {
	in.cells.At(c).about |= hasOthers
	in.rare[c] = o
}

// wait notes that a transaction's read of c waits for the writer.
func (in *intake) wait(c cellID, index ordinal) {
	at := in.freed
	if at == none {
		at = uint32(len(in.waiters))
		in.waiters = append(in.waiters, member{})
	} else {
		in.freed = in.waiters[at].next
	}
	cl := in.cells.At(c)
	in.waiters[at].index = index
	cl.waiting = joined(in.waiters, cl.waiting, at)
}

// waitersOf are the readers that wait for c, oldest first.
func (in *intake) waitersOf(c cellID) iter.Seq[ordinal] {
	return ring(&in.waiters, in.cells.At(c).waiting)
}

// unwait takes a read off the ring again; false if it does not wait any more. O(1) of the oldest.
func (in *intake) unwait(c cellID, index ordinal) bool {
	cl := in.cells.At(c)
	last := cl.waiting
	if last == none {
		return false
	}
	for before := last; ; {
		at := in.waiters[before].next
		if in.waiters[at].index == index {
			switch {
			case at == before:
				cl.waiting = none
			case at == last:
				cl.waiting = before
			}
			in.waiters[before].next = in.waiters[at].next
			in.waiters[at].next, in.freed = in.freed, at
			return true
		}
		if before = at; at == last {
			return false
		}
	}
}

// release empties c's ring of waiting reads and calls f with them, oldest first.
func (in *intake) release(c cellID, f func(index ordinal)) {
	last := in.cells.At(c).waiting
	if last == none {
		return
	}
	all := slices.Collect(in.waitersOf(c))
	in.waiters[last].next, in.freed = in.freed, in.waiters[last].next
	in.cells.At(c).waiting = none
	for _, index := range all {
		f(index)
	}
}

// external is what a transaction read from others, in program order.
func (in *intake) external(index ordinal) []cellID {
	if s, ok := in.sequences[index]; ok {
		return s
	}
	return in.slab(in.txns.At(index).reads)
}

// wroteWhat tells whether c, which somebody read, or something of it if it is a list, was written by a transaction.
func (in *intake) wroteWhat(index ordinal, c cellID) bool {
	if c == none || in.cells.At(c).about&isList != 0 {
		return c != none
	}
	for w := range in.writersOf(c) {
		if w == index {
			return true
		}
	}
	return false
}

// place is the index of the operation by which a transaction read c, where that
// is kept because the key was read several times; else -1.
func (in *intake) place(index ordinal, c cellID) int {
	if i := slices.Index(in.sequences[index], c); i >= 0 {
		return in.placesOf[index][i]
	}
	return -1
}

func (in *intake) slab(s span) []cellID { return in.cellIDs[s.from:s.to] }

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
	in.touch(k)
	in.touched = append(in.touched, keyState{key: k, read: none, wrote: none})
	if len(in.touchedAt) > 0 {
		in.touchedAt[k] = len(in.touched) - 1
	}
	return &in.touched[len(in.touched)-1]
}

// touch notes that one more transaction touches k.
func (in *intake) touch(k version.Key) {
	p := in.perKey.At(k)
	p.shared, p.met = p.met, true
}

// add reads a record and returns the ordinal of its transaction, or none if it
// was aborted, and what it breaks by itself.
func (in *intake) add(t *record.Transaction, id verdict.TxnID, arrival int64, report func(verdict.Violation)) ordinal {
	in.touched = in.touched[:0]
	clear(in.touchedAt)
	in.inters, in.rereads = in.inters[:0], in.rereads[:0]
	in.apps = in.apps[:0]
	in.sequence, in.places, in.repeats = in.sequence[:0], in.places[:0], false
	session, ok := in.sessions[t.Session]
	if !ok {
		session = sessionID(len(in.sessions))
		in.sessions[strings.Clone(t.Session)] = session
		in.last = append(in.last, newClock)
	}
	if t.HasSeq {
		switch last := &in.last[session]; {
		case t.Seq >= last.seq:
			last.seq = t.Seq
		case !in.base: // a base has no place in its session anyway
			session = in.apart(t.Session)
		}
	}
	in.several = in.several || severalObjects(t.Ops)
	if t.Status == record.Aborted {
		in.addAborted(t, id, arrival)
		in.indexOf = append(in.indexOf, none)
		return none
	}
	index := ordinal(in.txns.Len())
	if t.Status == record.Unknown {
		report = func(v verdict.Violation) {
			if in.faults == nil {
				in.faults = map[ordinal][]fault{}
			}
			in.faults[index] = append(in.faults[index], fault{v: v})
		}
	}
	in.total += len(t.Ops)
	predicate := false // a predicate write came before in this transaction
	for i := range t.Ops {
		op := &t.Ops[i]
		switch op.Kind {
		case record.PredicateRead:
			in.skipped++
			in.predicates = true
			continue
		case record.PredicateWrite:
			in.skipped++
			in.predicates, in.opaque, predicate = true, true, true
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
			c := in.cellOf(k, op.Value)
			p := in.writtenTo(k, id, op.Value)
			if op.Value.Kind == record.KindInt {
				p.recent, p.recentNum = c, op.Value.Num
			}
			if p.appended { // who writes back what was appended has it there again
				for _, v := range op.Value.Elements() {
					in.repeated = in.repeated || in.cells.At(in.elementOf(k, v)).final != none
				}
			}
			if st.wrote != none && st.wrote != c {
				in.inters = append(in.inters, st.wrote)
			}
			in.again = in.again || st.wrote == c
			st.wrote = c
			if !in.hadRead(st, c) {
				in.cells.At(c).about |= isMade
			}
			if !predicate {
				st.blind = st.apps > 0
			}
		case record.Read:
			in.addRead(t, i, k, st, id, report)
		}
	}
	for n := range in.faults[index] {
		f := &in.faults[index][n]
		for i := range t.Ops {
			if op := &t.Ops[i]; op.Kind == record.Read && op.Key == f.v.Key {
				f.reads = append(f.reads, in.cellOf(in.keyOf(i, op.Key), op.Value))
			}
		}
	}
	return in.commit(t, id, session, arrival)
}

// hadRead tells whether the transaction at hand read c of others, before it wrote the key.
func (in *intake) hadRead(st *keyState, c cellID) bool {
	return st.read == c || slices.Contains(in.rereads, c)
}

// fault is what is wrong with reads of a key by itself, and what these returned.
type fault struct {
	v     verdict.Violation
	reads []cellID
}

// apart is a session of its own for a record of one that has gone on since, as far as
// seq tells: who gave up to remember where the session was passes on what comes late of it
// as what comes next. It follows nothing and nothing follows it.
func (in *intake) apart(name string) sessionID {
	session := sessionID(len(in.sessions))
	for n := len(in.last); ; n++ { // whatever sessions are called
		if own := name + " apart " + strconv.Itoa(n); !in.named(own) {
			in.sessions[own] = session
			break
		}
	}
	in.last = append(in.last, newClock)
	return session
}

func (in *intake) named(session string) bool {
	_, ok := in.sessions[session]
	return ok
}

var newClock = sessionClock{order: math.MinInt64, seq: math.MinInt64, index: none}

func (in *intake) addAppend(k version.Key, st *keyState, element record.Value, id verdict.TxnID) {
	in.appendedTo(k, id)
	c := in.elementOf(k, element)
	in.apps = append(in.apps, ownAppend{k, c, element})
	st.apps++
	if st.wrote != none {
		st.blind = true
	}
}

func (in *intake) appendedTo(k version.Key, id verdict.TxnID) {
	p := in.perKey.At(k)
	if !p.appended {
		p.appended, p.changer = true, id
	}
	in.replaced = in.replaced || p.written
}

// writtenTo notes a plain write.
func (in *intake) writtenTo(k version.Key, id verdict.TxnID, v record.Value) *keyProps {
	p := in.perKey.At(k)
	scalar := v.Kind != record.KindList && !v.IsNull()
	if p.bare() || scalar && !p.scalar && !p.appended {
		p.changer = id
	}
	p.written, p.scalar = true, p.scalar || scalar
	in.replaced = in.replaced || p.appended
	return p
}

// addRead takes the i-th of the transaction's operations, which is a read.
func (in *intake) addRead(t *record.Transaction, i int, k version.Key, st *keyState, id verdict.TxnID,
	report func(verdict.Violation)) {
	op := &t.Ops[i]
	if st.blind {
		in.skipped++
		return
	}
	var kind verdict.Kind
	value := op.Value
	if st.apps > 0 {
		var ok bool
		if value, ok = in.withoutOwn(k, value); !ok {
			report(in.internal(verdict.NotMyOwnWrite, op, i, id))
			return
		}
	}
	c := in.readCellOf(k, value)
	if value.Kind == record.KindList {
		in.noteList(c, value)
		if st.wrote == none && in.isNothing(c) {
			p := in.perKey.At(k)
			p.emptied, p.surely = true, p.surely || t.Status == record.Committed
		}
	}
	if in.ordered && st.wrote == none {
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
		if in.ordered {
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
	nothing := in.isNothing(c) && in.isNothing(found)
	appends := !nothing && st.wrote == none && slices.ContainsFunc(t.Ops, func(o record.Op) bool {
		return o.Kind == record.Append && o.Key == op.Key
	})
	if appends || nothing {
		in.suspects = append(in.suspects, suspect{k, v, report, appends})
		return
	}
	report(v)
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

// readCellOf is cellOf for a value that was read.
func (in *intake) readCellOf(k version.Key, v record.Value) cellID {
	p := in.perKey.At(k)
	switch v.Kind {
	case record.KindInt:
		if p.recent != none && p.recentNum == v.Num {
			return p.recent
		}
	case record.KindNull:
		if p.null == none {
			p.null = in.cellOf(k, v)
		}
		return p.null
	}
	return in.cellOf(k, v)
}

// suspect is a violation unless the key turns out to hold lists: null was read, or written, and
// then the empty list read, or the other way round; or, where the reader appends, unless it turns out to hold something
// else as well, or an element twice.
type suspect struct {
	key     version.Key
	v       verdict.Violation
	report  func(verdict.Violation)
	appends bool // the transaction does, to the key
}

// judgeSuspects looks once at each, when all who may have written what was read have come: it reports those of keys that
// are seen to hold no lists, or nothing else; when all has been taken, at those that are left. Those of keys of which an
// append may be forgotten, or not be recorded, are not checked.
func (e *Engine) judgeSuspects(all bool) {
	in := e.in
	if all {
		in.looked = 0
	}
	n, left := in.looked, in.suspects[:in.looked]
	for ; n < len(in.suspects) && (all || e.deadline(in.indexOf[in.suspects[n].v.Txns[0]]) < e.watermark); n++ {
		s := in.suspects[n]
		switch p := in.perKey.At(s.key); {
		case s.appends && p.isListKey():
			s.report(s.v)
		case s.appends:
			in.skipped++
		case p.appended || all && !p.written:
		case !all && !p.scalar:
			left = append(left, s)
		case p.lossy || e.lossy(s.key) && !p.scalar:
			in.skipped++
		default:
			s.v.Exhibits = append(s.v.Exhibits, p.changes(in.nameOf(s.key)))
			s.report(s.v)
		}
	}
	in.looked, in.suspects = len(left), slices.Delete(in.suspects, len(left), n)
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
	since = before(since, in.attempts)
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
			if c := in.cellOf(k, op.Value); st.wrote == none && st.read == none {
				st.read = c
			} else if st.wrote == none {
				in.rereads = append(in.rereads, c)
			}
			continue
		case record.Append:
			in.appendedTo(k, id)
			c = in.elementOf(k, op.Value)
		default:
			in.writtenTo(k, id, op.Value)
			c = in.cellOf(k, op.Value)
			st.wrote = c
		}
		o := in.others(c)
		if op.Kind == record.Write && !in.hadRead(st, c) {
			in.cells.At(c).about |= isMade
			if o.maker == verdict.NoTxn {
				o.maker = id
				in.setOthers(c, o)
			}
		}
		in.retried = in.retried || in.cells.At(c).about&in.common == 0 &&
			(in.cells.At(c).final != none || o.aborted != verdict.NoTxn && o.aborted != id)
		if o.aborted == verdict.NoTxn {
			o.aborted, o.since = id, since
			in.setOthers(c, o)
		}
		in.wake(c)
	}
}

// commit stores the transaction whose operations have been taken.
func (in *intake) commit(t *record.Transaction, id verdict.TxnID, session sessionID, arrival int64) ordinal {
	index := ordinal(in.txns.Len())
	in.indexOf = append(in.indexOf, index)
	x := txn{id: id, session: session, start: t.Start, end: t.End, order: arrival, timed: t.HasTimes, slot: none,
		open: t.Status == record.Unknown}
	if x.open {
		in.open++
	}
	in.date(&x, index)
	x.reads.from = uint32(len(in.cellIDs))
	for i := range in.touched {
		if st := &in.touched[i]; st.read != none {
			in.cellIDs = append(in.cellIDs, st.read)
		}
	}
	x.reads.to = uint32(len(in.cellIDs))
	x.writes.from = x.reads.to
	for i := range in.touched {
		if st := &in.touched[i]; st.wrote != none {
			in.wrote(st.wrote, index)
			about := in.cells.At(st.wrote).about
			back := in.hadRead(st, st.wrote)
			in.wroteFirst = in.wroteFirst || back || about&in.common != 0
			in.repeated = in.repeated || back && about&in.common == 0 // somebody had written it before
			in.cellIDs = append(in.cellIDs, st.wrote)
		}
	}
	for _, a := range in.apps {
		if in.shownBefore(a.key) {
			continue
		}
		if cl := in.cells.At(a.cell); cl.final != none {
			in.perKey.At(a.key).mixed = true // the element does not name its transaction
		}
		in.wrote(a.cell, index)
		in.cellIDs = append(in.cellIDs, a.cell)
	}
	x.writes.to = uint32(len(in.cellIDs))
	for _, c := range in.inters {
		st := in.find(in.cells.At(c).key)
		if st.wrote == c {
			continue
		}
		o, made := in.others(c), !in.hadRead(st, c)
		in.again = in.again || o.inter != none || in.cells.At(c).final != none
		in.repeated = in.repeated || in.cells.At(c).about&in.common == 0 &&
			(o.interOf(index) != none || in.cells.At(c).final != none || !made)
		switch {
		case o.inter == none || o.inter == index:
			o.inter = index
		case o.inter2 == none:
			o.inter2 = index
		}
		if made && o.maker == verdict.NoTxn {
			o.maker = id
		}
		in.setOthers(c, o)
		in.wake(c)
	}
	if in.repeats {
		if in.sequences == nil {
			in.sequences, in.placesOf = map[ordinal][]cellID{}, map[ordinal][]int{}
		}
		in.sequences[index], in.placesOf[index] = slices.Clone(in.sequence), slices.Clone(in.places)
	}
	if !in.mini(t) {
		in.large++
	}
	in.txns.Push(x)
	return index
}

// shownBefore tells whether the transaction at hand appended to k what a list has
// shown already that was decided without it: its version would count as later than
// that list. So what it did to k is taken for an unseen transaction's, as it was then.
func (in *intake) shownBefore(k version.Key) bool {
	return slices.ContainsFunc(in.apps, func(a ownAppend) bool {
		return a.key == k && in.cells.At(a.cell).
			about&givenUp != 0
	})
}

// wake notes that more is known of who wrote c, if anybody waits for that.
func (in *intake) wake(c cellID) {
	if in.cells.At(c).waiting != none {
		in.woken = append(in.woken, c)
	}
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

// date gives a transaction its place in time and in its session.
func (in *intake) date(x *txn, index ordinal) {
	if x.base = in.base; x.base {
		x.prev, x.order = none, math.MinInt64
		return
	}
	last := &in.last[x.session]
	x.prev = last.index
	if x.timed {
		// A clock that steps back within a session orders nothing, unless it is the database's.
		switch {
		case !in.instants && last.timed && (x.start < last.start || x.end < last.end && !x.open):
			x.timed = false
			in.disbelieved++
		case x.open: // its end is not known
			x.order = x.end
		default:
			last.timed, last.start, last.end = true, x.start, x.end
			x.order = x.end
		}
	}
	x.timed = x.timed && !last.distrusted // its place stays
	if x.timed {
		in.timed++
	} else {
		in.untimed++
		if int(index) < in.seeds {
			in.untimedSeeds++
		}
	}
	x.order = max(x.order, last.order)
	if !x.open {
		last.order, last.index = x.order, index
	}
}
