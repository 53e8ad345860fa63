package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// AWDIT's test histories: an operation a line, "r KEY VALUE" or "w KEY VALUE";
// runs of = part sessions, runs of - part the transactions of a session, and
// pieces without an operation do not count.
//
// There is no initial state: a history that needs one spells it out as a
// transaction. So unwritten keys are absent here, and as no operation can say so,
// a read of what nobody wrote is a read out of thin air, as it is for AWDIT.

const awditFormat = "awdit-test"

// looksAwdit recognises the first operation, whatever separators stand before it.
var looksAwdit = begins(`^[=\-\s]*[rw][ \t]+[0-9]+[ \t]+[0-9]+[ \t\r]*(?:\n|$)`)

func readAwdit(in *input) ([]History, error) {
	a := awdit{builder: newBuilder()}
	err := in.lines(in.opt.RecordMax, func(line []byte, _, _ int64) *reject.Error {
		for len(line) > 0 {
			// A separator may follow an operation on its line.
			at := bytes.IndexAny(line, "=-")
			if at != 0 {
				piece := line
				if at > 0 {
					piece = line[:at]
				}
				line = line[len(piece):]
				if piece = bytes.TrimSpace(piece); len(piece) == 0 {
					continue
				}
				kind, key, value, err := parseAwdit(piece)
				if err != nil {
					return err
				}
				a.op(kind, key, a.value(value))
				continue
			}
			a.endTransaction()
			if line[0] == '=' && a.seq > 0 {
				a.session, a.seq = a.session+1, 0
			}
			line = line[1:]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.endTransaction()
	return one(a.made(in.name, awditFormat, record.InitialAbsent, a.txns, "there is no operation in the file"))
}

// awdit gathers lines into transactions.
type awdit struct {
	builder
	txns    []record.Transaction
	session uint64 // number of the session at hand
	seq     int    // transactions that it has
}

func (a *awdit) endTransaction() {
	if len(a.ops) > 0 {
		a.seq++
		a.txns = append(a.txns, a.transaction(a.builder.session(a.session), a.seq, record.Committed))
	}
}

func parseAwdit(line []byte) (kind record.OpKind, key, value uint64, err *reject.Error) {
	f := bytes.Fields(line)
	switch {
	case len(f) > 0 && string(f[0]) == "r":
	case len(f) > 0 && string(f[0]) == "w":
		kind = record.Write
	default:
		return 0, 0, 0, reject.New(reject.ForeignBytes, "want r KEY VALUE or w KEY VALUE, not %.40q", line)
	}
	if len(f) != 3 {
		return 0, 0, 0, reject.New(reject.WrongLength, "an operation is r or w, a key and a value, not %.40q", line)
	}
	if key, err = unsigned("key", f[1]); err == nil {
		value, err = unsigned("value", f[2])
	}
	return kind, key, value, err
}

// unsigned takes an unsigned decimal number of 64 bits.
func unsigned(field string, text []byte) (uint64, *reject.Error) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, reject.In(field, reject.OutOfRange, "%.40s does not fit 64 bits", text)
	case err != nil:
		return 0, reject.In(field, reject.WrongType, "want an unsigned integer, not %.40q", text)
	}
	return n, nil
}

// lines hands out the lines of a text that are not blank, without the blanks
// around them, and where they are; it puts the errors that take returns at their lines. A
// line has at most longest bytes.
func (in *input) lines(longest int, take func(line []byte, number, offset int64) *reject.Error) error {
	return in.rawLines(longest, func(line []byte, number, offset int64) *reject.Error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		return take(line, number, offset)
	})
}

// rawLines is lines with blanks, and with lines that are blank.
func (in *input) rawLines(longest int, take func(line []byte, number, offset int64) *reject.Error) error {
	lines := bufio.NewScanner(in.r)
	lines.Buffer(make([]byte, min(longest, readBuffer)), longest)
	number, offset := int64(0), int64(0)
	for lines.Scan() {
		number++
		line := lines.Bytes()
		at := offset
		offset += int64(len(line)) + 1
		if number == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if err := take(line, number, at); err != nil {
			return in.at(err, number, at)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return in.at(reject.New(reject.TooLarge, "the line has more than %d bytes%s", longest,
			either(longest == in.opt.RecordMax, ", the limit of a record", "")), number+1, offset)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
