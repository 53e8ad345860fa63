package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// shape counts what a cycle is made of. An anti-dependency is adjacent when
// the edge before it, around the cycle, is one too; it is grounded when that
// edge begins its reader's snapshot: session order, real-time order or a read.
type shape struct {
	edges              []verdict.Edge
	so, rt, wr, ww, rw int
	adjacent, grounded int // of the rw
}

// reads tells whether an edge says that To saw From: a read dependency, or a
// write order that is known because To read what it overwrote.
func reads(e verdict.Edge) bool {
	return e.Type == verdict.WR || e.Type == verdict.WW && e.Why == verdict.ByOverwrite
}

func shapeOf(edges []verdict.Edge) shape {
	s := shape{edges: edges}
	for i, e := range edges {
		before := edges[(i+len(edges)-1)%len(edges)]
		switch e.Type {
		case verdict.SO:
			s.so++
		case verdict.RT:
			s.rt++
		case verdict.WR:
			s.wr++
		case verdict.WW:
			if reads(e) {
				s.wr++
			} else {
				s.ww++
			}
		case verdict.RW:
			s.rw++
			switch {
			case before.Type == verdict.RW:
				s.adjacent++
			case before.Type != verdict.WW || reads(before):
				s.grounded++
			}
		}
	}
	return s
}

// skewed tells whether the reader of a cycle with one anti-dependency read two keys: the new value of one, and the old
// one of the other.
func (s shape) skewed() bool {
	at := slices.IndexFunc(s.edges, func(e verdict.Edge) bool { return e.Type == verdict.RW })
	before := s.edges[(at+len(s.edges)-1)%len(s.edges)]
	return reads(before) && before.Key != s.edges[at].Key
}

// cycle names a cycle of edges.
func (k kinds) cycle(edges []verdict.Edge) class {
	if len(edges) == 0 { // not told: nothing to go by but the level
		return class{name: general(k.v.Level), weakest: k.v.Level}
	}
	s := shapeOf(edges)
	c := class{name: k.nameOf(s), realTime: k.clocked(edges, 0)}
	c.adya = phenomenonOf(s, c.realTime)
	if c.name == "lost-update" {
		// One of the two overwrote the other, which missed that: whichever it was, the
		// cycle has one anti-dependency. The two are another way to see it.
		c.adya = suffixed("G-single", c.realTime, s.so > 0)
	}
	c.weakest = k.strength(s, c.name, 0)
	misses := missedName(c.name) && s.rw > 0
	if misses {
		c.guarantee = guaranteeOf(s)
	}
	inferred := c.weakest != shapeStrength(s, c.name)
	if inferred && c.name != "lost-update" || s.rw == 0 && len(parts(edges, false)) > 0 {
		c.adya = suffixed(behind(edges, c.weakest), c.realTime, s.so > 0)
	}
	switch {
	case misses:
		c.name, c.guarantee = k.most(edges)
		switch {
		case missedName(c.name) && !verdict.CC.Implies(c.weakest): // an order that weak levels do not have is behind it
			if c.name, c.guarantee = general(c.weakest), ""; s.skewed() && slices.Contains(broken["read-skew"], c.weakest) {
				c.name = "read-skew"
			}
		case c.name == "non-repeatable-reads":
			c.adya = intra[verdict.NonRepeatableRead].adya
		}
	case s.rw == 0 && (inferred || len(parts(edges, false)) > 0):
		// Nobody missed anything here, but an order of writes was inferred
		// from what others missed, by rules that weaker levels do not have: it is
		// not the anomaly that it looks like.
		c.name = general(c.weakest)
		if verdict.CC.Implies(c.weakest) {
			c.name, c.guarantee = k.most(edges)
		}
	case inferred && s.rw > 0 && !slices.Contains(broken[c.name], c.weakest):
		c.name = general(c.weakest)
	case c.name == "session-guarantee-violation" && oneKey(edges):
		c.guarantee = verdict.MonotonicWrites.String()
	}
	return c
}

// oneKey tells whether all edges that have a key have the same one. If these are orders of
// writes, and the others sessions', some session's own writes of the key were turned round:
// of several keys each may be in an order that every session could have made.
func oneKey(edges []verdict.Edge) bool {
	key := ""
	for _, e := range edges {
		if e.Key != "" && key != "" && e.Key != key {
			return false
		}
		key = max(key, e.Key)
	}
	return true
}

// least is the mildest phenomenon that breaks a level and nothing below it. Where snapshots
// are fine and a serial order is not, there is an order of writes in which all cycles have two
// adjacent anti-dependencies.
func least(weakest verdict.Level) int {
	if !verdict.SI.Implies(weakest) && weakest != verdict.StrongSI {
		return phenomenon("G2-item")
	}
	return phenomenon("G-single")
}

// behind is the phenomenon of a cycle whose orders were inferred from others.
func behind(edges []verdict.Edge, weakest verdict.Level) string {
	most := least(weakest)
	for _, s := range parts(edges, true) {
		most = max(most, phenomenon(phenomenonOf(s, false)))
	}
	return phenomena[most]
}

