package stream

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/segment"
)

// Stretches of ten transactions each, one a nanosecond: what is lost makes those
// partial in whose time it may have been, whether it is known before or after they end.
// The first two, of which the same is known, are one.
func TestStretches(t *testing.T) {
	s := newStretches()
	at := int64(0)
	grow := func(n int, straddles bool) {
		for range n {
			s.released(at, straddles)
			at++
		}
	}
	cut := func(c segment.Cut) { s.cut(c, int64(c.From)-1, int64(c.From), 0) }
	grow(12, false)
	cut(segment.Cut{From: 10, Kind: segment.Clock, AssumingRealTime: true})
	s.lost(LostGap, 8, 11) // in the first, and the second
	grow(10, false)
	cut(segment.Cut{From: 20, Kind: segment.Fence, Complete: true})
	grow(9, true)
	cut(segment.Cut{From: 30, Kind: segment.Fence, Complete: true})
	s.lost(LostSample, 33, 99)
	grow(11, false)
	cut(segment.Cut{From: 40, Kind: segment.Limit})
	grow(9, false)
	s.ended(WhyUndecided)
	want := []struct {
		to  uint64
		why Whys
	}{
		{20, 1 << LostGap}, {30, WhyStraddling}, {40, 1<<LostSample | WhyLimit | WhyStraddling}, {51, 1<<LostSample | WhyLimit | WhyUndecided},
	}
	all := s.all(math.MaxInt64, 0)
	for i, x := range all {
		if i < len(want) && (x.To != want[i].to || x.Partial != want[i].why) {
			t.Errorf("stretch %d ends at %d, %v; want %d, %v", i, x.To, x.Partial.Names(), want[i].to, want[i].why.Names())
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d stretches, want %d", len(all), len(want))
	}
}

// What is withheld makes partial where it may have been: the stretch that goes on, the one
// before it, and the one behind the next cut if that lies before where it was found.
func TestWithheldStretches(t *testing.T) {
	s := newStretches()
	s.lost(LostGap, 0, 8) // or it would be one with the next
	at := int64(0)
	for _, step := range []struct{ to, cut uint64 }{{12, 10}, {22, 20}, {32, 30}, {42, 40}, {52, 50}} {
		for ; at < int64(step.to); at++ {
			s.released(at, false)
		}
		if step.cut == 30 {
			s.withheld()
		}
		s.cut(segment.Cut{From: step.cut, Kind: segment.Fence, Complete: true}, int64(step.cut)-1, int64(step.cut), 0)
	}
	s.ended(0)
	check := func(want ...Whys) {
		t.Helper()
		var got []Whys
		for _, x := range s.all(math.MaxInt64, 0) {
			got = append(got, x.Partial)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v: %+v", got, want, s.all(math.MaxInt64, 0))
		}
	}
	check(1<<LostGap, WhyForgotten, 0)
	s.withheld() // found at the end
	check(1<<LostGap, WhyForgotten, WhyForgotten)
}

// However many there are, StretchesMost are kept; nothing of what is partial is ever
// taken for complete, and they have no gaps.
func TestStretchesAreBounded(t *testing.T) {
	s := newStretches()
	for n := range uint64(1000) {
		s.released(int64(n), false)
		if n%2 == 0 {
			s.lost(LossWhy(n/2)%lossWhys, int64(n), int64(n))
		}
		s.cut(segment.Cut{From: n + 1, Kind: segment.Fence, Complete: true}, int64(n), math.MaxInt64, 0)
	}
	all := s.all(math.MaxInt64, 0)
	if len(all) > StretchesMost || all[0].From != 0 || all[len(all)-1].To != 1000 {
		t.Fatalf("%d stretches, %+v", len(all), all)
	}
	for i, x := range all {
		if i > 0 && x.From != all[i-1].To {
			t.Errorf("stretch %d begins at %d", i, x.From)
		}
		if even := x.From%2 == 0 || x.To > x.From+1; even != (x.Partial != 0) {
			t.Errorf("%+v", x)
		}
	}
}

func TestCompleteness(t *testing.T) {
	levels := []verdict.Level{verdict.RC, verdict.SI, verdict.SER, verdict.SSER}
	for _, tc := range []struct {
		s    Stretch
		want []Completeness
	}{
		{Stretch{}, []Completeness{Complete, Complete, Complete, Complete}},
		{Stretch{Cut: true}, []Completeness{Partial, Complete, Complete, Complete}},
		{Stretch{Cut: true, ByClock: true}, []Completeness{Partial, AssumingRealTime, AssumingRealTime, Complete}},
		{Stretch{Partial: WhyLimit}, []Completeness{Partial, Partial, Partial, Partial}},
	} {
		var got []Completeness
		for _, l := range levels {
			got = append(got, tc.s.At(l))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.s, got, tc.want)
		}
	}
	if got := (Whys(1<<LostLate) | WhyForgotten | WhyLimit).Names(); !slices.Equal(got, []string{"late-record", "forgotten", "cut-by-limit"}) {
		t.Error(got)
	}
}

