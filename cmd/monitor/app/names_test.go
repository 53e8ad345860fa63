package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/window/store"
)

// TestNames: whatever things are called, the monitor goes on, also after a restart, finds
// what is wrong among them, and has a dead letter where a name is one of its own or too long.
func TestNames(t *testing.T) {
	t.Parallel()
	long := func(s string, n int) string { return s + strings.Repeat("x", n-len(s)) }
	type names struct{ db, session, id, key string }
	refused := []names{{db: eventsPrefix + "0"}, {db: eventsPrefix + "x"}, {db: provedPrefix + "default"}, {db: "\x00"}, {db: "a\x00"}, {session: "\x00s"}, {session: "s\x00"},
		{db: long("d", codec.HistoryMax+1)}, {db: long("d", 66_000)}}
	taken := []names{{db: long("d", codec.HistoryMax)}, {db: strings.Repeat("\u0001", 100)}, {session: long("s", 100_000)}, {id: long("i", 100_000)}, {id: "\x00i"}, {key: long("k", 100_000)}, {key: "\x00k"}, {key: long("k", 65_000)},
		{db: long("e", codec.HistoryMax), session: long("s", 66_000), id: long("i", 66_000), key: long("k", 66_000)}}
	in := newInput(t, "in.jsonl")
	add := func(n int, all []names) {
		for i, x := range all {
			for j, txn := range lostUpdate(100*n+i+1, int64(n+1)*300_000+100) {
				txn.DB = "default"
				if x.db != "" {
					txn.DB = x.db
				}
				if x.session != "" {
					txn.Session = x.session + txn.Session
				}
				if x.id != "" {
					txn.ID = fmt.Sprint(x.id, n, i, j)
				}
				for k := range txn.Ops {
					if x.key != "" {
						txn.Ops[k].Key = x.key + txn.Ops[k].Key
					}
				}
				in.add(t, txn)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "store")
	c := in.follow(path)
	smallWindows(c)
	c.Window.Keys = 1
	c.Alerts.Stdout = true
	want := 0
	for n := range 2 {
		in.add(t, chain("default", "s", 300*n, 300*n+300)...) // so that segments end, and keys are spilled
		add(n, slices.Concat(refused, taken))
		want += len(taken)
		r := start(t, c, nil, false, spilling, func(a *App) { a.stdout = &syncBuffer{} })
		eventually(t, "all is found", func() bool {
			select {
			case err := <-r.done:
				t.Fatalf("it ended: %v", err)
			default:
			}
			found := 0
			err := r.store.AlertsBefore(t.Context(), 0, func(uint64, store.Alert) bool { found++; return true })
			return err == nil && found >= want
		})
		r.stop(t)
		if ids := whole(t, path); len(ids) != want {
			t.Fatalf("%d alerts, want %d", len(ids), want)
		}
	}
	st, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	reasons := map[string]int{}
	if err := st.DeadLetters(t.Context(), func(l store.DeadLetter) bool { reasons[l.Reason]++; return true }); err != nil {
		t.Fatal(err)
	}
	if len(reasons) != 2 || reasons["nul-in-name"] != 2*3*7 || reasons["too-large"] != 2*3*2 {
		t.Errorf("dead letters: %v", reasons)
	}
}

// TestLongPath: a file may have a path that is longer than a name in the store, and another
// one that begins alike is another input.
func TestLongPath(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for len(folder) < store.LimitName+100 {
		folder = filepath.Join(folder, strings.Repeat("x", 200))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		if errors.Is(err, syscall.ENAMETOOLONG) && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED, no path can be that long here: %v", err)
		}
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store")
	for turn, name := range []string{"a", "a", "b"} {
		in := &input{filepath.Join(folder, name)}
		in.add(t, chain("default", "s", turn%2*20, turn%2*20+20)...)
		r := watch(t, in.follow(path), map[string]int{"default": 20}, fine)
		if r.Resumed() != (turn == 1) {
			t.Errorf("turn %d: it goes on: %v", turn, r.Resumed())
		}
	}
	whole(t, path)
}
