package main

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/kafkasink"
)

// sinkFlags are the flags of commands that record, of where the records go beside the monitor in the process.
type sinkFlags struct{ record, publish string }

// flags adds them. key is what follows in the help of --publish.
func (s *sinkFlags) flags(f *pflag.FlagSet, key string) {
	f.StringVar(&s.record, "record", "", "`file` that the records are written to as well, for monitor check")
	f.StringVar(&s.publish, "publish", "", "`broker:port/topic` that the records are sent to, instead of being checked here"+key)
}

// topic is what --publish says.
func (s *sinkFlags) topic() (broker, topic string, err error) {
	broker, topic, ok := strings.Cut(s.publish, "/")
	if !ok || topic == "" || broker == "" {
		return "", "", unusablef("--publish: wants broker:port/topic, as in 127.0.0.1:9092/transactions, not %q", s.publish)
	}
	return broker, topic, nil
}

// open makes the file of --record, or empties it; nil: there is none. It is called when there is something to record.
func (s *sinkFlags) open() (io.Writer, error) {
	if s.record == "" {
		return nil, nil
	}
	f, err := os.Create(s.record)
	if err != nil {
		return nil, unusablef("--record: %w", err)
	}
	return struct{ io.WriteCloser }{f}, nil
}

// publishTo connects to a topic that exists.
func publishTo(cmd *cobra.Command, c kafka.Connection, topic string, quiet bool) (recorder.Sink, error) {
	producer, err := kafka.OpenProducer(cmd.Context(), kafka.ProducerOptions{Connection: c, Topic: topic, OnRetry: firstOnly(cmd.ErrOrStderr(), quiet)})
	if err != nil {
		return nil, runFailure(err)
	}
	return &kafkasink.Topic{Producer: producer}, nil
}

// ended prints what came of records that were judged here and whose first anomalies were drawn, and is the exit status.
func (o *output) ended(cmd *cobra.Command, reports []report.History, anomalies int) error {
	if err := printReports(cmd, *o, reports, true); err != nil {
		return err
	}
	switch {
	case cmd.Context().Err() != nil: // its owner ended it, whatever it found
		return nil
	case anomalies > 0:
		return silent(exitViolated)
	}
	return silent(report.Exit(reports))
}
