package streamtest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/stream"
)

// trouble is what happens to a topic and to who reads it.
func (t *topic) trouble(rng *rand.Rand) (*topic, stream.Config) {
	s := *t
	s.logs = slices.Clone(t.logs)
	s.assume.Coverage = record.CoveragePartial
	for p, log := range t.logs {
		var out []sent
		for i, r := range log {
			if rng.IntN(8) > 0 { // else it is lost
				out = append(out, r)
			}
			if i > 0 && rng.IntN(8) == 0 { // delivered again
				out = append(out, sent{log[rng.IntN(i+1)].txn, r.at})
			}
		}
		if n := len(out); n > 1 && rng.IntN(3) == 0 { // late
			i := rng.IntN(n - 1)
			out = append(slices.Delete(out, i, i+1), sent{out[i].txn, out[n-1].at})
		}
		s.logs[p] = out
	}
	c := s.tight(rng)
	switch rng.IntN(4) {
	case 0:
		c.Order.MaxBuffered = 1 + rng.IntN(3)
	case 1:
		c.Order.MaxSessions = 2
	case 2:
		c.Order.MaxRemembered = 2
	case 3:
		c.MaxSeeds, c.MaxKeys = 1, 1
	}
	return &s, c
}

// Records that are lost, late or delivered again, in too little memory: nothing is
// told that the whole history has not done.
func TestTroubledStreamsAccuseNobody(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique {
			return nil // unseen writers are taken not to repeat values
		}
		whole := tp.whole()
		rng := rand.New(rand.NewPCG(seed, 63))
		troubled, cfg := tp.trouble(rng)
		r := run{topic: troubled, cfg: cfg, batch: 1 + rng.IntN(5), seed: seed, kill: 20 * rng.IntN(2), sampling: rng.IntN(2) == 0}
		o, err := r.play()
		if err != nil {
			return is("broken", "%v\nread:\n%v", err, troubled)
		}
		y.add(o)
		if w := sound(o, whole); w != nil {
			w.says += fmt.Sprintf("\nsegment %d, overlap %d, sampling %v; read was\n%v", cfg.Segment, cfg.Overlap, r.sampling, troubled)
			return w
		}
		return nil
	})
}

// beheaded is a topic of which the first records of some sessions are lost, so that their
// first number shows it; nil if that is none. It says, too, by when each session shows it.
func (t *topic) beheaded(rng *rand.Rand) (out *topic, shown int64) {
	s := *t
	s.logs = make([][]sent, len(t.logs))
	lost, longest := 0, t.longest
	base := rng.Int64N(2)
	for p, log := range t.logs {
		of := map[string][]int{}
		for i, r := range log {
			of[r.txn.Session] = append(of[r.txn.Session], i)
		}
		gone := make([]bool, len(log))
		for _, session := range slices.Sorted(maps.Keys(of)) {
			own := of[session]
			least := int(record.SeqFirstMax + 1 - base)
			if len(own) <= least || rng.IntN(3) == 0 {
				continue
			}
			n := least + rng.IntN(len(own)-least)
			began := int64(math.MaxInt64)
			for _, i := range own[:n] {
				gone[i] = true
				began = min(began, log[i].txn.Start)
			}
			lost += n
			longest = max(longest, log[own[n]].txn.End-began)
		}
		for i, r := range log {
			if r.txn.Seq += base; !gone[i] {
				s.logs[p] = append(s.logs[p], r)
			}
		}
	}
	if lost == 0 {
		return nil, 0
	}
	return &s, longest
}

