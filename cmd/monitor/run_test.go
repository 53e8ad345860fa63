package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// TestStatusOfAStore: what a person has to change is status 2, in monitor run as in
// monitor store.
func TestStatusOfAStore(t *testing.T) {
	for err, want := range map[error]int{store.ErrLayout: exitUnusable, store.ErrForeign: exitUnusable,
		store.ErrDamaged: exitUnusable, store.ErrFull: exitEnvironment, store.ErrLocked: exitEnvironment,
		store.ErrStuck: exitEnvironment} {
		err = fmt.Errorf("store x: %w", err)
		if got := exitStatus(runFailure(err), io.Discard); got != want {
			t.Errorf("%v: status %d, want %d", err, got, want)
		}
	}
}
