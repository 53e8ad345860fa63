package packed

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"

	"github.com/isowatch/isowatch/internal/slots"
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

// dictionary numbers the names of a chunk. Most names are found by a look at one
// slot, which is all that is touched of memory that no cache holds.
type dictionary struct {
	slots  []slot // a power of two, at most two thirds taken
	text   []byte // of all names, one after the other
	ends   []uint32
	hashes []uint32
	isKey  []bool // an operation is on it
}

// slot is a name, or free.
type slot struct {
	word uint64 // its first bytes: all that there is of most
	tag  uint32 // a part of the hash, and the length, with which it begins
	next uint32 // number + 1; 0: free
}

// tagOf is the tag of a name of n bytes with the hash h.
func tagOf(h uint32, n int) uint32 { return h&^0xff | uint32(min(n, 0xff)) }

func (d *dictionary) name(n uint32) []byte {
	from := uint32(0)
	if n > 0 {
		from = d.ends[n-1]
	}
	return d.text[from:d.ends[n]]
}

// number is the number of the name. It looks at 8 bytes of its capacity, so these
// must not be written to at the same time.
func (d *dictionary) number(name []byte) uint32 {
	word := wordOf(name)
	h := hashOf(name, word)
	tag := tagOf(h, len(name))
	if 3*len(d.ends) >= 2*len(d.slots) {
		d.grow()
	}
	mask := uint32(len(d.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &d.slots[i]
		if s.word == word && s.tag == tag && s.next != 0 &&
			(len(name) <= 8 || string(d.name(s.next-1)) == string(name)) {
			return s.next - 1
		}
		if s.next == 0 {
			d.text = append(d.text, name...)
			d.ends = append(d.ends, uint32(len(d.text)))
			d.hashes = append(d.hashes, h)
			d.isKey = append(d.isKey, false)
			*s = slot{word: word, tag: tag, next: uint32(len(d.ends))}
			return uint32(len(d.ends) - 1)
		}
	}
}

// grow doubles the table.
func (d *dictionary) grow() {
	old := d.slots
	d.slots = make([]slot, max(64, 2*len(old)))
	mask := uint32(len(d.slots) - 1)
	for _, s := range old {
		if s.next == 0 {
			continue
		}
		i := d.hashes[s.next-1] & mask
		for d.slots[i].next != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = s
	}
}

// reset forgets all names. A table that one chunk in a thousand needs is not
// kept for the others.
func (d *dictionary) reset() {
	const few = 16
	if len(d.slots) > 1<<12 && few*len(d.ends) < len(d.slots) {
		d.slots = nil
	}
	clear(d.slots)
	d.text, d.ends, d.hashes, d.isKey = d.text[:0], d.ends[:0], d.hashes[:0], d.isKey[:0]
}

// names numbers the names of a history.
type names struct {
	slots []uint64 // as package slots has them, at most half of them taken
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
		t.slots = slots.Doubled(t.slots, 64)
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
