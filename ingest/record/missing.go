package record

import "math"

// SeqFirstMax is the greatest number that a session's first transaction has: numbers begin
// at 0 or at 1.
const SeqFirstMax = 1

// MissingBefore is how many of a session's transactions are missing before the first one that
// is there, which has this seq: the least that it can be, as some number from 0 and some from 1.
func MissingBefore(first int64) int64 { return MissingBetween(SeqFirstMax-1, first) }

// MissingBetween is how many of a session's transactions are missing between two that follow each
// other, by their seqs: as many as can be counted, and none where they are out of order.
func MissingBetween(last, next int64) int64 {
	if next <= last {
		return 0
	}
	return int64(min(uint64(next)-uint64(last)-1, math.MaxInt64))
}

// Missing is how many transactions are missing in sessions at least, by seq: those of holes,
// and those before the first one that is there. Each session's are in session order. Of a
// session that begins without seq it is not known where it began. O(n).
func Missing(txns []Transaction) (n int64) {
	type place struct {
		seq int64
		has bool // seq is that of a transaction
	}
	last := map[string]*place{}
	for i := range txns {
		t := &txns[i]
		p := last[t.Session]
		lost := int64(0)
		switch {
		case p == nil:
			p = &place{}
			last[t.Session] = p
			if t.HasSeq {
				lost = MissingBefore(t.Seq)
			}
		case t.HasSeq && p.has:
			lost = MissingBetween(p.seq, t.Seq)
		}
		n += min(lost, math.MaxInt64-n) // as many as can be counted
		if t.HasSeq {
			p.seq, p.has = t.Seq, true
		}
	}
	return n
}

// RunsBack tells whether the number of a committed transaction in its session contradicts the session's own clock: it
// ended before one with a smaller number began, of which latest is the greatest start. One of the two is wrong, and
// unless it is known how the records came neither is believed.
func RunsBack(end, latest int64) bool { return end < latest }
