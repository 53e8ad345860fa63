package packed

import (
	"iter"
	"sort"
	"strings"
	"sync"

	"github.com/isowatch/isowatch/ingest/record"
)

// block are consecutive records. The strings of a record that is taken out keep
// data alive.
type block struct {
	data  string
	marks []mark
	names []uint32 // within the history, by the number within the block
	first int      // the number of the first record
}

// Records are packed records, numbered from 0. Reading them is safe for
// concurrent use.
type Records struct {
	names   []string
	blocks  []block
	summary Summary
}

// Summary says what the records hold altogether.
type Summary struct {
	Records, Operations int
	Sessions            int
	Keys                int // the tables of predicates included
	// Missing is how many records are missing inside sessions, by seq: what lies
	// between one record with a seq and the next of its session.
	Missing int64
	// Regular tells that every record's ID is SESSION#SEQ, that every session's
	// seqs increase, and that there is one DB: IDs are unique then, because the
	// last # of an ID splits it in one way.
	Regular bool
}

// Builder joins blocks. The zero Builder is ready. It is for one goroutine.
type Builder struct {
	names    names
	blocks   []block
	summary  Summary
	last     map[uint32]int64 // the last seq, by session
	notOrder bool             // the records are not regular
	open     Chunk            // of Add
}

// blockSize is when Add seals a block, in bytes.
const blockSize = 128 << 10

// Add adds a record after all that were added or appended before.
func (b *Builder) Add(t *record.Transaction) {
	if b.open.Add(t); b.open.Size() >= blockSize {
		b.Append(b.open.Seal())
	}
}

// Append joins a block. O(names + records) of it. Append nothing between one Add and
// Records.
func (b *Builder) Append(in *Block) {
	if len(in.heads) == 0 {
		return
	}
	out := in.block
	out.first = b.summary.Records
	out.names = make([]uint32, len(in.names))
	// The table is far larger than any cache. In a loop of its own this look at it
	// waits for many names at once.
	for i := range in.names {
		out.names[i] = b.names.likely(in.names[i].hash)
	}
	from := 0
	for i := range in.names {
		e := &in.names[i]
		n, name := out.names[i], in.text[from:e.end]
		if n == none || b.names.list[n] != name {
			n = b.names.number(name, e.hash)
		}
		from = e.end
		if e.isKey && b.names.kinds[n]&ofKey == 0 {
			b.names.kinds[n] |= ofKey
			b.summary.Keys++
		}
		out.names[i] = n
	}
	if len(b.blocks) > 0 && b.blocks[0].names[0] != out.names[0] {
		b.notOrder = true // another DB
	}
	b.blocks = append(b.blocks, out)
	b.summary.Records += len(in.heads)
	b.summary.Operations += in.ops
	b.follow(in.heads, out.names)
}

// follow looks at the sessions.
func (b *Builder) follow(heads []head, names []uint32) {
	if b.last == nil {
		b.last = map[uint32]int64{}
	}
	for i := range heads {
		h := &heads[i]
		session := names[h.session]
		if b.names.kinds[session]&ofSession == 0 {
			b.names.kinds[session] |= ofSession
			b.summary.Sessions++
		}
		b.notOrder = b.notOrder || !h.regular
		if !h.hasSeq {
			continue
		}
		if last, known := b.last[session]; known {
			b.notOrder = b.notOrder || h.seq <= last
			if h.seq > last && h.seq-last > 1 {
				b.summary.Missing += h.seq - last - 1
			}
		}
		b.last[session] = h.seq
	}
}

// Records are all that was added and appended; the Builder is empty again.
func (b *Builder) Records() *Records {
	if b.open.Len() > 0 {
		b.Append(b.open.Seal())
	}
	b.summary.Regular = !b.notOrder
	out := &Records{names: b.names.list, blocks: b.blocks, summary: b.summary}
	*b = Builder{}
	return out
}

// Of packs records.
func Of(txns []record.Transaction) *Records {
	var b Builder
	for i := range txns {
		b.Add(&txns[i])
	}
	return b.Records()
}

// Len is how many records there are.
func (r *Records) Len() int { return r.summary.Records }

// Summary is what they hold altogether.
func (r *Records) Summary() Summary { return r.summary }

// Bytes is about how much memory they take.
func (r *Records) Bytes() int64 {
	n := int64(16 * len(r.names))
	for _, s := range r.names {
		n += int64(len(s))
	}
	for i := range r.blocks {
		b := &r.blocks[i]
		n += int64(len(b.data) + 16*len(b.marks) + 4*len(b.names))
	}
	return n
}

