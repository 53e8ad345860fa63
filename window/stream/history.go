package stream

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/frontier"
	"github.com/isowatch/isowatch/window/order"
)

// Entry is a batch in its place in the input. It does not change.
type Entry struct {
	// Number is greater than that of the entry before.
	Number uint64
	// Time is the time of day at which it was taken in, in Unix nanoseconds; it
	// serves to measure silence.
	Time int64
	// Partitions is how many the source has: from 0 to Partitions-1.
	Partitions int
	// Sample: only one session in 2^Sample is taken, from this entry on
	// (order.Kept).
	Sample uint8
	Batch  *decode.Batch // nil: only time passes
	// Returned: the source was out of reach until lately. So may it have been for those who write to it, and they may
	// still have what they could not write: nothing is handed out while entries say so (order.Returned).
	Returned bool
}

// Violation is what an engine found.
type Violation struct {
	verdict.Violation
	// Under is what its evidence proves it under.
	Under record.Assumptions
	// Torn: there may be no such evidence. Some of what it rests on needs complete
	// coverage, and some needs a key of which a write is forgotten, but a history has one
	// coverage. Withheld has to be called if it is not told.
	Torn bool
	// Segment is the number of the segment that it was found in.
	Segment uint64
	// Find finds the records of the transactions that it names, until the next Run; of what was found of predicates
	// with registers in place of these.
	Find Find
	// Found is how many rows statements found, if it is about predicates, until the next Run.
	Found Found
}

// Find is the record of a transaction.
type Find = func(verdict.TxnID) (*record.Transaction, bool)

// Found is how many rows a statement of a transaction, by its ID, found that read a register as not matching.
type Found = func(id, register string) (rows int, known bool)

// Contradiction is a record whose ID another record has.
type Contradiction struct {
	Partition int
	Offset    int64
	Record    record.Transaction
}

// Loss is something that is missing from the input, or may be.
type Loss struct {
	Why LossWhy
	// Session and the records From to To of it, where that is known.
	Session  string
	From, To int64
	ID       string // of the record concerned, if any
}

// LossWhy is a cause of loss; a closed set.
type LossWhy uint8

// The causes.
const (
	LostRecords   LossWhy = iota // a hole in the offsets of a partition
	LostReject                   // a record that could not be used
	LostEvents                   // parts of a transaction
	LostConflict                 // two records have the same ID
	LostStale                    // a record that may be one delivered twice
	LostSample                   // sessions were left out
	LostGap                      // a hole in the seq of a session
	LostLate                     // a record came later than it may
	LostSession                  // a session was forgotten, as there are too many
	LostOverlong                 // a transaction lasted longer than it may
	LostPartition                // a silent partition was given up, or records left early
	LostNumber                   // a record's seq contradicts the clocks, so that its session's order is not used for it
	lossWhys
)

var lossNames = [...]string{"records-missing", "unusable-record", "incomplete-transaction", "same-id", "stale-record",
	"sampling", "session-gap",
	"late-record", "session-forgotten", "overlong-transaction", "not-waited-for", "wrong-seq"}

func (w LossWhy) String() string { return lossNames[w] }

// Stats are totals since New, restarts included.
type Stats struct {
	Transactions, Operations uint64 // that were released
	Segments                 uint64 // that have ended
	// Short are those that ended, where values repeat or there are predicates, with reads in front of the next one's
	// overlap of which nobody could know yet what they had read: Config.Longest was too little.
	Short uint64
	// Forgotten are the transactions that no engine has any more. Dropped are the
	// versions among them, Unawaited the reads, that might have mattered and for
	// which there was no room (or which wait on without what came before them); Undecided the orders of versions and the
	// readers' choices that were open when their segment ended; Withheld the violations that were
	// found, and whose proof is forgotten; Unexplained the cycles that were only counted.
	Forgotten, Dropped, Unawaited, Undecided, Withheld, Unexplained uint64

	Losses [lossWhys]uint64 // by LossWhy
	Cuts   [4]uint64        // between segments, by segment.Kind
	// Straddlers are the transactions known to have no order against what lies on
	// the other side of a cut, Incomplete the cuts that prove nothing of the others
	// either, not even if the database keeps real time.
	Straddlers, Incomplete uint64
	// Untimely are, if one of the levels has real time, the transactions that came in
	// time, and whose own times are not used, or not to the full: by them, they
	// contradict their session, or ended long after they came.
	Untimely uint64
}

