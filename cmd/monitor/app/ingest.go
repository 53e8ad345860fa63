package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/store"
)

// ingest is the state of the one goroutine that numbers what was read, has it
// written to the journal and hands it to the histories.
type ingest struct {
	*setting
	keeper  *keeper
	teller  *teller // hears of trouble
	status  *status // hears of histories
	contact *contact
	stage   *decode.Stage
	// partitions is how many the source has.
	partitions func() int
	// complete: every write since the initial state can still be said to be seen,
	// as far as the input as a whole goes.
	complete bool
	// anew: what earlier runs judged of this input is gone, as the store was used for another one since.
	anew bool
	// unheard: nothing was read in this run that says more than that time passes. Until something is, a store stays
	// another input's, and an input that ends has no entries more: what its end finds would else depend on how long it
	// takes to open it, and a run after a crash would find it elsewhere.
	unheard bool
	config  uint64 // fingerprint
	// next is the number of the next entry, replayed that of the last one of the run
	// before.
	next, replayed uint64
	workers        map[string]*worker
	order          []*worker       // by name
	group          *errgroup.Group // of the workers
	working        context.Context // ends when one of the group fails: all is given up
	going          context.Context // ends then, and when somebody asks to stop: nothing new is begun
	behind         atomic.Int64    // histories that have not worked off yet what the run before had written
	ended          bool            // the input is over
	began          time.Time
	now            func() time.Time

	// What is taken and not yet written: entries, the same as bytes, their dead
	// letters, and the histories that they begin.
	taken   []*entry
	data    []kept
	arena   []byte // what data is made of
	letters []store.DeadLetter
	births  map[string]checkpointed

	beat    *beat
	causes  causes
	pool    *pool         // of what the histories' queues hold
	longest time.Duration // that reading has waited for a history at once
}

// What is taken is written when it has so many bytes, dead letters or has waited
// for so long: a commit costs the same whatever is in it.
const (
	groupBytesMax   = 1 << 20
	groupLettersMax = 64
	groupWait       = 25 * time.Millisecond
)

// idleEvery is how often an entry says that time passes while nothing is read, at
// most; every history takes it, so that with many it is rarer: idleShare for each.
const (
	idleEvery = 50 * time.Millisecond
	idleShare = time.Millisecond
)

// idle is how long nothing is read before an entry says that time passes.
func (in *ingest) idle() time.Duration {
	return max(idleEvery, in.cfg.Solver.Every, time.Duration(len(in.order))*idleShare)
}

// listened tells whether a history would take now that time passes: one that has records
// left in the journal will not for a while, and the first that is read must not wait behind
// that.
func (in *ingest) listened() bool {
	return len(in.order) == 0 || slices.ContainsFunc(in.order, func(w *worker) bool {
		_, bytes := w.queue.backlog()
		return bytes == 0
	})
}

