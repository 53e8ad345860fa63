package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/store"
)

// input is a file of records that a monitor follows.
type input struct{ path string }

func newInput(t *testing.T, name string) *input {
	t.Helper()
	return &input{filepath.Join(t.TempDir(), name)}
}

// add writes records at its end.
func (in *input) add(t *testing.T, txns ...record.Transaction) {
	t.Helper()
	f, err := os.OpenFile(in.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for i := range txns {
		lines = append(codec.AppendJSON(lines, &txns[i]), '\n')
	}
	_, err = f.Write(lines)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// follow is a configuration of a monitor that does, with a store.
func (in *input) follow(path string) *config.Config {
	c := testConfig(nil)
	c.Source = config.Source{File: &config.File{Path: in.path, Follow: true}}
	c.Store.Path = path
	c.Initial = record.InitialAbsent
	return c
}

// chain are transactions of one session, each of which reads what the one before wrote to
// the same key, from one number on; of those before the first one is what it reads.
func chain(db, session string, from, to int) []record.Transaction {
	var out []record.Transaction
	for n := from; n < to; n++ {
		read := record.Null
		if n > 0 {
			read = record.Int(int64(n - 1))
		}
		at := int64(1+n) * 1000
		out = append(out, record.Transaction{DB: db, Session: session, Seq: int64(n), HasSeq: true, ID: fmt.Sprint(session, "#", n), HasTimes: true, Start: at, End: at + 10,
			Ops: []record.Op{{Kind: record.Read, Key: "k", Value: read}, {Kind: record.Write, Key: "k", Value: record.Int(int64(n))}}})
	}
	return out
}

// shifted are the same transactions with other values.
func shifted(txns []record.Transaction, by int64) []record.Transaction {
	for i := range txns {
		for j := range txns[i].Ops {
			if v := &txns[i].Ops[j].Value; v.Kind == record.KindInt {
				v.Num += by
			}
		}
	}
	return txns
}

// watch runs a monitor until it has released so many transactions of histories, and stops
// it.
func watch(t *testing.T, c *config.Config, want map[string]int, set ...func(*App)) *running {
	t.Helper()
	r := start(t, c, nil, false, set...)
	eventually(t, fmt.Sprintf("%v is taken", want), func() bool {
		select {
		case err := <-r.done:
			t.Fatalf("it ended: %v", err)
		default:
		}
		released := r.metricOf(t, "transactions_total")
		for db, n := range want {
			if released[db] < n {
				return false
			}
		}
		return true
	})
	r.stop(t)
	return r
}

// released is how many transactions of a history were given to the engine.
func (r *running) released(t *testing.T, db string) int {
	t.Helper()
	return r.metric(t, "transactions_total", db)
}

// metric is the value of a metric with these labels, in the order of their names; 0 if there is none.
func (r *running) metric(t *testing.T, name string, labels ...string) int {
	t.Helper()
	return r.metricOf(t, name)[strings.Join(labels, " ")]
}

// metricOf are the values of a metric by its labels, in the order of their names.
func (r *running) metricOf(t *testing.T, name string) map[string]int {
	t.Helper()
	families, err := r.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != namespace+"_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			out[strings.Join(values, " ")] = int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
		}
	}
	return out
}

// whole checks that a store is, and returns the ids of its alerts.
func whole(t *testing.T, path string) (ids []string) {
	t.Helper()
	if r, err := store.Verify(path); err != nil || len(r.Damaged) > 0 {
		t.Fatalf("%v, damaged: %v", err, r.Damaged)
	}
	st, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = st.AlertsBefore(t.Context(), 0, func(_ uint64, a store.Alert) bool { ids = append(ids, a.ID); return true })
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// TestInputsInTurn: one store is used for two inputs in turn, of which one may be longer than
// the other, and has a history that the other does not have. Each goes on where it was, no record of one is
// taken for the other's, and what is found in the end is what is there.
func TestInputsInTurn(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			a, b := newInput(t, "a.jsonl"), newInput(t, "b.jsonl")
			for turn := range 3 {
				from, to := turn*100, turn*100+100
				a.add(t, slices.Concat(chain("default", "s", from, to), chain("x", "s", from, to))...)
				watch(t, a.follow(path), map[string]int{"default": 100, "x": 100}, fine)
				b.add(t, shifted(chain("default", "s", turn*n, turn*n+n), 1000)...)
				watch(t, b.follow(path), map[string]int{"default": n}, fine)
				if ids := whole(t, path); len(ids) > 0 {
					t.Fatalf("turn %d: %d alerts of inputs in which nothing is wrong", turn, len(ids))
				}
			}
			a.add(t, lostUpdate(1, 1_000_000)...)
			watch(t, a.follow(path), map[string]int{"default": 3}, fine)
			if ids := whole(t, path); len(ids) != 1 {
				t.Errorf("%d alerts, want that of the lost update", len(ids))
			}
		})
	}
}