// ref names a record: its entry's number, and its index in the block.
type ref uint64

// refBits are for the index: a batch has at most so many records.
const refBits = 16

func newRef(entry uint64, i int) ref { return ref(entry<<refBits | uint64(i)) }

func (r ref) entry() uint64 { return uint64(r) >> refBits }
func (r ref) index() int    { return int(r & (1<<refBits - 1)) }

// noTime is before all times.
const noTime = math.MinInt64

// History is one history of a stream. It is for one goroutine.
type History struct {
	cfg   Config
	order *order.Order
	segs  *segments
	held  held
	// next is one more than the number of the last entry; 0 before the first.
	next   uint64
	missed int64 // what the order did not wait for, as far as that was noted as a loss
	// samples are which sessions were left out of the entries from Floor on.
	samples []sampled
	heads   []partitionHead // by partition: how it begins
	open    int             // partitions of which it is not known until when records are missing at their beginning
	headed  bool            // what came before the history began is missing, so that each partition has a head

	// ahead[first:] are handed out by the order, and next to be released.
	ahead    []order.Release
	first    int
	ready    int      // the frontier has the keys of so many from ahead[first] on in memory
	needs    []string // keys of the next ones that the frontier has not in memory
	realTime bool     // one of the levels has real time

	contradicts []Contradiction
	losses      []Loss // at most lossesMax
}

// lossesMax bounds the losses kept for Losses; the rest are only counted.
const lossesMax = 64

// New makes a History that knows nothing yet.
func New(cfg Config) *History {
	h := newHistory(cfg.WithDefaults())
	h.order = order.New(h.cfg.Order)
	h.segs = newSegments(h.cfg, &h.held)
	return h
}

func newHistory(cfg Config) *History {
	return &History{cfg: cfg, realTime: slices.ContainsFunc(cfg.Levels, verdict.Level.RealTime),
		held: held{blocks: map[uint64]*block{}, sessions: map[ref]string{}}}
}

// Take takes in the next entry: its records of this history go to the order. What
// is due then is worked off by Run. Every entry has to be given to every history,
// as it tells all of them how far the input has come.
func (h *History) Take(e *Entry) {
	h.next = e.Number + 1
	h.order.Returned(e.Returned)
	for n := range e.Partitions {
		h.order.Expect(n)
	}
	h.sample(e)
	if b := e.Batch; b != nil {
		h.order.Reading(e.Time)
		h.takeBatch(e, b)
	}
	h.order.Advance(e.Time)
	// Before anything is concluded from that a partition is not waited for any more.
	from := h.order.Watermark()
	n := h.order.Missed()
	unread, goesOn := h.order.Unread() // what it still has belongs behind it
	from = min(from, unread)
	if n > h.missed {
		h.missed = n
		h.lose(Loss{Why: LostPartition}, from, h.order.Reach())
	} else if goesOn {
		h.segs.missing(from, h.order.Reach())
		h.segs.whole.lost(LostPartition, from, h.order.Reach())
	}
}

// sampled says that of the entries from this one on only sessions were taken that
// order.Kept names for the level.
type sampled struct {
	From  uint64
	Level uint8
}

// sample notes what an entry says about the sample. Amortised O(1).
func (h *History) sample(e *Entry) {
	h.order.Sample(e.Sample)
	if n := len(h.samples); n == 0 && e.Sample == 0 || n > 0 && h.samples[n-1].Level == e.Sample {
		return
	}
	h.samples = append(h.samples, sampled{e.Number, e.Sample})
	from, old := h.Floor(), 0
	for old+1 < len(h.samples) && h.samples[old+1].From <= from {
		old++
	}
	h.samples = h.samples[old:]
}

