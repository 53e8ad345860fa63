package app

import (
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/source"
)

// newStage begins to read and decode src behind what was stored.
func (a *App) newStage(src source.Source, s *stored) *decode.Stage {
	return decode.New(src, decode.Options{
		RecordsMax: a.tuning.records,
		Assembly:   assemble.Options{MaxTransaction: int64(a.cfg.Window.MaxTransaction)},
		Offsets:    s.resume,
		Seen:       s.seen,
		States:     s.states,
	})
}