// Where all was to be there, and the first records of sessions are lost, nothing is told that
// the whole history has not done, as long as what is left of each session comes within
// max_transaction of what is lost: it shows that something is.
func TestLostHeadsAccuseNobody(t *testing.T) {
	var mu sync.Mutex
	robbed, told := 0, 0
	t.Cleanup(func() {
		if t.Logf("%d streams with lost heads, %d anomalies told of them", robbed, told); robbed == 0 || told == 0 && *histories >= 40 {
			t.Error("no head was lost, or nothing told")
		}
	})
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique || tp.assume.Coverage != record.CoverageComplete {
			return nil
		}
		whole := tp.whole()
		for i := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, 70+i))
			left, shown := tp.beheaded(rng)
			if left == nil {
				continue
			}
			cfg := left.config()
			if rng.IntN(3) > 0 {
				cfg = left.tight(rng)
			}
			cfg.MaxTransaction = time.Duration(shown + 2*tp.assume.MaxSkew + tp.lateness + int64(cfg.Every))
			r := run{topic: left, cfg: cfg, batch: 1 + rng.IntN(5), seed: seed, kill: 20 * rng.IntN(2)}
			o, err := r.play()
			if err != nil {
				return is("broken", "%v\nread:\n%v", err, left)
			}
			y.add(o)
			mu.Lock()
			robbed, told = robbed+1, told+len(o.found)
			mu.Unlock()
			if o.stats.Losses[stream.LostGap] == 0 || !slices.ContainsFunc(o.stretches, func(s stream.Stretch) bool { return s.Partial != 0 }) {
				return is("complete", "heads are lost, and that is not noted: %v %+v\nread:\n%v", o.stats.Losses, o.stretches, left)
			}
			if w := sound(o, whole); w != nil {
				w.says += fmt.Sprintf("\nsegment %d, overlap %d; read was\n%v", cfg.Segment, cfg.Overlap, left)
				return w
			}
		}
		return nil
	})
}

// Where sessions are left out, at one time or another, nothing is told that the whole
// history has not done. What is left out is a loss, and in no stretch that is complete.
func TestSampledStreamsAccuseNobody(t *testing.T) {
	var mu sync.Mutex
	left, told := 0, 0
	t.Cleanup(func() {
		if t.Logf("%d streams with something left out, %d anomalies told of them", left, told); left == 0 || told == 0 && *histories >= 40 {
			t.Error("nothing was left out, or nothing told")
		}
	})
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique {
			return nil // unseen writers are taken not to repeat values
		}
		whole := tp.whole()
		rng := rand.New(rand.NewPCG(seed, 67))
		cfg := tp.config()
		if rng.IntN(3) > 0 {
			cfg = tp.tight(rng)
		}
		r := run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(3), seed: seed, kill: 20 * rng.IntN(2), sampling: true}
		o, err := r.play()
		if err != nil {
			return is("broken", "%v", err)
		}
		y.add(o)
		if o.stats.Losses[stream.LostSample] > 0 {
			mu.Lock()
			left, told = left+1, told+len(o.found)
			mu.Unlock()
			if len(o.stretches) > 0 && !slices.ContainsFunc(o.stretches, func(s stream.Stretch) bool { return s.Partial != 0 }) {
				return is("complete", "something was left out, and every stretch is complete: %+v", o.stretches)
			}
		}
		return sound(o, whole)
	})
}

// The same entries make the same History, whatever was lost, late, or left out, and
// however often it was made again from a checkpoint.
func TestRestartsChangeNothing(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		rng := rand.New(rand.NewPCG(seed, 68))
		troubled, cfg := tp.trouble(rng)
		r := run{topic: troubled, cfg: cfg, batch: 1 + rng.IntN(5), seed: seed, sampling: rng.IntN(2) == 0}
		var first *outcome
		for way := range uint64(3) {
			r.luck, r.kill = way, []int{0, 40, 90}[way]
			o, err := r.play()
			if err != nil {
				return is("broken", "%v", err)
			}
			y.add(o)
			if o.stats.Losses[stream.LostStale] > 0 {
				continue // what came long ago and comes again: its id is not remembered after a restart, which is a loss
			}
			if first == nil {
				first = o
				continue
			}
			if !slices.Equal(first.ids(), o.ids()) {
				return is("other anomalies", "kills %d: %v; at first %v", r.kill, o.ids(), first.ids())
			}
			for i := range o.results {
				if o.results[i].Outcome != first.results[i].Outcome {
					return is("other verdicts", "kills %d: %v: %v, at first %v", r.kill, o.results[i].Level, o.results[i].Outcome, first.results[i].Outcome)
				}
			}
			if o.stats != first.stats || !slices.Equal(o.stretches, first.stretches) {
				return is("other counts", "kills %d: %+v %+v, at first %+v %+v", r.kill, o.stats, o.stretches, first.stats, first.stretches)
			}
		}
		return nil
	})
}

