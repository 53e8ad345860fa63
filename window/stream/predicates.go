package stream

import (
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/frontier"
)

// The engine only counts predicates: which conditions will be asked of a row is not known when it is written. So a
// segment that has predicates is judged as a whole now and then, as a history of its own (Config.Predicates): the
// seeds, and its records. Of what these read is left out
//
//   - what the seeds did,
//   - what somebody may have written whose record is still to come,
//   - what is read of a key of which a write is forgotten,
//   - and what is in an anomaly that was told, so that others show.
//
// With fewer reads more is allowed: nobody is accused who would not be with all of them.

// A segment is judged again when an eighth more of it is decided, lookLeast at least or what the overlap has: all that
// takes a constant times what the last one takes.
const lookPart, lookLeast = 8, 64

// lookMost is of how many records, as they weigh, a segment with predicates is at most.
const lookMost = DefaultSegment

// hasPredicates tells whether the segment has predicates that can be judged.
func (s *segments) hasPredicates() bool {
	if s.cfg.Predicates == nil || len(s.lost) > 0 {
		return false
	}
	is := s.engine.State()
	return is.Predicates && !s.lazy || s.since && (is.Predicates || len(s.rows.Ops) > 0)
}

// lookAtTick judges the predicates of the segment if enough of it is decided, or it ends.
func (s *segments) lookAtTick(ends bool) {
	next := s.looked + max(min(lookLeast, s.cfg.Overlap), s.looked/lookPart)
	if !ends && len(s.fed) < next || !s.hasPredicates() {
		return
	}
	if n := s.undecidedFrom(); ends || n >= next {
		if s.looked = n; !s.explained(s.decidedBefore(), ends) && s.hasPredicates() {
			s.look(s.decidedBefore(), toldOf, s.cfg.Levels)
		}
	}
}

// orderRules are those of an order that satisfies all levels that are asked for, if there can be one.
func (s *segments) orderRules() (rules predicate.Rules, is bool) {
	if s.cfg.Clock == record.ClockDatabase || slices.Contains(s.cfg.Levels, verdict.LIN) {
		return rules, false
	}
	for _, l := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER} {
		if !slices.ContainsFunc(s.cfg.Levels, func(asked verdict.Level) bool { return !l.Implies(asked) }) {
			return predicate.Rules{Level: l, Sessions: s.cfg.Sessions == record.SessionsKeep, MaxSkew: s.cfg.MaxSkew,
				RealTime: l.RealTime() || s.cfg.Clock.Enforces()}, !l.RealTime() || s.cfg.Clock != record.ClockIgnore
		}
	}
	return rules, false
}

// explained tells whether an order explains what predicates of the segment found, but for what ended at undecided or
// later: then there is nothing to be told. It goes on where it was; where none was found one is looked for again, from
// the first record on, when there are twice as many. ends: with this the segment does.
func (s *segments) explained(undecided int64, ends bool) bool {
	if s.running == nil && !s.beginOrder() {
		return s.unexplained()
	}
	to := len(s.fed)
	for ; to > s.added && before(s.fed[to-1].at, besideTimes*s.longest+s.cfg.MaxSkew) >= undecided; to-- {
	}
	for ; s.added < to; s.added++ {
		f := s.fed[s.added]
		if f.flags&ordered != 0 {
			continue
		}
		came := predicate.Came{At: f.at, Unasked: f.flags&toldOf != 0, Started: f.flags&started != 0}
		t, err := s.source.record(f.ref, f.flags)
		if err != nil || f.flags&base != 0 || s.running.Add(t, came) != nil || s.added%lookLeast == 0 && s.stopped() {
			return s.unexplained()
		}
	}
	return s.running.Extend(undecided, ends) || s.unexplained()
}

// besideTimes is how many times as long as a transaction took at most others may have ended later that an order puts
// beside it: these started later by less than times are distrusted. Who ended later still is not added yet.
const besideTimes = 9

