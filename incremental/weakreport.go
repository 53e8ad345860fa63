package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
)

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
	x := newExhibits(e.h, e.main)
	inferred, at := 0, 0
	for i, ed := range v.Cycle {
		x.weakEdge(path, v.Level, ed)
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
		back := verdict.Edge{From: e.h.txnOf(ed.From), To: e.h.txnOf(ed.To), Type: verdict.WW, Key: e.h.nameOf(ed.Key),
			Why: verdict.ByCase}
		out.Cycle = e.weakEdges(path, v.Level, path(v.Level, ed.From, ed.By))
		out.Cycle = append(out.Cycle, verdict.Edge{From: e.h.txnOf(ed.By), To: e.h.txnOf(ed.From), Type: verdict.RW,
			Key: e.h.nameOf(ed.Key),
			Why: verdict.ByOrder, Because: append(e.weakEdges(path, v.Level, way), back)})
	} else {
		out.Cycle = e.weakEdges(path, v.Level, v.Cycle)
	}
	out.Txns, out.Exhibits = along(out.Cycle), x.list()
	return out
}

// weakEdges names the transactions and keys of a checker's edges.
func (e *Engine) weakEdges(path visibly, l weak.Level, way []weak.Edge) []verdict.Edge {
	var out []verdict.Edge
	for _, ed := range way {
		v := verdict.Edge{From: e.h.txnOf(ed.From), To: e.h.txnOf(ed.To)}
		if ed.Kind != weak.SO {
			v.Key = e.h.nameOf(ed.Key)
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
				verdict.Edge{From: e.h.txnOf(ed.By), To: v.From, Type: verdict.RW, Key: v.Key, Why: verdict.ByCase})
		}
		out = append(out, v)
	}
	return out
}

// weakEdge keeps what makes the edge known.
func (x *exhibits) weakEdge(path visibly, l weak.Level, ed weak.Edge) {
	x.member(ed.From)
	x.member(ed.To)
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
		x.showOrder(ed.Key)
	case weak.Inferred:
		x.write(ed.From, ed.Key)
		x.write(ed.To, ed.Key)
		x.read(ed.By, ed.Key)
		for _, p := range path(l, ed.From, ed.By) {
			x.weakEdge(path, l, p)
		}
	}
}
