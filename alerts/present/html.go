package present

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// PageOptions say what an HTML page has beside its alerts.
type PageOptions struct {
	Title string
	// Histories are those that were judged, if any.
	Histories []PageHistory
	// Sources say of each alert where it was found; empty: it is not said.
	Sources []string
}

// PageHistory is a history and what is known of it.
type PageHistory struct {
	File    string
	Facts   string // its size, or why it can't be judged
	Failed  bool   // it can't be judged
	Levels  []PageLevel
	Holding []string // the strongest levels that hold
}

// PageLevel is what is known of a level.
type PageLevel struct {
	Level   string
	Verdict string // satisfied, violated, unknown or not-applicable
	Notes   []string
	Also    []string // further levels of which the same is known
}

// together puts levels of one verdict into one row, without notes.
func together(ls []PageLevel) []PageLevel {
	var out []PageLevel
	for _, l := range ls {
		i := slices.IndexFunc(out, func(o PageLevel) bool { return o.Verdict == l.Verdict })
		if i < 0 {
			out = append(out, PageLevel{Level: l.Level, Verdict: l.Verdict})
			continue
		}
		out[i].Also = append(out[i].Also, l.Level)
	}
	return out
}

// Bounds of a page.
const (
	PageMax       = 50        // alerts
	pageBytes     = 8 << 20   // after so many no further alert is begun
	pageHistories = 500       // histories
	evidenceBytes = 512 << 10 // of one alert that are to be downloaded
	rawMax        = 40        // records shown as they are
	rawCols       = 400
	proofLines    = 600
	proofCols     = 2000
	shownCols     = 1500
	edgesListed   = 60
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"levelName": levelName,
	"name":      text.Name,
	"shown":     func(s any) string { return head(fmt.Sprint(s), shownCols) },
	"join":      func(s []string) string { return strings.Join(names(s, text.Name), ", ") },
	"num":       func(i int) int { return i + 1 },
}).Parse(pageHTML))

