package app

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// testKeeper is a keeper over the twin; dbs were born at entry 1.
func testKeeper(t *testing.T, st *memStore, held int64, dbs ...string) *keeper {
	t.Helper()
	a := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka t", log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{held: held}}}
	k := newKeeper(&a.setting, a.store)
	births := map[string]checkpointed{}
	for _, db := range dbs {
		births[db] = testCheckpoint(1, 0, 1)
	}
	if err := k.append(t.Context(), testEntries(1, 1), nil, births); err != nil {
		t.Fatal(err)
	}
	return k
}

func testCheckpoint(born, consumed, floor uint64) checkpointed {
	c := checkpoint{origin: "kafka t", born: born, consumed: consumed, floor: floor, told: newTold()}
	data := c.append(nil)
	return checkpointed{data: data, floor: floor, write: func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	}}
}

// testEntries are the entries from one number to another; the offset behind an
// entry is its number.
func testEntries(from, to uint64) (out []kept) {
	for n := from; n <= to; n++ {
		out = append(out, kept{number: n, data: fmt.Append(nil, "entry ", n), mark: mark{resume: int64(n), seen: int64(n), complete: true}})
	}
	return out
}

// restorable checks that a restart from what is stored loses nothing: it finds the
// entries that every checkpoint needs, and goes on in the input behind the last.
func restorable(t *testing.T, st *memStore, when string) {
	t.Helper()
	a := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka t", log: zerolog.Nop()}}
	s, err := a.previous(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if s.resume[0] != int64(s.next)-1 {
		t.Errorf("%s: the input goes on at %d, the journal at %d", when, s.resume[0], s.next)
	}
	for db := range st.checkpoints {
		if !HistoryInStore(db) {
			continue
		}
		c, err := parseCheckpoint(db, st.checkpoints[db])
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if c.consumed >= s.next {
			t.Errorf("%s: the checkpoint of %s is at %d, the journal ends before %d", when, db, c.consumed, s.next)
		}
		for n := c.floor; n < s.next; n++ {
			if string(st.journal[n].Data) != fmt.Sprint("entry ", n) {
				t.Errorf("%s: %s needs the entries from %d on, and entry %d is %q", when, db, c.floor, n, st.journal[n].Data)
			}
		}
	}
}

// TestKeeper: whatever is appended and saved, whenever the disk is full and wherever
// the process then dies, a restart loses nothing.
func TestKeeper(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		st := newMemStore()
		dbs := []string{"a", "b", "c"}
		k := testKeeper(t, st, int64(rng.IntN(2)*100), dbs...)
		last, consumed, floors := uint64(1), map[string]uint64{}, map[string]uint64{"a": 1, "b": 1, "c": 1}
		var err error
		now := time.Now()
		for step := range 60 {
			when := fmt.Sprintf("seed %d, step %d", seed, step)
			switch rng.IntN(8) {
			case 0, 1, 2:
				to := last + 1 + uint64(rng.IntN(5))
				err = k.append(t.Context(), testEntries(last+1, to), nil, nil)
				last = to
			case 3, 4, 5:
				db := dbs[rng.IntN(len(dbs))]
				consumed[db] += uint64(rng.IntN(int(last-consumed[db]) + 1))
				floors[db] += uint64(rng.IntN(int(consumed[db]+1-min(floors[db], consumed[db]+1)) + 1))
				c := testCheckpoint(1, consumed[db], floors[db])
				err = k.save(t.Context(), db, &c, []store.Alert{{ID: fmt.Sprint(seed, step)}}, nil, nil)
			case 6:
				st.setFull(!st.full)
				if !st.full && rng.IntN(2) == 0 {
					st.die(1 + rng.IntN(6))
				}
			case 7:
				now = now.Add(time.Hour)
				err = k.retry(t.Context(), now)
			}
			restorable(t, st, when)
			if err != nil {
				if !errors.Is(err, errDisk) {
					t.Fatalf("%s: %v", when, err)
				}
				break
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		if err != nil {
			continue
		}
		st.setFull(false)
		st.die(0)
		if err := k.retry(t.Context(), now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		restorable(t, st, "at the end")
		if next := st.offsets["kafka t"+stateSuffix][stateNext]; next != int64(last)+1 {
			t.Errorf("seed %d: in the end the journal ends before %d, want %d", seed, next, last+1)
		}
		if len(k.held) > 0 || len(k.raised) > 0 || k.heldBytes != 0 || k.bytes != 0 {
			t.Errorf("seed %d: something is still held: %d entries of %d bytes, %d alerts of %d", seed, len(k.held), k.heldBytes, len(k.raised), k.bytes)
		}
	}
}

// TestTakenOver: a store of another input is taken over while the disk is full, or not, by one
// that has a history of a name that the other had, and another one. Wherever the process dies,
// the store is either the other's, with all that it had, or this one's, and then each history
// of which it has an entry has a checkpoint.
func TestTakenOver(t *testing.T) {
	for _, way := range []string{"there is room", "the disk is full", "the disk is full, and there is a hole"} {
		owners := map[bool]int{}
		for n := range 9 {
			when := fmt.Sprintf("%s, dead at commit %d", way, n)
			st := newMemStore("r")
			before := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka before", log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{held: heldBytesMax}}}
			k := newKeeper(&before.setting, before.store)
			births := map[string]checkpointed{}
			for _, db := range []string{"a", "b"} {
				c := checkpoint{origin: before.origin, born: 1, floor: 1, told: newTold()}
				births[db] = checkpointed{data: c.append(nil), floor: 1}
			}
			if err := k.append(t.Context(), testEntries(1, 9), nil, births); err != nil {
				t.Fatal(err)
			}
			a := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka t", log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{held: heldBytesMax}}}
			s, err := a.previous(t.Context())
			if err != nil || s.next != 10 || !s.foreign || len(s.checkpoints) > 0 {
				t.Fatalf("%s: %v, next %d, another's: %v, %d checkpoints", when, err, s.next, s.foreign, len(s.checkpoints))
			}
			st.setFull(way != "there is room")
			if strings.HasSuffix(way, "hole") {
				a.tuning.held = 1
			}
			k = newKeeper(&a.setting, a.store)
			k.take(s.left)
			if !st.full {
				st.die(n)
			}
			err = k.append(t.Context(), testEntries(10, 12), nil, map[string]checkpointed{"b": testCheckpoint(10, 9, 10)})
			for step := range uint64(2) {
				if err == nil {
					err = k.append(t.Context(), testEntries(13+step, 13+step), nil, map[string]checkpointed{fmt.Sprint("c", step): testCheckpoint(13+step, 12+step, 13+step)})
				}
				for _, db := range []string{"b", "c0"} {
					if c := testCheckpoint(10, 13+step, 13+step); err == nil {
						err = k.save(t.Context(), db, &c, nil, nil, nil)
					}
				}
			}
			if st.full && err == nil {
				st.setFull(false)
				st.die(n)
				err = k.retry(t.Context(), time.Now().Add(time.Hour))
			}
			if err != nil && !errors.Is(err, errDisk) {
				t.Fatalf("%s: %v", when, err)
			}
			st.die(0)
			theirs, err := before.previous(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			ours, err := a.previous(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if owners[theirs.foreign]++; theirs.foreign == ours.foreign {
				t.Errorf("%s: it is of both, or of none: %v", when, ours.foreign)
			}
			if ours.foreign {
				if len(theirs.checkpoints) != 2 || theirs.next != 10 {
					t.Errorf("%s: the other has %d checkpoints and goes on at %d", when, len(theirs.checkpoints), theirs.next)
				}
				continue
			}
			restorable(t, st, when)
			for db, born := range map[string]uint64{"b": 10, "c0": 13, "c1": 14} {
				if ours.checkpoints[db] == nil && ours.next > born {
					t.Errorf("%s: entries before %d are stored, and no checkpoint of %s, which began with %d", when, ours.next, db, born)
				}
			}
			if theirs.next < ours.next || len(st.checkpoints["a"]) > 0 {
				t.Errorf("%s: the other goes on at %d, and has a checkpoint of %d bytes", when, theirs.next, len(st.checkpoints["a"]))
			}
		}
		if owners[false] == 0 || owners[true] == 0 {
			t.Errorf("%s: it was the other's %d times, this one's %d", way, owners[false], owners[true])
		}
	}
}

// TestFullBeforeTheFirstEntry: while nothing has come of an input, a disk that was full and takes
// writes again leaves the store the other's, whatever else is stored then.
func TestFullBeforeTheFirstEntry(t *testing.T) {
	st := newMemStore("r")
	testKeeper(t, st, heldBytesMax, "a", "b")
	look := func(origin string) (*App, *previousRun) {
		t.Helper()
		a := &App{store: st, setting: setting{cfg: config.Default(), origin: origin, log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{held: heldBytesMax}}}
		s, err := a.previous(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a, s
	}
	a, s := look("kafka u")
	k := newKeeper(&a.setting, a.store)
	k.take(s.left)
	st.setFull(true)
	if err := k.save(t.Context(), "", nil, nil, []store.DeadLetter{{Reason: "r"}}, nil); err != nil {
		t.Fatal(err)
	}
	st.setFull(false)
	if err := k.retry(t.Context(), time.Now().Add(time.Hour)); err != nil || len(st.letters) != 1 {
		t.Fatalf("%v, %d dead letters", err, len(st.letters))
	}
	if _, s := look("kafka t"); s.foreign || len(s.checkpoints) != 2 {
		t.Errorf("the other's store is another's: %v, and has %d checkpoints", s.foreign, len(s.checkpoints))
	}
	if err := k.append(t.Context(), testEntries(2, 3), nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, s := look("kafka u"); s.foreign || len(st.checkpoints["a"]) > 0 {
		t.Errorf("with its first entry it is another's: %v, or has a checkpoint of that one", s.foreign)
	}
}

// TestOtherWithoutHistory: events that wait are of the input that they came in, also where none
// has a history.
func TestOtherWithoutHistory(t *testing.T) {
	st := newMemStore("r")
	testKeeper(t, st, heldBytesMax)
	inputs := map[string]*App{}
	for _, origin := range []string{"kafka t", "kafka u"} {
		inputs[origin] = &App{store: st, setting: setting{cfg: config.Default(), origin: origin, log: zerolog.Nop(), metrics: newMetrics()}}
	}
	for i, origin := range []string{"kafka u", "kafka t", "kafka u"} {
		a := inputs[origin]
		s, err := a.previous(t.Context())
		if err != nil || !s.foreign || len(s.states) > 0 || s.next != uint64(i)+2 {
			t.Fatalf("turn %d: %v, another's: %v, next %d, waits: %v", i, err, s.foreign, s.next, s.states)
		}
		k := newKeeper(&a.setting, a.store)
		k.take(s.left)
		entries := testEntries(s.next, s.next)
		entries[0].mark.partition, entries[0].mark.state = i, []byte("waits")
		if err := k.append(t.Context(), entries, nil, nil); err != nil {
			t.Fatal(err)
		}
		if s, err = a.previous(t.Context()); err != nil || s.foreign || len(s.states) != 1 || s.states[i] == nil {
			t.Errorf("turn %d: %v, another's: %v, waits: %v", i, err, s.foreign, s.states)
		}
	}
}

// TestHeldNoticesAreDelivered: what is found and told while the disk is full goes out
// all the same, once, and is stored when there is room.
func TestHeldNoticesAreDelivered(t *testing.T) {
	st := newMemStore("r")
	k := testKeeper(t, st, 1, "a")
	k.receivers = []string{"r"}
	undelivered := func() string {
		ids := []string{}
		if err := k.Undelivered(t.Context(), "r", func(n store.Notice) bool { ids = append(ids, n.ID); return true }); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ids)
	}
	pending := func() string {
		ids := []string{}
		if err := k.Pending(t.Context(), func(a store.Alert) bool {
			ids = append(ids, fmt.Sprintf("%s=%s×%d", a.ID, a.Body, a.News))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ids)
	}
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	save := func(id, body string) {
		t.Helper()
		if err := k.save(t.Context(), "a", nil, []store.Alert{{ID: id, Body: []byte(body), News: 1}}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(life, notice string, handled ...store.Handled) {
		t.Helper()
		if err := k.tell(t.Context(), []byte(life), []store.Notice{{ID: notice, Body: []byte(notice)}}, handled); err != nil {
			t.Fatal(err)
		}
	}
	save("1", "a")
	save("2", "a")
	tell("s1", "n1", store.Handled{ID: "1", News: 1})
	st.setFull(true)
	save("3", "a")
	save("1", "b") // found again: the newer one is held
	is("pending on a full disk", pending(), "[2=a×1 3=a×1 1=b×1]")
	tell("s2", "n2", store.Handled{ID: "2", News: 1}, store.Handled{ID: "3", News: 1})
	is("pending when handled in memory", pending(), "[1=b×1]")
	if life, ok, err := k.Life(t.Context()); !ok || err != nil || string(life) != "s2" {
		t.Errorf("the state on a full disk: %q, %v, %v", life, ok, err)
	}
	is("undelivered on a full disk", undelivered(), "[n1 n2]")
	for _, id := range []string{"n1", "n2"} {
		if err := k.Delivered(t.Context(), "r", id); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.notices) > 0 || k.noticeBytes != 0 {
		t.Errorf("notices are held that all have: %v", k.notices)
	}
	tell("s3", "n3")
	is("undelivered later", undelivered(), "[n3]")
	st.setFull(false)
	if err := k.retry(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	is("undelivered with room again", undelivered(), "[n3]")
	is("pending with room again", pending(), "[1=b×1]")
	is("stored", fmt.Sprint(string(st.life), " ", len(st.alerts), st.pending["3"], st.outbox["r"]["n1"], len(k.handled), k.life == nil), "s3 3 0 false 0 true")
}

// TestRecoveryInterrupted: wherever the process dies while what was held is written,
// nothing that was found is without a notice: it is pending, or in an outbox.
func TestRecoveryInterrupted(t *testing.T) {
	died := 0
	for n := range 20 {
		st := newMemStore("r")
		k := testKeeper(t, st, 1, "a")
		k.receivers = []string{"r"}
		st.setFull(true)
		for i := range 4 {
			id := fmt.Sprint(i)
			if err := k.save(t.Context(), "a", nil, []store.Alert{{ID: id, Body: []byte(id), News: 1}}, nil, nil); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := k.tell(t.Context(), []byte(id), []store.Notice{{ID: "of " + id}}, []store.Handled{{ID: id, News: 1}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := testCheckpoint(1, 1, 1)
		if err := k.save(t.Context(), "a", &c, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		st.setFull(false)
		st.die(n)
		if err := k.retry(t.Context(), time.Now().Add(time.Hour)); err != nil {
			died++
		}
		checkpointed, err := parseCheckpoint("a", st.checkpoints["a"])
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			id := fmt.Sprint(i)
			_, stored := st.alerts[id]
			if !stored && checkpointed.consumed == 0 {
				continue // it is found again
			}
			if st.pending[id] == 0 && !st.outbox["r"]["of "+id] {
				t.Errorf("dead at commit %d: alert %s is stored: %v, and nobody will be told of it", n, id, stored)
			}
		}
	}
	if died < 4 { // alerts with the checkpoint, two notices, and what was handled
		t.Errorf("it died %d times", died)
	}
}

// TestRecoveryOfBirthsInterrupted: wherever the process dies while what was held is written in
// pieces, no history that began meanwhile is ahead of the journal, nor without its first records.
func TestRecoveryOfBirthsInterrupted(t *testing.T) {
	const last = 6
	died := 0
	for n := range last + 2 {
		st := newMemStore("r")
		k := testKeeper(t, st, heldBytesMax, "a")
		st.setFull(true)
		for i := uint64(2); i <= last; i++ {
			e := testEntries(i, i)
			e[0].data = make([]byte, journalChunkMax)
			births := map[string]checkpointed{fmt.Sprint("born at ", i): testCheckpoint(i, i-1, i)}
			if err := k.append(t.Context(), e, nil, births); err != nil {
				t.Fatal(err)
			}
		}
		st.setFull(false)
		st.die(n)
		if err := k.retry(t.Context(), time.Now().Add(time.Hour)); err != nil {
			died++
		}
		a := &App{store: st, setting: setting{cfg: config.Default(), origin: "kafka t", log: zerolog.Nop()}}
		s, err := a.previous(t.Context())
		if err != nil {
			t.Errorf("dead at commit %d: %v", n, err)
			continue
		}
		for i := uint64(2); i <= last; i++ {
			if _, ok := s.checkpoints[fmt.Sprint("born at ", i)]; ok != (i < s.next) {
				t.Errorf("dead at commit %d: the journal ends before %d, and the history that began at %d is there: %v", n, s.next, i, ok)
			}
		}
	}
	if died < last-1 {
		t.Errorf("it died %d times", died)
	}
}
