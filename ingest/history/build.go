package history

import (
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec/intern"
	"github.com/isowatch/isowatch/ingest/record"
)

// builder makes the transactions of formats that number everything: keys and
// values are integers, a transaction is known by its place in its session.
type builder struct {
	ops   []record.Op // of the transaction at hand
	slab  intern.Slab[record.Op]
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

// take returns the operations at hand and begins anew.
func (m *builder) take() []record.Op {
	if len(m.ops) == 0 {
		return nil
	}
	ops := m.slab.Take(len(m.ops))
	copy(ops, m.ops)
	m.ops = m.ops[:0]
	return ops
}

// transaction ends the transaction at hand, number seq (from 1) of its
// session: s3#17.
func (m *builder) transaction(session string, seq int, status record.Status) record.Transaction {
	m.buf = append(append(m.buf[:0], session...), '#')
	m.buf = strconv.AppendInt(m.buf, int64(seq), 10)
	return record.Transaction{DB: record.DefaultDB, Session: session, Seq: int64(seq), HasSeq: true,
		ID: m.texts.String(m.buf), Status: status, Ops: m.take()}
}

// made is the finished history.
func (m *builder) made(file, format string, initial record.Initial, txns []record.Transaction) History {
	return History{File: file, Format: format, DB: record.DefaultDB, Header: record.Header{Initial: &initial},
		Transactions: txns}
}
