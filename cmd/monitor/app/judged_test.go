package app

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// halt is the entry, counted in this run, before which a history is held until open is
// called. at is closed when it is there.
type halt struct {
	entry    uint64
	at, free chan struct{}
}

func haltAt(entry uint64) *halt {
	return &halt{entry: entry, at: make(chan struct{}), free: make(chan struct{})}
}

func (h *halt) open() { close(h.free) }

// halted holds a history before some entries. Whatever a test leaves held goes on at its end.
func halted(t *testing.T, db string, halts ...*halt) func(*App) {
	return func(a *App) {
		over := make(chan struct{})
		t.Cleanup(func() { close(over) }) // before it is waited for that the monitor ends
		var taken atomic.Uint64
		a.tuning.slow = func(x string) {
			if x != db {
				return
			}
			n := taken.Add(1)
			for _, h := range halts {
				if h.entry == n {
					close(h.at)
					select {
					case <-h.free:
					case <-over:
					}
				}
			}
		}
	}
}

// unchecked is fine without checkpoints: a restart begins with the first entry.
func unchecked(a *App) {
	fine(a)
	a.tuning.checkpoint = time.Hour
}

// noted is what a store has noted of how far each of its histories was judged; nil: nothing of
// those that it has.
func (s *memStore) noted(t *testing.T) map[string]uint64 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.checkpoints {
		if HistoryInStore(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	j, err := parseJudged(s.checkpoints[judgedName], len(names))
	if err != nil {
		t.Fatal(err)
	}
	if j == nil || j.names != namesOf(names) {
		return nil
	}
	out := map[string]uint64{}
	for i, name := range names {
		out[name] = j.upTo[i]
	}
	return out
}

// killed is a store whose monitor was killed when it had read all, and had judged so many
// entries of the history "slow", none of which is in a checkpoint. It tells how many there
// are. It can be used again.
func killed(t *testing.T, c *config.Config, all int, taken uint64) (st *memStore, entries uint64) {
	t.Helper()
	st = newMemStore("r")
	h := haltAt(taken + 1)
	r := start(t, c, st, false, unchecked, halted(t, "slow", h))
	<-h.at
	eventually(t, "all is durable", func() bool { return st.read() == all })
	born := st.born(t, "slow")
	eventually(t, "it is noted what is judged", func() bool { return st.noted(t)["slow"] == born-1+taken })
	st.end(t, r, h)
	entries = st.next() - born
	if entries < taken+5 {
		t.Fatalf("%d entries are read, of which %d are judged: that is no backlog", entries, taken)
	}
	return st, entries
}

// end kills a monitor of which a history is held.
func (s *memStore) end(t *testing.T, r *running, h *halt) {
	t.Helper()
	s.die(1) // nothing that it judges from here on is stored
	h.open()
	if err := r.wait(t); !errors.Is(err, errDisk) {
		t.Fatalf("it ended with %v", err)
	}
	s.die(0)
}

// next is the number of the next entry.
func (s *memStore) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.offsets["kafka "+testTopic+stateSuffix][stateNext])
}

// born is the entry with which a history began.
func (s *memStore) born(t *testing.T, db string) uint64 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := parseCheckpoint(db, s.checkpoints[db])
	if err != nil {
		t.Fatal(err)
	}
	return c.born
}

