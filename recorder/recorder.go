// Package recorder records what an application's transactions read and wrote, as
// Isowatch reads it: a record per transaction, into a topic, a file or a stream.
//
//	rec := recorder.New(recorder.Lines(file), recorder.Options{DB: "orders"})
//	defer rec.Close(ctx)
//
//	session := rec.Session("api-3/7")          // one connection, one transaction at a time
//	t := session.Begin()                       // before BEGIN is sent
//	t.Read("acct:1", record.Int(100))          // when the answer is there
//	t.Write("acct:1", record.Int(90))
//	t.End(record.Committed)                    // when COMMIT was answered
//
// What a client does is not held up: a record that ends goes into a buffer of bounded size,
// which a goroutine empties into the sink. If the buffer is full the record is dropped and counted. Its
// number in the session is used up all the same, so that the monitor knows that something is
// missing and accuses nobody for it. Options.Wait asks for the opposite.
//
// # The outcome
//
// End wants what the client knows, not what it hopes. An error that the database gave as its answer
// means Aborted. No answer to COMMIT (the connection broke, a time-out) means Unknown: the transaction may
// have taken effect, or may yet. No answer to anything before COMMIT means Aborted, as a database gives
// up what was not committed. After Unknown a new session is to be begun, as the old connection's fate is open.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
)

// Sink is where records go.
type Sink interface {
	// Put hands records on, JSON without an end of line, in their order. It is called by one goroutine, and may keep
	// nothing of them when it has returned. What it returns an error for counts as dropped; trying again is its own
	// business. What it takes next begins with records that tell of the loss.
	Put(ctx context.Context, records [][]byte) error
	// Close ends it once everything was put.
	Close() error
}

// Options of a Recorder.
type Options struct {
	// DB is the history that the records belong to; empty: record.DefaultDB.
	DB string
	// Beside are more sinks, each of which is given all. What one of these fails to take is told by Failed alone.
	Beside []Sink
	// BufferBytes is how much may wait for the sink; 0: 16 MiB.
	BufferBytes int
	// Wait makes who ends a transaction wait for room in the buffer where a record would be dropped
	// otherwise. It is meant for loads that are there to be recorded.
	Wait bool
	// Clock is what the times of records come from; nil: time.Now.
	Clock func() time.Time
	// Failed is told of the first error since a sink took records last, by the goroutine that empties the buffer; nil:
	// nobody is.
	Failed func(error)
}

const bufferBytesDefault = 16 << 20

// Recorder takes records in and passes them on. Its methods are safe for concurrent use.
type Recorder struct {
	sinks   []outlet
	options Options

	mu      sync.Mutex
	filling *buffer
	closed  bool
	filled  chan struct{} // has an element when filling may have records
	pressed chan struct{} // has an element when these are not to wait for more
	room    sync.Cond     // of mu: filling was taken

	recorded, dropped atomic.Int64
	latest            atomic.Int64 // the latest time given out
	held              sync.Pool    // of *Transaction that were held and are out
	over              chan struct{}
	stop              context.CancelFunc
}

// outlet is a sink, whether it lacks records that it is not told of yet, and whether it failed when it was last used.
type outlet struct {
	Sink
	lacks, failed bool
}

// buffer holds records one behind the other, where each ends, and whether one had no room.
type buffer struct {
	text  []byte
	ends  []int
	lacks bool
}

