package history

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Writers of formats that are lines of text.

// writePolysi writes r(KEY,VALUE,SESSION,TXN) or w(…). Of an aborted transaction
// the format keeps only the writes, under -1.
func writePolysi(w *writer) error {
	keys := w.numberedKeys(math.MaxInt64)
	sessions := w.numbered(math.MaxInt64)
	number := w.transactionNumbers()
	lost, empty := 0, 0
	for t := range w.txns {
		txn := &w.txns[t]
		aborted := txn.Status == record.Aborted
		id := either(aborted, "-1", strconv.FormatUint(number(t), 10))
		written := 0
		for _, op := range txn.Ops {
			if aborted && op.Kind == record.Read {
				lost++
				continue
			}
			n, _ := w.number(op)
			w.line(fmt.Appendf(w.buf[:0], "%s(%d,%d,%d,%s)", op.Kind, keys[op.Key], n, sessions[w.session[t]], id))
			written++
		}
		if written == 0 {
			empty++
		}
	}
	if lost > 0 {
		w.note("%d reads of aborted transactions are left out, and those of a session that follow each other become one",
			lost)
	}
	return w.noteEmpty(empty)
}

// noteEmpty tells that n transactions were left out, which must not be all.
func (w *writer) noteEmpty(n int) error {
	if n == len(w.txns) {
		return reject.New(reject.EmptyInput, "nothing of the history is to be written in %s", w.opt.Format).
			At(whole(w.h.File))
	}
	if n > 0 {
		w.note("%d transactions are left out, as nothing of them is to be written", n)
	}
	return nil
}

// transactionNumbers gives transactions the numbers in their ids, t8, if all have
// one, else their places, from 1.
func (w *writer) transactionNumbers() func(t int) uint64 {
	numbers := make([]uint64, len(w.txns))
	taken := make(map[uint64]bool, len(w.txns))
	for t := range w.txns {
		id, ok := w.txns[t].ID, w.txns[t].Status == record.Aborted
		if !ok && len(id) > 1 && id[0] == 't' {
			numbers[t], ok = canonical(id[1:])
			ok = ok && numbers[t] <= math.MaxInt64 && !taken[numbers[t]]
			taken[numbers[t]] = true
		}
		if !ok {
			return func(t int) uint64 { return uint64(t) + 1 }
		}
	}
	return func(t int) uint64 { return numbers[t] }
}

// writeAwdit writes a line per operation, and lines of = and - between.
func writeAwdit(w *writer) error {
	keys := w.numberedKeys(math.MaxUint64)
	empty, began := 0, false
	for _, s := range w.positions(false) {
		separator := "====="
		for _, t := range s.txns {
			ops := w.txns[t].Ops
			if len(ops) == 0 {
				empty++
				continue
			}
			if began {
				w.line(append(w.buf[:0], separator...))
			}
			separator, began = "-----", true
			for _, op := range ops {
				n, _ := w.number(op)
				w.line(fmt.Appendf(w.buf[:0], "%s %d %d", op.Kind, keys[op.Key], n))
			}
		}
	}
	return w.noteEmpty(empty)
}

var histName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// writeHist writes a line per transaction, and --- between sessions.
func writeHist(w *writer) error {
	names := w.histNames()
	empty := 0
	for i, s := range w.positions(true) {
		if i > 0 {
			w.line(append(w.buf[:0], "---"...))
		}
		for _, t := range s.txns {
			txn := &w.txns[t]
			if len(txn.Ops) == 0 {
				empty++
				continue
			}
			b := append(w.buf[:0], '[')
			for j, op := range txn.Ops {
				if j > 0 {
					b = append(b, ' ')
				}
				n, initial := w.number(op)
				switch {
				case op.Kind == record.Write:
					b = fmt.Appendf(b, "%s:=%d", names[op.Key], n)
				case initial:
					b = fmt.Appendf(b, "%s==?", names[op.Key])
				default:
					b = fmt.Appendf(b, "%s==%d", names[op.Key], n)
				}
			}
			w.line(append(b, either(txn.Status == record.Aborted, "]!", "]")...))
		}
	}
	return w.noteEmpty(empty)
}

// histNames gives every key a name that the text allows: its own if all are such,
// else k and a number.
func (w *writer) histNames() map[string]string {
	names := map[string]string{}
	own := true
	for t := range w.txns {
		for _, op := range w.txns[t].Ops {
			if _, known := names[op.Key]; !known {
				own = own && histName.MatchString(op.Key)
				names[op.Key] = op.Key
			}
		}
	}
	if own {
		return names
	}
	for key, n := range w.numberedKeys(math.MaxUint64) {
		names[key] = "k" + strconv.FormatUint(n, 10)
	}
	w.note("keys have names of k and a number")
	return names
}
