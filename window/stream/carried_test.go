package stream

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Of a reader, what is kept is in its own order, whatever the order in which its reads began to wait.
func TestReadsOf(t *testing.T) {
	op := func(k record.OpKind, key string, n int64) record.Op {
		return record.Op{Kind: k, Key: key, Value: record.Int(n)}
	}
	ops := []record.Op{op(record.Read, "x", 1), op(record.Read, "y", 2), op(record.Write, "z", 3), op(record.Read, "z", 3), op(record.Read, "x", 4), op(record.Read, "v", 5)}
	if got, want := readsOf(ops, []string{"v", "z", "y", "x"}), []record.Op{ops[0], ops[1], ops[5]}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Each operation of a transaction reads what is there when it reads, so rc holds; or all
// read at one time, so ser does. A record often comes segments after one that read from it.
// Nothing is found, however short the segments.
func TestReadsThatWaitKeepTheirOrder(t *testing.T) {
	const (
		base  = int64(1_700_000_000_000_000_000)
		every = 100_000 // a commit
		keys  = 3       // the odd ones hold lists
	)
	type sent struct {
		end  int64
		line string
	}
	for seed := uint64(25); seed < 45; seed++ { // 31 and 41 have reads whose order matters
		rng := rand.New(rand.NewPCG(seed, 61))
		levels, atOnce := []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER}, seed%2 == 0
		if !atOnce {
			levels = levels[:2]
		}
		var versions [keys][]int64 // when each was committed
		var all []sent
		for i := range int64(60) {
			commit := base + i*every
			start := commit - 1
			if !atOnce {
				start -= rng.Int64N(20) * every
			}
			var reads, writes []string
			when := start
			for _, k := range rng.Perm(keys) {
				when += rng.Int64N(commit - when) // of one key after the other
				n, _ := slices.BinarySearch(versions[k], when)
				switch {
				case n == 0:
				case k%2 == 0:
					reads = append(reads, fmt.Sprintf(`["r","k%d",%d]`, k, n))
				default:
					list := "1"
					for v := 2; v <= n; v++ {
						list += fmt.Sprintf(",%d", v)
					}
					reads = append(reads, fmt.Sprintf(`["r","k%d",[%s]]`, k, list))
				}
				if rng.IntN(2) == 0 {
					versions[k] = append(versions[k], commit)
					writes = append(writes, fmt.Sprintf(`[%q,"k%d",%d]`, [...]string{"w", "append"}[k%2], k, len(versions[k])))
				}
			}
			if ops := strings.Join(append(reads, writes...), ","); ops != "" {
				end := commit + 1 + rng.Int64N(3)*rng.Int64N(20)*every
				all = append(all, sent{end, fmt.Sprintf(`{"session":"s%d","seq":1,"status":"committed","start":%d,"end":%d,"ops":[%s]}`, i, start, end, ops)})
			}
		}
		slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.end, b.end) })
		var lines []string
		for _, x := range all {
			lines = append(lines, x.line)
		}
		for _, cut := range [][2]int{{5, 2}, {12, 3}, {1000, 10}} {
			found, results := judged(t, Config{Levels: levels, UniqueValues: true, Segment: cut[0], Overlap: cut[1], Every: time.Microsecond}, lines)
			for _, r := range results {
				if len(found) > 0 || r.Outcome == verdict.Violated || cut[0] == 1000 && r.Outcome != verdict.Satisfied {
					t.Fatalf("seed %d, segments of %d: found %v; %v is %v %v\n%s", seed, cut[0], found, r.Level, r.Outcome, r.Reason, strings.Join(lines, "\n"))
				}
			}
		}
	}
}
