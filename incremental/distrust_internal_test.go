package incremental

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
)

// The clock of one client steps for a while. Nothing is accused, and the times of the
// others serve as before. One that steps back within its session orders nothing at all.
func TestSteppedClockIsDistrusted(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -500 * time.Millisecond, 500 * time.Millisecond, time.Hour} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SI} {
			g, err := endless.New(endless.Config{Seed: 1, Rate: 10_000, Keys: 200})
			if err != nil {
				t.Fatal(err)
			}
			e := New(Options{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true,
				UniqueValues: true, UniqueAttempts: true, MaxTransaction: int64(time.Minute)})
			stepped, now := 0, int64(0)
			for i := range 3000 {
				x, _ := g.Next()
				own := *x
				own.Ops = slices.Clone(x.Ops)
				now = own.End
				if own.Session == "s8" && i > 1000 && stepped < 40 {
					stepped++
					own.Start += int64(by)
					own.End += int64(by)
				}
				e.Step(&own, now)
				if i%500 == 499 {
					if out := e.Tick(now); len(out.Violations) > 0 {
						t.Fatalf("%v, %v: %+v", by, level, out.Violations)
					}
				}
			}
			r := e.Close()[0]
			distrusted := 0
			for _, l := range e.h.last {
				if l.distrusted {
					distrusted++
				}
			}
			if r.Outcome != verdict.Satisfied || !e.g.checks[0].pruned || (distrusted > 0) != (by > 0) || distrusted > 4 {
				t.Errorf("%v, %v: %v, times are used: %t, %d sessions are distrusted", by, level, r.Outcome, e.g.checks[0].pruned, distrusted)
			}
		}
	}
}

// That seeds have no times, as reads that wait have none, says nothing of the records that come.
func TestSeedsSayNothingOfTimes(t *testing.T) {
	for _, seeds := range []int{0, 400} {
		e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true, UniqueValues: true,
			MaxTransaction: int64(time.Minute), Seeds: seeds})
		step := func(i int, times bool) {
			at := int64(i) * int64(time.Millisecond)
			x := record.Transaction{Session: fmt.Sprint("s", i), Status: record.Committed, HasTimes: times, Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint("k", i), Value: record.Int(1)}}}
			if times {
				x.Start, x.End = at, at+1
			}
			e.Step(&x, at)
		}
		for i := range 400 {
			step(i, i%12 == 0)
		}
		for i := range 40 {
			step(400+i, true)
		}
		e.Tick(int64(time.Second))
		if used := e.g.checks[0].pruned; used != (seeds > 0) {
			t.Errorf("%d seeds: times are used: %t", seeds, used)
		}
	}
}

// BenchmarkReadAgain is what it costs, for a transaction, to read a history of hot keys again
// without the times of one of its sessions.
func BenchmarkReadAgain(b *testing.B) {
	for _, n := range []int{2500, 5000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := endless.New(endless.Config{Seed: 1, Rate: 1000, Keys: 12})
			if err != nil {
				b.Fatal(err)
			}
			e := New(Options{Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true,
				UniqueValues: true, UniqueAttempts: true, MaxTransaction: int64(time.Minute)})
			for range n {
				x, _ := g.Next()
				e.Step(x, x.End)
			}
			e.h.last[3].distrusted = true
			for i := range ordinal(e.h.txns.Len()) {
				if t := e.h.txns.At(i); e.h.last[t.session].distrusted {
					t.timed = false
				}
			}
			for b.Loop() {
				e.g.again(true, func(c *check) bool { return c.pruned })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/txn")
		})
	}
}

// Times are used where some transactions have them, here and there or in every other session, and no
// more where nearly all lack them, or all have done so for long.
func TestTimesAreUsedWhereTheyHelp(t *testing.T) {
	const n = 12_000
	rng := rand.New(rand.NewPCG(1, 9))
	for _, c := range []struct {
		name  string
		has   func(i int, x *record.Transaction) bool
		until int
		used  bool
	}{
		{"a fifth", func(int, *record.Transaction) bool { return rng.IntN(5) == 0 }, n, true},
		{"every other session", func(_ int, x *record.Transaction) bool { return x.Session[len(x.Session)-1]%2 == 0 }, n, true},
		{"every hundredth", func(i int, _ *record.Transaction) bool { return i%100 == 0 }, n, false},
		{"none for a moment", func(i int, _ *record.Transaction) bool { return i < n/4 || i > n/2 }, n, true},
		{"none for long", func(i int, _ *record.Transaction) bool { return i < n/4 }, n, false},
		{"none for not so long", func(i int, _ *record.Transaction) bool { return i < n/4 }, n / 2, true},
	} {
		g, err := endless.New(endless.Config{Seed: 1, Rate: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true, UniqueValues: true,
			MaxTransaction: int64(time.Minute)})
		for i := range c.until {
			x, _ := g.Next()
			own := *x
			own.Ops = slices.Clone(x.Ops)
			own.HasTimes = c.has(i, x)
			e.Step(&own, x.End)
			if i%1000 == 999 {
				e.Tick(x.End)
			}
		}
		if r := e.Close()[0]; r.Outcome == verdict.Violated || e.g.checks[0].pruned != c.used {
			t.Errorf("%s: %v, times are used: %t", c.name, r.Outcome, e.g.checks[0].pruned)
		}
	}
}
