// Package budget counts the work of an engine in steps, and what it holds in bytes, so that none of
// its stages can take more than was granted, whatever comes in, and so that the same input is given
// up at the same place.
//
// A step is about what one question of reachability costs, some ten nanoseconds; a stage that does
// more at once says how much. The levels of an engine draw from shares of one Budget. A share has
// *ended*, for good, when all is used up and it has used what falls to it if all get the same:
//
//	used    0 ────────── half ────────── granted ───────────── twice granted ──▶
//	        all is done │ be done soon │ only what is certain │ nothing
//
// So one that takes little is never given up for one that takes all, and what some do not need
// serves the others. All together use at most twice what was granted.
//
// What takes a choice (orders of versions, searches) stops where a share has ended. What is certain
// (dependencies that the records show) has as much again, and violations by it are still
// found. Forgetting an edge can hide a violation and never makes one, so that all that is
// found stays true; but nothing is satisfied any more.
package budget

import (
	"cmp"
	"math"
)

// AskEvery is Budget.Every if that is 0.
const AskEvery = 4096

// Budget is what one engine may still do. The zero Budget grants nothing; it is for one
// goroutine.
type Budget struct {
	// Stop, if not nil, is asked now and then whether to end all work at once.
	Stop func() bool
	// HeldMax bounds the bytes that are held at a time, if it is above 0; see Share.Hold.
	HeldMax int
	// Every is how many steps lie between two questions to Stop, unless one draw alone is of more; 0: AskEvery.
	Every uint64

	shares, held         int
	used, granted, asked uint64
	ended, over, stopped bool
}

// Share is what one of several may draw from a Budget.
type Share struct {
	all   *Budget
	held  int
	used  uint64
	ended bool
}

// Unlimited never ends by itself.
func Unlimited() *Budget { return &Budget{granted: math.MaxUint64 / 4} }

// Grant allows some more steps, and bytes, if they are bounded. It does not bring back what has ended.
func (b *Budget) Grant(steps, bytes int) {
	b.granted += uint64(max(steps, 0))
	if b.HeldMax > 0 {
		b.HeldMax += bytes
	}
}

// Share makes a share, which is as large as any other.
func (b *Budget) Share() *Share {
	b.shares++
	return &Share{all: b}
}

// Leave gives back what s holds; nothing is to be drawn from it any more.
func (s *Share) Leave() {
	s.all.held -= s.held
	s.all.shares--
}

// Take draws n steps for work that may be given up, and tells whether it is to be done.
func (s *Share) Take(n int) bool {
	s.Use(n)
	return !s.Ended() && !s.all.stopped
}

// Certain draws n steps for what the records show, and tells whether it is to be done.
func (s *Share) Certain(n int) bool {
	s.Use(n)
	return !s.spent(2) && !s.all.stopped
}

// spent tells whether all that was granted is used so many times, and what falls to s.
func (s *Share) spent(times uint64) bool {
	b := s.all
	return b.used >= times*b.granted && s.used >= times*b.granted/uint64(max(1, b.shares))
}

// Use draws n steps for work that was done.
func (s *Share) Use(n int) {
	b := s.all
	b.used, s.used = b.used+uint64(n), s.used+uint64(n)
	if s.spent(1) {
		s.end()
	}
	if b.used-b.asked >= cmp.Or(b.Every, AskEvery) {
		b.Ask()
	}
}

// Hold says that n more bytes are held, or, if n is negative, fewer: a share ends with steps or
// with room, whichever is first.
func (s *Share) Hold(n int) {
	s.held, s.all.held = s.held+n, s.all.held+n
	if !s.room(s.all.HeldMax) {
		s.end()
	}
}

// Roomy tells whether there is room for what need not be held: a fourth is left for the rest.
func (s *Share) Roomy() bool { return s.room(s.all.HeldMax / 4 * 3) }

// room tells whether less than most is held by all, or less of it than falls to s.
func (s *Share) room(most int) bool {
	return s.all.HeldMax <= 0 || s.all.held < most || s.held < most/max(1, s.all.shares)
}

func (s *Share) end() { s.ended, s.all.ended = true, true }

// Ended tells whether s has ended, at any time.
func (s *Share) Ended() bool { return s.ended || s.all.over }

// Stopped tells whether Stop has said so.
func (s *Share) Stopped() bool { return s.all.stopped }

// Ask is Budget.Ask.
func (s *Share) Ask() bool { return s.all.Ask() }

// Ask asks Stop at once, and tells whether it has ever said so.
func (b *Budget) Ask() bool {
	b.asked = b.used
	if !b.stopped && b.Stop != nil {
		b.stopped = b.Stop()
	}
	return b.stopped
}

// End ends all shares, as something else has run out.
func (b *Budget) End() { b.ended, b.over = true, true }

// Ended tells whether a share has ended, at any time.
func (b *Budget) Ended() bool { return b.ended }

// Half tells whether half of what was granted is used, or of the room, or a share has ended.
func (b *Budget) Half() bool {
	return b.ended || b.used >= b.granted/2 || b.HeldMax > 0 && b.held >= b.HeldMax/2
}

// Used is how many steps were drawn.
func (b *Budget) Used() uint64 { return b.used }
