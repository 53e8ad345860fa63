package main

import (
	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/proxy"
	"github.com/isowatch/isowatch/config"
)

// proxyFlags are the flags of proxy that are no shorthands of the configuration.
type proxyFlags struct {
	recording
	options proxy.RunOptions
}

func newProxy() *cobra.Command {
	p := proxyFlags{recording: recording{from: configured{shorthands: []shorthand{
		{flag: "coverage", path: "coverage", usage: "`complete` if all that writes the tables comes through here, else " +
			"partial: coverage"},
	}}}}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Stand between an application and its PostgreSQL, and watch what its transactions see",
		Long: `Passes on what an application and PostgreSQL say to each other, as it is, and records what each
transaction read and wrote: rows by their primary keys. What is recorded is checked in this process, or sent to
a topic. What a statement did that is not understood is not guessed: it is listed at the end.

Clients log in at PostgreSQL as before; they may use TLS where --tls-cert and --tls-key are given. The
address of PostgreSQL is asked for its tables when the proxy starts; any role may do that. docs/capture.md says
what is found, and what is not seen.

It goes on until Ctrl-C, whatever it finds, or as --duration or --until-violation say.

Exit status: when it ends by itself as check: 0 satisfied, 1 violated, 3 undecided; else 0. 2 an option or address
that can't be used. 4 the environment failed.`,
		Example: `  monitor proxy --listen 127.0.0.1:6432 --upstream postgres://monitor@127.0.0.1:5432/shop --coverage complete --level ser
  monitor proxy --listen 127.0.0.1:6432 --upstream postgres://monitor@db-1/shop --publish 127.0.0.1:9092/transactions`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&p.options.Listen, "listen", "127.0.0.1:6432", "the `address` that the application connects to")
	p.flags(cmd, "")
	f.StringVar(&p.options.Upstream, "upstream", "",
		"PostgreSQL's `address`, as libpq has it; a password may be in PGPASSWORD")
	f.StringVar(&p.options.Cert, "tls-cert", "", "PEM `file` of a certificate for clients who ask for TLS")
	f.StringVar(&p.options.Key, "tls-key", "", "PEM `file` of its private key")
	f.BoolVar(&p.options.Unique, "unique-values", false,
		"nobody writes to a column of a row what somebody else wrote to it: with coverage partial more is found")
	f.BoolVar(&p.options.Explain, "explain", false,
		"say of each statement that is not understood, when it comes first, what follows from that")
	return cmd
}

func (p *proxyFlags) run(cmd *cobra.Command) error {
	sources, err := p.sources(cmd)
	if err != nil {
		return err
	}
	o := &p.options
	if o.Upstream == "" {
		return unusablef("--upstream: which PostgreSQL? Give its address, such as postgres://monitor@db-1:5432/shop")
	}
	// What is read is this process's own.
	sources.Overrides = append(sources.Overrides, config.Override{Flag: "proxy", Path: "source.stdin", Value: "{}"})
	loaded, err := config.Load(sources)
	if err != nil {
		return unusable(err)
	}
	to, topic, err := p.topic()
	if err != nil {
		return err
	}
	o.Config, o.Duration = loaded.Config, p.duration
	o.Output, err = p.output(cmd, loaded, to, topic)
	switch {
	case cmd.Context().Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer app.LimitMemory(loaded.Config.Memory, loaded.Config.Store.Path, o.Log)()
	ended, err := proxy.Run(cmd.Context(), *o)
	if err != nil {
		return runFailure(err)
	}
	return p.out.ended(cmd, ended)
}