// leftOut tells whether a session was left out of an entry, from Floor on.
func (h *History) leftOut(session string, entry uint64) bool {
	for i := len(h.samples) - 1; i >= 0; i-- {
		if s := &h.samples[i]; s.From <= entry {
			return !order.Kept(session, s.Level)
		}
	}
	return false
}

// loseNow notes a loss among the records that come in now, of which nothing is known
// but that they were to be released later than all that were.
func (h *History) loseNow(l Loss) { h.lose(l, h.order.Watermark(), h.order.Reach()) }

func (h *History) takeBatch(e *Entry, b *decode.Batch) {
	switch n := b.Len(); {
	case n == 0:
	case h.held.add(e.Number, b, h.cfg.DB):
		for i := range n {
			h.add(e, i)
		}
		h.held.trim(e.Number)
	default: // the last one says enough
		h.add(e, n-1)
	}
	h.takeLosses(b)
	h.takeHead(e, b)
	if b.CaughtUp {
		h.order.CaughtUp(b.Partition, e.Time)
	}
}

// takeLosses notes what is missing among the records of a batch that was taken.
func (h *History) takeLosses(b *decode.Batch) {
	if b.Midst { // who wrote what is read may be in front of it
		h.segs.becomePartial()
	}
	if len(b.Gaps) > 0 {
		h.loseNow(Loss{Why: LostRecords, From: b.Gaps[0].From, To: b.Gaps[len(b.Gaps)-1].To})
	}
	if b.Lost > 0 {
		h.loseNow(Loss{Why: LostReject})
	}
	for _, l := range b.Losses {
		if l.DB == "" || l.DB == h.cfg.DB {
			l := Loss{Why: LostEvents, Session: l.Session, ID: l.Txn}
			// it was given up that much later
			h.lose(l, before(h.order.Watermark(), int64(h.cfg.MaxTransaction)), h.order.Reach())
		}
	}
}

// add gives record i of an entry to the order; of one of another history only the time that it
// reaches.
func (h *History) add(e *Entry, i int) {
	b := e.Batch
	head := b.Head(i)
	if head.DB != h.cfg.DB {
		t := head.End
		if !head.HasTimes {
			t = cmp.Or(b.Arrivals[i], e.Time)
		}
		h.order.Observe(b.Partition, head.Session, t, b.Arrivals[i])
		return
	}
	head.Bytes = b.Block.Size(i)
	r := newRef(e.Number, i)
	switch h.order.Add(b.Partition, &head, uint64(r), b.Arrivals[i]) {
	case order.Taken, order.Late:
		h.held.keep(r)
	case order.Contradiction:
		t := b.Block.Copy(i)
		h.contradicts = append(h.contradicts, Contradiction{b.Partition, b.Offsets[i], t})
		h.loseRecord(Loss{Why: LostConflict, Session: t.Session, ID: t.ID}, &head)
	case order.Stale:
		h.loseRecord(Loss{Why: LostStale, Session: head.Session, From: head.Seq, To: head.Seq}, &head)
	case order.LeftOut:
		h.loseRecord(Loss{Why: LostSample, Session: head.Session}, &head)
	}
}

// loseRecord notes that a record is not taken.
func (h *History) loseRecord(l Loss, head *record.Head) {
	if head.HasTimes {
		h.lose(l, head.End, max(head.End, h.order.Watermark()))
		return
	}
	h.loseNow(l)
}

// before is a time that much earlier.
func before(at, much int64) int64 {
	if at < noTime+much {
		return noTime
	}
	return at - much
}

// lose notes that a write of this history may have been missed, which belongs
// between two times.
func (h *History) lose(l Loss, from, to int64) {
	h.segs.missing(from, to)
	h.noteLoss(l, from, to)
	h.segs.becomePartial()
}

