package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
