package history

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

const isowatchFormat = "isowatch"

// looksIsowatch recognises an object with one of a record's fields, or a header.
// Anything that is a line of JSON is taken for ours, so that what is wrong with it can be
// said by field; Jepsen's JSON is a list, or has "process" and "type".
func looksIsowatch(head []byte) bool {
	line := firstLine(head)
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	return codec.IsWorldEvent(line) || change.Is(line) || slices.ContainsFunc([]string{`"session"`, `"ops"`, `"db"`, `"history"`},
		func(field string) bool { return bytes.Contains(line, []byte(field)) })
}

// Reading is a pipeline: one goroutine unpacks and cuts the bytes into chunks
// of whole lines; a few decode them; the caller's takes the results in the
// order of the chunks, so that transactions and errors do not depend on who
// was faster. Unpacking is about as expensive as decoding, and there are two
// chunks per decoder on the way at most.
const chunkSize = 512 << 10

// chunk is some whole lines.
type chunk struct {
	data   []byte
	line   int64 // number of the first
	offset int64 // of the first
	first  bool  // nothing but blanks came before
	last   bool  // nothing comes after
	done   chan batch
}

// batch is what a chunk says.
type batch struct {
	records *packed.Part
	lines   []int64 // of the records
	events  []record.Event
	changes []change.Change
	header  *record.Header
	err     error
}

func readIsowatch(in *input) ([]History, error) {
	workers := min(runtime.GOMAXPROCS(0), 8)
	work := make(chan chunk, workers)         // to be decoded
	order := make(chan chan batch, 2*workers) // their results, in order
	free := make(chan []byte, 3*workers+2)    // buffers to use again
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer close(order)
		defer close(work)
		cut(in, work, order, free, quit)
	})
	for range workers {
		running.Go(func() {
			d := codec.New(codec.Options{SizeMax: in.opt.RecordMax})
			var records packed.Chunk
			for c := range work {
				c.done <- decode(in, d, c, &records)
				select {
				case free <- c.data:
				default:
				}
			}
		})
	}
	var all read
	var err error
	for done := range order {
		if err != nil {
			continue // only to let the others end
		}
		b := <-done
		if err = b.err; err == nil {
			err = all.add(b)
		}
		if err != nil {
			close(quit)
		}
	}
	running.Wait()
	if err != nil {
		return nil, err
	}
	return all.histories(in)
}

// cut reads all lines and hands them out in chunks.
func cut(in *input, work chan<- chunk, order chan<- chan batch, free <-chan []byte, quit <-chan struct{}) {
	line, offset := int64(1), int64(0)
	first := true
	put := func(done chan batch) bool {
		select {
		case order <- done:
			return true
		case <-quit:
			return false
		}
	}
	hand := func(c chunk) bool {
		c.done = make(chan batch, 1)
		if !put(c.done) {
			return false
		}
		work <- c // is being read from until it is closed
		return true
	}
	fail := func(err error) {
		done := make(chan batch, 1)
		done <- batch{err: err}
		put(done)
	}
	if mark, _ := in.r.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		n, _ := in.r.Discard(len(byteOrderMark))
		offset += int64(n)
	}
	var rest []byte // the beginning of a line that goes on
	for {
		buf := buffer(free, chunkSize+len(rest))
		n := copy(buf, rest)
		got, err := io.ReadFull(in.r, buf[n:cap(buf)])
		buf = buf[:n+got]
		atEnd := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !atEnd {
			// What came before is in order; the error comes after it.
			if whole := bytes.LastIndexByte(buf, '\n') + 1; whole > 0 &&
				!hand(chunk{data: buf[:whole], line: line, offset: offset, first: first}) {
				return
			}
			fail(err)
			return
		}
		end := len(buf)
		if !atEnd {
			end = bytes.LastIndexByte(buf, '\n') + 1
		}
		rest = append(rest[:0], buf[end:]...)
		c := chunk{data: buf[:end], line: line, offset: offset, first: first, last: atEnd}
		blank := len(bytes.TrimSpace(c.data)) == 0
		line += int64(bytes.Count(c.data, newline))
		offset += int64(end)
		if !blank {
			first = false
			if !hand(c) {
				return
			}
		}
		if atEnd {
			return
		}
		if len(rest) > in.opt.RecordMax {
			fail(in.at(reject.New(reject.TooLarge, "the line has more than %d bytes, the limit of a record", in.opt.RecordMax),
				line, offset))
			return
		}
	}
}

var newline = []byte{'\n'}

// buffer returns a used buffer that is large enough, or a new one.
func buffer(free <-chan []byte, size int) []byte {
	select {
	case b := <-free:
		if cap(b) >= size {
			return b[:cap(b)]
		}
	default:
	}
	return make([]byte, size+chunkSize/8) // so that it suits the next one too
}

