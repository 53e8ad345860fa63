package deliver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
)

// lostUpdate is a notice as the monitor makes it.
func lostUpdate() life.Notice {
	return life.Notice{
		Alert: alerts.Alert{Version: 1, ID: "a1", DB: "orders", Level: "si", Breaks: []string{"si", "ser"}, Holds: []string{"pc"}, Name: "lost-update", Adya: "G-single",
			Severity: "critical", State: alerts.Fresh, FirstSeen: 1_700_000_000_000_000_000, LastSeen: 1_700_000_000_000_000_000, Count: 1,
			Summary: "T1 and T2 both read x = 1 & both overwrote it", Explanation: "What was seen:\n  1. T1 read x", Transactions: []string{"T1", "T2"}, Keys: []string{"x"},
			Evidence: []json.RawMessage{json.RawMessage(`{"history":{}}`)}, Links: map[string]string{"alert": "https://isowatch.example/alerts/a1"}},
		Notification: life.Notification{ID: "n1", Kind: life.KindAlert, Group: "g1", IDs: []string{"a1"}, Groups: 1, Count: 1, Since: 1_700_000_000_000_000_000},
	}
}

// resolved is lostUpdate when it is over.
func resolved(also ...string) life.Notice {
	n := lostUpdate()
	n.State, n.ResolvedAt = alerts.Resolved, n.FirstSeen+int64(time.Hour)
	n.Notification.ID, n.Notification.Kind, n.Notification.IDs, n.Notification.Resolved = "n2", life.KindResolved, nil, append([]string{"g1"}, also...)
	return n
}

// hostile is a notice with what clients may write wherever it can be.
func hostile() life.Notice {
	n := lostUpdate()
	nasty := "<!channel> & *b* `c` ``` \x1b[31m\x00\u202e\xff|> " + strings.Repeat("é𝄞<", 2_000)
	n.DB, n.Name, n.Level, n.Summary, n.Explanation = nasty, nasty, nasty, nasty+"\n"+nasty, nasty+"\n```\n"+nasty
	n.Keys, n.Breaks, n.Holds, n.Transactions = slices.Repeat([]string{nasty}, 100), slices.Repeat([]string{nasty}, 100), slices.Repeat([]string{nasty}, 100), slices.Repeat([]string{nasty}, 100)
	n.Links = map[string]string{"alert": "javascript:alert(1)", nasty: "https://h/" + nasty, "x": "https://h/<|>&\n", "y": "https://h/?a&b"}
	n.Notification.IDs, n.Notification.Group = slices.Repeat([]string{nasty[:60]}, 10_000), nasty
	n.Notification.Parts = slices.Repeat([]life.Part{{DB: nasty, Level: nasty, Name: nasty}}, 100)
	n.Severity = "worst"
	return n
}

// recorder is a server that keeps the bodies it got and answers as it is told.
type recorder struct {
	mu      sync.Mutex
	bodies  []string
	headers []http.Header
	answer  func(n int, w http.ResponseWriter) // n counts from 1; nil: 200
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.headers = append(r.bodies, string(b)), append(r.headers, req.Header)
	if r.answer != nil {
		r.answer(len(r.bodies), w)
	}
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bodies)
}

const routingKey = "0123456789abcdef0123456789abcdef"

// maker makes a receiver of each format.
var makers = map[string]func(deliver.WebhookOptions) (deliver.Receiver, error){
	"generic":      func(o deliver.WebhookOptions) (deliver.Receiver, error) { return deliver.NewWebhook(o) },
	"slack":        func(o deliver.WebhookOptions) (deliver.Receiver, error) { return deliver.NewSlack(o) },
	"pagerduty":    func(o deliver.WebhookOptions) (deliver.Receiver, error) { return deliver.NewPagerDuty(o) },
	"alertmanager": func(o deliver.WebhookOptions) (deliver.Receiver, error) { return deliver.NewAlertmanager(o) },
}

