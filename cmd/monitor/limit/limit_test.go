package limit

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// TestTimeout: stopped at the limit, in the bubble's time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(0)
		defer g.Close()
		r, free := g.Begin(time.Second), g.Begin(0)
		defer free.End()
		for _, step := range []struct {
			wait   time.Duration
			reason verdict.Reason
		}{
			{999 * time.Millisecond, verdict.NoReason},
			{time.Millisecond, verdict.Timeout},
		} {
			time.Sleep(step.wait)
			synctest.Wait()
			if r.Stopped() != step.reason {
				t.Errorf("after %v more: %q; want %q", step.wait, r.Stopped(), step.reason)
			}
		}
		if free.Stopped() != verdict.NoReason {
			t.Error("a run without a limit was stopped")
		}
		var e *Error
		if err := r.Err(); !errors.As(err, &e) || Reason(fmt.Errorf("read: %w", err)) != verdict.Timeout {
			t.Errorf("error %v", err)
		}
		if err := free.Err(); err != nil || Reason(err) != verdict.NoReason {
			t.Errorf("error %v", err)
		}
		r.End()
	})
}

// TestEndInTime: what ended is not stopped afterwards.
func TestEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(0)
		defer g.Close()
		r := g.Begin(time.Second)
		r.End()
		time.Sleep(time.Hour)
		if r.Stopped() != verdict.NoReason {
			t.Error(r.Stopped())
		}
	})
}

// TestMemory: everything that runs is stopped just below the limit; the first reason stays.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used, live atomic.Uint64
		g := Watch(1000, func() Memory { return Memory{Taken: used.Load(), Live: live.Load()} })
		defer g.Close()
		set := func(n uint64) {
			used.Store(n)
			time.Sleep(2 * sampleEvery)
			synctest.Wait()
		}
		a := g.Begin(0)
		if !a.Alone() {
			t.Error("the only run is not alone")
		}
		set(969)
		if a.Stopped() != verdict.NoReason {
			t.Error("stopped below the limit")
		}
		set(970)
		if a.Stopped() != verdict.Memory {
			t.Errorf("%q", a.Stopped())
		}
		set(100) // it was collected; what is stopped stays stopped
		b := g.Begin(time.Millisecond)
		time.Sleep(time.Second)
		synctest.Wait()
		if a.Alone() || b.Alone() {
			t.Error("each had the other's company")
		}
		if a.Stopped() != verdict.Memory || b.Stopped() != verdict.Timeout {
			t.Errorf("%q, %q", a.Stopped(), b.Stopped())
		}
		a.End()
		b.End()
		c := g.Begin(0)
		if !c.Alone() {
			t.Error("the others had ended")
		}
		live.Store(839)
		set(0)
		d := g.Begin(0)
		set(900) // with as little left as it can hold without collecting all the time
		if d.Stopped() != verdict.NoReason {
			t.Error("stopped though it has room")
		}
		live.Store(840)
		set(900)
		if d.Stopped() != verdict.Memory {
			t.Errorf("%q", d.Stopped())
		}
		d.End()
		if c.Stopped() != verdict.Memory {
			t.Errorf("%q", c.Stopped())
		}
		if b.Stopped() != verdict.Timeout {
			t.Error("an ended run was stopped")
		}
		c.End()
	})
}

// TestUsed: what is kept is counted, and is part of the peak.
func TestUsed(t *testing.T) {
	const size = 64 << 20
	kept := make([]byte, size)
	for i := range kept {
		kept[i] = 1
	}
	if used, peak := Used(), Peak(); used < size || peak < size {
		t.Errorf("%d bytes used, %d at most, while %d are kept", used, peak, len(kept))
	}
}

// TestRead: what was dropped is not live once it was collected.
func TestRead(t *testing.T) {
	const size = 64 << 20
	kept := make([]byte, size)
	runtime.GC()
	with := read()
	runtime.KeepAlive(kept)
	if with.Live < size || with.Live > with.Taken {
		t.Errorf("%+v while %d bytes are kept", with, size)
	}
	runtime.GC()
	if without := read(); without.Live+size/2 > with.Live {
		t.Errorf("live %d, %d before %d were dropped", without.Live, with.Live, size)
	}
}

// TestMost: on systems that say how much memory there is, something is left for others.
func TestMost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the memory of this system is not known here")
	}
	if most := Most(); most < MemoryMin || most > 1<<50 {
		t.Errorf("%d bytes", most)
	}
}
