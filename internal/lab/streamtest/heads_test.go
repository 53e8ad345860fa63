package streamtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
)

// tried is a topic in which other sessions made, before some of the transactions that have taken effect,
// attempts at the same that were aborted.
func (t *topic) tried(rng *rand.Rand) *topic {
	s := *t
	s.logs = slices.Clone(t.logs)
	for _, log := range t.logs {
		for _, r := range log {
			x := r.txn
			if x.Status != record.Committed || !x.HasTimes || rng.IntN(2) == 0 {
				continue
			}
			x.Status, x.Seq, x.ID, x.Session = record.Aborted, 0, "try "+x.ID, "before "+x.ID
			x.Start = max(0, x.Start-rng.Int64N(t.longest+1))
			x.End = x.Start + rng.Int64N(min(r.txn.End-x.Start, t.longest)+1)
			p := rng.IntN(len(s.logs))
			at := x.End + 1
			if t.lateness > 0 {
				at += rng.Int64N(t.lateness + 1)
			}
			s.logs[p] = append(slices.Clone(s.logs[p]), sent{x, at})
		}
	}
	for _, log := range s.logs {
		slices.SortStableFunc(log, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	}
	return &s
}

// joined is a topic of which a monitor reads each partition from some record on, its coverage
// being partial; nil if that leaves nothing out or nothing to be read.
func (t *topic) joined(rng *rand.Rand) *topic {
	s := *t
	s.assume.Coverage, s.from = record.CoveragePartial, make([]int, len(t.logs))
	out, left := 0, 0
	for p, log := range t.logs {
		switch rng.IntN(4) {
		case 0: // as it was kept from its beginning on
		case 1: // all that is there came before
			s.from[p] = len(log)
		default:
			s.from[p] = rng.IntN(len(log) + 1)
		}
		out, left = out+s.from[p], left+len(log)-s.from[p]
	}
	if out == 0 || left == 0 {
		return nil
	}
	return &s
}

// Where partitions are read from their middles, each from another time, nothing is told that the
// whole history has not done: what an aborted attempt wrote may have been committed by one that stands
// before the place from which its partition is read.
func TestPartitionsReadFromTheirMiddlesAccuseNobody(t *testing.T) {
	var mu sync.Mutex
	joined, told := 0, 0
	t.Cleanup(func() {
		if t.Logf("%d streams joined, %d anomalies told of them", joined, told); joined == 0 || told == 0 && *histories >= 40 {
			t.Error("no stream was joined, or nothing told")
		}
	})
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique {
			return nil // unseen writers are taken not to repeat values
		}
		tp = tp.tried(rand.New(rand.NewPCG(seed, 89)))
		whole := tp.whole()
		for i := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 90+i))
			middle := tp.joined(rng)
			if middle == nil {
				continue
			}
			cfg := middle.config()
			if rng.IntN(2) == 0 {
				cfg = middle.tight(rng)
			}
			r := run{topic: middle, cfg: cfg, batch: 1 + rng.IntN(5), seed: seed + i, kill: 20 * rng.IntN(2)}
			o, err := r.play()
			if err != nil {
				return is("broken", "%v\nread:\n%v", err, middle)
			}
			y.add(o)
			mu.Lock()
			joined, told = joined+1, told+len(o.found)
			mu.Unlock()
			if w := sound(o, whole); w != nil {
				w.says += fmt.Sprintf("\nread from %v, segment %d, overlap %d, batch %d; the topic\n%v", middle.from, cfg.Segment, cfg.Overlap, r.batch, middle)
				return w
			}
		}
		return nil
	})
}

// The same of what sessions tell in events, some of it sent again and some never: a partition may be
// read from the midst of a transaction.
func TestEventsReadFromTheirMiddlesAccuseNobody(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique {
			return nil
		}
		rng := rand.New(rand.NewPCG(seed, 94))
		tp = tp.tried(rng).eventful()
		middle := *tp
		middle.assume.Coverage = record.CoveragePartial
		logs := middle.messages(rng)
		if rng.IntN(2) == 0 {
			unsent(rng, logs)
		}
		if rng.IntN(2) == 0 {
			sentAgain(rng, logs)
		}
		cfg := middle.config()
		if rng.IntN(2) == 0 {
			cfg = middle.tight(rng)
		}
		in := intake{run: run{topic: &middle, cfg: cfg, batch: 1 + rng.IntN(12), seed: seed, kill: 20 * rng.IntN(2)}, logs: logs, from: map[int]int64{}, assembly: assemble.Options{MaxTransaction: tp.longest}}
		for p, log := range logs {
			if rng.IntN(3) > 0 {
				in.from[p] = rng.Int64N(int64(len(log)) + 1)
			}
		}
		o, _, err := in.read()
		if err != nil {
			return is("broken", "%v\n%v", err, &in)
		}
		y.add(o)
		if w := sound(o, tp.whole()); w != nil {
			w.says += fmt.Sprintf("\nread from %v was\n%v", in.from, &in)
			return w
		}
		return nil
	})
}
