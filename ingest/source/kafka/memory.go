package kafka

import (
	"sync"

	"github.com/isowatch/isowatch/ingest/source"
)

// memory is what the messages of a batch lie in: the messages themselves, and chunks
// for their bytes, so that thousands of small records are not thousands of
// allocations. Who has done with a batch gives it back, and the next one is read into
// it: at a high rate the garbage collector would otherwise run for little else.
type memory struct {
	messages []source.Message
	chunks   [][]byte
	used     int    // of chunks
	left     []byte // of the chunk before
}

var memories = sync.Pool{New: func() any { return &memory{} }}

// Chunks grow, as a response may hold a single record or be compressed.
const chunkMin, chunkMax = 1 << 10, 64 << 10

// chunksMax is how many chunks are kept for the next batch.
const chunksMax = 64

// begin makes room for the batch that is being filled.
func (d *decoder) begin() {
	d.memory = memories.Get().(*memory)
	if d.cur.Messages == nil {
		d.cur.Messages = d.memory.messages[:0]
	}
}

// take is memory for a record of n bytes.
func (d *decoder) take(n int) []byte {
	if n > chunkMax/4 {
		return make([]byte, n)
	}
	if d.memory == nil {
		d.begin()
	}
	return d.memory.take(n, int(min(d.out.wire, chunkMax)))
}

// take is n bytes, of a new chunk of first bytes if there is none yet.
func (m *memory) take(n, first int) []byte {
	for n > len(m.left) {
		if m.used == len(m.chunks) {
			size := first
			if m.used > 0 {
				size = min(2*len(m.chunks[m.used-1]), chunkMax)
			}
			m.chunks = append(m.chunks, make([]byte, max(size, n, chunkMin)))
		}
		m.left = m.chunks[m.used]
		m.used++
	}
	out := m.left[:n:n]
	m.left = m.left[n:]
	return out
}

// free gives the memory back.
func (m *memory) free() {
	clear(m.messages[:cap(m.messages)])
	m.messages, m.used, m.left = m.messages[:0], 0, nil
	if len(m.chunks) > chunksMax {
		clear(m.chunks[chunksMax:])
		m.chunks = m.chunks[:chunksMax]
	}
	memories.Put(m)
}
