package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
)

// spans makes a batch of partition p with messages of these times, milliseconds.
func spans(p int, next int64, ms ...int64) source.Batch {
	b := source.Batch{Partition: p, Next: next}
	for _, t := range ms {
		b.Messages = append(b.Messages, source.Message{Pos: record.Position{Partition: p}, Time: t * int64(time.Millisecond)})
	}
	return b
}

// Scripts: "put P T…" puts a batch of partition P with messages of these times in
// milliseconds, "end P T…" one after which the partition is caught up, "fail P" fails, "pass D" lets the
// process's time pass, "get" says what get returns: the partition and times of a batch, and "end" if the partition is
// caught up, "none", or how long to wait.
func TestQueue(t *testing.T) {
	for name, script := range map[string]string{
		"the partition that is furthest behind is next": `
			put 0 100 200
			put 0 210 300
			put 1 100 110
			put 1 111 150
			get: 0 100 200
			get: 1 100 110
			get: 1 111 150
			get: 0 210 300
			get: none`,
		"after a pause the batch behind it tells of it": `
			put 0 100 200
			put 1 100 180
			put 0 200 300
			put 1 9000 9100
			put 0 300 400
			put 1 9100 9200
			get: 0 100 200
			get: 1 100 180
			get: 1 9000 9100
			get: 0 200 300
			get: 0 300 400
			get: wait 500ms
			end 0 400 500
			get: 0 400 500 end
			get: 1 9100 9200`,
		"who was not heard of comes first and is waited for": `
			put 0 100 200
			put 0 200 300
			get: 0 100 200
			get: wait 500ms
			pass 200ms
			get: wait 300ms
			put 1 100 250
			get: 1 100 250
			get: 0 200 300`,
		"not more than the patience and then not again": `
			put 0 100 200
			put 0 200 300
			put 0 5000 6000
			put 0 6000 7000
			get: 0 100 200
			get: wait 500ms
			pass 500ms
			get: 0 200 300
			get: 0 5000 6000
			get: 0 6000 7000
			put 1 100 200
			put 0 7000 8000
			get: 1 100 200
			get: wait 500ms`,
		"within the slack nobody is waited for": `
			put 0 100 200
			put 1 100 200
			put 0 200 300
			put 0 300 301
			put 0 301 400
			get: 0 100 200
			get: 1 100 200
			get: 0 200 300
			get: 0 300 301
			get: wait 500ms`,
		"nobody who is caught up": `
			end 1 100
			put 0 100 5000
			put 0 5000 6000
			get: 0 100 5000
			get: 1 100 end
			get: 0 5000 6000
			get: none`,
		"nobody who was caught up when more waits": `
			end 1 100
			end 1
			end 1 5000
			put 0 100 5000
			put 0 5000 6000
			get: 0 100 5000
			get: 1 100
			get: 1
			get: 1 5000 end
			get: 0 5000 6000`,
		"nobody who fails, until it delivers": `
			put 1 100
			put 0 100 5000
			put 0 5000 6000
			put 0 6000 7000
			get: 0 100 5000
			get: 1 100
			get: wait 500ms
			fail 1
			get: 0 5000 6000
			put 1 100
			get: 1 100
			get: wait 500ms`,
		"what has no messages is told at once": `
			put 0 100 200
			end 1
			put 0 200 9000
			put 0 9000 9001
			end 2
			get: 1 end
			get: 2 end
			get: 0 100 200
			get: 0 200 9000
			end 2
			get: 2 end
			get: 0 9000 9001`,
		"without times they take turns": `
			put 0 0 0
			put 0 0
			put 1 0
			put 1 0 0 0
			put 2 0
			get: 0 0 0
			get: 1 0
			get: 2 0
			get: 0 0
			get: 1 0 0 0`,
		"one without times takes turns with who is behind": `
			put 0 100 200
			put 0 200 300
			put 0 300 400
			put 1 0
			put 1 0
			put 1 0
			get: 0 100 200
			get: 1 0
			get: 0 200 300
			get: 1 0
			get: 0 300 400
			get: 1 0`,
		"a time that steps back is where it stands": `
			put 0 9000000 200
			put 0 200 300
			put 1 100 150
			put 1 150 1000
			put 1 1000 1100
			get: 0 9000000 200
			get: 1 100 150
			get: 1 150 1000
			get: 0 200 300
			get: wait 500ms`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, script) })
	}
}

