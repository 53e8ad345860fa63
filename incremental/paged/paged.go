// Package paged has an append-only array in pages. The tables of a long stream
// are large: growing one flat slice copies all of it and holds two copies while
// it does, and the garbage collector then walks both.
package paged

const (
	shift = 12
	size  = 1 << shift
	mask  = size - 1
)

// Vec is an append-only array of T that numbers of type I count. The zero value is empty. Indexing costs one
// more load than a slice. A pointer from At stays valid once the first page is
// full; before that, until the next Push.
type Vec[I ~uint32, T any] struct {
	pages [][]T
	n     int
}

// Len is the number of elements.
func (v *Vec[I, T]) Len() int { return v.n }

// At is the i-th element, from 0.
func (v *Vec[I, T]) At(i I) *T { return &v.pages[i>>shift][i&mask] }

// Push appends x and returns its index.
func (v *Vec[I, T]) Push(x T) I {
	i := I(v.n)
	switch {
	case i&mask != 0:
	case len(v.pages) < cap(v.pages) && cap(v.pages[:len(v.pages)+1][len(v.pages)]) == size: // from Truncate
		k := len(v.pages)
		v.pages = v.pages[:k+1]
		v.pages[k] = v.pages[k][:0]
	case i == 0:
		v.pages = append(v.pages, nil) // grows as it fills: most histories of tests are tiny
	default:
		v.pages = append(v.pages, make([]T, 0, size))
	}
	p := &v.pages[i>>shift]
	*p = append(*p, x)
	v.n++
	return i
}

// Truncate keeps the first n elements. Their memory is used again. T has no pointers, or what they lead to stays in
// memory.
func (v *Vec[I, T]) Truncate(n int) {
	full := (n + size - 1) >> shift
	v.pages = v.pages[:full]
	if n&mask != 0 {
		v.pages[full-1] = v.pages[full-1][:n&mask]
	}
	v.n = n
}