// HTML writes one self-contained page with the alerts: it has no script, asks
// nothing of any network, and may be attached to a bug report. It shows as many as
// fit a bounded size, and says how many it left out. The only errors are those of
// w. The same alerts give the same bytes.
func HTML(w io.Writer, as []alerts.Alert, opt PageOptions) error {
	p := newPage(as, opt)
	var b bytes.Buffer
	for _, part := range []string{"head", "body"} {
		if err := pageTemplate.ExecuteTemplate(&b, part, p); err != nil {
			return fmt.Errorf("can't happen, because the template is constant and its data plain: %w", err)
		}
	}
	n := b.Len()
	if _, err := b.WriteTo(w); err != nil {
		return err
	}
	shown := 0
	for i, a := range as[:p.Shown] {
		if n > pageBytes {
			break
		}
		if err := pageTemplate.ExecuteTemplate(&b, "alert", newCard(a, i, opt)); err != nil {
			return fmt.Errorf("can't happen, because the template is constant and its data plain: %w", err)
		}
		n += b.Len()
		if _, err := b.WriteTo(w); err != nil {
			return err
		}
		shown++
	}
	p.Left = left(as[shown:])
	if err := pageTemplate.ExecuteTemplate(&b, "foot", p); err != nil {
		return fmt.Errorf("can't happen, because the template is constant and its data plain: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// page is the data of the frame of a page.
type page struct {
	Title     string
	CSS       template.CSS
	Policy    string
	Histories []PageHistory
	More      int // histories that are not listed
	Count     int // alerts
	Shown     int // at most
	Index     []entry
	Left      []string // names and counts of the alerts that are left out
	Satisfied bool
}

type entry struct {
	At            int
	Name, Summary string
}

func newPage(as []alerts.Alert, opt PageOptions) *page {
	css := pageCSS + picture.Style
	hash := sha256.Sum256([]byte(css))
	p := &page{
		Title: head(opt.Title, 200), CSS: template.CSS(css), //nolint:gosec // it is constant
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'",
		Count: len(as), Shown: min(len(as), PageMax),
	}
	p.Histories = slices.Clone(opt.Histories[:min(len(opt.Histories), pageHistories)])
	for i := range p.Histories {
		if len(p.Histories) > 1 {
			p.Histories[i].Levels = together(p.Histories[i].Levels)
		}
	}
	p.More = len(opt.Histories) - len(p.Histories)
	p.Satisfied = len(as) == 0 && len(opt.Histories) > 0
	for _, h := range opt.Histories {
		p.Satisfied = p.Satisfied && !h.Failed && !slices.ContainsFunc(h.Levels, func(l PageLevel) bool {
			return l.Verdict != verdict.Satisfied.String() && l.Verdict != verdict.NotApplicable.String()
		})
	}
	if len(as) > 1 {
		for i, a := range as[:p.Shown] {
			p.Index = append(p.Index, entry{i, a.Name, head(a.Summary, 300)})
		}
	}
	return p
}

// left says what was left out, the most frequent first.
func left(as []alerts.Alert) []string {
	counts := map[string]int{}
	var order []string
	for i := range as {
		n := text.Name(as[i].Name)
		if counts[n] == 0 {
			order = append(order, n)
		}
		counts[n]++
	}
	slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
	var out []string
	for i, n := range order {
		if i == namesMax {
			out = append(out, "others")
			break
		}
		out = append(out, fmt.Sprintf("%d %s", counts[n], n))
	}
	return out
}

// card is the data of one alert on a page.
type card struct {
	alerts.Alert
	At       int
	Source   string
	Facts    [][2]string
	Cycle    template.HTML
	Timeline template.HTML
	Heading  string
	Edges    []alerts.Edge
	MoreEdge int
	Proof    []*step
	Txns     []txn
	MoreTxns int
	Next     []string
	File     string
	Command  string
	Data     template.URL
	Bytes    int
	Raw      []string
	MoreRaw  int
}

func newCard(a alerts.Alert, at int, opt PageOptions) *card {
	c := &card{Alert: a, At: at, Facts: append(cardFacts(a), facts(a)...), Next: explain.Next(a.Name, a.Aliases)}
	if at < len(opt.Sources) {
		c.Source = head(opt.Sources[at], 300)
	}
	c.Cycle = template.HTML(picture.Unstyled(picture.Cycle(a)))       //nolint:gosec // package picture escapes what it shows
	c.Timeline = template.HTML(picture.Unstyled(picture.Timeline(a))) //nolint:gosec // likewise
	switch {
	case len(a.Cycle) > 0:
		c.Heading = "The cycle"
	case len(a.Cases) > 0:
		c.Heading = "Every possibility runs into a cycle"
	default:
		c.Heading = "What was read"
	}
	c.Edges = a.Cycle[:min(len(a.Cycle), edgesListed)]
	c.MoreEdge = len(a.Cycle) - len(c.Edges)
	c.Proof = proof(a.Explanation)
	c.evidence()
	return c
}

// cardFacts are the facts that a terminal has in its first line.
func cardFacts(a alerts.Alert) [][2]string {
	out := [][2]string{{"breaks", strings.Join(names(a.Breaks, levelName), ", ")}}
	add := func(what, s string) {
		if s != "" {
			out = append(out, [2]string{what, s})
		}
	}
	if a.Adya != "" {
		add("Adya's name", text.Name(a.Adya))
	}
	if a.Guarantee != "" {
		add("session guarantee", text.Name(a.Guarantee))
	}
	if a.DB != "" && a.DB != record.DefaultDB {
		add("database", text.Name(a.DB))
	}
	if a.FirstSeen > 1 && a.Count > 1 {
		add("seen", fmt.Sprintf("%d times, from %s to %s", a.Count, moment(a.FirstSeen), moment(a.LastSeen)))
	} else if a.FirstSeen > 1 {
		add("seen", moment(a.FirstSeen))
	}
	return out
}

func moment(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000 UTC") }

// step is a line of the explanation with what is told below it.
type step struct {
	Text string
	Why  bool // it is a step of a cycle, whose reason may be left folded
	Kids []*step
}

// proof makes a tree of lines that are indented by two spaces per level.
func proof(explanation string) []*step {
	root := &step{}
	open := []*step{root}
	n := 0
	for line := range strings.Lines(explanation) {
		if n++; n > proofLines {
			root.Kids = append(root.Kids, &step{Text: "… and more; the JSON of the alert has all of it."})
			break
		}
		line = strings.TrimRight(line, "\r\n ")
		body := strings.TrimLeft(line, " ")
		if body == "" {
			continue
		}
		depth := min((len(line)-len(body))/2, len(open)-1, depthMax)
		s := &step{Text: head(body, proofCols), Why: body[0] >= '0' && body[0] <= '9'}
		parent := open[depth]
		parent.Kids = append(parent.Kids, s)
		open = append(open[:depth+1], s)
	}
	return root.Kids
}

// depthMax is how deep lines are nested.
const depthMax = 12

// evidence fills in what the clients saw, and how to check it again.
func (c *card) evidence() {
	lines := c.Evidence
	for i, line := range lines {
		c.Bytes += len(line) + 1
		if i < rawMax {
			c.Raw = append(c.Raw, head(string(line), rawCols))
		}
		if i == 0 {
			continue
		}
		if i > txnsMax {
			c.MoreTxns++
			continue
		}
		c.Txns = append(c.Txns, row(line))
	}
	c.MoreRaw = len(lines) - len(c.Raw)
	if len(lines) == 0 {
		return
	}
	c.File = fileName(c.Alert)
	if l, ok := verdict.ParseLevel(c.Level); ok {
		c.Command = "monitor check --level " + l.String() + " " + c.File
	}
	if c.Bytes <= evidenceBytes {
		encoded := base64.StdEncoding.EncodeToString(c.EvidenceText())
		c.Data = template.URL("data:application/x-ndjson;base64," + encoded) //nolint:gosec // base64 means nothing else
	}
}

// row is a record as a row of a table.
func row(line []byte) txn {
	if len(line) > evidenceBytes {
		return txn{ID: "a record that is too large to show"}
	}
	t, err := newTxn(line)
	if err != nil {
		return txn{ID: "a record that can't be read"}
	}
	for i, op := range t.Ops {
		t.Ops[i] = strings.Join(strings.Fields(op), " ")
	}
	return t
}

// fileName is a name for the evidence that is safe in every shell and file system.
func fileName(a alerts.Alert) string {
	safe := func(s string, n int) string {
		s = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
				return r
			}
			return -1
		}, head(s, 200))
		return strings.Trim(s[:min(len(s), n)], "-")
	}
	return strings.Trim(safe(a.Name, 40)+"-"+safe(a.ID, 12), "-") + ".jsonl"
}

// head is s on one line, printable, cut after n runes.
func head(s string, n int) string {
	at := 0
	for i := range s {
		if at == n {
			return text.Printable(s[:i]) + "…"
		}
		at++
	}
	return text.Printable(s)
}
