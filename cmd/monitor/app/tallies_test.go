package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
)

// lostUpdates are n of them, each on a key of its own, from the first number on.
func lostUpdates(first, n int, at int64) (out []record.Transaction) {
	for i := range n {
		out = append(out, lostUpdate(first+i, at+int64(i)*int64(time.Microsecond))...)
	}
	return out
}

// timesFound is how often anomalies were found. Trouble of the monitor itself is none: on a busy machine there may be some.
func timesFound(r *running) (n int) {
	for _, g := range r.teller.Snapshot().Groups {
		if !strings.HasPrefix(g.Name, life.Operational) {
			n += int(g.Count)
		}
	}
	return n
}

// TestCountedOnce: anomalies of which enough is kept are counted once each, by a monitor that is stopped and started
// between two storms in one segment, as by one that is not, and by one that judges anew what it has kept. Each storm is
// seen on the page.
func TestCountedOnce(t *testing.T) {
	t.Parallel()
	const enough, more = 2*sharesMax + 40, 30
	c, st := bankConfig(t), newMemStore("r")
	c.Levels = []verdict.Level{verdict.SI}
	f, err := os.Create(c.Source.File.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const apart = 10 * time.Minute
	want, at := 0, time.Now().Truncate(apart).Add(-6*apart)
	storm := func(n int) {
		for _, x := range lostUpdates(1+want, n, at.UnixNano()) {
			if _, err := f.Write(append(codec.AppendJSON(nil, &x), '\n')); err != nil {
				t.Fatal(err)
			}
		}
		want, at = want+n, at.Add(apart)
	}
	storm(enough)
	for n, changed := range []func(){nil, nil, nil, func() { c.Solver.Conflicts++ }, nil} {
		if changed != nil {
			changed()
		}
		r := start(t, c, st, false)
		var h page.History
		eventually(t, fmt.Sprint(want, " are counted in life ", n), func() bool {
			s := call[page.Status](t, r, "GET", "status", "", 200)
			if len(s.Waits) == 0 && len(s.Histories) == 1 {
				h = s.Histories[0]
			}
			return len(h.Levels) > 0 && h.Levels[0].Violations >= int64(want)
		})
		r.stop(t)
		if l := h.Levels[0]; l.Violations != int64(want) || l.Health != life.Broken {
			t.Fatalf("life %d: %+v, want %d violations", n, l, want)
		}
		storms := map[int64]bool{}
		for _, x := range h.Broken {
			storms[x.From/int64(apart)] = true
			if x.To-x.From > int64(apart/2) {
				t.Errorf("life %d: what is between two storms is shown as broken: %+v", n, x)
			}
		}
		if len(storms) != n+1 {
			t.Errorf("life %d: %d storms are shown", n, len(storms))
		}
		storm(more)
	}
}

// TestCountedOnceWhereItEnds: what the end of the input finds, near each other or minutes apart, is counted once, also if
// the input goes on, and by a run that died as it was found. Minutes apart much is kept in the place of what it is
// counted with.
func TestCountedOnceWhereItEnds(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{time.Microsecond, 10 * time.Second} {
		for _, untilEnd := range []bool{true, false} {
			c, st := bankConfig(t), newMemStore("r")
			c.Levels, c.HTTP.Listen, c.Source.File.Follow = []verdict.Level{verdict.SI}, "", false
			f, err := os.Create(c.Source.File.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			at, n := time.Now().Add(-3*time.Hour), 0
			for run, more := range []int{2*sharesMax + 40, 0, 1, 20, 0} {
				for range more {
					for _, x := range lostUpdate(1+n, at.Add(time.Duration(n)*apart).UnixNano()) {
						if _, err := f.Write(append(codec.AppendJSON(nil, &x), '\n')); err != nil {
							t.Fatal(err)
						}
					}
					n++
				}
				st.die(3 + run)
				died := start(t, c, st, untilEnd).wait(t)
				st.die(0)
				r := start(t, c, st, untilEnd)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				if got := timesFound(r); got != n {
					t.Errorf("%v apart, run %d, after one that ended with %v: %d are counted, want %d", apart, run, died, got, n)
				}
			}
		}
	}
}

// mortal is a store that dies, once it may, before or after the first commit that says what was counted.
type mortal struct {
	*memStore
	mu        sync.Mutex
	may, dead bool
	after     bool
}

func (s *mortal) Commit(ctx context.Context, c store.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, counts := c.Checkpoints[talliesPrefix+record.DefaultDB]; s.may && counts && !s.dead {
		if s.dead = true; s.after {
			return errors.Join(s.memStore.Commit(ctx, c), errDisk)
		}
	}
	if s.dead {
		return errDisk
	}
	return s.memStore.Commit(ctx, c)
}

// TestCountedOnceOverAFullDisk: what was found while the disk was full is counted once, also by a monitor that dies once
// there is room again.
func TestCountedOnceOverAFullDisk(t *testing.T) {
	t.Parallel()
	const more = 2*sharesMax + 40
	for _, after := range []bool{false, true} {
		c, st := bankConfig(t), &mortal{memStore: newMemStore("r"), after: after}
		c.Levels = []verdict.Level{verdict.SI}
		f, err := os.Create(c.Source.File.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := start(t, c, st, false)
		find := func(first, n int) {
			t.Helper()
			for _, x := range lostUpdates(first, n, time.Now().UnixNano()) {
				if _, err := f.Write(append(codec.AppendJSON(nil, &x), '\n')); err != nil {
					t.Fatal(err)
				}
			}
			violations(t, r, first+n-1)
		}
		find(1, 1)
		st.setFull(true)
		find(2, more)
		st.mu.Lock()
		st.setFull(false)
		st.may = true
		st.mu.Unlock()
		if err := r.wait(t); !errors.Is(err, errDisk) {
			t.Fatalf("it ended with %v", err)
		}
		c.Source.File.Follow, c.HTTP.Listen = false, ""
		r = start(t, c, st.memStore, false)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if got := timesFound(r); got != 1+more {
			t.Errorf("dead after the counts are stored: %v: %d are counted, want %d", after, got, 1+more)
		}
	}
}

// violations waits until so many anomalies are counted at the first level, as the page has it, and gives how many are.
func violations(t *testing.T, r *running, want int) (n int) {
	t.Helper()
	eventually(t, fmt.Sprint(want, " are counted"), func() bool {
		s := call[page.Status](t, r, "GET", "status", "", 200)
		if len(s.Histories) != 1 || len(s.Histories[0].Levels) == 0 {
			return false
		}
		n = int(s.Histories[0].Levels[0].Violations)
		return n >= want
	})
	return n
}

// writeLost writes n lost updates to a file, from the first number on.
func writeLost(t *testing.T, path string, first, n int, apart time.Duration) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := time.Now().Add(-3 * time.Hour)
	for i := range n {
		for _, x := range lostUpdate(first+i, at.Add(time.Duration(first+i)*apart).UnixNano()) {
			if _, err := f.Write(append(codec.AppendJSON(nil, &x), '\n')); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestNewlyWrongIsCounted: what only another configuration finds wrong in the records that are kept is counted, once, and
// nothing that was counted before is counted again.
func TestNewlyWrongIsCounted(t *testing.T) {
	t.Parallel()
	const anomalies = 2*sharesMax + 40
	c, st := bankConfig(t), newMemStore("r")
	c.Source.File.Path = filepath.Join(t.TempDir(), "records.jsonl")
	writeLost(t, c.Source.File.Path, 0, anomalies, time.Microsecond)
	for i, want := range []int{0, anomalies, anomalies, anomalies} {
		switch i {
		case 0:
			c.Levels = []verdict.Level{verdict.RC}
		case 1:
			c.Levels = []verdict.Level{verdict.SI}
		case 3:
			c.Levels = []verdict.Level{verdict.SI, verdict.SER}
		}
		r := start(t, c, st, false)
		violations(t, r, 0)
		w := r.teller.watched()[0]
		eventually(t, "all is judged", func() bool { return (i == 2 || w.upTo.Load() == 3*anomalies) && w.consumed.Load() >= w.replayed })
		if got := violations(t, r, want); got != want {
			t.Errorf("run %d, at %v: %d are counted, want %d", i, c.Levels, got, want)
		}
		r.stop(t)
	}
}

// TestCountedWithWhatIsRemoved: what is counted with an alert that is removed meanwhile is counted with the next one.
func TestCountedWithWhatIsRemoved(t *testing.T) {
	t.Parallel()
	c, st := bankConfig(t), newMemStore("r")
	c.Levels, c.Source.File.Path = []verdict.Level{verdict.SI}, filepath.Join(t.TempDir(), "records.jsonl")
	const enough = 2*sharesMax + 40
	writeLost(t, c.Source.File.Path, 0, enough, time.Microsecond)
	r := start(t, c, st, false)
	violations(t, r, enough)
	st.mu.Lock()
	clear(st.alerts)
	st.mu.Unlock()
	writeLost(t, c.Source.File.Path, enough, 1, time.Microsecond)
	judged := func() bool {
		w := r.teller.watched()
		return len(w) == 1 && w[0].upTo.Load() == 3*(enough+1)
	}
	eventually(t, "it is judged", judged)
	writeLost(t, c.Source.File.Path, enough+1, 1, time.Microsecond)
	if n := violations(t, r, enough+2); n != enough+2 {
		t.Errorf("%d are counted, want %d", n, enough+2)
	}
	r.stop(t)
}

// TestWhatIsKeptIsKnownAgain: a run that works off again what one that died had found knows all that that one kept.
func TestWhatIsKeptIsKnownAgain(t *testing.T) {
	t.Parallel()
	c, st := bankConfig(t), newMemStore("r")
	c.Levels, c.Source.File.Path = []verdict.Level{verdict.SI}, filepath.Join(t.TempDir(), "records.jsonl")
	const anomalies = 2*sharesMax + 40
	writeLost(t, c.Source.File.Path, 0, anomalies, 10*time.Second) // some are far from what they would be counted with
	seldom := func(a *App) { a.tuning.checkpoint = time.Hour }
	r := start(t, c, st, false, seldom)
	violations(t, r, anomalies-10) // of the last it is not known yet that nobody else comes
	st.die(1)
	writeLost(t, c.Source.File.Path, anomalies, 1, 10*time.Second)
	if err := r.wait(t); !errors.Is(err, errDisk) {
		t.Fatalf("it ended with %v", err)
	}
	st.die(0)
	kept := len(st.ids())
	r = start(t, c, st, false, seldom)
	violations(t, r, anomalies-9)
	w := r.teller.watched()[0]
	eventually(t, "it is where that one was", func() bool { return w.consumed.Load() >= w.replayed })
	r.stop(t)
	if kept <= 2*sharesMax {
		t.Fatalf("%d are kept", kept)
	}
	if lost := slices.DeleteFunc(st.ids(), w.told.has); len(lost) > 0 {
		t.Errorf("of %d that are kept %d are not known again: %v", kept, len(lost), lost)
	}
}

// TestNothingNewIsNoEntry: a run that reads nothing new of an input that ends makes no entry, however long it takes to open
// it: its end is that of the run before, and finds the same in the same order.
func TestNothingNewIsNoEntry(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, lostUpdates(1, 40, time.Now().UnixNano()))
	kafka, file := testConfig(brokers), bankConfig(t)
	file.HTTP.Listen, file.Source.File.Follow = "", false
	for _, x := range []struct {
		conf     *config.Config
		untilEnd bool
	}{{kafka, true}, {file, true}, {file, false}} {
		st := newMemStore("r")
		if err := start(t, x.conf, st, x.untilEnd).wait(t); err != nil {
			t.Fatal(err)
		}
		was := st.last
		if err := start(t, x.conf, st, x.untilEnd, late).wait(t); err != nil {
			t.Fatal(err)
		}
		if was == 0 || st.last != was {
			t.Errorf("%+v, until its end: %v: %d entries, then %d", x.conf.Source, x.untilEnd, was, st.last)
		}
	}
}

// TestCountedOnceWhereverItDies: the same of a store that dies at the n-th commit.
func TestCountedOnceWhereverItDies(t *testing.T) {
	t.Parallel()
	const anomalies = 2*sharesMax + 40
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, lostUpdates(1, anomalies, time.Now().UnixNano()))
	c := testConfig(brokers)
	c.Coverage = record.CoveragePartial
	for where, set := range map[string]func(*App){"with checkpoints": fine, "without": storms["in entries"]} {
		died, step := 0, 7
		if race.Brief() {
			step = 23
		}
		for n := 1; ; n += step {
			st := newMemStore("r")
			st.die(n)
			if start(t, c, st, true, set).wait(t) == nil {
				break
			}
			died++
			st.die(0)
			r := start(t, c, st, true, set)
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
			if got := timesFound(r); got != anomalies {
				t.Errorf("%s: dead at write %d: %d are counted, want %d, of %+v", where, n, got, anomalies, r.teller.Snapshot().Groups)
			}
		}
		t.Logf("%s: died at %d writes", where, died)
	}
}

func TestTalliesAreReadAsWritten(t *testing.T) {
	m := meeting{met: met{entry: 4, n: 7}, kind: "lost-update at si of segment 3"}
	c := newTallies(2)
	c.with(m, 3, "1", alerts.Place{Time: -5}, false)
	b := c.append(nil)
	got, err := parseTallies("db", b)
	if err != nil || !bytes.Equal(got.append(nil), b) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range len(b) {
		if c, err := parseTallies("db", b[:n]); err == nil || c != nil {
			t.Fatalf("cut to %d bytes: %+v, %v", n, c, err)
		}
	}
	place := alerts.Place{Time: -5}
	if got.add(m, place, 0); got.kinds[tallyOf(m.kind)].n != 0 {
		t.Error("what was counted is counted again")
	}
	if m.n++; !got.add(m, place, 0) || got.kinds[tallyOf(m.kind)].n != 1 {
		t.Error("what comes next is not counted")
	}
	if m.n++; got.add(m, alerts.Place{Time: math.MaxInt64}, countedNear) {
		t.Error("what is far from it is counted with it")
	}
	got.passed(5)
	if m.entry = 5; !got.add(m, place, 0) || got.kinds[tallyOf(m.kind)].n != 1 {
		t.Error("what a checkpoint has is counted again")
	}
}

func FuzzTallies(f *testing.F) {
	f.Add([]byte{})
	f.Add(newTallies(1).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseTallies("db", b)
		if err != nil {
			return
		}
		if again, err := parseTallies("db", c.append(nil)); err != nil || again.through != c.through || len(again.kinds) != len(c.kinds) {
			t.Errorf("read %+v, written and read again %+v, %v", c, again, err)
		}
	})
}