// judged runs a monitor until its input ends, and returns its report as what is not its cost.
func judgedAll(t *testing.T, in *input, path string) (string, error) {
	t.Helper()
	r := start(t, in.follow(path), nil, true, fine)
	if err := r.wait(t); err != nil {
		return "", err
	}
	var out []string
	for _, h := range r.Reports() {
		for _, level := range h.Results {
			var ids []string
			for _, x := range level.Anomalies {
				ids = append(ids, x.Alert.ID)
			}
			slices.Sort(ids)
			out = append(out, fmt.Sprintf("%s: %s %s %v %q", h.DB, level.Level, level.Verdict, ids, level.Notes))
		}
	}
	return strings.Join(out, "\n"), nil
}

// TestEndInSharedStore: what is said at the end of an input is about that one alone, whatever
// else the store was used for, and nothing is where what was judged of it is gone.
func TestEndInSharedStore(t *testing.T) {
	t.Parallel()
	path, own := filepath.Join(t.TempDir(), "shared"), filepath.Join(t.TempDir(), "own")
	a, b := newInput(t, "a.jsonl"), newInput(t, "b.jsonl")
	a.add(t, slices.Concat(chain("default", "s", 0, 300), lostUpdate(1, 1_000_000))...)
	b.add(t, slices.Concat(chain("default", "s", 0, 40), lostUpdate(2, 1_000_000))...)
	want, err := judgedAll(t, b, own)
	if err != nil || strings.Count(want, "violated") != 2 {
		t.Fatalf("%v\n%s", err, want)
	}
	if _, err := judgedAll(t, a, path); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got, err := judgedAll(t, b, path); err != nil || got != want {
			t.Errorf("run %d in the shared store: %v\n%s\nwant\n%s", i, err, got, want)
		}
		var refused *source.StartupError
		if got, err := judgedAll(t, a, path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "--rebuild") || !strings.Contains(err.Error(), path) {
			t.Errorf("run %d of what was replaced: %v\n%s", i, err, got)
		}
	}
	c := a.follow(path)
	c.Source.File.Follow = false
	if err := start(t, c, nil, false).wait(t); !errors.As(err, new(*source.StartupError)) {
		t.Errorf("a file that is not followed: %v", err)
	}
}

// TestPassingInput: standard input, judged in the store of another input, takes nothing from it.
func TestPassingInput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	a := newInput(t, "a.jsonl")
	keys := func(from, to, write int) []record.Transaction {
		txns := chain("default", "s", from, to)
		for i := range txns {
			txns[i].Ops = []record.Op{{Kind: record.Write, Key: fmt.Sprint("k", i), Value: record.Int(int64(write + i))}}
		}
		return txns
	}
	small := func(c *config.Config) *config.Config {
		smallWindows(c)
		c.Window.Keys = 1
		return c
	}
	a.add(t, keys(0, 1000, 0)...)
	first := start(t, small(a.follow(path)), nil, false, spilling)
	eventually(t, "keys are on disk", func() bool { return first.metric(t, "frontier_keys", "default", "disk") > 0 })
	eventually(t, "all is taken", func() bool { return first.released(t, "default") == 1000 })
	first.stop(t)
	spilled := func() (n int) {
		st, err := store.Open(store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprint("k", i)
		}
		got, err := st.Spilled(t.Context(), "default", names)
		if err := errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		for _, b := range got {
			if b != nil {
				n++
			}
		}
		return n
	}
	before := spilled()
	if before == 0 {
		t.Fatal("nothing is spilled")
	}
	c := small(a.follow(path))
	c.Source = config.Source{Stdin: &config.Stdin{}}
	var lines []byte
	for _, x := range keys(0, 1000, 5000) {
		lines = append(codec.AppendJSON(lines, &x), '\n')
	}
	r := start(t, c, nil, true, spilling, func(a *App) { a.stdin = bytes.NewReader(lines) })
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if n := r.released(t, "default"); n != 1000 {
		t.Errorf("%d records of standard input are judged", n)
	}
	if after := spilled(); after != before {
		t.Errorf("the store has %d keys of the other input, not %d", after, before)
	}
	// It goes on with what it had: this reads what was written last.
	a.add(t, record.Transaction{DB: "default", Session: "t", ID: "t", HasTimes: true, Start: 2_000_000, End: 2_000_001, Ops: []record.Op{{Kind: record.Read, Key: "k3", Value: record.Int(3)}}})
	watch(t, small(a.follow(path)), map[string]int{"default": 1}, spilling)
	if ids := whole(t, path); len(ids) > 0 {
		t.Errorf("%d alerts", len(ids))
	}
}

