package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	_ "github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

func onDisk(t *testing.T) storetest.Place {
	dir := t.TempDir()
	return storetest.Place{Open: func(o store.Options) (store.Store, error) {
		o.Path = dir
		return asStore(store.Open(o))
	}}
}

// asStore keeps a nil *Badger from becoming a Store that is not nil.
func asStore(s *store.Badger, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func TestConformance(t *testing.T) { storetest.Run(t, onDisk) }

// TestAgreesWithTwin does the same random steps to Badger, reopened now and
// then, and to the twin in memory.
func TestAgreesWithTwin(t *testing.T) {
	ctx := context.Background()
	sources, receivers := []string{"t", "u"}, []string{"web", "kafka"}
	histories, keys := []string{"h", "hh"}, []string{"", "k", "kk"}
	tries := 0
	rapid.Check(t, func(rt *rapid.T) {
		tries++
		opt := store.Options{Receivers: receivers[:rapid.IntRange(0, 2).Draw(rt, "receivers")],
			MaxValue: 20, MaxDeadLetters: rapid.IntRange(1, 8).Draw(rt, "letters"), MaxDeadLetterBytes: 500, Retain: store.Forever, MaxBytes: 1 << 30}
		disk := storetest.NewDisk()
		twin, err := disk.Open(opt)
		if err != nil {
			rt.Fatal(err)
		}
		opt.Path = filepath.Join(t.TempDir(), fmt.Sprint(tries))
		s, err := store.Open(opt)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 5).Draw(rt, "id"))
			db := rapid.SampledFrom(histories).Draw(rt, "history")
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0:
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				if s, err = store.Open(opt); err != nil {
					rt.Fatal(err)
				}
				if twin, err = disk.Open(opt); err != nil {
					rt.Fatal(err)
				}
			case 1:
				r := rapid.SampledFrom(receivers).Draw(rt, "receiver")
				if err := errors.Join(s.Delivered(ctx, r, id), twin.Delivered(ctx, r, id)); err != nil {
					rt.Fatal(err)
				}
			case 2:
				kv := store.KV{Key: rapid.SampledFrom(keys).Draw(rt, "key"), Value: []byte(rapid.StringN(0, 3, 9).Draw(rt, "value"))}
				if rapid.Bool().Draw(rt, "delete") {
					kv.Value = nil
				}
				if err := errors.Join(s.Spill(ctx, db, []store.KV{kv}), twin.Spill(ctx, db, []store.KV{kv})); err != nil {
					rt.Fatal(err)
				}
			default:
				c := store.Commit{Offsets: map[string]map[int]int64{
					rapid.SampledFrom(sources).Draw(rt, "source"): {rapid.IntRange(0, 2).Draw(rt, "partition"): rapid.Int64Range(0, 9).Draw(rt, "offset")}}}
				for range rapid.IntRange(0, 4).Draw(rt, "n") {
					c.DeadLetters = append(c.DeadLetters, storetest.Letter(rapid.Int64Range(0, 9).Draw(rt, "at"),
						strings.Repeat("x", rapid.IntRange(0, 40).Draw(rt, "size"))))
				}
				if rapid.Bool().Draw(rt, "alert") {
					c.Alerts = []store.Alert{{ID: id, Body: []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "body"))}}
				}
				number := rapid.Uint64Range(1, 12).Draw(rt, "number")
				for range rapid.IntRange(0, 3).Draw(rt, "entries") {
					c.Journal = append(c.Journal, storetest.NewEntry(number, rapid.SampledFrom([]int{0, 5, 40_000}).Draw(rt, "bytes")))
					number += rapid.Uint64Range(1, 3).Draw(rt, "hole")
				}
				switch rapid.IntRange(0, 4).Draw(rt, "checkpoint") {
				case 0:
					c.Checkpoints = map[string][]byte{db: nil}
				case 1:
					c.Checkpoints = map[string][]byte{db: storetest.NewEntry(number, rapid.SampledFrom([]int{0, 5, 90_000}).Draw(rt, "size of checkpoint")).Data}
				}
				if err := errors.Join(s.Commit(ctx, c), twin.Commit(ctx, c)); err != nil {
					rt.Fatal(err)
				}
			}
			want, err1 := storetest.Read(twin, sources, receivers)
			got, err2 := storetest.Read(s, sources, receivers)
			if err := errors.Join(err1, err2); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("(-twin +badger)\n%s", diff)
			}
			wantStream, err1 := storetest.ReadStream(twin, histories, keys)
			gotStream, err2 := storetest.ReadStream(s, histories, keys)
			if err := errors.Join(err1, err2); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(wantStream, gotStream, storetest.Blobs); diff != "" {
				rt.Fatalf("(-twin +badger)\n%s", diff)
			}
			st, err := s.Stats(ctx)
			if err != nil || int(st.DeadLetters) != len(got.Letters) || int(st.Alerts) != len(got.Alerts) {
				rt.Fatalf("stats %+v, %v", st, err)
			}
			if n := len(got.Letters); n > 0 && uint64(st.DeadLettersDropped) != got.Letters[0].ID {
				rt.Fatalf("%d dropped, oldest is %d", st.DeadLettersDropped, got.Letters[0].ID)
			}
			sum := int64(0)
			for _, l := range got.Letters {
				sum += l.Stored()
			}
			if st.DeadLetterBytes != sum {
				rt.Fatalf("%d bytes counted of %d", st.DeadLetterBytes, sum)
			}
		}
	})
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = store.Open(store.Options{Path: dir})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) || !strings.Contains(err.Error(), "stop that one first") {
		t.Fatalf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatalf("after closing: %v", err)
	}
	s.Close()
}

