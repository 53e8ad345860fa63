package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/cmd/monitor/wal"
	"github.com/isowatch/isowatch/recorder"
)

// walFlags are the flags of wal.
type walFlags struct {
	recording
	source string
}

func newWAL() *cobra.Command {
	var w walFlags
	cmd := &cobra.Command{
		Use:   "wal",
		Short: "Tell where in PostgreSQL's log transactions committed",
		Long: `Reads PostgreSQL's log by logical decoding, and sends where each transaction committed to where the
records are, or writes it, a line each. Of records that name their transaction (pg_current_xact_id()) who wrote a row
first is known then: docs/capture.md.

PostgreSQL needs wal_level = logical and a publication isowatch of the tables; the role needs REPLICATION. Nothing stays
in it when this ends: the slot is a temporary one.

Exit status: 0 after Ctrl-C. 2 an option or address that can't be used. 4 the environment failed.`,
		Example: `  monitor wal --source postgres://monitor@db-1/shop --publish 127.0.0.1:9092/transactions
  monitor wal --source postgres://monitor@db-1/shop >> records.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&w.source, "source", "", "PostgreSQL's `address`, as libpq has it; a password may be in PGPASSWORD")
	f.StringVar(&w.publish, "publish", "", "`broker:port/topic`, or http://host:port of a monitor with source.http; empty: "+
		"standard output")
	return cmd
}

func (w *walFlags) run(cmd *cobra.Command) error {
	if w.source == "" {
		return unusablef("--source: which PostgreSQL? Give its address, such as postgres://monitor@db-1:5432/shop")
	}
	node, upstream, err := target.PostgresAt("--source", w.source)
	if err != nil {
		return unusable(err)
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "monitor: "+format+"\n", args...)
	}
	to, topic, err := w.topic()
	if err != nil {
		return err
	}
	sink := recorder.Lines(cmd.OutOrStdout())
	if w.publish != "" {
		if sink, err = w.publishTo(cmd, to, topic); err != nil {
			return err
		}
	}
	rec := recorder.New(sink, recorder.Options{Wait: true,
		Failed: func(err error) { say("what is told is lost: %v", err) }})
	if err = wal.Run(cmd.Context(), wal.Options{Source: &upstream.Config, Logged: rec.Logged,
		Began:  func() { say("telling what commits in %s from here on", upstream.Database) },
		Failed: func(err error) { say("%s: %v; trying again until it works", node.Name, err) }}); err != nil {
		err = runFailure(err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), partingMax)
	defer cancel()
	return errors.Join(err, rec.Close(closing))
}

// partingMax is how long the last of what is told is waited for.
const partingMax = 2 * time.Second
