package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// generateFlags are the flags of generate. Those of config override what the
// workload brings, if they are given.
type generateFlags struct {
	config                         generate.Config
	hard                           generate.HardConfig
	triangle                       generate.TriangleConfig
	graph                          string
	level, workload, initial, dist string
	times, noTimes, quiet          bool
}

// hardWorkload is a workload that no store executes, as generate.Constructions are.
const hardWorkload = "hard"

// allWorkloads are the names that --workload knows.
func allWorkloads() []string {
	names := []string{hardWorkload}
	for _, p := range generate.Presets(false) {
		names = append(names, p.Name)
	}
	return append(names, generate.Constructions()...)
}

// made is a history that is ready to be written.
type made interface {
	Header() record.Header
	Transactions() iter.Seq[record.Transaction]
	Len() int
}

// generateHelp is what --help says first.
var generateHelp = `Simulates a store and its clients and writes what the clients saw to standard
output: a header line, then a record per line. The same flags and seed give the same
bytes. A history is valid at --level by construction; --anomaly plants one of

  ` + strings.Join(text.Wrap(generate.Anomalies(), 76, 76), "\n  ") + `

or, of lists alone,

  ` + strings.Join(text.Wrap(generate.ListAnomalies(), 76, 76), "\n  ") + `

or, of which rows there are, with --initial absent,

  ` + strings.Join(text.Wrap(generate.PredicateAnomalies(), 76, 76), "\n  ") + `

on keys that nothing else uses. Workloads:

` + workloadsHelp(false) + `  hard        a random 3-SAT formula of --variables as a history: valid at si and at
              ser exactly if it can be satisfied, which is not known. Only --level si
              or ser, --seed, --clauses, --db and --quiet go with it
  triangle    AWDIT's lower bounds: a graph of --variables nodes as a history, valid
  …-ra …-rc   exactly if it has no triangle: at cc, ra and rc, with a session for
              each transaction; at ra, with two sessions; at rc, with one. Only
              --density, --graph, --seed, --level, --db and --quiet go with it`

// workloadsHelp lists what the workloads are, or those that a canary can be given.
func workloadsHelp(live bool) string {
	var out strings.Builder
	for _, p := range generate.Presets(live) {
		for i, line := range text.Wrap(strings.Fields(p.What), 76, 76) {
			fmt.Fprintf(&out, "  %-11s %s\n", []string{p.Name, ""}[min(i, 1)], line)
		}
	}
	return out.String()
}

