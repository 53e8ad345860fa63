// Package heap is a binary heap, the least first, in a slice. container/heap would put every element into an
// interface.
package heap

import "cmp"

// Less is the order of numbers and texts.
func Less[T cmp.Ordered](a, b *T) bool { return *a < *b }

// Push adds x. O(log n).
func Push[T any](h *[]T, x T, less func(a, b *T) bool) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0 && less(&s[i], &s[(i-1)/2]); i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
	*h = s
}

// Pop takes out the least of a heap that is not empty. O(log n).
func Pop[T any](h *[]T, less func(a, b *T) bool) T {
	s := *h
	last := len(s) - 1
	top := s[0]
	s[0] = s[last]
	clear(s[last:]) // lets go of what it points to
	*h = s[:last]
	Sink(*h, less)
	return top
}

// Sink moves the first, which may be greater than others now, to its place. O(log n).
func Sink[T any](s []T, less func(a, b *T) bool) {
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < len(s) && less(&s[down+1], &s[down]) {
			down++
		}
		if down >= len(s) || !less(&s[down], &s[i]) {
			return
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
}
