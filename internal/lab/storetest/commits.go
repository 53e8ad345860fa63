package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// commitTests: what is committed is there, all of it or nothing.
var commitTests = []test{
	{"empty", suite.empty},
	{"everything comes back", suite.comesBack},
	{"the same again changes nothing", suite.repeated},
	{"an alert's body is replaced", suite.replacedBody},
	{"a commit larger than any transaction", suite.largeCommit},
	{"large alerts", suite.largeAlerts},
	{"names that resemble each other", suite.similarNames},
	{"callbacks stop and write", suite.callbacks},
	{"ended contexts and closed stores", suite.endedAndClosed},
	{"concurrent use", suite.concurrent},
}

func (x suite) empty(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	same(t, Dump{Offsets: map[string]map[int]int64{"topic": {}, "other": {}}, Outbox: map[string][]string{}}, x.read(t, s))
	if _, ok, err := s.Alert(ctx, "a"); ok || err != nil {
		t.Fatalf("Alert: %v %v", ok, err)
	}
	commit(t, s, store.Commit{})
}

func (x suite) comesBack(t *testing.T) {
	ctx := t.Context()
	p := x.newPlace(t)
	s := open(t, p, x.opt)
	l := Letter(17, "{bad\x00\xff")
	l.Pos.Line = 4
	commit(t, s, store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: 5, 3: 18}, "other": {1 << 30: 1<<63 - 1}},
		DeadLetters: []store.DeadLetter{l, Letter(16, "")},
		Alerts:      []store.Alert{NewAlert("b"), NewAlert("a")},
		Notices:     Notices("b", "a"),
	})
	commit(t, s, store.Commit{Offsets: map[string]map[int]int64{"topic": {3: 20}}, Alerts: []store.Alert{NewAlert("c")},
		Notices: Notices("c")})
	if err := s.Delivered(ctx, "web", "b"); err != nil {
		t.Fatal(err)
	}
	second := Letter(16, "")
	second.ID, second.Value = 1, []byte{}
	want := Dump{
		Offsets: map[string]map[int]int64{"topic": {0: 5, 3: 20}, "other": {1 << 30: 1<<63 - 1}},
		Letters: []store.DeadLetter{l, second},
		Alerts:  []store.Alert{NewAlert("a"), NewAlert("b"), NewAlert("c")},
		Outbox:  map[string][]string{"web": {"a", "c"}, "kafka": {"b", "a", "c"}},
	}
	same(t, want, x.read(t, s))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, p, x.opt)
	same(t, want, x.read(t, s))
	commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(99, "x")}, Alerts: []store.Alert{NewAlert("0")},
		Notices: Notices("0")})
	d := x.read(t, s)
	if got := d.Letters[2].ID; got != 2 {
		t.Errorf("dead letter after reopening has ID %d", got)
	}
	same(t, []string{"b", "a", "c", "0"}, d.Outbox["kafka"])
}

func (x suite) repeated(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	c := store.Commit{
		Offsets:     map[string]map[int]int64{"topic": {0: 5}},
		DeadLetters: []store.DeadLetter{Letter(1, "x"), Letter(1, "x")},
		Alerts:      []store.Alert{NewAlert("a"), NewAlert("a")},
		Notices:     Notices("a", "a"),
	}
	c.Alerts[0].News, c.Alerts[1].News = 1, 1
	commit(t, s, c)
	if err := s.Delivered(ctx, "web", "a"); err != nil {
		t.Fatal(err)
	}
	before := x.read(t, s)
	c.DeadLetters[0].Time++ // set aside again, later
	commit(t, s, c)
	if err := s.Delivered(ctx, "web", "a"); err != nil {
		t.Fatal(err)
	}
	same(t, before, x.read(t, s))
	if len(before.Letters) != 1 || len(before.Alerts) != 1 {
		t.Fatalf("%+v", before)
	}
}

func (x suite) replacedBody(t *testing.T) {
	s := open(t, x.newPlace(t), x.opt)
	commit(t, s, store.Commit{Alerts: []store.Alert{NewAlert("a"), NewAlert("b")}})
	commit(t, s, store.Commit{Alerts: []store.Alert{{ID: "a", Body: []byte("new")}}})
	d := x.read(t, s)
	same(t, []store.Alert{{ID: "a", Body: []byte("new")}, NewAlert("b")}, d.Alerts)
	if len(d.Outbox) > 0 || len(d.Pending) > 0 {
		t.Fatalf("without news there is %v to deliver and %v pending", d.Outbox, d.Pending)
	}
}

func (x suite) largeCommit(t *testing.T) {
	s := open(t, x.newPlace(t), x.opt)
	c := store.Commit{Offsets: map[string]map[int]int64{"topic": {0: 5}}}
	for i := range int64(3000) {
		c.DeadLetters = append(c.DeadLetters, Letter(i, strings.Repeat("x", 1000)))
		c.Alerts = append(c.Alerts, store.Alert{ID: fmt.Sprintf("%05d", i), Body: bytes.Repeat([]byte{'b'}, 2000), News: 1})
	}
	commit(t, s, c)
	d := x.read(t, s)
	if len(d.Letters) != 3000 || len(d.Alerts) != 3000 || len(d.Pending) != 3000 || d.Offsets["topic"][0] != 5 {
		t.Fatalf("%d dead letters, %d alerts, %d pending", len(d.Letters), len(d.Alerts), len(d.Pending))
	}
	for i, l := range d.Letters {
		if l.ID != uint64(i) || l.Pos.Offset != int64(i) {
			t.Fatalf("dead letter %d is %d at %d", i, l.ID, l.Pos.Offset)
		}
	}
}

