package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// TestWaiting: what waits for each receiver is counted, no further than asked, and what is
// delivered waits no more.
func TestWaiting(t *testing.T) {
	s, err := store.Open(store.Options{Path: t.TempDir(), Receivers: []string{"web", "web2"}})
	if err != nil {
		t.Fatal(err)
	}
	waiting := func(receiver string, most int) int {
		t.Helper()
		n, err := s.Waiting(t.Context(), receiver, most)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var notices []store.Notice
	for i := range 7 {
		notices = append(notices, store.Notice{ID: fmt.Sprint("n", i), Body: []byte("{}")})
	}
	if err := s.Commit(t.Context(), store.Commit{Notices: notices}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := s.Delivered(t.Context(), "web", fmt.Sprint("n", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		receiver   string
		most, want int
	}{{"web", 100, 4}, {"web2", 100, 7}, {"web2", 7, 7}, {"web2", 5, 5}, {"web", 0, 0}, {"we", 100, 0}, {"nobody", 100, 0}} {
		if got := waiting(tc.receiver, tc.most); got != tc.want {
			t.Errorf("%s: %d, want %d of at most %d", tc.receiver, got, tc.want, tc.most)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Waiting(t.Context(), "web", 1); !errors.Is(err, store.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
}
