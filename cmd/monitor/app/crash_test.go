package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
)

// planted is plantedIn with six lost updates and 50 other keys.
func planted(t *testing.T, transactions int) []record.Transaction {
	return plantedIn(t, transactions, 6, 50)
}

// plantedIn is a valid stream with lost updates in it, n of them, on keys of their
// own, and so many other keys.
func plantedIn(t *testing.T, transactions, n, keys int) []record.Transaction {
	t.Helper()
	txns := generated(t, generate.Config{Level: verdict.SER, Transactions: transactions, Keys: keys, Sessions: 6, Seed: 7})
	var out []record.Transaction
	every := len(txns) / n
	for i, x := range txns {
		if i%every == 0 && i/every < n {
			out = append(out, lostUpdate(i/every+1, x.End)...)
		}
		out = append(out, x)
	}
	return out
}

// smallWindows makes a monitor forget soon.
func smallWindows(c *config.Config) {
	c.Window.Segment, c.Window.Overlap = 200, 50
	c.Coverage = record.CoveragePartial
}

// stored are the ids of the alerts that a store has.
func (s *memStore) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.alerts))
}

// topicOf makes a topic of its own with records.
func topicOf(t *testing.T, brokers []string, topic string, txns []record.Transaction) {
	t.Helper()
	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{Connection: kafka.Connection{Brokers: brokers}, Topic: topic, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	send(t, p, txns...)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// fine makes batches of 20 records, a commit for each, a checkpoint after each, and
// segments also where the end is told.
func fine(a *App) {
	a.tuning.records, a.tuning.groupBytes, a.tuning.checkpoint, a.tuning.segments = 20, 1, 0, true
}

// spilling is fine, and keys of which the last writes are kept are in the store.
func spilling(a *App) {
	fine(a)
	a.tuning.seeds = 1
}

// TestHistoryBegunAnew: with another configuration a history begins anew, and does
// not take what it had spilled before for its own.
func TestHistoryBegunAnew(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, plantedIn(t, 1200, 8, 1000))
	c := testConfig(brokers)
	smallWindows(c)
	c.Window.Keys = 1
	st := newMemStore("r")
	if err := start(t, c, st, true, spilling).wait(t); err != nil {
		t.Fatal(err)
	}
	want, spills := st.ids(), st.spills
	if len(want) != 8 || spills == 0 || len(st.checked[record.DefaultDB]) == 0 {
		t.Fatalf("%d alerts, %d keys spilled, %d of the checkpoint", len(want), spills, len(st.checked[record.DefaultDB]))
	}
	c.Solver.Conflicts++
	st.die(1) // when it begins
	if err := start(t, c, st, true, spilling).wait(t); err == nil || !strings.Contains(err.Error(), errDisk.Error()) {
		t.Fatalf("it ended with %v", err)
	}
	st.die(0)
	if err := start(t, c, st, true, spilling).wait(t); err != nil {
		t.Fatal(err)
	}
	if got := st.ids(); !slices.Equal(got, want) {
		t.Errorf("%d alerts, want %d", len(got), len(want))
	}
	topicOf(t, brokers, "another", plantedIn(t, 1200, 8, 1000))
	c.Source.Kafka.Topic = "another"
	st.die(0)
	if err := start(t, c, st, true, spilling).wait(t); err != nil {
		t.Fatal(err)
	}
}

// undisturbed is a monitor's configuration, and what its store holds in the end if nothing
// disturbs it.
func undisturbed(t *testing.T) (*config.Config, *memStore) {
	t.Helper()
	brokers := cluster(t)
	const anomalies = 8
	topicOf(t, brokers, testTopic, plantedIn(t, 1200, anomalies, 1000))
	c := testConfig(brokers)
	smallWindows(c)
	st := newMemStore("r")
	if err := start(t, c, st, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	if n := len(st.ids()); n != anomalies {
		t.Fatalf("%d alerts of a run that nothing disturbs, want %d", n, anomalies)
	}
	return c, st
}

// TestKilledAnywhere: wherever the monitor dies, the next run finds what a run that
// did not die finds, and every alert is delivered.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	c, whole := undisturbed(t)
	want := whole.ids()
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 8
	if race.Brief() {
		rounds = 4
	}
	for round := range rounds {
		h := newHook(t)
		c := *c
		fine := fine
		if round%2 == 1 {
			c.Window.Keys, fine = 1, spilling
		}
		little := func(a *App) {
			if round%4 > 1 { // much is worked off again, and waits in the journal meanwhile
				a.tuning.queue, a.tuning.checkpoint = 20, time.Hour
			}
		}
		c.Alerts.Webhooks = []config.Webhook{h.webhook()}
		st := newMemStore(webhookName(h.webhook()))
		kills := 0
		for ; kills < 6; kills++ {
			st.die(1 + rng.IntN(60))
			err := start(t, &c, st, true, fine, little).wait(t)
			if err == nil {
				break // it was done before it could die
			}
			if !strings.Contains(err.Error(), errDisk.Error()) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		st.die(0)
		if err := start(t, &c, st, true, fine, little).wait(t); err != nil {
			t.Fatalf("round %d: after %d kills: %v", round, kills, err)
		}
		if got := st.ids(); !slices.Equal(got, want) {
			t.Errorf("round %d: after %d kills %d alerts, want %d:\n%v\n%v", round, kills, len(got), len(want), got, want)
		}
		if spills := round%2 == 1; spills != (st.spills > 0) || spills != (st.reads > 0) {
			t.Errorf("round %d: %d keys went to the store and %d came back", round, st.spills, st.reads)
		}
		h.mu.Lock()
		for _, id := range want {
			if h.seen[id] == 0 {
				t.Errorf("round %d: alert %s was never delivered", round, id)
			}
		}
		h.mu.Unlock()
	}
}

// TestTwoMonitorsAgree: monitors that read the same topic at different times give
// the same alerts.
func TestTwoMonitorsAgree(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	p := producer(t, brokers)
	c := testConfig(brokers)
	smallWindows(c)
	txns := planted(t, 900)
	live := newMemStore("r")
	first := start(t, c, live, false)
	for chunk := range slices.Chunk(txns, 100) {
		send(t, p, chunk...)
	}
	later := newMemStore("r")
	if err := start(t, c, later, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	want := later.ids()
	if len(want) != 6 {
		t.Errorf("%d alerts, want 6", len(want))
	}
	eventually(t, "the first monitor has found as much", func() bool { return len(live.ids()) >= len(want) })
	first.stop(t)
	if got := live.ids(); !slices.Equal(got, want) {
		t.Errorf("one found %v, the other %v", got, want)
	}
}

// stuckStore is a store that stands still once it has made so many commits.
type stuckStore struct {
	*memStore
	left atomic.Int64
}

func (s *stuckStore) Commit(ctx context.Context, c store.Commit) error {
	if s.left.Add(-1) < 0 {
		return fmt.Errorf("store x: commit: %w", store.ErrStuck)
	}
	return s.memStore.Commit(ctx, c)
}

func (s *stuckStore) Close() error { return fmt.Errorf("store x: closing: %w", store.ErrStuck) }

// TestStuckStore: a store that stands still ends the monitor, which says so once, and the next run goes on from there.
func TestStuckStore(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, planted(t, 600))
	c := testConfig(brokers)
	smallWindows(c)
	st := &stuckStore{memStore: newMemStore("r")}
	st.left.Store(5)
	err := start(t, c, st, false, fine).wait(t)
	if !errors.Is(err, store.ErrStuck) || strings.Count(err.Error(), store.ErrStuck.Error()) != 1 {
		t.Errorf("it ends with %v", err)
	}
	if err := start(t, c, st.memStore, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	if n := len(st.ids()); n != 6 {
		t.Errorf("%d alerts, want 6", n)
	}
}

// TestFullDisk: while the disk is full alerts are found and delivered; when there is
// room again all is stored, and a crash then loses nothing. With little memory for
// what waits the journal gets a hole.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, held := range []int64{heldBytesMax, 1} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			brokers := cluster(t)
			p := producer(t, brokers)
			h := newHook(t)
			c := testConfig(brokers)
			smallWindows(c)
			c.Window.Lateness = time.Second // on a busy machine partitions are read far apart
			c.HTTP.Listen = "127.0.0.1:0"
			c.Alerts.Webhooks = []config.Webhook{h.webhook()}
			st := newMemStore(webhookName(h.webhook()))
			txns := planted(t, 1200)
			r := start(t, c, st, false, fine, func(a *App) { a.tuning.held = held })
			send(t, p, txns[:200]...)
			first := h.next(t)
			st.setFull(true)
			send(t, p, txns[200:800]...)
			second := h.next(t)
			if second.ID == first.ID {
				t.Errorf("alert %s came twice", first.ID)
			}
			eventually(t, "/readyz names the disk", func() bool { return strings.Contains(get(t, r.Addr(), "/readyz"), whoStore) })
			if _, ok, _ := st.Alert(t.Context(), second.ID); ok {
				t.Errorf("alert %s is stored on a full disk", second.ID)
			}
			if held == 1 {
				eventually(t, "entries are dropped", func() bool {
					return !strings.Contains(get(t, r.Addr(), "/metrics"), "isowatch_journal_dropped_total 0")
				})
			}
			st.setFull(false)
			eventually(t, "what was held is stored", func() bool {
				_, ok, _ := st.Alert(t.Context(), second.ID)
				return ok && get(t, r.Addr(), "/readyz") == "ready\n"
			})
			send(t, p, txns[800:1000]...)
			// What the journal lacks is lost by a crash unless it is judged by then.
			eventually(t, "what came while the disk was full is judged", func() bool {
				return r.released(t, record.DefaultDB) >= 800 && len(st.ids()) >= 4
			})
			// It dies, and goes on from what is stored.
			st.die(4)
			send(t, p, txns[1000:]...)
			if err := r.wait(t); err == nil || !strings.Contains(err.Error(), errDisk.Error()) {
				t.Fatalf("it did not die: %v", err)
			}
			st.die(0)
			if err := start(t, c, st, true, fine).wait(t); err != nil {
				t.Fatal(err)
			}
			whole := newMemStore("r")
			c.Alerts.Webhooks = nil
			if err := start(t, c, whole, true, fine).wait(t); err != nil {
				t.Fatal(err)
			}
			if got, want := st.ids(), whole.ids(); len(want) != 6 || !slices.Equal(got, want) {
				t.Errorf("stored %v, want %v", got, want)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, id := range whole.ids() {
				if h.seen[id] == 0 {
					t.Errorf("alert %s was never delivered", id)
				}
			}
		})
	}
}

