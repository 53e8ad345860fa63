package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// becauseDepth bounds how deep reasons of reasons are followed, reasonsMax how
// many of their edges. Reasons may share parts, so that following all of them
// could take exponential time; what lies deeper is taken to need the level that
// the engine checked.
const (
	becauseDepth = 4
	reasonsMax   = 50_000
)

// strength is the weakest level that a cycle contradicts: what its shape
// contradicts, or more if the reason of an edge needs more. With commits and
// starts as the ends of edges (design, section 3):
//
//   - so, wr: a cycle of these is one of information flow; g1 forbids it.
//   - ww not implied by a read: part of the commit order, which rc and up have.
//   - one rw, the rest so and wr: the reader misses what it must see. At rc
//     only what it saw itself, earlier in the same transaction; at ra what the
//     transactions it saw, or follows in its session, wrote; at cc what any
//     transaction before it wrote.
//   - rw always after so or wr: the commit order's prefix is torn: pc.
//   - rw after ww: two writers of a key overlapped: si.
//   - rw after rw: snapshots are fine, a serial order there is none: ser.
//   - rt: the same, for the levels that keep real time.
func (k kinds) strength(s shape, name string, depth int) verdict.Level {
	l := shapeStrength(s, name)
	for _, e := range s.edges {
		l = stronger(l, k.reasonStrength(e, depth))
	}
	return l
}

// checked is the level that the engine checked.
func (k kinds) checked() verdict.Level { return sequential(k.v.Level) }

func shapeStrength(s shape, name string) verdict.Level {
	switch {
	case s.rt > 0 && s.adjacent > 0:
		return verdict.SSER
	case s.rt > 0:
		return verdict.StrongSI
	case name == "lost-update":
		return verdict.SI
	case s.rw == 0 && s.ww == 0:
		return verdict.G1
	case s.rw == 0:
		return verdict.RC
	case s.adjacent > 0:
		return verdict.SER
	case s.grounded < s.rw:
		return verdict.SI
	case s.rw > 1 || s.ww > 0:
		return verdict.PC
	case name == "non-monotonic-read":
		return verdict.RC
	case name == "causality-violation":
		return verdict.CC
	}
	return verdict.RA
}

// reasonStrength is the weakest level at which an edge is known.
func (k kinds) reasonStrength(e verdict.Edge, depth int) verdict.Level {
	*k.levels--
	switch {
	case *k.levels < 0:
		return k.checked()
	case e.Why == verdict.ByClock:
		return verdict.StrongSI
	case e.Why == verdict.ByElimination:
		return k.eliminationStrength(e, depth)
	case e.Why == verdict.ByInitial && snapshots(k.v.Level) && !k.initial(e):
		// The version is not the initial one, but of the unbroken run of updates
		// that begins with it: a rule of snapshot isolation.
		return verdict.SI
	case e.Why != verdict.ByOrder:
		// Session, value, overwriting, initial versions and the order of a list
		// hold at every level, and a case is a case at every level.
		return verdict.G1
	case len(e.Because) == 0 || depth >= becauseDepth:
		return k.checked()
	}
	s := shapeOf(e.Because)
	l := shapeStrength(s, k.nameOf(s))
	opposite, found := Supposed(e)
	if snapshots(k.v.Level) && (!found || !k.exactly(e, opposite)) {
		// The versions at the two ends of the supposed edge are not those of e,
		// but of the same unbroken runs of updates. That nothing comes between
		// two updates of a run is a rule of snapshot isolation.
		l = stronger(l, verdict.SI)
	}
	for _, b := range e.Because {
		if !found || b.From != opposite.From || b.To != opposite.To || b.Type != opposite.Type {
			l = stronger(l, k.reasonStrength(b, depth+1))
		}
	}
	return l
}

// initial tells whether an edge by the initial version is about that version
// itself, which its reader read.
func (k kinds) initial(e verdict.Edge) bool {
	t, ok := k.record(e.From)
	return e.Type == verdict.RW && (!ok || len(k.updaters(t, e.Key)) == 0)
}

// updaters are the transactions of the violation that read a key and then wrote
// what t read of it first.
func (k kinds) updaters(t *record.Transaction, key string) []verdict.TxnID {
	at := FirstRead(t, key)
	if at < 0 {
		return nil
	}
	var out []verdict.TxnID
	for _, id := range slices.Concat(k.v.Txns, k.v.Evidence) {
		w, ok := k.record(id)
		if !ok || w.ID == t.ID || !slices.Contains(w.Ops, record.Op{Kind: record.Write, Key: key, Value: t.Ops[at].Value}) {
			continue
		}
		if updates(w, key) {
			out = append(out, id)
		}
	}
	return out
}

// updates tells whether t read a key and then wrote it.
func updates(t *record.Transaction, key string) bool {
	at := FirstRead(t, key)
	return at >= 0 && at < slices.IndexFunc(t.Ops, func(op record.Op) bool { return op.Kind.Writes() && op.Key == key })
}

// Updater is the transaction of a violation that wrote, having read the key
// before, what the reader of an edge by the initial version read; false if
// the reader read the initial version itself.
func Updater(v verdict.Violation, e verdict.Edge, lookup Lookup) (verdict.TxnID, bool) {
	t, ok := lookup.Find(e.From)
	if !ok {
		return 0, false
	}
	us := kinds{v: v, lookup: lookup}.updaters(t, e.Key)
	if len(us) == 0 {
		return 0, false
	}
	return us[0], true
}

// eliminationStrength is the weakest level at which all other writers of what
// was read are ruled out.
func (k kinds) eliminationStrength(e verdict.Edge, depth int) verdict.Level {
	if len(e.Others) == 0 || depth >= becauseDepth {
		return k.checked()
	}
	l := verdict.G1
	for _, c := range e.Others {
		s := shapeOf(c)
		l = stronger(l, shapeStrength(s, k.nameOf(s)))
		for _, b := range c {
			l = stronger(l, k.reasonStrength(b, depth+1))
		}
	}
	return l
}

// Supposed is the edge in the reason of an inferred edge that is the opposite
// order, which was supposed and leads to a contradiction: the order of two
// writes, or that a reader of the one missed the other. False if the reason has
// none.
func Supposed(e verdict.Edge) (verdict.Edge, bool) {
	for _, b := range e.Because {
		if b.Type == verdict.WW && b.Key == e.Key && (b.Why == verdict.ByCase || b.From == e.To && b.To == e.From) {
			return b, true
		}
	}
	for _, b := range e.Because {
		if b.Type == verdict.RW && b.Key == e.Key && b.Why == verdict.ByCase {
			return b, true
		}
	}
	return verdict.Edge{}, false
}

// Exactly tells whether the order that is supposed in the reason of an inferred
// edge is between the very versions that the edge is about; true if there is none.
func Exactly(e verdict.Edge, lookup Lookup) bool {
	s, ok := Supposed(e)
	return !ok || kinds{lookup: lookup}.exactly(e, s)
}

// exactly tells whether a supposed order is between the very versions that e is
// about.
func (k kinds) exactly(e, supposed verdict.Edge) bool {
	return k.startsAt(supposed, e.To) && k.startsAt(e, supposed.To)
}

// startsAt tells whether the first of the two versions that an edge is about is
// that of a transaction: what From wrote or, of an anti-dependency, what it read.
func (k kinds) startsAt(e verdict.Edge, writer verdict.TxnID) bool {
	if e.Type != verdict.RW {
		return e.From == writer
	}
	reader, ok := k.record(e.From)
	w, found := k.record(writer)
	return ok && found && ReadOf(reader, e.Key, w) >= 0
}