// TestReadyWhereItWas: after a kill the monitor is ready when every history is where it
// was, and not before, whatever waits in the journal behind that; where that is not
// known, when the journal is worked off. It finds what is to be found either way.
func TestReadyWhereItWas(t *testing.T) {
	t.Parallel()
	const taken = 10
	brokers := cluster(t)
	txns := append(in("slow", planted(t, 600)), in("quick", lostUpdate(900, 1000))...)
	topicOf(t, brokers, testTopic, txns)
	c := testConfig(brokers)
	smallWindows(c)
	whole := newMemStore("r")
	if err := start(t, c, whole, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		// change is what becomes of the store, ready the entry with which the monitor is
		// ready, of so many that the journal has.
		change func(*memStore)
		ready  func(entries uint64) uint64
	}{
		{"it is noted", func(*memStore) {}, func(uint64) uint64 { return taken }},
		{"an older version's store", func(s *memStore) { delete(s.checkpoints, judgedName) }, func(n uint64) uint64 { return n }},
	} {
		t.Run(x.name, func(t *testing.T) {
			st, entries := killed(t, c, len(txns), taken)
			x.change(st)
			ready := x.ready(entries)
			before, behind := haltAt(ready), haltAt(ready+1)
			r := start(t, c, st, false, unchecked, halted(t, "slow", before, behind), func(a *App) { a.tuning.queue = 20 })
			<-before.at
			if _, waits := r.ready.waiting(whoRestart); !waits {
				t.Errorf("it is ready before entry %d of %d", ready, entries)
			}
			before.open()
			<-behind.at
			eventually(t, "it is ready", func() bool { return len(r.ready.reasons()) == 0 })
			if total(r.metrics.restart) == 0 {
				t.Error("it is not said how long that took")
			}
			if ready < entries {
				eventually(t, "the backlog is told", func() bool { return total(r.metrics.backlog.WithLabelValues("slow")) > 0 })
			}
			behind.open()
			r.stop(t)
			if err := start(t, c, st, true, fine).wait(t); err != nil {
				t.Fatal(err)
			}
			if got, want := st.ids(), whole.ids(); !slices.Equal(got, want) {
				t.Errorf("%d alerts, want %d", len(got), len(want))
			}
		})
	}
}

// TestKilledAgain: a monitor that is killed before it is where the one before was does not
// take back what is noted, and what a history that is alone has no room for does not keep
// the input from being opened.
func TestKilledAgain(t *testing.T) {
	t.Parallel()
	const taken = 10
	brokers := cluster(t)
	txns := in("slow", planted(t, 600))
	topicOf(t, brokers, testTopic, txns)
	c := testConfig(brokers)
	smallWindows(c)
	st, _ := killed(t, c, len(txns), taken)
	want := st.noted(t)["slow"]
	for range 2 {
		next := st.next()
		h := haltAt(5)
		r := start(t, c, st, false, unchecked, halted(t, "slow", h), func(a *App) { a.tuning.queue = 20 })
		<-h.at
		eventually(t, "the input is read", func() bool { return st.next() > next })
		if got := st.noted(t)["slow"]; got != want {
			t.Errorf("entry %d is noted, want %d", got, want)
		}
		said := r.log.String()
		if i := strings.Index(said, "reading waits"); i >= 0 && i < strings.Index(said, `"message":"reading"`) {
			t.Error("the history is waited for before the input is opened")
		}
		st.end(t, r, h)
	}
	behind := haltAt(taken)
	r := start(t, c, st, false, unchecked, halted(t, "slow", behind))
	<-behind.at
	if _, waits := r.ready.waiting(whoRestart); !waits {
		t.Error("it is ready before it is where the first was")
	}
	behind.open()
	eventually(t, "it is ready", func() bool { return len(r.ready.reasons()) == 0 })
	r.stop(t)
}

// TestReadyAfterAStop: after a stop, whose last checkpoint has all that was judged, the
// monitor is ready with its histories' states.
func TestReadyAfterAStop(t *testing.T) {
	t.Parallel()
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, in("slow", planted(t, 300)))
	c := testConfig(brokers)
	smallWindows(c)
	st := newMemStore("r")
	if err := start(t, c, st, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	h := haltAt(1)
	r := start(t, c, st, false, fine, halted(t, "slow", h))
	eventually(t, "it is ready", func() bool { return len(r.ready.reasons()) == 0 })
	h.open()
	r.stop(t)
}

func testJudged() *judged {
	return &judged{origin: "kafka t", names: namesOf([]string{"", "a", record.DefaultDB}), upTo: []uint64{1, 1 << 40, 1 << 40}}
}

