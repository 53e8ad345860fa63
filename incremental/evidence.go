package incremental

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

// evidence puts findings in terms of transactions, with the operations that prove them, and judges those anew that may
// rest on what is no part of their level.
type evidence struct {
	opt  *Options
	h    *history
	g    *graphs
	stop *stopper
}

// vouch adds to the exhibits, for each transaction of unknown outcome among
// them, the read by which it is known to have taken effect, and sets the
// evidence. Where that is of a list, whoever appended an element of it is added too:
// a list of which nobody is seen to have made a part vouches for nothing under complete coverage, which a read
// out of thin air needs. Such a read of another key that rests on one is not proved: the list itself is.
func (ev *evidence) vouch(v *verdict.Violation) (proved bool) {
	proved = true
	exhibit := func(id verdict.TxnID) *verdict.Exhibit {
		at := slices.IndexFunc(v.Exhibits, func(x verdict.Exhibit) bool { return x.Txn == id })
		if at < 0 {
			at = len(v.Exhibits)
			v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: id})
		}
		return &v.Exhibits[at]
	}
	for i := 0; i < len(v.Exhibits); i++ { // grows
		id := int(v.Exhibits[i].Txn)
		if id >= len(ev.h.indexOf) || ev.h.indexOf[id] == none { // at hand, or aborted
			continue
		}
		index := ev.h.indexOf[id]
		by, ok := ev.h.vouchers[index]
		if !ok {
			continue
		}
		c, k := by.cell, ev.h.cells.At(by.cell).key
		key := ev.h.nameOf(k)
		v.Exhibits[i].Writes = append(v.Exhibits[i].Writes, key)
		x := exhibit(ev.h.txns.At(by.index).id)
		if !ev.h.perKey.At(k).isListKey() {
			if c == ev.h.readCell(by.index, k) { // whoever wrote what else it read there need not be known
				x.Reads = append(x.Reads, key)
			} else {
				x.All = append(x.All, key)
			}
			continue
		}
		x.All = append(x.All, key)
		if ev.h.cells.At(c).about&isList == 0 {
			continue
		}
		for _, el := range ev.h.elementsOf(c).elements {
			w := ev.h.others(el).aborted
			if f := ev.h.cells.At(el).final; f != none {
				w = ev.h.txns.At(f).id
			}
			if w == verdict.NoTxn {
				proved = proved && (v.Kind != verdict.ThinAirRead || v.Key == key)
				continue
			}
			x := exhibit(w)
			x.Writes = append(x.Writes, key)
		}
	}
	ev.cite(v)
	return proved
}

// withMakers are exhibits, one a transaction, with what shows of the values that are read in them whether somebody made
// them: the reads of those who put them back, and who made them though it is no candidate. Else what a candidate put
// back would seem to be made by it, and what all of them put back might be what its key held at first.
func (ev *evidence) withMakers(xs []verdict.Exhibit) []verdict.Exhibit {
	known := map[cellID]bool{} // by the exhibits
	var more []verdict.Exhibit
	each := func(f func(index ordinal, c cellID, name string, reads, writes bool)) {
		for _, x := range xs {
			if int(x.Txn) >= len(ev.h.indexOf) || ev.h.indexOf[x.Txn] == none { // at hand, or aborted
				continue
			}
			index := ev.h.indexOf[x.Txn]
			for _, c := range ev.h.external(index) {
				name := ev.h.nameOf(ev.h.cells.At(c).key)
				f(index, c, name, slices.Contains(x.Reads, name) || slices.Contains(x.All, name), slices.Contains(x.Writes, name))
			}
		}
	}
	for again := true; again; xs, more = merged(append(xs, more...)), nil {
		again = false
		each(func(_ ordinal, c cellID, _ string, reads, _ bool) { known[c] = known[c] || reads })
		each(func(index ordinal, c cellID, name string, reads, writes bool) {
			o := ev.h.others(c)
			if known[c] && o.maker != verdict.NoTxn {
				more = append(more, verdict.Exhibit{Txn: o.maker, Writes: []string{name}})
			}
			if !known[c] || reads || !writes || !(ev.h.wroteWhat(index, c) || o.inter == index || o.inter2 == index) {
				return
			}
			again = true
			v := verdict.Violation{Exhibits: []verdict.Exhibit{{Txn: ev.h.txns.At(index).id, Reads: []string{name}}}}
			ev.showOtherReads(&v, index, c)
			more = append(more, v.Exhibits...)
		})
	}
	for i := range xs {
		x := &xs[i]
		for _, keys := range [3]*[]string{&x.Reads, &x.Writes, &x.All} {
			slices.Sort(*keys)
			*keys = slices.Compact(*keys)
		}
	}
	return xs
}

