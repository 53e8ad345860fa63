package weak

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/version"
)

// guaranteeWork bounds the pairs looked at for one guarantee: that writes follow
// reads has no small saturated relation.
const guaranteeWork = 50_000_000

// Judge checks a guarantee of the whole history, which has been worked off and
// has no cycle in the base: the axiom of the levels, with that visibility. It
// returns a cycle per tangle of transactions, as Tick does; decided is false
// where that would be too much work. Without sessions all hold but that writes
// follow reads, of which reading and writing in one transaction remains.
//
// Linear but for writes-follow-reads, which looks, for every read, at all that
// the writer's session had read of the key.
func (c *Checker) Judge(which Level) (found []Violation, decided bool) {
	j := &guaranteeJudge{c: c, which: which, g: &graph{level: which}}
	j.g.pos = append(j.g.pos, c.base.pos...)
	j.g.at = append(j.g.at, c.base.at...)
	j.g.head = make([]uint32, len(j.g.pos))
	for i := range j.g.head {
		j.g.head[i] = none
	}
	kept := c.witnesses.out
	c.witnesses.out = nil
	for _, t := range c.base.at {
		if j.transaction(t); j.work > guaranteeWork {
			c.witnesses.out = kept
			return nil, false
		}
	}
	for _, o := range c.shown {
		c.add(j.g, o.prev, o.next, none, o.key)
	}
	c.mend(j.g)
	found = c.witnesses.out
	c.witnesses.out = kept
	return append(j.stale, found...), true
}

// guaranteeJudge goes over the history once, in the order of the base.
type guaranteeJudge struct {
	c     *Checker
	which Level
	g     *graph
	seen  paged.Vec[version.Key, []seenBy] // by key
	stale []Violation
	work  int
}

// seenBy is a session, and what it has of a key.
type seenBy struct {
	chain uint32
	*history
}

// history is what a session wrote to, or read from others of, a key: positions
// ascend.
type history struct {
	txns []Txn
	pos  []uint32
	// judged is how many of them a later read has been compared with.
	judged int
}

// of is what a session has of a key, or nil.
func (j *guaranteeJudge) of(chain uint32, k version.Key) *history {
	if k < version.Key(j.seen.Len()) {
		for _, s := range *j.seen.At(k) {
			if s.chain == chain {
				return s.history
			}
		}
	}
	return nil
}

func (j *guaranteeJudge) note(chain uint32, pos uint32, k version.Key, t Txn) {
	for version.Key(j.seen.Len()) <= k {
		j.seen.Push(nil)
	}
	h := j.of(chain, k)
	if h == nil {
		h = &history{}
		at := j.seen.At(k)
		*at = append(*at, seenBy{chain, h})
	}
	if n := len(h.txns); n > 0 && h.txns[n-1] == t {
		return
	}
	h.txns, h.pos = append(h.txns, t), append(h.pos, pos)
}

// session is the chain of t's session, and how many transactions of it precede
// t; false if there is none.
func (j *guaranteeJudge) session(t Txn) (chain, before uint32, ok bool) {
	c := j.c
	n := c.nodes.At(t)
	if !n.open && n.chain != none && c.sessions {
		return n.chain, n.pos, true
	}
	if n.prev == none {
		return none, 0, false
	}
	p := c.nodes.At(n.prev)
	return p.chain, p.pos + 1, true
}

// transaction infers on account of what t read, then notes what t wrote or read.
func (j *guaranteeJudge) transaction(t Txn) {
	switch j.which {
	case ReadYourWrites, MonotonicReads:
		j.inferOwn(t)
	case MonotonicWrites, WritesFollowReads:
		j.inferSources(t)
	}
	c := j.c
	n := c.nodes.At(t)
	chain, _, inSession := j.session(t)
	if n.open || !inSession {
		return
	}
	switch j.which {
	case ReadYourWrites, MonotonicWrites:
		for _, k := range c.writes.at(n.writes) {
			j.note(chain, n.pos, k, t)
		}
	case MonotonicReads, WritesFollowReads:
		for _, f := range c.sources(n, nil) {
			for _, k := range c.writes.at(c.nodes.At(f).writes) {
				j.note(chain, n.pos, k, f)
			}
		}
	}
}

