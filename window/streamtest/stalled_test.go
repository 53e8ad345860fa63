package streamtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/stream"
)

// A partition can't be read for longer than a transaction may last, and sessions of another one
// read what those of this one write, which is in the log in time. As soon as it is not waited for
// any more that is noted as a loss, for as long as that lasts: nobody is accused, although coverage was
// complete, also not of reading what one of that partition tried again that was aborted in the other.
func TestStalledPartitionsAccuseNobody(t *testing.T) {
	const base, tenth = int64(1_700_000_000_000_000_000), int64(100 * time.Millisecond)
	for _, longest := range []time.Duration{time.Second, 5 * time.Second, 8 * time.Second, time.Minute} {
		h := stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Initial: record.InitialAbsent, Coverage: record.CoverageComplete,
			MaxSkew: 5 * time.Millisecond, MaxTransaction: longest, UniqueValues: true, Every: 250 * time.Millisecond,
			Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: 10 * time.Second}})
		number, next := uint64(0), [2]int{}
		give := func(now int64, partition int, records ...sent) {
			b := batch(partition, next[partition], records)
			next[partition] += len(records)
			b.CaughtUp = true
			number++
			h.Take(&stream.Entry{Number: number, Time: now, Partitions: 2, Batch: b})
			for h.Run(100) {
			}
			if found := h.Found(); len(found) > 0 {
				t.Fatalf("max_transaction %v: %v at %v, coverage complete: %v", longest, found[0].Kind, time.Duration(now-base), h.Complete())
			}
		}
		did := func(session, key string, seq, at int64, kind record.OpKind) sent {
			return sent{record.Transaction{DB: "d", Session: session, Seq: seq, HasSeq: true, HasTimes: true, Start: at, End: at + 1, ID: fmt.Sprint(session, "#", seq),
				Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(seq)}}}, at + 2}
		}
		var unread []sent
		for i := range int64(600) {
			now := base + i*tenth
			unread = append(unread, did("w", "x", i, now, record.Write), did("again", "y", i, now+2, record.Write))
			if away := i >= 200 && i < 400; !away {
				give(now+3, 1, unread...)
				unread = nil
			}
			tried := did("tries", "y", i, now, record.Write)
			tried.txn.Status = record.Aborted
			give(now+8, 0, tried, did("r", "x", i, now+5, record.Read), did("s", "y", i, now+5, record.Read))
		}
		if h.Complete() || h.Stats().Losses[stream.LostPartition] != 1 {
			t.Errorf("max_transaction %v: coverage complete: %v, losses %v", longest, h.Complete(), h.Stats().Losses)
		}
	}
}
