package weak

import (
	"math/rand/v2"
	"slices"

	"github.com/isowatch/isowatch/incremental/version"
)

// shape says what random histories look like. Probabilities are in percent.
type shape struct {
	txns, keys, sessions int
	lists                int // how many of the keys hold lists
	reads, writes        int // at most, of a transaction
	repeats              int // of reads that are of a key read before
	open                 int // of transactions that are open
	lag                  int // of transactions that read an older snapshot than the last
	wild                 int // in a thousand, of reads that find anything whatever
	ticks, late          int // of reads that are told of later than their transaction
	noSessions           bool
}

// plan is a random history, and in which Tick each part of it is told.
type plan struct {
	told
	listKeys int // the keys below hold lists
	ticks    int
	addAt    []int
	readAt   [][]int
	appendAt []int // of what a transaction appended
}

// never is the Tick of what is never told.
const never = 1 << 30

// generator makes a history from an execution: transactions commit one after
// the other and read a snapshot, their session's last commit or newer, which is
// causally consistent; but for wild reads.
type generator struct {
	*rand.Rand
	shape
	h       *plan
	order   []Txn // of commits
	at      []int // by transaction: its place in order
	writers map[version.Key][]Txn
}

func random(seed uint64, s shape) *plan {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 4)), shape: s, writers: map[version.Key][]Txn{}}
	g.h = &plan{told: told{sessions: !s.noSessions}, listKeys: s.lists, ticks: max(1, s.ticks)}
	g.arrange()
	for _, t := range g.order {
		for _, k := range g.h.txns[t].writes {
			g.writers[k] = append(g.writers[k], t)
		}
	}
	for k := range g.lists { // now and then, not in the order of commits
		if w := g.writers[version.Key(k)]; len(w) > 1 && g.percent(s.wild) {
			i := g.IntN(len(w) - 1)
			w[i], w[i+1] = w[i+1], w[i]
		}
	}
	for t := range g.h.txns {
		g.read(Txn(t))
	}
	g.schedule()
	return g.h
}

func (g *generator) percent(p int) bool { return g.IntN(100) < p }

// arrange makes the transactions and their writes. They are added in another
// order than they commit, but for those of a session.
func (g *generator) arrange() {
	type slot struct{ commit, rank int }
	slots := make([]slot, g.txns)
	session := make([]int, g.txns)
	last := map[int]int{}
	for i := range slots {
		session[i] = g.IntN(g.sessions)
		slots[i] = slot{i, max(10*i+g.IntN(100), last[session[i]]+1)}
		last[session[i]] = slots[i].rank
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return a.rank - b.rank })
	g.order, g.at = make([]Txn, g.txns), make([]int, g.txns)
	latest := map[int]uint32{}
	for t, s := range slots {
		g.order[s.commit], g.at[t] = Txn(t), s.commit
		x := toldTxn{session: uint32(session[s.commit]), prev: none, open: g.percent(g.open)}
		if p, ok := latest[session[s.commit]]; ok && g.h.sessions {
			x.prev = p
		}
		if !x.open {
			latest[session[s.commit]] = uint32(t)
		}
		for _, k := range g.Perm(g.keys)[:g.IntN(min(g.keys, g.writes)+1)] {
			x.writes = append(x.writes, version.Key(k))
		}
		g.h.txns = append(g.h.txns, x)
	}
}

// read makes the reads of a transaction.
func (g *generator) read(t Txn) {
	x := &g.h.txns[t]
	snapshot := g.at[t]
	if g.percent(g.lag) {
		oldest := 0
		if x.prev != none {
			oldest = g.at[x.prev] + 1
		}
		snapshot = oldest + g.IntN(snapshot-oldest+1)
	}
	fresh := g.Perm(g.keys)
	for range g.IntN(g.reads + 1) {
		if n := len(x.reads); n > 0 && g.percent(g.repeats) {
			again := x.reads[g.IntN(n)]
			if g.IntN(1000) < 5*g.wild {
				again = g.find(t, again.key, g.IntN(g.txns))
			}
			x.reads = append(x.reads, again)
		} else if len(fresh) > 0 {
			at := snapshot
			if g.IntN(1000) < g.wild {
				at = -1
			}
			x.reads = append(x.reads, g.find(t, version.Key(fresh[0]), at))
			fresh = fresh[1:]
		}
	}
}

