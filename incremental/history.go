package incremental

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// history is what is known of the records: names as numbers, who wrote which value, per committed transaction its
// external reads and final writes, and what has been found out since of keys and of transactions of unknown outcome.
// What follows from that, as Options say what may be assumed, is asked of it; it asks nobody. What one transaction
// breaks by itself (INT, own writes) is found when it is added.
type history struct {
	opt  *Options // of the engine
	keys names
	values
	sessions map[string]sessionID

	txns         paged.Vec[ordinal, txn]
	indexOf      []ordinal // by TxnID; none of who is aborted
	cellIDs      []cellID  // what the spans of transactions are of
	perKey       paged.Vec[version.Key, keyProps]
	skipped      int                  // operations that no level is held to, which leaves all levels open
	total        int                  // operations of committed transactions
	predicates   bool                 // who is not aborted has predicate operations
	opaque       bool                 // who is not aborted may have written anything, by a predicate
	suspects     []suspect            // violations of keys that turn out to hold no lists, say
	looked       int                  // suspects[:looked] were looked at once, and are left for the end
	open         int                  // transactions of unknown outcome
	wroteFirst   bool                 // a last write was of a value that many write, or of what its writer had read
	faults       map[ordinal][]fault  // what transactions of unknown outcome break by themselves, if they took effect
	ordered      bool                 // the order of reads in their transactions is asked for, as at weak levels
	sequences    map[ordinal][]cellID // external reads in that order, of transactions in which it is not that of cells
	placesOf     map[ordinal][]int    // by the same transactions, the operation that each read of a sequence is
	large        int                  // transactions that are no mini-transactions
	again        bool                 // a value was written to a key by two, neither of them aborted
	commonly     cellFlags            // of values that many write, which shows nothing of others; see common
	repeated     bool                 // a value that few write was written to a key by two, neither of them aborted
	drawn        bool                 // so it was on a key that somebody unseen may have written; implies repeated
	replaced     bool                 // a key was appended to and written as a whole
	retried      bool                 // what an aborted transaction had written was written by another one
	several      bool                 // a transaction has several objects
	timed        int                  // transactions whose times are used
	untimed      int                  // transactions whose times are not, or that have none; with timed, all but bases
	untimedSeeds int                  // untimed ones among the first Options.Seeds
	disbelieved  int                  // untimed ones whose times contradict those of their session
	attempts     int64                // how long before an attempt that is aborted another one may have ended
	last         []sessionClock       // by session

	slotTx []ordinal // by slot: who has it
	// stubs is how many slots the seeds took, none before all have come.
	stubs version.Slot
	// first is the first slot that is not before stubs and has times, as Base found; none before.
	first version.Slot

	watermark int64 // of the last Tick
	closed    bool  // the input has ended
	closedSet bool  // nobody else can come who wrote what is read by those that are being decided
	giving    bool  // reads are being decided that have waited for the watermark, or for the end
	listKeys  map[version.Key]*listKey
	vouchers  map[ordinal]pendingRead       // by transaction of unknown outcome: the read that shows that it took effect
	claims    map[version.Key][]pendingRead // uncertain transactions that read the initial value
	reads     *budget.Share                 // the steps that finding whom reads may be of takes
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
	more  uint32  // the latest of further ones, in history.refs, or none
	// version is what final's write made of the key, once admitted.
	version version.ID
	waiting uint32 // the latest reader that waits for the writer, in history.waiters, or none
	about   cellFlags
}

// cellFlags are what is to be known of a value itself, and of its writers.
type cellFlags uint8

const (
	isNull cellFlags = 1 << iota
	isZero
	hasOthers // history.rare has more
	isList
	isEmpty // the list without elements
	outside // somebody who committed wrote it, and is not among the transactions
	givenUp // an element of a list that was decided before anybody was seen to append it
	isMade  // somebody wrote it, of whatever outcome, who had not read it there before
)

// otherWriters are the writers of a value whose write is not their transaction's
// last to the key, or whose transaction did not commit.
type otherWriters struct {
	inter   ordinal       // the first transaction that overwrote it itself, or none
	inter2  ordinal       // the first but inter that did, or none
	aborted verdict.TxnID // the first aborted one, or NoTxn
	// maker is the first of inter, inter2, aborted and further ones like these that had not read the value there
	// before, or NoTxn.
	maker verdict.TxnID
	since int64 // no other attempt of what aborted attempted ended earlier, by any clock
}

