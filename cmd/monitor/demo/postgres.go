package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/canary"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/servers"
)

// forkMax is how long the long fork is waited for, unless another duration is given: a minute does, mostly.
const forkMax = 10 * time.Minute

// Postgres starts a primary and its synchronous standby, and has a canary's sessions write to the one and read both. It
// tells whether a long fork was seen: two readers that saw two commits in different orders, which breaks snapshot
// isolation, though neither server has failed. The error is a *servers.MissingError where PostgreSQL is not installed.
func Postgres(ctx context.Context, o Options) (planned bool, err error) {
	signal.Ignore(syscall.SIGPIPE) // who reads the output may end first (| head): the servers are stopped all the same
	dir, err := os.MkdirTemp(o.under, "isowatch-demo-")
	if err != nil {
		return false, fmt.Errorf("make a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if !o.Quiet {
		fmt.Fprint(o.Out, "Starts a PostgreSQL and a synchronous standby. Half of the sessions wait until the standby\n"+
			"shows what they commit (synchronous_commit=remote_apply), half don't (off). Both servers are read.\n\n")
	}
	p, err := servers.NewPostgres(ctx, dir, servers.PostgresOptions{Standby: true, Apart: true})
	if err != nil {
		if ctx.Err() != nil {
			err = nil // asked to stop
		}
		return false, err
	}
	defer p.Close()
	ctx, fail := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer fail(nil)
	for _, s := range []*servers.Server{p.Primary, p.Standby} {
		watching.Go(func() {
			select {
			case <-s.Ended():
				fail(fmt.Errorf("PostgreSQL at %s has ended: %s", s.Addr, s.Said()))
			case <-ctx.Done():
			}
		})
	}
	c, err := configured(map[string]string{
		"canary.targets": fmt.Sprintf("[%q]", p.URL(p.Primary)), "canary.replicas": fmt.Sprintf("[%q]", p.URL(p.Standby)),
		"canary.isolation":        "repeatable-read",
		"canary.session_settings": "synchronous_commit=remote_apply;synchronous_commit=off", "levels": "[si]",
		"http.listen": "127.0.0.1:0"})
	if err != nil {
		return false, err
	}
	var fork *alerts.Alert
	_, err = canary.Run(ctx, canary.Options{Config: c, Duration: cmp.Or(o.Duration, forkMax), Seed: o.Seed,
		Output: embedded.Output{Log: zerolog.Nop(), Version: o.Version, Out: o.Out, Color: o.Color, Quiet: o.Quiet,
			Until: func(a alerts.Alert) bool {
				if fork == nil && a.Name == "long-fork" {
					fork = &a
				}
				return fork != nil
			}}})
	if failed := context.Cause(ctx); failed != nil && !errors.Is(failed, context.Canceled) {
		return false, failed
	}
	if err != nil {
		return false, err
	}
	if fork == nil {
		fmt.Fprintln(o.Out, "\nEnded before two readers were seen to see two commits in different orders: another run may "+
			"see it.")
		return false, nil
	}
	fmt.Fprintln(o.Out, "\nAs planned: each server kept its own promise, and both together did not.")
	if o.Evidence == "" {
		return true, nil
	}
	return true, keep(o.Evidence, *fork)
}

// configured is a configuration with settings of its own.
func configured(settings map[string]string) (*config.Config, error) {
	var overrides []config.Override
	for path, value := range settings {
		overrides = append(overrides, config.Override{Path: path, Value: value})
	}
	loaded, err := config.Load(config.Sources{Overrides: overrides})
	if err != nil {
		return nil, err
	}
	return loaded.Config, nil
}
