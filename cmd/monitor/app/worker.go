package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// worker owns one history: it takes entries from its queue, one goroutine from
// first to last, raises alerts and writes checkpoints.
type worker struct {
	*setting
	db     string
	keeper *keeper
	teller *teller // hears of alerts and trouble
	status *status // hears how it goes
	queue  *queue
	// begin makes the history, or makes it anew from a checkpoint.
	begin func(context.Context) (*stream.History, error)

	history *stream.History
	told    *told   // which anomalies have an alert
	proved  *proved // what came of proving anomalies since the last checkpoint
	// What the checkpoint says beside the history's state.
	born     uint64
	coverage record.Coverage
	whole    bool
	config   uint64
	// replayed is the last entry of the run before: what is found up to there was
	// told before, if it is known.
	replayed uint64
	// back is called once, when the history is there; nil: it has been, or there was no run before.
	back func()
	// progress is how far it is judged, if that is further than the run before was; for
	// others to read.
	progress atomic.Pointer[life.Progress]

	shown  shown
	causes causes
	spoken struct { // of new alerts in the log
		since time.Time
		lines int
		left  int64 // that were left out since the last one
	}
	complete bool          // as the log has it
	saved    time.Time     // when the last checkpoint was written
	dirty    int           // records taken since
	space    time.Duration // the least time until the next one
	oldest   int64         // the first time that the stream had

	piece      piece // of what is told
	tallies    *tallies
	published  time.Time // when the page was last shown how it goes
	lastRecord int64     // when the last record was taken, Unix nanoseconds
	sampling   uint8     // the share of the last entry; see sampler

	// blocked: the ingest waits for the queue. leavesOut: it leaves sessions out.
	blocked, leavesOut atomic.Bool
	// What follows is for others to read, up to unjudged.
	consumed atomic.Uint64 // the last entry that is worked off
	lag      atomic.Int64  // of the mark behind the newest record, nanoseconds
	came     atomic.Uint64 // records that the order has taken in
	upTo     atomic.Uint64 // stream.History.Judged
	// unjudged is the oldest time of which records may not have been judged yet; 0:
	// none waits.
	unjudged atomic.Int64
	beat     *beat
	solving  beat            // of what is open, by the engine
	going    context.Context // ends when nothing new is to be begun
	stopping atomic.Bool     // it has ended: a search need not go on
	// sampled is how the ingest samples this history; it belongs to the ingest.
	sampled sampler

	within    time.Duration // what of the step at hand is counted apart
	measuring bool          // such a part is going on
	totals    totals
	report    *report.History // once the input has ended
}

// runMax is how many releases a worker works off before it looks up.
const runMax = 1024

// A checkpoint is written after so long or so many records, whichever is first: a
// restart has to work off again what came after it. It is not written more often
// than checkpointAtLeast.
//
// A process that is killed right before one leaves so many records to work off until the
// next is where it was: at 7 µs each that is 0.9 s, of the 3 s that a restart may take. A full
// queue, and what waits in the journal, come after that. One of 10,000 keys takes 10 to 17 ms
// of a core, 0.1 µs per record.
const (
	checkpointEvery   = 2 * time.Second
	checkpointRecords = 1 << 17
	checkpointAtLeast = 200 * time.Millisecond
	// checkpointBytes is how many bytes of checkpoints are written a second at most:
	// with a million keys one is some 70 MB.
	checkpointBytes = 8 << 20
)

// run works until the queue is closed, or ctx ends: then at once. When going ends, it
// begins nothing new: what its queue has is in the journal, for the next run. end says
// whether the input is over when the queue is closed.
func (w *worker) run(ctx, going context.Context, end func() bool) error {
	w.going = going
	defer context.AfterFunc(going, func() { w.stopping.Store(true) })()
	w.beat.work(time.Now())
	defer w.beat.rest()
	err := w.runAll(ctx, end)
	if errors.Is(err, errHalted) || going.Err() != nil && ctx.Err() == nil && errors.Is(err, going.Err()) {
		return nil
	}
	return err
}

