package assemble

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/internal/wire"
)

// State is what has to be kept of an Assembler with the offset up to which its
// partition was read, for Restore. It has a few bytes for each open transaction.
//
//	whether there is a clock, next, clock, latest, then for each open transaction: where it
//	began, and when by the clock; all varints, the offsets as differences
func (a *Assembler) State(next int64) []byte {
	if a.restored != nil && next < a.restored.seen {
		return slices.Clone(a.restored.state) // as it was: what has been read again says no more
	}
	a.settle()
	b := []byte{0}
	if a.hasClock {
		b[0] = 1
	}
	for _, v := range []int64{next, a.clock, a.latest} {
		b = binary.AppendVarint(b, v)
	}
	last := int64(0)
	for o := a.oldest; o != nil; o = o.younger {
		b = binary.AppendVarint(b, o.offset-last)
		b = binary.AppendVarint(b, o.opened)
		last = o.offset
	}
	return b
}

// Oldest is where a partition that was read up to next would have to be read again
// from, for Restore: where the oldest open transaction began, next if there is none.
func (a *Assembler) Oldest(next int64) int64 {
	if a.restored != nil && next < a.restored.seen {
		return a.restored.oldest
	}
	if a.oldest != nil {
		return min(a.oldest.offset, next)
	}
	return next
}

// restored is what is known of transactions that were open at a restart.
type restored struct {
	state  []byte
	seen   int64           // up to where events had been added
	oldest int64           // begin of them
	opened map[int64]int64 // when, by the offset of the begin, of those not read again yet
}

// errState says that bytes are no state.
var errState = errors.New("the state of open transactions is damaged: start without it, which loses them")

// Restore makes an Assembler that goes on where another's State was taken, once the
// events from Oldest on have been added again. O(size of the state).
func Restore(opt Options, state []byte) (*Assembler, error) {
	a := New(opt)
	if len(state) < 1 || state[0] > 1 {
		return nil, errState
	}
	in := wire.NewReader(state[1:])
	r := &restored{state: slices.Clone(state), opened: map[int64]int64{}}
	r.seen = in.Int()
	a.clock, a.hasClock = in.Int(), state[0] == 1
	a.latest = in.Int()
	r.oldest = r.seen
	for last := int64(0); in.Len() > 0; {
		offset, opened := last+in.Int(), in.Int()
		if len(r.opened) == 0 {
			r.oldest = offset
		} else if offset <= last {
			return nil, errState
		}
		if offset >= r.seen {
			return nil, errState
		}
		r.opened[offset], last = opened, offset
	}
	if !in.OK() {
		return nil, errState
	}
	a.restored = r
	return a, nil
}

// replay adds an event that had been added before the restart.
func (a *Assembler) replay(offset int64, e *Event) {
	if e.Kind == Begin {
		if opened, ok := a.restored.opened[offset]; ok && a.sessions[e.Session] == nil {
			delete(a.restored.opened, offset)
			a.open(offset, opened, e)
		}
		return
	}
	o := a.sessions[e.Session]
	if o == nil || o.begin.Txn != e.Txn || e.Kind != Step {
		return // it has been told, or was refused
	}
	_, _ = a.step(o, e) // what was refused is refused again
}

// settle ends the replay.
func (a *Assembler) settle() {
	if a.restored == nil {
		return
	}
	for _, offset := range slices.Sorted(maps.Keys(a.restored.opened)) {
		a.losses = append(a.losses, Loss{Why: Unreadable, Offset: offset})
	}
	a.restored = nil
}
