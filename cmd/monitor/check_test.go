package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
)

// TestSideBySide: answers are taken in order though the last one is there first.
func TestSideBySide(t *testing.T) {
	const n = 5
	done := make([]chan struct{}, n+1)
	for i := range done {
		done[i] = make(chan struct{})
	}
	close(done[n])
	var got []int
	err := sideBySide(t.Context(), n, n, func(_ context.Context, i int) int {
		<-done[i+1]
		close(done[i])
		return i
	}, func(i int) error {
		got = append(got, i)
		return nil
	})
	if err != nil || !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("took %v, error %v", got, err)
	}
}

// TestSideBySideJobs: no more work at once than there are jobs, and none is left out.
func TestSideBySideJobs(t *testing.T) {
	var now, most atomic.Int32
	took := 0
	err := sideBySide(t.Context(), 1000, 3, func(_ context.Context, i int) int {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		runtime.Gosched()
		now.Add(-1)
		return i
	}, func(i int) error {
		if i != took {
			t.Errorf("took %d, want %d", i, took)
		}
		took++
		return nil
	})
	if err != nil || took != 1000 || most.Load() > 3 {
		t.Errorf("took %d, at most %d at once, error %v", took, most.Load(), err)
	}
}

// TestSideBySideEnds: early, when an answer can't be taken or all is called off.
func TestSideBySideEnds(t *testing.T) {
	full := errors.New("the disk is full")
	work := func(_ context.Context, i int) int { return i }
	if err := sideBySide(t.Context(), 1000, 2, work, func(int) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := sideBySide(ctx, 1000, 2, func(ctx context.Context, i int) int {
		if i == 7 {
			cancel()
			<-ctx.Done()
		}
		return i
	}, func(int) error { return nil })
	if !errors.Is(err, context.Canceled) || exitStatus(err, io.Discard) != exitEnvironment {
		t.Errorf("error %v", err)
	}
}

// small is a history that is read at once.
func small(file string) ([]history.History, error) {
	return history.Read(file, strings.NewReader(`{"session":"a","status":"committed","ops":[["w","x",1]]}`), history.Options{Packed: true})
}

// TestAgainAlone: what had too little memory beside others is judged again by itself.
func TestAgainAlone(t *testing.T) {
	var used atomic.Uint64
	guard := limit.Watch(1000, func() limit.Memory { return limit.Memory{Taken: used.Load()} })
	defer guard.Close()
	var first sync.WaitGroup // the first openings
	first.Add(2)
	var opened, reading atomic.Int32
	b := &batch{flags: &checkFlags{ask: []verdict.Level{verdict.SI}}, files: []string{"a", "b"}, guard: guard}
	var stops atomic.Int32
	b.open = func(file, _ string, stop func() error, _ *progress) ([]history.History, error) {
		defer reading.Add(-1)
		if now := reading.Add(1); opened.Add(1) > 2 {
			if now != 1 {
				t.Errorf("%d files are read at once though one is to be alone", now)
			}
			return small(file)
		}
		first.Done()
		first.Wait()
		used.Store(980)
		for stop() == nil {
			runtime.Gosched()
		}
		if stops.Add(1) == 2 {
			used.Store(0)
		}
		return nil, stop()
	}
	var got []string
	err := sideBySide(t.Context(), 2, 2, b.judge, func(a answer) error {
		for _, h := range a.histories {
			got = append(got, fmt.Sprint(h.File, " ", h.Results[0].Verdict))
		}
		return a.err
	})
	if err != nil || !slices.Equal(got, []string{"a satisfied", "b satisfied"}) || opened.Load() != 4 {
		t.Errorf("got %q after %d openings, error %v", got, opened.Load(), err)
	}
}

// TestStoppable: reading ends with the error of stop, which is known again in what
// the readers make of it.
func TestStoppable(t *testing.T) {
	g := limit.Watch(0, nil)
	defer g.Close()
	r := g.Begin(0)
	defer r.End()
	records := strings.Repeat(`{"session":"a","status":"committed","ops":[["w","x",1]]}`+"\n", 100_000)
	reads := 0
	stop := func() error {
		if reads++; reads == 3 {
			r.Stop(verdict.Timeout)
		}
		return r.Err()
	}
	_, err := history.Read("h", &stoppable{strings.NewReader(records), stop, nil}, history.Options{})
	if limit.Reason(err) != verdict.Timeout {
		t.Errorf("error %v after %d reads", err, reads)
	}
}