// merged are the exhibits, one a transaction, sorted.
func merged(xs []verdict.Exhibit) []verdict.Exhibit {
	slices.SortStableFunc(xs, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	out := xs[:0]
	for _, x := range xs {
		if n := len(out); n > 0 && out[n-1].Txn == x.Txn {
			out[n-1].Reads = append(out[n-1].Reads, x.Reads...)
			out[n-1].Writes = append(out[n-1].Writes, x.Writes...)
			out[n-1].All = append(out[n-1].All, x.All...)
			out[n-1].Open = append(out[n-1].Open, x.Open...)
			continue
		}
		out = append(out, x)
	}
	return out
}

// showOtherReads adds the writers of what index read of the key of c elsewhere, so
// that these reads are no anomalies of the evidence.
func (ev *evidence) showOtherReads(v *verdict.Violation, index ordinal, c cellID) {
	if _, ok := ev.h.sequences[index]; !ok {
		return
	}
	k := ev.h.cells.At(c).key
	for _, other := range ev.h.external(index) {
		if other != c && ev.h.cells.At(other).key == k {
			ev.showWriters(v, other)
		}
	}
}

// showWriters adds who may have written c.
func (ev *evidence) showWriters(v *verdict.Violation, c cellID) {
	for w := range ev.h.writersOf(c) {
		x, keys := verdict.Exhibit{Txn: ev.h.txns.At(w).id}, []string{ev.h.nameOf(ev.h.cells.At(c).key)}
		if x.Writes = keys; ev.h.cells.At(c).unmade() {
			x.Writes, x.All = nil, keys // it had read it there before
		}
		v.Exhibits = append(v.Exhibits, x)
	}
}

// showInitial adds a reader of the key's initial version, where the declaration
// does not say what it held.
func (ev *evidence) showInitial(v *verdict.Violation, k version.Key) {
	if p := ev.h.perKey.At(k); p.reader != none && (ev.h.initial(k) == record.InitialAny || p.emptied && p.bare()) {
		r := p.reader
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: ev.h.txns.At(r).id, Reads: []string{ev.h.nameOf(k)}})
		if p.initial != none {
			ev.showWriters(v, p.initial)
		}
	}
}

// exhibits collect the operations that a proof needs, of what strand s says.
type exhibits struct {
	h      *history
	s      *strand
	reads  map[version.Slot]map[version.Key]bool
	writes map[version.Slot]map[version.Key]bool
	lists  []cellID          // that were read
	met    map[cellID]int    // in how many reads all other writers of a value were kept; two leave out none
	whole  map[ordinal]bool  // uncertain transactions of which all is kept
	other  []verdict.Exhibit // of transactions without a slot
	// initial: an initial version other than an empty list was read, so that the
	// evidence has to be complete.
	initial bool
}

func newExhibits(h *history, s *strand) *exhibits {
	return &exhibits{h: h, s: s, reads: map[version.Slot]map[version.Key]bool{},
		writes: map[version.Slot]map[version.Key]bool{}, met: map[cellID]int{}}
}

func mark[K comparable](m map[K]map[version.Key]bool, s K, k version.Key) bool {
	if m[s] == nil {
		m[s] = map[version.Key]bool{}
	}
	if m[s][k] {
		return false
	}
	m[s][k] = true
	return true
}

// exhibited are the exhibits of a finding, whose steps are made those that are told.
func (ev *evidence) exhibited(c *check, f *constraint.Violation) *exhibits {
	f.Cycle, f.Because = collapse(c.poly, f.Cycle, f.Because)
	for i := range f.Cases {
		f.Cases[i], _ = collapse(c.poly, f.Cases[i], nil)
	}
	x := newExhibits(ev.h, c.strand)
	for _, list := range append([][]graph.Edge{f.Cycle, f.Rest}, f.Cases...) {
		first := version.Slot(none) // of a run along a session
		for i, ed := range list {
			x.edge(ed, c.poly)
			if ed.Type != verdict.SO {
				continue
			}
			if i == 0 || list[i-1].Type != verdict.SO || c.poly.Parts().Slot(list[i-1].To) != c.poly.Parts().Slot(ed.From) {
				first = c.poly.Parts().Slot(ed.From)
			}
			x.between(first, c.poly.Parts().Slot(ed.To))
		}
	}
	for _, r := range f.Reads {
		x.read(r.Reader, r.Key)
	}
	return x
}

