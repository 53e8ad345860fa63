package assemble

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Defaults of Options.
const (
	MaxTransactionDefault = int64(time.Minute)
	OpenMaxDefault        = 1 << 14
	OpsMaxDefault         = 1 << 16
	BytesMaxDefault       = 32 << 20
	RecentMaxDefault      = 1 << 12
)

// Options bound what an Assembler holds. The zero Options are the defaults.
type Options struct {
	MaxTransaction int64 // nanoseconds from begin to end, both as they arrive
	OpenMax        int   // open transactions
	OpsMax         int   // operations of one transaction
	BytesMax       int64 // of all open transactions in memory, about
	// RecentMax is how many ended transactions are remembered, to tell events that come
	// again from others. After them, such are refused.
	RecentMax int
}

// Fate is what became of an event that was not refused.
type Fate uint8

// The fates.
const (
	Taken    Fate = iota // it is part of an open transaction
	Ended                // it ended a transaction: there is a record
	Doubled              // it had come before
	Late                 // it is of a transaction that has been told without it
	Replayed             // it brought back an open transaction after a restart
)

// Why says why something was lost.
type Why uint8

// The reasons. All but Incomplete and Unreadable make a record of unknown outcome.
const (
	Incomplete Why = iota // operations did not come before the end
	Superseded            // the session began another transaction
	Silent                // no end came within MaxTransaction
	OpenLimit             // more than OpenMax were open
	OpsLimited            // more than OpsMax operations
	BytesLimit            // more than BytesMax bytes
	EndOfInput            // the input ended
	Unreadable            // after a restart, its begin could not be read again
)

var whyNames = [...]string{"incomplete", "superseded", "silent", "open-limit", "ops-limit", "bytes-limit",
	"end-of-input", "unreadable"}

func (w Why) String() string { return whyNames[w] }

// Loss tells of a transaction whose operations are not all in its record. Any key may
// have been written by it.
type Loss struct {
	Why Why
	// The transaction. Of one that is Unreadable only Offset is known; DB is empty then,
	// which means any history.
	DB, Session, Txn, ID string
	Offset               int64 // of its begin
	// Missing is how many operations are known to be missing; there may be more but
	// for Incomplete.
	Missing int
}

func (l Loss) String() string {
	s := fmt.Sprintf("%s: the transaction that began at offset %d", l.Why, l.Offset)
	if l.Session != "" {
		s = fmt.Sprintf("%s: transaction %q of session %q, begun at offset %d", l.Why, l.Txn, l.Session, l.Offset)
	}
	if l.Missing > 0 {
		s += fmt.Sprintf(", misses %d operations", l.Missing)
	}
	return s
}

// Assembler makes records of the events of one partition. It is for one goroutine.
type Assembler struct {
	opt  Options
	next int64 // the offset behind the last event

	sessions       map[string]*open // with an open transaction
	oldest, newest *open            // the same, in the order of their begins
	bytes          int64            // of them

	clock    int64 // see Options.MaxTransaction
	hasClock bool
	latest   int64 // the greatest time that an event told

	recent map[name]*ended
	order  []name // of recent, a ring
	first  int    // the oldest in order, when it is full

	restored *restored // nil unless events are read again

	records []made
	taken   int // of records
	losses  []Loss
}

// made is a record and the offset of the event after which it was.
type made struct {
	txn    record.Transaction
	offset int64
}

// name names a transaction.
type name struct{ session, txn string }

// ended is what is remembered of a transaction that has become a record.
type ended struct {
	begin    beginning
	end      ending
	ops      []uint32 // hashes of its operations, by their numbers
	complete bool
}

// What a begin and an end tell beside the names.
type (
	beginning struct {
		db, id          string
		seq, start      int64
		hasSeq, hasTime bool
	}
	ending struct {
		status  record.Status
		count   uint32
		end     int64
		hasTime bool
	}
)

