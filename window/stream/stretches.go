package stream

import (
	"cmp"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/window/segment"
)

// Stretch is a part of the stream, from one cut to the next, and what of it is
// known to be complete (docs/windows.md). Every transaction lies in one, by its place in
// the order.
type Stretch struct {
	// From and To are transactions, counted from 0 as they left the order: To is not
	// among them. Begin and End are the least and the greatest of their places in the
	// stream's time, in Unix nanoseconds.
	From, To   uint64
	Begin, End int64
	// Partial is what may hide an anomaly of this stretch, or one that leads out of
	// it.
	Partial Whys
	// Cut: something was forgotten at one of its ends, which no longer matters to
	// levels that are ordered by fences and snapshots. ByClock: only clocks prove that.
	Cut, ByClock bool
	// Open: it has not ended.
	Open bool
}

// Completeness says whether every anomaly of a stretch is found.
type Completeness uint8

// From the least to the most.
const (
	Partial          Completeness = iota
	AssumingRealTime              // complete if the database keeps real time, which the level does not ask for
	Complete
)

var completenessNames = [...]string{"partial", "complete, assuming real time", "complete"}

func (c Completeness) String() string { return completenessNames[c] }

// At says how complete a stretch is for a level: whether each anomaly that breaks
// the level and whose transactions all lie in the stretch is told, and none leads out
// of it. That is about the records that came: with partial coverage, nothing is
// concluded from the absence of others.
func (s *Stretch) At(l verdict.Level) Completeness {
	realTime := l.RealTime()
	switch {
	case s.Partial&^(WhyTimes|WhyKeys) != 0, realTime && s.Partial&WhyTimes != 0,
		l == verdict.LIN && s.Partial&WhyKeys != 0:
		return Partial
	case !s.Cut:
		return Complete
	case !realTime && l != verdict.SER && l != verdict.SI:
		return Partial // what is stale is legal there, so a cycle may cross any cut
	case !s.ByClock:
		return Complete
	case realTime:
		return Complete
	}
	return AssumingRealTime
}

// Whys are reasons, of a closed set, for which a stretch is partial.
type Whys uint32

// The reasons beside those of LossWhy, each of which is the bit 1<<LossWhy.
const (
	// WhyForgotten: versions or reads that still mattered were given up, or what would
	// prove a violation.
	WhyForgotten Whys = 1 << (lossWhys + iota)
	// WhyUndecided: what is open for good, or was when the segment ended.
	WhyUndecided
	// WhyStraddling: a transaction has no order against what is beyond a cut.
	WhyStraddling
	// WhyLimit: it was cut where nothing proves an order, as it had become too long.
	WhyLimit
	// WhyTimes: times of a transaction were not used, or not to the full. It matters to
	// levels with real time only.
	WhyTimes
	// WhyKeys: a transaction has several keys, of which lin says nothing. It matters to no other level.
	WhyKeys
	whysEnd
)

var whyNames = [...]string{"forgotten", "undecided", "straddling", "cut-by-limit", "times-unused", "several-keys"}

