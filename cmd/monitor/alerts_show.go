package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/alerts/text"
)

func newAlertsList() *cobra.Command {
	var (
		out  output
		at   shelf
		by   choice
		each bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List them: a line for each group, the rarest of the worst first",
		Long: `Lists what is stored, whether or not it was notified by itself: a line for each group
(alerts of one database, name and weakest level) with its latest alert, how many there are and since
when; with --each, and as JSON, every alert by itself, the latest first.

Exit status: 0, also if there are none; 2 unusable flags, 4 store or monitor can't be read.`,
		Example: `  monitor alerts list --db orders --name lost-update --since 24h
  monitor alerts list --output json | wc -l`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if _, err := by.filter(time.Now()); err != nil {
				return err
			}
			return at.with(cmd.Context(), func(b book) error {
				w := cmd.OutOrStdout()
				l := &lines{table: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
				var groups grouped
				for a, failed := range by.choose(cmd.Context(), b) {
					if err = failed; err != nil {
						break
					}
					switch l.n++; {
					case out.json():
						err = printLine(w, a)
					case each:
						err = l.row(a)
					default:
						groups.add(a)
					}
					if err != nil {
						break
					}
				}
				groups.print(l)
				if err := errors.Join(err, l.flush()); err != nil {
					return err
				}
				out.none(cmd, l.n, "there are none")
				return nil
			})
		},
	}
	at.flags(cmd)
	by.flags(cmd)
	out.flags(cmd)
	cmd.Flags().BoolVar(&each, "each", false, "every alert by itself, the latest first")
	return cmd
}

// grouped are alerts by their group.
type grouped struct {
	all []*groupRow
	by  map[string]*groupRow
}

// groupRow is a group: its latest alert, how many there are, how often they were found, and
// since when.
type groupRow struct {
	page.Summary
	alerts, found int
	since         int64
}

// add takes in an alert; later ones come first.
func (g *grouped) add(a page.Summary) {
	r := g.by[a.Group]
	if r == nil {
		r = &groupRow{Summary: a, since: a.FirstSeen}
		if g.by == nil {
			g.by = map[string]*groupRow{}
		}
		g.by[a.Group], g.all = r, append(g.all, r)
	}
	r.alerts, r.found = r.alerts+1, r.found+a.Count
	r.since, r.LastSeen = min(r.since, a.FirstSeen), max(r.LastSeen, a.LastSeen)
	if a.State != string(alerts.Resolved) && r.State == string(alerts.Resolved) {
		r.State = a.State
	}
	if fresh := string(alerts.Fresh); r.found > 1 && (r.State == fresh || a.State == fresh) {
		r.State = string(alerts.Ongoing)
	}
	if rank(a.Severity) > rank(r.Severity) {
		r.Severity = a.Severity
	}
}

// rank is a severity's, the least first.
func rank(s string) int { return slices.Index(name.Severities(), name.Severity(s)) }

// print writes a row for each: what is not over first, the worst, and of these the rarest.
func (g *grouped) print(l *lines) {
	slices.SortStableFunc(g.all, func(a, b *groupRow) int {
		if over := a.State == string(alerts.Resolved); over != (b.State == string(alerts.Resolved)) {
			if over {
				return 1
			}
			return -1
		}
		return cmp.Or(rank(b.Severity)-rank(a.Severity), a.alerts-b.alerts)
	})
	for _, r := range g.all {
		if r.Count = r.found; r.alerts > 1 {
			r.Summary.Summary = fmt.Sprintf("in %d alerts since %s; the latest: %s", r.alerts,
				time.Unix(0, r.since).Format(time.DateTime), r.Summary.Summary)
		}
		_ = l.row(r.Summary) // its table keeps the first failure
	}
}

