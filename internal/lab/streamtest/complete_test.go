package streamtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/stream"
)

// A passage is a topic as a History has seen it pass: what it found, and where it cut.
type passage struct {
	found []finding
	// from are the places of the first transactions of the segments, and the number of all.
	from      []uint64
	stretches []stream.Stretch
	stats     stream.Stats
	results   []verdict.Result
}

// finding is a violation, with the ids of the transactions that prove it.
type finding struct {
	level    verdict.Level
	kind     verdict.Kind
	evidence []string
	// decided is how many transactions were said to be decided before it was told, and until what was before which time.
	// partial: something might be missed.
	decided uint64
	until   int64
	partial bool
}

// breaks tells whether it may break a level, being told with a weakest one of those that it breaks.
func (f *finding) breaks(l verdict.Level) bool {
	return f.kind != verdict.Cycle && f.kind != verdict.Unsatisfiable || f.level == l || !f.level.Implies(l)
}

// pass reads the topic to its end.
func (r *run) pass() passage {
	h := stream.New(r.cfg)
	p := passage{from: []uint64{0}}
	decided, until, partial := uint64(0), int64(math.MinInt64), false
	take := func() {
		for _, v := range h.Found() {
			f := finding{level: v.Level, kind: v.Kind, decided: decided, until: until, partial: partial}
			for _, id := range v.Evidence {
				if x, ok := v.Find(id); ok {
					f.evidence = append(f.evidence, x.ID)
				}
			}
			p.found = append(p.found, f)
		}
	}
	work := func() {
		for more := true; more; {
			ended := h.Stats().Segments
			more = h.Run(1)
			take()
			n, before := h.Decided()
			if before == math.MaxInt64 {
				before = h.Newest()
			}
			decided, until = max(decided, n), max(until, before)
			all, _ := h.Standing()
			partial = partial || slices.ContainsFunc(all, func(s stream.Stretch) bool { return s.Partial != 0 })
			if s := h.Stats(); s.Segments > ended {
				at := s.Transactions
				if all, _ := h.Standing(); len(all) > 0 && all[len(all)-1].Open {
					at = all[len(all)-1].From
				}
				p.from = append(p.from, at)
			}
			if needs := h.Needs(); len(needs) > 0 {
				if err := h.Answer(make([][]byte, len(needs))); err != nil {
					panic(err)
				}
			}
		}
	}
	for _, e := range r.topic.entries(rand.New(rand.NewPCG(r.seed, 54)), r.batch) {
		h.Take(e)
		work()
	}
	h.Flush()
	work()
	p.results = h.Close()
	take()
	p.stats = h.Stats()
	p.stretches, _ = h.Standing()
	p.from = append(p.from, p.stats.Transactions)
	return p
}

