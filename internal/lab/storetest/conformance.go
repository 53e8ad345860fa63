package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// Place is where one store lives.
type Place struct {
	// Open opens it; Path is for Open to fill in.
	Open func(store.Options) (store.Store, error)
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
	if err := s.DeadLetters(ctx, func(l store.DeadLetter) bool {
		d.Letters = append(d.Letters,
			l)
		return true
	}); err != nil {
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
	if err := s.AlertsBefore(ctx, 0, func(_ uint64, a store.Alert) bool {
		d.Alerts = append(d.Alerts, a)
		return true
	}); err != nil {
		return d, err
	}
	slices.SortFunc(d.Alerts, func(a, b store.Alert) int { return strings.Compare(a.ID, b.ID) })
	for _, r := range receivers {
		if err := s.Undelivered(ctx, r, func(n store.Notice) bool {
			d.Outbox[r] = append(d.Outbox[r],
				n.ID)
			return true
		}); err != nil {
			return d, err
		}
	}
	return d, nil
}

// Letter makes a dead letter that differs from others by its offset.
func Letter(offset int64, value string) store.DeadLetter {
	return store.DeadLetter{Pos: record.Position{Source: "topic", Kafka: true, Partition: 3, Offset: offset},
		Reason: "syntax", Detail: "ops: not a list", Time: 1_732_160_000_000_000_000 + offset, Value: []byte(value),
		Size: len(value)}
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
	x := suite{newPlace, store.Options{Receivers: receivers}}
	t.Run("stream", func(t *testing.T) { x.run(t, streamTests) })
	t.Run("notices", func(t *testing.T) { x.run(t, noticeTests) })
	x.run(t, commitTests)
	x.run(t, letterTests)
}

// receivers are those of most stores.
var receivers = []string{"web", "kafka"}

// suite is what the tests are run on.
type suite struct {
	newPlace func(*testing.T) Place
	opt      store.Options // of most stores
}

// test is one promise.
type test struct {
	promise string
	run     func(suite, *testing.T)
}

func (x suite) run(t *testing.T, tests []test) {
	for _, c := range tests {
		t.Run(c.promise, func(t *testing.T) { c.run(x, t) })
	}
}

// read is Read, of the names that most tests use.
func (x suite) read(t *testing.T, s store.Store) Dump {
	t.Helper()
	d, err := Read(s, []string{"topic", "other"}, receivers)
	if err != nil {
		t.Fatal(err)
	}
	return d
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
var Blobs = cmp.FilterValues(func(a, b []byte) bool { return len(a) > 1000 || len(b) > 1000 },
	cmp.Comparer(bytes.Equal))