func newAlertsStatus() *cobra.Command {
	var (
		out output
		at  shelf
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say how it stands with each promise: each level of each database",
		Long: `Says of each level of each database whether it holds, holds in part, is broken, was broken
earlier, or is not judged; since when; and how much was judged since. Of a store that no
monitor uses it is how it stood when the last one stopped. As JSON an object per line.

Exit status: 0, however it stands; 2 unusable flags, 4 store or monitor can't be read.`,
		Example: `  monitor alerts status
  monitor alerts status --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			return at.with(cmd.Context(), func(b book) error {
				all, err := b.Promises(cmd.Context())
				if err != nil {
					return err
				}
				return tell(cmd, &out, all, "no database has been judged", func(w io.Writer, p page.Promise) {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", brief(text.Name(p.DB), cellMax), p.Level,
						strings.ReplaceAll(string(p.Health), "-", " "), standing(p.Standing))
				})
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// tell writes all as lines of JSON, or as a table for people; none is what these are told where there are none.
func tell[T any](cmd *cobra.Command, out *output, all []T, none string, row func(io.Writer, T)) error {
	w := cmd.OutOrStdout()
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, x := range all {
		if !out.json() {
			row(table, x)
		} else if err := printLine(w, x); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return environment(err)
	}
	out.none(cmd, len(all), none)
	return nil
}

// standing is how a promise stands, in a sentence.
func standing(s life.Standing) string {
	at := func(t int64) string { return time.Unix(0, t).Format(time.DateTime) }
	switch s.Health {
	case life.Broken, life.BrokenEarlier:
		return fmt.Sprintf("%d alerts since %s, the last %s; judged since: %d of %d transactions, %v of %v", s.Alerts,
			at(s.Since), at(s.Last), s.Judged.Transactions, s.Enough.Transactions, s.Judged.Time.Round(time.Second),
			s.Enough.Time)
	case life.NotJudged:
		return ""
	}
	out := fmt.Sprintf("since %s, in %d transactions, up to %s", at(s.Since), s.Judged.Transactions, at(s.Until))
	if s.Last > 0 {
		out += fmt.Sprintf("; broken before, last %s, with %d alerts", at(s.Last), s.Alerts)
	}
	return out
}

// lines is a table of any length: its columns fit the rows that are flushed together.
type lines struct {
	table *tabwriter.Writer
	n     int
}

const flushedTogether = 500

func (l *lines) row(a page.Summary) error {
	fmt.Fprintf(l.table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d×\t%s\n", text.Printable(a.ID[:min(len(a.ID), 12)]),
		time.Unix(0, a.LastSeen).Format(time.DateTime), text.Printable(a.State), text.Printable(a.Severity),
		brief(text.Name(a.DB), cellMax), text.Printable(a.Level), text.Printable(a.Name), a.Count,
		brief(text.Printable(a.Summary), summaryMax))
	if l.n%flushedTogether == 0 {
		return l.flush()
	}
	return nil
}

func (l *lines) flush() error {
	if err := l.table.Flush(); err != nil {
		return environment(fmt.Errorf("write the list: %w", err))
	}
	return nil
}

// How many characters of a database's name and of a summary a table shows: one that is
// long would push all rows apart.
const (
	cellMax    = 24
	summaryMax = 100
)

// brief is the beginning of what is too long for a table.
func brief(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// printLine writes v on one line, as alerts are stored: without markup escapes.
func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return written(enc.Encode(v))
}

func newAlertsShow() *cobra.Command {
	var (
		at           shelf
		format, view string
	)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one: what happened, the proof, a picture",
		Long: `Shows one alert as text, as JSON, as a graph for Graphviz (dot), as a picture (svg), or as
a page to attach to a report (html). The id may be abbreviated.

Exit status: 0; 2 if there is no such alert or the id is too short, 4 store or monitor
can't be read.`,
		Example: `  monitor alerts show 3f9a1c
  monitor alerts show 3f9a1c --output svg --view timeline > anomaly.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			show, err := shower(format, view)
			if err != nil {
				return err
			}
			return at.with(cmd.Context(), func(b book) error {
				id, err := find(cmd.Context(), b, args[0])
				if err != nil {
					return err
				}
				a, err := b.Alert(cmd.Context(), id)
				if errors.Is(err, page.ErrNotFound) {
					return unusablef("alert %s was dropped just now (alerts.retain)", id)
				}
				if err != nil {
					return err
				}
				if err := show(cmd.OutOrStdout(), a); err != nil {
					return environment(fmt.Errorf("write the alert: %w", err))
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().StringVar(&format, "output", "text", "text, json, dot, svg or html")
	offer(cmd, "output", false, []string{"text", "json", "dot", "svg", "html"})
	cmd.Flags().StringVar(&view, "view", "cycle", "of svg: cycle, or timeline")
	return cmd
}

// shower shows an alert in a format.
func shower(format, view string) (func(io.Writer, alerts.Alert) error, error) {
	bytes := func(make func(alerts.Alert) []byte) func(io.Writer, alerts.Alert) error {
		return func(w io.Writer, a alerts.Alert) error {
			_, err := w.Write(make(a))
			return err
		}
	}
	if view != "cycle" && view != "timeline" {
		return nil, unusablef("--view: wants cycle or timeline, not %q", view)
	}
	switch format {
	case "text":
		return func(w io.Writer, a alerts.Alert) error {
			return present.Text(w, a, present.Options{Color: isColored(w),
				Command: "monitor alerts export --evidence . --id " + a.ID + " && monitor check --level %s " + a.EvidenceFile()})
		}, nil
	case "json":
		return bytes(func(a alerts.Alert) []byte { return append(a.JSON(), '\n') }), nil
	case "dot":
		return bytes(picture.Dot), nil
	case "svg":
		if view == "timeline" {
			return bytes(picture.Timeline), nil
		}
		return bytes(picture.Cycle), nil
	case "html":
		return func(w io.Writer, a alerts.Alert) error {
			return present.HTML(w, []alerts.Alert{a}, present.PageOptions{Title: a.Name + " in " + a.DB})
		}, nil
	}
	return nil, unusablef("--output: wants text, json, dot, svg or html, not %q", format)
}

func newAlertsExport() *cobra.Command {
	var (
		at       shelf
		by       choice
		evidence string
		ids      []string
		quiet    bool
	)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write whole alerts, or their evidence as files for check",
		Long: `Writes whole alerts to standard output, a JSON object per line, the latest first; or, with
--evidence, the evidence of each into a file of that folder, which monitor check judges
violated by itself.

Exit status: 0; 2 unusable flags, 4 store, monitor or folder can't be used.`,
		Example: `  monitor alerts export --state new > alerts.jsonl
  monitor alerts export --evidence evidence && monitor check --level si evidence`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if _, err := by.filter(time.Now()); err != nil {
				return err
			}
			return at.with(cmd.Context(), func(b book) error {
				write := func(a alerts.Alert) error { return printLine(cmd.OutOrStdout(), a) }
				if evidence != "" {
					if err := os.MkdirAll(evidence, 0o755); err != nil {
						return environment(err)
					}
					write = func(a alerts.Alert) error {
						return environment(os.WriteFile(filepath.Join(evidence, a.EvidenceFile()), a.EvidenceText(), 0o644))
					}
				}
				n := 0
				each := func(id string) error {
					a, err := b.Alert(cmd.Context(), id)
					if errors.Is(err, page.ErrNotFound) {
						return nil // dropped meanwhile
					}
					if err != nil {
						return err
					}
					if evidence != "" && len(a.Evidence) == 0 {
						fmt.Fprintf(cmd.ErrOrStderr(), "monitor: no evidence is kept of alert %s: it would be too large, as its "+
							"explanation says\n", text.Printable(a.ID))
						return nil
					}
					n++
					return write(a)
				}
				for _, given := range ids {
					id, err := find(cmd.Context(), b, given)
					if err == nil {
						err = each(id)
					}
					if err != nil {
						return err
					}
				}
				for a, err := range by.choose(cmd.Context(), b) {
					if len(ids) > 0 {
						break
					}
					if err == nil {
						err = each(a.ID)
					}
					if err != nil {
						return err
					}
				}
				if evidence != "" && !quiet {
					files := "1 file"
					if n != 1 {
						files = fmt.Sprintf("%d files", n)
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s in %s; monitor check --level … %s judges what is there\n", files,
						text.Printable(evidence), text.Printable(evidence))
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	by.flags(cmd)
	cmd.Flags().StringVar(&evidence, "evidence", "", "write only the evidence, as files of this `folder`")
	cmd.Flags().StringArrayVar(&ids, "id", nil, "only the alert of this `id`, which may be abbreviated; may be repeated")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "nothing but the result")
	return cmd
}
