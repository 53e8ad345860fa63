package streamtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/segment"
	"github.com/isowatch/isowatch/window/stream"
)

// A scene is what leads to cuts of some kind.
type scene struct {
	name             string
	kind             segment.Kind
	times            bool
	fences, readsAll int  // in percent of the transactions
	still            bool // a session that did something once, and is waited for ever after
}

var scenes = []scene{
	{name: "clock", kind: segment.Clock, times: true},
	{name: "snapshot", kind: segment.Snapshot, readsAll: 50},
	{name: "fence", kind: segment.Fence, fences: 45},
	{name: "fence and clock", kind: segment.Fence, times: true, fences: 45},
	{name: "limit", kind: segment.Limit},
	{name: "limit with times", kind: segment.Limit, times: true, still: true},
}

// realTimeOf tells whether a level needs times.
func realTimeOf(l verdict.Level) bool {
	return l == verdict.SSER || l == verdict.StrongSI || l == verdict.LIN
}

// draw has a database execute transactions one after the other, and tell about one of them
// wrongly what it read: what the key held a few writes before. They leave the order
// in which they were executed.
func (sc *scene) draw(seed uint64, l verdict.Level) (*topic, stream.Config) {
	rng := rand.New(rand.NewPCG(seed, 91))
	n, sessions, keys := 90+rng.IntN(60), 2+rng.IntN(3), 2+rng.IntN(2)
	if sc.fences > 0 {
		n += 100
	}
	tp := &topic{levels: []verdict.Level{l}, unique: true, longest: 60,
		assume: record.Assumptions{Coverage: []record.Coverage{record.CoverageComplete, record.CoveragePartial}[rng.IntN(2)], Initial: record.InitialAbsent}}
	if !sc.times {
		tp.assume.Clock = record.ClockIgnore
	}
	wrong, values, seldom := rng.IntN(n), int64(0), 2*rng.IntN(2)
	if rng.IntN(4) == 0 {
		wrong = -1
	}
	written := map[string][]record.Value{}
	ended, seq := map[string]int64{}, map[string]int64{}
	var log []sent
	for i := range n {
		x := record.Transaction{DB: record.DefaultDB, Session: fmt.Sprint("s", rng.IntN(sessions)), ID: fmt.Sprint("T", i), HasSeq: true}
		if sc.still && i == 0 {
			x.Session = "still"
		}
		lag := 0
		if i == wrong {
			lag = 1 + rng.IntN(3)
		}
		value := func(key string) record.Value {
			at := len(written[key]) - 1 - lag
			if rng.IntN(2) == 0 {
				lag = 0 // the others are as they are
			}
			if at < 0 {
				return record.Null
			}
			return written[key][at]
		}
		read := func(key string) { x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: key, Value: value(key)}) }
		write := func(key string) {
			values++
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: key, Value: record.Int(values)})
		}
		key := func() string { return fmt.Sprint("k", rng.IntN(keys)) }
		switch p := rng.IntN(100); {
		case p < sc.fences:
			lag = 0
			read("fence")
			write("fence")
		case p < sc.readsAll:
			for k := range keys {
				read(fmt.Sprint("k", k))
			}
		default:
			for range 1 + rng.IntN(2) {
				k := key()
				if slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Key == k }) || l == verdict.LIN && len(x.Ops) > 0 {
					continue
				}
				if sc.readsAll > 0 || rng.IntN(4) > 0 {
					read(k)
				}
				if rng.IntN(3) > 0 {
					write(k)
				}
			}
		}
		takes := rng.IntN(2) == 0
		switch rng.IntN(60) + seldom {
		case 0:
			x.Status = record.Unknown
		case 1:
			x.Status, takes = record.Aborted, false
		default:
			takes = true
		}
		for _, op := range x.Ops {
			if takes && op.Kind == record.Write {
				written[op.Key] = append(written[op.Key], op.Value)
			}
		}
		x.Seq = seq[x.Session]
		seq[x.Session]++
		at := int64(i) + 1
		if sc.times {
			now := int64(i+10) * 10
			x.HasTimes, x.Start, x.End = true, max(ended[x.Session]+1, now-rng.Int64N(25)), now+1+rng.Int64N(8)
			ended[x.Session] = x.End
			at = x.End
		}
		log = append(log, sent{x, at})
	}
	tp.logs = [][]sent{log}
	cfg := tp.config()
	cfg.Segment, cfg.Overlap = 12+rng.IntN(20), 6+rng.IntN(10)
	if sc.fences > 0 { // a key has to be met often until it is taken for one
		cfg.Segment, cfg.Overlap = 50+rng.IntN(30), 12+rng.IntN(12)
	}
	return tp, cfg
}

// part is the topic with some of its transactions, of which nobody knows what was before.
func (t *topic) part(from, to uint64) *topic {
	s := *t
	s.logs = [][]sent{t.logs[0][from:to]}
	s.assume.Coverage = record.CoveragePartial
	return &s
}

