package canary

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/recorder"
)

// closure lets records out behind those of all whose writes they have seen, and behind their session's earlier ones:
// wherever what is out ends, as its canary is killed, who is read from is in it. Two that have read of each other go
// together. Its zero value is ready.
type closure struct {
	// writers are the entries that are not out, by the values that they write; hiders are those of them that work on rows
	// of which conditions are asked, once they commit: of a row that is not met nobody is told who has changed it.
	writers, hiders sync.Map

	mu    sync.Mutex // of what follows, and of the order in which records go
	room  sync.Cond
	held  int
	turn  int // of settle
	ready []*entry
}

// entry is a transaction of which others may have read before its record is out.
type entry struct {
	values []int64  // that it writes
	saw    []int64  // and has read
	there  bool     // something that it has read was there
	behind []*entry // whose records go before its own; a nil one is none
	hides  bool     // it works on rows of which conditions are asked

	out   func()   // lets its record out; nil: it is in work still
	gone  bool     // it is out
	by    *entry   // in work when it was settled, and to end before
	waits []*entry // for it to end
	turn  int      // in which it was met
}

// heldMax is how many records are held before who has ended a transaction waits.
const heldMax = 10_000

// writes says that an entry's transaction is to write a value, before the database is told.
func (o *closure) writes(e *entry, value int64) {
	e.values = append(e.values, value)
	o.writers.Store(value, e)
}

// commits says that its commit is about to be sent.
func (o *closure) commits(e *entry) {
	if e.hides {
		o.hiders.Store(e, nil)
	}
}

// asked says that such rows were read, by a condition or without.
func (o *closure) asked(e *entry) {
	o.hiders.Range(func(other, _ any) bool {
		e.behind = append(e.behind, other.(*entry))
		return true
	})
}

// read says that a value was read.
func (e *entry) read(v record.Value) {
	e.there = e.there || !v.IsNull()
	switch v.Kind {
	case record.KindInt:
		e.saw = append(e.saw, v.Num)
	case record.KindList:
		for element := range strings.SplitSeq(strings.Trim(v.Text, "[]"), ",") {
			if n, err := strconv.ParseInt(element, 10, 64); err == nil { // else it is none of ours
				e.saw = append(e.saw, n)
			}
		}
	}
}

// end says that a transaction has ended. out lets its record out.
func (o *closure) end(e *entry, out func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, value := range e.saw {
		if w, ok := o.writers.Load(value); ok {
			e.behind = append(e.behind, w.(*entry))
		}
	}
	e.out, e.saw = out, nil
	waits := e.waits
	o.settle(e)
	for _, w := range waits {
		o.settle(w)
	}
	for o.room.L = &o.mu; o.held > heldMax; {
		o.room.Wait() // none of those in work is waited for here
	}
}

// settle lets the record of a transaction out that has ended, behind those it is to go behind; if one of these is in
// work still, when that has ended.
func (o *closure) settle(e *entry) {
	o.turn, o.ready = o.turn+1, o.ready[:0]
	if by := o.awaited(e); by != nil {
		if e.by == nil {
			o.held++
		}
		e.by, by.waits = by, append(by.waits, e)
		return
	}
	for _, r := range o.ready {
		r.out()
		for _, value := range r.values {
			o.writers.Delete(value)
		}
		o.hiders.Delete(r)
		if r.by != nil {
			o.held--
			o.room.Broadcast()
		}
		*r = entry{gone: true, out: r.out} // it may be remembered, and is to keep nobody else
	}
}

// awaited is one in work that is to end before an entry's record may go; nil: none, and those that go now are ready,
// in their order.
func (o *closure) awaited(e *entry) *entry {
	switch {
	case e == nil || e.gone || e.turn == o.turn:
		return nil
	case e.out == nil:
		return e
	case e.by != nil && e.by.out == nil:
		return e.by
	}
	e.turn = o.turn
	for _, b := range e.behind {
		if by := o.awaited(b); by != nil {
			return by
		}
	}
	o.ready = append(o.ready, e)
	return nil
}

// inOrder keeps records in their order in a topic: in one partition.
type inOrder struct{ recorder.Sink }

func (s inOrder) Put(ctx context.Context, records []recorder.Record) error {
	for i := range records {
		records[i].Session = DB
	}
	return s.Sink.Put(ctx, records)
}