func TestJudgedIsReadAsWritten(t *testing.T) {
	for _, j := range []*judged{testJudged(), {}, {upTo: []uint64{0}}, {upTo: []uint64{5, 5, 4, 5}}} {
		b := j.append(nil)
		got, err := parseJudged(b, len(j.upTo))
		if err != nil {
			t.Fatal(err)
		}
		if got.origin != j.origin || got.names != j.names || !slices.Equal(got.upTo, j.upTo) || !bytes.Equal(got.append(nil), b) {
			t.Errorf("written %+v, read %+v", j, got)
		}
		if got, err := parseJudged(b, len(j.upTo)+1); got != nil || err != nil {
			t.Errorf("of another number of histories: %+v, %v", got, err)
		}
		for n := 1; n < len(b); n++ {
			if got, err := parseJudged(b[:n], len(j.upTo)); !errors.Is(err, errJudged) {
				t.Fatalf("cut to %d bytes: %+v, %v", n, got, err)
			}
		}
	}
	for _, b := range [][]byte{nil, testProved().append(nil), testCheckpoints()[0].append(nil)} {
		if got, err := parseJudged(b, 1); got != nil || err != nil {
			t.Errorf("of %.10q: %+v, %v", b, got, err)
		}
	}
	if _, err := parseCheckpoint("db", testJudged().append(nil)); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("taken for a checkpoint: %v", err)
	}
	if HistoryInStore(judgedName) {
		t.Error("it is taken for a history")
	}
	if namesOf([]string{"a", "b"}) == namesOf([]string{"ab", ""}) || namesOf([]string{"a", "b"}) == namesOf([]string{"b", "a"}) {
		t.Error("other names, or others' order, are taken for the same")
	}
}

