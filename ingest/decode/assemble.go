package decode

import (
	"bytes"
	"math"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
)

// event is a message that is a part of a record.
type event struct {
	pos   record.Position
	time  int64
	value assemble.Event
	bytes []byte // of the message, for a dead letter
}

// Assembler makes records of the events of one partition. It is called by the goroutine
// that calls Read.
type Assembler interface {
	// Add takes the next event. now is the broker's time, 0 if there is none. An error is
	// a *reject.Error without position.
	Add(offset, now int64, e *assemble.Event) error
	// Tick says what time it is, by the same clock.
	Tick(now int64)
	// Next takes out a record that is complete, or that nothing more is waited for of, and
	// the offset of the event which told; nil if there is none. It is good until the next call.
	Next() (t *record.Transaction, offset int64)
	// Losses takes out what can't be made a record.
	Losses() []Loss
	// Oldest is where the partition has to be read again to find all events that are needed,
	// next if there are none.
	Oldest(next int64) int64
	// State is what Assemble needs to go on after having been given the events from Oldest on.
	State() []byte
}

// Assemble makes the Assembler of a partition. It will be given again the events that
// were seen before the offset seen and are still needed; of these it makes no record.
type Assemble func(partition int, seen int64) (Assembler, error)

// joiner puts assembled records among the others.
type joiner struct {
	assemble   Assemble
	partitions map[int]Assembler
	latest     int64 // of the times of all messages

	all    packed.Chunk
	reader packed.Reader
	id     []byte
}

func newJoiner(o *Options) joiner {
	return joiner{assemble: o.Assemble, partitions: map[int]Assembler{}, all: packed.Chunk{Summing: true}}
}

// finish completes j.out. An error is Assemble's.
func (x *joiner) finish(j *job) error {
	if x.assemble == nil {
		for i := range j.events {
			if e := &j.events[i]; e.pos.Offset >= j.seen {
				j.out.rejectEvent(e, reject.New(reject.Unsupported, "events of transactions are not assembled here"))
			}
		}
		return nil
	}
	x.latest = max(x.latest, j.latest)
	a := x.partitions[j.in.Partition]
	if a == nil || j.anew {
		var err error
		if a, err = x.assemble(j.in.Partition, j.seen); err != nil {
			return err
		}
		x.partitions[j.in.Partition] = a
	}
	x.events(j, a)
	b := j.out
	b.Losses = a.Losses()
	b.Resume, b.State = a.Oldest(b.Next), a.State()
	return nil
}

// events assembles, and puts what came of it between the records by offset. A block
// is made anew only if there is something to put.
func (x *joiner) events(j *job, a Assembler) {
	b, before := j.out, *j.out
	next, made := 0, false
	ordinary := func(until int64) {
		for ; next < before.Len() && before.Offsets[next] < until; next++ {
			x.all.Add(before.Block.At(next, &x.reader))
			b.Offsets, b.Arrivals = append(b.Offsets, before.Offsets[next]), append(b.Arrivals, before.Arrivals[next])
		}
	}
	take := func(source string, now int64) {
		for t, offset := a.Next(); t != nil; t, offset = a.Next() {
			if !made {
				made = true
				b.Offsets, b.Arrivals = nil, nil
			}
			ordinary(offset)
			x.all.Add(t)
			if x.all.Anonymous() {
				x.id = name(&x.all, record.Position{Source: source, Partition: b.Partition, Offset: offset}, x.id)
			}
			b.Offsets, b.Arrivals = append(b.Offsets, offset), append(b.Arrivals, now)
		}
	}
	for i := range j.events {
		e := &j.events[i]
		if err := a.Add(e.pos.Offset, e.time, &e.value); err != nil && e.pos.Offset >= j.seen {
			b.rejectEvent(e, err)
		}
		take(e.pos.Source, e.time)
	}
	now := j.latest
	if b.CaughtUp {
		now = x.latest
	}
	a.Tick(now)
	take("", now)
	if made {
		ordinary(math.MaxInt64)
		b.seal(&x.all)
	}
}

// rejectEvent makes e a dead letter.
func (b *Batch) rejectEvent(e *event, err error) {
	b.reject(&source.Message{Pos: e.pos, Value: bytes.Clone(e.bytes)}, err)
}
