package frontier

import "encoding/binary"

// arena holds bodies in blocks of some sizes, so that a million of them are some
// pages and not a million objects. A block begins with the body's length in two
// bytes, or is a slice by itself if it is large. What is freed is used again for
// bodies of its class; pages are never given back.
type arena struct {
	classes [len(blockSizes)]blocks
	large   [][]byte
	freed   []uint32 // free places of large
	bytes   int64    // of large
}

type blocks struct {
	pages [][]byte
	used  uint32 // blocks in use or free
	free  []uint32
}

const (
	blockHead  = 2
	pageBytes  = 1 << 14
	largeClass = uint8(255)
)

// blockSizes grow by 4 up to 96 bytes, then by an eighth or so.
var blockSizes = [...]int{20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 104, 112, 120, 128, 144, 160, 184,
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

func (a *arena) memory() int64 {
	n := a.bytes + int64(cap(a.large))*24 + int64(cap(a.freed))*4
	for i := range a.classes {
		n += int64(len(a.classes[i].pages))*(pageBytes+24) + int64(cap(a.classes[i].free))*4
	}
	return n
}

func (a *arena) block(class uint8, block uint32) []byte {
	size := blockSizes[class]
	per := uint32(pageBytes / size)
	page := a.classes[class].pages[block/per]
	from := int(block%per) * size
	return page[from : from+size]
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
	c := &a.classes[class]
	if n := len(c.free); n > 0 {
		block = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		block = c.used
		if per := uint32(pageBytes / blockSizes[class]); block/per == uint32(len(c.pages)) {
			c.pages = append(c.pages, make([]byte, pageBytes))
		}
		c.used++
	}
	a.write(class, block, body)
	return class, block
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
	a.classes[class].free = append(a.classes[class].free, block)
}