func beginningOf(e *Event) beginning {
	return beginning{db: e.DB, id: e.ID, seq: e.Seq, start: e.Time, hasSeq: e.HasSeq, hasTime: e.HasTime}
}

func endingOf(e *Event) ending {
	return ending{status: e.Status, count: e.N, end: e.Time, hasTime: e.HasTime}
}

// New makes an Assembler.
func New(opt Options) *Assembler {
	opt.MaxTransaction = cmp.Or(max(opt.MaxTransaction, 0), MaxTransactionDefault)
	opt.OpenMax = cmp.Or(max(opt.OpenMax, 0), OpenMaxDefault)
	opt.OpsMax = cmp.Or(max(opt.OpsMax, 0), OpsMaxDefault)
	opt.BytesMax = cmp.Or(max(opt.BytesMax, 0), BytesMaxDefault)
	opt.RecentMax = cmp.Or(max(opt.RecentMax, 0), RecentMaxDefault)
	return &Assembler{opt: opt, next: math.MinInt64, sessions: map[string]*open{}, recent: map[name]*ended{}}
}

// Add takes the event at an offset. now is the broker's time of it, 0 if there is none. An error
// is a *reject.Error without a position. Records and losses that follow from it
// are to be had from Next and Losses. Amortised O(size of the event).
func (a *Assembler) Add(offset, now int64, e *Event) (Fate, error) {
	if offset < a.next {
		return Doubled, nil
	}
	a.next = offset + 1
	if a.restored != nil && offset < a.restored.seen {
		a.replay(offset, e)
		return Replayed, nil
	}
	a.settle()
	if now == 0 && e.HasTime {
		now = e.Time
	}
	if e.HasTime {
		a.latest = max(a.latest, e.Time)
	}
	if now != 0 && e.Kind != End {
		a.advance(now)
	}
	fate, err := a.take(offset, e)
	if now != 0 && e.Kind == End { // it is not too late for the end that has come
		a.advance(now)
	}
	if err != nil {
		return fate, err
	}
	return fate, nil
}

func (a *Assembler) take(offset int64, e *Event) (Fate, *reject.Error) {
	if e.Kind == Begin {
		return a.begin(offset, e)
	}
	o := a.sessions[e.Session]
	if o == nil || o.begin.Txn != e.Txn {
		return a.stray(e)
	}
	if e.Kind == End {
		return a.end(o, e)
	}
	fate, err := a.step(o, e)
	if err == nil && len(o.ops) > a.opt.OpsMax {
		a.giveUp(o, OpsLimited, a.latest)
	}
	for a.bytes > a.opt.BytesMax && a.oldest != nil {
		a.giveUp(a.oldest, BytesLimit, a.latest)
	}
	return fate, err
}

// Tick says what time it is, for a partition that was read up to next and may give no
// events for long. Times are those of Add.
func (a *Assembler) Tick(next, now int64) {
	if a.restored != nil && next < a.restored.seen {
		return
	}
	a.settle()
	a.advance(now)
}

// Close gives up all that is open. The Assembler can go on, also with lower offsets, as
// of a topic that was created anew.
func (a *Assembler) Close() {
	a.settle()
	for a.oldest != nil {
		a.giveUp(a.oldest, EndOfInput, a.latest)
	}
	a.next, a.hasClock, a.latest = math.MinInt64, false, 0
}

// Next takes a record, and the offset of the event that it was made after; nil if there is none. Records
// come in the order in which they were made. It is good until the next call. O(1).
func (a *Assembler) Next() (t *record.Transaction, offset int64) {
	if a.taken > 0 {
		a.records[a.taken-1] = made{} // its operations are another's now
	}
	if a.taken == len(a.records) {
		a.records, a.taken = a.records[:0], 0
		return nil, 0
	}
	a.taken++
	r := &a.records[a.taken-1]
	return &r.txn, r.offset
}

