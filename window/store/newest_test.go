package store_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// TestPages reads alerts page by page, the newest first, while more come and while
// old ones are dropped: nothing is told twice, and nothing that stays is left out.
func TestPages(t *testing.T) {
	ctx := context.Background()
	s, err := store.Open(store.Options{Path: t.TempDir()})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	equal := func(got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	check(err)
	defer func() { check(s.Close()) }()
	added := 0
	add := func(n int) {
		var c store.Commit
		for range n {
			// IDs in an order of their own.
			c.Alerts = append(c.Alerts, store.Alert{ID: fmt.Sprintf("%02d", added*37%100), Body: []byte(fmt.Sprintf(`{"n":%d}`, added))})
			added++
		}
		check(s.Commit(ctx, c))
	}
	page := func(before uint64, n int) (numbers []uint64, bodies []string) {
		check(s.AlertsBefore(ctx, before, func(number uint64, a store.Alert) bool {
			numbers, bodies = append(numbers, number), append(bodies, string(a.Body))
			return len(numbers) < n
		}))
		return numbers, bodies
	}
	none, _ := page(0, 5)
	equal(len(none), 0)

	add(10)
	first, bodies := page(0, 4)
	equal(first, []uint64{9, 8, 7, 6})
	equal(bodies[0], `{"n":9}`)
	add(3) // before what was read
	second, _ := page(6, 4)
	equal(second, []uint64{5, 4, 3, 2})
	last, _ := page(2, 4)
	equal(last, []uint64{1, 0})
	none, _ = page(1<<60, 0) // any number may be asked for; f is called once
	equal(none, []uint64{12})

	// One that is found again stays where it is.
	check(s.Commit(ctx, store.Commit{Alerts: []store.Alert{{ID: "00", Body: []byte(`{"n":"again"}`)}}}))
	_, bodies = page(1, 1)
	equal(bodies, []string{`{"n":"again"}`})

	n, err := s.Expire(ctx, store.Expiry{Max: 5})
	check(err)
	equal(n, 8)
	left, _ := page(0, 100)
	equal(left, []uint64{12, 11, 10, 9, 8})

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.AlertsBefore(ended, 0, func(uint64, store.Alert) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
