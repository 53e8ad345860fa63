package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/store"
)

// loop is the state of the one goroutine that owns orders and engines.
type loop struct {
	*App
	partitions []int // that are read
	// complete: every write since the initial state can still be said to be
	// seen, as far as the input as a whole goes.
	complete  bool
	histories map[string]*history
	order     []*history // by name: the order in which they are worked on
	progress  map[int]*progress
	// What the store remembers, by partition: where to read again, and what was
	// counted before this start.
	resume, seen map[int]int64

	// What the next commit makes durable.
	letters []store.DeadLetter
	alerts  map[string]alerts.Alert // by id
	moved   bool                    // some offset has

	told map[string]bool // causes that were logged
}

// lettersMax is how many dead letters wait for a commit at most: their bytes
// are held in memory.
const lettersMax = 64

// expect says how many partitions there are.
func (l *loop) expect(n int) {
	for i := range n {
		l.partitions = append(l.partitions, i)
	}
}

// run works until the input ends or ctx does.
func (l *loop) run(ctx context.Context, src source.Source) error {
	r := &reader{source: src, decode: codec.New(codec.Options{}), out: make(chan input, inputsMax)}
	reading, stopReading := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.run(reading) }()
	// However this ends, the reader does too.
	defer func() {
		stopReading()
		for range r.out {
		}
		<-ended //nolint:errcheck // told already
	}()
	// What is durable must not depend on ctx: a graceful stop commits.
	durable := context.WithoutCancel(ctx)
	tick := time.NewTicker(l.cfg.Solver.Every)
	defer tick.Stop()
	l.metrics.queueMax.WithLabelValues(queueInputs).Set(inputsMax)
	for {
		l.metrics.queue.WithLabelValues(queueInputs).Set(float64(len(r.out)))
		select {
		case in, ok := <-r.out:
			if !ok {
				err := <-ended
				ended <- err
				return l.over(durable, ctx, err)
			}
			if l.ready.ready("input") {
				l.log.Info().Str("source", l.name).Int("partitions", len(l.partitions)).Msg("reading")
			}
			if l.ready.ready("source") {
				l.log.Info().Str("source", l.name).Msg("the source works again")
			}
			if err := l.take(durable, in, time.Now().UnixNano()); err != nil {
				return err
			}
		case <-tick.C:
			if err := l.tick(durable, time.Now().UnixNano()); err != nil {
				return err
			}
		}
	}
}

// over is what happens when there is no more input: it has ended, somebody asked
// to stop, or reading failed for good.
func (l *loop) over(durable, ctx context.Context, err error) error {
	now := time.Now().UnixNano()
	switch {
	case errors.Is(err, io.EOF):
		l.ended = true
		return l.end(durable, now)
	case ctx.Err() != nil:
		l.log.Info().Msg("stopping")
		return l.tick(durable, now)
	}
	return errors.Join(err, l.tick(durable, now))
}

// take works on one batch.
func (l *loop) take(ctx context.Context, in input, now int64) error {
	p := l.follow(&in)
	l.metrics.bytes.Add(float64(in.bytes))
	l.metrics.sourceLag.WithLabelValues(strconv.Itoa(in.partition)).Set(float64(in.lag))
	for _, g := range in.gaps {
		if err := l.gap(ctx, g, now); err != nil {
			return err
		}
	}
	latest := int64(0)
	for i := range in.items {
		it := &in.items[i]
		again := it.pos.Offset < l.seen[in.partition]
		if !again {
			l.metrics.records.Inc()
		}
		ticket := p.read(it.pos.Offset)
		if it.rejected != nil {
			p.finish(ticket)
			l.reject(it.rejected, it.value, it.size, again, now)
			if err := l.lose(ctx, nil, "a record could not be used", now); err != nil {
				return err
			}
		} else {
			at, err := l.add(ctx, in.partition, ticket, it, again, now)
			if err != nil {
				return err
			}
			latest = max(latest, at)
		}
		if len(l.letters) >= lettersMax {
			if err := l.commit(ctx); err != nil {
				return err
			}
		}
	}
	if len(l.order) > 1 {
		for _, h := range l.order {
			h.order.Observe(in.partition, latest)
		}
	}
	if in.caughtUp {
		for _, h := range l.order {
			h.order.CaughtUp(in.partition, now)
		}
	}
	p.mark(mark{in.next, in.identity})
	l.moved = true
	return l.release(ctx, now)
}

