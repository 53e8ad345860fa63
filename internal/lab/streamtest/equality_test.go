package streamtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/window/stream"
)

var (
	histories = flag.Int("histories", race.Draws(10, 40), "random histories of each kind for each property")
	seedFrom  = seeds.First
)

// kinds are what histories have in them.
var kinds = []struct {
	name string
	cfg  tiny.Config
	// pooled: connections share the names of sessions, so that their transactions overlap.
	pooled bool
}{
	{"unique", tiny.Config{}, false},
	{"long", tiny.Config{Txns: 16, Keys: 3, Sessions: 5, Ops: 3}, false},
	{"weak", tiny.Config{Txns: 7, Ops: 5, Weak: 100}, false},
	{"lists", tiny.Config{Appends: true, Always: true, Txns: 8}, false},
	{"lists, written as a whole", tiny.Config{Appends: true, Always: true, Whole: 20, Txns: 8}, false},
	{"unknown", tiny.Config{Keys: 2, Unknown: true, Updates: 50, Txns: 8}, false},
	{"lists, unknown", tiny.Config{Appends: true, Always: true, Unknown: true, Updates: 30}, false},
	{"duplicates", tiny.Config{Keys: 2, Duplicates: true, Values: 2, Always: true, Updates: 50}, false},
	{"put back", tiny.Config{Keys: 2, Duplicates: true, Values: 2, Back: 50, Unknown: true}, false},
	{"deletes", tiny.Config{Keys: 2, Ops: 3, Common: 40, Updates: 50, Txns: 7}, false},
	{"deletes, weak", tiny.Config{Common: 40, Weak: 100, Txns: 7}, false},
	{"one key", tiny.Config{OneKey: 100, Unknown: true}, false},
	{"all", tiny.Config{Duplicates: true, Values: 2, Unknown: true, Appends: true, Updates: 30, Txns: 7}, false},
	{"one key, duplicates", tiny.Config{OneKey: 100, Keys: 2, Duplicates: true, Values: 2, Always: true, Txns: 8}, false},
	{"one key, duplicates, pooled", tiny.Config{OneKey: 100, Keys: 2, Duplicates: true, Values: 2, Always: true, Sessions: 2, Txns: 7}, true},
	{"pooled", tiny.Config{Keys: 2, Sessions: 2, Ops: 2, Txns: 7, Weak: 30}, true},
	{"pooled, unknown", tiny.Config{Keys: 2, Unknown: true, Sessions: 3, Txns: 8}, true},
}

var levelSets = [][]verdict.Level{
	{verdict.SI}, {verdict.SER}, {verdict.SSER}, {verdict.StrongSI}, {verdict.RC}, {verdict.CC, verdict.RA}, {verdict.PC},
	{verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER, verdict.SSER},
	{verdict.StrongSI, verdict.SER, verdict.G1},
	verdict.Levels(),
}

// draw makes a topic of a random history.
func draw(seed uint64, cfg tiny.Config, pooled bool) (*topic, bool) {
	rng := rand.New(rand.NewPCG(seed, 41))
	cfg.Times, cfg.Aborted, cfg.Mutations, cfg.Partial = true, true, rng.IntN(3), rng.IntN(3) == 0
	cfg.Always = cfg.Always && !cfg.Partial
	s := tiny.Random(rng, cfg)
	if pooled {
		overlap(rng, s.Txns)
	}
	def := record.Assumptions{}.Override(s.Header)
	t := &topic{levels: levelSets[rng.IntN(len(levelSets))], assume: record.Assumptions{Initial: def.Initial, Coverage: def.Coverage, MaxSkew: def.MaxSkew}}
	if pooled {
		t.levels = []verdict.Level{verdict.StrongSI, verdict.SSER}
	}
	if len(s.Txns) == 0 || !tiny.Possible(s.Txns, def.MaxSkew) {
		return nil, false
	}
	timed := s.Txns[0].HasTimes
	if timed && rng.IntN(5) == 0 {
		t.assume.Clock = record.ClockIgnore
	}
	t.levels = slices.DeleteFunc(slices.Clone(t.levels), func(l verdict.Level) bool {
		real := l == verdict.SSER || l == verdict.StrongSI || l == verdict.LIN
		return real && (!timed || t.assume.Clock == record.ClockIgnore) || l == verdict.LIN && !slices.Contains(oracle.Levels(s.Txns), l)
	})
	if len(t.levels) == 0 {
		return nil, false
	}
	if timed && rng.IntN(2) == 0 {
		t.lateness = 1 + rng.Int64N(8)
	}
	t.unique = tiny.Unique(s.Txns, def.Initial)
	if t.shown = timed && !t.unique && rng.IntN(2) == 0; t.shown {
		s.Txns = shown(s.Txns)
	}
	for _, x := range s.Txns {
		if x.HasTimes {
			t.longest = max(t.longest, x.End-x.Start, 1)
		}
	}
	if !timed {
		t.longest = int64(len(s.Txns)) + 1
	}
	t.logs = publish(rng, s.Txns, 1+rng.IntN(3), t.lateness)
	t.spaced = rng.IntN(2) == 0
	return t, true
}

