package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// Place is where one store lives.
type Place struct {
	// Open opens it; Path and InMemory are for Open to fill in.
	Open func(store.Options) (store.Store, error)
	// Volatile: what was written is gone after Close.
	Volatile bool
}

// Dump is all that a store holds, as its readers give it.
type Dump struct {
	Offsets map[string]map[int]int64
	Letters []store.DeadLetter
	Alerts  []store.Alert
	Outbox  map[string][]string // IDs by receiver
	Pending map[string]int      // news by ID
	Life    string
}

// Read dumps a store. Sources and receivers are those to ask for.
func Read(s store.Store, sources, receivers []string) (Dump, error) {
	ctx := context.Background()
	d := Dump{Offsets: map[string]map[int]int64{}, Outbox: map[string][]string{}}
	for _, src := range sources {
		o, err := s.Offsets(ctx, src)
		if err != nil {
			return d, err
		}
		d.Offsets[src] = o
	}
	if err := s.DeadLetters(ctx, func(l store.DeadLetter) bool { d.Letters = append(d.Letters, l); return true }); err != nil {
		return d, err
	}
	if err := s.Pending(ctx, func(a store.Alert) bool {
		if d.Pending == nil {
			d.Pending = map[string]int{}
		}
		d.Pending[a.ID] = a.News
		return true
	}); err != nil {
		return d, err
	}
	life, _, err := s.Life(ctx)
	if err != nil {
		return d, err
	}
	d.Life = string(life)
	if err := s.Alerts(ctx, func(a store.Alert) bool { d.Alerts = append(d.Alerts, a); return true }); err != nil {
		return d, err
	}
	for _, r := range receivers {
		if err := s.Undelivered(ctx, r, func(n store.Notice) bool { d.Outbox[r] = append(d.Outbox[r], n.ID); return true }); err != nil {
			return d, err
		}
	}
	return d, nil
}

// Letter makes a dead letter that differs from others by its offset.
func Letter(offset int64, value string) store.DeadLetter {
	return store.DeadLetter{Pos: record.Position{Source: "topic", Kafka: true, Partition: 3, Offset: offset},
		Reason: "syntax", Detail: "ops: not a list", Time: 1_732_160_000_000_000_000 + offset, Value: []byte(value), Size: len(value)}
}

// NewAlert makes an alert.
func NewAlert(id string) store.Alert {
	return store.Alert{ID: id, Body: []byte(fmt.Sprintf("{%q:1}", id))}
}

// Notices makes notices.
func Notices(ids ...string) (out []store.Notice) {
	for _, id := range ids {
		out = append(out, store.Notice{ID: id, Body: []byte("notice " + id)})
	}
	return out
}

