package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
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
	d.take(dbcopFixed)
	for i := range 3 {
		text := d.str()
		_, err := time.Parse(time.RFC3339Nano, text)
		if d.err != nil || !utf8.ValidString(text) || i > 0 && err != nil {
			return false
		}
	}
	return true
}

// dbcop reads on after an error, which stays the first, zeros and without a session, transaction or event more.
type dbcop struct {
	builder
	in     *input
	r      *bufio.Reader
	offset int64
	doomed []int // the failed ones of the operations at hand
	err    error
}

func readDbcop(in *input) ([]History, error) {
	d := dbcop{builder: newBuilder(), in: in, r: in.r}
	txns := d.history()
	if errors.Is(d.err, io.ErrUnexpectedEOF) && reject.From(d.err) == nil { // a short read
		e := in.reject(reject.Truncated, "the history ends in the middle")
		e.Field = fmt.Sprintf("byte %d", d.offset)
		d.err = e
	}
	if d.err != nil {
		return nil, d.err
	}
	return one(d.made(in.name, dbcopFormat, record.InitialZero, txns, noTransaction))
}

func (d *dbcop) bad(at string, format string, args ...any) {
	if d.err == nil {
		e := d.in.reject(reject.BadStructure, format, args...)
		e.Pos.Offset, e.Field = d.offset, at
		d.err = e
	}
}

func (d *dbcop) history() []record.Transaction {
	fixed := d.take(dbcopFixed)
	nodes, perNode := binary.LittleEndian.Uint64(fixed[8:]), binary.LittleEndian.Uint64(fixed[24:])
	for range 3 {
		d.str()
	}
	// What the head says of the size is a hint, believed within bounds.
	const hintMax = 1 << 16
	txns := make([]record.Transaction, 0, min(min(nodes, hintMax)*min(perNode, hintMax), hintMax))
	for s := range d.each() {
		session := d.session(s)
		for t := range d.each() {
			txns = append(txns, d.transaction(session, t))
		}
	}
	if d.err != nil {
		return nil
	}
	if _, err := d.r.Peek(1); isReadError(err) {
		d.err = err
	} else if err != io.EOF {
		d.bad(fmt.Sprintf("byte %d", d.offset), "something follows the last session")
	}
	return txns
}

func (d *dbcop) transaction(session string, t uint64) record.Transaction {
	d.ops, d.doomed = d.ops[:0], d.doomed[:0]
	for e := range d.each() {
		b := d.take(dbcopEvent)
		if b[0] > 1 || b[17] > 1 {
			d.bad(fmt.Sprintf("%s#%d, event %d", session, t+1, e+1), "a flag is %d or %d, neither 0 nor 1", b[0], b[17])
		}
		kind, failed := record.OpKind(b[0]), b[17] == 0 // record.Read and record.Write
		if failed {
			d.doomed = append(d.doomed, len(d.ops))
		}
		d.op(kind, binary.LittleEndian.Uint64(b[1:]), d.value(binary.LittleEndian.Uint64(b[9:])))
	}
	flag := d.take(1)[0]
	if flag > 1 {
		d.bad(fmt.Sprintf("%s#%d", session, t+1), "the success of the transaction is %d, neither 0 nor 1", flag)
	}
	status := either(flag == 1, record.Committed, record.Aborted)
	d.drop(status)
	return d.builder.transaction(session, int(t)+1, status)
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
func (d *dbcop) take(n int) []byte {
	if d.err != nil {
		return make([]byte, n)
	}
	b, err := d.r.Peek(n)
	if err != nil {
		d.err = either(err == io.EOF, io.ErrUnexpectedEOF, err)
		return make([]byte, n)
	}
	d.offset += int64(n)
	_, d.err = d.r.Discard(n)
	return b
}

func (d *dbcop) count() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

// each counts the elements of a vector, up to the first error.
func (d *dbcop) each() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		n := d.count()
		for i := uint64(0); i < n && d.err == nil && yield(i); i++ {
		}
	}
}

func (d *dbcop) str() string {
	n := d.count()
	if n > dbcopTextMax {
		d.bad(fmt.Sprintf("byte %d", d.offset-8), "a text of the head has %d bytes", n)
		return ""
	}
	return string(d.take(int(n)))
}
