package history

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
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
		return op, reject.New(reject.ForeignBytes, "want r(key,value,session,txn) or w(key,value,session,txn), not %.40q",
			line)
	}
	rest, closed := bytes.CutSuffix(line[2:], []byte(")"))
	if !closed {
		return op, reject.New(reject.Truncated, "the line has no closing bracket")
	}
	var fields [4]polysiNumber
	for i := range fields {
		n, digits := leadingNumber(rest)
		switch {
		case digits > 0 && i < 3 && digits < len(rest) && rest[digits] == ',':
			rest = rest[digits+1:]
		case digits > 0 && i == 3 && digits == len(rest):
		default:
			text, tail, more := bytes.Cut(rest, []byte(","))
			if more != (i < 3) {
				return op, reject.New(reject.WrongLength, "an operation has four numbers: key, value, session, txn")
			}
			if fields[i], err = polysiField(i, text); err != nil {
				return op, err
			}
			rest = tail
			continue
		}
		fields[i].n = n
	}
	op.key, op.value, op.session, op.txn = fields[0], fields[1], fields[2].signed(), fields[3].signed()
	switch {
	case op.txn < polysiAborted:
		return op, reject.In("txn", reject.Negative, "%d is negative; only -1 is, for aborted writes", op.txn)
	case op.session < 0:
		return op, reject.In("session", reject.Negative, "%d is negative", op.session)
	}
	return op, nil
}

// leadingNumber is the number with which a text begins, and how many digits it has: none if it does not begin
// with one, or with so large a one that it might not fit.
func leadingNumber(text []byte) (n uint64, digits int) {
	for digits < len(text) && text[digits]-'0' <= 9 {
		n = n*10 + uint64(text[digits]-'0')
		digits++
	}
	if digits > 18 {
		return 0, 0
	}
	return n, digits
}

// polysiField is the i-th number of a line.
func polysiField(i int, text []byte) (polysiNumber, *reject.Error) {
	n, bad := strconv.ParseInt(string(text), 10, 64)
	out := polysiNumber{n: uint64(n)}
	switch {
	case bad == nil && n < 0:
		out = polysiNumber{-uint64(n), true}
	case i < 2:
		out.n, bad = strconv.ParseUint(string(text), 10, 64)
	}
	name := [...]string{"key", "value", "session", "txn"}[i]
	switch {
	case errors.Is(bad, strconv.ErrRange):
		return out, reject.In(name, reject.OutOfRange, "%s does not fit 64 bits", text)
	case bad != nil:
		return out, reject.In(name, reject.WrongType, "want an integer, not %.40q", text)
	}
	return out, nil
}

func (n polysiNumber) signed() int64 {
	if n.negative {
		return -int64(n.n)
	}
	return int64(n.n)
}

// polysi gathers lines into transactions: as numbers, which are names only once they are packed.
type polysi struct {
	txns []polysiTxn   // in order of appearance
	of   map[int64]int // a transaction's place in txns, by its number
	seqs map[int64]int // how many transactions a session has, by its number
	// aborted is, by session, the place of the aborted transaction that its
	// lines are adding to: lines of -1 without another of the session between.
	aborted map[int64]int
	ops     [][]polysiOp // all operations, in pages; op.txn is the place of the transaction
	// scattered: the lines of some transaction are not one after the other.
	scattered bool
	last      polysiOp // the line before, with the number of its transaction; -1 if there is none
	place     int      // of its transaction
}

// polysiTxn is a transaction without its operations.
type polysiTxn struct {
	number, session int64
	seq, ops        int
}

// polysiPage is how many operations are in a page.
const polysiPage = 1 << 14

