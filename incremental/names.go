package incremental

import (
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/slots"
)

// names numbers strings, in the order in which they come. A Go map would hold
// the string a second time: with millions of keys that are touched once or twice
// this table, which holds its hash and its number, takes a third of it.
//
// Invariant: slots has a power of two of entries, at most 3/4 of them taken;
// probing from a name's hash finds it before a free slot.
type names struct {
	slots []uint64 // as package slots has them
	list  paged.Vec[version.Key, string]
	own   bool // copies are kept, as a name may be a part of something large
}

func hashName(name string) uint32 { return uint32(xxhash.Sum64String(name) >> 32) }

// numberOf is the number of a name with that hash, and whether it is new.
func (t *names) numberOf(name string, h uint32) (version.Key, bool) {
	if 4*t.list.Len() >= 3*len(t.slots) {
		t.slots = slots.Doubled(t.slots, 16)
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			if t.own {
				name = strings.Clone(name)
			}
			k := t.list.Push(name)
			t.slots[i] = uint64(h)<<32 | uint64(k+1)
			return k, true
		}
		if uint32(s>>32) == h && *t.list.At(version.Key(s) - 1) == name {
			return version.Key(s) - 1, false
		}
	}
}

// warm looks at where names with those hashes are, or would be.
func (t *names) warm(hashes []uint32) uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	mask, seen := uint32(len(t.slots)-1), uint32(0)
	for _, h := range hashes {
		seen += uint32(t.slots[h&mask])
	}
	return seen
}

// findMost is how many names find looks up side by side.
const findMost = 64

// find sets out[i] to the number of name i, or none if it has none. It goes through
// the names in steps, each of which fetches one thing for many names: what is not in
// the cache is then waited for together, not one after the other.
func (t *names) find(n int, name func(int) string, out []version.Key) {
	if len(t.slots) == 0 {
		for i := range n {
			out[i] = none
		}
		return
	}
	var hashes [findMost]uint32
	var entries [findMost]uint64
	var held [findMost]string
	mask := uint32(len(t.slots) - 1)
	for from := 0; from < n; from += findMost {
		m := min(findMost, n-from)
		for i := range m {
			hashes[i] = hashName(name(from + i))
		}
		for i := range m {
			entries[i] = t.slots[hashes[i]&mask]
		}
		for i := range m {
			held[i] = ""
			if e := entries[i]; e != 0 && uint32(e>>32) == hashes[i] {
				held[i] = *t.list.At(version.Key(e) - 1)
			}
		}
		for i := range m {
			switch at := name(from + i); {
			case entries[i] == 0:
				out[from+i] = none
			case held[i] == at && uint32(entries[i]>>32) == hashes[i]:
				out[from+i] = version.Key(entries[i]) - 1
			default:
				out[from+i] = t.probe(at, hashes[i])
			}
		}
	}
}

// probe is the number of a name with that hash, or none.
func (t *names) probe(name string, h uint32) version.Key {
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if s := t.slots[i]; uint32(s>>32) == h && *t.list.At(version.Key(s) - 1) == name {
			return version.Key(s) - 1
		}
	}
	return none
}
