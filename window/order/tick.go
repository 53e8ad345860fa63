package order

import "math"

// ticks is the schedule by which the engine is told the time. The records' time
// is cut into slots of Every; a slot in which records were released ends with one
// tick, which says that all up to the last of them is out, or up to what has to be out once
// it is (mark.go). Where none were in the slot that follows, that ends with another one: for
// now nothing more comes.
// So a tick is between the same two releases, and says the same, whatever the batches, the
// interleaving and the time of day; but for what patience holds back.
type ticks struct {
	last    int64 // greatest key released
	told    int64 // the time of the latest tick
	pending bool  // released since the latest tick
	silent  bool  // that silence followed the last release has not been told
	// behind is how much before the last release a tick says that all is out.
	behind int64
}

// out is the time of a tick that follows the last release.
func (t *ticks) out() int64 { return sub(add(t.last, 1), t.behind) }

// end is where the next tick is due if nothing else is released.
func (t *ticks) end(every int64) int64 {
	if t.pending {
		return add(floor(t.last, every), every)
	}
	return add(add(floor(t.last, every), every), every)
}

// before notes that a record is released under key, and tells how many ticks, of the same
// time, must go before it.
func (t *ticks) before(key, every int64) (at int64, n int) {
	if every <= 0 {
		return 0, 0
	}
	for ; key > t.last && key >= t.end(every) && t.take(); n++ {
		at = t.out()
	}
	t.last, t.pending, t.silent = max(t.last, key), true, true
	return at, n
}

// take notes that a tick is made, and tells whether there was one to be made.
func (t *ticks) take() bool {
	switch {
	case t.pending:
		t.pending = false
	case t.silent:
		t.silent = false
	default:
		return false
	}
	return true
}

// Tick tells whether a tick is due although no record after it has been released:
// nothing more is waited for in this slot, for the mark has passed it, or the stream
// has been silent for long enough. It is to be called when Next has returned false,
// and the tick to be made if it says so. O(1).
func (o *Order) Tick() (at int64, due bool) {
	o.settle()
	if o.opt.Every <= 0 || o.stands {
		return 0, false
	}
	if !o.ticks.pending && !o.ticks.silent {
		return o.resume()
	}
	end := o.ticks.end(int64(o.opt.Every))
	if max(o.mark, o.quiet) < end && !o.flushed || o.top() && o.heads[0].key < end {
		return o.resume()
	}
	o.ticks.take()
	o.ticks.told = o.proved(o.ticks.out())
	return o.ticks.told, true
}

// resume tells whether the latest tick, which patience held back, may now go on.
func (o *Order) resume() (at int64, due bool) {
	whole := o.ticks.out()
	if o.ticks.pending || o.ticks.told >= whole {
		return 0, false
	}
	if at = o.proved(whole); at <= o.ticks.told {
		return 0, false
	}
	o.ticks.told = at
	return at, true
}

// floor is the greatest multiple of every that is not greater than t.
func floor(t, every int64) int64 {
	r := t % every
	if r < 0 {
		r += every
	}
	if t < math.MinInt64+r {
		return math.MinInt64
	}
	return t - r
}