func TestUnusableDirectories(t *testing.T) {
	raw := func(t *testing.T, set func(*badger.Txn) error, compression ...options.CompressionType) string {
		dir := t.TempDir()
		db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithCompression(append(compression, options.None)[0]))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(set), db.Close()); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := t.TempDir()
	s, err := store.Open(store.Options{Path: damaged})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(damaged, "MANIFEST"), []byte("nonsense, not a manifest"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, says string
		is               error
	}{
		{"none", "", "store.path", nil},
		{"a file", file, "set store.path", nil},
		{"other files", filepath.Dir(file), "it holds file", store.ErrForeign},
		{"another database", raw(t, func(txn *badger.Txn) error { return txn.Set([]byte("k"), []byte("v")) }), "another Badger database", store.ErrForeign},
		{"another database, compressed", raw(t, func(txn *badger.Txn) error { return txn.Set([]byte("k"), []byte("v")) }, options.Snappy), "another Badger database", store.ErrForeign},
		{"older", raw(t, func(txn *badger.Txn) error {
			return txn.Set([]byte("mschema"), store.Sealed("mschema", []byte{0, 4}))
		}), "layout is version 4, and this program reads version 5; --rebuild", store.ErrLayout},
		{"newer", raw(t, func(txn *badger.Txn) error {
			return txn.Set([]byte("mschema"), store.Sealed("mschema", []byte{0, 6}))
		}), "layout is version 6 and this program knows up to 5", store.ErrLayout},
		{"damaged version", raw(t, func(txn *badger.Txn) error { return txn.Set([]byte("mschema"), []byte{1}) }), "schema: the version of the layout is damaged", store.ErrDamaged},
		{"no state", raw(t, func(txn *badger.Txn) error { return txn.Set([]byte("mschema"), store.Sealed("mschema", []byte{0, 5})) }), "state", store.ErrDamaged},
		{"damaged", damaged, "--rebuild", store.ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := store.Open(store.Options{Path: c.path})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v", err)
			}
		})
	}
}

