package stream

// Segment is how many records are judged together at present: those of the segment
// that have been released, and those of the one before that are judged again with
// them.
func (h *History) Segment() int { return len(h.segs.fed) }