// member is a transaction that writes a value, or waits for its writer, and the next one to have come, in a ring:
// after the latest the oldest. Those that are freed are in a list, and of nobody.
type member struct {
	index ordinal
	next  uint32
	cell  cellID // the value that it waits for
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
	scalar   bool          // by a plain write of a value that is neither a list nor null; implies written
	met      bool          // a transaction touched it
	shared   bool          // a second transaction touched it; implies met
	mixed    bool          // somebody may have written what others did: an element was appended more than once, say
	lossy    bool          // somebody unseen may have written it
	unseen   bool          // its table is declared to be one that somebody unseen may have written
	whole    bool          // its table is declared to be written by nobody unseen, its rows absent at first
	emptied  bool          // an empty list was read of it
	surely   bool          // who read an empty list of it is known to have committed; implies emptied
	reader   ordinal       // a transaction that shows what the initial version held, or none
	initial  cellID        // the value it held at first, once known by a read
	// Most reads find one of these, which spares the look-up.
	recent    cellID // the value written last by order of Step, if it is an integer; else none
	recentNum int64  // that integer
	null      cellID // null, once it was read or written; else none
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
	lsn     int64        // where it committed in the database's log; 0: not known, or it is open or a base
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

func newHistory() *history {
	return &history{opt: &Options{}, values: values{freed: none, rare: map[cellID]otherWriters{}},
		sessions: map[string]sessionID{}, stubs: none, first: none, listKeys: map[version.Key]*listKey{},
		vouchers: map[ordinal]pendingRead{}, claims: map[version.Key][]pendingRead{}}
}

func (h *history) keyNumber(name string) version.Key { return h.numberOf(name, hashName(name)) }

// numberOf is keyNumber, of a name with that hash.
func (h *history) numberOf(name string, hash uint32) version.Key {
	k, fresh := h.keys.numberOf(name, hash)
	if fresh {
		p := keyProps{initial: none, reader: none, recent: none, null: none}
		if c, named := h.opt.Tables.Of(name); named {
			p.whole, p.unseen = c == record.CoverageComplete, c == record.CoveragePartial
		}
		h.perKey.Push(p)
	}
	return k
}

func (h *history) nameOf(k version.Key) string { return *h.keys.list.At(k) }

// interOf is a transaction other than index that overwrote c itself, or none.
func (o otherWriters) interOf(index ordinal) ordinal {
	if o.inter == index {
		return o.inter2
	}
	return o.inter
}

// writersOf are the transactions whose last write the value is, in the order of Step.
func (vs *values) writersOf(c cellID) iter.Seq[ordinal] {
	return func(yield func(index ordinal) bool) {
		if cl := vs.cells.At(c); cl.final != none && yield(cl.final) {
			ring(&vs.refs, cl.more)(yield)
		}
	}
}

// wrote notes that the value is the last write of index.
func (h *history) wrote(c cellID, index ordinal) {
	cl := h.cells.At(c)
	h.again = h.again || cl.final != none || h.others(c).inter != none
	if cl.about&h.commonly == 0 {
		h.sawAgain(cl.key, cl.final != none || h.others(c).interOf(index) != none)
		h.retried = h.retried || h.others(c).aborted != verdict.NoTxn
	}
	if cl.final == none {
		cl.final = index
		return
	}
	h.refs = append(h.refs, member{index: index})
	cl.more = joined(h.refs, cl.more, uint32(len(h.refs)-1))
}

// others are the writers of c that do not count as its writer.
func (vs *values) others(c cellID) otherWriters {
	if vs.cells.At(c).about&hasOthers == 0 {
		return otherWriters{inter: none, inter2: none, aborted: verdict.NoTxn, maker: verdict.NoTxn}
	}
	return vs.rare[c]
}

func (vs *values) setOthers(c cellID, o otherWriters) {
	vs.cells.At(c).about |= hasOthers
	vs.rare[c] = o
}

// wait notes that a transaction's read of c waits for the writer.
func (vs *values) wait(c cellID, index ordinal) {
	at := vs.freed
	if at == none {
		at = uint32(len(vs.waiters))
		vs.waiters = append(vs.waiters, member{})
	} else {
		vs.freed = vs.waiters[at].next
	}
	cl := vs.cells.At(c)
	vs.waiters[at].index, vs.waiters[at].cell = index, c
	cl.waiting = joined(vs.waiters, cl.waiting, at)
}

// waitersOf are the readers that wait for c, oldest first.
func (vs *values) waitersOf(c cellID) iter.Seq[ordinal] {
	return ring(&vs.waiters, vs.cells.At(c).waiting)
}

// unwait takes a read off the ring again; false if it does not wait any more. O(1) of the oldest.
func (vs *values) unwait(c cellID, index ordinal) bool {
	cl := vs.cells.At(c)
	last := cl.waiting
	if last == none {
		return false
	}
	for before := last; ; {
		at := vs.waiters[before].next
		if vs.waiters[at].index == index {
			switch {
			case at == before:
				cl.waiting = none
			case at == last:
				cl.waiting = before
			}
			vs.waiters[before].next = vs.waiters[at].next
			vs.waiters[at].index, vs.waiters[at].next, vs.freed = none, vs.freed, at
			return true
		}
		if before = at; at == last {
			return false
		}
	}
}

// release empties c's ring of waiting reads and calls f with them, oldest first.
func (vs *values) release(c cellID, f func(index ordinal)) {
	all := slices.Collect(vs.waitersOf(c))
	for _, index := range all {
		vs.unwait(c, index)
	}
	for _, index := range all {
		f(index)
	}
}

// external is what a transaction read from others, in program order.
func (h *history) external(index ordinal) []cellID {
	if s, ok := h.sequences[index]; ok {
		return s
	}
	return h.slab(h.txns.At(index).reads)
}

// wroteWhat tells whether c, which somebody read, or something of it if it is a list, was written by a transaction.
func (vs *values) wroteWhat(index ordinal, c cellID) bool {
	if c == none || vs.cells.At(c).about&isList != 0 {
		return c != none
	}
	for w := range vs.writersOf(c) {
		if w == index {
			return true
		}
	}
	return false
}

// place is the index of the operation by which a transaction read c, where that
// is kept because the key was read several times; else -1.
func (h *history) place(index ordinal, c cellID) int {
	if i := slices.Index(h.sequences[index], c); i >= 0 {
		return h.placesOf[index][i]
	}
	return -1
}

func (h *history) slab(s span) []cellID { return h.cellIDs[s.from:s.to] }

// touch notes that one more transaction touches k.
func (h *history) touch(k version.Key) {
	p := h.perKey.At(k)
	p.shared, p.met = p.met, true
}

// blame notes what a transaction of unknown outcome breaks by itself.
func (h *history) blame(index ordinal, f fault) {
	if h.faults == nil {
		h.faults = map[ordinal][]fault{}
	}
	h.faults[index] = append(h.faults[index], f)
}

// fault is what is wrong with reads of a key by itself, and what these returned.
type fault struct {
	v     verdict.Violation
	reads []cellID
}

// apart is a session of its own for a record of one that has gone on since, as far as
// seq tells: who gave up to remember where the session was passes on what comes late of it
// as what comes next. It follows nothing and nothing follows it.
func (h *history) apart(name string) sessionID {
	session := sessionID(len(h.sessions))
	for n := len(h.last); ; n++ { // whatever sessions are called
		if own := name + " apart " + strconv.Itoa(n); !h.named(own) {
			h.sessions[own] = session
			break
		}
	}
	h.last = append(h.last, newClock)
	return session
}

func (h *history) named(session string) bool {
	_, ok := h.sessions[session]
	return ok
}

var newClock = sessionClock{order: math.MinInt64, seq: math.MinInt64, index: none}

func (h *history) appendedTo(k version.Key, id verdict.TxnID) {
	p := h.perKey.At(k)
	if !p.appended {
		p.appended, p.changer = true, id
	}
	h.replaced = h.replaced || p.written
}

// writtenTo notes a plain write.
func (h *history) writtenTo(k version.Key, id verdict.TxnID, v record.Value) *keyProps {
	p := h.perKey.At(k)
	scalar := v.Kind != record.KindList && !v.IsNull()
	if p.bare() || scalar && !p.scalar && !p.appended {
		p.changer = id
	}
	p.written, p.scalar = true, p.scalar || scalar
	h.replaced = h.replaced || p.appended
	return p
}

// readCellOf is cellOf for a value that was read.
func (h *history) readCellOf(k version.Key, v record.Value) cellID {
	p := h.perKey.At(k)
	switch v.Kind {
	case record.KindInt:
		if p.recent != none && p.recentNum == v.Num {
			return p.recent
		}
	case record.KindNull:
		if p.null == none {
			p.null = h.cellOf(k, v)
		}
		return p.null
	}
	return h.cellOf(k, v)
}

// suspect is a violation unless the key turns out to hold lists: null was read, or written, and
// then the empty list read, or the other way round; or, where the reader appends, unless it turns out to hold something
// else as well, or an element twice.
type suspect struct {
	key     version.Key
	v       verdict.Violation
	appends bool // the transaction does, to the key
}

// settleSuspects looks once at each, when all who may have written what was read have come, and returns the violations
// among them: those of keys that are seen to hold no lists, or nothing else; when all has been taken, of those that are
// left. Those of keys of which an append may be forgotten, or not be recorded, are not checked.
func (h *history) settleSuspects(all bool) (broken []verdict.Violation) {
	if all {
		h.looked = 0
	}
	n, left := h.looked, h.suspects[:h.looked]
	for ; n < len(h.suspects) && (all || h.deadline(h.indexOf[h.suspects[n].v.Txns[0]]) < h.watermark); n++ {
		s := h.suspects[n]
		switch p := h.perKey.At(s.key); {
		case s.appends && p.isListKey():
		case s.appends:
			h.skipped++
			continue
		case p.appended || all && !p.written:
			continue
		case !all && !p.scalar:
			left = append(left, s)
			continue
		case p.lossy || h.lossy(s.key) && !p.scalar:
			h.skipped++
			continue
		default:
			s.v.Exhibits = append(s.v.Exhibits, p.changes(h.nameOf(s.key)))
		}
		if index := h.indexOf[s.v.Txns[0]]; h.txns.At(index).open {
			h.blame(index, fault{v: s.v})
		} else {
			broken = append(broken, s.v)
		}
	}
	h.looked, h.suspects = len(left), slices.Delete(h.suspects, len(left), n)
	return broken
}

// wake notes that more is known of who wrote c, if anybody waits for that.
func (vs *values) wake(c cellID) {
	if vs.cells.At(c).waiting != none {
		vs.woken = append(vs.woken, c)
	}
}

// date gives a transaction its place in time and in its session.
func (h *history) date(x *txn, index ordinal) {
	if x.base {
		x.prev, x.order = none, math.MinInt64
		return
	}
	last := &h.last[x.session]
	x.prev = last.index
	if x.timed {
		// A clock that steps back within a session orders nothing, unless it is the database's.
		switch {
		case h.opt.Clock != record.ClockDatabase && last.timed && (x.start < last.start || x.end < last.end && !x.open):
			x.timed = false
			h.disbelieved++
		case x.open: // its end is not known
			x.order = x.end
		default:
			last.timed, last.start, last.end = true, x.start, x.end
			x.order = x.end
		}
	}
	x.timed = x.timed && !last.distrusted // its place stays
	if x.timed {
		h.timed++
	} else {
		h.untimed++
		if int(index) < h.opt.Seeds {
			h.untimedSeeds++
		}
	}
	x.order = max(x.order, last.order)
	if !x.open {
		last.order, last.index = x.order, index
	}
}

// list is a value that is a list.
type list struct {
	text     string
	elements []cellID // once needed
	parsed   bool
	twice    []cellID // elements that occur twice
}

// listKey is what is known of a key that holds lists.
type listKey struct {
	longest []cellID // elements
	reader  ordinal  // a transaction that read it
	cell    cellID   // what it read
	// anchored: what stands first in longest is the first that the key held.
	anchored bool
}

func (vs *values) noteList(c cellID, v record.Value) {
	cl := vs.cells.At(c)
	if cl.about&isList != 0 {
		return
	}
	cl.about |= isList
	if vs.lists == nil {
		vs.lists = map[cellID]*list{}
	}
	l := &list{text: v.Text}
	if vs.own {
		l.text = strings.Clone(l.text)
	}
	vs.lists[c] = l
}

// isNothing: the value is what a list is before anything was appended.
func (vs *values) isNothing(c cellID) bool { return vs.cells.At(c).about&(isNull|isEmpty) != 0 }

// elementsOf are the elements of a list, as cells of its key.
func (vs *values) elementsOf(c cellID) *list {
	l := vs.lists[c]
	if l.parsed {
		return l
	}
	l.parsed = true
	k := vs.cells.At(c).key
	seen := map[cellID]bool{}
	for _, v := range (record.Value{Kind: record.KindList, Text: l.text}).Elements() {
		e := vs.elementOf(k, v)
		if seen[e] {
			l.twice = append(l.twice, e)
		}
		seen[e] = true
		l.elements = append(l.elements, e)
	}
	return l
}

// elementOf is the cell of an element of k's lists. That of null is no value of the key, which may hold
// nothing at first, but one that no value is.
func (vs *values) elementOf(k version.Key, v record.Value) cellID {
	if v.IsNull() {
		v = record.Value{Kind: record.KindList, Text: "null"}
	}
	return vs.cellOf(k, v)
}

func (h *history) listOf(k version.Key) *listKey {
	lk := h.listKeys[k]
	if lk == nil {
		lk = &listKey{reader: none, cell: none}
		h.listKeys[k] = lk
	}
	return lk
}

// pendingRead is a read of a transaction.
type pendingRead struct {
	index ordinal
	cell  cellID
}
