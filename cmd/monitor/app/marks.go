package app

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/ingest/source/file"
	"github.com/isowatch/isowatch/window/store"
)

// mark is what an entry says of the input: a restart behind it reads this partition
// on from resume. Everything before seen was handed out; what lies between are
// events of transactions that are not complete.
type mark struct {
	partition    int // -1: nothing was read
	resume, seen int64
	// identity tells the input that these are offsets in from another of the same
	// name.
	identity int64
	// state is what decode needs of the transactions that are not complete; empty:
	// there are none.
	state []byte
	// since when a partition may have been out of reach if nothing more is read.
	since time.Time
	// complete: every write since the initial state has been seen so far, as far
	// as the input as a whole goes.
	complete bool
	// anew is as in previousRun.
	anew bool
}

// marks are where the input is: the last mark of each partition.
type marks struct {
	partitions map[int]mark
	// waited are the partitions of which something has waited: what is stored of
	// them must not stay.
	waited   map[int]bool
	next     uint64    // the number of the next entry
	since    time.Time // mark.since of the last one; zero: nothing was read
	complete bool
	anew     bool
}

// originMax bounds the name of an input in the store, without suffixes.
const originMax = store.LimitName / 2

// originOf is what the store calls an input. A path may be longer than a name there: of such
// a one it is the beginning and a hash.
func originOf(kind, name string) string {
	origin := kind + " " + name
	if len(origin) <= originMax {
		return origin
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s… %x", strings.ToValidUTF8(origin[:originMax/2], ""), sum)
}

// reserved begins what the store has beside histories and under names like theirs. No history
// has such a name (codec.CheckHistory).
const reserved = "\x00"

// eventsPrefix and a partition name a checkpoint that is not of a history, but of
// what waits of transactions that are told in events.
const eventsPrefix = reserved + "events "

// states are what belongs to m of what the store has among the checkpoints.
func (m *marks) states() map[string][]byte {
	var out map[string][]byte
	for n, p := range m.partitions {
		if len(p.state) == 0 && !m.waited[n] {
			continue // there was none and is none
		}
		if out == nil {
			out = map[string][]byte{}
		}
		out[eventsPrefix+strconv.Itoa(n)] = nil
		if len(p.state) > 0 {
			out[eventsPrefix+strconv.Itoa(n)] = p.state
		}
	}
	return out
}

// set moves m behind an entry.
func (m *marks) set(e kept) {
	m.next, m.complete, m.anew = e.number+1, e.mark.complete, e.mark.anew
	if e.mark.partition < 0 {
		return
	}
	m.since = e.mark.since
	if m.partitions == nil {
		m.partitions = map[int]mark{}
	}
	m.partitions[e.mark.partition] = e.mark
	if len(e.mark.state) > 0 {
		if m.waited == nil {
			m.waited = map[int]bool{}
		}
		m.waited[e.mark.partition] = true
	}
}

// The store keeps under the name of the input where to resume, by partition; and
// under that name with a suffix what was seen, the identity of what these are offsets
// in, and, as if they were partitions, what holds for the input as a whole.
const (
	identitySuffix = " identity"
	seenSuffix     = " seen"
	stateSuffix    = " state"
)

// passingState is stateSuffix's of an input that can't be read again, of which there is nothing else.
const passingState = file.Stdin + stateSuffix

// journalOf is, as if it were an input, whose partition 0 has a hash of the input that the
// journal, checkpoints and events are of: of the one that the store was used for last. The
// entries of another are before those.
const journalOf = "journal of"

func inputHash(origin string) int64 { return int64(xxhash.Sum64String(origin)) }

// The numbers of what stateSuffix has.
const (
	stateNext     = iota // of the next entry; what the journal has from there on is not valid
	stateComplete        // 1 or 0
	stateAnew            // 1 or 0
	stateTime            // marks.since
)

// OffsetsOfMonitor tells whether what a store has under the name of an input are notes
// of the monitor on it, and not where in it the next run begins.
func OffsetsOfMonitor(name string) bool {
	return name == journalOf || strings.HasSuffix(name, identitySuffix) || strings.HasSuffix(name, seenSuffix) ||
		strings.HasSuffix(name, stateSuffix)
}

// offsets is what the store is to keep; none if nothing has moved.
func (m *marks) offsets(origin string) map[string]map[int]int64 {
	if m.next == 0 {
		return nil
	}
	resume, seen, identity := map[int]int64{}, map[int]int64{}, map[int]int64{}
	for n, p := range m.partitions {
		resume[n], seen[n], identity[n] = p.resume, p.seen, p.identity
	}
	state := map[int]int64{stateNext: int64(min(m.next, math.MaxInt64)), stateComplete: bit(m.complete),
		stateAnew: bit(m.anew)}
	if !m.since.IsZero() {
		state[stateTime] = max(1, m.since.UnixNano())
	}
	return map[string]map[int]int64{origin: resume, origin + seenSuffix: seen, origin + identitySuffix: identity,
		origin + stateSuffix: state, journalOf: {0: inputHash(origin)}}
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
