package deliver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// noticeOf is the notice of some news, as the monitor makes it.
func noticeOf(n life.News) life.Notice {
	a := alerts.Alert{Version: alerts.Version, ID: n.Of.ID, DB: n.Of.DB, Level: n.Of.Level, Name: n.Of.Name, Keys: n.Of.Keys, FirstSeen: n.Of.Since, LastSeen: n.Of.Last, Summary: n.Of.Text, Explanation: n.Of.Text}
	if n.Of.Representative != "" {
		a.ID, a.Breaks = n.Of.Representative, []string{n.Of.Level}
		a.Summary = fmt.Sprintf("two overwrote %s", strings.Join(n.Of.Keys, ", "))
		a.Explanation = a.Summary + ", one after the other"
	}
	if a.Summary == "" {
		a.Summary = "what was told of in summaries is over"
	}
	a.Group, a.State, a.ResolvedAt, a.Severity = n.Group, n.State, n.Of.ResolvedAt, n.Of.Severity
	if a.Severity == "" {
		a.Severity = name.Info
	}
	return life.Notice{Alert: a, Notification: n.Notification}
}

// begin is when the scripts of these tests begin: long ago, so that what is over is so to
// the receivers, too.
const begin = 1_700_000_000 * int64(time.Second)

// told takes the notices that there are.
func told(l *life.Life, now int64) (out []life.News) {
	for {
		n, ok := l.Next(now)
		if !ok {
			return out
		}
		out = append(out, n)
	}
}

func head(id, db, level, what, key string, severity name.Severity) alerts.Alert {
	return alerts.Alert{ID: id, DB: db, Level: level, Name: what, Keys: []string{key}, Severity: severity, Count: 1}
}

// summaries are one notice of each kind of summary, by what it is of: whatever the rate
// did not let out by itself.
func summaries(t *testing.T) map[string]life.News {
	t.Helper()
	second := int64(time.Second)
	silent := life.Condition{Kind: "silent", Text: "No record has come from t for more than 8s.", Severity: name.Warning}
	full := life.Condition{Kind: "store-full", Text: "The store is full.", Severity: name.Critical}
	lag := life.Condition{Kind: "lag", DB: "shop", Text: "History \"shop\" is judged late.", Severity: name.Warning}
	out := map[string]life.News{}
	for what, script := range map[string]struct {
		over  bool // a critical anomaly ended meanwhile
		heads []alerts.Alert
		raise []life.Condition
	}{
		"one anomaly, and an end":             {true, []alerts.Alert{head("n1", "shop", "ser", "write-skew", "y", name.Error)}, nil},
		"anomalies":                           {false, []alerts.Alert{head("n1", "shop", "ser", "write-skew", "y", name.Error), head("n2", "shop", "ser", "write-skew", "y", name.Error), head("n3", "bank", "si", "lost-update", "z", name.Critical)}, nil},
		"a condition, and an end":             {true, nil, []life.Condition{silent}},
		"conditions":                          {false, nil, []life.Condition{silent, full, lag}},
		"an anomaly and conditions":           {false, []alerts.Alert{head("n1", "shop", "ser", "write-skew", "y", name.Error)}, []life.Condition{silent, full}},
		"an anomaly, a condition, and an end": {true, []alerts.Alert{head("n1", "shop", "ser", "write-skew", "y", name.Error)}, []life.Condition{silent}},
	} {
		l := life.New(life.Config{RateMax: 2, RatePer: 10 * time.Minute, ResolveAfter: 5 * time.Minute})
		now := begin
		judged(l, now, "shop")
		l.Anomaly(head("a1", "shop", "si", "lost-update", "x", name.Critical), 1, now)
		if n := told(l, now); len(n) != 1 || n[0].Kind != life.KindAlert {
			t.Fatalf("%s: %v", what, n)
		}
		if script.over {
			now += 301 * second
			judged(l, now, "shop")
			l.Tick(now)
		}
		now += second
		for _, h := range script.heads {
			l.Anomaly(h, 1, now)
		}
		for _, c := range script.raise {
			l.Raise(c, now)
		}
		n := told(l, now)
		if len(n) == 0 { // it gathers
			now += 300 * second
			if !script.over {
				l.Anomaly(head("a2", "shop", "si", "lost-update", "x", name.Critical), 1, now)
			}
			n = told(l, now)
		}
		if len(n) != 1 || n[0].Kind != life.KindSummary {
			t.Fatalf("%s: %+v", what, n)
		}
		out[what] = n[0]
	}
	return out
}

// judged says that databases are judged up to now, at a thousand transactions a second.
func judged(l *life.Life, now int64, dbs ...string) {
	for _, db := range dbs {
		l.Judged(life.Progress{DB: db, Place: alerts.Place{History: 1, Transactions: (now - begin) / int64(time.Millisecond), Time: now}, Levels: []life.Asked{{Level: "si"}, {Level: "ser"}}}, now)
	}
}

var moments = regexp.MustCompile(`"(endsAt|startsAt)": "[^"]*"`)

// testdata/summaries.golden is what each receiver gets of each kind of summary.
func TestSummaries(t *testing.T) {
	var got strings.Builder
	all := summaries(t)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		n := noticeOf(all[what])
		fmt.Fprintf(&got, "== %s\n", what)
		for _, format := range slices.Sorted(maps.Keys(makers)) {
			rec := &recorder{}
			tell(t, made(t, format, rec), n)
			for _, body := range rec.got() {
				var b bytes.Buffer
				if err := json.Indent(&b, []byte(body), "", " "); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "-- %s\n%s\n", format, moments.ReplaceAllString(b.String(), `"$1": "…"`))
			}
		}
	}
	golden.Check(t, "testdata/summaries.golden", got.String())
}