// beginOrder begins an order: where one explains all that came before the segment, from what that one left, else from
// the seeds, and without what is lossy.
func (s *segments) beginOrder() bool {
	rules, is := s.orderRules()
	if !is || len(s.fed) < s.resumes {
		return false
	}
	seeds, lossy := s.seeds, s.lossy
	if s.since {
		seeds, lossy = nil, nil
	}
	s.running, s.added = predicate.NewRunning(rules, lossy, s.stopped), 0
	if s.since && s.running.Begin(&s.rows) != nil {
		return false
	}
	for i := range seeds {
		if s.running.Meet(&seeds[i]) != nil {
			return false
		}
	}
	for _, f := range s.fed {
		if f.flags&ordered != 0 {
			continue // its tables are those of the rows
		}
		if t, err := s.source.record(f.ref, f.flags); err != nil || f.flags&base != 0 || s.running.Meet(t) != nil {
			return false
		}
	}
	for i := range seeds {
		if s.running.Add(&seeds[i], predicate.Came{At: math.MinInt64, Unasked: true}) != nil {
			return false
		}
	}
	return true
}

// unexplained gives up the order.
func (s *segments) unexplained() bool {
	if s.running != nil {
		s.running, s.resumes = nil, 2*len(s.fed)
	}
	s.endOrder()
	return false
}

// endOrder: from now on no order explains all since the beginning.
func (s *segments) endOrder() {
	s.since, s.rows = false, record.Transaction{}
	for i := range s.fed {
		s.fed[i].flags &^= ordered | started
	}
}

// rowsPart is the part of what an engine may take that rows of tables may, from segment to segment, and rowBytes about
// what one takes besides its texts.
const rowsPart, rowBytes = 8, 512

// passOn notes what an order that explains all so far leaves of rows, and which of the overlap, that begins at
// fed[from], are in it.
func (s *segments) passOn(from int) {
	if !s.since {
		return
	}
	if !s.hasPredicates() || s.running == nil && !s.explained(s.decidedBefore(), true) || s.running.Logged() {
		s.endOrder()
		return
	}
	n := 0
	for i := range s.fed {
		f := &s.fed[i]
		if f.flags&ordered != 0 {
			continue
		}
		f.flags &^= started
		is, hasStarted := false, false
		if i < s.added {
			is, hasStarted = s.running.Placed(n)
		}
		switch n++; {
		case is:
			f.flags |= ordered
		case hasStarted:
			f.flags |= started
		}
		if i < from && !is {
			// Somebody of whom it is not known whether he committed did not, for all that was found.
			if t, err := s.source.record(f.ref, f.flags); err != nil || t.Status == record.Committed {
				s.endOrder()
				return
			}
		}
	}
	s.rows = s.running.Rows()
	bytes := 0
	for i := range s.rows.Ops {
		bytes += rowBytes + len(s.rows.Ops[i].Key) + len(s.rows.Ops[i].Value.Text)
	}
	if s.cfg.BytesMax > 0 && bytes > s.cfg.BytesMax/rowsPart {
		s.endOrder()
	}
}

// sinceExplained has no level be open that an order satisfies which explains all since the beginning.
func (s *segments) sinceExplained(results []verdict.Result) []verdict.Result {
	for i, r := range results {
		if s.since && r.Outcome == verdict.Unknown {
			results[i] = verdict.Result{Level: r.Level, Outcome: verdict.Satisfied}
		}
	}
	return results
}

// lossy tells whether a write of a key may be forgotten.
func (s *segments) lossy(key string) bool {
	return s.number > 0 && s.front.State(key)&(frontier.Lossy|frontier.Repeated) != 0
}

