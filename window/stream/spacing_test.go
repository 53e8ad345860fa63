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

// unsolvable are eight transactions that each of four choices of orders condemns, but no
// known edge.
const unsolvable = `s1 A: w(x,1) w(a,1)
s2 B: w(x,2) w(b,2)
s3 C: w(y,3) w(c,3)
s4 D: w(y,4) w(d,4)
s5 RA: r(x,1) r(c,3) r(d,4)
s6 RB: r(x,2) r(c,3) r(d,4)
s7 RC: r(y,3) r(a,1) r(b,2)
s8 RD: r(y,4) r(a,1) r(b,2)
`

// hardKnots are so many sets of transactions of which each has one choice of four.
func hardKnots() string {
	var b strings.Builder
	for i := range knots {
		fmt.Fprintf(&b, `p%[1]d O%[1]d: w(a%[1]d,9)
p%[1]d A%[1]d: r(a%[1]d,9) w(x%[1]d,1) w(a%[1]d,1)
q%[1]d B%[1]d: w(x%[1]d,2) w(b%[1]d,2)
r%[1]d C%[1]d: w(y%[1]d,3) w(c%[1]d,3)
t%[1]d D%[1]d: w(y%[1]d,4) w(d%[1]d,4)
u%[1]d E%[1]d: r(x%[1]d,1) r(c%[1]d,3) r(d%[1]d,4)
v%[1]d F%[1]d: r(y%[1]d,3) r(a%[1]d,1) r(b%[1]d,2)
z%[1]d G%[1]d: r(y%[1]d,4) r(a%[1]d,1) r(b%[1]d,2)
`, i)
	}
	return b.String()
}

const knots = 8

// What a tick leaves to a later one, as much is open or as the search met its budget, is
// solved where none comes for now: as the segment ends, as the engine is to go on with partial coverage, and in a
// silence. And that is so after a restart at any point.
func TestNothingIsLeft(t *testing.T) {
	var much, decided strings.Builder
	hard := hardKnots()
	for i := range 50 { // one key, which nobody reads: 1,225 pairs
		fmt.Fprintf(&much, "w%d W%d: w(hot,%d)\n", i, i, i)
	}
	// Each is decided at last.
	for i := range knots {
		fmt.Fprintf(&decided, "n%[1]d N%[1]d: r(b%[1]d,2) r(a%[1]d,9)\n", i)
	}
	for _, c := range []struct {
		name, ends string
		slots      []string // what comes in each second
		conflicts  int
	}{
		{"much", "segment", []string{much.String(), "r R: r(hot,1)\n", unsolvable}, 0},
		{"much", "silence", []string{much.String(), "r R: r(hot,1)\n", unsolvable}, 0},
		{"much", "loss", []string{much.String(), "r R: r(hot,1)\n", unsolvable}, 0},
		{"hard", "segment", []string{hard, decided.String() + unsolvable}, 6},
		{"hard", "silence", []string{hard, decided.String() + unsolvable}, 6},
		{"hard", "loss", []string{hard, decided.String() + unsolvable}, 6},
	} {
		t.Run(c.name+"/"+c.ends, func(t *testing.T) { nothingIsLeft(t, c.slots, c.conflicts, c.ends) })
	}
}

func nothingIsLeft(t *testing.T, slots []string, conflicts int, ends string) {
	var entries []*Entry
	records := 0
	add := func(at int64, txns ...record.Transaction) {
		for i := range txns {
			txns[i].DB, txns[i].HasTimes, txns[i].End = record.DefaultDB, false, at // the broker's time
		}
		b := batchOf(0, int64(records), txns)
		records += len(txns)
		b.CaughtUp = true
		entries = append(entries, &Entry{Number: uint64(len(entries)), Time: at, Partitions: 1, Batch: b})
	}
	at := int64(1_700_000_000e9)
	for _, text := range slots {
		s, err := script.Parse("initial absent\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		add(at, s.Txns...)
		at += int64(time.Second)
	}
	cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, Clock: record.ClockPrune, Sessions: record.SessionsKeep},
		MaxTransaction: time.Minute, UniqueValues: true, Every: time.Second, Conflicts: conflicts, Segment: 1 << 20, Overlap: 1, Order: order.Options{Lateness: time.Millisecond}}
	switch ends {
	case "segment":
		cfg.Segment = records
	case "loss":
		add(at - int64(time.Second/2)) // what came is released
		b := batchOf(0, int64(records), nil)
		b.Lost = 1
		entries = append(entries, &Entry{Number: uint64(len(entries)), Time: at, Partitions: 1, Batch: b})
	}
	for range 4 { // time passes
		add(at)
		at += int64(time.Second)
	}
	load := func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil }
	for restart := -1; restart < len(entries); restart++ {
		h, told := New(cfg), 0
		for i, e := range entries {
			h.Take(e)
			for more := true; more; {
				more = h.Run(8)
				for _, v := range h.Found() {
					if v.Kind == verdict.Unsatisfiable && v.Under.Coverage == record.CoverageComplete { // with the other it is found again
						told++
					}
				}
				if restart == i {
					var err error
					if h, err = Restore(cfg, checkpointOf(h), load); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if s := h.Stats(); told != 1 || s.Transactions != uint64(records) || (s.Segments > 0) != (ends == "segment") {
			t.Fatalf("restarted at %d: told %d times, %+v", restart, told, s)
		}
		if r := h.Close(); r[0].Outcome != verdict.Violated && ends != "loss" {
			t.Errorf("restarted at %d: %+v", restart, r[0])
		}
	}
}
