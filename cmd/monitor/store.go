package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look into the store of run, verify it, make it smaller",
		Long: `The store keeps what must survive the monitor: where it is in its input, the journal of
what it read, checkpoints of its histories, alerts, their deliveries, and dead letters.
docs/store.md tells how. A store has one user at a time: stop the monitor first, or, to
look at it, copy the directory while it runs (cp -r) and take the copy.

Without PATH it is that of the configuration's default, ./isowatch-data.`,
		Example: `  monitor store inspect isowatch-data
  cp -r isowatch-data copy && monitor store verify copy`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newStoreInspect(), newStoreVerify(), newStoreCompact())
	return cmd
}

// onePath takes the path of a store, which defaults to that of the configuration.
func onePath(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return config.Default().Store.Path
}

// storeFailure gives an error of the store its exit status: what it is or holds is
// 2, what the machine did is 4.
func storeFailure(err error) error {
	for _, is := range []error{store.ErrForeign, store.ErrLayout, store.ErrDamaged} {
		if errors.Is(err, is) {
			return unusable(err)
		}
	}
	return environment(err)
}

func newStoreInspect() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "inspect [PATH]",
		Short: "Say what is in a store",
		Long: `Counts what is in a store, or in a copy of its directory: where the input is, histories and
their checkpoints, the journal, alerts by state, notices that receivers are still to be told,
dead letters. It does not read all of it: whether a store is whole, verify says.

Exit status: 0; 2 not a store or damaged, 4 it can't be read or is in use.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			st, err := openStore(onePath(args))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, st.Close()) }()
			info, err := st.Inspect(cmd.Context())
			if err != nil {
				return storeFailure(err)
			}
			maps.DeleteFunc(info.Histories, func(db string, _ store.History) bool { return !app.HistoryInStore(db) })
			err = st.AlertsBefore(cmd.Context(), 0, func(_ uint64, a store.Alert) bool {
				info.Alerts.ByState[alertState(a.Body)]++
				return true
			})
			if err != nil {
				return storeFailure(err)
			}
			if out.json() {
				return printJSON(cmd.OutOrStdout(), info)
			}
			return printInfo(cmd.OutOrStdout(), &info)
		},
	}
	out.flags(cmd)
	return cmd
}

// alertState is the state that an alert's body says.
func alertState(body []byte) string {
	var a struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(body, &a); err != nil || a.State == "" {
		return "unknown"
	}
	return a.State
}

// byteSize is an amount of bytes for people.
func byteSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// amounts lists numbers by name.
func amounts(m map[string]int64) string {
	if len(m) == 0 {
		return "none"
	}
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], text.Printable(k)))
	}
	return strings.Join(parts, ", ")
}

func printInfo(w io.Writer, s *store.Info) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("store", "%s, layout %d", text.Printable(s.Path), s.Schema)
	row("disk", "%s: journal %s (%s needed by a restart, the rest is evidence), checkpoints and other large values %s",
		byteSize(s.Bytes.Disk), byteSize(s.Bytes.Journal), byteSize(s.Bytes.Needed), byteSize(s.Bytes.Large))
	for _, source := range slices.Sorted(maps.Keys(s.Offsets)) {
		if app.OffsetsOfMonitor(source) {
			continue
		}
		parts := s.Offsets[source]
		shown := make([]string, 0, len(parts))
		for _, p := range slices.Sorted(maps.Keys(parts)) {
			shown = append(shown, fmt.Sprintf("%d: %d", p, parts[p]))
		}
		row("offsets", "%s {%s}", text.Printable(source), strings.Join(shown, ", "))
	}
	for _, db := range slices.Sorted(maps.Keys(s.Histories)) {
		h := s.Histories[db]
		row("history", "%s: checkpoint %d, %s", text.Printable(db), h.Checkpoints, byteSize(h.Bytes))
	}
	if j := s.Journal; j != nil {
		row("journal", "%d entries, %d to %d (%s to %s), needed from %d", j.Entries, j.First, j.Last, j.From, j.To, j.Needed)
	} else {
		row("journal", "empty")
	}
	row("alerts", "%s", amounts(s.Alerts.ByState))
	row("undelivered", "%s", amounts(s.Undelivered))
	row("dead letters", "%s; %s, %d dropped", amounts(s.DeadLetters), byteSize(s.LettersBytes), s.LettersGone)
	return environment(table.Flush())
}

func newStoreVerify() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "verify [PATH]",
		Short: "Hold all of a store to what was committed",
		Long: `Reads all of a store, or of a copy of its directory, and holds it to what was committed, by