// collapse makes one step of a run of version orders that one list shows, or the log.
func collapse(p *constraint.Polygraph, walk []graph.Edge,
	because map[int][]graph.Edge) ([]graph.Edge, map[int][]graph.Edge) {
	var out []graph.Edge
	kept := map[int][]graph.Edge{}
	for i, ed := range walk {
		if n := len(out); n > 0 && (ed.Why == verdict.ByList || ed.Why == verdict.ByLog) && ed.Type == verdict.WW &&
			out[n-1].Why == ed.Why && out[n-1].Type == verdict.WW && out[n-1].Key == ed.Key &&
			p.Parts().Slot(out[n-1].To) == p.Parts().Slot(ed.From) {
			out[n-1].To = ed.To
			continue
		}
		if b := because[i]; b != nil {
			kept[len(out)] = b
		}
		out = append(out, ed)
	}
	return out, kept
}

// violation puts a polygraph's finding in terms of transactions.
func (ev *evidence) violation(c *check, f *constraint.Violation) verdict.Violation {
	v := verdict.Violation{Kind: verdict.Cycle, Level: c.level, Read: -1,
		ClockDependent: c.timed && f.Assumed && ev.opt.Clock != record.ClockDatabase}
	if len(f.Cycle) == 0 {
		v.Kind = verdict.Unsatisfiable
	}
	t := tellerOf(ev.h, c.poly, f)
	v.Cycle = t.edges(f.Cycle, f.Because, 0)
	for _, cy := range f.Cases {
		v.Cases = append(v.Cases, t.edges(cy, nil, 0))
	}
	v.Txns = along(append([][]verdict.Edge{v.Cycle}, v.Cases...)...)
	return v
}

// along are the transactions of walks, each once.
func along(walks ...[]verdict.Edge) (out []verdict.TxnID) {
	seen := map[verdict.TxnID]bool{} // there may be a hundred thousand
	for _, walk := range walks {
		for _, ed := range walk {
			if !seen[ed.From] {
				seen[ed.From] = true
				out = append(out, ed.From)
			}
		}
	}
	return out
}

// teller puts walks of one finding in terms of transactions.
type teller struct {
	h      *history
	p      *constraint.Polygraph
	others map[graph.Edge][]constraint.Other
	left   int // edges of others' cycles that may still be told
}

// othersDepth bounds how deep the other candidates of reads are told, othersEdges how
// many edges that may be.
const (
	othersDepth = 2
	othersEdges = 2000
)

func tellerOf(h *history, p *constraint.Polygraph, f *constraint.Violation) *teller {
	return &teller{h, p, f.Others, othersEdges}
}

// suspicion is a finding with exhibits. Package alerts proves it, once, from the records; what is asked here is whether
// the engine may go on from it, and how few records are enough.
type suspicion struct {
	*constraint.Violation
	exhibits *exhibits
	enough   bool // the exhibits break the level by themselves; else it takes everything
}

// confirm looks for exhibits that are enough: those that f names if it counts as it is, else what breaks c's level by
// itself.
func (ev *evidence) confirm(c *check, f *constraint.Violation, counts bool) suspicion {
	x := ev.exhibited(c, f)
	p := suspicion{f, x, counts && x.suffice(f)}
	for i := 0; i < 3 && !p.enough && !ev.stop.halted(); i++ { // what it is of; members, then those that they read from
		if i > 0 {
			x.everything()
		} else if f.Whole {
			continue
		}
		var shown *constraint.Violation
		if shown, p.enough = ev.violated(c, x); shown != nil && f.Assumed && !c.timed {
			// It rests on times that are no part of the level. What the exhibits show without them would be found as
			// well, and is what is told.
			p.Violation = shown
			if y := ev.exhibited(c, shown); y.suffice(shown) {
				p.exhibits = y
			}
		}
	}
	return p
}

// cited is a suspicion in terms of transactions, with its evidence.
func (ev *evidence) cited(c *check, p suspicion) verdict.Violation {
	v := ev.violation(c, p.Violation)
	if !p.enough {
		for id := range ev.h.indexOf {
			v.Evidence = append(v.Evidence, verdict.TxnID(id))
		}
		return v
	}
	v.Exhibits = p.exhibits.list()
	ev.cite(&v)
	return v
}

// cite makes the transactions of v's exhibits, and the makers of what these have, its evidence.
func (ev *evidence) cite(v *verdict.Violation) {
	v.Exhibits, v.Evidence = ev.withMakers(v.Exhibits), v.Evidence[:0]
	for _, x := range v.Exhibits {
		v.Evidence = append(v.Evidence, x.Txn)
	}
}

