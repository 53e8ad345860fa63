package page_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/ingest/record"
)

// monitor is a monitor that has these alerts.
type monitor struct {
	page.Hub
	alerts   []alerts.Alert
	silences []life.Silence
	events   []record.Event
	asked    page.Filter
	err      error
}

// newMonitor has the alerts of the golden file, which are of every kind.
func newMonitor(t *testing.T) *monitor {
	t.Helper()
	data, err := os.ReadFile("../testdata/alerts.golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{}
	for line := range bytes.Lines(data) {
		a, err := alerts.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		m.alerts = append(m.alerts, a)
	}
	return m
}

func summary(a alerts.Alert, n int) page.Summary {
	return page.Summary{ID: a.ID, Number: uint64(n), DB: a.DB, Level: a.Level, Breaks: a.Breaks, Name: a.Name, Severity: string(a.Severity), State: string(a.State), Count: a.Count, Summary: a.Summary, Keys: a.Keys}
}

func (m *monitor) Status(context.Context) (page.Status, error) {
	return page.Status{Version: "v1", Health: life.Broken, Waits: []string{"input: nothing yet"}, Operational: []page.Condition{{Kind: "lag", Severity: "warning", Text: "behind", Since: 1}}, Events: page.Events{Latest: []record.Event{{At: 1, Text: "a failover"}}, Kept: 1},
		Canary: &page.Canary{DB: "canary", Database: "PostgreSQL 15", Nodes: []page.CanaryNode{{Name: "pg-1", State: page.NodeUp, Reasons: map[string]int64{"conflict": 1}, Lag: -1}}},
		Histories: []page.History{{DB: "bank", Health: life.Broken, Levels: []page.LevelStatus{{Level: "si", Title: "Snapshot isolation", Standing: life.Standing{Health: life.Broken, Complete: life.Partial, Alerts: 1, Violations: 2}}}, Coverage: "partial",
			Stretches: []page.Stretch{{From: 1, To: 2, Why: []page.Reason{{Why: "gap", Text: "a gap", Count: 1}}}}, Broken: []life.Span{{From: 1, To: 2, Alerts: 1}}, Losses: []page.Reason{}, SampledOneIn: 1}},
		Receivers: []page.Receiver{{Name: "hook"}}, Settings: page.StatusConfig{Levels: []string{"si"}},
		Series: page.Series{Step: 1, Transactions: []float64{1}, Records: []float64{1}, Lag: []float64{1}, Window: []float64{1}, Judging: []float64{1}, Proving: []float64{1}, Open: []float64{1}, Conflicts: []float64{1}, Alerts: []float64{1}}}, m.err
}

func (m *monitor) Alerts(_ context.Context, f page.Filter) (page.List, error) {
	m.asked = f
	l := page.List{Total: int64(len(m.alerts))}
	for i, a := range m.alerts[:min(f.Limit, len(m.alerts))] {
		l.Alerts = append(l.Alerts, summary(a, i))
	}
	return l, m.err
}

func (m *monitor) Alert(_ context.Context, id string) (alerts.Alert, error) {
	for _, a := range m.alerts {
		if a.ID == id {
			return a, m.err
		}
	}
	return alerts.Alert{}, page.ErrNotFound
}

func (m *monitor) Groups(context.Context) ([]page.Group, error) {
	return []page.Group{{ID: "g", DB: "bank", Breaks: []string{"si"}, Keys: []string{"x"}, State: "new"}}, m.err
}

func (m *monitor) Silences(context.Context) ([]life.Silence, error) { return m.silences, m.err }

func (m *monitor) Silence(_ context.Context, s life.Silence) (life.Silence, error) {
	if s.Until == 0 {
		return s, &page.Invalid{Field: "until", Msg: "is not given", Hint: "give it"}
	}
	s.ID = fmt.Sprint("s", len(m.silences))
	m.silences = append(m.silences, s)
	return s, nil
}

func (m *monitor) Happen(_ context.Context, e record.Event) error {
	m.events = append(m.events, e)
	return m.err
}

func (m *monitor) DeadLetters(_ context.Context, reason string, from uint64) (page.DeadLetters, error) {
	d, err := m.DeadLetter(context.Background(), 7)
	return page.DeadLetters{DeadLetters: []page.DeadLetter{d}, Next: 8}, err
}

func (m *monitor) DeadLetter(_ context.Context, id uint64) (page.DeadLetter, error) {
	if id != 7 {
		return page.DeadLetter{}, page.ErrNotFound
	}
	partition := 3
	return page.DeadLetter{ID: 7, Source: "t", Partition: &partition, Reason: "syntax", Time: "2026-01-31T12:00:00Z", Size: 1, Value: "<"}, m.err
}

func (m *monitor) Expire(_ context.Context, id string) error {
	for i, s := range m.silences {
		if s.ID == id {
			m.silences = append(m.silences[:i], m.silences[i+1:]...)
			return nil
		}
	}
	return page.ErrNotFound
}

// ask sends a request as curl on this machine would, changed by how.
func ask(t *testing.T, h http.Handler, method, path, body string, how ...func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range how {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// TestOpenAPI holds every answer to the document that describes it.
func TestOpenAPI(t *testing.T) {
	m := newMonitor(t)
	h := page.Handler(m, page.Options{Records: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })})
	doc, err := openapi3.NewLoader().LoadFromData([]byte(read(t, ask(t, h, "GET", "/api/v1/openapi.yaml", ""))))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("image/svg+xml", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.FileBodyDecoder)
	answered := map[string]bool{}
	check := func(method, path, body string, want int, how ...func(*http.Request)) {
		t.Run(method+" "+path+" "+body, func(t *testing.T) {
			r := ask(t, h, method, path, body, how...)
			text := read(t, r)
			if r.StatusCode != want {
				t.Fatalf("status %d, want %d: %.300s", r.StatusCode, want, text)
			}
			req := httptest.NewRequest(method, path, strings.NewReader(body))
			if strings.HasSuffix(path, page.RecordsPath) {
				req.Header.Set("Content-Type", "application/x-ndjson")
			} else if body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			route, params, err := router.FindRoute(req)
			if err != nil {
				t.Fatal(err)
			}
			in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
			if want < 300 {
				answered[route.Operation.OperationID] = true
				if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
					t.Error("the request: ", err)
				}
			}
			out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: r.StatusCode, Header: r.Header, Options: in.Options}
			if err := openapi3filter.ValidateResponse(context.Background(), out.SetBodyBytes([]byte(text))); err != nil {
				t.Errorf("the answer: %v\n%.300s", err, text)
			}
		})
	}
	check("GET", "/api/v1/status", "", 200)
	check("GET", "/api/v1/alerts", "", 200)
	check("GET", "/api/v1/alerts?db=bank&level=si&name=G2&state=new&severity=error&q=x&group=g&since=5&limit=2&after=9", "", 200)
	for _, bad := range []string{"limit=0", "limit=501", "limit=x", "after=-1", "since=1.5", "state=old", "colour=red", "db=a&db=b", "q=" + strings.Repeat("x", 300), "q=%ff"} {
		check("GET", "/api/v1/alerts?"+bad, "", 400)
	}
	for _, a := range m.alerts {
		check("GET", "/api/v1/alerts/"+a.ID, "", 200)
		check("GET", "/api/v1/alerts/"+a.ID+"/evidence", "", 200)
		check("GET", "/api/v1/alerts/"+a.ID+"/next", "", 200)
		check("GET", "/api/v1/alerts/"+a.ID+"/picture.svg", "", 200)
		check("GET", "/api/v1/alerts/"+a.ID+"/picture.svg?view=timeline", "", 200)
	}
	check("GET", "/api/v1/alerts/"+m.alerts[0].ID+"/picture.svg?view=3d", "", 400)
	check("GET", "/api/v1/alerts/nobody", "", 404)
	check("GET", "/api/v1/alerts/nobody/evidence", "", 404)
	check("GET", "/api/v1/alerts/nobody/next", "", 404)
	check("GET", "/api/v1/groups", "", 200)
	check("GET", "/api/v1/silences", "", 200)
	check("POST", "/api/v1/silences", `{"db":"bank","until":5,"comment":"known"}`, 201)
	check("GET", "/api/v1/silences", "", 200)
	check("POST", "/api/v1/silences", `{"db":"bank"}`, 400)
	check("POST", "/api/v1/silences", `{"until":5,"comment":"","id":"mine"}`, 400)
	check("POST", "/api/v1/silences", `{"until":5,"comment":"","colour":"red"}`, 400)
	check("POST", "/api/v1/silences", `{"until":5,"comment":""}{}`, 400)
	check("POST", "/api/v1/silences", `{"comment":"`+strings.Repeat("x", 20000)+`"}`, 413)
	check("POST", "/api/v1/silences", `{"until":5,"comment":""}`, 415, header("Content-Type", "text/plain"))
	check("POST", "/api/v1/events", `{"event":{"at":5,"node":"pg-2","kind":"failover","text":"became primary"}}`, 201)
	check("POST", "/api/v1/events", `{"event":{"at":5}}`, 400)
	check("POST", "/api/v1/events", `{"event":{"at":5,"text":"x"}}`, 415, header("Content-Type", "text/plain"))
	check("POST", "/api/v1/events", `{"event":{"at":5,"text":"`+strings.Repeat("x", 20000)+`"}}`, 413)
	if want := []record.Event{{At: 5, Node: "pg-2", Kind: "failover", Text: "became primary"}}; !slices.Equal(m.events, want) {
		t.Errorf("events %+v, want %+v", m.events, want)
	}
	check("POST", "/api/v1/events", `{"event":{"text":"became primary"}}`, 201)
	if at := m.events[len(m.events)-1].At; time.Since(time.Unix(0, at)).Abs() > time.Minute {
		t.Errorf("what happened now is of %d", at)
	}
	check("POST", "/api/v1/records", `{"session":"s","status":"committed","ops":[]}`, 204)
	check("DELETE", "/api/v1/silences/s0", "", 204)
	check("DELETE", "/api/v1/silences/s0", "", 404)
	check("GET", "/api/v1/dead-letters?reason=syntax&from=1", "", 200)
	check("GET", "/api/v1/dead-letters?from=x", "", 400)
	check("GET", "/api/v1/dead-letters/7", "", 200)
	check("GET", "/api/v1/dead-letters/8", "", 404)
	check("GET", "/api/v1/dead-letters/x", "", 400)
	check("GET", "/api/v1/openapi.yaml", "", 200)
	check("POST", "/api/v1/session", `{"token":"x"}`, 404) // nobody asks for one
	m.err = errors.New("the disk is on fire")
	check("GET", "/api/v1/status", "", 500)
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Find(path).Operations() {
			// Events have a test of their own; sessions belong to who checks tokens.
			if id := op.OperationID; !answered[id] && id != "events" && id != "login" && id != "logout" {
				t.Errorf("%s %s is described, and not tried", method, path)
			}
		}
	}
}