// Run is the conformance suite: what store.Store promises, tried on places that
// newPlace makes.
func Run(t *testing.T, newPlace func(*testing.T) Place) {
	receivers := []string{"web", "kafka"}
	opt := store.Options{Receivers: receivers}
	ctx := context.Background()
	read := func(t *testing.T, s store.Store) Dump {
		t.Helper()
		d, err := Read(s, []string{"topic", "other"}, receivers)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("stream", func(t *testing.T) { runStream(t, newPlace) })
	t.Run("notices", func(t *testing.T) { runNotices(t, newPlace) })

	t.Run("empty", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		same(t, Dump{Offsets: map[string]map[int]int64{"topic": {}, "other": {}}, Outbox: map[string][]string{}}, read(t, s))
		if ok, err := s.HasAlert(ctx, "a"); ok || err != nil {
			t.Fatalf("HasAlert: %v %v", ok, err)
		}
		commit(t, s, store.Commit{})
	})

	t.Run("everything comes back", func(t *testing.T) {
		p := newPlace(t)
		s := open(t, p, opt)
		l := Letter(17, "{bad\x00\xff")
		l.Pos.Line = 4
		commit(t, s, store.Commit{
			Offsets:     map[string]map[int]int64{"topic": {0: 5, 3: 18}, "other": {1 << 30: 1<<63 - 1}},
			DeadLetters: []store.DeadLetter{l, Letter(16, "")},
			Alerts:      []store.Alert{NewAlert("b"), NewAlert("a")},
			Notices:     Notices("b", "a"),
		})
		commit(t, s, store.Commit{Offsets: map[string]map[int]int64{"topic": {3: 20}}, Alerts: []store.Alert{NewAlert("c")}, Notices: Notices("c")})
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
		same(t, want, read(t, s))
		if p.Volatile {
			return
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, p, opt)
		same(t, want, read(t, s))
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(99, "x")}, Alerts: []store.Alert{NewAlert("0")}, Notices: Notices("0")})
		d := read(t, s)
		if got := d.Letters[2].ID; got != 2 {
			t.Errorf("dead letter after reopening has ID %d", got)
		}
		same(t, []string{"b", "a", "c", "0"}, d.Outbox["kafka"])
	})

	t.Run("the same again changes nothing", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
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
		before := read(t, s)
		c.DeadLetters[0].Time++ // set aside again, later
		commit(t, s, c)
		if err := s.Delivered(ctx, "web", "a"); err != nil {
			t.Fatal(err)
		}
		same(t, before, read(t, s))
		if len(before.Letters) != 1 || len(before.Alerts) != 1 {
			t.Fatalf("%+v", before)
		}
	})

	t.Run("other dead letters at one place are kept", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		a, b, c := Letter(1, "x"), Letter(1, "x"), Letter(1, "y")
		b.Reason = "twice"
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{a, b, c}})
		if got := len(read(t, s).Letters); got != 3 {
			t.Fatalf("%d dead letters", got)
		}
	})

	t.Run("an alert's body is replaced", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		commit(t, s, store.Commit{Alerts: []store.Alert{NewAlert("a"), NewAlert("b")}})
		commit(t, s, store.Commit{Alerts: []store.Alert{{ID: "a", Body: []byte("new")}}})
		d := read(t, s)
		same(t, []store.Alert{{ID: "a", Body: []byte("new")}, NewAlert("b")}, d.Alerts)
		if len(d.Outbox) > 0 || len(d.Pending) > 0 {
			t.Fatalf("without news there is %v to deliver and %v pending", d.Outbox, d.Pending)
		}
	})

	t.Run("dead letters are cut and bounded", func(t *testing.T) {
		small := store.Options{MaxValue: 4, MaxDeadLetters: 3}
		s := open(t, newPlace(t), small)
		for i := range int64(5) {
			commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(2*i, "0123456"), Letter(2*i+1, "01")}})
		}
		var got []string
		if err := s.DeadLetters(ctx, func(l store.DeadLetter) bool {
			got = append(got, fmt.Sprintf("%d at %d: %q of %d", l.ID, l.Pos.Offset, l.Value, l.Size))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		same(t, []string{`7 at 7: "01" of 2`, `8 at 8: "0123" of 7`, `9 at 9: "01" of 2`}, got)
		// What was dropped may come again; it is a new one.
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(0, "0123456")}})
		if l := read(t, s).Letters; len(l) != 3 || l[2].ID != 10 {
			t.Fatalf("%+v", l)
		}
	})

	t.Run("dead letters are bounded in bytes", func(t *testing.T) {
		s := open(t, newPlace(t), store.Options{MaxDeadLetterBytes: 5000})
		for i := range int64(20) {
			commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(i, strings.Repeat("x", 900))}})
		}
		if l := read(t, s).Letters; len(l) != 5 || l[4].Pos.Offset != 19 {
			t.Fatalf("%d dead letters", len(l))
		}
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(99, strings.Repeat("x", 9000))}})
		if l := read(t, s).Letters; len(l) != 1 || l[0].Pos.Offset != 99 {
			t.Fatalf("the newest must be kept, whatever its size: %d kept", len(l))
		}
	})

	t.Run("long texts are cut", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		l := Letter(1, "x")
		l.Detail = strings.Repeat("é", 10_000)
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{l}})
		got := read(t, s).Letters[0].Detail
		if len(got) > 4096 || !strings.HasSuffix(got, "é…") {
			t.Fatalf("%d bytes, ends %q", len(got), got[len(got)-8:])
		}
	})

	t.Run("a commit larger than any transaction", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		c := store.Commit{Offsets: map[string]map[int]int64{"topic": {0: 5}}}
		for i := range int64(3000) {
			c.DeadLetters = append(c.DeadLetters, Letter(i, strings.Repeat("x", 1000)))
			c.Alerts = append(c.Alerts, store.Alert{ID: fmt.Sprintf("%05d", i), Body: bytes.Repeat([]byte{'b'}, 2000), News: 1})
		}
		commit(t, s, c)
		d := read(t, s)
		if len(d.Letters) != 3000 || len(d.Alerts) != 3000 || len(d.Pending) != 3000 || d.Offsets["topic"][0] != 5 {
			t.Fatalf("%d dead letters, %d alerts, %d pending", len(d.Letters), len(d.Alerts), len(d.Pending))
		}
		for i, l := range d.Letters {
			if l.ID != uint64(i) || l.Pos.Offset != int64(i) {
				t.Fatalf("dead letter %d is %d at %d", i, l.ID, l.Pos.Offset)
			}
		}
	})

	t.Run("large alerts", func(t *testing.T) {
		p := newPlace(t)
		s := open(t, p, opt)
		sizes := []int{60 << 10, 70 << 10, store.LimitBody}
		if !p.Volatile {
			sizes = append(sizes, 1<<20, store.LimitBody)
		}
		var want []store.Alert
		for i, n := range sizes {
			want = append(want, store.Alert{ID: fmt.Sprint(i), Body: bytes.Repeat([]byte{byte(i)}, n)})
		}
		commit(t, s, store.Commit{Alerts: want})
		for i, a := range read(t, s).Alerts {
			if a.ID != want[i].ID || !bytes.Equal(a.Body, want[i].Body) {
				t.Fatalf("alert %d of %d bytes came back as %d", i, len(want[i].Body), len(a.Body))
			}
		}
	})

	t.Run("invalid commits change nothing", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		good := store.Commit{Offsets: map[string]map[int]int64{"topic": {0: 5}}}
		for name, bad := range map[string]store.Commit{
			"no alert ID":        {Alerts: []store.Alert{{}}},
			"long alert ID":      {Alerts: []store.Alert{NewAlert(strings.Repeat("x", 2000))}},
			"large body":         {Alerts: []store.Alert{{ID: "a", Body: make([]byte, store.LimitBody+1)}}},
			"no notice ID":       {Notices: Notices("")},
			"large notice":       {Notices: []store.Notice{{ID: "a", Body: make([]byte, store.LimitNotice+1)}}},
			"many notices":       {Notices: []store.Notice{{ID: "a", Body: make([]byte, 70<<10)}, {ID: "b", Body: make([]byte, 70<<10)}, {ID: "c", Body: make([]byte, 70<<10)}, {ID: "d", Body: make([]byte, 70<<10)}, {ID: "e", Body: make([]byte, 70<<10)}, {ID: "f", Body: make([]byte, 70<<10)}}},
			"many handled":       {Handled: make([]store.Handled, store.LimitHandled+1)},
			"large life":         {Life: make([]byte, store.LimitLife+1)},
			"no source":          {Offsets: map[string]map[int]int64{"": {0: 1}}},
			"negative partition": {Offsets: map[string]map[int]int64{"topic": {-1: 1}}},
			"large partition":    {Offsets: map[string]map[int]int64{"topic": {1 << 31: 1}}},
		} {
			bad.DeadLetters = []store.DeadLetter{Letter(1, "x")}
			if err := s.Commit(ctx, bad); err == nil {
				t.Errorf("%s was committed", name)
			}
		}
		commit(t, s, good)
		if d := read(t, s); len(d.Letters) != 0 || len(d.Alerts) != 0 || d.Offsets["topic"][0] != 5 {
			t.Fatalf("%+v", d)
		}
	})

	t.Run("names that resemble each other", func(t *testing.T) {
		s := open(t, newPlace(t), store.Options{Receivers: []string{"a", "ab"}})
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
	})

	t.Run("callbacks stop and write", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
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
		if err := s.Alerts(ctx, func(store.Alert) bool { n++; return n < 2 }); err != nil || n != 2 {
			t.Fatalf("%d calls, %v", n, err)
		}
		err := s.Undelivered(ctx, "web", func(a store.Notice) bool {
			if err := s.Delivered(ctx, "web", a.ID); err != nil {
				t.Error(err)
			}
			return true
		})
		if err != nil || len(read(t, s).Outbox["web"]) != 0 {
			t.Fatalf("outbox %v, %v", read(t, s).Outbox["web"], err)
		}
	})

	t.Run("ended contexts and closed stores", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		commit(t, s, store.Commit{Alerts: []store.Alert{NewAlert("a")}, Notices: Notices("a"), Life: []byte("x")})
		over, cancel := context.WithCancel(ctx)
		cancel()
		calls := func(ctx context.Context) map[string]error {
			_, offsets := s.Offsets(ctx, "topic")
			_, has := s.HasAlert(ctx, "a")
			_, _, life := s.Life(ctx)
			_, expire := s.Expire(ctx, store.Expiry{})
			no := func(store.Alert) bool { t.Error("called"); return true }
			return map[string]error{
				"Offsets": offsets, "HasAlert": has,
				"Commit":      s.Commit(ctx, store.Commit{Offsets: map[string]map[int]int64{"topic": {0: 9}}}),
				"DeadLetters": s.DeadLetters(ctx, func(store.DeadLetter) bool { return true }),
				"Alerts":      s.Alerts(ctx, no),
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
		if d := read(t, s); len(d.Outbox["web"]) != 1 || len(d.Offsets["topic"]) != 0 {
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
	})

	t.Run("concurrent use", func(t *testing.T) {
		s := open(t, newPlace(t), opt)
		const workers, each = 4, 25
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					id := fmt.Sprintf("%d-%02d", w, i)
					c := store.Commit{Offsets: map[string]map[int]int64{"topic": {w: int64(i)}},
						DeadLetters: []store.DeadLetter{Letter(int64(w*each+i), "x")}, Alerts: []store.Alert{NewAlert(id)}, Notices: Notices(id)}
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
		d := read(t, s)
		if len(d.Letters) != workers*each || len(d.Alerts) != workers*each || len(d.Outbox["web"]) != 0 || len(d.Outbox["kafka"]) != workers*each {
			t.Fatalf("%d letters, %d alerts, %d and %d to deliver", len(d.Letters), len(d.Alerts), len(d.Outbox["web"]), len(d.Outbox["kafka"]))
		}
	})
}

func open(t *testing.T, p Place, opt store.Options) store.Store {
	t.Helper()
	s, err := p.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func commit(t *testing.T, s store.Store, c store.Commit) {
	t.Helper()
	if err := s.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, Blobs); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// Blobs makes cmp compare long values as a whole.
var Blobs = cmp.FilterValues(func(a, b []byte) bool { return len(a) > 1000 || len(b) > 1000 }, cmp.Comparer(bytes.Equal))
