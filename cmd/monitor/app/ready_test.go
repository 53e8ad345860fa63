package app

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isowatch/isowatch/config"
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

// killed is a store whose monitor was killed when it had read all, and was to judge the next after so many
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

// TestReadyWhenCaughtUp: after a kill the monitor is ready when every history has worked off all that
// the run before had written, and not before. It finds what is to be found.
func TestReadyWhenCaughtUp(t *testing.T) {
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
	st, entries := killed(t, c, len(txns), taken)
	before, behind := haltAt(entries), haltAt(entries+1)
	r := start(t, c, st, false, unchecked, halted(t, "slow", before, behind), func(a *App) { a.tuning.queue = 20 })
	<-before.at
	if _, waits := r.ready.waiting(whoRestart); !waits {
		t.Error("it is ready before the last entry")
	}
	before.open()
	<-behind.at
	eventually(t, "it is ready", func() bool { return len(r.ready.reasons()) == 0 })
	if total(r.metrics.restart) == 0 {
		t.Error("it is not said how long that took")
	}
	behind.open()
	r.stop(t)
	if err := start(t, c, st, true, fine).wait(t); err != nil {
		t.Fatal(err)
	}
	if got, want := st.ids(), whole.ids(); !slices.Equal(got, want) {
		t.Errorf("%d alerts, want %d", len(got), len(want))
	}
}

// TestKilledAgain: what a history that is alone has no room for after a kill does not keep the input from being
// opened, however often the monitor is killed before it has caught up.
func TestKilledAgain(t *testing.T) {
	t.Parallel()
	const taken = 10
	brokers := cluster(t)
	txns := in("slow", planted(t, 600))
	topicOf(t, brokers, testTopic, txns)
	c := testConfig(brokers)
	smallWindows(c)
	st, _ := killed(t, c, len(txns), taken)
	for range 2 {
		next := st.next()
		h := haltAt(5)
		r := start(t, c, st, false, unchecked, halted(t, "slow", h), func(a *App) { a.tuning.queue = 20 })
		<-h.at
		eventually(t, "the input is read", func() bool { return st.next() > next })
		said := r.log.String()
		if i := strings.Index(said, "reading waits"); i >= 0 && i < strings.Index(said, `"message":"reading"`) {
			t.Error("the history is waited for before the input is opened")
		}
		st.end(t, r, h)
	}
	r := start(t, c, st, false, fine)
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
		for e, _, _ := q.take(); e != nil; e, _, _ = q.take() {
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
