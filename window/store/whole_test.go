package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

var harms = flag.Int("harms", 0, "how many things TestHarm does to each store; 0: some")

// little is a commit of something of everything, in few bytes. Some checkpoints have a file
// of their own, some are mostly zeros, the last of eight among them.
func little(n int64) store.Commit {
	c := store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: n + 1}},
		Journal:     []store.Entry{storetest.NewEntry(uint64(n+1), 300)},
		DeadLetters: []store.DeadLetter{storetest.Letter(n, "x")},
		Alerts:      []store.Alert{{ID: fmt.Sprint("a", n/2), Body: fmt.Appendf(nil, `{"n":%d}`, n), News: 2}},
		Notices:     []store.Notice{{ID: fmt.Sprint("n", n), Body: fmt.Append(nil, "notice ", n)}},
		Handled:     []store.Handled{{ID: fmt.Sprint("a", (n-1)/2), News: 1}},
		Life:        fmt.Append(nil, "life ", n),
		Checkpoints: map[string][]byte{"a": storetest.NewEntry(uint64(n), 100).Data},
		Drop:        uint64(max(n-1, 0)),
	}
	switch n % 3 {
	case 1:
		c.Checkpoints["a"] = make([]byte, 6000) // there is an end of a page within
		c.Checkpoints["a"][10] = byte(n)
	case 2:
		c.Checkpoints["b"] = storetest.NewEntry(uint64(n), 90_000).Data
	}
	return c
}

// kept is a store as it lies on the disk: its folder, and what is in it.
type kept struct {
	dir   string
	files tree
}

// filling is how a store is made.
type filling struct {
	opt     store.Options
	commits int64
	each    int64 // it is opened again after so many, which makes a table; 0: never
	pad     int   // bytes more in the first commit
	journal int   // bytes of an entry more
}

