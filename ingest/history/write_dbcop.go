package history

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// Writers of dbcop's formats; its text is in write_text.go.

// dbcopHead is what dbcop says of a run. Its info is the database: the history's
// name. Times are those of the first begin and the last end, if there are any.
type dbcopHead struct {
	nodes, variables, transactions, events uint64
	info, start, end                       string
}

func (w *writer) dbcopHead(sessions []sessionPart, keys map[string]uint64) dbcopHead {
	h := dbcopHead{nodes: uint64(len(sessions)), info: w.h.DB}
	for _, n := range keys {
		h.variables = max(h.variables, n+min(1, math.MaxUint64-n))
	}
	var start, end int64
	timed := false
	for _, s := range sessions {
		h.transactions = max(h.transactions, uint64(len(s.txns)))
	}
	for t := range w.txns {
		txn := &w.txns[t]
		h.events = max(h.events, uint64(len(txn.Ops)))
		if !txn.HasTimes || w.opt.DropTimes {
			continue
		}
		if !timed {
			start, end, timed = txn.Start, txn.End, true
		}
		start, end = min(start, txn.Start), max(end, txn.End)
	}
	// With its offset written out, as dbcop's readers want it.
	const layout = "2006-01-02T15:04:05.000000000-07:00"
	h.start, h.end = time.Unix(0, start).UTC().Format(layout), time.Unix(0, end).UTC().Format(layout)
	return h
}

// writeDbcop writes bincode; see dbcop.go for its layout.
func writeDbcop(w *writer) error {
	keys := w.numberedKeys(math.MaxUint64)
	sessions := w.positions(true)
	h := w.dbcopHead(sessions, keys)
	u64 := binary.LittleEndian.AppendUint64
	b := u64(w.buf[:0], 0) // id
	for _, n := range []uint64{h.nodes, h.variables, h.transactions, h.events} {
		b = u64(b, n)
	}
	for _, s := range []string{h.info[:min(len(h.info), dbcopTextMax)], h.start, h.end} {
		b = append(u64(b, uint64(len(s))), s...)
	}
	b = u64(b, uint64(len(sessions)))
	for _, s := range sessions {
		b = u64(b, uint64(len(s.txns)))
		for _, t := range s.txns {
			txn := &w.txns[t]
			b = u64(b, uint64(len(txn.Ops)))
			for _, op := range txn.Ops {
				n, _ := w.number(op)
				b = append(b, byte(op.Kind)) // record.Read and record.Write
				b = append(u64(u64(b, keys[op.Key]), n), 1)
			}
			b = append(b, either[byte](txn.Status == record.Committed, 1, 0))
			w.out.Write(b) //nolint:errcheck // stays until Flush
			b = b[:0]
		}
	}
	w.out.Write(b) //nolint:errcheck // stays until Flush
	return nil
}

// writeDbcopJSON writes what dbcop itself writes, a transaction per line.
func writeDbcopJSON(w *writer) error {
	keys := w.numberedKeys(math.MaxUint64)
	sessions := w.positions(true)
	h := w.dbcopHead(sessions, keys)
	w.line(fmt.Appendf(w.buf[:0], `{"params":{"id":0,"n_node":%d,"n_variable":%d,"n_transaction":%d,"n_event":%d},`+
		`"info":%s,"start":"%s","end":"%s","data":[`, h.nodes, h.variables, h.transactions, h.events,
		record.AppendJSONString(nil, h.info), h.start, h.end))
	for i, s := range sessions {
		w.line(append(w.buf[:0], '['))
		for j, t := range s.txns {
			b := w.dbcopJSONTxn(w.buf[:0], &w.txns[t], keys)
			if j < len(s.txns)-1 {
				b = append(b, ',')
			}
			w.line(b)
		}
		w.line(append(w.buf[:0], either(i < len(sessions)-1, "],", "]")...))
	}
	w.line(append(w.buf[:0], "]}"...))
	return nil
}

func (w *writer) dbcopJSONTxn(b []byte, txn *record.Transaction, keys map[string]uint64) []byte {
	b = append(b, `{"events":[`...)
	for i, op := range txn.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		n, initial := w.number(op)
		version := either(initial, "null", strconv.FormatUint(n, 10))
		kind := either(op.Kind == record.Write, "Write", "Read")
		b = fmt.Appendf(b, `{"%s":{"variable":%d,"version":%s}}`, kind, keys[op.Key], version)
	}
	return fmt.Appendf(b, `],"committed":%t}`, txn.Status == record.Committed)
}

// writeDbcopYAML writes a line per event.
func writeDbcopYAML(w *writer) error {
	keys := w.numberedKeys(math.MaxUint64)
	for _, s := range w.positions(true) {
		if len(s.txns) == 0 {
			w.line(append(w.buf[:0], "- []"...))
		}
		for i, t := range s.txns {
			txn := &w.txns[t]
			w.line(fmt.Appendf(w.buf[:0], "%s- events:%s", either(i == 0, "- ", "  "), either(len(txn.Ops) == 0, " []", "")))
			for _, op := range txn.Ops {
				n, _ := w.number(op)
				w.line(fmt.Appendf(w.buf[:0], "    - {write: %t, variable: %d, value: %d, success: true}", op.Kind == record.Write,
					keys[op.Key], n))
			}
			w.line(strconv.AppendBool(append(w.buf[:0], "    success: "...), txn.Status == record.Committed))
		}
	}
	return nil
}
