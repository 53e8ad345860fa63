package history

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// dbcop's text for people, .hist:
//
//	// a comment
//	[x:=1 y==?] [x==1]!
//	---
//	[y:=2]
//
// A transaction stands in brackets, with ! behind it if it did not commit; x:=1
// writes, x==1 reads, x==? reads a key that nobody has written. A line of dashes
// begins the next session.
//
// A version is never what a key holds at first, with one exception: x==0 reads
// the initial state unless a committed transaction writes x:=0 (see zeroIsInitial).

const histFormat = "dbcop-hist"

// looksHist recognises the first transaction, whatever comments and separators
// stand before it.
func looksHist(head []byte) bool {
	for len(head) > 0 {
		line := firstLine(head)
		switch {
		case len(line) == 0:
			return false
		case line[0] == '[':
			p := histParser{line: line}
			if p.bracket() != nil {
				return false
			}
			_, _, _, err := p.event()
			return err == nil
		case !isDashes(line) && !bytes.HasPrefix(line, []byte("//")):
			return false
		}
		_, head, _ = bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n"), newline)
	}
	return false
}

func isDashes(line []byte) bool { return len(bytes.Trim(line, "-")) == 0 }

func readHist(in *input) ([]History, error) {
	b := newBuilder()
	names := map[string]string{}
	var txns []record.Transaction
	session, seq := uint64(0), 0
	err := in.lines(in.opt.RecordMax, func(line []byte, _, _ int64) *reject.Error {
		if isDashes(line) {
			session, seq = session+1, 0
			return nil
		}
		p := histParser{line: line}
		for p.more() {
			if err := p.bracket(); err != nil {
				return err
			}
			for !p.closed() {
				kind, name, value, err := p.event()
				if err != nil {
					return err
				}
				key, known := names[string(name)]
				if !known {
					key = b.texts.String(name)
					names[key] = key
				}
				v := record.Null
				if value != nil {
					v = b.value(*value)
				}
				b.ops = append(b.ops, record.Op{Kind: kind, Key: key, Value: v})
			}
			seq++
			txns = append(txns, b.transaction(b.session(session), seq, p.status()))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	zeroIsInitial(txns)
	return one(b.made(in.name, histFormat, record.InitialAbsent, txns, "there is no transaction in the file"))
}

// zeroIsInitial makes reads of version 0 reads of the initial state, unless a
// committed transaction writes version 0 to the same key. With dbcop's versions 0 is
// what a counter stands at before the first write, unless somebody says otherwise.
func zeroIsInitial(txns []record.Transaction) {
	written := committedZeros(txns)
	for i := range txns {
		for j := range txns[i].Ops {
			if op := &txns[i].Ops[j]; op.Kind == record.Read && op.Value == record.Int(0) && !written[op.Key] {
				op.Value = record.Null
			}
		}
	}
}

// committedZeros are the keys to which a transaction that committed writes 0.
func committedZeros(txns []record.Transaction) map[string]bool {
	out := map[string]bool{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Write && op.Value == record.Int(0) && txns[i].Status == record.Committed {
				out[op.Key] = true
			}
		}
	}
	return out
}

// histParser takes a line of transactions apart.
type histParser struct {
	line []byte
	p    int
}

func (p *histParser) blanks() {
	for p.p < len(p.line) && (p.line[p.p] == ' ' || p.line[p.p] == '\t') {
		p.p++
	}
}

func (p *histParser) rest() []byte { return p.line[p.p:] }

// more tells whether something follows that is no comment.
func (p *histParser) more() bool {
	p.blanks()
	return p.p < len(p.line) && !bytes.HasPrefix(p.rest(), []byte("//"))
}

func (p *histParser) bracket() *reject.Error {
	if p.p >= len(p.line) || p.line[p.p] != '[' {
		return reject.New(reject.ForeignBytes,
			"want a transaction in [ ], a comment behind //, or a line of dashes, not %.40q", p.rest())
	}
	p.p++
	p.blanks()
	return nil
}

// closed takes the bracket that ends a transaction, if it is there.
func (p *histParser) closed() bool {
	if p.p < len(p.line) && p.line[p.p] == ']' {
		p.p++
		return true
	}
	return false
}

func (p *histParser) status() record.Status {
	if p.p < len(p.line) && p.line[p.p] == '!' {
		p.p++
		return record.Aborted
	}
	return record.Committed
}

// event takes one event and the blanks behind it; value is nil for ==?.
func (p *histParser) event() (kind record.OpKind, name []byte, value *uint64, err *reject.Error) {
	from := p.p
	for p.p < len(p.line) {
		r, size := utf8.DecodeRune(p.rest())
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == utf8.RuneError {
			break
		}
		p.p += size
	}
	if name = p.line[from:p.p]; len(name) == 0 {
		if len(p.rest()) == 0 {
			return 0, nil, nil, reject.New(reject.Truncated, "the transaction is not closed on its line: a ] is missing")
		}
		return 0, nil, nil, reject.New(reject.BadStructure, "want an event, such as x:=1, x==1 or x==?, not %.40q", p.rest())
	}
	switch {
	case bytes.HasPrefix(p.rest(), []byte(":=")):
		kind = record.Write
	case bytes.HasPrefix(p.rest(), []byte("==")):
	default:
		return 0, nil, nil, reject.New(reject.BadStructure,
			"want := (a write) or == (a read) behind the variable %.40s, not %.40q", name, p.rest())
	}
	p.p += 2
	if kind == record.Read && p.p < len(p.line) && p.line[p.p] == '?' {
		p.p++
	} else {
		from = p.p
		for p.p < len(p.line) && '0' <= p.line[p.p] && p.line[p.p] <= '9' {
			p.p++
		}
		n, err := unsigned("version of "+string(name[:min(len(name), 40)]), p.line[from:p.p])
		if err != nil {
			return 0, nil, nil, err
		}
		value = &n
	}
	before := p.p
	p.blanks()
	if p.p == before && p.p < len(p.line) && p.line[p.p] != ']' {
		return 0, nil, nil, reject.New(reject.BadStructure, "want a blank or ] behind an event, not %.40q", p.rest())
	}
	return kind, name, value, nil
}
