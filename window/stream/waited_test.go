package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/window/order"
)

// What lies in the overlap of two segments is told once: by the first one, but by the second where a read
// of it was still waiting for its writer when the first one ended, somebody might have emptied a list of it, or the search
// for it was given up. That is so after a restart at any point.
func TestOverlapIsTold(t *testing.T) {
	const before = "s1 T1: append(x,2) append(z,4) w(y,2) @4-24\ns2 T2: @31-38\ns3 T3: @35-39\n"
	for _, tc := range []struct {
		name, text string
		coverage   record.Coverage
	}{
		{"what a list began without", "s4 T4: append(w,5) append(x,1) @38-40\ns5 T5: r(x,[1]) append(w,6) @41-45\ns8 T8: r(w,[6]) @46-47\n", record.CoveragePartial},
		{"known", "s4 T4: r(z,[4]) r(x,[2,6]) @41-46\ns5 T5: append(z,5) append(x,6) @38-47\n", record.CoveragePartial},
		{"element of nobody", "s4 T4: r(z,[9]) r(x,[3,6]) @41-46\ns5 T5: append(z,5) append(x,6) @38-47\n", record.CoveragePartial},
		{"empty list", "s4 T4: r(w,[]) r(x,[2,6]) @41-46\ns5 T5: append(w,5) append(x,6) @38-47\n", record.CoveragePartial},
		{"initial value", "s4 T4: r(v,7) r(u,6) @41-46\ns5 T5: w(v,5) w(u,6) @38-47\n", record.CoverageComplete},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := script.Parse("initial any\n" + before + tc.text + "s6 T6: @200-210\ns7 T7: @220-230\n")
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAny, Coverage: tc.coverage, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
				MaxTransaction: 100, UniqueValues: true, Every: 2, Overlap: strings.Count(tc.text, "\n")}
			cfg.Segment = cfg.Overlap + strings.Count(before, "\n")
			cfg.Order.Lateness = time.Nanosecond
			restartedAfterEach(t, cfg, s.Txns, func(restart int, h *History, found []Violation, r verdict.Result) {
				told := 0
				for _, v := range found {
					if v.Kind == verdict.Cycle || v.Kind == verdict.Unsatisfiable {
						told++
					}
				}
				if s := h.Stats(); told != 1 || r.Outcome != verdict.Violated || s.Segments == 0 {
					t.Errorf("restarted after %d: %d told, %v after %d segments", restart, told, r.Outcome, s.Segments)
				}
			}, nil)
		})
	}
}

// restartedAfterEach has a history read transactions, an entry for each, several times: restarted after one of
// the entries, each in turn, or not at all. ended is called at the end of each time with what was found, and look, if
// it is not nil, with all of that when it can still be looked up.
func restartedAfterEach(t *testing.T, cfg Config, txns []record.Transaction, ended func(restart int, h *History, found []Violation, r verdict.Result), look func(*History, Violation)) {
	t.Helper()
	var entries []*Entry
	for i := range txns {
		txns[i].DB = record.DefaultDB
		entries = append(entries, &Entry{Number: uint64(i), Time: txns[i].End + 1, Partitions: 1, Batch: batchOf(0, int64(i), txns[i:i+1])})
	}
	for restart := range len(entries) + 1 {
		h, err := New(cfg), error(nil)
		var found []Violation
		take := func() {
			for _, v := range h.Found() {
				if found = append(found, v); look != nil {
					look(h, v)
				}
			}
		}
		run := func() {
			for h.Run(1) {
				take()
			}
			take()
		}
		for i, e := range entries {
			h.Take(e)
			run()
			if i+1 == restart {
				if h, err = Restore(cfg, checkpointOf(h), func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.Flush()
		run()
		r := h.Close()[0]
		take()
		ended(restart, h, found, r)
	}
}

// The same of a search that the first segment gave up: what others had still to say makes it easy.
func TestSearchedInTheOverlap(t *testing.T) {
	hard, err := script.Parse("initial absent\n" + hardKnots() + unsolvable)
	if err != nil {
		t.Fatal(err)
	}
	var decided strings.Builder
	for i := range knots {
		fmt.Fprintf(&decided, "n%[1]d N%[1]d: r(b%[1]d,2) r(a%[1]d,9)\n", i)
	}
	easy, err := script.Parse("initial absent\n" + decided.String())
	if err != nil {
		t.Fatal(err)
	}
	n := len(hard.Txns)
	h, told, at := New(Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
		MaxTransaction: time.Minute, UniqueValues: true, Every: time.Second, Conflicts: 6, Segment: n, Overlap: n, Order: order.Options{Lateness: time.Millisecond}}), 0, int64(1_700_000_000e9)
	ended := uint64(0)
	for i, txns := range [][]record.Transaction{hard.Txns, nil, nil, easy.Txns, nil, nil} {
		for j := range txns {
			txns[j].DB, txns[j].HasTimes, txns[j].End = record.DefaultDB, false, at
		}
		b := batchOf(0, int64(i)*100, txns)
		b.CaughtUp = true
		h.Take(&Entry{Number: uint64(i), Time: at, Partitions: 1, Batch: b})
		for h.Run(8) {
			told += len(h.Found())
		}
		told += len(h.Found())
		if i < 3 {
			ended = h.Stats().Segments
			if told > 0 {
				t.Fatal("it is no search that is given up")
			}
		}
		at += int64(time.Second)
	}
	h.Flush()
	for h.Run(8) {
		told += len(h.Found())
	}
	r := h.Close()[0]
	told += len(h.Found())
	if told != 1 || ended != 1 || r.Outcome != verdict.Violated {
		t.Errorf("%d told, %v; %d segments had ended, %+v", told, r.Outcome, ended, h.Stats())
	}
}

// What the first segment did not know is told also where a part of it is only remembered: a write from before the
// overlap, or the read that waited itself, which goes on alone. No level is violated without an alert, whenever it is
// restarted.
func TestRememberedAndOverlapAreTold(t *testing.T) {
	for _, tc := range []struct {
		name, first, fourth string
		level               verdict.Level
	}{
		{"known", "r(v,7) w(v,8)", "r(v,8) w(v,9)", verdict.SI},
		{"lost update of a read that went on alone", "r(v,7) w(v,8)", "r(v,7) w(v,9)", verdict.SI},
		{"skew with a read that went on alone", "r(v,7) w(u,1)", "r(u,6) w(v,9)", verdict.SER},
		{"half of what was written before", "w(u,1) w(p,1)", "r(p,1) r(u,6)", verdict.RA},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := script.Parse(fmt.Sprintf("initial any\ns1 T1: %s @4-24\ns2 T2: @31-33\ns3 T3: @31-36\ns4 T4: %s @20-46\ns5 T5: @38-47\ns6 T6: @200-210\ns7 T7: @220-230\n", tc.first, tc.fourth))
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{tc.level}, Assumptions: record.Assumptions{Initial: record.InitialAny, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
				MaxTransaction: 100, UniqueValues: true, Every: 2, Segment: 5, Overlap: 2}
			cfg.Order.Lateness = time.Nanosecond
			evidence := func(h *History, v Violation) {
				for _, id := range v.Evidence {
					if x, ok := v.Find(id); !ok || x.ID != "T1" && x.ID != "T4" {
						t.Errorf("%+v is told of", x)
					}
				}
			}
			restartedAfterEach(t, cfg, s.Txns, func(restart int, h *History, found []Violation, r verdict.Result) {
				want := 1
				if tc.name == "known" {
					want = 0
				}
				if s := h.Stats(); len(found) != want || (r.Outcome == verdict.Violated) != (want > 0) || s.Segments == 0 {
					t.Errorf("restarted after %d: %d told, %v after %d segments", restart, len(found), r.Outcome, s.Segments)
				}
			}, evidence)
		})
	}
}