// Losses takes what was lost since it was called last.
func (a *Assembler) Losses() []Loss {
	out := a.losses
	a.losses = nil
	return out
}

// Open is how many transactions are open, and about how many bytes they take.
func (a *Assembler) Open() (transactions int, bytes int64) { return len(a.sessions), a.bytes }

// advance moves the clock.
func (a *Assembler) advance(now int64) {
	switch {
	case !a.hasClock || now > a.clock:
		a.clock, a.hasClock = now, true
		for a.oldest != nil && a.clock-a.oldest.opened > a.opt.MaxTransaction {
			a.giveUp(a.oldest, Silent, math.MaxInt64)
		}
	case a.clock-now > a.opt.MaxTransaction:
		// It had jumped ahead.
		a.clock = now
		for o := a.oldest; o != nil; o = o.younger {
			o.opened = min(o.opened, now)
		}
	}
}

func (a *Assembler) begin(offset int64, e *Event) (Fate, *reject.Error) {
	key := name{e.Session, e.Txn}
	o := a.sessions[e.Session]
	if o != nil && o.begin.Txn == e.Txn {
		if beginningOf(&o.begin) == beginningOf(e) {
			return Doubled, nil
		}
		// Two transactions share the name, so whose the events are that follow can't be told.
		a.giveUp(o, Superseded, a.latest)
		return 0, reject.In("txn", reject.Contradiction,
			"session %.80q has begun a transaction %.80q with another start, seq, id or db", e.Session, e.Txn)
	}
	if r := a.recent[key]; r != nil && r.begin == beginningOf(e) {
		return Doubled, nil
	}
	if o != nil {
		until := int64(-1) // no time
		if e.HasTime {
			until = e.Time
		}
		a.giveUp(o, Superseded, until)
	}
	if r := a.recent[key]; r != nil {
		r.complete = false // the name is in use again
	}
	a.open(offset, a.clock, e)
	if len(a.sessions) > a.opt.OpenMax {
		a.giveUp(a.oldest, OpenLimit, a.latest)
	}
	for a.bytes > a.opt.BytesMax && a.oldest != nil {
		a.giveUp(a.oldest, BytesLimit, a.latest)
	}
	return Taken, nil
}

// open opens a transaction.
func (a *Assembler) open(offset, opened int64, e *Event) {
	o := &open{begin: *e, offset: offset, opened: opened, older: a.newest}
	o.names = int64(len(e.Session) + len(e.Txn) + len(e.DB) + len(e.ID))
	o.bytes = openBytes + o.names
	a.bytes += o.bytes
	if a.newest != nil {
		a.newest.younger = o
	} else {
		a.oldest = o
	}
	a.newest = o
	a.sessions[e.Session] = o
}

// step takes an operation of an open transaction.
func (a *Assembler) step(o *open, e *Event) (Fate, *reject.Error) {
	if x := o.find(e.N); x != nil {
		if !x.void && x.op == e.Op {
			return Doubled, nil
		}
		x.void = true
		return 0, reject.In("n", reject.Contradiction, "operation %d of transaction %.80q has come before as another", e.N,
			e.Txn)
	}
	a.bytes += o.add(e)
	return Taken, nil
}

