package main

import (
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/config"
)

func newAlertsSilence() *cobra.Command {
	var (
		out   output
		at    shelf
		s     life.Silence
		until string
		last  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "silence",
		Short: "Keep what is known from the receivers for a while",
		Long: `Keeps what matches from the receivers until it ends. What it keeps is counted, and is in
the list as ever. Patterns may have * for any text and ? for one character. If no monitor
runs, the silence is stored and holds from the next start on.

Exit status: 0; 2 unusable flags, 4 store or monitor can't be used.`,
		Example: `  monitor alerts silence --db orders --name lost-update --for 4h --comment "OPS-112, fix on its way"
  monitor alerts silence list
  monitor alerts silence expire 3f9a1c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Until, err = ends(until, last, time.Now()); err != nil {
				return err
			}
			if s.DB == "" && s.Level == "" && s.Name == "" && s.Key == "" {
				return unusablef("give --db, --level, --name or --key; --db '*' silences everything")
			}
			if s.By == "" {
				if u, err := user.Current(); err == nil {
					s.By = u.Username
				}
			}
			return at.with(cmd.Context(), func(b book) error {
				made, err := b.Silence(cmd.Context(), s)
				if err != nil {
					return err
				}
				if out.json() {
					return printLine(cmd.OutOrStdout(), made)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s until %s; monitor alerts silence expire %s ends it\n", made.ID,
					time.Unix(0, made.Until).Format(time.DateTime), made.ID[:min(len(made.ID), 12)])
				return environment(err)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.DB, "db", "", "what is of this `database`")
	f.StringVar(&s.Level, "level", "", "what is of this `level`")
	f.StringVar(&s.Name, "name", "", "what has this `name`, Isowatch's or another's")
	f.StringVar(&s.Key, "key", "", "what concerns this `key`")
	durationVar(f, &last, "for", 0, "how long it holds, such as 4h")
	f.StringVar(&until, "until", "", "the `time` until which it holds instead, such as 2026-01-31T12:00:00Z")
	f.StringVar(&s.Comment, "comment", "", "`why`")
	f.StringVar(&s.By, "by", "", "`who` silences it (default: the user's name)")
	at.flags(cmd)
	out.flags(cmd)
	cmd.AddCommand(newSilenceList(), newSilenceExpire())
	return cmd
}

// ends is when a silence does.
func ends(until string, last time.Duration, now time.Time) (int64, error) {
	switch {
	case (until == "") == (last == 0):
		return 0, unusablef("give --for, such as 4h, or --until")
	case last < 0:
		return 0, unusablef("--for: must not be negative")
	case last > 0:
		return now.Add(last).UnixNano(), nil
	}
	switch at, ok := timeOf(until); {
	case !ok:
		return 0, unusablef("--until: wants a time such as 2026-01-31T12:00:00Z, not %q", until)
	case at.Sub(now) > config.DurationMax:
		return 0, unusablef("--until: wants a time within 20 years, not %s", until)
	default:
		return at.UnixNano(), nil
	}
}

func newSilenceList() *cobra.Command {
	var (
		out output
		at  shelf
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the silences that hold",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			return at.with(cmd.Context(), func(b book) error {
				all, err := b.Silences(cmd.Context())
				if err != nil {
					return err
				}
				return tell(cmd, &out, all, "there are none", func(w io.Writer, s life.Silence) {
					until := "for ever"
					if s.Until != 0 {
						until = time.Unix(0, s.Until).Format(time.DateTime)
					}
					fmt.Fprintf(w, "%s\t%s\tdb %s\tlevel %s\tname %s\tkey %s\t%s\t%s\n", text.Printable(s.ID[:min(len(s.ID), 12)]),
						until, pattern(s.DB),
						pattern(s.Level), pattern(s.Name), pattern(s.Key), text.Printable(s.By),
						brief(text.Printable(s.Comment), summaryMax))
				})
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// pattern is a pattern; * if everything matches.
func pattern(p string) string {
	if p == "" {
		return "*"
	}
	return text.Name(p)
}

func newSilenceExpire() *cobra.Command {
	var (
		at    shelf
		quiet bool
	)
	cmd := &cobra.Command{
		Use:   "expire ID",
		Short: "End a silence now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			return at.with(cmd.Context(), func(b book) error {
				all, err := b.Silences(cmd.Context())
				if err != nil {
					return err
				}
				id, err := oneOf(all, args[0])
				if err != nil {
					return err
				}
				if err := b.Expire(cmd.Context(), id); err != nil {
					if errors.Is(err, page.ErrNotFound) {
						return unusablef("there is no silence %q; monitor alerts silence list shows all", args[0])
					}
					return err
				}
				if !quiet {
					fmt.Fprintf(cmd.ErrOrStderr(), "monitor: silence %s has ended\n", id)
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "nothing but the result")
	return cmd
}

// oneOf is the id of the silence that an abbreviated one means.
func oneOf(all []life.Silence, given string) (string, error) {
	var found []string
	for _, s := range all {
		if s.ID == given {
			return given, nil
		}
		if given != "" && strings.HasPrefix(s.ID, given) {
			found = append(found, s.ID)
		}
	}
	return meant(given, found, "silence", "monitor alerts silence list")
}