// noteLoss has a loss counted and told, and the stretches between two times be partial for it.
func (h *History) noteLoss(l Loss, from, to int64) {
	h.segs.whole.lost(l.Why, from, to)
	h.segs.stats.Losses[l.Why]++
	if len(h.losses) < lossesMax {
		h.losses = append(h.losses, l)
	}
}

// Run works off what is due, at most so many records; it tells whether there may be
// more. It returns early where the engine changes and something was found: then
// Found has to be called; and where keys have to be read back from disk: then Needs
// names them, and nothing goes on before Answer.
func (h *History) Run(records int) bool {
	for n := 0; n < records; {
		switch {
		case len(h.needs) > 0, h.segs.due != noChange && len(h.segs.found) > 0:
			return true
		case h.segs.due != noChange:
			h.segs.change()
			h.ready = 0 // what was read back may be spilled again
		case h.first == len(h.ahead):
			if h.fetch() {
				continue
			}
			at, due := h.order.Tick()
			if !due {
				return false
			}
			h.segs.tick(at)
		case h.ready == 0:
			h.prepare()
		case h.ahead[h.first].Tick:
			r := &h.ahead[h.first]
			r.Tick, r.Silent = r.Silent, false
			h.segs.tick(r.TickAt)
		default:
			h.release(&h.ahead[h.first])
			h.first++
			h.ready--
			n++
		}
	}
	return true
}

// aheadMost is how many records are taken from the order at once when their keys
// may have to be read back from disk.
const aheadMost = 256

// fetch takes records from the order, and tells whether there was any.
func (h *History) fetch() bool {
	most := 1
	if h.segs.front.Spilled() {
		most = aheadMost
	}
	h.ahead, h.first, h.ready = h.ahead[:0], 0, 0
	for len(h.ahead) < most {
		r, ok := h.order.Next()
		if !ok {
			break
		}
		h.ahead = append(h.ahead, r)
	}
	return len(h.ahead) > 0
}

// prepare asks for the keys of what is to be released next.
func (h *History) prepare() {
	next := h.ahead[h.first:]
	if h.segs.front.Spilled() {
		for i := range next {
			t, err := h.held.record(ref(next[i].Ref), 0)
			if err != nil {
				panic(fmt.Sprintf("stream: %v: can't happen, because blocks are held until their records have left", err))
			}
			h.needs = h.segs.needs(h.needs, t)
		}
		slices.Sort(h.needs)
		h.needs = slices.Compact(h.needs)
	}
	if len(h.needs) == 0 {
		h.ready = len(next)
	}
}

// Needs are keys of which the disk may have something, that the next Run needs: none
// before the first Spilled. They are sorted.
func (h *History) Needs() []string { return h.needs }

// Answer says what the disk has of the keys that Needs named, in their order: what
// Spill gave last of each, or nothing. The error says what is wrong with it; the
// History can't go on then.
func (h *History) Answer(values [][]byte) error {
	if len(values) != len(h.needs) {
		return fmt.Errorf("stream: %d answers for %d keys", len(values), len(h.needs))
	}
	for i, key := range h.needs {
		if err := h.segs.front.Answer(key, values[i]); err != nil {
			return err
		}
	}
	clear(h.needs)
	h.needs = h.needs[:0]
	h.ready = len(h.ahead) - h.first
	return nil
}

// Spill gives at most max keys that have to leave memory, with what is to be stored
// of them in place of what is there; then Spilled is to be called, which lets them
// go. It may be called between Runs, and gives something only after a segment has
// ended; none: that is all. A restart from a checkpoint needs the disk as it was at
// the time of the checkpoint (see store.Store).
func (h *History) Spill(max int) []frontier.KV {
	if !h.segs.ended {
		return nil
	}
	kvs := h.segs.front.Spill(max)
	h.segs.ended = len(kvs) > 0
	return kvs
}

