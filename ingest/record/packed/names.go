package packed

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
)

// seed and mix differ from run to run, so that no input can be made whose names
// all have the same hash; numbers follow the order of first use and do not show it.
var (
	seed = maphash.MakeSeed()
	mix  = [2]uint64{maphash.String(seed, "0"), maphash.String(seed, "1")}
)

// hashOf is the hash of a name, the first 8 bytes of which are word.
func hashOf(name []byte, word uint64) uint32 {
	if len(name) > 8 {
		return uint32(maphash.Bytes(seed, name) >> 32)
	}
	high, low := bits.Mul64(word^mix[0], mix[1]|1)
	return uint32(high ^ low)
}

// wordOf are the first 8 bytes of a name, as a number; those that a shorter one
// does not have are 0.
func wordOf(name []byte) uint64 {
	if len(name) >= 8 {
		return binary.LittleEndian.Uint64(name)
	}
	if cap(name) >= 8 { // what stands behind the name is masked out
		return binary.LittleEndian.Uint64(name[:8]) & (1<<(8*len(name)) - 1)
	}
	var w uint64
	for i, c := range name {
		w |= uint64(c) << (8 * i)
	}
	return w
}

// A table of names is a power of two of slots, hash<<32 | number + 1 and 0 if
// free, at most half of them taken. Probing from a name's hash finds it before a
// free slot. The hash beside the number spares a look at nearly all wrong names.

// dictionary numbers the names of a chunk.
type dictionary struct {
	slots   []uint64
	entries []entry
	text    []byte // of all names, one after the other
}

// entry is a name of a chunk.
type entry struct {
	word  uint64 // its first bytes: all there is to compare of most
	end   int    // in the text
	hash  uint32
	isKey bool // an operation is on it
}

func (d *dictionary) name(n uint32) []byte {
	from := 0
	if n > 0 {
		from = d.entries[n-1].end
	}
	return d.text[from:d.entries[n].end]
}

// number is the number of the name. It looks at 8 bytes of its capacity, so these
// must not be written to at the same time.
func (d *dictionary) number(name []byte) uint32 {
	word := wordOf(name)
	h := hashOf(name, word)
	if 2*len(d.entries) >= len(d.slots) {
		d.slots = grow(d.slots)
	}
	mask := uint32(len(d.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := d.slots[i]
		if s == 0 {
			d.slots[i] = uint64(h)<<32 | uint64(len(d.entries)+1)
			d.text = append(d.text, name...)
			d.entries = append(d.entries, entry{word: word, end: len(d.text), hash: h})
			return uint32(len(d.entries) - 1)
		}
		if uint32(s>>32) != h {
			continue
		}
		n := uint32(s) - 1
		if d.entries[n].word != word {
			continue
		}
		if same := d.name(n); len(same) == len(name) && (len(name) <= 8 || string(same) == string(name)) {
			return n
		}
	}
}

// reset forgets all names.
func (d *dictionary) reset() {
	d.entries = d.entries[:0]
	clear(d.slots)
	d.text = d.text[:0]
}

// grow doubles a table.
func grow(old []uint64) []uint64 {
	slots := make([]uint64, max(64, 2*len(old)))
	mask := uint32(len(slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := uint32(s>>32) & mask
		for slots[i] != 0 {
			i = (i + 1) & mask
		}
		slots[i] = s
	}
	return slots
}

// names numbers the names of a history.
type names struct {
	slots []uint64
	list  []string
	kinds []uint8 // what each is a name of
}

const (
	ofKey = 1 << iota
	ofSession
)

// likely is the number of the first name found that has the hash h, or none.
func (t *names) likely(h uint32) uint32 {
	if len(t.slots) == 0 {
		return none
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if s := t.slots[i]; s == 0 || uint32(s>>32) == h {
			return uint32(s) - 1
		}
	}
}

const none = math.MaxUint32

// number is the number of the name, whose hash is h.
func (t *names) number(name string, h uint32) uint32 {
	if 2*len(t.list) >= len(t.slots) {
		t.slots = grow(t.slots)
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			t.list = append(t.list, strings.Clone(name)) // name is a part of much more
			t.kinds = append(t.kinds, 0)
			t.slots[i] = uint64(h)<<32 | uint64(len(t.list))
			return uint32(len(t.list) - 1)
		}
		if n := uint32(s) - 1; uint32(s>>32) == h && t.list[n] == name {
			return n
		}
	}
}