// New makes a recorder that feeds sink until it is closed.
func New(sink Sink, o Options) *Recorder {
	if o.DB == "" {
		o.DB = record.DefaultDB
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = bufferBytesDefault
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{sinks: []outlet{{Sink: sink}}, options: o, filling: &buffer{},
		filled: make(chan struct{}, 1), pressed: make(chan struct{}, 1), over: make(chan struct{}), stop: stop}
	for _, s := range o.Beside {
		r.sinks = append(r.sinks, outlet{Sink: s})
	}
	r.room.L = &r.mu
	go r.feed(ctx)
	return r
}

// Recorded is how many records the sink has taken.
func (r *Recorder) Recorded() int64 { return r.recorded.Load() }

// Dropped is how many records are lost: there was no room for them, or the sink failed.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// Close hands on what is buffered, until ctx ends, and closes the sink. Transactions that end later are
// dropped.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.room.Broadcast()
	r.mu.Unlock()
	wait.Signal(r.filled)
	wait.Signal(r.pressed)
	defer context.AfterFunc(ctx, r.stop)()
	<-r.over
	r.stop()
	var errs []error
	for _, s := range r.sinks {
		errs = append(errs, s.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close what is recorded to: %w", err)
	}
	return nil
}

// gather is how long a record waits for others: to wake who feeds the sink costs more than to make a record.
const gather = 10 * time.Millisecond

// feed empties the buffer until the recorder is closed. Two buffers take turns.
func (r *Recorder) feed(ctx context.Context) {
	defer close(r.over)
	full := &buffer{}
	var records [][]byte
	waiting := time.NewTimer(gather)
	defer waiting.Stop()
	for range r.filled {
		waiting.Reset(gather)
		select {
		case <-waiting.C:
		case <-r.pressed:
		}
		r.mu.Lock()
		r.filling, full = full, r.filling
		closed := r.closed
		r.room.Broadcast()
		r.mu.Unlock()

		records = records[:0]
		from := 0
		for _, to := range full.ends {
			records, from = append(records, full.text[from:to]), to
		}
		if n := int64(len(records)); n > 0 {
			for i := range r.sinks {
				r.sinks[i].lacks = r.sinks[i].lacks || full.lacks
			}
			if r.put(ctx, records) {
				r.recorded.Add(n)
			} else {
				r.dropped.Add(n)
			}
		}
		*full = buffer{text: full.text[:0], ends: full.ends[:0]}
		if closed {
			return
		}
	}
}

// put hands records to all sinks, and tells whether the first has taken them. Those that lack some are told of it
// before.
func (r *Recorder) put(ctx context.Context, records [][]byte) (taken bool) {
	for i := range r.sinks {
		s, all := &r.sinks[i], records
		if s.lacks {
			all = append(r.loss(), records...)
		}
		err := s.Put(ctx, all)
		if err != nil && !s.failed {
			r.options.Failed(err)
		}
		s.failed, s.lacks = err != nil, err != nil
	}
	return !r.sinks[0].lacks
}

// loss are records that say nothing, but of a session in which one is missing: of those that are lost nobody knows that
// their sessions go on.
func (r *Recorder) loss() (out [][]byte) {
	s := r.Session("records lost " + strconv.FormatInt(r.Now(), 10))
	for range 2 {
		t := s.Begin()
		t.record.Status, t.record.End = record.Aborted, r.Now()
		out = append(out, codec.AppendJSON(nil, &t.record))
		s.seq++
	}
	return out
}

// take puts a record into the buffer, or drops it. A record that is larger than the whole buffer has room
// when the buffer is empty.
func (r *Recorder) take(encode func([]byte) []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.options.Wait && !r.closed && len(r.filling.text) >= r.options.BufferBytes {
		r.room.Wait()
	}
	if r.closed || len(r.filling.text) >= r.options.BufferBytes {
		r.dropped.Add(1)
		r.filling.lacks = true
		return
	}
	b := r.filling
	b.text = encode(b.text)
	b.ends = append(b.ends, len(b.text))
	if len(b.ends) == 1 {
		wait.Signal(r.filled)
	}
	if len(b.text) >= r.options.BufferBytes/2 {
		wait.Signal(r.pressed)
	}
}

// Event records that something happened around the transactions, such as a failover. It goes where records
// go, changes no verdict, and is told with what is found near it. Texts beyond record.EventNameMax and
// record.EventTextMax are cut.
func (r *Recorder) Event(e record.Event) {
	e.DB, e.Node, e.Kind, e.Text = r.options.DB, cut(e.Node, record.EventNameMax), cut(e.Kind, record.EventNameMax),
		cut(e.Text, record.EventTextMax)
	r.take(func(b []byte) []byte { return codec.AppendWorldEvent(b, &e) })
}

// Logged passes on where in the database's log a transaction committed, beside the records of which one is Numbered so.
func (r *Recorder) Logged(c change.Change) { r.take(c.Append) }

// cut is the beginning of a text, whole characters of it.
func cut(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// Now is the time that records have: the wall clock in Unix nanoseconds, but never earlier than, nor equal to, what it
// was before: where the machine's clock is set back, the order of events stays what it was.
func (r *Recorder) Now() int64 {
	wall := r.options.Clock().UnixNano()
	for {
		latest := r.latest.Load()
		next := max(wall, latest+1)
		if r.latest.CompareAndSwap(latest, next) {
			return next
		}
	}
}

// Session begins a session. Its name must not have been used before in the history, also not by an
// earlier run of the application.
func (r *Recorder) Session(name string) *Session { return &Session{recorder: r, name: name} }

// Session is a client's transactions, one after the other. It is not safe for concurrent use.
type Session struct {
	recorder *Recorder
	name     string
	seq      int64
	txn      Transaction
}

// Begin begins the next transaction; the last one has to have ended. It is called before the database
// is told.
func (s *Session) Begin() *Transaction { return s.begin(s.recorder.Now()) }

// Record records a transaction that has ended, of who learns only then what it did. start is what Recorder.Now was
// before the database was told, and not before the session's last transaction began; xid and statements
// are as Transaction.Numbered and Asked have them. Operations without a key are left out: of the others it gives a copy,
// and what it recorded goes out as Transaction.Hold has it.
func (s *Session) Record(start int64, outcome record.Status, xid, statements string,
	ops ...record.Op) (recorded []record.Op, out func()) {
	t := s.begin(start)
	t.Numbered(xid)
	t.Asked(statements)
	for _, o := range ops {
		if o.Key != "" {
			t.op(o.Kind, o.Key, o.Value)
		}
	}
	recorded = t.record.Ops
	return recorded, t.Hold(outcome)
}

func (s *Session) begin(start int64) *Transaction {
	ops := s.txn.record.Ops[:0]
	s.txn = Transaction{recorder: s.recorder, record: record.Transaction{
		DB: s.recorder.options.DB, Session: s.name, Seq: s.seq, HasSeq: true, Start: start, HasTimes: true, Ops: ops}}
	s.seq++
	return &s.txn
}

// Lose says that the session had a transaction of which too much is not known, such as what it wrote. Its record
// counts as dropped, and one that says nothing follows it, so that the monitor sees the gap, be it the last of the
// session.
func (s *Session) Lose() {
	s.seq++
	s.recorder.dropped.Add(1)
	s.Begin().End(record.Aborted)
}

// Transaction is one transaction in work. It may not be used after End.
type Transaction struct {
	recorder *Recorder
	record   record.Transaction
	out      func() // of one that is held
}

// At says which server the transaction runs on. It is shown with what is found.
func (t *Transaction) At(node string) { t.record.Node = node }

// Numbered says the database's own number of the transaction, by which a change stream can tell when it committed:
// PostgreSQL's pg_current_xact_id(), MySQL's GTID.
func (t *Transaction) Numbered(xid string) { t.record.XID = xid }

// Asked says what the database was asked, such as the transaction's SQL without its literals. It is shown with what is
// found. Beyond StatementsMax it is cut.
func (t *Transaction) Asked(statements string) {
	t.record.Statements = strings.ReplaceAll(cut(statements, StatementsMax), "\x00", " ")
}

// StatementsMax is how many bytes of a transaction's statements are kept.
const StatementsMax = 1000

// Read says that key was read and held value; record.Null if it was not there.
func (t *Transaction) Read(key string, value record.Value) { t.op(record.Read, key, value) }

// Write says that key was given value; record.Null if it was deleted.
func (t *Transaction) Write(key string, value record.Value) { t.op(record.Write, key, value) }

// Append says that element was added to the end of the list at key.
func (t *Transaction) Append(key string, element record.Value) { t.op(record.Append, key, element) }

// Where says that rows of a table were read, or written, by a condition, as record.Op has it.
func (t *Transaction) Where(kind record.OpKind, table, condition string, value record.Value) {
	t.record.Ops = append(t.record.Ops, record.Op{Kind: kind, Key: table, Where: condition, Value: value})
}

func (t *Transaction) op(kind record.OpKind, key string, value record.Value) {
	t.record.Ops = append(t.record.Ops, record.Op{Kind: kind, Key: key, Value: value})
}

// End ends the transaction with what its client learned of it.
func (t *Transaction) End(outcome record.Status) {
	t.record.Status, t.record.End = outcome, t.recorder.Now()
	t.recorder.take(func(b []byte) []byte { return codec.AppendJSON(b, &t.record) })
}

// HeldMax is how long a record may be held and say when its transaction ended: no longer than a monitor waits for
// what comes late (window.lateness).
const HeldMax = time.Second

// Hold is End for a record that others are to precede: it goes into the buffer when the function that it returns is
// called. Where that is later than HeldMax, it says that the transaction took longer than it did: less is known of
// what came after it, and nothing wrong.
func (t *Transaction) Hold(outcome record.Status) (out func()) {
	r := t.recorder
	held, _ := r.held.Get().(*Transaction)
	if held == nil {
		held = &Transaction{recorder: r}
		held.out = func() {
			held.record.End = max(held.record.End, r.Now()-int64(HeldMax))
			r.take(func(b []byte) []byte { return codec.AppendJSON(b, &held.record) })
			r.held.Put(held)
		}
	}
	t.record.Status, t.record.End = outcome, r.Now()
	held.record, t.record.Ops = t.record, held.record.Ops[:0] // the next one's are others
	return held.out
}
