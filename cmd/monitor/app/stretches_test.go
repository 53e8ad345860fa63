package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/stream"
)

// TestOneStretch: a single stretch is listed unless it is complete for all that is asked for.
func TestOneStretch(t *testing.T) {
	const complete, assuming, partial = "complete", "complete, assuming real time", "partial"
	for _, tc := range []struct {
		name    string
		stretch stream.Stretch
		levels  []verdict.Level
		want    map[string]string // nil: it is not listed
	}{
		{"no cut", stream.Stretch{}, []verdict.Level{verdict.RA, verdict.SI, verdict.SSER}, nil},
		{"a cut below si", stream.Stretch{Cut: true}, []verdict.Level{verdict.RA, verdict.SI}, map[string]string{"ra": partial, "si": complete}},
		{"a cut at si and ser", stream.Stretch{Cut: true}, []verdict.Level{verdict.SI, verdict.SER}, nil},
		{"by clocks, real time asked for", stream.Stretch{Cut: true, ByClock: true}, []verdict.Level{verdict.StrongSI, verdict.SSER}, nil},
		{"by clocks", stream.Stretch{Cut: true, ByClock: true}, []verdict.Level{verdict.SER, verdict.SSER}, map[string]string{"ser": assuming, "sser": complete}},
		{"something forgotten", stream.Stretch{Partial: stream.WhyForgotten}, []verdict.Level{verdict.SER}, map[string]string{"ser": partial}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := stretches([]stream.Stretch{tc.stretch}, tc.levels)
			if tc.want == nil {
				if len(got) != 0 {
					t.Errorf("listed: %+v", got)
				}
				return
			}
			if len(got) != 1 || cmp.Diff(tc.want, got[0].Completeness) != "" {
				t.Errorf("got %+v, want %v", got, tc.want)
			}
		})
	}
}

// Where times that were not used are part of what si is read as, the stretch is partial in the report and in what the page
// has, whatever the level is called: here a session runs backwards by the database's clock.
func TestTimesUnusedByDatabaseClock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	const began = 1_795_000_000_000_000_000
	var lines []byte
	for i := range int64(2) {
		txn := record.Transaction{DB: "default", Session: "s", Seq: i, HasSeq: true, ID: fmt.Sprint(i), HasTimes: true, Start: began - 20*i, End: began - 20*i + 10,
			Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint("k", i), Value: record.Int(i)}}}
		lines = append(codec.AppendJSON(lines, &txn), '\n')
	}
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, l := range []verdict.Level{verdict.SI, verdict.SER} {
		c := testConfig(nil)
		c.Source = config.Source{File: &config.File{Path: path}}
		c.Levels, c.Clock, c.Window.MaxSkew = []verdict.Level{l}, record.ClockDatabase, 0
		r := start(t, c, newMemStore(), true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		read := name.Effective(l, c.Clock).String()
		if got := r.Reports()[0].Stretches; len(got) != 1 || got[0].Completeness[read] != "partial" || !slices.Equal(got[0].Why, []string{"times-unused"}) {
			t.Errorf("%v: %+v", l, got)
		}
		if got := r.teller.Snapshot().Standing("default", l.String(), time.Now().UnixNano()); got.Complete != life.Partial {
			t.Errorf("%v: %+v", l, got)
		}
	}
}

