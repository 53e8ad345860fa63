package slots_test

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/internal/slots"
)

// Whatever was in a table is found after it has grown, equal hashes and those that lie at
// the end of the ring included, and nothing else.
func TestEntriesAreFoundAfterGrowing(t *testing.T) {
	const least = 16
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		table := slots.Doubled(nil, least)
		if len(table) != least {
			t.Fatalf("an empty table grew to %d slots", len(table))
		}
		var hashes []uint32
		for n := range 100 {
			if 4*n >= 3*len(table) {
				before := len(table)
				if table = slots.Doubled(table, least); len(table) != 2*before {
					t.Fatalf("%d slots became %d", before, len(table))
				}
			}
			h := rng.Uint32() | 0xfffffff0 // few places, at the end of the ring
			if rng.IntN(3) == 0 {
				h = rng.Uint32()
			}
			hashes = append(hashes, h)
			mask := uint32(len(table) - 1)
			i := h & mask
			for table[i] != 0 {
				i = (i + 1) & mask
			}
			table[i] = uint64(h)<<32 | uint64(n+1)
		}
		taken := 0
		for _, s := range table {
			if s != 0 {
				taken++
			}
		}
		if taken != len(hashes) {
			t.Fatalf("%d entries are in the table, %d were put there", taken, len(hashes))
		}
		for n, h := range hashes {
			mask := uint32(len(table) - 1)
			i := h & mask
			for table[i] != uint64(h)<<32|uint64(n+1) {
				if table[i] == 0 {
					t.Fatalf("entry %d of hash %#x is not found in %d slots", n, h, len(table))
				}
				i = (i + 1) & mask
			}
		}
	}
}
