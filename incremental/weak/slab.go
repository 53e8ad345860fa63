package weak

// span is a run of entries in a slab.
type span struct{ at, n uint32 }

const chunkBits = 16

// slab keeps many short runs in chunks, none of which is ever moved.
type slab[T any] struct{ chunks [][]T }

// room makes room for a run of n.
func (s *slab[T]) room(n int) span {
	if n == 0 {
		return span{}
	}
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last])-len(s.chunks[last]) < n || len(s.chunks[last]) >= 1<<chunkBits {
		size := 1 << chunkBits
		if len(s.chunks) == 0 {
			size = 64 // most histories of tests are tiny
		}
		s.chunks = append(s.chunks, make([]T, 0, max(size, n)))
		last++
	}
	c := s.chunks[last]
	at := uint32(last)<<chunkBits | uint32(len(c))
	s.chunks[last] = c[:len(c)+n]
	return span{at, uint32(n)}
}

// at is the run itself.
func (s *slab[T]) at(r span) []T {
	if r.n == 0 {
		return nil
	}
	off := r.at & (1<<chunkBits - 1)
	return s.chunks[r.at>>chunkBits][off : off+r.n]
}
