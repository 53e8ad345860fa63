package streamtest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/window/stream"
)

// compare reads a topic with all keys in memory and with few of them, the rest on
// disk, also with kills that take the disk back to where the checkpoint was, and
// tells whether something else was found.
func compare(tp *topic, cfg stream.Config, keys, batch, kill int, seed uint64, y *tally) *wrong {
	var first *outcome
	for way := range uint64(4) {
		c := cfg
		if way > 0 {
			c.MaxKeys = keys
			if way == 2 {
				c.MaxKeys, c.MaxBytes = 0, 1
			}
		}
		r := run{topic: tp, cfg: c, batch: batch, seed: seed*5 + way, kill: []int{0, 0, kill, 2 * kill}[way]}
		o, err := r.play()
		if err != nil {
			return is("broken", "%v", err)
		}
		y.add(o)
		if first == nil {
			first = o
			continue
		}
		if w := r.compare(first, o); w != nil {
			return w
		}
		if o.stats != first.stats {
			return is("other counts", "kills %d: %+v, in memory %+v", r.kill, o.stats, first.stats)
		}
	}
	return nil
}

// What is found does not depend on what is in memory and what on disk: random
// histories that forget all the time.
func TestSameAnomaliesWhereverKeysAre(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		rng := rand.New(rand.NewPCG(seed, 65))
		cfg := tp.tight(rng)
		cfg.MaxSeeds = 1
		return compare(tp, cfg, 1, 1+rng.IntN(9), 30, seed, y)
	})
}

// The same of longer histories with anomalies in them, at every level, with at
// most five keys in memory beside those of a segment.
func TestPlantedAnomaliesWhereverKeysAre(t *testing.T) {
	total := &tally{}
	t.Cleanup(func() {
		t.Log(total)
		if total.spilled == 0 || total.read == 0 || total.found == 0 {
			t.Error("nothing was spilled, read or found")
		}
	})
	for _, name := range generate.Anomalies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range 1 + *histories/20 {
				seed := *seedFrom + uint64(n)
				rng := rand.New(rand.NewPCG(seed, 66))
				g, err := generate.New(generate.Config{Level: verdict.SER, Seed: seed, Anomaly: name, Planted: 5, Transactions: 300, Keys: 20 + rng.IntN(80), Sessions: 4 + rng.IntN(5),
					Workload: []generate.Workload{generate.General, generate.BlindW, generate.Mini}[rng.IntN(3)], AbortRate: float64(rng.IntN(2)) * 0.1, UnknownRate: float64(rng.IntN(2)) * 0.02})
				if err != nil {
					t.Fatal(err)
				}
				tp := &topic{levels: []verdict.Level{verdict.RC, verdict.CC, verdict.SI, verdict.SER}, unique: true, lateness: int64(500 * time.Microsecond),
					assume: record.Assumptions{Coverage: []record.Coverage{record.CoverageComplete, record.CoveragePartial}[rng.IntN(2)]}}
				txns := slices.Collect(g.Transactions())
				for _, x := range txns {
					tp.longest = max(tp.longest, x.End-x.Start)
				}
				tp.logs = publish(rng, txns, 1+rng.IntN(3), tp.lateness)
				cfg := tp.config()
				cfg.Every = 100 * time.Microsecond
				cfg.Overlap = 5 + rng.IntN(15)
				cfg.Segment = cfg.Overlap + rng.IntN(30)
				cfg.MaxSeeds = 5
				if w := compare(tp, cfg, 1+rng.IntN(5), 5+rng.IntN(40), 4, seed, total); w != nil {
					t.Errorf("seed %d: %s: %s", seed, w.class, w.says)
				}
			}
		})
	}
}

// However many keys there are, after each segment only MaxKeys are in memory, and
// those that the new segment has touched.
func TestKeysInMemoryAreBounded(t *testing.T) {
	const keys, overlap, segment = 4000, 20, 100
	g, err := endless.New(endless.Config{Keys: keys, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoverageComplete}, Every: 100 * time.Microsecond, Segment: segment,
		Overlap: overlap, UniqueValues: true, MaxSeeds: 10, MaxKeys: 50}
	h := stream.New(cfg)
	disk := map[string][]byte{}
	most := 0
	for n := range uint64(200) {
		var records []sent
		for range 20 {
			x, _ := g.Next()
			own := *x
			own.DB, own.Ops = record.DefaultDB, slices.Clone(x.Ops)
			records = append(records, sent{own, own.End})
		}
		h.Take(&stream.Entry{Number: n + 1, Time: records[19].at, Partitions: 1, Batch: batch(0, int(n)*20, records)})
		for ended := h.Stats().Segments; h.Run(10); {
			values := make([][]byte, len(h.Needs()))
			for i, key := range h.Needs() {
				values[i] = disk[key]
			}
			if err := h.Answer(values); err != nil {
				t.Fatal(err)
			}
			for kvs := h.Spill(7); len(kvs) > 0; kvs = h.Spill(7) {
				for _, kv := range kvs {
					disk[kv.Key] = kv.Value
				}
				h.Spilled()
			}
			if now := h.Stats().Segments; now > ended { // ten records of eight operations and those asked for ahead have come since
				ended = now
				most = max(most, h.Frontier().Keys)
			}
		}
		if found := h.Found(); len(found) > 0 {
			t.Fatalf("found %+v", found)
		}
	}
	s := h.Frontier()
	t.Logf("at most %d in memory after a segment; %+v; on disk %d", most, s, len(disk))
	// … and the reads that wait from one segment to the next.
	if bound := 50 + 8*(2*overlap+10+20) + 64; most == 0 || most > bound {
		t.Errorf("%d keys in memory after a segment has ended, at most %d were to be", most, bound)
	}
	if s.Total < keys/2 || s.OnDisk < keys/4 || len(disk) < s.OnDisk {
		t.Errorf("%d keys are known, %d of them on disk only, where there are %d", s.Total, s.OnDisk, len(disk))
	}
}