// TestKilledFirstStart: a directory in which a first start got no further than
// its lock file is not somebody else's.
func TestKilledFirstStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestLargeValues replaces large bodies again and again: what they took is freed
// at once, and stays freed after a restart.
func TestLargeValues(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	body := make([]byte, 3<<20)
	for i := range 20 {
		body[0] = byte(i)
		c := store.Commit{Alerts: []store.Alert{{ID: "a", Body: body}}, Checkpoints: map[string][]byte{"db": body[:i<<17]}}
		if err := s.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(names(t, dir, "large/*")); n != 2 {
		t.Errorf("%d files for an alert and a checkpoint", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "large", "00000000000003e7"), []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(store.Options{Path: dir}); err != nil {
		t.Fatal(err)
	}
	if n := len(names(t, dir, "large/*")); n != 2 {
		t.Errorf("%d files for an alert and a checkpoint after a restart", n)
	}
	a, ok, err := s.Alert(ctx, "a")
	if err != nil || !ok || !bytes.Equal(a.Body, body) {
		t.Fatalf("the body is lost: %d bytes, %v", len(a.Body), err)
	}
	st, err := s.Stats(ctx)
	if want := int64(8 + len(body) + 19<<17); err != nil || st.LargeBytes != want {
		t.Errorf("%d bytes counted of %d, %v", st.LargeBytes, want, err)
	}
	for _, c := range []map[string][]byte{{"db": []byte("small")}, {"db": nil}} {
		if err := s.Commit(ctx, store.Commit{Checkpoints: c}); err != nil {
			t.Fatal(err)
		}
		if n := len(names(t, dir, "large/*")); n != 1 {
			t.Errorf("%d files for an alert", n)
		}
	}
}

func names(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWrittenIsNotHeld: of a checkpoint that is written in parts, as that of a million keys, no whole is in memory.
func TestWrittenIsNotHeld(t *testing.T) {
	const parts, size = 4096, 16 << 10
	ctx, part := t.Context(), storetest.NewEntry(1, size).Data
	s, err := store.Open(store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = s.Commit(ctx, store.Commit{Written: map[string]func(io.Writer) error{"h": func(to io.Writer) error {
		for range parts {
			if _, err := to.Write(part); err != nil {
				return err
			}
		}
		return nil
	}}})
	runtime.ReadMemStats(&after)
	if err != nil || after.TotalAlloc-before.TotalAlloc > parts*size/16 {
		t.Errorf("%d bytes were allocated for %d: %v", after.TotalAlloc-before.TotalAlloc, parts*size, err)
	}
	if got, _, err := s.Checkpoint(ctx, "h"); err != nil || !bytes.Equal(got, bytes.Repeat(part, parts)) {
		t.Errorf("%d bytes are there, want %d: %v", len(got), parts*size, err)
	}
}

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	s, err := store.Open(store.Options{Path: t.TempDir(), Logger: zerolog.New(zerolog.SyncWriter(&b))})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !strings.Contains(b.String(), `"message":"badger: `) || strings.Contains(b.String(), `"level":"info"`) {
		t.Fatalf("log: %s", b.String())
	}
}

// BenchmarkCommit commits what a batch of input typically causes: four offsets,
// now and then an alert of 4 kB.
func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			s, err := store.Open(store.Options{Path: b.TempDir(), SyncWrites: sync, Receivers: []string{"web"}})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			body := bytes.Repeat([]byte("x"), 4<<10)
			for i := range b.N {
				c := store.Commit{Offsets: map[string]map[int]int64{"t": {0: int64(i), 1: int64(i), 2: int64(i), 3: int64(i)}}}
				if i%100 == 0 {
					c.Alerts = []store.Alert{{ID: fmt.Sprint(i), Body: body}}
				}
				if err := s.Commit(context.Background(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkJournal commits what a busy monitor does: an entry of 1 MiB with its
// offsets, and every tenth time a checkpoint of 10 MiB and a mark up to which entries
// are evidence only; 10 entries and a checkpoint a second are 10 + 10 MB/s.
func BenchmarkJournal(b *testing.B) {
	ctx := context.Background()
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			s, err := store.Open(store.Options{Path: b.TempDir(), SyncWrites: sync, MaxBytes: 256 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			e, checkpoint := storetest.NewEntry(1, 1<<20), storetest.NewEntry(2, 10<<20).Data
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for n := range uint64(b.N) {
				e.Number = n + 1
				c := store.Commit{Journal: []store.Entry{e}, Offsets: map[string]map[int]int64{"t": {0: int64(n), 1: int64(n)}}}
				if n%10 == 9 {
					c.Checkpoints = map[string][]byte{"h": checkpoint}
					c.Drop = n - 5
				}
				if err := s.Commit(ctx, c); err != nil {
					b.Fatal(err)
				}
			}
			st, err := s.Stats(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(st.DiskBytes>>20), "MiB-kept")
		})
	}
}

// BenchmarkSpill spills and reads back pairs of 100 bytes of a million keys, 1000 at
// a time.
func BenchmarkSpill(b *testing.B) {
	ctx := context.Background()
	s, err := store.Open(store.Options{Path: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 100)
	for b.Loop() {
		pairs, keys := make([]store.KV, 1000), make([]string, 1000)
		for i := range pairs {
			keys[i] = fmt.Sprintf("key:%d", r.IntN(1_000_000))
			pairs[i] = store.KV{Key: keys[i], Value: value}
		}
		if err := s.Spill(ctx, "h", pairs); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Spilled(ctx, "h", keys); err != nil {
			b.Fatal(err)
		}
	}
}