// readsOfForgotten tells whether some transaction may have read what was forgotten: what had
// been overwritten, and lies further back than the shortest overlap.
func (t *topic) readsOfForgotten(overlap int) bool {
	log := t.logs[0]
	wrote := map[record.Op]int{} // where a value was written
	over := map[string][]int{}   // where a key was
	for i := range log {
		for _, op := range log[i].txn.Ops {
			switch {
			case op.Kind == record.Write:
				wrote[record.Op{Key: op.Key, Value: op.Value}] = i
				over[op.Key] = append(over[op.Key], i)
			default:
				at, ok := wrote[record.Op{Key: op.Key, Value: op.Value}]
				if !ok {
					at = -1
				}
				if i-at > overlap && slices.ContainsFunc(over[op.Key], func(n int) bool { return n > at && n < i }) {
					return true
				}
			}
		}
	}
	return false
}

// At every kind of cut nothing is told at any level that the whole history has not done. What is
// said to be complete for a level is: an anomaly in a stretch of which that is said is found, and
// where it is said of all of them the verdict is that of the whole, but for reads of what is forgotten
// (docs/windows.md). And it is said where the documentation says so.
func TestCutsAndLevels(t *testing.T) {
	for _, sc := range scenes {
		for _, l := range verdict.Levels() {
			if realTimeOf(l) && !sc.times {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", sc.name, l), func(t *testing.T) {
				t.Parallel()
				m := &cell{sc: &sc, level: l}
				for n := range 2 + *histories/2 {
					seed := *seedFrom + uint64(n)
					tp, cfg := sc.draw(seed, l)
					r := run{topic: tp, cfg: cfg, batch: 1 + int(seed)%9, seed: seed, kill: int(seed%2) * 5}
					o, err := r.play()
					if err != nil {
						t.Fatalf("seed %d: %v\n%v", seed, err, tp)
					}
					if w := m.check(tp, cfg, o); w != nil {
						t.Errorf("seed %d, segment %d, overlap %d: %s: %s\n%+v\n%v", seed, cfg.Segment, cfg.Overlap, w.class, w.says, o.stretches, tp)
						return
					}
				}
				m.judge(t)
			})
		}
	}
}

// claims is what docs/windows.md says at most of stretches between such cuts.
func (sc *scene) claims(l verdict.Level, cuts [4]uint64) stream.Completeness {
	strong := l == verdict.SI || l == verdict.SER
	switch {
	case !strong && !realTimeOf(l):
		return stream.Partial
	case strong && cuts[segment.Fence]+cuts[segment.Snapshot] == 0:
		return stream.AssumingRealTime
	}
	return stream.Complete
}

// cell is what was seen of a level at a kind of cut.
type cell struct {
	sc    *scene
	level verdict.Level

	cuts                        [4]uint64
	stretches, complete, found  int
	wholly, violated, forgotten int // streams of which all is complete; violated ones of them; reads of what is forgotten
}

func (m *cell) check(tp *topic, cfg stream.Config, o *outcome) *wrong {
	whole := tp.whole()
	if w := sound(o, whole); w != nil {
		return w
	}
	for k, n := range o.stats.Cuts {
		m.cuts[k] += n
	}
	told, all := o.results[0].Outcome == verdict.Violated, true
	excused := tp.readsOfForgotten(cfg.Overlap)
	for _, s := range o.stretches {
		m.stretches++
		if s.At(m.level) == stream.Partial {
			all = false
			continue
		}
		m.complete++
		if s.Cut && s.At(m.level) > m.sc.claims(m.level, o.stats.Cuts) {
			return is("more is claimed than documented", "%v of %+v", s.At(m.level), s)
		}
		if part := tp.part(s.From, s.To).whole()[m.level]; part.Outcome == verdict.Violated && !told && !excused {
			return is("missed in a stretch", "from %d to %d: %+v", s.From, s.To, part.Violations)
		}
	}
	if told {
		m.found++
	}
	if !all {
		return nil
	}
	m.wholly++
	if whole[m.level].Outcome != verdict.Violated {
		return nil
	}
	m.violated++
	if !told && excused {
		m.forgotten++
	} else if !told {
		return is("missed", "every stretch is complete, but the whole is violated: %+v", whole[m.level].Violations)
	}
	return nil
}

// judge checks that the cell was tried, and that what the documentation calls complete was.
func (m *cell) judge(t *testing.T) {
	t.Logf("cuts %v; %d of %d stretches are complete, %d streams wholly; of these %d violated, %d by reads of what is forgotten; %d found",
		m.cuts, m.complete, m.stretches, m.wholly, m.violated, m.forgotten, m.found)
	if *histories >= 40 && m.cuts[m.sc.kind] == 0 {
		t.Errorf("no cut was by %v", m.sc.kind)
	}
	claimed := m.sc.claims(m.level, m.cuts) != stream.Partial && m.sc.kind != segment.Limit
	if *histories >= 40 && claimed && (m.wholly == 0 || m.complete == 0 || m.violated-m.forgotten == 0) {
		t.Error("nothing of which something is claimed was tried")
	}
}
