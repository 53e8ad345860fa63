package app

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/window/store"
)

// teller decides what receivers are told. One goroutine brings what is pending to
// life.Life, with the trouble that there is, and makes durable in one step what was
// decided: the state, the notices, and what is pending no more. A step is not cut short by
// a stop; one that fails is undone, so that nothing counts as told of which there is no
// notice.
type teller struct {
	*setting
	keeper *keeper
	// deliver has what was stored delivered, and links are where people read more of it.
	deliver func()
	links   func(n life.News, alert string) map[string]string

	life   *life.Life
	wake   chan struct{}
	asks   chan request
	gone   chan struct{} // closed when run has returned
	shown  atomic.Pointer[life.Snapshot]
	config atomic.Pointer[life.Config]

	// What follows belongs to the goroutine.
	changed bool // life is not what is stored
	// undone: something was decided that could not be stored. Nothing else is, before life
	// is again what the store has.
	undone bool
	// brought are the events that life has and the store does not.
	brought map[string]*life.Condition
	checked time.Time // when trouble was looked for
	expired time.Time // when old alerts were dropped
	trouble trouble
	// progress is what was said last of each history; saved is when that was last stored,
	// and moved: there is more now.
	progress map[*worker]*life.Progress
	saved    time.Time
	moved    bool

	mu      sync.Mutex
	events  map[string]*life.Condition // since the last round
	workers []*worker
}

// request is something to be done by the goroutine, which answers when it is durable.
type request struct {
	do   func(l *life.Life, now int64) error
	done chan error
}

// How often things are done.
const (
	checkTroubleEvery = time.Second
	expireEvery       = time.Minute
	progressEvery     = 10 * time.Second // when it is stored at the latest
	// roundEvery is the least time between two rounds; roundWaits while nothing can
	// be told anyway, as the rate is used up.
	roundEvery = 20 * time.Millisecond
	roundWaits = 500 * time.Millisecond
	tellAgain  = time.Second // after a failure of the store
)

// The limits of a round's step, which is one commit.
const (
	stepAlerts = 256
	stepBytes  = 4 << 20
	// stepNotices is how many bytes of notices begin another step: one more has to fit.
	stepNotices = store.LimitNotices / 3
)

func newTeller(s *setting, k *keeper, deliver func(), links func(life.News, string) map[string]string) *teller {
	t := &teller{setting: s, keeper: k, deliver: deliver, links: links, wake: make(chan struct{}, 1),
		asks: make(chan request), gone: make(chan struct{}), events: map[string]*life.Condition{},
		brought: map[string]*life.Condition{}}
	t.trouble.began = time.Now()
	t.configure(s.cfg)
	return t
}

// tellerKeys are what of a configuration reconfigure applies.
var tellerKeys = []string{"alerts.repeat", "alerts.resolve_after", "alerts.resolve_transactions", "alerts.rate",
	"alerts.severity", "alerts.silences",
	"alerts.silent_after", "alerts.lag_max", "alerts.retain", "alerts.max_alerts"}

// reconfigure puts another configuration into effect.
func (t *teller) reconfigure(next *config.Config) error {
	t.configure(next)
	t.poke()
	return nil
}

// configure says when something is news.
func (t *teller) configure(c *config.Config) {
	cfg := life.Config{Repeat: c.Alerts.Repeat, ResolveAfter: c.Alerts.ResolveAfter,
		ResolveTransactions: int64(c.Alerts.ResolveTransactions), RateMax: c.Alerts.Rate.Max, RatePer: c.Alerts.Rate.Per}
	var idle []config.Error
	cfg.Silences, idle = silences(c, time.Now())
	for i := range idle {
		t.log.Warn().Err(&idle[i]).Msg("a silence of the configuration can't match anything")
	}
	t.config.Store(&cfg)
	limits := c.Alerts
	t.trouble.limits.Store(&limits)
}

// silences are those of a configuration, and why which of them can't match anything.
func silences(c *config.Config, now time.Time) (all []life.Silence, idle []config.Error) {
	for i, s := range c.Alerts.Silences {
		x := life.Silence{DB: s.DB, Level: s.Level, Name: s.Name, Key: s.Key, Comment: s.Comment}
		err := x.Known(c.Levels...)
		if !s.Until.IsZero() {
			x.Until = s.Until.UnixNano()
			if !now.Before(s.Until) {
				err = fmt.Errorf("it ended at %s", s.Until.Format(time.RFC3339))
			}
		}
		if err != nil {
			idle = append(idle, config.Error{Path: fmt.Sprintf("alerts.silences[%d]", i), Msg: err.Error()})
		}
		all = append(all, x)
	}
	return all, idle
}

