// Package canary keeps a database under watch by using it: sessions that read and write keys of their own, a
// recorder of what each transaction saw, and the monitor, in one process.
//
//	sessions ──▶ target (the database)
//	    │
//	    ▼ what each transaction read and wrote, and how it ended
//	recorder ──▶ a pipe into the monitor, or a file, or a topic
//
// What the sessions do is described in ingest/generate, as for simulated histories; target has a file for
// each database. Items belong to a group, which is used for some hundred transactions, read once more as a whole, and
// removed. Every value that is written is new, so that a read names its writer, and every write is recorded: coverage
// is complete, and nothing but the database can be the cause of an anomaly.
package canary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder"
)

// DB is the name of a canary's history.
const DB = "canary"

// Options of a canary.
type Options struct {
	// Config is valid and has a Canary. Where the records go to the monitor in this process, what it says of
	// coverage, the initial state and unique values is replaced by what is true of them.
	Config *config.Config
	// Duration ends it, and so does the number of transactions; 0: only ctx does.
	Duration     time.Duration
	Transactions int64
	// Faults are the names of canary.faults.commands that are run in turn.
	Faults []string
	// Prefix is what the names of sessions and keys begin with, where the database was never used. Nil: what no other
	// run's begin with, which records leave out where the monitor knows no other run.
	Prefix *string
	Seed   uint64

	embedded.Output
}

// ErrNothing says that it ended before there was anything to judge.
var ErrNothing = errors.New("no transaction of a session was committed, and so nothing is known; give --duration or " +
	"--transactions more")

// monitorBytes is what a monitor takes beside its history.
const monitorBytes = 64 << 20

// transactionBytes is what a transaction of a history takes that is judged as one piece: half as much again as was
// measured, at six keys and at 20. How many operations it has depends on both, as some transactions read all keys.
func transactionBytes(c *config.Canary) int {
	return 600 + 105*c.Operations + 44*min(c.Keys, snapshotMax)
}

// Run works until the duration, ctx or, if asked for, the first violation ends it. The error is a *target.Error where
// an option does not fit the database, else what the monitor's Run returns. What was judged is returned also where not
// all of it could be recorded.
func Run(ctx context.Context, o Options) (*embedded.Outcome, error) {
	c := o.Config.Canary
	settings, err := target.ParseSettings(c.SessionSettings)
	if err != nil {
		return nil, &target.Error{Option: "--session-settings", What: err.Error()}
	}
	work, err := c.Work()
	if err != nil {
		return nil, &target.Error{Option: "--workload", What: err.Error()}
	}
	setup, done := context.WithTimeout(ctx, setupMax)
	defer done()
	db, err := open(setup, c)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if c.Access != config.AccessPinned && len(db.Nodes()) == 1 {
		return nil, &target.Error{Option: "--access", What: c.Access + " is about several nodes, and there is one",
			Do: "give the others with --target or --replica"}
	}
	faults, err := faultsOf(c.Faults, o.Faults)
	if err != nil {
		return nil, err
	}
	if err := settingUp(db, "prepare", db.Prepare(setup)); err != nil {
		return nil, err
	}
	if err := target.Rehearse(setup, db, settings); err != nil {
		return nil, err
	}
	done()
	w := &watch{Options: o, db: db, faults: faults}
	w.load = &Load{db: db, cfg: c, settings: settings, workloads: work, seed: o.Seed, transactions: o.Transactions}
	return w.run(ctx)
}

// setupMax is how long it may take to look at the nodes, and to make or remove what is needed there.
const setupMax = 30 * time.Second

// settingUp says what failed with err, and what it may have waited for.
func settingUp(db target.Database, what string, err error) error {
	if err == nil || errors.As(err, new(*target.Error)) {
		return err
	}
	err = fmt.Errorf("--target: %s %s: %w", what, target.Space, err)
	if r := db.Fault(err).Reason; r == target.LockTimeout || r == target.Slow || errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; see whether somebody has locked it, commits wait for a standby, or the cluster has no quorum",
			err)
	}
	return err
}

// Cleanup removes what canaries have made in the database. The error is as Run's.
func Cleanup(ctx context.Context, c *config.Canary) error {
	ctx, cancel := context.WithTimeout(ctx, setupMax)
	defer cancel()
	db, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer db.Close()
	return settingUp(db, "clean up", db.Cleanup(ctx))
}

// open opens the database of a canary.
func open(ctx context.Context, c *config.Canary) (target.Database, error) {
	addresses := func(as []config.Address) (out []string) {
		for _, a := range as {
			out = append(out, a.WithPassword(c.Password))
		}
		return out
	}
	return target.Open(ctx, target.Options{Targets: addresses(c.Targets), Replicas: addresses(c.Replicas),
		Isolation: c.Isolation, AllowSuperuser: c.AllowSuperuser})
}

