package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/reject"
)

// routes is the API; static/openapi.yaml describes it, and a test holds the answers
// to that.
func (s *server) routes(mux *http.ServeMux) {
	get := func(path string, f func(http.ResponseWriter, *http.Request) error) {
		mux.Handle("GET /api/v1/"+path, handler(f))
	}
	get("status", s.status)
	get("alerts", s.bounded(s.alerts))
	get("alerts/{id}", s.bounded(s.alert))
	get("alerts/{id}/evidence", s.bounded(s.evidence))
	get("alerts/{id}/picture.svg", s.bounded(s.picture))
	get("alerts/{id}/next", s.bounded(s.next))
	get("groups", s.groups)
	get("silences", s.silences)
	get("events", s.events)
	get("dead-letters", s.deadLetters)
	get("dead-letters/{id}", s.deadLetter)
	mux.Handle("GET /api/v1/openapi.yaml", assets()["/openapi.yaml"])
	mux.Handle("POST /api/v1/silences", handler(s.silence))
	mux.Handle("POST /api/v1/events", handler(s.happen))
	mux.Handle("DELETE /api/v1/silences/{id}", handler(s.expire))
	if s.opt.Records != nil {
		mux.Handle("POST "+RecordsPath, s.opt.Records)
	}
	if s.opt.Session != nil {
		mux.Handle("POST "+sessionPath, s.opt.Session)
		mux.Handle("DELETE "+sessionPath, s.opt.Session)
	} else {
		mux.Handle(sessionPath, handler(func(http.ResponseWriter, *http.Request) error {
			return &problem{http.StatusNotFound, "no-token", "the monitor wants no token", "leave it out"}
		}))
	}
	mux.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return &problem{http.StatusMethodNotAllowed, "method", r.Method + " is not for " + quote(r.URL.Path),
				"see /api/v1/openapi.yaml"}
		}
		return &problem{http.StatusNotFound, "not-found", "there is no " + quote(r.URL.Path), "see /api/v1/openapi.yaml"}
	}))
}

// problem is an error with its answer.
type problem struct {
	status          int
	code, msg, hint string
}

func (p *problem) Error() string { return p.msg }

// Error is the body of every answer that is no success.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says what is wrong and what to do.
type ErrorBody struct {
	Code    string `json:"code"` // for programs; a closed set, see openapi.yaml
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// WriteError answers with an Error. Who checks tokens in front of the page uses it
// too, so that all errors look the same.
func WriteError(w http.ResponseWriter, status int, code, message, hint string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Disposition")
	w.WriteHeader(status)
	body, err := json.Marshal(Error{ErrorBody{code, message, hint}})
	if err != nil {
		panic("can't happen, because these are strings: " + err.Error())
	}
	_, _ = w.Write(append(body, '\n')) // the reader may be gone
}

// handler answers what f returns as an error. Who asked for a change is answered even where
// the request seems to have ended: to say nothing would be to say that it was made.
func handler(f func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := f(w, r)
		if err == nil || r.Context().Err() != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			return
		}
		var p *problem
		var invalid *Invalid
		switch {
		case errors.As(err, &p):
			WriteError(w, p.status, p.code, p.msg, p.hint)
		case errors.As(err, &invalid):
			WriteError(w, http.StatusBadRequest, "invalid", invalid.Error(), invalid.Hint)
		case errors.Is(err, ErrNotFound):
			WriteError(w, http.StatusNotFound, "not-found", "there is no such thing",
				"it may have been dropped after alerts.retain; list what there is")
		default:
			WriteError(w, http.StatusInternalServerError, "failed", err.Error(), "the monitor's log says more; try again")
		}
	})
}

// reply answers with v as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	body, err := text.JSON(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the reader may be gone
	return nil
}

// answer replies with v, unless there is an error.
func answer(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, v)
}

func (s *server) status(w http.ResponseWriter, r *http.Request) error {
	st, err := s.data.Status(r.Context())
	return answer(w, st, err)
}