func (x filling) fill(t *testing.T) (*store.Badger, string) {
	t.Helper()
	x.opt.Path = filepath.Join(fastDir(t), "store")
	x.opt.Receivers = []string{"web"}
	s, err := store.Open(x.opt)
	if err != nil {
		t.Fatal(err)
	}
	for n := range x.commits {
		if x.each > 0 && n > 0 && n%x.each == 0 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = store.Open(x.opt); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Spill(t.Context(), "a", spills(n)); err != nil {
			t.Fatal(err)
		}
		c := little(n)
		if n == 0 {
			c.DeadLetters[0] = storetest.Letter(n, strings.Repeat("x", 1+x.pad))
		}
		c.Journal[0] = storetest.NewEntry(uint64(n+1), 300+x.journal)
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s, x.opt.Path
}

func (x filling) closed(t *testing.T) kept {
	t.Helper()
	s, dir := x.fill(t)
	if err := errors.Join(s.Maintain(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	return kept{dir, load(t, dir)}
}

// killed is what is there if the process dies.
func (x filling) killed(t *testing.T) kept {
	t.Helper()
	s, dir := x.fill(t)
	files := load(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again(t, dir, files)
	return kept{dir, files}
}

func (k kept) copied(t *testing.T) kept {
	t.Helper()
	dir := filepath.Join(fastDir(t), "copy")
	return kept{k.files.save(t, dir), k.files}
}

// found are stores in all the states in which one is found.
var found = map[string]func(t *testing.T) kept{
	"fresh":                   filling{commits: 1}.killed,
	"closed":                  filling{commits: 8, each: 4, opt: store.Options{Retain: store.Forever}}.closed,
	"killed":                  filling{commits: 8, each: 4, opt: store.Options{Retain: store.Forever}}.killed,
	"killed in its first run": filling{commits: 8}.killed,
	"copied": func(t *testing.T) kept {
		return filling{commits: 8, each: 4}.killed(t).copied(t)
	},
	"compacted": func(t *testing.T) kept {
		k := filling{commits: 12, each: 2}.closed(t)
		if err := store.Compact(t.Context(), store.Options{Path: k.dir}); err != nil {
			t.Fatal(err)
		}
		return kept{k.dir, load(t, k.dir)}
	},
}

// TestUnknownChecksum: a table whose checksum is of a kind that there is not is damaged; to
// Badger that can't happen.
func TestUnknownChecksum(t *testing.T) {
	k := filling{commits: 2, each: 1}.closed(t)
	for name, b := range k.files {
		if filepath.Ext(name) != ".sst" {
			continue
		}
		at := len(b) - 4 - int(binary.BigEndian.Uint32(b[len(b)-4:])) // of the checksum
		if b[at] != 0x10 {
			t.Fatalf("%s: the checksum begins with %#x, not with its sum", name, b[at])
		}
		b[at] = 0x08 // the kind is what was the sum
		again(t, k.dir, k.files)
		if r, err := store.Verify(k.dir); err != nil || len(r.Damaged) == 0 || r.Damaged[0].File != name {
			t.Errorf("%s: %v, %v", name, r.Damaged, err)
		}
		if _, err := opened(t, k.dir); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: opening says %v", name, err)
		}
		return
	}
	t.Fatal("there is no table")
}

// harm does something to a file, and says what.
func harm(r *rand.Rand, files tree) (what string, _ tree) {
	bad := maps.Clone(files)
	names := files.names()
	name := names[r.IntN(len(names))]
	b := files[name]
	used := len(bytes.TrimRight(b, "\x00"))
	at := 0
	if used > 0 {
		at = r.IntN(used)
	}
	if used > 64 && r.IntN(4) == 0 {
		at = used - 1 - r.IntN(64) // where lengths, checksums and the newest entries are
	}
	c := bytes.Clone(b)
	switch kind := r.IntN(8); {
	case kind == 0:
		delete(bad, name)
		return name + " is missing", bad
	case kind == 1:
		bad[name] = c[:at]
		return fmt.Sprintf("%s is cut to %d of %d bytes", name, at, len(b)), bad
	case kind == 2:
		to := min(len(b), at+1+r.IntN(4096))
		clear(c[min(at, to):to])
		bad[name] = c
		return fmt.Sprintf("%s has zeros from %d to %d of %d", name, at, to, len(b)), bad
	case len(b) > 0:
		c[at] ^= 1 << r.IntN(8)
		bad[name] = c
		return fmt.Sprintf("byte %d of %d of %s is %#x instead of %#x", at, len(b), name, c[at], b[at]), bad
	}
	return "nothing", bad
}

// TestHarm changes, cuts and removes what is in the files of stores in all states. Of no store
// that is not what it was Verify says that it is whole, and nobody reads from it what was not
// written, or less, without being told.
func TestHarm(t *testing.T) {
	tries := 40
	if race.Brief() {
		tries = 5
	}
	if *harms > 0 {
		tries = *harms
	}
	for _, state := range slices.Sorted(maps.Keys(found)) {
		t.Run(state, func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seeds.First, uint64(len(state))))
			k := found[state](t)
			again(t, k.dir, k.files)
			if r, err := store.Verify(k.dir); err != nil || len(r.Damaged)+len(r.Notes) > 0 || r.Records == 0 {
				t.Fatalf("it is not whole: %+v %v", r, err)
			}
			want, err := reread(t, k.dir)
			if err != nil {
				t.Fatal(err)
			}
			told, noted := 0, 0
			for range tries {
				what, files := harm(r, k.files)
				again(t, k.dir, files)
				report, err := store.Verify(k.dir)
				if err != nil && !errors.Is(err, store.ErrForeign) {
					t.Fatalf("%s: verify: %v", what, err)
				}
				if after := load(t, k.dir); !cmp.Equal(files, after, storetest.Blobs) {
					t.Fatalf("%s: verify changed the store: %s", what, cmp.Diff(files, after, storetest.Blobs))
				}
				for _, d := range report.Damaged {
					if d.Kind == "" || d.Key == "" || d.Why == "" {
						t.Errorf("%s: %+v", what, d)
					}
				}
				whole := err == nil && len(report.Damaged)+len(report.Notes) == 0
				if !whole {
					told++
				}
				if len(report.Damaged) == 0 && len(report.Notes) > 0 {
					noted++
				}
				got, err := reread(t, k.dir)
				same := err == nil && cmp.Equal(want, got, storetest.Blobs)
				switch {
				case whole && !same:
					t.Fatalf("%s: verify finds it whole; opened: %v\n%s", what, err, cmp.Diff(want, got, storetest.Blobs))
				case err == nil && !same:
					t.Fatalf("%s: what is read is not what was written, and nobody says so (verify: %v, %v)\n%s", what, report.Damaged, report.Notes, cmp.Diff(want, got, storetest.Blobs))
				case err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrForeign):
					t.Errorf("%s: opening says %v", what, err)
				}
			}
			t.Logf("%d of %d told, %d of them in notes", told, tries, noted)
			if told == 0 && !race.Brief() {
				t.Errorf("of %d nothing is told", tries)
			}
		})
	}
}

