package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

func newAlertsEvent() *cobra.Command {
	var (
		at   shelf
		e    record.Event
		when string
	)
	cmd := &cobra.Command{
		Use:   "event TEXT",
		Short: "Tell that something happened, such as a failover",
		Long: `Keeps an event beside the records: it is shown on the page, and in the timeline of each alert
whose transactions ran near it. It changes no verdict. If no monitor runs, the store has it for
the next one.

Exit status: 0; 2 unusable flags or text, 4 store or monitor can't be used.`,
		Example: `  monitor alerts event "failover started" --node pg-2 --kind failover
  monitor alerts event "version 41 rolled out" --at 10m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			if when != "" {
				var err error
				if now, err = moment(when, now); err != nil {
					return unusablef("--at: %w", err)
				}
			}
			e.At, e.Text = now.UnixNano(), args[0]
			if _, err := codec.DecodeWorldEvent(codec.AppendWorldEvent(nil, &e), 0); err != nil {
				bad := reject.From(err)
				return unusablef("%s: %s", bad.Field, bad.Detail)
			}
			return at.with(cmd.Context(), func(b book) error { return b.Happen(cmd.Context(), e) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.DB, "db", "", "the `database` that it is about (default: all)")
	f.StringVar(&e.Node, "node", "", "the `node` where it happened, as transactions name it")
	f.StringVar(&e.Kind, "kind", "", "a `word` for such events, such as failover")
	f.StringVar(&when, "at", "", "when it happened: a `time` such as 2026-01-31T12:00:00Z, or 10m ago (default: now)")
	at.flags(cmd)
	return cmd
}

// happening is an event as an input and the API have it.
func happening(e record.Event) json.RawMessage { return codec.AppendWorldEvent(nil, &e) }
