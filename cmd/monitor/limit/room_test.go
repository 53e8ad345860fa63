package limit

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// A small heap is collected when the room is used up, and one that has become large by its percentage.
func TestRoom(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	undo := Room(50, 32<<20)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	if p := percent(); p != 800 {
		t.Errorf("%d%% of a heap of 4 MiB at first, want the room of 32 MiB", p)
	}
	large := make([]byte, 256<<20)
	for p := 0; p != 50; p = percent() { // the collector tells it after a collection
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(large)
	undo()
	if p := percent(); p != 100 {
		t.Errorf("%d%% afterwards, as before it was 100", p)
	}
}