// watch is a canary at work.
type watch struct {
	Options
	monitor *embedded.Monitor
	db      target.Database
	load    *Load
	faults  []config.CanaryFault
	stop    context.CancelFunc
	observe *observer
	// exceeded is why it has stopped by itself; empty: it has not.
	exceeded string
}

func (w *watch) run(ctx context.Context) (*embedded.Outcome, error) {
	w.configure()
	working, stop := context.WithCancel(ctx)
	defer stop()
	if w.Duration > 0 {
		working, stop = context.WithTimeout(ctx, w.Duration)
		defer stop()
	}
	w.stop = stop
	w.load.groups = newGroups(w.load.counts.lacks)
	w.load.counts.clock = &w.load.clock
	w.load.counts.sessions, w.load.counts.slowAfter = w.Config.Canary.Sessions, w.Config.Canary.StopIf.P99
	w.observe = &observer{db: w.db, counts: &w.load.counts, lagMax: w.Config.Canary.LagMax}
	var err error
	if w.monitor, err = embedded.New(embedded.Options{Config: w.Config, DB: DB, Wait: true,
		Clock:    w.load.clock.now,
		UntilEnd: w.Duration > 0 || w.Transactions > 0,
		Canary:   w.status, Output: w.Output}, stop); err != nil {
		return nil, err
	}
	w.load.rec, w.load.counts.metrics, w.observe.happen = w.monitor.Recorder, w.monitor.App, w.monitor.Event
	w.load.run, w.load.told = w.monitor.Prefix()
	if w.Prefix != nil {
		w.load.run, w.load.told = *w.Prefix, *w.Prefix
	}
	w.monitor.Run(ctx)
	w.introduce()
	var beside sync.WaitGroup
	beside.Go(func() { w.monitor.Report(working, w.count) })
	beside.Go(func() { w.observe.run(working) })
	beside.Go(func() { w.watchStrain(working) })
	beside.Go(func() { w.load.clock.watch(working) })
	harm, undone := context.WithCancel(working)
	harming := make(chan struct{})
	go func() { defer close(harming); w.harm(harm) }()
	err = w.load.work(working, func() { undone(); <-harming })
	stop()
	beside.Wait()
	if err = errors.Join(err, w.monitor.Close(ctx)); err != nil {
		return nil, err
	}
	w.monitor.Say(w.count()...)
	ended := time.Now()
	if at, ok := working.Deadline(); ok && at.Before(ended) { // what was under way then has been waited for
		ended = at
	}
	lost, unwritten, out := w.monitor.Dropped(), w.monitor.Unwritten(), w.monitor.Outcome(w.db.Describe())
	switch {
	case w.exceeded != "":
		return nil, fmt.Errorf("the canary stopped by itself: %s", w.exceeded)
	case w.Publish != nil && lost > 0:
		return nil, fmt.Errorf("--publish: %s records were lost on their way to the topic, which has %s; the log says why",
			humanize.Comma(lost), humanize.Comma(w.monitor.Recorded()))
	case unwritten > 0:
		return out, fmt.Errorf("--record: %s records could not be written; the log says why", humanize.Comma(unwritten))
	case w.Publish == nil && w.load.committed.Load() == 0 && ctx.Err() == nil:
		return nil, ErrNothing
	}
	if why := w.unchecked(ended, page.StalledAfter); why != "" && ctx.Err() == nil {
		out.Unchecked = "when the canary ended nothing had been committed for more than " + page.StalledAfter.String() +
			", and nothing was checked any more: " + why
	}
	for _, n := range w.db.Nodes() {
		since := w.load.counts.idle(n)
		if n.Replica && !since.IsZero() && ended.Sub(since) >= page.StalledAfter && ctx.Err() == nil {
			out.Unchecked = "when the canary ended nothing had been seen at " + n.Name + " for more than " +
				page.StalledAfter.String() + ": " + w.load.counts.node(n, ended).Why
		}
	}
	if n := w.load.shut.Load(); n > 0 && ctx.Err() == nil {
		out.Unchecked = fmt.Sprintf("%d of %d sessions never had a connection, and what they would have seen was not checked",
			n, w.Config.Canary.Sessions)
	}
	return out, nil
}

// unchecked is why nothing is checked at a time, as nothing has been committed for so long at any node that takes
// writes; empty: something is. A node at which no session has anything to do has no say.
func (w *watch) unchecked(at time.Time, long time.Duration) string {
	var why []string
	for _, n := range w.db.Nodes() {
		switch since := w.load.counts.idle(n); {
		case n.Replica || !w.load.counts.used(n):
		case since.IsZero() || at.Sub(since) < long:
			return ""
		default:
			why = append(why, n.Name+": "+cmp.Or(w.load.counts.node(n, at).Why, "no answer that says why"))
		}
	}
	return strings.Join(why, "; ")
}

