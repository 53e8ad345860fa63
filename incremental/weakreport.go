package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

func (e *Engine) partial() bool { return e.opt.Coverage == record.CoveragePartial }

// visibly is how one transaction is visible to another; see weak.Checker.Path.
type visibly func(l weak.Level, from, to version.Slot) []weak.Edge

// weakViolation puts a checker's finding in terms of transactions.
//
// An inferred edge t2 → t1 is a version order that is known because the opposite
// one closes a cycle: were t1's version before t2's, t3, which t2 is visible to
// and which read t1's, would be before t2. A cycle with one such edge is told as
// that cycle instead, as t1's version is indeed before t2's:
//
//	t1 ⇝ t2 → t1 (inferred)        becomes        t2 ⇝ t3 —rw→ t2
func (e *Engine) weakViolation(path visibly, v weak.Violation, level verdict.Level) verdict.Violation {
	out := verdict.Violation{Kind: verdict.Cycle, Level: level, Read: -1}
	x := weakExhibits{e: e, parts: map[version.Slot]*verdict.Exhibit{}}
	inferred, at := 0, 0
	for i, ed := range v.Cycle {
		x.edge(path, v.Level, ed)
		if ed.Kind == weak.Inferred {
			inferred++
			at = i
		} else if ed.Kind == weak.Listed {
			inferred += 2
		}
	}
	if inferred == 1 {
		ed := v.Cycle[at]
		way := slices.Concat(v.Cycle[at+1:], v.Cycle[:at]) // t1 ⇝ t2
		back := verdict.Edge{From: e.txnOf(ed.From), To: e.txnOf(ed.To), Type: verdict.WW, Key: e.in.nameOf(ed.Key), Why: verdict.ByCase}
		out.Cycle = e.weakEdges(path, v.Level, path(v.Level, ed.From, ed.By))
		out.Cycle = append(out.Cycle, verdict.Edge{From: e.txnOf(ed.By), To: e.txnOf(ed.From), Type: verdict.RW, Key: e.in.nameOf(ed.Key),
			Why: verdict.ByOrder, Because: append(e.weakEdges(path, v.Level, way), back)})
	} else {
		out.Cycle = e.weakEdges(path, v.Level, v.Cycle)
	}
	seen := make(map[verdict.TxnID]bool, len(out.Cycle)) // there may be a hundred thousand
	for _, ed := range out.Cycle {
		if !seen[ed.From] {
			seen[ed.From] = true
			out.Txns = append(out.Txns, ed.From)
		}
	}
	out.Exhibits = x.list()
	return out
}

// weakEdges names the transactions and keys of a checker's edges.
func (e *Engine) weakEdges(path visibly, l weak.Level, way []weak.Edge) []verdict.Edge {
	var out []verdict.Edge
	for _, ed := range way {
		v := verdict.Edge{From: e.txnOf(ed.From), To: e.txnOf(ed.To)}
		if ed.Kind != weak.SO {
			v.Key = e.in.nameOf(ed.Key)
		}
		switch ed.Kind {
		case weak.SO:
			v.Type, v.Why = verdict.SO, verdict.BySession
		case weak.WR:
			v.Type, v.Why = verdict.WR, verdict.ByValue
		case weak.Anti:
			v.Type, v.Why = verdict.RW, verdict.ByInitial
		case weak.Listed:
			v.Type, v.Why = verdict.WW, verdict.ByList
		case weak.Inferred:
			v.Type, v.Why = verdict.WW, verdict.ByOrder
			v.Because = append(e.weakEdges(path, l, path(l, ed.From, ed.By)),
				verdict.Edge{From: e.txnOf(ed.By), To: v.From, Type: verdict.RW, Key: v.Key, Why: verdict.ByCase})
		}
		out = append(out, v)
	}
	return out
}

// weakExhibits collect the operations that a proof needs.
type weakExhibits struct {
	e     *Engine
	parts map[version.Slot]*verdict.Exhibit
	lists map[version.Key]bool
	whole map[ordinal]bool  // uncertain transactions of which all is kept
	other []verdict.Exhibit // of transactions without a slot
}

func (x *weakExhibits) of(s version.Slot) *verdict.Exhibit {
	p := x.parts[s]
	if p == nil {
		p = &verdict.Exhibit{Txn: x.e.txnOf(s)}
		x.parts[s] = p
	}
	return p
}