// TestOpenStretch: what is open for good is not called complete until its segment ends, and a level that is not about
// what the transactions do keeps no promise.
func TestOpenStretch(t *testing.T) {
	t.Parallel()
	var lines []byte
	for i := range int64(200) {
		txn := record.Transaction{DB: "default", Session: fmt.Sprint("s", i%2), Seq: i / 2, HasSeq: true, ID: fmt.Sprint(i), HasTimes: true, Start: 1e9 * (i + 1), End: 1e9*(i+1) + 5,
			Ops: []record.Op{{Kind: record.Read, Key: "x", Value: record.Int(i)}, {Kind: record.Write, Key: "x", Value: record.Int(i + 1)}, {Kind: record.Write, Key: "y", Value: record.Int(i)}}}
		lines = append(codec.AppendJSON(lines, &txn), '\n')
	}
	waits := record.Transaction{DB: "default", Session: "n", ID: "n", HasTimes: true, Start: 1, End: 2,
		Ops: []record.Op{{Kind: record.Read, Key: "n", Value: record.Null}}}
	for _, tc := range []struct {
		unique   bool
		null     bool // what nobody wrote is read of a key that may turn out to hold lists
		si, lin  life.Health
		complete life.Completeness
	}{
		{true, false, life.Holds, life.NotJudged, life.Complete},
		{false, false, life.HoldsInPart, life.NotJudged, life.Partial}, // of every read somebody unseen may have written the value
		{true, true, life.HoldsInPart, life.NotJudged, life.Partial},
	} {
		path, input := filepath.Join(t.TempDir(), "in.jsonl"), lines
		if tc.null {
			input = append(append(codec.AppendJSON(nil, &waits), '\n'), lines...)
		}
		if err := os.WriteFile(path, input, 0o600); err != nil {
			t.Fatal(err)
		}
		c := testConfig(nil)
		c.Source = config.Source{File: &config.File{Path: path, Follow: true}}
		c.Levels, c.UniqueValues, c.HTTP.Listen = []verdict.Level{verdict.SI, verdict.LIN}, tc.unique, "127.0.0.1:0"
		c.Initial = record.InitialZero
		if !tc.unique {
			c.Coverage = record.CoveragePartial
		}
		r := start(t, c, newMemStore(), false)
		var st page.Status
		eventually(t, "all is judged", func() bool {
			st = page.Status{}
			err := json.Unmarshal([]byte(get(t, r.Addr(), "/api/v1/status")), &st)
			return err == nil && len(st.Histories) == 1 && len(st.Histories[0].Levels) == 2 && st.Histories[0].Levels[0].Judged.Transactions > 150
		})
		for i, want := range []life.Health{tc.si, tc.lin} {
			if l := st.Histories[0].Levels[i]; l.Health != want {
				t.Errorf("%+v: %s: %s, %s", tc, l.Level, l.Health, l.Why)
			}
		}
		if got := st.Histories[0].Levels[0].Complete; got != tc.complete {
			t.Errorf("%+v: %s", tc, got)
		}
		r.stop(t)
	}
}

// TestReportOfCutStretch: of an input of several segments of which all is known alike, the
// report has one stretch, which says what the cuts mean for each level; of an input of one
// segment it has none.
func TestReportOfCutStretch(t *testing.T) {
	t.Parallel()
	const n = 64
	path := filepath.Join(t.TempDir(), "in.jsonl")
	var lines []byte
	for i := range int64(n) { // one after the other, of sessions that have nothing in common
		session, before := i%2, i/2
		key := fmt.Sprint("k", session)
		txn := record.Transaction{DB: "default", Session: fmt.Sprint("s", session), Seq: before, HasSeq: true, ID: fmt.Sprint(i), HasTimes: true, Start: 10 * (i + 1), End: 10*(i+1) + 5,
			Ops: []record.Op{{Kind: record.Read, Key: key, Value: record.Int(before)}, {Kind: record.Write, Key: key, Value: record.Int(before + 1)}}}
		lines = append(codec.AppendJSON(lines, &txn), '\n')
	}
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		segment int
		want    map[string]string
	}{
		{16, map[string]string{"ra": "partial", "si": "complete, assuming real time", "sser": "complete"}},
		{1000, nil},
	} {
		c := testConfig(nil)
		c.Source = config.Source{File: &config.File{Path: path}}
		c.Levels = []verdict.Level{verdict.RA, verdict.SI, verdict.SSER}
		c.Initial = record.InitialZero
		c.Window.Lateness, c.Window.MaxSkew = 0, 0
		c.Window.Segment, c.Window.Overlap, c.Window.MaxTransactions = tc.segment, 4, tc.segment
		r := start(t, c, newMemStore(), true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if reports := r.Reports(); len(reports) != 1 || reports[0].Transactions != n {
			t.Fatalf("the reports are %+v", reports)
		}
		got := r.Reports()[0].Stretches
		if tc.want == nil {
			if len(got) != 0 {
				t.Errorf("segments of %d: %+v", tc.segment, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Transactions != [2]uint64{0, n} || cmp.Diff(tc.want, got[0].Completeness) != "" || len(got[0].Why) > 0 {
			t.Errorf("segments of %d: %+v", tc.segment, got)
		}
	}
}
