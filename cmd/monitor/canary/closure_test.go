package canary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// In whatever order transactions end, and whoever has read of whom: whom a record has read of is out before it, or
// in one go with it where it is in a circle of such; and when all have ended all are out.
func TestClosure(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var o closure
		n := 1 + rng.IntN(12)
		entries, reads := make([]*entry, n), make([][]bool, n) // reads is transitive
		last := map[int]*entry{}
		for i := range entries {
			session := rng.IntN(4)
			entries[i], reads[i] = &entry{behind: []*entry{last[session]}}, make([]bool, n)
			for j, e := range entries[:i] {
				reads[i][j] = e == last[session]
			}
			last[session] = entries[i]
			o.writes(entries[i], int64(i+1))
		}
		for range rng.IntN(2 * n) {
			i, j := rng.IntN(n), rng.IntN(n)
			if i == j {
				continue
			}
			reads[i][j] = true
			value := record.Int(int64(j + 1))
			if rng.IntN(2) == 0 {
				value = record.Value{Kind: record.KindList, Text: fmt.Sprintf("[%d,%d]", n+1, j+1)}
			}
			entries[i].read(value)
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
			o.end(entries[i], func() { out = append(out, i) })
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
