package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// readAnomaly reports a read that no level allows.
func (r *resolver) readAnomaly(kind verdict.Kind, index ordinal, c cellID, writer verdict.TxnID) {
	if r.h.txns.At(index).doubt == uncertain {
		r.suspend(index, func() { r.readAnomaly(kind, index, c, writer) })
		return
	}
	reader := r.h.txns.At(index).id
	key := r.h.nameOf(r.h.cells.At(c).key)
	v := verdict.Violation{Kind: kind, Level: weakestBroken(kind), Txns: []verdict.TxnID{reader}, Key: key,
		Read:     r.h.place(index, c),
		Exhibits: []verdict.Exhibit{{Txn: reader, All: []string{key}}}}
	r.ev.showOtherReads(&v, index, c)
	if cl := r.h.cells.At(c); kind == verdict.FutureRead || r.opt.Initial == record.InitialAny && r.h.unmade(cl) {
		r.ev.showWriters(&v, c)
		r.ev.showInitial(&v, cl.key)
	}
	if writer != verdict.NoTxn {
		v.Txns = append(v.Txns, writer)
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: writer, Writes: []string{key}})
	}
	r.reportRead(v)
}

// reportRead sorts the exhibits of a violation and reports it.
func (r *resolver) reportRead(v verdict.Violation) {
	slices.SortFunc(v.Exhibits, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	r.out.report(v)
}

// thinAir reports a read of a value that nobody wrote and that the key did not
// hold at first: another reader saw it hold something else.
func (r *resolver) thinAir(index ordinal, c cellID) {
	if r.h.txns.At(index).doubt == uncertain {
		r.suspend(index, func() { r.thinAir(index, c) })
		return
	}
	cl := r.h.cells.At(c)
	key := r.h.nameOf(cl.key)
	reader := r.h.txns.At(index).id
	v := verdict.Violation{Kind: verdict.ThinAirRead, Level: verdict.G1, Txns: []verdict.TxnID{reader}, Key: key,
		Read:     r.h.place(index, c),
		Exhibits: []verdict.Exhibit{{Txn: reader, Reads: []string{key}}}}
	if r.h.perKey.At(cl.key).isListKey() { // the read may follow an own append
		v.Exhibits[0] = verdict.Exhibit{Txn: reader, All: []string{key}}
		v.Exhibits = append(v.Exhibits, r.h.perKey.At(cl.key).changes(key))
		if cl.about&isList != 0 { // the other elements are not thin air
			for _, el := range r.h.elementsOf(c).elements {
				if w := r.h.cells.At(el).final; w != none {
					v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: r.h.txns.At(w).id, Writes: []string{key}})
				}
			}
		}
	}
	if p := r.h.perKey.At(cl.key); r.h.isNothing(c) && p.written { // else it would be an empty list
		v.Exhibits = append(v.Exhibits, p.changes(key))
	}
	r.ev.showOtherReads(&v, index, c)
	r.ev.showWriters(&v, c)
	r.ev.showInitial(&v, cl.key)
	r.reportRead(v)
}

// divergence reports that slot and other read one version and both overwrote it
// (MTC, Definition of DIVERGENCE): one of the updates is lost.
func (r *resolver) divergence(slot, other version.Slot, v version.ID) {
	key := r.h.nameOf(r.g.main.tab.At(v).Key)
	a, b := r.h.txnOf(other), r.h.txnOf(slot)
	viol := verdict.Violation{Kind: verdict.Divergence, Level: weakestBroken(verdict.Divergence),
		Txns: []verdict.TxnID{a, b}, Key: key, Read: -1,
		Cycle: []verdict.Edge{
			{From: a, To: b, Type: verdict.WW, Key: key, Why: verdict.ByCase},
			{From: b, To: a, Type: verdict.RW, Key: key, Why: verdict.ByOverwrite},
		}}
	x := newExhibits(r.h, r.g.main)
	for _, s := range [2]version.Slot{other, slot} {
		x.write(s, r.g.main.tab.At(v).Key)
		x.read(s, r.g.main.tab.At(v).Key)
	}
	x.source(v) // slot's own read was withdrawn
	viol.Exhibits = x.list()
	r.out.report(viol)
}