// TestFilter tells what a request asks for.
func TestFilter(t *testing.T) {
	m := newMonitor(t)
	ask(t, page.Handler(m, page.Options{}), "GET", "/api/v1/alerts?db=a&level=b&name=c&state=ongoing&severity=d&q=e&group=f&since=5&limit=6&after=7", "")
	if want := (page.Filter{DB: "a", Level: "b", Name: "c", State: "ongoing", Severity: "d", Text: "e", Group: "f", Since: 5, Limit: 6, After: 7}); m.asked != want {
		t.Errorf("got %+v, want %+v", m.asked, want)
	}
}

// TestEvidence is what monitor check reads: the records, a line each, as they are.
func TestEvidence(t *testing.T) {
	m := newMonitor(t)
	a := m.alerts[1]
	r := ask(t, page.Handler(m, page.Options{}), "GET", "/api/v1/alerts/"+a.ID+"/evidence", "")
	var want strings.Builder
	for _, line := range a.Evidence {
		want.Write(line)
		want.WriteByte('\n')
	}
	if got := read(t, r); got != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got, want.String())
	}
	if d := r.Header.Get("Content-Disposition"); d != "attachment; filename=evidence-"+a.ID+".jsonl" {
		t.Error(d)
	}
}

// TestForeign refuses names and pages that may be somebody else's.
func TestForeign(t *testing.T) {
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	const get, post = "GET /api/v1/status", "POST /api/v1/silences"
	base := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	proxy := base("https://good.example/watch")
	for _, c := range []struct {
		name    string
		base    *url.URL
		wide    bool // not on loopback: a token is asked for
		request string
		how     []func(*http.Request)
		want    int
	}{
		{"this machine", nil, false, get, []func(*http.Request){host("localhost:8080")}, 200},
		{"an address", nil, false, get, []func(*http.Request){host("[::1]:8080")}, 200},
		{"a name that was made to point here", nil, false, get, []func(*http.Request){host("evil.example:8080")}, 421},
		{"the page under such a name", nil, false, "GET /", []func(*http.Request){host("evil.example:8080")}, 421},
		{"no name", nil, false, get, []func(*http.Request){host("")}, 421},
		{"a name that ends like ours", proxy, false, get, []func(*http.Request){host("not.good.example")}, 421},
		{"the name that people use", proxy, false, get, []func(*http.Request){host("good.example")}, 200},
		{"where a token is asked for", nil, true, get, []func(*http.Request){host("monitor:8080")}, 200},
		{"a page of another site, there", nil, true, post, []func(*http.Request){host("monitor:8080"), header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://evil.example")}, 403},
		{"a program", nil, false, post, nil, 201},
		{"our own page", nil, false, post, []func(*http.Request){header("Sec-Fetch-Site", "same-origin"), header("Origin", "http://127.0.0.1:8080")}, 201},
		{"a page of another site", nil, false, post, []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://evil.example")}, 403},
		{"one in an older browser", nil, false, post, []func(*http.Request){header("Origin", "https://evil.example")}, 403},
		{"a page of another port", nil, false, post, []func(*http.Request){header("Sec-Fetch-Site", "same-site"), header("Origin", "http://127.0.0.1:9999")}, 403},
		{"our page behind a proxy", proxy, false, post, []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://good.example")}, 201},
		{"a form", nil, false, post, []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}, 415},
		{"what is not offered", nil, false, "PUT /api/v1/status", nil, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.request, " ")
			body := ""
			if method != "GET" {
				body = `{"until":5,"comment":"x"}`
			}
			h := page.Own(page.Handler(newMonitor(t), page.Options{}), c.base, !c.wide, page.WriteError)
			r := ask(t, h, method, path, body, c.how...)
			text := read(t, r)
			if r.StatusCode != c.want {
				t.Fatalf("status %d, want %d: %s", r.StatusCode, c.want, text)
			}
			var e page.Error
			if c.want >= 400 && (json.Unmarshal([]byte(text), &e) != nil || e.Error.Code == "" || e.Error.Message == "" || e.Error.Hint == "") {
				t.Errorf("no error in the usual form: %s", text)
			}
		})
	}
}

// TestPublic: before a token is shown nothing is to be had but the page's own files
// and the place to show it.
// TestBodyThatDoesNotArrive: a change whose body stops is not made, and its client hears so.
func TestBodyThatDoesNotArrive(t *testing.T) {
	m := newMonitor(t)
	h := page.Handler(m, page.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // it is over
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/v1/silences HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body := read(t, r); r.StatusCode != http.StatusRequestTimeout || !strings.Contains(body, `"code":"timeout"`) || len(m.silences) != 0 {
		t.Errorf("status %d, %s; silences %v", r.StatusCode, body, m.silences)
	}
}

func TestPublic(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /": true, "HEAD /": true, "GET /app.js": true, "GET /vendor/dagre.js": true, "POST /api/v1/session": true, "DELETE /api/v1/session": true,
		"POST /": false, "GET /api/v1/status": false, "GET /api/v1/alerts/app.js": false, "GET /metrics": false, "GET /nothing": false, "GET //": false, "GET /vendor/": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := page.Public(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}

// TestFiles: every file that the page names is there, is not asked for twice, and
// nothing in it reaches elsewhere.
func TestFiles(t *testing.T) {
	h := page.Handler(newMonitor(t), page.Options{})
	r := ask(t, h, "GET", "/", "")
	index := read(t, r)
	csp := r.Header.Get("Content-Security-Policy")
	for _, d := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, d) {
			t.Errorf("the policy lacks %s: %s", d, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
		t.Error("the policy allows too much: ", csp)
	}
	names := []string{"/"}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(index, -1) {
		names = append(names, "/"+m[1])
	}
	seen := map[string]bool{}
	imports := regexp.MustCompile(`from '\./([^']+)'`)
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		r := ask(t, h, "GET", name, "")
		text := read(t, r)
		if r.StatusCode != 200 || r.Header.Get("X-Content-Type-Options") != "nosniff" || strings.Contains(r.Header.Get("Content-Type"), "plain") {
			t.Errorf("%s: status %d, %s", name, r.StatusCode, r.Header.Get("Content-Type"))
		}
		if tag := r.Header.Get("ETag"); tag != "" {
			if again := ask(t, h, "GET", name, "", header("If-None-Match", tag)); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s: status %d when it is still the same", name, again.StatusCode)
			}
		} else {
			t.Errorf("%s has no ETag", name)
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			names = append(names, "/"+m[1])
		}
		if strings.HasPrefix(name, "/vendor/") {
			continue
		}
		// Markup is never made of text, and nothing is run that is one.
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "srcdoc", "https://", "javascript:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only these were found: %v", seen)
	}
}

