// Command bench measures the monitor's time and memory beside the papers' figures.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/internal/lab/bench"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(os.Stderr, "bench: %s\n", text.Printable(strings.TrimRight(line, "\n"))) // files have a say in it
	}
	if errors.As(err, new(*environmentError)) {
		os.Exit(4)
	}
	os.Exit(2)
}

// environmentError is what the machine failed at; what is no such one is about the command line.
type environmentError struct{ error }

func environment(err error) error {
	if err == nil {
		return nil
	}
	return &environmentError{err}
}

// flags are those of the command.
type flags struct {
	suite  string
	only   []string
	list   bool
	output string
	quiet  bool
	opt    bench.Options
}

func newCommand() *cobra.Command {
	var b flags
	var suites []string
	for _, s := range bench.Suites() {
		suites = append(suites, s.Name)
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the monitor's time and memory beside the papers' figures",
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
		Example: `  bench --suite strong
  bench --suite strong --only veristrong,blindw-10k --runs 5
  bench --suite weak --only c-twitter --peer ./awdit
  bench --suite stream --only kafka-10k --transactions 10000000 --reading 0 --set window.max_skew=1ms
  bench --suite strong --list`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			suite, err := b.parse(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if b.list {
				return b.names(cmd, suite)
			}
			return b.run(cmd, suite)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w\nsee bench --help", err) })
	f := cmd.Flags()
	f.StringVar(&b.suite, "suite", suites[0], "what to measure: "+strings.Join(suites, ", "))
	f.StringSliceVar(&b.only, "only", nil, "only these rows, comma-separated: a `name`, or its beginning up to a hyphen")
	f.BoolVar(&b.list, "list", false, "list the names of the rows and measure nothing")
	f.StringVar(&b.opt.Corpus, "corpus", "", "`directory` of recorded histories")
	f.IntVar(&b.opt.Runs, "runs", 3, "how often each history is judged; the median counts (default of the suites stream "+
		"and cliffs: 1)")
	f.Float64Var(&b.opt.Scale, "scale", 1, "make histories smaller by this factor, and take fewer of the recorded ones; "+
		"for trying it out (default of the suite cliffs: 0.25)")
	f.DurationVar(&b.opt.Timeout, "timeout", 10*time.Minute, "how long one run may take")
	f.StringVar(&b.opt.Peer, "peer", "", "AWDIT's `program`, to be run beside ours (default: awdit in PATH, if it is "+
		"there)")
	f.Int64Var(&b.opt.Transactions, "transactions", bench.TransactionsDefault,
		"how many each topic of the suite stream has")
	f.StringVar(&b.opt.Encoding, "encoding", bench.EncodingDefault,
		"the `form` of the records in the topics of the suite stream: "+bench.EncodingList())
	f.DurationVar(&b.opt.Reading, "reading", bench.ReadingDefault,
		"how long a row of the suite stream reads its topic at most; what was judged by then is measured; 0: to the end")
	f.StringArrayVar(&b.opt.Set, "set", nil,
		"`key=value` of the configuration that the suite stream runs the monitor with, besides window.max_skew=0s; may be "+
			"repeated")
	f.StringVar(&b.opt.Monitor, "monitor", "",
		"the monitor's `program` (default: built from the source in the working directory)")
	f.StringVar(&b.output, "output", "text", "text, for people, or json")
	f.BoolVarP(&b.quiet, "quiet", "q", false, "no progress and nothing but the result")
	cmd.AddCommand(newBroker())
	return cmd
}

// newBroker is a broker in a process of its own, for the suite stream.
func newBroker() *cobra.Command {
	return &cobra.Command{
		Use: "broker", Hidden: true, Args: cobra.NoArgs,
		Short: "Run kfake until standard input ends",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return environment(rig.ServeFake(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()))
		},
	}
}

// parse finds the suite, takes its defaults for what changed says was not given, and refuses flags that make no sense.
func (b *flags) parse(changed func(flag string) bool) (bench.Suite, error) {
	if b.output != "text" && b.output != "json" {
		return bench.Suite{}, fmt.Errorf("--output: wants text or json, not %q", b.output)
	}
	suite, ok := bench.Named(b.suite)
	if !ok {
		return suite, fmt.Errorf("--suite: there is none called %q; see --help", b.suite)
	}
	if suite.Runs > 0 && !changed("runs") {
		b.opt.Runs = suite.Runs
	}
	if suite.Scale > 0 && !changed("scale") {
		b.opt.Scale = suite.Scale
	}
	if b.opt.Runs < 1 {
		return suite, fmt.Errorf("--runs: must be at least 1, not %d", b.opt.Runs)
	}
	if !(b.opt.Scale > 0) || math.IsInf(b.opt.Scale, 0) || b.opt.Scale > 1 {
		return suite, fmt.Errorf("--scale: wants a number above 0 and up to 1, not %v", b.opt.Scale)
	}
	if b.opt.Transactions < 1 {
		return suite, fmt.Errorf("--transactions: must be at least 1, not %d", b.opt.Transactions)
	}
	if _, err := rig.EncodingNamed(b.opt.Encoding); err != nil {
		return suite, fmt.Errorf("--encoding: %w", err)
	}
	for _, kv := range b.opt.Set {
		if !strings.Contains(kv, "=") {
			return suite, fmt.Errorf("--set: wants key=value, as in window.lateness=5s, not %q", kv)
		}
	}
	if b.opt.Reading < 0 {
		return suite, fmt.Errorf("--reading: must be 0 or above, not %v", b.opt.Reading)
	}
	if b.opt.Timeout <= 0 {
		return suite, fmt.Errorf("--timeout: must be above 0, not %v", b.opt.Timeout)
	}
	if err := b.findPeer(); err != nil {
		return suite, err
	}
	suite, err := suite.Select(b.only)
	if err != nil {
		return suite, fmt.Errorf("--only: %w", err)
	}
	return suite, nil
}

// findPeer looks for AWDIT's program, which need not be there unless it was asked for.
func (b *flags) findPeer() error {
	path, err := exec.LookPath(cmp.Or(b.opt.Peer, "awdit"))
	switch {
	case err == nil:
		b.opt.Peer, err = filepath.Abs(path)
		return err
	case b.opt.Peer != "":
		return fmt.Errorf("--peer: %w", err)
	}
	return nil
}

// names prints what the suite has.
func (b *flags) names(cmd *cobra.Command, suite bench.Suite) error {
	names := suite.Names()
	if b.output == "json" {
		return printJSON(cmd.OutOrStdout(), names)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
	return environment(err)
}

// run measures and prints.
func (b *flags) run(cmd *cobra.Command, suite bench.Suite) error {
	if term.IsTerminal(int(os.Stderr.Fd())) && !b.quiet && os.Getenv("TERM") != "dumb" {
		b.opt.Progress = func(label string) { fmt.Fprintf(os.Stderr, "\r\x1b[K%s", text.Printable(label)) }
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	b.opt.Done = func(r bench.Result) {
		if b.quiet {
			return
		}
		if b.opt.Progress != nil {
			b.opt.Progress("")
		}
		fmt.Fprintln(cmd.ErrOrStderr(), r.Line())
	}
	r, err := bench.Run(cmd.Context(), suite, b.opt)
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped before all was measured")
	}
	if err != nil && len(r.Rows) == 0 {
		return environment(err)
	}
	var failed error
	if b.output == "json" {
		failed = printJSON(cmd.OutOrStdout(), r)
	} else if failed = r.Text(cmd.OutOrStdout()); failed != nil {
		failed = environment(fmt.Errorf("write the result: %w", failed))
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return environment(err)
	case r.Failed() > 0:
		return environment(fmt.Errorf("%d rows could not be measured; the table says why", r.Failed()))
	}
	return nil
}

// printJSON writes v on one line.
func printJSON(w io.Writer, v any) error {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return environment(fmt.Errorf("write the result: %w", err))
	}
	return nil
}
