package sat

// heap orders open variables by activity, then by number. Container/heap would
// need the activity behind an interface call per comparison.
type heap struct {
	activity []float64
	list     []int32
	at       []int32 // place in list, or -1
}

func (h *heap) init(n int) {
	h.activity = make([]float64, n)
	h.list = make([]int32, n)
	h.at = make([]int32, n)
	for i := range n {
		h.list[i], h.at[i] = int32(i), int32(i)
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
	v := len(h.at)
	h.activity = append(h.activity, 0)
	h.at = append(h.at, -1)
	h.push(v)
}

// remove takes v out.
func (h *heap) remove(v int) {
	i := h.at[v]
	if i < 0 {
		return
	}
	h.at[v] = -1
	n := len(h.list) - 1
	moved := h.list[n]
	h.list = h.list[:n]
	if int(i) < n {
		h.list[i], h.at[moved] = moved, i
		h.up(int(i))
		h.down(int(h.at[moved]))
	}
}

func (h *heap) push(v int) {
	if h.at[v] >= 0 {
		return
	}
	h.at[v] = int32(len(h.list))
	h.list = append(h.list, int32(v))
	h.up(int(h.at[v]))
}

// pop takes out the first variable that has no value (value is by literal), or
// returns -1.
func (h *heap) pop(value []int8) int {
	for len(h.list) > 0 {
		v := h.list[0]
		n := len(h.list) - 1
		h.list[0] = h.list[n]
		h.at[h.list[0]] = 0
		h.list = h.list[:n]
		h.at[v] = -1
		if n > 0 {
			h.down(0)
		}
		if value[2*v] == 0 {
			return int(v)
		}
	}
	return -1
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

// raise makes v matter more.
func (s *Solver) raise(v int) {
	h := &s.heap
	h.activity[v] += s.bump
	if h.activity[v] > 1e100 {
		for i := range h.activity {
			h.activity[i] *= 1e-100
		}
		s.bump *= 1e-100
	}
	if h.at[v] >= 0 {
		h.up(int(h.at[v]))
	}
}
