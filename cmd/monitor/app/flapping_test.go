package app

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/stream"
)

// flapping is a source of which partitions come and go as they like, those who write to it, and a monitor that reads it,
// more or less quickly, and comes and goes as well.
type flapping struct {
	rng        *rand.Rand
	partitions [3]flappingPart
	producers  int // of each partition
	lane       int // so many batches wait to be read
	most       int // so many records are in one
	speed      int // so many are read in a step
	contact    *contact
	history    *stream.History
	number     uint64
	since      time.Time // when a partition may have been out of reach, as the journal's mark has it
}

// flappingPart is a partition: what is in it, who writes to it, and what waits to be read of it.
type flappingPart struct {
	log       []record.Transaction
	arrivals  []int64
	up        bool
	turns     int64 // the step in which it comes or goes
	producers []flappingProducer
	fetched   int // up to this offset
	lane      []*decode.Batch
	held      *decode.Batch // waits for room
}

// flappingProducer keeps what he can't write, and tries again after twice as long each time, ten seconds at most.
type flappingProducer struct {
	kept        []record.Transaction
	next, tries int64 // when he tries again, and how long after
}

const (
	flappingBase = int64(1_700_000_000_000_000_000)
	flappingStep = int64(100 * time.Millisecond)
	flappingEnd  = 2000 // steps; all stay up for the last 300
)

// write is what clients do in step i: each producer writes a key, and reads what a producer of the next partition wrote.
func (f *flapping) write(i, now int64) {
	for p := range f.partitions {
		x := &f.partitions[p]
		switch {
		case i >= flappingEnd-300:
			x.up = true
		case i >= x.turns:
			x.up = !x.up
			x.turns = i + 1 + int64(200*f.rng.Float64()*f.rng.Float64()*f.rng.Float64())
			if x.up {
				x.turns += f.rng.Int64N(60)
			}
		}
		for j := range x.producers {
			did := func(session string, kind record.OpKind, p, j int, end int64) record.Transaction {
				return record.Transaction{DB: "d", Session: session, Seq: i, HasSeq: true, HasTimes: true, Start: end - 1, End: end,
					ID: fmt.Sprint(session, "#", i), Ops: []record.Op{{Kind: kind, Key: fmt.Sprint("x", p, "-", j), Value: record.Int(i)}}}
			}
			w, name := &x.producers[j], fmt.Sprint(p, "-", j)
			w.kept = append(w.kept, did("w"+name, record.Write, p, j, now+1),
				did("r"+name, record.Read, (p+1)%len(f.partitions), (j+1)%len(x.producers), now+3))
			switch {
			case now < w.next:
			case !x.up:
				w.tries = min(max(flappingStep*int64(1+4*j)/3, 2*w.tries), int64(10*time.Second))
				w.next = now + w.tries
			default:
				for range w.kept {
					x.arrivals = append(x.arrivals, now+4)
				}
				x.log, w.kept, w.tries = append(x.log, w.kept...), nil, 0
			}
		}
	}
}

// fetch asks each partition for which there is room.
func (f *flapping) fetch(now int64) {
	at := time.Unix(0, now)
	for p := range f.partitions {
		x := &f.partitions[p]
		if x.held != nil {
			if len(x.lane) >= f.lane {
				continue
			}
			x.lane, x.held = append(x.lane, x.held), nil
		}
		if !x.up {
			f.contact.fails(&kafka.PartitionError{Partition: p, Err: io.ErrUnexpectedEOF}, at)
			continue
		}
		f.contact.works(p, at)
		from, to := x.fetched, min(len(x.log), x.fetched+f.most)
		x.fetched = to
		b := &decode.Batch{Partition: p, First: int64(from), Next: int64(to), Lag: int64(len(x.log) - to), CaughtUp: to == len(x.log), Asked: at}
		var chunk packed.Chunk
		for ; from < to; from++ {
			chunk.Add(&x.log[from])
			b.Offsets, b.Arrivals = append(b.Offsets, int64(from)), append(b.Arrivals, x.arrivals[from])
		}
		b.Block = chunk.Seal()
		b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
		if len(x.lane) >= f.lane {
			b.CaughtUp = false
			x.held = b
		} else {
			x.lane = append(x.lane, b)
		}
	}
}

