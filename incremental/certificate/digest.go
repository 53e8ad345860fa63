package certificate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// Describe counts and digests a history. Its digest is the SHA-256 of its records
// as canonical JSON lines, sessions in the order of their names' bytes and each
// session's transactions in session order; how sessions are interleaved in the
// input does not matter.
func Describe(txns []record.Transaction) Records {
	bySession := map[string][]int{}
	out := Records{Transactions: len(txns)}
	for n := range txns {
		bySession[txns[n].Session] = append(bySession[txns[n].Session], n)
		out.Operations += len(txns[n].Ops)
	}
	names := make([]string, 0, len(bySession))
	for s := range bySession {
		names = append(names, s)
	}
	slices.Sort(names)
	out.Sessions = len(names)
	h := sha256.New()
	var line []byte
	for _, s := range names {
		for _, n := range bySession[s] {
			line = append(appendRecord(line[:0], &txns[n]), '\n')
			h.Write(line)
		}
	}
	out.SHA256 = hex.EncodeToString(h.Sum(nil))
	return out
}

// appendRecord appends a record's canonical form: the line that `monitor convert`
// writes of it. It is written down here a second time so that what checks a
// proof depends on as little as possible; a test compares the two.
func appendRecord(b []byte, t *record.Transaction) []byte {
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
	if t.LSN != 0 {
		b = strconv.AppendInt(append(b, `,"lsn":`...), t.LSN, 10)
	}
	if t.HasTimes {
		b = strconv.AppendInt(append(b, `,"start":`...), t.Start, 10)
		b = strconv.AppendInt(append(b, `,"end":`...), t.End, 10)
	}
	b = append(append(append(b, `,"status":"`...), t.Status.String()...), `","ops":[`...)
	for i := range t.Ops {
		op := &t.Ops[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `["`...), op.Kind.String()...), `",`...)
		if op.Kind > record.Append {
			b = record.AppendJSONString(append(b, `{"table":`...), op.Key)
			b = append(record.AppendJSONString(append(b, `,"where":`...), op.Where), '}')
		} else {
			b = record.AppendJSONString(b, op.Key)
		}
		b = append(op.Value.AppendJSON(append(b, ',')), ']')
	}
	return append(b, ']', '}')
}