// shown puts two transactions in front of all others which show that values repeat, in a key of their own: who
// believes that they don't knows better from then on.
func shown(txns []record.Transaction) []record.Transaction {
	var out []record.Transaction
	for i := range 2 {
		out = append(out, record.Transaction{DB: record.DefaultDB, Session: fmt.Sprint(showing, i), ID: fmt.Sprint(showing, i), HasSeq: true, HasTimes: true, Start: 1, End: 1,
			Ops: []record.Op{{Kind: record.Write, Key: showing, Value: record.Int(1)}}})
	}
	for _, x := range txns {
		x.Start, x.End = x.Start+20, x.End+20
		out = append(out, x)
	}
	return out
}

const showing = "shows"

// overlap has transactions begin or end while others of their session go on; few at times
// before them.
func overlap(rng *rand.Rand, txns []record.Transaction) {
	last := map[string]*record.Transaction{} // of a session
	for i := range txns {
		x := &txns[i]
		if p := last[x.Session]; p != nil && x.HasTimes {
			switch rng.IntN(6) {
			case 0, 1, 2:
				x.Start = p.Start + rng.Int64N(max(1, x.Start-p.Start))
			case 3:
				p.End = max(p.End, x.Start+rng.Int64N(x.End-x.Start+1))
			case 4:
				p.End = max(p.End, x.End+1+rng.Int64N(10))
			}
		}
		last[x.Session] = x
	}
}

// A wrong is what is wrong with a stream.
type wrong struct{ class, says string }

func is(class, format string, args ...any) *wrong { return &wrong{class, fmt.Sprintf(format, args...)} }

// tally counts what was tried.
type tally struct {
	mu                              sync.Mutex
	streams, kills, segments, found int
	spilled, read                   uint64
	outcomes                        [4]int
}

func (y *tally) add(o *outcome) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.streams++
	y.kills += o.kills
	y.segments += int(o.stats.Segments)
	y.found += len(o.found)
	y.spilled += o.spilled
	y.read += o.read
	for _, r := range o.results {
		y.outcomes[r.Outcome]++
	}
}

func (y *tally) String() string {
	return fmt.Sprintf("%d streams, %d kills, %d segments ended, %d alerts, %d keys spilled, %d read; verdicts: %d satisfied, %d violated, %d unknown",
		y.streams, y.kills, y.segments, y.found, y.spilled, y.read, y.outcomes[verdict.Satisfied], y.outcomes[verdict.Violated], y.outcomes[verdict.Unknown])
}

