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

// warm looks at where names with those hashes are, or would be, at most warmMost. It goes through them in steps, each
// of which fetches one thing of all: what is not in the cache is then waited for together, not one after the other.
func (t *names) warm(hashes []uint32) uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	var entries [warmMost]uint64
	mask, seen := uint32(len(t.slots)-1), uint32(0)
	for i, h := range hashes {
		entries[i] = t.slots[h&mask]
	}
	for i, h := range hashes {
		if e := entries[i]; e != 0 && uint32(e>>32) == h {
			if name := *t.list.At(version.Key(e) - 1); len(name) > 0 {
				seen += uint32(name[0])
			}
		}
	}
	return seen
}