// TestJudgedOfTheStore: what is noted counts for the journal and for the histories it was
// noted of. Of others it is not known how far they were judged.
func TestJudgedOfTheStore(t *testing.T) {
	const last = 5
	note := func(origin string, names []string, upTo ...uint64) []byte {
		return (&judged{origin: origin, names: namesOf(names), upTo: upTo}).append(nil)
	}
	both, all := []string{"a", "b"}, map[string]uint64{"a": last, "b": last}
	another := note("kafka t", both, 2, 5)
	another[0]++
	for _, x := range []struct {
		name string
		note []byte
		want map[string]uint64
	}{
		{"of both", note("kafka t", both, 2, 5), map[string]uint64{"a": 2, "b": 5}},
		{"of both, one not at all", note("kafka t", both, 2, 0), map[string]uint64{"a": 2, "b": 0}},
		{"of one", note("kafka t", both[:1], 2), all},
		{"of one, and one that is gone", note("kafka t", []string{"a", "c"}, 2, 3), all},
		{"of both, and one that is gone", note("kafka t", []string{"a", "b", "c"}, 2, 3, 4), all},
		{"none, by an older version", nil, all},
		{"by another version", another, all},
		{"of another input", note("kafka u", both, 2, 2), all},
		{"of more than there is", note("kafka t", both, 2, 6), map[string]uint64{"a": 2, "b": last}},
	} {
		st := newMemStore()
		k := testKeeper(t, st, 0, "a", "b")
		if err := k.append(t.Context(), testEntries(2, last), nil, nil); err != nil {
			t.Fatal(err)
		}
		if delete(st.checkpoints, judgedName); x.note != nil {
			st.checkpoints[judgedName] = x.note
		}
		a := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka t", log: zerolog.Nop()}}
		s, err := a.previous(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		got := map[string]uint64{}
		for db, c := range s.checkpoints {
			got[db] = c.judged
		}
		if !maps.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
		if len(x.note) == 0 {
			continue
		}
		st.checkpoints[judgedName] = x.note[:len(x.note)-1]
		if _, err := a.previous(t.Context()); x.name != "by another version" && (!errors.Is(err, errJudged) || !errors.Is(err, store.ErrDamaged)) {
			t.Errorf("%s, cut: %v", x.name, err)
		}
	}
}

func FuzzJudged(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add(testJudged().append(nil), 3)
	f.Fuzz(func(t *testing.T, b []byte, histories int) {
		j, err := parseJudged(b, max(0, min(histories, config.HistoriesMax)))
		if err != nil || j == nil {
			return
		}
		if again, err := parseJudged(j.append(nil), len(j.upTo)); err != nil || again.origin != j.origin || again.names != j.names || !slices.Equal(again.upTo, j.upTo) {
			t.Errorf("read %+v, written and read again %+v, %v", j, again, err)
		}
	})
}

// TestNote: what is noted is of the histories there are when it is made, in the order of their
// names, whatever the order in which they began; and it is small where all are equally far,
// however many they are.
func TestNote(t *testing.T) {
	in := &ingest{setting: &setting{origin: "kafka t"}}
	begin := func(db string, consumed, before uint64) {
		w := &worker{db: db, judgedBefore: before}
		w.consumed.Store(consumed)
		at, _ := slices.BinarySearchFunc(in.order, db, func(w *worker, db string) int { return strings.Compare(w.db, db) })
		in.order = slices.Insert(in.order, at, w)
	}
	is := func(names []string, upTo ...uint64) {
		t.Helper()
		j, err := parseJudged(in.judgedNow(), len(names))
		if err != nil || j == nil || j.origin != in.origin || j.names != namesOf(names) || !slices.Equal(j.upTo, upTo) {
			t.Errorf("it is noted %+v, %v", j, err)
		}
	}
	begin("m", 7, 0)
	is([]string{"m"}, 7)
	begin("z", 3, 9)
	begin("a", 8, 8)
	is([]string{"a", "m", "z"}, 8, 7, 9)
	in.order[1].consumed.Store(9)
	is([]string{"a", "m", "z"}, 8, 9, 9)
	for i := range config.HistoriesMax {
		begin(fmt.Sprintf("n%04d%s", i, strings.Repeat("x", 1000)), 9, 0)
	}
	if b := in.judgedNow(); len(b) > 64 {
		t.Errorf("of %d histories it has %d bytes", len(in.order), len(b))
	}
	if in.origin = ""; in.judgedNow() != nil {
		t.Error("it is noted of an input that can't be read again")
	}
}

// BenchmarkNote is what is noted with each commit of as many histories as may be, with long
// names, of which every other one is behind.
func BenchmarkNote(b *testing.B) {
	in := &ingest{setting: &setting{origin: "kafka t"}}
	for i := range config.HistoriesMax {
		w := &worker{db: fmt.Sprintf("n%04d%s", i, strings.Repeat("x", 1000))}
		w.consumed.Store(uint64(i % 2))
		in.order = append(in.order, w)
	}
	for b.Loop() {
		in.judgedNow()
	}
}

// TestReplay: of what the journal has each history is given what it has not consumed; that
// time passes is told as long as one has nothing left there.
func TestReplay(t *testing.T) {
	in := &ingest{setting: &setting{}, going: t.Context()}
	if !in.listened() {
		t.Error("before there is a history, time does not pass")
	}
	for _, consumed := range []uint64{0, 2, 4} {
		w := &worker{queue: newQueue(10, newPool(3))}
		w.consumed.Store(consumed)
		in.order = append(in.order, w)
	}
	for number := uint64(1); number <= 4; number++ {
		if err := in.replay(&entry{number: number, size: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]uint64{{1, 2, 3, 4}, {3, 4}, {}} {
		q := in.order[i].queue
		got := []uint64{}
		for e, ok, _ := q.take(); ok; e, ok, _ = q.take() {
			got = append(got, e.number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("history %d is given %v, want %v", i, got, want)
		}
		if !in.listened() {
			t.Errorf("history %d has nothing left, and time does not pass", i)
		}
		q.leave(queued{entry: &entry{number: 5, size: 1}})
	}
	if in.listened() {
		t.Error("all have something left, and time passes")
	}
}
