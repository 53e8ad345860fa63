package app

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
)

// causes are when something that is logged once was met last. What was not met for
// causeForgotten is news again.
type causes map[string]time.Time

const causeForgotten = time.Hour

// news notes that a cause is met, and tells whether it is to be logged. There are
// few causes.
func (c causes) news(cause string, now time.Time) bool {
	last, known := c[cause]
	c[cause] = now
	return !known || now.Sub(last) >= causeForgotten
}

// LogLevel is the least level that a logger writes. It may change while others log.
type LogLevel struct{ least atomic.Int32 }

// Set changes the level: debug, info, warn or error.
func (l *LogLevel) Set(name string) error {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		return fmt.Errorf("log.level: %w", err)
	}
	l.least.Store(int32(level))
	return nil
}

// Run implements zerolog.Hook.
func (l *LogLevel) Run(e *zerolog.Event, level zerolog.Level, _ string) {
	if int32(level) < l.least.Load() {
		e.Discard()
	}
}

// NewLogger makes the logger of a configuration: lines for people, or an object
// per line. The level serves to change it later; see Options.LogLevel.
func NewLogger(c config.Log, w io.Writer, color bool) (zerolog.Logger, *LogLevel, error) {
	least := &LogLevel{}
	if err := least.Set(c.Level); err != nil {
		return zerolog.Nop(), nil, err
	}
	if c.Format != "json" {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !color}
	}
	return zerolog.New(w).Hook(least).With().Timestamp().Logger(), least, nil
}
