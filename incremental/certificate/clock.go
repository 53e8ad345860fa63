package certificate

import (
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// realTime checks that real-time order is kept: walking back, it knows who of
// those that commit later ended first.
func (r *replay) realTime() *Error {
	if r.opt.Clock == record.ClockDatabase {
		return r.instants()
	}
	trusted := r.trusted()
	first, end := none, int64(math.MaxInt64)
	for i := len(r.order) - 1; i >= 0; i-- {
		n := int(r.order[i].Txn)
		t := &r.txns[n]
		if int(r.start[n]) == i && trusted[n] && first >= 0 && endsBefore(end, t.Start, r.opt.MaxSkew) {
			return r.fail(int32(i), n, -1, "starts before %s commits, which ended at %d, before the start at %d", r.who(first),
				end, t.Start)
		}
		if int(r.commit[n]) == i && trusted[n] && t.Status != record.Unknown && t.End < end {
			first, end = n, t.End
		}
	}
	return nil
}

// instants checks that the order is that of the database's clock: walking back, it knows the earliest of what
// comes later.
func (r *replay) instants() *Error {
	first, least := none, int64(math.MaxInt64)
	for i := len(r.order) - 1; i >= 0; i-- {
		n := int(r.order[i].Txn)
		t := &r.txns[n]
		if !t.HasTimes {
			continue
		}
		ended := t.Status != record.Unknown // else it is at some time after its start, if at all
		commits := int(r.commit[n]) == i
		after := t.Start // what happens before this comes before
		if commits && ended {
			after = t.End
		}
		if first >= 0 && least < after {
			return r.fail(int32(i), n, -1, "is at %d by the database's clock, but %s comes behind it, at %d", after,
				r.who(first), least)
		}
		at := t.Start
		if commits {
			at = t.End
		}
		if ended && at < least {
			first, least = n, at
		}
	}
	return nil
}

// endsBefore tells whether end + skew < start, without overflow.
func endsBefore(end, start, skew int64) bool {
	return end <= math.MaxInt64-skew && end+skew < start
}

// trusted tells, by transaction, whether its times count. Where a session's
// clock stepped back they do not: where a transaction starts, or ends, before
// one before it did. Transactions of unknown outcome have no end that counts,
// and aborted ones take no part.
func (r *replay) trusted() []bool {
	type mark struct{ start, end int64 } // the greatest so far
	last := map[string]mark{}
	out := make([]bool, len(r.txns))
	for n := range r.txns {
		t := &r.txns[n]
		if !t.HasTimes || t.Status == record.Aborted {
			continue
		}
		m, ok := last[t.Session]
		if ok && (t.Start < m.start || t.Status == record.Committed && t.End < m.end) {
			continue
		}
		out[n] = true
		if t.Status == record.Committed {
			last[t.Session] = mark{t.Start, t.End}
		}
	}
	return out
}