// A session reads what it writes itself only segments later, which its read that waits
// does not show, being carried on without its session. So what is from the read to the
// write is not complete, though every cut in between is proved by snapshots; and it is
// where nobody writes what was read.
func TestWriteReadBeforeACutStraddles(t *testing.T) {
	const rounds = 20 // of a write, and a snapshot of each session
	for _, tc := range []struct {
		name, read, write string
		straddles         bool
	}{
		{"value", `["r","z",1]`, `["w","z",1]`, true},
		{"list", `["r","z",[1,2]]`, `["append","z",1],["append","z",2]`, true},
		{"another value", `["r","z",2]`, `["w","z",1]`, false},
		{"another key", `["r","z",1]`, `["w","v",1]`, false},
	} {
		var txns []record.Transaction
		seqs := map[string]int64{}
		add := func(session, ops string) {
			at := 1_700_000_000_000_000_000 + int64(len(txns))*1000
			var x record.Transaction
			line := fmt.Sprintf(`{"session":%q,"seq":%d,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, session, seqs[session], at, at+10, ops)
			if err := codec.Decode([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			x.DB = "d"
			seqs[session]++
			txns = append(txns, x)
		}
		reader, writer := 0, 0
		for i := range rounds {
			write, extra := fmt.Sprintf(`["w","c",%d]`, i+1), ""
			switch {
			case i == rounds-4:
				writer = len(txns)
				write += "," + tc.write
				extra = "," + tc.read
				if !tc.straddles {
					extra = "," + strings.Replace(tc.write, "w", "r", 1)
				}
			case i > rounds-4:
				continue
			}
			if i > 0 {
				write = fmt.Sprintf(`["r","c",%d],`, i) + write
			}
			add("s1", write)
			for _, s := range []string{"s1", "s2", "s3"} {
				add(s, fmt.Sprintf(`["r","c",%d]`, i+1)+extra)
			}
			if i == 3 {
				reader = len(txns)
				add("s1", tc.read)
			}
		}
		h := New(Config{DB: "d", Levels: []verdict.Level{verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Clock: record.ClockIgnore, Sessions: record.SessionsKeep}, MaxTransaction: time.Minute,
			Every: time.Microsecond, Segment: 10, Overlap: 6, Order: order.Options{Lateness: time.Second}})
		found := 0
		for i, x := range txns {
			h.Take(&Entry{Number: uint64(i), Time: x.End, Partitions: 1, Batch: batchOf(0, int64(i), []record.Transaction{x})})
		}
		h.Flush()
		for h.Run(10) {
			found += len(h.Found())
		}
		h.Close()
		found += len(h.Found())
		if st := h.Stats(); found > 0 || st.Cuts[segment.Limit] > 0 || st.Segments < 3 || (st.Straddlers > 0) != tc.straddles {
			t.Errorf("%s: %d found, cuts %v, %d straddlers", tc.name, found, st.Cuts, st.Straddlers)
		}
		stretches, _ := h.Standing()
		for _, x := range stretches {
			between := x.To > uint64(reader) && x.From <= uint64(writer)
			if got := x.Partial == WhyStraddling; tc.straddles && between != got || !tc.straddles && x.Partial != 0 {
				t.Errorf("%s, read at %d and written at %d: %+v", tc.name, reader, writer, x)
			}
		}
	}
}
