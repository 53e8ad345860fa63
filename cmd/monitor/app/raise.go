package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// alertMax bounds an alert in the store, in bytes. What is set in it later, such as how
// often it was found, and its group, needs less than what is left.
const alertMax = store.LimitBody - 64<<10

// predicatesMax is how many anomalies of a level are told each time that a segment's predicates are judged.
const predicatesMax = 16

// predicatesShare is what part of the memory judging a segment's predicates may take: one in so many. Its engine, which
// only counts them, takes little then.
const predicatesShare = 2 * searchedShare

// predicates is stream.Config.Predicates.
func (w *worker) predicates(records *packed.Records, levels []verdict.Level, under record.Assumptions,
	unasked predicate.Unasked) ([]verdict.Result, func(i int) stream.Find, stream.Found) {
	stop := func() verdict.Reason {
		if w.stopping.Load() {
			return verdict.Timeout
		}
		return verdict.NoReason
	}
	if !under.UnseenRepeat() { // unless it shows that they do: what predicate writes wrote the stream does not see
		under.UnseenUnique = nil
	}
	return judge.Question{Records: records, Levels: levels, Unasked: unasked, AnomaliesMax: predicatesMax, Stop: stop,
		Conflicts: w.cfg.Solver.Conflicts, BytesMax: int(w.cfg.Memory / predicatesShare),
		Assume: under}.Part()
}

// raise makes alerts of what was found, one for all levels that an anomaly breaks, and
// stores those that took long to prove as it goes on. One that was raised before is the
// same alert found once more; one that the run before raised at the same entry is not even
// that. When nothing new is to be begun it ends with errHalted: what is proved is stored,
// and the rest is found again by the next run, as no checkpoint is behind it.
func (w *worker) raise(ctx context.Context) error {
	for _, v := range w.history.Found() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		w.beat.work(began)
		err := errHalted
		if w.going.Err() == nil {
			err = w.raiseOne(ctx, &v, began)
		}
		w.spend(workAlert, began)
		if errors.Is(err, errHalted) {
			if err := w.tell(ctx, nil, true); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		w.piece.proving += time.Since(began)
		if w.piece.proving >= w.tuning.piece || w.piece.bytes >= pieceBytes {
			if err := w.tell(ctx, nil, true); err != nil {
				return err
			}
			w.publish(time.Now(), false)
		}
	}
	return nil
}

// raiseOne is raise of one anomaly.
func (w *worker) raiseOne(ctx context.Context, v *stream.Violation, now time.Time) error {
	under := v.Under
	under.Tables = judge.Tables(v.Violation, under.Tables)
	in := alerts.Context{DB: w.db, Levels: w.cfg.Levels, Assumptions: under, Lookup: alerts.Remembered(v.Find),
		Found: v.Found, Now: now.UnixNano(), OneKey: w.history.State().SingleObjects, Veil: w.veil}
	w.metrics.violations.WithLabelValues(w.db, v.Level.String()).Inc()
	same := judge.Same(v.Violation, name.Asked{Levels: in.Levels, Clock: in.Clock}, in.Lookup)
	m := w.proved.meet(w.history.Next(), same, v.Level)
	m.kind = kindOf(same, v)
	if w.told.covered(same, v.Level) {
		return nil
	}
	if w.told.enough(m.kind) {
		if done, err := w.suspect(ctx, v, in, m); done || err != nil {
			w.totals.suspect(v.Level)
			return err
		}
	}
	if done, err := w.asBefore(ctx, m); done || err != nil {
		return err
	}
	if w.tuning.proving != nil {
		w.tuning.proving(w)
	}
	proving := judge.NewProver(w.halted, 0)
	in.Judge, in.Find, in.Budget = proving.Judge, proving.Find, proving
	a, err := alerts.NewWithin(v.Violation, in, alertMax)
	if w.going.Err() != nil {
		return errHalted // the judge gave up in the midst of it, perhaps
	}
	if v.Torn && errors.Is(err, alerts.ErrUnproved) {
		w.withhold(&a)
		w.proved.put(m, withheld)
		w.totals.untold(v.Level, true)
		return nil
	}
	if err != nil {
		w.unproved(&a, v.Level, err)
		return nil
	}
	if w.untilEnd {
		w.totals.keep(a.Near(w.keeper.World().Events))
	}
	o := outcomeOf(&a)
	o.share = shareOf(proving.All(), judge.KindSteps)
	w.proved.put(m, o)
	w.told.breaks(a.Breaks)
	w.told.add(m.kind, o.share)
	if !w.told.cover(same, o) {
		return nil
	}
	at := w.foundAt(v)
	a.At = &at
	if severity := w.teller.severity(a.Level); severity != "" {
		a.Severity = name.Severity(severity)
	}
	old, known, err := w.keeper.Alert(ctx, a.ID)
	if err != nil {
		return err
	}
	if known {
		before, err := alerts.Parse(old.Body)
		if err != nil {
			return err
		}
		switch {
		case !w.replays() && !a.Repeats(before):
			a = a.After(before)
		case a.Widens(before): // by what follows from what it breaks as its ID has it: no news
			w.piece.keep(store.Alert{ID: a.ID, Body: a.InPlaceOf(before).JSON()})
			return nil
		default:
			return nil // found again only because its records were judged again
		}
	} else {
		w.metrics.alerts.WithLabelValues(w.db, a.Name).Inc()
		if w.setting.found != nil {
			w.setting.found(a)
		}
		w.metrics.raised(a.ID, &v.Violation, v.Find, now)
		w.say(a, now)
	}
	a.Group = life.GroupOf(a)
	if err := w.countWith(ctx, m, v.Segment, a.ID, at, known); err != nil {
		return err
	}
	w.piece.add(a)
	return nil
}

