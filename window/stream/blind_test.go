package stream

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// blindLines are records of 50 clients that write a hot key blindly and of 50 that read it, with or without times by which 40
// overlap; each 500th begins two updates of one version, one of which is lost.
func blindLines(n int, timed bool) []string {
	var lines []string
	add := func(session string, seq, at int, ops string) {
		times := ""
		if timed {
			end := 1_700_000_000_000_000_000 + at*10_000
			times = fmt.Sprintf(`"start":%d,"end":%d,`, end-395_000, end)
		}
		lines = append(lines, fmt.Sprintf(`{"session":%q,"seq":%d,%s"status":"committed","ops":[%s]}`, session, seq, times, ops))
	}
	for i := range n {
		add(fmt.Sprint("s", i%50), i/50, i, fmt.Sprintf(`["w","hot",%d]`, i+1))
		add(fmt.Sprint("r", i%50), i/50, i, fmt.Sprintf(`["r","hot",%d]`, i+1))
		if i%500 == 499 {
			key := fmt.Sprint("k", i)
			add("first"+key, 0, i, fmt.Sprintf(`["w",%q,1]`, key))
			add("one"+key, 0, i+40, fmt.Sprintf(`["r",%q,1],["w",%q,2]`, key, key))
			add("other"+key, 0, i+41, fmt.Sprintf(`["r",%q,1],["w",%q,3]`, key, key))
		}
	}
	return lines
}

// Blind writes of a hot key, each read once, have two orders each two: a segment ends before there is too
// much of that, nothing is left open, and what the records show is told.
func TestBlindWritesEndSegments(t *testing.T) {
	for _, timed := range []bool{false, true} {
		for _, levels := range [][]verdict.Level{{verdict.SI}, {verdict.SI, verdict.SER, verdict.SSER}} {
			t.Run(fmt.Sprint("timed ", timed, ", ", levels), func(t *testing.T) {
				t.Parallel()
				cfg := Config{Levels: levels, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoveragePartial, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: time.Minute, BytesMax: 16 << 20, Overlap: 512}
				h, found, results := judgedBy(t, cfg, blindLines(4000, timed))
				s := h.Stats()
				if s.Segments < 10 || s.Undecided > 0 {
					t.Errorf("%d segments ended and left %d open, want many, and nothing", s.Segments, s.Undecided)
				}
				if _, work := h.Standing(); work.Constraints > 2<<15 { // those of two levels may be the same
					t.Errorf("%d pairs were made in one segment, which may have %d", work.Constraints, 1<<15)
				}
				if len(found) != 8 || found[0] != verdict.Divergence {
					t.Errorf("%v are told, want 8 lost updates", found)
				}
				for _, r := range results {
					if r.Outcome != verdict.Violated {
						t.Errorf("%v: %v", r.Level, r.Outcome)
					}
				}
			})
		}
	}
}

// Where what was forgotten would fill an engine before anything new has come, a segment begins without it, instead of
// ending at once.
func TestSeedsThatTakeAllAreLeftOut(t *testing.T) {
	rng, last := rand.New(rand.NewPCG(1, 2)), map[int]string{}
	var lines []string
	for i := range 12_000 {
		k := rng.IntN(4000)
		read := cmp.Or(last[k], "null")
		last[k] = fmt.Sprint(i + 1)
		lines = append(lines, fmt.Sprintf(`{"session":"s%d","seq":%d,"status":"committed","ops":[["r","k%d",%s],["w","k%d",%s]]}`, i%64, i/64, k, read, k, last[k]))
		if i%1000 == 999 {
			for j, ops := range []string{`["w","x%d",1]`, `["r","x%d",1],["w","x%[1]d",2]`, `["r","x%d",1],["w","x%[1]d",3]`} {
				lines = append(lines, fmt.Sprintf(`{"session":"x%d","seq":%d,"status":"committed","ops":[%s]}`, j, i, fmt.Sprintf(ops, i)))
			}
		}
	}
	cfg := Config{Levels: []verdict.Level{verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent}, MaxTransaction: time.Minute,
		BytesMax: 1200 << 10, Segment: 1024, Overlap: 64, MaxSeeds: 1 << 20}
	h, found, _ := judgedBy(t, cfg, lines)
	if s := h.Stats(); s.Segments > 24 || s.Undecided > 0 {
		t.Errorf("%d segments ended and left %d open, want few, and nothing", s.Segments, s.Undecided)
	}
	if len(found) != 12 {
		t.Errorf("%v are told, want 12 lost updates", found)
	}
}

