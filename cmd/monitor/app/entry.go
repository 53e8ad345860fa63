package app

import (
	"errors"
	"fmt"
	"math"

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
	// returned: the source was out of reach until lately (stream.Entry).
	returned bool
}

// append writes what the journal keeps of e under its number: what code lists, flags, and the batch if there is one, as
// decode has it.
func (e *entry) append(b []byte) []byte {
	c := wire.Coder{B: b}
	e.code(&c)
	has := e.batch != nil
	if c.Flags(&has, &e.returned); !has {
		return c.B
	}
	return e.batch.Marshal(c.B)
}

func (e *entry) code(c *wire.Coder) {
	c.Ints(&e.time)
	wire.Number(c, &e.partitions)
	wire.Table(c, e.sample, math.MaxInt, 1, func(_ string, level *uint8) { wire.Octet(c, level) })
}

var errEntry = errors.New("the journal's entry is damaged")

// partitionsMax and sampleMax bound what an entry may say.
const (
	partitionsMax = 1 << 20
	sampleMax     = 20
)

// parseEntry is the inverse of append.
func parseEntry(number uint64, b []byte) (*entry, error) {
	r := wire.Reads(b)
	e := &entry{number: number, size: int64(len(b)), sample: map[string]uint8{}}
	e.code(&r)
	for _, level := range e.sample {
		if level > sampleMax {
			r.Fail()
		}
	}
	has := false
	r.Flags(&has, &e.returned)
	if !r.OK() || e.partitions > partitionsMax || !has && r.Len() > 0 {
		return nil, fmt.Errorf("entry %d: %w", number, errEntry)
	}
	if !has {
		return e, nil
	}
	var err error
	if e.batch, err = decode.Unmarshal(r.Rest()); err != nil {
		return nil, fmt.Errorf("entry %d: %w", number, err)
	}
	return e, nil
}