func newGenerate() *cobra.Command {
	var g generateFlags
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make a history, valid at a level or with an anomaly in it",
		Long:  generateHelp,
		Example: `  monitor generate --level ser --transactions 100000 --seed 7 > h.jsonl
  monitor generate --level si --duplicates 0.5 --zipf 1.5 | monitor check --level si -
  monitor generate --level si --anomaly lost-update | monitor check -
  monitor generate --level cc --workload c-twitter --transactions 1000000 > h.jsonl
  monitor generate --workload hard --variables 300 | monitor check --level ser -
  monitor generate --workload triangle --variables 500 | monitor check --level cc -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := g.make(cmd)
			if err != nil {
				return err
			}
			bar := newProgress(cmd.ErrOrStderr(), g.quiet || isTerminal(cmd.OutOrStdout()))
			defer bar.finish()
			bar.phase("generating", int64(m.Len()))
			return writeHistory(cmd.OutOrStdout(), m, bar)
		},
	}
	g.flags(cmd)
	return cmd
}

// flags adds them.
func (g *generateFlags) flags(cmd *cobra.Command) {
	c, f := &g.config, cmd.Flags()
	f.StringVar(&g.level, "level", "si", "the `level` at which the history is valid, and as a rule at no stronger one: "+
		"sser, ser, strong-si, si, pc, cc, ra, rc, g1 or lin; with lists nothing weaker than si")
	f.StringVar(&c.Anomaly, "anomaly", "", "plant the anomaly of that `name`")
	f.IntVar(&c.Planted, "planted", 1, "how many times the anomaly is planted")
	f.StringVar(&g.workload, "workload", "general", "one of those above")
	f.IntVar(&c.Transactions, "transactions", 10_000, "how many transactions, those of anomalies included")
	f.IntVar(&c.Sessions, "sessions", 24, "how many clients")
	f.IntVar(&c.Operations, "ops", 8, "operations of a transaction, in append at most; the workloads mini, lwt and "+
		"c-twitter have their own")
	f.IntVar(&c.Keys, "keys", 10_000, "how many keys; in append, how many lists at a time; in c-twitter, how many users")
	f.IntVar(&c.ListAppends, "list-appends", 32, "elements that a list gets before another takes its place")
	f.Float64Var(&c.ReadShare, "read-share", 0.5,
		"share of operations that read, in blindw and lwt of transactions, 0 to 1")
	f.StringVar(&g.dist, "distribution", "uniform",
		"popularity of keys: uniform, zipf, or hotspot (80% of the operations on 20% of the keys); c-twitter has its own")
	f.Float64Var(&c.Exponent, "key-zipf", 0.99,
		"popularity of keys: the n-th in proportion to 1/n^`exponent`; means --distribution zipf")
	f.Float64Var(&c.Duplicates, "duplicates", 0,
		"share of keys whose written values repeat, each being one of --duplicate-values, 0 to 1")
	f.Float64Var(&c.DuplicateExponent, "zipf", 0.5,
		"popularity of repeated values: the n-th in proportion to 1/n^`exponent`")
	f.IntVar(&c.DuplicateValues, "duplicate-values", 100, "how many different values a key with repeated ones has")
	f.Float64Var(&c.AbortRate, "abort-rate", 0, "share of transactions that abort, 0 to 1")
	f.Float64Var(&c.UnknownRate, "unknown-rate", 0, "share of transactions whose outcome is not known, 0 to 1")
	f.Float64Var(&c.Stale, "stale", 0.02, "share of transactions that see an older state than the newest, 0 to 1; never "+
		"at sser, strong-si and lin")
	f.StringVar(&g.initial, "initial", "any", "what the header says of the initial state: any, absent or zero")
	f.IntVar(&g.hard.Variables, "variables", 100,
		"variables of the formula, for the workload hard; nodes of the graph, for triangle…")
	f.Float64Var(&g.hard.Ratio, "clauses", 4.26, "clauses per variable, for the workload hard; 4.26 is hardest")
	f.Float64Var(&g.triangle.Density, "density", 0.5, "share of the possible edges that the graph has, for triangle…")
	f.StringVar(&g.graph, "graph", "bipartite", "bipartite: a graph without triangles; random: any")
	f.Uint64Var(&c.Seed, "seed", 0, "of all choices; as it is, a new one each time")
	f.BoolVar(&g.times, "times", true, "records have start and end")
	f.BoolVar(&g.noTimes, "no-times", false, "they have none")
	durationVar(f, &c.MaxSkew, "skew", 0, "how far clients' clocks differ at most")
	f.StringVar(&c.DB, "db", record.DefaultDB, "the `name` of the history")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "no progress, and no word of the seed")
	f.Lookup("seed").DefValue = "a new one"
	for _, name := range []string{"transactions", "sessions", "ops", "keys", "read-share", "duplicates", "zipf"} {
		f.Lookup(name).DefValue += ", or the workload's"
	}
	cmd.MarkFlagsMutuallyExclusive("times", "no-times")
}

// make prepares the history that the flags ask for.
func (g *generateFlags) make(cmd *cobra.Command) (made, error) {
	if err := g.positive(cmd); err != nil {
		return nil, err
	}
	seed := g.config.Seed
	if !cmd.Flags().Changed("seed") {
		seed = rand.Uint64()
	}
	m, err := g.prepare(cmd, seed)
	if err == nil && !cmd.Flags().Changed("seed") && !g.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "monitor: --seed %d makes the same again\n", seed)
	}
	return m, err
}

func (g *generateFlags) prepare(cmd *cobra.Command, seed uint64) (made, error) {
	if g.workload == hardWorkload {
		return g.prepareHard(cmd, seed)
	}
	if c, ok := generate.ParseConstruction(g.workload); ok {
		g.triangle.Construction = c
		return g.prepareTriangle(cmd, seed)
	}
	if f := firstChanged(cmd, "variables", "clauses"); f != "" {
		return nil, unusablef("--%s: is for --workload hard alone", f)
	}
	if f := firstChanged(cmd, "density", "graph"); f != "" {
		return nil, unusablef("--%s: is for --workload %s alone", f, strings.Join(generate.Constructions(), ", "))
	}
	c, err := g.apply(cmd)
	if err != nil {
		return nil, err
	}
	c.Seed = seed
	gen, err := generate.New(c)
	return gen, unusable(err)
}

// firstChanged is the first of some flags that was given, if any.
func firstChanged(cmd *cobra.Command, names ...string) string {
	if i := slices.IndexFunc(names, cmd.Flags().Changed); i >= 0 {
		return names[i]
	}
	return ""
}

func (g *generateFlags) prepareHard(cmd *cobra.Command, seed uint64) (made, error) {
	if err := g.only(cmd, "clauses"); err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("level") && g.level != "si" && g.level != "ser" {
		return nil, unusablef("--workload hard: is about the levels si and ser alike, not %s", g.level)
	}
	g.hard.Seed, g.hard.DB = seed, g.config.DB
	h, err := generate.NewHard(g.hard)
	return h, unusable(err)
}

func (g *generateFlags) prepareTriangle(cmd *cobra.Command, seed uint64) (made, error) {
	if err := g.only(cmd, "density", "graph"); err != nil {
		return nil, err
	}
	c := &g.triangle
	if ls := c.Construction.Levels(); cmd.Flags().Changed("level") && !slices.Contains(ls, g.level) {
		return nil, unusablef("--workload %s: is about the levels %s, not %s", g.workload, strings.Join(ls, ", "), g.level)
	}
	if g.graph != "bipartite" && g.graph != "random" {
		return nil, unusablef("--graph: wants bipartite or random, not %q", g.graph)
	}
	c.Seed, c.DB, c.Nodes, c.Random = seed, g.config.DB, g.hard.Variables, g.graph == "random"
	t, err := generate.NewTriangle(*c)
	return t, unusable(err)
}

// positive refuses zeros, which would stand for defaults further down.
func (g *generateFlags) positive(cmd *cobra.Command) error {
	for _, f := range []struct {
		name string
		zero bool
	}{
		{"transactions", g.config.Transactions == 0}, {"sessions", g.config.Sessions == 0}, {"ops", g.config.Operations == 0},
		{"keys", g.config.Keys == 0}, {"planted", g.config.Planted == 0}, {"list-appends", g.config.ListAppends == 0},
		{"duplicate-values", g.config.DuplicateValues == 0}, {"zipf", g.config.DuplicateExponent == 0},
		{"key-zipf", g.config.Exponent == 0},
		{"variables", g.hard.Variables == 0}, {"clauses", g.hard.Ratio == 0}, {"density", g.triangle.Density == 0},
	} {
		if f.zero && cmd.Flags().Changed(f.name) {
			return unusablef("--%s: must be above 0", f.name)
		}
	}
	return nil
}

// only refuses flags that a workload without a store has no use for.
func (g *generateFlags) only(cmd *cobra.Command, own ...string) error {
	useful := append([]string{"workload", "level", "variables", "seed", "db", "quiet"}, own...)
	var wrong []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(useful, f.Name) {
			wrong = append(wrong, "--"+f.Name)
		}
	})
	if len(wrong) > 0 {
		return unusablef("--workload %s: has no use for %s", g.workload, strings.Join(wrong, ", "))
	}
	return nil
}

// apply is what the workload brings, overridden by the flags that were given.
func (g *generateFlags) apply(cmd *cobra.Command) (generate.Config, error) {
	c, changed := g.config, cmd.Flags().Changed
	if err := c.Preset(g.workload); err != nil {
		return c, unusablef("--workload %q: use one of %s", g.workload, strings.Join(allWorkloads(), ", "))
	}
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	g.config = c // which the flags set
	for name, value := range given {
		if err := cmd.Flags().Set(name, value); err != nil {
			return c, unusablef("--%s: %w", name, err)
		}
	}
	c = g.config
	if named := name.Canonical(c.Anomaly); len(named) == 1 {
		c.Anomaly = named[0] // P4 is lost-update
	}
	c.NoReads, c.NoStale, c.NoTimes = c.ReadShare == 0, c.Stale == 0, g.noTimes || !g.times
	var err error
	if c.Level, err = verdict.FindLevel(g.level); err != nil {
		return c, unusablef("--level: %v", err)
	}
	var ok bool
	if c.Initial, ok = record.ParseInitial(g.initial); !ok {
		return c, unusablef("--initial: wants any, absent or zero, not %q", g.initial)
	}
	if c.Distribution, ok = generate.ParseDistribution(g.dist); !ok {
		return c, unusablef("--distribution: wants uniform, zipf or hotspot, not %q", g.dist)
	}
	if changed("key-zipf") {
		if changed("distribution") && c.Distribution != generate.Zipf {
			return c, unusablef("--key-zipf: goes with --distribution zipf, not %s", g.dist)
		}
		c.Distribution = generate.Zipf
	}
	for _, name := range []string{"zipf", "duplicate-values"} {
		if changed(name) && c.Duplicates == 0 {
			return c, unusablef("--%s: is about duplicate values: give --duplicates as well; for the popularity of keys there "+
				"is --key-zipf", name)
		}
	}
	return c, nil
}

// writeHistory writes a generated history. A reader that has seen enough and
// closes the pipe is no error.
func writeHistory(out io.Writer, m made, bar *progress) error {
	w := bufio.NewWriterSize(out, 1<<16)
	h := m.Header()
	line := append(codec.AppendHeader(nil, &h), '\n')
	_, err := w.Write(line)
	for t := range m.Transactions() {
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