// An anomaly whose transactions an engine has all at once is found: in histories
// that keep real time every one that was planted, if segment and overlap are longer
// than it, wherever the cuts fall; and nobody else is accused.
func TestPlantedAnomaliesAreFoundAcrossCuts(t *testing.T) {
	total := &tally{}
	t.Cleanup(func() { t.Log(total) })
	for _, name := range generate.Anomalies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range 1 + *histories/20 {
				seed := *seedFrom + uint64(n)
				rng := rand.New(rand.NewPCG(seed, 64))
				g, err := generate.New(generate.Config{Level: verdict.SSER, Seed: seed, Anomaly: name, Planted: 5, Transactions: 400, Keys: 8 + rng.IntN(30), Sessions: 4 + rng.IntN(5),
					Workload: []generate.Workload{generate.General, generate.BlindW, generate.Mini}[rng.IntN(3)], AbortRate: float64(rng.IntN(2)) * 0.1})
				if err != nil {
					t.Fatal(err)
				}
				tp := &topic{levels: []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.PC, verdict.SI, verdict.SER, verdict.SSER},
					unique: true, lateness: int64(500 * time.Microsecond)}
				var txns []record.Transaction
				for x := range g.Transactions() {
					txns = append(txns, x)
					tp.longest = max(tp.longest, x.End-x.Start)
				}
				planted := g.Planted()
				span := 0
				groups := map[string]int{}
				for i, p := range planted {
					first, last := len(txns), 0
					for j, x := range txns {
						if slices.Contains(p.Transactions, x.ID) {
							first, last = min(first, j), max(last, j)
						}
					}
					span = max(span, last-first+1)
					for _, id := range p.Transactions {
						groups[id] = i + 1
					}
				}
				tp.assume = record.Assumptions{Coverage: []record.Coverage{record.CoverageComplete, record.CoveragePartial}[rng.IntN(2)]}
				if name == "thin-air-read" {
					// Whether a value has come out of thin air is known after longer than a segment
					// lasts. If initial values are any, the read of another one is forgotten then,
					// and this may have been it.
					tp.assume.Initial = record.InitialAbsent
				}
				tp.logs = publish(rng, txns, 1+rng.IntN(3), tp.lateness)
				cfg := tp.config()
				cfg.Every = 100 * time.Microsecond
				cfg.Overlap = span + rng.IntN(10)
				cfg.Segment = cfg.Overlap + rng.IntN(40)
				r := run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(40), seed: seed, kill: 5 * rng.IntN(2)}
				o, err := r.play()
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				total.add(o)
				found := map[int]bool{}
				for _, x := range o.found {
					for _, id := range x.alert.Transactions {
						if groups[id] == 0 {
							t.Errorf("seed %d: somebody else is accused: %s", seed, x.alert.JSON())
						}
						found[groups[id]] = true
					}
					if x.err != nil {
						t.Errorf("seed %d: %v", seed, x.err)
					}
				}
				// Of these an unseen writer, or the time before the first record, is an explanation.
				explained := (name == "thin-air-read" || name == "future-read") && tp.assume.Coverage == record.CoveragePartial
				if !explained && len(found) != len(planted) {
					t.Errorf("seed %d, span %d, segment %d, overlap %d, coverage %v: %d of %d found: %v\n%v", seed, span, cfg.Segment, cfg.Overlap, tp.assume.Coverage,
						len(found), len(planted), o.ids(), planted)
				}
				if o.stats.Segments == 0 {
					t.Errorf("seed %d: no segment ended", seed)
				}
			}
		})
	}
}