// end ends an open transaction.
func (a *Assembler) end(o *open, e *Event) (Fate, *reject.Error) {
	start, hasStart := o.begin.Time, o.begin.HasTime
	switch {
	case e.N < o.most:
		return 0, reject.In("count", reject.Contradiction,
			"transaction %.80q ends after %d operations, and operation %d has come", e.Txn, e.N, o.most-1)
	case hasStart && !e.HasTime:
		return 0, reject.In("end", reject.OneTimeOnly, "transaction %.80q began with a start and has no end", e.Txn)
	case !hasStart && e.HasTime:
		return 0, reject.In("start", reject.OneTimeOnly, "transaction %.80q has an end and began without a start", e.Txn)
	case hasStart && e.Time < start:
		return 0, reject.In("end", reject.TimeBackwards, "transaction %.80q ends at %d, %d ns before its start at %d", e.Txn,
			e.Time, start-e.Time, start)
	}
	t := o.transaction()
	t.Status, t.HasTimes = e.Status, hasStart
	if hasStart {
		t.Start, t.End = start, e.Time
	}
	var missing int
	t.Ops, missing = o.certain(e.N, true)
	r := &ended{begin: beginningOf(&o.begin), end: endingOf(e), complete: missing == 0}
	if r.complete && len(t.Ops) <= rememberedOps {
		r.ops = make([]uint32, len(t.Ops))
		for i := range t.Ops {
			r.ops[i] = hashOf(&t.Ops[i])
		}
	}
	if !r.complete {
		a.lose(o, Incomplete, &t, missing)
	}
	a.close(o, r)
	a.records = append(a.records, made{t, a.next - 1})
	return Ended, nil
}

// giveUp makes a record of unknown outcome of an open transaction. It ended, if it did, until
// then, and within MaxTransaction, as far as is known; before its start means that nothing
// is known.
func (a *Assembler) giveUp(o *open, why Why, until int64) {
	t := o.transaction()
	t.Status = record.Unknown
	if start := o.begin.Time; o.begin.HasTime && until >= start && start <= math.MaxInt64-a.opt.MaxTransaction {
		t.HasTimes, t.Start, t.End = true, start, min(until, start+a.opt.MaxTransaction)
	}
	var missing int
	t.Ops, missing = o.certain(o.most, false)
	a.lose(o, why, &t, missing)
	a.close(o, &ended{begin: beginningOf(&o.begin)})
	a.records = append(a.records, made{t, a.next - 1})
}

func (a *Assembler) lose(o *open, why Why, t *record.Transaction, missing int) {
	a.losses = append(a.losses, Loss{Why: why, DB: t.DB, Session: t.Session, Txn: o.begin.Txn, ID: t.ID, Offset: o.offset,
		Missing: missing})
}

// What is remembered of an ended transaction at most: hashes of operations, bytes of
// names. Events that come again of a larger one are refused.
const (
	rememberedOps   = 256
	rememberedBytes = 1 << 10
)

// close takes a transaction out and remembers r of it.
func (a *Assembler) close(o *open, r *ended) {
	delete(a.sessions, o.begin.Session)
	a.bytes -= o.bytes
	if o.older != nil {
		o.older.younger = o.younger
	} else {
		a.oldest = o.younger
	}
	if o.younger != nil {
		o.younger.older = o.older
	} else {
		a.newest = o.older
	}
	if o.names > rememberedBytes {
		return // too large to be kept for long
	}
	key := name{o.begin.Session, o.begin.Txn}
	if _, known := a.recent[key]; !known {
		if len(a.order) < a.opt.RecentMax {
			a.order = append(a.order, key)
		} else {
			delete(a.recent, a.order[a.first])
			a.order[a.first] = key
			a.first = (a.first + 1) % len(a.order)
		}
	}
	a.recent[key] = r
}

// stray takes an operation or an end of a transaction that is not open.
func (a *Assembler) stray(e *Event) (Fate, *reject.Error) {
	r := a.recent[name{e.Session, e.Txn}]
	switch {
	case r == nil:
		return 0, reject.In("txn", reject.NotOpen,
			"session %.80q has not begun a transaction %.80q in this partition, or it ended long ago", e.Session, e.Txn)
	case !r.complete:
		return Late, nil
	case e.Kind == Step && int(e.N) < len(r.ops) && r.ops[e.N] == hashOf(&e.Op), e.Kind == End && r.end == endingOf(e):
		return Doubled, nil
	}
	return 0, reject.In("txn", reject.Contradiction,
		"transaction %.80q of session %.80q has ended, and said something else", e.Txn, e.Session)
}
