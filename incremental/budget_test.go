package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Wherever what an engine may do is used up, it tells only what the history has done, and takes no level
// for satisfied that is not; and some of what the records show by themselves is found all the same.
func TestLittleBudgetsAgreeWithOracle(t *testing.T) {
	for _, w := range ways {
		for _, k := range kinds {
			t.Run(w.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.cfg
				k.set(&cfg)
				cfg.Mixed = false
				gaveUp := 0
				for i := range *histories {
					seed := *seedFrom + uint64(i)
					st := w.draw(seed, cfg)
					if len(st.opt.Levels) == 0 {
						continue
					}
					rng := rand.New(rand.NewPCG(seed, 57))
					if rng.IntN(4) == 0 || !w.online {
						st.opt.BytesMax = 1 + rng.IntN(2000)
					} else {
						st.opt.Steps = 1 + rng.IntN(6)
					}
					want, said := definition(st.txns, st.opt), st.feed(st.opt)
					least := want
					if st.opt.Coverage == record.CoveragePartial {
						least = seenAlone(st.txns, st.opt, func(string) bool { return true })
					}
					for _, v := range said.ticked {
						if want.holds(v.Level) {
							t.Fatalf("seed %d, steps %d, bytes %d: a tick says %v broken, which holds: %+v\n%v", seed, st.opt.Steps, st.opt.BytesMax, v.Level, v, &st)
						}
					}
					for _, r := range said.results {
						switch {
						case !want.applies(r.Level):
						case r.Outcome == verdict.Violated && want.holds(r.Level), r.Outcome == verdict.Satisfied && !least.holds(r.Level):
							t.Fatalf("seed %d, steps %d, bytes %d: %v is %v, that it holds is %v\n%v", seed, st.opt.Steps, st.opt.BytesMax, r.Level, r.Outcome, want.holds(r.Level), &st)
						}
						if r.Reason == verdict.Conflicts {
							gaveUp++
						}
					}
				}
				if gaveUp == 0 && *histories >= 100 {
					t.Error("nothing was given up")
				}
			})
		}
	}
}

// A stretch of blind writes that are read is given up, and what follows by itself from what is read after it is told.
func TestCertainIsTold(t *testing.T) {
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SI}, Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true)}, Steps: 64})
	for _, x := range hotWriters(2000, "read") {
		e.Step(&x, 0)
	}
	if !e.State().GaveUp {
		t.Fatal("the writes of a hot key used up nothing")
	}
	for _, x := range lostUpdate() {
		e.Step(&x, 0)
	}
	if out := e.Tick(0); len(out.Violations) != 1 {
		t.Errorf("%d violations, want the lost update: %+v", len(out.Violations), out.Violations)
	}
	if r := e.Results()[0]; r.Outcome != verdict.Violated || r.Reason != verdict.Conflicts {
		t.Errorf("%v (%v), want it violated, and the rest given up", r.Outcome, r.Reason)
	}
}

// A session that nothing follows, as its only transaction was aborted or nobody has read of it, takes no
// memory for each transaction of the others.
func TestSessionsAloneCostNothing(t *testing.T) {
	for _, status := range []record.Status{record.Aborted, record.Committed} {
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SI}, Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true)}})
		for i := range 1000 {
			e.Step(&record.Transaction{Session: fmt.Sprint("alone ", i), ID: fmt.Sprint("a", i), Status: status}, 0)
		}
		const n = 4096
		for i := range n {
			e.Step(&record.Transaction{Session: fmt.Sprint("s", i%8), Seq: int64(i / 8), HasSeq: true, ID: fmt.Sprint(i), Status: record.Committed}, 0)
		}
		if most := 256 * n; incremental.ClosureBytes(e) > most {
			t.Errorf("%v: closures take %d bytes, want at most %d", status, incremental.ClosureBytes(e), most)
		}
	}
}

// Writes that nobody reads have no order that matters: they make no pairs and leave nothing open, however many
// there are, and once somebody reads some of them the order of these is searched for.
func TestUnreadWritesMakeNoPairs(t *testing.T) {
	levels := []verdict.Level{verdict.PC, verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER, verdict.LIN}
	for _, kind := range []string{"hot", "timed"} {
		for _, online := range []bool{false, true} {
			e := incremental.New(incremental.Options{Levels: levels, Online: online, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), MaxSkew: 5_000_000}, Proof: true})
			const n = 3000
			for _, x := range hotWriters(n, kind) {
				e.Step(&x, 0)
			}
			if e.Tick(0); e.State().GaveUp {
				t.Errorf("%s, online %v: given up", kind, online)
			}
			if online {
				for _, r := range e.Results() {
					if r.Stats.Constraints > 0 {
						t.Errorf("%s: %v: %d pairs of what nobody has read", kind, r.Level, r.Stats.Constraints)
					}
				}
				for i := range int64(5) { // the last ones, which are concurrent
					read := record.Op{Kind: record.Read, Key: "hot", Value: record.Int(n - i)}
					e.Step(&record.Transaction{Session: fmt.Sprint("r", i), ID: fmt.Sprint("r", i), HasSeq: true, Status: record.Committed, Ops: []record.Op{read}}, 0)
				}
			}
			for _, r := range e.Close() {
				if r.Outcome != verdict.Satisfied {
					t.Errorf("%s, online %v: %v is %v (%v)", kind, online, r.Level, r.Outcome, r.Reason)
				}
				if online != (r.Stats.Constraints > 0) {
					t.Errorf("%s, online %v: %v: %d pairs", kind, online, r.Level, r.Stats.Constraints)
				}
			}
		}
	}
}

// A history whose reads were given up, so that nobody asked yet what keys held at first, is read again for one level.
func TestGivenUpIsReadAgain(t *testing.T) {
	s, err := script.Parse(`initial any
s3 T2 unknown: r(y,0) w(y,0) r(x,0) w(x,0) @2-4
s2 T1: r(x,0) w(x,0) r(y,0) w(y,0) @0-12
s2 P1: w(z,6) @12-12
s3 P2: r(z,6) @12-12
s3 P3: w(u,7) @12-14
s4 P4: r(u,null) r(z,0) @14-14
`)
	if err != nil {
		t.Fatal(err)
	}
	e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.RC, verdict.CC, verdict.PC, verdict.SSER, verdict.LIN},
		Assumptions: record.Assumptions{Clock: record.ClockDatabase, UnseenUnique: new(true)}, Online: true, Steps: 2})
	for i, tick := range []int64{4, 12, 12, 12, 14, 14} {
		e.Step(&s.Txns[i], 0)
		e.Tick(tick)
	}
	for _, r := range e.Close() {
		if r.Outcome == verdict.Satisfied {
			t.Errorf("%v is satisfied, of which something was given up", r.Level)
		}
	}
}