// edge keeps what makes the edge known.
func (x *weakExhibits) edge(path visibly, l weak.Level, ed weak.Edge) {
	x.of(ed.From)
	x.of(ed.To)
	switch ed.Kind {
	case weak.WR:
		x.write(ed.From, ed.Key)
		x.read(ed.To, ed.Key)
	case weak.Anti:
		x.read(ed.From, ed.Key)
		x.write(ed.To, ed.Key)
	case weak.Listed:
		x.write(ed.From, ed.Key)
		x.write(ed.To, ed.Key)
		x.longest(ed.Key)
	case weak.Inferred:
		x.write(ed.From, ed.Key)
		x.write(ed.To, ed.Key)
		x.read(ed.By, ed.Key)
		for _, p := range path(l, ed.From, ed.By) {
			x.edge(path, l, p)
		}
	}
}

func (x *weakExhibits) write(s version.Slot, k version.Key) {
	p, name := x.of(s), x.e.in.nameOf(k)
	p.Writes = append(p.Writes, name)
	if x.e.in.perKey.At(k).isListKey() {
		p.All = append(p.All, name)
	}
}

// read keeps a transaction's reads of k, and who wrote what they found.
func (x *weakExhibits) read(s version.Slot, k version.Key) {
	p, name := x.of(s), x.e.in.nameOf(k)
	p.Reads = append(p.Reads, name)
	list := x.e.in.perKey.At(k).isListKey()
	if list {
		p.All = append(p.All, name)
		x.longest(k)
	}
	index := x.e.slotTx[s]
	for _, c := range x.e.in.external(index) {
		if x.e.in.cells.At(c).key != k {
			continue
		}
		if list {
			x.elements(c)
			continue
		}
		x.e.in.writersOf(c, func(w ordinal) bool {
			if t := x.e.in.txns.At(w); t.slot != none && w != index {
				x.write(t.slot, k)
				if t.doubt == uncertain {
					x.all(w, t)
				}
			}
			return true
		})
	}
}

// all keeps all of a transaction that may not have taken effect, as any read of
// it may be why it did not, and what that read should not have found.
func (x *weakExhibits) all(index ordinal, t *txn) {
	if x.whole[index] {
		return
	}
	if x.whole == nil {
		x.whole = map[ordinal]bool{}
	}
	x.whole[index] = true
	p := x.of(t.slot)
	for _, c := range slices.Concat(x.e.in.external(index), x.e.in.slab(t.writes)) {
		p.All = append(p.All, x.e.in.nameOf(x.e.in.cells.At(c).key))
	}
	for _, c := range x.e.in.external(index) {
		k := x.e.in.cells.At(c).key
		x.read(t.slot, k)
		if o := x.e.in.others(c); o.aborted != verdict.NoTxn {
			x.other = append(x.other, verdict.Exhibit{Txn: o.aborted, Writes: []string{x.e.in.nameOf(k)}})
		} else if w := o.interOf(index); w != none {
			if t := x.e.in.txns.At(w); t.slot != none {
				x.write(t.slot, k)
			} else { // nobody can have read from it
				x.other = append(x.other, verdict.Exhibit{Txn: t.id, Writes: []string{x.e.in.nameOf(k)}})
			}
		}
		if r := x.e.in.perKey.At(k).reader; r != none && x.e.in.txns.At(r).slot != none && r != index {
			y := x.of(x.e.in.txns.At(r).slot)
			y.Reads = append(y.Reads, x.e.in.nameOf(k))
		}
	}
}

// elements keeps the writers of a list's elements.
func (x *weakExhibits) elements(c cellID) {
	if x.e.in.cells.At(c).about&isList == 0 {
		return
	}
	for _, s := range x.e.shownBy(x.e.in.elementsOf(c)) {
		x.write(s, x.e.in.cells.At(c).key)
	}
}

// longest keeps the longest list of k that was read, which shows the order of its
// elements, or if there is none an append, which shows that it holds lists.
func (x *weakExhibits) longest(k version.Key) {
	if x.lists[k] {
		return
	}
	if x.lists == nil {
		x.lists = map[version.Key]bool{}
	}
	x.lists[k] = true
	if lk := x.e.lists[k]; lk != nil && lk.reader != none {
		x.read(x.e.in.txns.At(lk.reader).slot, k)
		x.elements(lk.cell)
	}
}

// list is the exhibits, by transaction. An appender to each list, which may have
// been aborted, shows what it is.
func (x *weakExhibits) list() []verdict.Exhibit {
	var out []verdict.Exhibit
	for _, p := range x.parts {
		out = append(out, *p)
	}
	out = append(out, x.other...)
	for k := range x.lists {
		out = append(out, x.e.in.perKey.At(k).changes(x.e.in.nameOf(k)))
	}
	return merged(out)
}