// restore takes the state that the store has. One that is damaged is begun anew:
// what is pending is told again at worst.
func (t *teller) restore(ctx context.Context) error {
	b, ok, err := t.keeper.Life(ctx)
	if err != nil {
		return fmt.Errorf("store %s: %w", t.cfg.Store.Path, err)
	}
	t.life = life.New(*t.config.Load())
	if ok {
		l, err := life.Restore(b, *t.config.Load())
		if err != nil {
			t.log.Error().Err(err).Msg("what was told of alerts is forgotten: groups that go on are told of again")
		} else {
			t.life = l
		}
	}
	t.changed, t.moved, t.progress = false, false, map[*worker]*life.Progress{}
	t.show()
	return nil
}

// redo makes life what the store has, if something was decided that could not be stored:
// what was pending is again, and events happen again.
func (t *teller) redo(ctx context.Context) error {
	if !t.undone {
		return nil
	}
	if err := t.restore(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	for key, old := range t.brought {
		if again := t.events[key]; again != nil {
			old = merged(old, *again)
		}
		t.events[key] = old
	}
	t.mu.Unlock()
	clear(t.brought)
	t.undone = false
	return nil
}

// commit makes durable what was decided, as one.
func (t *teller) commit(ctx context.Context, notices []store.Notice, handled []store.Handled) error {
	if err := t.keeper.tell(ctx, t.life.Append(nil), notices, handled); err != nil {
		return fmt.Errorf("store %s: %w", t.cfg.Store.Path, err)
	}
	t.changed, t.moved, t.saved = false, false, time.Now()
	clear(t.brought)
	t.show()
	return nil
}

// poke says that there may be something to do.
func (t *teller) poke() {
	if t == nil {
		return
	}
	wait.Signal(t.wake)
}

// run works until ctx ends, and finishes the step that it is at.
func (t *teller) run(ctx context.Context) {
	defer close(t.gone)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var failed bool
	for {
		var told bool
		var err error
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
			told, err = t.round(ctx)
		case <-timer.C:
			told, err = t.round(ctx)
		case a := <-t.asks:
			if err = t.answer(context.WithoutCancel(ctx), a); err == nil {
				told, err = t.round(ctx)
			}
		}
		if err != nil {
			if !failed {
				t.log.Error().Err(err).Msg("what is to be told of alerts can't be stored; it is tried again")
			}
			failed = true
			_ = wait.Sleep(ctx, tellAgain)
		} else {
			failed = false
			pause := roundEvery
			if !told && t.life.Withheld() > 0 {
				pause = roundWaits
			}
			_ = wait.Sleep(ctx, pause)
		}
		due := time.Duration(t.life.Due() - time.Now().UnixNano())
		timer.Reset(max(roundEvery, min(due, checkTroubleEvery)))
	}
}

// answer does what was asked for, and says whether it is durable. The error is the store's.
func (t *teller) answer(ctx context.Context, a request) error {
	if err := t.redo(ctx); err != nil {
		a.done <- err
		return err
	}
	answer := a.do(t.life, time.Now().UnixNano())
	var failed error
	if answer == nil {
		failed = t.commit(ctx, nil, nil)
		t.undone, answer = failed != nil, failed
	}
	a.done <- answer
	return failed
}

// round brings everything that is pending to life, and tells whether there was a
// notice. If ctx ends it does so too, but behind a step: what is decided is stored.
func (t *teller) round(ctx context.Context) (told bool, err error) {
	whole := context.WithoutCancel(ctx)
	if err := t.redo(whole); err != nil {
		return false, err
	}
	now := time.Now()
	if cfg := t.config.Load(); cfg != t.trouble.configured {
		t.trouble.configured = cfg
		t.life.Configure(*cfg, now.UnixNano())
	}
	t.judged(now)
	t.changed = t.changed || t.moved && now.Sub(t.saved) >= progressEvery
	t.life.Tick(now.UnixNano())
	t.happened(now)
	if now.Sub(t.checked) >= checkTroubleEvery {
		t.checked = now
		t.look(now)
	}
	for more := true; more; {
		if ctx.Err() != nil || !t.keeper.tells() {
			return told, nil
		}
		var n int
		if more, n, err = t.step(whole, false); err != nil {
			return told, err
		}
		told = told || n > 0
	}
	if now.Sub(t.expired) >= expireEvery {
		t.expired = now
		t.expire(ctx, now)
	}
	return told, nil
}

// judged brings how far the histories are judged.
func (t *teller) judged(now time.Time) {
	for _, w := range t.watched() {
		if p := w.progress.Load(); p != nil && p != t.progress[w] {
			t.progress[w] = p
			if t.life.Judged(*p, now.UnixNano()) {
				t.moved = true
			}
		}
	}
}

