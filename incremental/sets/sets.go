// Package sets has sets of bits, of which there are many that agree in most places: who precedes each
// transaction of a history. A flat one for each of n would be n² bits. So a set is a tree of blocks, the
// leaves of which hold the bits, and blocks are shared: sets that agree on a stretch, as they come to do on
// what was long ago, have one block for it.
//
//	height 1:   [ · · · … ]              child i: bits 512·i to 512·i+511
//	              │ │
//	height 0:   [1101…] [0010…]
//
// Space and time are what a set differs in from those it is made of, and the way to it.
package sets

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/isowatch/isowatch/incremental/paged"
)

// ID names a set. It is counted how many have it: Share and Release.
type ID uint32

// None is the empty set.
const None ID = math.MaxUint32

// Sets holds sets. The zero value has none but None.
//
// Invariant: no block is empty, or higher than its last bit wants, so that
// equal sets have the same shape. A block that is shared changes only in that an
// equal child takes the place of another.
type Sets struct {
	blocks paged.Vec[uint32, block]
	refs   paged.Vec[uint32, uint32] // by number of a block: sets, and blocks that it is part of
	free   []uint32
}

const (
	blockBits = 4 // a block is a cache line
	blockSize = 1 << blockBits
)

// block has so many words of bits, or so many blocks of the height below, where None stands
// for an empty one.
type block [blockSize]uint32

// wordBits: so many bits of the number of a bit say which it is of its word.
const wordBits = 5

// wide is a leaf by words twice as long, in the order of the machine: for what treats all bits alike.
func (b *block) wide() *[blockSize / 2]uint64 { return (*[blockSize / 2]uint64)(unsafe.Pointer(b)) }

// heightBits of an ID are the height of its block, the others its number.
const heightBits = 3

// height is 0 of a leaf.
func height(id ID) uint32 { return uint32(id) & (1<<heightBits - 1) }

// number is that of the block.
func number(id ID) uint32 { return uint32(id >> heightBits) }

// child is the i-th of a block that is no leaf.
func (b *block) child(i int) ID { return ID(b[i]) }

func (k *Sets) at(id ID) *block { return k.blocks.At(number(id)) }

// Held is the number of blocks in use.
func (k *Sets) Held() int { return k.blocks.Len() - len(k.free) }

// make is a new empty block.
func (k *Sets) make(h uint32) ID {
	var id ID
	if f := len(k.free); f > 0 {
		id = ID(k.free[f-1]<<heightBits | h)
		k.free = k.free[:f-1]
		*k.at(id) = block{}
	} else {
		id = ID(k.blocks.Push(block{})<<heightBits | h)
		k.refs.Push(0)
	}
	*k.refs.At(number(id)) = 1
	if h > 0 {
		b := k.at(id)
		for i := range b {
			b[i] = uint32(None)
		}
	}
	return id
}

// Share is the set for one more that has it.
func (k *Sets) Share(id ID) ID {
	if id != None {
		*k.refs.At(number(id))++
	}
	return id
}

// Release gives a set up that one less has.
func (k *Sets) Release(id ID) {
	if id == None {
		return
	}
	n := k.refs.At(number(id))
	if *n--; *n > 0 {
		return
	}
	if height(id) > 0 {
		for _, child := range k.at(id) {
			k.Release(ID(child))
		}
	}
	k.free = append(k.free, number(id))
}

// Has tells whether a bit is in a set.
func (k *Sets) Has(id ID, bit uint32) bool {
	if id == None {
		return false
	}
	h := height(id)
	word := bit >> wordBits
	if word>>(blockBits*(h+1)) != 0 {
		return false
	}
	for ; h > 0; h-- {
		if id = k.at(id).child(int(word >> (blockBits * h) % blockSize)); id == None {
			return false
		}
	}
	return k.at(id)[word%blockSize]>>(bit%(1<<wordBits))&1 != 0
}

// above is a block of which id is the first, and the only one.
func (k *Sets) above(id ID) ID {
	top := k.make(height(id) + 1)
	k.at(top)[0] = uint32(id)
	return top
}

// Put is the set, which is given up, with a bit more.
func (k *Sets) Put(id ID, bit uint32) ID {
	if k.Has(id, bit) {
		return id
	}
	if id == None {
		id = k.make(0)
	}
	word := bit >> wordBits
	for word>>(blockBits*(height(id)+1)) != 0 {
		id = k.above(id)
	}
	return k.put(id, height(id), word, 1<<(bit%(1<<wordBits)))
}

func (k *Sets) put(id ID, h, word, bit uint32) ID {
	switch {
	case id == None:
		id = k.make(h)
	case *k.refs.At(number(id)) > 1:
		old := id
		id = k.make(h)
		b := k.at(id)
		*b = *k.at(old)
		for i := 0; h > 0 && i < blockSize; i++ {
			k.Share(b.child(i))
		}
		k.Release(old)
	}
	if h == 0 {
		k.at(id)[word%blockSize] |= bit
		return id
	}
	i := word >> (blockBits * h) % blockSize
	child := k.put(k.at(id).child(int(i)), h-1, word, bit)
	k.at(id)[i] = uint32(child)
	return id
}

// Join is the set a, which is given up, with the bits of b.
func (k *Sets) Join(a, b ID) ID {
	switch {
	case b == None || a == b:
		return a
	case a == None:
		return k.Share(b)
	}
	high, low := a, b
	if height(a) < height(b) {
		high, low = b, a
	}
	joined, _ := k.joined(high, low)
	k.Release(a)
	return joined
}

