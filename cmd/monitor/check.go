package main

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// checkFlags are the flags of check.
type checkFlags struct {
	out       output
	levels    []string
	format    string
	skew      time.Duration
	anomalies int
	conflicts int
	replay    bool
	timeout   time.Duration
	memory    config.Bytes
	jobs      int

	certificate string // file to write
	verify      string // file to replay

	ask    []verdict.Level
	all    bool                    // every level, whatever ask has
	header record.Header           // of what the flags state
	proofs []*certfile.Certificate // in verify
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

Levels: --level all judges a history at every level and names the strongest that hold
(serializability and strong snapshot isolation are both below strict serializability,
and neither above the other), for each that fails the anomaly that breaks it and the
weakest level which that breaks, and the session guarantees. docs/levels.md says what
the levels are, and which of them a database promises: --level postgres:repeatable-read.

Several files are judged side by side and reported in the order of their paths, a line
each, with what is wrong named as it was found. Check one by itself to be shown it, with
evidence, of which less may do and have a simpler name; --output json tells all of every one.

Pictures: --output html writes one page with what is wrong, drawn and explained, and the
evidence to download. It needs no network and no script, and may be attached to a bug
report. svg is the pictures alone, dot the cycles for Graphviz.

Limits: --timeout is for each file, reading included. Each level in turn has half of what is left of it, and goes on
where it was when all have had a turn; an eighth is kept to explain what is violated. --memory-limit is for all of the process. What is not decided when one is reached is unknown, with the reason
timeout or memory; violations found by then are reported. A file that had too little memory
beside others is judged again by itself.

` + certificateHelp + `

Exit status: 0 satisfied, 1 violated, 2 a history can't be read, 3 undecided; over
several histories 1 goes before 2, 2 before 3.`,
		Example: `  monitor check --level si,ser history.jsonl
  monitor check --level all --output json histories/ | jq .strongest
  monitor check --timeout 10s --memory-limit 2GiB --jobs 4 histories/
  monitor generate --anomaly long-fork | monitor check -
  monitor check --output html h.jsonl > h.html
  monitor check --certificate h.cert h.jsonl && monitor check --verify h.cert h.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := c.parse(cmd); err != nil {
				return err
			}
			return c.run(cmd, paths)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.levels, "level", []string{"si", "ser"},
		"`levels` to judge, comma-separated: "+strings.Join(verdict.Names(verdict.Levels()), ", ")+", or all of them: all")
	f.StringVar(&c.format, "format", history.Auto, "`format` of the files, one of those above")
	f.String("sessions", "keep", "keep: session order is part of every level; ignore: it is not")
	f.String("initial", "any",
		"what an unwritten key holds: any (one value that nobody knows), absent or zero")
	f.String("coverage", "complete",
		"complete: all writes are in the history; partial: a value that nobody wrote belongs to somebody unseen")
	f.String("clock", "prune",
		"prune: times save work; enforce: they are part of the level (si is read as strong-si, ser as sser); ignore: they "+
			"are not used; database: they are the database's own instants of start and commit, to which si, or ser, is held")
	f.String("unique-values", "",
		"where records are missing: whether nobody unseen wrote a value that a recorded transaction wrote to the same key, "+
			"true or false (default: true unless values repeat)")
	durationVar(f, &c.skew, "max-skew", 0, "how far clients' clocks differ at most")
	f.IntVar(&c.anomalies, "anomalies", 10, "how many anomalies are reported per level, with evidence; 0: all")
	f.IntVar(&c.conflicts, "conflicts", 0, "dead ends that the search may meet before a level is undecided; 0: 100000")
	f.BoolVar(&c.replay, "replay", false, "replay the proof of every satisfied verdict with an independent checker")
	f.StringVar(&c.certificate, "certificate", "", "write the proofs of what is satisfied to this `file`")
	f.StringVar(&c.verify, "verify", "", "instead of judging, replay the proofs in this `file`")
	durationVar(f, &c.timeout, "timeout", 0, "how long a file may take; 0: as long as it needs")
	f.Var(parsed[config.Bytes]{&c.memory, config.ParseBytes, "size"}, "memory-limit",
		"how much memory the process may take, such as 500MiB or 2GB; 0: three quarters of the machine's")
	f.IntVar(&c.jobs, "jobs", 0, "how many files are judged at the same time; 0: as many as there are cores")
	c.out.more = report.Drawings()
	c.out.flags(cmd)
	return cmd
}

// parse turns the flags into what they mean.
func (c *checkFlags) parse(cmd *cobra.Command) error {
	for _, s := range c.levels {
		if strings.EqualFold(s, "all") {
			c.all = true
			continue
		}
		l, err := verdict.FindLevel(s)
		if err != nil {
			return unusablef("--level: %w (all is every level)", err)
		}
		c.ask = append(c.ask, l)
	}
	if c.out.drawn() && c.verify != "" {
		return unusablef("--output %s draws anomalies; --verify, which replays proofs, has none: want text or json",
			c.out.format)
	}
	if len(c.ask) == 0 && !c.all {
		return unusablef("--level: name at least one")
	}
	if c.anomalies < 0 || c.conflicts < 0 || c.skew < 0 || c.timeout < 0 || c.jobs < 0 {
		return unusablef("--anomalies, --conflicts, --max-skew, --timeout and --jobs must not be negative")
	}
	if c.jobs == 0 {
		c.jobs = runtime.GOMAXPROCS(0)
	}
	if c.memory > 0 && c.memory < limit.MemoryMin {
		return unusablef("--memory-limit: %s is less than the monitor itself needs, which is %s", c.memory,
			humanize.IBytes(limit.MemoryMin))
	}
	if formats := append([]string{history.Auto}, history.Formats()...); !slices.Contains(formats, c.format) {
		return unusablef("--format: no format is called %q: want %s", c.format, strings.Join(formats, ", "))
	}
	h := &c.header
	if err := cmp.Or(state(cmd, "sessions", &h.Sessions, record.ParseSessions, "keep or ignore"),
		state(cmd, "initial", &h.Initial, record.ParseInitial, "any, absent or zero"),
		state(cmd, "coverage", &h.Coverage, record.ParseCoverage, "complete or partial"),
		state(cmd, "clock", &h.Clock, record.ParseClock, "prune, enforce, ignore or database"),
		state(cmd, "unique-values", &h.UniqueValues, boolean, "true or false")); err != nil {
		return err
	}
	if cmd.Flags().Changed("max-skew") {
		c.header.MaxSkew = new(int64(c.skew))
	}
	// What no header can mend is refused before anything is read.
	clock := record.ClockPrune
	if c.header.Clock != nil {
		clock = *c.header.Clock
	}
	if _, err := c.asked(clock); err != nil {
		return unusablef("--level: %w", err)
	}
	return c.parseCertificates(cmd)
}

// asked are the levels that are asked of a history with that clock.
func (c *checkFlags) asked(clock record.Clock) ([]verdict.Level, error) {
	if c.all {
		return judge.AllLevels(clock), nil
	}
	return judge.Levels(c.ask, clock)
}

func boolean(text string) (v, ok bool) { return text == "true", text == "true" || text == "false" }

// state sets a field of a header from a flag, if that was given.
func state[T any](cmd *cobra.Command, flag string, into **T, parse func(string) (T, bool), want string) error {
	f := cmd.Flags().Lookup(flag)
	if !f.Changed {
		return nil
	}
	v, ok := parse(f.Value.String())
	if !ok {
		return unusablef("--%s: wants %s, not %q", flag, want, f.Value)
	}
	*into = &v
	return nil
}
