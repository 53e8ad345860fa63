package generate

// instant is when something happens in a session.
type instant struct {
	at      int64
	session int32
}

func (a instant) less(b instant) bool {
	return a.at < b.at || a.at == b.at && a.session < b.session
}

// heap is a binary min-heap. container/heap would box every element.
type heap[T interface{ less(T) bool }] []T

func (h *heap[T]) push(x T) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 && x.less(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
	*h = s
}

// pop removes the least element of a heap that is not empty.
func (h *heap[T]) pop() T {
	s := *h
	top, x := s[0], s[len(s)-1]
	var zero T
	s[len(s)-1] = zero // let go of what it points to
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && s[c+1].less(s[c]) {
			c++
		}
		if !s[c].less(x) {
			break
		}
		s[i] = s[c]
		i = c
	}
	s[i] = x
	return top
}