// place is how far the history is judged, but for what waits; see judged.
func (w *worker) place() alerts.Place {
	at := alerts.Place{History: w.born, Transactions: int64(w.history.Stats().Transactions), Time: w.lastRecord}
	if newest := w.history.Newest(); newest != math.MinInt64 {
		at.Time = min(newest, w.history.Mark())
	}
	return at
}

// judged is how far nothing changes by what is still to come.
func (w *worker) judged() alerts.Place {
	at := w.place()
	n, before := w.history.Decided()
	at.Transactions, at.Time = min(at.Transactions, int64(n)), min(at.Time, before)
	return at
}

// foundAt is place with the time of what was found now, if it has any.
func (w *worker) foundAt(v *stream.Violation) alerts.Place {
	at := w.place()
	if end, ok := lastEnd(&v.Violation, v.Find); ok {
		at.Time = min(at.Time, end)
	}
	return at
}

// halted is verdict.NoReason until nothing new is to be begun.
func (w *worker) halted() verdict.Reason {
	if w.going.Err() != nil {
		return verdict.Timeout
	}
	return verdict.NoReason
}

// replays tells whether what is found now is of entries that the run before had.
func (w *worker) replays() bool { return w.history.Next() <= w.replayed+1 }

// asBefore takes what came of a meeting when the run before proved what was met; false
// if it did not get there, or the store has the alert no more.
func (w *worker) asBefore(ctx context.Context, m meeting) (bool, error) {
	o, ok := w.proved.get(m)
	if !ok || !w.replays() {
		return false, nil
	}
	if o == withheld {
		w.history.Withheld()
		w.totals.untold(m.at, true)
		return true, nil
	}
	old, known, err := w.keeper.Alert(ctx, o.id)
	if err != nil || !known {
		return false, err
	}
	a, err := alerts.Parse(old.Body)
	if err != nil {
		return false, err
	}
	if w.untilEnd {
		w.totals.keep(a)
	}
	w.told.breaks(a.Breaks)
	w.told.add(m.kind, o.share)
	w.told.cover(m.same, o)
	return true, nil
}

// suspect keeps what is found of a kind of which enough is told already, to be explained when somebody
// looks, or only counts it; false if it can do neither.
func (w *worker) suspect(ctx context.Context, v *stream.Violation, in alerts.Context, m meeting) (bool, error) {
	if w.once("suspicions") {
		w.log.Warn().Str("db", w.db).Msg("more anomalies are like some of this segment that are alerts than are explained: " +
			"what explains them is kept as far as there is room, for monitor alerts list --state suspected")
	}
	full, before := w.told.enough("kept "+m.kind), w.tallies.before(m)
	if full && w.another(v, m, countedNear) && !before {
		return true, nil
	}
	a, err := alerts.Suspect(v.Violation, in)
	if errors.Is(err, alerts.ErrLarge) {
		return full && before || w.another(v, m, math.MaxInt64), nil
	}
	if err != nil {
		return false, err
	}
	_, known, err := w.keeper.Alert(ctx, a.ID)
	if err != nil || full && before && !known { // it was only counted
		return true, err
	}
	w.told.add("kept "+m.kind, shareOf(len(a.Suspicion), kindBytes))
	o := outcomeOf(&a)
	o.level = v.Level
	if !w.told.cover(m.same, o) {
		return true, nil
	}
	w.metrics.suspicions.WithLabelValues(w.db, "yes").Inc()
	at := w.foundAt(v)
	if err := w.countWith(ctx, m, v.Segment, a.ID, at, known); known || err != nil {
		return true, err
	}
	a.At, a.Group = &at, life.GroupOf(a)
	w.piece.keep(store.Alert{ID: a.ID, Body: a.JSON(), News: 1})
	return true, nil
}