func (x suite) largeAlerts(t *testing.T) {
	p := x.newPlace(t)
	s := open(t, p, x.opt)
	var want []store.Alert
	for i, n := range []int{60 << 10, 70 << 10, 1 << 20, store.LimitBody} {
		want = append(want, store.Alert{ID: fmt.Sprint(i), Body: bytes.Repeat([]byte{byte(i)}, n)})
	}
	commit(t, s, store.Commit{Alerts: want})
	for i, a := range x.read(t, s).Alerts {
		if a.ID != want[i].ID || !bytes.Equal(a.Body, want[i].Body) {
			t.Fatalf("alert %d of %d bytes came back as %d", i, len(want[i].Body), len(a.Body))
		}
	}
}

func (x suite) similarNames(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), store.Options{Receivers: []string{"a", "ab"}})
	commit(t, s, store.Commit{
		Offsets: map[string]map[int]int64{"topic": {0: 1}, "topic\x00": {0: 2}, "topi": {0: 3}},
		Notices: Notices("x", "xy"),
	})
	if err := s.Delivered(ctx, "a", "x"); err != nil {
		t.Fatal(err)
	}
	d, err := Read(s, []string{"topic", "topic\x00", "topi", "top"}, []string{"a", "ab", "abc", ""})
	if err != nil {
		t.Fatal(err)
	}
	same(t, map[string]map[int]int64{"topic": {0: 1}, "topic\x00": {0: 2}, "topi": {0: 3}, "top": {}}, d.Offsets)
	same(t, map[string][]string{"a": {"xy"}, "ab": {"x", "xy"}}, d.Outbox)
}

func (x suite) callbacks(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	commit(t, s, store.Commit{
		Alerts:      []store.Alert{NewAlert("a"), NewAlert("b"), NewAlert("c")},
		Notices:     Notices("a", "b", "c"),
		DeadLetters: []store.DeadLetter{Letter(1, "x"), Letter(2, "x")},
	})
	n := 0
	if err := s.DeadLetters(ctx, func(store.DeadLetter) bool { n++; return false }); err != nil || n != 1 {
		t.Fatalf("%d calls, %v", n, err)
	}
	n = 0
	if err := s.AlertsBefore(ctx, 0, func(uint64, store.Alert) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Fatalf("%d calls, %v", n, err)
	}
	err := s.Undelivered(ctx, "web", func(a store.Notice) bool {
		if err := s.Delivered(ctx, "web", a.ID); err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil || len(x.read(t, s).Outbox["web"]) != 0 {
		t.Fatalf("outbox %v, %v", x.read(t, s).Outbox["web"], err)
	}
}

func (x suite) endedAndClosed(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	commit(t, s, store.Commit{Alerts: []store.Alert{NewAlert("a")}, Notices: Notices("a"), Life: []byte("x")})
	over, cancel := context.WithCancel(ctx)
	cancel()
	calls := func(ctx context.Context) map[string]error {
		_, offsets := s.Offsets(ctx, "topic")
		_, _, alert := s.Alert(ctx, "a")
		_, _, life := s.Life(ctx)
		_, expire := s.Expire(ctx, store.Expiry{})
		no := func(store.Alert) bool { t.Error("called"); return true }
		return map[string]error{
			"Offsets": offsets, "Alert": alert,
			"Commit":      s.Commit(ctx, store.Commit{Offsets: map[string]map[int]int64{"topic": {0: 9}}}),
			"DeadLetters": s.DeadLetters(ctx, func(store.DeadLetter) bool { return true }),
			"Alerts":      s.AlertsBefore(ctx, 0, func(_ uint64, a store.Alert) bool { return no(a) }),
			"Undelivered": s.Undelivered(ctx, "web", func(store.Notice) bool { t.Error("called"); return true }),
			"Pending":     s.Pending(ctx, no),
			"Life":        life,
			"Expire":      expire,
			"Delivered":   s.Delivered(ctx, "web", "a"),
		}
	}
	for name, err := range calls(over) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	if d := x.read(t, s); len(d.Outbox["web"]) != 1 || len(d.Offsets["topic"]) != 0 {
		t.Fatalf("changed with an ended context: %+v", d)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range calls(ctx) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func (x suite) concurrent(t *testing.T) {
	ctx := t.Context()
	s := open(t, x.newPlace(t), x.opt)
	const workers, each = 4, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%02d", w, i)
				c := store.Commit{Offsets: map[string]map[int]int64{"topic": {w: int64(i)}},
					DeadLetters: []store.DeadLetter{Letter(int64(w*each+i), "x")}, Alerts: []store.Alert{NewAlert(id)},
					Notices: Notices(id)}
				if err := s.Commit(ctx, c); err != nil {
					t.Error(err)
				}
				if err := s.Delivered(ctx, "web", id); err != nil {
					t.Error(err)
				}
				if _, err := Read(s, []string{"topic"}, receivers); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	d := x.read(t, s)
	if len(d.Letters) != workers*each || len(d.Alerts) != workers*each || len(d.Outbox["web"]) != 0 ||
		len(d.Outbox["kafka"]) != workers*each {
		t.Fatalf("%d letters, %d alerts, %d and %d to deliver", len(d.Letters), len(d.Alerts), len(d.Outbox["web"]),
			len(d.Outbox["kafka"]))
	}
}
