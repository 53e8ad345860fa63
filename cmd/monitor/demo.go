package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/demo"
)

func newDemo() *cobra.Command {
	var (
		o        demo.Options
		database string
		quiet    bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it at work: a real store, a real fault, an alert",
		Long: `Starts, in this process, a Kafka broker, a Badger store with clients at work on
it, the monitor and a webhook receiver. After some seconds the store is reopened with
its conflict detection switched off, so that it really loses updates. Nothing has to be
installed, and nothing is left behind. The address of the monitor's page is printed first.

--database postgres starts the PostgreSQL that is installed on this machine instead, a primary and a
synchronous standby in a temporary folder, which break what they promise without any fault: half of the sessions
wait until the standby shows what they commit, half don't, and the two servers show commits in different orders.

Exit status: 0 if the fault was alerted and nothing was before it, else 1. 4 the environment failed, such as where
no PostgreSQL is installed.`,
		Example: "  monitor demo --duration 20s --evidence evidence.jsonl\n  monitor demo --database postgres",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Duration < 0 {
				return unusablef("--duration: must not be negative")
			}
			o.Out, o.Quiet, o.Version = cmd.OutOrStdout(), quiet, buildInfo().Version
			o.Color = isColored(o.Out)
			run := map[string]func(context.Context, demo.Options) (bool, error){"badger": demo.Run,
				"postgres": demo.Postgres}[database]
			if run == nil {
				return unusablef("--database: there is badger and postgres, not %q", database)
			}
			planned, err := run(cmd.Context(), o)
			if err != nil {
				return environment(err)
			}
			if !planned {
				return silent(exitViolated)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&database, "database", "badger",
		"the `database` that is watched: badger, in this process, or postgres, which has to be installed")
	durationVar(cmd.Flags(), &o.Duration, "duration", 0, "how long it runs, such as 20s; 0: until Ctrl-C")
	cmd.Flags().StringVar(&o.Evidence, "evidence", "",
		"`file` that the first alert's evidence is written to, for monitor check")
	cmd.Flags().Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "of the clients' choices")
	cmd.Flags().Lookup("seed").DefValue = "the time"
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "nothing but the alert and the outcome")
	return cmd
}