// find is what t finds of a key in a snapshot of the first commits, or anything
// if that is -1.
func (g *generator) find(t Txn, k version.Key, snapshot int) toldRead {
	all := g.writers[k]
	n := 0
	for n < len(all) && g.at[all[n]] < snapshot {
		n++
	}
	if snapshot < 0 {
		n = g.IntN(len(all) + 1)
	}
	list := int(k) < g.lists
	if i := slices.Index(all, t); list && i >= 0 {
		n = min(n, i)
	} else if n > 0 && all[n-1] == t {
		n--
	}
	r := toldRead{key: k, from: Initial}
	if n > 0 {
		r.from = all[n-1]
		if list {
			r.shows = all[:n-1]
		}
	}
	return r
}

// schedule spreads the history over Ticks: nobody is named before being added,
// and reads of a key that find the same are told together.
func (g *generator) schedule() {
	h := g.h
	h.appendAt = make([]int, g.txns)
	for t := range h.txns {
		h.addAt = append(h.addAt, t*h.ticks/g.txns)
		h.appendAt[t] = h.addAt[t]
		if h.txns[t].open && g.percent(g.late) {
			h.appendAt[t] = never
		}
	}
	for t, x := range h.txns {
		at := make([]int, len(x.reads))
		for i, r := range x.reads {
			at[i] = h.addAt[t]
			for f := range h.txns {
				if r.has(Txn(f)) {
					at[i] = max(at[i], h.addAt[f])
				}
			}
			switch j := slices.IndexFunc(x.reads[:i], func(y toldRead) bool { return y.key == r.key && y.from == r.from }); {
			case j >= 0:
				at[i] = at[j]
			case g.percent(g.late):
				at[i] += g.IntN(h.ticks + 1 - at[i]) // the last one: never
			}
			for f := range h.txns {
				if r.has(Txn(f)) { // it took effect
					h.appendAt[f] = min(h.appendAt[f], at[i])
				}
			}
		}
		h.readAt = append(h.readAt, at)
	}
}

// teller tells a checker a history, Tick by Tick, and keeps what it told.
type teller struct {
	h    *plan
	c    *Checker
	told told
}

func newTeller(h *plan, levels ...Level) *teller {
	return &teller{h: h, c: New(h.sessions, levels...), told: told{
		sessions: h.sessions, lists: map[version.Key][]Txn{}, appended: map[version.Key][]Txn{}}}
}

// tell says what is due before the now-th Tick.
func (w *teller) tell(now int) {
	for t, x := range w.h.txns {
		if w.h.addAt[t] != now {
			continue
		}
		y := x
		y.reads = nil
		var keys []version.Key
		for _, r := range x.reads {
			keys = append(keys, r.key)
			y.reads = append(y.reads, toldRead{key: r.key, from: Unseen})
		}
		w.told.txns = append(w.told.txns, y)
		w.c.Add(x.session, Txn(x.prev), x.open, keys, x.writes)
	}
	for t, x := range w.h.txns {
		for _, k := range x.writes {
			if w.h.appendAt[t] == now && int(k) < w.h.listKeys {
				w.told.appended[k] = append(w.told.appended[k], Txn(t))
				w.c.Appended(k, Txn(t))
			}
		}
		for i := range x.reads {
			if w.h.readAt[t][i] == now {
				w.read(w.c, Txn(t), i)
				w.listed(x.reads[i])
			}
		}
	}
}

// read tells a checker of a read.
func (w *teller) read(c *Checker, t Txn, i int) {
	r := w.h.txns[t].reads[i]
	w.told.txns[t].reads[i] = r
	c.Read(t, i, r.from)
	for _, f := range r.shows {
		c.Shows(t, i, f)
	}
}

// listed tells of the order that a read shows, as far as it is longer than
// others.
func (w *teller) listed(r toldRead) {
	if r.from == Initial || int(r.key) >= w.h.listKeys {
		return
	}
	all := append(slices.Clone(r.shows), r.from)
	for _, f := range all[min(len(all), len(w.told.lists[r.key])):] {
		w.told.lists[r.key] = append(w.told.lists[r.key], f)
		w.c.ListOrder(r.key, f)
		w.c.Anchored(r.key)
	}
}
