package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// newRoot makes the whole command line.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "monitor",
		Short: "Watch a database's isolation from outside",
		Long: `Isowatch watches a production database from outside and tells you, with a proof,
when it breaks the isolation level that it promises.

Exit status: 0 satisfied or done, 1 a violation was found, 2 unusable input, flags
or configuration, 3 undecided, 4 the environment failed.`,
		Example: `  monitor demo                                 see it find real lost updates
  monitor check --level si,ser history.jsonl   judge a recorded history
  monitor run --config isowatch.yaml           watch a Kafka topic`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       buildInfo().text(),
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return unusablef("%w\nsee %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		newDemo(),
		newRun(),
		newCheck(),
		newCanary(),
		newProxy(),
		newWAL(),
		newGenerate(),
		newReplay(),
		newConvert(),
		newAlerts(),
		newDeadLetters(),
		newStore(),
		newConfig(),
		newVersion(),
	)
	complete(root)
	for _, c := range root.Commands() {
		if !c.Runnable() { // it would show its help and succeed, whatever is asked of it
			c.DisableFlagsInUseLine = true
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// output is the --output flag of commands that report.
type output struct {
	format string
	quiet  bool
	more   []string // forms that there are beside text and json
}

// flags adds --output, which is looked at before the command runs, and --quiet.
func (o *output) flags(cmd *cobra.Command) {
	usage := "text, for people, or json"
	if len(o.more) > 0 {
		usage = "text, for people, json, " + english.WordSeries(o.more, "or")
	}
	cmd.Flags().StringVar(&o.format, "output", "text", usage)
	offer(cmd, "output", false, append([]string{"text", "json"}, o.more...))
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress and nothing but the result")
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
}

// check refuses unknown formats.
func (o *output) check() error {
	forms := append([]string{"text", "json"}, o.more...)
	if !slices.Contains(forms, o.format) {
		return unusablef("--output: wants %s, not %q", english.WordSeries(forms, "or"), o.format)
	}
	return nil
}

// drawn: it is one of the forms beside text and json.
func (o *output) drawn() bool { return slices.Contains(o.more, o.format) }

func (o *output) json() bool { return o.format == "json" }

// none tells people that a list of n is empty, if it is.
func (o *output) none(cmd *cobra.Command, n int, what string) {
	if n == 0 && !o.quiet && !o.json() {
		fmt.Fprintln(cmd.ErrOrStderr(), "monitor: "+what)
	}
}

// printJSON writes v on one line.
func printJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("can't happen, because everything that is reported has a JSON form: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return written(err)
}

// isColored tells whether colors may be written to w: to a terminal that knows them, unless the
// environment says no (no-color.org).
func isColored(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb tells whether the terminal only prints what it is sent, line after line.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// isTerminal tells whether a person looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
