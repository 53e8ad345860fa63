package weak

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

var guarantees = []Level{ReadYourWrites, MonotonicReads, MonotonicWrites, WritesFollowReads}

// TestGuarantees compares the session guarantees with their axioms.
func TestGuarantees(t *testing.T) {
	outcomes := map[Level][2]int{}
	each(t, func(t *testing.T, name string, seed uint64, s shape, h *plan) {
		w := newTeller(h, CC)
		base := false
		for now := range h.ticks {
			w.tell(now)
			for _, v := range w.c.Tick(now == h.ticks-1) {
				base = base || v.Level == G1
			}
		}
		if base {
			return
		}
		r := newReference(&w.told)
		for _, l := range guarantees {
			where := fmt.Sprintf("%s, guarantee %d", name, l)
			got, decided := w.c.Judge(l)
			if want := r.violated(l, false); !decided || (len(got) > 0) != want {
				t.Fatalf("%s: violated %v (decided %v), want %v", where, got, decided, want)
			}
			for _, v := range got {
				if v.Level != l {
					t.Fatalf("%s: %v is of another level", where, v)
				}
				checkCycle(t, where, r, w.c, v, true)
			}
			n := outcomes[l]
			n[min(1, len(got))]++
			outcomes[l] = n
		}
	})
	for l, n := range outcomes {
		if n[0] < 100 || n[1] < 30 {
			t.Errorf("guarantee %d: %d histories have it and %d do not, which is too few to tell anything", l, n[0], n[1])
		}
	}
}

// TestMonotonicReads: what a session has read once or more often must not be
// followed by what was there before.
func TestMonotonicReads(t *testing.T) {
	const x, y = version.Key(0), version.Key(1)
	for _, test := range []struct {
		name  string
		reads []Txn // of x by a session, one transaction after the other
		want  bool  // violated
	}{
		{"new", []Txn{1}, false},
		{"old, new", []Txn{0, 1}, false},
		{"new, old", []Txn{1, 0}, true},
		{"new twice, old", []Txn{1, 1, 0}, true},
		{"new thrice, old", []Txn{1, 1, 1, 0}, true},
		{"old twice, new twice", []Txn{0, 0, 1, 1}, false},
		{"old, new, old", []Txn{0, 1, 0}, true},
		{"old, new twice, nothing, old", []Txn{0, 1, 1, Unseen, 0}, true},
		{"other, new, other", []Txn{2, 1, 2}, true},
		{"other twice, new", []Txn{2, 2, 1}, false},
		{"new, initial", []Txn{1, Initial}, true},
		{"initial, new", []Txn{Initial, 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := New(true, CC)
			c.Add(0, none, false, nil, []version.Key{x}) // old
			c.Add(0, 0, false, nil, []version.Key{x, y}) // new
			c.Add(1, none, false, nil, []version.Key{x}) // other
			prev := none
			for _, from := range test.reads {
				r := c.Add(2, Txn(prev), false, []version.Key{x}, nil)
				c.Read(r, 0, from)
				prev = int(r)
			}
			c.Tick(true)
			found, decided := c.Judge(MonotonicReads)
			if !decided || (len(found) > 0) != test.want {
				t.Errorf("got %v (decided %v), want violated %v", found, decided, test.want)
			}
		})
	}
}

// TestJudgeOnlyLooks: a judgement leaves the checker as it was.
func TestJudgeOnlyLooks(t *testing.T) {
	h := random(1, shape{txns: 30, keys: 4, sessions: 4, reads: 4, writes: 3, lag: 60})
	w := newTeller(h, CC)
	w.tell(0)
	w.c.Tick(false)
	before := w.c.witnesses.Order(CC)
	for _, l := range guarantees {
		a, _ := w.c.Judge(l)
		b, _ := w.c.Judge(l)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("guarantee %d: %v, then %v", l, a, b)
		}
	}
	if v := w.c.Tick(true); v != nil || !slices.Equal(before, w.c.witnesses.Order(CC)) {
		t.Errorf("after judgements a Tick finds %v", v)
	}
}

// TestOpenWriterHasNotReadLater: what a session reads after a transaction of
// unknown outcome, which precedes nothing in it, is not what that one follows.
func TestOpenWriterHasNotReadLater(t *testing.T) {
	const x, y = version.Key(0), version.Key(1)
	c := New(true, CC)
	old := c.Add(0, none, false, nil, []version.Key{x})
	fresh := c.Add(0, old, false, nil, []version.Key{x})
	p := c.Add(1, none, false, nil, nil)
	open := c.Add(1, p, true, nil, []version.Key{y})
	q := c.Add(1, p, false, []version.Key{x}, nil)
	r := c.Add(2, none, false, []version.Key{y, x}, nil)
	c.Read(q, 0, fresh)
	c.Read(r, 0, open)
	c.Read(r, 1, old)
	if v := c.Tick(true); v != nil {
		t.Fatalf("got %v", v)
	}
	for _, l := range guarantees {
		if v, _ := c.Judge(l); v != nil {
			t.Errorf("guarantee %d: got %v", l, v)
		}
	}
}
