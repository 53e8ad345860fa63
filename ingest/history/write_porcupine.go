package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Writers of Porcupine's test data: a log of one register, and maps of a store of
// strings. A transaction is one operation there, in the order of lines that
// moments finds.

// etcdWriter writes the log of a register. What says whether the register holds a
// value that a failed cas compared with (see porcupine.go) goes back to
// where it came from.
type etcdWriter struct {
	*terms
	key      string         // of the register
	compares []record.Value // what failed cas compared with
}

func writeEtcdLog(w *writer) error {
	e := etcdWriter{terms: newTerms(w, false)}
	if err := e.register(); err != nil {
		return err
	}
	ms, err := w.moments()
	if err != nil {
		return err
	}
	w.noteSilent()
	invoked := slices.ContainsFunc(ms, func(m moment) bool { return !m.end })
	processes := w.numbered(1<<63 - 1)
	for _, m := range ms {
		f, value, err := e.operation(m)
		if err != nil {
			return err
		}
		status := w.txns[m.txn].Status
		kind := "invoke"
		switch {
		case m.end && f == "fail":
			kind = "fail"
		case m.end:
			kind = completions[status]
		}
		if f == "fail" {
			f = "cas"
		}
		if m.end && invoked && (status == record.Unknown || f == "read" && status == record.Aborted) {
			value = ":timed-out"
		}
		process := processes[w.session[m.txn]]
		w.line(fmt.Appendf(w.buf[:0], "INFO  jepsen.util - %d\t:%s\t:%s\t%s", process, kind, f, value))
	}
	return nil
}

// noteSilent tells of reads whose answer these formats do not have.
func (w *writer) noteSilent() {
	silent := 0
	for t := range w.txns {
		if txn := &w.txns[t]; txn.Status != record.Committed && len(txn.Ops) == 1 && txn.Ops[0].Kind == record.Read {
			silent++
		}
	}
	if silent > 0 {
		w.note("what %d reads returned that did not commit is left out", silent)
	}
}

// register finds the register and what it was compared with.
func (e *etcdWriter) register() error {
	found := false
	for t := range e.w.txns {
		for _, op := range e.w.txns[t].Ops {
			if !found || strings.HasPrefix(e.key, op.Key+" = ") {
				e.key, found = op.Key, true
			}
		}
	}
	for t := range e.w.txns {
		for i, op := range e.w.txns[t].Ops {
			if op.Value.Kind == record.KindList {
				return e.w.cannot(t, i, "the value %.40s is a list, which would be taken for a key and its value", op.Value)
			}
			if op.Key == e.key {
				continue
			}
			text, ok := strings.CutPrefix(op.Key, e.key+" = ")
			v, isValue := e.comparedWith(text)
			if !ok || !isValue || op.Key != comparison(e.key, v) || e.w.initial() != record.InitialAbsent {
				return e.w.cannot(t, i, "the format has one register, %.80q, and this is key %.80q", e.key, op.Key)
			}
			if !slices.Contains(e.compares, v) {
				e.compares = append(e.compares, v)
			}
		}
	}
	return nil
}

func (e *etcdWriter) comparedWith(text string) (record.Value, bool) {
	v, ok := e.decode(strings.ReplaceAll(text, "null", "nil"))
	return valueOf(v), ok
}

// operation is what the line of m says; "fail" for a cas that failed on its condition.
func (e *etcdWriter) operation(m moment) (f, value string, err error) {
	t := m.txn
	txn := &e.w.txns[t]
	var own []int // places of operations on the register itself
	others := 0
	for i, op := range txn.Ops {
		if op.Key == e.key {
			own = append(own, i)
		} else {
			others++
		}
	}
	text := func(i int) string {
		var b []byte
		if err == nil {
			b, err = e.value(nil, t, i, txn.Ops[i])
		}
		return string(b)
	}
	kinds := ""
	for _, i := range own {
		kinds += txn.Ops[i].Kind.String()
	}
	switch {
	case len(txn.Ops) == 0 && txn.Status != record.Committed:
		return "read", "nil", nil
	case len(own) == 0 && others == 1 && txn.Status == record.Committed && e.isRefusal(txn.Ops[0]):
		old, _ := e.comparedWith(strings.TrimPrefix(txn.Ops[0].Key, e.key+" = "))
		b, err := e.terms.term(nil, t, 0, old)
		return "fail", "[" + string(b) + " " + string(b) + "]", err
	case kinds == "r" && others == 0:
		if !m.end || txn.Status != record.Committed {
			return "read", "nil", nil
		}
		return "read", text(own[0]), err
	case kinds == "w" && e.follows(txn, own[0]):
		return "write", text(own[0]), err
	case kinds == "rw" && e.follows(txn, own[1]) && txn.Status != record.Aborted:
		return "cas", "[" + text(own[0]) + " " + text(own[1]) + "]", err
	}
	return "", "", e.w.cannot(t, -1, "the format has reads, writes, and compare-and-swaps (a read, then a write), one a "+
		"transaction%s", either(txn.Status == record.Aborted, "; aborted ones are not swaps", ""))
}

// isRefusal recognises what a failed cas read.
func (e *etcdWriter) isRefusal(op record.Op) bool {
	old, _ := e.comparedWith(strings.TrimPrefix(op.Key, e.key+" = "))
	return op.Kind == record.Read && op.Value == compared(old, false)
}

// follows tells whether what stands behind the write at i of a transaction is what
// reading the log will put there.
func (e *etcdWriter) follows(txn *record.Transaction, i int) bool {
	rest := txn.Ops[i+1:]
	if txn.Status == record.Aborted {
		return len(rest) == 0
	}
	if len(rest) != len(e.compares) {
		return false
	}
	for _, v := range e.compares {
		if !slices.Contains(rest, record.Op{Kind: record.Write, Key: comparison(e.key, v),
			Value: compared(v, txn.Ops[i].Value == v)}) {
			return false
		}
	}
	return true
}
