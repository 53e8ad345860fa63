package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/window/stream"
)

// The kinds of operational alerts; a closed set. Their names are operational/ and
// these.
const (
	troubleSilent   = "silent"         // no record has come for alerts.silent_after
	troubleSource   = "source-failing" // the source can't be read
	troubleStore    = "store-full"     // the store can't be written
	troubleLag      = "lag"            // what is judged falls behind what is read
	troubleStuck    = "stuck"          // a history does not work off what waits for it
	troubleOverload = "overloaded"     // more comes for a history than it works off
	troubleSampling = "sampling"       // sessions of a history are left out
	troubleGap      = "gap"            // records are missing in the input
	troubleCoverage = "coverage-lost"  // what nobody is seen to have written proves nothing any more
	troubleLoss     = "loss"           // something is missing in a history, or may be
	troubleNumbers  = "wrong-seq"      // numbers of a session contradict its clocks
	troubleLetters  = "dead-letters"   // records can't be used
	troubleUnproved = "alert-unproved" // a bug of the monitor

	troubleRecords     = "records-lost"       // what is recorded here does not get where it is to go
	troubleUnreachable = "canary-unreachable" // the canary can't reach a node
	troubleStalled     = "canary-stalled"     // nothing that the canary does at a node is committed
	troubleReplica     = "canary-lag"         // a node shows what is too old
	troubleStopped     = "canary-stopped"     // the canary has stopped by itself
)

// unjudged is, in trouble.since, that records come and are not judged; it is told as troubleStuck.
const unjudged = "unjudged"

// How long something has to last until it is trouble.
const (
	sourceFailsFor = 10 * time.Second
	lagGrowsFor    = 30 * time.Second
	stuckFor       = time.Minute
	overloadFor    = 30 * time.Second
	unreachableFor = 5 * time.Second
)

var errStopping = errors.New("the monitor is stopping")

// trouble is what the look at the monitor itself remembers from one to the next.
type trouble struct {
	began      time.Time
	arrived    atomic.Int64 // when records came last, Unix nanoseconds
	limits     atomic.Pointer[config.Alerts]
	configured *life.Config
	// since is from when on something has been the case, by kind and history.
	since map[[2]string]time.Time
	seen  map[string]seen // by history
}

// seen is what a history was like before: consumed and lag are from when since was set, came from when upTo was first
// seen.
type seen struct {
	consumed, came, upTo uint64
	lag                  int64
}

// happened takes in events since the last round.
func (t *teller) happened(now time.Time) {
	t.mu.Lock()
	events := t.events
	t.events = map[string]*life.Condition{}
	t.mu.Unlock()
	for _, key := range sortedKeys(events) {
		t.life.Raise(*events[key], now.UnixNano())
		t.brought[key] = merged(t.brought[key], *events[key])
		t.changed = true
	}
}

// merged is an event that happened, and before it old, if that is not nil.
func merged(old *life.Condition, c life.Condition) *life.Condition {
	if old != nil {
		c.Count += old.Count
	}
	return &c
}

// event says that something has happened that somebody should know of. It does not
// block, and may be called by any goroutine.
func (t *teller) event(c life.Condition) {
	if t == nil {
		return
	}
	c.Event, c.Count = true, max(c.Count, 1)
	key := c.Kind + "\x00" + c.DB + "\x00" + c.Of
	t.mu.Lock()
	t.events[key] = merged(t.events[key], c)
	t.mu.Unlock()
	t.poke()
}

// arrived says when records came last, in Unix nanoseconds.
func (t *teller) arrived(at int64) {
	if t != nil {
		t.trouble.arrived.Store(at)
	}
}

// severity is how bad the configuration says that breaking a level is; empty if it says nothing of it.
func (t *teller) severity(level string) string {
	return t.trouble.limits.Load().Severity.Of(level)
}

// watches says that a history is to be looked at.
func (t *teller) watches(w *worker) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers = append(t.workers, w)
}

// watched are the histories that are looked at.
func (t *teller) watched() []*worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.workers
}

