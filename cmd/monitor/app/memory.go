package app

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	rtmetrics "runtime/metrics"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/window/store"
)

// goShare is the share of the memory budget that is Go's; the rest is the
// store's, which it maps from its files, and the program itself.
const goShare = 0.85

// mappedShare is what part of the memory budget files may take that are mapped, the program among
// them: one in so many. Beyond it tables of the store are paged out.
const mappedShare = 4

// The limit is looked at every limitEvery. What lives may fill at most liveMax of
// it, as the collector runs ever more often the less room it has; if it does, the
// limit becomes what it fills so much of.
const (
	limitEvery = time.Second
	liveMax    = 0.8
)

// LimitMemory sets Go's memory limit so that the process stays within budget, as
// long as ctx lasts; 0 sets none. It is for a whole process: the limit that the
// environment sets (GOMEMLIMIT) goes first. What is resident of mapped files
// beyond mappedShare is paged out, of the store at path.
func LimitMemory(ctx context.Context, budget config.Bytes, path string, log zerolog.Logger) {
	if budget == 0 || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	limit := int64(float64(budget) * goShare)
	debug.SetMemoryLimit(limit)
	mapped := int64(budget / mappedShare)
	go func() {
		defer debug.SetMemoryLimit(math.MaxInt64)
		t := time.NewTicker(limitEvery)
		defer t.Stop()
		for warned := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if mappedNow() > mapped {
				store.PageOut(path)
			}
			if next := raised(limit, live()); next > limit {
				limit = next
				debug.SetMemoryLimit(limit)
				if !warned {
					log.Warn().Stringer("memory", budget).Int64("limit", limit).Msg("the histories do not fit the memory that the configuration allows: the limit is raised; a smaller window.segment needs less")
				}
				warned = true
			}
		}
	}()
}

// mappedNow is how much of files the process has in memory, in bytes; 0 where the system does not say.
func mappedNow() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return 0
	}
	return shared * int64(os.Getpagesize())
}

// raised is the limit for what lives.
func raised(limit int64, live uint64) int64 {
	if float64(live) <= liveMax*float64(limit) {
		return limit
	}
	return max(limit, int64(float64(live)/liveMax))
}

// live is what the last collection found in use, in bytes.
func live() uint64 {
	s := []rtmetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	rtmetrics.Read(s)
	if s[0].Value.Kind() != rtmetrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