// violated checks the exhibits by themselves at c's level, and tells what is found in them. What the search does not
// show within a budget that is small beside that of a whole history is not shown.
func (ev *evidence) violated(c *check, x *exhibits) (*constraint.Violation, bool) {
	if c.poly.Spent(2) {
		return nil, false
	}
	b := budget.Unlimited()
	b.Stop = ev.stop.halted
	slots := ev.basesFirst(x.slots())
	s, diverges := ev.reread(c, x, slots, b)
	if diverges {
		return nil, true
	}
	s.finish(false)
	p := s.polys[0]
	violated := p.Found > 0 || p.Solve(min(ev.opt.Conflicts, exhibitsConflicts)) == sat.Unsat
	c.poly.Look(stepsEach*(s.tab.Slots()+p.Stats.Conflicts) + int(b.Used()))
	for _, f := range p.TakeFound() {
		f = f.Renamed(func(s version.Slot) version.Slot { return slots[s] }, p.Parts())
		return &f, violated
	}
	return nil, violated
}

// exhibitsConflicts is the budget of the search that judges exhibits by themselves: they are a
// part of what was decided, and where that is too hard, what proves it is the whole. A conflict is about stepsEach
// steps, as is a transaction that is read again.
const exhibitsConflicts, stepsEach = 2000, 64

// reread feeds the exhibits to a new strand for c's level as it is defined: with
// times only if they are part of it. Reads of which not all possible writers are
// kept are left out.
func (ev *evidence) reread(c *check, x *exhibits, slots []version.Slot, b *budget.Budget) (*strand, bool) {
	cfg := ev.g.config(c, c.timed && !c.noTimes, true)
	cfg.Slots = len(slots)
	s := newStrand([]constraint.Config{cfg})
	s.holds = len(x.s.choices) > 0
	s.polys[0].Budget = b.Share()
	s.polys[0].MaxFound = 1 // of a dense history's there may be hundreds, each with a search for why it holds
	renamed := make(map[version.Slot]version.Slot, len(slots))
	chains, fresh := map[sessionID]reach.Chain{}, reach.Chain(0)
	for _, o := range slots {
		t := ev.h.txns.At(ev.h.slotTx[o])
		chain, ok := chains[t.session]
		if !ok || t.base { // a base's is forgotten
			chain = fresh
			fresh++
		}
		f := ev.g.txnFor(t)
		f.Chain = chain
		if t.base {
			f.Base, f.Timed = false, t.timed && !t.open
		} else {
			chains[t.session] = chain
		}
		if t.open {
			f.Prev = ev.renamedPrev(t, renamed)
		}
		renamed[o] = s.add(f, t.lsn, len(x.s.tab.Recorded(o)), len(x.s.tab.Writes(o)))
	}
	versions := map[version.ID]version.ID{}
	tab := &x.s.tab
	for _, o := range slots {
		for _, v := range x.s.tab.Writes(o) {
			if x.writes[o][tab.At(v).Key] {
				versions[v] = s.write(renamed[o], tab.At(v).Key)
			}
		}
	}
	s.tab.Candidates = func(slot version.Slot, k version.Key) []version.ID {
		cands, _ := ev.renamedCandidates(s, x, versions, slots[slot], k)
		return cands
	}
	for _, o := range slots {
		for _, v := range x.s.tab.Recorded(o) {
			if !x.reads[o][tab.At(v).Key] {
				continue
			}
			n, ok := versions[v]
			if !ok {
				if tab.At(v).Kind == version.Written {
					continue
				}
				n = s.source(tab.At(v).Key, tab.At(v).Kind)
				versions[v] = n
			}
			if _, diverges := s.read(renamed[o], n); diverges {
				return s, true
			}
		}
	}
	last := map[version.Key]version.ID{} // the last kept version of what a list shows
	lists := slices.Clone(x.s.lists)
	slices.SortStableFunc(lists, func(a, b succession) int { // a key may be anchored late
		return cmp.Compare(tab.At(b.prev).Kind, tab.At(a.prev).Kind)
	})
	for _, l := range lists {
		k := tab.At(l.v).Key
		if !x.showsOrder(k) {
			continue
		}
		if n, ok := versions[l.prev]; ok {
			last[k] = n
		} else if tab.At(l.prev).Kind == version.Initial {
			last[k] = s.source(k, version.Initial)
			versions[l.prev] = last[k]
		}
		if v, ok := versions[l.v]; ok {
			before, ok := last[k]
			if !ok { // what came before it is not kept
				last[k] = v
			} else if _, _, clash := s.follow(before, v); clash {
				return s, true
			}
		}
	}
	for _, o := range x.s.ruledOut { // what does so is kept; see against
		if slot, ok := renamed[o]; ok && ev.h.txns.At(ev.h.slotTx[o]).doubt == uncertain {
			s.impossible(slot)
		}
	}
	for _, o := range x.s.exclusive {
		a, ok := renamed[o[0]]
		if b, both := renamed[o[1]]; ok && both {
			s.exclude(a, b)
		}
	}
	for _, ch := range x.s.choices {
		if !x.reads[ch.slot][ch.key] || ev.h.reads.Stopped() {
			continue
		}
		if cands, all := ev.renamedCandidates(s, x, versions, ch.slot, ch.key); all {
			s.choose(renamed[ch.slot], ch.key, cands, ch.guarded && ev.h.txns.At(ev.h.slotTx[ch.slot]).doubt == uncertain)
		}
	}
	s.settle()
	return s, false
}

