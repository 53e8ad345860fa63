package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// generateFlags are flags of generate that are not fields of generate.Config.
type generateFlags struct {
	level, workload, initial string
	readShare, zipf, stale   float64
	times, noTimes, quiet    bool
}

func newGenerate() *cobra.Command {
	var (
		c generate.Config
		g generateFlags
	)
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make a history, valid at a level or with an anomaly in it",
		Long: `Simulates a store and its clients and writes what the clients saw to standard
output: a header line, then a record per line. The same flags and seed give the same
bytes. A history is valid at --level by construction; --anomaly plants one of

  ` + strings.Join(wrap(generate.Anomalies(), 76), "\n  ") + `

on keys that nothing else uses.`,
		Example: `  monitor generate --level ser --transactions 100000 --seed 7 > h.jsonl
  monitor generate --level si --anomaly lost-update | monitor check -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.apply(cmd, &c); err != nil {
				return err
			}
			gen, err := generate.New(c)
			if err != nil {
				return unusable(err)
			}
			bar := newProgress(cmd.ErrOrStderr(), g.quiet || isTerminal(cmd.OutOrStdout()))
			defer bar.finish()
			bar.phase("generating", int64(c.Transactions))
			return writeHistory(cmd.OutOrStdout(), gen, bar)
		},
	}
	f := cmd.Flags()
	f.StringVar(&g.level, "level", "si", "the `level` at which the history is valid; weaker ones than si give one that is valid at si")
	f.StringVar(&c.Anomaly, "anomaly", "", "plant the anomaly of that `name`")
	f.IntVar(&c.Planted, "planted", 1, "how often")
	f.IntVar(&c.Transactions, "transactions", 10_000, "how many, those of anomalies included")
	f.IntVar(&c.Sessions, "sessions", 24, "how many clients")
	f.IntVar(&c.Operations, "ops", 8, "operations of a transaction; the workload mini has its own")
	f.IntVar(&c.Keys, "keys", 10_000, "how many keys")
	f.StringVar(&g.workload, "workload", "general", "one of "+strings.Join(generate.Presets(), ", "))
	f.Float64Var(&g.readShare, "read-share", 0.5, "share of operations that read, in blindw of transactions, 0 to 1; the default is the workload's")
	f.Float64Var(&g.zipf, "zipf", 0, "popularity of keys: the n-th in proportion to 1/n^`exponent`; 0: all alike")
	f.Float64Var(&c.Duplicates, "duplicates", 0, "share of writes whose value is one of a few, 0 to 1")
	f.Float64Var(&c.AbortRate, "abort-rate", 0, "share of transactions that abort, 0 to 1")
	f.Float64Var(&c.UnknownRate, "unknown-rate", 0, "share of transactions whose outcome is not known, 0 to 1")
	f.Float64Var(&g.stale, "stale", 0.02, "share of transactions that see an older state than the newest, 0 to 1; never at sser and strong-si")
	f.StringVar(&g.initial, "initial", "any", "what the header says of the initial state: any, absent or zero")
	f.Uint64Var(&c.Seed, "seed", 0, "of all choices; without it a new one each time")
	f.BoolVar(&g.times, "times", true, "records have start and end")
	f.BoolVar(&g.noTimes, "no-times", false, "they have not")
	f.DurationVar(&c.MaxSkew, "skew", 0, "how far clients' clocks differ at most")
	f.StringVar(&c.DB, "db", record.DefaultDB, "the name of the history")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "no progress, and no word of the seed")
	f.Lookup("seed").DefValue = "a new one"
	cmd.MarkFlagsMutuallyExclusive("times", "no-times")
	return cmd
}

// apply puts the flags into c.
func (g *generateFlags) apply(cmd *cobra.Command, c *generate.Config) error {
	var ok bool
	if c.Level, ok = generate.ParseLevel(g.level); !ok {
		return unusablef("--level: no level that can be generated is called %q", g.level)
	}
	if err := c.Preset(g.workload); err != nil {
		return unusablef("--%w", err)
	}
	if c.Initial, ok = record.ParseInitial(g.initial); !ok {
		return unusablef("--initial: wants any, absent or zero, not %q", g.initial)
	}
	changed := cmd.Flags().Changed
	if changed("read-share") {
		c.ReadShare, c.NoReads = g.readShare, g.readShare == 0
	}
	if changed("zipf") && g.zipf != 0 {
		c.Distribution, c.Exponent = generate.Zipf, g.zipf
	}
	c.Stale, c.NoStale = g.stale, g.stale == 0
	c.NoTimes = g.noTimes || !g.times
	if !changed("seed") {
		c.Seed = rand.Uint64()
		if !g.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "monitor: --seed %d makes the same again\n", c.Seed)
		}
	}
	return nil
}

// writeHistory writes a generated history. A reader that has seen enough and
// closes the pipe is no error.
func writeHistory(out io.Writer, gen *generate.Generator, bar *progress) error {
	w := bufio.NewWriterSize(out, 1<<16)
	h := gen.Header()
	line := append(codec.AppendHeader(nil, &h), '\n')
	_, err := w.Write(line)
	for t := range gen.Transactions() {
		if err != nil {
			break
		}
		line = append(codec.AppendJSON(line[:0], &t), '\n')
		_, err = w.Write(line)
		bar.add(1)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return environment(fmt.Errorf("write the history: %w", err))
	}
	return nil
}

// wrap puts words on lines of at most width bytes.
func wrap(words []string, width int) []string {
	var lines []string
	line := ""
	for _, w := range words {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}
