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
	return s.cfg.Predicates != nil && s.engine.Predicates() && !s.lazy && len(s.lost) == 0
}

// lookAtTick judges the predicates of the segment if enough of it is decided, or it ends.
func (s *segments) lookAtTick(ends bool) {
	next := s.looked + max(min(lookLeast, s.cfg.Overlap), s.looked/lookPart)
	if !ends && len(s.fed) < next || !s.hasPredicates() {
		return
	}
	if n := s.undecidedFrom(); ends || n >= next {
		if s.looked = n; !s.explained(s.decidedBefore(), ends) {
			s.look(s.decidedBefore(), toldOf, s.cfg.Levels)
		}
	}
}

// orderRules are those of an order that satisfies all levels that are asked for, if there can be one.
func (s *segments) orderRules() (rules predicate.Rules, is bool) {
	if s.cfg.Clock == record.ClockDatabase || slices.Contains(s.cfg.Levels, verdict.LIN) {
		return rules, false
	}
	for _, l := range []verdict.Level{verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER} {
		if !slices.ContainsFunc(s.cfg.Levels, func(asked verdict.Level) bool { return !l.Implies(asked) }) {
			realTime := l == verdict.StrongSI || l == verdict.SSER
			return predicate.Rules{Sessions: s.cfg.Sessions == record.SessionsKeep, RealTime: realTime || s.cfg.Clock.Enforces(),
				MaxSkew: int64(s.cfg.MaxSkew), Starts: !l.Implies(verdict.SER)}, !realTime || s.cfg.Clock != record.ClockIgnore
		}
	}
	return rules, false
}

// explained tells whether an order explains what predicates of the segment found, but for what ended at undecided or
// later: then there is nothing to be told. It goes on where it was; where none was found one is looked for again, from
// the first record on, when there are twice as many. ends: with this the segment does.
func (s *segments) explained(undecided int64, ends bool) bool {
	if s.running == nil {
		rules, is := s.orderRules()
		if !is || len(s.fed) < s.resumes {
			return false
		}
		s.running, s.added = predicate.NewRunning(rules, predicate.Unasked{Key: s.lossy, Txn: func(t int) bool {
			i := t - len(s.seeds)
			return i < 0 || s.fed[i].flags&toldOf != 0
		}}, s.stopped), 0
		for i := range s.seeds {
			if s.running.Meet(&s.seeds[i]) != nil {
				return s.unexplained()
			}
		}
		for _, f := range s.fed {
			if t, err := s.source.record(f.ref, f.flags); err != nil || f.flags&base != 0 || s.running.Meet(t) != nil {
				return s.unexplained()
			}
		}
		for i := range s.seeds {
			if s.running.Add(&s.seeds[i]) != nil {
				return s.unexplained()
			}
		}
	}
	for ; s.added < len(s.fed); s.added++ {
		f := s.fed[s.added]
		t, err := s.source.record(f.ref, f.flags)
		if err != nil || f.flags&base != 0 || s.running.Add(t) != nil || s.added%lookLeast == 0 && s.stopped() {
			return s.unexplained()
		}
	}
	isDecided := func(t int) bool {
		i := t - len(s.seeds)
		return i < 0 || s.fed[i].at < undecided
	}
	if undecided == math.MaxInt64 {
		isDecided = nil
	}
	if !s.running.Extend(isDecided, ends) {
		return s.unexplained()
	}
	return true
}

// unexplained gives up the order.
func (s *segments) unexplained() bool {
	s.running, s.resumes = nil, 2*len(s.fed)
	return false
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

// under is what a violation is judged under that rests on nothing that is forgotten.
func (s *segments) under() (f Violation) {
	f.Coverage, f.Tables = s.declared()
	f.Repeats = !s.unique && (f.Coverage == record.CoveragePartial || len(f.Tables) > 0)
	return f
}

// tellPredicates passes on what breaks levels, unless all that proves it is in what was told, and breaks the same
// levels.
func (s *segments) tellPredicates(v verdict.Violation, find Find, found Found) {
	news := false
	for _, t := range v.Evidence {
		if i := int(t) - len(s.seeds); i >= 0 && s.fed[i].flags&toldOf == 0 {
			s.fed[i].flags |= toldOf
			s.running, news = nil, true
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
	f := s.under()
	f.Violation, f.Segment, f.Find, f.Found = v, s.number, find, found
	s.found = append(s.found, f)
}

// closePredicates judges the predicates of the last segment, once the input has ended, and puts what that says of
// levels in place of what the engine left open.
func (s *segments) closePredicates(results []verdict.Result) []verdict.Result {
	if !s.hasPredicates() {
		return results
	}
	if s.explained(math.MaxInt64, true) && s.running.Holds() {
		for i := range results {
			if s.number == 0 && !s.hasFlag(toldOf) && results[i].Outcome == verdict.Unknown {
				results[i] = verdict.Result{Level: results[i].Level, Outcome: verdict.Satisfied}
			}
		}
		if s.number > 0 || !s.hasFlag(toldOf) {
			return results
		}
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