// decode decodes the lines of a chunk into records, which is empty before and
// after.
func decode(in *input, d *codec.Decoder, c chunk, records *packed.Chunk) (b batch) {
	defer func() { b.records = records.Part() }()
	first := c.first
	data := c.data
	line, offset := c.line, c.offset
	for ; len(data) > 0; line++ {
		end := bytes.IndexByte(data, '\n')
		closed := end >= 0
		if !closed {
			end = len(data)
		}
		text := data[:end]
		at := offset
		if closed {
			end++
		}
		data, offset = data[end:], offset+int64(end)
		if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if first {
			first = false
			if codec.IsHeader(text) {
				h, err := codec.DecodeHeader(text)
				if err != nil {
					b.err = in.located(err, line, at)
					return b
				}
				b.header = &h
				continue
			}
		}
		if codec.IsWorldEvent(text) {
			e, err := codec.DecodeWorldEvent(text, 0)
			if err != nil {
				b.err = in.located(err, line, at)
				return b
			}
			b.events = append(b.events, e)
			continue
		}
		if change.Is(text) {
			c, ok, err := change.Decode(text)
			if err != nil {
				b.err = in.located(err, line, at)
				return b
			}
			if ok {
				b.changes = append(b.changes, c)
			}
			continue
		}
		if len(b.lines) == cap(b.lines) { // by the size of lines so far
			more := 1 + len(data)/max(64, int(offset-c.offset)/(len(b.lines)+1))
			b.lines = slices.Grow(b.lines, more+more/16)
		}
		if err := d.Pack(text, records); err != nil {
			e := reject.From(err)
			if e != nil && e.Reason == reject.BadJSON && c.last && !closed {
				e.Reason = reject.Truncated
				e.Detail += "; the input ends in this line"
			}
			b.err = in.located(err, line, at)
			return b
		}
		b.lines = append(b.lines, line)
	}
	return b
}

// located puts a decoder's error at its line.
func (in *input) located(err error, line, offset int64) error {
	if e := reject.From(err); e != nil {
		return in.at(e, line, offset)
	}
	return err
}

// read is what has been read.
type read struct {
	records packed.Builder
	lines   []int64
	events  []record.Event
	log     change.Book
	header  record.Header
}

func (r *read) add(b batch) error {
	r.records.Append(b.records)
	r.lines = append(r.lines, b.lines...)
	r.events = append(r.events, b.events...)
	if b.header != nil {
		r.header = *b.header
	}
	for _, c := range b.changes {
		if err := r.log.Add(c); err != nil {
			return err
		}
	}
	return nil
}

// histories makes a history per database, in the order of their first records.
// The usual file, whose ids are SESSION#SEQ and whose sessions are in order, needs
// no more than what reading it has shown.
func (r *read) histories(in *input) ([]History, error) {
	records := r.records.Records()
	if records.Len() == 0 {
		return nil, in.reject(reject.EmptyInput, "there is no transaction in the file")
	}
	for i, x := range records.Logged() {
		if x.LSN == 0 && x.XID != "" {
			x.LSN = r.log.LSN(records.At(i).DB, x.XID)
		}
	}
	if records.Summary().Regular {
		return []History{{File: in.name, Format: isowatchFormat, DB: records.At(0).DB, Header: r.header,
			Events: r.eventsOf(records.At(0).DB), Records: records}}, nil
	}
	txns := records.Transactions()
	places, sizes := map[string]int{}, []int{} // of the databases
	for i := range txns {
		p, known := places[txns[i].DB]
		if !known {
			p = len(sizes)
			places[txns[i].DB] = p
			sizes = append(sizes, 0)
		}
		sizes[p]++
	}
	parts := []lined{{txns, r.lines}}
	if len(sizes) > 1 {
		parts = make([]lined, len(sizes))
		for p, n := range sizes {
			parts[p] = lined{make([]record.Transaction, 0, n), make([]int64, 0, n)}
		}
		for i := range txns {
			part := &parts[places[txns[i].DB]]
			part.txns, part.lines = append(part.txns, txns[i]), append(part.lines, r.lines[i])
		}
	}
	out := make([]History, len(parts))
	for i := range parts {
		duplicates, err := parts[i].order(in)
		if err != nil {
			return nil, err
		}
		txns := parts[i].txns
		out[i] = History{File: in.name, Format: isowatchFormat, DB: txns[0].DB, Header: r.header,
			Events: r.eventsOf(txns[0].DB), Transactions: txns, Duplicates: duplicates}
	}
	return out, nil
}

// eventsOf are those that are not about another database.
func (r *read) eventsOf(db string) (out []record.Event) {
	for _, e := range r.events {
		if e.DB == "" || e.DB == db {
			out = append(out, e)
		}
	}
	return out
}
