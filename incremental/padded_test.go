package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Transactions of many operations, and histories of many sessions, are worked on
// in other ways than tiny ones. What is added here to a tiny history changes no
// level: keys that one transaction writes, before all others, and that are only
// read afterwards; keys that nobody reads; and sessions that do nothing else.
func TestPaddedHistoriesAgreeWithOracle(t *testing.T) {
	for _, w := range ways {
		if w.cfg.Partial || w.name == "partial, nothing unique" {
			continue // nobody is known to come first
		}
		for _, k := range kinds {
			t.Run(w.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.cfg
				k.set(&cfg)
				cfg.Mixed = false
				told := newTally()
				for i := range max(*histories/4, race.Draws(10, 30)) {
					seed := *seedFrom + uint64(i)
					st := w.draw(seed, cfg)
					if len(st.txns) == 0 {
						continue
					}
					small := slices.Clone(st.txns)
					want := definition(small, st.opt)
					kinds := kindsOf(small, st.opt)
					st.pad(rand.New(rand.NewPCG(seed, 13)))
					said := st.feed(st.opt)
					for _, v := range said.ticked {
						if v.Level != verdict.LIN && want.holds(v.Level) {
							t.Fatalf("seed %d: a tick says %v broken: %+v\n%v", seed, v.Level, v, script.Format(script.Script{Txns: small}))
						}
					}
					for _, r := range said.results {
						told.count(r.Level, r.Outcome)
						if r.Level == verdict.LIN {
							continue // of several keys now
						}
						late := (r.Level == verdict.SSER || r.Level == verdict.StrongSI) && st.opt.Online && st.late()
						switch {
						case r.Outcome == verdict.Satisfied && !want.holds(r.Level) && !late,
							r.Outcome == verdict.Violated && want.holds(r.Level),
							r.Outcome == verdict.Unknown && st.mustBeDecided(r.Level, kinds) && !(r.NoTimes && st.untimed()):
							t.Fatalf("seed %d, levels %v: %v: %v (%v), the definition says that it holds: %v; of this, padded:\n%v",
								seed, st.opt.Levels, r.Level, r.Outcome, r.Reason, want.holds(r.Level), script.Format(script.Script{Txns: small}))
						}
						for _, v := range r.Violations {
							cut := cutDown(v, st.txns, st.opt.Clock)
							if oracle.Supported(cut) == nil && oracle.Holds(r.Level, cut, defined(st.opt)) {
								t.Fatalf("seed %d: %v: the evidence proves nothing: %+v", seed, r.Level, v)
							}
						}
					}
					for _, r := range said.guarantees {
						holds := oracle.HoldsGuarantee(r.Guarantee, trusted(small, st.opt.Clock), defined(st.opt))
						if !st.opt.Online && (holds && r.Outcome == verdict.Violated || !holds && r.Outcome == verdict.Satisfied) {
							t.Fatalf("seed %d: %v: %v, the definition says that it holds: %v; of this, padded:\n%v",
								seed, r.Guarantee, r.Outcome, holds, script.Format(script.Script{Txns: small}))
						}
					}
				}
				if !race.Brief() && (told.of(verdict.Satisfied)+told.of(verdict.Unknown) == 0 || told.of(verdict.Violated) == 0) {
					t.Errorf("the sample tells little: %v", told)
				}
			})
		}
	}
}

// pad adds to a stream what changes no level but lin.
func (st *stream) pad(rng *rand.Rand) {
	const common = 30 // keys that the first transaction writes
	timed, first := false, int64(0)
	for _, x := range st.txns {
		timed = timed || x.HasTimes
		first = min(first, x.Start)
	}
	before := record.Transaction{DB: record.DefaultDB, Session: "first", ID: "first", HasTimes: timed, Start: first - 200, End: first - 100}
	for k := range common {
		before.Ops = append(before.Ops, record.Op{Kind: record.Write, Key: fmt.Sprintf("common %d", k), Value: record.Int(int64(k + 1))})
	}
	alone := 0 // keys that nobody reads
	for i := range st.txns {
		x := &st.txns[i]
		x.Ops = slices.Clone(x.Ops)
		if rng.IntN(4) == 0 {
			continue
		}
		writes := 1 + rng.IntN(5)
		for range 20 + rng.IntN(30) {
			k := rng.IntN(common)
			op := record.Op{Key: fmt.Sprintf("common %d", k), Value: record.Int(int64(k + 1))}
			if rng.IntN(6) < writes {
				alone++
				op = record.Op{Kind: record.Write, Key: fmt.Sprintf("alone %d", alone), Value: record.Int(int64(alone))}
			}
			x.Ops = slices.Insert(x.Ops, rng.IntN(len(x.Ops)+1), op)
		}
	}
	txns, end, tick := []record.Transaction{before}, []int64{0}, []int64{noTick}
	if n := rng.IntN(3); n > 0 { // many sessions, the clock of each late in it; or so many without that times are few
		for i := range 100 * n {
			k := rng.IntN(common)
			x := record.Transaction{DB: record.DefaultDB, Session: fmt.Sprintf("reader %d", i), ID: fmt.Sprintf("R%d", i), HasTimes: timed && n == 1, Start: first - 90, End: first - 80,
				Ops: []record.Op{{Key: fmt.Sprintf("common %d", k), Value: record.Int(int64(k + 1))}}}
			txns, end, tick = append(txns, x), append(end, 0), append(tick, noTick)
		}
	}
	if before.Start < 0 { // times are not negative
		for i := range txns {
			txns[i].Start, txns[i].End = txns[i].Start+1000, txns[i].End+1000
		}
		for i := range st.txns {
			x := &st.txns[i]
			if x.HasTimes {
				x.Start, x.End = x.Start+1000, x.End+1000
			}
			if st.tick[i] != noTick {
				st.tick[i] += 1000
			}
		}
	}
	for i := range txns {
		if !txns[i].HasTimes {
			txns[i].Start, txns[i].End = 0, 0
		}
	}
	st.txns, st.end, st.tick = append(txns, st.txns...), append(end, st.end...), append(tick, st.tick...)
}
