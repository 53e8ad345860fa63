package alerts_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

var fewSeeds = flag.Int("few", 2, "histories of each anomaly in TestFewTransactions")

// Each of MTC's 14 anomalies, planted among two thousand transactions that keep every
// level, has evidence of at most four transactions, at each level that it breaks, in turn. A long fork needs five: two writers, two readers, and who wrote
// what both overwrote, without whom nothing says that what the readers missed is newer.
func TestFewTransactions(t *testing.T) {
	seeds := uint64(*fewSeeds)
	most, more := map[string]int{}, 0
	for _, c := range mtc(t) {
		// The other transactions have several keys, of which lin is not asked.
		c.broken = slices.DeleteFunc(c.broken, func(l verdict.Level) bool { return l == verdict.LIN })
		for seed := range seeds {
			g, err := generate.New(generate.Config{Level: verdict.SSER, Seed: 1 + seed, Anomaly: c.name, Transactions: 2000, Keys: 500})
			if err != nil {
				t.Fatal(err)
			}
			s := script.Script{Header: g.Header(), Txns: slices.Collect(g.Transactions())}
			level := c.broken[seed%uint64(len(c.broken))]
			if seed == 1 { // however few seeds there are
				level = c.broken[len(c.broken)-1]
			}
			vs := engine(s.Header, s.Txns, level)[0].Violations
			if len(vs) == 0 {
				t.Errorf("%s, seed %d: not found at %v", c.name, seed, level)
			}
			ids := map[string]bool{}
			for _, v := range vs {
				ctx := context(s, level)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("%s, seed %d, %v: %v", c.name, seed, level, err)
				}
				ids[a.ID] = true
				n := len(recheck(t, a))
				most[c.name] = max(most[c.name], n)
				if n > 4 && !(c.name == "long-fork" && n == 5) {
					t.Errorf("%s, seed %d, %v: %d transactions of evidence:\n%s", c.name, seed, level, n, a.JSON())
				}
				if a.Name != c.name {
					t.Logf("%s, seed %d, %v: is called %s", c.name, seed, level, a.Name)
				}
			}
			if len(ids) > 1 {
				more++
			}
		}
	}
	names := make([]string, 0, len(most))
	for name := range most {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%s: at most %d transactions", name, most[name])
	}
	t.Logf("%d histories have more than one alert", more)
}
