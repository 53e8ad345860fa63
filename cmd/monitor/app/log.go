package app

import (
	"fmt"
	"io"
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

// NewLogger makes the logger of a configuration: lines for people, or an object
// per line.
func NewLogger(c config.Log, w io.Writer, color bool) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		return zerolog.Nop(), fmt.Errorf("log.level: %w", err)
	}
	if c.Format != "json" {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !color}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}
