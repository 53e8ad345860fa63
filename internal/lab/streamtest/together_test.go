package streamtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
)

// A level is judged as if it were the only one asked for, whichever are asked for with it: in a
// stream, and in a file; and no alert says of a level that it is broken which alone is satisfied.
func TestLevelsTogetherAreLevelsAlone(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		rng := rand.New(rand.NewPCG(seed, 63))
		timed := tp.all()[0].HasTimes && tp.assume.Clock != record.ClockIgnore
		only := *tp
		only.levels = slices.DeleteFunc(verdict.Levels(), func(l verdict.Level) bool {
			real := l == verdict.SSER || l == verdict.StrongSI || l == verdict.LIN
			return rng.IntN(3) == 0 || real && !timed || l == verdict.LIN && !slices.Contains(oracle.Levels(tp.all()), l)
		})
		rng.Shuffle(len(only.levels), func(i, j int) { only.levels[i], only.levels[j] = only.levels[j], only.levels[i] })
		only.unique = tp.unique && rng.IntN(2) == 0
		return only.together(seed, y)
	})
}

// The same of a register, of which lin can be asked: the order of a session is no part of lin,
// whatever a proof at another level looks like that rests on it.
func TestRegistersTogetherAreAlone(t *testing.T) {
	y := &tally{}
	defer func() { t.Log(y) }()
	for n := range 25 * *histories {
		seed := *seedFrom + uint64(n)
		property := func(tp *topic) *wrong { return tp.together(seed, y) }
		if tp := register(seed); property(tp) != nil {
			small, w := tp.reduced(property(tp).class, property)
			t.Fatalf("seed %d: %s: %s\n%v", seed, w.class, w.says, small)
		}
	}
}

// register is what a linearizable register did, but for a few writes that were lost, with few
// values, null among them. In a session, transactions overlap, in any order.
func register(seed uint64) *topic {
	rng := rand.New(rand.NewPCG(seed, 64))
	tick, long, sessions := int64(1+rng.IntN(6)), 4+rng.Int64N(30), 2+rng.IntN(3)
	type done struct {
		txn record.Transaction
		at  int64 // when it took effect, in thousandths
	}
	var did []done
	for range 3 + rng.IntN(8) {
		start := 1000 + tick*rng.Int64N(long)
		end := start + tick*rng.Int64N(6)
		did = append(did, done{record.Transaction{DB: record.DefaultDB, Session: fmt.Sprint("s", rng.IntN(sessions)), HasSeq: true, HasTimes: true, Start: start, End: end},
			(start+rng.Int64N(end-start+1))*1000 + rng.Int64N(1000)})
	}
	slices.SortFunc(did, func(a, b done) int { return cmp.Compare(a.at, b.at) })
	initial, holds, values := record.InitialAbsent, record.Null, 1+rng.IntN(3)
	if rng.IntN(3) == 0 {
		initial, holds = record.InitialZero, record.Int(0)
	}
	for i := range did {
		x := &did[i].txn
		for range 1 + rng.IntN(2) {
			if rng.IntN(2) == 0 {
				x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: "x", Value: holds})
				continue
			}
			value := record.Null
			if n := rng.IntN(values + 1); n > 0 {
				value = record.Int(int64(n - 1))
			}
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: "x", Value: value})
			if rng.IntN(15) > 0 {
				holds = value
			}
		}
		if rng.IntN(10) == 0 {
			x.Status = record.Unknown
		}
		if rng.IntN(20) == 0 {
			x.Start, x.End, x.HasTimes = 0, 0, false
		}
	}
	slices.SortStableFunc(did, func(a, b done) int { return cmp.Compare(a.txn.Start, b.txn.Start) })
	txns, seq := make([]record.Transaction, len(did)), map[string]int64{}
	for i := range did {
		x := did[i].txn
		x.Seq = seq[x.Session]
		seq[x.Session]++
		x.ID = fmt.Sprint(x.Session, "#", x.Seq)
		txns[i] = x
	}
	others := []verdict.Level{verdict.SSER, verdict.SER, verdict.SI, verdict.StrongSI, verdict.PC, verdict.RC}
	return &topic{logs: publish(rng, txns, 1+rng.IntN(2), 10), longest: 6 * tick, lateness: 11, levels: []verdict.Level{verdict.LIN, others[rng.IntN(len(others))]},
		assume: record.Assumptions{Initial: initial, MaxSkew: tick * rng.Int64N(4)}}
}

// together says at which of its levels a topic is judged otherwise than at that alone.
func (t *topic) together(seed uint64, y *tally) *wrong {
	play := func(levels ...verdict.Level) (*outcome, error) {
		only := *t
		only.levels = levels
		cfg := only.config()
		cfg.Every = 1
		o, err := (&run{topic: &only, cfg: cfg, batch: 1 + int(seed)%7, seed: seed}).play()
		if err == nil {
			y.add(o)
		}
		return o, err
	}
	judged := func(levels ...verdict.Level) (*outcome, error) {
		opt := incremental.Options{Levels: levels, Assumptions: t.assume}
		if !t.unique {
			opt.UnseenUnique = new(bool)
		}
		e := incremental.New(opt)
		for _, x := range t.all() {
			e.Step(&x, 0)
		}
		return &outcome{results: e.Close()}, nil
	}
	for _, way := range []struct {
		name   string
		levels func(...verdict.Level) (*outcome, error)
	}{{"run", play}, {"check", judged}} {
		all, err := way.levels(t.levels...)
		if err != nil {
			return is("broken", "%v", err)
		}
		alone := map[verdict.Level]verdict.Result{}
		for _, r := range all.results {
			o, err := way.levels(r.Level)
			if err != nil {
				return is("broken", "%v", err)
			}
			if alone[r.Level] = o.results[0]; o.results[0].Outcome != r.Outcome {
				return is(way.name+" at "+r.Level.String(), "%v alone is %v, with %v %v\n%+v", r.Level, o.results[0].Outcome, t.levels, r.Outcome, r.Violations)
			}
		}
		if w := sound(all, alone); w != nil { // what alerts say to be broken as well
			return w
		}
	}
	return nil
}
