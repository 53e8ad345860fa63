package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

var every = flag.Bool("every", false, "TestEveryByte flips every byte of the stores, not some")

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
	"copied, its table ends with a page": func(t *testing.T) kept {
		x := filling{commits: 8, each: 4}
		for range 10 {
			k := x.killed(t)
			more := -len(k.files["000001.sst"]) & 4095
			if more == 0 {
				return k.copied(t)
			}
			x.pad += more
		}
		t.Fatal("no table ends with a page")
		return kept{}
	},
	"compacted": func(t *testing.T) kept {
		k := filling{commits: 12, each: 2}.closed(t)
		if err := store.Compact(t.Context(), store.Options{Path: k.dir}); err != nil {
			t.Fatal(err)
		}
		return kept{k.dir, load(t, k.dir)}
	},
	"retained by size": func(t *testing.T) kept {
		k := filling{commits: 8, each: 4, journal: 70_000, opt: store.Options{Retain: store.Forever, MaxBytes: 500_000}}.closed(t)
		if _, ok := k.files["journal/0000000000000000.log"]; ok {
			t.Fatal("nothing was dropped")
		}
		return k
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

// meaningless says why a change of a byte changes nothing that anybody reads; empty: it
// does.
func meaningless(name string, at int) string {
	switch ext := filepath.Ext(name); {
	case name == "LOCK":
		return "the number of the process that had it open last, which messages name"
	case (ext == ".mem" || ext == ".vlog") && at >= 8 && at < 20:
		return "a random number that only encryption uses"
	}
	return ""
}

// TestEveryByte flips each byte of each file of stores in all states: Verify names what is
// damaged, or the byte is one that says nothing.
func TestEveryByte(t *testing.T) {
	for name, of := range found {
		t.Run(name, func(t *testing.T) {
			k := of(t)
			for name, b := range k.files { // of millions of zeros that say the same, some pages do
				if ext := filepath.Ext(name); ext == ".mem" || ext == ".vlog" {
					k.files[name] = b[:min(len(b), len(bytes.TrimRight(b, "\x00"))+3*4096)]
				}
			}
			again(t, k.dir, k.files)
			if r, err := store.Verify(k.dir); err != nil || len(r.Damaged)+len(r.Notes) > 0 {
				t.Fatalf("it is not whole: %v %v %v", r.Damaged, r.Notes, err)
			}
			flips := 0
			for _, file := range slices.Sorted(maps.Keys(k.files)) {
				flips += flipAll(t, k, file)
			}
			t.Logf("%d flips", flips)
		})
	}
}

// TestLastTransaction flips bytes of the last transaction of a log, which is mostly zeros: a
// store whose process was killed in the middle of it, or its copy, looks much the same.
func TestLastTransaction(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	s, err := store.Open(store.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(large []byte) []byte {
		if err := s.Commit(t.Context(), store.Commit{Checkpoints: map[string][]byte{"a": large}}); err != nil {
			t.Fatal(err)
		}
		return logOf(t, load(t, dir)).b
	}
	begin := len(commit([]byte("first")))
	zeros := make([]byte, 4000)
	zeros[2000] = 1
	whole := commit(zeros)
	files := load(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := logOf(t, files).log
	files[log] = whole
	step := 1
	if !*every {
		step = 40
	}
	for _, place := range []string{dir, filepath.Join(fastDir(t), "copy")} {
		if err := os.MkdirAll(place, 0o700); err != nil {
			t.Fatal(err)
		}
		again(t, place, files)
		for at := begin; at < len(whole); at++ {
			if dense := whole[max(begin, at-8):min(len(whole), at+8)]; at%step != 0 && bytes.Count(dense, []byte{0}) == len(dense) {
				continue
			}
			for _, x := range []byte{whole[at] ^ 1<<(at%8), 0} {
				b := slices.Clone(whole)
				if b[at] = x; x == whole[at] {
					continue
				}
				if r := (copied{dir: place, log: log}).verify(t, b); len(r.Damaged) != 1 || r.Damaged[0].File != log || r.Damaged[0].Key == "" {
					t.Errorf("%s: byte %d of %d to %d is %#x instead of %#x: damaged %v, notes %v", filepath.Base(place), at, begin, len(whole), x, whole[at], r.Damaged, r.Notes)
				}
			}
		}
	}
}

// flipAll flips bytes of a file, one after the other, and returns how many.
func flipAll(t *testing.T, k kept, name string) (flips int) {
	t.Helper()
	b := k.files[name]
	f, err := os.OpenFile(filepath.Join(k.dir, name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(at int, x byte) {
		if _, err := f.WriteAt([]byte{x}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	used := len(bytes.TrimRight(b, "\x00"))
	wrong := map[string][]int{}
	for at := 0; at < len(b); at += strideOf(name, at, used, len(b)) {
		for _, x := range others(b, at) {
			write(at, x)
			flips++
			r, err := store.Verify(k.dir)
			write(at, b[at])
			switch {
			case err != nil:
				wrong[err.Error()] = append(wrong[err.Error()], at)
			case len(r.Damaged) == 0 && meaningless(name, at) == "":
				why := fmt.Sprintf("it is not told; notes: %q", r.Notes)
				wrong[why] = append(wrong[why], at)
			}
			for _, d := range r.Damaged {
				if d.Kind == "" || d.Key == "" || d.File != name || d.Why == "" {
					wrong[d.Error()] = append(wrong[d.Error()], at)
				}
			}
		}
	}
	for why, at := range wrong {
		t.Errorf("%s of %d bytes, a change of %d bytes, %v…: %s", name, used, len(at), at[:min(len(at), 20)], why)
	}
	return flips
}

// others are bytes that one is changed to: with one bit more or less, and nothing at all; in
// a small file with each bit.
func others(b []byte, at int) []byte {
	out := []byte{b[at] ^ 1<<(at%8)}
	if len(b) < 200 {
		for bit := range 8 {
			out = append(out, b[at]^1<<bit)
		}
	}
	if b[at] != 0 {
		out = append(out, 0)
	}
	return out
}

// strideOf is how far the next byte is that is flipped.
func strideOf(name string, at, used, size int) int {
	if at >= used+64 {
		return max(1, (size-used)/20) // zeros that nothing follows
	}
	if filepath.Ext(name) == ".sst" && at >= size-40 {
		return 1 // lengths and checksums
	}
	flips := 30
	if race.Brief() {
		flips = 2
	}
	if *every {
		flips = used
		if filepath.Ext(name) != ".mem" && filepath.Ext(name) != ".sst" {
			flips = 5000 // what has one checksum is the same everywhere
		}
	}
	step := max(1, used/flips)
	if end := size - 40; filepath.Ext(name) == ".sst" && at < end {
		step = min(step, end-at)
	}
	return step
}