// sound checks what a stream said against the batch verdicts: nothing more, and
// all of it proved, but for what is withheld as its proof is forgotten.
func sound(o *outcome, whole map[verdict.Level]verdict.Result) *wrong {
	for _, t := range o.found {
		if t.err != nil && !t.withheld {
			return is("unproved "+t.alert.Name, "%v\n%s", t.err, t.alert.JSON())
		}
		for _, name := range t.alert.Breaks {
			l, _ := verdict.ParseLevel(name)
			if r, asked := whole[l]; asked && r.Outcome == verdict.Satisfied {
				return is("a false alarm at "+name, "the whole is satisfied; %s", t.alert.JSON())
			}
		}
	}
	for _, r := range o.results {
		if r.Outcome == verdict.Violated && whole[r.Level].Outcome == verdict.Satisfied {
			return is(fmt.Sprintf("a false verdict at %v", r.Level), "the whole is satisfied; %+v", r)
		}
	}
	return nil
}

// equal checks that the stream is not satisfied with what the batch engine is not.
func equal(o *outcome, tp *topic, whole map[verdict.Level]verdict.Result) *wrong {
	for _, r := range o.results {
		if w := whole[r.Level]; w.Outcome == verdict.Violated && r.Outcome == verdict.Satisfied && !excused(o, tp, r.Level) {
			return is(fmt.Sprintf("missed %v", r.Level), "the whole is violated: %+v", w.Violations)
		}
	}
	return nil
}

// excused: the stream says itself that at this level something may be missed, as a
// transaction that did not commit, or may not have, ended after one that follows it in its
// session.
func excused(o *outcome, tp *topic, l verdict.Level) bool {
	all := tp.all()
	behind := func(p record.Transaction) bool {
		return p.Status != record.Committed && p.HasTimes && slices.ContainsFunc(all, func(x record.Transaction) bool {
			return x.Session == p.Session && x.Seq > p.Seq && x.End < p.End
		})
	}
	return slices.ContainsFunc(all, behind) &&
		slices.ContainsFunc(o.stretches, func(s stream.Stretch) bool { return s.At(l) == stream.Partial && s.Partial&stream.WhyTimes != 0 })
}

// each runs a property on random topics of every kind.
func each(t *testing.T, property func(seed uint64, tp *topic, y *tally) *wrong) {
	total := &tally{}
	t.Cleanup(func() { t.Log(total) })
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for n := range *histories {
				seed := *seedFrom + uint64(n)
				tp, ok := draw(seed, k.cfg, k.pooled)
				if !ok {
					continue
				}
				if w := property(seed, tp, total); w != nil {
					small, again := tp.reduced(w.class, func(tp *topic) *wrong { return property(seed, tp, &tally{}) })
					if again == nil {
						small, again = tp, w
					}
					t.Fatalf("seed %d: %s: %s\n%v", seed, again.class, again.says, small)
				}
			}
		})
	}
}

// reduced is a smaller topic of which the same is wrong.
func (t *topic) reduced(class string, property func(*topic) *wrong) (*topic, *wrong) {
	bad := func(t *topic) *wrong {
		if w := property(t); w != nil && w.class == class {
			return w
		}
		return nil
	}
	small, last := t, bad(t)
	for again := last != nil; again; {
		again = false
		for _, s := range small.smaller() {
			if w := bad(s); w != nil {
				small, last, again = s, w, true
				break
			}
		}
	}
	return small, last
}

// smaller are the topics with one thing less.
func (t *topic) smaller() []*topic {
	var out []*topic
	edit := func(p int, f func(log []sent) []sent) {
		s := *t
		s.logs = slices.Clone(t.logs)
		s.logs[p] = f(slices.Clone(t.logs[p]))
		next := map[string]int64{} // or there would be gaps
		for i := range s.logs[p] {
			x := &s.logs[p][i].txn
			x.Seq = next[x.Session]
			next[x.Session]++
		}
		out = append(out, &s)
	}
	for p, log := range t.logs {
		for i := range log {
			if strings.HasPrefix(log[i].txn.ID, showing) {
				continue
			}
			edit(p, func(log []sent) []sent { return slices.Delete(log, i, i+1) })
			for j := range log[i].txn.Ops {
				edit(p, func(log []sent) []sent {
					log[i].txn.Ops = slices.Delete(slices.Clone(log[i].txn.Ops), j, j+1)
					return log
				})
			}
		}
	}
	if len(t.levels) > 1 {
		for i := range t.levels {
			s := *t
			s.levels = slices.Delete(slices.Clone(t.levels), i, i+1)
			out = append(out, &s)
		}
	}
	return out
}

