package history

import (
	"fmt"
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// Writers of TimeKiller's formats. A start at t is the timestamp (t, 0) and a commit
// (t, 1), so that what ends and begins at the same tick stays without order, as it
// is in a record; a transaction that begins and ends at one tick commits at
// its start. See timekiller.go for what reading makes of that.

func writeTimekiller(w *writer) error {
	keys := w.numberedKeys(math.MaxInt64)
	zero := w.zeroStays()
	for t := range w.txns {
		txn := &w.txns[t]
		id, session := jsonName(txn.ID), jsonName(either(w.own, txn.ID, txn.Session))
		end := w.end(txn)
		b := append(w.buf[:0], either(t == 0, "[\n", "")...)
		b = fmt.Appendf(b, `{"tid":%s,"sid":%s,"sts":{"p":%d,"l":0},"cts":{"p":%d,"l":%d},"ops":[`, id, session, txn.Start,
			end, either(txn.Start == end, 0, 1))
		for i, op := range txn.Ops {
			if i > 0 {
				b = append(b, ',')
			}
			kind := either(op.Kind == record.Append, "a", op.Kind.String())
			b = fmt.Appendf(b, `{"t":"%s","k":%d,"v":`, kind, keys[op.Key])
			b = append(w.timekillerValue(b, op, zero), '}')
		}
		w.line(append(b, either(t < len(w.txns)-1, "]},", "]}\n]")...))
	}
	return nil
}

func (w *writer) timekillerValue(b []byte, op record.Op, zero bool) []byte {
	switch {
	case w.isInitialOp(op) && w.spec.lists:
		return append(b, "[]"...) // tells which of the two formats it is
	case w.isInitialOp(op):
		return append(b, either(zero, "0", "null")...)
	case w.spec.lists && op.Kind == record.Read && op.Value.Kind == record.KindList:
		b = append(b, '[')
		for j, v := range op.Value.Elements() {
			if j > 0 {
				b = append(b, ',')
			}
			b = w.coded(v).AppendJSON(b)
		}
		return append(b, ']')
	}
	return w.coded(op.Value).AppendJSON(b)
}

// zeroStays tells whether keys that hold 0 before anybody writes them may be
// written so: whether reading what is written would find out again.
func (w *writer) zeroStays() bool {
	return w.opt.Format == timekillerKV && w.codes == nil && w.h.Header.Initial != nil &&
		*w.h.Header.Initial == record.InitialZero &&
		timekillerInitial(w.txns) == record.InitialZero
}

// jsonName is a name, as a number if it looks like one.
func jsonName(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return s
	}
	return string(record.AppendJSONString(nil, s))
}
