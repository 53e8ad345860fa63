package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// stdin is how standard input is called on the command line.
const stdin = "-"

// packed are the endings of files that are histories if anything: when their
// packing is damaged they can't be recognised, and must not be passed over.
var packed = []string{".gz", ".zst", ".tar", ".tgz"}

// files lists what to judge under the paths, in their order.
func (c *checkFlags) files(cmd *cobra.Command, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		files, err := c.under(cmd, p)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// under lists what to judge under a path. In a directory, what looks like no
// history is passed over, and named. A path that does not exist is listed: opening
// it says what is wrong.
func (c *checkFlags) under(cmd *cobra.Command, path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() || path == stdin {
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
		return nil, unusablef("%s: holds no history in a format that is known: %s", path,
			strings.Join(history.Formats(), ", "))
	}
	if len(passed) > 0 && !c.out.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s: passed over %s in no known format: %s\n", text.Printable(path),
			english.Plural(len(passed), "file", ""), text.Printable(shortList(passed)))
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

// open reads the histories in a file, packed. It ends soon after stop says so, with that
// error; of a directory that is one history, not before it was read.
func open(file, format string, stop func() error, bar *progress) ([]history.History, error) {
	opt := history.Options{Format: format, Packed: true}
	bar.phase("reading "+file, 0)
	if file == stdin {
		return history.Read(file, &stoppable{os.Stdin, stop, bar}, opt)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return history.Open(file, opt)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	bar.phase("reading "+file, info.Size())
	hs, err := history.Read(file, &stoppable{f, stop, bar}, opt)
	return hs, errors.Join(err, f.Close())
}

// stoppable is a reader that ends with an error once stop gives one.
type stoppable struct {
	r    io.Reader
	stop func() error
	bar  *progress
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.stop(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.bar.add(int64(n))
	return n, err
}

// unreadable reports a file that can't be judged.
func unreadable(file string, err error) report.History {
	h := report.History{File: file, DB: record.DefaultDB, Strongest: []string{}, Results: []report.Result{},
		Error: &report.Error{Message: err.Error()}}
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

// stopped tells whether reading ended because of a limit, and not for what was read.
func stopped(err error) bool { return err != nil && limit.Reason(err) != 0 }
