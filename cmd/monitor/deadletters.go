package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

func newDeadLetters() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "Look at the records that could not be used",
		Long: `Records that can't be decoded or contradict themselves are set aside in the store of
run, with the reason. A store has one user at a time: stop the monitor first, or look at
isowatch_rejected_total in its /metrics.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newDeadLettersList(), newDeadLettersShow())
	return cmd
}

// storePath adds --store.
func storePath(cmd *cobra.Command) *string {
	return cmd.Flags().String("store", config.Default().Store.Path, "the `folder` of the store, store.path of the configuration")
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

// deadLetter is the JSON of a dead letter.
type deadLetter struct {
	ID        uint64 `json:"id"`
	Source    string `json:"source"`
	Partition *int   `json:"partition,omitempty"` // of a topic
	Offset    int64  `json:"offset"`
	Line      int64  `json:"line,omitempty"` // of a file
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
	Time      string `json:"time"`
	Size      int    `json:"size"` // of the record in bytes; value may be cut
	Value     string `json:"value,omitempty"`
	Bytes     []byte `json:"bytes,omitempty"` // instead of value, in base64, if it is not UTF-8
}

func newDeadLetter(d store.DeadLetter, value bool) deadLetter {
	out := deadLetter{ID: d.ID, Source: d.Pos.Source, Offset: d.Pos.Offset, Line: d.Pos.Line, Reason: d.Reason, Detail: d.Detail,
		Time: time.Unix(0, d.Time).UTC().Format(time.RFC3339Nano), Size: d.Size}
	if d.Pos.Kafka {
		out.Partition = &d.Pos.Partition
	}
	switch {
	case !value:
	case utf8.Valid(d.Value):
		out.Value = string(d.Value)
	default:
		out.Bytes = d.Value
	}
	return out
}

func newDeadLettersList() *cobra.Command {
	var (
		out    output
		path   *string
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
			st, err := openStore(*path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, st.Close()) }()
			w := cmd.OutOrStdout()
			table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			n := 0
			var failed error
			err = st.DeadLetters(cmd.Context(), func(d store.DeadLetter) bool {
				if reason != "" && d.Reason != reason {
					return true
				}
				n++
				if out.json() {
					failed = printJSON(w, newDeadLetter(d, false))
				} else {
					_, failed = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", d.ID, time.Unix(0, d.Time).Format(time.DateTime), text.Printable(d.Pos.String()), d.Reason, text.Printable(d.Detail))
				}
				return failed == nil && (limit == 0 || n < limit)
			})
			if err := errors.Join(err, failed, table.Flush()); err != nil {
				return environment(err)
			}
			if n == 0 && !out.quiet && !out.json() {
				fmt.Fprintln(cmd.ErrOrStderr(), "monitor: there are none")
			}
			return nil
		},
	}
	path = storePath(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "only those of this `reason`")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0: all")
	out.flags(cmd)
	return cmd
}

func newDeadLettersShow() *cobra.Command {
	var (
		out  output
		path *string
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
			st, err := openStore(*path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, st.Close()) }()
			var found *store.DeadLetter
			err = st.DeadLetters(cmd.Context(), func(d store.DeadLetter) bool {
				if d.ID == id {
					found = &d
				}
				return d.ID < id
			})
			if err != nil {
				return environment(err)
			}
			if found == nil {
				return unusablef("there is no dead letter %d in %s; dead-letters list shows them", id, *path)
			}
			w := cmd.OutOrStdout()
			if out.json() {
				return printJSON(w, newDeadLetter(*found, true))
			}
			fmt.Fprintf(w, "%s: %s (%s)\nset aside %s, %d bytes", text.Printable(found.Pos.String()), text.Printable(found.Detail), found.Reason,
				time.Unix(0, found.Time).Format(time.DateTime), found.Size)
			if len(found.Value) < found.Size {
				fmt.Fprintf(w, ", the first %d kept", len(found.Value))
			}
			fmt.Fprintf(w, "\n\n%s\n", shown(found.Value))
			return nil
		},
	}
	path = storePath(cmd)
	out.flags(cmd)
	return cmd
}

// shown makes bytes fit for a terminal: as they are where they are text, quoted
// otherwise.
func shown(b []byte) string {
	if utf8.Valid(b) {
		return text.Printable(string(b))
	}
	return strconv.QuoteToASCII(string(b))
}