// look finds out what is the case now, and what is not any more.
func (t *teller) look(now time.Time) {
	if t.trouble.since == nil {
		t.trouble.since, t.trouble.seen = map[[2]string]time.Time{}, map[string]seen{}
	}
	current := map[string]life.Condition{}
	is := func(c life.Condition) { current[c.Kind+"\x00"+c.DB+"\x00"+c.Of] = c }
	limits := t.trouble.limits.Load()
	arrived := max(t.trouble.arrived.Load(), t.trouble.began.UnixNano())
	silent := limits.SilentAfter > 0 && now.UnixNano()-arrived >= int64(limits.SilentAfter)
	if silent {
		is(life.Condition{Kind: troubleSilent, Severity: name.Warning,
			Text: fmt.Sprintf("No record has come from %s for more than %s: the clients are silent, or what records them is "+
				"not running. Nothing is judged until records come again.", t.name, limits.SilentAfter)})
	}
	why, fails := t.ready.waiting(whoSource)
	if t.lasts(now, fails, troubleSource, "", sourceFailsFor) {
		is(life.Condition{Kind: troubleSource, Severity: name.Error,
			Text: fmt.Sprintf("%s can't be read; it is tried again until it works: %s", t.name, why)})
	}
	if why, ok := t.ready.waiting(whoStore); ok {
		is(life.Condition{Kind: troubleStore, Severity: name.Critical,
			Text: "The store is full: the monitor goes on in memory, and a crash would set it back. Make room: " + why})
	}
	for _, w := range t.watched() {
		t.lookAt(w, now, limits, is)
	}
	if t.canary != nil {
		c := t.canary()
		lookAtCanary(&c, now, is)
	}
	for _, c := range t.life.Conditions() {
		if _, still := current[c.Kind+"\x00"+c.DB+"\x00"+c.Of]; !still {
			t.life.Over(c, now.UnixNano())
			t.changed = true
		}
	}
	for _, key := range sortedKeys(current) {
		t.changed = t.changed || !t.life.Is(current[key])
		t.life.Raise(current[key], now.UnixNano())
	}
}

// unreachable tells whether a canary has not reached a node for long enough to say so.
func unreachable(n *page.CanaryNode, now int64) bool {
	return n.State == page.NodeUnreachable && now-n.Since >= int64(unreachableFor)
}

// lookAtCanary finds out what is the case with the nodes that a canary works on.
func lookAtCanary(c *page.Canary, now time.Time, is func(life.Condition)) {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case unreachable(n, now.UnixNano()):
			is(life.Condition{Kind: troubleUnreachable, DB: c.DB, Of: n.Name, Severity: name.Error,
				Text: fmt.Sprintf("The canary has not reached node %.100q for more than %s, and tries until it does; what "+
					"clients see there is not checked meanwhile: %s", n.Name, unreachableFor, cutText(n.Why))})
		case n.State == page.NodeStalled:
			is(life.Condition{Kind: troubleStalled, DB: c.DB, Of: n.Name, Severity: name.Error,
				Text: fmt.Sprintf("The canary has committed nothing at node %.100q for more than %s, though its sessions try; "+
					"what clients see there is not checked meanwhile. The last error: %s", n.Name, page.StalledAfter, cutText(n.Why))})
		}
		if n.State != page.NodeUnreachable && c.Lagging(n) {
			is(life.Condition{Kind: troubleReplica, DB: c.DB, Of: n.Name, Severity: name.Warning,
				Text: fmt.Sprintf("Node %.100q is more than %v s behind: the newest transaction that it shows is older than "+
					"canary.lag_max.", n.Name, c.LagMax)})
		}
	}
}

// Stopped says that what works on a database in this process stops by itself, and why.
func (a *App) Stopped(db, why string) {
	a.teller.event(life.Condition{Kind: troubleStopped, DB: db, Severity: name.Error,
		Text: "The canary has stopped by itself: " + why + ". Nothing is checked until it is started again."})
}

// RecordsLost says that records made in this process could not be written to where they go beside the monitor.
func (a *App) RecordsLost(db string, err error) {
	a.teller.event(life.Condition{Kind: troubleRecords, DB: db, Severity: name.Error,
		Text: "Records are lost on their way to --record or --publish: " + cutText(err.Error()) +
			". A file gets no more of them; what it has lacks nothing up to there."})
}

// Worked says that a transaction of a canary has ended, and how.
func (a *App) Worked(node, outcome string, took time.Duration) {
	a.metrics.worked.WithLabelValues(node, outcome).Inc()
	a.metrics.workTook.WithLabelValues(node).Observe(took.Seconds())
}

// Failed says why a transaction of a canary, or its attempt to connect, failed.
func (a *App) Failed(node, why string) { a.metrics.workFailed.WithLabelValues(node, why).Inc() }

