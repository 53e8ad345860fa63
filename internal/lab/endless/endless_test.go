package endless

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/anomalies"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// streamed takes n transactions of a stream, with ids, and what was planted among them.
func streamed(t testing.TB, cfg Config, n int) ([]record.Transaction, []generate.Planting) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var txns []record.Transaction
	var planted []generate.Planting
	for range n {
		x, p := s.Next()
		txns = append(txns, *x)
		last := &txns[len(txns)-1]
		last.DB, last.ID, last.Ops = record.DefaultDB, fmt.Sprintf("%s#%d", x.Session, x.Seq), slices.Clone(x.Ops)
		if x.ID != "" && x.ID != last.ID {
			t.Fatalf("%s is called %s", last.ID, x.ID)
		}
		if p != nil {
			planted = append(planted, *p)
		}
	}
	return txns, planted
}

var variants = []Config{
	{},
	{Distribution: generate.Zipf, Keys: 1000},
	{Distribution: generate.Hotspot, Keys: 1000, AbortRate: 0.1, UnknownRate: 0.02},
	{Keys: 1_000_000, Sessions: 5, ReadShare: 0.8},
	{Keys: 600, Every: 700, Shared: true, AbortRate: 0.05},
	{Keys: 50, Every: 500, MaxSkew: time.Millisecond},
}

// Without anomalies a stream is serializable in real time, by the engine; transactions
// of a session follow each other; and each comes within a transaction's duration of its place
// by its end.
func TestStreamIsValid(t *testing.T) {
	for i, cfg := range variants {
		cfg.Every, cfg.MaxSkew = 0, 0
		txns, _ := streamed(t, cfg, 20_000)
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SSER}, UniqueValues: true, Assumptions: record.Assumptions{Clock: record.ClockEnforce}})
		ends, seqs, latest := map[string]int64{}, map[string]int64{}, int64(0)
		for j := range txns {
			x := &txns[j]
			if x.Seq != seqs[x.Session] || x.Start < ends[x.Session] || x.End <= x.Start {
				t.Fatalf("variant %d: %s has seq %d and %d to %d, after %d", i, x.ID, x.Seq, x.Start, x.End, ends[x.Session])
			}
			if late := latest - x.End; late > int64(time.Second)*24/120_000*3 {
				t.Fatalf("variant %d: %s is late by %d ns", i, x.ID, late)
			}
			seqs[x.Session]++
			ends[x.Session] = x.End
			latest = max(latest, x.End)
			e.Step(x, x.End)
		}
		for _, r := range e.Close() {
			if r.Outcome != verdict.Satisfied {
				t.Errorf("variant %d: %v %v: %v", i, r.Level, r.Outcome, r.Violations)
			}
		}
		// The rate is the one asked for.
		if took := float64(latest-txns[0].Start) / 1e9; took < 0.95*20_000/120_000 || took > 1.05*20_000/120_000 {
			t.Errorf("variant %d: 20,000 transactions at 120,000 a second take %v s of the stream's time", i, took)
		}
	}
}

