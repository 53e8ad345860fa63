package tiny_test

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

func draw(seed uint64, cfg tiny.Config) script.Script {
	return tiny.Random(rand.New(rand.NewPCG(seed, 1)), cfg)
}

// What the store executed is at least snapshot isolation.
func TestUnmutatedIsValid(t *testing.T) {
	kinds := map[verdict.Level]int{}
	for seed := range uint64(6000) {
		s := draw(seed, tiny.Config{Txns: 6, Times: true, Appends: seed%5 == 0, Updates: 20, Duplicates: seed%2 == 0, Aborted: true, Unknown: seed%3 == 0, Partial: seed%2 == 1})
		opt := record.Assumptions{}.Override(s.Header)
		// A duplicate of the initial value is no candidate when that is unknown.
		if opt.Initial == record.InitialAny && seed%2 == 0 {
			continue
		}
		if !oracle.Holds(verdict.SI, s.Txns, opt) {
			t.Fatalf("seed %d: not even si:\n%s", seed, script.Format(s))
		}
		for _, l := range []verdict.Level{verdict.SER, verdict.StrongSI, verdict.SSER} {
			if oracle.Holds(l, s.Txns, opt) {
				kinds[l]++
			} else {
				kinds[l+100]++
			}
		}
	}
	for _, l := range []verdict.Level{verdict.SER, verdict.StrongSI, verdict.SSER} {
		if kinds[l] < 100 || kinds[l+100] < 10 {
			t.Errorf("%v: %d hold and %d don't; the store should make both", l, kinds[l], kinds[l+100])
		}
	}
}

func TestDeterministic(t *testing.T) {
	cfg := tiny.Config{Times: true, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Mutations: 3, Weak: 40, OneKey: 10}
	different := map[string]bool{}
	for seed := range uint64(200) {
		a, b := script.Format(draw(seed, cfg)), script.Format(draw(seed, cfg))
		if a != b {
			t.Fatalf("seed %d: two histories:\n%s\n%s", seed, a, b)
		}
		if _, err := script.Parse(a); err != nil {
			t.Fatalf("seed %d: %v:\n%s", seed, err, a)
		}
		different[a] = true
	}
	if len(different) < 190 {
		t.Errorf("200 seeds gave %d histories", len(different))
	}
}

// Without Duplicates every written value is new, mutated or not, and sessions'
// times go forward; without Mixed every element is, and what is appended to is
// not written.
func TestPromises(t *testing.T) {
	for seed := range uint64(3000) {
		s := draw(seed, tiny.Config{Times: true, Aborted: true, Unknown: true, Appends: true, Mutations: 4, Weak: 40, OneKey: 10})
		written, kind := map[record.Op]bool{}, map[string]record.OpKind{}
		last := map[string]int64{}
		for _, x := range s.Txns {
			for _, op := range x.Ops {
				if op.Kind == record.Read {
					continue
				}
				if k, known := kind[op.Key]; known && k != op.Kind {
					t.Fatalf("seed %d: %s is list and register:\n%s", seed, op.Key, script.Format(s))
				}
				kind[op.Key] = op.Kind
				if written[op] {
					t.Fatalf("seed %d: %v is written twice:\n%s", seed, op, script.Format(s))
				}
				written[op] = true
			}
			if x.HasTimes && (x.Start > x.End || x.Start < last[x.Session]) {
				t.Fatalf("seed %d: %s goes back in time:\n%s", seed, x.ID, script.Format(s))
			}
			last[x.Session] = x.End
		}
	}
}