// places are the places of the transactions in a stream in which nothing is late, by id;
// false if the records do not say.
func (t *topic) places() (map[string]uint64, bool) {
	all := t.all()
	slices.SortStableFunc(all, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	out := map[string]uint64{}
	for i, x := range all {
		if !x.HasTimes || i > 0 && x.End == all[i-1].End {
			return nil, false
		}
		out[x.ID] = uint64(i)
	}
	return out, t.lateness == 0
}

// sessionsInOrder tells whether the sessions' transactions are in the order of their places.
func (t *topic) sessionsInOrder(places map[string]uint64) bool {
	last := map[string]uint64{}
	for _, log := range t.logs {
		for _, x := range log {
			at := places[x.txn.ID] + 1
			if at < last[x.txn.Session] {
				return false
			}
			last[x.txn.Session] = at
		}
	}
	return true
}

// between is the topic from one place to another. What is read there may be of other writers.
func (t *topic) between(places map[string]uint64, from, to uint64) *topic {
	s := *t
	s.assume.Coverage, s.logs = record.CoveragePartial, nil
	for _, log := range t.logs {
		s.logs = append(s.logs, slices.DeleteFunc(slices.Clone(log), func(x sent) bool {
			at := places[x.txn.ID]
			return at < from || at >= to
		}))
	}
	return &s
}

// Where a stretch is said to be complete for a level, whatever batch finds at that level in the records
// from one of its cuts to the next is told, as it is or by what else some of the same transactions break: nothing
// that was open when it was forgotten is passed over, whether something else was found or not.
func TestCompleteStretchesAreTold(t *testing.T) {
	var told, open atomic.Int64
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		places, ok := tp.places()
		if !ok {
			return nil
		}
		rng := rand.New(rand.NewPCG(seed, 63))
		r := run{topic: tp, cfg: tp.config(), batch: 1 + rng.IntN(5), seed: seed}
		if rng.IntN(3) > 0 {
			r.cfg = tp.tight(rng)
			r.cfg.Segment += rng.IntN(6)
		}
		r.cfg.Conflicts = rng.IntN(2)
		p := r.pass()
		y.add(&outcome{stats: p.stats, results: p.results})
		if slices.ContainsFunc(p.stats.Losses[:], func(n uint64) bool { return n > 0 }) {
			return nil
		}
		for i, from := range p.from[:len(p.from)-1] {
			to, part := p.from[i+1], tp
			if len(p.from) > 2 {
				part = tp.between(places, from, to)
			}
			at := slices.IndexFunc(p.stretches, func(s stream.Stretch) bool { return from >= s.From && to <= s.To })
			txns := part.all()
			if at < 0 || len(txns) == 0 {
				continue
			}
			whole := part.whole()
			for _, l := range tp.levels {
				if len(whole[l].Violations) > 0 && p.stretches[at].Partial == stream.WhyUndecided {
					open.Add(1)
				}
				if p.stretches[at].At(l) == stream.Partial {
					continue
				}
				for _, v := range whole[l].Violations {
					told.Add(1)
					among := func(id string) bool {
						return slices.ContainsFunc(v.Evidence, func(x verdict.TxnID) bool { return txns[x].ID == id })
					}
					if !slices.ContainsFunc(p.found, func(f finding) bool {
						return f.breaks(l) && slices.ContainsFunc(f.evidence, among)
					}) {
						return is(fmt.Sprintf("missed at %v", l), "%v %v among %d to %d is not told, but %v; segment %d, overlap %d, conflicts %d; %+v", v.Kind, v.Txns, from, to, p.found,
							r.cfg.Segment, r.cfg.Overlap, r.cfg.Conflicts, p.stretches)
					}
				}
			}
		}
		return nil
	})
	t.Cleanup(func() {
		t.Logf("%d violations in complete stretches, %d beside what is open", told.Load(), open.Load())
	})
}

// What is found after transactions were said to be decided leads out of these, unless they were said to be checked in
// part.
func TestDecidedIsTold(t *testing.T) {
	var found, early atomic.Int64
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		places, ok := tp.places()
		if !ok || !tp.sessionsInOrder(places) {
			return nil
		}
		ends := map[string]int64{}
		for _, x := range tp.all() {
			ends[x.ID] = x.End
		}
		rng := rand.New(rand.NewPCG(seed, 64))
		r := run{topic: tp, cfg: tp.config(), batch: 1 + rng.IntN(5), seed: seed}
		if rng.IntN(3) > 0 {
			r.cfg = tp.tight(rng)
			r.cfg.Segment += rng.IntN(6)
		}
		p := r.pass()
		y.add(&outcome{stats: p.stats, results: p.results})
		for i, f := range p.found {
			if slices.ContainsFunc(p.found[:i], func(x finding) bool {
				return slices.ContainsFunc(x.evidence, func(id string) bool { return slices.Contains(f.evidence, id) })
			}) {
				continue // again, as the next segment finds it, or told by what else of it is broken
			}
			if f.partial {
				continue
			}
			found.Add(1)
			if f.decided > 0 {
				early.Add(1)
			}
			if !slices.ContainsFunc(f.evidence, func(id string) bool { return places[id] >= f.decided }) ||
				!slices.ContainsFunc(f.evidence, func(id string) bool { return ends[id] >= f.until }) {
				return is("decided", "%v %v is told after %d transactions were decided, and what was before %d; segment %d, overlap %d",
					f.kind, f.evidence, f.decided, f.until, r.cfg.Segment, r.cfg.Overlap)
			}
		}
		return nil
	})
	t.Cleanup(func() { t.Logf("%d violations, %d after something was decided", found.Load(), early.Load()) })
}
