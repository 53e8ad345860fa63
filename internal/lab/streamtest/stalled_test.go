package streamtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/stream"
)

// A partition can't be read for 20 seconds, and sessions of another one
// read what those of this one write, which is in the log in time. Nobody is accused, although coverage was
// complete, also not of reading what one of that partition tried again that was aborted in the other. Where nothing is
// concluded from absence before the partition is back, nothing is lost either: an attempt that nobody
// makes again is found. Where a transaction is so short that it is not waited for so long,
// that is noted as a loss, for as long as it lasts.
func TestStalledPartitionsAccuseNobody(t *testing.T) {
	const base, tenth = int64(1_700_000_000_000_000_000), int64(100 * time.Millisecond)
	for _, longest := range []time.Duration{time.Second, 5 * time.Second, 8 * time.Second, time.Minute} {
		h := stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: longest, UniqueValues: true, Every: 250 * time.Millisecond,
			Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: 10 * time.Second}})
		number, next, aborted := uint64(0), [2]int{}, 0
		give := func(now int64, partition int, records ...sent) {
			b := batch(partition, next[partition], records)
			next[partition] += len(records)
			b.CaughtUp = true
			number++
			h.Take(&stream.Entry{Number: number, Time: now, Partitions: 2, Batch: b})
			for h.Run(100) {
			}
			for _, v := range h.Found() {
				if v.Kind != verdict.AbortedRead {
					t.Fatalf("max_transaction %v: %v at %v, coverage complete: %v", longest, v.Kind, time.Duration(now-base), h.Complete())
				}
				aborted++
			}
		}
		did := func(session, key string, seq, at int64, kind record.OpKind) sent {
			return sent{record.Transaction{DB: "d", Session: session, Seq: seq, HasSeq: true, HasTimes: true, Start: at, End: at + 1, ID: fmt.Sprint(session, "#", seq),
				Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(seq)}}}, at + 2}
		}
		var unread []sent
		for i := range int64(1300) {
			now := base + i*tenth
			unread = append(unread, did("w", "x", i, now, record.Write), did("again", "y", i, now+2, record.Write))
			if away := i >= 200 && i < 400; !away {
				give(now+3, 1, unread...)
				unread = nil
			}
			tried := did("tries", "y", i, now, record.Write)
			tried.txn.Status = record.Aborted
			if i == 300 { // nobody tries this again
				tried.txn.Ops = append(tried.txn.Ops, record.Op{Kind: record.Write, Key: "z", Value: record.Int(1)})
				give(now+6, 0, did("reads", "z", 1, now+5, record.Read))
			}
			give(now+8, 0, tried, did("r", "x", i, now+5, record.Read), did("s", "y", i, now+5, record.Read))
		}
		losses, heals := h.Stats().Losses, longest == time.Minute
		if h.Complete() != heals || (losses == stream.Stats{}.Losses) != heals || (losses[stream.LostPartition] == 1) == heals || (aborted == 1) != heals {
			t.Errorf("max_transaction %v: coverage complete: %v, losses %v; %d aborted reads", longest, h.Complete(), losses, aborted)
		}
	}
}

// The broker is away for 42 seconds, for those who write to it too; or (one) that of the first of two partitions. When it
// is back they write what they have kept one partition after the other, or (unordered) one of them later than another,
// who is writing what is new meanwhile. Nobody is accused of having read what is still to be written, and nothing is
// lost.
func TestWritersThatWereAwayAreWaitedFor(t *testing.T) {
	const base, tenth = int64(1_700_000_000_000_000_000), int64(100 * time.Millisecond)
	for _, tc := range []struct {
		longest time.Duration
		one     bool
	}{{longest: time.Second}, {longest: 5 * time.Second}, {longest: time.Minute}, {longest: time.Minute, one: true}} {
		for _, unordered := range []bool{false, true} {
			h := stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: tc.longest, UniqueValues: true, Every: 250 * time.Millisecond,
				Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: 10 * time.Second}})
			number, next, found := uint64(0), [2]int{}, 0
			take := func(e *stream.Entry) {
				number++
				e.Number, e.Partitions = number, 2
				h.Take(e)
				for more := true; more; {
					more = h.Run(100)
					found += len(h.Found())
				}
			}
			const away, back, settled, end = 200, 620, 640, 1000
			var kept [2][2][]sent // by who writes, by partition
			for i := range int64(end) {
				now := base + i*tenth
				for writer := range int64(2) {
					did := func(partition int64, kind record.OpKind, key string) sent {
						session := fmt.Sprint(writer, partition)
						at := now + 2*partition
						return sent{record.Transaction{DB: "d", Session: session, Seq: i, HasSeq: true, HasTimes: true, Start: at, End: at + 1,
							ID: fmt.Sprint(session, "#", i), Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(i)}}}, at + 1}
					}
					key := fmt.Sprint(writer)
					kept[writer][0] = append(kept[writer][0], did(0, record.Write, key))
					kept[writer][1] = append(kept[writer][1], did(1, record.Read, key))
				}
				if away <= i && i < back {
					take(&stream.Entry{Time: now})
				}
				for partition := range 2 {
					reached := partition == 1 && tc.one
					if away <= i && i < back && !reached {
						continue
					}
					var all []sent
					for writer := range 2 {
						catchesUp := back + 15*int64(1-partition)
						if unordered && writer == 0 {
							catchesUp = back
						}
						if reached || i < back || i >= catchesUp {
							all, kept[writer][partition] = append(all, kept[writer][partition]...), nil
						}
					}
					slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
					b := batch(partition, next[partition], all)
					next[partition] += len(all)
					b.CaughtUp = true
					take(&stream.Entry{Time: now + 3, Batch: b, Returned: back <= i && i < settled})
				}
			}
			if found > 0 {
				t.Errorf("%+v, unordered: %v: %d are accused", tc, unordered, found)
			}
			if lost := h.Stats().Losses; !h.Complete() || lost != (stream.Stats{}).Losses || h.Judged() < 3000 {
				t.Errorf("%+v, unordered: %v: %d judged, losses %v", tc, unordered, h.Judged(), lost)
			}
		}
	}
}