func readPolysi(in *input) ([]History, error) {
	p := polysi{of: map[int64]int{}, seqs: map[int64]int{}, aborted: map[int64]int{}, last: polysiOp{txn: polysiAborted}}
	err := in.lines(polysiLineMax, func(line []byte, _, _ int64) *reject.Error {
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
	return []History{{File: in.name, Format: polysiFormat, DB: record.DefaultDB,
		Header: record.Header{Initial: new(record.InitialZero)}, Records: p.pack()}}, nil
}

// add takes in a line.
func (p *polysi) add(op polysiOp) *reject.Error {
	place, known := p.place, true
	switch {
	case op.txn == polysiAborted:
		if op.kind == record.Read {
			return nil
		}
		place, known = p.aborted[op.session]
	case op.txn != p.last.txn:
		place, known = p.of[op.txn]
	}
	if op.txn != polysiAborted && len(p.aborted) > 0 {
		delete(p.aborted, op.session)
	}
	if !known {
		place = p.begin(op)
	} else if was := p.txns[place].session; was != op.session {
		return reject.In("session", reject.BadStructure, "transaction %d is of session %d already, not of session %d", op.txn,
			was, op.session)
	}
	p.scattered = p.scattered || place < len(p.txns)-1
	p.last, p.place = op, place
	op.txn = int64(place)
	p.txns[place].ops++
	if n := len(p.ops); n == 0 || len(p.ops[n-1]) == polysiPage {
		p.ops = append(p.ops, make([]polysiOp, 0, polysiPage))
	}
	last := &p.ops[len(p.ops)-1]
	*last = append(*last, op)
	return nil
}

// begin makes a new transaction.
func (p *polysi) begin(op polysiOp) int {
	place := len(p.txns)
	p.seqs[op.session]++
	p.txns = append(p.txns, polysiTxn{number: op.txn, session: op.session, seq: p.seqs[op.session]})
	if op.txn == polysiAborted {
		p.aborted[op.session] = place
	} else {
		p.of[op.txn] = place
	}
	return place
}

// order is, where the lines of some transaction are scattered, the places of all operations so that
// those of each transaction stand together.
func (p *polysi) order() []uint32 {
	if !p.scattered {
		return nil
	}
	next := make([]int, len(p.txns)) // by transaction, where its next operation goes
	n := 0
	for t := range p.txns {
		next[t] = n
		n += p.txns[t].ops
	}
	order := make([]uint32, n)
	for i := range n {
		t := p.op(i).txn
		order[next[t]] = uint32(i)
		next[t]++
	}
	return order
}

func (p *polysi) op(i int) *polysiOp { return &p.ops[i/polysiPage][i%polysiPage] }

// pack makes records. A transaction of the file's own keeps its number in its id: t8; an aborted one,
// which has none, is s3#17.
func (p *polysi) pack() *packed.Records {
	var b packed.Builder
	var session, id, key []byte
	order, at := p.order(), 0
	for i := range p.txns {
		t := &p.txns[i]
		session = strconv.AppendInt(append(session[:0], 's'), t.session, 10)
		h := packed.Head{DB: []byte(record.DefaultDB), Session: session, Seq: int64(t.seq), HasSeq: true, SeqID: true}
		if t.number == polysiAborted {
			h.Status = record.Aborted
		} else {
			id = strconv.AppendInt(append(id[:0], 't'), t.number, 10)
			h.ID, h.SeqID = id, false
		}
		c := b.Chunk()
		c.Begin(&h)
		for range t.ops {
			op := p.op(at)
			if order != nil {
				op = p.op(int(order[at]))
			}
			at++
			key = op.key.append(key[:0])
			switch v := op.value; {
			case v.negative, v.n <= math.MaxInt64:
				c.Int(op.kind, key, v.signed())
			default:
				c.Op(&record.Op{Kind: op.kind, Key: string(key),
					Value: record.Value{Kind: record.KindNumber, Text: string(v.append(nil))}})
			}
		}
		c.End()
	}
	return b.Records()
}

func (n polysiNumber) append(to []byte) []byte {
	if n.negative {
		to = append(to, '-')
	}
	return strconv.AppendUint(to, n.n, 10)
}