// reads runs a monitor until it has read what there is, and stops it.
func reads(t *testing.T, c *config.Config, st store.Store) {
	t.Helper()
	r := start(t, c, st, false, fine)
	eventually(t, "the input is read", func() bool { _, waits := r.ready.waiting(whoInput); return !waits })
	r.stop(t) // what was read is stored
}

// TestEmptyInput: an input of which there is nothing, judged in the store of another one, takes
// nothing from it; that one goes on as if it had not been. What is there of it later is judged
// with complete coverage, as it is read from its beginning.
func TestEmptyInput(t *testing.T) {
	t.Parallel()
	path, own := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "own")
	a, b := newInput(t, "a.jsonl"), newInput(t, "b.jsonl")
	// What is added later is later, too: it may be late else, which depends on how long this takes.
	a.add(t, slices.Concat(chain("default", "s", 0, 100), lostUpdate(1, 100_500))...)
	b.add(t)
	for _, p := range []string{path, own} {
		if _, err := judgedAll(t, a, p); err != nil {
			t.Fatal(err)
		}
	}
	reads(t, b.follow(path), nil)
	a.add(t, chain("default", "s", 100, 150)...)
	want, err := judgedAll(t, a, own)
	if err != nil || !strings.Contains(want, "violated") {
		t.Fatalf("%v\n%s", err, want)
	}
	if got, err := judgedAll(t, a, path); err != nil || got != want {
		t.Errorf("after an empty input: %v\n%s\nwant\n%s", err, got, want)
	}
	reads(t, b.follow(path), nil)
	b.add(t, chain("default", "s", 0, 20)...)
	if r := watch(t, b.follow(path), map[string]int{"default": 20}, fine); !strings.Contains(r.log.String(), `"coverage":"complete"`) {
		t.Error("of an input that is read from its beginning coverage is not complete")
	}
	whole(t, path)
}

// TestEndOfLatest: a topic that is read from where it ended when the monitor was there first is read
// from there, also if nothing came before the next run, and another input had the store.
func TestEndOfLatest(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	st := newMemStore("r")
	c := testConfig(brokers)
	topicOf(t, brokers, "other", lostUpdate(1, 1000))
	topicOf(t, brokers, testTopic, chain("old", "s", 0, 5))
	c.Source.Kafka.Topic = "other"
	if err := start(t, c, st, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	c.Source.Kafka.Topic, c.Source.Kafka.Start = testTopic, config.Start{At: config.StartLatest}
	r := start(t, c, st, false, fine)
	eventually(t, "it is noted where the topic ends", func() bool { return st.read() == 5 })
	r.stop(t)
	send(t, producer(t, brokers), chain("default", "s", 0, 7)...)
	watched := start(t, c, st, false, fine)
	eventually(t, "what came meanwhile is judged", func() bool { return watched.released(t, "default") == 7 })
	watched.stop(t)
}

// TestEndOfWhatWasTaken: of an input of which what was judged is gone, as the store was used for
// another one meanwhile, the end is not told, also when more of it has been judged since.
func TestEndOfWhatWasTaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	a, b := newInput(t, "a.jsonl"), newInput(t, "b.jsonl")
	a.add(t, chain("default", "s", 0, 30)...)
	b.add(t, chain("default", "s", 0, 30)...)
	watch(t, a.follow(path), map[string]int{"default": 30}, fine)
	watch(t, b.follow(path), map[string]int{"default": 30}, fine)
	for n := 30; n < 50; n += 10 {
		a.add(t, chain("default", "s", n, n+10)...)
		watch(t, a.follow(path), map[string]int{"default": 10}, fine)
		if got, err := judgedAll(t, a, path); !errors.As(err, new(*source.StartupError)) || !strings.Contains(err.Error(), "--rebuild") {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if got, err := judgedAll(t, b, path); !errors.As(err, new(*source.StartupError)) {
		t.Errorf("the other: %v\n%s", err, got)
	}
}
