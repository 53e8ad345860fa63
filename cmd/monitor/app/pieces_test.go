package app

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// stormy makes each proof a piece, and no checkpoint before all is read: whatever is not
// in the store is to be found again from the first record on.
func stormy(a *App) {
	a.tuning.piece, a.tuning.checkpoint, a.tuning.segments = 0, time.Hour, true
}

// late lets a monitor wait for its input's end for longer than until it notes that time passes: what is found at the end
// is found there all the same.
func late(a *App) { a.tuning.reading = func() { time.Sleep(2 * idleEvery) } }

// storms are where anomalies are found: many at once, when the input ends, or some in each
// of many entries.
var storms = map[string]func(*App){
	"at once": stormy,
	"in entries": func(a *App) {
		stormy(a)
		a.tuning.records, a.tuning.groupBytes = 20, 1
	},
}

// proving calls f with the number of each proof, from 1, before it begins.
func proving(f func(n int64, w *worker)) func(*App) {
	return func(a *App) {
		var n atomic.Int64
		a.tuning.proving = func(w *worker) { f(n.Add(1), w) }
	}
}

// counting counts proofs.
func counting(n *int64) func(*App) { return proving(func(i int64, _ *worker) { *n = i }) }

// storm is a monitor's configuration with many anomalies in its topic, and what its store
// holds in the end if nothing disturbs it. Each is proved once.
func storm(t *testing.T, anomalies int, set func(*App)) (*config.Config, *memStore) {
	t.Helper()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, plantedIn(t, 240, anomalies, 60))
	c := testConfig(brokers)
	smallWindows(c)
	c.Window.Segment, c.Window.Overlap = 60, 20
	whole, proofs := newMemStore("r"), int64(0)
	if err := start(t, c, whole, true, set, counting(&proofs)).wait(t); err != nil {
		t.Fatal(err)
	}
	if n := len(whole.ids()); n != anomalies || proofs != int64(n) {
		t.Fatalf("%d alerts and %d proofs of a run that nothing disturbs, want %d", n, proofs, anomalies)
	}
	return c, whole
}

