package frontier

import (
	"hash/maphash"

	"github.com/isowatch/isowatch/ingest/record"
)

// Options of a Frontier.
type Options struct {
	// DB is the history's name, for stubs.
	DB string
	// MaxSkew bounds the difference of any two clocks, in nanoseconds.
	MaxSkew int64
	// MaxPerKey bounds the versions of a key; of more, or of more than 56 KiB
	// together, the oldest is dropped. 0 means 8, at most 200.
	MaxPerKey int
	// MaxKeys and MaxBytes (of keys and versions, and 24 a key) bound what stays in memory, but
	// that MinKeys keys stay, as long as the frontier has never taken more than
	// WideBytes. 0 means no bound. What is beyond them Spill gives; what was asked for since
	// Begin exceeds them.
	MaxKeys  int
	MaxBytes int64
	MinKeys  int
}

// WideBytes is up to how many bytes, of keys and versions, All gives all there is: a few
// keys may have values so long that these are a great many.
const WideBytes = 32 << 20

// perKeyDefault is MaxPerKey where it is not given, perKeyMost what a version
// count of one byte leaves room for.
const (
	perKeyDefault = 8
	perKeyMost    = 200
)

func (o Options) withDefaults() Options {
	if o.MaxPerKey <= 0 {
		o.MaxPerKey = perKeyDefault
	}
	o.MaxPerKey = min(o.MaxPerKey, perKeyMost)
	return o
}

// State is what is known of a key besides its versions.
type State uint8

// The bits of a State.
const (
	// Lossy: a write of the key was forgotten, so that its versions are not
	// complete.
	Lossy State = 1 << iota
	// Written and Appended: the key was written, appended to, by whatever
	// transaction. One with both is no list, even if only appends are left.
	Written
	Appended
	// Repeated: what it holds may be of one of several for all that is known: an element was appended twice, or a
	// predicate wrote what nobody knows.
	Repeated

	stateMask = Lossy | Written | Appended | Repeated
)

// Stub is a forgotten transaction as far as it may still be read: its ID,
// session, place, times and status are those of its record, its operations the
// last write, or the appends, to each of some keys.
type Stub struct {
	Txn record.Transaction
	// Number is its place among all that was forgotten.
	Number uint64
	// Arrival is what Forget was told: what a record without times has for its
	// end.
	Arrival int64
}

// Stats count since the frontier was made, restarts included, but for what is
// said to be of the present.
type Stats struct {
	Keys     int   // present: in memory
	Versions int   // present: in memory
	Bytes    int64 // present: of keys and versions in memory, as packed
	Total    int   // present: keys of which something is known, in memory or on disk
	OnDisk   int   // present: those of Total that are on disk and not in memory

	Forgotten  uint64 // transactions
	Superseded uint64 // versions that were proved older than another
	Dropped    uint64 // versions of keys that had more than MaxPerKey, or too large ones
	Unreadable uint64 // writes that aborted or that their transaction overwrote itself
	Spilled    uint64 // keys that went to disk
	Read       uint64 // keys that were read back
}

// Frontier is the frontier of one history. It is for one goroutine.
type Frontier struct {
	opt      Options
	table    table
	folded   uint64 // transactions forgotten; the last one's number
	versions int
	// gone: keys may be on disk. opaque: a forgotten predicate write of which it is not known what it hit may have
	// written anything.
	gone, opaque bool
	// wide: it has taken more than WideBytes at some time, by what was forgotten alone: that
	// does not depend on where keys are, as none has left memory before.
	wide  bool
	stats Stats

	total  int      // keys of which something is known
	absent int      // keys in memory of which it is known that there is nothing
	epoch  uint32   // how often Begin was called, plus 1
	given  []uint32 // the slots that Spill gave last

	touched touched
	kept    [][]byte // of add
	buf     []byte   // a body that is being made

	seen byte // written, and never read, so that the reads of fetch are not optimised away
	// Scratch of Past.
	places   []place
	refs     []Ref
	scratch  Stub
	sessions texts
}

// New makes an empty frontier.
func New(opt Options) *Frontier {
	return &Frontier{opt: opt.withDefaults(), table: newTable(), epoch: 1}
}

// Stats returns the counts.
func (f *Frontier) Stats() Stats {
	s := f.stats
	s.Keys, s.Versions, s.Bytes = f.table.count, f.versions, f.table.bytes
	s.Total, s.OnDisk = f.total, max(0, f.total-(f.table.count-f.absent))
	s.Forgotten = f.folded
	return s
}

// Total is Stats().Total.
func (f *Frontier) Total() int { return f.total }

// State tells what is known of a key besides its versions. If Needs names the
// key that has to be answered first; until then the answer is Lossy.
func (f *Frontier) State(key string) State {
	var st State
	if f.opaque {
		st = Lossy | Repeated
	}
	slot, ok := f.table.find(key)
	switch {
	case ok:
		f.use(slot)
		st |= State(f.table.body(f.table.at(slot))[0])
	case f.gone:
		st |= Lossy
	}
	return st
}

// hashSeed makes hashes of keys. Nothing that can be observed depends on it.
var hashSeed = maphash.MakeSeed()

func hashOf(key string) uint32 { return uint32(maphash.String(hashSeed, key)) }
