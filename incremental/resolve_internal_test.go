package incremental

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// A read is given up when no record of its writer can come any more, which is
// never if nothing bounds transactions, or the bound lies beyond all time.
func TestDeadline(t *testing.T) {
	for _, c := range []struct{ end, longest, skew, want int64 }{
		{100, 0, 0, maxTime},
		{100, 0, 5, maxTime},
		{100, 30, 0, 130},
		{100, 30, 5, 135},
		{-100, 30, 0, -70},
		{math.MaxInt64 - 30, 30, 0, math.MaxInt64},
		{math.MaxInt64 - 30, 30, 1, maxTime},
		{math.MaxInt64, 30, 5, maxTime},
		{math.MinInt64, 30, 0, math.MinInt64 + 30},
	} {
		e := New(Options{Levels: []verdict.Level{verdict.SER}, Online: true, MaxTransaction: c.longest, Assumptions: record.Assumptions{MaxSkew: c.skew}})
		e.h.txns.Push(txn{order: c.end})
		if got := e.h.deadline(0); got != c.want {
			t.Errorf("end %d, transactions of %d, skew %d: %d, not %d", c.end, c.longest, c.skew, got, c.want)
		}
	}
}

// The clock orders what is further apart than clocks may be, and nothing of
// unknown outcome or without times.
func TestPrecededBy(t *testing.T) {
	for _, c := range []struct {
		end, start, skew int64
		timed, open      bool
		want             bool
	}{
		{10, 11, 0, true, false, true},
		{10, 10, 0, true, false, false},
		{10, 15, 5, true, false, false},
		{10, 16, 5, true, false, true},
		{10, 11, 0, true, true, false},
		{10, 11, 0, false, false, false},
		{10, maxTime, 5, true, false, true},
		{10, math.MinInt64, 0, true, false, false},
	} {
		e := New(Options{Levels: []verdict.Level{verdict.SSER}, Assumptions: record.Assumptions{MaxSkew: c.skew}})
		e.h.txns.Push(txn{end: c.end, timed: c.timed, open: c.open})
		if got := e.h.precededBy(0, c.start); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Whom a value can be from: not the reader itself, not an aborted transaction, and
// the initial state where keys are known to hold it.
func TestOnlyWriter(t *testing.T) {
	txns := []record.Transaction{
		{Session: "a", Ops: []record.Op{write("x", 0), write("y", 1), write("z", 2)}},
		{Session: "b", Ops: []record.Op{write("y", 1), write("z", 2), write("v", 3)}},
		{Session: "c", Status: record.Aborted, Ops: []record.Op{write("x", 0), write("v", 3)}},
		{Session: "d", Status: record.Unknown, Ops: []record.Op{write("z", 2)}},
	}
	for _, c := range []struct {
		initial record.Initial
		reader  uint32
		key     string
		value   int64
		writer  ordinal
		several bool
	}{
		{record.InitialAny, 9, "x", 0, 0, false},
		{record.InitialZero, 9, "x", 0, 0, true},
		{record.InitialZero, 0, "x", 0, none, false}, // its own does not count
		{record.InitialAbsent, 9, "x", 0, 0, false},
		{record.InitialAny, 9, "y", 1, 1, true},
		{record.InitialAny, 0, "y", 1, 1, false},
		{record.InitialAny, 1, "y", 1, 0, false},
		{record.InitialAny, 0, "z", 2, 2, true},
		{record.InitialAny, 9, "v", 3, 1, false},
		{record.InitialAny, 9, "v", 4, none, false},
	} {
		e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: c.initial}})
		for i := range txns {
			e.Step(&txns[i], 0)
		}
		cell := e.h.cellOf(e.h.keyNumber(c.key), record.Int(c.value))
		if w, several := e.h.onlyWriter(ordinal(c.reader), cell); several != c.several || !several && w != c.writer {
			t.Errorf("%d reading %d from %s with %v: %d, several %v", c.reader, c.value, c.key, c.initial, w, several)
		}
	}
}

