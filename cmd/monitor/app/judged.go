package app

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/internal/wire"
)

// judged is up to which entry each history had judged the input when entries were
// committed last. It is written with every one of those commits. A run that is killed
// leaves in the journal what came after the checkpoints, which the next run works off
// again, and what nobody has judged yet: judged tells them apart, so that the next run
// can say when it is where that one was (docs/decisions/0047).
//
// It is used for nothing else: what a history takes begins at its checkpoint.
//
// It names no history: they are those that have a checkpoint, in the order of their names.
// So it has a few bytes where all are equally far, and takes no time to make that depends
// on how long their names are.
type judged struct {
	// origin is the input that the entries are of; for another it says nothing.
	origin string
	// names is namesOf the histories: of others it says nothing either.
	names uint64
	// upTo is the last entry that was judged, by history.
	upTo []uint64
}

// judgedName is what the store has it under, among the checkpoints.
const judgedName = reserved + "judged"

// judgedVersion is the first byte. Whoever takes what is stored for the checkpoint of a
// history must not take it for one that it knows.
const judgedVersion = 0x84

// namesOf is a hash of names, in their order.
func namesOf(names []string) uint64 {
	var d xxhash.Digest
	d.Reset()
	var b []byte
	for _, name := range names {
		b = wire.AppendText(b[:0], name)
		_, _ = d.Write(b) // it never fails
	}
	return d.Sum64()
}

// append writes, after a byte for the version, origin as its length and bytes, names as 8
// bytes, how many histories there are, and the last entry that any of them has judged. Then, for
// as many as are equally far one after the other: how many, and how many entries less they
// have judged. Numbers are uvarints.
func (j *judged) append(b []byte) []byte {
	b = wire.AppendText(append(b, judgedVersion), j.origin)
	b = binary.LittleEndian.AppendUint64(b, j.names)
	b = binary.AppendUvarint(b, uint64(len(j.upTo)))
	last := uint64(0)
	for _, n := range j.upTo {
		last = max(last, n)
	}
	b = binary.AppendUvarint(b, last)
	for i := 0; i < len(j.upTo); {
		n := 1
		for i+n < len(j.upTo) && j.upTo[i+n] == j.upTo[i] {
			n++
		}
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendUvarint(b, last-j.upTo[i])
		i += n
	}
	return b
}

var errJudged = errors.New("what is noted of how far the histories were judged is damaged")

// parseJudged is the inverse of append, where there are so many histories. What another version
// wrote, and what is of another number of them, is nil: without it all of the journal is
// waited for.
func parseJudged(b []byte, histories int) (*judged, error) {
	if len(b) == 0 || b[0] != judgedVersion {
		return nil, nil
	}
	r := wire.NewReader(b[1:])
	j := judged{origin: r.Text(), names: r.Fixed()}
	count, last := r.Uint(), r.Uint()
	var runs [][2]uint64
	have := uint64(0)
	for r.Len() > 0 {
		n, less := r.Uint(), r.Uint()
		if n == 0 || n > count-have || less > last {
			r.Fail()
			break
		}
		have += n
		runs = append(runs, [2]uint64{n, less})
	}
	if !r.Done() || have != count {
		return nil, errJudged
	}
	if count != uint64(histories) {
		return nil, nil
	}
	j.upTo = make([]uint64, 0, histories)
	for _, run := range runs {
		for range run[0] {
			j.upTo = append(j.upTo, last-run[1])
		}
	}
	return &j, nil
}

// of is up to where the run before had judged each history of these names, which are
// sorted, where the journal has entries up to last. If that is not known it may have been all of them.
func (j *judged) of(origin string, names []string, last uint64) map[string]uint64 {
	known := j != nil && j.origin == origin && len(j.upTo) == len(names) && j.names == namesOf(names)
	out := make(map[string]uint64, len(names))
	for i, name := range names {
		out[name] = last
		if known {
			out[name] = min(j.upTo[i], last)
		}
	}
	return out
}
