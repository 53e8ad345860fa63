package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

// Where several databases are in one topic, a database's records leave in the same order in whatever batches they are
// read, and however much further the others' are that stand before them.
func TestOthersRecordsPlaceNobody(t *testing.T) {
	at := func(db, session string, seq, end int64) record.Transaction {
		return record.Transaction{DB: db, Session: session, ID: fmt.Sprint(session, seq), Seq: seq, HasSeq: true,
			HasTimes: true, Start: end - 1, End: end}
	}
	logs := [][]record.Transaction{
		{at("d", "a", 0, 50), at("d", "a", 1, 60), at("other", "o", 0, 100), at("other", "p", 0, 90),
			at("d", "b", 0, 95), at("d", "a", 2, 200)},
		{at("d", "c", 0, 40), at("d", "c", 1, 97), at("d", "c", 2, 200)},
	}
	var first []int64
	for most := 1; most <= 5; most++ {
		h := New(Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoverageComplete},
			MaxTransaction: time.Microsecond, Order: order.Options{Partitions: []int{0, 1}, Lateness: 100}})
		n := uint64(0)
		for p, log := range logs {
			for from := 0; from < len(log); from += most {
				n++
				b := batchOf(p, int64(from), log[from:min(len(log), from+most)])
				h.Take(&Entry{Number: n, Time: 1000, Partitions: 2, Batch: b})
				for h.Run(100) {
				}
			}
		}
		h.Flush()
		for h.Run(100) {
		}
		var places []int64
		for _, f := range h.segs.fed {
			places = append(places, f.at)
		}
		if first == nil {
			first = places
		} else if diff := cmp.Diff(first, places); diff != "" {
			t.Errorf("in batches of %d (-of one +of these):\n%s", most, diff)
		}
	}
}