// Where nothing is forgotten a stream's verdicts are those of the batch engine,
// whatever the order in which partitions are read, in whatever pieces, and with
// kills between.
func TestStreamAndBatchAgree(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		whole := tp.whole()
		for way := range uint64(2) {
			r := run{topic: tp, cfg: tp.config(), batch: 1 + int(seed+way)%7, seed: seed + way, kill: int(way) * 40}
			o, err := r.play()
			if err != nil {
				return is("broken", "%v", err)
			}
			y.add(o)
			if o.stats.Segments > 0 || o.lost {
				return is("forgot", "%d segments ended, losses %v", o.stats.Segments, o.stats.Losses)
			}
			if w := sound(o, whole); w != nil {
				return w
			}
			if w := equal(o, tp, whole); w != nil {
				return w
			}
		}
		return nil
	})
}

// tight is a configuration that forgets all the time.
func (t *topic) tight(rng *rand.Rand) stream.Config {
	c := config{t.config()}
	c.Segment, c.Overlap, c.Every = 1+rng.IntN(4), 1+rng.IntN(3), 2
	if rng.IntN(3) == 0 {
		c.MaxSeeds = 1
	}
	if rng.IntN(3) == 0 { // some count as several
		c.Heavy, c.Segment, c.Overlap = 100, 2*c.Segment, 2*c.Overlap
	}
	if rng.IntN(3) == 0 { // what an engine may do is used up at some point
		c.little(rng)
		if c.Segment = 1 + rng.IntN(20); c.Overlap > c.Segment {
			c.Overlap = c.Segment
		}
	}
	return c.Config
}

// Where the engine changes all the time, nothing is told that the whole history
// has not done, and all of it is proved.
func TestForgettingStreamsAccuseNobody(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		whole := tp.whole()
		rng := rand.New(rand.NewPCG(seed, 61))
		r := run{topic: tp, cfg: tp.tight(rng), batch: 1 + rng.IntN(5), seed: seed}
		o, err := r.play()
		if err != nil {
			return is("broken", "%v", err)
		}
		y.add(o)
		if o.lost {
			return is("lost", "something is said to be missing: %v", o.stats.Losses)
		}
		return sound(o, whole)
	})
}

type config struct{ stream.Config }

// little lets an engine do so little that it gives up, in some histories at once and in some near
// the end.
func (c *config) little(rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0:
		c.BytesMax = 1 + rng.IntN(1000)
	case 1:
		c.BytesMax = 1 + rng.IntN(8000)
	default:
		c.Steps = 1 + rng.IntN(8)
	}
	c.Whole = rng.IntN(2) == 0
}

// Where an engine has used up what it may do, what it tells is true and proved, and it does not take
// for satisfied what is not.
func TestLittleBudgetsAccuseNobodyAndSatisfyNobody(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		whole := tp.whole()
		rng := rand.New(rand.NewPCG(seed, 57))
		cfg := config{tp.config()}
		cfg.Overlap = 1 << 20 // one segment
		cfg.little(rng)
		r := run{topic: tp, cfg: cfg.Config, batch: 1 + rng.IntN(7), seed: seed, kill: rng.IntN(2) * 40}
		o, err := r.play()
		if err != nil {
			return is("broken", "%v", err)
		}
		y.add(o)
		if w := sound(o, whole); w != nil {
			return w
		}
		return equal(o, tp, whole)
	})
}

// What is found does not depend on the order in which partitions are read, on how
// records are batched, or on kills: the same anomalies have the same ids.
func TestSameAnomaliesHoweverItCame(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		rng := rand.New(rand.NewPCG(seed, 62))
		cfg := tp.tight(rng)
		if rng.IntN(3) == 0 {
			cfg = tp.config()
		}
		var first *outcome
		for way := range uint64(4) {
			r := run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(9), seed: seed*7 + way, kill: []int{0, 0, 40, 90}[way]}
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
		}
		return nil
	})
}
