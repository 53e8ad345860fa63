package packed

import (
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Logged is what is known of a record in the database's log: record.Transaction has the same fields.
type Logged struct {
	Record int
	XID    string
	LSN    int64
}

// Log is where in the database's log records are.
type Log []Logged

// of sets what is known of record i.
func (l Log) of(i int, t *record.Transaction) {
	if len(l) == 0 {
		return
	}
	if at, ok := slices.BinarySearchFunc(l, i, func(x Logged, i int) int { return x.Record - i }); ok {
		t.XID, t.LSN = l[at].XID, l[at].LSN
	}
}

// Block are sealed records, numbered from 0, of which each can be taken out
// without those before it. It does not change, but for Log; reading it is safe for concurrent
// use, with a Reader for each goroutine.
type Block struct {
	data string   // with padding
	at   []uint32 // where each record begins
	base base
	ops  int
	log  Log
	text string   // of the names, one after the other
	ends []uint32 // of each name in the text
}

// Log are those records of which something is known of the database's log, in order. As long as nobody else has
// the block, more can be put into it.
func (b *Block) Log() Log { return b.log }

// Len is how many records there are.
func (b *Block) Len() int { return len(b.at) }

// Names is how many names the block has, of keys and others. Reader.Keys are
// less.
func (b *Block) Names() int { return len(b.ends) }

// Bytes is about how much memory the block takes.
func (b *Block) Bytes() int64 {
	const own = 128
	return int64(own + len(b.data) + len(b.text) + 4*(len(b.at)+len(b.ends)) + 32*len(b.log))
}

// Name is the name that has a number, less than Names. It is a part of the block.
func (b *Block) Name(n uint32) string {
	from := uint32(0)
	if n > 0 {
		from = b.ends[n-1]
	}
	return b.text[from:b.ends[n]]
}

// Head is the head of the i-th record, without the hashes ID and Content, which
// Sums makes. Its strings are parts of the block and keep it in memory. O(1).
func (b *Block) Head(i int) record.Head {
	u := unpacker{data: b.data, base: b.base, p: int(b.at[i])}
	u.head()
	return b.headOf(&u.h)
}

// Size is how many bytes the i-th record takes, names apart, which records share. O(1).
func (b *Block) Size(i int) int {
	end := len(b.data)
	if i+1 < len(b.at) {
		end = int(b.at[i+1])
	}
	return end - int(b.at[i])
}

func (b *Block) headOf(n *numbers) record.Head {
	return record.Head{DB: b.Name(uint32(n.db)), Session: b.Name(uint32(n.session)), Seq: n.seq, Start: n.start,
		End: n.end, Ops: n.ops,
		Status: record.Status(n.flags & flagStatus), HasSeq: n.flags&flagSeq != 0, HasTimes: n.flags&flagTimes != 0}
}

// DBs are the histories that the records belong to, in the order of first
// occurrence: nearly always one. O(records). The strings are parts of the block.
func (b *Block) DBs() []string {
	var out []string
	var seen map[uint64]bool
	u := unpacker{data: b.data, base: b.base}
	last := uint64(0)
	for i := range b.at {
		db := uint64(0)
		if b.data[b.at[i]]&flagNames != 0 {
			u.p = int(b.at[i])
			u.head()
			db = u.h.db
		}
		if i > 0 && db == last || seen[db] {
			continue
		}
		if seen == nil {
			seen = map[uint64]bool{}
		}
		seen[db], last = true, db
		out = append(out, b.Name(uint32(db)))
	}
	return out
}

// Sum are the hashes of a record as record.Head has them.
type Sum struct{ ID, Content uint64 }

// Sums are the hashes of all records, as Chunk.Sums has them. A name is hashed
// once, so that it is cheaper than record.HeadOf of each. O(size).
func (b *Block) Sums() []Sum {
	hashes := make([]uint64, len(b.ends))
	from := uint32(0)
	for i, end := range b.ends {
		hashes[i] = record.Hash(b.text[from:end])
		from = end
	}
	out := make([]Sum, len(b.at))
	u := unpacker{data: b.data, base: b.base}
	var id []byte
	for i := range out {
		u.next()
		h := b.headOf(&u.h)
		d := record.NewDigest(&h, hashes[u.h.session])
		for j := range u.ops {
			d = d.Op(&u.ops[j], hashes[u.keys[j]])
		}
		if u.h.label != 0 {
			d = d.Label(hashes[u.h.label-1])
		}
		out[i].Content = d.Sum(len(u.ops))
		switch {
		case u.h.flags&flagContent != 0:
			id = record.AppendContentID(id[:0], h.Session, out[i].Content)
		case u.h.flags&flagID != 0:
			id = append(id[:0], u.h.id...)
		default:
			id = record.AppendSequenceID(id[:0], h.Session, h.Seq)
		}
		out[i].ID = record.IDHashBytes(id)
	}
	return out
}

// Reader takes records out of blocks, of any in turn, and reuses its memory. The
// zero Reader is ready. It is for one goroutine.
type Reader struct {
	// Keys are the numbers within the block of the keys of the operations of the
	// record taken out last: equal ones for equal keys, less than Block.Names. Good
	// until the next.
	Keys []uint32

	u unpacker
}

// At takes out the i-th record. It and its operations are good until r is used
// again; its strings for ever, but they are parts of the block and keep all of it
// in memory: who keeps one for long copies it. O(size of the record), amortised
// no allocation.
func (b *Block) At(i int, r *Reader) *record.Transaction {
	u := &r.u
	u.data, u.base, u.p = b.data, b.base, int(b.at[i])
	u.next()
	u.t.DB, u.t.Session = b.Name(uint32(u.h.db)), b.Name(uint32(u.h.session))
	if u.h.label != 0 {
		u.t.SetLabel(b.Name(uint32(u.h.label - 1)))
	}
	for j, k := range u.keys {
		u.ops[j].Key = b.Name(k)
	}
	u.identify()
	b.log.of(i, &u.t)
	r.Keys = u.keys
	return &u.t
}

// Copy takes out the i-th record, which shares nothing with the block. Its strings
// share memory with each other. O(size of the record).
func (b *Block) Copy(i int) record.Transaction {
	var r Reader
	t := *b.At(i, &r)
	size := len(t.DB) + len(t.Session) + len(t.ID) + len(t.Node) + len(t.Statements) + len(t.XID)
	for j := range t.Ops {
		op := &t.Ops[j]
		size += len(op.Key) + len(op.Value.Text) + len(op.Where)
	}
	var all strings.Builder
	all.Grow(size)
	own := func(s *string) {
		from := all.Len()
		all.WriteString(*s)
		*s = all.String()[from:] // within its capacity a Builder never moves what it holds
	}
	own(&t.DB)
	own(&t.Session)
	own(&t.ID)
	own(&t.Node)
	own(&t.Statements)
	own(&t.XID)
	for j := range t.Ops {
		op := &t.Ops[j]
		own(&op.Key)
		own(&op.Value.Text)
		own(&op.Where)
	}
	if len(t.Ops) == 0 {
		t.Ops = nil
	}
	return t
}
