package present_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/made"
)

func page(t *testing.T, as []alerts.Alert, opt present.PageOptions) string {
	t.Helper()
	var b strings.Builder
	if err := present.HTML(&b, as, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func named(t *testing.T, title string) alerts.Alert {
	t.Helper()
	for _, c := range made.Cases(t) {
		if c.Title == title {
			return c.Alert
		}
	}
	t.Fatalf("there is no case %s", title)
	return alerts.Alert{}
}

var satisfied = present.PageHistory{File: "h.jsonl", Facts: "10 transactions", Levels: []present.PageLevel{
	{Level: "si", Verdict: "satisfied"}, {Level: "ser", Verdict: "satisfied", Notes: []string{"it holds, but in no order that agrees with the recorded times"}}}, Holding: []string{"ser"}}

func TestPageGolden(t *testing.T) {
	golden.Check(t, "testdata/page-lost-update.html", page(t, []alerts.Alert{named(t, "with-times")}, present.PageOptions{Title: "lost-update in h.jsonl", Sources: []string{"h.jsonl"}}))
	golden.Check(t, "testdata/page-tree.html", page(t, []alerts.Alert{named(t, "tree"), named(t, "thin-air-read")}, present.PageOptions{Title: "2 anomalies"}))
	golden.Check(t, "testdata/page-satisfied.html", page(t, nil, present.PageOptions{Title: "h.jsonl", Histories: []present.PageHistory{satisfied}}))
}

var dataLink = regexp.MustCompile(`href="data:application/x-ndjson;base64,([^"]*)"`)

// tags are the elements of a page, and the attributes of each that may hold what
// came from outside.
var tags = map[string]bool{"html": true, "head": true, "meta": true, "title": true, "style": true, "body": true, "header": true, "main": true, "section": true,
	"nav": true, "article": true, "footer": true, "h1": true, "h2": true, "h3": true, "p": true, "b": true, "br": true, "span": true, "a": true, "ul": true, "ol": true,
	"li": true, "dl": true, "dt": true, "dd": true, "div": true, "details": true, "summary": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true,
	"td": true, "pre": true, "svg": true, "g": true, "rect": true, "path": true, "text": true}

// harmless is what is wrong with a page: an element or an attribute that is not
// ours, an address that is no anchor and no data, a style sheet that the policy
// does not allow.
func harmless(page string) error {
	z := html.NewTokenizer(strings.NewReader(page))
	policy, style := "", ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return z.Err()
			}
			hash := sha256.Sum256([]byte(style))
			if want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"; policy != want {
				return fmt.Errorf("the policy is %s, want %s", policy, want)
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if !tags[t.Data] {
				return fmt.Errorf("an element %s", t.Data)
			}
			if t.Data == "style" {
				z.Next()
				style += string(z.Raw())
			}
			for _, a := range t.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "xlink:href":
					return fmt.Errorf("an attribute %s of %s", a.Key, t.Data)
				case a.Key == "href" && !strings.HasPrefix(a.Val, "#anomaly-") && !strings.HasPrefix(a.Val, "data:application/x-ndjson;base64,"):
					return fmt.Errorf("a link to %.80s", a.Val)
				case a.Key == "content" && strings.HasPrefix(a.Val, "default-src"):
					policy = a.Val
				case a.Key == "http-equiv" && a.Val != "Content-Security-Policy":
					return fmt.Errorf("http-equiv=%s", a.Val)
				}
			}
		case html.CommentToken:
			return errors.New("a comment")
		}
	}
}