func (k kinds) nameOf(s shape) string {
	n := len(s.edges)
	switch {
	case n == 2 && s.rw > 0 && s.rt == 0 && k.loses(s):
		return "lost-update"
	case s.rt > 0 && s.rw == 1:
		return "stale-read"
	case s.rt > 0:
		return "real-time-violation"
	case s.rw == 0 && s.wr == 0 && s.so == 0:
		return "dirty-write"
	case s.rw == 0 && s.wr == 0:
		return "session-guarantee-violation" // a session's own writes, in the wrong order
	case s.rw == 0:
		return "circular-information-flow"
	case s.adjacent > 0:
		return k.serializationName(s)
	case s.rw == 1 && s.ww == 0:
		return k.missed(s)
	case s.rw == 1 && s.skewed():
		return "read-skew"
	case n == 4 && s.rw == 2 && s.wr == 2: // two readers, each of which saw one of two transactions and missed the other
		return "long-fork"
	case s.grounded == s.rw:
		return "prefix-violation"
	}
	return "snapshot-cycle"
}

// backwards tells whether the reader read the new value first and then fell
// behind it, which is what read committed forbids; with the old value first it
// may have changed since.
func (k kinds) backwards(seen, missed verdict.Edge) bool {
	t, ok := k.record(seen.To)
	if !ok {
		return false
	}
	w, ok := k.record(seen.From)
	if !ok {
		return false
	}
	at := ReadOf(t, seen.Key, w)
	if at < 0 {
		return false
	}
	if seen.Key == missed.Key {
		// One key read twice: the old value comes after.
		return lastOtherRead(t, missed.Key, w) > at
	}
	return FirstRead(t, missed.Key) > at
}

// loses tells whether two transactions updated one key without either seeing
// the other: one write order and one anti-dependency on that key, or two
// anti-dependencies between transactions that write a common key.
func (k kinds) loses(s shape) bool {
	a, b := s.edges[0], s.edges[1]
	switch {
	case a.Type == verdict.RW && b.Type == verdict.RW:
		return a.Key == b.Key || k.commonWrite(a.From, a.To)
	case a.Type == verdict.WW && b.Type == verdict.RW, a.Type == verdict.RW && b.Type == verdict.WW:
		if a.Type == verdict.RW {
			a, b = b, a
		}
		return !reads(a) && (a.Key == b.Key || eitherWay(a)) // who read what it overwrote has seen it
	}
	return false
}

// eitherWay tells whether the order of two writes of a key is known only because with the
// opposite one the first would have missed the second: neither saw the other.
func eitherWay(e verdict.Edge) bool {
	if e.Why != verdict.ByOrder || len(e.Because) != 2 {
		return false
	}
	s, ok := Supposed(e)
	return ok && s.Type == verdict.WW && s.From == e.To && s.To == e.From &&
		slices.ContainsFunc(e.Because, func(b verdict.Edge) bool {
			return b.Type == verdict.RW && b.From == e.From &&
				b.To == e.To
		})
}

// diverges tells whether a lost update is MTC's divergence: its two transactions read
// one version of a key and both overwrote it.
func (k kinds) diverges() bool {
	if k.v.Kind == verdict.Divergence {
		return true
	}
	if k.v.Kind != verdict.Cycle || len(k.v.Cycle) != 2 {
		return false
	}
	key := k.v.Cycle[0].Key
	a, found := k.record(k.v.Cycle[0].From)
	b, ok := k.record(k.v.Cycle[0].To)
	return found && ok && updates(a, key) && updates(b, key) &&
		a.Ops[FirstRead(a, key)].Value == b.Ops[FirstRead(b, key)].Value
}

// serializationName names cycles with adjacent anti-dependencies: no snapshot
// is wrong, yet there is no serial order.
func (k kinds) serializationName(s shape) string {
	if len(s.edges) == 2 {
		return "write-skew"
	}
	if len(s.edges) == 3 && s.rw == 2 && s.wr == 1 {
		for _, e := range s.edges {
			if t, ok := k.record(e.To); reads(e) && ok && readsOnly(t) {
				return "read-only-anomaly"
			}
		}
	}
	return "serialization-cycle"
}

// phenomena are Adya's, as Elle orders them, from bad to less bad.
var phenomena = []string{"G0", "G1c", "G-single", "G-nonadjacent", "G2-item"}

// phenomenonOf is Adya's name of a cycle; realTime if its proof needs a clock
// anywhere.
func phenomenonOf(s shape, realTime bool) string {
	var p string
	switch {
	case s.rw == 0 && s.wr == 0:
		p = "G0"
	case s.rw == 0:
		p = "G1c"
	case s.rw == 1:
		p = "G-single"
	case s.adjacent == 0:
		p = "G-nonadjacent"
	default:
		p = "G2-item"
	}
	return suffixed(p, realTime, s.so > 0)
}

// suffixed is a phenomenon with Elle's suffix; the clock goes before the
// session.
func suffixed(p string, realTime, process bool) string {
	switch {
	case realTime:
		return p + "-realtime"
	case process:
		return p + "-process"
	}
	return p
}

// phenomenon is the place of a phenomenon, suffix or not, in phenomena.
func phenomenon(adya string) int {
	base, _ := unsuffixed(adya)
	return slices.Index(phenomena, base)
}

// reasons are the cycles that the reason of an edge consists of.
func reasons(e verdict.Edge) [][]verdict.Edge {
	if len(e.Because) == 0 {
		return e.Others
	}
	return append([][]verdict.Edge{e.Because}, e.Others...)
}

// clocked tells whether an edge, or a reason of one, is by the clock.
func (k kinds) clocked(edges []verdict.Edge, depth int) bool {
	for _, e := range edges {
		if e.Type == verdict.RT || e.Why == verdict.ByClock {
			return true
		}
		if *k.clocks--; depth >= becauseDepth || *k.clocks < 0 {
			continue
		}
		if slices.ContainsFunc(reasons(e), func(c []verdict.Edge) bool { return k.clocked(c, depth+1) }) {
			return true
		}
	}
	return false
}
