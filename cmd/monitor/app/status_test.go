package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
)

// call sends a request to the monitor's API and reads its answer, if it is wanted.
func call[T any](t *testing.T, r *running, method, path, body string, want int) (out T) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr()+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, want, answer)
	}
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
	return out
}

// TestStatus asks a running monitor, through its API, how it is doing.
func TestStatus(t *testing.T) {
	t.Parallel()
	began := time.Now().UnixNano()
	c := bankConfig(t)
	r := start(t, c, nil, false)
	var st page.Status
	eventually(t, "the status has it all", func() bool {
		st = call[page.Status](t, r, "GET", "status", "", 200)
		return st.Health == life.Broken && len(st.Histories) == 1 && st.Histories[0].Levels[0].Health == life.Broken && st.Alerts.Total == 1 && st.Alerts.Groups == 1 &&
			st.Histories[0].Transactions+st.Histories[0].Waiting == 2003 && len(st.Waits) == 0 && st.Store.Bytes > 0 && st.Histories[0].Queued == 0
	})
	all := call[page.List](t, r, "GET", "alerts", "", 200)
	if len(all.Alerts) != 1 || all.Total != 1 || all.Next != 0 || all.Scanned != 1 {
		t.Fatalf("alerts: %+v", all)
	}
	a := all.Alerts[0]
	h := st.Histories[0]
	if h.DB != "bank" || h.Coverage != "partial" || h.Since == 0 || h.Until < h.Since || h.Newest < h.Until || h.Queued != 0 || h.Behind != 0 || h.Lag < 0 || h.LastRecord < began || h.LastRecord > st.Now || h.SampledOneIn != 1 || len(h.Losses) != 0 {
		t.Errorf("the history: %+v", h)
	}
	for i, level := range []string{"si", "ser"} {
		l := h.Levels[i]
		if l.Level != level || l.Health != life.Broken || l.Alerts != 1 || l.Violations != 1 || l.Complete == life.Partial || l.Since < began || l.Since > l.Last || l.Last < a.LastSeen || l.Title == "" || l.Why == "" {
			t.Errorf("level %d: %+v", i, l)
		}
	}
	for i, x := range h.Stretches {
		if !x.Complete || x.To < x.From || i > 0 && x.From != h.Stretches[i-1].To {
			t.Errorf("stretch %d of %+v", i, h.Stretches)
		}
	}
	if s := st.Source; s.Kind != "file" || s.Name != c.Source.File.Path || s.Records != 2003 || s.Rejected != 0 || s.Partitions != 1 {
		t.Errorf("the source: %+v", s)
	}
	if s := st.Settings; strings.Join(s.Levels, " ") != "si ser" || s.Coverage != "partial" || s.Values != "full" || s.Lateness != 0.05 || s.Clock != "prune" {
		t.Errorf("the settings: %+v", s)
	}
	if st.Started < began-int64(time.Minute) || st.Started > st.Now || len(st.Receivers) != 0 || st.Store.Full {
		t.Errorf("%+v", st)
	}
	n := len(st.Series.Records)
	for _, x := range [][]float64{st.Series.Transactions, st.Series.Lag, st.Series.Window, st.Series.Judging, st.Series.Proving, st.Series.Open, st.Series.Conflicts, st.Series.Alerts} {
		if len(x) != n {
			t.Errorf("a series of %d steps beside one of %d", len(x), n)
		}
	}

	// Filters let through what they say, and nothing else.
	for query, want := range map[string]int{
		"q=" + a.ID[5:12]: 1, "q=LOST": 1, "q=owned": 1, "q=nothing": 0, "db=bank": 1, "db=ban": 0, "level=ser": 1, "level=rc": 0, "name=P4": 1, "name=lost-update": 1, "name=write-skew": 0,
		"severity=" + a.Severity: 1, "severity=info": 0, "group=" + a.Group: 1, "group=x": 0, "since=1": 1, "since=9000000000000000000": 0, "state=resolved": 0, "state=" + a.State: 1,
	} {
		if got := call[page.List](t, r, "GET", "alerts?"+query, "", 200); len(got.Alerts) != want {
			t.Errorf("%s: %d alerts, want %d", query, len(got.Alerts), want)
		}
	}
	one := call[alerts.Alert](t, r, "GET", "alerts/"+a.ID, "", 200)
	if one.ID != a.ID || one.Group != a.Group || len(one.Evidence) < 3 {
		t.Errorf("the alert: %+v", one)
	}

	// A silence is seen at the group it holds for, until it is over.
	silenced := func() bool {
		g := call[struct{ Groups []page.Group }](t, r, "GET", "groups", "", 200).Groups
		if len(g) != 1 || g[0].ID != a.Group || g[0].DB != "bank" || g[0].Alerts != 1 || g[0].Since > g[0].Last {
			t.Fatalf("groups: %+v", g)
		}
		return g[0].Silenced
	}
	if silenced() {
		t.Error("it is silenced by nobody")
	}
	call[page.Error](t, r, "POST", "silences", `{"until":4000000000000000000,"comment":"everything"}`, 400)
	call[page.Error](t, r, "POST", "silences", `{"db":"bank","until":1,"comment":"over"}`, 400)
	made := call[life.Silence](t, r, "POST", "silences", `{"db":"ba*","name":"lost-update","until":4000000000000000000,"comment":"known","by":"me"}`, 201)
	if list := call[struct{ Silences []life.Silence }](t, r, "GET", "silences", "", 200).Silences; len(list) != 1 || list[0] != made || made.Configured || made.By != "me" {
		t.Errorf("silences: %+v", list)
	}
	eventually(t, "the group is silenced", silenced)
	call[struct{}](t, r, "DELETE", "silences/"+made.ID, "", 204)
	eventually(t, "the group is not silenced any more", func() bool { return !silenced() })
	r.stop(t)
}

