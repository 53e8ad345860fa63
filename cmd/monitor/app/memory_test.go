package app

import "testing"

// The limit stays as long as what lives fills at most four fifths of it, then it grows with
// that, without a step, and never shrinks.
func TestRaisedLimit(t *testing.T) {
	const mb = 1_000_000
	for _, tc := range []struct {
		limit int64
		live  uint64
		want  int64
	}{{250 * mb, 10 * mb, 250 * mb}, {250 * mb, 200 * mb, 250 * mb}, {250 * mb, 204 * mb, 255 * mb}, {255 * mb, 190 * mb, 255 * mb}, {255 * mb, 400 * mb, 500 * mb}} {
		if got := raised(tc.limit, tc.live); got != tc.want {
			t.Errorf("limit %d MB, %d MB live: %d, want %d", tc.limit/mb, tc.live/mb, got, tc.want)
		}
	}
}
