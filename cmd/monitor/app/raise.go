package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/window/store"
)

// alertMax bounds an alert in the store, in bytes. What is set in it later, such as how
// often it was found, and its group, needs less than what is left.
const alertMax = store.LimitBody - 64<<10

// assume is what alerts are judged under that are found with some coverage.
func (a *App) assume(coverage record.Coverage) judge.Assumptions {
	return judge.Assumptions{Initial: a.cfg.Initial, Clock: a.cfg.Clock, Coverage: coverage, MaxSkew: int64(a.cfg.Window.MaxSkew)}
}

// raise makes alerts of what was found, one for all levels that an anomaly breaks.
// One that was raised before is the same alert found once more; one that the run
// before raised at the same entry is not even that.
func (w *worker) raise(ctx context.Context) ([]store.Alert, error) {
	vs := w.history.Found()
	if len(vs) == 0 {
		return nil, nil
	}
	defer w.spend(workAlert, time.Now())
	now := time.Now().UnixNano()
	var out []store.Alert
	for _, v := range vs {
		in := w.assume(v.Coverage).Context(w.db, w.cfg.Levels, w.history.Lookup)
		in.Now, in.OneKey, in.Veil = now, w.history.SingleObjects(), w.veil
		w.metrics.violations.WithLabelValues(w.db, v.Level.String()).Inc()
		same := judge.Same(v.Violation, name.Asked{Levels: in.Levels, Clock: in.Clock}, in.Lookup)
		if w.told.covered(same, v.Level) {
			continue
		}
		a, err := alerts.NewWithin(v.Violation, in, alertMax)
		if v.Torn && errors.Is(err, alerts.ErrUnproved) {
			w.withhold(&a)
			w.totals.untold(v.Level, true)
			continue
		}
		if err != nil {
			w.metrics.unproved.Inc()
			w.totals.untold(v.Level, false)
			w.log.Error().Err(err).Str("db", w.db).Str("id", a.ID).Str("name", a.Name).Strs("transactions", a.Transactions).
				Msg("an anomaly is not told, as its evidence does not prove it; please report this")
			w.event(life.Condition{Kind: troubleUnproved, DB: w.db, Severity: name.Warning, Text: "An anomaly (" + a.Name + ", " + a.ID + ") is not told, as its evidence does not prove it by itself. This is a bug of the monitor: please report it."})
			continue
		}
		if w.untilEnd {
			w.totals.keep(a)
		}
		if !w.told.cover(same, a) {
			continue
		}
		old, known, err := w.keeper.Alert(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		if known {
			if w.history.Next() <= w.replayed+1 {
				continue // found again only because its entries were replayed
			}
			before, err := alerts.Parse(old.Body)
			if err != nil {
				return nil, err
			}
			a = a.After(before)
		} else {
			w.metrics.alerts.WithLabelValues(w.db, a.Name).Inc()
			w.raised(a.ID, &v.Violation, w.history.Lookup, time.Unix(0, now))
			w.say(a, time.Unix(0, now))
		}
		if severity := w.severities.Load().Of(a.Level); severity != "" {
			a.Severity = name.Severity(severity)
		}
		a.Group = life.GroupID(a.DB, a.Level, a.Name, a.Keys)
		w.news = append(w.news, a)
		out = append(out, store.Alert{ID: a.ID, Body: a.JSON(), News: 1})
	}
	return out, nil
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
		w.log.Warn().Str("db", w.db).Msg("more anomalies are found than are logged (alerts.rate); monitor alerts list shows all")
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
		e.Msg("something is missing in the input, or may be; more of this kind is counted")
	}
	if w.complete && !w.history.Complete() {
		w.complete = false
		w.metrics.setComplete(w.db, false)
		w.event(life.Condition{Kind: troubleCoverage, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("Not every write of %q is known any more: a value that nobody is seen to have written is no anomaly from now on, as what is missing may have written it.", w.db)})
		w.log.Warn().Str("db", w.db).Msg("coverage is partial from now on: what nobody is seen to have written, the missing may have")
	}
	var letters []store.DeadLetter
	for _, c := range w.history.Contradictions() {
		at := record.Position{Source: w.name, Partition: c.Partition, Offset: c.Offset, Kafka: w.cfg.Source.Kafka != nil}
		e := reject.In("id", reject.DuplicateID, "another record has the id %q and other content", c.Record.ID).At(at)
		value := codec.AppendJSON(nil, &c.Record)
		letters = append(letters, letter(e, value, int64(len(value)), time.Now().UnixNano()))
		w.metrics.rejected.WithLabelValues(reject.DuplicateID.String()).Inc()
		w.setAside(e)
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
	return store.DeadLetter{Pos: e.Pos, Reason: e.Reason.String(), Detail: detail, Time: now, Value: value, Size: int(size)}
}
