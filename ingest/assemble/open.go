package assemble

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// open is a transaction that has begun.
type open struct {
	begin  Event
	offset int64 // of its begin
	opened int64 // when, by the assembler's clock

	// The operations in the order in which they came.
	ops []numbered
	// place says where in ops each number is; nil as long as they have come in order.
	place map[uint32]int
	most  uint32 // the greatest number that has come, plus one
	names int64  // bytes of its names
	bytes int64  // of all

	older, younger *open
}

// numbered is an operation and its number.
type numbered struct {
	n    uint32
	void bool // it came with two contents: neither is believed
	op   record.Op
}

// Overheads in memory, about, of a transaction and of an operation.
const (
	openBytes = 512
	opBytes   = 96
)

func textBytes(op *record.Op) int64 {
	return int64(len(op.Key) + len(op.Value.Text) + len(op.Where))
}

// find returns the operation of a number, if it has come.
func (o *open) find(n uint32) *numbered {
	if n >= o.most {
		return nil
	}
	if o.place == nil {
		// In order: a number is never less than its place.
		i, ok := slices.BinarySearchFunc(o.ops, n, func(x numbered, n uint32) int { return cmp.Compare(x.n, n) })
		if !ok {
			return nil
		}
		return &o.ops[i]
	}
	if i, ok := o.place[n]; ok {
		return &o.ops[i]
	}
	return nil
}

// add puts an operation whose number has not come.
func (o *open) add(e *Event) (bytes int64) {
	if e.N < o.most && o.place == nil {
		o.place = make(map[uint32]int, len(o.ops)+1)
		for i := range o.ops {
			o.place[o.ops[i].n] = i
		}
	}
	if o.place != nil {
		o.place[e.N] = len(o.ops)
	}
	o.ops = append(o.ops, numbered{n: e.N, op: e.Op})
	o.most = max(o.most, e.N+1)
	bytes = opBytes + textBytes(&e.Op)
	o.bytes += bytes
	return bytes
}

// certain are the operations that can be told, and how many are known to be missing. Of a transaction
// that has ended with count operations, all of which have come, they are all of them.
// It changes the order of o.ops.
func (o *open) certain(count uint32, ended bool) (ops []record.Op, missing int) {
	if o.place != nil {
		slices.SortFunc(o.ops, func(x, y numbered) int { return cmp.Compare(x.n, y.n) })
		o.place = nil
	}
	ops = make([]record.Op, 0, len(o.ops))
	there := 0 // those that have come and are believed
	for i := range o.ops {
		x := &o.ops[i]
		if x.void {
			continue
		}
		whole := x.n == uint32(there) // so far
		there++
		if whole || x.op.Kind == record.Write || x.op.Kind == record.PredicateWrite {
			ops = append(ops, x.op)
		}
	}
	if missing = int(count) - there; missing > 0 || !ended {
		ops = withoutOwn(ops)
	}
	if len(ops) == 0 {
		ops = nil
	}
	return ops, missing
}

func isRead(op *record.Op) bool {
	return op.Kind == record.Read || op.Kind == record.PredicateRead
}

// withoutOwn leaves out what only the transaction itself can have seen, if operations are
// missing: writes that it overwrote, and reads of what it had written before. An
// overwritten value may be the last one after all, if it was written again.
func withoutOwn(ops []record.Op) []record.Op {
	last := map[string]int{}
	for i := range ops {
		if ops[i].Kind == record.Write {
			last[ops[i].Key] = i
		}
	}
	out, wrote := ops[:0], map[string]bool{}
	for i := range ops {
		op := &ops[i]
		own := op.Kind == record.Read && wrote[op.Key] || op.Kind == record.Write && last[op.Key] != i
		wrote[op.Key] = wrote[op.Key] || !isRead(op)
		if !own {
			out = append(out, *op)
		}
	}
	return out
}

// transaction is the record without what its end tells.
func (o *open) transaction() record.Transaction {
	e := &o.begin
	t := record.Transaction{DB: e.DB, Session: e.Session, Seq: e.Seq, HasSeq: e.HasSeq, ID: e.ID}
	switch {
	case t.ID != "":
	case t.HasSeq:
		t.ID = t.Session + "#" + strconv.FormatInt(t.Seq, 10)
	default:
		t.ID = e.Session + "/" + e.Txn
	}
	return t
}

// hashOf is a hash of an operation, for telling whether it came again. It is the same in
// every process.
func hashOf(op *record.Op) uint32 {
	return uint32(record.NewDigest(&record.Head{}, 0).Op(op, record.Hash(op.Key)).Sum(1))
}