// read hands on what the stage reads until it ends; out is closed then.
func read(ctx context.Context, stage *decode.Stage, out chan<- *decode.Batch) error {
	defer close(out)
	for {
		b, err := stage.Read(ctx)
		if err != nil {
			return err
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run works until the input or reading ends. What is durable depends on work, which
// outlives a graceful stop; it ends when a worker fails.
func (in *ingest) run(reading context.Context) error {
	work := in.working
	batches := make(chan *decode.Batch)
	stop, cancel := context.WithCancel(reading)
	over := make(chan error, 1)
	go func() {
		if in.tuning.reading != nil {
			in.tuning.reading()
		}
		over <- read(stop, in.stage, batches)
	}()
	defer func() { // however this ends, the reader does too
		cancel()
		for range batches {
		}
	}()
	flush := time.NewTimer(time.Hour)
	defer flush.Stop()
	tick := time.NewTicker(max(in.cfg.Solver.Every, time.Millisecond))
	defer tick.Stop()
	last := in.now()
	defer in.beat.rest()
	for {
		var err error
		in.beat.rest()
		in.contact.rests(in.now())
		select {
		case b, ok := <-batches:
			in.wakes(in.now())
			if !ok {
				return in.over(reading, work, <-over)
			}
			last = in.now()
			first := len(in.taken) == 0
			in.hears(b, last)
			in.take(b, last)
			if len(in.arena) >= in.tuning.groupBytes || len(in.letters) >= groupLettersMax {
				err = in.write(work)
			} else if first {
				flush.Reset(groupWait)
			}
		case <-flush.C:
			in.wakes(in.now())
			err = in.write(work)
		case <-tick.C:
			in.wakes(in.now())
			// That time passes says nothing of an input that is read to its end.
			if now := in.now(); !(in.untilEnd && in.origin != "") && now.Sub(last) >= in.idle() && in.listened() {
				last = now
				in.take(nil, now)
				err = in.write(work)
			}
			err = errors.Join(err, in.keeper.retry(work, in.now()))
			in.show()
		case <-work.Done():
		}
		if work.Err() != nil {
			return nil // a worker failed, and says why
		}
		if errors.Is(err, errHalted) {
			return in.over(reading, work, nil)
		}
		if err != nil {
			return err
		}
	}
}

// wakes notes that something happens.
func (in *ingest) wakes(now time.Time) {
	in.beat.work(now)
	in.contact.wakes(now)
}

// hears notes that a batch was read.
func (in *ingest) hears(b *decode.Batch, now time.Time) {
	if in.ready.ready(whoInput) {
		in.log.Info().Str("source", in.name).Int("partitions", in.partitions()).Msg("reading")
	}
	if in.contact.hears(b, now) && in.ready.ready(whoSource) {
		in.log.Info().Str("source", in.name).Msg("the source works again")
	}
}

// over is what happens when there is no more input: it has ended, somebody asked
// to stop, or reading failed for good.
func (in *ingest) over(reading, work context.Context, err error) error {
	werr := in.write(work)
	if errors.Is(werr, errHalted) {
		werr = nil
	}
	switch {
	case errors.Is(err, io.EOF):
		in.ended = true
		return werr
	case reading.Err() != nil:
		if in.origin != "" {
			<-in.going.Done() // it ends with reading, in a moment: from here on nothing new is begun
		}
		return werr
	}
	return errors.Join(err, werr)
}

// take numbers a batch, nil for none, and notes what it says.
func (in *ingest) take(b *decode.Batch, now time.Time) {
	if b != nil {
		in.count(b, now.UnixNano())
	}
	if in.unheard && empty(b) {
		return
	}
	in.unheard = false
	left, returned, begins := in.contact.takes(now, b)
	if begins {
		in.log.Info().Str("source", in.name).Stringer("for", left.Round(time.Millisecond)).
			Msg("those who write may not have reached the source either: what is read waits until they may have caught up")
	}
	e := &entry{number: in.next, time: now.UnixNano(), partitions: in.partitions(), batch: b, returned: returned}
	in.next++
	for _, w := range in.order {
		if level := w.decide(now); level > 0 {
			if e.sample == nil {
				e.sample = map[string]uint8{}
			}
			e.sample[w.db] = level
		}
	}
	m := mark{partition: -1}
	if b != nil {
		m = mark{partition: b.Partition, resume: b.Resume, seen: b.Next, identity: b.Identity, state: b.State,
			since: in.contact.since()}
		in.beginNew(e)
	}
	m.complete, m.anew = in.complete, in.anew
	var data []byte
	if in.origin != "" {
		n := len(in.arena)
		in.arena = e.append(in.arena)
		data = in.arena[n:len(in.arena):len(in.arena)]
		e.size = int64(len(data))
	}
	in.taken = append(in.taken, e)
	in.data = append(in.data, kept{number: e.number, time: e.time, data: data, mark: m})
}

// empty tells whether a batch says nothing but how far was read, and that time passes.
func empty(b *decode.Batch) bool {
	return b == nil || b.Len() == 0 && b.Lost == 0 && !b.Midst &&
		len(b.Gaps)+len(b.Losses)+len(b.Rejected)+len(b.State)+len(b.Events) == 0
}

// count tells metrics and log of a batch, and sets its unusable records aside.
func (in *ingest) count(b *decode.Batch, now int64) {
	if b.Len()+len(b.Rejected) > 0 {
		in.teller.arrived(now)
	}
	in.metrics.records.Add(float64(b.Len() + len(b.Rejected)))
	in.metrics.bytes.Add(float64(b.Bytes))
	in.metrics.logged.WithLabelValues("yes").Add(float64(b.Logged))
	in.metrics.logged.WithLabelValues("no").Add(float64(b.Unlogged))
	in.metrics.unrecorded.Add(float64(b.Unrecorded))
	if b.Unrecorded > 0 && in.once("unrecorded") {
		in.log.Warn().Int("transactions", b.Unrecorded).
			Msg("the change stream tells of transactions that nobody recorded; unless they concern other tables, coverage is partial")
	}
	if b.Unlogged > 0 && in.once("unlogged") {
		in.log.Warn().Int("records", b.Unlogged).Stringer("waited", in.cfg.Window.Lateness).
			Msg("records name their transaction, and no change stream told in time where the database's log has it")
	}
	in.metrics.sourceLag.WithLabelValues(strconv.Itoa(b.Partition)).Set(float64(b.Lag))
	in.keeper.hear(b.Events)
	for _, g := range b.Gaps {
		in.gap(g)
	}
	for i := range b.Rejected {
		r := &b.Rejected[i]
		in.reject(r.Err, r.Value, r.Size, now)
	}
}

// beginNew begins the histories that an entry is the first to have a record of. Whether
// coverage is complete for them depends on what was lost up to this entry.
func (in *ingest) beginNew(e *entry) {
	b := e.batch
	if b.Midst && in.complete && in.cfg.Coverage == record.CoverageComplete {
		in.log.Warn().Int("partition", b.Partition).Int64("offset", b.First).
			Msg("coverage is partial: the input is not read from its beginning")
	}
	if b.Midst || len(b.Gaps) > 0 || b.Lost > 0 || len(b.Losses) > 0 {
		in.complete = false
	}
	further := false
	for _, db := range b.DBs {
		switch {
		case in.workers[db] != nil:
		case len(in.workers) < in.cfg.Window.Histories:
			in.beginHistory(db, e)
		default:
			further = true
		}
	}
	if further {
		in.refuse(e)
	}
}

// refuse sets aside the records of histories that are not watched, as there are as
// many as may be. Should there be more with the next configuration, they have missed
// these.
func (in *ingest) refuse(e *entry) {
	in.complete = false
	var r packed.Reader
	for i := range e.batch.Len() {
		if db := e.batch.Head(i).DB; in.workers[db] != nil {
			continue
		}
		t := e.batch.Block.At(i, &r)
		at := record.Position{Source: in.name, Partition: e.batch.Partition, Offset: e.batch.Offsets[i],
			Kafka: in.cfg.Source.Kafka != nil}
		err := reject.In("db", reject.TooManyHistories, "history %.100q is beyond the %d of window.histories", t.DB,
			in.cfg.Window.Histories).At(at)
		value := codec.AppendJSON(nil, t)
		in.reject(err, value, int64(len(value)), e.time)
	}
}

// beginHistory begins a history with an entry.
func (in *ingest) beginHistory(db string, e *entry) {
	coverage := in.cfg.Coverage
	if !in.complete {
		coverage = record.CoveragePartial
	}
	db = strings.Clone(db) // it is a part of the batch
	c := &checkpoint{origin: in.origin, config: in.config, born: e.number, coverage: coverage,
		whole: in.untilEnd && !in.tuning.segments, headed: !in.complete, consumed: e.number - 1, floor: e.number,
		told: newTold()}
	if in.births == nil {
		in.births = map[string]checkpointed{}
	}
	in.births[db] = checkpointed{data: c.append(nil), floor: c.floor}
	in.start(db, c, nil)
	in.log.Info().Str("db", db).Stringer("coverage", coverage).Msg("watching")
}

// write makes durable what was taken, then hands it to the histories.
func (in *ingest) write(ctx context.Context) error {
	if len(in.taken) == 0 {
		return nil
	}
	began := in.now()
	if err := in.keeper.append(ctx, in.data, in.letters, in.births); err != nil {
		return fmt.Errorf("store %s: %w", in.cfg.Store.Path, err)
	}
	in.metrics.phase.WithLabelValues(workJournal).Observe(in.now().Sub(began).Seconds())
	var err error
	for _, e := range in.taken {
		if err = in.dispatch(e); err != nil {
			break
		}
	}
	clear(in.taken)
	clear(in.data)
	in.taken, in.data, in.arena, in.letters, in.births = in.taken[:0], in.data[:0], in.arena[:0], nil, nil
	return err
}

// dispatch hands an entry to every history, through its queue or the journal. After
// errHalted nothing may be dispatched any more, as some histories lack the entry.
func (in *ingest) dispatch(e *entry) error {
	if in.going.Err() != nil {
		return in.halted()
	}
	mine := shares(e)
	for _, w := range in.order {
		x := e.queued(mine[w.db])
		if w.queue.offer(x) || in.leaves(w, x) {
			continue
		}
		if err := in.await(w, x); err != nil {
			return err
		}
	}
	return nil
}

// queued is e as it waits for a history that has so many of its records.
func (e *entry) queued(records int) queued {
	x := queued{entry: e, records: records}
	if records > 0 {
		x.bytes = e.batch.Block.Bytes() * int64(records) / int64(e.batch.Len())
	}
	return x
}

// halted is why nothing new is begun.
func (in *ingest) halted() error {
	if in.working.Err() != nil {
		return in.working.Err()
	}
	return errHalted
}

// leave says what a graceful stop leaves to the next run, or, of what can't be read again, to nobody.
func (in *ingest) leave() {
	records := 0
	for _, w := range in.order {
		n, _ := w.queue.length()
		left, _ := w.queue.backlog()
		records += n + left
	}
	if in.origin == "" {
		in.log.Info().Int("queued", records).Msg("stopped; what was read and is not judged yet can't be read again")
		return
	}
	in.log.Info().Int("queued", records).Msg("stopped; the next run goes on with what was read and is not judged yet")
}

// shares are how many records of an entry each history takes.
func shares(e *entry) map[string]int {
	b := e.batch
	if b == nil || b.Len() == 0 {
		return nil
	}
	if len(b.DBs) == 1 && len(e.sample) == 0 {
		return map[string]int{b.DBs[0]: b.Len()}
	}
	out := make(map[string]int, len(b.DBs))
	for i := range b.Len() {
		h := b.Head(i)
		if level := e.sample[h.DB]; level == 0 || order.Kept(h.Session, level) {
			out[h.DB]++
		}
	}
	return out
}

// abort ends the workers at once: what they have not stored is done again by the
// next run.
func (in *ingest) abort(err error) { in.group.Go(func() error { return err }) }

// gap reports a hole in the input.
func (in *ingest) gap(g source.Gap) {
	in.metrics.gaps.WithLabelValues(gapOffset).Inc()
	in.metrics.missing.WithLabelValues(gapOffset).Add(float64(g.To - g.From))
	in.log.Warn().Str("source", g.Source).Int("partition", g.Partition).Int64("from", g.From).Int64("to", g.To).
		Str("why", g.Why).
		Msg("records are missing and will never be seen")
	in.teller.event(life.Condition{Kind: troubleGap, Of: "partition " + strconv.Itoa(g.Partition), Severity: name.Warning,
		Text: fmt.Sprintf("Records %d to %d of partition %d of %s are missing and will never be seen: %s. Anomalies among "+
			"them are missed, and from there on what they may have written is not held against anybody.", g.From, g.To-1,
			g.Partition, g.Source, g.Why)})
}

// reject sets a record aside.
func (in *ingest) reject(e *reject.Error, value []byte, size, now int64) {
	in.letters = append(in.letters, letter(e, value, size, now))
	in.metrics.rejected.WithLabelValues(e.Reason.String()).Inc()
	in.teller.setAside(e)
	if in.once("reject " + e.Reason.String()) {
		e = in.sayable(e)
		in.log.Warn().Str("reason", e.Reason.String()).Stringer("at", e.Pos).Str("field", e.Field).Str("detail", e.Detail).
			Msg("record set aside; more of this reason are counted, and listed by monitor dead-letters")
	}
}

// once tells whether a cause is to be logged.
func (in *ingest) once(cause string) bool { return in.causes.news(cause, in.now()) }

// show tells the metrics how things are.
func (in *ingest) show() {
	lag := int64(0)
	for _, w := range in.order {
		lag = max(lag, w.lag.Load())
		in.metrics.showQueue(w)
		in.metrics.showAge(w, in.now())
	}
	batches, bytes := in.stage.Waiting()
	batchesMax, bytesMax := in.stage.Capacity()
	in.metrics.queue.WithLabelValues(queueInputs).Set(float64(batches))
	in.metrics.queueMax.WithLabelValues(queueInputs).Set(float64(batchesMax))
	in.metrics.queueBytes.WithLabelValues(queueInputs).Set(float64(bytes))
	in.metrics.queueBytesMx.WithLabelValues(queueInputs).Set(float64(bytesMax))
	in.metrics.backlogMax.Set(float64(in.backlogMax()))
	in.metrics.watermarkLag.Set(time.Duration(lag).Seconds())
}

// newStage begins to read and decode src behind what was stored.
func (a *App) newStage(src source.Source, s *previousRun) *decode.Stage {
	return decode.New(src, decode.Options{
		RecordsMax: a.tuning.records,
		Mapping:    mapping(a.cfg.Source.Mapping),
		LogWait:    a.cfg.Window.Lateness,
		Assembly:   assemble.Options{MaxTransaction: int64(a.cfg.Window.MaxTransaction)},
		OnHeader:   a.header,
		Offsets:    s.resume,
		Seen:       s.seen,
		States:     s.states,
	})
}

// mapping is what a configuration says of the form of records.
func mapping(m *config.Mapping) *codec.Mapping {
	if m == nil {
		return nil
	}
	unit := map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}[m.Unit]
	out := codec.TimeKiller(unit)
	lower := func(texts []string) (out []string) {
		for _, text := range texts {
			out = append(out, strings.ToLower(text))
		}
		return out
	}
	if m.Form == config.FormFields {
		out = &codec.Mapping{Session: m.Session, ID: m.ID, Seq: m.Seq, DB: m.DB, Start: m.Start, End: m.End, Unit: unit,
			Outcome: m.Outcome, Outcomes: [3][]string{record.Committed: m.Committed, record.Aborted: m.Aborted,
				record.Unknown: m.Unknown},
			Ops: m.Ops, Kind: m.Kind, Key: m.Key, Value: m.Value, Kinds: [3][]string{lower(m.Read), lower(m.Write), lower(m.Append)}}
	}
	out.Only, out.Is, _ = strings.Cut(m.Only, "=")
	return out
}

// header says where the input's header line and the configuration, which counts, are not of one
// mind. It may be called from any goroutine.
func (a *App) header(line []byte) {
	h, err := codec.DecodeHeader(line)
	if err != nil {
		a.log.Warn().Msg("the input's header line can't be read, and run does not use it: monitor check says what is wrong " +
			"with it")
		return
	}
	if differs := differences(&h, a.cfg); len(differs) > 0 {
		a.log.Warn().Strs("differs", differs).
			Msg("the input's header line says otherwise than the configuration, and run judges by its configuration: change " +
				"that if the header is right")
	}
}

// differences are the keys of which a header says otherwise than a configuration.
func differences(h *record.Header, c *config.Config) (out []string) {
	differ := func(key string, header, configured any) {
		if fmt.Sprint(header) != fmt.Sprint(configured) {
			out = append(out, fmt.Sprintf("%s: %v in the header, %v in the configuration", key, header, configured))
		}
	}
	if h.Initial != nil {
		differ("initial", h.Initial, c.Initial)
	}
	if h.MaxSkew != nil {
		differ("window.max_skew", time.Duration(*h.MaxSkew), c.Window.MaxSkew)
	}
	if h.Clock != nil {
		differ("clock", h.Clock, c.Clock)
	}
	if h.Coverage != nil {
		differ("coverage", h.Coverage, c.Coverage)
	}
	if h.Tables != nil {
		differ("partial_tables", h.Tables, c.Tables())
	}
	if h.UniqueValues != nil {
		differ("unique_values", *h.UniqueValues, c.UniqueValues)
	}
	if h.Sessions != nil && *h.Sessions == record.SessionsIgnore {
		out = append(out, "sessions: ignore in the header, and run always holds session order")
	}
	return out
}
