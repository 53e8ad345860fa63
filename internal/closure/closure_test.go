package closure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// In whatever order transactions end, and whoever has read of whom: whom a record has read of is out before it, or
// in one go with it where it is in a circle of such; and when all have ended all are out.
func TestClosure(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var o Order
		isItem := seed%2 == 0 // all write one, be it known before or not
		n := 1 + rng.IntN(12)
		entries, ops, reads := make([]*Entry, n), make([][]record.Op, n), make([][]bool, n) // reads is transitive
		last := map[int]*Entry{}
		for i := range entries {
			session := rng.IntN(4)
			entries[i], reads[i] = &Entry{Last: last[session]}, make([]bool, n)
			for j, e := range entries[:i] {
				reads[i][j] = e == last[session]
			}
			last[session] = entries[i]
			if !isItem {
				o.Writes(entries[i], fmt.Sprint(i+1))
				continue
			}
			entries[i].Unseen = true
			o.Writes(entries[i], []string{"a:1", "a"}[rng.IntN(2)])
			ops[i] = append(ops[i], record.Op{Kind: record.Write, Key: "a:1", Value: record.Int(int64(i + 1))})
		}
		for range rng.IntN(2 * n) {
			i, j := rng.IntN(n), rng.IntN(n)
			if i == j {
				continue
			}
			reads[i][j] = true
			if isItem {
				ops[i] = append(ops[i], record.Op{Kind: record.Read, Key: "a:1", Value: record.Int(int64(j + 1))})
			} else {
				o.Reads(entries[i], fmt.Sprint(j+1))
			}
		}
		for _, e := range entries {
			o.Commits(e)
		}
		for range n {
			for i := range n {
				for j := range n {
					reads[i][j] = reads[i][j] || slices.ContainsFunc(rng.Perm(n), func(k int) bool { return reads[i][k] && reads[k][j] })
				}
			}
		}
		var out, ended []int // and by whose end
		for _, i := range rng.Perm(n) {
			o.End(entries[i], ops[i], func() { out = append(out, i) })
			for len(ended) < len(out) {
				ended = append(ended, i)
			}
		}
		if len(out) != n || o.held != 0 {
			t.Fatalf("seed %d: %d of %d are out, %d held", seed, len(out), n, o.held)
		}
		for at, i := range out {
			for j := range n {
				its := slices.Index(out, j)
				if reads[i][j] && its > at && (!reads[i][i] || ended[its] != ended[at]) {
					t.Fatalf("seed %d: %v: %d has read of %d", seed, out, i, j)
				}
			}
		}
	}
}

// Who waits for one that does not end is out after a while, or where too many are held, behind its session's earlier
// ones, and then is waited for by nobody.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Order{Patience: time.Second}
		var out []int
		stuck := &Entry{}
		o.Writes(stuck, "a:1")
		last := (*Entry)(nil)
		for i := range 3 {
			last = &Entry{Last: last}
			o.End(last, []record.Op{{Kind: record.Read, Key: "a:1", Value: record.Int(int64(i))}}, func() { out = append(out, i) })
		}
		o.mu.Lock()
		if len(out) > 0 || o.held != 3 {
			t.Errorf("%v are out, %d held", out, o.held)
		}
		o.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(stuck.waits) > 0 {
			t.Errorf("%d wait that are out", len(stuck.waits))
		}
		for range heldMax + 10 {
			o.End(&Entry{}, []record.Op{{Kind: record.Read, Key: "a:1", Value: record.Int(9)}}, func() {})
		}
		o.mu.Lock()
		if o.held != heldMax {
			t.Errorf("%d are held", o.held)
		}
		o.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if o.End(stuck, nil, func() { out = append(out, 3) }); !slices.Equal(out, []int{0, 1, 2, 3}) || o.held != 0 || len(o.writers) > 0 {
			t.Errorf("%v are out, %d held, %v written", out, o.held, o.writers)
		}
	})
}

// However many stand in line to write an item, each is looked at a few times until it is out.
func TestInLine(t *testing.T) {
	t.Parallel()
	const ends = 1000
	var o Order
	var line []*Entry
	for i := range ends + 100 {
		e := &Entry{}
		o.Writes(e, "a:1")
		if line = append(line, e); i < 100 {
			continue
		}
		o.End(line[0], []record.Op{{Kind: record.Read, Key: "a:1", Value: record.Int(int64(i))},
			{Kind: record.Write, Key: "a:1", Value: record.Int(int64(i + 1))}}, func() {})
		line = line[1:]
	}
	if o.turn > 3*ends {
		t.Errorf("%d looks at %d", o.turn, ends)
	}
}
