package app

import (
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// mappedShare is what part of the memory budget files may take that are mapped, the program among them: one in so many.
// Beyond it tables of the store are paged out, but those that it is about to write, some ten for each of two
// compactions: keptShare is kept for them. What they leave is Go's.
const mappedShare, keptShare = 6, 16

// It is looked every limitEvery: the store writes some MB of tables meanwhile, through maps. What lives may fill at
// most liveMax of Go's limit, as the collector runs ever more often the less room it has; what fills more for
// limitAfter looks has as much more. Less long, as while tables are merged, it makes do. Nor is Go's what was
// mapped in any of these looks: compactions come and go.
const (
	limitEvery = 50 * time.Millisecond
	limitAfter = 100
	liveMax    = 0.875
)

// LimitMemory sets Go's memory limit so that the process stays within budget, until
// what it returns is called, when the work has ended; 0 sets none. It is for a whole
// process: the limit that the environment sets (GOMEMLIMIT) goes first. What is
// resident of mapped files beyond mappedShare is paged out, of the store at path, and
// what is left of them is not Go's.
func LimitMemory(budget config.Bytes, path string, log zerolog.Logger) (end func()) {
	if budget == 0 || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(limitOf(budget, mappedNow(), 0))
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		t := time.NewTicker(limitEvery)
		defer t.Stop()
		var last [limitAfter]uint64 // of the looks, what lived
		var most [limitAfter]int64  // and was mapped
		warned := false
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-t.C:
			}
			last[n%limitAfter], most[n%limitAfter] = limit.HeapLive(), mappedNow()
			if most[n%limitAfter] > int64(budget/mappedShare) {
				store.PageOut(path)
			}
			mapped := slices.Max(most[:])
			allowed := limitOf(budget, mapped, slices.Min(last[:]))
			debug.SetMemoryLimit(allowed)
			if allowed > limitOf(budget, mapped, 0) && !warned {
				warned = true
				log.Warn().Stringer("memory", budget).Int64("limit", allowed).
					Msg("the histories do not fit the memory that the configuration allows: the limit is raised; a smaller " +
						"window.segment needs less")
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		debug.SetMemoryLimit(math.MaxInt64)
	}
}

// mappedNow is how much of files the process has in memory, in bytes; 0 where the system does not say.
func mappedNow() int64 {
	p, err := procfs.Self()
	if err != nil {
		return 0
	}
	s, err := p.NewStatus()
	if err != nil {
		return 0
	}
	return int64(s.RssFile + s.RssShmem)
}

// limitOf is Go's limit where so many bytes of files were mapped and so many live.
func limitOf(budget config.Bytes, mapped int64, live uint64) int64 {
	return max(int64(budget-budget/keptShare)-mapped, int64(float64(live)/liveMax))
}