// basesFirst puts the transactions of Engine.Base where their times are.
func (ev *evidence) basesFirst(slots []version.Slot) []version.Slot {
	if ev.h.first != none {
		at := func(s version.Slot) *txn { return ev.h.txns.At(ev.h.slotTx[s]) }
		slices.SortStableFunc(slots, func(a, b version.Slot) int {
			x, y := at(a), at(b)
			switch {
			case x.base && y.base:
				return cmp.Compare(x.end, y.end)
			case x.base:
				return -1
			case y.base:
				return 1
			}
			return 0
		})
	}
	return slots
}

// renamedPrev is the last kept transaction before t, of unknown outcome, in its
// session.
func (ev *evidence) renamedPrev(t *txn, renamed map[version.Slot]version.Slot) version.Slot {
	for i := t.prev; i != none; i = ev.h.txns.At(i).prev {
		if s, ok := renamed[ev.h.txns.At(i).slot]; ok {
			return s
		}
	}
	return none
}

// renamedCandidates are the candidates of a read in a strand that holds the
// exhibits; all tells whether every candidate is among them.
func (ev *evidence) renamedCandidates(s *strand, x *exhibits, versions map[version.ID]version.ID, slot version.Slot,
	k version.Key) (out []version.ID, all bool) {
	all = true
	for _, v := range ev.g.candidatesOf(slot, k) {
		n, ok := versions[v]
		if !ok && x.s.tab.At(v).Kind == version.Initial {
			n, ok = s.source(k, version.Initial), true
			versions[v] = n
		}
		if !ok {
			all = false
			continue
		}
		out = append(out, n)
	}
	written := out
	if len(out) > 0 && s.tab.At(out[0]).Kind == version.Initial {
		written = out[1:]
	}
	s.byLine(written)
	return out, all
}

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
func (ev *evidence) weakViolation(path visibly, v weak.Violation, level verdict.Level) verdict.Violation {
	out := verdict.Violation{Kind: verdict.Cycle, Level: level, Read: -1}
	x := newExhibits(ev.h, ev.g.main)
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
		back := verdict.Edge{From: ev.h.txnOf(ed.From), To: ev.h.txnOf(ed.To), Type: verdict.WW, Key: ev.h.nameOf(ed.Key),
			Why: verdict.ByCase}
		out.Cycle = ev.weakEdges(path, v.Level, path(v.Level, ed.From, ed.By))
		out.Cycle = append(out.Cycle, verdict.Edge{From: ev.h.txnOf(ed.By), To: ev.h.txnOf(ed.From), Type: verdict.RW,
			Key: ev.h.nameOf(ed.Key),
			Why: verdict.ByOrder, Because: append(ev.weakEdges(path, v.Level, way), back)})
	} else {
		out.Cycle = ev.weakEdges(path, v.Level, v.Cycle)
	}
	out.Txns, out.Exhibits = along(out.Cycle), x.list()
	return out
}

// weakEdges names the transactions and keys of a checker's edges.
func (ev *evidence) weakEdges(path visibly, l weak.Level, way []weak.Edge) []verdict.Edge {
	var out []verdict.Edge
	for _, ed := range way {
		v := verdict.Edge{From: ev.h.txnOf(ed.From), To: ev.h.txnOf(ed.To)}
		if ed.Kind != weak.SO {
			v.Key = ev.h.nameOf(ed.Key)
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
			v.Because = append(ev.weakEdges(path, l, path(l, ed.From, ed.By)),
				verdict.Edge{From: ev.h.txnOf(ed.By), To: v.From, Type: verdict.RW, Key: v.Key, Why: verdict.ByCase})
		}
		out = append(out, v)
	}
	return out
}

