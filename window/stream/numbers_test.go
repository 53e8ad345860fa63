package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// chain are transactions each of which reads what the one before it wrote, at times that ascend. They are all of
// one session, in which the i-th has the number that number gives it.
func chain(session, key string, n int, number func(i int) int) (out []string) {
	base := int64(1_700_000_000_000_000_000)
	for i := range n {
		read := "null"
		if i > 0 {
			read = fmt.Sprint(i)
		}
		at := base + int64(i)*20*int64(time.Millisecond)
		out = append(out, fmt.Sprintf(`{"session":%q,"seq":%d,"id":"%s/%d","status":"committed","start":%d,"end":%d,"ops":[["r",%q,%s],["w",%q,%d]]}`,
			session, number(i), session, i, at, at+int64(time.Millisecond), key, read, key, i+1))
	}
	return out
}

func seqOf(line string) (seq int) {
	_, rest, _ := strings.Cut(line, `"seq":`)
	_, _ = fmt.Sscan(strings.TrimRight(strings.SplitN(rest, ",", 2)[0], " "), &seq)
	return seq
}

// Numbers that run against all clocks are held against no database, and it is said that the session's order is not
// used. What a database does against a session's order is found all the same. Where no broker says how records came, that they come in
// the order of their numbers (sorted) bears out none of these.
func TestNumbersThatContradictClocks(t *testing.T) {
	const n = 200
	for _, c := range []struct {
		name     string
		number   func(i int) int
		sessions int
		sorted   bool
	}{
		{"in order", func(i int) int { return i + 1 }, 0, false},
		{"backwards", func(i int) int { return n - i }, 0, false},
		{"begun anew", func(i int) int { return i%50 + 1 }, 0, false},
		{"all the same", func(int) int { return 1 }, 0, false},
		{"two producers", func(i int) int { return i/2 + 1 + i%2*1000 }, 0, false},
		{"backwards, sorted", func(i int) int { return n - i }, 0, true},
		{"short sessions backwards", func(i int) int { return 2 - i/(n/2) }, n / 2, false},
		{"short sessions backwards, sorted", func(i int) int { return 2 - i/(n/2) }, n / 2, true},
	} {
		for _, breaks := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, ", broken ", breaks), func(t *testing.T) {
				lines := chain("s", "x", n, c.number)
				if c.sessions > 0 { // as many, in turn
					for i := range lines {
						lines[i] = strings.Replace(lines[i], `"s"`, fmt.Sprintf(`"s%d"`, i%c.sessions), 1)
					}
				}
				if c.sorted {
					slices.SortStableFunc(lines, func(a, b string) int { return seqOf(a) - seqOf(b) })
				}
				at := int64(1_700_000_000_000_000_000) + n*20*int64(time.Millisecond)
				if breaks { // a session that does not see what it wrote last
					for i, ops := range []string{`["w","y",1]`, `["w","y",2]`, `["r","y",1]`} {
						lines = append(lines, fmt.Sprintf(`{"session":"g","seq":%d,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, i+1, at, at+1000, ops))
						at += int64(20 * time.Millisecond)
					}
				}
				cfg := Config{Levels: []verdict.Level{verdict.SI, verdict.SER}, UniqueValues: true, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent, MaxSkew: int64(5 * time.Millisecond)},
					Every: 50 * time.Millisecond, Segment: 1000}
				_, found, results := judgedFrom(t, cfg, lines, !c.sorted)
				if len(found) > 0 != breaks {
					t.Errorf("found %v", found)
				}
				for _, r := range results {
					if (r.Outcome == verdict.Violated) != breaks {
						t.Errorf("%v is %v", r.Level, r.Outcome)
					}
				}
			})
		}
	}
}