func made(t *testing.T, format string, h http.Handler) deliver.Receiver {
	t.Helper()
	r, err := makers[format](deliver.WebhookOptions{URL: serve(t, h.ServeHTTP) + "/T0PSECRET", RoutingKey: routingKey, Timeout: ample, Headers: map[string]string{"Authorization": "Bearer sesame"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.(io.Closer).Close() })
	return r
}

// tell sends notices, all of which must be taken.
func tell(t *testing.T, r deliver.Receiver, notices ...life.Notice) {
	t.Helper()
	for _, n := range notices {
		if _, _, err := r.Notify(t.Context(), n.JSON(), n.Notification.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// same compares JSON.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestSlack(t *testing.T) {
	rec := &recorder{}
	tell(t, made(t, "slack", rec), lostUpdate(), resolved())
	same(t, "an alert", rec.got()[0], `{"text":"lost-update in orders, which breaks si. T1 and T2 both read x = 1 &amp; both overwrote it","unfurl_links":false,"unfurl_media":false,"blocks":[
	 {"type":"header","text":{"type":"plain_text","text":"🔴 lost-update in orders, which breaks si"}},
	 {"type":"section","text":{"type":"mrkdwn","verbatim":true,"text":"T1 and T2 both read x = 1 &amp; both overwrote it"}},
	 {"type":"section","fields":[
	  {"type":"mrkdwn","verbatim":true,"text":"*Database*\norders"},{"type":"mrkdwn","verbatim":true,"text":"*Breaks*\nsi, ser"},{"type":"mrkdwn","verbatim":true,"text":"*Still holds*\npc"},
	  {"type":"mrkdwn","verbatim":true,"text":"*Severity*\ncritical"},{"type":"mrkdwn","verbatim":true,"text":"*Keys*\nx"},{"type":"mrkdwn","verbatim":true,"text":"*Adya*\nG-single"},
	  {"type":"mrkdwn","verbatim":true,"text":"*Found*\nonce"},{"type":"mrkdwn","verbatim":true,"text":"*Since*\n<!date^1700000000^{date_num} {time_secs}|2023-11-14T22:13:20Z>"}]},
	 {"type":"section","text":{"type":"mrkdwn","verbatim":true,"text":"`+"```What was seen:\\n  1. T1 read x```"+`"}},
	 {"type":"context","elements":[{"type":"mrkdwn","verbatim":true,"text":"monitor alerts show a1"},{"type":"mrkdwn","verbatim":true,"text":"<https://isowatch.example/alerts/a1|Look at it>"}]}]}`)
	weaker := lostUpdate()
	weaker.Weakest = "pc"
	if tell(t, made(t, "slack", rec), weaker); !strings.Contains(rec.got()[2], `"🔴 lost-update in orders, which breaks si, and already pc"`) {
		t.Errorf("of what breaks a weaker level it is said: %s", rec.got()[2])
	}
	if over := rec.got()[1]; !strings.Contains(over, `"✅ Over: lost-update in orders, which breaks si"`) || strings.Contains(over, "What was seen") {
		t.Errorf("resolved: %s", over)
	}
}

// slackText are all texts of a message with their limits.
func slackTexts(t *testing.T, body string) (texts []string) {
	t.Helper()
	type object struct {
		Type, Text string
	}
	var m struct {
		Text   string
		Blocks []struct {
			Type     string
			Text     *object
			Fields   []object
			Elements []object
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	check := func(what string, o object, limit int) {
		if n := len(utf16.Encode([]rune(o.Text))); n == 0 || n > limit {
			t.Errorf("%s has %d characters, at most %d", what, n, limit)
		}
		if o.Type == "mrkdwn" {
			texts = append(texts, o.Text)
		}
	}
	if len(m.Blocks) > 50 {
		t.Errorf("%d blocks", len(m.Blocks))
	}
	check("text", object{"mrkdwn", m.Text}, 40_000)
	for _, b := range m.Blocks {
		limit := map[string]int{"header": 150, "section": 3000}[b.Type]
		if b.Text != nil {
			check(b.Type, *b.Text, limit)
		}
		if len(b.Fields) > 10 || len(b.Elements) > 10 {
			t.Errorf("%d fields, %d elements", len(b.Fields), len(b.Elements))
		}
		for _, f := range append(b.Fields, b.Elements...) {
			check("field", f, 2000)
		}
	}
	return texts
}

// What clients write stays within the receivers' limits and is nothing but text.
func TestHostile(t *testing.T) {
	rec := &recorder{}
	tell(t, made(t, "slack", rec), hostile())
	for _, s := range slackTexts(t, rec.got()[0]) {
		plain := s
		for _, markup := range []string{"<!date^1700000000^{date_num} {time_secs}|2023-11-14T22:13:20Z>", "<https://h/?a&amp;b|Look at it>", "&amp;", "&lt;", "&gt;"} {
			plain = strings.ReplaceAll(plain, markup, "")
		}
		fences := strings.Count(plain, "```")
		if strings.ContainsAny(plain, "<>&\x1b\x00\u202e") || !utf8.ValidString(s) || strings.HasPrefix(s, "```") && fences != 2 {
			t.Errorf("%.200q", plain)
		}
	}

	rec = &recorder{}
	tell(t, made(t, "pagerduty", rec), hostile())
	var e struct {
		DedupKey string `json:"dedup_key"`
		Payload  struct{ Summary, Source, Severity string }
	}
	body := rec.got()[0]
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	if len(body) > 512<<10 || len(e.DedupKey) > 255 || len(e.Payload.Summary) > 1024 || e.Payload.Severity != "error" || e.Payload.Source == "" || strings.ContainsAny(body, "\x1b\x00") || strings.Contains(body, "javascript") {
		t.Errorf("%d bytes, key %d, summary %d, severity %s", len(body), len(e.DedupKey), len(e.Payload.Summary), e.Payload.Severity)
	}

	rec = &recorder{}
	tell(t, made(t, "alertmanager", rec), hostile())
	if body := rec.got()[0]; len(body) > 64<<10 || !utf8.ValidString(body) {
		t.Errorf("%d bytes", len(body))
	}
}

func TestPagerDuty(t *testing.T) {
	rec := &recorder{}
	test := lostUpdate()
	test.Notification.Kind = life.KindTest
	tell(t, made(t, "pagerduty", rec), lostUpdate(), resolved("g2", "g3"), test)
	got := rec.got()
	same(t, "trigger", got[0], `{"routing_key":"`+routingKey+`","event_action":"trigger","dedup_key":"g1","client":"Isowatch","client_url":"https://isowatch.example/alerts/a1",
	 "links":[{"href":"https://isowatch.example/alerts/a1","text":"alert"}],"payload":{"summary":"lost-update in orders, which breaks si: T1 and T2 both read x = 1 & both overwrote it","source":"isowatch/orders",
	 "severity":"critical","timestamp":"2023-11-14T22:13:20Z","component":"orders","group":"g1","class":"lost-update","custom_details":{"kind":"alert","count":1,"clock_dependent":false,"alert":"a1","level":"si","adya":"G-single",
	 "explanation":"What was seen:\n  1. T1 read x","breaks":"si, ser","holds":"pc","keys":"x","transactions":"T1, T2","alerts":"a1"}}}`)
	for i, g := range []string{"g1", "g2", "g3"} {
		same(t, "resolve", got[1+i], `{"routing_key":"`+routingKey+`","event_action":"resolve","dedup_key":"`+g+`"}`)
	}
	if !strings.Contains(got[4], `"severity":"info"`) || !strings.Contains(got[5], `"resolve"`) || len(got) != 6 {
		t.Errorf("a test: %q", got[4:])
	}
}

// What a receiver took of a notice with several parts is not sent again while the
// monitor lives, and all of it arrives.
func TestPartsGoOn(t *testing.T) {
	rec := &recorder{answer: func(n int, w http.ResponseWriter) {
		if n == 2 || n == 3 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}}
	r, n := made(t, "pagerduty", rec), resolved("g2")
	for i := range 3 {
		_, recoverable, err := r.Notify(t.Context(), n.JSON(), "n2")
		if (err == nil) != (i == 2) || err != nil && !recoverable {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	var keys []string
	for _, b := range rec.got() {
		var e struct {
			DedupKey string `json:"dedup_key"`
		}
		if err := json.Unmarshal([]byte(b), &e); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.DedupKey)
	}
	if strings.Join(keys, " ") != "g1 g2 g2 g2" {
		t.Errorf("%v", keys)
	}
}

// A notice that is refused is told in its plainest form; only if that is refused too it
// is given up.
func TestPlain(t *testing.T) {
	for format, gone := range map[string]string{"generic": `"history"`, "slack": `"blocks"`, "pagerduty": `"custom_details"`} {
		for _, status := range []int{400, 413, 422} {
			rec := &recorder{}
			rec.answer = func(n int, w http.ResponseWriter) {
				if strings.Contains(rec.bodies[n-1], gone) {
					w.WriteHeader(status)
				}
			}
			tell(t, made(t, format, rec), lostUpdate())
			if got := rec.got(); len(got) != 2 || !strings.Contains(got[0], gone) || strings.Contains(got[1], gone) || !strings.Contains(got[1], "lost-update") {
				t.Errorf("%s, %d: %q", format, status, got)
			}
		}
		rec := &recorder{answer: func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }}
		if _, recoverable, err := made(t, format, rec).Notify(t.Context(), lostUpdate().JSON(), "n1"); err == nil || recoverable || len(rec.got()) != 2 {
			t.Errorf("%s: %v, %v after %d", format, recoverable, err, len(rec.got()))
		}
	}
}

// No format tells its secrets, whatever the receiver repeats of them.
func TestSecretsStay(t *testing.T) {
	for format := range makers {
		rec := &recorder{}
		rec.answer = func(n int, w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			key := ""
			if format == "pagerduty" {
				key = routingKey
			}
			fmt.Fprintf(w, "not with %s, %s, T0PSECRET", key, rec.headers[n-1].Get("Authorization"))
		}
		r := made(t, format, rec)
		_, recoverable, err := r.Notify(t.Context(), lostUpdate().JSON(), "n1")
		if err == nil || !recoverable || strings.Contains(err.Error(), routingKey) || strings.Contains(fmt.Sprint(r), "T0PSECRET") {
			t.Errorf("%s: %v, %v", format, recoverable, err)
		}
		unspoken(t, err)
	}
}

// What stands in an address before the host is sent as a header, and stays a secret when
// the receiver repeats that.
func TestBasicAuthStays(t *testing.T) {
	for _, user := range []string{"us%65r:hunter22", "user:a", "hunter22", "u:hunter2222"} {
		rec := &recorder{}
		rec.answer = func(n int, w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "not with %s", rec.headers[n-1].Get("Authorization"))
		}
		w := hook(t, strings.Replace(serve(t, rec.ServeHTTP), "://", "://"+user+"@", 1), deliver.WebhookOptions{})
		_, _, err := w.Notify(t.Context(), lostUpdate().JSON(), "n1")
		sent := strings.TrimPrefix(rec.headers[0].Get("Authorization"), "Basic ")
		if err == nil || sent == "" || strings.Contains(err.Error(), strings.TrimRight(sent, "=")) || !strings.Contains(err.Error(), "its answer is not shown") {
			t.Errorf("%s: %v tells %s", user, err, sent)
		}
	}
}

// Several secrets sign side by side, and each alone verifies.
func TestRotation(t *testing.T) {
	rec := &recorder{}
	w := hook(t, serve(t, rec.ServeHTTP), deliver.WebhookOptions{Secrets: []string{secret, "whsec_bmV3IHNlY3JldA=="}})
	tell(t, w, lostUpdate())
	if s := strings.Fields(rec.headers[0].Get("Webhook-Signature")); len(s) != 2 || s[0] == s[1] || !strings.HasPrefix(s[1], "v1,") {
		t.Errorf("signatures %q", s)
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := deliver.NewWriter(&out)
	tell(t, w, lostUpdate(), resolved())
	if _, recoverable, err := w.Notify(t.Context(), []byte("{\n"), "n3"); err == nil || recoverable {
		t.Errorf("no JSON: %v, %v", recoverable, err)
	}
	if want := string(lostUpdate().JSON()) + "\n" + string(resolved().JSON()) + "\n"; out.String() != want {
		t.Errorf("%s", out.String())
	}
	if _, recoverable, err := deliver.NewWriter(broken{}).Notify(t.Context(), []byte("{}"), "n1"); err == nil || !recoverable {
		t.Errorf("a closed pipe: %v, %v", recoverable, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFilters(t *testing.T) {
	summary := lostUpdate()
	summary.Notification.Kind, summary.Notification.Groups = life.KindSummary, 3
	summary.Notification.Parts = []life.Part{{DB: "orders", Level: "si", Groups: 1}, {DB: "shop-7", Level: "ser", Groups: 2}}
	more := summary
	more.Notification.Groups = 9
	operational := life.Notice{Alert: alerts.Alert{Version: 1, Severity: "warning"}, Notification: life.Notification{Kind: life.KindOperational, Groups: 1}}
	test := operational
	test.Notification.Kind, test.Severity = life.KindTest, "info"
	for _, c := range []struct {
		filter deliver.Filter
		want   string // of alert, summary, more, operational, test
	}{
		{deliver.Filter{}, "yyyyy"},
		{deliver.Filter{MinSeverity: "critical"}, "yyyny"},
		{deliver.Filter{MinSeverity: "warning"}, "yyyyy"},
		{deliver.Filter{Levels: []string{"ser"}}, "yyyyy"}, // the alert breaks it too
		{deliver.Filter{Levels: []string{"rc"}}, "nnyyy"},
		{deliver.Filter{DBs: []string{"orders"}}, "yyyyy"},
		{deliver.Filter{DBs: []string{"shop-?"}}, "nyyyy"},
		{deliver.Filter{DBs: []string{"*-7*"}}, "nyyyy"},
		{deliver.Filter{DBs: []string{"or", "rders", "o*x"}}, "nnyyy"},
		{deliver.Filter{DBs: []string{"orders"}, MinSeverity: "critical", Levels: []string{"rc"}}, "nnyny"},
	} {
		got := ""
		for _, n := range []life.Notice{lostUpdate(), summary, more, operational, test} {
			st, r, seen := newMemory([]string{"a"}), &answers{}, &events{}
			st.boxes["a"] = append(st.boxes["a"], item("n", n.JSON()))
			d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Observe: seen.Observe, Filters: map[string]deliver.Filter{"a": c.filter}})
			stop := run(d)
			if err := d.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			stop()
			word, outcome := "n", deliver.Filtered
			if len(r.ids()) == 1 {
				word, outcome = "y", deliver.Delivered
			}
			if got += word; seen.outcomes()[0] != outcome || len(st.left("a")) != 0 {
				t.Errorf("%+v: %v, left %v", c.filter, seen.outcomes(), st.left("a"))
			}
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.filter, got, c.want)
		}
	}
}

// The times of a test are long enough for any machine, and nothing waits for them.
const ample = 10 * time.Minute

func withTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	t.Cleanup(cancel)
	return ctx
}
