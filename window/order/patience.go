package order

import (
	"cmp"
	"math"
	"slices"

	"github.com/isowatch/isowatch/internal/heap"
	"github.com/isowatch/isowatch/internal/wire"
)

// patience is how long nothing is concluded from the absence of a write, by when records came
// and not by the clocks of those who sent them. A tick says that all that ended before some
// time has been handed out: that is as true as the clocks are. Whoever may have written what was read had
// begun before the read ended, ends within MaxTransaction, and is in its log within
// Lateness; so once all that came until then has been handed out, no clock can hide it.
//
// When a record came (came) is told by the broker, or else by its own end; but not before its
// partition was last seen to be read to its end, and not after it was read. While partitions are
// read to their ends again and again, that is the reader's clock, whatever clients and brokers
// have; in a backlog theirs are believed.
//
// A record with a good clock came up to Lateness and MaxSkew after it ended, by which the wait is
// shorter: so while clocks are good patience holds nothing back, and ticks are a function
// of the logs alone.
//
// Times are counted in slots of step.
type patience struct {
	wait, step int64 // wait is a multiple of step; 0: none
	deadline   int64 // MaxTransaction + MaxSkew: for so long the engine waits after a place

	// now is how much time has gone by, from the first time of day on, which raw was last. When the reader's
	// clock is set back, time goes on from where it was: it would stand still for as long as
	// that clock was ahead, and nothing would be concluded from absence.
	now, raw int64

	// waits counts what waits by slot; heap has the slots, each at least once.
	waits map[int64]*int
	heap  []int64
	slot  int64 // of the count
	count *int

	// out is what was handed out and that absence proves nothing about yet: of what came in a slot or
	// later the least place. Slots and places ascend.
	out []stair
}

// stair is a place in the order, and the slot in which its record came.
type stair struct{ slot, place int64 }

const (
	// slotsMost is how many slots the wait has at most.
	slotsMost = 256
	// stairsMost bounds patience.out. Of more every two are taken for one.
	stairsMost = 1 << 16
)

func newPatience(opt *Options) patience {
	m := int64(opt.MaxTransaction)
	step := max(1, m/slotsMost)
	wait := sub(sub(m, int64(opt.Lateness)), int64(opt.MaxSkew))
	return patience{wait: max(0, wait) / step * step, step: step, deadline: add(m, int64(opt.MaxSkew)),
		waits: map[int64]*int{}}
}

// came is when a record of p came that is said to have come at t, and moves p there. One that
// can't have come then has a wrong clock, or is late: it counts as one that came when it
// was read.
func (o *Order) came(p *partition, t int64) int64 {
	wrong := o.reading > 0 && t < sub(p.ended, o.delay)
	if t = max(t, p.ended); o.reading > 0 {
		t = min(t, o.reading)
	}
	p.came = max(p.came, t)
	if wrong {
		return o.reading
	}
	return t
}

// Reading says that what is added from now on is read at this time of day. 0: it is not
// known. O(1).
func (o *Order) Reading(now int64) {
	if o.reading = now; now > 0 {
		o.patience.tell(now)
		o.reading = o.patience.now
	}
}

// tell tells the time of day.
func (w *patience) tell(now int64) {
	switch {
	case w.raw == 0:
		w.now = now
	case now > w.raw:
		w.now = add(w.now, sub(now, w.raw))
	}
	w.raw = now
}

// slotOf is the slot of a time.
func (w *patience) slotOf(t int64) int64 { return floor(t, w.step) / w.step }

// enter notes that a record waits, leave that it does not any more. Amortised O(1), O(log slots)
// for the first of a slot.
func (w *patience) enter(slot int64) {
	if w.wait == 0 {
		return
	}
	if w.count == nil || w.slot != slot {
		w.find(slot)
	}
	*w.count++
}

func (w *patience) leave(slot int64) {
	if w.count == nil || w.slot != slot {
		w.find(slot)
	}
	*w.count--
}

// find makes count that of a slot.
func (w *patience) find(slot int64) {
	w.slot, w.count = slot, w.waits[slot]
	if w.count != nil {
		return
	}
	w.count = new(int)
	w.waits[slot] = w.count
	heap.Push(&w.heap, slot, heap.Less)
}

// oldest is the first slot of what waits; false if nothing does.
func (w *patience) oldest() (int64, bool) {
	for len(w.heap) > 0 {
		if *w.waits[w.heap[0]] > 0 {
			return w.heap[0], true
		}
		w.count = nil
		delete(w.waits, heap.Pop(&w.heap, heap.Less))
	}
	return 0, false
}

// handed notes that a record is handed out. Its place for the engine is not before its own, and that
// of one that is late or behind not before its start. O(1) where records are handed out as they came.
func (w *patience) handed(it *item) {
	if w.wait == 0 {
		return
	}
	w.leave(it.came)
	place := it.key
	if it.flags&(isLate|isPassed) != 0 && it.flags&hasTimes != 0 {
		place = min(place, it.start)
	}
	w.climb(stair{it.came, place})
}

func (w *patience) climb(s stair) {
	slot, place := s.slot, s.place
	n := len(w.out)
	if n > 0 && w.out[n-1].slot >= slot && w.out[n-1].place <= place {
		return
	}
	to, same := slices.BinarySearchFunc(w.out, slot, func(s stair, slot int64) int { return cmp.Compare(s.slot, slot) })
	if to < n && w.out[to].place <= place {
		return
	}
	from := to
	for from > 0 && w.out[from-1].place >= place {
		from--
	}
	if same {
		to++
	}
	w.out = slices.Replace(w.out, from, to, s)
	if len(w.out) < stairsMost {
		return
	}
	for i := 0; i+1 < len(w.out); i += 2 {
		w.out[i/2] = stair{w.out[i+1].slot, w.out[i].place}
	}
	w.out = w.out[:len(w.out)/2]
}

// proved is how far a tick may go, of which at is the time: what the engine has for any
// reader that is due before that has been handed out, whatever the clocks. O(partitions).
func (o *Order) proved(at int64) int64 {
	w := &o.patience
	if w.wait == 0 || len(w.out) == 0 {
		return at
	}
	until := int64(math.MaxInt64) // all that came before has been handed out
	if !o.flushed {
		for i := range o.partitions {
			switch p := &o.partitions[i]; {
			case !p.known || p.skipped:
			case p.returned:
				until = none
			default:
				until = min(until, max(p.came, p.ended))
			}
		}
	}
	if slot, ok := w.oldest(); ok {
		until = min(until, slot*w.step)
	}
	n := 0
	for n < len(w.out) && add(w.out[n].slot*w.step, w.wait) <= until {
		n++
	}
	if w.out = w.out[n:]; len(w.out) == 0 {
		return at
	}
	return min(at, add(w.out[0].place, w.deadline))
}

func (w *patience) code(c *coder) {
	wire.List(&c.Coder, &w.out, stairsMost, 2, func(s *stair) {
		c.Ints(&s.slot)
		c.times(&s.place)
	})
}
