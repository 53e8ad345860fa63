package codec

import (
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// AppendJSON appends t as one line of JSON, without a line break. Decoding that
// gives back t, provided t is as Decode leaves it: its strings are UTF-8, its
// values canonical, and its id is only empty without a seq.
func AppendJSON(b []byte, t *record.Transaction) []byte {
	b = append(b, '{')
	if t.DB != "" {
		b = append(record.AppendJSONString(append(b, `"db":`...), t.DB), ',')
	}
	b = record.AppendJSONString(append(b, `"session":`...), t.Session)
	if t.HasSeq {
		b = strconv.AppendInt(append(b, `,"seq":`...), t.Seq, 10)
	}
	if t.ID != "" {
		b = record.AppendJSONString(append(b, `,"id":`...), t.ID)
	}
	if t.Node != "" {
		b = record.AppendJSONString(append(b, `,"node":`...), t.Node)
	}
	if t.Statements != "" {
		b = record.AppendJSONString(append(b, `,"statements":`...), t.Statements)
	}
	if t.XID != "" {
		b = record.AppendJSONString(append(b, `,"xid":`...), t.XID)
	}
	if t.LSN != 0 {
		b = strconv.AppendInt(append(b, `,"lsn":`...), t.LSN, 10)
	}
	if t.HasTimes {
		b = strconv.AppendInt(append(b, `,"start":`...), t.Start, 10)
		b = strconv.AppendInt(append(b, `,"end":`...), t.End, 10)
	}
	b = append(append(append(b, `,"status":"`...), t.Status.String()...), `","ops":[`...)
	for i := range t.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOp(b, &t.Ops[i])
	}
	return append(b, ']', '}')
}

func appendOp(b []byte, op *record.Op) []byte {
	b = append(append(append(b, `["`...), op.Kind.String()...), `",`...)
	switch op.Kind {
	case record.PredicateRead, record.PredicateWrite:
		b = record.AppendJSONString(append(b, `{"table":`...), op.Key)
		b = record.AppendJSONString(append(b, `,"where":`...), op.Where)
		b = append(b, '}')
	default:
		b = record.AppendJSONString(b, op.Key)
	}
	if op.Kind == record.PredicateWrite {
		members := op.Value.Fields()
		if rows, known := members[record.Hit]; known {
			delete(members, record.Hit)
			b = record.ObjectOf(members).AppendJSON(append(b, ','))
			return append(rows.AppendJSON(append(b, ',')), ']')
		}
	}
	return append(op.Value.AppendJSON(append(b, ',')), ']')
}
