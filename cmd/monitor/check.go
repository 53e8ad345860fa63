package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// checkFlags are the flags of check.
type checkFlags struct {
	out       output
	levels    []string
	format    string
	sessions  string
	initial   string
	coverage  string
	clock     string
	skew      time.Duration
	anomalies int
	conflicts int
	replay    bool

	ask    []verdict.Level
	header record.Header // of what the flags state
}

func newCheck() *cobra.Command {
	var c checkFlags
	cmd := &cobra.Command{
		Use:   "check PATH…",
		Short: "Judge recorded histories",
		Long: `Reads each history whole and says for each level whether the database kept it. A
PATH is a file, a directory of histories, or - for standard input; gzip, zstd and tar
are unpacked. What a file's header line states holds unless a flag says otherwise.

Formats: ` + strings.Join(history.Formats(), ", ") + `.

Exit status: 0 satisfied, 1 violated, 2 a history can't be read, 3 undecided; over
several histories 1 goes before 2, 2 before 3.`,
		Example: `  monitor check --level si,ser history.jsonl
  monitor check --level all --output json histories/ | jq .strongest
  monitor generate --anomaly long-fork | monitor check -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := c.parse(cmd); err != nil {
				return err
			}
			return c.run(cmd, paths)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.levels, "level", []string{"si", "ser"}, "levels to judge, comma-separated: "+strings.Join(names(judge.Supported()), ", ")+", or all of them: all")
	f.StringVar(&c.format, "format", history.Auto, "format of the files: auto, "+strings.Join(history.Formats(), ", "))
	f.StringVar(&c.sessions, "sessions", "keep", "keep: session order is part of every level; ignore: it is not")
	f.StringVar(&c.initial, "initial", "any", "what an unwritten key holds: any (one value that nobody knows), absent or zero")
	f.StringVar(&c.coverage, "coverage", "complete", "complete: all writes are in the history; partial: a value that nobody wrote belongs to somebody unseen")
	f.StringVar(&c.clock, "clock", "prune", "prune: times save work; enforce: they are part of the level (si is read as strong-si, ser as sser); ignore: they are not used")
	f.DurationVar(&c.skew, "max-skew", 0, "how far clients' clocks differ at most")
	f.IntVar(&c.anomalies, "anomalies", 10, "how many anomalies are reported per level, with evidence; 0: all")
	f.IntVar(&c.conflicts, "conflicts", 0, "dead ends that the search may meet before a level is undecided; 0: 100000")
	f.BoolVar(&c.replay, "replay", false, "replay the proof of every satisfied verdict with an independent checker")
	c.out.flags(cmd)
	return cmd
}

// parse turns the flags into what they mean.
func (c *checkFlags) parse(cmd *cobra.Command) error {
	if err := c.out.check(); err != nil {
		return err
	}
	for _, s := range c.levels {
		if s == "all" {
			c.ask = append(c.ask, judge.Supported()...)
			continue
		}
		l, ok := verdict.ParseLevel(s)
		if !ok {
			return unusablef("--level: no level is called %q: want %s, or all", s, strings.Join(names(judge.Supported()), ", "))
		}
		c.ask = append(c.ask, l)
	}
	if len(c.ask) == 0 {
		return unusablef("--level: name at least one")
	}
	if c.anomalies < 0 || c.conflicts < 0 || c.skew < 0 {
		return unusablef("--anomalies, --conflicts and --max-skew must not be negative")
	}
	changed := cmd.Flags().Changed
	if err := state(&c.header.Sessions, changed("sessions"), "sessions", c.sessions, record.ParseSessions, "keep or ignore"); err != nil {
		return err
	}
	if err := state(&c.header.Initial, changed("initial"), "initial", c.initial, record.ParseInitial, "any, absent or zero"); err != nil {
		return err
	}
	if err := state(&c.header.Coverage, changed("coverage"), "coverage", c.coverage, record.ParseCoverage, "complete or partial"); err != nil {
		return err
	}
	if err := state(&c.header.Clock, changed("clock"), "clock", c.clock, record.ParseClock, "prune, enforce or ignore"); err != nil {
		return err
	}
	if changed("max-skew") {
		ns := int64(c.skew)
		c.header.MaxSkew = &ns
	}
	// What no header can mend is refused before anything is read.
	clock := record.ClockPrune
	if c.header.Clock != nil {
		clock = *c.header.Clock
	}
	if _, err := judge.Levels(c.ask, clock); err != nil {
		return unusablef("--level: %w", err)
	}
	return nil
}

// state sets a field of a header from a flag that was given.
func state[T any](into **T, given bool, flag, text string, parse func(string) (T, bool), want string) error {
	if !given {
		return nil
	}
	v, ok := parse(text)
	if !ok {
		return unusablef("--%s: wants %s, not %q", flag, want, text)
	}
	*into = &v
	return nil
}

func names(ls []verdict.Level) []string {
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = l.String()
	}
	return out
}

// gcPercent lets the heap grow to this much more than what lives before it is
// collected. A history stays in memory from its decoding to the verdict, so that
// collecting often finds little.
const gcPercent = 200

// run judges every path and ends with the status of all together.
func (c *checkFlags) run(cmd *cobra.Command, paths []string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	bar := newProgress(cmd.ErrOrStderr(), c.out.quiet)
	defer bar.finish()
	status, several := report.ExitSatisfied, []report.History{}
	for _, path := range paths {
		files, err := c.files(cmd, path)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := cmd.Context().Err(); err != nil {
				return environment(fmt.Errorf("stopped: %w", context.Cause(cmd.Context())))
			}
			hs, err := c.file(file, bar)
			if err != nil {
				return err
			}
			if err := c.print(cmd, hs); err != nil {
				return err
			}
			for i := range hs {
				status = report.Worse(status, hs[i].Exit())
				several = append(several, outline(hs[i]))
			}
		}
	}
	if len(several) > 1 && !c.out.json() {
		if err := (report.Text{W: cmd.OutOrStdout(), Color: isTerminal(cmd.OutOrStdout())}).Summary(several); err != nil {
			return environment(err)
		}
	}
	return silent(status)
}

// packed are the endings of files that are histories if anything: when their
// packing is damaged they can't be recognised, and must not be passed over.
var packed = []string{".gz", ".zst", ".tar", ".tgz"}

// files lists what to judge under a path. In a directory, what looks like no
// history is passed over, and named. A path that does not exist is listed: opening
// it says what is wrong.
func (c *checkFlags) files(cmd *cobra.Command, path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() || path == "-" {
		return []string{path}, nil //nolint:nilerr // opening it says what is wrong
	}
	entries, err := history.Walk(path)
	if reject.From(err) != nil {
		return nil, unusable(err)
	}
	if err != nil {
		return nil, environment(err)
	}
	var files, passed []string
	for _, e := range entries {
		if e.Format == "" && !slices.Contains(packed, filepath.Ext(e.Path)) {
			passed = append(passed, e.Path)
			continue
		}
		files = append(files, e.Path)
	}
	if len(files) == 0 {
		return nil, unusablef("%s: holds no history in a format that is known: %s", path, strings.Join(history.Formats(), ", "))
	}
	if len(passed) > 0 && !c.out.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s: %d files passed over, as they look like no history: %s\n", path, len(passed), shortList(passed))
	}
	return files, nil
}

// shortList joins the first few of many.
func shortList(all []string) string {
	const few = 5
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:few], ", ") + ", …"
}

// outline is what the summary needs of a report.
func outline(h report.History) report.History {
	for i := range h.Results {
		h.Results[i].Anomalies = nil
	}
	return h
}

// file judges the histories in one file. What is wrong with the file is a report;
// an error is the monitor's own or the environment's.
func (c *checkFlags) file(file string, bar *progress) ([]report.History, error) {
	bar.phase("reading "+file, 0)
	began := time.Now()
	hs, err := history.Open(file, history.Options{Format: c.format})
	if err != nil {
		return []report.History{unreadable(file, err)}, nil
	}
	decoded := time.Since(began)
	out := make([]report.History, len(hs))
	for i := range hs {
		h := &hs[i]
		out[i] = report.History{File: h.File, Format: h.Format, DB: h.DB, Strongest: []string{}, Results: []report.Result{}}
		assume := judge.Assumptions{}.Override(h.Header).Override(c.header)
		levels, err := judge.Levels(c.ask, assume.Clock)
		if err != nil {
			out[i].Error = &report.Error{Message: err.Error()}
			continue
		}
		q := judge.Question{DB: h.DB, Txns: h.Transactions, Levels: levels, Assume: assume, Decoded: decoded,
			AnomaliesMax: c.anomalies, Conflicts: c.conflicts, Replay: c.replay,
			Phase: func(what string) { bar.phase(what, 0) }}
		if err := judge.Check(q, &out[i]); err != nil {
			return nil, environment(fmt.Errorf("%s: %w", file, err))
		}
		hs[i] = history.History{} // its memory is free for the next
	}
	return out, nil
}

// unreadable reports a file that can't be judged.
func unreadable(file string, err error) report.History {
	h := report.History{File: file, DB: record.DefaultDB, Strongest: []string{}, Results: []report.Result{}, Error: &report.Error{Message: err.Error()}}
	if e := reject.From(err); e != nil {
		if e.Pos.Source != "" {
			h.File = e.Pos.Source
		}
		bare := *e
		bare.Pos, bare.Field = record.Position{}, ""
		h.Error = &report.Error{Line: e.Pos.Line, Field: e.Field, Message: bare.Error()}
	}
	return h
}

// print writes the reports of one file.
func (c *checkFlags) print(cmd *cobra.Command, hs []report.History) error {
	w := cmd.OutOrStdout()
	for i := range hs {
		var err error
		if c.out.json() {
			err = printJSON(w, &hs[i])
		} else if err = (report.Text{W: w, Color: isTerminal(w)}).History(&hs[i]); err != nil {
			err = environment(err)
		}
		if err != nil {
			return err
		}
		// Scripts read the text; a person who looks at standard error sees why.
		if e := hs[i].Error; e != nil && c.out.json() && !c.out.quiet {
			at := hs[i].File
			if e.Line > 0 {
				at += fmt.Sprintf(":%d", e.Line)
			}
			field := ""
			if e.Field != "" {
				field = "field " + e.Field + ": "
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s: %s%s\n", at, field, e.Message)
		}
	}
	return nil
}
