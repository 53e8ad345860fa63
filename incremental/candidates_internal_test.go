package incremental

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// many are n reads of one value that n transactions wrote, some of which may not have taken effect.
func many(n int) (out []record.Transaction) {
	outcomes := [2]record.Status{record.Committed, record.Unknown}
	add := func(session string, status record.Status, ops ...record.Op) {
		out = append(out, record.Transaction{Session: session, ID: fmt.Sprint(len(out)), Status: status, Ops: ops})
	}
	for i := range n {
		add(fmt.Sprint("w", i%20), outcomes[i%2], write("x", 1), write(fmt.Sprint("other", i), 1))
		add(fmt.Sprint("r", i%20), outcomes[i/2%2], read("x", 1))
	}
	return out
}

// Whoever may have written what was read is looked at in counted steps, and once there has been said to stop, hardly
// anybody any more; and what is kept of them has room in Options.BytesMax.
func TestCandidatesAreCounted(t *testing.T) {
	const n = 500
	for _, levels := range [][]verdict.Level{
		{verdict.RC, verdict.RA, verdict.CC},
		{verdict.SI, verdict.SER},
		{verdict.PC, verdict.G1},
	} {
		begin := func(opt Options) *Engine {
			opt.Levels, opt.Online, opt.Initial = levels, true, record.InitialAbsent
			e := New(opt)
			for _, x := range many(n) {
				e.Step(&x, 0)
			}
			e.Tick(0)
			return e
		}
		chosen := func(e *Engine) (n int) {
			if e.weak != nil {
				return len(e.weak.choices)
			}
			return e.g.checks[0].poly.Stats.Choices
		}

		e := begin(Options{})
		used := e.budget.Used()
		e.Close()
		if used = e.budget.Used() - used; used < n*n || chosen(e) < n/2 {
			t.Errorf("%v: %d steps are counted for %d reads of what %d wrote, of which %d were looked at", levels, used, n, n, chosen(e))
		}

		said := verdict.NoReason
		e = begin(Options{Stop: func() verdict.Reason { return said }})
		said = verdict.Timeout
		used = e.budget.Used()
		e.Close()
		if used = e.budget.Used() - used; used > 1<<16 || chosen(e) > 16 {
			t.Errorf("%v: after it was to stop %d reads were looked at, in %d steps", levels, chosen(e), used)
		}

		e = begin(Options{BytesMax: 1 << 20, Steps: 1 << 24})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		results := e.Close()
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 || !e.State().GaveUp {
			t.Errorf("%v: %d bytes are taken, of 1 MiB; that something was given up is %v", levels, taken, e.State().GaveUp)
		}
		for _, r := range results {
			if r.Outcome != verdict.Unknown && r.Level != verdict.G1 {
				t.Errorf("%v: %v is %v (%v)", levels, r.Level, r.Outcome, r.Reason)
			}
		}
	}
}