// watchStrain stops the canary when it is too much for the database, or the database too little for it.
func (w *watch) watchStrain(ctx context.Context) {
	l := limits{StopIf: w.Config.Canary.StopIf}
	for wait.Sleep(ctx, observeEvery) == nil {
		now := time.Now()
		w.exceeded = l.exceeded(w.load.counts.strain(), now)
		// what is waited for has not failed yet, nor ended
		if why := w.unchecked(now, l.For); why != "" && (l.Errors > 0 || l.P99 > 0) {
			w.exceeded = "nothing has been committed for more than " + l.For.String() + ", as long as canary.stop_if allows: " +
				why
		}
		if w.exceeded == "" {
			continue
		}
		w.monitor.App.Stopped(DB, w.exceeded)
		w.stop()
		return
	}
}

// status is what the page shows.
func (w *watch) status() page.Canary {
	c := w.Config.Canary
	out := page.Canary{DB: DB, Database: w.db.Describe(), Isolation: w.isolation(), Sessions: c.Sessions, Rate: c.Rate,
		LagMax: c.LagMax.Seconds()}
	for _, n := range w.db.Nodes() {
		out.Nodes = append(out.Nodes, w.load.counts.node(n, time.Now()))
	}
	return out
}

// configure puts into the configuration what is true of a canary's records.
func (w *watch) configure() {
	c := *w.Config
	c.Coverage, c.Initial, c.UniqueValues, c.UniqueAttempts = record.CoverageComplete, record.InitialAbsent, true, true
	c.Window.MaxSkew, c.Window.Lateness = 0, max(c.Window.Lateness, 2*recorder.HeldMax)
	if c.Memory > 0 { // a canary that ends is judged as one piece as far as there is room
		c.Window.MaxTransactions = min(c.Window.MaxTransactions,
			max(c.Window.Segment, int(c.Memory-monitorBytes)/transactionBytes(c.Canary)))
	}
	c.Alerts.Stdout = true
	w.Config = &c
}

// isolation is the level that transactions ask for.
func (w *watch) isolation() string {
	c := w.Config.Canary
	return cmp.Or(c.Isolation, target.Standard(string(c.Targets[0])))
}

// introduce says what is watched, and how.
func (w *watch) introduce() {
	c := w.Config.Canary
	var nodes []string
	for _, n := range w.db.Nodes() {
		if n.Replica {
			n.Name += " (replica)"
		}
		nodes = append(nodes, n.Name)
	}
	rate := "as many transactions as it takes"
	if c.Rate > 0 {
		rate = humanize.Comma(int64(c.Rate)) + " transactions a second"
	}
	var more []string
	if most, all := w.Config.Window.MaxTransactions, w.due(); w.Publish == nil && all > most {
		more = append(more, fmt.Sprintf("  of more than %s transactions the end is undecided where no anomaly is found, as "+
			"they are judged in segments; memory says how many are one piece", humanize.Comma(int64(most))))
	}
	w.monitor.Introduce(fmt.Sprintf("%s: %s\n  isolation %s; %d sessions, %s: %s", w.db.Describe(),
		strings.Join(nodes, ", "),
		w.isolation(), c.Sessions, rate, strings.Join(c.Workloads, ", ")), more...)
}

// due is how many transactions there will be at most, where that is known; else 0.
func (w *watch) due() int {
	due := w.Transactions
	if c := w.Config.Canary; due == 0 {
		due = int64(w.Duration.Seconds() * float64(c.Rate))
	}
	return int(due)
}

// count says what has been done.
func (w *watch) count() []string {
	outcomes, reasons, wrong := w.load.counts.total()
	text := fmt.Sprintf("%s committed, %s aborted, %s unknown", humanize.Comma(outcomes[record.Committed]),
		humanize.Comma(outcomes[record.Aborted]), humanize.Comma(outcomes[record.Unknown]))
	var why []string
	for _, r := range target.Reasons() {
		if n := reasons[r]; n > 0 {
			why = append(why, fmt.Sprintf("%s %s", humanize.Comma(n), r))
		}
	}
	if len(why) > 0 {
		text += " (" + strings.Join(why, ", ") + ")"
	}
	if wrong > 0 {
		text += "; " + english.Plural(int(wrong), "wrong total of accounts", "wrong totals of accounts")
	}
	lines := []string{text + "; " + w.monitor.Result()}
	for _, n := range w.db.Nodes() {
		switch node := w.load.counts.node(n, time.Now()); node.State {
		case page.NodeUnreachable:
			lines = append(lines, "can't reach "+n.Name+": "+node.Why)
		case page.NodeStalled:
			lines = append(lines, fmt.Sprintf("nothing is committed at %s for %s: %s", n.Name,
				time.Since(time.Unix(0, node.Since)).Round(time.Second), node.Why))
		}
	}
	return lines
}
