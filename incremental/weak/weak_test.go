package weak

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/version"
)

// shapes are the kinds of histories that the random tests make, and how many
// of each.
var shapes = []struct {
	name  string
	count int
	shape shape
}{
	{"tiny", 600, shape{txns: 5, keys: 2, sessions: 2, reads: 3, writes: 2, repeats: 10, open: 10, lag: 50, wild: 150, ticks: 2, late: 20}},
	{"small", 300, shape{txns: 14, keys: 4, sessions: 4, reads: 4, writes: 3, repeats: 10, open: 15, lag: 60, wild: 40, ticks: 3, late: 20}},
	{"late", 150, shape{txns: 18, keys: 5, sessions: 5, lists: 1, reads: 3, writes: 2, open: 5, lag: 70, wild: 4, ticks: 4, late: 60}},
	{"valid", 120, shape{txns: 30, keys: 6, sessions: 5, lists: 2, reads: 5, writes: 3, repeats: 10, open: 15, lag: 80, ticks: 4, late: 20}},
	{"lists", 300, shape{txns: 12, keys: 4, sessions: 4, lists: 3, reads: 4, writes: 3, repeats: 10, open: 20, lag: 60, wild: 40, ticks: 3, late: 20}},
	{"no sessions", 200, shape{txns: 20, keys: 5, sessions: 5, lists: 1, reads: 5, writes: 3, open: 10, lag: 60, wild: 20, ticks: 3, late: 10, noSessions: true}},
	{"one session", 60, shape{txns: 40, keys: 3, sessions: 1, reads: 3, writes: 2, open: 30, lag: 60, wild: 3, ticks: 3, late: 10}},
	{"many reads", 60, shape{txns: 16, keys: 24, sessions: 4, lists: 2, reads: 22, writes: 6, repeats: 10, open: 10, lag: 70, wild: 4, ticks: 2, late: 3}},
	{"very many reads", 20, shape{txns: 12, keys: 110, sessions: 3, lists: 4, reads: 150, writes: 20, repeats: 10, lag: 70, wild: 1, ticks: 2, late: 1}},
	{"large writers", 20, shape{txns: 10, keys: 400, sessions: 3, reads: 40, writes: 400, repeats: 5, lag: 70, wild: 5, ticks: 2, late: 1}},
	{"long chains", 8, shape{txns: 150, keys: 3, sessions: 2, reads: 2, writes: 2, lag: 95, wild: 1, ticks: 1}},
}

// each runs a test on all random histories.
func each(t *testing.T, test func(t *testing.T, name string, seed uint64, s shape, h *plan)) {
	t.Helper()
	for _, x := range shapes {
		t.Run(x.name, func(t *testing.T) {
			for seed := range uint64(x.count) {
				test(t, fmt.Sprintf("%s %d", x.name, seed), seed, x.shape, random(seed, x.shape))
			}
		})
	}
}

var allLevels = []Level{G1, RC, RA, CC}

// some levels, others for another seed.
func some(seed uint64) []Level {
	var out []Level
	for _, l := range allLevels {
		if seed%16 < 4 || seed>>l&1 == 1 {
			out = append(out, l)
		}
	}
	return out
}

// TestLevels compares verdicts and orders with the axioms, after every Tick.
func TestLevels(t *testing.T) {
	outcomes := map[Level][2]int{}
	each(t, func(t *testing.T, name string, seed uint64, s shape, h *plan) {
		levels := some(seed)
		w := newTeller(h, levels...)
		found := map[Level]bool{}
		for now := range h.ticks {
			w.tell(now)
			for _, v := range w.c.Tick(now == h.ticks-1) {
				found[v.Level] = true
			}
			r := newReference(&w.told)
			for _, l := range levels {
				got := found[l] || found[G1]
				if want, least := r.violated(l, false), l >= RA && r.changed(); got != want && (!least || got || r.violated(l, true)) {
					t.Fatalf("%s, Tick %d, level %d: violated %v, want %v", name, now, l, got, want)
				}
				if !got {
					checkOrder(t, fmt.Sprintf("%s, Tick %d, level %d", name, now, l), r, l, w.c.witnesses.Order(l))
				}
			}
		}
		for _, l := range levels {
			n := outcomes[l]
			n[map[bool]int{true: 1}[found[l] || found[G1]]]++
			outcomes[l] = n
		}
	})
	for l, n := range outcomes {
		if n[0] < 100 || n[1] < 100 {
			t.Errorf("level %d: %d histories satisfy it and %d do not, which is too few to tell anything", l, n[0], n[1])
		}
	}
}

