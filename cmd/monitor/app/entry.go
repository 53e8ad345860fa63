package app

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/ingest/decode"
)

// entry is one step of the input: what was read of one partition at once, and
// what was true at that moment and can't be found out again. The state of every
// history is a function of the entries so far. Entries are numbered from 1 in the
// order in which they were read.
type entry struct {
	number uint64
	time   int64 // time of day, Unix nanoseconds
	// partitions is how many the source had.
	partitions int
	// sample has the histories of which only a share of the sessions is taken:
	// 1 in 2 to the power of the value.
	sample map[string]uint8
	batch  *decode.Batch // nil: nothing was read, only time passed
	size   int64         // of it in the journal, in bytes; 0 without one
}

// entryVersion is the first byte of an entry in the journal.
const entryVersion = 1

// append writes what the journal keeps of e under its number:
//
//	byte    entryVersion
//	varint  time
//	uvarint partitions
//	uvarint how many histories are sampled; each: name, byte
//	byte    1 if a batch follows
//	rest    the batch, as decode has it
func (e *entry) append(b []byte) []byte {
	b = binary.AppendVarint(append(b, entryVersion), e.time)
	b = binary.AppendUvarint(b, uint64(e.partitions))
	b = binary.AppendUvarint(b, uint64(len(e.sample)))
	for _, db := range slices.Sorted(maps.Keys(e.sample)) {
		b = appendText(b, db)
		b = append(b, e.sample[db])
	}
	if e.batch == nil {
		return append(b, 0)
	}
	return e.batch.Marshal(append(b, 1))
}

var errEntry = errors.New("the journal's entry is damaged")

// partitionsMax and sampleMax bound what an entry may say.
const (
	partitionsMax = 1 << 20
	sampleMax     = 20
)

// parseEntry is the inverse of append.
func parseEntry(number uint64, b []byte) (*entry, error) {
	if len(b) == 0 || b[0] != entryVersion {
		return nil, fmt.Errorf("entry %d: %w: unknown version", number, errEntry)
	}
	r := reader{b: b[1:]}
	e := &entry{number: number, size: int64(len(b)), time: r.varint(), partitions: int(r.bounded(partitionsMax))}
	if n := r.bounded(uint64(len(r.b))); n > 0 && !r.bad {
		e.sample = map[string]uint8{}
		for range n {
			db := r.text()
			level := r.byte()
			if r.bad || level > sampleMax {
				return nil, fmt.Errorf("entry %d: %w", number, errEntry)
			}
			e.sample[db] = level
		}
	}
	has := r.byte()
	if r.bad || has > 1 || has == 0 && len(r.b) > 0 {
		return nil, fmt.Errorf("entry %d: %w", number, errEntry)
	}
	if has == 0 {
		return e, nil
	}
	var err error
	if e.batch, err = decode.Unmarshal(r.b); err != nil {
		return nil, fmt.Errorf("entry %d: %w", number, err)
	}
	return e, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader takes bytes apart that were written here, but may be damaged. Once bad
// it stays so and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	return skip(r, v, n)
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return skip(r, v, n)
}

func skip[T any](r *reader, v T, n int) (zero T) {
	if n <= 0 || r.bad {
		r.bad, r.b = true, nil
		return zero
	}
	r.b = r.b[n:]
	return v
}

// bounded is a number that is at most limit.
func (r *reader) bounded(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.bad, r.b = true, nil
		return 0
	}
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 || r.bad {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }
