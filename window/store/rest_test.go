package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// crowd are histories whose names are so long that these are more than one transaction holds.
func crowd(letter string) (names []string) {
	for i := range 300 {
		names = append(names, fmt.Sprintf("%s%03d%s", letter, i, strings.Repeat("n", 1000)))
	}
	return names
}

// shared is a history that both inputs have.
const shared = "shared"

// firstInput and secondInput are what two inputs commit to one store, one after the other: the
// second has what the first one left go.
func firstInput() store.Commit {
	c := store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: 1}},
		Journal:     []store.Entry{storetest.NewEntry(1, 100)},
		Checkpoints: map[string][]byte{shared: storetest.NewEntry(1, 100_000).Data},
	}
	for _, name := range crowd("a") {
		c.Checkpoints[name] = []byte("a " + name[:4])
	}
	c.Alerts = []store.Alert{{ID: "000", Body: []byte("found once"), News: 1}, {ID: "001", Body: []byte("found once"), News: 2}}
	return c
}

func secondInput() store.Commit {
	c := store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: 2}},
		Journal:     []store.Entry{storetest.NewEntry(2, 100), storetest.NewEntry(3, 100)},
		DeadLetters: []store.DeadLetter{storetest.Letter(1, "x")},
		Alerts:      []store.Alert{storetest.NewAlert("1")},
		Notices:     storetest.Notices("1"),
		Checkpoints: map[string][]byte{shared: storetest.NewEntry(2, 90_000).Data},
		Forget:      append(crowd("b"), shared),
		Drop:        2,
	}
	for _, name := range crowd("a") {
		c.Checkpoints[name] = nil
	}
	for _, name := range crowd("b") {
		c.Checkpoints[name] = []byte("b " + name[:4])
	}
	for i := range 150 { // more than one transaction holds, too; some are found again, and one is too large for the database
		c.Alerts = append(c.Alerts, store.Alert{ID: fmt.Sprintf("%03d", i), Body: bytes.Repeat([]byte{'b'}, 5000), News: 1 + i%2})
	}
	c.Alerts = append(c.Alerts, store.Alert{ID: "149", Body: bytes.Repeat([]byte{'l'}, 100_000), News: 3},
		store.Alert{ID: "149", Body: bytes.Repeat([]byte{'m'}, 100_000), News: 3})
	c.Handled = []store.Handled{{ID: "001", News: 3}, {ID: "149", News: 1}}
	return c
}

func readCrowd(s store.Store) (everything, error) {
	d, err1 := storetest.Read(s, []string{"topic"}, []string{"web"})
	st, err2 := storetest.ReadStream(s, slices.Concat([]string{shared}, crowd("a"), crowd("b")), []string{"k"})
	return everything{d, st}, errors.Join(err1, err2)
}

