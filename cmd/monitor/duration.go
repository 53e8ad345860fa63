package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/isowatch/isowatch/config"
)

// duration is a flag of a duration that can be added to others: of at most
// config.DurationMax.
type duration time.Duration

// durationVar is f.DurationVar of such.
func durationVar(f *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	f.Var((*duration)(to), name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = "" // the help does not tell it
	}
}

func (d *duration) Set(s string) error {
	v, err := config.ParseDuration(s)
	if err == nil {
		*d = duration(v)
	}
	return err
}

func (d *duration) String() string { return time.Duration(*d).String() }

// Type is what the help calls it.
func (d *duration) Type() string { return "duration" }