// checkOrder checks that an order has all transactions, and keeps what a level
// asks for; of reads that found a key changed, which ra leaves to others, only
// the first counts.
func checkOrder(t *testing.T, name string, r *reference, l Level, order []Txn) {
	t.Helper()
	place := make([]int, len(r.txns))
	for i := range place {
		place[i] = -1
	}
	for i, x := range order {
		place[x] = i
	}
	if len(order) != len(r.txns) || slices.Contains(place, -1) {
		t.Fatalf("%s: %v is no order of %d transactions", name, order, len(r.txns))
	}
	want, _ := r.commits(l, l >= RA)
	for a := range want {
		want.successors(Txn(a), func(b Txn) {
			if place[a] >= place[b] {
				t.Fatalf("%s: %d has to come before %d, got %v", name, a, b, order)
			}
		})
	}
}

// TestWithout: a copy for one level answers as the axioms do, with reads that
// the original was not told of, and leaves that one as it was.
func TestWithout(t *testing.T) {
	var copies [2]int
	each(t, func(t *testing.T, name string, seed uint64, s shape, h *plan) {
		if s.txns > 40 || seed%3 > 0 {
			return
		}
		w := newTeller(h, allLevels...)
		found := map[Level]bool{}
		for now := range h.ticks {
			w.tell(now)
			for _, v := range w.c.Tick(false) {
				found[v.Level] = true
			}
		}
		for _, l := range allLevels {
			if found[l] || found[G1] {
				continue
			}
			order := w.c.witnesses.Order(l)
			trial, kept := w.c.Without(l), w.told
			w.told.txns = slices.Clone(kept.txns)
			for t := range h.txns {
				w.told.txns[t].reads = slices.Clone(kept.txns[t].reads)
				for i, r := range h.txns[t].reads {
					if h.readAt[t][i] >= h.ticks && int(r.key) >= s.lists {
						w.read(trial, Txn(t), i)
					}
				}
			}
			r := newReference(&w.told)
			got := len(trial.Tick(true)) > 0
			if want := r.violated(l, false); got != want && (!r.changed() || l < RA) {
				t.Fatalf("%s, level %d: violated %v, want %v", name, l, got, want)
			}
			if !got {
				checkOrder(t, name, r, l, trial.witnesses.Order(l))
			}
			if w.told = kept; !slices.Equal(order, w.c.witnesses.Order(l)) {
				t.Fatalf("%s, level %d: the copy changed the original", name, l)
			}
			copies[map[bool]int{true: 1}[got]]++
		}
	})
	if copies[0] < 50 || copies[1] < 20 {
		t.Errorf("%d copies satisfy their level and %d do not, which is too few to tell anything", copies[0], copies[1])
	}
}

// TestAppendsLast: a transaction of unknown outcome, once it is said to have
// appended, comes after all that a list shows.
func TestAppendsLast(t *testing.T) {
	c := New(true, RC)
	a := c.Add(0, none, false, nil, []version.Key{0})
	b := c.Add(1, none, true, nil, []version.Key{0, 1})
	d := c.Add(2, none, false, []version.Key{1, 0}, nil) // sees b's 1, then a's list
	c.Appended(0, a)
	c.ListOrder(0, a)
	c.Anchored(0)
	c.Read(d, 1, a)
	if v := c.Tick(false); v != nil {
		t.Fatalf("got %v before anything was read from b", v)
	}
	for _, appends := range []bool{false, true} {
		trial := c.Without(RC)
		trial.lists = c.lists
		if appends {
			trial.AppendsLast(0, a) // it is shown: nothing new
			trial.AppendsLast(1, b) // no list
			trial.AppendsLast(0, b)
		}
		if v := trial.Tick(true); v != nil {
			t.Fatalf("appends %v: got %v", appends, v)
		}
		if o := trial.witnesses.Order(RC); appends && slices.Index(o, b) < slices.Index(o, a) {
			t.Errorf("order %v: b appended after a", o)
		}
	}
	trial := c.Without(RC)
	trial.AppendsLast(0, b)
	trial.Read(d, 0, b)
	if v := trial.Tick(true); len(v) != 1 || v[0].Level != RC {
		t.Errorf("got %v, want a cycle of the list's order and the inferred edge", v)
	}
}

