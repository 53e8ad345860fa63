package app

import (
	"fmt"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
)

// newStage begins to read and decode src behind what was stored.
func (a *App) newStage(src source.Source, s *previousRun) *decode.Stage {
	return decode.New(src, decode.Options{
		RecordsMax: a.tuning.records,
		Assembly:   assemble.Options{MaxTransaction: int64(a.cfg.Window.MaxTransaction)},
		OnHeader:   a.header,
		Offsets:    s.resume,
		Seen:       s.seen,
		States:     s.states,
	})
}

// header says where the input's header line and the configuration, which counts, are not of one
// mind. It may be called from any goroutine.
func (a *App) header(line []byte) {
	h, err := codec.DecodeHeader(line)
	if err != nil {
		a.log.Warn().Msg("the input's header line can't be read, and run does not use it: monitor check says what is wrong " +
			"with it")
		return
	}
	if differs := differences(&h, a.cfg); len(differs) > 0 {
		a.log.Warn().Strs("differs", differs).
			Msg("the input's header line says otherwise than the configuration, and run judges by its configuration: change " +
				"that if the header is right")
	}
}

// differences are the keys of which a header says otherwise than a configuration.
func differences(h *record.Header, c *config.Config) (out []string) {
	differ := func(key string, header, configured any) {
		if fmt.Sprint(header) != fmt.Sprint(configured) {
			out = append(out, fmt.Sprintf("%s: %v in the header, %v in the configuration", key, header, configured))
		}
	}
	if h.Initial != nil {
		differ("initial", h.Initial, c.Initial)
	}
	if h.MaxSkew != nil {
		differ("window.max_skew", time.Duration(*h.MaxSkew), c.Window.MaxSkew)
	}
	if h.Clock != nil {
		differ("clock", h.Clock, c.Clock)
	}
	if h.Coverage != nil {
		differ("coverage", h.Coverage, c.Coverage)
	}
	if h.UniqueValues != nil {
		differ("unique_values", *h.UniqueValues, c.UniqueValues)
	}
	if h.Sessions != nil && *h.Sessions == record.SessionsIgnore {
		out = append(out, "sessions: ignore in the header, and run always holds session order")
	}
	return out
}
