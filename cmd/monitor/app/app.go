package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/file"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/window/store"
)

// Options say what an App does.
type Options struct {
	// Config is a valid configuration.
	Config *config.Config
	Log    zerolog.Logger
	// UntilEnd ends Run where the input ends now; see Reports.
	UntilEnd bool
	Stdin    io.Reader
}

// App is one monitor. New makes it, Run runs it once.
type App struct {
	cfg      *config.Config
	log      zerolog.Logger
	untilEnd bool
	stdin    io.Reader
	// name is what the store and positions call the input.
	name string
	// aheadMax bounds how far a client's clock may be ahead of the broker's;
	// 0: no bound.
	aheadMax time.Duration

	metrics *metrics
	ready   readiness
	store   store.Store
	server  *server // nil without http.listen

	reports []report.History
	ended   bool
}

// aheadMax for Kafka: more than a minute before the broker has a record it can't
// have ended, and must not drag the watermark along.
const aheadMax = time.Minute

// New opens the store and the HTTP server; the source is opened by Run, which
// waits for it. The errors are config.Errors for an invalid configuration, else
// failures of the environment. Without Run, call Close.
func New(o Options) (*App, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	a := &App{cfg: o.Config, log: o.Log, untilEnd: o.UntilEnd, stdin: o.Stdin, metrics: newMetrics()}
	switch src := o.Config.Source; {
	case src.Kafka != nil:
		a.name, a.aheadMax = src.Kafka.Topic, aheadMax
	case src.File != nil:
		a.name = src.File.Path
	default:
		a.name = "-"
	}
	a.ready.wait("source", "not opened yet")
	var err error
	if a.store, err = openStore(o.Config); err != nil {
		return nil, err
	}
	if o.Config.HTTP.Listen != "" {
		if a.server, err = serve(o.Config.HTTP.Listen, &a.ready, a.metrics); err != nil {
			return nil, errors.Join(err, a.store.Close())
		}
	}
	return a, nil
}

// Addr is the address of the HTTP server, empty without one.
func (a *App) Addr() string {
	if a.server == nil {
		return ""
	}
	return a.server.listener.Addr().String()
}

// Ended tells whether the input ended, so that there are Reports.
func (a *App) Ended() bool { return a.ended }

// Reports are the verdicts at the end of the input, a history each, by name.
func (a *App) Reports() []report.History { return a.reports }

// Close gives up what New opened. Run does it too.
func (a *App) Close() error {
	var errs []error
	if a.server != nil {
		errs = append(errs, a.server.stop())
		a.server = nil
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
		a.store = nil
	}
	return errors.Join(errs...)
}

// Run watches until ctx ends, which is a graceful stop and no error, or the
// input does. A *source.StartupError says what is wrong with the input; other
// errors are failures of the environment.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.run(ctx)
}
