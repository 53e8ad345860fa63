package packed

import (
	"iter"
	"math"
	"sort"

	"github.com/isowatch/isowatch/ingest/record"
)

// block are consecutive records. The strings of a record that is taken out keep
// data alive.
type block struct {
	data  string
	base  base
	marks []mark
	log   Log
	names []uint32 // within the history, by the number within the block
	first int      // the number of the first record
}

// A mark stands before a record when there are markRecords since the last one, or
// they have markBytes: so At has to pass over few, and never over large ones.
const (
	markRecords = 32
	markBytes   = 1 << 10
)

// mark is where At can begin to read.
type mark struct {
	record int // within the block
	at     int // in the data
}

// unpacker reads the block.
func (b *block) unpacker() unpacker { return unpacker{data: b.data, base: b.base} }

// resolve gives the record that u has read its names.
func (r *Records) resolve(u *unpacker, b *block) {
	u.t.DB, u.t.Session = r.names[b.names[u.h.db]], r.names[b.names[u.h.session]]
	if u.h.label != 0 {
		u.t.SetLabel(r.names[b.names[u.h.label-1]])
	}
	for i, k := range u.keys {
		u.ops[i].Key = r.names[b.names[k]]
	}
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
	Predicates          int // operations
	Sessions            int
	Keys                int // the tables of predicates included
	// Missing is how many records are missing in sessions at least, by seq: what lies
	// between one record with a seq and the next of its session, and what is before the
	// session's first record if that has one. It is right if sessions are in order.
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
func (b *Builder) Add(t *record.Transaction) { b.Chunk().Add(t) }

// Chunk is what the next record may be put into in place of Add, if it is there and not a transaction yet.
func (b *Builder) Chunk() *Chunk {
	if b.open.Size() >= blockSize {
		b.Append(b.open.Part())
	}
	return &b.open
}

// Append joins a block. O(names + records) of it. Append nothing between one Add and
// Records.
func (b *Builder) Append(in *Part) {
	if len(in.heads) == 0 {
		return
	}
	out := in.block
	out.first = b.summary.Records
	out.names = make([]uint32, len(in.ends))
	// The table is far larger than any cache. In a loop of its own this look at it
	// waits for many names at once.
	for i, h := range in.hashes {
		out.names[i] = b.names.likely(h)
	}
	from := uint32(0)
	for i, end := range in.ends {
		n, name := out.names[i], in.text[from:end]
		if n == none || b.names.list[n] != name {
			n = b.names.number(name, in.hashes[i])
		}
		from = end
		if in.isKey[i] && b.names.kinds[n]&ofKey == 0 {
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
	b.summary.Predicates += in.where
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
		first := b.names.kinds[session]&ofSession == 0
		if first {
			b.names.kinds[session] |= ofSession
			b.summary.Sessions++
		}
		b.notOrder = b.notOrder || !h.regular
		if !h.hasSeq {
			continue
		}
		if last, known := b.last[session]; known {
			b.notOrder = b.notOrder || h.seq <= last
			b.miss(record.MissingBetween(last, h.seq))
		} else if first {
			b.miss(record.MissingBefore(h.seq))
		}
		b.last[session] = h.seq
	}
}

// miss counts so many records as missing: of absurd numbers as many as can be counted.
func (b *Builder) miss(n int64) {
	b.summary.Missing += min(n, math.MaxInt64-b.summary.Missing)
}

// Records are all that was added and appended; the Builder is empty again.
func (b *Builder) Records() *Records {
	if b.open.Len() > 0 {
		b.Append(b.open.Part())
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

// At takes out the i-th record. Nothing of it is shared with another call but
// strings. O(log of all, size of the record), and a few records are passed over.
func (r *Records) At(i int) record.Transaction {
	at := sort.Search(len(r.blocks), func(n int) bool { return r.blocks[n].first > i }) - 1
	b := &r.blocks[at]
	i -= b.first
	m := b.marks[sort.Search(len(b.marks), func(n int) bool { return b.marks[n].record > i })-1]
	u := b.unpacker()
	u.p = m.at
	for range i - m.record {
		u.next()
	}
	u.ops = nil // those passed over used it
	u.next()
	r.resolve(&u, b)
	u.identify()
	b.log.of(i, &u.t)
	if len(u.t.Ops) == 0 {
		u.t.Ops = nil
	}
	return u.t
}

// All takes out one record after the other. The record and its operations are
// overwritten by the next one; its strings are not.
func (r *Records) All() iter.Seq2[int, *record.Transaction] {
	return func(yield func(int, *record.Transaction) bool) {
		i := 0
		for u := range r.unpacked() {
			u.identify()
			if !yield(i, &u.t) {
				return
			}
			i++
		}
	}
}

// Numbered takes out one record after the other as All does, but without making
// IDs, and with the numbers of its operations' keys: equal ones for equal keys,
// and less than Names. Both are good until the next record.
func (r *Records) Numbered() iter.Seq2[*record.Transaction, []uint32] {
	return func(yield func(*record.Transaction, []uint32) bool) {
		for u, b := range r.unpacked() {
			for i, k := range u.keys {
				u.keys[i] = b.names[k]
			}
			if !yield(&u.t, u.keys) {
				return
			}
		}
	}
}

// unpacked takes out one record after the other, without its ID, and its block.
func (r *Records) unpacked() iter.Seq2[*unpacker, *block] {
	return func(yield func(*unpacker, *block) bool) {
		var u unpacker
		for n := range r.blocks {
			b := &r.blocks[n]
			u.data, u.base, u.p = b.data, b.base, 0
			for i := 0; u.p < len(b.data)-padding; i++ {
				u.next()
				r.resolve(&u, b)
				b.log.of(i, &u.t)
				if !yield(&u, b) {
					return
				}
			}
		}
	}
}

// Logged are the records of which something is known of the database's log, by number, to be changed before anybody
// else reads them.
func (r *Records) Logged() iter.Seq2[int, *Logged] {
	return func(yield func(int, *Logged) bool) {
		for n := range r.blocks {
			b := &r.blocks[n]
			for i := range b.log {
				if !yield(b.first+b.log[i].Record, &b.log[i]) {
					return
				}
			}
		}
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
