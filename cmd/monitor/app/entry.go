package app

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/internal/wire"
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
		b = wire.AppendText(b, db)
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
	if len(b) == 0 {
		return nil, fmt.Errorf("entry %d: %w: it is empty", number, errEntry)
	}
	if b[0] != entryVersion {
		return nil, anotherVersion(fmt.Sprintf("entry %d of the journal", number), b[0], entryVersion)
	}
	r := wire.NewReader(b[1:])
	e := &entry{number: number, size: int64(len(b)), time: r.Int()}
	partitions := r.Uint()
	if partitions > partitionsMax {
		r.Fail()
	}
	e.partitions = int(partitions)
	if n := r.Count(r.Len(), 2); n > 0 {
		e.sample = map[string]uint8{}
		for range n {
			db := r.Text()
			level := r.Byte()
			if !r.OK() || level > sampleMax {
				return nil, fmt.Errorf("entry %d: %w", number, errEntry)
			}
			e.sample[db] = level
		}
	}
	has := r.Byte()
	if !r.OK() || has > 1 || has == 0 && r.Len() > 0 {
		return nil, fmt.Errorf("entry %d: %w", number, errEntry)
	}
	if has == 0 {
		return e, nil
	}
	rest := r.Rest()
	if len(rest) > 0 && rest[0] != decode.Form {
		return nil, anotherVersion(fmt.Sprintf("the records of entry %d of the journal", number), rest[0], decode.Form)
	}
	var err error
	if e.batch, err = decode.Unmarshal(rest); err != nil {
		return nil, fmt.Errorf("entry %d: %w", number, err)
	}
	return e, nil
}
