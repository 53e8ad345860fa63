package app

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/wire"
)

// told remembers which anomalies have an alert, so that one which is found again,
// by another level or in the next segment, is not told again. It holds the last
// toldMax to 2*toldMax of them, in two generations. It is part of a history's
// state, and so of its checkpoint: whether an anomaly is new must not depend on
// whether the monitor was started again. Nor must whether a level was violated.
type told struct{ generations[toldKey, byte] }

// generations are what was put last, in two of them: the older one goes when the other one is full.
type generations[K comparable, V any] struct{ cur, old map[K]V }

func (g *generations[K, V]) get(k K) (V, bool) {
	if v, ok := g.cur[k]; ok {
		return v, true
	}
	v, ok := g.old[k]
	return v, ok
}

// put puts a value; with so many a generation is full, and of the one before only what stays does.
func (g *generations[K, V]) put(k K, v V, most int, stays func(V) bool) {
	if g.cur == nil {
		g.cur = map[K]V{}
	}
	if g.cur[k] = v; len(g.cur) >= most {
		maps.DeleteFunc(g.old, func(_ K, v V) bool { return !stays(v) })
		g.cur, g.old = g.old, g.cur
	}
}

// toldKey is a part of a hash of what identifies an anomaly, or of an alert's ID.
type toldKey [16]byte

// toldMax is how many are remembered at least: far more than a segment has,
// unless the database does not isolate at all.
const toldMax = 4096

// sharesMax is how many shares make enough of a kind: each that is added is one, or as many as its part
// of what all may take.
const sharesMax = 128

// shareOf is the share of something that takes n of all that there is, from 1 to sharesMax.
func shareOf(n, all int) byte { return byte(min(sharesMax, 1+n*sharesMax/all)) }

// enough tells whether enough was added of a kind.
func (t *told) enough(kind string) bool {
	n, _ := t.get(toldHash("kind", kind))
	return n >= sharesMax
}

// add adds to a kind what one took. (A kind that is no longer remembered begins anew.)
func (t *told) add(kind string, share byte) {
	k := toldHash("kind", kind)
	n, _ := t.get(k)
	t.put(k, byte(min(sharesMax, int(n)+int(share))))
}

// toldID is the value of an alert's ID, toldBroken that of a level that an alert says is
// broken, toldDoubted stands for what alerts of another configuration say; others are levels.
const (
	toldID      = 0xff
	toldBroken  = 0xfe
	toldDoubted = 0xfd
)

func newTold() *told {
	return &told{generations[toldKey, byte]{map[toldKey]byte{}, map[toldKey]byte{}}}
}

func toldHash(kind, what string) (k toldKey) {
	sum := sha256.Sum256([]byte(kind + " " + what))
	copy(k[:], sum[:])
	return k
}

func (t *told) put(k toldKey, v byte) {
	t.generations.put(k, v, toldMax, func(v byte) bool { return v == toldBroken || v == toldDoubted })
}

// covered tells whether an anomaly has an alert already that says that it breaks
// this level: what breaks a level breaks those that imply it, each of which may
// find it for itself.
func (t *told) covered(same string, at verdict.Level) bool {
	level, ok := t.get(toldHash("same", same))
	return ok && at.Implies(verdict.Level(level))
}

// cover notes the alert that was made of an anomaly; false if there is that alert
// already.
func (t *told) cover(same string, o outcome) bool {
	t.put(toldHash("same", same), byte(o.level))
	again := t.has(o.id)
	t.put(toldHash("id", o.id), toldID)
	return !again
}

// has tells whether an alert is of this history, by its ID, unless that is forgotten.
func (t *told) has(id string) bool {
	_, ok := t.get(toldHash("id", id))
	return ok
}

// breaks notes the levels that an alert says are broken: they remain so, whatever comes.
func (t *told) breaks(levels []string) {
	for _, l := range levels {
		if !t.broken(l) {
			t.put(toldHash("broken", l), toldBroken)
		}
	}
}

// broken tells whether an alert says so of a level.
func (t *told) broken(level string) bool {
	_, ok := t.get(toldHash("broken", level))
	return ok
}

// anew forgets all but which alerts there are, and which levels they say are broken: a history that is judged anew
// numbers its segments anew, so that its kinds are others.
func (t *told) anew() {
	t.keep(func(v byte) bool { return v >= toldDoubted })
}

// doubt forgets all but which alerts there are: they are of another configuration, under which the same is perhaps not
// wrong. What is, is proved again.
func (t *told) doubt() {
	t.keep(func(v byte) bool { return v == toldID })
	t.put(toldHash("doubted", ""), toldDoubted)
}

func (t *told) keep(what func(byte) bool) {
	for _, m := range []map[toldKey]byte{t.cur, t.old} {
		maps.DeleteFunc(m, func(_ toldKey, v byte) bool { return !what(v) })
	}
}

// doubted tells whether there may be alerts of another configuration.
func (t *told) doubted() bool {
	_, ok := t.get(toldHash("doubted", ""))
	return ok
}

// code lists both generations.
func (t *told) code(c *wire.Coder) {
	for _, m := range []map[toldKey]byte{t.old, t.cur} {
		codeByKey(c, m, toldMax, 1, func(v *byte) { wire.Octet(c, v) })
	}
}

// codeByKey codes at most so many values, each of at least so many bytes, in the order of their keys.
func codeByKey[V any](c *wire.Coder, m map[toldKey]V, most, each int, value func(*V)) {
	keys := slices.SortedFunc(maps.Keys(m), func(x, y toldKey) int { return bytes.Compare(x[:], y[:]) })
	wire.List(c, &keys, most, len(toldKey{})+each, func(k *toldKey) {
		c.Raw(k[:])
		v := m[*k]
		if value(&v); c.Reading {
			m[*k] = v
		}
	})
}
