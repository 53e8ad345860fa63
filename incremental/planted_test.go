package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

// weakest is, for each anomaly that can be planted, the weakest level that it
// breaks.
var weakest = map[string]verdict.Level{
	"thin-air-read": verdict.G1, "aborted-read": verdict.G1, "future-read": verdict.G1, "not-my-last-write": verdict.G1,
	"not-my-own-write": verdict.G1, "intermediate-read": verdict.G1, "non-monotonic-read": verdict.RC,
	"non-repeatable-reads": verdict.RA, "session-guarantee-violation": verdict.RA, "fractured-read": verdict.RA,
	"causality-violation": verdict.CC, "long-fork": verdict.PC, "lost-update": verdict.SI, "write-skew": verdict.SER,
}

// Every planted anomaly is found at exactly the levels that it breaks, in batch
// and online, and only its own transactions are accused.
func TestPlantedAnomaliesAreFound(t *testing.T) {
	for _, name := range generate.Anomalies() {
		for i, load := range []generate.Config{
			{Level: verdict.SSER, Workload: generate.General, Keys: 30, Sessions: 8, Transactions: 400, Planted: 3},
			{Level: verdict.SSER, Workload: generate.BlindW, Keys: 200, Sessions: 12, Transactions: 500, Planted: 2, Initial: record.InitialZero},
			{Level: verdict.SSER, Workload: generate.Mini, Keys: 50, Sessions: 6, Transactions: 400, Planted: 2, Initial: record.InitialAbsent, NoTimes: true},
		} {
			t.Run(fmt.Sprintf("%s/load %d", name, i), func(t *testing.T) {
				cfg := load
				cfg.Level, cfg.Anomaly, cfg.Seed = verdict.SSER, name, 5
				g, err := generate.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				var txns []record.Transaction
				for x := range g.Transactions() {
					txns = append(txns, x)
				}
				groups := map[string]int{} // by id: which planting it belongs to
				for n, p := range g.Planted() {
					for _, id := range p.Transactions {
						groups[id] = n + 1
					}
				}
				for _, online := range []bool{false, true} {
					e := incremental.New(incremental.Options{Levels: verdict.Levels(), Assumptions: record.Assumptions{Initial: cfg.Initial}, Online: online, UniqueValues: true,
						MaxTransaction: longest(txns)})
					for i := range txns {
						e.Step(&txns[i], int64(i))
						if online && i%50 == 49 && txns[i].HasTimes {
							e.Tick(txns[i].End)
						}
					}
					for _, r := range e.Close() {
						want := verdict.Satisfied
						switch {
						case !slices.Contains(oracle.Levels(txns), r.Level):
							want = verdict.NotApplicable
						case r.Level.Implies(weakest[name]):
							want = verdict.Violated
						}
						if r.Outcome != want {
							t.Fatalf("online %v, %v: %v, want %v: %+v", online, r.Level, r.Outcome, want, r.Violations)
						}
						found := map[int]bool{}
						for _, v := range r.Violations {
							for _, id := range v.Txns {
								found[groups[txns[id].ID]] = true
							}
						}
						if found[0] {
							t.Errorf("online %v, %v: somebody else is accused: %+v", online, r.Level, r.Violations)
						}
						if want == verdict.Violated && online && len(found) != len(g.Planted()) {
							t.Errorf("online, %v: %d of %d found", r.Level, len(found), len(g.Planted()))
						}
					}
				}
			})
		}
	}
}

// The same input gives the same output, evidence and all.
func TestEnginesAreDeterministic(t *testing.T) {
	for i, c := range courses {
		for seed := range uint64(150) {
			cfg := c.cfg
			kinds[(uint64(i)+seed)%uint64(len(kinds))].set(&cfg)
			st, ok := c.draw(seed, cfg)
			if !ok {
				continue
			}
			if first, second := st.all(), st.all(); !reflect.DeepEqual(first, second) {
				t.Fatalf("%s: seed %d:\n%+v\nthen\n%+v", c.name, seed, first, second)
			}
		}
	}
	cfg := generate.Config{Level: verdict.SI, Workload: generate.BlindW, Keys: 40, Sessions: 8, Transactions: 600, Anomaly: "lost-update", Planted: 4}
	txns := produce(t, cfg)
	for _, online := range []bool{false, true} {
		st := stream{txns: txns, end: make([]int64, len(txns)), tick: make([]int64, len(txns)),
			opt: incremental.Options{Levels: verdict.Levels(), Online: online, UniqueValues: true, Proof: true}}
		for i := range txns {
			if st.tick[i] = noTick; i%40 == 0 {
				st.tick[i] = txns[i].End
			}
		}
		if !reflect.DeepEqual(st.all(), st.all()) {
			t.Errorf("a large history, online %v: not the same twice", online)
		}
	}
}

// all is everything that the engine says about a stream.
func (st *stream) all() spoken {
	return st.feed(st.opt)
}

// In batch it does not matter how the sessions' records are interleaved.
func TestInterleavingDoesNotMatter(t *testing.T) {
	for _, cfg := range []tiny.Config{plain, timed, many, wild} {
		for seed := range uint64(600) {
			rng := rand.New(rand.NewPCG(seed, 12))
			s := tiny.Random(rng, cfg)
			opt := incremental.Options{Levels: verdict.Levels()}
			if s.Header.Initial != nil {
				opt.Initial = *s.Header.Initial
			}
			if s.Header.Coverage != nil {
				opt.Coverage = *s.Header.Coverage
			}
			if s.Header.MaxSkew != nil {
				opt.MaxSkew = *s.Header.MaxSkew
			}
			first, _ := run(s, opt)
			for range 3 {
				again := script.Script{Header: s.Header, Txns: shuffled(rng, s.Txns)}
				results, _ := run(again, opt)
				for i, r := range results {
					if r.Outcome != first[i].Outcome || r.Reason != first[i].Reason {
						t.Fatalf("seed %d: %v: %v of\n%sand %v of\n%s", seed, r.Level, first[i].Outcome, script.Format(s), r.Outcome, script.Format(again))
					}
				}
			}
		}
	}
}

// shuffled keeps the order in each session.
func shuffled(rng *rand.Rand, txns []record.Transaction) []record.Transaction {
	sessions := map[string][]record.Transaction{}
	var turns []string
	for _, x := range txns {
		sessions[x.Session] = append(sessions[x.Session], x)
		turns = append(turns, x.Session)
	}
	rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	var out []record.Transaction
	for _, s := range turns {
		out = append(out, sessions[s][0])
		sessions[s] = slices.Delete(sessions[s], 0, 1)
	}
	return out
}