// inferOwn compares what t read with what its own session has.
func (j *guaranteeJudge) inferOwn(t Txn) {
	n := j.c.nodes.At(t)
	chain, before, inSession := j.session(t)
	if !inSession {
		return
	}
	reads := j.c.reads.at(n.reads)
	for _, r := range reads {
		if r.from != Unseen {
			j.against(chain, before, r, t, true)
		}
	}
	if n.open {
		return
	}
	for _, r := range reads {
		if h := j.of(chain, r.key); h != nil && r.from != Unseen {
			h.judged = len(h.txns)
		}
	}
}

// inferSources compares what t read with what the sessions of those have that it read
// from.
func (j *guaranteeJudge) inferSources(t Txn) {
	c := j.c
	n := c.nodes.At(t)
	reads := c.reads.at(n.reads)
	for _, w := range c.sources(n, nil) {
		if ch, pos, ok := j.session(w); ok {
			if j.which == WritesFollowReads && !c.nodes.At(w).open {
				pos++ // what w read itself counts
			}
			for _, r := range reads {
				if r.from != Unseen {
					j.against(ch, pos, r, t, false)
				}
			}
		}
		if n := c.nodes.At(w); j.which == WritesFollowReads && (n.open || !c.sessions) {
			j.alone(n, reads, t) // the session does not have what it read
		}
	}
}

// against infers that what the session has of the key, before a place in it,
// comes before what t read. For t's own session what was compared with an earlier
// read precedes what that one found, which is noted itself.
func (j *guaranteeJudge) against(chain, before uint32, r read, t Txn, own bool) {
	h := j.of(chain, r.key)
	if h == nil {
		return
	}
	n := len(h.txns)
	for n > 0 && h.pos[n-1] >= before {
		n--
	}
	from := 0
	switch {
	case j.which == ReadYourWrites || j.which == MonotonicWrites:
		from = max(0, n-1) // earlier ones precede the last in the session
	case own:
		from = max(0, min(h.judged, n)-1)
	}
	for _, t2 := range h.txns[from:n] {
		j.must(t2, r, t)
	}
	j.work += n - from
}

// alone is against for a transaction w that is in no session, as far as others
// see: what it read itself.
func (j *guaranteeJudge) alone(w *node, reads []read, t Txn) {
	c := j.c
	for _, f := range c.sources(w, nil) {
		for _, r := range reads {
			if slices.Contains(c.writes.at(c.nodes.At(f).writes), r.key) {
				j.must(f, r, t)
			}
		}
	}
}

// must: t2 comes before whom t read r from.
func (j *guaranteeJudge) must(t2 Txn, r read, t Txn) {
	c := j.c
	if t2 == r.from || t2 == t || r.from == Unseen {
		return
	}
	if r.from == Initial {
		if len(j.stale) > 0 {
			return // one is told
		}
		if way := c.witnesses.Path(j.which, t2, t); way != nil {
			j.stale = append(j.stale, Violation{j.which, append(way, Edge{From: t, To: t2, Kind: Anti, Key: r.key})})
		}
		return
	}
	c.add(j.g, t2, r.from, t, r.key)
	c.contradicts(j.g, t2, r.from, r.key)
}

// guaranteed is how t2 is visible to t3 by a guarantee, or nil.
func (c *witnesses) guaranteed(g Level, t2, t3 Txn) []Edge {
	if g == ReadYourWrites || g == MonotonicReads {
		return c.alongSession(g == MonotonicReads, t2, t3)
	}
	for _, w := range c.sources(c.nodes.At(t3), nil) {
		way := c.alongSession(g == WritesFollowReads, t2, w)
		if e, ok := c.readStep(t2, w); way == nil && ok && g == WritesFollowReads {
			way = []Edge{e}
		}
		if way != nil {
			last, _ := c.readStep(w, t3)
			return append(way, last)
		}
	}
	return nil
}

// alongSession is the way from t2, or, reads, from who reads from it, along a
// session to t, or nil.
func (c *witnesses) alongSession(reads bool, t2, t Txn) []Edge {
	for p := c.nodes.At(t).prev; p != none; p = c.nodes.At(p).prev {
		so := Edge{From: p, To: t, Kind: SO}
		if !reads && p == t2 {
			return []Edge{so}
		}
		if e, ok := c.readStep(t2, p); ok && reads {
			return []Edge{e, so}
		}
	}
	return nil
}
