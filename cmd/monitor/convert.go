package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/reject"
)

// convertFlags are the flags of convert.
type convertFlags struct {
	from, output, db string
	drop             []string
	quiet            bool
	to               history.WriteOptions
}

func newConvert() *cobra.Command {
	var c convertFlags
	cmd := &cobra.Command{
		Use:   "convert --to FORMAT PATH",
		Short: "Write a history in another format",
		Long: `Reads a history in any format that check reads and writes it in another. Keys,
values, sessions and ids that the new format has no word for are numbered, one to
one, so that every verdict stays; standard error says what was numbered or left out.
What the format can't express at all, or what would be judged differently there, is
refused, with the transaction and the operation that it is.

The output is compressed if its name ends in .gz or .zst. Cobra's logs are a
directory, or a tar if the name ends in .tar, .tar.gz, .tgz or .tar.zst, or -.

Formats: ` + strings.Join(history.WrittenFormats(), ", ") + `.`,
		Example: `  monitor convert --to isowatch --output h.jsonl.gz history.edn
  monitor generate --level si | monitor convert --to polysi-text - > h.txt
  monitor convert --to cobra-logs --output logs/ --drop aborted h.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error { return c.run(cmd, paths[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", history.Auto, "`format` of the input, as check has it")
	f.StringVar(&c.to.Format, "to", "", "`format` of the output; needed")
	f.StringVarP(&c.output, "output", "o", "-", "`file` to write, or directory for Cobra's logs; -: standard output")
	f.StringVar(&c.db, "db", "", "the `history` to write, of several in the input")
	f.StringSliceVar(&c.drop, "drop", nil, "leave out what the format can't say: aborted (transactions), times")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "no progress, and no word on what was numbered or left out")
	return cmd
}

// check refuses flags that make no sense.
func (c *convertFlags) check() error {
	if c.to.Format == "" {
		return unusablef("--to: name the format to write: %s", strings.Join(history.WrittenFormats(), ", "))
	}
	if !slices.Contains(history.WrittenFormats(), c.to.Format) {
		return unusablef("--to: no format that can be written is called %q: want %s", c.to.Format,
			strings.Join(history.WrittenFormats(), ", "))
	}
	for _, d := range c.drop {
		switch d {
		case "aborted":
			c.to.DropAborted = true
		case "times":
			c.to.DropTimes = true
		default:
			return unusablef("--drop: wants aborted or times, not %q", d)
		}
	}
	return nil
}

func (c *convertFlags) run(cmd *cobra.Command, path string) error {
	if err := c.check(); err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), c.quiet || c.output == "-" && isTerminal(cmd.OutOrStdout()))
	defer bar.finish()
	bar.phase("reading "+path, 0)
	hs, err := history.Open(path, history.Options{Format: c.from})
	if err != nil {
		return ofHistory(err)
	}
	if hs, err = c.choose(path, hs); err != nil {
		return err
	}
	bar.phase("writing "+c.to.Format, 0)
	notes, err := c.write(cmd.OutOrStdout(), hs)
	if err != nil {
		return err
	}
	bar.finish()
	if !c.quiet {
		for _, n := range notes {
			fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s: %s\n", text.Printable(path), text.Printable(n))
		}
	}
	return nil
}

// ofHistory gives errors of reading and writing histories their exit status.
func ofHistory(err error) error {
	if reject.From(err) != nil || os.IsNotExist(err) {
		return unusable(err)
	}
	return environment(err)
}

// choose takes the history that --db names.
func (c *convertFlags) choose(path string, hs []history.History) ([]history.History, error) {
	if c.db != "" {
		var names []string
		for i := range hs {
			if hs[i].DB == c.db {
				return hs[i : i+1], nil
			}
			names = append(names, hs[i].DB)
		}
		return nil, unusablef("--db: %s has no history called %q: it has %s", path, c.db, shortList(names))
	}
	return hs, nil
}

// write writes to where --output says.
func (c *convertFlags) write(stdout io.Writer, hs []history.History) (notes []string, err error) {
	name := c.output
	switch {
	case name == "-":
		notes, err := history.WriteAll(stdout, hs, c.to)
		return notes, c.failed("standard output", err)
	case c.to.Format == "cobra-logs" && !isTarName(name):
		if len(hs) > 1 {
			return nil, unusablef("%d histories are no one directory of logs: name one with --db", len(hs))
		}
		notes, err := history.WriteDir(name, &hs[0], c.to)
		return notes, c.failed(name, err)
	}
	out, err := createFile(name)
	if err != nil {
		return nil, environment(err)
	}
	defer func() { _ = out.discard() }() // nothing that is wanted is left in it
	if notes, err = history.WriteAll(out, hs, c.to); err == nil {
		err = out.finish()
	}
	return notes, c.failed(name, err)
}

func (c *convertFlags) failed(where string, err error) error {
	switch {
	case err == nil:
		return nil
	case reject.From(err) != nil:
		return unusable(err)
	}
	return environment(fmt.Errorf("write the history to %s: %w", where, err))
}

// isTarName recognises names of tars, compressed or not.
func isTarName(name string) bool {
	return slices.ContainsFunc([]string{".tar", ".tar.gz", ".tgz", ".tar.zst"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}
