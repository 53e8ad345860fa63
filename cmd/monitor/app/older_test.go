package app

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// older is a checkpoint's state in a form that another version wrote.
func older(state []byte) []byte {
	state = slices.Clone(state)
	state[0]--
	return state
}

// TestAnotherVersion: a state that another version of the monitor wrote is not damaged.
// The history is judged anew from the records that are kept, as after a change of the
// configuration, and finds what the whole run finds. A history that has no state yet is nobody else's.
func TestAnotherVersion(t *testing.T) {
	for _, other := range []bool{true, false} {
		brokers := cluster(t)
		txns := lostUpdate(1, 1000)
		p := producer(t, brokers)
		send(t, p, txns[:2]...)
		st := newMemStore("r")
		if err := start(t, testConfig(brokers), st, true).wait(t); err != nil {
			t.Fatal(err)
		}
		c, err := parseCheckpoint(record.DefaultDB, st.checkpoints[record.DefaultDB])
		if err != nil {
			t.Fatal(err)
		}
		if c.state = older(c.state); !other { // as it was stored before the history had consumed anything
			c.state, c.consumed, c.floor, c.told = nil, c.born-1, c.born, newTold()
		}
		st.checkpoints[record.DefaultDB] = c.append(nil)
		send(t, p, txns[2])
		r := start(t, testConfig(brokers), st, true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if len(st.ids()) != 1 || other != strings.Contains(r.log.String(), "the version of the monitor has changed") {
			t.Errorf("%d alerts, want 1; it said\n%s", len(st.ids()), r.log.String())
		}
	}
}

// What was found stays red on the page, where it was, when the history is judged anew, of another configuration or
// version; of what is not judged again nothing is said to be complete. And what is found again in the same records is
// not counted again.
func TestPageOfWhatIsJudgedAnew(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		set  func(*config.Config)
		form func(*checkpoint)
	}{
		{"other levels", func(c *config.Config) { c.Levels = []verdict.Level{verdict.SI, verdict.SSER} }, func(*checkpoint) {}},
		{"another form", func(*config.Config) {}, func(c *checkpoint) { c.state = older(c.state) }},
		{"another form of what is kept no more", func(*config.Config) {}, func(c *checkpoint) {
			c.state, c.floor = older(c.state), c.consumed+1
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, st := bankConfig(t), newMemStore()
			status := func(r *running, ready func(page.History) bool) (out page.History) {
				eventually(t, "it is judged", func() bool {
					all := call[page.Status](t, r, "GET", "status", "", 200)
					if len(all.Waits) == 0 && len(all.Histories) == 1 {
						out = all.Histories[0]
					}
					return len(out.Levels) > 0 && ready(out)
				})
				return out
			}
			often := func(a *App) { a.tuning.checkpoint, a.tuning.records = time.Millisecond, 500 }
			r := start(t, c, st, false, often)
			var last *checkpoint
			before := status(r, func(h page.History) bool { return h.Levels[0].Health == life.Broken && h.Queued == 0 })
			eventually(t, "a checkpoint is stored", func() bool {
				b, _, err := st.Checkpoint(t.Context(), "bank")
				if err == nil {
					last, err = parseCheckpoint("bank", b)
				}
				return err == nil && len(last.state) > 0
			})
			r.stop(t)
			tc.form(last)
			kept := last.floor <= last.consumed
			st.checkpoints["bank"] = last.append(nil)
			tc.set(c)
			r = start(t, c, st, false)
			after := status(r, func(h page.History) bool { return !kept || h.Transactions > 1000 })
			if l := after.Levels[0]; l.Health != life.Broken || l.Violations != 1 || l.Alerts != 1 || l.Since != before.Levels[0].Since {
				t.Errorf("%+v", l)
			}
			if len(after.Broken) == 0 || after.Since > after.Broken[0].From || after.Until < after.Broken[0].To {
				t.Errorf("the bar is from %d to %d, and %v was broken", after.Since, after.Until, after.Broken)
			}
			for _, l := range after.Levels {
				if after.Transactions == 0 && l.Complete != "" {
					t.Errorf("of what is not judged again: %+v", l)
				}
			}
			if x := after.Stretches; !kept && (len(x) == 0 || x[0].Complete || x[0].Why[0].Why != "judged-before") {
				t.Errorf("%+v", x)
			}
			r.stop(t)
			if r = start(t, c, st, true); kept {
				_ = r.wait(t) // that levels are violated is its error
				for _, x := range r.Reports()[0].Results {
					if x.Verdict != verdict.Violated.String() || len(x.Anomalies) == 0 {
						t.Errorf("%s is %s, with %d anomalies", x.Level, x.Verdict, len(x.Anomalies))
					}
				}
			}
		})
	}
}

// What a run that told of all at the end found is not counted again by one that follows the same input.
func TestFoundOnceByTwoKindsOfRuns(t *testing.T) {
	t.Parallel()
	c, st := bankConfig(t), newMemStore()
	var lines []byte
	for _, x := range lostUpdate(1, time.Now().UnixNano()) { // the last that is read, so that it waits for its order
		lines = append(codec.AppendJSON(lines, &x), '\n')
	}
	if err := os.WriteFile(c.Source.File.Path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, c, st, true)
	_ = r.wait(t) // that levels are violated is its error
	r = start(t, c, st, false)
	var h page.History
	eventually(t, "all is judged again", func() bool {
		if all := call[page.Status](t, r, "GET", "status", "", 200); len(all.Waits) == 0 && len(all.Histories) == 1 {
			h = all.Histories[0]
		}
		return h.Transactions == 3 && len(h.Levels) > 0 && h.Levels[0].Complete != ""
	})
	l := h.Levels[0]
	if l.Violations != 1 || l.Alerts != 1 {
		t.Errorf("%+v", l)
	}
	r.stop(t)
}

// A level that was broken under another configuration is not satisfied because what broke it is kept no more.
func TestDoubtedIsNotSatisfied(t *testing.T) {
	t.Parallel()
	c, st := bankConfig(t), newMemStore()
	at := time.Now().UnixNano()
	var lines []byte
	for i, op := range []record.Op{{Kind: record.Write, Value: record.Int(1)}, {Value: record.Int(1)}, {Value: record.Int(7)}} {
		op.Key = "x"
		x := record.Transaction{DB: "bank", Session: "s", Seq: int64(i), HasSeq: true, ID: strconv.Itoa(i), HasTimes: true,
			Start: at + int64(i)*1000, End: at + int64(i)*1000 + 10, Ops: []record.Op{op}}
		lines = append(codec.AppendJSON(lines, &x), '\n')
	}
	if err := os.WriteFile(c.Source.File.Path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Coverage, c.Initial = record.CoverageComplete, record.InitialAbsent
	for i, want := range []string{"si violated", "si unknown, ser unknown"} {
		if c.Levels = []verdict.Level{verdict.SI}; i > 0 {
			c.Levels = []verdict.Level{verdict.SI, verdict.SER}
		}
		r := start(t, c, st, true)
		_ = r.wait(t)
		if got := verdicts(t, r.App, "bank"); got != want {
			t.Errorf("run %d: %s, want %s", i, got, want)
		}
	}
}