// Of a kind of anomalies a segment has alerts until their proofs took judge.KindSteps, at most sharesMax of them; of
// more of it, what is needed to explain them later is kept, up to kindBytes, at most sharesMax of these; and more are
// counted.
const kindBytes = 4 << 20

// kindOf is a kind of anomalies: those of a segment that are found at a level and called the same.
func kindOf(same string, v *stream.Violation) string {
	name, _, _ := strings.Cut(same, " ")
	return fmt.Sprintf("%s at %v of segment %d", name, v.Level, v.Segment)
}

// piece is what was made of anomalies and is not stored yet.
type piece struct {
	found   []store.Alert
	news    []alerts.Alert // those of them that are news
	bytes   int            // of found
	proving time.Duration  // since what was proved was noted in the store
}

// What was proved is stored, and told, after so long, or when it is so many bytes,
// whichever is first: that much work is lost by a crash, and who asks the monitor to stop
// waits for one proof.
const (
	pieceEvery = 250 * time.Millisecond
	pieceBytes = 512 << 10 // the store has it in one transaction
)

func (p *piece) add(a alerts.Alert) {
	p.news = append(p.news, a)
	p.keep(store.Alert{ID: a.ID, Body: a.JSON(), News: 1})
}

// keep adds what is stored and is no news by itself.
func (p *piece) keep(s store.Alert) { p.found, p.bytes = append(p.found, s), p.bytes+len(s.Body) }

// tell stores what was found and tells of it. No checkpoint is part of that: what was
// found is found again after a crash, and known. With noted goes, so that it is not proved
// again either, what came of all proofs since the last checkpoint; that is too much to be
// written with every alert.
func (w *worker) tell(ctx context.Context, letters []store.DeadLetter, noted bool) error {
	if err := w.addCounted(ctx, time.Now().UnixNano()); err != nil {
		return err
	}
	p, notes := w.piece, map[string][]byte{}
	if len(p.found) == 0 && len(letters) == 0 && !noted && !w.tallies.changed {
		return nil
	}
	if w.piece = (piece{proving: p.proving}); noted {
		notes[provedPrefix+w.db], w.piece.proving = w.proved.append(nil), 0
	}
	if w.tallies.changed {
		notes[talliesPrefix+w.db], w.tallies.changed = w.tallies.append(nil), false
	}
	if err := w.keeper.save(ctx, w.db, nil, p.found, letters, notes); err != nil {
		return fmt.Errorf("store %s: %w", w.cfg.Store.Path, err)
	}
	for i := range p.news {
		w.status.raised(&p.news[i])
	}
	if len(p.found) > 0 {
		w.teller.poke()
	}
	return nil
}

// unproved tells of an anomaly that is not told, as it should be.
func (w *worker) unproved(a *alerts.Alert, at verdict.Level, err error) {
	w.metrics.unproved.Inc()
	w.totals.untold(at, false)
	why := "its evidence does not prove it by itself. This is a bug of the monitor: please report it."
	if errors.Is(err, alerts.ErrUnjudged) {
		why = "its evidence was not judged within the steps that a proof has. monitor check judges what was recorded at length."
	}
	w.log.Error().Err(err).Str("db", w.db).Str("id", a.ID).Str("name", a.Name).Strs("transactions", a.Transactions).
		Msg("an anomaly is not told, as " + why)
	w.teller.event(life.Condition{Kind: troubleUnproved, DB: w.db, Severity: name.Warning,
		Text: "An anomaly (" + a.Name + ", " + a.ID + ") is not told, as " + why})
}