// joined has the bits of a and of b, which is not higher; it is one of
// them where that has them all, and the lesser if they are equal. What both share
// is not looked at, and what turns out equal is shared from then on: sets of
// which neither was made from the other have their own blocks of the same bits,
// and would be compared again and again.
func (k *Sets) joined(a, b ID) (id ID, equal bool) {
	h, lower := height(a), height(b)
	if h == 0 {
		return k.joinedLeaf(a, b)
	}
	y := block{}
	if lower == h {
		y = *k.at(b)
	} else {
		for i := range y {
			y[i] = uint32(None)
		}
		y[0] = uint32(b)
	}
	out, isA, isB := *k.at(a), true, lower == h
	var made uint32 // bits: children of out that it holds
	for i, x := range out {
		switch {
		case x == y[i]:
			continue
		case y.child(i) == None:
			isB = false
			continue
		case ID(x) == None:
			out[i] = uint32(k.lifted(k.Share(y.child(i)), h-1))
		default:
			var child ID
			child, equal = k.joined(ID(x), y.child(i))
			out[i] = uint32(child)
			if equal {
				k.agree(a, i, child)
				if lower == h {
					k.agree(b, i, child)
				}
				k.Release(child)
				continue
			}
		}
		made |= 1 << i
		isA, isB = isA && out[i] == x, isB && out[i] == y[i]
	}
	if !isA && !isB {
		for i, x := range out {
			if made>>i&1 == 0 {
				k.Share(ID(x))
			}
		}
		id = k.make(h)
		*k.at(id) = out
		return id, false
	}
	for ; made != 0; made &= made - 1 {
		k.Release(out.child(bits.TrailingZeros32(made)))
	}
	if isA && isB {
		return k.Share(min(a, b)), true
	}
	if isA {
		return k.Share(a), false
	}
	return k.Share(b), false
}

// agree makes the i-th child, which has the same bits, of a block.
func (k *Sets) agree(id ID, i int, child ID) {
	b := k.at(id)
	if old := b.child(i); old != child {
		b[i] = uint32(k.Share(child))
		k.Release(old)
	}
}

// lifted is the set, given up, as one of that height.
func (k *Sets) lifted(id ID, h uint32) ID {
	for height(id) < h {
		id = k.above(id)
	}
	return id
}

func (k *Sets) joinedLeaf(a, b ID) (id ID, equal bool) {
	x, y := k.at(a).wide(), k.at(b).wide()
	var onlyA, onlyB uint64
	for i, w := range x {
		onlyA |= w &^ y[i]
		onlyB |= y[i] &^ w
	}
	switch {
	case onlyA|onlyB == 0:
		return k.Share(min(a, b)), true
	case onlyB == 0:
		return k.Share(a), false
	case onlyA == 0:
		return k.Share(b), false
	}
	id = k.make(0)
	x, y = k.at(a).wide(), k.at(b).wide()
	for i, z := 0, k.at(id).wide(); i < len(z); i++ {
		z[i] = x[i] | y[i]
	}
	return id, false
}

// Same tells whether two sets have the same bits.
func (k *Sets) Same(a, b ID) bool {
	switch {
	case a == b:
		return true
	case a == None || b == None || height(a) != height(b):
		return false
	case height(a) == 0:
		return *k.at(a) == *k.at(b)
	}
	for i := range blockSize {
		if !k.Same(k.at(a).child(i), k.at(b).child(i)) {
			return false
		}
	}
	return true
}

// Last is the greatest of the bits below a bound that are in the set a and in mask, and not in
// but. What a and but share is not looked at.
func (k *Sets) Last(a, mask, but ID, below uint32) (bit uint32, ok bool) {
	if a == None || mask == None || below == 0 {
		return 0, false
	}
	h := max(height(a), height(mask))
	if but != None {
		h = max(h, height(but))
	}
	return k.last(a, mask, but, h, below-1)
}

// last looks in what is of a height; most is counted from its beginning.
func (k *Sets) last(a, mask, but ID, h, most uint32) (bit uint32, ok bool) {
	if a == None || mask == None || a == but {
		return 0, false
	}
	shift := wordBits + blockBits*h
	top := min(most>>shift, blockSize-1)
	if h == 0 {
		x, y := k.at(a), k.at(mask)
		for i := int(top); i >= 0; i-- {
			w := x[i] & y[i]
			if but != None {
				w &^= k.at(but)[i]
			}
			if uint32(i) == most>>wordBits {
				w &= 2<<(most%(1<<wordBits)) - 1
			}
			if w != 0 {
				return uint32(i)<<wordBits + uint32(bits.Len32(w)) - 1, true
			}
		}
		return 0, false
	}
	for i := int(top); i >= 0; i-- {
		left := uint32(1)<<shift - 1
		if uint32(i) == most>>shift {
			left &= most
		}
		if bit, ok = k.last(k.child(a, h, i), k.child(mask, h, i), k.child(but, h, i), h-1, left); ok {
			return uint32(i)<<shift + bit, true
		}
	}
	return 0, false
}

// child is the i-th child of a set, seen as one of a height.
func (k *Sets) child(id ID, h uint32, i int) ID {
	switch {
	case id == None:
		return None
	case height(id) >= h:
		return k.at(id).child(i)
	case i == 0:
		return id
	}
	return None
}

// Clear gives all sets up.
func (k *Sets) Clear() {
	k.blocks.Truncate(0)
	k.refs.Truncate(0)
	k.free = k.free[:0]
}

// Bytes is the memory held, for measurement.
func (k *Sets) Bytes() int {
	return k.blocks.Len()*int(unsafe.Sizeof(block{})+4) + 4*len(k.free)
}