// opened are the incidents that are open, and alerts that fire, by what a receiver was sent.
func opened(t *testing.T, format string, bodies []string) map[string]bool {
	t.Helper()
	open := map[string]bool{}
	for _, body := range bodies {
		switch format {
		case "pagerduty":
			var e struct {
				Action string `json:"event_action"`
				Key    string `json:"dedup_key"`
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatal(err)
			}
			if delete(open, e.Key); e.Action == "trigger" {
				open[e.Key] = true
			}
		case "alertmanager":
			for _, a := range posted(t, body) {
				if delete(open, fmt.Sprint(a.Labels)); a.EndsAt.After(time.Now()) {
					open[fmt.Sprint(a.Labels)] = true
				}
			}
		default: // whoever keeps account by notification
			var n life.Notice
			if err := json.Unmarshal([]byte(body), &n); err != nil {
				t.Fatal(err)
			}
			if n.Notification.Kind == life.KindResolved {
				delete(open, n.Notification.Group)
			} else {
				open[n.Notification.Group] = true
			}
			for _, g := range n.Notification.Resolved {
				delete(open, g)
			}
		}
	}
	return open
}

// Whatever happens and however it is told, in the end nothing is open with any receiver,
// also with one that gets but a part; and what is over is never told of as if it began.
func TestNothingStaysOpen(t *testing.T) {
	kinds, ends, scripts := map[life.Kind]int{}, 0, uint64(race.Few(10, 30))
	for seed := range scripts {
		r := rand.New(rand.NewPCG(seed, 77))
		l := life.New(life.Config{Repeat: time.Duration(r.IntN(2)) * 10 * time.Minute, ResolveAfter: time.Duration(1+r.IntN(9)) * time.Minute, RateMax: 1 + r.IntN(5), RatePer: time.Duration(1+r.IntN(4)) * time.Minute, GroupsMax: 2 + r.IntN(8)})
		now := begin
		var news []life.News
		note := func() {
			live := map[string]bool{}
			for _, g := range l.Snapshot().Groups {
				live[g.ID] = g.State != alerts.Resolved
			}
			for _, n := range told(l, now) {
				news = append(news, n)
				kinds[n.Kind]++
				if n.Kind == life.KindResolved {
					continue
				}
				if n.Of.State == alerts.Resolved || n.Of.ResolvedAt != 0 || n.State == alerts.Resolved || !live[n.Of.ID] || slices.Contains(n.Resolved, n.Group) || n.Kind != life.KindSummary && n.Group != n.Of.ID {
					t.Fatalf("seed %d: told of as if it began: %+v", seed, n)
				}
				if groups := 0; n.Kind == life.KindSummary {
					for _, p := range n.Parts {
						groups += p.Groups
					}
					if groups != n.Groups {
						t.Fatalf("seed %d: %d groups, and parts of %d: %+v", seed, n.Groups, groups, n)
					}
					ends += len(n.Resolved)
				}
			}
		}
		lag := life.Condition{Kind: "lag", DB: "db1", Text: "late", Severity: name.Warning}
		for i := range 120 {
			switch k := r.IntN(12); {
			case k < 6:
				l.Anomaly(head(fmt.Sprint("a", i), fmt.Sprint("db", r.IntN(3)), []string{"si", "ser"}[r.IntN(2)], "lost-update", fmt.Sprint(r.IntN(4)), []name.Severity{name.Warning, name.Error, name.Critical}[r.IntN(3)]), 1, now)
			case k < 7:
				l.Raise(lag, now)
			case k < 8:
				l.Over(lag, now)
			case k < 9:
				l.Raise(life.Condition{Kind: "gap", Of: fmt.Sprint(r.IntN(3)), Text: "gone", Severity: name.Error, Event: true, Count: 1}, now)
			case k < 10:
				now += int64(r.IntN(600)) * int64(time.Second)
			default:
				now += int64(r.IntN(60)) * int64(time.Second)
			}
			judged(l, now, "db0", "db1", "db2")
			l.Tick(now)
			note()
		}
		l.Over(lag, now)
		for range 2000 {
			now += int64(30 * time.Second)
			judged(l, now, "db0", "db1", "db2")
			l.Tick(now)
			note()
		}
		filters := map[string]deliver.Filter{"all": {}, "bad": {MinSeverity: "error"}, "one": {DBs: []string{"db1"}}, "ser": {Levels: []string{"ser"}}}
		for format := range makers {
			if format == "slack" {
				continue
			}
			boxes := slices.Sorted(maps.Keys(filters))
			st, receivers, recs := newMemory(boxes), map[string]deliver.Receiver{}, map[string]*recorder{}
			for _, box := range boxes {
				recs[box] = &recorder{}
				receivers[box] = made(t, format, recs[box])
				for _, n := range news {
					st.boxes[box] = append(st.boxes[box], item(n.ID, noticeOf(n).JSON()))
				}
			}
			d := deliver.New(st, receivers, deliver.Options{Filters: filters})
			stop := run(d)
			if err := d.Flush(withTimeout(t)); err != nil {
				t.Fatal(err)
			}
			stop()
			for _, box := range boxes {
				if open := opened(t, format, recs[box].got()); len(open) > 0 {
					t.Fatalf("seed %d, %s, receiver %s: in the end these are open: %v", seed, format, box, open)
				}
				if len(recs[box].got()) == 0 {
					t.Errorf("seed %d, %s: receiver %s got nothing", seed, format, box)
				}
			}
		}
	}
	if kinds[life.KindSummary] < 40 || kinds[life.KindResolved] < 40 || kinds[life.KindOngoing] < 5 || ends < 40 {
		t.Errorf("too easy: %v, %d ends in summaries", kinds, ends)
	}
	t.Log(kinds, ends)
}