func runScript(t *testing.T, script string) {
	q, now := newQueue(1<<30), time.Unix(1, 0)
	lanes := map[int]*lane{}
	for p := range 3 {
		if strings.Contains(script, fmt.Sprintf("put %d", p)) || strings.Contains(script, fmt.Sprintf("end %d", p)) {
			lanes[p] = q.join(p)
		}
	}
	for n, line := range strings.Split(strings.TrimSpace(script), "\n") {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		switch f[0] {
		case "put", "end", "fail":
			var p int
			var ms []int64
			for i, s := range f[1:] {
				var v int64
				if _, err := fmt.Sscan(s, &v); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					p = int(v)
				} else {
					ms = append(ms, v)
				}
			}
			if f[0] == "fail" {
				q.stuck(lanes[p])
				continue
			}
			b := spans(p, 0, ms...)
			b.CaughtUp = f[0] == "end"
			if err := q.put(t.Context(), lanes[p], b, 1); err != nil {
				t.Fatal(err)
			}
		case "pass":
			d, err := time.ParseDuration(f[1])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
		case "get:":
			if got, want := gotten(q.get(now)), strings.TrimPrefix(line, "get: "); got != want {
				t.Errorf("line %d: got %s, want %s", n+1, got, want)
			}
		default:
			t.Fatalf("line %q", line)
		}
	}
}

// gotten is what get returned as scripts say it.
func gotten(b source.Batch, ok bool, wait time.Duration) string {
	switch {
	case wait > 0:
		return fmt.Sprint("wait ", wait)
	case !ok:
		return "none"
	}
	s := fmt.Sprint(b.Partition)
	for _, m := range b.Messages {
		s += fmt.Sprint(" ", m.Time/int64(time.Millisecond))
	}
	if b.CaughtUp {
		s += " end"
	}
	return s
}

// What waited for room was fetched before what is there when it has some: others may have been read further meanwhile.
// Where the end stays where it is, that there is nothing more stays so.
func TestQueueWaitsForWhatCameMeanwhile(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(1)
			q.ends = ends
			l := q.join(0)
			var all sync.WaitGroup
			all.Go(func() {
				for ms := range int64(2) {
					b := spans(0, 0, ms)
					b.CaughtUp = ms == 1
					if err := q.put(t.Context(), l, b, 1); err != nil {
						t.Error(err)
					}
				}
			})
			synctest.Wait()
			q.get(time.Now())
			all.Wait()
			if b, ok, _ := q.get(time.Now()); !ok || b.CaughtUp != ends || l.more == ends {
				t.Errorf("the end stays: %v, is told: %v %v, waited for: %v", ends, ok, b.CaughtUp, l.more)
			}
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct{ partitions, bytes, want int }{
		{1, 0, queueBatches},
		{4, 0, queueBatches / 4},
		{1, limit / 4, 4},
		{2, limit / 4, 2},
		{3, limit / 4, 1},
		{1, 10 * limit, 1}, // larger than the queue: alone
		{1000, 0, 1},       // each may have one
	} {
		q := newQueue(limit)
		var lanes []*lane
		for p := range c.partitions {
			lanes = append(lanes, q.join(p))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		// One that is ahead can't take the room of the others.
		for p, l := range lanes {
			n := 0
			for ; q.put(ended, l, spans(p, 0, 100), c.bytes) == nil; n++ {
			}
			if n != c.want {
				t.Fatalf("%+v: partition %d has room for %d batches", c, p, n)
			}
		}
		b, ok, _ := q.get(time.Time{})
		if !ok {
			t.Fatalf("%+v: nothing to get", c)
		}
		for p, l := range lanes {
			if err := q.put(ended, l, spans(p, 0, 100), c.bytes); (err == nil) != (p == b.Partition) || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%+v: after a batch of partition %d was taken, another of %d: %v", c, b.Partition, p, err)
			}
		}
	}
}

