package history

import (
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec/intern"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// gathered are the operations of the transaction at hand.
type gathered struct {
	ops      []record.Op
	slab     intern.Slab[record.Op]
	interned map[string]string
	taken    int // operations so far
	left     int // operations left out, as they had no effect or say nothing
}

// intern gives equal texts one string.
func (o *gathered) intern(s string) string {
	if n, known := o.interned[s]; known {
		return n
	}
	if o.interned == nil {
		o.interned = map[string]string{}
	}
	o.interned[s] = s
	return s
}

// add adds an operation.
func (o *gathered) add(kind record.OpKind, key string, v record.Value) {
	o.ops = append(o.ops, record.Op{Kind: kind, Key: o.intern(key), Value: v})
}

// take returns the operations at hand and begins anew.
func (o *gathered) take() []record.Op {
	if len(o.ops) == 0 {
		return nil
	}
	o.taken += len(o.ops)
	ops := o.slab.Take(len(o.ops))
	copy(ops, o.ops)
	o.ops = o.ops[:0]
	return ops
}

// builder makes the transactions of formats that number everything: keys and
// values are integers, a transaction is known by its place in its session.
type builder struct {
	gathered
	texts intern.Text
	keys  map[uint64]string
	names map[uint64]string // of sessions
	buf   []byte
}

func newBuilder() builder { return builder{keys: map[uint64]string{}, names: map[uint64]string{}} }

// key names a key by its number, once.
func (m *builder) key(n uint64) string {
	k, ok := m.keys[n]
	if !ok {
		m.buf = strconv.AppendUint(m.buf[:0], n, 10)
		k = m.texts.String(m.buf)
		m.keys[n] = k
	}
	return k
}

// value is the integer n, in the codec's canonical form.
func (m *builder) value(n uint64) record.Value {
	if n <= math.MaxInt64 {
		return record.Int(int64(n))
	}
	m.buf = strconv.AppendUint(m.buf[:0], n, 10)
	return record.Value{Kind: record.KindNumber, Text: m.texts.String(m.buf)}
}

// session names a session by its number: s3.
func (m *builder) session(n uint64) string {
	s, ok := m.names[n]
	if !ok {
		s = "s" + strconv.FormatUint(n, 10)
		m.names[n] = s
	}
	return s
}

// op adds an operation to the transaction at hand.
func (m *builder) op(kind record.OpKind, key uint64, v record.Value) {
	m.ops = append(m.ops, record.Op{Kind: kind, Key: m.key(key), Value: v})
}

// transaction ends the transaction at hand, number seq (from 1) of its
// session: s3#17.
func (m *builder) transaction(session string, seq int, status record.Status) record.Transaction {
	m.buf = record.AppendSequenceID(m.buf[:0], session, int64(seq))
	return record.Transaction{DB: record.DefaultDB, Session: session, Seq: int64(seq), HasSeq: true,
		ID: m.texts.String(m.buf), Status: status, Ops: m.take()}
}

// made is the finished history; none says what it is that has no transaction.
func (m *builder) made(file, format string, initial record.Initial, txns []record.Transaction, none string) (History,
	error) {
	if len(txns) == 0 {
		return History{}, reject.New(reject.EmptyInput, "%s", none).At(whole(file))
	}
	return History{File: file, Format: format, DB: record.DefaultDB, Header: record.Header{Initial: &initial},
		Transactions: txns, FailedOps: m.left}, nil
}

// noTransaction is what made says of most.
const noTransaction = "the history has no transaction in it"

// one is what a reader returns that has read one history.
func one(h History, err error) ([]History, error) {
	if err != nil {
		return nil, err
	}
	return []History{h}, nil
}
