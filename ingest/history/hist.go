package history

import (
	"bytes"
	"regexp"

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
var looksHist = begins(`^(?:\s*(?://[^\n]*|-+[ \t\r]*)\n)*\s*\[[ \t]*[\pL\p{Nd}_]+(?::=[0-9]+|==(?:\?|[0-9]+))[ \t\]]`)

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
		for rest := line; len(rest) > 0 && !bytes.HasPrefix(rest, []byte("//")); rest = bytes.TrimLeft(rest, " \t") {
			if rest[0] != '[' {
				return reject.New(reject.ForeignBytes,
					"want a transaction in [ ], a comment behind //, or a line of dashes, not %.40q", rest)
			}
			rest = bytes.TrimLeft(rest[1:], " \t")
			for !bytes.HasPrefix(rest, []byte("]")) {
				op, name, after, err := b.histEvent(rest)
				if err != nil {
					return err
				}
				key, known := names[string(name)]
				if !known {
					key = b.texts.String(name)
					names[key] = key
				}
				op.Key, rest = key, after
				b.ops = append(b.ops, op)
			}
			status := record.Committed
			if rest = rest[1:]; bytes.HasPrefix(rest, []byte("!")) {
				status, rest = record.Aborted, rest[1:]
			}
			seq++
			txns = append(txns, b.transaction(b.session(session), seq, status))
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

// histParts are those of an event: the variable, the operator, the version, and the blanks behind it.
var histParts = regexp.MustCompile(`^([\pL\p{Nd}_]*)(:=|==)?(\?|[0-9]*)([ \t]*)`)

// histEvent takes an event off the front of a line. Its key is left open, as the name is a part of the line.
func (m *builder) histEvent(line []byte) (op record.Op, name, rest []byte, err *reject.Error) {
	parts := histParts.FindSubmatch(line)
	name, rest = parts[1], line[len(parts[0]):]
	if string(parts[2]) == ":=" {
		op.Kind = record.Write
	}
	switch {
	case len(line) == 0:
		err = reject.New(reject.Truncated, "the transaction is not closed on its line: a ] is missing")
	case len(name) == 0:
		err = reject.New(reject.BadStructure, "want an event, such as x:=1, x==1 or x==?, not %.40q", line)
	case len(parts[2]) == 0:
		err = reject.New(reject.BadStructure, "want := (a write) or == (a read) behind the variable %.40s, not %.40q", name,
			line[len(name):])
	case op.Kind == record.Write || string(parts[3]) != "?":
		var n uint64
		n, err = unsigned("version of "+string(name[:min(len(name), 40)]), parts[3])
		op.Value = m.value(n)
	}
	if err == nil && len(parts[4]) == 0 && len(rest) > 0 && rest[0] != ']' {
		err = reject.New(reject.BadStructure, "want a blank or ] behind an event, not %.40q", rest)
	}
	return op, name, rest, err
}
