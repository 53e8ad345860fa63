// Package closure lets records of transactions out behind those of all whose writes they have seen, and behind their
// session's earlier ones: wherever what is out ends, as who lets it out is killed, who is read from is in it. Two that
// have read of each other go together.
package closure

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// Order is the order in which records go. Its zero value is ready.
type Order struct {
	// Patience is how long a record is held, if there are not too many; 0: as long as it takes, and where there are too
	// many who has ended a transaction waits.
	Patience time.Duration

	mu      sync.Mutex          // of what follows, and of the order in which records go
	writers map[string][]*Entry // those that are not out, by what they write
	room    sync.Cond
	held    int
	turn    int  // of settle
	isLate  bool // in it: of those in work none is waited for any more
	ready   []*Entry
}

// Entry is a transaction of which others may have read before its record is out.
type Entry struct {
	Last   *Entry // of its session; nil: there is none
	Unseen bool   // nobody sees what it writes before it commits

	writes []string
	room   [2]string // for some of them
	behind []seen

	out   func()               // lets its record out; nil: it is in work still
	ops   []record.Op          // of the record, if they tell what it wrote
	wrote map[record.Cell]bool // the same, once somebody asked
	gone  bool                 // it is out
	by    *Entry               // in work when it was settled, and to end before
	waits []*Entry             // for it to end
	turn  int                  // in which it was met
}

// seen is one whose record goes before; if what was read has a key, only where it wrote that.
type seen struct {
	of   *Entry
	what *record.Op // nil: it has none
}

// heldMax is how many records are held.
const heldMax = 10_000

// Writes says that an entry's transaction is to write something, before the database is told: a value that nobody else
// writes, or the key of an item or, where only the answer tells which of its items, a table's name.
func (o *Order) Writes(e *Entry, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writers == nil {
		o.writers = map[string][]*Entry{}
	}
	if !slices.Contains(o.writers[what], e) {
		if e.writes == nil {
			e.writes = e.room[:0]
		}
		e.writes = append(e.writes, what)
		o.writers[what] = append(o.writers[what], e)
	}
}

// Commits says that its commit is about to be sent.
func (o *Order) Commits(e *Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e.Unseen = false
}

// Reads says that an entry has read what those write who said so.
func (o *Order) Reads(e *Entry, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.follow(e, what, nil)
}

// End says that a transaction has ended. ops, if they tell what it has read and written of items by their keys, are not
// changed any more; out lets its record out.
func (o *Order) End(e *Entry, ops []record.Op, out func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := 0; i < len(ops) && len(o.writers) > 0; i++ {
		if ops[i].Kind == record.Read {
			o.follow(e, ops[i].Key, &ops[i])
			table, _, _ := strings.Cut(ops[i].Key, ":")
			o.follow(e, table, &ops[i])
		}
	}
	e.out, e.ops = out, ops
	waits := e.waits
	e.waits = nil
	o.settle(e)
	for _, w := range waits {
		o.settle(w)
	}
	for o.room.L = &o.mu; o.Patience == 0 && o.held > heldMax; {
		o.room.Wait() // none of those in work is waited for here
	}
}

// follow puts an entry behind those that may have written what it has read: the last first, for whom it mostly waits
// longest, as they write one after the other.
func (o *Order) follow(e *Entry, key string, what *record.Op) {
	for _, w := range slices.Backward(o.writers[key]) {
		if s := (seen{w, what}); w != e && !w.Unseen && !s.isOver() {
			e.behind = append(e.behind, s)
		}
	}
}

// settle lets the record of a transaction out that has ended, behind those it is to go behind; if one of these is in
// work still, when that has ended.
func (o *Order) settle(e *Entry) {
	o.turn, o.ready = o.turn+1, o.ready[:0]
	if by := o.awaited(e); by != nil {
		if e.by == nil {
			if o.held++; o.Patience > 0 && o.held > heldMax {
				e.by = by
				o.late(e)
				return
			}
			if o.Patience > 0 {
				time.AfterFunc(o.Patience, func() {
					o.mu.Lock()
					defer o.mu.Unlock()
					o.late(e)
				})
			}
		}
		e.by, by.waits = by, append(by.waits, e)
		return
	}
	for _, r := range o.ready {
		r.out()
		for _, what := range r.writes {
			if o.writers[what] = slices.DeleteFunc(o.writers[what], func(w *Entry) bool { return w == r }); len(o.writers[what]) == 0 {
				delete(o.writers, what)
			}
		}
		if r.by != nil {
			r.by.waits = slices.DeleteFunc(r.by.waits, func(w *Entry) bool { return w == r })
			o.held--
			o.room.Broadcast()
		}
		*r = Entry{gone: true} // it may be remembered, and is to keep nobody else
	}
}

// late lets a record out that is held, whoever is in work.
func (o *Order) late(e *Entry) {
	o.isLate = true
	o.settle(e)
	o.isLate = false
}

// awaited is one in work that is to end before an entry's record may go; nil: none, and those that go now are ready,
// in their order.
func (o *Order) awaited(e *Entry) *Entry {
	switch {
	case e == nil || e.gone || e.turn == o.turn:
		return nil
	case e.out == nil && o.isLate:
		return nil
	case e.out == nil:
		return e
	case e.by != nil && e.by.out == nil && !e.by.gone && !o.isLate:
		return e.by
	}
	e.turn = o.turn
	if by := o.awaited(e.Last); by != nil {
		return by
	}
	for len(e.behind) > 0 && e.behind[0].isOver() {
		e.behind = e.behind[1:]
	}
	for _, b := range e.behind {
		if b.isOver() {
			continue
		}
		if by := o.awaited(b.of); by != nil {
			return by
		}
	}
	o.ready = append(o.ready, e)
	return nil
}

// isOver tells whether it needs no waiting: it is out, or did not write what was read.
func (s seen) isOver() bool {
	w := s.of
	if w.gone || w.out == nil || s.what == nil {
		return w.gone
	}
	if w.wrote == nil {
		w.wrote = map[record.Cell]bool{}
		for i := range w.ops {
			if w.ops[i].Kind == record.Write {
				w.wrote[w.ops[i].Cell()] = true
			}
		}
	}
	return !w.wrote[s.what.Cell()]
}