// follow finds the progress of a batch's partition. One that begins before what
// was read already is of another input under the same name.
func (l *loop) follow(in *input) *progress {
	p := l.progress[in.partition]
	if p == nil {
		p = &progress{}
		l.progress[in.partition] = p
		next, resumed := l.resume[in.partition]
		switch {
		case resumed && in.first >= next:
			p.begin(mark{next, l.resume[source.IdentityKey(in.partition)]})
		case resumed:
			delete(l.seen, in.partition)
		}
	}
	if p.started && in.first < p.next {
		p.reset()
		delete(l.seen, in.partition)
	}
	first := mark{in.first, in.identity}
	if first.next == 0 {
		first.identity = 0 // the beginning is the beginning of whatever is there
	}
	p.begin(first)
	return p
}

// add gives a record to its history and returns the time that it reaches.
func (l *loop) add(ctx context.Context, partition int, ticket uint64, it *item, again bool, now int64) (int64, error) {
	h, err := l.history(it.txn.DB)
	if err != nil {
		return 0, err
	}
	arrival := it.arrival
	if arrival == 0 {
		arrival = now
	}
	switch h.add(partition, ticket, &it.txn, arrival) {
	case order.Duplicate:
		l.progress[partition].finish(ticket)
	case order.Stale:
		l.progress[partition].finish(ticket)
		if l.once("stale " + h.db) {
			l.log.Warn().Str("db", h.db).Str("id", it.txn.ID).
				Msg("a record may be one that came long before, and is left out; more are counted")
		}
		if err := l.lose(ctx, h, "a record was left out", now); err != nil {
			return 0, err
		}
	case order.Contradiction:
		l.progress[partition].finish(ticket)
		e := reject.In("id", reject.DuplicateID, "another record has the id %q and other content", it.txn.ID).At(it.pos)
		l.reject(e, codec.AppendJSON(nil, &it.txn), it.size, again, now)
		if err := l.lose(ctx, h, "two records have the same id", now); err != nil {
			return 0, err
		}
	}
	at := arrival
	if it.txn.HasTimes {
		at = it.txn.End
		if l.aheadMax > 0 && at > saturated(arrival, int64(l.aheadMax)) {
			at = arrival // a clock that far ahead says nothing
		}
	}
	if h.newest == 0 {
		h.oldest = at
	}
	h.newest = max(h.newest, at)
	return at, nil
}

// history finds or makes the history of a db.
func (l *loop) history(db string) (*history, error) {
	if h := l.histories[db]; h != nil {
		return h, nil
	}
	coverage := l.cfg.Coverage
	if !l.complete {
		coverage = record.CoveragePartial
	}
	h, err := newHistory(db, l.cfg, coverage, l.partitions, l.aheadMax, l.untilEnd)
	if err != nil {
		return nil, err
	}
	l.histories[db] = h
	l.order = append(l.order, h)
	slices.SortFunc(l.order, func(a, b *history) int { return strings.Compare(a.db, b.db) })
	l.metrics.setComplete(h)
	l.log.Info().Str("db", db).Strs("levels", h.levelNames()).Stringer("coverage", coverage).Msg("watching")
	return h, nil
}

// reject makes a dead letter, unless one was made before the last restart.
func (l *loop) reject(e *reject.Error, value []byte, size int64, again bool, now int64) {
	if again {
		return
	}
	l.metrics.rejected.WithLabelValues(e.Reason.String()).Inc()
	if l.once("reject " + e.Reason.String()) {
		l.log.Warn().Str("reason", e.Reason.String()).Stringer("at", e.Pos).Str("field", e.Field).Str("detail", e.Detail).
			Msg("record set aside; more of this reason are counted, and listed by monitor dead-letters")
	}
	detail := e.Detail
	if e.Field != "" {
		detail = "field " + e.Field + ": " + detail
	}
	l.letters = append(l.letters, store.DeadLetter{Pos: e.Pos, Reason: e.Reason.String(), Detail: detail, Time: now, Value: value, Size: int(size)})
}

// gap reports a hole in the input.
func (l *loop) gap(ctx context.Context, g source.Gap, now int64) error {
	l.metrics.gaps.WithLabelValues(gapOffset).Inc()
	l.metrics.missing.WithLabelValues(gapOffset).Add(float64(g.To - g.From))
	l.log.Warn().Str("source", g.Source).Int("partition", g.Partition).Int64("from", g.From).Int64("to", g.To).Str("why", g.Why).
		Msg("records are missing and will never be seen")
	return l.lose(ctx, nil, "records are missing", now)
}

// lose turns a complete coverage to partial, of one history or of all. What was
// found before remains.
func (l *loop) lose(ctx context.Context, h *history, why string, now int64) error {
	hit := l.order
	if h != nil {
		hit = []*history{h}
	} else {
		l.complete = false
	}
	for _, h := range hit {
		changed, err := h.lose(func(found []verdict.Violation, results []verdict.Result) error {
			if l.untilEnd {
				h.before = l.report(h, results).Results
			}
			return l.raise(ctx, h, found, now)
		})
		if err != nil {
			return err
		}
		if changed {
			l.metrics.setComplete(h)
			l.log.Warn().Str("db", h.db).Str("why", why).Msg("coverage is partial from now on: what nobody is seen to have written, the missing may have")
		}
	}
	return nil
}

