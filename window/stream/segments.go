package stream

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/frontier"
	"github.com/isowatch/isowatch/window/segment"
)

// segments runs one engine after the other over the released records.
//
// An engine never forgets, so each has one segment of the stream:
//
//	     ┌────────── segment n ──────────┐
//	─────┤ seeds │ overlap │ new records ├─────▶
//	     └───────┼─────────┼─────────────┘
//	                       ┌───────┬─────────┬─────────────┐
//	                       │ seeds │ overlap │ new records │   segment n+1
//	                       └───────┴─────────┴─────────────┘
//
// The seeds are what the frontier holds of all that came before the overlap, and
// reads from there that still wait for their writer, with what was aborted and may
// have been it. The overlap is fed to both
// engines, so that what happens around the border is seen whole by one of them.
//
// Invariant: the engine's transaction i is seeds[i], for i < len(seeds), else what
// fed[i-len(seeds)] says; state is a function of the sequence of calls alone.
type segments struct {
	cfg    Config
	source source

	engine *incremental.Engine
	opened uint64 // engines so far
	front  *frontier.Frontier
	// complete: every write since the initial state is in the input, so far.
	complete bool
	// unique and attempts: UniqueValues and UniqueAttempts of incremental.Options. They are given up for good.
	unique, attempts bool
	listed           bool // some record appended to a list, or read one, or wrote by a predicate
	lazy             bool // the frontier is too large to be seeded whole

	number uint64               // of the segment, from 0
	seeds  []record.Transaction // stubs of what was before, which the engine was given first
	bases  bases                // stubs that were taken when their key was touched
	fed    []fed                // the records that the engine has, and its bases, in its order
	ticks  []tick               // of the engine, in order
	begun  int                  // fed[:begun] is the overlap with the segment before, fed[begun:] the segment's own
	looked int                  // fed[:looked] were decided when predicates were judged last
	// running is an order that explains what predicates found in fed[:added]; nil if there is none, or none was
	// looked for: none is before fed has grown to resumes.
	running *predicate.Running
	added   int
	resumes int
	longest int64 // how long a transaction of the segment took at most, as far as MaxTransaction
	// since: when the segment before ended one order explained all since the beginning that was decided.
	since     bool
	rows      record.Transaction // if since: what that order had made of the rows of tables
	weight    weights            // of fed
	before    unknown            // what the engine before left open of the overlap
	pastGiven bits               // by the engine's number of a key: it has the past of the key, where that matters
	fresh     []string           // scratch
	refs      []frontier.Ref     // scratch
	reads     []int              // scratch
	// awaited are the values that reads of the seeds wait for, by the engine's number of the
	// key: the least place of such a read in the stream's time.
	awaited map[version.Key]map[record.Value]int64
	ops     []record.Op // scratch
	// lost are the times in which records are known to be missing.
	lost incremental.Losses
	// told are the losses of which the engine was told since it was made, in order.
	told []toldLoss
	// born is what unique, attempts, listed and lost were when the engine was made.
	born struct {
		unique, attempts, listed bool
		lost                     incremental.Losses
	}
	// broken are the levels that what the engine found breaks, as far as that is told.
	broken []bool
	// due is what has to be done before the next step, once what was found has been
	// taken: it names transactions of the present engine.
	due due

	cutter *segment.Cutter
	ended  bool // a segment has, and keys may leave memory

	found  []Violation      // what is still to be handed out
	newest int64            // the greatest place in the order of a record that was fed; noTime before any
	judged uint64           // transactions before the last tick of this run
	past   []verdict.Result // by Config.Levels: what the segments before say together; nil before there are any
	stats  Stats
	whole  stretches // which parts of the stream were judged with nothing missing
}

// fed is a record that the engine has.
type fed struct {
	ref   ref
	at    int64 // its place in the order: its end, or what stands for that
	flags fedFlags
	// weight is for how many records it counts; see weigh.
	weight uint32
}

// due is a change of engines.
type due uint8

const (
	noChange due = iota
	// nextSegment: the segment is long enough.
	nextSegment
	// anew: less can be assumed than the engine was told: any key may have lost a write, or values
	// repeat.
	anew
)

type fedFlags uint8

const (
	timesDropped fedFlags = 1 << iota
	detached
	base   // not from the order: ref is an index of bases
	toldOf // in an anomaly of predicates that was told
	// ordered and started are of the order that began before the segment: see segments.since. It is in it, or has found
	// what it found there.
	ordered
	started
)

// unknown is what the engine before did not know of the overlap when it ended, so that what follows from it
// was not told: the reads that waited, where values don't repeat, in the order of their places, the keys that
// Engine.Undecided names, and whether it gave up a search.
type unknown struct {
	Waited []waited `json:",omitempty"`
	Lists  [][]byte `json:",omitempty"` // sorted; they need not be UTF-8
	Search bool     `json:",omitempty"`
}

// waited are reads of the record at a place in the overlap.
type waited struct {
	Place int
	Keys  [][]byte // they need not be UTF-8
}

// tick is a Tick of the engine: after how many of fed, and with what watermark.
type tick struct {
	after     int
	watermark int64
}

// toldLoss is something missing of which the engine was told after so many of ticks: what it
// concluded before, it concluded without.
type toldLoss struct {
	After int
	incremental.Span
}

// source gives records back.
type source interface {
	// record is the record of a ref as it was released. It is good until the next
	// call.
	record(r ref, f fedFlags) (*record.Transaction, error)
	// keys are the engine's numbers of the keys of the operations of the record that
	// was asked for last, which is that of r; opened tells engines apart.
	keys(r ref, e *incremental.Engine, opened uint64) []version.Key
	// own is record, to keep.
	own(r ref, f fedFlags) (record.Transaction, error)
	// drop says that a record will not be asked for any more.
	drop(r ref)
}

