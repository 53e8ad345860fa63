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

// Partitions come and go as they like, and so does the monitor. Who writes to one that is away keeps what he has, and
// tries again after twice as long each time, ten seconds at most. Nobody is accused of having read what is still to be
// written, whatever is waited for how long, and whether reading pauses meanwhile.
func TestFlapping(t *testing.T) {
	const base, tenth, partitions = int64(1_700_000_000_000_000_000), int64(100 * time.Millisecond), 3
	lost := 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		longest, idle := time.Duration(1+rng.IntN(30))*time.Second, time.Duration(2+rng.IntN(12))*time.Second
		h := stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: longest, UniqueValues: true, Every: 250 * time.Millisecond,
			Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: idle}})
		waitMax := []int{1 << 20, 500}[seed%2]
		began := func() *contact {
			return &contact{every: 250 * time.Millisecond, waitMax: waitMax}
		}
		c, read := began(), int64(0) // as the journal's mark has it
		type writer struct {
			kept     []record.Transaction
			next     int64 // when he tries again
			tries    int64 // how long after
			upTo, at int   // what there is of the partition, and what was read
			log      []record.Transaction
			arrivals []int64
			up       bool
			turns    int64
		}
		var all [partitions]writer
		for p := range all {
			all[p].up, all[p].turns = true, 100+rng.Int64N(100)
		}
		number, stopped := uint64(0), int64(0)
		take := func(now int64, b *decode.Batch) {
			at := time.Unix(0, now)
			records := 0
			if b != nil {
				records = b.Len()
				c.hears(b.Partition, at)
			}
			left, _ := c.takes(at, records, 0)
			if b != nil {
				read = now - int64(left)
			}
			number++
			h.Take(&stream.Entry{Number: number, Time: now, Partitions: partitions, Batch: b, Returned: left > 0})
			for more := true; more; {
				more = h.Run(100)
				for _, v := range h.Found() {
					t.Fatalf("seed %d, max_transaction %v, idle_after %v: %v %v after %v, coverage complete: %v", seed, longest, idle, v.Kind,
						v.Txns, time.Duration(now-base), h.Complete())
				}
			}
		}
		reads, pauses := c.rests(time.Unix(0, base)), 0
		for i := range int64(2000) {
			now := base + i*tenth
			for p := range all {
				w := &all[p]
				if i >= w.turns && i < 1700 {
					w.up = !w.up
					w.turns = i + 1 + int64(float64(200)*rng.Float64()*rng.Float64()*rng.Float64())
					if w.up {
						w.turns += rng.Int64N(60)
					}
				} else if i >= 1700 {
					w.up = true
				}
				did := func(session string, kind record.OpKind, key string, end int64) record.Transaction {
					return record.Transaction{DB: "d", Session: session, Seq: i, HasSeq: true, HasTimes: true, Start: end - 1, End: end,
						ID: fmt.Sprint(session, "#", i), Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(i)}}}
				}
				w.kept = append(w.kept, did(fmt.Sprint("w", p), record.Write, fmt.Sprint("x", p), now+1),
					did(fmt.Sprint("r", p), record.Read, fmt.Sprint("x", (p+1)%partitions), now+3))
				switch {
				case now < w.next:
				case !w.up:
					w.tries = min(max(tenth, 2*w.tries), int64(10*time.Second))
					w.next = now + w.tries
				default:
					for range w.kept {
						w.arrivals = append(w.arrivals, now+4)
					}
					w.log, w.kept, w.tries = append(w.log, w.kept...), nil, 0
				}
			}
			if stopped == 0 && rng.IntN(400) == 0 {
				stopped = 30 + rng.Int64N(100)
			}
			if stopped--; stopped > 0 {
				continue
			}
			if stopped == 0 && rng.IntN(2) == 0 {
				c = began()
				c.away(time.Unix(0, now), time.Duration(now-read))
				reads = c.rests(time.Unix(0, now))
			}
			stopped = 0
			c.wakes(time.Unix(0, now+5))
			for p := range all {
				w := &all[p]
				if !w.up {
					c.fails(&kafka.PartitionError{Partition: p, Err: io.ErrUnexpectedEOF})
					continue
				}
				if c.works(p, time.Unix(0, now+5)); !reads {
					continue
				}
				var chunk packed.Chunk
				b := &decode.Batch{Partition: p, First: int64(w.at), Next: int64(len(w.log)), CaughtUp: true}
				for ; w.at < len(w.log); w.at++ {
					chunk.Add(&w.log[w.at])
					b.Offsets, b.Arrivals = append(b.Offsets, int64(w.at)), append(b.Arrivals, w.arrivals[w.at])
				}
				b.Block = chunk.Seal()
				b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
				take(now+5, b)
			}
			if reads {
				take(now+6, nil)
			} else {
				pauses++
			}
			reads = c.rests(time.Unix(0, now+6))
		}
		if waitMax < 1<<20 && pauses == 0 {
			t.Errorf("seed %d: reading never pauses", seed)
		}
		if !h.Complete() {
			lost++
		}
	}
	if lost > 4 { // a partition was away for long, and max_transaction is short
		t.Errorf("coverage was lost in %d", lost)
	}
}