// TestAnotherConfiguration: what the store has of a history serves only under the
// settings it was made with; under others its records are judged anew.
func TestAnotherConfiguration(t *testing.T) {
	brokers := cluster(t)
	txns := lostUpdate(1, 1000)
	p := producer(t, brokers)
	send(t, p, txns[:2]...)
	c := testConfig(brokers)
	c.Window.MaxTransaction = time.Minute
	st := newMemStore("r")
	r := start(t, c, st, false)
	eventually(t, "the first records are stored", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.offsets["kafka "+testTopic][0]+st.offsets["kafka "+testTopic][1]+st.offsets["kafka "+testTopic][2] == 2
	})
	r.stop(t)
	send(t, p, txns[2])
	c.Solver.Conflicts++
	r = start(t, c, st, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if len(st.ids()) != 1 || !strings.Contains(r.log.String(), "the configuration or the version of the monitor has changed") {
		t.Errorf("%d alerts, want 1", len(st.ids()))
	}
}

// TestCoverageIsWhatIsAsked: who finds out that records are missing, and says so, is told no more of what
// follows from that none is.
func TestCoverageIsWhatIsAsked(t *testing.T) {
	t.Parallel()
	wrote := record.Transaction{DB: record.DefaultDB, Session: "a", Seq: 1, HasSeq: true, ID: "w", HasTimes: true, Start: 1_700_000_000e9, End: 1_700_000_000e9 + 1000, Status: record.Committed,
		Ops: []record.Op{{Kind: record.Write, Key: "x", Value: record.Int(1)}}}
	unseen, last := wrote, wrote // what it read is of nobody who is seen
	unseen.Session, unseen.ID, unseen.Start, unseen.End = "b", "r", unseen.Start+2000, unseen.End+2000
	unseen.Ops = []record.Op{{Kind: record.Read, Key: "x", Value: record.Int(9)}}
	last.Session, last.ID, last.Start, last.End, last.Ops = "c", "l", last.Start+3600e9, last.End+3600e9, nil
	for _, coverage := range []record.Coverage{record.CoverageComplete, record.CoveragePartial} {
		c := testConfig(nil)
		c.Coverage, c.Initial = record.CoverageComplete, record.InitialAbsent
		st := newMemStore("r")
		path := recordsFile(t, "stream.jsonl", []record.Transaction{wrote})
		c.Source = config.Source{File: &config.File{Path: path}}
		if err := start(t, c, st, true, fine).wait(t); err != nil {
			t.Fatal(err)
		}
		more, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := os.ReadFile(recordsFile(t, "rest.jsonl", []record.Transaction{unseen, last}))
		if _, err2 := more.Write(rest); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if err := more.Close(); err != nil {
			t.Fatal(err)
		}
		c.Coverage = coverage
		r := start(t, c, st, true, fine)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if told, want := len(st.ids()) > 0, coverage == record.CoverageComplete; told != want {
			t.Errorf("complete, then %v: told %v", coverage, told)
		}
		if h := r.Reports()[0]; coverage == record.CoveragePartial && h.Results[0].Verdict == verdict.Violated.String() {
			t.Errorf("complete, then %v: %+v", coverage, h.Results[0])
		}
	}
}