// perKey is how many versions of a key the frontier keeps at most.
const perKey = 8

func newSegments(cfg Config, src source) *segments {
	s := &segments{cfg: cfg, source: src, complete: cfg.Coverage == record.CoverageComplete, unique: cfg.UniqueValues,
		attempts: cfg.UniqueAttempts, front: frontier.New(cfg.frontier()),
		cutter: segment.New(cfg.cutter()), newest: noTime, whole: newStretches(), since: cfg.Predicates != nil}
	s.open()
	s.widenCutter()
	return s
}

// open makes an engine.
func (s *segments) open() {
	s.opened++
	s.born.unique, s.born.attempts, s.born.listed, s.born.lost = s.unique, s.attempts, s.listed, slices.Clone(s.lost)
	s.told = s.told[:0]
	s.broken = make([]bool, len(s.cfg.Levels))
	s.running, s.resumes, s.longest = nil, 0, 0
	s.engine = s.newEngine()
	s.pastGiven.clear()
	clear(s.awaited)
}

// under is what may still be assumed.
func (s *segments) under() record.Assumptions {
	a := s.cfg.Assumptions
	if a.UnseenUnique = new(s.unique); !s.complete {
		a.Coverage, a.Tables = record.CoveragePartial, nil
	}
	return a
}

// newEngine makes an engine; the last one must not be used any more.
func (s *segments) newEngine() *incremental.Engine {
	s.engine = nil // its memory is free
	each := 0
	if s.cfg.Whole {
		each = wholeBytes
	}
	var stop func() verdict.Reason
	if s.cfg.Stop != nil {
		stop = func() verdict.Reason {
			if s.cfg.Stop() {
				return verdict.Timeout
			}
			return verdict.NoReason
		}
	}
	return incremental.New(incremental.Options{Stop: stop, Levels: s.cfg.Levels, Assumptions: s.under(),
		MaxTransaction: int64(s.cfg.MaxTransaction), UniqueValues: s.unique, UniqueAttempts: s.attempts,
		Conflicts: s.cfg.Conflicts, Spacing: s.cfg.Spacing,
		Steps: s.cfg.Steps, BytesMax: s.cfg.BytesMax, BytesEach: each, Online: true, Seeds: len(s.seeds), Lost: s.lost})
}

// wholeBytes is how many bytes of closures each transaction of a segment may add that is to be the whole.
const wholeBytes = 1 << 10

// step gives the engine the next released record.
func (s *segments) step(t *record.Transaction, f fed) {
	s.newest = max(s.newest, f.at)
	straddles := s.cutter.Add(s.stats.Transactions, t, f.at)
	keys := s.feed(t, f)
	if since, ok := s.awaitedFrom(t, keys); ok {
		s.whole.straddled(since)
		if !straddles {
			straddles = true
			s.stats.Straddlers++
		}
	}
	s.whole.released(f.at, straddles)
	s.stats.Transactions++
	s.stats.Operations += uint64(len(t.Ops))
	if s.weight.all-s.weight.ticked < untickedMost && !s.full() {
		return
	}
	watermark := int64(noTime)
	if n := len(s.ticks); n > 0 {
		watermark = s.ticks[n-1].watermark
	}
	s.tick(watermark)
}

// untickedMost is how many new records the engine gets at most without a tick: while all
// that comes is late the stream's time stands still.
const untickedMost = 16_384

// feed returns the engine's numbers of the keys of t.
func (s *segments) feed(t *record.Transaction, f fed) []version.Key {
	keys := s.source.keys(f.ref, s.engine, s.opened)
	s.addPast(t, keys)
	s.engine.Step(t, f.at, keys...)
	took := t.End - t.Start
	if !t.HasTimes {
		took = int64(s.cfg.MaxTransaction)
	}
	s.longest = max(s.longest, min(took, int64(s.cfg.MaxTransaction)))
	if s.unique && !s.engine.State().Unique {
		s.unique, s.due = false, anew
	}
	f.weight = s.cfg.weigh(t)
	s.add(f)
	return keys
}

// noteAwaited notes what the reads of a seed wait for.
func (s *segments) noteAwaited(t *record.Transaction, keys []version.Key) {
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Kind != record.Read || t.Status == record.Aborted {
			continue
		}
		of := s.awaited[keys[i]]
		if of == nil {
			if s.awaited == nil {
				s.awaited = map[version.Key]map[record.Value]int64{}
			}
			of = map[record.Value]int64{}
			s.awaited[keys[i]] = of
		}
		values := []record.Value{op.Value}
		if op.Value.Kind == record.KindList {
			values = op.Value.Elements()
		}
		for _, v := range values {
			if at, ok := of[v]; !ok || t.End < at {
				of[v] = t.End
			}
		}
	}
}

// awaitedFrom tells whether t wrote what was read before the cut, and since when that was
// awaited. Such a read is in front of the cut and the write behind it, and what else the
// reader did is forgotten.
func (s *segments) awaitedFrom(t *record.Transaction, keys []version.Key) (since int64, ok bool) {
	if len(s.awaited) == 0 || t.Status == record.Aborted {
		return 0, false
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Kind != record.Write && op.Kind != record.Append {
			continue
		}
		if at, found := s.awaited[keys[i]][op.Value]; found && (!ok || at < since) {
			since, ok = at, true
		}
	}
	return since, ok
}

// again is feed for a record that was fed before, to this engine or another one:
// its keys stay in memory until the last writes of the segment are forgotten.
func (s *segments) again(t *record.Transaction, f fed) {
	if s.front.Spilled() {
		s.fresh = s.needs(s.fresh[:0], t)
	}
	s.feed(t, f)
}