// member makes a transaction part of the evidence, with no operation. One of
// unknown outcome is in the history because somebody read from it.
func (x *exhibits) member(s version.Slot) {
	if x.reads[s] != nil {
		return
	}
	x.reads[s] = map[version.Key]bool{}
	index := x.h.slotTx[s]
	t := x.h.txns.At(index)
	if !t.open {
		return
	}
	if t.doubt == uncertain {
		x.entirely(index)
	}
	if by, ok := x.h.vouchers[index]; ok {
		k := x.h.cells.At(by.cell).key
		x.write(s, k)
		reader := x.h.txns.At(by.index)
		if reader.slot == none { // it is added later; see vouch
			return
		}
		x.read(reader.slot, k)
		if by.cell != x.h.readCell(by.index, k) || x.open(reader.slot, by.cell) { // it read the key before, or waits for more
			x.other = append(x.other, verdict.Exhibit{Txn: reader.id, All: []string{x.h.nameOf(k)}})
		}
		return
	}
	for _, w := range x.s.tab.Writes(s) {
		for r := range x.s.tab.Readers(w) {
			x.read(r, x.s.tab.At(w).Key)
			return
		}
	}
}

// read keeps s's read of k, and all who may have written what it read, unless these are not known: then it is
// part of no proof.
func (x *exhibits) read(s version.Slot, k version.Key) {
	x.member(s)
	index := x.h.slotTx[s]
	cells := x.h.external(index) // at weak levels it may read a key several times
	known := func(c cellID) bool { return x.h.cells.At(c).key == k && !x.open(s, c) }
	if !slices.ContainsFunc(cells, known) || !mark(x.reads, s, k) {
		return
	}
	if x.h.perKey.At(k).isListKey() {
		for _, v := range x.s.tab.Recorded(s) {
			if x.s.tab.At(v).Key == k {
				x.source(v)
			}
		}
	}
	for _, c := range cells {
		switch {
		case !known(c):
			continue
		case x.h.perKey.At(k).isListKey():
			x.lists = append(x.lists, c)
			continue
		}
		if w, _ := x.h.onlyWriter(index, c); w == none || x.h.mayBeInitial(x.h.cells.At(c)) ||
			x.h.common(x.h.cells.At(c)) {
			x.initial = true
		}
		if x.met[c]++; x.met[c] > 2 {
			continue
		}
		for w := range x.h.writersOf(c) {
			if t := x.h.txns.At(w); t.slot != none && w != index {
				x.write(t.slot, k)
				if t.doubt == uncertain {
					x.entirely(w)
				}
			}
		}
	}
}

// open tells whether others may come who wrote what s read.
func (x *exhibits) open(s version.Slot, c cellID) bool {
	index, k := x.h.slotTx[s], x.h.cells.At(c).key
	return (c != x.h.readCell(index, k) || x.s.tab.ReadOf(s, k) == none) && x.h.isOpen(index, c)
}

// entirely keeps all of a transaction that may not have taken effect, as any read of it may
// be why it did not, what it breaks by itself, and what shows that nobody can have read that.
func (x *exhibits) entirely(index ordinal) {
	if x.whole[index] {
		return
	}
	if x.whole == nil {
		x.whole = map[ordinal]bool{}
	}
	x.whole[index] = true
	t := x.h.txns.At(index)
	for _, c := range x.h.slab(t.reads) {
		x.read(t.slot, x.h.cells.At(c).key)
	}
	for _, c := range x.h.slab(t.writes) {
		x.write(t.slot, x.h.cells.At(c).key)
	}
	for _, f := range x.h.faults[index] {
		x.other = append(x.other, f.v.Exhibits...)
		for _, c := range f.reads {
			for w := range x.h.writersOf(c) {
				x.wrote(w, x.h.cells.At(c).key)
			}
		}
	}
	x.against(index)
}

// against keeps what a transaction that may not have taken effect can't be reconciled with
// by what it read: an attempt that came to nothing, or was not the last one, of who read what the
// key held at first or, if nobody surely did, of who else says so.
func (x *exhibits) against(index ordinal) {
	in := x.h
	for _, c := range in.external(index) {
		k := in.cells.At(c).key
		if in.perKey.At(k).isListKey() {
			x.againstList(c)
			continue
		}
		if o := in.others(c); o.aborted != verdict.NoTxn {
			x.other = append(x.other, verdict.Exhibit{Txn: o.aborted, Writes: []string{in.nameOf(k)}})
		} else if w := o.interOf(index); w != none {
			x.wrote(w, k)
		}
		if w, _ := x.h.onlyWriter(index, c); w != none && !in.cells.At(c).unmade() {
			continue
		}
		if r := in.perKey.At(k).reader; r != none && r != index && in.txns.At(r).slot != none {
			x.read(in.txns.At(r).slot, k)
		}
		for _, o := range x.h.claims[k] {
			if !x.h.sameInitial(o.cell, c) {
				x.read(in.txns.At(o.index).slot, k)
			}
		}
	}
}

