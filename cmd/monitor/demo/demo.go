package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Options of a demonstration.
type Options struct {
	// Duration is how long it runs; 0: until the context ends.
	Duration time.Duration
	// Evidence is the file that the first alert's evidence is written to; empty:
	// none is.
	Evidence string
	Out      io.Writer
	Color    bool
	// Quiet leaves only the alert and the outcome.
	Quiet bool
	Seed  uint64
	// Version is what the page shows of the program.
	Version string
}

// The scene.
const (
	accounts = 12
	clients  = 8
	// healthyMax is how long the store keeps its promise at most; with a
	// duration given it is a third of that.
	healthyMax = 6 * time.Second
	// graceMax is how long the alert may take at the end, once the clients have
	// stopped: enough for a machine that is slow and busy.
	graceMax = time.Minute
	// reportEvery is how often a line says that all is well.
	reportEvery = 2 * time.Second
)

// Run shows the monitor at work and tells whether all went as planned: nothing
// was alerted while the store kept its promise, and the fault was alerted once it
// no longer did. An error means that some part could not work at all.
func Run(ctx context.Context, o Options) (planned bool, err error) {
	dir, err := os.MkdirTemp("", "isowatch-demo-")
	if err != nil {
		return false, fmt.Errorf("make a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{Options: o, dir: dir, start: time.Now()}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.set(ctx); err != nil {
		return false, err
	}
	return s.play(ctx)
}

// stage holds the parts of one demonstration.
type stage struct {
	Options
	dir   string
	start time.Time

	bank     *Bank
	load     *Load
	broker   *broker
	recorder *recorder
	receiver *receiver
	monitor  *app.App
	closers  []func() error // in reverse

	// What has happened so far.
	reopened time.Time // zero before
	early    int       // alerts that nothing explains
	alerts   int       // after the store was reopened
	first    *notice   // of these
}

// set builds everything but starts no client.
func (s *stage) set(ctx context.Context) (err error) {
	now := clock()
	if s.bank, err = OpenBank(filepath.Join(s.dir, "bank"), accounts, now); err != nil {
		return err
	}
	s.closers = append(s.closers, s.bank.Close)
	if s.broker, err = startBroker(); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.broker.close(); return nil })
	if s.receiver, err = startReceiver(); err != nil {
		return err
	}
	s.closers = append(s.closers, s.receiver.close)
	if s.recorder, err = newRecorder(ctx, s.broker.addrs()); err != nil {
		return err
	}
	s.load = &Load{Bank: s.bank, Clients: clients, Seed: s.Seed, Record: s.recorder.record}
	s.monitor, err = app.New(app.Options{Config: s.config(), Log: zerolog.Nop(), Version: s.Version})
	return err
}

// config is what an operator would write for this store, with short waits.
func (s *stage) config() *config.Config {
	c := config.Default()
	c.Source.Kafka = &config.Kafka{Brokers: s.broker.addrs(), Topic: topic}
	c.Levels = []verdict.Level{verdict.SI, verdict.SER}
	c.Coverage = record.CoverageComplete
	c.Window.Lateness = 200 * time.Millisecond
	c.Window.MaxTransaction = 5 * time.Second
	c.Window.IdleAfter = time.Second
	c.Solver.Every = 100 * time.Millisecond
	c.Store.Path = filepath.Join(s.dir, "monitor")
	c.Alerts.Webhooks = []config.Webhook{{URL: s.receiver.url, Format: "generic", Secrets: []config.Secret{secret}}}
	c.Alerts.Repeat, c.Alerts.Rate = 0, config.Rate{Max: 1000, Per: time.Second} // every alert by itself
	c.HTTP.Listen = "127.0.0.1:0"
	return c
}

func (s *stage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// play runs the parts to the end of the demonstration.
func (s *stage) play(ctx context.Context) (planned bool, err error) {
	s.introduce()
	failed := make(chan error, 3)
	part := func(g *sync.WaitGroup, f func() error) {
		g.Go(func() {
			if err := f(); err != nil {
				failed <- err
			}
		})
	}
	// In the order in which they stop: the clients, then the recorder once it has
	// sent what they did, then the monitor once it has judged that.
	var recording, monitoring sync.WaitGroup
	unstopped := context.WithoutCancel(ctx)
	monitorCtx, stopMonitor := context.WithCancel(unstopped)
	loadCtx, stopLoad := context.WithCancel(ctx)
	defer stopMonitor()
	defer stopLoad()
	part(&monitoring, func() error { return s.monitor.Run(monitorCtx) })
	part(&recording, func() error { return s.recorder.run(unstopped) })
	part(&recording, func() error {
		defer close(s.recorder.queue)
		return s.load.Run(loadCtx)
	})

	err = s.watch(loadCtx, failed)
	stopLoad()
	recording.Wait()
	if err == nil && !s.reopened.IsZero() && s.first == nil {
		err = s.await(ctx, failed)
	}
	stopMonitor()
	monitoring.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	if err != nil {
		return false, err
	}
	return s.conclude()
}

// watch goes through the phases until the duration or ctx ends.
func (s *stage) watch(ctx context.Context, failed <-chan error) error {
	healthy := healthyMax
	var end <-chan time.Time // of the fault, which has its share of the duration however long reopening takes
	if s.Duration > 0 {
		healthy = min(healthy, s.Duration/3)
	}
	breakIt := time.After(healthy)
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	s.say("the store detects conflicts and refuses one of two transactions that collide")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return nil
		case err := <-failed:
			return err
		case n := <-s.receiver.notices:
			if err := s.notice(n); err != nil {
				return err
			}
		case <-report.C:
			s.count()
		case <-breakIt:
			s.count()
			if err := s.bank.Reopen(false); err != nil {
				return err
			}
			s.reopened = time.Now()
			s.say("the same files, reopened with conflict detection OFF. No client sees an error.")
			if s.Duration > 0 {
				end = time.After(s.Duration - healthy)
			}
		}
	}
}