// needs appends to dst the keys of t that have to be read back before t is given to
// step. Those that the present engine has met are in memory, and stay there until
// the last writes of its records are forgotten.
func (s *segments) needs(dst []string, t *record.Transaction) []string {
	for i := range t.Ops {
		if !keyless(&t.Ops[i]) {
			dst = s.front.Needs(dst, t.Ops[i].Key)
		}
	}
	return dst
}

// keys are those that the present engine has met.
func (s *segments) keys(yield func(string) bool) {
	of := func(ops []record.Op) bool {
		for i := range ops {
			if !keyless(&ops[i]) && !yield(ops[i].Key) {
				return false
			}
		}
		return true
	}
	for i := range s.seeds {
		if !of(s.seeds[i].Ops) {
			return
		}
	}
	for _, f := range s.fed {
		if f.flags&base != 0 {
			continue
		}
		if t, err := s.source.record(f.ref, f.flags); err == nil && !of(t.Ops) {
			return
		}
	}
}

// keyless tells whether an operation has no key.
func keyless(o *record.Op) bool {
	return o.Kind == record.PredicateRead || o.Kind == record.PredicateWrite
}

// loseKey tells the engine of what is forgotten of a key.
func (s *segments) loseKey(key string) {
	const both = frontier.Written | frontier.Appended
	if st := s.front.State(key); st&frontier.Lossy != 0 || st&both == both || st&frontier.Repeated != 0 {
		s.engine.Lose(key, st&both == both || st&frontier.Repeated != 0)
	}
}

// lists tells whether it has to be known from then on which keys have lost a write: a list shows what is missing, and
// what a predicate wrote nobody knows.
func lists(t *record.Transaction) bool {
	for i := range t.Ops {
		if k := t.Ops[i].Kind; k == record.Append || k == record.PredicateWrite || t.Ops[i].Value.Kind == record.KindList {
			return true
		}
	}
	return false
}

// tick lets the engine decide what is open, and ends the segment when it is long
// enough. watermark: no record that ended before it will come.
func (s *segments) tick(watermark int64) {
	ends := s.solve(watermark)
	s.lookAtTick(ends)
	if ends {
		s.due = max(s.due, nextSegment)
	}
}

// long tells whether the segment is to end: it is long enough, and where values repeat not more
// than half of it would be overlap, or there is no room for more.
func (s *segments) long() bool {
	fresh := s.weight.all - s.weight.begun
	if s.full() {
		return true
	}
	if fresh < s.room(s.cfg.Segment) && (fresh < lookMost || !s.hasPredicates()) {
		return false
	}
	return !s.knowsLater() || s.weight.all >= s.room(s.cfg.Longest) ||
		s.weightFrom(s.undecidedFrom()) <= min(fresh, s.overlapMost())
}

// full tells whether the engine has done so much that the segment ends, however short it is; but not
// before it has taken enough for another one to be worth beginning.
func (s *segments) full() bool {
	if fresh := s.weight.all - s.weight.begun; fresh < max(1, s.cfg.Overlap/leastOfOverlap) {
		return false
	}
	is := s.engine.State()
	return is.GaveUp || !s.cfg.Whole && is.Full
}

// leastOfOverlap is the part of an overlap that a segment has of new records at least.
const leastOfOverlap = 16

// undecidedFrom is the first of fed whose reads may still turn out to be somebody else's, where
// values repeat: no other writer comes once the watermark is MaxTransaction beyond them. O(fed).
func (s *segments) undecidedFrom() int {
	known := s.decidedBefore()
	i := slices.IndexFunc(s.fed, func(f fed) bool { return f.flags&base == 0 && f.at >= known })
	if i < 0 {
		return len(s.fed)
	}
	return i
}

// decidedBefore is the time before which no record ended whose reads may be of what is still to come.
func (s *segments) decidedBefore() int64 {
	watermark := int64(noTime)
	if n := len(s.ticks); n > 0 {
		watermark = s.ticks[n-1].watermark
	}
	return before(before(min(watermark, s.reached()), int64(s.cfg.MaxTransaction)), s.cfg.MaxSkew)
}

// decided is how far nothing changes by what is still to come: how many of the transactions that were released, at
// least, and before which time. O(fed, and what waits).
func (s *segments) decided() (n uint64, before int64) {
	i := s.begun
	if n := len(s.ticks); n > 0 {
		i = s.ticks[n-1].after
	}
	if s.hasPredicates() {
		i = min(i, s.looked)
	}
	before = math.MaxInt64
	s.engine.Undecided(func(x verdict.Exhibit) {
		switch t := int(x.Txn); {
		case len(x.Writes) > 0: // it was aborted
		case t < len(s.seeds): // it lies before the overlap
			before = min(before, s.seeds[t].End)
		default:
			i = min(i, t-len(s.seeds))
		}
	})
	n = s.whole.before(before)
	behind := uint64(0)
	for _, f := range s.fed[i:] {
		if f.flags&base == 0 {
			behind, before = behind+1, min(before, f.at)
		}
	}
	return min(n, s.stats.Transactions-behind), before
}

// weightFrom is for how many records those count that there are from one of fed on.
func (s *segments) weightFrom(i int) (n int) {
	for _, f := range s.fed[i:] {
		if f.flags&base == 0 {
			n += int(f.weight)
		}
	}
	return n
}

// lastWithin is how many records, the last ones, count together for at most so many.
func (s *segments) lastWithin(weight int) (n uint64) {
	for i := len(s.fed) - 1; i >= 0; i-- {
		if f := &s.fed[i]; f.flags&base == 0 {
			if weight -= int(f.weight); weight < 0 {
				break
			}
			n++
		}
	}
	return n
}