// Who writes back what it read waits for the record of whom it read from, as others do: that may have been told later that it
// had committed.
func TestWhoWritesBackWaitsForTheWriter(t *testing.T) {
	const reader = "s2 T: r(x,1) w(x,1) @20-25\ns3 U: r(z,null) @40-45\n"
	for _, tc := range []struct {
		name, text string
		want       verdict.Outcome
	}{
		{"it comes", reader + "s1 A: w(x,1) @12-60\n", verdict.Satisfied},
		{"of an attempt that was made again", "s1 A0 aborted: w(x,1) @0-10\n" + reader + "s1 A: w(x,1) @12-60\n", verdict.Satisfied},
		{"it never comes", reader, verdict.Violated},
		{"it was aborted", "s1 A0 aborted: w(x,1) @0-10\n" + reader, verdict.Violated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := script.Parse("initial absent\n" + tc.text + "s6 V: @400-410\ns7 W: @420-430\n")
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep}, MaxTransaction: 100, UniqueValues: true, Every: 2, Segment: 50, Overlap: 2}
			cfg.Order.Lateness = time.Nanosecond
			restartedAfterEach(t, cfg, s.Txns, func(restart int, h *History, found []Violation, r verdict.Result) {
				if r.Outcome != tc.want || len(found) > 0 != (tc.want == verdict.Violated) {
					t.Errorf("restarted after %d: %v, %v", restart, r.Outcome, found)
				}
			}, nil)
		})
	}
}

// How a list began is not known yet when the segment ends, and who read it is forgotten: that counts if somebody appended what
// it does not show, and may have done so before it was read.
func TestHowAListBeganIsForgotten(t *testing.T) {
	for _, tc := range []struct {
		text string
		want uint64
	}{
		{"s4 T4: append(w,5) @38-40\ns5 T5: append(w,6) @41-45\ns8 T8: r(w,[6]) @46-47\n", 1},
		{"s4 T4: append(w,5) @38-40\ns5 T5: append(w,6) @41-45\ns8 T8: r(w,[5,6]) @46-47\n", 0},
		{"s5 T5: append(w,6) @41-45\ns8 T8: r(w,[6]) @46-47\ns4 T4: append(w,7) @60-61\n", 0},
		{"s4 T4: append(w,5) @38-40\ns5 T5: r(w,[]) @41-45\ns8 T8: @46-47\n", 1},
	} {
		s, err := script.Parse(tc.text + "a A: @70-71\nb B: @72-73\nc C: @74-75\n")
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAny, Coverage: record.CoveragePartial, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
			MaxTransaction: 100, UniqueValues: true, Every: 2, Segment: 5, Overlap: 1}
		cfg.Order.Lateness = time.Nanosecond
		restartedAfterEach(t, cfg, s.Txns, func(restart int, h *History, _ []Violation, _ verdict.Result) {
			if s := h.Stats(); s.Unawaited != tc.want || s.Segments == 0 {
				t.Errorf("restarted after %d: %d are given up after %d segments, want %d of\n%s", restart, s.Unawaited, s.Segments, tc.want, tc.text)
			}
		}, nil)
	}
}