// await gives the alert of what has happened already a last chance.
func (s *stage) await(ctx context.Context, failed <-chan error) error {
	grace := time.NewTimer(graceMax)
	defer grace.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-grace.C:
		return nil
	case err := <-failed:
		return err
	case n := <-s.receiver.notices:
		return s.notice(n)
	}
}

// planted is what the reopened store does, among other things.
const planted = "lost-update"

// notice takes in an alert.
func (s *stage) notice(n notice) error {
	switch {
	case s.reopened.IsZero():
		s.early++
		s.say("an alert although the store keeps its promise: this should not be")
		return s.show(n)
	case s.first == nil && n.name() == planted:
		s.alerts++
		s.first = &n
		s.say(fmt.Sprintf("ALERT, %.1f s after the store was reopened", n.at.Sub(s.reopened).Seconds()))
		return s.show(n)
	}
	s.alerts++
	return nil
}

func (s *stage) introduce() {
	if s.Quiet {
		return
	}
	fmt.Fprintf(s.Out, `A bank of %d accounts in a Badger store, which promises serializability.
%d clients transfer money and audit accounts; each sends a record of every
transaction, as it saw it, to a Kafka topic. The monitor sees only that.

  broker    %s, topic %s (embedded)
  monitor   levels si and ser
  page      http://%s/
  webhook   %s

`, accounts, clients, s.broker.addrs()[0], topic, s.monitor.Addr(), s.receiver.url)
}

// say prints a line with the time since the start.
func (s *stage) say(what string) {
	fmt.Fprintf(s.Out, "%5.1f s  %s\n", time.Since(s.start).Seconds(), what)
}

// count prints how it goes.
func (s *stage) count() {
	if s.Quiet {
		return
	}
	alerts := "no alert"
	if n := s.early + s.alerts; n > 0 {
		alerts = humanize.Comma(int64(n)) + " alerts"
	}
	s.say(fmt.Sprintf("%s transactions committed, %s refused, %s",
		humanize.Comma(s.load.Committed.Load()), humanize.Comma(s.load.Refused.Load()), alerts))
}

// conclude says how it ended.
func (s *stage) conclude() (planned bool, err error) {
	s.count()
	total, err := s.bank.Total()
	if err != nil {
		return false, err
	}
	fmt.Fprintln(s.Out)
	if !s.Quiet && total != accounts*openingBalance {
		fmt.Fprintf(s.Out, "The clients only moved money around, and yet the bank holds %s instead of %s.\n",
			humanize.Comma(int64(total)), humanize.Comma(accounts*openingBalance))
	}
	switch {
	case s.early > 0:
		fmt.Fprintf(s.Out, "NOT as planned: %d alerts while the store kept its promise.\n", s.early)
	case s.reopened.IsZero():
		fmt.Fprintln(s.Out, "Ended before the store was reopened: nothing was shown.")
	case s.first == nil:
		fmt.Fprintln(s.Out, "NOT as planned: the store lost updates and no alert came.")
	default:
		fmt.Fprintf(s.Out, "As planned: no alert before the fault, %s after it.\n", humanize.Comma(int64(s.alerts)))
		return true, nil
	}
	return false, nil
}

// show draws an alert and, if it is the first real one, keeps its evidence.
func (s *stage) show(n notice) error {
	a, err := alerts.Parse(n.body)
	if err != nil {
		return err
	}
	o := present.Options{Color: s.Color}
	if s.Evidence != "" {
		o.Command = "monitor check --level %s " + s.Evidence
	}
	fmt.Fprintln(s.Out)
	if err := present.Text(s.Out, a, o); err != nil {
		return err
	}
	fmt.Fprintln(s.Out)
	if s.Evidence == "" || s.reopened.IsZero() {
		return nil
	}
	var text bytes.Buffer
	for _, line := range a.Evidence {
		text.Write(append(slices.Clone(line), '\n'))
	}
	if err := os.WriteFile(s.Evidence, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("save the evidence: %w", err)
	}
	s.say("the evidence is in " + s.Evidence)
	return nil
}