// The broker of one of two partitions is away for 8 seconds, there for one, and away again before who writes to it has tried
// again; the other is read all the time. What was read of it in between proves nothing: it is waited for until it has been
// idle since those who write were given their time, and ticks wait on until it is given up, which is a loss. Nobody is
// accused of having read what is still to be written. A transaction that is aborted, and who read of it, are found as ever.
func TestAwayAgainBeforeWritersHaveCaughtUp(t *testing.T) {
	const base, tenth = int64(1_700_000_000_000_000_000), int64(100 * time.Millisecond)
	const away, between, again, settled = 200, 280, 290, 360
	for _, tc := range []struct {
		longest  time.Duration
		back     int64
		complete bool
	}{
		{time.Second, 450, true}, {8 * time.Second, 450, true}, // it was never idle
		{time.Second, 600, false}, {7500 * time.Millisecond, 600, false}, {9 * time.Second, 600, false}, {time.Minute, 600, true},
	} {
		h := stream.New(stream.Config{DB: "d", Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete, MaxSkew: int64(5 * time.Millisecond)}, MaxTransaction: tc.longest, UniqueValues: true, Every: 250 * time.Millisecond,
			Order: order.Options{Lateness: 500 * time.Millisecond, IdleAfter: 10 * time.Second}})
		number, next, aborted := uint64(0), [2]int{}, 0
		did := func(session, key string, kind record.OpKind, i, at int64) sent {
			return sent{record.Transaction{DB: "d", Session: session, Seq: i, HasSeq: true, HasTimes: true, Start: at, End: at + 1,
				ID: fmt.Sprint(session, "#", i), Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(i)}}}, at + 1}
		}
		var kept []sent
		for i := range int64(1000) {
			now := base + i*tenth
			give := func(partition int, records ...sent) {
				b := batch(partition, next[partition], records)
				next[partition] += len(records)
				b.CaughtUp = true
				number++
				back := between <= i && i < settled || tc.back <= i && i < tc.back+100
				h.Take(&stream.Entry{Number: number, Time: now + 10, Partitions: 2, Batch: b, Returned: back})
				for more := true; more; {
					more = h.Run(100)
					for _, v := range h.Found() {
						if v.Kind != verdict.AbortedRead {
							t.Fatalf("%+v: %v at %v, coverage complete: %v", tc, v.Kind, time.Duration(now-base), h.Complete())
						}
						aborted++
					}
				}
			}
			kept = append(kept, did("w", "x", record.Write, i, now))
			all := []sent{did("r", "x", record.Read, i, now+2)}
			if i == 100 {
				x := did("a", "y", record.Write, 0, now)
				x.txn.Status = record.Aborted
				all = append(all, x, did("b", "y", record.Read, 0, now+2))
			}
			give(0, all...)
			switch {
			case i < away, i >= tc.back+50:
				give(1, kept...)
				kept = nil
			case between <= i && i < again, i >= tc.back:
				give(1)
			}
		}
		if losses := h.Stats().Losses; h.Complete() != tc.complete || (losses == stream.Stats{}.Losses) != tc.complete || aborted == 0 || h.Judged() < 1900 {
			t.Errorf("%+v: coverage complete: %v, losses %v, %d judged, %d aborted reads", tc, h.Complete(), losses, h.Judged(), aborted)
		}
	}
}
