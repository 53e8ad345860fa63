// Package clock has vectors of counts, of which there are many that agree in most places:
// vector clocks, by chain, and sets of bits. A flat one for each transaction would be n·k
// words for k chains, and where sessions come and go, k grows with n. So a vector is a tree
// of blocks, the leaves of which hold the words, and blocks are shared: vectors that agree on
// a stretch, as clocks come to do on sessions that ended, have one block for it.
//
//	height 1:   [ · · · … ]        child i: words 16·i to 16·i+15
//	              │ │
//	height 0:   [3 0 1 …] [0 0 2 …]
//
// Space is what a vector differs in from those it is made of: the chains that only
// some of the transactions of late have seen the end of, and the way to them.
package clock

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/isowatch/isowatch/incremental/paged"
)

// ID names a vector. It is counted how many have it: Share and Release.
type ID uint32

// None is the vector of zeros.
const None ID = math.MaxUint32

// Clocks holds vectors. The zero value has no vector but None, and joins by the greater count.
//
// Invariant: no block is all zeros, or higher than its last word wants, so that
// equal vectors have the same shape. A block that is shared changes only in that an
// equal child takes the place of another.
type Clocks struct {
	// Bits: a word is a set of bits, and a join has those of both.
	Bits   bool
	blocks paged.Vec[uint32, block]
	refs   paged.Vec[uint32, uint32] // by number of a block: clocks, and blocks that it is part of
	free   []uint32
}

const (
	blockBits = 4 // a block is a cache line
	blockSize = 1 << blockBits
)

// block has the counts of so many chains, or so many blocks of the height below,
// where None stands for one of zeros.
type block [blockSize]uint32

// heightBits of an ID are the height of its block, the others its number.
const heightBits = 3

// height is 0 of a leaf.
func height(id ID) uint32 { return uint32(id) & (1<<heightBits - 1) }

// number is that of the block.
func number(id ID) uint32 { return uint32(id >> heightBits) }

// child is the i-th of a block that is no leaf.
func (b *block) child(i int) ID { return ID(b[i]) }

func (k *Clocks) at(id ID) *block { return k.blocks.At(number(id)) }

// Held is the number of blocks in use.
func (k *Clocks) Held() int { return k.blocks.Len() - len(k.free) }