func (s *server) alerts(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	l, err := s.data.Alerts(r.Context(), f)
	l.Alerts = notNil(l.Alerts)
	return answer(w, l, err)
}

// textMax bounds what is searched for.
const textMax = 256

// parseFilter reads a Filter. What it does not know is an error: a filter that is
// silently left out shows alerts that were not asked for.
func parseFilter(q url.Values) (Filter, error) {
	f := Filter{Limit: LimitDefault}
	texts := map[string]*string{"db": &f.DB, "level": &f.Level, "name": &f.Name, "state": &f.State,
		"severity": &f.Severity, "q": &f.Text, "group": &f.Group}
	for key, values := range q {
		if len(values) != 1 {
			return f, &Invalid{key, "is given more than once", "give it once"}
		}
		v := values[0]
		var err error
		switch to, ok := texts[key]; {
		case ok:
			if *to = v; len(v) > textMax || !utf8.ValidString(v) {
				return f, &Invalid{key, fmt.Sprintf("is no UTF-8 text of at most %d bytes", textMax), "ask for less"}
			}
		case key == "since":
			f.Since, err = strconv.ParseInt(v, 10, 64)
		case key == "after":
			f.After, err = strconv.ParseUint(v, 10, 64)
		case key == "limit":
			if f.Limit, err = strconv.Atoi(v); err == nil && (f.Limit < 1 || f.Limit > LimitMax) {
				return f, &Invalid{key, fmt.Sprintf("has to be 1 to %d", LimitMax), "ask for the next page with after"}
			}
		default:
			return f, &Invalid{key, "is no filter",
				"filters are db, level, name, state, severity, q, group, since, limit, after"}
		}
		if err != nil {
			return f, &Invalid{key, "is no whole number: " + quote(v),
				"since is in nanoseconds since 1970, after is next of the page before"}
		}
	}
	switch f.State {
	case "", string(alerts.Fresh), string(alerts.Ongoing), string(alerts.Resolved), string(alerts.Suspected):
	default:
		return f, &Invalid{"state", "is no state: " + quote(f.State), "states are new, ongoing, resolved, suspected"}
	}
	return f, nil
}