// At takes out the i-th record. Nothing of it is shared with another call but
// strings. O(log of all, size of the record), and a few records are passed over.
func (r *Records) At(i int) record.Transaction {
	at := sort.Search(len(r.blocks), func(n int) bool { return r.blocks[n].first > i }) - 1
	b := &r.blocks[at]
	i -= b.first
	m := b.marks[sort.Search(len(b.marks), func(n int) bool { return b.marks[n].record > i })-1]
	u := unpacker{names: r.names, block: b, p: m.at}
	for range i - m.record {
		u.next()
	}
	u.ops = nil // those passed over used it
	u.next()
	if u.seqID {
		u.t.ID = string(sequenceID(nil, u.t.Session, u.t.Seq))
	}
	if len(u.t.Ops) == 0 {
		u.t.Ops = nil
	}
	return u.t
}

// All takes out one record after the other. The record and its operations are
// overwritten by the next one; its strings are not.
func (r *Records) All() iter.Seq2[int, *record.Transaction] {
	return func(yield func(int, *record.Transaction) bool) {
		u := unpacker{names: r.names}
		i := 0
		for n := range r.blocks {
			u.block, u.p = &r.blocks[n], 0
			marks := u.block.marks
			for u.p < len(u.block.data)-padding {
				if len(marks) > 0 && marks[0].at == u.p {
					u.lastInt, u.lastStart = 0, 0
					marks = marks[1:]
				}
				u.next()
				u.identify()
				if !yield(i, &u.t) {
					return
				}
				i++
			}
		}
	}
}

// Numbered takes out one record after the other as All does, but without making
// IDs, and with the numbers of its operations' keys: equal ones for equal keys,
// and less than Names. Both are good until the next record. A goroutine takes the
// records of the next block out meanwhile; it ends with the loop.
func (r *Records) Numbered() iter.Seq2[*record.Transaction, []uint32] {
	return func(yield func(*record.Transaction, []uint32) bool) {
		full, free, done := make(chan *unpacked, 1), make(chan *unpacked, 2), make(chan struct{})
		var ahead sync.WaitGroup
		defer ahead.Wait()
		defer close(done)
		ahead.Go(func() { r.unpackAhead(full, free, done) })
		free <- &unpacked{}
		free <- &unpacked{}
		for u := range full {
			from := 0
			for i := range u.txns {
				t := &u.txns[i]
				if !yield(t, u.keys[from:from+len(t.Ops)]) {
					return
				}
				from += len(t.Ops)
			}
			free <- u
		}
	}
}

// unpacked is a block's records, without IDs.
type unpacked struct {
	txns []record.Transaction
	ops  []record.Op
	keys []uint32
}

// unpackAhead takes out block after block, into what is free, until done.
func (r *Records) unpackAhead(full chan<- *unpacked, free <-chan *unpacked, done <-chan struct{}) {
	defer close(full)
	for n := range r.blocks {
		select {
		case u := <-free:
			r.unpack(n, u)
			select {
			case full <- u:
			case <-done:
				return
			}
		case <-done:
			return
		}
	}
}

// unpack takes out a block.
func (r *Records) unpack(n int, to *unpacked) {
	to.txns, to.ops, to.keys = to.txns[:0], to.ops[:0], to.keys[:0]
	u := unpacker{names: r.names, block: &r.blocks[n], numbered: true}
	marks := u.block.marks
	for u.p < len(u.block.data)-padding {
		if len(marks) > 0 && marks[0].at == u.p {
			u.lastInt, u.lastStart = 0, 0
			marks = marks[1:]
		}
		u.next()
		to.txns = append(to.txns, u.t)
		to.ops = append(to.ops, u.ops...)
		to.keys = append(to.keys, u.keys...)
	}
	from := 0
	for i := range to.txns { // ops does not move any more
		t := &to.txns[i]
		t.Ops = to.ops[from : from+len(t.Ops) : from+len(t.Ops)]
		from += len(t.Ops)
	}
}

// Names is how many names the records have, of keys and others.
func (r *Records) Names() int { return len(r.names) }

// Transactions takes out all of them.
func (r *Records) Transactions() []record.Transaction {
	out := make([]record.Transaction, 0, r.Len())
	ops := make([]record.Op, 0, r.summary.Operations)
	for _, t := range r.All() {
		out = append(out, *t)
		last := &out[len(out)-1]
		if len(t.Ops) == 0 {
			last.Ops = nil
			continue
		}
		from := len(ops)
		ops = append(ops, t.Ops...)
		last.Ops = ops[from:len(ops):len(ops)]
	}
	return out
}

