package retain

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Records keeps transactions by the number their engine gave them. Methods are
// not safe for concurrent use: the loop that owns the engine owns its records.
type Records interface {
	// Append keeps t under id, which must be the number after the last one. t
	// may be changed afterwards.
	Append(id verdict.TxnID, t *record.Transaction) error
	// Get returns the record of id; false if it was never appended or has been
	// forgotten. The record and its operations must not be changed.
	Get(id verdict.TxnID) (*record.Transaction, bool)
	// First and Next delimit what is kept: First <= id < Next.
	First() verdict.TxnID
	Next() verdict.TxnID
}

// Options of a Memory.
type Options struct {
	// Retain is how many records are kept at least; beyond it the oldest are
	// forgotten, a block at a time. 0 keeps all.
	Retain int
	// DB is set on the records that Get returns: the history they belong to.
	DB string
	// Next is the number that the first Append must give.
	Next verdict.TxnID
}

// blockSize is the number of records in a block: enough that the compressor
// learns, few enough that Get decodes one in a fraction of a millisecond.
const blockSize = 256

// cacheSize is the number of blocks kept decoded: evidence looks at several
// stretches of the history in turn.
const cacheSize = 8

// Memory is Records in memory, compressed.
//
// Invariant: blocks hold the records from first on without a hole, blockSize
// each, and open holds the rest up to next.
type Memory struct {
	opt    Options
	first  verdict.TxnID
	next   verdict.TxnID
	blocks [][]byte // a queue; out of it, from are gone
	from   int
	open   encoder
	cache  []decoded // most recently used first
	bytes  int64     // of sealed blocks
	pack   *zstd.Encoder
	unpack *zstd.Decoder
}

type decoded struct {
	first verdict.TxnID
	txns  []record.Transaction
}

var _ Records = (*Memory)(nil)

// New makes a Memory.
func New(opt Options) (*Memory, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<17), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("retain: %w", err)
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("retain: %w", err)
	}
	return &Memory{opt: opt, first: opt.Next, next: opt.Next, pack: pack, unpack: unpack}, nil
}

// First is the least number kept.
func (m *Memory) First() verdict.TxnID { return m.first }

// Next is the number that the next Append must give.
func (m *Memory) Next() verdict.TxnID { return m.next }

// Bytes is the memory that sealed and open blocks take.
func (m *Memory) Bytes() int64 { return m.bytes + int64(cap(m.open.buf)) }

// Append keeps t. O(size of t), and once in 256 the compression of a block.
func (m *Memory) Append(id verdict.TxnID, t *record.Transaction) error {
	if id != m.next || id == verdict.NoTxn {
		return fmt.Errorf("retain: transaction %d appended where %d is next: can't happen, because engine and records number alike", id, m.next)
	}
	m.open.add(t)
	m.next++
	if m.open.n < blockSize {
		return nil
	}
	sealed := m.pack.EncodeAll(m.open.buf, make([]byte, 0, len(m.open.buf)))
	// The compressor's result has the capacity of its input.
	block := append(make([]byte, 0, len(sealed)), sealed...)
	m.blocks = append(m.blocks, block)
	m.bytes += int64(len(block))
	m.open.reset()
	for m.opt.Retain > 0 && int(m.next-m.first)-blockSize >= m.opt.Retain {
		m.forget()
	}
	return nil
}

// forget drops the oldest block.
func (m *Memory) forget() {
	m.bytes -= int64(len(m.blocks[m.from]))
	m.blocks[m.from] = nil
	m.first += blockSize
	if m.from++; 2*m.from >= len(m.blocks) {
		m.blocks = append(m.blocks[:0:0], m.blocks[m.from:]...)
		m.from = 0
	}
}

// Get finds the record of id. O(1) in one of the blocks decoded last, otherwise
// a block is decoded.
func (m *Memory) Get(id verdict.TxnID) (*record.Transaction, bool) {
	if id < m.first || id >= m.next {
		return nil, false
	}
	block := int(id-m.first) / blockSize
	first := m.first + verdict.TxnID(block*blockSize)
	for i, d := range m.cache {
		// An open block may have grown since it was decoded.
		if d.first == first && int(id-first) < len(d.txns) {
			copy(m.cache[1:i+1], m.cache[:i])
			m.cache[0] = d
			return &d.txns[id-first], true
		}
	}
	raw := m.open.buf
	if sealed := m.blocks[m.from:]; block < len(sealed) {
		var err error
		if raw, err = m.unpack.DecodeAll(sealed[block], nil); err != nil {
			panic(fmt.Sprintf("retain: block of transaction %d: %v: can't happen, because it was written here", first, err))
		}
	}
	txns, err := decode(raw, m.opt.DB)
	if err != nil || int(id-first) >= len(txns) {
		panic(fmt.Sprintf("retain: transaction %d in a block of %d from %d: %v: can't happen, because it was written here", id, len(txns), first, err))
	}
	if len(m.cache) < cacheSize {
		m.cache = append(m.cache, decoded{})
	}
	copy(m.cache[1:], m.cache)
	m.cache[0] = decoded{first, txns}
	return &txns[id-first], true
}