// Each planting is an anomaly by itself that breaks exactly its levels, in the order
// asked for and as often; whoever plants on keys that others use leaves them in a state that others
// go on from.
func TestStreamPlants(t *testing.T) {
	weakest := map[string]verdict.Level{}
	for _, c := range anomalies.Load(t, "../../../testdata/anomalies") {
		weakest[c.Name] = c.Weakest()
	}
	for i, cfg := range variants {
		if cfg.Every == 0 {
			continue
		}
		const n = 20_000
		txns, planted := streamed(t, cfg, n)
		if want := n / int(cfg.Every); len(planted) < want-1 || len(planted) > want {
			t.Fatalf("variant %d: %d planted, want %d", i, len(planted), want)
		}
		where, by := map[string]int{}, map[string]bool{}
		for j := range txns {
			where[txns[j].ID] = j
		}
		keys := map[string]bool{}
		for j, p := range planted {
			if want := Anomalies()[j%len(Anomalies())]; p.Anomaly != want {
				t.Fatalf("variant %d: planted %s, want %s", i, p.Anomaly, want)
			}
			var alone []record.Transaction
			for _, id := range p.Transactions {
				x := txns[where[id]]
				alone = append(alone, x)
				by[id] = true
				for _, op := range x.Ops {
					keys[op.Key] = true
				}
			}
			slices.SortFunc(alone, func(a, b record.Transaction) int { return int(a.End - b.End) })
			for _, l := range oracle.Levels(alone) {
				if want := !l.Implies(weakest[p.Anomaly]); l != verdict.LIN && oracle.Holds(l, alone, record.Assumptions{Coverage: record.CoveragePartial, MaxSkew: int64(cfg.MaxSkew)}) != want {
					t.Fatalf("variant %d: %s: %v holds = %v:\n%s", i, p.Anomaly, l, !want, script.Format(script.Script{Txns: alone}))
				}
			}
		}
		// The others are valid without them, but for what they read of them.
		others := 0
		for j := range txns {
			for _, op := range txns[j].Ops {
				if !by[txns[j].ID] && keys[op.Key] {
					others++
				}
			}
		}
		if (others > 0) != cfg.Shared {
			t.Errorf("variant %d: %d operations of others use the keys", i, others)
		}
	}
}

// The engine finds every planting, and every violation is of one of them.
func TestStreamViolationsAreThePlanted(t *testing.T) {
	for i, cfg := range variants {
		if cfg.Every == 0 {
			continue
		}
		txns, planted := streamed(t, cfg, 20_000)
		of := map[string]int{}
		for j, p := range planted {
			for _, id := range p.Transactions {
				of[id] = j
			}
		}
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SER}, Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), Coverage: record.CoveragePartial, MaxSkew: int64(cfg.MaxSkew)}, MaxTransaction: int64(time.Minute)})
		var names []string
		found := map[int]bool{}
		see := func(vs []verdict.Violation) {
			for _, v := range vs {
				hit := -1
				for _, id := range v.Txns {
					if j, ok := of[names[id]]; ok {
						hit = j
					}
				}
				if hit < 0 {
					t.Errorf("variant %d: a violation that was not planted: %+v", i, v)
				}
				found[hit] = true
			}
		}
		for j := range txns {
			e.Step(&txns[j], txns[j].End)
			names = append(names, txns[j].ID)
			if j%1000 == 999 {
				see(e.Tick(txns[j].End - int64(10*time.Millisecond)).Violations)
			}
		}
		see(e.Tick(1<<63 - 1).Violations)
		if len(found) != len(planted) {
			t.Errorf("variant %d: found %d of %d", i, len(found), len(planted))
		}
	}
}

// The same seed gives the same stream, another one another.
func TestStreamIsDeterministic(t *testing.T) {
	for i, cfg := range variants {
		text := func(seed uint64) string {
			cfg.Seed = seed
			txns, _ := streamed(t, cfg, 2000)
			return script.Format(script.Script{Txns: txns})
		}
		if a := text(1); a != text(1) || a == text(2) {
			t.Errorf("variant %d: the seed does not decide", i)
		}
	}
}

// A stream of many transactions takes no more memory than one of few: the next
// transaction of the workload is made without allocating.
func TestStreamDoesNotAllocate(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10_000, func() { s.Next() }); n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}

// What can't be done is refused, with a way out.
func TestStreamRefuses(t *testing.T) {
	for want, cfg := range map[string]Config{
		"use at most 4194304":               {Keys: 5_000_000},
		"rate: -1":                          {Rate: -1},
		"anomalies: 0 every 5":              {Every: 5, Anomalies: []string{}},
		`"duplicate-elements"`:              {Every: 5, Anomalies: []string{"duplicate-elements"}},
		`anomaly "none"`:                    {Every: 5, Anomalies: []string{"none"}},
		"long-fork takes 4 sessions":        {Every: 5, Anomalies: []string{"long-fork"}, Sessions: 3},
		"takes 386 keys, and there are 385": {Every: 5, Anomalies: []string{"long-fork"}, Keys: 385, Shared: true},
		"operations: -1":                    {Operations: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.Next()
	}
}