// reread is all that there is in a store whose files may be damaged.
func reread(t *testing.T, dir string) (all everything, err error) {
	t.Helper()
	s, err := store.Open(quietOptions(dir))
	if err != nil {
		return all, err
	}
	d, err1 := storetest.Read(s, []string{"topic"}, []string{"web"})
	st, err2 := storetest.ReadStream(s, []string{"a", "b"}, []string{"0", "1", "2", "k"})
	return everything{d, st}, errors.Join(err1, err2, s.Close())
}

// TestDigest: a record too few, too many, or of an earlier version is damage, though each is one
// that was written.
func TestDigest(t *testing.T) {
	life := []byte("l")
	for what, change := range map[string]func(*badger.Txn) error{
		"":                      func(txn *badger.Txn) error { return txn.Set(life, store.Sealed("l", []byte("life 1"))) },
		"too few":               func(txn *badger.Txn) error { return txn.Delete(life) },
		"too many":              func(txn *badger.Txn) error { return txn.Set([]byte("nx"), store.Sealed("nx", []byte("y"))) },
		"of an earlier version": func(txn *badger.Txn) error { return txn.Set(life, store.Sealed("l", []byte("life 0"))) },
	} {
		k := filling{commits: 2}.closed(t)
		db, err := badger.Open(badger.DefaultOptions(k.dir).WithLogger(nil).WithCompression(options.None))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(change), db.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := store.Verify(k.dir)
		if told := len(r.Damaged) == 1 && r.Damaged[0].Key == "all records"; err != nil || told != (what != "") {
			t.Errorf("%q: verify: %v, %v", what, r.Damaged, err)
		}
		if _, err := reread(t, k.dir); errors.Is(err, store.ErrDamaged) != (what != "") {
			t.Errorf("%q: opening says %v", what, err)
		}
	}
}

// TestPowerTookTheEnd: where the machine went down, and the store was not to survive that, it is
// what it was some commits before; while the machine runs the same is damage.
func TestPowerTookTheEnd(t *testing.T) {
	fill := func(commits int64) kept {
		return filling{commits: commits, opt: store.Options{Retain: store.Forever}}.killed(t)
	}
	k, before := fill(8), fill(5)
	want, err := reread(t, before.dir)
	if err != nil {
		t.Fatal(err)
	}
	marked := k.files["COMMITTED"]
	commits := max(binary.BigEndian.Uint64(marked), binary.BigEndian.Uint64(marked[24:]))
	for run, damage := range map[uint64]bool{binary.BigEndian.Uint64(marked[8:]): true, 0: true, 1: false} {
		files := maps.Clone(before.files)
		files["COMMITTED"] = append(store.Marked(commits-1, run), store.Marked(commits, run)...)
		again(t, before.dir, files)
		r, err := store.Verify(before.dir)
		if err != nil || len(r.Damaged) == 1 != damage || len(r.Notes) == 1 == damage {
			t.Errorf("run %d: verify: %v, %v, %v", run, r.Damaged, r.Notes, err)
		}
		for range 2 { // it stays so
			got, err := reread(t, before.dir)
			if errors.Is(err, store.ErrDamaged) != damage || !damage && !cmp.Equal(want, got, storetest.Blobs) {
				t.Errorf("run %d: %v %s", run, err, cmp.Diff(want, got, storetest.Blobs))
			}
		}
		if r, err := store.Verify(before.dir); err != nil || len(r.Notes) > 0 || len(r.Damaged) == 1 != damage {
			t.Errorf("run %d: verify, when it was opened: %v, %v, %v", run, r.Damaged, r.Notes, err)
		}
	}
}
