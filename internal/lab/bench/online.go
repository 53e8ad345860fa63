package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// tickEvery is how many transactions of an online measurement there are between two
// ticks: a quarter of a second at 100,000 a second.
const tickEvery = 25_000

// online measures the engine alone, in this process and on one core, garbage collection included:
// records that are decoded already, one at a time, and a tick now and then. It gives the transactions of
// a second of the median run.
func online(s Spec, level verdict.Level) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		file, err := e.Generated(ctx, s)
		if err != nil {
			return Measured{}, err
		}
		hs, err := history.Open(file, history.Options{})
		if err != nil {
			return Measured{}, err
		}
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		m := Measured{Histories: 1, Runs: e.opt.Runs}
		var seconds []float64
		for run := range e.opt.Runs {
			e.opt.Progress(fmt.Sprintf("streaming %s at %v, run %d of %d", s.Workload, level, run+1, e.opt.Runs))
			runtime.GC() // what the last run left is not this one's
			began := time.Now()
			r, err := stream(ctx, hs[0].Transactions, level, began.Add(e.opt.Timeout))
			if err != nil {
				if ctx.Err() == nil {
					err = &lateError{e.opt.Timeout}
				}
				return m, err
			}
			seconds = append(seconds, time.Since(began).Seconds())
			m.Verdicts = map[string]int{r.Outcome.String(): 1}
		}
		m.Seconds = median(seconds)
		m.PerSecond = float64(len(hs[0].Transactions)) / m.Seconds
		return m, nil
	}
}

// stream runs an online engine. The error is that of time being up.
func stream(ctx context.Context, txns []record.Transaction, level verdict.Level,
	until time.Time) (verdict.Result, error) {
	engine := incremental.New(incremental.Options{Levels: []verdict.Level{level}, Online: true, UniqueValues: true,
		MaxTransaction: int64(time.Minute), MaxViolations: 1})
	for i := range txns {
		engine.Step(&txns[i], 0)
		if i%tickEvery == tickEvery-1 {
			engine.Tick(txns[i].End)
			if ctx.Err() != nil || time.Now().After(until) {
				return verdict.Result{}, context.DeadlineExceeded
			}
		}
	}
	return engine.Close()[0], nil
}