// once tells whether a cause has not been told yet.
func (l *loop) once(cause string) bool {
	if l.told[cause] {
		return false
	}
	l.told[cause] = true
	return true
}

// release moves what is due from the orders to the engines.
func (l *loop) release(ctx context.Context, now int64) error {
	for _, h := range l.order {
		began := time.Now()
		lost := ""
		err := h.release(func(r *order.Release, t *record.Transaction) {
			l.metrics.transactions.WithLabelValues(h.db, t.Status.String()).Inc()
			if g := r.Gap; g != nil {
				lost = "a session has a hole"
				if l.once("gap " + h.db) {
					l.log.Warn().Str("db", h.db).Str("session", g.Session).Int64("from", g.From).Int64("to", g.To).
						Msg("a session's records are missing; more are counted")
				}
			}
			if r.Late {
				lost = "a record came late"
				if l.once("late " + h.db) {
					l.log.Warn().Str("db", h.db).Str("id", t.ID).
						Msg("a record came later than window.lateness allows; more are counted")
				}
			}
		})
		if err != nil {
			return err
		}
		l.metrics.addOrder(h)
		l.spend(h, workStep, began)
		if lost != "" {
			if err := l.lose(ctx, h, lost, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// The kinds of work in isowatch_engine_seconds.
const (
	workStep  = "step"
	workSolve = "solve"
	workAlert = "alert"
)

func (l *loop) spend(h *history, work string, began time.Time) {
	took := time.Since(began).Seconds()
	h.totals.seconds += took
	l.metrics.phase.WithLabelValues(work).Observe(took)
}

// tick lets time pass: what is due is released, what is open decided, and all
// that came of it made durable.
func (l *loop) tick(ctx context.Context, now int64) error {
	for _, h := range l.order {
		h.order.Advance(now)
	}
	if err := l.release(ctx, now); err != nil {
		return err
	}
	lag := int64(0)
	for _, h := range l.order {
		lag = max(lag, h.newest-max(h.order.Watermark(), h.oldest))
		began := time.Now()
		if c := h.order.Counts(); c.Skipped+c.Forced > h.passed {
			h.passed = c.Skipped + c.Forced
			if err := l.lose(ctx, h, "a silent partition was not waited for", now); err != nil {
				return err
			}
		}
		out := h.engine.Tick(h.order.Watermark())
		l.spend(h, workSolve, began)
		if err := l.raise(ctx, h, out.Violations, now); err != nil {
			return err
		}
		h.settle(func(partition int, ticket uint64) { l.progress[partition].finish(ticket) })
	}
	l.metrics.watermarkLag.Set(time.Duration(lag).Seconds())
	return l.commit(ctx)
}

// end is the last tick: the input is over.
func (l *loop) end(ctx context.Context, now int64) error {
	for _, h := range l.order {
		h.order.Flush()
	}
	if err := l.release(ctx, now); err != nil {
		return err
	}
	for _, h := range l.order {
		began := time.Now()
		out := h.engine.Tick(math.MaxInt64) // no record at all will come
		l.spend(h, workSolve, began)
		if err := l.raise(ctx, h, out.Violations, now); err != nil {
			return err
		}
		began = time.Now()
		results := h.engine.Close()
		l.spend(h, workSolve, began)
		l.reports = append(l.reports, l.report(h, results))
		h.settleAll(func(partition int, ticket uint64) { l.progress[partition].finish(ticket) })
	}
	l.moved = true
	return l.commit(ctx)
}

// anomaliesMax is how many anomalies a report of --until-end shows per level; all
// of them are alerts.
const anomaliesMax = 10

// report is what --until-end says of a history.
func (l *loop) report(h *history, results []verdict.Result) report.History {
	out := report.History{File: l.name, Format: "isowatch", DB: h.db, Transactions: h.totals.transactions, Operations: h.totals.operations,
		Sessions: len(h.totals.sessions), Keys: len(h.totals.keys), Results: []report.Result{}}
	for _, r := range judge.Results(h.db, results, h.assume, h.records.Get, anomaliesMax) {
		r.Seconds = h.totals.seconds
		r.Stats.PeakBytes = limit.Peak()
		if h.assume.Coverage == record.CoveragePartial && l.cfg.Coverage == record.CoverageComplete {
			r.Notes = append(r.Notes, "coverage was partial: records were missing, or the input was not read from its beginning")
		}
		out.Results = append(out.Results, r)
	}
	for i, b := range h.before {
		if r := &out.Results[i]; b.Verdict == verdict.Violated.String() {
			r.Verdict, r.Unknown = b.Verdict, nil
			for _, x := range b.Anomalies {
				again := func(y report.Anomaly) bool { return y.Name == x.Name && slices.Equal(y.Transactions, x.Transactions) }
				if !slices.ContainsFunc(r.Anomalies, again) && len(r.Anomalies) < anomaliesMax {
					r.Anomalies = append(r.Anomalies, x)
				}
			}
		}
	}
	out.Mini = h.engine.Mini()
	out.Conclude(anomaliesMax)
	return out
}

// raise makes alerts of violations, one for all levels that an anomaly breaks. One that
// was raised before, also before a restart, is the same alert found once more.
func (l *loop) raise(ctx context.Context, h *history, vs []verdict.Violation, now int64) error {
	if len(vs) == 0 {
		return nil
	}
	defer l.spend(h, workAlert, time.Now())
	in := h.assume.Context(h.db, l.cfg.Levels, h.records.Get)
	in.Now, in.OneKey = now, h.engine.SingleObjects()
	for _, v := range vs {
		l.metrics.violations.WithLabelValues(h.db, v.Level.String()).Inc()
		same := judge.Same(v, name.Asked{Levels: in.Levels, Clock: in.Clock}, in.Lookup)
		if h.covered(same, v.Level) {
			continue
		}
		a, err := alerts.New(v, in)
		if err != nil {
			l.metrics.unproved.Inc()
			l.log.Error().Err(err).Str("db", h.db).Str("id", a.ID).Msg("an alert's evidence is incomplete")
		}
		if !h.cover(same, a) {
			continue
		}
		old, known, err := l.known(ctx, a.ID)
		if err != nil {
			return err
		}
		if known {
			a = old.Again(now)
		} else {
			l.metrics.alerts.WithLabelValues(h.db, a.Name).Inc()
			l.log.Warn().Str("db", h.db).Str("id", a.ID).Strs("breaks", a.Breaks).Str("name", a.Name).Msg(a.Summary)
		}
		l.alerts[a.ID] = a
	}
	return nil
}

// known finds an alert that was raised before.
func (l *loop) known(ctx context.Context, id string) (alerts.Alert, bool, error) {
	if a, ok := l.alerts[id]; ok {
		return a, true, nil
	}
	has, err := l.store.HasAlert(ctx, id)
	if err != nil || !has {
		return alerts.Alert{}, false, err
	}
	var old alerts.Alert
	found := false
	err = l.store.Alerts(ctx, func(s store.Alert) bool {
		if s.ID == id {
			old, err = alerts.Parse(s.Body)
			found = err == nil
		}
		return s.ID != id
	})
	return old, found, err
}

// The store keeps three offsets per partition, each under a source of its own:
// where to resume, the identity of the input that this is an offset in, and what was
// counted.
const (
	identitySuffix = " identity"
	seenSuffix     = " seen"
)

// remember reads what the last run stored.
func (l *loop) remember(ctx context.Context) error {
	if l.origin == "" {
		return nil
	}
	var err error
	if l.resume, err = l.store.Offsets(ctx, l.origin); err != nil {
		return err
	}
	identities, err := l.store.Offsets(ctx, l.origin+identitySuffix)
	if err != nil {
		return err
	}
	for n, id := range identities {
		l.resume[source.IdentityKey(n)] = id
	}
	l.seen, err = l.store.Offsets(ctx, l.origin+seenSuffix)
	return err
}

// commit makes durable what has come about.
func (l *loop) commit(ctx context.Context) error {
	if !l.moved && len(l.letters) == 0 && len(l.alerts) == 0 {
		return nil
	}
	c := store.Commit{DeadLetters: l.letters}
	if l.origin != "" {
		resume, identity, seen := map[int]int64{}, map[int]int64{}, map[int]int64{}
		for n, p := range l.progress {
			if m, ok := p.resume(); ok {
				resume[n], identity[n] = m.next, m.identity
			}
			seen[n] = max(p.next, l.seen[n])
		}
		c.Offsets = map[string]map[int]int64{l.origin: resume, l.origin + identitySuffix: identity, l.origin + seenSuffix: seen}
	}
	for _, id := range slices.Sorted(maps.Keys(l.alerts)) {
		c.Alerts = append(c.Alerts, store.Alert{ID: id, Body: l.alerts[id].JSON()})
	}
	if err := l.store.Commit(ctx, c); err != nil {
		return fmt.Errorf("store %s: %w", l.cfg.Store.Path, err)
	}
	if len(c.Alerts) > 0 {
		l.dispatcher.Wake()
	}
	l.letters, l.moved = nil, false
	clear(l.alerts)
	return nil
}
