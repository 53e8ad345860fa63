package app

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
)

// TestStopLeavesTheQueue: a monitor that is asked to stop finishes the entry at hand
// and no other, however many wait.
func TestStopLeavesTheQueue(t *testing.T) {
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, planted(t, 1200))
	c := testConfig(brokers)
	smallWindows(c)
	st := newMemStore("r")
	var taken atomic.Int64
	at := make(chan struct{})
	g := newGate(t)
	r := start(t, c, st, false, fine, func(a *App) {
		t.Cleanup(g.open)
		a.tuning.slow = func(string) {
			if taken.Add(1) == 5 {
				close(at)
				<-g.free
			}
		}
	})
	<-at
	eventually(t, "all is in the journal", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		o := st.offsets["kafka "+testTopic]
		return o[0]+o[1]+o[2] >= 1200
	})
	r.cancel()
	eventually(t, "it stops", func() bool { return strings.Contains(r.log.String(), `"message":"stopping"`) })
	g.open()
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if n := taken.Load(); n > 6 {
		t.Errorf("%d entries were taken after it was asked to stop", n-5)
	}
	if !strings.Contains(r.log.String(), "the next run goes on") {
		t.Error("the log does not say what is left")
	}
	// The next run has them without reading them again.
	if err := start(t, c, st, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	if n := len(st.ids()); n != 6 {
		t.Errorf("%d alerts, want 6", n)
	}
}

