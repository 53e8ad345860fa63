package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Work with the configuration of run",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newConfigCheck())
	return cmd
}

func newConfigCheck() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a configuration, or print what it amounts to",
		Long: `Reads a configuration as run does, with the environment's ISOWATCH_… variables,
and prints the effective one: every key with its value, without secrets. What is
wrong is reported all together, with file, line, column and key. The files that it
names (secrets, certificates, authorities, the input) are read as run reads them, the
folder of the store is looked at, and silences that can't match anything are warned of. Nobody on the network is asked.

Exit status: 0 usable, 2 not.`,
		Example: "  monitor config check isowatch.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			l, err := config.Load(config.Sources{File: args[0], Env: os.Environ()})
			var wrong config.Errors
			if err != nil && !errors.As(err, &wrong) {
				return err
			}
			if l != nil {
				idle, more := app.Examine(l, wrong)
				l.Warnings = append(l.Warnings, idle...)
				wrong = append(wrong, more...)
			}
			if wrong.Sort(); len(wrong) > 0 {
				if !out.json() {
					return unusable(wrong)
				}
				if err := printJSON(w, configReport{Errors: wrong}); err != nil {
					return err
				}
				return silent(exitUnusable)
			}
			for _, warning := range l.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "monitor: warning: %s\n", text.Printable(warning))
			}
			if !out.json() {
				_, err := w.Write(l.YAML())
				return err
			}
			var effective map[string]any
			if err := yaml.Unmarshal(l.YAML(), &effective); err != nil {
				return fmt.Errorf("can't happen, because it was just written: %w", err)
			}
			body, err := json.Marshal(effective)
			if err != nil {
				return fmt.Errorf("can't happen, because YAML's plain values have a JSON form: %w", err)
			}
			return printJSON(w, configReport{OK: true, Warnings: l.Warnings, Config: body})
		},
	}
	out.flags(cmd)
	return cmd
}

// configReport is the JSON of `config check`.
type configReport struct {
	OK       bool            `json:"ok"`
	Errors   config.Errors   `json:"errors,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
}

// parsed is a flag of what config has a written form of.
type parsed[T any] struct {
	to    *T
	parse func(string) (T, error)
	kind  string
}

func (p parsed[T]) Set(s string) error {
	v, err := p.parse(s)
	if err == nil {
		*p.to = v
	}
	return err
}

func (p parsed[T]) String() string { return fmt.Sprint(*p.to) }

// Type is what the help calls it.
func (p parsed[T]) Type() string { return p.kind }

// durationVar is f.DurationVar of what can be added to others: of at most config.DurationMax.
func durationVar(f *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	f.Var(parsed[time.Duration]{to, config.ParseDuration, "duration"}, name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = "" // the help does not tell it
	}
}