// TestRowsUsedAgain: a whole history in one last Tick, where rows go
// when nobody needs them any more, gives the same as one that may go on.
func TestRowsUsedAgain(t *testing.T) {
	s := shape{txns: 700, keys: 12, sessions: 150, lists: 1, reads: 4, writes: 3, open: 5, lag: 50, ticks: 1}
	var violated, used int
	for seed := range uint64(6) {
		s.noSessions, s.wild = seed%3 == 2, int(seed%2)
		h := random(seed, s)
		var tellers [2]*teller
		var found [2][CC + 1]bool
		for i, last := range []bool{false, true} {
			w := newTeller(h, CC, RA)
			w.tell(0)
			for _, v := range w.c.Tick(last) {
				found[i][v.Level] = true
			}
			tellers[i] = w
		}
		kept, again := tellers[0].c, tellers[1].c
		if a, b := fmt.Sprint(kept.witnesses.Order(RA)), fmt.Sprint(again.witnesses.Order(RA)); a != b {
			t.Errorf("seed %d: another order for ra, which needs no rows", seed)
		}
		if again.rows.sets.Bytes() < kept.rows.sets.Bytes() {
			used++
		}
		r := newReference(&tellers[1].told)
		for _, l := range []Level{RA, CC} {
			want := r.violated(l, false)
			for i, w := range tellers {
				where := fmt.Sprintf("seed %d, level %d, rows used again %v", seed, l, i == 1)
				if got := found[i][l] || found[i][G1]; got != want {
					t.Errorf("%s: violated %v, want %v", where, got, want)
				}
				if !want {
					checkOrder(t, where, r, l, w.c.witnesses.Order(l))
				}
			}
			if want {
				violated++
			}
		}
	}
	if used == 0 || violated == 0 || violated == 12 {
		t.Errorf("rows were used again in %d histories of 6, %d of 12 verdicts are violated", used, violated)
	}
}

// TestFewEdges: at cc a writer that is known to commit before another one, which
// an edge was inferred from, needs none.
func TestFewEdges(t *testing.T) {
	for _, known := range []string{"read-from", "inferred"} {
		c := New(true, CC)
		const x, ofA, ofB, z = version.Key(0), version.Key(1), version.Key(2), version.Key(3)
		t1 := c.Add(0, none, false, nil, []version.Key{x})
		a := c.Add(1, none, false, nil, []version.Key{x, ofA, z})
		b := c.Add(2, none, false, []version.Key{ofA}, []version.Key{x, ofB, z})
		want := 1 // b → t1
		if known == "read-from" {
			c.Read(b, 0, a)
		} else { // one who reads b's z, having seen a
			w := c.Add(3, none, false, []version.Key{ofA, z}, nil)
			c.Read(w, 0, a)
			c.Read(w, 1, b)
			want++ // a → b
		}
		t3 := c.Add(4, none, false, []version.Key{ofA, ofB, x}, nil)
		c.Read(t3, 0, a)
		c.Read(t3, 1, b)
		c.Read(t3, 2, t1)
		if v := c.Tick(true); v != nil {
			t.Fatalf("%s: got %v", known, v)
		}
		if c.Inferred != want {
			t.Errorf("%s: %d edges inferred, want %d", known, c.Inferred, want)
		}
	}
}

// TestLargeWriter: of a writer of hundreds of keys, each is seen, by readers of
// few keys and of many.
func TestLargeWriter(t *testing.T) {
	const keys, fromOld = 300, 299
	var all []version.Key
	for k := range version.Key(keys) {
		all = append(all, (k*7)%keys)
	}
	for k := range version.Key(fromOld) {
		for _, others := range []int{0, 2 * fewKeys} { // reads of keys that nobody else has
			for _, l := range []Level{RC, RA, CC} {
				c := New(true, l)
				old := c.Add(0, none, false, nil, all)
				fresh := c.Add(1, none, false, []version.Key{fromOld}, all)
				reads := []version.Key{fromOld}
				for i := range others {
					reads = append(reads, keys+version.Key(i))
				}
				r := c.Add(2, none, false, append(reads, k), nil)
				c.Read(fresh, 0, old)
				c.Read(r, 0, fresh)
				c.Read(r, len(reads), old)
				want := []Edge{{From: old, To: fresh, Kind: WR, Key: fromOld}, {From: fresh, To: old, Kind: Inferred, Key: k, By: r}}
				if v := c.Tick(true); len(v) != 1 || v[0].Level != l || !slices.Equal(v[0].Cycle, want) {
					t.Fatalf("key %d, %d other reads, level %d: got %v, want %v", k, others, l, v, want)
				}
			}
		}
	}
}

// TestAfterCycle: a cycle of the base hides none of other transactions, and
// what was read outside of it stays known.
func TestAfterCycle(t *testing.T) {
	c := New(true, allLevels...)
	const x, y, z = version.Key(0), version.Key(1), version.Key(2)
	a := c.Add(0, none, false, []version.Key{x, z}, []version.Key{x, y})
	b := c.Add(1, none, false, []version.Key{x}, []version.Key{x})
	d := c.Add(2, none, false, []version.Key{y}, []version.Key{z})
	c.Read(a, 0, b)
	c.Read(b, 0, a)
	c.Read(a, 1, d)
	for i, want := range [][]Txn{{a, b}, {a, d}} {
		if i == 1 {
			c.Read(d, 0, a)
		}
		found := false
		for _, v := range c.Tick(i == 1) {
			var on []Txn
			for _, e := range v.Cycle {
				on = append(on, e.From)
			}
			slices.Sort(on)
			found = found || v.Level == G1 && slices.Equal(on, want)
		}
		if !found {
			t.Errorf("Tick %d does not find the cycle of %v", i, want)
		}
	}
}
