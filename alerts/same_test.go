package alerts_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// What a weak level finds, snapshot isolation finds too, mostly as the same
// cycle: then it has the same name and the same id. Where it is another one, the
// history has several, or the engine tells a shorter one: a key read twice
// with two values, for instance, is not told as a cycle by strong levels.
func TestWeakAndStrongAgree(t *testing.T) {
	n := uint64(race.Draws(300, 1500))
	type tally struct{ all, same int }
	for _, weak := range []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.PC} {
		found := map[string]tally{}
		for seed := range n {
			rng := rand.New(rand.NewPCG(seed, 9))
			s := tiny.Random(rng, tiny.Config{Txns: 6, Mutations: 3})
			told := func(l verdict.Level) map[string]alerts.Alert {
				out := map[string]alerts.Alert{}
				for _, r := range engine(s.Header, s.Txns, l) {
					for _, v := range r.Violations {
						ctx := context(s, weak, verdict.SI)
						ctx.Judge, ctx.Find = engineJudge, engineFind
						a, err := alerts.New(v, ctx)
						if err != nil {
							t.Fatalf("seed %d at %v: %v\n%s%+v", seed, l, err, script.Format(s), v)
						}
						out[a.ID] = a
					}
				}
				return out
			}
			strong := told(verdict.SI)
			for id, a := range told(weak) {
				if len(a.Cycle) == 0 || twice(s, a.Transactions) {
					continue
				}
				c := found[a.Name]
				c.all++
				if b, ok := strong[id]; ok {
					c.same++
					// A step may be session order and read-from at once; then two guarantees are
					// broken, and which is named depends on which of the two is told.
					guarantee := b.Guarantee != a.Guarantee && types(a) == types(b)
					if b.Name != a.Name || b.Level != a.Level || guarantee {
						t.Errorf("seed %d: one id for %s at %s and %s at %s", seed, a.Name, a.Level, b.Name, b.Level)
					}
				}
				found[a.Name] = c
			}
		}
		all, same := 0, 0
		for _, c := range found {
			all, same = all+c.all, same+c.same
		}
		t.Logf("%v: %v", weak, found)
		if all < 15 && !race.Brief() || all >= 10 && same*10 < all*7 { // too few tell nothing
			t.Errorf("%v: of %d violations %d are the same to snapshot isolation", weak, all, same)
		}
	}
}

// types are those of the edges of an alert's cycle, sorted, as it may begin anywhere.
func types(a alerts.Alert) string {
	var out []string
	for _, e := range a.Cycle {
		out = append(out, e.From+" "+e.Type+" "+e.To)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// twice tells whether one of some transactions read a key twice and got two
// values.
func twice(s script.Script, ids []string) bool {
	type read struct{ id, key string }
	first := map[read]string{}
	for _, txn := range s.Txns {
		for _, op := range txn.Ops {
			at := read{txn.ID, op.Key}
			was, ok := first[at]
			if !ok {
				first[at] = op.Value.String()
			}
			for _, id := range ids {
				if id == txn.ID && ok && was != op.Value.String() {
					return true
				}
			}
		}
	}
	return false
}
