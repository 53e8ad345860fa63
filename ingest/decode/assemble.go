package decode

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
)

// event is a message that is a part of a record.
type event struct {
	pos   record.Position
	time  int64
	value assemble.Event
	bytes []byte // of the message, for a dead letter
}

// joiner puts assembled records among the others. It works in the order of the
// batches.
type joiner struct {
	opts       *Options
	partitions map[int]*assembly
	latest     int64 // of the times of all messages

	all    packed.Chunk
	reader packed.Reader
	id     []byte
}

// assembly is what is known of a partition.
type assembly struct {
	*assemble.Assembler
	// skip: events before it are not added, as nothing is known of what they began.
	skip           int64
	lost           []Loss // to be told
	source         string // of the last event
	next, identity int64  // where the last batch ended
}

func newJoiner(o *Options) joiner {
	return joiner{opts: o, partitions: map[int]*assembly{}, all: packed.Chunk{Summing: true}}
}

// finish completes j.out. An error is about what was stored before a restart.
func (x *joiner) finish(j *job) error {
	b := j.out
	x.latest = max(x.latest, j.latest)
	a := x.partitions[b.Partition]
	if a == nil {
		var err error
		if a, err = x.open(j); err != nil {
			return err
		}
		x.partitions[b.Partition] = a
	}
	p := place{x: x, b: b, before: *b, a: a}
	if j.anew {
		a.Close()
		a.skip = 0
		p.take(0) // before all that is of the new input
	}
	for i := range j.events {
		e := &j.events[i]
		if e.pos.Offset < a.skip {
			continue
		}
		a.source = e.pos.Source
		if _, err := a.Add(e.pos.Offset, e.time, &e.value); err != nil && e.pos.Offset >= j.seen {
			b.reject(&source.Message{Pos: e.pos, Value: e.bytes}, err)
		}
		p.take(e.time)
	}
	now := j.latest
	if b.CaughtUp {
		now = x.latest // nothing earlier is to come
	}
	if now != 0 {
		a.Tick(b.Next, now)
		p.take(now)
	}
	if j.replaced {
		a.Close()
		p.take(now)
	}
	p.done()
	if b.Next >= j.seen {
		b.Losses, a.lost = append(b.Losses, a.lost...), nil
	}
	a.next, a.identity = b.Next, b.Identity
	return nil
}

// open makes the assembler of a partition whose first batch is j's.
func (x *joiner) open(j *job) (*assembly, error) {
	p := j.out.Partition
	state, seen := x.opts.States[p], x.opts.Seen[p]
	if j.anew || j.seen == 0 {
		return &assembly{Assembler: assemble.New(x.opts.Assembly)}, nil
	}
	if len(state) == 0 {
		a := &assembly{Assembler: assemble.New(x.opts.Assembly), skip: seen}
		if from := x.opts.Offsets[p]; from < seen {
			a.lost = []Loss{{Offset: from, Why: "transactions were open at the restart, and nothing was stored of them"}}
		}
		return a, nil
	}
	a, err := assemble.Restore(x.opts.Assembly, state)
	if err != nil {
		return nil, fmt.Errorf("partition %d: %w", p, err)
	}
	return &assembly{Assembler: a}, nil
}

// close gives up what is open at the end of the input, in batches of their own.
func (x *joiner) close() []*Batch {
	var out []*Batch
	for _, partition := range slices.Sorted(maps.Keys(x.partitions)) {
		a := x.partitions[partition]
		if open, _ := a.Open(); open == 0 {
			continue
		}
		a.Close()
		b := &Batch{Partition: partition, First: a.next, Next: a.next, Resume: a.next, Identity: a.identity, CaughtUp: true,
			Block: x.all.Seal()}
		p := place{x: x, b: b, before: *b, a: a}
		p.take(0)
		p.done()
		out = append(out, b)
	}
	return out
}

// place puts assembled records between the others of a batch, by offset. A block is
// made anew only if there is something to put.
type place struct {
	x      *joiner
	b      *Batch
	before Batch // as it was without them
	a      *assembly
	next   int // of the records in before
	made   bool
}

// ordinary takes over the records before an offset.
func (p *place) ordinary(until int64) {
	for ; p.next < p.before.Len() && p.before.Offsets[p.next] < until; p.next++ {
		p.x.all.Add(p.before.Block.At(p.next, &p.x.reader))
		p.at(p.before.Offsets[p.next], p.before.Arrivals[p.next])
	}
}

func (p *place) at(offset, arrival int64) {
	p.b.Offsets, p.b.Arrivals = append(p.b.Offsets, offset), append(p.b.Arrivals, arrival)
}

// take puts what the assembler has made by now.
func (p *place) take(now int64) {
	for t, offset := p.a.Next(); t != nil; t, offset = p.a.Next() {
		if !p.made {
			p.made = true
			p.b.Offsets, p.b.Arrivals = nil, nil
		}
		p.ordinary(offset)
		p.x.all.Add(t)
		if p.x.all.Anonymous() {
			p.x.id = name(&p.x.all, record.Position{Source: p.a.source, Partition: p.b.Partition, Offset: offset}, p.x.id)
		}
		p.at(offset, now)
	}
}

// done completes the batch.
func (p *place) done() {
	if p.made {
		p.ordinary(math.MaxInt64)
		p.b.seal(&p.x.all)
	}
	for _, l := range p.a.Losses() {
		p.b.Losses = append(p.b.Losses, Loss{DB: l.DB, Session: l.Session, Txn: l.Txn, Offset: l.Offset, Why: l.String()})
	}
	p.b.Resume = p.a.Oldest(p.b.Next)
	if open, _ := p.a.Open(); open > 0 {
		p.b.State = p.a.State(p.b.Next)
	}
}
