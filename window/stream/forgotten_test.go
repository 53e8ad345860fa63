package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// What an engine is told of the past is what keeps it from accusing somebody of what
// was only forgotten. In each case the whole history satisfies the level, or has just
// the anomalies wanted; the past is told when the engine begins (at most 0 seeds: the
// default), or of a key when it is touched (at most one).
func TestWhatIsForgottenAccusesNobody(t *testing.T) {
	const day = 1_700_000_000_000_000_000
	line := func(session, status string, seq, start, end int64, ops string) string {
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":%q,"start":%d,"end":%d,"ops":[%s]}`, session, seq, status, day+start, day+end, ops)
	}
	timeless := func(session string, seq int64, ops string) string {
		return fmt.Sprintf(`{"session":%q,"seq":%d,"status":"committed","ops":[%s]}`, session, seq, ops)
	}
	const later = 20_000_000_000 // when the others have all come
	for _, tc := range []struct {
		name        string
		level       verdict.Level
		coverage    record.Coverage
		longest     time.Duration
		early, late []string
		want        int
	}{
		{"a stale read of a superseded version, which nobody is known to have written", verdict.RC, record.CoverageComplete, time.Second,
			[]string{line("a", "committed", 1, 0, 1, `["w","x",1]`), line("a", "committed", 2, 2, 3, `["w","x",2]`)},
			[]string{line("b", "committed", 1, later, later+1, `["r","x",1]`)}, 0},
		{"another attempt that was aborted, of what had been committed", verdict.RC, record.CoverageComplete, time.Second,
			[]string{line("a", "committed", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "aborted", 1, later, later+1, `["w","x",1]`), line("c", "committed", 1, later+2, later+3, `["r","x",1]`)}, 0},
		{"a value that nobody can have written", verdict.RC, record.CoverageComplete, time.Second,
			[]string{line("a", "committed", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["r","x",3]`)}, 1},
		{"a read that waits in several segments for what was forgotten", verdict.RC, record.CoverageComplete, 8 * time.Second,
			[]string{line("a", "committed", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["r","x",1]`)}, 0},
		{"an unknown outcome takes effect after all", verdict.SSER, record.CoverageComplete, time.Second,
			[]string{line("a", "unknown", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["r","x",null]`), line("b", "committed", 2, later+2, later+3, `["r","x",1]`)}, 0},
		{"it does so after somebody else's write", verdict.SSER, record.CoverageComplete, time.Second,
			[]string{line("a", "unknown", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["w","x",2]`), line("b", "committed", 2, later+2, later+3, `["r","x",1]`)}, 0},
		{"what was certain does not", verdict.SSER, record.CoveragePartial, time.Second,
			[]string{line("a", "committed", 1, 0, 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["w","x",2]`), line("b", "committed", 2, later+2, later+3, `["r","x",1]`)}, 1},
		{"nobody knows when a writer without times was", verdict.SSER, record.CoverageComplete, time.Second,
			[]string{timeless("a", 1, `["w","x",1]`)},
			[]string{line("b", "committed", 1, later, later+1, `["r","x",null]`), line("b", "committed", 2, later+2, later+3, `["r","x",1]`)}, 0},
		{"what was a list and was written is none", verdict.SSER, record.CoveragePartial, time.Second,
			[]string{line("b", "committed", 1, 2, 3, `["w","x",null]`), line("a", "committed", 1, 0, 9, `["append","x",1]`), line("b", "committed", 2, 5, 10, `["append","x",5]`)},
			[]string{line("c", "committed", 1, later, later+1, `["r","x",[5]]`)}, 0},
		{"a list without an element", verdict.SSER, record.CoveragePartial, time.Second,
			[]string{line("a", "committed", 1, 0, 9, `["append","x",1]`), line("b", "committed", 1, 5, 10, `["append","x",5]`)},
			[]string{line("c", "committed", 1, later, later+1, `["r","x",[5]]`)}, 1},
		{"a read that waits has no place behind what its session did later", verdict.SER, record.CoveragePartial, time.Minute,
			[]string{line("q", "committed", 1, 0, 1, `["w","q",1]`), timeless("a", 1, `["r","x",7]`), timeless("a", 2, `["w","k",1]`)},
			[]string{timeless("w", 1, `["w","x",7]`), timeless("v", 1, `["r","x",7],["w","x",8],["w","k",2]`), timeless("u", 1, `["r","k",2]`), timeless("u", 2, `["r","k",1]`)}, 0},
	} {
		for _, seeds := range []int{0, 1} {
			lines := append(append([]string{}, tc.early...), others(39, day+100)...)
			lines = append(append(lines, tc.late...), others(41, day+later+100)[1:]...)
			for i := range 40 {
				lines[len(lines)-40+i] = fmt.Sprintf(`{"session":"p","seq":%d,"status":"committed","start":%d,"end":%d,"ops":[["w","z",%d]]}`, i+1, day+later+100+i*500_000_000, day+later+200+i*500_000_000, i)
			}
			found, results := judged(t, Config{Levels: []verdict.Level{tc.level}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: tc.coverage, Initial: record.InitialAbsent}, MaxTransaction: tc.longest, MaxSeeds: seeds, Segment: 6, Overlap: 2}, lines)
			if len(found) != tc.want || (results[0].Outcome == verdict.Violated) != (tc.want > 0) {
				t.Errorf("%s, at most %d seeds: found %v, %v, want %d", tc.name, seeds, found, results[0].Outcome, tc.want)
			}
			if r := results[0]; r.Reason == verdict.Forgotten && (r.Count < len(lines)-2*6 || r.Count >= len(lines)) {
				t.Errorf("%s, at most %d seeds: %d of %d transactions forgotten, want all but the last segment's", tc.name, seeds, r.Count, len(lines))
			}
		}
	}
}
