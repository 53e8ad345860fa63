package streamtest

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// mixture draws what histories have in them: lists that are written as a whole, deletes, values that repeat, lost attempts.
func mixture(rng *rand.Rand) tiny.Config {
	cfg := tiny.Config{Txns: 4 + rng.IntN(4), Keys: 1 + rng.IntN(3), Ops: 2 + rng.IntN(3), Sessions: 2 + rng.IntN(3), Updates: rng.IntN(3) * 25,
		Unknown: rng.IntN(2) == 0, Always: rng.IntN(2) == 0, PartialLists: true}
	switch rng.IntN(5) {
	case 0:
		cfg.Appends, cfg.Whole, cfg.Common = true, 20, rng.IntN(2)*25
	case 1:
		cfg.Common, cfg.Weak = 35, rng.IntN(2)*60
	case 2:
		cfg.Duplicates, cfg.Values, cfg.Common = true, 2+rng.IntN(3), 20
	case 3:
		cfg.Appends, cfg.Mixed, cfg.Duplicates, cfg.Weak = true, true, rng.IntN(2) == 0, rng.IntN(2)*50
	case 4:
		cfg.OneKey, cfg.Common, cfg.Appends = 100, 20, rng.IntN(2) == 0
	}
	return cfg
}

// Of any mixture, whether something of it is forgotten or not, nothing is told that the definitions don't say, also of keys of which
// check says nothing, as they are written and appended to.
func TestMixturesAccuseNobody(t *testing.T) {
	y := &tally{}
	for n := range race.Draws(1500, 60_000) {
		seed := *seedFrom + uint64(n)
		tp, ok := draw(seed, mixture(rand.New(rand.NewPCG(seed, 42))), false)
		if !ok {
			continue
		}
		property := func(tp *topic) *wrong { return accusesNobody(seed, tp, y) }
		if w := property(tp); w != nil {
			small, again := tp.reduced(w.class, property)
			t.Fatalf("seed %d: %s: %s\n%v", seed, again.class, again.says, small)
		}
	}
	t.Log(y)
}

func accusesNobody(seed uint64, tp *topic, y *tally) *wrong {
	r := run{topic: tp, cfg: tp.config(), batch: 1 + int(seed)%7, seed: seed}
	forgets := seed%3 == 0
	if forgets {
		r.cfg = tp.tight(rand.New(rand.NewPCG(seed, 61)))
	}
	o, err := r.play()
	if err != nil {
		return is("broken", "%v", err)
	}
	y.add(o)
	whole := tp.whole()
	if w := sound(o, whole); w != nil {
		return w
	}
	def := record.Assumptions{Initial: tp.assume.Initial, Coverage: tp.assume.Coverage, Clock: tp.assume.Clock, MaxSkew: tp.assume.MaxSkew}
	for _, r := range o.results {
		// A key that was written may turn out to be a list long after null was read of it; until then that is
		// nobody's where keys hold 0 at first.
		if r.Outcome == verdict.Violated && def.Initial != record.InitialZero && oracle.Holds(r.Level, tp.all(), def) {
			return is("a false verdict at "+r.Level.String(), "%+v", r)
		}
	}
	if !forgets {
		return equal(o, tp, whole)
	}
	return nil
}