// step makes one commit. It tells whether there is more to be brought, and how many
// notices there were. With flush, everything is told, whatever the rate. After an error
// nothing of it has happened.
func (t *teller) step(ctx context.Context, flush bool) (more bool, notices int, err error) {
	defer func() { t.undone = t.undone || err != nil }()
	news, err := t.pending(ctx)
	if err != nil {
		return false, 0, err
	}
	d := draft{teller: t, ctx: ctx}
	if err := d.drain(len(news) > 0); err != nil {
		return false, 0, err
	}
	for i, a := range news {
		if t.life.Full() && flush {
			if err := d.add(t.life.Flush(time.Now().UnixNano())); err != nil {
				return false, 0, err
			}
		}
		if t.life.Full() || d.full() {
			break
		}
		t.life.Anomaly(readable(a), a.News, time.Now().UnixNano())
		d.handled = append(d.handled, store.Handled{ID: a.ID, News: a.News})
		if err := d.drain(i < len(news)-1); err != nil {
			return false, 0, err
		}
	}
	if len(d.handled) == len(news) && flush && !d.full() {
		if err := d.add(t.life.Flush(time.Now().UnixNano())); err != nil {
			return false, 0, err
		}
	}
	if len(d.handled) == 0 && len(d.notices) == 0 && !t.changed {
		t.show()
		return false, 0, nil
	}
	if err := t.commit(ctx, d.notices, d.handled); err != nil {
		return false, 0, err
	}
	d.told()
	return len(d.handled) > 0 || d.full(), len(d.notices), nil
}

// draft is what a step has decided and not stored yet.
type draft struct {
	*teller
	ctx     context.Context
	notices []store.Notice
	news    []life.News // what the notices are of
	handled []store.Handled
	bytes   int // of notices
}

// full: what is decided next is for another step.
func (d *draft) full() bool { return d.bytes >= stepNotices }

// add makes a notice of news, if there is any.
func (d *draft) add(n life.News, ok bool) error {
	if !ok {
		return nil
	}
	body, err := d.body(d.ctx, n)
	if err != nil {
		return err
	}
	d.notices, d.news = append(d.notices, store.Notice{ID: n.ID, Body: body}), append(d.news, n)
	d.bytes += store.Inlined(len(body))
	return nil
}

// drain makes the notices that there are to be made now. If there is more to be brought,
// nothing is told to be over: it may have been found again.
func (d *draft) drain(more bool) error {
	next := d.life.Next
	if more {
		next = d.life.NextNews
	}
	for !d.full() {
		n, ok := next(time.Now().UnixNano())
		if !ok {
			return nil
		}
		if err := d.add(n, ok); err != nil {
			return err
		}
	}
	return nil
}

// told has what was stored counted and delivered.
func (d *draft) told() {
	for _, n := range d.news {
		d.metrics.notices.WithLabelValues(string(n.Kind)).Inc()
		d.metrics.noticed(n.ID, n.IDs)
	}
	if len(d.notices) > 0 {
		d.deliver()
	}
}

// pending are the alerts to be brought next.
func (t *teller) pending(ctx context.Context) ([]store.Alert, error) {
	var out []store.Alert
	bytes := 0
	err := t.keeper.Pending(ctx, func(a store.Alert) bool {
		out = append(out, a)
		bytes += len(a.Body)
		return len(out) < stepAlerts && bytes < stepBytes
	})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", t.cfg.Store.Path, err)
	}
	return out, nil
}

// readable is a stored alert; of one that can't be read, which only another version can have written, that it is there.
func readable(a store.Alert) alerts.Alert {
	x, err := alerts.Parse(a.Body)
	if err != nil {
		x = alerts.Alert{Name: "unreadable", Severity: name.Error, Count: a.News}
	}
	x.ID = a.ID
	return x
}

// body is what receivers get: the alert that stands for a group, or the first of those that are told now if it is
// not among them; or something of that shape.
func (t *teller) body(ctx context.Context, n life.News) ([]byte, error) {
	a := alerts.Alert{Version: alerts.Version, ID: n.Of.ID, DB: n.Of.DB, Level: n.Of.Level, Name: n.Of.Name,
		FirstSeen: n.Of.Since, LastSeen: n.Of.Last, Count: int(min(n.Of.Count, math.MaxInt32)),
		Summary: n.Of.Text, Explanation: n.Of.Text, Keys: n.Of.Keys}
	if id := n.Of.Representative; id != "" {
		if len(n.IDs) > 0 && !slices.Contains(n.IDs, id) { // that was told of before
			id = n.IDs[0]
		}
		stored, ok, err := t.keeper.Alert(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", t.cfg.Store.Path, err)
		}
		if x, err := alerts.Parse(stored.Body); ok && err == nil {
			a = x.Near(t.keeper.World().Events)
			if life.GroupOf(a) == n.Of.ID {
				a = n.Of.Asked(a)
			}
			if c := a.Circumstance(); c != "" {
				a.Summary += " " + c
			}
		} else {
			a.ID, a.Summary = id, "the alert itself is not in the store any more"
		}
	}
	if a.Summary == "" {
		a.Summary = "what was told of in summaries is over"
	}
	if a.Explanation == "" {
		a.Explanation = a.Summary
	}
	a.Group, a.State, a.ResolvedAt, a.Links = n.Group, n.State, n.Of.ResolvedAt, t.links(n, a.ID)
	if n.Of.Severity != "" {
		a.Severity = n.Of.Severity
	} else if a.Severity == "" {
		a.Severity = name.Info
	}
	return life.Notice{Alert: a, Notification: n.Notification}.JSON(), nil
}

