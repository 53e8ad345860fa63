package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/window/order"
)

// What was open when it was forgotten makes its stretch partial, also where something else was found:
// other anomalies may have been missed. What was found does not by itself. The same of what is open at the
// end of the input, and after restarts.
func TestOpenBesideAViolationIsPartial(t *testing.T) {
	const (
		lost    = "l1 L1: r(v,null) w(v,1)\nl2 L2: r(v,null) w(v,2)\n"
		aborted = "l1 L1 aborted: w(v,1)\nl2 L2: r(v,1)\n"
		choice  = "c1 C1: w(d,1)\nc2 C2: w(d,1)\nc3 C3: r(d,1)\n"
		// Of either writer of e = 1 another write of e is known to follow.
		neither   = "e1 E1: w(e,1)\ne1 E2: w(e,8) w(f,1)\ne2 E3: w(e,1)\ne2 E4: w(e,9) w(g,1)\ne3 E5: r(f,1) r(g,1) r(e,1)\n"
		unchecked = "p P: r(predicate,1)\n"
	)
	hard := hardKnots()
	type what struct{ violated, open bool }
	for _, tc := range []struct {
		name, found, open string
		level             verdict.Level
		// By themselves, when a segment ends, and at the end of the input.
		foundThen, foundLast, openThen, openLast what
	}{
		{"search", lost, hard, verdict.SER, what{true, false}, what{true, false}, what{false, true}, what{false, true}},
		{"search, real time", lost, hard, verdict.SSER, what{true, false}, what{true, false}, what{false, true}, what{false, true}},
		{"search, beside a read", aborted, hard, verdict.SER, what{true, false}, what{true, false}, what{false, true}, what{false, true}},
		{"not checked", lost, unchecked, verdict.SI, what{true, false}, what{true, false}, what{false, true}, what{false, true}},
		{"not checked, weak", aborted, unchecked, verdict.RA, what{true, false}, what{true, false}, what{false, true}, what{false, true}},
		{"writers", aborted, choice, verdict.RC, what{true, false}, what{true, false}, what{false, false}, what{false, false}},
		{"other writers", neither, choice, verdict.RA, what{true, false}, what{true, false}, what{false, false}, what{false, false}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, c := range []struct {
				text       string
				then, last what
			}{
				{tc.found, tc.foundThen, tc.foundLast},
				{tc.open, tc.openThen, tc.openLast},
				{tc.found + tc.open, what{tc.foundThen.violated, true}, what{tc.foundLast.violated, true}},
			} {
				for restart := range 4 {
					for _, last := range []bool{false, true} {
						want := c.then
						if last {
							want = c.last
						}
						r, why, counted := stretched(t, c.text, tc.level, last, restart)
						wantWhy := Whys(0)
						if want.open {
							wantWhy = WhyUndecided
						}
						if (r.Outcome == verdict.Violated) != want.violated || why != wantWhy || (counted > 0) != (want.open && !last) || want.violated && (r.Reason != verdict.NoReason) != want.open {
							t.Errorf("at the end: %v, restarted after %d: %v %v, partial: %v, %d counted; want %+v\n%.90s", last, restart, r.Outcome, r.Reason, why.Names(), counted, want, c.text)
						}
					}
				}
			}
		})
	}
}

// stretched judges records that overlap, and others long after them, and gives the verdict, why the first
// stretch is partial, and what was counted as undecided. last: all is one segment. The history is
// restored of a checkpoint after that many entries, unless they are none.
func stretched(t *testing.T, text string, level verdict.Level, last bool, restart int) (verdict.Result, Whys, uint64) {
	t.Helper()
	s, err := script.Parse("initial absent\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(1_700_000_000e9)
	var entries []*Entry
	add := func(at int64, txns []record.Transaction) {
		for i := range txns {
			x := &txns[i]
			x.DB, x.HasTimes, x.Start, x.End = record.DefaultDB, true, at+int64(i), at+1000+int64(i)
			for j := range x.Ops {
				if x.Ops[j].Key == "predicate" {
					x.Ops[j] = record.Op{Kind: record.PredicateRead, Key: "t", Where: "v > 1", Value: record.Value{Kind: record.KindObject, Text: "{}"}}
				}
			}
		}
		entries = append(entries, &Entry{Number: uint64(len(entries)), Time: at + 2000, Partitions: 1, Batch: batchOf(0, int64(len(entries))*100, txns)})
	}
	add(at, s.Txns)
	cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
		MaxTransaction: time.Second, UniqueValues: true, UniqueAttempts: true, Every: time.Second, Conflicts: 1, Segment: len(s.Txns) + 12, Overlap: 1, Order: order.Options{Lateness: time.Millisecond, IdleAfter: time.Second}}
	if last {
		cfg.Segment = 1 << 20
	}
	for i := range 20 {
		at += 2 * int64(time.Second)
		add(at, []record.Transaction{{ID: fmt.Sprint("other ", i), Session: "other", Seq: int64(i), HasSeq: true, Status: record.Committed,
			Ops: []record.Op{{Kind: record.Write, Key: "other", Value: record.Int(int64(i))}}}})
	}
	h := New(cfg)
	for i, e := range entries {
		h.Take(e)
		for h.Run(8) {
			h.Found()
		}
		h.Found()
		if i+1 == restart {
			if h, err = Restore(cfg, checkpointOf(h), func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Flush()
	for h.Run(8) {
		h.Found()
	}
	r := h.Close()[0]
	stretches, _ := h.Standing()
	if len(stretches) == 0 || stretches[0].To < uint64(len(s.Txns)) || (h.Stats().Segments == 0) != last {
		t.Fatalf("%d segments ended: %+v", h.Stats().Segments, stretches)
	}
	return r, stretches[0].Partial, h.Stats().Undecided
}

// What was open when less could be assumed than the engine was told is looked at again, and open no longer if that
// decides it: a client looks at an empty list, somebody appends to it, and then values turn out to repeat.
func TestOpenWhenValuesRepeatIsLookedAtAgain(t *testing.T) {
	text := map[string]string{}
	for _, session := range []string{"o", "p"} {
		for i := range 16 {
			text[session] += fmt.Sprintf("%s %s%d: w(o,%d)\n", session, session, i, i)
		}
	}
	s, err := script.Parse("i I: r(x,[])\n" + text["o"] + "k K: append(x,1)\nl L: r(x,[1])\n" + text["p"])
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.RC, verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune}, MaxTransaction: time.Second, UniqueValues: true,
		Every: time.Second / 4, Conflicts: 1000, Segment: 1 << 16, Overlap: 1 << 10,
		Order: order.Options{Lateness: time.Millisecond, IdleAfter: time.Second}})
	open := false
	for i := range s.Txns {
		x := &s.Txns[i]
		at := int64(1_700_000_000e9) + int64(i)*2e9
		x.DB, x.HasTimes, x.Start, x.End = record.DefaultDB, true, at, at+1e6
		h.Take(&Entry{Number: uint64(i), Time: at + 2e6, Partitions: 1, Batch: batchOf(0, int64(i)*100, s.Txns[i:i+1])})
		for h.Run(8) {
		}
		stretches, _ := h.Standing()
		open = open || len(stretches) > 0 && stretches[0].Partial&WhyUndecided != 0
	}
	h.Flush()
	for h.Run(8) {
	}
	stretches, _ := h.Standing()
	for _, r := range h.Close() {
		if r.Outcome != verdict.Satisfied || !open || len(stretches) != 1 || stretches[0].Partial != 0 {
			t.Errorf("open before: %v; %+v; %+v", open, r, stretches)
		}
	}
	if found := h.Found(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