// fixedLife is the life of alerts at one moment.
type fixedLife struct{ *life.Life }

func (f *fixedLife) Silence(_ context.Context, s life.Silence) (life.Silence, error) { return s, nil }

func (f *fixedLife) Expire(context.Context, string) error { return nil }

// TestBrokenBeforeAnythingIsJudged: after a restart, how it stands with a database is what
// is known from before, although its history has not been made anew: page, metrics and
// commands say the same. A page that says that all is well meanwhile would be believed.
func TestBrokenBeforeAnythingIsJudged(t *testing.T) {
	c := testConfig(nil)
	c.Source = config.Source{Stdin: &config.Stdin{}}
	a, err := New(Options{Config: c, Log: zerolog.New(&bytes.Buffer{}), Store: newMemStore()})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixNano()
	hour := int64(time.Hour)
	l := life.New(life.Config{})
	levels := []life.Asked{{Level: "si", Complete: life.Complete}, {Level: "ser", Complete: life.Partial}}
	for _, db := range []string{"orders", "bank", "old", "idle"} {
		l.Judged(life.Progress{DB: db, Place: alerts.Place{History: 1, Transactions: 100, Time: now - 3*hour}, LastRecord: now - hour, Levels: levels}, now-3*hour)
	}
	find := func(db, level, name string, at int64) {
		l.Anomaly(alerts.Alert{ID: db + name, DB: db, Level: level, Weakest: level, Name: name, Count: 1, LastSeen: at, Severity: "critical", At: &alerts.Place{History: 1, Transactions: 100, Time: now - 2*hour}}, 1, at)
	}
	find("orders", "ser", "write-skew", now-hour)
	find("bank", "si", "lost-update", now-hour)
	find("bank", "si", "long-fork", now-int64(time.Second))
	find("old", "si", "lost-update", now-hour)
	for ok := true; ok; {
		_, ok = l.Next(now)
	}
	l.Judged(life.Progress{DB: "old", Place: alerts.Place{History: 1, Transactions: 2000, Time: now}, LastRecord: now, Levels: levels}, now)
	l.Raise(life.Condition{Kind: "lag", DB: "idle", Severity: "warning"}, now)
	l.Tick(now)
	a.status.begin(nil, &fixedLife{l})
	a.status.show("shop", &historyView{})
	st, err := a.status.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	shown := a.status.promises()
	for _, p := range st.Promises() {
		got = append(got, fmt.Sprintf("%s %s %s, %d alerts", p.DB, p.Level, p.Health, p.Alerts))
		if shown[p.DB+labelEnd+p.Level+labelEnd+string(p.Health)] != 1 {
			t.Errorf("the metrics say otherwise of %s of %s", p.Level, p.DB)
		}
	}
	want := []string{"bank si broken, 2 alerts", "bank ser broken, 2 alerts", "idle si holds, 0 alerts", "idle ser holds-in-part, 0 alerts", "old si holds, 1 alerts", "old ser holds-in-part, 1 alerts",
		"orders si holds, 0 alerts", "orders ser broken-earlier, 1 alerts", "shop si not-judged, 0 alerts", "shop ser not-judged, 0 alerts"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if st.Health != life.Broken || st.Alerts.Groups != 3 || len(st.Operational) != 1 || st.Operational[0].Kind != "lag" || len(shown) != len(want)*5 {
		t.Errorf("%s, %+v, %+v", st.Health, st.Alerts, st.Operational)
	}
}

// TestIdle: what nobody reaches, and what is silent, is not said to keep its promise, by page and metrics alike; what
// was found before stays so.
func TestIdle(t *testing.T) {
	now := time.Now().UnixNano()
	up := page.CanaryNode{State: page.NodeUp}
	reader := page.CanaryNode{State: page.NodeUp, Replica: true}
	lost := page.CanaryNode{State: page.NodeUnreachable, Since: now - int64(time.Minute)}
	blink := page.CanaryNode{State: page.NodeUnreachable, Since: now}
	stalled := page.CanaryNode{State: page.NodeStalled, Since: now - int64(time.Minute)}
	for name, c := range map[string]struct {
		nodes          []page.CanaryNode
		silent, broken bool
		want           life.Health
	}{
		"no canary":             {nil, false, false, life.Holds},
		"silent":                {nil, true, false, life.NotJudged},
		"silent, and broken":    {nil, true, true, life.Broken},
		"all up":                {[]page.CanaryNode{up, up}, false, false, life.Holds},
		"one lost":              {[]page.CanaryNode{lost, up}, false, false, life.Holds},
		"lost for a moment":     {[]page.CanaryNode{blink}, false, false, life.Holds},
		"all lost or stalled":   {[]page.CanaryNode{lost, stalled}, false, false, life.NotJudged},
		"only a replica is up":  {[]page.CanaryNode{lost, reader}, false, false, life.NotJudged},
		"all lost, and broken":  {[]page.CanaryNode{lost}, false, true, life.Broken},
		"stalled for some time": {[]page.CanaryNode{stalled}, false, false, life.NotJudged},
	} {
		t.Run(name, func(t *testing.T) {
			conf := testConfig(nil)
			conf.Source = config.Source{Stdin: &config.Stdin{}}
			o := Options{Config: conf, Log: zerolog.New(&bytes.Buffer{}), Store: newMemStore()}
			if c.nodes != nil {
				o.Canary = func() page.Canary { return page.Canary{DB: "shop", Nodes: c.nodes} }
			}
			a, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			l := life.New(life.Config{})
			l.Judged(life.Progress{DB: "shop", Place: alerts.Place{History: 1, Transactions: 100, Time: now}, LastRecord: now,
				Levels: []life.Asked{{Level: "si", Complete: life.Complete}}}, now)
			if c.silent {
				l.Raise(life.Condition{Kind: troubleSilent, Severity: "warning"}, now)
			}
			if c.broken {
				l.Anomaly(alerts.Alert{ID: "a", DB: "shop", Level: "si", Weakest: "si", Name: "lost-update", Count: 1, LastSeen: now, Severity: "critical",
					At: &alerts.Place{History: 1, Transactions: 100, Time: now}}, 1, now)
			}
			l.Tick(now)
			a.status.begin(nil, &fixedLife{l})
			st, err := a.status.Status(t.Context())
			if err != nil || st.Health != c.want {
				t.Errorf("%s, not %s: %v", st.Health, c.want, err)
			}
			if a.status.promises()["shop"+labelEnd+"si"+labelEnd+string(c.want)] != 1 {
				t.Error("the metrics say otherwise")
			}
		})
	}
}

// TestBehind: what waits to be judged makes the verdict old.
func TestBehind(t *testing.T) {
	now := time.Unix(100, 0)
	for _, c := range []struct {
		queued int
		last   int64
		want   float64
	}{{0, 90e9, 0}, {3, 90e9, 10}, {3, 0, 0}, {3, 200e9, 0}} {
		v := historyView{queued: c.queued, lastRecord: c.last}
		if got := v.behind(now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
