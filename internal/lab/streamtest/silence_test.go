package streamtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/stream"
)

// Nothing is lost where partitions are silent, all of them or some while others go on, for longer than is
// waited for them and not for so long that they are given up, and nothing is late when they come back: the verdicts are
// those of the batch engine, but that where real time matters the stretch may say that times were not used.
func TestSilencesLoseNothing(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		whole := tp.whole()
		for way := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, 63+way))
			r := run{topic: tp, cfg: tp.config(), batch: 1 + rng.IntN(7), seed: seed + way, silences: true, kill: int(way) * 30}
			if way == 2 {
				r.cfg = tp.tight(rng)
			}
			r.cfg.Order.IdleAfter, r.cfg.MaxTransaction = 10, 1<<20 // nobody is given up
			o, err := r.play()
			if err != nil {
				return is("broken", "%v", err)
			}
			y.add(o)
			if o.lost {
				return is("lost", "something is said to be missing: %v", o.stats.Losses)
			}
			if w := sound(o, whole); w != nil {
				return w
			}
			if way == 2 {
				continue // it forgets
			}
			for _, res := range o.results {
				if res.Outcome == verdict.Satisfied && whole[res.Level].Outcome == verdict.Violated && !timesUnused(o, res.Level) {
					return is("missed", "%v: the whole is violated: %+v", res.Level, whole[res.Level].Violations)
				}
			}
		}
		return nil
	})
}

// timesUnused tells whether the stream says that at this level, and for this reason only, something may be
// missed.
func timesUnused(o *outcome, l verdict.Level) bool {
	for _, s := range o.stretches {
		if s.Partial == stream.WhyTimes && s.At(l) == stream.Partial {
			return true
		}
	}
	return false
}

// Times far ahead of all others, up to the end of time, accuse nobody, with a broker's times and without, also
// where one session has them again and again: nothing is told that the batch engine, which has those times, would not.
func TestExtremeTimesSilenceNobody(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		rng := rand.New(rand.NewPCG(seed, 71))
		odd := *tp
		odd.logs = nil
		if !slices.ContainsFunc(tp.all(), func(x record.Transaction) bool { return x.HasTimes }) {
			return nil
		}
		session := tp.all()[0].Session
		for _, log := range tp.logs {
			log = slices.Clone(log)
			for i := range log {
				if x := &log[i].txn; rng.IntN(6) == 0 || x.Session == session && rng.IntN(2) == 0 {
					x.End = []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64/2 + 1, math.MaxInt64 / 2, 1 << 39, 1 << 30, 1 << 20}[rng.IntN(7)]
					if rng.IntN(2) == 0 {
						x.Start = x.End - rng.Int64N(3)
					}
				}
			}
			odd.logs = append(odd.logs, log)
		}
		whole := odd.whole()
		for way := range uint64(4) {
			r := run{topic: &odd, cfg: odd.config(), batch: 1 + rng.IntN(7), seed: seed + way, silences: way&1 > 0, without: way < 2, kill: int(way&1) * 30}
			if way > 1 {
				r.cfg = odd.tight(rng)
			}
			r.cfg.Order.IdleAfter, r.cfg.Order.MaxAhead, r.cfg.MaxTransaction = 50, 200, 1<<20
			o, err := r.play()
			if err != nil {
				return is("broken", "%v", err)
			}
			y.add(o)
			if w := sound(o, whole); w != nil {
				return w
			}
		}
		return nil
	})
}