// look judges the segment at some levels, and tells what it finds; none: its predicates can't be judged. Reads of
// records that ended at undecided or later, or have one of the flags, are left out. What the records hold is unpacked
// for that, so none are judged that hold more than half of what an engine may.
func (s *segments) look(undecided int64, without fedFlags, levels []verdict.Level) []verdict.Result {
	defer s.cfg.measure(PartTick)()
	var b packed.Builder
	texts := 0
	for i := range s.seeds {
		b.Add(&s.seeds[i])
	}
	for i, f := range s.fed {
		t, err := s.source.record(f.ref, f.flags)
		if err != nil || f.flags&base != 0 || i%lookLeast == 0 && s.stopped() {
			return nil
		}
		for i := range t.Ops {
			texts += len(t.Ops[i].Value.Text)
		}
		if s.cfg.BytesMax > 0 && texts > s.cfg.BytesMax/2 {
			return nil
		}
		b.Add(t)
	}
	unasked := predicate.Unasked{Key: s.lossy, Txn: func(t int) bool {
		i := t - len(s.seeds)
		return i < 0 || s.fed[i].at >= undecided || s.fed[i].flags&without != 0
	}}
	if s.number == 0 && undecided == math.MaxInt64 && !s.hasFlag(without) {
		unasked = predicate.Unasked{}
	}
	results, find, found := s.cfg.Predicates(b.Records(), levels, s.under(), unasked)
	for _, l := range verdict.Levels() { // the weakest first
		for i, r := range results {
			for _, v := range r.Violations {
				if r.Level == l {
					s.tellPredicates(v, find(i), found)
				}
			}
		}
	}
	return results
}

// tellPredicates passes on what breaks levels, unless all that proves it is in what was told, and breaks the same
// levels.
func (s *segments) tellPredicates(v verdict.Violation, find Find, found Found) {
	news := false
	for _, t := range v.Evidence {
		if i := int(t) - len(s.seeds); i >= 0 && s.fed[i].flags&toldOf == 0 {
			s.fed[i].flags |= toldOf
			s.running, news = nil, true
			s.endOrder()
		}
	}
	results := make([]verdict.Result, len(s.cfg.Levels))
	for i, l := range s.cfg.Levels {
		results[i] = verdict.Result{Level: l, Outcome: verdict.Satisfied}
		if l.Implies(v.Level) {
			results[i].Outcome = verdict.Violated
			news = news || !s.isBroken(l)
		}
	}
	if !news {
		return
	}
	s.count(results)
	s.found = append(s.found, Violation{Violation: v, Under: s.under(), Segment: s.number, Find: find, Found: found})
}

// closePredicates judges the predicates of the last segment, once the input has ended, and puts what that says of
// levels in place of what the engine left open.
func (s *segments) closePredicates(results []verdict.Result) []verdict.Result {
	if s.hasPredicates() && s.explained(math.MaxInt64, true) && s.running.Holds() {
		if s.number > 0 || !s.hasFlag(toldOf) {
			return s.sinceExplained(results)
		}
	}
	if s.endOrder(); !s.hasPredicates() {
		return results
	}
	whole := s.look(math.MaxInt64, toldOf, s.cfg.Levels)
	if s.number > 0 || whole == nil {
		return results
	}
	if s.hasFlag(toldOf) {
		if left := slices.DeleteFunc(slices.Clone(s.cfg.Levels), s.isBroken); len(left) > 0 {
			whole = s.look(math.MaxInt64, 0, left)
		}
	}
	for i := range results {
		for _, r := range whole {
			if r.Level == results[i].Level && results[i].Outcome == verdict.Unknown {
				r.Violations = nil
				results[i] = r
			}
		}
	}
	return results
}

// hasFlag tells whether a record of the segment has one of the flags.
func (s *segments) hasFlag(flags fedFlags) bool {
	return slices.ContainsFunc(s.fed, func(f fed) bool { return f.flags&flags != 0 })
}

// isBroken tells whether something was told that breaks a level.
func (s *segments) isBroken(l verdict.Level) bool {
	return slices.ContainsFunc(s.past, func(r verdict.Result) bool {
		return r.Level == l && r.Outcome == verdict.Violated
	})
}
