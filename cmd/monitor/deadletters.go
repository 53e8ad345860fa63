package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/window/store"
)

func newDeadLetters() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "Look at the records that could not be used",
		Long: `Records that can't be decoded or contradict themselves are set aside in the store of
run, with the reason. While a monitor uses the store they are asked of that monitor, as
monitor alerts does: the store's folder says where it is, or --url does. If it wants a
token, it is taken from http.token_file of the configuration or from ISOWATCH_TOKEN. A
monitor that hides values (alerts.values) tells reasons and places only.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newDeadLettersList(), newDeadLettersShow())
	return cmd
}

// openStore opens a store that is there already.
func openStore(path string) (*store.Badger, error) {
	if err := storeAt(path); err != nil {
		return nil, err
	}
	st, err := store.Open(store.Options{Path: path})
	if err != nil {
		return nil, storeFailure(err)
	}
	return st, nil
}

// storeAt keeps a store from being made where none is.
func storeAt(path string) error {
	switch err := store.Exists(path); {
	case errors.Is(err, fs.ErrNotExist):
		return unusable(err)
	case err != nil:
		return storeFailure(err)
	}
	return nil
}

// lettersPath is where the API has dead letters.
const lettersPath = "/api/v1/dead-letters"

func (r *remote) DeadLetters(ctx context.Context, reason string, from uint64) (some page.DeadLetters, err error) {
	q := url.Values{"from": {strconv.FormatUint(from, 10)}}
	if reason != "" {
		q.Set("reason", reason)
	}
	err = r.ask(ctx, http.MethodGet, lettersPath, q, nil, &some)
	switch {
	case errors.Is(err, page.ErrNotFound):
		err = fmt.Errorf("%s: this monitor does not show dead letters, being of another version; stop it and read its store",
			r.base.Redacted())
	case err == nil && some.Next != 0 && some.Next <= from:
		err = fmt.Errorf("%s: it gives the same page again and again", r.base.Redacted())
	default:
		return some, err
	}
	return some, environment(err)
}

func (r *remote) DeadLetter(ctx context.Context, id uint64) (d page.DeadLetter, err error) {
	err = r.ask(ctx, http.MethodGet, lettersPath+"/"+strconv.FormatUint(id, 10), nil, nil, &d)
	return d, err
}

// everyLetter are dead letters, the oldest first; an error is the last.
func everyLetter(ctx context.Context, all book, reason string) iter.Seq2[page.DeadLetter, error] {
	return func(yield func(page.DeadLetter, error) bool) {
		for from, more := uint64(0), true; more; {
			some, err := all.DeadLetters(ctx, reason, from)
			for _, d := range some.DeadLetters {
				if !yield(d, nil) {
					return
				}
			}
			if from, more = some.Next, some.Next != 0 && err == nil; err != nil {
				yield(page.DeadLetter{}, environment(err))
			}
		}
	}
}

func newDeadLettersList() *cobra.Command {
	var (
		out    output
		at     shelf
		reason string
		limit  int
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List them, oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd.Context(), func(b book) error {
				w := cmd.OutOrStdout()
				table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
				n := 0
				for d, err := range everyLetter(cmd.Context(), b, reason) {
					if err == nil && out.json() {
						err = printJSON(w, d)
					} else if err == nil {
						_, err = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", d.ID, atHome(d.Time), text.Printable(d.Place()),
							text.Printable(d.Reason), text.Printable(d.Detail))
					}
					if err != nil {
						return environment(err)
					}
					if n++; n == limit {
						break
					}
				}
				if err := table.Flush(); err != nil {
					return environment(err)
				}
				out.none(cmd, n, "there are none")
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "only those of this `reason`")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0: all")
	out.flags(cmd)
	return cmd
}

func newDeadLettersShow() *cobra.Command {
	var (
		out output
		at  shelf
	)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one with its bytes",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return unusablef("%q is no number of a dead letter; dead-letters list shows them", args[0])
			}
			return at.with(cmd.Context(), func(b book) error {
				found, err := b.DeadLetter(cmd.Context(), id)
				if errors.Is(err, page.ErrNotFound) {
					return unusablef("there is no dead letter %d; dead-letters list shows them", id)
				}
				if err != nil {
					return environment(err)
				}
				w := cmd.OutOrStdout()
				if out.json() {
					return printJSON(w, found)
				}
				value := found.Bytes
				if value == nil {
					value = []byte(found.Value)
				}
				fmt.Fprintf(w, "%s: %s (%s)\nset aside %s, %d bytes", text.Printable(found.Place()), text.Printable(found.Detail),
					text.Printable(found.Reason), atHome(found.Time), found.Size)
				if len(value) < found.Size {
					fmt.Fprintf(w, ", the first %d kept", len(value))
				}
				fmt.Fprintf(w, "\n\n%s\n", shown(value))
				return nil
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// atHome is a time of the API as people here read it.
func atHome(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return text.Printable(stamp)
	}
	return t.Local().Format(time.DateTime)
}

// shown makes bytes fit for a terminal: as they are where they are text, quoted
// otherwise.
func shown(b []byte) string {
	if utf8.Valid(b) {
		return text.Printable(string(b))
	}
	return strconv.QuoteToASCII(string(b))
}
