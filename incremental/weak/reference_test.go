package weak

import (
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/incremental/version"
)

// told is what a checker has been told so far, kept as it came.
type told struct {
	sessions bool
	txns     []toldTxn
	lists    map[version.Key][]Txn // the order that reads show
	appended map[version.Key][]Txn
}

type toldTxn struct {
	session, prev uint32
	open          bool
	reads         []toldRead
	writes        []version.Key
}

type toldRead struct {
	key   version.Key
	from  Txn   // or Unseen or Initial
	shows []Txn // others whose elements a list shows
}

func (r toldRead) has(t Txn) bool { return r.from == t || slices.Contains(r.shows, t) }

// relation is a set of pairs of transactions, a row of bits for each first one.
type relation [][]uint64

func newRelation(n int) relation {
	r := make(relation, n)
	for i := range r {
		r[i] = make([]uint64, (n+63)/64)
	}
	return r
}

func (r relation) add(a, b Txn)      { r[a][b/64] |= 1 << (b % 64) }
func (r relation) has(a, b Txn) bool { return r[a][b/64]&(1<<(b%64)) != 0 }

// successors calls f with all that follow a.
func (r relation) successors(a Txn, f func(Txn)) {
	for i, w := range r[a] {
		for ; w != 0; w &= w - 1 {
			f(Txn(64*i + bits.TrailingZeros64(w)))
		}
	}
}

func (r relation) union(other relation) relation {
	out := newRelation(len(r))
	for a := range r {
		for i := range r[a] {
			out[a][i] = r[a][i] | other[a][i]
		}
	}
	return out
}

// then is the composition: a r b other c.
func (r relation) then(other relation) relation {
	out := newRelation(len(r))
	for a := range r {
		r.successors(Txn(a), func(b Txn) {
			for i, w := range other[b] {
				out[a][i] |= w
			}
		})
	}
	return out
}

// closure is the transitive closure (Warshall's algorithm).
func (r relation) closure() relation {
	out := newRelation(len(r)).union(r)
	for via := range out {
		for a := range out {
			if out.has(Txn(a), Txn(via)) {
				for i, w := range out[via] {
					out[a][i] |= w
				}
			}
		}
	}
	return out
}

func (r relation) cyclic() bool {
	c := r.closure()
	for t := range c {
		if c.has(Txn(t), Txn(t)) {
			return true
		}
	}
	return false
}

// reference judges a history by the axioms, looking at all pairs.
type reference struct {
	*told
	so, wr, base relation
	path         relation // closure of base
	writers      map[version.Key][]Txn
	kept         map[Level]relation // visibility that does not depend on the read
}

func newReference(h *told) *reference {
	n := len(h.txns)
	r := &reference{told: h, so: newRelation(n), wr: newRelation(n), writers: map[version.Key][]Txn{}, kept: map[Level]relation{}}
	for i, x := range h.txns {
		t := Txn(i)
		for p := x.prev; h.sessions && p != none; p = h.txns[p].prev {
			r.so.add(Txn(p), t)
		}
		for _, rd := range x.reads {
			for f := range Txn(n) {
				if rd.has(f) {
					r.wr.add(f, t)
				}
			}
		}
		for _, k := range x.writes {
			r.writers[k] = append(r.writers[k], t)
		}
	}
	r.base = r.so.union(r.wr)
	r.path = r.base.closure()
	return r
}

// visible tells whether what t2 wrote is visible to t3's read at place op.
func (r *reference) visible(l Level, t2, t3 Txn, op int) bool {
	switch l {
	case G1:
		return false
	case RC:
		return slices.ContainsFunc(r.txns[t3].reads[:op], func(x toldRead) bool { return x.has(t2) })
	case RA:
		return r.base.has(t2, t3)
	case CC:
		return r.path.has(t2, t3)
	}
	rel, ok := r.kept[l]
	if !ok {
		switch l {
		case ReadYourWrites:
			rel = r.so
		case MonotonicReads:
			rel = r.wr.then(r.so)
		case MonotonicWrites:
			rel = r.so.then(r.wr)
		case WritesFollowReads:
			rel = r.wr.then(r.wr).union(r.wr.then(r.so).then(r.wr))
		}
		r.kept[l] = rel
	}
	return rel.has(t2, t3)
}

// commits is what a level asks of commit orders, and whether it asks the
// impossible of an initial version. firsts looks at the first read of each key
// only, of what the transaction reads.
func (r *reference) commits(l Level, firsts bool) (order relation, stale bool) {
	order = newRelation(len(r.txns)).union(r.base)
	if l == G1 {
		return order, false
	}
	for i, x := range r.txns {
		t3 := Txn(i)
		for op, rd := range x.reads {
			if rd.from == Unseen || firsts && slices.ContainsFunc(x.reads[:op], func(y toldRead) bool { return y.key == rd.key }) {
				continue
			}
			for _, t2 := range r.writers[rd.key] {
				switch {
				case t2 == rd.from || t2 == t3 || !r.visible(l, t2, t3, op):
				case rd.from == Initial:
					stale = true
				default:
					order.add(t2, rd.from)
				}
			}
		}
	}
	for k, shown := range r.lists {
		for i, t := range shown {
			for _, later := range shown[i+1:] {
				order.add(t, later)
			}
		}
		for _, t := range r.appended[k] {
			if len(shown) > 0 && !slices.Contains(shown, t) {
				order.add(shown[len(shown)-1], t)
			}
		}
	}
	return order, stale
}

// violated tells whether no commit order satisfies a level.
func (r *reference) violated(l Level, firsts bool) bool {
	order, stale := r.commits(l, firsts)
	return stale || order.cyclic()
}

// changed tells whether a transaction read a key twice, from different writers
// or of which one is unknown, which ra leaves to others to judge.
func (r *reference) changed() bool {
	for _, x := range r.txns {
		for i, a := range x.reads {
			for _, b := range x.reads[:i] {
				if a.key == b.key && a.from != b.from {
					return true
				}
			}
		}
	}
	return false
}
