package streamtest

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
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