// wrote keeps the writes of k of one that may have no place, as nobody can have read from it.
func (x *exhibits) wrote(w ordinal, k version.Key) {
	if t := x.h.txns.At(w); t.slot != none {
		x.write(t.slot, k)
	} else {
		x.other = append(x.other, verdict.Exhibit{Txn: t.id, Writes: []string{x.h.nameOf(k)}})
	}
}

// againstList is against for a list: who appended its elements, whatever became of it, and
// the longest one of its key.
func (x *exhibits) againstList(c cellID) {
	in := x.h
	k := in.cells.At(c).key
	x.showOrder(k)
	if in.cells.At(c).about&isList == 0 {
		return
	}
	for _, el := range in.elementsOf(c).elements {
		if w := in.cells.At(el).final; w != none {
			x.wrote(w, k)
		} else if o := in.others(el); o.aborted != verdict.NoTxn {
			x.other = append(x.other, verdict.Exhibit{Txn: o.aborted, Writes: []string{in.nameOf(k)}})
		}
	}
}

// complete keeps, where the evidence has to be complete, the writers of all
// elements of the lists that are kept.
func (x *exhibits) complete() {
	if !x.initial || x.h.opt.Coverage == record.CoveragePartial {
		return
	}
	for i := 0; i < len(x.lists); i++ { // grows
		if c := x.lists[i]; x.h.cells.At(c).about&isList != 0 {
			for _, s := range x.h.shownBy(x.h.elementsOf(c)) {
				x.write(s, x.h.cells.At(c).key)
			}
		}
	}
}

// all keeps s's read and writes of k.
func (x *exhibits) all(s version.Slot, k version.Key) {
	x.read(s, k)
	x.write(s, k)
}

// source keeps the write that made v.
func (x *exhibits) source(v version.ID) {
	if ver := x.s.tab.At(v); ver.Kind == version.Written {
		x.write(ver.Writer, ver.Key)
	}
}

func (x *exhibits) write(s version.Slot, k version.Key) {
	x.member(s)
	if x.h.writesTo(x.h.slotTx[s], k) {
		mark(x.writes, s, k)
	}
}

// showOrder keeps the longest list of k that was read, which shows the order of
// its elements.
func (x *exhibits) showOrder(k version.Key) {
	if lk := x.h.listKeys[k]; lk != nil && lk.reader != none {
		x.read(x.h.txns.At(lk.reader).slot, k)
	}
}

// edge keeps what makes the edge known.
func (x *exhibits) edge(ed graph.Edge, p *constraint.Polygraph) {
	from, to := p.Parts().Slot(ed.From), p.Parts().Slot(ed.To)
	x.member(from)
	x.member(to)
	if ed.Key != none && ed.Type != verdict.WR {
		x.showOrder(ed.Key)
	}
	switch ed.Type {
	case verdict.WR:
		x.write(from, ed.Key)
		x.read(to, ed.Key)
	case verdict.WW:
		x.write(from, ed.Key)
		x.write(to, ed.Key)
		x.fromInitial(from, ed.Key)
	case verdict.RW:
		x.read(from, ed.Key)
		x.write(to, ed.Key)
		x.fromInitial(from, ed.Key)
		if ed.Why == verdict.ByOverwrite {
			x.read(to, ed.Key)
		}
	}
}

// between keeps the reads by which a transaction shows that it came after another one of its session.
func (x *exhibits) between(first, last version.Slot) {
	for _, v := range x.s.tab.Reads(last) {
		if ver := x.s.tab.At(v); ver.Kind == version.Written && ver.Writer == first {
			x.read(last, ver.Key)
		}
	}
}

// fromInitial keeps what shows that the block that holds s's version of k is the first:
// the read of the initial version, and those that lead from there to s.
func (x *exhibits) fromInitial(s version.Slot, k version.Key) {
	v := x.s.tab.WriteOf(s, k)
	if v == none {
		v = x.s.tab.ReadOf(s, k)
	}
	tab := &x.s.tab
	var run []version.Slot
	for n := 0; v != none && n < 200; n++ {
		ver := tab.At(v)
		if ver.Kind != version.Written || ver.Prev == none {
			return
		}
		run = append(run, ver.Writer)
		if tab.At(ver.Prev).Kind == version.Initial {
			for _, w := range run {
				x.read(w, k)
			}
			return
		}
		v = ver.Prev
	}
}