// Candidates come by line, then slot, the initial version first, whatever the
// order of records; transactions of unknown outcome have lines of their own.
func TestCandidatesAreSorted(t *testing.T) {
	var txns []record.Transaction
	for i := range 30 {
		x := record.Transaction{Session: fmt.Sprint(i * 7 % 5), Ops: []record.Op{write("x", 0)}}
		if i%6 == 1 {
			x.Status = record.Unknown
		}
		txns = append(txns, x)
	}
	txns = append(txns, record.Transaction{Session: "reader", Ops: []record.Op{read("x", 0)}})
	for _, sessions := range []record.Sessions{record.SessionsKeep, record.SessionsIgnore} {
		for _, online := range []bool{false, true} {
			e := New(Options{Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialZero, Coverage: record.CoverageComplete, Sessions: sessions}, Online: online})
			for i := range txns {
				e.Step(&txns[i], int64(i))
			}
			k := e.h.keyNumber("x")
			zero := e.h.cellOf(k, record.Int(0))
			if r := e.Close()[0]; r.Outcome != verdict.Satisfied {
				t.Fatalf("%v: %+v", r.Outcome, r.Violations)
			}
			cands := e.g.candidates(ordinal(uint32(len(txns)-1)), zero)
			if len(cands) != len(txns) || cands[0] != e.g.initialVersion(k) {
				t.Fatalf("%d candidates, first %d", len(cands), cands[0])
			}
			place := func(v version.ID) [2]uint32 {
				s := e.g.main.tab.At(v).Writer
				return [2]uint32{uint32(e.g.main.tab.Line(s)), uint32(s)}
			}
			if !slices.IsSortedFunc(cands[1:], func(a, b version.ID) int { x, y := place(a), place(b); return slices.Compare(x[:], y[:]) }) {
				t.Errorf("sessions %v, online %v: candidates %v are not sorted", sessions, online, cands)
			}
			lines := map[uint32]int{}
			for _, v := range cands[1:] {
				lines[place(v)[0]]++
			}
			own := 0
			for _, n := range lines {
				if n == 1 {
					own++
				}
			}
			if want := 5; sessions == record.SessionsKeep && own != want || sessions == record.SessionsIgnore && own != len(txns)-1 {
				t.Errorf("sessions %v, online %v: %d transactions on lines of their own: %v", sessions, online, own, lines)
			}
		}
	}
}

// Where a read has several candidates each level has a strand of its own, with the
// same slots and versions, and its own decision.
func TestSeparate(t *testing.T) {
	levels := []verdict.Level{verdict.SER, verdict.SI, verdict.SSER, verdict.StrongSI}
	e := New(Options{Levels: levels, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, Online: true, MaxTransaction: 100})
	step := func(session string, start, end int64, ops ...record.Op) {
		e.Step(&record.Transaction{Session: session, Start: start, End: end, HasTimes: true, Ops: ops}, 0)
	}
	step("a", 0, 1, write("x", 1), write("y", 1))
	step("b", 2, 3, read("y", 1))
	e.Tick(200)
	before := len(e.g.strands)
	if before != 1 || e.g.ambiguities {
		t.Fatalf("%d strands without an ambiguous read", before)
	}
	versions := e.g.main.tab.Len()
	e.g.separate()
	e.g.separate()
	if len(e.g.strands) != len(levels)-len(levels)/2 { // levels that share a polygraph: ser and sser, si and strong-si
		t.Fatalf("%d strands", len(e.g.strands))
	}
	for i, c := range e.g.checks {
		if len(c.strand.polys) != 1 || c.poly != c.strand.polys[0] || c.poly.Config().Split != c.split {
			t.Errorf("level %v: its polygraph is not its strand's", c.level)
		}
		if c.strand.tab.Len() != versions || c.strand.tab.Slots() != 2 {
			t.Errorf("level %v: %d versions, %d slots", c.level, c.strand.tab.Len(), c.strand.tab.Slots())
		}
		for v := range version.ID(versions) {
			if a, b := c.strand.tab.At(v), e.g.main.tab.At(v); a.Key != b.Key || a.Writer != b.Writer || a.Kind != b.Kind || a.Next != b.Next {
				t.Errorf("level %v: version %d differs", c.level, v)
			}
		}
		if i > 1 && c.poly != e.g.checks[i-2].poly {
			t.Errorf("level %v: does not share a polygraph", c.level)
		}
	}
}

// Reads are given up in the order of their deadlines, and those that were
// answered meanwhile are not.
func TestGiveUp(t *testing.T) {
	e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete},
		Online: true, UniqueValues: true, MaxTransaction: 100})
	step := func(session string, start, end int64, ops ...record.Op) {
		e.Step(&record.Transaction{Session: session, Start: start, End: end, HasTimes: true, Ops: ops}, 0)
	}
	step("a", 0, 10, read("x", 1), read("y", 1))
	step("b", 0, 20, read("x", 2))
	step("c", 0, 30, write("x", 1))
	told := func(watermark int64) []verdict.Kind {
		var kinds []verdict.Kind
		for _, v := range e.Tick(watermark).Violations {
			kinds = append(kinds, v.Kind)
		}
		return kinds
	}
	for _, c := range []struct {
		watermark int64
		want      int
		waiting   int
	}{{30, 0, 2}, {110, 0, 2}, {111, 1, 1}, {120, 0, 1}, {121, 1, 0}, {1000, 0, 0}} {
		got := told(c.watermark)
		for _, k := range got {
			if k != verdict.ThinAirRead {
				t.Errorf("at %d: %v", c.watermark, k)
			}
		}
		waiting := 0
		e.Undecided(func(verdict.Exhibit) { waiting++ })
		if len(got) != c.want || waiting != c.waiting {
			t.Errorf("at %d: %d given up, %d waiting", c.watermark, len(got), waiting)
		}
	}
}
