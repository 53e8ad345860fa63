package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// DeadLetter is a record that could not be used, as commands and the API show it.
type DeadLetter struct {
	ID        uint64 `json:"id"`
	Source    string `json:"source"`
	Partition *int   `json:"partition,omitempty"` // of a topic
	Offset    int64  `json:"offset"`
	Line      int64  `json:"line,omitempty"` // of a file
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
	Time      string `json:"time"`
	Size      int    `json:"size"` // of the record in bytes; value may be cut
	Value     string `json:"value,omitempty"`
	Bytes     []byte `json:"bytes,omitempty"` // instead of value, in base64, if it is not UTF-8
}

// Letters are the dead letters of a store; nil: it is not open yet. Where values are hidden, as alerts hide them, the
// bytes and what quotes them stay there.
type Letters struct {
	Store  store.Store
	Hidden bool
}

// shown is a letter, with its bytes or without.
func (l Letters) shown(d store.DeadLetter, value bool) DeadLetter {
	out := DeadLetter{ID: d.ID, Source: d.Pos.Source, Offset: d.Pos.Offset, Line: d.Pos.Line, Reason: d.Reason,
		Detail: d.Detail,
		Time:   time.Unix(0, d.Time).UTC().Format(time.RFC3339Nano), Size: d.Size}
	if d.Pos.Kafka {
		out.Partition = &d.Pos.Partition
	}
	switch {
	case l.Hidden:
		out.Detail = "alerts.values hides it: stop the monitor and look into its store"
	case !value:
	case utf8.Valid(d.Value):
		out.Value = string(d.Value)
	default:
		out.Bytes = d.Value
	}
	return out
}

// DeadLetters are those of a reason, or all, from an ID on: one page of them.
func (l Letters) DeadLetters(ctx context.Context, reason string, from uint64) (DeadLetters, error) {
	out := DeadLetters{DeadLetters: []DeadLetter{}}
	if l.Store == nil {
		return out, nil
	}
	err := l.Store.DeadLetters(ctx, func(d store.DeadLetter) bool {
		if d.ID < from || reason != "" && reason != d.Reason {
			return true
		}
		if len(out.DeadLetters) == lettersMax {
			out.Next = d.ID
			return false
		}
		out.DeadLetters = append(out.DeadLetters, l.shown(d, false))
		return true
	})
	return out, err
}

// DeadLetter is one with its bytes; page.ErrNotFound if there is none.
func (l Letters) DeadLetter(ctx context.Context, id uint64) (out DeadLetter, err error) {
	found := false
	if l.Store != nil {
		err = l.Store.DeadLetters(ctx, func(d store.DeadLetter) bool {
			if d.ID == id {
				out, found = l.shown(d, true), true
			}
			return d.ID < id
		})
	}
	if err == nil && !found {
		err = page.ErrNotFound
	}
	return out, err
}

// Close closes the store.
func (l Letters) Close() error { return l.Store.Close() }

// Place is where the record was.
func (d *DeadLetter) Place() string {
	pos := record.Position{Source: d.Source, Offset: d.Offset, Line: d.Line}
	if d.Partition != nil {
		pos.Kafka, pos.Partition = true, *d.Partition
	}
	return pos.String()
}

// DeadLetters is one page of them, the oldest first.
type DeadLetters struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	Next        uint64       `json:"next,omitempty"` // the from of the page behind; 0: there is none
}

// LettersPath is where the API has dead letters: all, with ?reason= and ?from=ID, or one behind a slash.
const LettersPath = "/api/v1/dead-letters"

// lettersMax is how many there are on a page.
const lettersMax = 500

// letters answers for LettersPath.
func (a *App) letters(mux *http.ServeMux) {
	all := func() Letters {
		l := Letters{Hidden: a.cfg.Alerts.Values != config.ValuesFull}
		if k, _, _ := a.status.parts(); k != nil {
			l.Store = k
		}
		return l
	}
	answer := func(w http.ResponseWriter, v any, err error) {
		body, e := json.Marshal(v)
		if err == nil {
			err = e
		}
		if err != nil {
			page.WriteError(w, http.StatusInternalServerError, "failed", err.Error(), "the monitor's log says more; try again")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(append(body, '\n')) // the reader may be gone
	}
	number := func(w http.ResponseWriter, text string) (uint64, bool) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			page.WriteError(w, http.StatusBadRequest, "invalid", fmt.Sprintf("%.40q is no number of a dead letter", text),
				"list what there is")
		}
		return n, err == nil
	}
	mux.HandleFunc("GET "+LettersPath, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, ok := uint64(0), true
		if text := q.Get("from"); text != "" {
			from, ok = number(w, text)
		}
		if ok {
			out, err := all().DeadLetters(r.Context(), q.Get("reason"), from)
			answer(w, out, err)
		}
	})
	mux.HandleFunc("GET "+LettersPath+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, ok := number(w, r.PathValue("id"))
		if !ok {
			return
		}
		out, err := all().DeadLetter(r.Context(), id)
		if errors.Is(err, page.ErrNotFound) {
			page.WriteError(w, http.StatusNotFound, "not-found", fmt.Sprintf("there is no dead letter %d", id),
				"the oldest go when there are many; list what there is")
			return
		}
		answer(w, out, err)
	})
}
