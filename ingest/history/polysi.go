package history

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// PolySI's and Plume's text: an operation a line, r(KEY,VALUE,SESSION,TXN) or
// w(…). A transaction is all lines with its number, wherever they stand.

const (
	polysiFormat  = "polysi-text"
	polysiAborted = -1 // Plume: the transaction of aborted writes
	polysiLineMax = 4 << 10
)

func looksPolysi(head []byte) bool {
	_, err := parsePolysi(firstLine(head))
	return err == nil
}

// polysiOp is one line.
type polysiOp struct {
	kind         record.OpKind
	key, value   polysiNumber
	session, txn int64
}

// polysiNumber is a key or a value: 64 bits with a sign, or without one, as Plume
// has them and hashes need them.
type polysiNumber struct {
	n        uint64 // the magnitude
	negative bool
}

func parsePolysi(line []byte) (op polysiOp, err *reject.Error) {
	switch {
	case bytes.HasPrefix(line, []byte("r(")):
	case bytes.HasPrefix(line, []byte("w(")):
		op.kind = record.Write
	default:
		return op, reject.New(reject.ForeignBytes, "want r(key,value,session,txn) or w(key,value,session,txn), not %.40q", line)
	}
	rest, closed := bytes.CutSuffix(line[2:], []byte(")"))
	if !closed {
		return op, reject.New(reject.Truncated, "the line has no closing bracket")
	}
	for i, f := range [...]struct {
		name  string
		into  *int64
		large *polysiNumber
	}{{"key", nil, &op.key}, {"value", nil, &op.value}, {"session", &op.session, nil}, {"txn", &op.txn, nil}} {
		text, tail, more := bytes.Cut(rest, []byte(","))
		if more != (i < 3) {
			return op, reject.New(reject.WrongLength, "an operation has four numbers: key, value, session, txn")
		}
		n, bad := strconv.ParseInt(string(text), 10, 64)
		if f.large != nil {
			if bad == nil && n < 0 {
				*f.large = polysiNumber{-uint64(n), true}
			} else {
				f.large.n, bad = strconv.ParseUint(string(text), 10, 64)
			}
		}
		switch {
		case errors.Is(bad, strconv.ErrRange):
			return op, reject.In(f.name, reject.OutOfRange, "%s does not fit 64 bits", text)
		case bad != nil:
			return op, reject.In(f.name, reject.WrongType, "want an integer, not %.40q", text)
		}
		if f.into != nil {
			*f.into = n
		}
		rest = tail
	}
	switch {
	case op.txn < polysiAborted:
		return op, reject.In("txn", reject.Negative, "%d is negative; only -1 is, for aborted writes", op.txn)
	case op.session < 0:
		return op, reject.In("session", reject.Negative, "%d is negative", op.session)
	}
	return op, nil
}

// polysi gathers lines into transactions.
type polysi struct {
	builder
	txns []record.Transaction // in order of appearance, operations missing
	of   map[int64]int        // a transaction's place in txns, by its number
	seqs map[int64]int        // how many transactions a session has, by its number
	// aborted is, by session, the place of the aborted transaction that its
	// lines are adding to: lines of -1 without another of the session between.
	aborted map[int64]int
	flat    []record.Op // all operations
	in      []int32     // for each of them, its transaction's place
}

func readPolysi(in *input) ([]History, error) {
	p := polysi{builder: newBuilder(), of: map[int64]int{}, seqs: map[int64]int{}, aborted: map[int64]int{}}
	err := in.lines(polysiLineMax, func(line []byte) *reject.Error {
		op, err := parsePolysi(line)
		if err != nil {
			return err
		}
		return p.add(op)
	})
	switch {
	case err != nil:
		return nil, err
	case len(p.txns) == 0:
		return nil, in.reject(reject.EmptyInput, "there is no operation in the file")
	}
	p.distribute()
	return []History{p.made(in.name, polysiFormat, record.InitialZero, p.txns)}, nil
}

// add takes in a line.
func (p *polysi) add(op polysiOp) *reject.Error {
	place, known := p.of[op.txn]
	if op.txn == polysiAborted {
		if op.kind == record.Read {
			return nil
		}
		place, known = p.aborted[op.session]
	} else {
		delete(p.aborted, op.session)
	}
	if !known {
		place = p.begin(op)
	} else if was := p.txns[place].Session; was != p.sessionName(op.session) {
		return reject.In("session", reject.BadStructure, "transaction %d is of session %s already, not of session %d", op.txn, was[1:], op.session)
	}
	v := record.Int(-int64(op.value.n))
	if !op.value.negative {
		v = p.value(op.value.n)
	}
	p.flat = append(p.flat, record.Op{Kind: op.kind, Key: p.signedKey(op.key), Value: v})
	p.in = append(p.in, int32(place))
	return nil
}

// begin makes a new transaction. One of the file's own keeps its number in its
// id: t8; an aborted one, which has none, is s3#17.
func (p *polysi) begin(op polysiOp) int {
	place := len(p.txns)
	p.seqs[op.session]++
	t := p.transaction(p.sessionName(op.session), p.seqs[op.session], record.Committed)
	if op.txn == polysiAborted {
		t.Status = record.Aborted
		p.aborted[op.session] = place
	} else {
		p.buf = strconv.AppendInt(append(p.buf[:0], 't'), op.txn, 10)
		t.ID = p.texts.String(p.buf)
		p.of[op.txn] = place
	}
	p.txns = append(p.txns, t)
	return place
}

// distribute gives the transactions their operations, in the order of lines.
func (p *polysi) distribute() {
	counts := make([]int, len(p.txns))
	for _, t := range p.in {
		counts[t]++
	}
	for t := range p.txns {
		p.txns[t].Ops = p.slab.Take(counts[t])[:0]
	}
	for i, t := range p.in {
		p.txns[t].Ops = append(p.txns[t].Ops, p.flat[i])
	}
}

func (p *polysi) sessionName(n int64) string { return p.session(uint64(n)) }

// signedKey is key for numbers that may be negative.
func (p *polysi) signedKey(n polysiNumber) string {
	if n.negative {
		return "-" + strconv.FormatUint(n.n, 10)
	}
	return p.key(n.n)
}