// TestVendor: the code of others is what it is said to be.
func TestVendor(t *testing.T) {
	notes, err := os.ReadFile("static/vendor/VENDOR.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\S+\.(?:js|css)) \|.*\((LICENSE-\w+)\) \| ([0-9a-f]{64}) \|$`).FindAllSubmatch(notes, -1)
	files, err := os.ReadDir("static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"VENDOR.md": true}
	for _, row := range rows {
		data, err := os.ReadFile("static/vendor/" + string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != string(row[3]) {
			t.Errorf("%s has the sum %s", row[1], got)
		}
		known[string(row[1])], known[string(row[2])] = true, true
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("VENDOR.md does not tell where %s is from", f.Name())
		}
	}
}

// TestEvents: what happens arrives in order, whatever is in it; silence is not taken
// for a broken connection; readers are bounded; and who goes makes room.
func TestEvents(t *testing.T) {
	m := newMonitor(t)
	s := httptest.NewServer(page.Handler(m, page.Options{Heartbeat: 10 * time.Millisecond}))
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	open := func(ctx context.Context) *http.Response {
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := open(ctx)
	defer w.Body.Close()
	if got := w.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatal(got)
	}
	lines := bufio.NewScanner(w.Body)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
	}
	await("retry: 2000")
	await(": still here")
	m.Publish(page.Event{Type: page.EventAlert, Data: page.Summary{ID: "a", Summary: "one\nevent: status\n\r\u2028<b>"}})
	m.Publish(page.Event{Type: page.EventSilences})
	await("event: alert")
	lines.Scan()
	var got page.Summary
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &got); err != nil || got.Summary != "one\nevent: status\n\r\u2028<b>" {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	await("event: silences")
	await("data: {}")

	var others []context.CancelFunc
	full := false
	for range 100 {
		ctx, cancel := context.WithCancel(ctx)
		others = append(others, cancel)
		w := open(ctx)
		defer w.Body.Close()
		if full = w.StatusCode == http.StatusServiceUnavailable && w.Header.Get("Retry-After") != ""; full {
			break
		}
	}
	if !full || len(others) != 32 { // from an address, with the first one; and one was refused
		t.Fatalf("%d more may listen", len(others))
	}
	for _, c := range others {
		c()
	}
	for { // until the server has seen one of them go
		w := open(ctx)
		_ = w.Body.Close()
		if w.StatusCode == http.StatusOK {
			break
		}
	}
}

// TestHub: a reader that does not read holds nobody up, and is dropped.
func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h page.Hub
		ctx, cancel := context.WithCancel(context.Background())
		slow := h.Subscribe(context.Background())
		fast := h.Subscribe(ctx)
		for i := range 1000 {
			h.Publish(page.Event{Type: page.EventAlert, Data: i})
			if e := <-fast; e.Data != i {
				t.Fatalf("got %v, want %d", e.Data, i)
			}
		}
		n := 0
		for range slow {
			n++
		}
		if n == 0 || n >= 1000 {
			t.Errorf("the slow one got %d", n)
		}
		if !h.Listened() {
			t.Error("the fast one was dropped too")
		}
		cancel()
		synctest.Wait()
		if _, ok := <-fast; ok || h.Listened() {
			t.Error("it listens still")
		}
		last := h.Subscribe(context.Background())
		h.Close()
		if _, ok := <-last; ok {
			t.Error("it listens after the end")
		}
	})
}
