package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/bench"
	"github.com/isowatch/isowatch/internal/rig"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	out   output
	suite string
	only  []string
	list  bool
	opt   bench.Options
}

func newBench() *cobra.Command {
	var b benchFlags
	var suites []string
	for _, s := range bench.Suites() {
		suites = append(suites, s.Name)
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure time and memory beside the papers' figures",
		Long: `Judges the histories of a suite, each in a process of its own, and prints time
and memory beside the target and the figure of a paper. Histories are generated into
the directory for temporary files (up to 4 GB) and removed; those that were recorded
are looked up in --corpus, and skipped if they are not there. AWDIT's program, if there
is one, judges the histories that its paper has figures for, right after.

The suite stream starts the brokers that the monitor reads from: Apache Kafka (Java and
Maven are needed, else its rows are skipped) and kfake. A topic of 3 million takes half a
GB of disk, or of kfake's memory. All its rows take about a quarter of an hour; for
figures of whole topics give --reading 0. Rows are told on standard error as they are
done, and what is done is printed when the rest is interrupted.

Exit status: 0 measured, whatever the figures are; 4 something could not be measured.`,
		Example: `  monitor bench --suite strong
  monitor bench --suite strong --only veristrong,blindw-10k --runs 5
  monitor bench --suite weak --only c-twitter --peer ./awdit
  monitor bench --suite stream --only kafka-10k --transactions 10000000 --reading 0 --set window.max_skew=1ms
  monitor bench --suite strong --list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.suite == "stream" && !cmd.Flags().Changed("runs") {
				b.opt.Runs = 1 // a run takes half a minute
			}
			suite, err := b.parse()
			if err != nil {
				return err
			}
			if b.list {
				return b.names(cmd, suite)
			}
			return b.run(cmd, suite)
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.suite, "suite", suites[0], "what to measure: "+strings.Join(suites, ", "))
	f.StringSliceVar(&b.only, "only", nil, "only these rows, comma-separated: a `name`, or its beginning up to a hyphen")
	f.BoolVar(&b.list, "list", false, "list the names of the rows and measure nothing")
	f.StringVar(&b.opt.Corpus, "corpus", "", "`directory` of recorded histories")
	f.IntVar(&b.opt.Runs, "runs", 3, "how often each history is judged; the median counts (default of the suite stream: 1)")
	f.Float64Var(&b.opt.Scale, "scale", 1, "make histories smaller by this factor, and take fewer of the recorded ones; for trying it out")
	durationVar(f, &b.opt.Timeout, "timeout", 10*time.Minute, "how long one run may take")
	f.StringVar(&b.opt.Peer, "peer", "", "AWDIT's `program`, to be run beside ours (default: awdit in PATH, if it is there)")
	f.Int64Var(&b.opt.Transactions, "transactions", bench.TransactionsDefault, "how many each topic of the suite stream has")
	f.StringVar(&b.opt.Encoding, "encoding", bench.EncodingDefault, "the `form` of the records in the topics of the suite stream: "+bench.EncodingList())
	durationVar(f, &b.opt.Reading, "reading", bench.ReadingDefault, "how long a row of the suite stream reads its topic at most; what was judged by then is measured; 0: to the end")
	f.StringArrayVar(&b.opt.Set, "set", nil, "`key=value` of the configuration that the suite stream runs the monitor with, besides window.max_skew=0s; may be repeated")
	b.out.flags(cmd)
	cmd.AddCommand(newBenchBroker())
	return cmd
}

// newBenchBroker is a broker in a process of its own, for the suite stream.
func newBenchBroker() *cobra.Command {
	return &cobra.Command{
		Use: "broker", Hidden: true, Args: cobra.NoArgs,
		Short: "Run kfake until standard input ends",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rig.ServeFake(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return environment(err)
			}
			return nil
		},
	}
}

// parse finds the suite and refuses flags that make no sense.
func (b *benchFlags) parse() (bench.Suite, error) {
	if err := b.out.check(); err != nil {
		return bench.Suite{}, err
	}
	suite, ok := bench.Named(b.suite)
	if !ok {
		return suite, unusablef("--suite: there is none called %q; see --help", b.suite)
	}
	if b.opt.Runs < 1 {
		return suite, unusablef("--runs: must be at least 1, not %d", b.opt.Runs)
	}
	if !(b.opt.Scale > 0) || math.IsInf(b.opt.Scale, 0) || b.opt.Scale > 1 {
		return suite, unusablef("--scale: wants a number above 0 and up to 1, not %v", b.opt.Scale)
	}
	if b.opt.Transactions < 1 {
		return suite, unusablef("--transactions: must be at least 1, not %d", b.opt.Transactions)
	}
	if _, err := rig.EncodingNamed(b.opt.Encoding); err != nil {
		return suite, unusablef("--encoding: %w", err)
	}
	for _, kv := range b.opt.Set {
		if !strings.Contains(kv, "=") {
			return suite, unusablef("--set: wants key=value, as in window.lateness=5s, not %q", kv)
		}
	}
	if b.opt.Reading < 0 {
		return suite, unusablef("--reading: must be 0 or above, not %v", b.opt.Reading)
	}
	if b.opt.Timeout <= 0 {
		return suite, unusablef("--timeout: must be above 0, not %v", b.opt.Timeout)
	}
	if err := b.findPeer(); err != nil {
		return suite, err
	}
	suite, err := suite.Select(b.only)
	if err != nil {
		return suite, unusablef("--only: %w", err)
	}
	return suite, nil
}

// findPeer looks for AWDIT's program, which need not be there unless it was asked for.
func (b *benchFlags) findPeer() error {
	path, err := exec.LookPath(cmp.Or(b.opt.Peer, "awdit"))
	switch {
	case err == nil:
		b.opt.Peer, err = filepath.Abs(path)
		return err
	case b.opt.Peer != "":
		return unusablef("--peer: %w", err)
	}
	return nil
}

// names prints what the suite has.
func (b *benchFlags) names(cmd *cobra.Command, suite bench.Suite) error {
	names := suite.Names()
	if b.out.json() {
		return printJSON(cmd.OutOrStdout(), names)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n")); err != nil {
		return environment(err)
	}
	return nil
}

// run measures and prints.
func (b *benchFlags) run(cmd *cobra.Command, suite bench.Suite) error {
	bar := newProgress(cmd.ErrOrStderr(), b.out.quiet)
	b.opt.Progress = func(label string) { bar.phase(label, 0) }
	b.opt.Done = func(r bench.Result) {
		if b.out.quiet {
			return
		}
		bar.finish()
		fmt.Fprintln(cmd.ErrOrStderr(), r.Line())
		bar = newProgress(cmd.ErrOrStderr(), b.out.quiet)
	}
	r, err := bench.Run(cmd.Context(), suite, b.opt)
	bar.finish()
	if err != nil && len(r.Rows)+len(r.Ablations) == 0 {
		return environment(stoppedEarly(err))
	}
	w := cmd.OutOrStdout()
	var failed error
	if b.out.json() {
		failed = printJSON(w, r)
	} else if failed = r.Text(w); failed != nil {
		failed = environment(fmt.Errorf("write the result: %w", failed))
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return environment(stoppedEarly(err))
	case r.Failed() > 0:
		return environment(fmt.Errorf("%d rows could not be measured; the table says why", r.Failed()))
	}
	return nil
}

// stoppedEarly says of an interrupt what it means.
func stoppedEarly(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before all was measured")
	}
	return err
}
