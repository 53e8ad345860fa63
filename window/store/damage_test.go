package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// tree is what a directory holds, by path.
type tree map[string][]byte

func load(t *testing.T, dir string) tree {
	t.Helper()
	out := make(tree)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// names are the paths in order: what is drawn by lot for each is the same in every run.
func (f tree) names() []string { return slices.Sorted(maps.Keys(f)) }

func (f tree) save(t *testing.T, dir string) string {
	t.Helper()
	for name, b := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func quietOptions(dir string) store.Options {
	return store.Options{Path: dir, Receivers: []string{"web"}, Retain: store.Forever, SyncWrites: true}
}

// states are all that a store holds after each of n rounds, and its files then.
func states(t *testing.T, n int64, reopen int64) (all []everything, trees []tree) {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	s, err := store.Open(quietOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	for i := range n {
		if i == reopen { // which makes a table
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = store.Open(quietOptions(dir)); err != nil {
				t.Fatal(err)
			}
		}
		c := round(i)
		if reopen < 0 && c.Checkpoints["b"] == nil {
			c.Checkpoints["b"] = []byte{0} // to delete one takes several transactions, each synced: pages of two are never mixed
		}
		if err := s.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		e, err := readAll(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		trees = append(trees, load(t, dir))
	}
	return all, trees
}

// opened reads all of a store whose directory may be damaged.
func opened(t *testing.T, dir string) (everything, error) {
	t.Helper()
	s, err := store.Open(quietOptions(dir))
	if err != nil {
		return everything{}, err
	}
	e, err := readAll(s)
	return e, errors.Join(err, s.Close())
}

// TestMissingAndCut: files that are gone or too short are damage.
func TestMissingAndCut(t *testing.T) {
	_, trees := states(t, 5, 3)
	for name, b := range trees[4] {
		strict := strings.HasSuffix(name, ".sst") || strings.HasPrefix(name, "journal") || strings.HasPrefix(name, "large") || name == "MANIFEST"
		if !strict {
			continue
		}
		for _, keep := range []int{-1, len(b) / 2} {
			bad := make(tree)
			for k, v := range trees[4] {
				if k != "LOCK" { // it was closed
					bad[k] = v
				}
			}
			if delete(bad, name); keep >= 0 {
				bad[name] = b[:keep]
			}
			dir := bad.save(t, filepath.Join(fastDir(t), "store"))
			r, err := store.Verify(dir)
			if err != nil || len(r.Damaged) == 0 {
				t.Errorf("%s, cut to %d of %d: %+v, %v", name, keep, len(b), r, err)
			}
			if _, err := opened(t, dir); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%s, cut to %d of %d: opening says %v", name, keep, len(b), err)
			}
		}
	}
}

// TestPowerLoss mixes the pages of the files as they were at two times, as a disk
// does that has written some of what changed in between when the power goes. With
// SyncWrites, what was acknowledged is there, and the commit under way is there or
// not. Without, a prefix of the commits is there, or the damage is told.
func TestPowerLoss(t *testing.T) {
	const n = 7
	all, trees := states(t, n, -1)
	r := rand.New(rand.NewPCG(3, 4))
	tries := 60
	if race.Brief() {
		tries = 12
	}
	kept, told := make(map[int]int), 0
	for try := range tries {
		from := r.IntN(n - 1)
		to := from + 1
		if try%2 == 1 {
			to = from + 1 + r.IntN(n-1-from)
		}
		power := mix
		if to == from+1 {
			power = during
		}
		dir := power(r, trees[from], trees[to]).save(t, filepath.Join(fastDir(t), "store"))
		got, err := opened(t, dir)
		if err != nil {
			if to == from+1 || !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("try %d, commit %d to %d: %v", try, from, to, err)
			}
			told++
			continue
		}
		found := -1
		for i := from; i <= to; i++ {
			if cmp.Equal(all[i], got, storetest.Blobs) {
				found = i
			}
		}
		if found < 0 {
			t.Fatalf("try %d: neither commit %d nor any up to %d\n%s", try, from, to, cmp.Diff(all[from], got, storetest.Blobs))
		}
		kept[found-from]++
	}
	if (kept[0] == 0 || kept[1] == 0 || told == 0) && !race.Brief() { // nor need a few tries
		t.Errorf("not all was tried: %v commits kept, %d times damage", kept, told)
	}
}

// ours tells the journal and large values from Badger's files.
func ours(name string) bool {
	return strings.HasPrefix(name, "journal") || strings.HasPrefix(name, "large")
}

// during is how the disk may look in a commit with SyncWrites: first the journal and
// large values are written and synced, then the database is, then COMMITTED says so and files
// go that are not needed any more.
func during(r *rand.Rand, old, new tree) tree {
	phase := r.IntN(3)
	mixed, out := mix(r, old, new), make(tree)
	for name := range mixed {
		if ours(name) == (phase == 0) {
			out[name] = mixed[name]
		}
	}
	for name, b := range old {
		if _, kept := new[name]; ours(name) && !kept && phase < 2 {
			out[name] = b
		} else if !ours(name) && phase == 0 {
			out[name] = b
		}
	}
	for name, b := range new {
		if ours(name) && phase > 0 || !ours(name) && phase == 2 {
			out[name] = b
		}
	}
	if phase < 2 {
		out["COMMITTED"] = old["COMMITTED"]
	}
	return out
}

// mix is new, but each page of it may be as old has it.
func mix(r *rand.Rand, old, new tree) tree {
	const page = 4096
	out := make(tree)
	for _, name := range new.names() {
		b := bytes.Clone(new[name])
		before := old[name]
		for at := 0; at < len(b); at += page {
			if r.IntN(2) == 0 {
				continue
			}
			p := b[at:min(at+page, len(b))]
			clear(p)
			if at < len(before) {
				copy(p, before[at:])
			}
		}
		if len(before) < len(b) && r.IntN(2) == 0 {
			b = b[:len(before)]
		}
		if _, ok := old[name]; ok || r.IntN(2) == 0 {
			out[name] = b
		}
	}
	for _, name := range old.names() {
		if _, ok := new[name]; !ok && r.IntN(2) == 0 {
			out[name] = old[name] // its removal was lost
		}
	}
	return out
}

// TestCopyWhileRunning copies a store again and again while it is written to as
// fast as it can be: each copy is whole.
func TestCopyWhileRunning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no cp")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Path: dir, Receivers: []string{"web"}, MaxBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done, commits := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		for n := int64(0); ; n++ {
			c := round(n)
			c.Alerts[0].ID = fmt.Sprint(n)
			c.Alerts[0].Body = c.Alerts[0].Body[:20_000]
			err := errors.Join(s.Commit(ctx, c), s.Spill(ctx, "a", spills(n)))
			if ctx.Err() != nil {
				err = nil
			}
			if err != nil || ctx.Err() != nil {
				done <- err
				return
			}
			select {
			case commits <- struct{}{}:
			default:
			}
		}
	}()
	notes := 0
	for i := range 12 {
		<-commits
		to := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if out, err := exec.Command("cp", "-r", dir, to).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such file") {
			t.Fatalf("cp: %v %s", err, out)
		}
		r, err := store.Verify(to)
		if err != nil || len(r.Damaged) > 0 {
			t.Fatalf("copy %d: %v %v", i, r.Damaged, err)
		}
		notes += len(r.Notes)
	}
	t.Logf("%d notes", notes)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
