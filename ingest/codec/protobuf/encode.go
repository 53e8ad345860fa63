package protobuf

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
)

// Append appends t as a message. Decoding that gives back t, provided t is as the
// JSON codec's Decode leaves it: its strings are UTF-8, its values canonical, and its id is only
// empty without a seq.
func Append(b []byte, t *record.Transaction) []byte {
	b, message := opened(b, messageTransaction)
	b = text(b, txnSession, t.Session)
	if t.HasSeq {
		b = varint(b, txnSeq, uint64(t.Seq))
	}
	if t.HasTimes {
		b = fixed(b, txnStart, t.Start)
		b = fixed(b, txnEnd, t.End)
	}
	b = varint(b, txnStatus, statusNumber(t.Status))
	if t.DB != "" && t.DB != record.DefaultDB {
		b = text(b, txnDB, t.DB)
	}
	if t.ID != "" && !(t.HasSeq && isSequenceID(t)) {
		b = text(b, txnID, t.ID)
	}
	for i := range t.Ops {
		b = operation(b, txnOps, &t.Ops[i])
	}
	if t.Node != "" {
		b = text(b, txnNode, t.Node)
	}
	if t.Statements != "" {
		b = text(b, txnStatements, t.Statements)
	}
	if t.XID != "" {
		b = text(b, txnXID, t.XID)
	}
	if t.LSN != 0 {
		b = varint(b, txnLSN, uint64(t.LSN))
	}
	return closed(b, message)
}

// isSequenceID tells whether the ID is the one that a decoder gives.
func isSequenceID(t *record.Transaction) bool {
	n := len(t.Session)
	var room [20]byte
	return len(t.ID) > n && t.ID[:n] == t.Session && t.ID[n] == '#' &&
		t.ID[n+1:] == string(strconv.AppendInt(room[:0], t.Seq, 10))
}

// AppendEvent appends e as a message. Decoding that gives back e, provided that what its
// kind does not have is zero.
func AppendEvent(b []byte, e *assemble.Event) []byte {
	field := [...]protowire.Number{assemble.Begin: messageBegin, assemble.Step: messageStep,
		assemble.End: messageEnd}[e.Kind]
	b, message := opened(b, field)
	b = text(b, eventSession, e.Session)
	b = text(b, eventTxn, e.Txn)
	switch e.Kind {
	case assemble.Begin:
		if e.HasSeq {
			b = varint(b, beginSeq, uint64(e.Seq))
		}
		if e.HasTime {
			b = fixed(b, beginStart, e.Time)
		}
		if e.DB != "" && e.DB != record.DefaultDB {
			b = text(b, beginDB, e.DB)
		}
		if e.ID != "" {
			b = text(b, beginID, e.ID)
		}
	case assemble.Step:
		b = varint(b, stepN, uint64(e.N))
		b = operation(b, stepOp, &e.Op)
	case assemble.End:
		b = varint(b, endStatus, statusNumber(e.Status))
		b = varint(b, endCount, uint64(e.N))
		if e.HasTime {
			b = fixed(b, endEnd, e.Time)
		}
	}
	return closed(b, message)
}

func statusNumber(s record.Status) uint64 {
	return uint64(slices.Index(statusOf[1:], s) + 1)
}

// opened begins a message in a field, of one byte of length until closed knows better.
func opened(b []byte, field protowire.Number) (_ []byte, from int) {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	return b, len(b)
}

// closed ends the message whose bytes are from b[from] on.
func closed(b []byte, from int) []byte {
	n := len(b) - from
	if n < 0x80 {
		b[from-1] = byte(n)
		return b
	}
	var room [9]byte
	return slices.Replace(b, from-1, from, protowire.AppendVarint(room[:0], uint64(n))...)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func varint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func fixed(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(v))
}

func operation(b []byte, field protowire.Number, op *record.Op) []byte {
	b, message := opened(b, field)
	on := protowire.Number(slices.Index(kindOf[1:], op.Kind) + 1)
	if op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite {
		var predicate int
		b, predicate = opened(b, on)
		b = text(text(b, predicateTable, op.Key), predicateWhere, op.Where)
		b = closed(b, predicate)
	} else {
		b = text(b, on, op.Key)
	}
	return closed(value(b, &op.Value), message)
}

func value(b []byte, v *record.Value) []byte {
	switch v.Kind {
	case record.KindNull:
		return varint(b, opNull, 0)
	case record.KindInt:
		return varint(b, opInteger, protowire.EncodeZigZag(v.Num))
	case record.KindBool:
		return varint(b, opBoolean, protowire.EncodeBool(v.Text == "true"))
	case record.KindString:
		return text(b, opText, v.Text)
	case record.KindList:
		if out, ok := integers(b, v.Text); ok {
			return out
		}
	}
	return text(b, opJSON, v.Text)
}

// integers appends a list of nothing but integers of 64 bits; anything else it leaves.
func integers(b []byte, list string) ([]byte, bool) {
	begin := len(b)
	b, message := opened(b, opIntegers)
	b, packed := opened(b, integersValues)
	for rest := list[1 : len(list)-1]; rest != ""; {
		n := 0
		for n < len(rest) && rest[n] != ',' {
			n++
		}
		v, err := strconv.ParseInt(rest[:n], 10, 64)
		if err != nil {
			return b[:begin], false
		}
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(v))
		rest = rest[min(n+1, len(rest)):]
	}
	return closed(closed(b, packed), message), true
}