// absurd makes times as the clocks of some producers do.
func absurd(r *rand.Rand) func() int64 {
	t := r.Int64N(1e12)
	kind := r.IntN(5)
	return func() int64 {
		t += r.Int64N(int64(100 * time.Millisecond))
		switch {
		case kind == 0:
			return 0
		case kind == 1 && r.IntN(10) == 0:
			return math.MaxInt64 - r.Int64N(2)
		case kind == 2 && r.IntN(10) == 0:
			t = r.Int64N(1e15)
		case kind == 3 && r.IntN(20) == 0:
			t -= min(t, int64(time.Hour))
		}
		return t
	}
}

// Whatever the times, and however long some partitions take to deliver: all batches come, those of a partition in
// order; none is passed over for ever; and what is there is held back for
// a bounded time.
func TestQueueNeverStalls(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			parts, each := 1+r.IntN(6), 1+r.IntN(400)
			q := newQueue(1 + r.Int64N(1<<16))
			var all sync.WaitGroup
			for p := range parts {
				r := rand.New(rand.NewPCG(seed, uint64(p)+2)) // of its goroutine
				l, times := q.join(p), absurd(r)
				slow := time.Duration(0)
				if r.IntN(3) == 0 {
					slow = time.Duration(r.Int64N(int64(2 * time.Second)))
				}
				all.Go(func() {
					if r.IntN(2) == 0 { // else it just stops
						defer q.stuck(l)
					}
					for i := range each {
						b := source.Batch{Partition: p, Next: int64(i), CaughtUp: r.IntN(10) == 0}
						for range r.IntN(4) {
							b.Messages = append(b.Messages, source.Message{Time: times()})
						}
						if r.IntN(3) == 0 {
							time.Sleep(slow)
						}
						if r.IntN(20) == 0 {
							q.stuck(l)
						}
						if err := q.put(t.Context(), l, b, r.IntN(1<<14)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			readAll(t, q, parts, each)
			all.Wait()
		})
	}
}

// readAll reads each batches of each partition.
func readAll(t *testing.T, q *queue, parts, each int) {
	t.Helper()
	next := make([]int64, parts)
	var held time.Time // since when get holds back what is there
	for left := parts * each; left > 0; {
		b, ok, wait := q.get(time.Now())
		if !ok {
			var late <-chan time.Time
			if wait > 0 {
				if held.IsZero() {
					held = time.Now()
				}
				late = time.After(wait)
			}
			select {
			case <-q.wake:
			case <-late:
			}
			continue
		}
		// Each partition may be waited for in turn.
		if d := time.Since(held); !held.IsZero() && d > time.Duration(parts)*queuePatience {
			t.Fatalf("held back for %v", d)
		}
		held = time.Time{}
		if b.Next != next[b.Partition] {
			t.Fatalf("partition %d: batch %d, want %d", b.Partition, b.Next, next[b.Partition])
		}
		next[b.Partition]++
		left--
	}
}

// A partition far ahead, or with times that never rise, neither is starved nor starves
// the others.
func TestQueueStarvesNone(t *testing.T) {
	q := newQueue(1 << 30)
	const parts = 3
	var lanes []*lane
	for p := range parts {
		lanes = append(lanes, q.join(p))
	}
	times := []func(i int64) int64{
		func(int64) int64 { return 5 },             // stands still
		func(i int64) int64 { return 10 + i },      // behind it all the time
		func(int64) int64 { return math.MaxInt64 }, // in the far future
	}
	for p, l := range lanes {
		for i := range int64(2000) {
			b := source.Batch{Partition: p, Messages: []source.Message{{Time: times[p](i)}}}
			if err := q.put(t.Context(), l, b, 1); err != nil {
				t.Fatal(err)
			}
			if l.weight+2*q.max/queueBatches > q.share() {
				break
			}
		}
	}
	last := make([]int, parts)
	for i := 1; i <= 3000; i++ {
		b, ok, wait := q.get(time.Time{})
		if !ok {
			t.Fatalf("take %d: nothing, wait %v", i, wait)
		}
		last[b.Partition] = i
		// It is read as fast as it comes.
		b.Messages[0].Time = times[b.Partition](int64(i))
		if err := q.put(t.Context(), lanes[b.Partition], b, 1); err != nil {
			t.Fatal(err)
		}
		for p, at := range last {
			if i-at > passedMin+parts {
				t.Fatalf("take %d: partition %d had none since take %d", i, p, at)
			}
		}
	}
}
