package app

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
)

// What may be mapped is not Go's; what lives fills at most seven eighths of the limit, which falls again when less
// lives.
func TestMemoryLimit(t *testing.T) {
	const mb = 1_000_000
	for _, tc := range []struct {
		mapped int64
		live   uint64
		want   int64
	}{{0, 10 * mb, 300 * mb}, {44 * mb, 210 * mb, 256 * mb}, {80 * mb, 10 * mb, 220 * mb}, {60 * mb, 420 * mb, 480 * mb},
		{80 * mb, 175 * mb, 220 * mb}} {
		if got := limitOf(320*mb, tc.mapped, tc.live); got != tc.want {
			t.Errorf("%d MB mapped, %d MB live: %d, want %d", tc.mapped/mb, tc.live/mb, got, tc.want)
		}
	}
}

// The limit holds until the work has ended: to be told to stop is not that.
func TestMemoryLimitHoldsUntilTheEnd(t *testing.T) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Skip("GOMEMLIMIT is set")
	}
	end := LimitMemory(config.Bytes(1<<40), t.TempDir(), zerolog.Nop())
	if got := debug.SetMemoryLimit(-1); got >= 1<<40 {
		t.Errorf("the limit is %d", got)
	}
	end()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("in the end the limit is %d", got)
	}
}
