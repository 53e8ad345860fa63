package order

import "github.com/isowatch/isowatch/internal/heap"

// head stands for the first item of a session among those of all sessions.
//
// Invariant: each session with items has a head for its first item, whose key is
// the greater of the item's key and what the session has released: keys never
// fall in a session. Heads whose item is not its session's first, because a stray
// went before it or because it has left by an equal head, are stale and skipped:
// that is cheaper than to know where in the heap each session stands.
type head struct {
	key int64
	// tie orders heads of one key: by start, then session. Placed ones, which have
	// no times or none to believe, come after them and are ordered by where they
	// were: tie is the partition, then goes ref.
	tie    int64
	ref    uint64 // of its item
	s      *session
	placed bool
}

// put enters a head for the first item of s. O(log sessions).
func (o *Order) put(s *session) {
	heap.Push(&o.heads, o.makeHead(s), less)
}

func (o *Order) makeHead(s *session) head {
	it := o.at(o.first(s))
	h := head{key: max(it.key, s.lastKey), tie: it.start, ref: it.ref, s: s}
	if it.flags&(hasTimes|isVague) != hasTimes {
		h.tie, h.placed = int64(it.partition), true
	}
	return h
}

// top makes sure that the first head is not stale; false if nothing waits.
func (o *Order) top() bool {
	for len(o.heads) > 0 {
		h := &o.heads[0]
		if i := o.first(h.s); i != nil32 && o.at(i).ref == h.ref {
			return true
		}
		heap.Pop(&o.heads, less)
	}
	return false
}

// less orders heads. It is total among those that are not stale.
func less(a, b *head) bool {
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.placed != b.placed:
		return b.placed
	case a.tie != b.tie:
		return a.tie < b.tie
	case a.placed:
		return a.ref < b.ref
	}
	return a.s.name < b.s.name
}
