package history

import (
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
		b := append(w.buf[:0], either(t == 0, "[\n", "")...)
		b = appendJSONName(append(b, `{"tid":`...), txn.ID)
		session := txn.Session
		if w.own {
			session = txn.ID
		}
		b = appendJSONName(append(b, `,"sid":`...), session)
		end := w.end(txn)
		b = strconv.AppendInt(append(b, `,"sts":{"p":`...), txn.Start, 10)
		b = strconv.AppendInt(append(b, `,"l":0},"cts":{"p":`...), end, 10)
		b = append(b, either(txn.Start == end, `,"l":0},"ops":[`, `,"l":1},"ops":[`)...)
		for i, op := range txn.Ops {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"t":"`...)
			b = append(b, either(op.Kind == record.Append, "a", op.Kind.String())...)
			b = strconv.AppendUint(append(b, `","k":`...), keys[op.Key], 10)
			b = append(b, `,"v":`...)
			var err error
			if b, err = w.timekillerValue(b, t, i, op, zero); err != nil {
				return err
			}
			b = append(b, '}')
		}
		w.line(append(b, either(t < len(w.txns)-1, "]},", "]}\n]")...))
	}
	return nil
}

func (w *writer) timekillerValue(b []byte, t, i int, op record.Op, zero bool) ([]byte, error) {
	if w.isInitialOp(op) {
		if w.spec.lists {
			return append(b, "[]"...), nil // tells which of the two formats it is
		}
		return append(b, either(zero, "0", "null")...), nil
	}
	if w.spec.lists && op.Kind == record.Read && op.Value.Kind == record.KindList {
		items, err := w.items(t, i, op)
		if err != nil {
			return b, err
		}
		b = append(b, '[')
		for j, v := range items {
			if j > 0 {
				b = append(b, ',')
			}
			b = w.coded(v).AppendJSON(b)
		}
		return append(b, ']'), nil
	}
	return w.coded(op.Value).AppendJSON(b), nil
}

// zeroStays tells whether keys that hold 0 before anybody writes them may be
// written so: whether reading what is written would find out again.
func (w *writer) zeroStays() bool {
	return w.opt.Format == timekillerKV && w.codes == nil && w.h.Header.Initial != nil &&
		*w.h.Header.Initial == record.InitialZero &&
		timekillerInitial(w.txns) == record.InitialZero
}

// appendJSONName appends a name, as a number if it looks like one.
func appendJSONName(b []byte, s string) []byte {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return append(b, s...)
	}
	return record.AppendJSONString(b, s)
}