// TestStopOfStandardInput: what was read of standard input can't be read again; a stop gives it a moment and then
// leaves it, and the log says how much was judged and what is left.
func TestStopOfStandardInput(t *testing.T) {
	c := testConfig(nil)
	c.Source = config.Source{Stdin: &config.Stdin{}}
	var lines []byte
	records := planted(t, 1200)
	for i := range records {
		lines = append(codec.AppendJSON(lines, &records[i]), '\n')
	}
	at := make(chan struct{})
	var once sync.Once
	r := start(t, c, newMemStore(), false, func(a *App) {
		a.stdin = bytes.NewReader(lines)
		a.tuning.drain, a.tuning.records = 0, 50
		a.tuning.proving = func(w *worker) {
			once.Do(func() { close(at) })
			<-w.going.Done()
		}
	})
	<-at
	eventually(t, "all is read", func() bool { return r.metric(t, "records_total") == len(records) })
	r.stop(t)
	judged := r.released(t, "default")
	if judged >= len(records)/2 {
		t.Errorf("%d of %d transactions were judged", judged, len(records))
	}
	for _, want := range []string{"can't be read again", fmt.Sprintf(`"transactions":%d,`, judged)} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

// TestStandardInputGoesOn: standard input of which an earlier run has read a part is read from its middle on, for all that
// is known: who wrote what is read may be in front of it.
func TestStandardInputGoesOn(t *testing.T) {
	t.Parallel()
	c := testConfig(nil)
	c.Source, c.Coverage, c.Initial = config.Source{Stdin: &config.Stdin{}}, record.CoverageComplete, record.InitialAbsent
	for _, x := range []struct {
		read   int // 0: it was killed before anything had come about
		begins bool
	}{{200, false}, {0, false}, {200, true}} {
		read, st := x.read, newMemStore()
		st.full = read == 0 // as it begins: nothing is read before it is noted that something is
		records := chain("default", "s", 0, 400)
		for _, part := range [][]record.Transaction{records[:read], records[200:]} {
			var lines []byte
			for i := range part {
				part[i].HasSeq = false // a hole would show it
				lines = append(codec.AppendJSON(lines, &part[i]), '\n')
			}
			r := start(t, c, st, false, func(a *App) {
				a.stdin, a.begins, a.tuning.reopen = bytes.NewReader(lines), x.begins, time.Millisecond
			})
			if st.full {
				eventually(t, "it waits", func() bool { return strings.Contains(r.log.String(), "waits for room") })
				st.setFull(false)
			}
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(st.ids()); n > 0 != x.begins {
			t.Errorf("%d alerts after %d records of an earlier run; it begins anew: %v", n, read, x.begins)
		}
	}
}

// TestConcludes: the sums of the counters are said at the end, by reason, and what is left open, by level.
func TestConcludes(t *testing.T) {
	m := newMetrics()
	m.transactions.WithLabelValues("a").Add(30)
	m.transactions.WithLabelValues("b").Add(10)
	m.forgotten.WithLabelValues("a", "undecided").Add(3)
	m.forgotten.WithLabelValues("b", "undecided").Add(4)
	m.forgotten.WithLabelValues("b", "awaited-read").Add(1)
	m.losses.WithLabelValues("a", "late").Add(0)
	m.leftOut.WithLabelValues("a").Add(2)
	var log bytes.Buffer
	open := func(n int) []report.Result {
		return []report.Result{{Level: "si"}, {Level: "ser", Unknown: &report.Unknown{Count: n}}}
	}
	m.conclude(zerolog.New(&log), 4*time.Second, []report.History{{Results: open(3)}, {Results: open(4)}})
	want := `{"level":"info","transactions":40,"per_second":10,"given_up":{"awaited-read":1,"undecided":7,"overload_left_out":2},"left_open":{"ser":7},"message":"judged in this run"}` + "\n"
	if log.String() != want {
		t.Errorf("%s, want %s", &log, want)
	}
}

// TestStoppedAnywhere: wherever the monitor is asked to stop, and however often, in
// the end there are the alerts of a run that was never stopped, each counted once.
func TestStoppedAnywhere(t *testing.T) {
	t.Parallel()
	c, whole := undisturbed(t)
	want := whole.ids()
	rng := rand.New(rand.NewPCG(3, 4))
	rounds := 6
	if race.Brief() {
		rounds = 3
	}
	for round := range rounds {
		h := newHook(t)
		c := *c
		c.Alerts.Webhooks = []config.Webhook{h.webhook()}
		st := newMemStore(webhookName(h.webhook()))
		stops, ended := 0, false
		for ; stops < 8 && !ended; stops++ {
			left := int64(1 + rng.IntN(40))
			at, free := make(chan struct{}), make(chan struct{})
			r := start(t, &c, st, true, fine, func(a *App) {
				a.tuning.slow = func(string) {
					if atomic.AddInt64(&left, -1) == 0 {
						close(at)
						<-free
					}
				}
			})
			var err error
			asked := false
			select {
			case <-at:
				asked = true
				r.cancel()
				close(free)
				err = r.wait(t)
			case err = <-r.done: // it was through before
			}
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if ended = r.Ended(); !ended && len(r.Reports()) > 0 {
				t.Errorf("round %d: a run that was stopped reports %+v", round, r.Reports())
			}
			if asked {
				ended = false // it may have come to the end all the same, but then left alerts to be delivered
			}
		}
		if !ended {
			if err := start(t, &c, st, true, fine).wait(t); err != nil {
				t.Fatalf("round %d: after %d stops: %v", round, stops, err)
			}
		}
		if got := st.ids(); !slices.Equal(got, want) {
			t.Errorf("round %d: after %d stops %d alerts, want %d", round, stops, len(got), len(want))
		}
		for _, id := range want {
			counted(t, st, whole, id)
			h.mu.Lock()
			if h.seen[id] == 0 {
				t.Errorf("round %d: alert %s was never delivered", round, id)
			}
			h.mu.Unlock()
		}
	}
}

// counted holds the count of an alert to that of another run.
func counted(t *testing.T, got, want *memStore, id string) {
	t.Helper()
	count := func(st *memStore) int {
		stored, ok, err := st.Alert(t.Context(), id)
		if err != nil || !ok {
			t.Fatalf("alert %s: %v, %v", id, ok, err)
		}
		a, err := alerts.Parse(stored.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.Count
	}
	if g, w := count(got), count(want); g != w {
		t.Errorf("alert %s is counted %d times, want %d", id, g, w)
	}
}

// TestSecondRunToTheEnd: a run over an input that has not grown answers as the one
// before, and says whose sessions and keys it counted.
func TestSecondRunToTheEnd(t *testing.T) {
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, lostUpdate(1, 1000))
	c, st := testConfig(brokers), newMemStore("r")
	var want string
	for run := range 3 {
		r := start(t, c, st, true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		h := r.Reports()
		if len(h) != 1 || h[0].Transactions != 3 || h[0].Continued != (run > 0) || (h[0].Keys > 0) != (run == 0) {
			t.Fatalf("run %d reports %+v", run, h)
		}
		if got := verdicts(t, r.App, "default"); run == 0 {
			want = got
		} else if got != want {
			t.Errorf("run %d: %s, want %s", run, got, want)
		}
		if a, _, err := st.Alert(t.Context(), st.ids()[0]); err != nil || !strings.Contains(string(a.Body), `"count":1,`) {
			t.Errorf("run %d: %v %.300s", run, err, a.Body)
		}
	}
}

// stoppingStore asks the monitor to stop when keys are spilled to it for the first time, goes on when it does, and counts how
// often they are spilled.
type stoppingStore struct {
	*memStore
	stop     func()
	stopping chan struct{} // closed when the monitor says so
	spills   int
}

func (s *stoppingStore) Spill(ctx context.Context, db string, pairs []store.KV) error {
	if s.spills++; s.spills == 1 {
		s.stop()
		<-s.stopping
	}
	return s.memStore.Spill(ctx, db, pairs)
}

// TestStopWhileKeysAreSpilled: after a segment with many keys more of them leave memory than a stop may wait for. What was spilled
// since the last checkpoint is spilled again by the next run.
func TestStopWhileKeysAreSpilled(t *testing.T) {
	const n, each = 600, 3 * spillMax / 200
	var lines []byte
	for i := range n {
		x := record.Transaction{DB: record.DefaultDB, Session: "s", HasSeq: true, Seq: int64(i + 1), Status: record.Committed, HasTimes: true, Start: int64(i) * 1e9, End: int64(i)*1e9 + 1000}
		for k := range each {
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: fmt.Sprint(i, " ", k), Value: record.Int(1)})
		}
		lines = append(codec.AppendJSON(lines, &x), '\n')
	}
	path := filepath.Join(t.TempDir(), "input.jsonl")
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(nil)
	smallWindows(c)
	c.Window.Segment, c.Window.Keys = 1000, 1
	ctx, stop := context.WithCancel(t.Context())
	st := &stoppingStore{memStore: newMemStore("r"), stop: stop, stopping: make(chan struct{})}
	run := func(ctx context.Context, follow bool) string {
		c.Source = config.Source{File: &config.File{Path: path, Follow: follow}} // it is not to end before it is stopped
		var log syncBuffer
		says := zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, text string) {
			if text == "stopping" {
				close(st.stopping)
			}
		})
		a, err := New(Options{Config: c, Log: zerolog.New(&log).Hook(says), Store: st})
		if err != nil {
			t.Fatal(err)
		}
		fine(a)
		if err := a.Run(ctx); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	if log := run(ctx, true); st.spills != 1 || !strings.Contains(log, "the next run goes on") {
		t.Errorf("%d times keys were spilled after it was asked to stop:\n%s", st.spills-1, log)
	}
	st.die(0)
	run(t.Context(), false)
	if spilled := len(st.spilled[record.DefaultDB]); spilled < n*each/2 {
		t.Errorf("%d keys of %d are spilled", spilled, n*each)
	}
}

// TestStopAsItBegins: who asks it to stop before it has begun to read has a stop, and no failure.
func TestStopAsItBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(nil)
	c.Source, c.Store.Path = config.Source{File: &config.File{Path: path, Follow: true}}, filepath.Join(t.TempDir(), "store")
	a, err := New(Options{Config: c, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
