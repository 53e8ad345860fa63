package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/kafkasink"
)

// recording are the flags of commands that record what they see and have a monitor in their process: how long they go
// on, and where the records go beside it.
type recording struct {
	out      output
	from     configured
	duration time.Duration
	until    bool
	record   string
	publish  string
}

// flags adds them. key is what follows in the help of --publish.
func (r *recording) flags(cmd *cobra.Command, key string) {
	f := cmd.Flags()
	r.from.flags(cmd)
	durationVar(f, &r.duration, "duration", 0, "how long it runs, such as 60s; 0: until Ctrl-C")
	f.BoolVar(&r.until, "until-violation", false, "end at the first violation")
	f.StringVar(&r.record, "record", "", "`file` that the records are written to as well, for monitor check")
	f.StringVar(&r.publish, "publish", "", "`broker:port/topic` that the records are sent to, instead of being checked "+
		"here"+key+"; or http://host:port of a monitor with source.http")
	r.out.flags(cmd)
}

// sources are those of the configuration.
func (r *recording) sources(cmd *cobra.Command) (config.Sources, error) {
	if r.duration < 0 {
		return config.Sources{}, unusablef("--duration: must not be negative")
	}
	return r.from.sources(cmd)
}

// topic is what --publish says; neither where it is empty or a monitor's address.
func (r *recording) topic() (to kafka.Connection, topic string, err error) {
	if r.publish == "" || strings.Contains(r.publish, "://") {
		return to, "", nil
	}
	broker, topic, ok := strings.Cut(r.publish, "/")
	if !ok || topic == "" || broker == "" {
		return to, "", unusablef("--publish: wants broker:port/topic, as in 127.0.0.1:9092/transactions, or "+
			"http://host:port, not %q", r.publish)
	}
	return kafka.Connection{Brokers: []string{broker}}, topic, nil
}

// output is where what becomes of the records goes; they are sent to topic, or where --publish says, if either is
// there.
func (r *recording) output(cmd *cobra.Command, loaded *config.Loaded, to kafka.Connection,
	topic string) (o embedded.Output, err error) {
	stderr := cmd.ErrOrStderr()
	if r.from.file == "" || r.out.quiet { // what goes well is told on standard output, or not at all
		loaded.Log.Level = "error"
	}
	o = embedded.Output{Record: r.open, Version: buildInfo().Version, Out: cmd.OutOrStdout(), JSON: r.out.json(),
		Quiet: r.out.quiet}
	o.Color = isColored(o.Out)
	if o.Log, o.LogLevel, err = app.NewLogger(loaded.Log, stderr, isTerminal(stderr)); err != nil {
		return o, unusable(err)
	}
	if r.until {
		o.Until = func(alerts.Alert) bool { return true }
	}
	if topic == "" && r.publish == "" {
		return o, nil
	}
	if r.until {
		return o, unusablef("--until-violation: with --publish the records are checked by who gets them; leave one " +
			"of the two out")
	}
	o.Publish, err = r.publishTo(cmd, to, topic)
	return o, err
}

// open makes the file of --record; nil: there is none. It is called when there is something to record. What an earlier
// run has recorded stays.
func (r *recording) open() (*os.File, error) {
	switch r.record {
	case "":
		return nil, nil
	case "-":
		return nil, unusablef("--record: wants a file, not -")
	}
	f, err := os.OpenFile(r.record, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, unusablef("--record: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return nil, errors.Join(unusablef("--record: %s is no new file; name one, or remove what an earlier run has recorded",
			r.record), f.Close())
	}
	return f, nil
}

// publishTo is a monitor that --publish names, or connects to a topic, and tries as long as the command is to run.
func (r *recording) publishTo(cmd *cobra.Command, c kafka.Connection, topic string) (recorder.Sink, error) {
	if topic == "" {
		return recorder.Posts(http.DefaultClient, r.publish, strings.TrimSpace(os.Getenv(config.TokenEnv))), nil
	}
	ctx := cmd.Context()
	if r.duration > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, r.duration)
		defer done()
	}
	producer, err := kafka.OpenProducer(ctx,
		kafka.ProducerOptions{Connection: c, Topic: topic, OnRetry: firstOnly(cmd.ErrOrStderr(), "--publish", r.out.quiet)})
	if err != nil && ctx.Err() != nil {
		return nil, environment(errors.New("--publish: no broker was reached within --duration; nothing was recorded"))
	}
	if err != nil {
		return nil, runFailure(err)
	}
	return &kafkasink.Topic{Producer: producer}, nil
}

// ended prints what came of records that were judged here and whose first anomalies were drawn, and is the exit status.
func (o *output) ended(cmd *cobra.Command, e *embedded.Outcome) error {
	if err := printReports(cmd, *o, e.Reports, true); err != nil {
		return err
	}
	switch {
	case cmd.Context().Err() != nil: // its owner ended it, whatever it found
		return nil
	case e.Found:
		return silent(exitViolated)
	}
	return silent(report.Exit(e.Reports))
}
