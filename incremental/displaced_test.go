package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
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

// lin has no sessions to go by: where its real time is given up it keeps to the clocks, tells what values
// alone show, and goes on.
func TestDisplacedLin(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		untimed    int
		want       verdict.Outcome
	}{
		{"a stale read", "s1 T1: w(a,1) @10-20\ns2 T2: w(b,1) @10-15\ns1 T3: w(a,2) @30-40\ns3 T4: r(a,1) @50-60\ns3 T5: w(c,1) @70-80\n", 0, verdict.Unknown},
		{"others without times", "s1 T1: w(a,1) @10-20\ns2 T2: w(b,1) @10-15\n", 40, verdict.Unknown},
		{"each overwrote what the other did", "s1 T1: w(a,1) @10-20\ns2 T2: w(b,1) @10-15\ns3 T3: r(a,5) w(a,4) @30-40\ns4 T4: r(a,4) w(a,5) @31-41\n", 0, verdict.Violated},
	} {
		for _, levels := range [][]verdict.Level{{verdict.LIN}, {verdict.SER, verdict.LIN}, {verdict.PC, verdict.SSER, verdict.LIN}} {
			s, err := script.Parse("initial absent\n" + tc.text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(tc.untimed) {
				s.Txns = append(s.Txns, record.Transaction{Session: "u", ID: fmt.Sprint("u", i), Seq: i, HasSeq: true, Ops: []record.Op{{Kind: record.Write, Key: "k", Value: record.Int(i)}}})
			}
			e := incremental.New(incremental.Options{Levels: levels, Initial: record.InitialAbsent, Coverage: record.CoveragePartial, Online: true, UniqueValues: true, UnseenUnique: true, DisplacedMax: 1})
			for i := range s.Txns {
				e.Step(&s.Txns[i], 0)
				e.Tick(s.Txns[i].End)
			}
			results := e.Close()
			if r := results[len(results)-1]; r.Outcome != tc.want {
				t.Errorf("%s, %v: %v is %v, want %v", tc.name, levels, r.Level, r.Outcome, tc.want)
			}
		}
	}
}