// Spilled says that what Spill gave last is stored.
func (h *History) Spilled() { h.segs.front.Gone(h.segs.keys) }

// Frontier says how much is remembered of what was forgotten.
func (h *History) Frontier() frontier.Stats { return h.segs.front.Stats() }

// release gives a record to the engine.
func (h *History) release(r *order.Release) {
	f := fed{ref: ref(r.Ref), at: r.Key}
	// The times of one that is late are as good as any: the engine takes it to have
	// ended with what it has, which orders less, or looks again at what rests on them.
	// Without them it would order nothing, and after an outage of the producers a great
	// many are late. But where real time is promised nobody is told that a session contradicts
	// its own clock.
	if r.TimesDropped && !r.Late || r.Contradicts && h.realTime {
		f.flags |= timesDropped
	}
	if r.Untimely && (!r.Late || r.Passed) && h.realTime {
		h.segs.whole.untimely()
		h.segs.stats.Untimely++
	}
	if r.Detached {
		f.flags |= detached
		h.held.sessions[f.ref] = r.Session
	}
	t, err := h.held.record(f.ref, f.flags)
	if err != nil {
		panic(fmt.Sprintf("stream: %v: can't happen, because blocks are held until their records have left", err))
	}
	if r.Passed {
		at := r.Key
		if t.HasTimes {
			at = min(at, t.End)
		}
		h.segs.whole.passed(at)
	}
	if r.Misnumbered { // no write is missing: only what the session's order would show
		h.noteLoss(Loss{Why: LostNumber, Session: r.Own, ID: strings.Clone(t.ID)}, r.Key, r.Key)
	}
	if !r.Loses() {
		h.segs.step(t, f)
		return
	}
	around := lossesAround(r, t, h.segs.cutter.Seen(r.Session))
	for _, x := range around { // the step may tick
		h.segs.missing(x.from, x.to)
	}
	h.segs.step(t, f)
	for _, x := range around {
		h.lose(x.Loss, x.from, x.to)
	}
}

// placedLoss is a loss and the times between which it lies.
type placedLoss struct {
	Loss
	from, to int64
}

// lossesAround are what a release says to be missing; since is when its session did
// something before.
func lossesAround(r *order.Release, t *record.Transaction, since int64) (out []placedLoss) {
	if g := r.Gap; g != nil {
		why := LostGap
		if g.Sampled {
			why = LostSample
		}
		out = append(out, placedLoss{Loss{Why: why, Session: g.Session, From: g.From, To: g.To}, since, r.Key})
	}
	began := r.Key // what was concluded since then was concluded without it
	if t.HasTimes {
		began = min(began, t.End)
	}
	for _, x := range [...]struct {
		is   bool
		why  LossWhy
		from int64
	}{{r.Forgotten, LostSession, since}, {r.Late && !r.Passed, LostLate, began},
		{r.Overlong, LostOverlong, min(began, t.Start)}} {
		if x.is {
			out = append(out, placedLoss{Loss{Why: x.why, Session: r.Own, ID: strings.Clone(t.ID)}, x.from, r.Key})
		}
	}
	return out
}

// Found are the violations found since the last call. They have to be taken, and
// their records looked up, before the next Run.
func (h *History) Found() []Violation {
	out := h.segs.found
	h.segs.found = nil
	return out
}

// Withheld says that a violation of the last Found, which was Torn, is not told.
func (h *History) Withheld() {
	h.segs.stats.Withheld++
	h.segs.whole.withheld()
}

// State is what the segment's engine says of its transactions.
func (h *History) State() incremental.State { return h.segs.engine.State() }

// Complete tells whether every write since the initial state is still taken to be
// in the input.
func (h *History) Complete() bool { return h.segs.complete }

// Contradictions are the records, since the last call, that have the ID of
// another one: dead letters.
func (h *History) Contradictions() []Contradiction {
	out := h.contradicts
	h.contradicts = nil
	return out
}