func TestPageHarmless(t *testing.T) {
	cases := made.Cases(t)
	for _, c := range cases {
		if err := harmless(page(t, []alerts.Alert{c.Alert}, present.PageOptions{Title: c.Title})); err != nil {
			t.Errorf("%s: %v", c.Title, err)
		}
	}
	for _, s := range []string{"</title></style><script>alert(1)</script>", "\" onmouseover=\"alert(1)\" style='", "javascript:alert(1)", "\x00\xff\u202e", "<!-- -->", "{{.}}", "&lt;script>",
		strings.Repeat("<b>", 300_000)} {
		a := cases[12].Alert
		a.DB, a.Level, a.Name, a.Adya, a.Guarantee, a.Summary, a.ID, a.Explanation = s, s, s, s, s, s, s, "1. "+s+"\n  "+s+"\n"
		a.Severity, a.Breaks, a.Holds, a.Aliases = name.Severity(s), []string{s}, []string{s}, []string{s}
		a.Cycle = []alerts.Edge{{From: s, To: s, Type: s, Key: s, Why: s}}
		r := record.Transaction{Session: s, ID: s, Ops: []record.Op{{Key: s, Value: record.String(s)}}}
		a.Evidence = append(a.Evidence[:1:1], codec.AppendJSON(nil, &r), json.RawMessage(s))
		got := page(t, []alerts.Alert{a, a}, present.PageOptions{Title: s, Sources: []string{s}, Histories: []present.PageHistory{{File: s, Facts: s, Failed: true},
			{File: s, Levels: []present.PageLevel{{Level: s, Verdict: s, Notes: []string{s}}}, Holding: []string{s}}}})
		if err := harmless(got); err != nil {
			t.Errorf("%.60q: %v", s, err)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\u202e") {
			t.Errorf("%.60q: something unprintable got through", s)
		}
		if len(got) > 1<<20 {
			t.Errorf("%.60q: %d bytes", s, len(got))
		}
	}
}

// The evidence that is downloaded is the alert's, byte for byte.
func TestPageEvidence(t *testing.T) {
	for _, c := range made.Cases(t) {
		m := dataLink.FindStringSubmatch(page(t, []alerts.Alert{c.Alert}, present.PageOptions{}))
		if m == nil {
			t.Fatalf("%s: there is no evidence", c.Title)
		}
		got, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(m[1], "&#43;", "+"))
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		for _, line := range c.Alert.Evidence {
			want.Write(line)
			want.WriteByte('\n')
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %s, want %s", c.Title, got, want.Bytes())
		}
	}
}

// Thousands of anomalies make a page of bounded size that says what it leaves out.
func TestPageBounded(t *testing.T) {
	one, other := named(t, "lost-update"), named(t, "write-skew")
	as := []alerts.Alert{one}
	for range 3000 {
		as = append(as, other)
	}
	got := page(t, as, present.PageOptions{Title: "many"})
	if n := strings.Count(got, "<article"); n != present.PageMax {
		t.Errorf("%d alerts are shown, want %d", n, present.PageMax)
	}
	for _, want := range []string{"3001 anomalies", "the first 50 are shown", "Left out here, to keep the page readable: 2951 write-skew"} {
		if !strings.Contains(got, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
	big := one // evidence that is too large is not in the page, and that is said
	for i := range 3000 {
		r := record.Transaction{ID: fmt.Sprint(i), Session: "s", Ops: []record.Op{{Kind: record.Write, Key: "k", Value: record.String(strings.Repeat("v", 1000))}}}
		big.Evidence = append(big.Evidence[:len(big.Evidence):len(big.Evidence)], codec.AppendJSON(nil, &r))
	}
	got = page(t, []alerts.Alert{big}, present.PageOptions{})
	if len(got) > 1<<20 || dataLink.MatchString(got) || !strings.Contains(got, "too many for this page") || !strings.Contains(got, "more transactions in the evidence") {
		t.Errorf("%d bytes, or it doesn't say what is left out", len(got))
	}
	many := make([]present.PageHistory, 700)
	if got = page(t, nil, present.PageOptions{Histories: many}); !strings.Contains(got, "and 200 more histories") {
		t.Error("it doesn't say how many histories are left out")
	}
}

func TestPageWords(t *testing.T) {
	undecided := satisfied
	undecided.Levels = []present.PageLevel{{Level: "si", Verdict: "unknown"}}
	failed := present.PageHistory{File: "x", Facts: "can't be judged", Failed: true}
	for want, h := range map[string]present.PageHistory{
		"No violation.</span> Every level": satisfied, "not everything was decided": undecided, "can&#39;t be judged": failed,
	} {
		got := page(t, nil, present.PageOptions{Histories: []present.PageHistory{h}})
		if !strings.Contains(got, want) || strings.Contains(got, "Every level") != (h.Facts == satisfied.Facts && h.Levels[0].Verdict == "satisfied") {
			t.Errorf("%q: %s", want, got[strings.Index(got, "<body"):])
		}
	}
}

func TestPageWriteError(t *testing.T) {
	if err := present.HTML(broken{}, nil, present.PageOptions{}); err == nil {
		t.Error("no error")
	}
}