// make is a new block of zeros.
func (k *Clocks) make(h uint32) ID {
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

// Share is the clock for one more that has it.
func (k *Clocks) Share(id ID) ID {
	if id != None {
		*k.refs.At(number(id))++
	}
	return id
}

// Release gives a clock up that one less has.
func (k *Clocks) Release(id ID) {
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

// Get is the count of a chain.
func (k *Clocks) Get(id ID, chain uint32) uint32 {
	if b := k.leaf(id, chain); b != nil {
		return b[chain%blockSize]
	}
	return 0
}

// leaf is the block with the count of a chain, or nil if that is zero.
func (k *Clocks) leaf(id ID, chain uint32) *block {
	if id == None {
		return nil
	}
	h := height(id)
	if chain>>(blockBits*(h+1)) != 0 {
		return nil
	}
	for ; h > 0; h-- {
		if id = k.at(id).child(int(chain >> (blockBits * h) % blockSize)); id == None {
			return nil
		}
	}
	return k.at(id)
}

// View looks up many counts of a clock, of chains that often are neighbours, while
// no block is made.
type View struct {
	k    *Clocks
	id   ID
	at   uint32 // chains from at·blockSize on are in leaf
	leaf *block
}

// View is a view of a clock.
func (k *Clocks) View(id ID) View { return View{k: k, id: id, at: math.MaxUint32} }

// Get is the word at a place.
func (v *View) Get(chain uint32) uint32 {
	if at := chain / blockSize; at != v.at {
		v.at, v.leaf = at, v.k.leaf(v.id, chain)
	}
	if v.leaf == nil {
		return 0
	}
	return v.leaf[chain%blockSize]
}

// above is a block of which id is the first, and the only one.
func (k *Clocks) above(id ID) ID {
	top := k.make(height(id) + 1)
	k.at(top)[0] = uint32(id)
	return top
}

// Raise is the clock, which is given up, with at least so much of a chain.
func (k *Clocks) Raise(id ID, chain, count uint32) ID {
	old := k.Get(id, chain)
	if count = k.word(old, count); count == old {
		return id
	}
	if id == None {
		id = k.make(0)
	}
	for chain>>(blockBits*(height(id)+1)) != 0 {
		id = k.above(id)
	}
	return k.put(id, height(id), chain, count)
}

// word is the join of two words.
func (k *Clocks) word(x, y uint32) uint32 {
	if k.Bits {
		return x | y
	}
	return max(x, y)
}

func (k *Clocks) put(id ID, h, chain, count uint32) ID {
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
		k.at(id)[chain%blockSize] = count
		return id
	}
	i := chain >> (blockBits * h) % blockSize
	child := k.put(k.at(id).child(int(i)), h-1, chain, count)
	k.at(id)[i] = uint32(child)
	return id
}

// Join is the clock a, which is given up, with the greater counts of b.
func (k *Clocks) Join(a, b ID) ID {
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

// joined has the greater counts of a and of b, which is not higher; it is one of
// them where that has them all, and the lesser if they are equal. What both share
// is not looked at, and what turns out equal is shared from then on: clocks of
// which neither was made from the other have their own blocks of the same counts,
// and would be compared again and again.
func (k *Clocks) joined(a, b ID) (id ID, equal bool) {
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

// agree makes the i-th child, which has the same counts, of a block.
func (k *Clocks) agree(id ID, i int, child ID) {
	b := k.at(id)
	if old := b.child(i); old != child {
		b[i] = uint32(k.Share(child))
		k.Release(old)
	}
}

// lifted is the clock, given up, as one of that height.
func (k *Clocks) lifted(id ID, h uint32) ID {
	for height(id) < h {
		id = k.above(id)
	}
	return id
}

func (k *Clocks) joinedLeaf(a, b ID) (id ID, equal bool) {
	x, y := k.at(a), k.at(b)
	var out block
	var overA, overB uint32
	if k.Bits {
		for i := range out {
			out[i] = x[i] | y[i]
			overA |= y[i] &^ x[i]
			overB |= x[i] &^ y[i]
		}
	} else {
		for i := range out {
			m := max(x[i], y[i])
			out[i] = m
			overA |= m ^ x[i]
			overB |= m ^ y[i]
		}
	}
	switch {
	case overA|overB == 0:
		return k.Share(min(a, b)), true
	case overA == 0:
		return k.Share(a), false
	case overB == 0:
		return k.Share(b), false
	}
	id = k.make(0)
	*k.at(id) = out
	return id, false
}

// Same tells whether two clocks have the same counts.
func (k *Clocks) Same(a, b ID) bool {
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
// but. What a and but share is not looked at. With Bits.
func (k *Clocks) Last(a, mask, but ID, below uint32) (bit uint32, ok bool) {
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
func (k *Clocks) last(a, mask, but ID, h, most uint32) (bit uint32, ok bool) {
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

// wordBits: so many bits of the number of a bit say which it is of its word.
const wordBits = 5

// child is the i-th child of a vector, seen as one of a height.
func (k *Clocks) child(id ID, h uint32, i int) ID {
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

// Put is the set, which is given up, with a bit more.
func (k *Clocks) Put(id ID, bit uint32) ID {
	return k.Raise(id, bit>>wordBits, 1<<(bit%(1<<wordBits)))
}

// Has tells whether a bit is in a set.
func (k *Clocks) Has(id ID, bit uint32) bool {
	return k.Get(id, bit>>wordBits)>>(bit%(1<<wordBits))&1 != 0
}

// Clear gives all vectors up.
func (k *Clocks) Clear() {
	k.blocks, k.refs, k.free = k.blocks.Spare(), k.refs.Spare(), k.free[:0]
}

// Bytes is the memory held, for measurement.
func (k *Clocks) Bytes() int {
	return k.blocks.Len()*int(unsafe.Sizeof(block{})+4) + 4*len(k.free)
}
