package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/recorder"
)

// What was recorded can be read, in the order of its ends, with a place in its session for what did not commit too.
func TestRecords(t *testing.T) {
	var out bytes.Buffer
	rec := recorder.New(recorder.Lines(&out), recorder.Options{DB: "shop"})
	a, b := rec.Session("a"), rec.Session("b")
	first := a.Begin()
	first.At("db-1")
	first.Read("x", record.Null)
	second := b.Begin()
	second.Append("l", record.Int(7))
	second.End(record.Unknown)
	first.Write("x", record.String("new"))
	first.End(record.Committed)
	third := a.Begin()
	third.End(record.Aborted)
	if err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	var ends []int64
	for line := range strings.Lines(out.String()) {
		var r record.Transaction
		if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !r.HasTimes || r.End <= r.Start || r.DB != "shop" {
			t.Errorf("%s: want times and db", line)
		}
		ends = append(ends, r.End)
		var ops []string
		for _, o := range r.Ops {
			ops = append(ops, o.Kind.String()+" "+o.Key+"="+o.Value.String())
		}
		got = append(got, r.ID+r.Node+" "+r.Status.String()+" "+strings.Join(ops, ", "))
	}
	want := []string{"b#0 unknown append l=7", `a#0db-1 committed r x=null, w x="new"`, "a#1 aborted "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := 1; i < len(ends); i++ {
		if ends[i] <= ends[i-1] {
			t.Errorf("ends are not in order: %v", ends)
		}
	}
	if rec.Recorded() != 3 || rec.Dropped() != 0 {
		t.Errorf("recorded %d, dropped %d", rec.Recorded(), rec.Dropped())
	}
}

// gate is a sink that takes nothing until it is opened.
type gate struct {
	open  chan struct{}
	lines []string
	err   error
}

func (g *gate) Put(ctx context.Context, records [][]byte) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.err != nil {
		return g.err
	}
	for _, r := range records {
		g.lines = append(g.lines, string(r))
	}
	return nil
}

func (g *gate) Close() error { return nil }

// losses are the places of records that say that some are lost.
func (g *gate) losses() (at []int) {
	for i, line := range g.lines {
		if strings.Contains(line, `"session":"records lost `) {
			at = append(at, i)
		}
	}
	return at
}

// A sink that hangs holds no client up: what has no room is dropped and counted, and its number is missing in the
// session.
func TestDropsWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		rec := recorder.New(g, recorder.Options{BufferBytes: 300})
		s := rec.Session("s")
		for range 50 {
			s.Begin().End(record.Committed)
			synctest.Wait()
		}
		if rec.Dropped() == 0 || rec.Dropped() >= 50 {
			t.Errorf("%d of 50 were dropped", rec.Dropped())
		}
		close(g.open)
		synctest.Wait()
		s.Begin().End(record.Committed)
		if err := rec.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		came := len(g.lines) - len(g.losses())
		if int64(came)+rec.Dropped() != 51 || rec.Recorded() != int64(came) {
			t.Errorf("%d of 51 came, %d are said to have, %d to be dropped", came, rec.Recorded(), rec.Dropped())
		}
		if len(g.losses()) == 0 { // the session might have been at its end
			t.Error("that some are lost is not told")
		}
		if last := g.lines[len(g.lines)-1]; !strings.Contains(last, `"seq":50`) {
			t.Errorf("the last is %s, want seq 50", last)
		}
	})
}

// With Wait nothing is dropped.
func TestWaitsWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		rec := recorder.New(g, recorder.Options{BufferBytes: 300, Wait: true})
		done := make(chan struct{})
		go func() {
			defer close(done)
			s := rec.Session("s")
			for range 50 {
				s.Begin().End(record.Committed)
			}
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("nobody waited")
		default:
		}
		close(g.open)
		<-done
		if err := rec.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(g.lines) != 50 || rec.Dropped() != 0 {
			t.Errorf("%d of 50 came, %d were dropped", len(g.lines), rec.Dropped())
		}
	})
}

// What a sink refuses is counted and told, and to that sink as well, in front of what it takes next; Close ends though the sink hangs, once it is told to.
func TestSinkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{}), err: errors.New("broken")}
		close(g.open)
		var told []error
		beside := &gate{open: g.open}
		rec := recorder.New(g, recorder.Options{Beside: []recorder.Sink{beside}, Failed: func(err error) { told = append(told, err) }})
		for range 2 {
			rec.Session("s").Begin().End(record.Committed)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if rec.Dropped() != 2 || len(told) != 1 {
			t.Errorf("%d dropped, told %v", rec.Dropped(), told)
		}
		g.err = nil
		for range 2 {
			rec.Session("t").Begin().End(record.Committed)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if losses := g.losses(); len(g.lines) != 4 || len(losses) != 2 || losses[1] != 1 || !strings.Contains(g.lines[1], `"seq":2`) {
			t.Errorf("%v, want a session with a hole, and the two that came behind", g.lines)
		}
		if len(beside.lines) != 4 || len(beside.losses()) > 0 {
			t.Errorf("%v came to the sink beside, which had lost none", beside.lines)
		}
		g.err = errors.New("broken again")
		rec.Session("u").Begin().End(record.Committed)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(told) != 2 || told[1] != g.err {
			t.Errorf("told %v, want the second outage too", told)
		}
		g.err = nil
		if err := rec.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		hanging := recorder.New(&gate{open: make(chan struct{})}, recorder.Options{})
		hanging.Session("s").Begin().End(record.Committed)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := hanging.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if hanging.Dropped() != 1 {
			t.Errorf("%d dropped", hanging.Dropped())
		}
		hanging.Session("s2").Begin().End(record.Committed)
		if hanging.Dropped() != 2 {
			t.Errorf("%d dropped, also after the end", hanging.Dropped())
		}
	})
}

// A transaction that can't be told of leaves a gap in its session, which shows though nothing of the application's follows it.
func TestLose(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	rec := recorder.New(g, recorder.Options{})
	s := rec.Session("s")
	s.Begin().End(record.Committed)
	s.Lose()
	if err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rec.Dropped() != 1 || len(g.lines) != 2 || !strings.Contains(g.lines[1], `"seq":2`) {
		t.Errorf("%d dropped, records %v; want 1, and a last record with seq 2", rec.Dropped(), g.lines)
	}
}
