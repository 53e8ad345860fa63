package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/feed"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	brokers    []string
	topic      string
	partitions int
	pace       feed.Pace
	form       feed.Form
	encoding   string
	format     string
	quiet      bool
}

func newReplay() *cobra.Command {
	var r replayFlags
	command := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send a history file into a Kafka topic",
		Long: `Sends the records of a history to a Kafka topic, keyed by session, as a recorder
would have. A topic that does not exist is created. FILE is in any format that check
reads; - is standard input.

What the file's header states is not sent: a topic has no header. Give the same to the
configuration of run.

--encoding protobuf sends the faster form, --events what a recorder sends that does not
wait for the end of a transaction: docs/formats.md describes both. The history is the
same.`,
		Example: "  monitor replay h.jsonl --brokers 127.0.0.1:9092 --topic transactions --rate 5000",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	f := command.Flags()
	f.StringSliceVar(&r.brokers, "brokers", nil, "`host:port` of brokers, comma-separated")
	f.StringVar(&r.topic, "topic", "", "the `topic`")
	f.IntVar(&r.partitions, "partitions", 4, "how many partitions the topic has, if it is created")
	f.Float64Var(&r.pace.PerSecond, "rate", 0, "records per second; 0: as fast as the brokers take them")
	f.BoolVar(&r.pace.Recorded, "pace", false, "at the pace of the records' own times")
	f.StringVar(&r.encoding, "encoding", "json", "`form` of the messages: json or protobuf")
	f.BoolVar(&r.form.Events, "events", false, "a message for each begin, operation and end")
	f.StringVar(&r.format, "format", history.Auto, "`format` of the file, as check has it")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no progress and no words")
	command.MarkFlagsMutuallyExclusive("rate", "pace")
	return command
}

// run sends the file.
func (r *replayFlags) run(cmd *cobra.Command, file string) error {
	switch {
	case len(r.brokers) == 0 || r.topic == "":
		return unusablef("--brokers and --topic are needed")
	case r.partitions < 1:
		return unusablef("--partitions: must be at least 1")
	case r.pace.PerSecond < 0:
		return unusablef("--rate: must not be negative")
	}
	if r.form.Protobuf = r.encoding == "protobuf"; !r.form.Protobuf && r.encoding != "json" {
		return unusablef("--encoding: want json or protobuf, not %q", r.encoding)
	}
	bar := newProgress(cmd.ErrOrStderr(), r.quiet)
	defer bar.finish()
	bar.phase("reading "+file, 0)
	hs, err := history.Open(file, history.Options{Format: r.format})
	if err != nil {
		return unusable(err)
	}
	txns := inOrder(hs)
	ctx := cmd.Context()
	bar.phase("connecting to "+strings.Join(r.brokers, ", "), 0)
	producer, err := kafka.OpenProducer(ctx,
		kafka.ProducerOptions{Connection: kafka.Connection{Brokers: r.brokers}, Topic: r.topic,
			Partitions: r.partitions, OnRetry: firstOnly(cmd.ErrOrStderr(), "--brokers", r.quiet)})
	if err != nil {
		return runFailure(err)
	}
	bar.phase("sending", int64(len(txns)))
	sent := 0
	err = feed.Replay(ctx, producer, txns, r.form, r.pace, func(n int) { sent += n; bar.add(int64(n)) })
	err = errors.Join(err, producer.Close())
	bar.finish()
	if errors.Is(err, context.Canceled) {
		return environment(fmt.Errorf("stopped after %d of %d records", sent, len(txns)))
	}
	if err != nil {
		return runFailure(fmt.Errorf("after %d of %d records: %w", sent, len(txns), err))
	}
	if !r.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %d records sent to %s\n", sent, r.topic)
	}
	return nil
}

// inOrder joins the histories of a file. One is sent as it stands; several are
// merged by end, if all their records have times, as they would have been
// recorded.
func inOrder(hs []history.History) []record.Transaction {
	if len(hs) == 1 {
		return hs[0].Transactions
	}
	var out []record.Transaction
	timed := true
	for i := range hs {
		for _, t := range hs[i].Transactions {
			timed = timed && t.HasTimes
		}
		out = append(out, hs[i].Transactions...)
	}
	if timed {
		slices.SortStableFunc(out, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	}
	return out
}

// firstOnly tells the first failure to connect to what an option gives; the same ones follow.
func firstOnly(w io.Writer, option string, quiet bool) func(error) {
	told := quiet
	return func(err error) {
		if !told {
			told = true
			fmt.Fprintf(w, "monitor: %s: %v; trying again until it works\n", option, err)
		}
	}
}
