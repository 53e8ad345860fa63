package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/window/store"
)

// noticeTests: what is pending, what receivers are to be told, and what goes.
var noticeTests = []test{
	{"news are pending until they are handled", suite.pending},
	{"a notice is there until all have it", suite.undelivered},
	{"without receivers no notice is kept", suite.noReceivers},
	{"old alerts are dropped", suite.expiry},
}

func found(id, body string, news int) store.Alert {
	return store.Alert{ID: id, Body: []byte(body), News: news}
}

func (x suite) pending(t *testing.T) {
	ctx := t.Context()
	p := x.newPlace(t)
	s := open(t, p, x.opt)
	commit(t, s, store.Commit{Alerts: []store.Alert{found("b", "1", 1), found("a", "1", 1)}})
	commit(t, s, store.Commit{Alerts: []store.Alert{found("b", "2", 1), found("a", "1", 1)}}) // a is the same: replayed
	same(t, map[string]int{"b": 2, "a": 1}, x.read(t, s).Pending)
	var order []string
	if err := s.Pending(ctx, func(a store.Alert) bool {
		order = append(order,
			a.ID+string(a.Body))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	same(t, []string{"b2", "a1"}, order) // the oldest first, as it is now
	order = nil
	if err := s.Pending(ctx, func(a store.Alert) bool { order = append(order, a.ID); return false }); err != nil ||
		len(order) != 1 {
		t.Fatalf("%v, %v", order, err)
	}
	// One more came while the first was worked on.
	commit(t, s, store.Commit{Handled: []store.Handled{{ID: "b", News: 1}, {ID: "gone", News: 5}}, Life: []byte("one"),
		Notices: Notices("n")})
	same(t, map[string]int{"b": 1, "a": 1}, x.read(t, s).Pending)
	commit(t, s, store.Commit{Handled: []store.Handled{{ID: "b", News: 1}, {ID: "a", News: 1}}, Life: []byte("two")})
	want := x.read(t, s)
	if len(want.Pending) > 0 || want.Life != "two" || fmt.Sprint(want.Outbox) != "map[kafka:[n] web:[n]]" {
		t.Fatalf("%+v", want)
	}
	commit(t, s, store.Commit{Alerts: []store.Alert{found("a", "3", 2)}})
	want.Pending, want.Alerts[0].Body = map[string]int{"a": 2}, []byte("3")
	same(t, want, x.read(t, s))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, want, x.read(t, open(t, p, x.opt)))
}

func (x suite) undelivered(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	big := store.Notice{ID: "big", Body: bytes.Repeat([]byte("x"), 3<<20)}
	commit(t, s, store.Commit{Notices: []store.Notice{big}, Life: bytes.Repeat([]byte("y"), 200<<10)})
	commit(t, s, store.Commit{Notices: append(Notices("a"), big)})
	bodies := func(receiver string) (out []string) {
		if err := s.Undelivered(ctx, receiver, func(n store.Notice) bool {
			out = append(out, fmt.Sprint(n.ID, len(n.Body)))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 2 {
		if err := s.Delivered(ctx, "web", "big"); err != nil {
			t.Fatal(err)
		}
		same(t, []string{"a8"}, bodies("web"))
		same(t, []string{"big3145728", "a8"}, bodies("kafka"))
	}
	if err := s.Delivered(ctx, "kafka", "big"); err != nil {
		t.Fatal(err)
	}
	same(t, []string{"a8"}, bodies("kafka"))
	commit(t, s, store.Commit{Notices: []store.Notice{big}}) // nobody remembers it
	same(t, []string{"a8", "big3145728"}, bodies("web"))
	if b, ok, err := s.Life(ctx); err != nil || !ok || len(b) != 200<<10 {
		t.Fatalf("%d bytes, %v, %v", len(b), ok, err)
	}
}

func (x suite) noReceivers(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), store.Options{})
	commit(t, s, store.Commit{Notices: Notices("a"), Life: []byte{}})
	if _, ok, err := s.Life(ctx); !ok || err != nil {
		t.Fatalf("an empty state is one: %v, %v", ok, err)
	}
	if d := x.read(t, s); len(d.Outbox) > 0 {
		t.Fatalf("%+v", d)
	}
}

func (x suite) expiry(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1000, 0)
	p := x.newPlace(t)
	opt := store.Options{Receivers: receivers, Now: func() time.Time { return now }}
	s := open(t, p, opt)
	const n = 400
	for i := range n {
		now = time.Unix(int64(1000+i), 0)
		a := found(fmt.Sprintf("%03d", i), fmt.Sprint(i), 0)
		switch {
		case i%50 == 7:
			a.Body = bytes.Repeat([]byte("x"), 100<<10)
		case i%50 == 8:
			a.News = 1 // pending
		}
		commit(t, s, store.Commit{Alerts: []store.Alert{a}})
	}
	expire := func(e store.Expiry, want, left int) {
		t.Helper()
		got, err := s.Expire(ctx, e)
		st, err2 := s.Stats(ctx)
		if err != nil || err2 != nil || got != want || st.Alerts != int64(left) || st.AlertsDropped != int64(n-left) {
			t.Fatalf("%d dropped, want %d; %+v, want %d left; %v %v", got, want, st, left, err, err2)
		}
		if d := x.read(t, s); len(d.Alerts) != left {
			t.Fatalf("%d alerts are left, want %d", len(d.Alerts), left)
		}
	}
	expire(store.Expiry{Before: 1000e9}, 0, n)
	expire(store.Expiry{Before: 1200e9, Keep: func(a store.Alert) bool { return string(a.Body) == "100" }}, 200-4-1, n-195)
	expire(store.Expiry{Before: 1200e9, Max: 155}, 50, 155) // 100, and those of 200 to 249 but 208
	expire(store.Expiry{Max: 1}, 155-8, 8)                  // but those that are pending
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, p, opt)
	if d := x.read(t, s); len(d.Alerts) != 8 || len(d.Pending) != 8 {
		t.Fatalf("%d alerts, %d pending", len(d.Alerts), len(d.Pending))
	}
	commit(t, s, store.Commit{Alerts: []store.Alert{found("new", "", 0)}})
	if d := x.read(t, s); len(d.Alerts) != 9 {
		t.Fatalf("%d alerts", len(d.Alerts))
	}
}
