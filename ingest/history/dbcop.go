package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// dbcop's histories, in bincode: little-endian, fixed width, no magic number.
//
//	history := id n_node n_variable n_transaction n_event   (u64 each)
//	           info:str start:str end:str  vec<session>
//	str     := length:u64 bytes          vec<T> := count:u64 T…
//	session := vec<txn>
//	txn     := vec<event> success:u8
//	event   := write:u8 variable:u64 value:u64 success:u8
//
// info names the database; start and end are the run's, RFC 3339.

const (
	dbcopFormat  = "dbcop-bincode"
	dbcopFixed   = 5 * 8
	dbcopEvent   = 1 + 8 + 8 + 1
	dbcopTextMax = 1 << 10 // of info, start and end; real ones have some tens of bytes
)

// looksDbcop recognises the three texts, of which two are times.
func looksDbcop(head []byte) bool {
	d := dbcop{in: &input{}, r: bufio.NewReader(bytes.NewReader(head))}
	if _, err := d.take(dbcopFixed); err != nil {
		return false
	}
	for i := range 3 {
		text, err := d.str()
		if err != nil || !utf8.ValidString(text) {
			return false
		}
		if i == 0 {
			continue
		}
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			return false
		}
	}
	return true
}

type dbcop struct {
	builder
	in     *input
	r      *bufio.Reader
	offset int64
	doomed []int // the failed ones of the operations at hand
}

func readDbcop(in *input) ([]History, error) {
	d := dbcop{builder: newBuilder(), in: in, r: in.r}
	txns, err := d.history()
	if err != nil {
		return nil, d.explain(err)
	}
	return one(d.made(in.name, dbcopFormat, record.InitialZero, txns, noTransaction))
}

// explain gives a short read its reason.
func (d *dbcop) explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && reject.From(err) == nil {
		e := d.in.reject(reject.Truncated, "the history ends in the middle")
		e.Field = fmt.Sprintf("byte %d", d.offset)
		return e
	}
	return err
}

func (d *dbcop) bad(at string, format string, args ...any) error {
	e := d.in.reject(reject.BadStructure, format, args...)
	e.Pos.Offset, e.Field = d.offset, at
	return e
}

func (d *dbcop) history() ([]record.Transaction, error) {
	fixed, err := d.take(dbcopFixed)
	if err != nil {
		return nil, err
	}
	nodes, perNode := binary.LittleEndian.Uint64(fixed[8:]), binary.LittleEndian.Uint64(fixed[24:])
	for range 3 {
		if _, err := d.str(); err != nil {
			return nil, err
		}
	}
	// What the head says of the size is a hint, believed within bounds.
	const hintMax = 1 << 16
	txns := make([]record.Transaction, 0, min(min(nodes, hintMax)*min(perNode, hintMax), hintMax))
	sessions, err := d.count()
	if err != nil {
		return nil, err
	}
	for s := range sessions {
		count, err := d.count()
		if err != nil {
			return nil, err
		}
		session := d.session(s)
		for t := range count {
			txn, err := d.transaction(session, t)
			if err != nil {
				return nil, err
			}
			txns = append(txns, txn)
		}
	}
	if _, err := d.r.Peek(1); err != io.EOF {
		if isReadError(err) {
			return nil, err
		}
		return nil, d.bad(fmt.Sprintf("byte %d", d.offset), "something follows the last session")
	}
	return txns, nil
}

func (d *dbcop) transaction(session string, t uint64) (record.Transaction, error) {
	events, err := d.count()
	if err != nil {
		return record.Transaction{}, err
	}
	d.ops, d.doomed = d.ops[:0], d.doomed[:0]
	for e := range events {
		b, err := d.take(dbcopEvent)
		if err != nil {
			return record.Transaction{}, err
		}
		if b[0] > 1 || b[17] > 1 {
			return record.Transaction{}, d.bad(fmt.Sprintf("%s#%d, event %d", session, t+1, e+1),
				"a flag is %d or %d, neither 0 nor 1", b[0], b[17])
		}
		kind, failed := record.OpKind(b[0]), b[17] == 0 // record.Read and record.Write
		if failed {
			d.doomed = append(d.doomed, len(d.ops))
		}
		d.op(kind, binary.LittleEndian.Uint64(b[1:]), d.value(binary.LittleEndian.Uint64(b[9:])))
	}
	flag, err := d.take(1)
	if err != nil {
		return record.Transaction{}, err
	}
	status := record.Aborted
	switch flag[0] {
	case 0:
	case 1:
		status = record.Committed
	default:
		return record.Transaction{}, d.bad(fmt.Sprintf("%s#%d", session, t+1),
			"the success of the transaction is %d, neither 0 nor 1", flag[0])
	}
	d.drop(status)
	return d.builder.transaction(session, int(t)+1, status), nil
}

// drop leaves out the failed operations of the transaction at hand. A failed write
// of an aborted transaction stays: it is an aborted write like the others.
func (d *dbcop) drop(status record.Status) {
	if len(d.doomed) == 0 {
		return
	}
	kept, next := d.ops[:0], 0
	for i, op := range d.ops {
		if next < len(d.doomed) && d.doomed[next] == i {
			next++
			if status == record.Committed || op.Kind == record.Read {
				d.left++
				continue
			}
		}
		kept = append(kept, op)
	}
	d.ops = kept
}

// take returns the next n bytes, valid until the next read.
func (d *dbcop) take(n int) ([]byte, error) {
	b, err := d.r.Peek(n)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	d.offset += int64(n)
	_, err = d.r.Discard(n)
	return b, err
}

func (d *dbcop) count() (uint64, error) {
	b, err := d.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (d *dbcop) str() (string, error) {
	n, err := d.count()
	if err != nil {
		return "", err
	}
	if n > dbcopTextMax {
		return "", d.bad(fmt.Sprintf("byte %d", d.offset-8), "a text of the head has %d bytes", n)
	}
	b, err := d.take(int(n))
	return string(b), err
}