// withhold leaves untold what no history of whole records proves any more, as it rests both
// on what a key held at first and on what is forgotten of another.
func (w *worker) withhold(a *alerts.Alert) {
	w.history.Withheld()
	if w.once("evidence is forgotten") {
		w.log.Warn().Str("db", w.db).Str("id", a.ID).Str("name", a.Name).Strs("transactions", a.Transactions).
			Msg("an anomaly is not told, as a part of what proves it is forgotten; more of this kind is counted")
	}
}

// say logs a new alert, as a warning if there is room in the rate of notices. Of those that
// the last one left out it says how many.
func (w *worker) say(a alerts.Alert, now time.Time) {
	c := w.teller.config.Load()
	if now.Sub(w.spoken.since).Abs() >= c.RatePer {
		w.spoken.since, w.spoken.lines = now, 0
	}
	level := zerolog.WarnLevel
	if w.spoken.lines++; w.spoken.lines > max(c.RateMax, 1) {
		level = zerolog.DebugLevel
		w.spoken.left++
	}
	e := w.log.WithLevel(level).Str("db", w.db).Str("id", a.ID).Strs("breaks", a.Breaks).Str("name", a.Name)
	switch {
	case level == zerolog.WarnLevel && w.spoken.left > 0:
		e = e.Int64("left_out", w.spoken.left)
		w.spoken.left = 0
	case w.spoken.lines == max(c.RateMax, 1)+1:
		w.log.Warn().Str("db", w.db).Msg("more anomalies are found than are logged (alerts.rate); monitor alerts list " +
			"shows all")
	}
	e.Msg(a.Summary)
}

// lost tells of what may have been missed, and sets aside what contradicts itself. A
// cause is in the log once, and again when there was none of it for causeForgotten.
func (w *worker) lost() []store.DeadLetter {
	for _, l := range w.history.Losses() {
		w.missing(l)
		if !w.once(l.Why.String()) {
			continue
		}
		e := w.log.Warn().Str("db", w.db).Stringer("why", l.Why)
		if l.Session != "" {
			e = e.Str("session", l.Session)
		}
		if l.To > 0 {
			e = e.Int64("from", l.From).Int64("to", l.To)
		}
		if l.ID != "" {
			e = e.Str("id", l.ID)
		}
		if l.Why == stream.LostNumber {
			e.Msg("numbers of a session contradict its clocks: its order is not used for such records; more of them are counted")
			continue
		}
		e.Msg("something is missing in the input, or may be; more of this kind is counted")
	}
	if w.complete && !w.history.Complete() {
		w.complete = false
		w.metrics.setComplete(w.db, false)
		w.teller.event(life.Condition{Kind: troubleCoverage, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("Not every write of %q is known any more: a value that nobody is seen to have written is no "+
				"anomaly from now on, as what is missing may have written it.", w.db)})
		w.log.Warn().Str("db", w.db).Msg("coverage is partial from now on: what nobody is seen to have written, the " +
			"missing may have")
	}
	var letters []store.DeadLetter
	for _, c := range w.history.Contradictions() {
		at := record.Position{Source: w.name, Partition: c.Partition, Offset: c.Offset, Kafka: w.cfg.Source.Kafka != nil}
		e := reject.In("id", reject.DuplicateID, "another record has the id %q and other content", c.Record.ID).At(at)
		value := codec.AppendJSON(nil, &c.Record)
		letters = append(letters, letter(e, value, int64(len(value)), time.Now().UnixNano()))
		w.metrics.rejected.WithLabelValues(reject.DuplicateID.String()).Inc()
		w.teller.setAside(e)
		if w.once("reject " + reject.DuplicateID.String()) {
			w.log.Warn().Str("reason", reject.DuplicateID.String()).Stringer("at", at).Str("detail", w.sayable(e).Detail).
				Msg("record set aside; more of this reason are counted, and listed by monitor dead-letters")
		}
	}
	return letters
}

// once tells whether a cause is to be logged.
func (w *worker) once(cause string) bool { return w.causes.news(cause, time.Now()) }

// letter makes a dead letter.
func letter(e *reject.Error, value []byte, size, now int64) store.DeadLetter {
	detail := e.Detail
	if e.Field != "" {
		detail = "field " + e.Field + ": " + detail
	}
	return store.DeadLetter{Pos: e.Pos, Reason: e.Reason.String(), Detail: detail, Time: now, Value: value,
		Size: int(size)}
}
