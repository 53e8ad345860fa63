package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// anomaly is a read that no level allows.
type anomaly struct {
	kind  verdict.Kind
	index ordinal       // who read
	cell  cellID        // what
	by    verdict.TxnID // who wrote it, or whose list or appends it contradicts, or NoTxn
}

// anomaly is one as a violation.
func (ev *evidence) anomaly(a anomaly) (v verdict.Violation) {
	switch a.kind {
	case verdict.ThinAirRead:
		v = ev.thinAir(a.index, a.cell)
	case verdict.IncompatibleOrder:
		v = ev.incompatible(a)
	default:
		v = ev.readAnomaly(a)
	}
	slices.SortFunc(v.Exhibits, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	return v
}

func (ev *evidence) readAnomaly(a anomaly) verdict.Violation {
	reader, cl := ev.h.txns.At(a.index).id, ev.h.cells.At(a.cell)
	key := ev.h.nameOf(cl.key)
	v := verdict.Violation{Kind: a.kind, Level: weakestBroken(a.kind), Txns: []verdict.TxnID{reader}, Key: key,
		Read:     ev.h.place(a.index, a.cell),
		Exhibits: []verdict.Exhibit{{Txn: reader, All: []string{key}}}}
	ev.showOtherReads(&v, a.index, a.cell)
	if a.kind == verdict.FutureRead || ev.h.initial(cl.key) == record.InitialAny && cl.unmade() {
		ev.showWriters(&v, a.cell)
		ev.showInitial(&v, cl.key)
	}
	if a.by != verdict.NoTxn {
		v.Txns = append(v.Txns, a.by)
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: a.by, Writes: []string{key}})
	}
	return v
}

// thinAir is a read of a value that nobody wrote and that the key did not
// hold at first: another reader saw it hold something else.
func (ev *evidence) thinAir(index ordinal, c cellID) verdict.Violation {
	cl := ev.h.cells.At(c)
	key := ev.h.nameOf(cl.key)
	reader := ev.h.txns.At(index).id
	v := verdict.Violation{Kind: verdict.ThinAirRead, Level: verdict.G1, Txns: []verdict.TxnID{reader}, Key: key,
		Read:     ev.h.place(index, c),
		Exhibits: []verdict.Exhibit{{Txn: reader, Reads: []string{key}}}}
	if ev.h.perKey.At(cl.key).isListKey() { // the read may follow an own append
		v.Exhibits[0] = verdict.Exhibit{Txn: reader, All: []string{key}}
		v.Exhibits = append(v.Exhibits, ev.h.perKey.At(cl.key).changes(key))
		if cl.about&isList != 0 { // the other elements are not thin air
			for _, el := range ev.h.elementsOf(c).elements {
				if w := ev.h.cells.At(el).final; w != none {
					v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: ev.h.txns.At(w).id, Writes: []string{key}})
				}
			}
		}
	}
	if p := ev.h.perKey.At(cl.key); ev.h.isNothing(c) && p.written { // else it would be an empty list
		v.Exhibits = append(v.Exhibits, p.changes(key))
	}
	ev.showOtherReads(&v, index, c)
	ev.showWriters(&v, c)
	ev.showInitial(&v, cl.key)
	return v
}

// incompatible is two transactions whose lists of a key can't both be prefixes of one, or whose elements stand in an
// order that one of them did not append.
func (ev *evidence) incompatible(a anomaly) verdict.Violation {
	reader, k := ev.h.txns.At(a.index).id, ev.h.cells.At(a.cell).key
	key := ev.h.nameOf(k)
	v := verdict.Violation{Kind: a.kind, Level: verdict.G1, Txns: []verdict.TxnID{reader, a.by}, Key: key, Read: -1,
		Exhibits: []verdict.Exhibit{{Txn: reader, All: []string{key}}, {Txn: a.by, All: []string{key}}}}
	if c := ev.h.perKey.At(k).changer; c != reader && c != a.by { // it is a list
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: c, Writes: []string{key}})
	}
	return v
}

// divergence:  slot and other read one version and both overwrote it
// (MTC, Definition of DIVERGENCE): one of the updates is lost.
func (ev *evidence) divergence(slot, other version.Slot, v version.ID) verdict.Violation {
	key := ev.h.nameOf(ev.g.main.tab.At(v).Key)
	a, b := ev.h.txnOf(other), ev.h.txnOf(slot)
	viol := verdict.Violation{Kind: verdict.Divergence, Level: weakestBroken(verdict.Divergence),
		Txns: []verdict.TxnID{a, b}, Key: key, Read: -1,
		Cycle: []verdict.Edge{
			{From: a, To: b, Type: verdict.WW, Key: key, Why: verdict.ByCase},
			{From: b, To: a, Type: verdict.RW, Key: key, Why: verdict.ByOverwrite},
		}}
	x := newExhibits(ev.h, ev.g.main)
	for _, s := range [2]version.Slot{other, slot} {
		x.write(s, ev.g.main.tab.At(v).Key)
		x.read(s, ev.g.main.tab.At(v).Key)
	}
	x.source(v) // slot's own read was withdrawn
	viol.Exhibits = x.list()
	return viol
}

// missed: slot late, which wrote the key of first too, did not see
// first in what it read, though a list shows that first is before its own.
func (ev *evidence) missed(late version.Slot, first version.ID) verdict.Violation {
	k, w := ev.g.main.tab.At(first).Key, ev.g.main.tab.At(first).Writer
	key := ev.h.nameOf(k)
	a, b := ev.h.txnOf(late), ev.h.txnOf(w)
	viol := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Txns: []verdict.TxnID{a, b}, Key: key, Read: -1,
		Cycle: []verdict.Edge{
			{From: a, To: b, Type: verdict.RW, Key: key, Why: verdict.ByList},
			{From: b, To: a, Type: verdict.WW, Key: key, Why: verdict.ByList},
		}}
	x := newExhibits(ev.h, ev.g.main)
	x.all(late, k)
	x.write(w, k)
	x.all(ev.h.txns.At(ev.h.listOf(k).reader).slot, k)
	viol.Exhibits = x.list()
	return viol
}
