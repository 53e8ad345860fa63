package app

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
)

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
