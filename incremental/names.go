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

// numberOf is the number of a name, and whether it is new.
func (t *names) numberOf(name string) (version.Key, bool) {
	h := uint32(xxhash.Sum64String(name) >> 32)
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