checksums. Nothing is changed; the database is copied to the directory for temporary files, and
opened there. The copy may be one that was made with cp -r while the monitor ran: where its
files don't fit together it is not known whether the store is whole, which is noted.

Exit status: 0 whole, 2 damaged (what is, is named) or not a store, 3 not known (the notes say
why), 4 it can't be read or is in use.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := onePath(args)
			if err := storeAt(path); err != nil {
				return err
			}
			r, err := store.Verify(path)
			if err != nil {
				return storeFailure(err)
			}
			w := cmd.OutOrStdout()
			if out.json() {
				err = printJSON(w, struct {
					Path string `json:"path"`
					OK   bool   `json:"ok"`
					store.Report
				}{path, len(r.Damaged)+len(r.Notes) == 0, r})
			} else {
				err = printReport(w, path, r, out.quiet)
			}
			if err != nil {
				return err
			}
			switch {
			case len(r.Damaged) > 0:
				return silent(exitUnusable)
			case len(r.Notes) > 0:
				return silent(exitUndecided)
			}
			return nil
		},
	}
	out.flags(cmd)
	return cmd
}

func printReport(w io.Writer, path string, r store.Report, quiet bool) error {
	var b strings.Builder
	for _, d := range r.Damaged {
		fmt.Fprintf(&b, "%s\n", text.Printable(d.Error()))
	}
	if !quiet {
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "note: %s\n", text.Printable(n))
		}
	}
	state := "whole"
	if len(r.Notes) > 0 {
		state = "not known to be whole"
	}
	if len(r.Damaged) > 0 {
		state = "DAMAGED in one place"
		if n := len(r.Damaged); n > 1 {
			state = fmt.Sprintf("DAMAGED in %d places", n)
		}
		state += "; monitor run --rebuild sets it aside and begins anew"
	}
	fmt.Fprintf(&b, "%s: %d records and %d entries of the journal, %s read: %s\n", text.Printable(path), r.Records,
		r.Entries, byteSize(r.Bytes), state)
	_, err := io.WriteString(w, b.String())
	return written(err)
}

func newStoreCompact() *cobra.Command {
	var (
		out    output
		retain time.Duration
		limit  = config.Default().Store.MaxBytes
	)
	cmd := &cobra.Command{
		Use:   "compact [PATH]",
		Short: "Free the space of what a store does not need",
		Long: `Drops evidence that is too old or too much, and merges the tables of the database. The
monitor does the first by itself; after many dead letters or a large frontier the second
gives back more at once.

Exit status: 0; 2 not a store or damaged, 4 it can't be written or is in use.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := onePath(args)
			if err := storeAt(path); err != nil {
				return err
			}
			before, err := store.DiskUse(path)
			if err != nil {
				return environment(err)
			}
			if err := store.Compact(cmd.Context(),
				store.Options{Path: path, Retain: retain, MaxBytes: int64(limit)}); err != nil {
				return storeFailure(err)
			}
			after, err := store.DiskUse(path)
			if err != nil {
				return environment(err)
			}
			w := cmd.OutOrStdout()
			if out.json() {
				return printJSON(w, struct {
					Path   string `json:"path"`
					Before int64  `json:"bytes_before"`
					After  int64  `json:"bytes_after"`
				}{path, before, after})
			}
			_, err = fmt.Fprintf(w, "%s: %s, was %s\n", text.Printable(path), byteSize(after), byteSize(before))
			return written(err)
		},
	}
	durationVar(cmd.Flags(), &retain, "retain", config.Default().Window.Retain,
		"keep evidence for so long, window.retain of the configuration")
	cmd.Flags().Var(parsed[config.Bytes]{&limit, config.ParseBytes, "size"}, "max-bytes",
		"the `size` that evidence may make the store grow to, store.max_bytes of the configuration")
	out.flags(cmd)
	return cmd
}
