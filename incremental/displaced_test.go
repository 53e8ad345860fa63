package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Where real time is given up since too much comes late, no level is told to be broken that the
// whole history keeps, none to be kept that it breaks, and what breaks it without real time is found.
func TestDisplacedIsNoAlarm(t *testing.T) {
	levels := []verdict.Level{verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER}
	var gaveUp, violated, satisfied int
	for n := range max(*histories, 200) {
		seed := *seedFrom + uint64(n)
		rng := rand.New(rand.NewPCG(seed, 19))
		st := rough(t, rng)
		asked := slices.Clone(levels[rng.IntN(3):])
		st.opt.Levels, st.opt.DisplacedMax = asked, 1+rng.Uint64N(60)
		st.opt.Clock = record.ClockPrune
		judge := func(clock record.Clock) []verdict.Result {
			batch := incremental.New(incremental.Options{Levels: asked, Initial: st.opt.Initial, Coverage: st.opt.Coverage, UnseenUnique: true, Clock: clock})
			for i := range st.txns {
				batch.Step(&st.txns[i], 0)
			}
			return batch.Close()
		}
		want, bare := judge(record.ClockPrune), judge(record.ClockIgnore)
		said := st.feed(st.opt)
		for i, r := range said.results {
			fail := func(says string) {
				t.Helper()
				t.Fatalf("seed %d, displaced at %d: %v is %v online, %s\n%v", seed, st.opt.DisplacedMax, r.Level, r.Outcome, says, &st)
			}
			broken := r.Outcome == verdict.Violated || slices.ContainsFunc(said.ticked, func(v verdict.Violation) bool { return r.Level == v.Level || r.Level.Implies(v.Level) })
			switch {
			case broken && want[i].Outcome == verdict.Satisfied:
				fail("satisfied in batch")
			case r.Outcome == verdict.Satisfied && want[i].Outcome == verdict.Violated && !late(&st):
				fail("violated in batch")
			case r.Outcome == verdict.Satisfied && bare[i].Outcome == verdict.Violated:
				fail("violated in batch without times")
			case r.Outcome == verdict.Unknown && bare[i].Outcome == verdict.Violated && r.Reason == verdict.Forgotten:
				fail("violated in batch without times")
			case r.Outcome == verdict.Unknown && r.Reason == verdict.Forgotten:
				gaveUp++
			case r.Outcome == verdict.Violated:
				violated++
			case r.Outcome == verdict.Satisfied:
				satisfied++
			}
		}
	}
	if says := fmt.Sprintf("%d gave real time up, %d violated, %d satisfied", gaveUp, violated, satisfied); gaveUp < 20 || violated < 20 || satisfied < 20 {
		t.Errorf("the sample tells little: %s", says)
	} else {
		t.Log(says)
	}
}

// late tells whether a record comes after one that ended later.
func late(st *stream) bool {
	last := int64(0)
	for i := range st.txns {
		if x := &st.txns[i]; x.HasTimes && x.Status == record.Committed {
			if x.End < last {
				return true
			}
			last = x.End
		}
	}
	return false
}