// crowded is a store with what the first input leaves.
func crowded(t *testing.T, dir string, ask func(string) error) (*store.Badger, everything) {
	t.Helper()
	opt := store.Options{Path: dir, SyncWrites: true, Retain: store.Forever, Receivers: []string{"web"}}
	s, err := store.Open(store.WithFaults(opt, ask))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{shared, crowd("a")[0]} {
		if err := s.Spill(t.Context(), name, []store.KV{{Key: "k", Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), firstInput()); err != nil {
		t.Fatal(err)
	}
	all, err := readCrowd(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Stream.Histories[crowd("a")[299]].Checkpoint) == 0 || all.Stream.Histories[shared].Spilled["k"] != "v" {
		t.Fatal("the first input is not there")
	}
	return s, all
}

// TestDiesInManyHistories lets the store die, or fail once, at the n-th thing that it does to
// its disk for a commit of which offsets, checkpoints and journal do not fit into one
// transaction, for every n: there is all of it, dead letters and alerts too, or nothing, whether it is looked at or opened. Then it
// dies at each thing that opening it does.
func TestDiesInManyHistories(t *testing.T) {
	base := fastDir(t)
	ask := func(string) error { return nil }
	asking := func(what string) error { return ask(what) }
	s, before := crowded(t, filepath.Join(base, "clean"), asking)
	var asked []string
	ask = func(what string) error { asked = append(asked, what); return nil }
	if err := s.Commit(t.Context(), secondInput()); err != nil {
		t.Fatal(err)
	}
	ask = func(string) error { return nil }
	after, err := readCrowd(s)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if h := after.Stream.Histories; len(h[crowd("b")[299]].Checkpoint) == 0 || h[crowd("a")[0]].Checkpoint != nil || len(h[shared].Spilled) > 0 || after.Dump.Offsets["topic"][0] != 2 {
		t.Fatal("the second input is not there")
	}
	if p := after.Dump.Pending; len(after.Dump.Alerts) != 151 || p["000"] != 2 || p["001"] != 1 || p["149"] != 7 {
		t.Fatalf("%d alerts, pending %v", len(after.Dump.Alerts), p)
	}
	if n := strings.Count(strings.Join(asked, "\n"), "commit"); n < 4 {
		t.Fatalf("%d transactions: all fits into one", n)
	}
	step := 1
	if race.Brief() {
		step = 12
	}
	// reopen opens a store in which something died, dying at the n-th thing itself; 0: never.
	reopen := func(t *testing.T, dir string, n int) (got everything, died bool) {
		t.Helper()
		count := 0
		ask = func(string) error {
			if count++; n > 0 && count >= n {
				return errDied
			}
			return nil
		}
		opt := store.Options{Path: dir, SyncWrites: true, Retain: store.Forever, Receivers: []string{"web"}}
		s, err := store.Open(store.WithFaults(opt, asking))
		if n > 0 && errors.Is(err, errDied) {
			return got, true
		}
		if err == nil {
			ask = func(string) error { return nil }
			got, err = readCrowd(s)
			err = errors.Join(err, s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return got, false
	}
	verified := func(t *testing.T, dir, when string) {
		t.Helper()
		if r, err := store.Verify(dir); err != nil || len(r.Damaged) > 0 || len(r.Notes) > 0 {
			t.Fatalf("%s: verify: %+v %v", when, r, err)
		}
	}
	begun, ended := 0, 0
	for n := 1; n <= len(asked); n += step {
		for _, dies := range []bool{true, false} {
			when := fmt.Sprintf("%s (%d, dies %v)", asked[n-1], n, dies)
			dir := filepath.Join(base, fmt.Sprint(n, dies))
			s, _ := crowded(t, dir, asking)
			count := 0
			ask = func(string) error {
				if count++; count == n || dies && count > n {
					if dies {
						return errDied
					}
					return syscall.ENOSPC
				}
				return nil
			}
			err := s.Commit(t.Context(), secondInput())
			if !dies {
				if err != nil && !errors.Is(err, store.ErrFull) {
					t.Fatalf("%s: %v", when, err)
				}
				if err != nil { // with the next commit there is all of it, or nothing
					err = s.Commit(t.Context(), store.Commit{Offsets: map[string]map[int]int64{"another": {0: 1}}})
					got, err2 := readCrowd(s)
					if err := errors.Join(err, err2); err != nil || !cmp.Equal(after, got, storetest.Blobs) && !cmp.Equal(before, got, storetest.Blobs) {
						t.Fatalf("%s, then another: %v", when, err)
					}
					err = s.Commit(t.Context(), secondInput())
				}
				if err != nil {
					t.Fatalf("%s, again: %v", when, err)
				}
			}
			acked := err == nil
			ask = func(string) error { return nil }
			s.Close()
			verified(t, dir, when)
			for at := 1; dies; at++ { // and it dies again as it is opened
				if _, died := reopen(t, dir, at); !died {
					break
				}
				verified(t, dir, fmt.Sprintf("%s, opening (%d)", when, at))
			}
			got, _ := reopen(t, dir, 0)
			switch {
			case cmp.Equal(after, got, storetest.Blobs):
				ended++
			case acked || !cmp.Equal(before, got, storetest.Blobs):
				t.Fatalf("%s: acknowledged: %v (-want +got)\n%s", when, acked, cmp.Diff(after, got, storetest.Blobs))
			default:
				begun++
			}
			verified(t, dir, when+", opened")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if begun == 0 || ended == 0 {
		t.Errorf("of a commit that died there was nothing %d times, all %d times", begun, ended)
	}
}

// TestRestIsOneRecord: what a commit has left to do is counted as the record that it is.
func TestRestIsOneRecord(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	records := func() int64 {
		t.Helper()
		r, err := store.Verify(dir)
		if err != nil || len(r.Damaged) > 0 || len(r.Notes) > 0 {
			t.Fatalf("%+v %v", r, err)
		}
		return r.Records
	}
	s, _ := crowded(t, dir, func(string) error { return nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, commits, fatal := records(), 0, false
	s, err := store.Open(store.WithFaults(store.Options{Path: dir, SyncWrites: true, Retain: store.Forever, Receivers: []string{"web"}}, func(what string) error {
		if what == "commit" {
			commits++
		}
		if fatal && commits > 1 { // the first one is what commits
			return errDied
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	commits, fatal = 0, true
	if err := s.Commit(t.Context(), secondInput()); err != nil { // it is committed
		t.Fatal(err)
	}
	fatal = false
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left := records()
	if n := left - before; n < 2 || n > 50 {
		t.Errorf("%d records before the commit, %d more when it was committed", before, n)
	}
}

// TestRestIsHeldToItsChecksum: of a commit of which something is left to do a byte of what is
// written down is another, or the file is cut, or gone. That is damage, and not passed over.
func TestRestIsHeldToItsChecksum(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	commits := 0
	dies := func(what string) error {
		if what == "commit" {
			commits++
		}
		if commits > 2 { // the dead letter is one, what commits the other
			return errDied
		}
		return nil
	}
	asking := func(string) error { return nil }
	s, _ := crowded(t, dir, func(what string) error { return asking(what) })
	asking = dies
	if err := s.Commit(t.Context(), secondInput()); err != nil { // it is committed
		t.Fatal(err)
	}
	asking = func(string) error { return nil }
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := load(t, dir)
	name := ""
	for _, f := range files.names() {
		if filepath.Dir(f) == "large" && (name == "" || len(files[f]) > len(files[name])) {
			name = f
		}
	}
	if len(files[name]) < 600_000 {
		t.Fatalf("%s has %d bytes: that is not what is left to do", name, len(files[name]))
	}
	for what, change := range map[string]func(tree){
		"a byte is another": func(f tree) { f[name] = bytes.Clone(f[name]); f[name][100_000] ^= 1 },
		"it is cut":         func(f tree) { f[name] = f[name][:100_000] },
		"it is gone":        func(f tree) { delete(f, name) },
	} {
		t.Run(what, func(t *testing.T) {
			changed := maps.Clone(files)
			change(changed)
			again(t, dir, changed)
			r, err := store.Verify(dir)
			if err != nil || len(r.Damaged) != 1 || r.Damaged[0].Kind != "rest" || r.Damaged[0].File != filepath.ToSlash(name) {
				t.Errorf("verify: %v, damaged: %v", err, r.Damaged)
			}
			s, err := store.Open(store.Options{Path: dir})
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "rest: ") {
				t.Errorf("opened: %v", err)
			}
			if err == nil {
				s.Close()
			}
		})
	}
}
