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

// A claim is that nobody made a value, which a read rests on: it was the key's unstated initial value, or an unseen
// transaction's. Whether that is so is looked up at the end, in one pass over all writes, so that the walk need not
// know every value that is ever written.
type claim struct {
	event   int32
	txn, op int
	holds   string // what the replay had, if it is not just unknown
}

// presume claims that nobody made v, which n read.
func (r *replay) presume(i int32, n, j int, key int32, v record.Value, holds string) {
	if at := (written{key, v}); r.claims[at] == nil {
		r.objects[key].presumed = true
		r.claims[at] = &claim{i, n, j, holds}
	}
}

// findPutBack finds the values that are written, but only by transactions that had read them there before: somebody
// read them of none of these. Where some attempts may be lost, those that are recorded as aborted show nothing.
func (r *replay) findPutBack() {
	r.putBack = map[written]bool{}
	read, own := map[written]bool{}, map[int32]bool{} // by the transaction at hand, of others; and keys that it wrote
	each := func(write func(at written, back bool)) {
		for n := range r.txns {
			if r.txns[n].Status == record.Aborted && r.opt.Lossy {
				continue
			}
			clear(read)
			clear(own)
			for j, op := range r.txns[n].Ops {
				switch at := (written{r.keys[r.first[n]+j], op.Value}); {
				case op.Kind == record.Read && !own[at.key]:
					read[at] = true
				case op.Kind == record.Write:
					write(at, read[at])
					own[at.key] = true
				case op.Kind == record.Append:
					own[at.key] = true
				}
			}
		}
	}
	each(func(at written, back bool) {
		if back {
			r.putBack[at] = true
		}
	})
	if len(r.putBack) > 0 {
		each(func(at written, back bool) {
			if !back {
				delete(r.putBack, at)
			}
		})
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
			at := written{k, op.Value}
			by := r.claims[at]
			if by == nil || by.txn == m || r.putBack[at] {
				continue
			}
			if found == nil || int(by.event) < found.Event || int(by.event) == found.Event && by.op < found.Op {
				found = r.falseClaim(by, m)
			}
		}
	}
	return found
}

// falseClaim is the Error of a read of what m wrote.
func (r *replay) falseClaim(by *claim, m int) *Error {
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