// lookAt finds out what is the case with a history.
func (t *teller) lookAt(w *worker, now time.Time, limits *config.Alerts, is func(life.Condition)) {
	waits, _ := w.queue.length()
	left, _ := w.queue.backlog()
	waits += left
	consumed, lag := w.consumed.Load(), w.lag.Load()
	tr := &t.trouble
	last := tr.seen[w.db]
	if last.consumed != consumed || waits == 0 {
		delete(tr.since, [2]string{troubleStuck, w.db})
	}
	last.consumed = consumed
	if t.lasts(now, waits > 0, troubleStuck, w.db, stuckFor) {
		is(life.Condition{Kind: troubleStuck, DB: w.db, Severity: name.Error,
			Text: fmt.Sprintf("History %q has not worked off anything for more than %s, though records wait for it. See the "+
				"time that isowatch_engine_seconds says is spent, and solver.conflicts.", w.db, stuckFor)})
	}
	came, upTo := w.came.Load(), w.upTo.Load()
	if _, ok := tr.seen[w.db]; !ok || last.upTo != upTo {
		last.came, last.upTo = came, upTo
		delete(tr.since, [2]string{unjudged, w.db})
	}
	if t.lasts(now, came > last.came, unjudged, w.db, stuckFor) {
		is(life.Condition{Kind: troubleStuck, DB: w.db, Severity: name.Error,
			Text: fmt.Sprintf("Records of %q come, and none has been judged for more than %s: something holds all of them "+
				"back, as a partition that can't be read does for window.idle_after. See isowatch_watermark_lag_seconds, and the "+
				"partitions' isowatch_source_lag_records.", w.db, stuckFor)})
	}
	over := lag - int64(t.cfg.Window.Lateness) - int64(t.cfg.Window.IdleAfter)
	behind := limits.LagMax > 0 && over > int64(limits.LagMax)
	key := [2]string{troubleLag, w.db}
	if _, since := tr.since[key]; !since {
		last.lag = lag
	}
	tr.seen[w.db] = last
	if t.lasts(now, behind && lag >= last.lag, troubleLag, w.db, lagGrowsFor) {
		is(life.Condition{Kind: troubleLag, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("History %q is judged more than %s behind its newest record, and does not catch up: alerts come "+
				"late. A session or partition may hold it back (window.idle_after), or the load is too much.", w.db,
				limits.LagMax)})
	}
	if t.lasts(now, w.blocked.Load() || left > 0, troubleOverload, w.db, overloadFor) {
		is(life.Condition{Kind: troubleOverload, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("Records of %q come faster than they can be judged: they wait, and alerts come later and later. "+
				"Give the monitor more processors, check fewer levels, or set overload to sample-sessions.", w.db)})
	}
	if w.leavesOut.Load() {
		is(life.Condition{Kind: troubleSampling, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("Records of %q come faster than they can be judged: whole sessions are left out until it has "+
				"caught up, and anomalies among these are missed.", w.db)})
	}
}

// lasts tells whether something has been the case for so long.
func (t *teller) lasts(now time.Time, is bool, kind, db string, atLeast time.Duration) bool {
	key := [2]string{kind, db}
	if !is {
		delete(t.trouble.since, key)
		return false
	}
	since, ok := t.trouble.since[key]
	if !ok {
		t.trouble.since[key] = now
		since = now
	}
	return now.Sub(since) >= atLeast
}

// waiting tells whether somebody waits, and for what.
func (r *readiness) waiting(who string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what, ok := r.waits[who]
	return what, ok
}

// missing tells of what may have been missed. Holes in a partition's offsets are told
// by the ingest.
func (w *worker) missing(l stream.Loss) {
	if l.Why == stream.LostNumber {
		w.teller.event(life.Condition{Kind: troubleNumbers, DB: w.db, Severity: name.Warning,
			Text: fmt.Sprintf("Numbers (seq) of sessions of %q run against the clocks: record %.100q came after one of its "+
				"session with a greater number, or the same, and began after that had ended. That is an error of what records "+
				"them, or a session's name is used twice. The order of such records in their sessions is not used, and anomalies "+
				"that only it shows are missed.", w.db, l.ID)})
		return
	}
	where := ""
	if l.Session != "" {
		where = fmt.Sprintf(", session %.100q", l.Session)
	}
	switch {
	case l.To > l.From:
		where += fmt.Sprintf(", seq %d to %d", l.From, l.To)
	case l.To > 0:
		where += fmt.Sprintf(", seq %d", l.To)
	}
	if l.ID != "" {
		where += fmt.Sprintf(", record %.100q", l.ID)
	}
	w.teller.event(life.Condition{Kind: troubleLoss, DB: w.db, Of: l.Why.String(), Severity: name.Info,
		Text: fmt.Sprintf("Something is missing in the input of %q, or may be: %s%s. Anomalies among it are missed; "+
			"nothing is held against what it may have written.", w.db, reason(l.Why.String(), 0).Text, where)})
}

// setAside tells that a record can't be used.
func (t *teller) setAside(e *reject.Error) {
	t.event(life.Condition{Kind: troubleLetters, Of: e.Reason.String(), Severity: name.Warning,
		Text: fmt.Sprintf("Records can't be used and are set aside: %s. The last: %s. See monitor dead-letters.", e.Reason,
			cutText(t.sayable(e).Error()))})
}

// cutText keeps a message short that may hold parts of a record.
func cutText(s string) string { return short(s, 300) }

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