// next takes a batch that waits; of those who have one the partition is next of which least was read.
func (f *flapping) next() *decode.Batch {
	var least *flappingPart
	for p := range f.partitions {
		if x := &f.partitions[p]; len(x.lane) > 0 && (least == nil || x.lane[0].First < least.lane[0].First) {
			least = x
		}
	}
	if least == nil {
		return nil
	}
	b := least.lane[0]
	least.lane = least.lane[1:]
	b.CaughtUp = b.CaughtUp && len(least.lane) == 0
	return b
}

// take has the history take a batch, nil: that time passes.
func (f *flapping) take(now int64, b *decode.Batch) []stream.Violation {
	at := time.Unix(0, now)
	if b != nil {
		f.contact.hears(b, at)
	}
	_, returned, _ := f.contact.takes(at, b)
	if b != nil {
		f.since = f.contact.since()
	}
	f.number++
	f.history.Take(&stream.Entry{Number: f.number, Time: now, Partitions: len(f.partitions), Batch: b, Returned: returned})
	var found []stream.Violation
	for more := true; more; {
		more = f.history.Run(100)
		found = append(found, f.history.Found()...)
	}
	return found
}

// Nobody is accused of having read what is still to be written, however long partitions were away, how many write to one,
// and how much had to be read meanwhile.
func TestFlapping(t *testing.T) {
	lost := 0
	for seed := range uint64(36) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := &flapping{rng: rng, producers: 1 + int(seed%3), lane: []int{1, 5, 80}[seed/3%3]}
		f.speed, f.most = len(f.partitions), f.producers*[]int{3, 5, 100}[rng.IntN(3)]
		fits := []int{1 << 20, 3000}[seed/2%2]
		longest, idle := time.Duration(1+rng.IntN(30))*time.Second, time.Duration(2+rng.IntN(12))*time.Second
		f.history = stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI},
			Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete,
				MaxSkew: int64(5 * time.Millisecond)},
			MaxTransaction: longest, UniqueValues: true, Every: 250 * time.Millisecond, Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: idle, MaxBuffered: fits}})
		began := func() *contact { return &contact{every: 250 * time.Millisecond} }
		f.contact = began()
		f.contact.rests(time.Unix(0, flappingBase))
		for p := range f.partitions {
			f.partitions[p] = flappingPart{up: true, turns: 100 + rng.Int64N(100), producers: make([]flappingProducer, f.producers)}
		}
		stopped := int64(0)
		for i := range int64(flappingEnd) {
			now := flappingBase + i*flappingStep
			f.write(i, now)
			if stopped <= 0 && rng.IntN([]int{400, 60}[seed%2]) == 0 {
				stopped = []int64{3, 30}[rng.IntN(2)] + rng.Int64N(100)
				if x := &f.partitions[rng.IntN(len(f.partitions))]; !x.up { // it is back before anybody looks
					x.turns = i + stopped/2
				}
			}
			if stopped--; stopped > 0 {
				continue
			}
			if stopped == 0 && rng.IntN(2) == 0 {
				f.contact = began()
				f.contact.restarts(time.Unix(0, now), f.since, len(f.partitions))
				f.contact.rests(time.Unix(0, now))
			}
			stopped = 0
			f.contact.wakes(time.Unix(0, now+5))
			f.fetch(now + 5)
			var found []stream.Violation
			for range f.speed {
				b := f.next()
				if b == nil {
					break
				}
				found = append(found, f.take(now+5, b)...)
			}
			found = append(found, f.take(now+6, nil)...)
			for _, v := range found {
				t.Errorf("seed %d, max_transaction %v, idle_after %v: %v %v after %v, coverage complete: %v", seed, longest, idle, v.Kind,
					v.Txns, time.Duration(now-flappingBase), f.history.Complete())
			}
			f.contact.rests(time.Unix(0, now+6))
		}
		if !f.history.Complete() {
			lost++
			t.Logf("seed %d, max_transaction %v, idle_after %v, %d producers, lane %d, %d at once, of %d: coverage is lost: %+v", seed,
				longest, idle, f.producers, f.lane, f.most, fits, f.history.OrderCounts())
		}
	}
	if lost > 1 { // a partition was away for long, and max_transaction is short
		t.Errorf("coverage was lost in %d", lost)
	}
}