// overlapMost is how many records the overlap has at most where values repeat: half of what an
// engine takes.
func (s *segments) overlapMost() int {
	return s.room(max(s.cfg.Overlap, min(s.cfg.Longest/2, s.cfg.Longest-s.cfg.Segment)))
}

// change does what is due.
func (s *segments) change() {
	d := s.due
	s.due = noChange
	defer s.cfg.measure(PartSegment)()
	switch d {
	case nextSegment:
		s.rotate()
	case anew:
		s.restart()
	}
}

// solve lets the engine decide what is open, and tells whether the segment is to end.
func (s *segments) solve(watermark int64) (ends bool) {
	defer s.cfg.measure(PartTick)()
	silent := len(s.ticks) > 0 && s.ticks[len(s.ticks)-1].after == len(s.fed)
	out := s.engine.Tick(min(watermark, s.reached()))
	s.ticks = append(s.ticks, tick{len(s.fed), watermark})
	s.weight.ticked = s.weight.all
	s.judged = s.stats.Transactions
	s.whole.mark(s.newest)
	s.tell(out.Violations)
	ends = s.long()
	switch {
	case ends || watermark == noTime: // the engine has no further tick: nothing must wait for one
		s.tell(s.engine.Solve(true).Violations)
	case silent: // perhaps none soon
		s.tell(s.engine.Solve(false).Violations)
	}
	s.attempts = s.engine.State().UniqueAttempts
	s.widenCutter()
	return ends
}

// knowsLater tells whether what was read is known only MaxTransaction later: where values repeat, or there are
// predicates.
func (s *segments) knowsLater() bool { return !s.unique || s.hasPredicates() }

// widenCutter has the cutter remember where the overlap may begin where what was read is known later.
func (s *segments) widenCutter() {
	if s.knowsLater() {
		s.cutter.Reach(uint64(s.overlapMost() + s.cfg.Overlap))
	}
}

// reached is the least time of the last few records: what the stream as a whole has
// reached. From the absence of a write nothing is concluded beyond it: one client
// whose clock jumps ahead takes the watermark with it, but not its neighbours.
func (s *segments) reached() int64 {
	least, n := int64(math.MaxInt64), 0
	for i := len(s.fed) - 1; i >= 0 && n < min(fewRecords, s.cfg.Segment/2); i-- {
		if s.fed[i].flags&base == 0 {
			least = min(least, s.fed[i].at)
			n++
		}
	}
	return least
}

// fewRecords is how many those are, or half a segment.
const fewRecords = 8

// tell passes on what the engine found, but for what the engine before had. Once values turn out to repeat what
// it found may rest on that they don't: the next engine finds what holds.
func (s *segments) tell(vs []verdict.Violation) {
	if s.born.unique != s.unique {
		return
	}
	for _, v := range vs {
		for i, l := range s.cfg.Levels {
			s.broken[i] = s.broken[i] || l == verdict.LIN || l.Implies(v.Level)
		}
		if s.had(&v) {
			continue
		}
		f := Violation{Violation: v, Under: s.under(), Segment: s.number, Find: s.shown}
		if s.complete && v.Torn {
			f.Under.Coverage, f.Under.Tables = record.CoveragePartial, nil
			f.Torn = s.number > 0
		}
		s.found = append(s.found, f)
	}
}

// had tells whether a violation only concerns the overlap and what was before it, so that the engine before has told
// it. Where values repeat it may not have: what was read is only known when no other writer can come any
// more, which may be behind its end. The same of a read that waited when it ended, and of
// what takes a search if it gave one up and all that proves it lies in the overlap.
func (s *segments) had(v *verdict.Violation) bool {
	ordered := v.Kind == verdict.Cycle || v.Kind == verdict.Unsatisfiable || v.Kind == verdict.Divergence
	if s.number == 0 || !s.unique || !ordered ||
		slices.ContainsFunc(v.Evidence, func(t verdict.TxnID) bool { return int(t) >= len(s.seeds)+s.begun }) {
		return false
	}
	past := func(t verdict.TxnID) bool {
		i := int(t) - len(s.seeds)
		return i < 0 || s.fed[i].flags&base != 0
	}
	searched := v.Kind == verdict.Unsatisfiable && s.before.Search && !slices.ContainsFunc(v.Evidence, past)
	return !searched && !slices.ContainsFunc(v.Exhibits, s.hadWaited)
}

// hadWaited tells whether one of the reads that a proof needs of a transaction waited when the engine before
// ended, or is of a list of which it did not know how it began, as this one does. Of a transaction before the overlap
// no other reads are remembered.
func (s *segments) hadWaited(x verdict.Exhibit) bool {
	needs := func(key string) bool { return slices.Contains(x.Reads, key) || slices.Contains(x.All, key) }
	if slices.ContainsFunc(slices.Concat(x.Reads, x.All), func(key string) bool {
		_, found := slices.BinarySearchFunc(s.before.Lists, key,
			func(k []byte, key string) int { return strings.Compare(string(k), key) })
		return found && s.anchored(key)
	}) {
		return true
	}
	i := int(x.Txn) - len(s.seeds)
	if i < 0 {
		return slices.ContainsFunc(s.seeds[x.Txn].Ops,
			func(op record.Op) bool { return op.Kind == record.Read && needs(op.Key) })
	}
	if i >= s.begun || len(s.before.Waited) == 0 || s.fed[i].flags&base != 0 {
		return false
	}
	at, found := slices.BinarySearchFunc(s.before.Waited, s.place(0, i),
		func(w waited, place int) int { return w.Place - place })
	return found && slices.ContainsFunc(s.before.Waited[at].Keys, func(key []byte) bool { return needs(string(key)) })
}

