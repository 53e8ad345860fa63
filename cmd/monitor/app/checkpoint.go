package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/stream"
)

// checkpoint is what the store keeps of a history, so that a restart need not
// begin with its first entry.
type checkpoint struct {
	// origin is the input that entries are of, config a fingerprint of the settings
	// that the state depends on.
	origin string
	config uint64
	// born is the entry with which the history began, coverage what was assumed then.
	born     uint64
	coverage record.Coverage
	// whole: it is judged in one segment, as the end of the input is to be told
	// about all of it.
	whole bool
	// headed: a part of the input is missing that came before the history began. It matters only as long as
	// there is no state, which has it.
	headed bool
	// consumed is the last entry that the state has; floor the least that it
	// needs: below it nothing is read again.
	consumed, floor uint64
	told            *told
	// state is the history itself; empty: it has consumed nothing yet.
	state []byte
	// proved is what was proved after it; nil: nothing is known of that. Like tallies, which has also what was counted
	// before, it is not part of what is written.
	proved  *proved
	tallies *tallies
}

// write is append with the state of a history in place of c.state, which is written as it is made. It tells how many
// bytes all are.
func (c *checkpoint) write(to io.Writer, h *stream.History) (size int, err error) {
	head := c.append(nil)
	if _, err := to.Write(head); err != nil {
		return 0, err
	}
	size, err = h.WriteCheckpoint(to)
	return len(head) + size, err
}

// append writes what code lists, and the state to the end.
func (c *checkpoint) append(b []byte) []byte {
	w := wire.Coder{B: b}
	c.code(&w)
	return append(w.B, c.state...)
}

func (c *checkpoint) code(w *wire.Coder) {
	w.Texts(&c.origin)
	config := bits.ReverseBytes64(c.config) // the greatest byte comes first
	w.Words(&config)
	w.Uints(&c.born)
	wire.Octet(w, &c.coverage)
	w.Flags(&c.whole, &c.headed)
	w.Uints(&c.consumed, &c.floor)
	if c.told.code(w); w.Reading {
		c.config = bits.ReverseBytes64(config)
	}
}

var errCheckpoint = errors.New("the checkpoint is damaged")

// parseCheckpoint is the inverse of append.
func parseCheckpoint(db string, b []byte) (*checkpoint, error) {
	r, c := wire.Reads(b), checkpoint{told: newTold()}
	c.code(&r)
	c.state = r.Rest()
	if !r.OK() || c.born == 0 || c.floor == 0 || c.consumed < c.born-1 || c.floor > c.consumed+1 ||
		c.coverage > max(record.CoverageComplete, record.CoveragePartial) {
		return nil, fmt.Errorf("history %q: %w", db, errCheckpoint)
	}
	return &c, nil
}

// windowOf is what the configuration asks of a history.
func (a *setting) windowOf(db string, coverage record.Coverage, whole bool) (stream.Config, error) {
	c := a.cfg
	levels, err := judge.Levels(c.Levels, c.Clock)
	if err != nil {
		return stream.Config{}, err
	}
	w := c.Window
	segment, heavy, waiting, heavyWaiting, searched := min(w.Segment, w.MaxTransactions), 0, w.MaxTransactions,
		heavyWaiting, 0
	known := int64(w.Keys) * keyBytes
	switch {
	case whole: // so many are asked for, whatever they take
		segment, heavy, heavyWaiting = w.MaxTransactions, -1, 0
	case c.Memory > 0:
		waiting = max(1, min(waiting, int(c.Memory/waitingShare)/heavyWaiting))
		segment = max(1, min(segment, int(c.Memory/segmentShare)/stream.DefaultHeavy))
	}
	if c.Memory > 0 {
		searched = int(c.Memory / searchedShare)
		known = min(known, int64(c.Memory/knownShare))
	}
	return stream.Config{
		DB: db, Levels: levels, Assumptions: record.Assumptions{Initial: c.Initial, Coverage: coverage, Tables: c.Tables(),
			Clock: c.Clock, MaxSkew: int64(w.MaxSkew)},
		UniqueValues:   c.UniqueValues,
		UniqueAttempts: c.UniqueAttempts,
		MaxTransaction: w.MaxTransaction, Conflicts: c.Solver.Conflicts, Every: c.Solver.Every,
		BytesMax: searched, Whole: whole,
		Segment: segment, Heavy: heavy, Overlap: max(1, min(w.Overlap, segment/2)), MaxKeys: w.Keys, MaxBytes: known,
		MaxSeeds: a.tuning.seeds,
		Order: order.Options{Lateness: w.Lateness, IdleAfter: w.IdleAfter, MaxAhead: aheadMax, MaxBuffered: waiting,
			Heavy: heavyWaiting},
	}, nil
}

// searchedShare is what part of the memory closures and open pairs may take: one in so many. A segment ends at
// half of that.
const searchedShare = 2

// keyBytes is how many bytes of what is known of it a key may take in memory, if all
// that window.keys allows are there: twice of what most take.
const keyBytes = 128

// heavyWaiting is of how many bytes a record that waits for its place counts as several for
// window.max_transactions. Most take less, some ten times as much in an engine.
const heavyWaiting = 256

// knownShare is what part of the memory the last writes of keys may take between segments, segmentShare the records of
// one, and waitingShare those that wait for their place: one in so many.
const knownShare, segmentShare, waitingShare = 5, 4, 3

// fingerprint is the same for configurations under which a history's state means
// the same.
func (a *setting) fingerprint() (uint64, error) {
	c, err := a.windowOf("", a.cfg.Coverage, false) // a history's own may have become partial
	if err != nil {
		return 0, err
	}
	c.MaxKeys, c.MaxBytes = 0, 0 // they decide only what is where
	b, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	return xxhash.Sum64(b), nil
}
