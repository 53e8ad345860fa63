package main

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/canary"
	"github.com/isowatch/isowatch/config"
)

// canaryFlags are the flags of canary that are no shorthands of the configuration.
type canaryFlags struct {
	recording
	options canary.Options
	cleanup bool
	super   bool
}

func newCanary() *cobra.Command {
	c := canaryFlags{recording: recording{from: configured{shorthands: canaryShorthands}}}
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Watch a database by using it: sessions at work on keys of their own, and the monitor",
		Long: `Connects sessions to a database, which read and write keys of their own and record what each
transaction saw, and checks it against the levels that the database promises. All that it
writes lies in a schema, database, file or folder of its own, isowatch_canary. Without --store
what the monitor keeps is in a temporary folder, gone at the end.

It goes on until Ctrl-C, whatever it finds, or as --duration, --transactions or --until-violation say.

Exit status: when it ends by itself as check: 0 satisfied, 1 violated, 3 undecided, as where nothing was committed in the
last ten seconds; else 0. 2 an option or address that can't be used. 4 the environment failed, or canary.stop_if ended it.

Workloads, as generate has them; canary.keys and canary.operations say how many:

` + workloadsHelp(true),
		Example: `  monitor canary --target postgres://canary@db-1/shop --isolation repeatable-read --level si
  monitor canary --target postgres://canary@db-1/shop --replica postgres://canary@db-2/shop --isolation repeatable-read \
      --level si --session-settings 'synchronous_commit=remote_apply;synchronous_commit=off' --until-violation
  monitor canary --target mysql://canary@db-1/ --isolation repeatable-read --level si --duration 60s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	f := cmd.Flags()
	c.flags(cmd, ": canary.publish")
	f.Int64Var(&c.options.Transactions, "transactions", 0,
		"how `many` transactions it runs; 0: as many as there is time for")
	f.StringSliceVar(&c.options.Faults, "faults", nil,
		"do harm by these `commands` of canary.faults.commands, in turn; without it none is run")
	f.BoolVar(&c.cleanup, "cleanup", false, "remove what canaries have made in the database, and end")
	f.BoolVar(&c.super, "allow-superuser", false, "take an account that may do anything: canary.allow_superuser")
	f.Uint64Var(&c.options.Seed, "seed", uint64(time.Now().UnixNano()), "of the sessions' choices")
	f.Lookup("seed").DefValue = "the time"
	return cmd
}

// canaryShorthands are flags for the keys that a canary is about.
var canaryShorthands = []shorthand{
	{flag: "target", path: "canary.targets",
		usage: "the `address` of a node that takes writes; may be repeated: canary.targets", many: true},
	{flag: "replica", path: "canary.replicas",
		usage: "the `address` of a node that is only read; may be repeated: canary.replicas", many: true},
	{flag: "isolation", path: "canary.isolation",
		usage: "the isolation `level` that is asked for, such as repeatable-read: canary.isolation"},
	{flag: "session-settings", path: "canary.session_settings",
		usage: "`settings` that sessions take in turn, as in 'a=1;a=2': canary.session_settings"},
	{flag: "workload", path: "canary.workloads",
		usage: "the `workloads`, comma-separated, of those above: canary.workloads", list: true},
	{flag: "sessions", path: "canary.sessions", usage: "how `many` sessions: canary.sessions"},
	{flag: "access", path: "canary.access", usage: "which `nodes` a session uses: pinned, split, wander: canary.access"},
	{flag: "rate", path: "canary.rate", usage: "transactions a `second`; 0: as many as the database takes: canary.rate"},
}

func (c *canaryFlags) run(cmd *cobra.Command) error {
	sources, err := c.sources(cmd)
	if err != nil {
		return err
	}
	if c.super {
		sources.Overrides = append(sources.Overrides,
			config.Override{Flag: "--allow-superuser", Path: "canary.allow_superuser", Value: "true"})
	}
	to, topic, err := c.topic()
	if err != nil {
		return err
	}
	if topic != "" {
		sources.Overrides = append(sources.Overrides,
			config.Override{Flag: "--publish", Path: "canary.publish.brokers", Value: yamlList(to.Brokers)},
			config.Override{Flag: "--publish", Path: "canary.publish.topic", Value: topic})
	}
	loaded, err := config.Load(sources)
	if err != nil {
		if c.from.file == "" && !cmd.Flags().Changed("target") {
			err = errNoTarget
		}
		return unusable(err)
	}
	if loaded.Canary == nil {
		return unusable(errNoTarget)
	}
	if c.options.Transactions < 0 {
		return unusablef("--transactions: must not be negative")
	}
	ctx := cmd.Context()
	if c.cleanup {
		if err := canary.Cleanup(ctx, loaded.Canary); err != nil {
			return runFailure(err)
		}
		return nil
	}
	o := &c.options
	if p := loaded.Canary.Publish; p != nil && !strings.Contains(c.publish, "://") {
		to, topic = app.Connection("canary.publish", p.Brokers, p.TLS, p.SASL), p.Topic
	}
	o.Config, o.Duration = loaded.Config, c.duration
	o.Output, err = c.output(cmd, loaded, to, topic)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer app.LimitMemory(loaded.Config.Memory, loaded.Config.Store.Path, o.Log)()
	ended, err := canary.Run(ctx, *o)
	if err != nil {
		if ended != nil {
			err = errors.Join(err, printReports(cmd, c.out, ended.Reports, true))
		}
		return canaryFailure(err)
	}
	if err = c.out.ended(cmd, ended); err != nil || ended.Unchecked == "" {
		return err
	}
	return &failure{status: exitUndecided, err: errors.New(ended.Unchecked)}
}

var errNoTarget = errors.New("--target: which database is to be watched? Give its address, such as " +
	"postgres://canary@db-1:5432/shop, or a canary section in the configuration")

// canaryFailure gives an error its exit status.
func canaryFailure(err error) error {
	if errors.Is(err, canary.ErrNothing) {
		return &failure{status: exitUndecided, err: err}
	}
	return runFailure(err)
}

// yamlList is a list as YAML has it.
func yamlList(items []string) string {
	text, err := json.Marshal(items)
	if err != nil {
		panic("can't happen, because text always encodes: " + err.Error())
	}
	return string(text)
}

// textOf is what a flag of a shorthand was given.
func textOf(f *pflag.Flag) string {
	if many, ok := f.Value.(pflag.SliceValue); ok {
		return yamlList(many.GetSlice())
	}
	return f.Value.String()
}