// TestSegmentsAfterUntilEnd: a store that was used to judge an input as one segment serves to watch it
// in segments.
func TestSegmentsAfterUntilEnd(t *testing.T) {
	t.Parallel()
	g, err := endless.New(endless.Config{Keys: 10, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	var txns []record.Transaction
	for range 60 {
		x, _ := g.Next()
		own := *x
		own.DB, own.Ops = record.DefaultDB, slices.Clone(x.Ops)
		txns = append(txns, own)
	}
	c := testConfig(nil)
	c.Source = config.Source{File: &config.File{Path: recordsFile(t, "stream.jsonl", txns)}}
	c.Window.Segment, c.Window.Overlap = 16, 2
	st := newMemStore("r")
	for i, untilEnd := range []bool{true, true, false, false} {
		r := start(t, c, st, untilEnd)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if anew := strings.Contains(r.log.String(), "in segments"); anew != (i == 2) {
			t.Errorf("run %d: judged anew: %v", i, anew)
		}
	}
}

// TestAnotherInput: a store that served another input in between has nothing of the
// first one's histories any more, so that there is nothing to be said of its end.
func TestAnotherInput(t *testing.T) {
	brokers := cluster(t)
	topicOf(t, brokers, "one", lostUpdate(1, 1000))
	topicOf(t, brokers, "two", lostUpdate(2, 1000))
	c := testConfig(brokers)
	st := newMemStore("r")
	for i, topic := range []string{"one", "two", "one", "two"} {
		c.Source.Kafka.Topic = topic
		err := start(t, c, st, true, fine).wait(t)
		if refused := errors.As(err, new(*source.StartupError)); refused != (i == 2) || err != nil && !refused {
			t.Fatalf("turn %d, %s: %v", i, topic, err)
		}
	}
	if got := len(st.ids()); got != 2 {
		t.Errorf("%d alerts, want 2", got)
	}
}

// TestEventsOverARestart: a transaction that is told in events, some before a restart
// and some after it, is one record.
func TestEventsOverARestart(t *testing.T) {
	brokers := cluster(t)
	p := producer(t, brokers)
	c := testConfig(brokers)
	c.Window.MaxTransaction = time.Minute
	st := newMemStore("r")
	say := func(lines ...string) {
		t.Helper()
		for _, l := range lines {
			if err := p.Send(t.Context(), source.Message{Key: []byte("s"), Value: []byte(l)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	states := func() (n int) {
		st.mu.Lock()
		defer st.mu.Unlock()
		for name, b := range st.checkpoints {
			if strings.HasPrefix(name, eventsPrefix) && len(b) > 0 {
				n++
			}
		}
		return n
	}
	say(`{"event":"begin","session":"s","txn":"a","start":1000}`, `{"event":"op","session":"s","txn":"a","n":0,"op":["w","x",1]}`)
	r := start(t, c, st, false)
	eventually(t, "what is open is stored", func() bool { return states() == 1 })
	r.stop(t)
	say(`{"event":"op","session":"s","txn":"a","n":1,"op":["w","y",2]}`, `{"event":"commit","session":"s","txn":"a","count":2,"end":1010}`)
	r = start(t, c, st, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if h := r.Reports(); len(h) != 1 || h[0].Transactions != 1 || h[0].Operations != 2 || len(st.letters) > 0 {
		t.Errorf("reports %+v, dead letters %+v; want one transaction of two operations", h, st.letters)
	}
	if n := states(); n != 0 {
		t.Errorf("the state of %d partitions is kept though nothing is open", n)
	}
}
