package app

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// letter is a dead letter as it is shown, with its bytes or without. Where values are hidden, as alerts hide them, the
// bytes and what quotes them stay in the store.
func (s *status) letter(d store.DeadLetter, value bool) page.DeadLetter {
	out := page.DeadLetter{ID: d.ID, Source: d.Pos.Source, Offset: d.Pos.Offset, Line: d.Pos.Line, Reason: d.Reason,
		Detail: d.Detail,
		Time:   time.Unix(0, d.Time).UTC().Format(time.RFC3339Nano), Size: d.Size}
	if d.Pos.Kafka {
		out.Partition = &d.Pos.Partition
	}
	switch {
	case s.cfg.Alerts.Values != config.ValuesFull:
		out.Detail = "alerts.values hides it: stop the monitor and look into its store"
	case !value:
	case utf8.Valid(d.Value):
		out.Value = string(d.Value)
	default:
		out.Bytes = d.Value
	}
	return out
}

// lettersMax is how many there are on a page.
const lettersMax = 500

// DeadLetters implements page.Data.
func (s *status) DeadLetters(ctx context.Context, reason string, from uint64) (page.DeadLetters, error) {
	out := page.DeadLetters{DeadLetters: []page.DeadLetter{}}
	k, _, _ := s.parts()
	if k == nil {
		return out, nil
	}
	err := k.DeadLetters(ctx, func(d store.DeadLetter) bool {
		if d.ID < from || reason != "" && reason != d.Reason {
			return true
		}
		if len(out.DeadLetters) == lettersMax {
			out.Next = d.ID
			return false
		}
		out.DeadLetters = append(out.DeadLetters, s.letter(d, false))
		return true
	})
	return out, err
}

// DeadLetter implements page.Data.
func (s *status) DeadLetter(ctx context.Context, id uint64) (out page.DeadLetter, err error) {
	found := false
	if k, _, _ := s.parts(); k != nil {
		err = k.DeadLetters(ctx, func(d store.DeadLetter) bool {
			if d.ID == id {
				out, found = s.letter(d, true), true
			}
			return d.ID < id
		})
	}
	if err == nil && !found {
		err = page.ErrNotFound
	}
	return out, err
}
