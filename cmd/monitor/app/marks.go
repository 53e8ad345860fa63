package app

import "math"

// mark is what an entry says of the input: a restart behind it reads this partition
// on from resume. Everything before seen was handed out; what lies between are
// events of transactions that are not complete.
type mark struct {
	partition    int // -1: nothing was read
	resume, seen int64
	// identity tells the input that these are offsets in from another of the same
	// name.
	identity int64
	// complete: every write since the initial state has been seen so far, as far
	// as the input as a whole goes.
	complete bool
}

// marks are where the input is: the last mark of each partition.
type marks struct {
	partitions map[int]mark
	next       uint64 // the number of the next entry
	complete   bool
}

// set moves m behind an entry.
func (m *marks) set(e kept) {
	m.next, m.complete = e.number+1, e.mark.complete
	if e.mark.partition < 0 {
		return
	}
	if m.partitions == nil {
		m.partitions = map[int]mark{}
	}
	m.partitions[e.mark.partition] = e.mark
}

// The store keeps under the name of the input where to resume, by partition; and
// under that name with a suffix what was seen, the identity of what these are offsets
// in, and, as if they were partitions, what holds for the input as a whole.
const (
	identitySuffix = " identity"
	seenSuffix     = " seen"
	stateSuffix    = " state"
)

// The numbers of what stateSuffix has.
const (
	stateNext     = iota // of the next entry; what the journal has from there on is not valid
	stateComplete        // 1 or 0
)

// offsets is what the store is to keep; none if nothing has moved.
func (m *marks) offsets(origin string) map[string]map[int]int64 {
	if m.next == 0 {
		return nil
	}
	resume, seen, identity, complete := map[int]int64{}, map[int]int64{}, map[int]int64{}, int64(0)
	for n, p := range m.partitions {
		resume[n], seen[n], identity[n] = p.resume, p.seen, p.identity
	}
	if m.complete {
		complete = 1
	}
	state := map[int]int64{stateNext: int64(min(m.next, math.MaxInt64)), stateComplete: complete}
	return map[string]map[int]int64{origin: resume, origin + seenSuffix: seen, origin + identitySuffix: identity, origin + stateSuffix: state}
}