// unpacker reads a block from p on.
type unpacker struct {
	names []string
	block *block
	p     int

	t                  record.Transaction
	ops                []record.Op
	seqID              bool // the ID of t is SESSION#SEQ, and not yet made
	lastInt, lastStart int64
	ids                strings.Builder // that IDs are cut from
	numbered           bool            // keys are wanted
	keys               []uint32        // numbers of the operations' keys
}

// idsBlock is how many bytes IDs are cut from at once.
const idsBlock = 4 << 10

// next reads a record but its ID, if that has to be made.
func (u *unpacker) next() {
	t := &u.t
	flags := u.block.data[u.p]
	u.p++
	*t = record.Transaction{Status: record.Status(flags & 3), HasSeq: flags&flagSeq != 0, HasTimes: flags&flagTimes != 0}
	db := uint64(0)
	if flags&flagDB != 0 {
		db = u.uint()
	}
	t.DB = u.name(db)
	t.Session = u.name(u.uint())
	if flags&(flagSeq|flagIdle) != 0 {
		t.Seq = u.int()
	}
	u.seqID = flags&flagID == 0
	if !u.seqID {
		t.ID = u.text()
	}
	if flags&(flagTimes|flagIdle) != 0 {
		t.Start = u.lastStart + u.int()
		t.End = t.Start + u.int()
		u.lastStart = t.Start
	}
	u.operations()
}

// operations reads those of the record.
func (u *unpacker) operations() {
	data, names, ops := u.block.data, u.block.names, u.ops[:0]
	u.keys = u.keys[:0]
	for {
		first := data[u.p]
		u.p++
		if first == opsEnd {
			break
		}
		if len(ops) == cap(ops) {
			ops = append(ops, record.Op{})
		} else {
			ops = ops[:len(ops)+1]
		}
		op := &ops[len(ops)-1]
		k := uint32(data[u.p]) | uint32(data[u.p+1])<<8
		if u.p += 2; k == wide {
			k = uint32(load(data, u.p))
			u.p += 4
		}
		*op = record.Op{Key: u.names[names[k]]}
		if u.numbered {
			u.keys = append(u.keys, names[k])
		}
		if first&flagInt != 0 {
			op.Kind = record.OpKind(first >> intShift & 7)
			size := int(first & (1<<intShift - 1))
			u.lastInt += unzigzag(load(data, u.p) & (1<<(8*size) - 1))
			u.p += size
			op.Value = record.Value{Kind: record.KindInt, Num: u.lastInt}
			continue
		}
		op.Kind = record.OpKind(first & 7)
		op.Value.Kind = record.ValueKind(first >> valueShift & 7)
		switch op.Value.Kind {
		case record.KindNull:
		case record.KindInt:
			u.lastInt += u.int()
			op.Value.Num = u.lastInt
		default:
			op.Value.Text = u.text()
		}
		if first&flagWhere != 0 {
			op.Where = u.text()
		}
	}
	u.ops, u.t.Ops = ops, ops
}

// identify makes the ID of the record if it is SESSION#SEQ, cut from a block of
// many.
func (u *unpacker) identify() {
	if !u.seqID {
		return
	}
	var room [64]byte
	id := sequenceID(room[:0], u.t.Session, u.t.Seq)
	if u.ids.Cap()-u.ids.Len() < len(id) {
		u.ids = strings.Builder{}
		u.ids.Grow(max(idsBlock, len(id)))
	}
	// A Builder never rewrites what it holds, and within its capacity never moves it.
	from := u.ids.Len()
	u.ids.Write(id)
	u.t.ID = u.ids.String()[from:]
}

func (u *unpacker) name(n uint64) string { return u.names[u.block.names[n]] }

// uint reads an unsigned varint.
func (u *unpacker) uint() uint64 {
	data, p := u.block.data, u.p
	if c := data[p]; c < 0x80 {
		u.p = p + 1
		return uint64(c)
	}
	var n uint64
	for shift := uint(0); ; shift += 7 {
		c := data[p]
		p++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			u.p = p
			return n
		}
	}
}

// int reads a signed one.
func (u *unpacker) int() int64 {
	return unzigzag(u.uint())
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// load are the 8 bytes at p, the least significant first.
func load(data string, p int) uint64 {
	s := data[p : p+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// text reads a text, which is a part of the block.
func (u *unpacker) text() string {
	n := int(u.uint())
	u.p += n
	return u.block.data[u.p-n : u.p]
}
