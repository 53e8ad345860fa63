package app

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// testKeeper is a keeper over the twin; dbs were born at entry 1.
func testKeeper(t *testing.T, st *memStore, held int64, dbs ...string) *keeper {
	t.Helper()
	a := &App{cfg: config.Default(), store: st, origin: "kafka t", log: zerolog.Nop(), metrics: newMetrics(), tuning: tuning{held: held}}
	k := newKeeper(a)
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
	return checkpointed{data: c.append(nil), floor: floor}
}

// testEntries are the entries from one number to another; the offset behind an
// entry is its number, and what was judged with it is all before it.
func testEntries(from, to uint64) (out []kept) {
	for n := from; n <= to; n++ {
		out = append(out, kept{number: n, data: fmt.Append(nil, "entry ", n), mark: mark{resume: int64(n), seen: int64(n), complete: true},
			judged: (&judged{origin: "kafka t", upTo: map[string]uint64{"a": n - 1}}).append(nil)})
	}
	return out
}

// restorable checks that a restart from what is stored loses nothing: it finds the
// entries that every checkpoint needs, and goes on in the input behind the last.
func restorable(t *testing.T, st *memStore, when string) {
	t.Helper()
	a := &App{cfg: config.Default(), store: st, origin: "kafka t", log: zerolog.Nop()}
	s, err := a.remember(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if s.resume[0] != int64(s.next)-1 {
		t.Errorf("%s: the input goes on at %d, the journal at %d", when, s.resume[0], s.next)
	}
	if j := st.noted(t); j.upTo["a"] != s.next-2 {
		t.Errorf("%s: it is noted that %d entries were judged, with the journal that ends before %d", when, j.upTo["a"], s.next)
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
				err = k.save(t.Context(), db, &c, []store.Alert{{ID: fmt.Sprint(seed, step)}}, nil)
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
		if err := k.save(t.Context(), "a", nil, []store.Alert{{ID: id, Body: []byte(body), News: 1}}, nil); err != nil {
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
			if err := k.save(t.Context(), "a", nil, []store.Alert{{ID: id, Body: []byte(id), News: 1}}, nil); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := k.tell(t.Context(), []byte(id), []store.Notice{{ID: "of " + id}}, []store.Handled{{ID: id, News: 1}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := testCheckpoint(1, 1, 1)
		if err := k.save(t.Context(), "a", &c, nil, nil); err != nil {
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
	if died < 8 {
		t.Errorf("it died %d times", died)
	}
}
