package app

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/internal/wire"
)

// judged is up to which entry each history had judged the input when entries were
// committed last. It is written with every one of those commits. A run that is killed
// leaves in the journal what came after the checkpoints, which the next run works off
// again, and what nobody has judged yet: judged tells them apart, so that the next run
// can say when it is where that one was (docs/decisions/0047).
//
// It is used for nothing else: what a history takes begins at its checkpoint.
type judged struct {
	// origin is the input that the entries are of; for another it says nothing.
	origin string
	// upTo is the last entry that was judged, by history.
	upTo map[string]uint64
}

// judgedName is what the store has it under, among the checkpoints.
const judgedName = reserved + "judged"

// judgedVersion is the first byte. Whoever takes what is stored for the checkpoint of a
// history must not take it for one that it knows.
const judgedVersion = 0x83

// append writes, after a byte for the version, origin as its length and bytes, and how
// many histories follow; of each, by name, its name as its length and bytes, and the
// entry. Numbers are uvarints.
func (j *judged) append(b []byte) []byte {
	b = wire.AppendText(append(b, judgedVersion), j.origin)
	b = binary.AppendUvarint(b, uint64(len(j.upTo)))
	for _, db := range slices.Sorted(maps.Keys(j.upTo)) {
		b = binary.AppendUvarint(wire.AppendText(b, db), j.upTo[db])
	}
	return b
}

var errJudged = errors.New("what is noted of how far the histories were judged is damaged")

// parseJudged is the inverse of append. What another version wrote is nil: without it
// all of the journal is waited for.
func parseJudged(b []byte) (*judged, error) {
	if len(b) == 0 || b[0] != judgedVersion {
		return nil, nil
	}
	r := wire.NewReader(b[1:])
	j := judged{origin: r.Text(), upTo: map[string]uint64{}}
	for range r.Count(r.Len(), 2) {
		db := r.Text()
		j.upTo[db] = r.Uint()
	}
	if !r.Done() {
		return nil, errJudged
	}
	return &j, nil
}

// of is up to where the run before had judged a history, of which the journal has
// entries up to last. If that is not known it may have been all of them.
func (j *judged) of(origin, db string, last uint64) uint64 {
	if j == nil || j.origin != origin {
		return last
	}
	return min(j.upTo[db], last)
}
