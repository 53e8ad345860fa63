package stream

// LossWhys are all the causes of losses.
func LossWhys() []LossWhy {
	out := make([]LossWhy, lossWhys)
	for i := range out {
		out[i] = LossWhy(i)
	}
	return out
}

// Segment is how many records are judged together at present: those of the segment
// that have been released, and those of the one before that are judged again with
// them.
func (h *History) Segment() int { return len(h.segs.fed) }