// anchored tells whether it is known of a list that was read that nothing was before its first element. O(what waits).
func (s *segments) anchored(key string) bool {
	known := true
	s.engine.Undecided(func(x verdict.Exhibit) { known = known && !slices.Contains(x.All, key) })
	return known
}

// place is how many records there are from one of fed to another.
func (s *segments) place(from, to int) (n int) {
	for _, f := range s.fed[from:to] {
		if f.flags&base == 0 {
			n++
		}
	}
	return n
}

// unknown is what the engine does not know of the overlap, which begins at fed[from]. O(the overlap).
func (s *segments) unknown(from int, waiting []verdict.Exhibit, results []verdict.Result) unknown {
	u := unknown{Search: slices.ContainsFunc(results,
		func(r verdict.Result) bool { return r.Reason == verdict.Conflicts })}
	if !s.unique {
		return u // what had waited is told in any case
	}
	place, at := 0, from
	for _, x := range waiting {
		for _, key := range x.All {
			u.Lists = append(u.Lists, []byte(key))
		}
		i := int(x.Txn) - len(s.seeds)
		if i < from || len(x.Reads) == 0 {
			continue
		}
		place += s.place(at, i)
		at = i
		w := waited{Place: place}
		for _, key := range x.Reads {
			w.Keys = append(w.Keys, []byte(key))
		}
		u.Waited = append(u.Waited, w)
	}
	slices.SortFunc(u.Lists, bytes.Compare)
	return u
}

// shown is record as evidence has it. What the engine was reminded of by itself comes there in the order
// of that, which need not be that of its session; only a seq says where it was. Without one it has
// a session of its own, as the engine knows it in none.
func (s *segments) shown(id verdict.TxnID) (*record.Transaction, bool) {
	t, ok := s.record(id)
	i := int(id)
	alone := ok && (i < len(s.seeds) && strings.HasPrefix(s.seeds[i].Session, waitingSession) || i >= len(s.seeds) &&
		s.fed[i-len(s.seeds)].flags&base != 0)
	if alone && !t.HasSeq {
		t.Session += " detached " + t.ID
	}
	return &t, ok
}

// record is the engine's transaction, to keep.
func (s *segments) record(id verdict.TxnID) (record.Transaction, bool) {
	i := int(id)
	if i < len(s.seeds) {
		t := s.seeds[i]
		joinSession(&t)
		return t, true
	}
	if i -= len(s.seeds); i >= len(s.fed) {
		return record.Transaction{}, false
	}
	f := s.fed[i]
	if f.flags&base != 0 {
		return s.front.Stub(s.bases.at(int(f.ref))).Txn, true
	}
	t, err := s.source.own(f.ref, f.flags)
	return t, err == nil
}

// rotate ends the segment and begins the next one.
func (s *segments) rotate() {
	cut, from := s.overlap()
	s.passOn(from)
	results := s.sinceExplained(s.engine.Results())
	for _, r := range results {
		s.stats.Undecided += uint64(r.Count)
		s.stats.Unexplained += uint64(r.Unexplained)
	}
	s.count(results)
	s.foldBefore(from)
	waiting := s.waiting()
	before := s.unknown(from, waiting, results)
	seeds := s.nextSeeds(from, waiting)
	if s.stopped() {
		return
	}
	if s.engine.State().Laden { // as the next one would soon be
		s.leaveOut(seeds)
		seeds = nil
	}
	end, begin := s.around(from)
	overlap := slices.DeleteFunc(slices.Clone(s.fed[from:]), func(f fed) bool { return f.flags&base != 0 })
	for _, f := range s.fed[:from] {
		if f.flags&base == 0 {
			s.source.drop(f.ref)
		}
	}
	s.number++
	s.stats.Segments++
	s.front.Begin()
	s.ended, s.before = true, before
	s.begin(seeds, overlap)
	s.stretch(cut, end, begin, unjudged(results, false))
}