// Names are the names of the reasons, those of losses first.
func (w Whys) Names() []string {
	var out []string
	for i := range lossWhys {
		if w&(1<<i) != 0 {
			out = append(out, i.String())
		}
	}
	for i, name := range whyNames {
		if w&(WhyForgotten<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// StretchesMost is how many stretches are told apart. Neighbours of which the same is
// known are one; of more, the two oldest are joined.
const StretchesMost = 64

// stretches follows which parts of a stream are complete.
//
// Invariant: done are without gaps, oldest first; now begins where the last one
// ends. Nothing is taken back but by a record that came late, or did not come at all.
type stretches struct {
	Done []Stretch `json:",omitempty"`
	Now  Stretch
	// Lost are the times between which something was lost, by LossWhy: the least and
	// the greatest, as far as they reach beyond Done.
	Lost [lossWhys]span
	// Dropped is what had been given up when Now began, Stray is one more than the last transaction that
	// straddles the cut in front of Now, Untimely that of the last one of WhyTimes, Withheld that of the
	// last one that may be part of what was found and not told.
	Dropped, Stray, Untimely, Withheld uint64
	// Marks are of ticks: of the latest ones, and fewer the longer ago they were.
	Marks []mark `json:",omitempty"`

	isEnded bool // nothing will be added: what was open in the end is told with the last
}

// mark says that none of the first transactions has a place behind At.
type mark struct {
	First uint64
	At    int64
}

// marksMost is how many marks are kept.
const marksMost = 256

// mark notes that none of the transactions so far has a place behind some time.
func (s *stretches) mark(at int64) {
	if len(s.Marks) >= marksMost {
		for i := range marksMost / 2 {
			s.Marks[i] = s.Marks[2*i+1]
		}
		s.Marks = s.Marks[:marksMost/2]
	}
	s.Marks = append(s.Marks, mark{s.Now.To, at})
}

// before is how many transactions have a place before some time, at least; math.MaxInt64: all.
func (s *stretches) before(at int64) uint64 {
	if at == math.MaxInt64 {
		return s.Now.To
	}
	n, _ := slices.BinarySearchFunc(s.Marks, at, func(m mark, at int64) int { return cmp.Compare(m.At, at) })
	if n == 0 {
		return 0
	}
	return s.Marks[n-1].First
}

// span is from one time to another; empty if none is set.
type span struct {
	Set      bool
	From, To int64
}

func newStretches() stretches {
	return stretches{Now: Stretch{Begin: math.MaxInt64, End: noTime}}
}

// released takes in the transaction at the end of the stream.
func (s *stretches) released(at int64, straddles bool) {
	s.Now.To++
	if straddles {
		s.Stray = s.Now.To
	}
	s.Now.Begin, s.Now.End = min(s.Now.Begin, at), max(s.Now.End, at)
	if straddles {
		s.Now.Partial |= WhyStraddling
	}
}

// straddled says that the transaction that is released next was read from by one of
// that time, which an earlier segment had. What leads from the one to the other may lie in
// all that is between them.
func (s *stretches) straddled(since int64) {
	for i := len(s.Done) - 1; i >= 0 && s.Done[i].End >= since; i-- {
		s.Done[i].Partial |= WhyStraddling
	}
}

// untimely says that the times of the transaction that is released next are not used to
// the full.
func (s *stretches) untimely() {
	s.Untimely = s.Now.To + 1
	s.Now.Partial |= WhyTimes
}

// passed says that the transaction that is released next, which came behind more than was waited for, or from a
// partition that was silent for a while, belongs to that time, in front of others that were released. What leads from it
// to those of stretches that have ended may be missed.
func (s *stretches) passed(at int64) {
	for i := len(s.Done) - 1; i >= 0 && s.Done[i].End >= at; i-- {
		s.Done[i].Partial |= 1 << LostPartition
	}
}

// forgot says that reads of a transaction of that time were given up while they waited: what they show, with others behind
// them, may be missed.
func (s *stretches) forgot(at int64) {
	for i := len(s.Done) - 1; i >= 0 && s.Done[i].End >= at; i-- {
		s.Done[i].Partial |= WhyForgotten
	}
}

// withheld says that a violation is not told which was found among the transactions so
// far, those of the stretch that has ended last included.
func (s *stretches) withheld() {
	s.Withheld = s.Now.To
	s.Now.Partial |= WhyForgotten
	if n := len(s.Done); n > 0 {
		s.Done[n-1].Partial |= WhyForgotten
	}
}

// lost says that a record that belongs somewhere between two times is missing. What
// lies between two stretches belongs to the later one.
func (s *stretches) lost(why LossWhy, from, to int64) {
	for i := len(s.Done) - 1; i >= 0 && s.Done[i].End >= from; i-- {
		if i == 0 || s.Done[i-1].End <= to {
			s.Done[i].Partial |= 1 << why
		}
	}
	x := &s.Lost[why]
	if !x.Set {
		*x = span{true, from, to}
	}
	x.From, x.To = min(x.From, from), max(x.To, to)
}

// cut ends the stretch in front of a cut: end is the greatest time before it, begin
// the least after it. more is what else is known to be missing of what was before.
func (s *stretches) cut(c segment.Cut, end, begin int64, more Whys) {
	old := s.Now
	old.To, old.End, old.Cut = min(c.From, old.To), end, true
	next := Stretch{From: old.To, To: s.Now.To, Begin: begin, End: s.Now.End, Cut: true}
	switch {
	case c.Complete || c.AssumingRealTime:
		old.ByClock = old.ByClock || c.Kind == segment.Clock
		next.ByClock = c.Kind == segment.Clock
	case c.Kind == segment.Limit:
		old.Partial |= WhyLimit
		next.Partial |= WhyLimit
	}
	if c.Straddlers > 0 || c.Kind != segment.Limit && !c.Complete && !c.AssumingRealTime {
		old.Partial |= WhyStraddling
	}
	if s.Stray > next.From { // it is in the overlap
		next.Partial |= WhyStraddling
	}
	if s.Untimely > next.From {
		next.Partial |= WhyTimes
	}
	if s.Withheld > next.From {
		next.Partial |= WhyForgotten
	}
	old.Partial |= more | s.lostUntil(old.End)
	s.forgetLosses(old.End)
	if old.To > old.From {
		s.add(old)
	}
	s.Now = next
}

// lostUntil are the losses behind Done and not after some time.
func (s *stretches) lostUntil(to int64) (out Whys) {
	for i, x := range s.Lost {
		if x.Set && x.From <= to {
			out |= 1 << i
		}
	}
	return out
}

// forgetLosses drops what was lost before a time, at which Done ends.
func (s *stretches) forgetLosses(before int64) {
	for i := range s.Lost {
		if s.Lost[i].To < before {
			s.Lost[i] = span{}
		}
	}
}

// add appends a stretch that has ended.
func (s *stretches) add(x Stretch) {
	if n := len(s.Done); n > 0 && s.Done[n-1].same(&x) {
		s.Done[n-1].join(&x)
		return
	}
	s.Done = append(s.Done, x)
	if len(s.Done) >= StretchesMost {
		s.Done[0].join(&s.Done[1])
		s.Done = slices.Delete(s.Done, 1, 2)
	}
}

// same tells whether the same is known of two stretches.
func (s *Stretch) same(x *Stretch) bool {
	return s.Partial == x.Partial && s.Cut == x.Cut && s.ByClock == x.ByClock
}

// join makes one of two neighbours; what is known of both is known of it.
func (s *Stretch) join(x *Stretch) {
	s.To, s.Begin, s.End = x.To, min(s.Begin, x.Begin), max(s.End, x.End)
	s.Partial |= x.Partial
	s.Cut, s.ByClock = s.Cut || x.Cut, s.ByClock || x.ByClock
}

// ended is the end of the stream.
func (s *stretches) ended(more Whys) {
	s.isEnded = true
	if s.Now.To == s.Now.From {
		if n := len(s.Done); n > 0 {
			s.Done[n-1].Partial |= more
		}
		return
	}
	x := s.Now
	x.Partial |= more | s.lostUntil(math.MaxInt64)
	s.add(x)
	s.Now = Stretch{From: x.To, To: x.To, Begin: math.MaxInt64, End: noTime, Cut: x.Cut, ByClock: x.ByClock}
}

// all are the stretches as far as they lie before a time, the one that has not ended last; more is what is known to be
// missing of that, or of reads of the others that waited when these ended.
func (s *stretches) all(before int64, more Whys) []Stretch {
	out := slices.Clone(s.Done)
	if s.isEnded { // what was missing at the end is in it
		more = 0
	}
	if s.Now.To > s.Now.From {
		x := s.Now
		x.Open = true
		x.Partial |= more | s.lostUntil(math.MaxInt64)
		out = append(out, x)
	}
	out = slices.DeleteFunc(out, func(x Stretch) bool { return x.Begin >= before })
	for i := range out {
		out[i].End = min(out[i].End, before-1)
	}
	if n := len(out); n > 0 {
		out[n-1].Partial |= more
	}
	return out
}

// unjudged is what results leave open, beside what was found; as yet: what more input may decide is not left open.
func unjudged(results []verdict.Result, asYet bool) (out Whys) {
	for i := range results {
		r := &results[i]
		if r.OpenForGood() || !asYet && r.Reason != verdict.NoReason {
			out |= WhyUndecided
		}
		if r.Outcome == verdict.NotApplicable {
			out |= WhyKeys
		}
	}
	return out
}