// finish tells all that is left, whatever the rate, and ends run. It is called when
// no worker raises anything any more.
func (t *teller) finish(ctx context.Context, stop context.CancelFunc) error {
	stop()
	<-t.gone
	if err := t.redo(ctx); err != nil {
		return err
	}
	t.happened(time.Now())
	t.judged(time.Now())
	t.life.Tick(time.Now().UnixNano())
	t.changed = t.changed || t.moved
	for t.keeper.tells() {
		more, n, err := t.step(ctx, true)
		if err != nil {
			return err
		}
		if !more && n == 0 {
			break
		}
	}
	return nil
}

// show tells readers and metrics how things are.
func (t *teller) show() {
	s := t.life.Snapshot()
	t.shown.Store(s)
	open := 0
	for _, g := range s.Groups {
		if g.State != alerts.Resolved {
			open++
		}
	}
	t.metrics.groups.Set(float64(open))
	t.metrics.withheld.Set(float64(s.Withheld))
}

// Snapshot is what there is, as was decided last.
func (t *teller) Snapshot() *life.Snapshot { return t.shown.Load() }

// Silence adds a silence; errors are life.ErrSilence, the store's, and ctx's.
func (t *teller) Silence(ctx context.Context, s life.Silence) (made life.Silence, err error) {
	err = t.ask(ctx, func(l *life.Life, now int64) (err error) {
		made, err = l.Silence(s, now)
		return err
	})
	return made, err
}

// Expire ends one; errors are life.ErrNoSilence, life.ErrConfigured, and as Silence has.
func (t *teller) Expire(ctx context.Context, id string) error {
	return t.ask(ctx, func(l *life.Life, now int64) error { return l.Expire(id, now) })
}

func (t *teller) ask(ctx context.Context, do func(*life.Life, int64) error) error {
	a := request{do: do, done: make(chan error, 1)}
	select {
	case t.asks <- a:
	case <-t.gone:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	// Whoever took it answers before it is gone.
	return <-a.done
}

// expire drops old alerts from the store: not those that a receiver is still to be told of, and of a group that is not
// over not the one that stands for it, nor those so new that they may wait until it is told of again.
func (t *teller) expire(ctx context.Context, now time.Time) {
	limits := t.trouble.limits.Load()
	e := store.Expiry{Before: math.MinInt64, Max: limits.MaxAlerts}
	if limits.Retain > 0 {
		e.Before = now.Add(-limits.Retain).UnixNano()
	}
	untold := now.Add(-limits.Repeat - 2*limits.Rate.Per).UnixNano()
	var waiting map[string]bool
	snapshot := t.Snapshot()
	e.Keep = func(a store.Alert) bool {
		if waiting == nil {
			waiting = t.undelivered(ctx)
		}
		if waiting[a.ID] {
			return true
		}
		x, err := alerts.Parse(a.Body)
		if err != nil {
			return false
		}
		g, ok := snapshot.Of(x)
		return ok && g.State != alerts.Resolved && (g.Representative == a.ID || x.LastSeen >= untold)
	}
	n, err := t.keeper.Expire(ctx, e)
	if n > 0 {
		t.metrics.expired.Add(float64(n))
		t.log.Info().Int("alerts", n).Msg("old alerts were dropped from the store")
	}
	if err != nil && ctx.Err() == nil {
		t.log.Error().Err(err).Msg("old alerts can't be dropped; it is tried again")
	}
}

// undelivered are the alerts that a notice is about which somebody has not taken.
func (t *teller) undelivered(ctx context.Context) map[string]bool {
	out := map[string]bool{}
	for _, r := range t.keeper.receivers {
		err := t.keeper.Undelivered(ctx, r, func(n store.Notice) bool {
			if x, err := life.Parse(n.Body); err == nil {
				out[x.ID] = true
				for _, id := range x.Notification.IDs {
					out[id] = true
				}
			}
			return true
		})
		if err != nil && ctx.Err() == nil {
			t.log.Error().Err(err).Str("receiver", r).Msg("its outbox can't be read")
		}
	}
	return out
}
