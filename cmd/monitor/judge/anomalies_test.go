package judge

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/anomalies"
	"github.com/isowatch/isowatch/internal/lab/oracle"
)

// TestAnomaliesByDefinition: the oracle says of each of MTC's anomalies what the table
// says.
func TestAnomaliesByDefinition(t *testing.T) {
	for _, c := range anomalies.Load(t, "../../../testdata/anomalies") {
		t.Run(c.Name, func(t *testing.T) {
			got := oracle.Check(c.History.Transactions, record.Assumptions{}.Override(c.History.Header))
			for _, l := range verdict.Levels() {
				want := c.Levels[l]
				holds, judged := got[l]
				if said := outcome(holds, judged); said != want {
					t.Errorf("%v is %v, want %v", l, said, want)
				}
			}
		})
	}
}

func outcome(holds, judged bool) verdict.Outcome {
	switch {
	case !judged:
		return verdict.NotApplicable
	case holds:
		return verdict.Satisfied
	}
	return verdict.Violated
}

// TestAnomaliesByTheEngine: an engine for one level says the same, and so does one for
// all of them, in files and in streams.
func TestAnomaliesByTheEngine(t *testing.T) {
	for _, c := range anomalies.Load(t, "../../../testdata/anomalies") {
		t.Run(c.Name, func(t *testing.T) {
			asked := [][]verdict.Level{verdict.Levels()}
			for _, l := range verdict.Levels() {
				asked = append(asked, []verdict.Level{l})
			}
			for _, levels := range asked {
				for _, online := range []bool{false, true} {
					o := incremental.Options{Levels: levels, Assumptions: record.Assumptions{}.Override(c.History.Header)}
					o.Online, o.UniqueValues = online, true
					e := incremental.New(o)
					for i := range c.History.Transactions {
						e.Step(&c.History.Transactions[i], int64(i))
						if online {
							e.Tick(int64(i))
						}
					}
					for _, r := range e.Close() {
						if r.Outcome != c.Levels[r.Level] {
							t.Errorf("online %v, one of %v: %v is %v, want %v", online, levels, r.Level, r.Outcome, c.Levels[r.Level])
						}
					}
				}
			}
		})
	}
}
