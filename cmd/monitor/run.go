package main

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/source"
)

// runFlags are the flags of run.
type runFlags struct {
	out      output
	from     configured
	untilEnd bool
	rebuild  bool
}

func newRun() *cobra.Command {
	r := runFlags{from: configured{shorthands: []shorthand{
		{flag: "brokers", path: "source.kafka.brokers",
			usage: "`host:port` of brokers, comma-separated: source.kafka.brokers", list: true},
		{flag: "topic", path: "source.kafka.topic", usage: "the `topic`: source.kafka.topic"},
	}}}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch a Kafka topic, a file or standard input",
		Long: `Reads transaction records as they come, checks them against the levels that the
database promises, and sends an alert with its evidence for every violation.

An unreachable broker is waited for as long as it takes, and so is room on the disk.
SIGTERM and Ctrl-C end the monitor gracefully: what was found is stored, what was read
and is not judged yet is left to the next start. That goes on where this one was, however
it ended.

Exit status: 0 after a graceful stop, whatever was alerted; with --until-end as check:
0 satisfied, 1 violated, 3 undecided. 2 unusable configuration, missing topic or rights,
compacted topic. 4 the environment failed.`,
		Example: `  monitor run --config isowatch.yaml
  monitor run --brokers 127.0.0.1:9092 --topic transactions --level si --set window.lateness=5s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	r.from.flags(cmd)
	f.BoolVar(&r.untilEnd, "until-end", false, "stop where the input ends now and answer like check")
	f.BoolVar(&r.rebuild, "rebuild", false, "set a damaged store aside and begin with a new one, from the input")
	r.out.flags(cmd)
	return cmd
}

// run watches until it is stopped or, with --until-end, the input ends.
func (r *runFlags) run(cmd *cobra.Command) error {
	sources, err := r.from.sources(cmd)
	if err != nil {
		return err
	}
	loaded, err := config.Load(sources)
	if err != nil {
		return unusable(err)
	}
	if loaded.Canary != nil {
		return unusable(config.Errors{{Place: loaded.Place("canary"), Path: "canary",
			Msg: "is what monitor canary works by, and monitor run does not; give it a source"}})
	}
	if r.untilEnd && loaded.Config.Source.HTTP != nil {
		return unusablef("--until-end: what is posted has no end; let it stop by SIGTERM")
	}
	stderr := cmd.ErrOrStderr()
	log, level, err := app.NewLogger(loaded.Log, stderr, isColored(stderr))
	if err != nil {
		return unusable(err)
	}
	for _, w := range loaded.Warnings {
		log.Warn().Msg(w)
	}
	defer app.LimitMemory(loaded.Config.Memory, loaded.Config.Store.Path, log)()
	a, err := app.New(app.Options{Config: loaded.Config, Log: log, LogLevel: level, Version: buildInfo().Version,
		UntilEnd: r.untilEnd, Rebuild: r.rebuild, Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout()})
	if err != nil {
		return runFailure(err)
	}
	defer onHangup(func() { reload(a, sources, log) })()
	if err := a.Run(cmd.Context()); err != nil {
		return runFailure(err)
	}
	if !a.Ended() {
		return nil
	}
	reports := a.Reports()
	if err := printReports(cmd, r.out, reports, false); err != nil {
		return err
	}
	switch {
	case len(reports) > 0:
	case a.Resumed(): // the run before had judged nothing either, or what it judged is gone
		return unusable(errors.New("the store knows no history of the input, which holds nothing new that could be used: " +
			"there is no verdict; monitor dead-letters lists what was set aside, and monitor run --rebuild judges the input " +
			"from its beginning"))
	default:
		return unusable(errors.New("the input holds no transaction record that could be used: nothing was judged; monitor " +
			"dead-letters lists what was set aside"))
	}
	return silent(report.Exit(reports))
}

// onHangup calls f at each SIGHUP until stopped. Those that come while f works are one.
func onHangup(f func()) (stop func()) {
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	var working sync.WaitGroup
	working.Go(func() {
		for {
			select {
			case <-hangups:
				f()
			case <-over:
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		close(over)
		working.Wait()
	}
}

// reload reads the configuration again and puts into effect what can change while
// the monitor runs.
func reload(a *app.App, sources config.Sources, log zerolog.Logger) {
	next, err := config.Load(sources)
	if err != nil {
		a.NotReloaded(err)
		return
	}
	for _, w := range next.Warnings {
		log.Warn().Msg(w)
	}
	_ = a.Reload(next.Config) // it logs and counts what fails
}

// shorthand is a flag for a key of the configuration. many: it may be given several times, for a list, and so may what
// is list, of words without commas, which commas separate too.
type shorthand struct {
	flag, path, usage string
	many, list        bool
}

// always are the shorthands of every command that has a monitor.
var always = []shorthand{
	{flag: "level", path: "levels", usage: "the `levels` that the database promises, comma-separated: levels", list: true},
	{flag: "store", path: "store.path", usage: "the `folder` of the store: store.path"},
	{flag: "listen", path: "http.listen", usage: "the `address` of the page, as host:port; empty: none: http.listen"},
}

// configured is where a command's configuration comes from: a file, the shorthands of the command and those of all,
// and --set.
type configured struct {
	shorthands []shorthand
	file       string
	set        []string
}

func (c *configured) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&c.file, "config", "c", "", "YAML `file`; see docs/configuration.md")
	f.StringArrayVar(&c.set, "set", nil, "override any `key=value` of the configuration; may be repeated")
	for _, s := range always {
		if f.Lookup(s.flag) == nil { // the command has not another of that name
			c.shorthands = append(c.shorthands, s)
		}
	}
	for _, s := range c.shorthands {
		switch {
		case s.many:
			f.StringArray(s.flag, nil, s.usage)
		case s.list:
			f.StringSlice(s.flag, nil, s.usage)
		default:
			f.String(s.flag, "", s.usage)
		}
	}
}

// sources are those of the configuration; what flags set overrides the file and the environment, --set last.
func (c *configured) sources(cmd *cobra.Command) (config.Sources, error) {
	out := config.Sources{File: c.file, Env: os.Environ()}
	for _, s := range c.shorthands {
		if f := cmd.Flags().Lookup(s.flag); f.Changed {
			out.Overrides = append(out.Overrides, config.Override{Flag: "--" + s.flag, Path: s.path, Value: textOf(f)})
		}
	}
	for _, kv := range c.set {
		path, value, ok := strings.Cut(kv, "=")
		if !ok {
			return out, unusablef("--set: wants key=value, as in window.lateness=5s, not %q", kv)
		}
		out.Overrides = append(out.Overrides, config.Override{Flag: "--set", Path: path, Value: value})
	}
	return out, nil
}

// runFailure gives an error of the monitor its exit status: what a person has to
// change is 2, what the machine did is 4.
func runFailure(err error) error {
	var startup *source.StartupError
	if errors.As(err, new(*failure)) {
		return err
	}
	if errors.As(err, &startup) || errors.As(err, new(config.Errors)) || errors.As(err, new(*target.Error)) {
		return unusable(err)
	}
	return storeFailure(err)
}

// printReports writes reports as --output says; drawn: their anomalies were drawn before.
func printReports(cmd *cobra.Command, out output, reports []report.History, drawn bool) error {
	w := cmd.OutOrStdout()
	if out.json() {
		for i := range reports {
			if err := printJSON(w, &reports[i]); err != nil {
				return err
			}
		}
		return nil
	}
	text := report.Text{W: w, Color: isColored(w), Drawn: drawn}
	var all report.Tally
	for i := range reports {
		all.Add(&reports[i])
		if err := text.History(&reports[i]); err != nil {
			return environment(err)
		}
	}
	if all.Histories > 1 {
		if err := text.Summary(&all); err != nil {
			return environment(err)
		}
	}
	return nil
}
