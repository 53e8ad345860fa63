package certificate

import (
	"fmt"

	"github.com/isowatch/isowatch/ingest/record"
)

// written is a value written to a key.
type written struct {
	key   int32
	value record.Value
}

// A claim is that nobody but its readers wrote a value: it was the key's
// unstated initial value, or an unseen transaction's. Whether that is so is
// looked up at the end, in one pass over all writes, so that the walk need not
// know every value that is ever written.
//
// A reader may itself write the value later, so of two different readers one
// is contradicted by whoever writes it.
type claim struct{ first, second reading }

// reading is a read that rests on a claim.
type reading struct {
	event   int32
	txn, op int
	holds   string // what the replay had, if it is not just unknown
}

// presume claims that nobody but n wrote v, which n read.
func (r *replay) presume(i int32, n, j int, key int32, v record.Value, holds string) {
	at := written{key, v}
	now := reading{i, n, j, holds}
	switch c := r.claims[at]; {
	case c == nil:
		r.objects[key].presumed = true
		r.claims[at] = &claim{now, reading{event: none}}
	case c.second.event == none && c.first.txn != n:
		c.second = now
	}
}

// contradicted looks for the first read that rests on a false claim and comes
// before the fault that was found, and returns that instead.
func (r *replay) contradicted(found *Error) *Error {
	if len(r.claims) == 0 {
		return found
	}
	for m := range r.txns {
		t := &r.txns[m]
		if t.Status == record.Aborted && r.opt.Lossy {
			continue
		}
		for j, k := range r.keys[r.first[m] : r.first[m]+len(t.Ops)] {
			op := &t.Ops[j]
			if op.Kind != record.Write || !r.objects[k].presumed {
				continue
			}
			c := r.claims[written{k, op.Value}]
			if c == nil {
				continue
			}
			by := &c.first
			if by.txn == m {
				by = &c.second
			}
			if by.event != none && (found == nil || int(by.event) < found.Event || int(by.event) == found.Event && by.op < found.Op) {
				found = r.falseClaim(by, m)
			}
		}
	}
	return found
}

// falseClaim is the Error of a read of what m wrote.
func (r *replay) falseClaim(by *reading, m int) *Error {
	op, writer := &r.txns[by.txn].Ops[by.op], &r.txns[m]
	found := brief(op.Value.String())
	why := fmt.Sprintf("which holds %s", by.holds)
	switch {
	case by.holds != "":
	case writer.Status == record.Aborted:
		why = fmt.Sprintf("whose writer %s aborted", r.who(m))
	case r.commit[m] < 0:
		why = fmt.Sprintf("whose writer %s is not part of the order", r.who(m))
	case r.commit[m] > by.event:
		why = fmt.Sprintf("whose writer %s has not committed yet", r.who(m))
	default:
		why = fmt.Sprintf("which %s wrote, but not as its last write", r.who(m))
	}
	err := r.fail(by.event, by.txn, by.op, "reads %s from %q, %s", found, op.Key, why)
	err.Expected, err.Found = by.holds, found
	return err
}
