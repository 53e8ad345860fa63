package app

import (
	"encoding/json"
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

// NewDeadLetter is a letter of a store, with its bytes or without.
func NewDeadLetter(d store.DeadLetter, value bool) DeadLetter {
	out := DeadLetter{ID: d.ID, Source: d.Pos.Source, Offset: d.Pos.Offset, Line: d.Pos.Line, Reason: d.Reason, Detail: d.Detail,
		Time: time.Unix(0, d.Time).UTC().Format(time.RFC3339Nano), Size: d.Size}
	if d.Pos.Kafka {
		out.Partition = &d.Pos.Partition
	}
	switch {
	case !value:
	case utf8.Valid(d.Value):
		out.Value = string(d.Value)
	default:
		out.Bytes = d.Value
	}
	return out
}

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

// letters answers for LettersPath. Where alerts hide values, the bytes and what quotes them stay in the store.
func (a *App) letters(mux *http.ServeMux) {
	shown := func(d store.DeadLetter, value bool) DeadLetter {
		hidden := a.cfg.Alerts.Values != config.ValuesFull
		out := NewDeadLetter(d, value && !hidden)
		if hidden {
			out.Detail = "alerts.values hides it: stop the monitor and look into its store"
		}
		return out
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
			page.WriteError(w, http.StatusBadRequest, "invalid", fmt.Sprintf("%.40q is no number of a dead letter", text), "list what there is")
		}
		return n, err == nil
	}
	mux.HandleFunc("GET "+LettersPath, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, ok := uint64(0), true
		if text := q.Get("from"); text != "" {
			from, ok = number(w, text)
		}
		if !ok {
			return
		}
		out := DeadLetters{DeadLetters: []DeadLetter{}}
		k, _, _ := a.status.parts()
		if k == nil { // the store is not open yet
			answer(w, out, nil)
			return
		}
		err := k.DeadLetters(r.Context(), func(d store.DeadLetter) bool {
			if d.ID < from || q.Get("reason") != "" && q.Get("reason") != d.Reason {
				return true
			}
			if len(out.DeadLetters) == lettersMax {
				out.Next = d.ID
				return false
			}
			out.DeadLetters = append(out.DeadLetters, shown(d, false))
			return true
		})
		answer(w, out, err)
	})
	mux.HandleFunc("GET "+LettersPath+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, ok := number(w, r.PathValue("id"))
		if !ok {
			return
		}
		var found *store.DeadLetter
		var err error
		if k, _, _ := a.status.parts(); k != nil {
			found, err = FindDeadLetter(func(f func(store.DeadLetter) bool) error { return k.DeadLetters(r.Context(), f) }, id)
		}
		switch {
		case err != nil:
			answer(w, nil, err)
		case found == nil:
			page.WriteError(w, http.StatusNotFound, "not-found", fmt.Sprintf("there is no dead letter %d", id), "the oldest go when there are many; list what there is")
		default:
			answer(w, shown(*found, true), nil)
		}
	})
}

// FindDeadLetter is that of a number, nil if there is none, of all that a store has.
func FindDeadLetter(all func(func(store.DeadLetter) bool) error, id uint64) (found *store.DeadLetter, err error) {
	err = all(func(d store.DeadLetter) bool {
		if d.ID == id {
			found = &d
		}
		return d.ID < id
	})
	return found, err
}
