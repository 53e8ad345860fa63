package sat

// heap orders open variables by activity, then by number. Those that no
// conflict has touched, most of them in an easy problem, are not in it but found
// by counting up. Container/heap would need the activity behind an interface
// call per comparison.
type heap struct {
	activity []float64
	list     []int32
	at       []int32 // place in list, or one of the following
	fresh    int     // no untouched variable below this is open
}

const (
	notIn = -1
	// untouched variables have no activity; never are those that are never taken.
	untouched = -2
	never     = -3
)

func (h *heap) init(n int) {
	h.activity = make([]float64, n)
	h.at = make([]int32, n)
	for i := range n {
		h.at[i] = untouched
	}
}

func (h *heap) less(a, b int32) bool {
	if h.activity[a] != h.activity[b] {
		return h.activity[a] > h.activity[b]
	}
	return a < b
}

// grow adds a variable.
func (h *heap) grow() {
	h.activity = append(h.activity, 0)
	h.at = append(h.at, untouched)
}

// exclude takes v, untouched, out for ever.
func (h *heap) exclude(v int) { h.at[v] = never }

// push takes in that v has become open.
func (h *heap) push(v int) {
	switch {
	case h.at[v] == untouched:
		h.fresh = min(h.fresh, v)
	case h.at[v] == notIn:
		h.at[v] = int32(len(h.list))
		h.list = append(h.list, int32(v))
		h.up(int(h.at[v]))
	}
}

// peek is the first variable that has no value (value is by literal), or -1.
func (h *heap) peek(value []int8) int {
	for len(h.list) > 0 {
		v := h.list[0]
		if value[2*v] == 0 {
			return int(v)
		}
		h.shift()
	}
	for ; h.fresh < len(h.at); h.fresh++ {
		if h.at[h.fresh] == untouched && value[2*h.fresh] == 0 {
			return h.fresh
		}
	}
	return -1
}

// shift takes the first of the list out; it comes back when it loses its value.
func (h *heap) shift() {
	n := len(h.list) - 1
	h.at[h.list[0]] = notIn
	h.list[0] = h.list[n]
	h.list = h.list[:n]
	if n > 0 {
		h.down(0)
	}
}

func (h *heap) up(i int) {
	v := h.list[i]
	for i > 0 {
		p := (i - 1) / 2
		if !h.less(v, h.list[p]) {
			break
		}
		h.list[i] = h.list[p]
		h.at[h.list[i]] = int32(i)
		i = p
	}
	h.list[i] = v
	h.at[v] = int32(i)
}

func (h *heap) down(i int) {
	v := h.list[i]
	for {
		c := 2*i + 1
		if c >= len(h.list) {
			break
		}
		if c+1 < len(h.list) && h.less(h.list[c+1], h.list[c]) {
			c++
		}
		if !h.less(h.list[c], v) {
			break
		}
		h.list[i] = h.list[c]
		h.at[h.list[i]] = int32(i)
		i = c
	}
	h.list[i] = v
	h.at[v] = int32(i)
}

// steady is Options.Steady by default. Callers number variables in the order of
// time: as long as they are decided so, conflicts are local, and so are the jumps
// back. A problem of 60,000 variables and 6,000 conflicts took a quarter of the
// time by it, and hard ones lose a thousand conflicts at most.
const steady = 1000

// raise makes v matter more.
func (s *Solver) raise(v int) {
	if s.Stats.Conflicts < s.opt.Steady {
		return
	}
	h := &s.heap
	h.activity[v] += s.bump
	if h.activity[v] > 1e100 {
		for i := range h.activity {
			h.activity[i] *= 1e-100
		}
		s.bump *= 1e-100
	}
	switch {
	case h.at[v] >= 0:
		h.up(int(h.at[v]))
	case h.at[v] == untouched:
		h.at[v] = notIn // it has a value now, as it is part of a conflict
	}
}
