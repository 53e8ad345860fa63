package decode

import (
	"time"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
)

// logs gives records that name their transaction its place in the database's log, which a change stream tells. A
// record waits for that, and with it all batches that were read after it, so that none of them comes out of turn; but
// no longer than Options.LogWait, nor while more than heldMax bytes wait. What goes on without is counted.
type logs struct {
	opts *Options
	book change.Book
	// shelves are the changes that are kept, the oldest first, by partition; kept is how many.
	shelves map[int][]kept
	kept    int
	told    map[string]bool // of the changes that are kept, by XID: a record was of it, or may have been
	// unrecorded is how many changes have gone of which no record was, since the last batch.
	unrecorded int
	held       []*heldBatch // in the order in which they were read
	bytes      int64        // of these
	waiting    map[string][]*waits
	// silent: records have waited in vain, and no change has come since: none waits.
	silent bool
	heard  bool // a change has come
	reader packed.Reader
}

// logChange is a message that is a change. again: it was read before a restart, and so, perhaps, was its record, which
// does not come again.
type logChange struct {
	change.Change
	pos   record.Position
	again bool
}

// kept is a change, and where and when it was read.
type kept struct {
	change.Change
	offset int64
	at     time.Time
}

// heldBatch is a batch of which so many records wait.
type heldBatch struct {
	*Batch
	open  int
	until time.Time
}

// waits is a record that waits.
type waits struct {
	in *heldBatch
	at *packed.Logged
	db string
}

// Bounds of what waits: bytes of batches, and changes whose records have not come.
const (
	heldMax = 16 << 20
	keptMax = 1 << 17
)

// LogWaitDefault is Options.LogWait where that is not given.
const LogWaitDefault = 2 * time.Second

// take takes in a batch, whose records' places in the log are not known yet.
func (l *logs) take(b *Batch, now time.Time) {
	h := &heldBatch{Batch: b, until: now.Add(l.opts.LogWait)}
	log := b.Block.Log()
	for i := range log {
		x := &log[i]
		if x.XID == "" || x.LSN != 0 {
			continue
		}
		t := b.Block.At(x.Record, &l.reader)
		if x.LSN = l.book.LSN(t.DB, x.XID); x.LSN != 0 {
			b.Logged++
			l.told[change.Number(x.XID)] = true
			continue
		}
		if l.silent || !writes(t) {
			continue
		}
		h.open++
		xid := change.Number(x.XID)
		l.waiting[xid] = append(l.waiting[xid], &waits{h, x, t.DB})
	}
	l.held = append(l.held, h)
	l.bytes += b.Block.Bytes()
}

// writes tells whether the log can have a transaction.
func writes(t *record.Transaction) bool {
	for i := range t.Ops {
		if k := t.Ops[i].Kind; t.Status != record.Aborted && (k.Writes() || k == record.PredicateWrite) {
			return true
		}
	}
	return false
}

// change takes in a change that was read with b.
func (l *logs) change(b *Batch, c *logChange, now time.Time) {
	if err := l.book.Add(c.Change); err != nil {
		b.setAside(&source.Message{Pos: c.pos, Value: c.Append(nil)}, err)
		return
	}
	l.silent, l.heard = false, true
	if c.again {
		l.told[c.XID] = true
	}
	l.shelves[b.Partition] = append(l.shelves[b.Partition], kept{Change: c.Change, offset: c.pos.Offset, at: now})
	if l.kept++; l.kept > keptMax {
		l.drop(b.Partition)
	}
	left := l.waiting[c.XID][:0]
	for _, w := range l.waiting[c.XID] {
		if w.at.LSN = l.book.LSN(w.db, c.XID); w.at.LSN == 0 {
			left = append(left, w)
			continue
		}
		w.in.Logged++
		w.in.open--
		l.told[c.XID] = true
	}
	if len(left) == 0 {
		delete(l.waiting, c.XID)
	} else {
		l.waiting[c.XID] = left
	}
}

// drop forgets the oldest change of a partition.
func (l *logs) drop(partition int) {
	shelf := l.shelves[partition]
	c := shelf[0].Change
	if l.book.Drop(c) { // else an earlier event of the transaction did
		if !l.told[c.XID] {
			l.unrecorded++
		}
		delete(l.told, c.XID)
	}
	l.shelves[partition] = shelf[1:]
	l.kept--
}

// next is the next batch to be handed out, if there is one by now.
func (l *logs) next(now time.Time, ended bool) *Batch {
	if len(l.held) == 0 {
		return nil
	}
	h := l.held[0]
	if h.open > 0 {
		if !ended && now.Before(h.until) && l.bytes <= heldMax {
			return nil
		}
		l.giveUp(h)
	}
	l.held[0], l.held = nil, l.held[1:]
	l.bytes -= h.Block.Bytes()
	for p, shelf := range l.shelves { // a record is waited for as long as a change is
		for len(shelf) > 0 && now.Sub(shelf[0].at) > 2*l.opts.LogWait {
			l.drop(p)
			shelf = l.shelves[p]
		}
	}
	h.Unrecorded, l.unrecorded = l.unrecorded, 0
	if shelf := l.shelves[h.Partition]; len(shelf) > 0 && shelf[0].offset < h.Resume {
		h.Resume = shelf[0].offset
		if h.State == nil { // nothing is open
			h.State = assemble.New(l.opts.Assembly).State(h.Next)
		}
	}
	return h.Batch
}

// giveUp lets the records of a batch go on without.
func (l *logs) giveUp(h *heldBatch) {
	h.Unlogged += h.open
	h.open = 0
	l.silent = !l.heard
	l.heard = false
	log := h.Block.Log()
	for i := range log {
		x := &log[i]
		if x.XID == "" || x.LSN != 0 {
			continue
		}
		xid := change.Number(x.XID)
		of, n := l.waiting[xid], 0 // those of the first batch stand first
		for n < len(of) && of[n].in == h {
			n++
		}
		if n == len(of) {
			delete(l.waiting, xid)
		} else {
			l.waiting[xid] = of[n:]
		}
	}
}

// due is when the next batch goes on at the latest; ok is false if none waits.
func (l *logs) due() (at time.Time, ok bool) {
	if len(l.held) == 0 {
		return time.Time{}, false
	}
	return l.held[0].until, true
}

func newLogs(o *Options) logs {
	return logs{opts: o, shelves: map[int][]kept{}, told: map[string]bool{}, waiting: map[string][]*waits{}}
}