func (s *server) alert(w http.ResponseWriter, r *http.Request) error {
	a, err := s.find(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	body := a.JSON()
	a = alerts.Alert{}   // it is not needed while its reader takes its time
	_, _ = w.Write(body) // the reader may be gone
	_, _ = w.Write([]byte{'\n'})
	return nil
}

// find is the alert that a request is about.
func (s *server) find(r *http.Request) (alerts.Alert, error) {
	id := r.PathValue("id")
	a, err := s.data.Alert(r.Context(), id)
	return a, missing(err, "alert "+quote(id), "it may have been dropped after alerts.retain; see /api/v1/alerts")
}

// missing is an error; of a thing that is not there, one that says so.
func missing(err error, thing, hint string) error {
	if errors.Is(err, ErrNotFound) {
		return &problem{http.StatusNotFound, "not-found", "there is no " + thing, hint}
	}
	return err
}

// evidence is what monitor check takes.
func (s *server) evidence(w http.ResponseWriter, r *http.Request) error {
	a, err := s.find(r)
	if err != nil {
		return err
	}
	if len(a.Evidence) == 0 {
		return &problem{http.StatusNotFound, "not-found", "no evidence is kept of alert " + quote(a.ID),
			"it would be too large; the explanation of the alert says how large"}
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": "evidence-" + a.EvidenceFile()}))
	_, _ = w.Write(a.EvidenceText()) // the reader may be gone
	return nil
}

// picture draws an alert. Opened by itself, it may do nothing but look.
func (s *server) picture(w http.ResponseWriter, r *http.Request) error {
	draw := picture.Cycle
	switch view := r.URL.Query().Get("view"); view {
	case "", "cycle":
	case "timeline":
		draw = picture.Timeline
	default:
		return &Invalid{"view", "is no view: " + quote(view), "views are cycle and timeline"}
	}
	a, err := s.find(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	_, _ = w.Write(draw(a))
	return nil
}

// next says what people have found behind such an anomaly.
func (s *server) next(w http.ResponseWriter, r *http.Request) error {
	a, err := s.find(r)
	return answer(w, map[string][]string{"next": explain.Next(a.Name, a.Aliases)}, err)
}

func (s *server) groups(w http.ResponseWriter, r *http.Request) error {
	g, err := s.data.Groups(r.Context())
	return answer(w, map[string][]Group{"groups": notNil(g)}, err)
}

func (s *server) silences(w http.ResponseWriter, r *http.Request) error {
	all, err := s.data.Silences(r.Context())
	return answer(w, map[string][]life.Silence{"silences": notNil(all)}, err)
}

func (s *server) deadLetters(w http.ResponseWriter, r *http.Request) error {
	q, from := r.URL.Query(), uint64(0)
	if text := q.Get("from"); text != "" {
		var err error
		if from, err = letterID(text); err != nil {
			return err
		}
	}
	some, err := s.data.DeadLetters(r.Context(), q.Get("reason"), from)
	return answer(w, some, err)
}

func (s *server) deadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := letterID(r.PathValue("id"))
	if err != nil {
		return err
	}
	d, err := s.data.DeadLetter(r.Context(), id)
	return answer(w, d,
		missing(err, fmt.Sprintf("dead letter %d", id), "the oldest go when there are many; list what there is"))
}

func letterID(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &Invalid{"", fmt.Sprintf("%.40q is no number of a dead letter", text), "list what there is"}
	}
	return n, nil
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// bodyMax bounds what is sent to the monitor.
const bodyMax = 16 << 10

func (s *server) silence(w http.ResponseWriter, r *http.Request) error {
	var in life.Silence
	if err := body(w, r, &in); err != nil {
		return err
	}
	if in.ID != "" || in.Configured {
		return &Invalid{"id", "is given by the monitor", "leave id and fixed out"}
	}
	out, err := s.data.Silence(r.Context(), in)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, out)
}

// happen takes an event as it stands in an input.
func (s *server) happen(w http.ResponseWriter, r *http.Request) error {
	raw, err := payload(w, r)
	if err != nil {
		return err
	}
	e, err := codec.DecodeWorldEvent(raw, time.Now().UnixNano())
	if bad := reject.From(err); bad != nil {
		return &Invalid{bad.Field, bad.Detail,
			`send {"event":{"at":…,"node":…,"kind":…,"text":…}}, at in nanoseconds since 1970, or not at all for now`}
	}
	if err := s.data.Happen(r.Context(), e); err != nil {
		return err
	}
	return reply(w, http.StatusCreated, e)
}

func (s *server) expire(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.data.Expire(r.Context(), id); err != nil {
		return missing(err, "silence "+quote(id), "it may be over; see /api/v1/silences")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// payload reads a request's body. The type is asked for because no form of a foreign
// page can send it.
func payload(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "content-type", "the body has to be application/json",
			"send Content-Type: application/json"}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return raw, nil
	case errors.As(err, &large):
		return nil, &problem{http.StatusRequestEntityTooLarge, "too-large",
			fmt.Sprintf("the body has more than %d bytes", bodyMax), "send less"}
	case errors.Is(err, os.ErrDeadlineExceeded) || r.Context().Err() != nil:
		return nil, &problem{http.StatusRequestTimeout, "timeout", "the body did not arrive in time, and nothing was done",
			"send it again"}
	}
	return nil, &Invalid{"", "the body can't be read: " + text.Printable(err.Error()), "send it again"}
}

// body reads a request's JSON.
func body(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := payload(w, r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err = d.Decode(into); err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("something follows the object")
	}
	return &Invalid{"", "the body is not as described: " + text.Printable(err.Error()), "see /api/v1/openapi.yaml"}
}

// quote shows what a request said, safe and short.
func quote(s string) string { return strconv.Quote(text.Name(s)) }