// list is the exhibits by transaction, sorted.
func (x *exhibits) list() []verdict.Exhibit {
	x.complete()
	names := func(m map[version.Key]bool) []string {
		var out []string
		for k := range m {
			out = append(out, x.h.nameOf(k))
		}
		slices.Sort(out)
		return out
	}
	var out []verdict.Exhibit
	for s := range x.reads {
		ex := verdict.Exhibit{Txn: x.h.txnOf(s), Reads: names(x.reads[s]), Writes: names(x.writes[s])}
		for k := range x.reads[s] {
			if x.h.perKey.At(k).isListKey() && x.h.writesTo(x.h.slotTx[s], k) {
				ex.All = append(ex.All, x.h.nameOf(k)) // its read may follow its own append
			}
		}
		for i, c := range x.h.sequences[x.h.slotTx[s]] {
			if x.reads[s][x.h.cells.At(c).key] && x.open(s, c) {
				ex.Open = append(ex.Open, x.h.placesOf[x.h.slotTx[s]][i])
			}
		}
		if t := x.h.txns.At(x.h.slotTx[s]); t.open && t.doubt != tookEffect { // any read may be why it did not
			ex.All = append(ex.All, ex.Reads...)
		}
		slices.Sort(ex.All)
		ex.All = slices.Compact(ex.All)
		out = append(out, ex)
	}
	out = append(out, x.other...)
	out = append(out, x.appenders()...)
	return merged(out)
}

// appenders are, for the keys of which lists are kept but no append, one that shows that they hold lists.
func (x *exhibits) appenders() []verdict.Exhibit {
	appended := map[version.Key]bool{}
	for _, ks := range x.writes {
		for k := range ks {
			appended[k] = true
		}
	}
	var out []verdict.Exhibit
	for _, ks := range x.reads {
		for k := range ks {
			if p := x.h.perKey.At(k); p.isListKey() && !appended[k] {
				appended[k] = true
				out = append(out, p.changes(x.h.nameOf(k)))
			}
		}
	}
	return out
}

// slots lists the members, sorted.
func (x *exhibits) slots() []version.Slot {
	var out []version.Slot
	for s := range x.reads {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// everything makes every read and write of the members an exhibit, and the
// writers of what they read members.
func (x *exhibits) everything() {
	for _, s := range x.slots() {
		t := x.h.txns.At(x.h.slotTx[s])
		for _, c := range x.h.slab(t.writes) {
			mark(x.writes, s, x.h.cells.At(c).key)
		}
		for _, c := range x.h.slab(t.reads) {
			x.read(s, x.h.cells.At(c).key)
		}
	}
}

// suffice: the exhibits of a finding are all that it rests on, as each read is of one writer. Of reads that may be of
// several it may be left out why they are of none of the others.
func (x *exhibits) suffice(f *constraint.Violation) bool {
	return !f.Whole && len(x.s.choices) == 0
}

// showsOrder: the longest list of k is kept.
func (x *exhibits) showsOrder(k version.Key) bool {
	lk := x.h.listKeys[k]
	return lk != nil && lk.reader != none && x.reads[x.h.txns.At(lk.reader).slot][k]
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

// edges names the transactions and keys of a closed walk; steps along one
// session become one.
func (t *teller) edges(walk []graph.Edge, because map[int][]graph.Edge, depth int) []verdict.Edge {
	var out []verdict.Edge
	for i, ed := range walk {
		from, to := t.p.Parts().Slot(ed.From), t.p.Parts().Slot(ed.To)
		v := verdict.Edge{From: t.h.txnOf(from), To: t.h.txnOf(to), Type: ed.Type, Why: ed.Why}
		if ed.Key != none {
			v.Key = t.h.nameOf(ed.Key)
		}
		if b := because[i]; b != nil {
			v.Because = t.edges(b, nil, depth)
		}
		if ed.Why == verdict.ByElimination && depth < othersDepth {
			v.Others = t.fallen(t.others[ed], depth+1)
		}
		if n := len(out); n > 0 && v.Type == verdict.SO && out[n-1].Type == verdict.SO {
			out[n-1].To = v.To
			continue
		}
		out = append(out, v)
	}
	if n := len(out); n > 2 && out[0].Type == verdict.SO && out[n-1].Type == verdict.SO {
		out[0].From = out[n-1].From
		out = out[:n-1]
	}
	return out
}

// fallen are the cycles that other candidates would close. That a later writer was
// missed is known by the order of the two writes, or as the first version of all was
// read.
func (t *teller) fallen(others []constraint.Other, depth int) [][]verdict.Edge {
	for _, o := range others {
		t.left -= len(o.Cycle) + len(o.Order)
	}
	if t.left < 0 {
		return nil
	}
	var out [][]verdict.Edge
	for _, o := range others {
		c := t.edges(o.Cycle, nil, depth)
		if c[0].Type == verdict.RW {
			c[0].Why = verdict.ByInitial
			if o.Order != nil {
				c[0].Why, c[0].Because = verdict.ByOrder, t.edges(o.Order, nil, depth)
			}
		}
		out = append(out, c)
	}
	return out
}
