package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/canary"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/recorder/kafkasink"
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

	under string // the folder that PostgreSQL's is made in; empty: the system's for such
}

// The scene.
const (
	topic      = "transactions"
	partitions = 4
	sessions   = "8"
	rate       = "400"
	// healthyMax is how long the store keeps its promise at most; with a
	// duration given it is a third of that.
	healthyMax = 6 * time.Second
	// graceMax is how long the alert may take at the end, once the clients have
	// stopped: enough for a machine that is slow and busy.
	graceMax = time.Minute
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
	o.Out = &shared{w: o.Out}
	s := &stage{Options: o, dir: dir}
	if s.broker, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)); err != nil {
		return false, fmt.Errorf("start the embedded broker: %w", err)
	}
	defer s.broker.Close()
	if s.receiver, err = startReceiver(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.receiver.close()) }()
	if s.monitor, err = app.New(app.Options{Config: s.config(), Log: zerolog.Nop(), Version: s.Version}); err != nil {
		return false, err
	}
	return s.play(ctx)
}

// stage holds the parts of one demonstration.
type stage struct {
	Options
	dir      string
	broker   *kfake.Cluster
	receiver *receiver
	monitor  *app.App

	// What has happened so far.
	opened   time.Time // the store, last
	reopened bool
	early    int     // alerts that nothing explains
	alerts   int     // after the store was reopened
	first    *notice // of these
}

// config is what an operator would write for this store, with short waits.
func (s *stage) config() *config.Config {
	c := config.Default()
	c.Source.Kafka = &config.Kafka{Brokers: s.broker.ListenAddrs(), Topic: topic}
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

// play goes through the phases. It ends early where it is asked to or a part fails.
func (s *stage) play(asked context.Context) (planned bool, err error) {
	s.introduce()
	ctx, fail := context.WithCancelCause(asked) // with why, where a part can't work
	defer fail(nil)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := s.monitor.Run(watching); err != nil {
			fail(err)
		}
	}()
	healthy := healthyMax
	if s.Duration > 0 {
		healthy = min(healthy, s.Duration/3)
	}
	s.phase(ctx, fail, "serializable", healthy)
	if ctx.Err() == nil {
		s.reopened = true
		s.say("the same files, reopened with conflict detection OFF. No client sees an error.")
		s.phase(ctx, fail, "no-conflict-detection", max(0, s.Duration-healthy))
	}
	if s.reopened && s.first == nil { // it may be told yet
		grace, end := context.WithTimeout(ctx, graceMax)
		s.attend(grace, fail, true)
		end()
	}
	stop()
	<-watched
	if ctx.Err() != nil && asked.Err() == nil {
		return false, context.Cause(ctx)
	}
	return s.conclude(), nil
}

// phase opens the store and has clients work on it for a while, until ctx ends if that is 0.
func (s *stage) phase(ctx context.Context, fail context.CancelCauseFunc, isolation string, d time.Duration) {
	s.opened = time.Now()
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		if err := s.work(ctx, isolation, d); err != nil {
			fail(err)
		}
	}()
	s.attend(working, fail, false)
}

// work runs the clients on the store.
func (s *stage) work(ctx context.Context, isolation string, d time.Duration) error {
	c, err := configured(map[string]string{
		"canary.targets": "[badger://" + filepath.Join(s.dir, "canary") + "]", "canary.isolation": isolation,
		"canary.sessions": sessions, "canary.rate": rate, "http.listen": "",
	})
	if err != nil {
		return err
	}
	p, err := kafka.OpenProducer(context.WithoutCancel(ctx),
		kafka.ProducerOptions{Connection: kafka.Connection{Brokers: s.broker.ListenAddrs()}, Topic: topic})
	if err != nil {
		return fmt.Errorf("open the recorder: %w", err)
	}
	prefix := ""
	if !s.reopened {
		prefix = "before/" // what an alert shows is of the time after
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: s.Out, NoColor: !s.Color}).Level(zerolog.ErrorLevel)
	_, err = canary.Run(ctx, canary.Options{Config: c, Duration: d, Prefix: &prefix, Seed: s.Seed,
		Output: embedded.Output{Publish: &kafkasink.Topic{Producer: p}, Log: log, Out: s.Out, Quiet: s.Quiet}})
	return err
}

// attend takes in what arrives until ctx ends, or until the first alert of the fault.
func (s *stage) attend(ctx context.Context, fail context.CancelCauseFunc, untilFirst bool) {
	for !untilFirst || s.first == nil {
		select {
		case <-ctx.Done():
			return
		case n := <-s.receiver.notices:
			if err := s.notice(n); err != nil {
				fail(err)
			}
		}
	}
}

// planted is what the reopened store does, among other things.
const planted = "lost-update"

// notice takes in an alert.
func (s *stage) notice(n notice) error {
	switch {
	case !s.reopened:
		s.early++
		s.say("an alert although the store keeps its promise: this should not be")
		return s.show(n)
	case s.first == nil && n.name() == planted:
		s.alerts++
		s.first = &n
		s.say(fmt.Sprintf("ALERT, %.1f s after the store was reopened", n.at.Sub(s.opened).Seconds()))
		return s.show(n)
	}
	s.alerts++
	return nil
}

func (s *stage) introduce() {
	if s.Quiet {
		return
	}
	fmt.Fprintf(s.Out, `A Badger store, which promises serializability. Its clients send a record of
every transaction, as they saw it, to a Kafka topic. The monitor sees only that.

  broker    %s, topic %s (embedded)
  monitor   levels si and ser
  page      http://%s/
  webhook   %s

`, s.broker.ListenAddrs()[0], topic, s.monitor.Addr(), s.receiver.url)
}

// say prints a line with the time since the store was opened.
func (s *stage) say(what string) {
	fmt.Fprintf(s.Out, "%7.1f s  %s\n", time.Since(s.opened).Seconds(), what)
}

// conclude says how it ended.
func (s *stage) conclude() (planned bool) {
	fmt.Fprintln(s.Out)
	switch {
	case s.early > 0:
		fmt.Fprintf(s.Out, "NOT as planned: %d alerts while the store kept its promise.\n", s.early)
	case !s.reopened:
		fmt.Fprintln(s.Out, "Ended before the store was reopened: nothing was shown.")
	case s.first == nil:
		fmt.Fprintln(s.Out, "NOT as planned: the store lost updates and no alert came.")
	default:
		fmt.Fprintf(s.Out, "As planned: no alert before the fault, %s after it.\n", humanize.Comma(int64(s.alerts)))
		return true
	}
	return false
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
	if s.Evidence == "" || !s.reopened {
		return nil
	}
	if err := keep(s.Evidence, a); err != nil {
		return err
	}
	s.say("the evidence is in " + s.Evidence)
	return nil
}

// keep writes evidence to a file, for monitor check.
func keep(file string, a alerts.Alert) error {
	if err := os.WriteFile(file, a.EvidenceText(), 0o644); err != nil {
		return fmt.Errorf("save the evidence: %w", err)
	}
	return nil
}

// shared is a writer that several may use at once.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
