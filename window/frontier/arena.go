package frontier

import "encoding/binary"

// arena holds bodies in blocks of some sizes, so that a million of them are some
// pages and not a million objects. A block begins with the body's length in two
// bytes, or is a slice by itself if it is large. A page has blocks of one class, and is
// given back when none of them is in use: what is known of keys grows by a byte now and
// then, as the numbers in it do, so that the classes in use change.
type arena struct {
	pages  []page
	unused []uint32                // places of pages that were given back
	open   [len(blockSizes)]uint32 // of each class a page with room, and its next ones: its place plus 1
	taken  int                     // pages that are not unused
	large  [][]byte
	freed  []uint32 // free places of large
	bytes  int64    // of large
}

type page struct {
	bytes      []byte
	next, prev uint32 // of the pages of the class with room: their places plus 1
	free       uint16 // the first free block plus 1; a free block begins with the next one
	fresh      uint16 // blocks that have ever been in use, which come first
	used       uint16 // blocks in use
}

const (
	blockHead  = 2
	blockShift = 10 // a block's number is its page's place and, in so many bits, its own there
	pageBytes  = 1 << 14
	largeClass = uint8(255)
)

// blockSizes grow by 4 up to 96 bytes, then by an eighth or so.
var blockSizes = [...]int{20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 104, 112, 120,
	128, 144, 160, 184,
	208, 232, 264, 296, 336, 376, 424, 480, 544, 616, 696, 784, 880, 992, 1112, 1256, 1408, 1584, 1784, 2008}

var blockMost = blockSizes[len(blockSizes)-1]

// classOf is the class for a size, by the size in words of 4 bytes.
var classOf = func() (of [2008/4 + 1]uint8) {
	class := 0
	for i := range of {
		for blockSizes[class] < 4*i {
			class++
		}
		of[i] = uint8(class)
	}
	return of
}()

func (a *arena) block(class uint8, block uint32) []byte {
	size := blockSizes[class]
	from := int(block&(1<<blockShift-1)) * size
	return a.pages[block>>blockShift].bytes[from : from+size]
}

// at is a body. It is good until the next change of it.
func (a *arena) at(class uint8, block uint32) []byte {
	if class == largeClass {
		return a.large[block]
	}
	b := a.block(class, block)
	return b[blockHead : blockHead+int(binary.LittleEndian.Uint16(b))]
}

// put stores a copy of a body.
func (a *arena) put(body []byte) (class uint8, block uint32) {
	size := len(body) + blockHead
	if size > blockMost {
		a.bytes += int64(len(body))
		own := append(make([]byte, 0, len(body)), body...)
		if n := len(a.freed); n > 0 {
			block = a.freed[n-1]
			a.freed = a.freed[:n-1]
			a.large[block] = own
		} else {
			block = uint32(len(a.large))
			a.large = append(a.large, own)
		}
		return largeClass, block
	}
	class = classOf[(size+3)/4]
	if a.open[class] == 0 {
		a.link(class, a.fresh())
	}
	at := a.open[class] - 1
	p := &a.pages[at]
	block = at<<blockShift | uint32(p.fresh)
	if p.free != 0 {
		block = at<<blockShift | uint32(p.free-1)
		p.free = binary.LittleEndian.Uint16(a.block(class, block))
	} else {
		p.fresh++
	}
	if p.used++; int(p.used) == pageBytes/blockSizes[class] {
		a.unlink(class, at)
	}
	a.write(class, block, body)
	return class, block
}

// fresh is the place of an empty page.
func (a *arena) fresh() uint32 {
	at := uint32(len(a.pages))
	if n := len(a.unused); n > 0 {
		at, a.unused = a.unused[n-1], a.unused[:n-1]
	} else {
		a.pages = append(a.pages, page{})
	}
	a.pages[at] = page{bytes: make([]byte, pageBytes)}
	a.taken++
	return at
}

// link and unlink change which pages of a class have room.
func (a *arena) link(class uint8, at uint32) {
	next := a.open[class]
	a.pages[at].next, a.pages[at].prev = next, 0
	if next != 0 {
		a.pages[next-1].prev = at + 1
	}
	a.open[class] = at + 1
}

func (a *arena) unlink(class uint8, at uint32) {
	p := &a.pages[at]
	if p.next != 0 {
		a.pages[p.next-1].prev = p.prev
	}
	if p.prev != 0 {
		a.pages[p.prev-1].next = p.next
	} else {
		a.open[class] = p.next
	}
}

func (a *arena) write(class uint8, block uint32, body []byte) {
	b := a.block(class, block)
	binary.LittleEndian.PutUint16(b, uint16(len(body)))
	copy(b[blockHead:], body)
}

// replace stores another body in place of one, where it stands if it fits there.
func (a *arena) replace(class uint8, block uint32, body []byte) (uint8, uint32) {
	if size := len(body) + blockHead; size <= blockMost && class != largeClass && classOf[(size+3)/4] == class {
		a.write(class, block, body)
		return class, block
	}
	a.free(class, block)
	return a.put(body)
}

func (a *arena) free(class uint8, block uint32) {
	if class == largeClass {
		a.bytes -= int64(len(a.large[block]))
		a.large[block] = nil
		a.freed = append(a.freed, block)
		return
	}
	at := block >> blockShift
	p := &a.pages[at]
	if int(p.used) == pageBytes/blockSizes[class] {
		a.link(class, at)
	}
	binary.LittleEndian.PutUint16(a.block(class, block), p.free)
	p.free = uint16(block&(1<<blockShift-1)) + 1
	if p.used--; p.used == 0 {
		a.unlink(class, at)
		*p = page{}
		a.unused = append(a.unused, at)
		a.taken--
	}
}
