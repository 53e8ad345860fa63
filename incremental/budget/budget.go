// Package budget counts the work of an engine in steps, so that none of its stages can
// take more than was granted, whatever comes in, and so that the same input is given up
// at the same place.
//
// All stages draw from one Budget. A step is about what one question of reachability
// costs, some ten nanoseconds; a stage that does more at once says how much. When what
// was granted is used up, the budget has *ended*, for good:
//
//	used    0 ────────── half ────────── granted ───────────── twice granted ──▶
//	        all is done │ be done soon │ only what is certain │ nothing
//
// What takes a choice (orders of versions, searches) stops there. What is certain
// (dependencies that the records show) has as much again, and violations by it are still
// found. Forgetting an edge can hide a violation and never makes one, so that all that is
// found stays true; but nothing is satisfied any more.
package budget

import "math"

// AskEvery is how many steps lie between two questions to Stop, unless one draw alone is
// of more.
const AskEvery = 4096

// Budget is what one engine may still do. The zero Budget grants nothing; it is for one
// goroutine.
type Budget struct {
	// Stop, if not nil, is asked now and then whether to end all work at once.
	Stop func() bool
	// HeldMax bounds the bytes that are held at a time, if it is above 0; see Hold.
	HeldMax int

	held                 int
	used, granted, asked uint64
	ended, stopped       bool
}

// Unlimited never ends by itself.
func Unlimited() *Budget { return &Budget{granted: math.MaxUint64 / 4} }

// Grant allows n more steps. It does not bring back what has ended.
func (b *Budget) Grant(n int) { b.granted += uint64(max(n, 0)) }

// Take draws n steps for work that may be given up, and tells whether it is to be done.
func (b *Budget) Take(n int) bool {
	b.Use(n)
	return !b.ended && !b.stopped
}

// Certain draws n steps for what the records show, and tells whether it is to be done.
func (b *Budget) Certain(n int) bool {
	b.Use(n)
	return b.used < 2*b.granted && !b.stopped
}

// Use draws n steps for work that was done.
func (b *Budget) Use(n int) {
	b.used += uint64(n)
	if b.used >= b.granted {
		b.ended = true
	}
	if b.used-b.asked >= AskEvery {
		b.Ask()
	}
}

// Ask asks Stop at once, and tells whether it has ever said so.
func (b *Budget) Ask() bool {
	b.asked = b.used
	if !b.stopped && b.Stop != nil {
		b.stopped = b.Stop()
	}
	return b.stopped
}

// Hold says that n more bytes are held, or, if n is negative, fewer: the budget ends with steps or
// with room, whichever is first.
func (b *Budget) Hold(n int) {
	if b.held += n; b.HeldMax > 0 && b.held >= b.HeldMax {
		b.ended = true
	}
}

// End ends the budget, as something else has run out.
func (b *Budget) End() { b.ended = true }

// Ended tells whether more was drawn than granted, at any time.
func (b *Budget) Ended() bool { return b.ended }

// Stopped tells whether Stop has said so.
func (b *Budget) Stopped() bool { return b.stopped }

// Half tells whether half of what was granted is used, or of the room, or it has ended.
func (b *Budget) Half() bool {
	return b.ended || b.used >= b.granted/2 || b.HeldMax > 0 && b.held >= b.HeldMax/2
}

// Used is how many steps were drawn.
func (b *Budget) Used() uint64 { return b.used }
