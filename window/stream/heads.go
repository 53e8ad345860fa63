package stream

import (
	"cmp"
	"math"

	"github.com/isowatch/isowatch/ingest/decode"
)

// partitionHead is how a partition begins. What stands in it before the place from which it is read (the
// monitor started there, or what was older is not kept any more) may be another attempt, which
// committed what was seen to be aborted. All of it ended before
// anything that can be sent later than it, plus what may be late, so what comes first says until when.
//
// No record is lost that was to be seen, so stretches are not partial for it: with partial coverage nothing
// is concluded from the absence of others, and of that it is a case.
type partitionHead uint8

const (
	begun  partitionHead = 1 << iota // its first batch was taken
	open                             // something stands before that, and it is not known until when
	caught                           // it was read to its end since the last one was opened
)

// Headed says, before the first entry is taken, that a part of the input is missing that came before the history
// began: each partition has a head.
func (h *History) Headed() { h.headed = true }

// head finds or makes what is known of partition n.
func (h *History) head(n int) *partitionHead {
	for n >= len(h.heads) {
		h.heads = append(h.heads, 0)
	}
	return &h.heads[n]
}

// takeHead notes what is missing before the first batch of a partition. O(partitions) while one is open,
// else O(1).
func (h *History) takeHead(e *Entry, b *decode.Batch) {
	p := h.head(b.Partition)
	if (b.Midst || h.headed && *p&begun == 0) && *p&open == 0 {
		*p |= open
		h.open++
		for i := range h.heads { // what was read until now may have been sent before
			h.heads[i] &^= caught
		}
	}
	*p |= begun
	if h.open == 0 {
		return
	}
	if b.Len() > 0 {
		h.endHeads(b.Partition, e)
	}
	if b.CaughtUp {
		*p |= caught
	}
	if to := h.order.Reach(); h.open > 0 && to != noTime {
		h.segs.missing(noTime, to)
	}
}

// endHeads ends the heads before which, as an entry shows, nothing more can be missing: its partition's
// and, where that had been read to its end before, all others'.
func (h *History) endHeads(partition int, e *Entry) {
	first := e.Batch.Head(0)
	end := first.End
	if !first.HasTimes {
		end = cmp.Or(e.Batch.Arrivals[0], e.Time)
	}
	all := h.heads[partition]&caught != 0
	if !all && h.heads[partition]&open == 0 {
		return
	}
	h.segs.missing(noTime, after(end, int64(h.cfg.Order.Lateness), h.cfg.MaxSkew))
	for i := range h.heads {
		if p := &h.heads[i]; *p&open != 0 && (all || i == partition) {
			*p &^= open
			h.open--
		}
	}
}

// after is a time that much later.
func after(at int64, much ...int64) int64 {
	for _, d := range much {
		if at += d; at < at-d {
			return math.MaxInt64
		}
	}
	return at
}
