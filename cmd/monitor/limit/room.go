package limit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// heapLeast is the heap at which the runtime begins to collect, for a percentage of 100.
const heapLeast = 4 << 20

// Room lets the heap grow by a percentage of what lives before it is collected, and by so many bytes in any case:
// a collector that keeps a heap of a few megabytes small takes as long as the work itself. A limit of memory goes
// before both. What it returns puts back what was.
func Room(percent int, bytes uint64) (undo func()) {
	before := debug.SetGCPercent(max(percent, int(bytes*100/heapLeast)))
	over := &atomic.Bool{}
	afterCollection(func() bool {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if over.Load() {
			return false
		}
		debug.SetGCPercent(max(percent, int(bytes*100/max(live[0].Value.Uint64(), heapLeast))))
		return true
	})
	return func() {
		over.Store(true)
		debug.SetGCPercent(before)
	}
}

// afterCollection calls f after each collection until it answers false.
func afterCollection(f func() bool) {
	type sentinel struct{ self *byte } // with a pointer, so that it is no part of a block of tiny objects
	var again func(*sentinel)
	again = func(s *sentinel) {
		if f() {
			runtime.SetFinalizer(s, again)
		}
	}
	runtime.SetFinalizer(&sentinel{new(byte)}, again)
}