// Where all is asked for in one piece a segment ends only when what may be done is used up; that is
// said, and what comes then is judged as usual.
func TestWholeGivesUpAndGoesOn(t *testing.T) {
	lines := blindLines(1000, false)
	for i := range 2000 {
		key := fmt.Sprint("calm", i%10)
		read := "null"
		if i >= 10 {
			read = fmt.Sprint(i - 9)
		}
		lines = append(lines, fmt.Sprintf(`{"session":"c%d","seq":%d,"status":"committed","ops":[["r",%q,%s],["w",%q,%d]]}`, i%10, i/10, key, read, key, i+1))
	}
	cfg := Config{Levels: []verdict.Level{verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, Steps: 512, Segment: 1 << 20, Whole: true}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, _, _ := judgedBy(t, cfg, lines)
	runtime.ReadMemStats(&after)
	if s := h.Stats(); s.Undecided == 0 || s.Segments == 0 {
		t.Errorf("%d segments ended and left %d open, want some of both", s.Segments, s.Undecided)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 128 {
		t.Errorf("%d MB were allocated for %d records: no room is to be made for all that the next segment might have", mb, len(lines))
	}
	all, _ := h.Standing()
	if last := all[len(all)-1]; all[0].Partial&WhyUndecided == 0 || last.Partial&WhyUndecided != 0 {
		var names []string
		for _, x := range all {
			names = append(names, fmt.Sprint(x.From, "-", x.To, " ", strings.Join(x.Partial.Names(), " ")))
		}
		t.Errorf("stretches %v: want the first undecided and the last not", names)
	}
}

// seenLines are n records without times of 50 clients, each of which updates one of some keys and writes blindly when
// it was seen. It is serial.
func seenLines(n, keys int) []string {
	rng, last, lines := rand.New(rand.NewPCG(1, 2)), make([]string, keys), []string{}
	add := func(format string, a ...any) {
		i := len(lines)
		lines = append(lines, fmt.Sprintf(`{"session":"s%d","seq":%d,"status":"committed","ops":[%s]}`, i%50, i/50, fmt.Sprintf(format, a...)))
	}
	for i := range keys {
		last[i] = fmt.Sprint(i)
		add(`["w","k%d",%d],["w","seen",%[2]d]`, i, i)
	}
	for len(lines) < n {
		k := rng.IntN(keys)
		v := fmt.Sprint(len(lines))
		add(`["r","k%d",%s],["w","k%[1]d",%[3]s],["w","seen",%[3]s]`, k, last[k], v)
		last[k] = v
	}
	return lines
}

// Blind writes by who reads something else have two orders each two at si: no pairs of them are made where the history can
// be run as it came.
func TestBlindWritesOfReadersAreRun(t *testing.T) {
	cfg := Config{Levels: []verdict.Level{verdict.SI}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, BytesMax: 1 << 20, Segment: 1 << 20, Whole: true}
	h, _, results := judgedBy(t, cfg, seenLines(3000, 100))
	if results[0].Outcome != verdict.Satisfied || h.Stats().Segments > 0 {
		t.Errorf("%v %v, %d segments ended, want it satisfied in one", results[0].Outcome, results[0].Reason, h.Stats().Segments)
	}
	if _, work := h.Standing(); work.Residual > 0 {
		t.Errorf("%d pairs, want none", work.Residual)
	}
}

// Blind writes that are read have two orders each two: more than there is room for are not made, and what can be run as it
// came is satisfied.
func TestPairsBeyondTheRoomAreRun(t *testing.T) {
	cfg := Config{Levels: []verdict.Level{verdict.SI}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, BytesMax: 4 << 20, Segment: 1 << 20, Whole: true}
	var lines []string
	for i := range 1500 {
		lines = append(lines, fmt.Sprintf(`{"session":"s%d","seq":%d,"status":"committed","ops":[["w","hot",%d]]}`, i%50, i/50, i),
			fmt.Sprintf(`{"session":"r%d","seq":%d,"status":"committed","ops":[["r","hot",%d]]}`, i%50, i/50, i))
	}
	h, _, results := judgedBy(t, cfg, lines)
	if results[0].Outcome != verdict.Satisfied || h.Stats().Segments > 0 {
		t.Errorf("%v %v, %d segments ended, want it satisfied in one", results[0].Outcome, results[0].Reason, h.Stats().Segments)
	}
	_, work := h.Standing()
	if most := (4<<20 + 3000<<10) / 512; work.Residual < 10*most {
		t.Errorf("%d pairs, which is not much beside the %d that there is room for", work.Residual, most)
	}
}

// A level that takes much is given up, and not those that take little.
func TestLevelsShareABudget(t *testing.T) {
	lines := seenLines(3000, 100)
	for i, ops := range []string{`["w","z",1],["w","a",1]`, `["w","z",2],["w","b",1]`, `["r","z",1],["r","b",1]`, `["r","z",2],["r","a",1]`} {
		lines = append(lines, fmt.Sprintf(`{"session":"z%d","seq":0,"status":"committed","ops":[%s]}`, i, ops))
	}
	cfg := Config{Levels: []verdict.Level{verdict.SI, verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, MaxTransaction: time.Minute, Steps: 3000, Segment: 1 << 20, Overlap: 1 << 19, Whole: true}
	_, _, results := judgedBy(t, cfg, lines)
	if ser := results[1]; ser.Outcome != verdict.Violated {
		t.Errorf("ser is %v (%v), want it violated, whatever si took", ser.Outcome, ser.Reason)
	}
}
