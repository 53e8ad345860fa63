package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// RunOptions are what Run needs.
type RunOptions struct {
	// Config is valid. What it says of the initial state, repeated values and skew is replaced by what is true of the
	// records.
	Config   *config.Config
	Listen   string
	Upstream string // an address, as libpq has it
	// Cert and Key are PEM files of what is shown to clients who ask for TLS; empty: they are told that there is none.
	Cert, Key string
	// Unique: nobody writes to a column of a row what somebody else wrote to it.
	Unique   bool
	Duration time.Duration // 0: only ctx ends it
	// Explain tells of each statement that is not understood when it comes first, and what follows.
	Explain bool

	embedded.Output
}

// Run passes connections on and judges what is recorded, until ctx or the duration ends it. The error is a
// *target.Error where an option can't be used, else what the monitor's Run returns.
func Run(ctx context.Context, o RunOptions) (*embedded.Outcome, error) {
	node, upstream, err := target.PostgresAt("--upstream", o.Upstream)
	if err != nil {
		return nil, err
	}
	secure, err := certificate(o.Cert, o.Key)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, &target.Error{Option: "--listen", What: "applications can't connect here", Err: err,
			Do: "use another address"}
	}
	defer l.Close()
	c := *o.Config
	complete := c.Coverage == record.CoverageComplete
	c.UniqueValues, c.UniqueAttempts, c.Window.MaxSkew, c.Alerts.Stdout = o.Unique, false, 0, true
	c.Source.Mapping = nil // the records are its own
	if c.Initial = record.InitialAny; complete {
		c.Initial = record.InitialAbsent
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.Duration > 0 {
		ctx, stop = context.WithTimeout(ctx, o.Duration)
		defer stop()
	}
	var standing atomic.Pointer[Proxy]
	var m *embedded.Monitor
	gone := func() app.Proxy {
		if p := standing.Load(); p != nil {
			return shown(m, p)
		}
		return app.Proxy{}
	}
	m, err = embedded.New(embedded.Options{Config: &c, DB: upstream.Database, UntilEnd: o.Duration > 0, Proxy: gone,
		Output: o.Output}, stop)
	if err != nil {
		return nil, err
	}
	m.Run(ctx)
	work := func() error {
		_, prefix := m.Prefix()
		capture, err := postgres.New(ctx, m.Recorder,
			postgres.Options{Complete: complete, Prefix: prefix, Load: pgxtap.Load(upstream),
				Failed: func(err error) { o.Log.Error().Err(err).Msg("recording is in trouble") }})
		if err != nil {
			return target.PostgresFailure(node, err)
		}
		p := New(Options{Upstream: &upstream.Config, TLS: secure, Capture: capture, Log: o.Log})
		standing.Store(p)
		introduce(m, l, upstream, capture, complete, o.Unique)
		var saying sync.WaitGroup
		saying.Go(func() { m.Report(ctx, func() []string { return []string{status(m, p)} }) })
		told := map[postgres.Unclear]bool{}
		if o.Explain {
			saying.Go(func() {
				for wait.Sleep(ctx, explainEvery) == nil {
					m.Say(explained(capture, complete, told)...)
				}
			})
		}
		err = p.Serve(ctx, l)
		stop()
		saying.Wait()
		if o.Explain {
			m.Say(explained(capture, complete, told)...)
		}
		m.Say(append([]string{status(m, p)}, unclear(capture)...)...)
		return err
	}
	err = work()
	stop()
	if err = errors.Join(err, m.Close(ctx)); err != nil {
		return nil, err
	}
	return m.Outcome(upstream.Host), nil
}

// certificate is how TLS with clients begins; nil without files. They are read for each connection, so that a new
// certificate needs no restart.
func certificate(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	read := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	if _, err := read(nil); err != nil {
		return nil, &target.Error{Option: "--tls-cert, --tls-key", What: "they are no certificate and its key", Err: err,
			Do: "name two PEM files"}
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: read}, nil
}

// introduce says what is recorded, and what that is worth.
func introduce(m *embedded.Monitor, l net.Listener, upstream *pgx.ConnConfig, capture *postgres.Capture, complete,
	unique bool) {
	recorded, others := capture.Catalog().Tables()
	text := fmt.Sprintf("%s passes on to %s:%d, database %s\n  rows of %d tables are recorded, by their primary keys",
		l.Addr(), upstream.Host, upstream.Port, upstream.Database, recorded)
	for _, t := range slices.Sorted(maps.Keys(others)) {
		text += fmt.Sprintf("\n  not of %s: %s", t, others[t])
	}
	switch {
	case complete:
		text += "\n  coverage is complete: all that writes these tables is taken to come through here"
	case unique:
		text += "\n  coverage is partial, and values are taken to be unique"
	default:
		text += "\n  coverage is partial: of others' writes nothing is known, so that only what contradicts itself within " +
			"a transaction is found; if all that\n" +
			"  writes comes through here, say --coverage complete"
	}
	m.Introduce(text)
}

// status says how it goes.
func status(m *embedded.Monitor, p *Proxy) string {
	c := p.Capture
	text := fmt.Sprintf("%d connections; %s committed, %s aborted, %s unknown; %s", p.Connections(),
		humanize.Comma(c.Outcomes(record.Committed)),
		humanize.Comma(c.Outcomes(record.Aborted)), humanize.Comma(c.Outcomes(record.Unknown)), m.Result())
	if c.Blind() {
		text += "; nothing is recorded any more, as a statement may have written anything"
	}
	return text
}

// explainEvery is how often it is looked for statements that are not understood.
const explainEvery = time.Second

// explained says of statements that were not understood what follows, once each.
func explained(c *postgres.Capture, complete bool, told map[postgres.Unclear]bool) (out []string) {
	for _, u := range c.Unclear() {
		if told[u.Unclear] {
			continue
		}
		told[u.Unclear] = true
		follows := "what it wrote is not recorded"
		if complete {
			follows = map[postgres.Reason]string{
				postgres.ReasonAnything: "from here on nothing is recorded",
				postgres.ReasonRows:     "from here on nothing is recorded of the columns that it writes, in the whole table",
				postgres.ReasonValue:    "from here on nothing is recorded of the columns that it writes, in these rows",
			}[u.Reason]
		}
		out = append(out, fmt.Sprintf("%s: %s: %s", u.Reason, u.Text, follows))
	}
	return out
}

// shown is what the metrics have of a proxy.
func shown(m *embedded.Monitor, p *Proxy) app.Proxy {
	out := app.Proxy{Connections: int(p.Connections()), Transactions: map[string]int64{}, Dropped: m.Dropped(),
		Blind: p.Capture.Blind()}
	for _, s := range []record.Status{record.Committed, record.Aborted, record.Unknown} {
		out.Transactions[s.String()] = p.Capture.Outcomes(s)
	}
	for _, u := range p.Capture.Unclear() {
		out.Unclear = append(out.Unclear, app.Unclear{Reason: string(u.Reason), Statement: u.Text, Count: u.Count})
	}
	return out
}

// unclearShown is how many statements are shown that were not understood.
const unclearShown = 20

// unclear lists what was not understood.
func unclear(c *postgres.Capture) []string {
	var out []string
	for i, u := range c.Unclear() {
		if i == unclearShown {
			return append(out, "…")
		}
		out = append(out, fmt.Sprintf("%s × %s: %s", humanize.Comma(u.Count), u.Reason, u.Text))
	}
	return out
}