// Losses are what was found missing since the last call: of many only the first.
func (h *History) Losses() []Loss {
	out := h.losses
	h.losses = nil
	return out
}

// Next is one more than the number of the last entry; 0 before the first.
func (h *History) Next() uint64 { return h.next }

// Floor is the least number of an entry that a Checkpoint taken now needs, or Next.
func (h *History) Floor() uint64 { return max(h.held.floor(h.next), h.adopted()) }

// adoptAfter is how many entries back a record may lie that a checkpoint only names;
// older ones are copied into it, so that a history in which little happens does not
// keep the journal of all. Where there are more of them than entries a good part of the
// journal is this history's, and they are named as well: to copy them would cost more
// than the journal.
const adoptAfter = 1024

// adopted is the first entry whose records a checkpoint names. O(entries that are referred to).
func (h *History) adopted() uint64 {
	limit := h.next - min(h.next, adoptAfter)
	from := h.held.floor(h.next)
	if from < limit && h.held.before(limit) > limit-from {
		return 0
	}
	return limit
}

// Waiting is how many records wait in the order.
func (h *History) Waiting() int { return h.order.Held() }

// Mark is how far records have been handed out: all that ended before it, and was not late, is judged once Run has
// nothing more.
func (h *History) Mark() int64 { return h.order.Mark() }

// OrderCounts are what the order has counted.
func (h *History) OrderCounts() order.Counts { return h.order.Counts() }

// Stats are the totals.
func (h *History) Stats() Stats { return h.segs.stats }

// Decided is how far nothing changes by what is still to come, but for what comes late: how many of the transactions
// that Stats counts, at least, and before which time; math.MaxInt64: all are.
func (h *History) Decided() (transactions uint64, before int64) { return h.segs.decided() }

// Standing is what is known so far. Stretches are the parts of the stream before what Decided says, oldest first, and how
// complete they are: at most StretchesMost, the last of which is open before Close.
// Work is that of the segment's engine, over all levels. Linear in what was found in the segment.
func (h *History) Standing() (stretches []Stretch, work verdict.Stats) {
	results := h.segs.engine.Results()
	for _, r := range results {
		work.Choices += r.Stats.Choices
		work.Eliminated += r.Stats.Eliminated
		work.Constraints += r.Stats.Constraints
		work.Pruned += r.Stats.Pruned
		work.Residual += r.Stats.Residual
		work.Conflicts += r.Stats.Conflicts
		work.Inferred += r.Stats.Inferred
	}
	_, before := h.segs.decided()
	return h.segs.whole.all(before, unjudged(results, true)), work
}

// Judged is how many transactions had been released when the engine had its last tick; it does not grow
// while nothing is judged. 0 before the first after a restart.
func (h *History) Judged() uint64 { return h.segs.judged }

// Newest is the greatest time that a released record has; math.MinInt64 before the
// first.
func (h *History) Newest() int64 { return h.segs.newest }

// Latest is the greatest time that was read; math.MinInt64 before the first.
func (h *History) Latest() int64 { return h.order.Greatest() }

// Close, after Flush, gives the verdicts, one per level of
// Config in that order, after which only Found and Lookup may be called. Of
// violations of earlier segments, results say no more than that there are some. A
// history that went through several segments is not satisfied, as what lies
// across their borders was not seen whole, unless an order of predicates explains all.
func (h *History) Close() []verdict.Result {
	h.segs.solve(math.MaxInt64)
	results := h.segs.engine.Close()
	h.segs.tell(h.segs.engine.Tick(math.MaxInt64).Violations)
	results = h.segs.closePredicates(results)
	h.segs.looked = len(h.segs.fed)
	h.segs.whole.ended(unjudged(results, false))
	return h.segs.results(results)
}

// Flush says that no further entry will come: what still waits is due. Run has to
// be called until it returns false, and then Close.
func (h *History) Flush() { h.order.Flush() }
