package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// repeatedLines are n records of a serial history of 20 keys with 3 values and null, of eight clients by turns, which overlap.
// Then come some pairs of transactions that read what the other wrote.
func repeatedLines(n, broken int) []string {
	rng, lines, holds := rand.New(rand.NewPCG(17, 3)), []string{}, map[string]string{}
	add := func(session string, seq int, ops string) {
		at := 1_700_000_000_000_000_000 + len(lines)*25_000_000
		lines = append(lines, fmt.Sprintf(`{"session":%q,"seq":%d,"start":%d,"end":%d,"status":"committed","ops":[%s]}`, session, seq, at-rng.IntN(90_000_000), at+rng.IntN(90_000_000), ops))
	}
	for i := range n {
		ops := ""
		for _, k := range rng.Perm(20)[:2+rng.IntN(6)] {
			key, value := fmt.Sprint("k", k), [...]string{"null", "1", "2", "3"}[rng.IntN(4)]
			if holds[key] == "" {
				holds[key] = "null"
			}
			ops += fmt.Sprintf(`,["r",%q,%s],["w",%[1]q,%[3]s]`, key, holds[key], value)
			holds[key] = value
		}
		add(fmt.Sprint("s", i%8), i/8, ops[1:])
	}
	for i := range broken {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		add(a, 0, fmt.Sprintf(`["r",%q,1],["w",%q,1]`, b, a))
		add(b, 0, fmt.Sprintf(`["r",%q,1],["w",%q,1]`, a, b))
	}
	return lines
}

// Where values repeat, weak levels have the answer of a stronger one that holds, whether that was asked for or not,
// without a search of their own, which is long; and whatever is asked for with a level, its answer is the same.
func TestWeakLevelsHaveAWitness(t *testing.T) {
	sets := [][]verdict.Level{{verdict.RA}, {verdict.CC}, {verdict.RC}, {verdict.SI}, {verdict.SI, verdict.RA}, {verdict.CC, verdict.RA, verdict.SI, verdict.RC}, {verdict.RC, verdict.CC}}
	for _, broken := range []int{0, 3} {
		lines := repeatedLines(200, broken)
		for _, levels := range sets {
			cfg := Config{Levels: levels, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, MaxSkew: int64(10 * time.Millisecond)}, MaxTransaction: 500 * time.Millisecond}
			_, _, results := judgedBy(t, cfg, lines)
			for _, r := range results {
				if want := [...]verdict.Outcome{verdict.Satisfied, verdict.Violated}[min(broken, 1)]; r.Outcome != want {
					t.Errorf("%d broken, %v: %v is %v (%v), want %v", broken, levels, r.Level, r.Outcome, r.Reason, want)
				}
			}
		}
	}
}

// What cc knows of transactions, where each is a session of its own, counts as what closures take.
func TestRowsEndSegments(t *testing.T) {
	rng, last, lines := rand.New(rand.NewPCG(1, 7)), make([]int, 500), []string{}
	for i := range 6000 {
		ops, at := "", 1_700_000_000_000_000_000+i*1_000_000
		for n, k := range rng.Perm(len(last))[:4] {
			value := "null"
			if last[k] > 0 {
				value = fmt.Sprint(last[k])
			}
			ops += fmt.Sprintf(`,["r","k%d",%s]`, k, value)
			if n < 2 {
				last[k] = i + 1
				ops += fmt.Sprintf(`,["w","k%d",%d]`, k, i+1)
			}
		}
		lines = append(lines, fmt.Sprintf(`{"session":"u%d","seq":1,"start":%d,"end":%d,"status":"committed","ops":[%s]}`, i, at, at+500_000, ops[1:]))
	}
	cfg := Config{Levels: []verdict.Level{verdict.CC}, UniqueValues: true, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, BytesMax: 1 << 20, Overlap: 256}
	h, _, results := judgedBy(t, cfg, lines)
	if s := h.Stats(); s.Segments == 0 || s.Undecided > 0 || results[0].Outcome == verdict.Violated {
		t.Errorf("%v, %d segments ended, %d open", results[0].Outcome, s.Segments, s.Undecided)
	}
}

// Where no order of commits suits any of those whom a read may be of, that is told when the segment ends, and not kept
// for an end that a monitor's input does not have.
func TestRepeatedValuesAreDecidedWhenASegmentEnds(t *testing.T) {
	var lines []string
	add := func(session string, seq int, ops string) {
		at := 1_700_000_000_000_000_000 + len(lines)*100_000_000
		lines = append(lines, fmt.Sprintf(`{"session":%q,"seq":%d,"start":%d,"end":%d,"status":"committed","ops":[%s]}`,
			session, seq, at, at+50_000_000, ops))
	}
	add("a", 1, `["w","x",5],["w","y",5]`)
	add("a", 2, `["w","x",1],["w","y",1]`)
	add("b", 1, `["w","x",1],["w","y",2]`)
	add("c", 1, `["r","x",1],["r","y",5]`)
	for i := range 400 {
		add("z", i+1, fmt.Sprintf(`["w","z",%d]`, i))
	}
	for _, level := range []verdict.Level{verdict.RA, verdict.CC} {
		cfg := Config{Levels: []verdict.Level{level}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete},
			MaxTransaction: time.Second, Segment: 100, Overlap: 10}
		h, found, results := judgedBy(t, cfg, lines)
		if s := h.Stats(); len(found) != 1 || results[0].Outcome != verdict.Violated || s.Segments < 2 || s.Undecided > 0 {
			t.Errorf("%v: %v is told, %v; %d segments ended, %d open", level, found, results[0].Outcome, s.Segments, s.Undecided)
		}
	}
}
