package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/app"
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
	if err := thereIs("--store", path); err != nil {
		return nil, err
	}
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

// thereIs looks for what a flag or an argument names.
func thereIs(named, path string) error {
	if _, err := os.Stat(path); err != nil {
		return unusablef("%s: %w", named, err)
	}
	return nil
}

// letters are where dead letters are: a store, or a monitor that uses it.
type letters interface {
	// DeadLetters calls each for those of a reason, or for all, the oldest first, until it returns an error.
	DeadLetters(ctx context.Context, reason string, each func(app.DeadLetter) error) error
	// DeadLetter is one with its bytes; page.ErrNotFound if there is none.
	DeadLetter(ctx context.Context, id uint64) (app.DeadLetter, error)
	Close() error
}

// letters opens them.
func (s *shelf) letters() (letters, error) {
	st, at, err := s.find()
	switch {
	case err != nil:
		return nil, err
	case at != nil:
		return at, nil
	}
	return localLetters{st}, nil
}

// localLetters are those of a store that no monitor uses.
type localLetters struct{ *store.Badger }

func (l localLetters) DeadLetters(ctx context.Context, reason string, each func(app.DeadLetter) error) error {
	var own error
	err := l.Badger.DeadLetters(ctx, func(d store.DeadLetter) bool {
		if reason == "" || d.Reason == reason {
			own = each(app.NewDeadLetter(d, false))
		}
		return own == nil
	})
	if own != nil || err == nil {
		return own
	}
	return environment(err)
}

func (l localLetters) DeadLetter(ctx context.Context, id uint64) (app.DeadLetter, error) {
	found, err := app.FindDeadLetter(func(f func(store.DeadLetter) bool) error { return l.Badger.DeadLetters(ctx, f) }, id)
	switch {
	case err != nil:
		return app.DeadLetter{}, environment(err)
	case found == nil:
		return app.DeadLetter{}, page.ErrNotFound
	}
	return app.NewDeadLetter(*found, true), nil
}

func (r *remote) DeadLetters(ctx context.Context, reason string, each func(app.DeadLetter) error) error {
	q := url.Values{}
	if reason != "" {
		q.Set("reason", reason)
	}
	for from := uint64(0); ; {
		var some app.DeadLetters
		if err := r.ask(ctx, http.MethodGet, app.LettersPath, q, nil, &some); err != nil {
			if errors.Is(err, page.ErrNotFound) {
				return environment(fmt.Errorf("%s: this monitor does not show dead letters, being of another version; stop it and read its store", r.base.Redacted()))
			}
			return err
		}
		for _, d := range some.DeadLetters {
			if err := each(d); err != nil {
				return err
			}
		}
		if some.Next == 0 {
			return nil
		}
		if some.Next <= from {
			return environment(fmt.Errorf("%s: it gives the same page again and again", r.base.Redacted()))
		}
		from = some.Next
		q.Set("from", strconv.FormatUint(from, 10))
	}
}

func (r *remote) DeadLetter(ctx context.Context, id uint64) (d app.DeadLetter, err error) {
	err = r.ask(ctx, http.MethodGet, app.LettersPath+"/"+strconv.FormatUint(id, 10), nil, nil, &d)
	return d, err
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
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := out.check(); err != nil {
				return err
			}
			all, err := at.letters()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, all.Close()) }()
			w := cmd.OutOrStdout()
			table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			n := 0
			err = all.DeadLetters(cmd.Context(), reason, func(d app.DeadLetter) (err error) {
				n++
				if out.json() {
					err = printJSON(w, d)
				} else if _, err = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", d.ID, atHome(d.Time), text.Printable(d.Place()), text.Printable(d.Reason), text.Printable(d.Detail)); err != nil {
					err = environment(err)
				}
				if err == nil && n == limit {
					err = errEnough
				}
				return err
			})
			if err != nil && !errors.Is(err, errEnough) {
				return err
			}
			if err := table.Flush(); err != nil {
				return environment(err)
			}
			if n == 0 && !out.quiet && !out.json() {
				fmt.Fprintln(cmd.ErrOrStderr(), "monitor: there are none")
			}
			return nil
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
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := out.check(); err != nil {
				return err
			}
			id, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return unusablef("%q is no number of a dead letter; dead-letters list shows them", args[0])
			}
			all, err := at.letters()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, all.Close()) }()
			found, err := all.DeadLetter(cmd.Context(), id)
			if errors.Is(err, page.ErrNotFound) {
				return unusablef("there is no dead letter %d; dead-letters list shows them", id)
			}
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if out.json() {
				return printJSON(w, found)
			}
			value := found.Bytes
			if value == nil {
				value = []byte(found.Value)
			}
			fmt.Fprintf(w, "%s: %s (%s)\nset aside %s, %d bytes", text.Printable(found.Place()), text.Printable(found.Detail), text.Printable(found.Reason), atHome(found.Time), found.Size)
			if len(value) < found.Size {
				fmt.Fprintf(w, ", the first %d kept", len(value))
			}
			fmt.Fprintf(w, "\n\n%s\n", shown(value))
			return nil
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