// runAll is run, but for errHalted where it stopped within an entry: its last
// checkpoint stays then.
func (w *worker) runAll(ctx context.Context, end func() bool) error {
	var err error
	if w.history, err = w.begin(w.going); err != nil {
		return fmt.Errorf("history %q: %w", w.db, err)
	}
	if w.going.Err() != nil {
		return errHalted
	}
	w.within = 0
	w.totals.continued = w.history.Next() > 0
	w.saved = time.Now()
	w.complete = w.history.Complete()
	w.metrics.setComplete(w.db, w.complete)
	w.shown = shown{w.history.OrderCounts(), w.history.Stats()} // what the run before counted is not counted again
	if err := w.settle(ctx); err != nil {                       // what making it anew found
		return err
	}
	w.arrive()
	for {
		w.beat.rest()
		e, err := w.queue.pop(w.going, w.left)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if err := w.take(ctx, e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.publish(time.Now(), true)
	if err := w.save(ctx); err != nil {
		return err
	}
	if w.going.Err() == nil && end() {
		return w.end(ctx)
	}
	return nil
}

// take works off one entry.
func (w *worker) take(ctx context.Context, e *entry) error {
	if e.number <= w.consumed.Load() {
		return nil // part of the checkpoint
	}
	if want := w.consumed.Load() + 1; e.number != want { // judging on would miss something, and nobody would know
		return fmt.Errorf("history %q is at entry %d and was given entry %d: this is a bug of the monitor, please report it",
			w.db, want, e.number)
	}
	if w.tuning.slow != nil {
		w.beat.work(time.Now())
		w.tuning.slow(w.db)
	}
	began := time.Now()
	if e.batch != nil && e.number > w.replayed {
		w.metrics.queueWait.Observe(max(0, time.Duration(began.UnixNano()-e.time).Seconds()))
	}
	w.beat.work(began)
	if e.batch != nil && slices.Contains(e.batch.DBs, w.db) {
		w.lastRecord = e.time
	}
	w.history.Take(&stream.Entry{Number: e.number, Time: e.time, Partitions: e.partitions, Sample: e.sample[w.db],
		Batch: e.batch, Returned: e.returned})
	w.spendStep(began)
	if err := w.work(ctx); err != nil {
		return err
	}
	w.sampling = e.sample[w.db]
	if e.batch != nil {
		w.dirty += e.batch.Len()
		if w.untilEnd {
			w.totals.count(e.batch, w.db)
		}
	}
	n := w.history.OrderCounts()
	w.came.Store(uint64(n.Added - n.Duplicates - n.Contradictions - n.Stale - n.LeftOut))
	w.upTo.Store(w.history.Judged())
	w.consumed.Store(e.number)
	w.arrive()
	if w.due(time.Since(w.saved)) {
		return w.save(ctx)
	}
	return nil
}

// arrive tells once that the history has worked off what the run before had written, if it has.
func (w *worker) arrive() {
	if w.back != nil && w.consumed.Load() >= w.replayed {
		w.back()
		w.back = nil
	}
}

// due tells whether a checkpoint is to be written so long after the last one.
func (w *worker) due(since time.Duration) bool {
	return since >= w.space && (since >= w.tuning.checkpoint || since >= checkpointAtLeast && w.dirty >= checkpointRecords)
}

// work works off what is due.
func (w *worker) work(ctx context.Context) error {
	for more := true; more; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.going.Err() != nil {
			return errHalted
		}
		began := time.Now()
		w.beat.work(began)
		more = w.history.Run(runMax)
		w.spendStep(began)
		if w.stopping.Load() { // within a tick, it may be
			return errHalted
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		if err := w.fetch(ctx); err != nil {
			return err
		}
		if err := w.spill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle tells what has come about: alerts, dead letters, losses, metrics.
func (w *worker) settle(ctx context.Context) error {
	letters := w.lost()
	if err := w.raise(ctx); err != nil {
		return err
	}
	w.show()
	w.publish(time.Now(), false)
	return w.tell(ctx, letters, false)
}

// save writes a checkpoint.
func (w *worker) save(ctx context.Context) error {
	w.saved, w.dirty = time.Now(), 0
	if w.origin == "" || w.history.Next() == 0 {
		return nil // nothing can be read again, or nothing was taken: the birth is what the store has
	}
	c := checkpoint{origin: w.origin, config: w.config, born: w.born, coverage: w.coverage, whole: w.whole,
		consumed: w.consumed.Load(), floor: w.history.Floor(), told: w.told}
	size := 0
	write := func(to io.Writer) (err error) {
		size, err = c.write(to, w.history)
		return err
	}
	if err := w.keeper.save(ctx, w.db, &checkpointed{write: write, floor: c.floor}, nil, nil, nil); err != nil {
		return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	}
	w.space = time.Duration(size) * time.Second / checkpointBytes
	w.spend(workCheckpoint, w.saved)
	if !w.proved.follows(&c) {
		w.proved = provedSince(&c)
	}
	w.metrics.checkpointed.WithLabelValues(w.db).Set(float64(w.saved.UnixNano()) / 1e9)
	return nil
}

// sampler is how much of a history is left out because it can't be worked off.
type sampler struct {
	level   uint8     // only 1 in 2^level sessions is taken
	changed time.Time // the level was, last
	busy    time.Time // the queue was fuller than sampleLow, last
	most    uint8     // the highest since it was 0
}

// When the share of sessions taken is changed: a queue fuller than sampleHigh
// halves it, at most every sampleRaise; one emptier than sampleLow for sampleLower
// doubles it.
const (
	sampleHigh  = 0.75
	sampleLow   = 0.25
	sampleRaise = 100 * time.Millisecond
	sampleLower = 2 * time.Second
	samplesMax  = 10
)

// decide says what share of its sessions a history gets of the next entry.
func (w *worker) decide(now time.Time) uint8 {
	s := &w.sampled
	if w.cfg.Overload != config.OverloadSample {
		return 0
	}
	fill := w.queue.fill()
	if fill > sampleLow {
		s.busy = now
	}
	switch {
	case fill > sampleHigh && s.level < samplesMax && now.Sub(s.changed) >= sampleRaise:
		if s.level == 0 {
			w.log.Warn().Str("db", w.db).Msg("the history's records come faster than they can be judged: whole sessions are " +
				"left out and counted until it has caught up")
		}
		s.level, s.changed = s.level+1, now
		s.most = max(s.most, s.level)
	case s.level > 0 && now.Sub(s.changed) >= sampleLower && now.Sub(s.busy) >= sampleLower:
		s.level, s.changed = s.level-1, now
		if s.level == 0 {
			w.log.Info().Str("db", w.db).Int("one_in", 1<<s.most).
				Msg("the history has caught up: all sessions are taken again; one_in is the least share that was taken")
			s.most = 0
		}
	default:
		return s.level
	}
	w.metrics.sampleLevel.WithLabelValues(w.db).Set(float64(s.level))
	if w.leavesOut.Store(s.level > 0); s.level > 0 {
		w.teller.poke()
	}
	return s.level
}

// The keys of a history that do not fit in memory are in the store: spilled when a
// segment has ended, and read back when a record names them.
const (
	// spillMax is how many keys are spilled at once.
	spillMax = 4096
	// fetchMin is how many keys are worth another goroutine.
	fetchMin = 128
)

// fetch reads back the keys that the history needs to go on.
func (w *worker) fetch(ctx context.Context) error {
	keys := w.history.Needs()
	if len(keys) == 0 {
		return nil
	}
	values := make([][]byte, len(keys))
	share := max(fetchMin, (len(keys)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	g, ctx := errgroup.WithContext(ctx)
	for from := 0; from < len(keys); from += share {
		to := min(from+share, len(keys))
		g.Go(func() error {
			got, err := w.keeper.Spilled(ctx, w.db, keys[from:to])
			copy(values[from:to], got)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	}
	if err := w.history.Answer(values); err != nil {
		return damaged(err)
	}
	return nil
}

// spill puts into the store what has to leave memory. While the disk is full it
// stays. A stop ends it: no checkpoint is behind what was spilled, and the next run does it again.
func (w *worker) spill(ctx context.Context) error {
	if !w.keeper.spills() {
		if w.history.Frontier().Keys > w.cfg.Window.Keys {
			w.tellStays()
		}
		return nil
	}
	for {
		if w.going.Err() != nil {
			return errHalted
		}
		kvs := w.history.Spill(spillMax)
		if len(kvs) == 0 {
			return nil
		}
		pairs := make([]store.KV, len(kvs))
		for i, kv := range kvs {
			pairs[i] = store.KV(kv)
		}
		err := w.keeper.Spill(ctx, w.db, pairs)
		if errors.Is(err, store.ErrFull) {
			w.tellStays()
			return nil
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
		}
		w.history.Spilled()
	}
}

// tellStays tells once that memory is not bounded by window.keys at present.
func (w *worker) tellStays() {
	if !w.once("keys stay") {
		return
	}
	w.log.Warn().Str("db", w.db).Int("keys", w.cfg.Window.Keys).
		Msg("the disk is full: more than window.keys keys stay in memory until there is room")
}