// sameAs holds a store to that of a run that nothing disturbed, and a receiver to having
// been told of all that it has.
func sameAs(t *testing.T, st, whole *memStore, h *hook, when string) {
	t.Helper()
	if got, want := st.ids(), whole.ids(); !slices.Equal(got, want) {
		t.Fatalf("%s: %d alerts, want %d", when, len(got), len(want))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range whole.ids() {
		counted(t, st, whole, id)
		if h.seen[id] == 0 {
			t.Errorf("%s: alert %s was never delivered", when, id)
		}
	}
}

// TestStoppedInAStorm: a monitor that is asked to stop while the n-th of many anomalies is
// proved, for every n, proves no other: those before it are in the store, the next run
// proves none of them again, and finds the rest. An anomaly of which the proof was given up
// is not called a bug.
func TestStoppedInAStorm(t *testing.T) {
	t.Parallel()
	for where, set := range storms {
		t.Run(where, func(t *testing.T) { stoppedInAStorm(t, set) })
	}
	t.Run("in one piece", func(t *testing.T) {
		stoppedInAStorm(t, func(a *App) {
			stormy(a)
			a.tuning.piece = time.Hour
		})
	})
}

func stoppedInAStorm(t *testing.T, set func(*App)) {
	const anomalies = 12
	c, whole := storm(t, anomalies, set)
	step := int64(1)
	if race.Brief() {
		step = 4
	}
	for k := int64(1); k <= anomalies; k += step {
		when := fmt.Sprint("stopped in proof ", k)
		h := newHook(t)
		c := *c
		c.Alerts.Webhooks = []config.Webhook{h.webhook()}
		st := newMemStore(webhookName(h.webhook()))
		at, proofs := make(chan struct{}), int64(0)
		r := start(t, &c, st, true, set, proving(func(n int64, w *worker) {
			if proofs = n; n == k {
				close(at)
				<-w.going.Done()
			}
		}))
		<-at
		r.cancel()
		if err := r.wait(t); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if n := len(st.ids()); proofs != k || n != int(k-1) {
			t.Errorf("%s: %d proofs were begun and %d alerts stored, want %d and %d", when, proofs, n, k, k-1)
		}
		if r.Ended() || strings.Contains(r.log.String(), "please report") {
			t.Errorf("%s: it is said to have ended (%v), or an anomaly to be unproved:\n%s", when, r.Ended(), r.log)
		}
		if err := start(t, &c, st, true, set, late, counting(&proofs)).wait(t); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if proofs != anomalies-(k-1) {
			t.Errorf("%s: the next run proves %d anomalies, want %d", when, proofs, anomalies-(k-1))
		}
		sameAs(t, st, whole, h, when)
	}
}

// TestKilledInAStorm: a store dies at the n-th commit of a run that finds many anomalies
// behind one checkpoint, for every n there is: the next run proves none again that the
// store has, and in the end there is what one run finds that did not die.
func TestKilledInAStorm(t *testing.T) {
	t.Parallel()
	for where, set := range storms {
		t.Run(where, func(t *testing.T) { killedInAStorm(t, set) })
	}
}

func killedInAStorm(t *testing.T, set func(*App)) {
	const anomalies = 12
	c, whole := storm(t, anomalies, set)
	died, step := 0, 1
	if race.Brief() {
		step = 4
	}
	for n := 1; ; n += step {
		when := fmt.Sprint("dead at write ", n)
		h := newHook(t)
		c := *c
		c.Alerts.Webhooks = []config.Webhook{h.webhook()}
		st := newMemStore(webhookName(h.webhook()))
		st.die(n)
		err := start(t, &c, st, true, set).wait(t)
		if err == nil {
			break // it was done before it could die
		}
		if !strings.Contains(err.Error(), errDisk.Error()) {
			t.Fatalf("%s: %v", when, err)
		}
		died++
		st.die(0)
		left, proofs := anomalies-len(st.ids()), int64(0)
		if err := start(t, &c, st, true, set, late, counting(&proofs)).wait(t); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if proofs != int64(left) {
			t.Errorf("%s: the next run proves %d anomalies, want %d", when, proofs, left)
		}
		sameAs(t, st, whole, h, when)
	}
	if t.Logf("died at each of %d writes", died); died < anomalies/step {
		t.Errorf("it died %d times; a run makes more commits than that", died)
	}
}

// TestLivesTooShortForAStorm: a monitor that is killed whenever it has proved two of many
// anomalies, which come behind one checkpoint, gets through all the same. With each life two
// more are told, and the health check sees that it gets on.
func TestLivesTooShortForAStorm(t *testing.T) {
	t.Parallel()
	for where, set := range storms {
		t.Run(where, func(t *testing.T) { livesTooShortForAStorm(t, set) })
	}
}

func livesTooShortForAStorm(t *testing.T, set func(*App)) {
	const anomalies, each = 12, 2
	c, whole := storm(t, anomalies, set)
	h := newHook(t)
	c.Alerts.Webhooks = []config.Webhook{h.webhook()}
	st := newMemStore(webhookName(h.webhook()))
	for life := range anomalies / each {
		if n := len(st.ids()); n != life*each {
			t.Fatalf("after %d lives there are %d alerts, want %d", life, n, life*each)
		}
		st.die(0)
		err := start(t, c, st, true, set, proving(func(n int64, w *worker) {
			if w.beat.since.Swap(1) == 1 {
				t.Error("the health check does not see that one anomaly is proved and the next begun")
			}
			if n > each {
				st.die(1)
			}
		})).wait(t)
		if last := life == anomalies/each-1; last != (err == nil) || !last && !strings.Contains(err.Error(), errDisk.Error()) {
			t.Fatalf("life %d: %v", life, err)
		}
	}
	sameAs(t, st, whole, h, "in the end")
}

func testProved() *proved {
	p := provedSince(&checkpoint{origin: "kafka t", config: 1 << 60, consumed: 7})
	for _, x := range testMeetings[:4] {
		if m := p.meet(x.entry, x.same, x.at); x.noted {
			p.put(m, x.outcome)
		}
	}
	return p
}

// testMeetings are what testProved has met, and what it has not.
var testMeetings = []struct {
	entry   uint64
	same    string
	at      verdict.Level
	noted   bool
	outcome outcome
}{
	{6, "x", verdict.SI, true, outcome{level: verdict.SI, id: "1"}},
	{6, "x", verdict.SER, true, outcome{level: verdict.SER, id: "2"}},
	{6, "covered", verdict.SER, false, withheld},
	{6, "y", verdict.SI, true, withheld},
	{6, "y", verdict.SI, false, withheld}, // once more
	{7, "y", verdict.SI, false, withheld}, // later
}

func TestProvedIsReadAsWritten(t *testing.T) {
	for _, p := range []*proved{testProved(), provedSince(&checkpoint{})} {
		b := p.append(nil)
		got, err := parseProved("db", b)
		if err != nil {
			t.Fatal(err)
		}
		if again := got.append(nil); !bytes.Equal(again, b) {
			t.Errorf("written again it is another: %+v", got)
		}
		for _, x := range testMeetings {
			m := got.meet(x.entry, x.same, x.at)
			if o, ok := got.get(m); o != x.outcome && ok || ok != (x.noted && len(p.outcomes) > 0) {
				t.Errorf("%+v: %+v, %v; want %+v", m, o, ok, x)
			}
		}
		if !got.follows(&checkpoint{origin: p.origin, config: p.config, consumed: p.consumed}) {
			t.Error("it does not follow its checkpoint")
		}
		for _, other := range []checkpoint{{origin: "kafka u", config: p.config, consumed: p.consumed}, {origin: p.origin, config: 5, consumed: p.consumed}, {origin: p.origin, config: p.config, consumed: 8}} {
			if got.follows(&other) {
				t.Errorf("it follows %+v", other)
			}
		}
	}
}

// TestProvedIsBounded: what is remembered of proofs is no more than what is read back.
func TestProvedIsBounded(t *testing.T) {
	p := provedSince(&checkpoint{})
	for i := range provedMax + 10 {
		p.put(p.meet(1, "x", verdict.SI), outcome{level: verdict.SI, id: fmt.Sprint(i)})
	}
	if got, err := parseProved("db", p.append(nil)); err != nil || len(got.outcomes) != provedMax {
		t.Errorf("%d, %v", len(got.outcomes), err)
	}
}

// What is cut is damage, and what is noted of proofs has a name that no history has.
func TestProvedIsWhole(t *testing.T) {
	b := testProved().append(nil)
	for n := range len(b) {
		if p, err := parseProved("db", b[:n]); err == nil || p != nil {
			t.Fatalf("cut to %d bytes: %+v, %v", n, p, err)
		}
	}
	for name, is := range map[string]bool{"db": true, "": true, provedPrefix + "db": false, eventsPrefix + "3": false} {
		if HistoryInStore(name) != is {
			t.Errorf("%q: is it a history's? %v", name, !is)
		}
	}
}

func FuzzProved(f *testing.F) {
	f.Add([]byte{})
	f.Add(testProved().append(nil))
	f.Add(provedSince(&checkpoint{}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseProved("db", b)
		if err != nil || p == nil {
			return
		}
		if again, err := parseProved("db", p.append(nil)); err != nil || again.consumed != p.consumed || len(again.outcomes) != len(p.outcomes) {
			t.Errorf("read %+v, written and read again %+v, %v", p, again, err)
		}
	})
}

// TestProvedHoldsForReplays: what the run before proved counts for the entries that it had,
// and an alert only as long as the store has it; what was withheld is counted again, and an
// alert is in the report.
func TestProvedHoldsForReplays(t *testing.T) {
	k := testKeeper(t, newMemStore(), 0, "db")
	a := alerts.Alert{Version: alerts.Version, ID: "1", DB: "db", Level: "si", Breaks: []string{"si"}}
	if err := k.save(t.Context(), "db", nil, []store.Alert{{ID: a.ID, Body: a.JSON()}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, replayed := range []uint64{4, 5} {
		p, err := parseProved("db", testProved().append(nil))
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{setting: &setting{untilEnd: true}, keeper: k, told: newTold(), proved: p, replayed: replayed,
			history: stream.New(stream.Config{DB: "db", Levels: []verdict.Level{verdict.SI}})}
		w.history.Take(&stream.Entry{Number: 5})
		for _, x := range testMeetings {
			done, err := w.asBefore(t.Context(), w.proved.meet(x.entry, x.same, x.at))
			if want := x.noted && x.outcome.id != "2" && replayed == 5; done != want || err != nil {
				t.Errorf("%+v after entry %d: %v, %v; want %v", x, replayed, done, err, want)
			}
		}
		replays := replayed == 5
		if told := w.told.covered("x", verdict.SI); told != replays || w.told.covered("y", verdict.SI) {
			t.Errorf("after entry %d: is x told? %v", replayed, told)
		}
		if n, shown := w.totals.withheld[verdict.SI], w.totals.found["si"]; (n == 1) != replays || (len(shown) == 1) != replays {
			t.Errorf("after entry %d: %d are withheld, and %v is shown", replayed, n, shown)
		}
	}
}

// during is a store that calls f while it takes alerts, with how often it has.
type during struct {
	*memStore
	taken int
	f     func(n int)
}

func (s *during) Commit(ctx context.Context, c store.Commit) error {
	if len(c.Alerts) > 0 {
		s.taken++
		s.f(s.taken)
	}
	return s.memStore.Commit(ctx, c)
}

// TestStoppedBetweenTwo: a monitor that is asked to stop while the n-th of many anomalies is
// stored, for every n, begins the proof of no other.
func TestStoppedBetweenTwo(t *testing.T) {
	t.Parallel()
	const anomalies = 12
	c, _ := storm(t, anomalies, stormy)
	for at := 1; at <= anomalies; at++ {
		var proofs int64
		var working *worker
		ask := make(chan struct{})
		st := &during{memStore: newMemStore("r"), f: func(n int) {
			if n == at {
				close(ask)
				<-working.going.Done()
			}
		}}
		r := start(t, c, st, true, stormy, proving(func(n int64, w *worker) { proofs, working = n, w }))
		<-ask
		r.cancel()
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if n := len(st.ids()); int(proofs) != at || n != at {
			t.Errorf("asked at alert %d: %d proofs were begun and %d alerts stored", at, proofs, n)
		}
	}
}
