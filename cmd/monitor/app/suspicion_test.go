package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// TestEnoughOfAKind: of many anomalies of a kind in a segment so many become alerts as are enough, each with one
// proof; more are kept without any, all are counted, and which they are does not depend on restarts. Whoever
// looks at one gets the alert that would have been made, whose evidence is judged violated by itself.
func TestEnoughOfAKind(t *testing.T) {
	const anomalies = 2*sharesMax + 40 // 40 are only counted
	brokers := cluster(t)
	topicOf(t, brokers, testTopic, plantedIn(t, 600, anomalies, 60))
	c := testConfig(brokers)
	c.Coverage = record.CoveragePartial
	st, proofs := newMemStore("r"), int64(0)
	r := start(t, c, st, true, counting(&proofs))
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	told, kept := toldAndKept(t, st)
	if len(told) != sharesMax || len(kept) != sharesMax || proofs != sharesMax {
		t.Fatalf("%d alerts by %d proofs, %d kept, want %d of each", len(told), proofs, len(kept), sharesMax)
	}
	if g := r.teller.Snapshot().Groups[0]; g.Alerts != sharesMax || g.Count != anomalies {
		t.Errorf("the group has %d alerts and was found %d times, want %d and %d", g.Alerts, g.Count, sharesMax, anomalies)
	}
	for _, x := range r.teller.Snapshot().Spans(record.DefaultDB) {
		if x.Alerts > 1 && x.From == x.To {
			t.Errorf("%d anomalies are shown at one instant", x.Alerts)
		}
	}
	if notes := strings.Join(r.Reports()[0].Results[0].Notes, "\n"); !strings.Contains(notes, fmt.Sprint(anomalies-sharesMax, " more anomalies are like others")) {
		t.Errorf("the report says nothing of those that are kept: %q", notes)
	}

	// Stopped in the midst of it, and run again, it is the same.
	other := newMemStore("r")
	at := make(chan struct{})
	stopped := start(t, c, other, true, stormy, proving(func(n int64, w *worker) {
		if n == sharesMax/2 {
			close(at)
			<-w.going.Done()
		}
	}))
	<-at
	stopped.stop(t)
	if err := start(t, c, other, true).wait(t); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(st.ids(), other.ids()) {
		t.Errorf("after a restart there are %d, and others than the %d before", len(other.ids()), len(st.ids()))
	}

	// What ends by itself shows some of what is explained.
	file := testConfig(nil)
	file.Coverage = record.CoveragePartial
	file.Source = config.Source{File: &config.File{Path: recordsFile(t, "planted.jsonl", plantedIn(t, 600, anomalies, 60))}}
	ends := start(t, file, newMemStore("r"), false)
	if err := ends.wait(t); err != nil {
		t.Fatal(err)
	}
	shown := ends.Reports()[0].Results[0].Anomalies
	if len(shown) != anomaliesMax || slices.ContainsFunc(shown, func(x report.Anomaly) bool { return len(x.Cycle) == 0 }) {
		t.Errorf("%d anomalies are shown, of which some are not explained", len(shown))
	}

	list, err := r.status.Alerts(t.Context(), page.Filter{Limit: 1000})
	if err != nil || len(list.Alerts) != sharesMax {
		t.Errorf("%d are listed, want the alerts: %v", len(list.Alerts), err)
	}
	list, err = r.status.Alerts(t.Context(), page.Filter{Limit: 1000, State: string(alerts.Suspected)})
	if err != nil || len(list.Alerts) != len(kept) {
		t.Errorf("%d are listed as suspected, want %d: %v", len(list.Alerts), len(kept), err)
	}
	for id := range kept {
		a, err := r.status.Alert(t.Context(), id)
		if err != nil || a.Name != "lost-update" || a.State != alerts.Fresh || a.Group == "" || told[a.ID].ID != "" || len(a.Cycle) != 2 {
			t.Fatalf("%s is explained as %s %s (%s), %v", id, a.State, a.Name, a.ID, err)
		}
		violated(t, a)
	}
}

// toldAndKept are the alerts of a store, and what waits to be explained.
func toldAndKept(t *testing.T, st *memStore) (told, kept map[string]alerts.Alert) {
	t.Helper()
	st.mu.Lock()
	defer st.mu.Unlock()
	told, kept = map[string]alerts.Alert{}, map[string]alerts.Alert{}
	for id, s := range maps.All(st.alerts) {
		a, err := alerts.Parse(s.Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Suspicion) > 0 {
			kept[id] = a
		} else {
			told[id] = a
		}
	}
	return told, kept
}

// violated holds an alert's evidence to being violated by itself.
func violated(t *testing.T, a alerts.Alert) {
	t.Helper()
	h, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	txns := make([]record.Transaction, len(a.Evidence)-1)
	for i, line := range a.Evidence[1:] {
		if err := codec.Decode(line, &txns[i]); err != nil {
			t.Fatal(err)
		}
	}
	level, _ := verdict.ParseLevel(a.Level)
	if judge.NewProver(nil, 1<<40).Judge(level, h, txns) != verdict.Violated {
		t.Errorf("the evidence of %s is not violated at %s", a.ID, a.Level)
	}
}
