package store_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// copied is a copy of a store that is in use.
type copied struct {
	dir string
	log string // its write-ahead log
	b   []byte // the log, without the zeros behind its end
	// before is where the last commits begin: damage before them has others behind it.
	before int
}

// sparse is a checkpoint in which every page ends with zeros, wherever it begins: most of
// it is zeros, in runs of more than a sector.
func sparse(n int) []byte {
	b := make([]byte, n)
	for at := 0; at < n; at += 700 {
		b[at] = byte(1 + at%251)
	}
	return b
}

// patterned is a checkpoint with a zero in every 256 bytes, and never two.
func patterned(n int) []byte { return storetest.NewEntry(1, n).Data }

// copyInUse copies a store into which a large value was written between small ones, and
// another before it.
func copyInUse(t *testing.T, large []byte, before int) copied {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Path: dir, Receivers: []string{"web"}, Retain: store.Forever})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var c copied
	for n := range int64(7) {
		commit := store.Commit{Offsets: map[string]map[int]int64{"topic": {0: n + 1}}, DeadLetters: []store.DeadLetter{storetest.Letter(n, "x")}}
		switch n {
		case 1:
			commit.Checkpoints = map[string][]byte{"b": bytes.Repeat([]byte{0xff}, before)}
		case 2:
			commit = store.Commit{Checkpoints: map[string][]byte{"a": large}}
		}
		if err := s.Commit(ctx, commit); err != nil {
			t.Fatal(err)
		}
		if n == 4 {
			c.before = len(logOf(t, load(t, dir)).b)
		}
	}
	files := load(t, dir)
	l := logOf(t, files)
	c.log, c.b = l.log, l.b
	files[c.log] = c.b
	c.dir = files.save(t, filepath.Join(fastDir(t), "copy"))
	if r := c.verify(t, c.b); len(r.Damaged)+len(r.Notes) > 0 {
		t.Fatalf("the copy is not whole: %v %v", r.Damaged, r.Notes)
	}
	return c
}

func logOf(t *testing.T, files tree) copied {
	t.Helper()
	for name, b := range files {
		if strings.HasSuffix(name, ".mem") {
			return copied{log: name, b: bytes.TrimRight(b, "\x00")}
		}
	}
	t.Fatal("there is no log")
	return copied{}
}

// verify looks at the copy with another log.
func (c copied) verify(t *testing.T, log []byte) store.Report {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, c.log), log, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := store.Verify(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFlipInCopy: a changed byte of a log is damage in a copy that was made while the store
// was in use, too, whatever the pages of what it is in end with.
func TestFlipInCopy(t *testing.T) {
	for name, large := range map[string][]byte{"patterned": patterned(40_000), "sparse": sparse(40_000)} {
		t.Run(name, func(t *testing.T) {
			c := copyInUse(t, large, 1)
			r := rand.New(rand.NewPCG(3, 4))
			step := 1 + len(c.b)/300
			if race.Brief() {
				step *= 4
			}
			// Behind the header, of which most says nothing.
			for at := 20; at < c.before; at += 1 + r.IntN(2*step) {
				for _, x := range []byte{c.b[at] ^ 1<<r.IntN(8), 0} {
					if x == c.b[at] {
						continue
					}
					b := slices.Clone(c.b)
					b[at] = x
					if report := c.verify(t, b); len(report.Damaged) != 1 || report.Damaged[0].File != c.log || report.Damaged[0].Key == "" {
						t.Fatalf("byte %d is %#x instead of %#x: damaged %v, notes %v", at, x, c.b[at], report.Damaged, report.Notes)
					}
				}
			}
		})
	}
}

// TestSeamInCopy: zeros up to the end of a page are what was not written yet, if they are
// many or begin where an entry does; others are damage.
func TestSeamInCopy(t *testing.T) {
	const page = 4096
	c := copyInUse(t, patterned(40_000), 1)
	begin := bytes.Index(c.b, patterned(300)) // about where the large entry begins
	if begin < 0 {
		t.Fatal("there is no large value")
	}
	second := (begin/page + 2) * page
	cases := []struct {
		name     string
		from, to int
		damage   bool
	}{
		{"a page", second - page, second, false},
		{"pages", second, second + 3*page, false},
		{"the half of a page", second - page/2, second, false},
		{"a sector", second - 512, second, false},
		{"half a sector", second - 256, second, true},
		{"two bytes", second - 2, second, true},
		{"a sector amid a page", second - 1512, second - 1000, true},
		{"over the end of a page", second - 100, second + 100, true},
	}
	for _, x := range cases {
		b := slices.Clone(c.b)
		clear(b[x.from:x.to])
		r := c.verify(t, b)
		if x.damage != (len(r.Damaged) == 1) || x.damage == (len(r.Notes) == 1) {
			t.Errorf("%s: damaged %v, notes %v", x.name, r.Damaged, r.Notes)
		}
	}
}

// TestSeamAtEntry: where an entry begins, zeros are what was not written yet, however few are
// left of the page, but for those that one changed byte explains.
func TestSeamAtEntry(t *testing.T) {
	const page = 4096
	begin := func(c copied) int {
		b := slices.Clone(c.b)
		b[bytes.Index(b, patterned(300))]++
		r := c.verify(t, b)
		if len(r.Damaged) != 1 {
			t.Fatalf("damaged %v, notes %v", r.Damaged, r.Notes)
		}
		return int(r.Damaged[0].Offset)
	}
	const pad = 5000 // at least: the length has as many bytes with a page more
	first := begin(copyInUse(t, patterned(40_000), pad))
	for _, x := range []struct {
		left   int
		damage bool
	}{{1, true}, {2, true}, {3, false}, {100, false}} {
		more := ((page-x.left-first)%page + page) % page
		var c copied
		at := 0
		for try := 0; at%page != page-x.left; try++ { // the order in a transaction is any
			if try == 100 {
				t.Fatalf("the entry begins at byte %d, not %d before the end of a page", at, x.left)
			}
			c = copyInUse(t, patterned(40_000), pad+more)
			at = begin(c)
		}
		b := slices.Clone(c.b)
		clear(b[at : at+x.left])
		if r := c.verify(t, b); x.damage != (len(r.Damaged) == 1) || x.damage == (len(r.Notes) == 1) {
			t.Errorf("%d bytes: damaged %v, notes %v", x.left, r.Damaged, r.Notes)
		}
	}
}