// waiting is what Engine.Undecided tells, a transaction after the other in the order of Step.
func (s *segments) waiting() (all []verdict.Exhibit) {
	s.engine.Undecided(func(x verdict.Exhibit) { all = append(all, x) })
	slices.SortStableFunc(all, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	n := 0
	for _, x := range all {
		if n == 0 || all[n-1].Txn != x.Txn {
			all[n] = verdict.Exhibit{Txn: x.Txn}
			n++
		}
		of := &all[n-1]
		of.Reads, of.Writes, of.All = append(of.Reads, x.Reads...), append(of.Writes, x.Writes...), append(of.All, x.All...)
	}
	return all[:n]
}

// overlap is the first of fed that the next engine is given once more.
func (s *segments) overlap() (segment.Cut, int) {
	cut := s.cut()
	s.stats.Cuts[cut.Kind]++
	s.stats.Straddlers += uint64(cut.Straddlers)
	if !cut.Complete && !cut.AssumingRealTime {
		s.stats.Incomplete++
	}
	from := len(s.fed)
	for n := s.stats.Transactions - cut.From; n > 0 && from > 0; {
		if from--; s.fed[from].flags&base == 0 {
			n--
		}
	}
	return cut, from
}

// cut is where the segment is cut: where values repeat at or before the first record whose reads
// are open, as far as there is room for them.
//
// Where the engine was full, the next one begins with a fourth of what this one had: what grows with
// the square of that is a sixteenth then.
func (s *segments) cut() segment.Cut {
	if s.full() && s.weight.all < 4*s.cfg.Overlap {
		return s.cutter.CutIn(s.stats.Transactions-s.lastWithin(s.weight.all/4), math.MaxUint64)
	}
	if !s.knowsLater() {
		return s.cutter.CutIn(s.stats.Transactions-s.lastWithin(s.room(2*s.cfg.Overlap)), math.MaxUint64)
	}
	waiting := s.weightFrom(s.undecidedFrom())
	most := min(s.weightFrom(s.begun), s.overlapMost())
	if waiting > max(most, s.room(s.cfg.Overlap)) {
		s.stats.Short++
	}
	return s.cutter.CutIn(s.stats.Transactions-s.lastWithin(most+s.room(2*s.cfg.Overlap)),
		s.stats.Transactions-s.lastWithin(min(waiting, most)))
}

// stretch notes what is known of what lies before a cut, which is until end; what comes begins at begin.
func (s *segments) stretch(cut segment.Cut, end, begin int64, more Whys) {
	if n := s.stats.Dropped + s.stats.Unawaited; n > s.whole.Dropped {
		s.whole.Dropped = n
		more |= WhyForgotten
	}
	s.whole.cut(cut, end, begin, more)
}

// around are the last end before fed[from], and the first one from there on.
func (s *segments) around(from int) (end, begin int64) {
	end, begin = noTime, math.MaxInt64
	for i, f := range s.fed {
		switch {
		case f.flags&base != 0:
		case i < from:
			end = max(end, f.at)
		default:
			begin = min(begin, f.at)
		}
	}
	return end, begin
}

// foldBefore folds what lies before fed[from] into the frontier. What the engine was only reminded
// of is there, and was counted when it was forgotten.
func (s *segments) foldBefore(from int) {
	all := s.complete || s.listed // which keys have lost a write has to be known
	for _, f := range s.fed[:from] {
		if s.stopped() {
			return
		}
		if f.flags&base != 0 {
			continue
		}
		s.stats.Forgotten++
		if !all {
			continue
		}
		if t, err := s.source.record(f.ref, f.flags); err == nil {
			s.front.Forget(t, f.at)
		}
	}
	if !all { // else the last writers of each key, as the engine has them
		s.stats.Dropped += uint64(s.engine.Frontier(verdict.TxnID(len(s.seeds)+from), perKey, s.foldWrites))
	}
}

// foldWrites folds what one of the engine's transactions wrote to some keys into the
// frontier.
func (s *segments) foldWrites(id verdict.TxnID, keys []version.Key) {
	i := int(id) - len(s.seeds)
	if i < 0 || s.fed[i].flags&base != 0 {
		return // it is there
	}
	f := s.fed[i]
	t, err := s.source.record(f.ref, f.flags)
	if err != nil {
		return
	}
	stub := *t
	s.ops = s.ops[:0]
	for j, number := range s.source.keys(f.ref, s.engine, s.opened) {
		if slices.Contains(keys, number) {
			s.ops = append(s.ops, t.Ops[j])
		}
	}
	stub.Ops = s.ops
	s.front.Forget(&stub, f.at)
}

// nextSeeds are the frontier, if it is small, and what of waiting lies before
// fed[from]: reads whose writer may still come, and aborted writers. Keys are spilled only when it is not small any
// more, for good: so what an engine is told does not depend on where keys are.
func (s *segments) nextSeeds(from int, waiting []verdict.Exhibit) []record.Transaction {
	stubs, whole := s.front.All(s.cfg.MaxSeeds)
	s.lazy = !whole
	seeds := make([]record.Transaction, 0, len(stubs))
	for i := range stubs {
		seeds = append(seeds, placed(stubs[i].Txn, stubs[i].Arrival))
	}
	var alone []verdict.Exhibit // reads, without what stands around them
	waiting = slices.DeleteFunc(waiting, func(x verdict.Exhibit) bool {
		overlaps := int(x.Txn) >= len(s.seeds)+from
		if !overlaps && len(x.All) > 0 {
			alone = append(alone, verdict.Exhibit{Txn: x.Txn, Reads: x.All})
		}
		return overlaps || len(x.Reads)+len(x.Writes) == 0
	})
	if n := len(waiting) - max(waitingLeast, s.cfg.Overlap/4); n > 0 {
		for _, x := range waiting[:n] {
			s.giveUp(s.placeOf(x.Txn))
		}
		waiting = waiting[n:]
	}
	at := map[string]int{}
	if len(waiting) > 0 {
		for i := range seeds {
			at[seeds[i].ID] = i
		}
	}
	for _, x := range waiting {
		t, ok := s.record(x.Txn)
		if !ok {
			continue
		}
		reads := readsOf(t.Ops, x.Reads)
		if len(x.Writes) > 0 { // it was aborted; what it had read says whether it only put that back
			reads = opsOf(t.Ops, x.Writes)
		}
		if len(reads) == 0 {
			s.giveUp(s.placeOf(x.Txn))
			continue
		}
		if len(x.Writes) == 0 {
			alone = append(alone, x)
		}
		if i, ok := at[t.ID]; ok {
			seeds[i].Ops = append(reads, seeds[i].Ops...)
			continue
		}
		t.Ops = reads
		leaveSession(&t) // what it follows in its session is forgotten
		if i := int(x.Txn) - len(s.seeds); i >= 0 {
			t = placed(t, s.fed[i].at)
		}
		seeds = append(seeds, t)
	}
	s.stats.Unawaited += s.outOfPlace(alone)
	return seeds
}

// outOfPlace counts what of the reads that wait, and go on alone, may be missed. Where values
// repeat all of them wait, also those whose writers have come, and what follows from them is lost
// with what stands around them. Else it counts the transactions whose waiting reads are of a key that was written
// before, for all that is known: by their session, or by somebody who began before they
// had ended. If a read turns out to have been of the initial value, that write came after it,
// and what put it in front of it (the session, what else was read) is not carried along.
// That takes complete coverage, and a value that may be the initial one: any if nobody has declared it. Or a list: an
// empty one, or the first that was read of its key, as what was appended and is not in it came later. Those
// carried from an earlier segment were counted when that ended. O(operations of the segment),
// and of each write of a key O(reads of it that wait and are not counted).
func (s *segments) outOfPlace(alone []verdict.Exhibit) (n uint64) {
	if !s.unique {
		for _, x := range alone {
			if i := int(x.Txn) - len(s.seeds); i >= 0 && s.fed[i].flags&base == 0 {
				n++
			}
		}
		return n
	}
	if !s.complete && !s.listed {
		return 0
	}
	type read struct {
		index   int // in fed
		session string
		end     int64
		shows   map[record.Value]bool // elements
	}
	readers := map[string][]read{}
	for _, x := range alone {
		i := int(x.Txn) - len(s.seeds)
		if i < 0 || s.fed[i].flags&base != 0 {
			continue
		}
		t, ok := s.record(x.Txn)
		if !ok {
			continue
		}
		end := int64(math.MaxInt64)
		if t.HasTimes && t.End <= end-s.cfg.MaxSkew {
			end = t.End + s.cfg.MaxSkew
		}
		for _, op := range readsOf(t.Ops, x.Reads) {
			initial := s.cfg.Initial == record.InitialAny || op.Value.IsNull() || s.cfg.Initial == record.InitialZero &&
				op.Value == record.Int(0)
			if op.Value.Kind != record.KindList && !(s.complete && initial) {
				continue
			}
			shows := map[record.Value]bool{}
			for _, v := range op.Value.Elements() {
				shows[v] = true
			}
			readers[op.Key] = append(readers[op.Key], read{i, t.Session, end, shows})
		}
	}
	if len(readers) == 0 {
		return 0
	}
	counted := map[int]bool{}
	for i, f := range s.fed {
		if f.flags&base != 0 {
			continue
		}
		t, err := s.source.record(f.ref, f.flags)
		if err != nil || t.Status == record.Aborted {
			continue
		}
		for k := range t.Ops {
			if op := &t.Ops[k]; op.Kind != record.Write && op.Kind != record.Append {
				continue
			}
			key := t.Ops[k].Key
			waiting, ok := readers[key]
			if !ok {
				continue
			}
			readers[key] = slices.DeleteFunc(waiting, func(r read) bool {
				shown := t.Ops[k].Kind == record.Append && r.shows[t.Ops[k].Value]
				before := i != r.index && !shown && (!t.HasTimes || t.Start <= r.end || i < r.index && t.Session == r.session)
				if before {
					counted[r.index] = true
				}
				return before
			})
		}
	}
	return uint64(len(counted))
}

// placed is a seed with its place in the order: its end, or in place of that, for
// one without times, what served for it.
func placed(t record.Transaction, at int64) record.Transaction {
	if !t.HasTimes {
		t.Start, t.End = at, at
	}
	return t
}

// waitingLeast is how many reads may wait from one segment to the next whatever the
// overlap, of which they are a quarter otherwise.
const waitingLeast = 64

// waitingSession begins the name of the session of a seed that stands for reads
// which wait for their writer, and that has no place in its own session.
const waitingSession = "\x00waiting\x00"

// leaveSession gives t a session of its own, in whose name is where it was in its session.
func leaveSession(t *record.Transaction) {
	if strings.HasPrefix(t.Session, waitingSession) {
		return
	}
	seq := ""
	if t.HasSeq {
		seq = strconv.FormatInt(t.Seq, 10)
	}
	t.Session, t.Seq, t.HasSeq = fmt.Sprintf("%s%s\x00%d\x00%s%s", waitingSession, seq, len(t.ID), t.ID, t.Session), 0,
		false
}

// joinSession undoes leaveSession: who reads the evidence must not take it to have come before those of its
// session that came later and have a lower seq.
func joinSession(t *record.Transaction) {
	name, ok := strings.CutPrefix(t.Session, waitingSession)
	if !ok {
		return
	}
	seq, rest, _ := strings.Cut(name, "\x00")
	size, own, _ := strings.Cut(rest, "\x00")
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > len(own) {
		return // a client's own name
	}
	t.Session = own[n:]
	if seq != "" {
		t.Seq, err = strconv.ParseInt(seq, 10, 64)
		t.HasSeq = err == nil
	}
}

// readsOf are the first reads of keys, of those that were not written before, in the
// order of the transaction: at rc that matters. What is read after that, of a list say, can't
// be told without the writes.
func readsOf(ops []record.Op, keys []string) []record.Op {
	var at []int
	for _, key := range keys {
		i := slices.IndexFunc(ops, func(op record.Op) bool { return op.Key == key })
		if i >= 0 && ops[i].Kind == record.Read {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	out := make([]record.Op, len(at))
	for n, i := range at {
		out[n] = ops[i]
	}
	return out
}

// opsOf are the operations on some keys.
func opsOf(ops []record.Op, keys []string) []record.Op {
	return slices.DeleteFunc(slices.Clone(ops),
		func(op record.Op) bool { return keyless(&op) || !slices.Contains(keys, op.Key) })
}

// stopped tells whether Config.Stop says so: then nothing need be what its records make it.
func (s *segments) stopped() bool { return s.cfg.Stop != nil && s.cfg.Stop() }

// begin makes the engine of a segment; without seeds, if it would be full of them before anything new has come.
func (s *segments) begin(seeds []record.Transaction, overlap []fed) {
	if !s.prepare(seeds, overlap) {
		s.leaveOut(seeds)
		s.prepare(nil, overlap)
	}
	s.begun, s.looked = len(s.fed), 0
	s.weight.begun, s.weight.ticked = s.weight.all, s.weight.all
	s.widenCutter()
}

// giveUp gives up the waiting reads of a transaction that has a place in the stream's time.
func (s *segments) giveUp(at int64) {
	s.stats.Unawaited++
	s.whole.forgot(at)
}

// placeOf is where one of the engine's transactions stands in the stream's time.
func (s *segments) placeOf(id verdict.TxnID) int64 {
	if i := int(id) - len(s.seeds); i >= 0 {
		return s.fed[i].at
	}
	return s.seeds[id].End
}

// leaveOut gives up seeds, which are what was forgotten, for one segment.
func (s *segments) leaveOut(seeds []record.Transaction) {
	for i := range seeds { // with a read in front, or aborted, for what waits; else of the frontier
		if seeds[i].Status == record.Aborted || seeds[i].Ops[0].Kind == record.Read {
			s.giveUp(seeds[i].End)
		}
	}
	s.lazy = true
}

// prepare makes an engine and gives it what a segment begins with, and tells whether there is room for seeds.
func (s *segments) prepare(seeds []record.Transaction, overlap []fed) bool {
	s.seeds, s.fed, s.ticks = seeds, s.fed[:0], s.ticks[:0]
	s.weight = weights{}
	s.bases.clear()
	s.open()
	for i := range seeds {
		if s.stopped() {
			break
		}
		s.seed(&seeds[i])
	}
	for _, f := range overlap {
		if s.stopped() || s.engine.State().Laden {
			break
		}
		if t, err := s.source.record(f.ref, f.flags); err == nil {
			s.again(t, f)
		}
	}
	return !s.engine.State().Laden
}

func (s *segments) seed(t *record.Transaction) {
	keys := slices.Repeat([]version.Key{incremental.NoKey}, len(t.Ops))
	s.engine.Number(keys, func(i int) string { return t.Ops[i].Key })
	for i, number := range keys {
		if s.pastGiven.has(number) {
			continue
		}
		key := t.Ops[i].Key
		s.loseKey(key)
		if s.lazy {
			// Its versions are taken when a record touches it, perhaps never: what waits for
			// one of them until then has not come out of thin air.
			s.engine.Lose(key, false)
			continue
		}
		s.pastGiven.set(number)
	}
	s.noteAwaited(t, keys)
	s.engine.Step(t, t.End, keys...)
}

// missing says that a record may be missing which belongs between two times, before anything more
// is concluded.
func (s *segments) missing(from, to int64) {
	// A read waits so long for its writer that a shorter time without losses is none.
	x, near := incremental.Span{From: from, To: to}, int64(s.cfg.MaxTransaction)
	s.lost = s.lost.Add(x, near)
	s.engine.LoseTimes(s.lost)
	if n := len(s.told); n > 0 && s.told[n-1].After == len(s.ticks) {
		if both, ok := s.told[n-1].Join(x, near); ok {
			s.told[n-1].Span = both
			return
		}
	}
	s.told = append(s.told, toldLoss{len(s.ticks), x})
}

// becomePartial says that any key may have lost a write: from now on coverage is
// partial.
func (s *segments) becomePartial() {
	if s.complete {
		s.solve(noTime) // nothing is concluded from absence any more
		s.complete = false
		s.due = anew
	}
}

// restart begins the segment again with partial coverage, or without unique values, as what the engine
// concluded from absence may be wrong. What was told stands.
func (s *segments) restart() {
	results := s.engine.Results()
	for i := range results { // what is open is looked at again
		r := &results[i]
		if r.Reason, r.Count = verdict.NoReason, 0; r.Outcome != verdict.NotApplicable && !s.broken[i] {
			r.Outcome = verdict.Satisfied
		}
	}
	s.count(results)
	own, again := 0, make([]fed, 0, len(s.fed))
	for i, f := range s.fed {
		if f.flags&base != 0 {
			continue
		}
		if i < s.begun {
			own++
		}
		again = append(again, f)
	}
	s.begin(s.seeds, again[:own])
	for _, f := range again[own:] {
		if t, err := s.source.record(f.ref, f.flags); err == nil {
			s.again(t, f)
		}
	}
}

// count keeps the verdicts of an engine that ends.
func (s *segments) count(results []verdict.Result) {
	if s.past == nil {
		s.past = make([]verdict.Result, len(s.cfg.Levels))
		for i, l := range s.cfg.Levels {
			s.past[i] = verdict.Result{Level: l, Outcome: verdict.Satisfied}
		}
	}
	for i, r := range results {
		s.past[i] = joined(s.past[i], r)
	}
}

// joined is the verdict on a history of two parts: worse than either, and no
// better than unknown, as what lies across the border was not seen whole. What
// is left open of either is left open of both.
func joined(a, b verdict.Result) verdict.Result {
	switch {
	case a.Outcome == verdict.Violated, b.Outcome == verdict.Violated:
		if a.Outcome != verdict.Violated {
			a, b = b, a
		}
		a.Violations = nil
		a.Reason, a.Count, a.Unexplained = max(a.Reason, b.Reason), a.Count+b.Count, a.Unexplained+b.Unexplained
		return a
	case b.Outcome == verdict.NotApplicable:
		b.Violations = nil
		return b
	case a.Outcome == verdict.NotApplicable:
		return a
	case b.Outcome == verdict.Unknown:
		return b
	}
	return a
}

// results are the verdicts at the end, given those of the last engine.
func (s *segments) results(last []verdict.Result) []verdict.Result {
	if s.past == nil {
		return last
	}
	out := make([]verdict.Result, len(last))
	for i, r := range last {
		violations := r.Violations
		out[i] = joined(s.past[i], r)
		out[i].Violations = violations
		if out[i].Outcome == verdict.Satisfied && s.number > 0 && !s.since {
			out[i].Outcome, out[i].Reason, out[i].Count, out[i].Order = verdict.Unknown, verdict.Forgotten,
				int(s.stats.Forgotten), nil
		}
	}
	return out
}
