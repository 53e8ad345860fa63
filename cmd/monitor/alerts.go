package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

func newAlerts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Look at what was found, silence it, tell of events, try the receivers",
		Long: `The alerts of run, from its store, or, while a monitor uses the store, from that
monitor, over HTTP: the store's folder says where it is, or --url does. If it wants a
token, it is taken from http.token_file of the configuration or from ISOWATCH_TOKEN.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newAlertsStatus(), newAlertsList(), newAlertsShow(), newAlertsExport(), newAlertsSilence(),
		newAlertsEvent(), newAlertsTest())
	return cmd
}

// book is where alerts and dead letters are: a store, or a monitor that uses it.
type book interface {
	// Alerts are some of those that a filter lets through, the latest first.
	Alerts(ctx context.Context, f page.Filter) (page.List, error)
	Alert(ctx context.Context, id string) (alerts.Alert, error)
	// Promises are how it stands with each level of each database.
	Promises(ctx context.Context) ([]page.Promise, error)
	Silences(ctx context.Context) ([]life.Silence, error)
	Silence(ctx context.Context, s life.Silence) (life.Silence, error)
	Expire(ctx context.Context, id string) error
	Happen(ctx context.Context, e record.Event) error
	// DeadLetters are those of a reason, or all, from an ID on: some of them, the oldest first.
	DeadLetters(ctx context.Context, reason string, from uint64) (page.DeadLetters, error)
	// DeadLetter is one with its bytes; page.ErrNotFound if there is none.
	DeadLetter(ctx context.Context, id uint64) (page.DeadLetter, error)
	Close() error
}

// shelf says where the book is.
type shelf struct {
	config, store, url string
	ca, cert, key      string
}

func (s *shelf) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.config, "config", "c", "", "YAML `file` of run, which says where store and monitor are")
	f.StringVar(&s.store, "store", "", "the `folder` of the store (default: store.path of the configuration)")
	f.StringVar(&s.url, "url", "", "ask the monitor at this `address`, such as http://127.0.0.1:8080, and do not look "+
		"for a store")
	f.StringVar(&s.ca, "tls-ca", "", "PEM `file` of authorities to trust when a monitor is asked over TLS (default: the "+
		"system's)")
	f.StringVar(&s.cert, "tls-cert", "", "PEM `file` of a client certificate to show to a monitor")
	f.StringVar(&s.key, "tls-key", "", "PEM `file` of its key")
}

// open opens the store, or finds the monitor that has it.
func (s *shelf) open(ctx context.Context) (book, error) {
	c := config.Default()
	if s.config != "" {
		l, err := config.Load(config.Sources{File: s.config, Env: os.Environ(), HTTPOnly: true})
		if err != nil {
			return nil, unusable(err)
		}
		c = l.Config
	}
	if s.url != "" {
		return newRemote(s, c, s.url, false)
	}
	path := c.Store.Path
	if s.store != "" {
		path = s.store
	}
	if _, err := os.Stat(path); err != nil {
		return nil, unusablef("%w; name the store with --store, its configuration with --config, or the address of a "+
			"monitor with --url", err)
	}
	if err := storeAt(path); err != nil {
		return nil, err
	}
	// Who says in the folder where it can be asked has the store for long.
	st, err := store.Open(store.Options{Path: path, AtOnce: app.Address(path) != ""})
	switch {
	case errors.Is(err, store.ErrLocked):
		return s.running(c, path, err)
	case err != nil:
		return nil, storeFailure(err)
	}
	stored, err := app.ReadStored(ctx, st, time.Now())
	if err != nil {
		return nil, storeFailure(errors.Join(err, st.Close()))
	}
	if stored.Damaged != nil {
		fmt.Fprintf(os.Stderr, "monitor: %v: the alerts are shown as they were found, without what is over or silenced\n",
			stored.Damaged)
	}
	return stored, nil
}

// running is the monitor that has the store at path, in which case opening gave locked.
// The store's folder says where it is; if not, its configuration may. Without either, what
// is at the default address may well be another monitor.
func (s *shelf) running(c *config.Config, path string, locked error) (book, error) {
	at, from := app.Address(path), "what the store's folder says"
	if at == "" && s.config != "" {
		at, from = own(c), "http.listen"
	}
	if at == "" {
		return nil, environment(fmt.Errorf("%w; or name the address of its monitor with --url; or, if it has none "+
			"(http.listen), copy the store while it runs (cp -r) and give the copy with --store", locked))
	}
	r, err := newRemote(s, c, at, true)
	if err != nil {
		return nil, err
	}
	r.why = fmt.Sprintf("the store %s is in use, and the monitor that has it was expected at %s (%s); name it with "+
		"--url, or its configuration with --config", path, at, from)
	return r, nil
}

// choice are the flags that choose alerts.
type choice struct {
	db, level, name, state, severity, since string
	limit                                   int
}

func (c *choice) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.db, "db", "", "only of this `database`")
	f.StringVar(&c.level, "level", "", "only those that break this `level`; other tools' names will do")
	f.StringVar(&c.name, "name", "", "only of this `name`, Isowatch's or another's, such as P4 or G-single*")
	f.StringVar(&c.state, "state", "", "only of this `state`: new, ongoing, resolved or suspected")
	f.StringVar(&c.severity, "severity", "", "only of this `severity`: critical, error, warning or info")
	f.StringVar(&c.since, "since", "", "only what was found since then: a `time` such as 2026-01-31T12:00:00Z, or 24h ago")
	f.IntVar(&c.limit, "limit", 0, "at most so many; 0: all")
}

// The words of --state and --severity.
var (
	states     = []string{string(alerts.Fresh), string(alerts.Ongoing), string(alerts.Resolved), string(alerts.Suspected)}
	severities = []string{"critical", "error", "warning", "info"}
)

// filter checks the flags.
func (c *choice) filter(now time.Time) (page.Filter, error) {
	f := page.Filter{DB: c.db, State: c.state, Severity: c.severity, Name: c.name}
	if c.limit < 0 {
		return f, unusablef("--limit: must not be negative")
	}
	if c.level != "" {
		l, err := verdict.FindLevel(c.level)
		if err != nil {
			return f, unusablef("--level: %w", err)
		}
		f.Level = l.String()
	}
	if c.name != "" && !name.Known(c.name) && !strings.HasPrefix(c.name, "operational/") {
		return f, unusablef("--name: no anomaly is called %q; known are %s, and the names that others have for them", c.name,
			strings.Join(name.Names(), ", "))
	}
	if c.state != "" && !slices.Contains(states, c.state) {
		return f, unusablef("--state: wants new, ongoing, resolved or suspected, not %q", c.state)
	}
	if c.severity != "" && !slices.Contains(severities, c.severity) {
		return f, unusablef("--severity: wants critical, error, warning or info, not %q", c.severity)
	}
	if c.since != "" {
		at, err := moment(c.since, now)
		if err != nil {
			return f, unusablef("--since: %w", err)
		}
		f.Since = at.UnixNano()
	}
	return f, nil
}

// moment reads a time, a date, or how long ago.
func moment(s string, now time.Time) (time.Time, error) {
	if d, err := config.ParseDuration(s); err == nil {
		return now.Add(-max(d, -d)), nil
	}
	if at, ok := timeOf(s); ok {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("wants a time such as 2026-01-31T12:00:00Z, a date, or how long ago such as 24h, not %q", s)
}

// timeOf reads a time, or a date.
func timeOf(s string) (at time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return at, true
		}
	}
	return at, false
}

// everyAlert are the alerts that a filter lets through, the latest first; an error is the last.
func everyAlert(ctx context.Context, b book, f page.Filter) iter.Seq2[page.Summary, error] {
	return func(yield func(page.Summary, error) bool) {
		for f.Limit = page.LimitMax; ; {
			some, err := b.Alerts(ctx, f)
			if err == nil && some.Next != 0 && some.Next == f.After {
				err = environment(errors.New("the same page of alerts comes again and again"))
			}
			for _, a := range some.Alerts {
				if !yield(a, nil) {
					return
				}
			}
			if err != nil {
				yield(page.Summary{}, err)
			}
			if f.After = some.Next; err != nil || f.After == 0 {
				return
			}
		}
	}
}

// choose are those that the flags choose, likewise.
func (c *choice) choose(ctx context.Context, b book) iter.Seq2[page.Summary, error] {
	return func(yield func(page.Summary, error) bool) {
		f, err := c.filter(time.Now())
		if err != nil {
			yield(page.Summary{}, err)
			return
		}
		n := 0
		for a, err := range everyAlert(ctx, b, f) {
			if n++; !yield(a, err) || n == c.limit {
				return
			}
		}
	}
}

// find gives the whole id that an abbreviated one means.
func find(ctx context.Context, b book, given string) (string, error) {
	if given == "" {
		return "", unusablef("an id is needed; monitor alerts list shows them")
	}
	if _, err := b.Alert(ctx, given); err == nil {
		return given, nil
	} else if !errors.Is(err, page.ErrNotFound) {
		return "", err
	}
	var found []string
	for a, err := range everyAlert(ctx, b, page.Filter{Text: given}) {
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(a.ID, given) {
			found = append(found, a.ID)
		}
		if len(found) > meantMost {
			break
		}
	}
	return meant(given, found, "alert", "monitor alerts list")
}

// meantMost is how many ids are told that an abbreviated one may mean.
const meantMost = 5

// meant is the id of a thing that an abbreviated one means, of those that begin so.
func meant(given string, found []string, thing, list string) (string, error) {
	switch {
	case len(found) == 0:
		return "", unusablef("there is no %s %q; %s shows all", thing, given, list)
	case len(found) > meantMost:
		return "", unusablef("%q may be %s and more; give more of the id", given, strings.Join(found[:meantMost], ", "))
	case len(found) > 1:
		return "", unusablef("%q may be %s; give more of the id", given, strings.Join(found, " or "))
	}
	return found[0], nil
}

// with has f use what there is: the store, or the monitor that has it. What the store can't do has its exit status then.
func (s *shelf) with(ctx context.Context, f func(book) error) error {
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	err = f(b)
	var invalid *page.Invalid
	switch {
	case errors.As(err, &invalid):
		err = unusable(err)
	case err != nil && !errors.Is(err, page.ErrNotFound):
		err = storeFailure(err)
	}
	return errors.Join(err, b.Close())
}
