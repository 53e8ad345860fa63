package constraint

import (
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

type relation uint8

const (
	undecided relation = iota
	isBefore           // the first comes before the second
	isAfter
	givenUp // a violation was reported; the pair has no order
)

// orders decide the orders of blocks, and put what follows in the known graph.
type orders struct {
	*known
	subjects *subjects
	blocks   *blocks
	writers  *writers
	reports  *reports
	given    map[[2]vid]bool // pairs given up after a violation
	implicit int             // pairs that were not made, as there are too many
	isPutOff bool            // there are pairs that were put off; see blocks
	// Scratch of pairUp: the blocks that one has an open pair with, as a list and as a set.
	open   []vid
	isOpen bitset.BitSet
}

// relate decides the order of the blocks that a and b head, if only one is
// possible, and puts its edges in.
func (p *orders) relate(a, b vid) relation {
	if len(p.given) > 0 && p.given[[2]vid{min(a, b), max(a, b)}] {
		return givenUp
	}
	if p.halted() {
		p.left++
		return givenUp
	}
	if p.banded != nil && p.longBefore(a, b) {
		return isBefore
	}
	ab, noAB := p.closes(a, b)
	ba, noBA := p.closes(b, a)
	why := verdict.ByOrder
	switch { // the block that overwrote the initial version is the first
	case p.tab.First(a):
		noBA, why, ba = true, verdict.ByInitial, graph.Edge{From: none}
	case p.tab.First(b):
		noAB, why, ab = true, verdict.ByInitial, graph.Edge{From: none}
	}
	switch {
	case !noAB && !noBA:
		return undecided
	case noBA && !noAB:
		p.order(a, b, why, ba)
		return isBefore
	case noAB && !noBA:
		p.order(b, a, why, ab)
		return isAfter
	}
	// Both orders close a cycle. The likelier one to mean something to a person
	// is forced, by a plain version order or the initial version, and the edge
	// that it cannot have is reported.
	switch {
	case ba.From == none || ab.From != none && ba.Type == verdict.WW:
		p.clash(ab, ba, p.tab.Tail(a), why)
	default:
		p.clash(ba, ab, p.tab.Tail(b), why)
	}
	p.given[[2]vid{min(a, b), max(a, b)}] = true
	return givenUp
}

// clash reports an edge that must hold, as the opposite order is impossible,
// and cannot; it comes from v.
func (p *orders) clash(e, opposite graph.Edge, v vid, why verdict.Why) {
	e.Why = why
	e.Assumed = p.cfg.RealTime
	if e.Type == verdict.RW && p.updates(p.parts.Slot(e.To), v) {
		e.Why, e.Assumed, opposite = verdict.ByOverwrite, false, graph.Edge{From: none}
	}
	p.reports.reportClash(e, opposite)
}

// order puts the edges of "a before b" in.
func (p *orders) order(a, b vid, why verdict.Why, opposite graph.Edge) {
	assumed := p.cfg.RealTime && why != verdict.ByInitial
	tail := p.tab.Tail(a)
	tv := p.tab.At(tail)
	tw, hw := tv.Writer, p.tab.At(b).Writer
	p.force(graph.Edge{From: p.commit(tw), To: p.writing(hw), Key: tv.Key, Type: verdict.WW, Why: why, Assumed: assumed},
		opposite)
	if p.updates(hw, tail) { // a fact of the records
		why, assumed, opposite = verdict.ByOverwrite, false, graph.Edge{From: none}
	}
	for r := range p.tab.Readers(tail) {
		if r != hw && !p.isWithdrawn(r, tail) {
			p.force(graph.Edge{From: p.start(r), To: p.commit(hw), Key: tv.Key, Type: verdict.RW, Why: why, Assumed: assumed},
				opposite)
		}
	}
}

// force adds an edge that is forced because the opposite edge closes a cycle, which is a step.
func (p *orders) force(e, opposite graph.Edge) {
	n := p.g.Len()
	p.Budget.Use(1)
	if !p.bulk {
		p.addEdge(e, false)
	} else if !p.reach.Reaches(e.From, e.To) {
		p.g.Add(e)
	}
	if p.g.Len() > n && opposite.From != none {
		p.reports.forced.Push(forced{graph.EdgeID(n), opposite})
		p.take(forcedBytes) // one order may force very many
	}
}

// block takes in a new block of one version; false if the budget has ended.
func (p *orders) block(w vid) bool {
	v := p.tab.At(w)
	p.writers.Wrote(w, false)
	if p.subjects.openChoices > 0 {
		p.subjects.current = false // it may follow what they read
	}
	if p.leaves() {
		return false
	}
	list := p.blocks.list(v.Key)
	if p.tab.First(w) {
		p.first(w, list)
		return true
	}
	any, alike := false, p.banded == nil && p.blocks.idle(w)
	if alike && p.blocks.reads.Test(uint(v.Writer)) {
		p.putOff()
	}
	at, low := len(*list), len(*list) // low: of those seen, the first that is not before w
	known := 0
	if alike {
		var after bool
		if known, after = p.probe(*list, w); known > 0 {
			any = true
		}
		if p.blocks.unread(w) && !after {
			low, known = known, len(*list)
		}
	}
	for i := len(*list) - 1; i >= known; i-- {
		x := (*list)[i]
		if alike && p.blocks.idle(x.head) { // nothing follows from their order, where times don't make it cheap to know
			p.Budget.Use(1)
			low = i
			continue
		}
		switch p.relate(x.head, w) {
		case isBefore:
			any = true
			known = max(known, int(x.low)) // those before x come before w too
			continue
		case isAfter:
			at = i
		case undecided:
			if !p.blocks.harmless(x.head, w) {
				p.constrain(x.head, w)
			}
		case givenUp:
		}
		low = i
	}
	if !any {
		p.afterInitial(v.Key, v.Writer)
	}
	for i := at; i < len(*list); i++ {
		(*list)[i].low = min((*list)[i].low, uint32(at)) // not known to come after w
	}
	if at == len(*list) {
		*list = append(*list, blockRef{w, uint32(low)})
	} else {
		*list = slices.Insert(*list, at, blockRef{w, uint32(low)})
	}
	return true
}

// probe is how many of the first blocks of a list w is known to come after, as far as some looks show it, and whether
// it comes before one of those that were looked at: at the last one, the 16th from the end, the 256th and so on
// until one comes before w, and at those that follow what it comes after. O(log n) relations.
func (p *orders) probe(list []blockRef, w vid) (known int, before bool) {
	for back := 1; back <= len(list)-known && !before; back *= 16 {
		i := len(list) - back
		r := p.relate(list[i].head, w)
		before = r == isAfter
		if r == isBefore {
			known = max(known, int(list[i].low))
			break
		}
	}
	for n := 0; n < probed && known < len(list) && !before; n++ {
		r := p.relate(list[known].head, w)
		if before = r == isAfter; r != isBefore {
			break
		}
		known++
	}
	return known, before
}

// probed is how many blocks that come before a new one are looked for, beyond those that another one is known to come
// after.
const probed = 8

// matters makes the pairs of a version that was idle, if it is one that Block was told of.
func (p *orders) matters(v vid) {
	if ver := p.tab.At(v); !p.bulk && ver.Kind == version.Written && ver.Next == version.None && p.isHead(v) &&
		!p.tab.HasReaders(v) && !p.leaves() {
		p.pairUp(v)
	}
}

// mayRead takes in that v is what some read may be of.
func (p *orders) mayRead(v vid) {
	if !p.blocks.candidate.Test(uint(v)) {
		p.blocks.candidate.Set(uint(v))
		p.matters(v)
	}
}

// readsSome takes in that s reads something.
func (p *orders) readsSome(s slot) {
	if p.parts == 1 || p.cfg.Prefix || p.blocks.reads.Test(uint(s)) {
		return
	}
	p.blocks.reads.Set(uint(s))
	for _, w := range p.tab.Writes(s) {
		if !p.blocks.putsOff {
			p.matters(w)
		} else if !p.tab.At(w).Fresh && p.isHead(w) && p.blocks.idle(w) {
			p.putOff()
		}
	}
}

// putOff takes in that pairs of an idle version were not made though its writer reads.
func (p *orders) putOff() { p.isPutOff, p.subjects.current = true, false }

// afterInitial puts the anti-dependencies of the initial version's readers to a
// writer that no known block precedes.
func (p *orders) afterInitial(k keyID, w slot) {
	init := p.tab.InitialOf(k)
	if init == version.None || p.tab.At(init).Next != version.None {
		return
	}
	for r := range p.tab.Readers(init) {
		if r != w && !p.isWithdrawn(r, init) {
			p.addEdge(graph.Edge{From: p.start(r), To: p.commit(w), Key: k, Type: verdict.RW, Why: verdict.ByInitial}, false)
		}
	}
}

// first takes in the block that overwrote the initial version: before all.
func (p *orders) first(w vid, list *[]blockRef) {
	p.blocks.busy.Set(uint(p.tab.At(w).Key))
	for i := range *list {
		x := &(*list)[i]
		if x.head != w {
			if p.relate(w, x.head) == isBefore {
				x.low++
			} else {
				x.low = 0
			}
		}
	}
	*list = slices.Insert(*list, 0, blockRef{w, 0})
}

// constrain makes a constraint of a pair that neither order decides.
func (p *orders) constrain(a, b vid) {
	if p.banded != nil && p.banded.IsBase(p.writer(a)) && p.banded.IsBase(p.writer(b)) {
		return // neither order means an edge, as all would lead to a base
	}
	p.Stats.Constraints++
	if p.tooMany() {
		p.implicit++
		p.subjects.current = false
		return
	}
	p.subjects.openPairs++
	p.subjects.addPair(a, b)
	p.take(pairBytes) // one transaction may make very many
}

// readAs takes in that r read v; false if nothing follows from that, or not yet.
func (p *orders) readAs(r slot, v vid, why verdict.Why) bool {
	p.readsSome(r)
	ver := p.tab.At(v)
	p.blocks.busy.Set(uint(ver.Key))
	if ver.Kind == version.Written {
		e := graph.Edge{From: p.commit(ver.Writer), To: p.start(r), Key: ver.Key, Type: verdict.WR, Why: why}
		e.Assumed = p.subjects.byElimination && p.cfg.RealTime
		if !p.addEdge(e, true) {
			p.withdrawn[readOf{r, v}] = true
			return false
		}
	}
	if p.bulk {
		return false
	}
	switch {
	case ver.Next != version.None:
		p.overwritten(r, v)
	case ver.Kind == version.Written:
		p.readTail(r, v)
	case ver.Kind == version.Initial:
		for _, x := range *p.blocks.list(ver.Key) {
			if w := p.tab.At(x.head).Writer; w != r {
				p.addEdge(graph.Edge{From: p.start(r), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByInitial},
					false)
			}
		}
	}
	return true
}

// listed takes in that v follows prev, as a list shows.
func (p *orders) listed(prev, v vid) {
	a, b := p.tab.At(prev), p.tab.At(v)
	p.addEdge(graph.Edge{From: p.commit(a.Writer), To: p.writing(b.Writer), Key: a.Key, Type: verdict.WW,
		Why: verdict.ByList}, true)
}

// logged takes in that v follows prev, as the database's log shows.
func (p *orders) logged(prev, v vid) {
	a := p.tab.At(prev)
	p.addEdge(graph.Edge{From: p.commit(a.Writer), To: p.writing(p.tab.At(v).Writer), Key: a.Key, Type: verdict.WW,
		Why: verdict.ByLog}, true)
}

// overwritten puts the anti-dependency from a reader of v to v's immediate
// successor.
func (p *orders) overwritten(r slot, v vid) {
	ver := p.tab.At(v)
	w := p.tab.At(ver.Next).Writer
	if w == r || p.isWithdrawn(r, v) {
		return
	}
	p.addEdge(graph.Edge{From: p.start(r), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByOverwrite},
		true)
}

// readTail puts the anti-dependencies from a new reader of a block's tail to
// the blocks known to follow, and wakes the pairs that are open.
func (p *orders) readTail(r slot, v vid) {
	head := p.tab.Head(v)
	if p.tab.At(head).Fresh || p.leaves() {
		return
	}
	if p.subjects.openPairs > 0 {
		for c := p.subjects.firstPair(head); c != none; c = *p.subjects.nextPair(c, head) {
			p.subjects.watchNode(p.start(r), uint32(c))
			p.subjects.move(c, r)
			p.subjects.wake(c)
		}
	}
	p.pairUp(head)
}

// pairUp relates a block to those that may come after it, or before, and that it has no open pair with, and makes
// the pairs that matter. What comes after one that comes after head is passed over.
func (p *orders) pairUp(head vid) {
	p.blocks.busy.Set(uint(p.tab.At(head).Key))
	relate := func(x vid) relation {
		r := p.relate(head, x)
		if r == undecided && !p.blocks.harmless(head, x) {
			p.constrain(head, x)
		}
		return r
	}
	list := *p.blocks.list(p.tab.At(head).Key)
	place := len(list) - 1
	for place >= 0 && list[place].head != head {
		place--
	}
	if place < 0 {
		return // Block is yet to be told of it
	}
	open := p.open[:0]
	for c := p.subjects.firstPair(head); c != none; c = *p.subjects.nextPair(c, head) {
		x := p.subjects.pairs[c].a ^ p.subjects.pairs[c].b ^ head
		p.isOpen.Set(uint(x))
		open = append(open, x)
	}
	p.Budget.Use((len(list) - place + len(open)) / placesAStep)
	for i, after := place+1, len(list); i < len(list); i++ {
		x := list[i]
		if int(x.low) <= after && !p.isOpen.Test(uint(x.head)) && relate(x.head) == isBefore {
			after = min(after, i)
		}
	}
	known := int(list[place].low) // head comes after the first so many
	for i := place - 1; i >= known; i-- {
		if x := list[i]; !p.isOpen.Test(uint(x.head)) && relate(x.head) == isAfter {
			known = max(known, int(x.low))
		}
	}
	for _, x := range open {
		p.isOpen.Clear(uint(x))
	}
	p.open = open
}

// placesAStep is how many places of a list, looked at one after the other, are a step.
const placesAStep = 8

// overwrite takes in that w is the immediate successor of v. fresh: w is not a block yet.
func (p *orders) overwrite(v, w vid, fresh bool) {
	ver := p.tab.At(v)
	p.writers.Wrote(w, false)
	for q := range p.tab.Readers(v) {
		p.overwritten(q, v)
	}
	switch {
	case ver.Kind != version.Written:
		if fresh {
			p.block(w)
		} else if p.tab.First(w) && !p.leaves() { // the block is there, and now it is the first
			list := p.blocks.list(ver.Key)
			if i := slices.IndexFunc(*list, func(x blockRef) bool { return x.head == w }); i >= 0 {
				remove(list, i)
			}
			p.subjects.drop(w)
			p.first(w, list)
		}
	case fresh: // though others may have followed w already, where all was written first
		p.extend(p.tab.Head(p.tab.Tail(w)))
	default:
		p.merge(p.tab.Head(p.tab.Tail(w)), w)
	}
}

// extend takes in that the block's tail has moved on by one.
func (p *orders) extend(head vid) {
	if p.tab.At(head).Fresh || p.leaves() {
		return
	}
	for c := p.subjects.firstPair(head); c != none; c = *p.subjects.nextPair(c, head) {
		p.subjects.watchTail(head, c)
		p.subjects.moveTail(head, c)
		p.subjects.wake(c)
	}
	p.pairUp(head)
}

// merge takes in that the blocks of a and b, both in the list, have become one,
// headed by a. All orders that either had are drawn again for the whole.
func (p *orders) merge(a, b vid) {
	if p.leaves() {
		return
	}
	list := p.blocks.list(p.tab.At(a).Key)
	p.blocks.busy.Set(uint(p.tab.At(a).Key))
	p.subjects.drop(a)
	p.subjects.drop(b)
	if i := slices.IndexFunc(*list, func(x blockRef) bool { return x.head == b }); i >= 0 {
		remove(list, i)
	}
	if p.tab.At(a).Fresh {
		return
	}
	at := slices.IndexFunc(*list, func(x blockRef) bool { return x.head == a })
	for i := len(*list) - 1; i >= 0; i-- {
		x := &(*list)[i]
		if i == at {
			x.low = 0
			continue
		}
		if p.relate(x.head, a) == undecided {
			p.constrain(x.head, a)
		}
		if at >= 0 { // else a is fresh, and put in the list later
			x.low = min(x.low, uint32(at))
		}
	}
}

// tooMany: no more pairs are made, and the history will be run: they are many and it is complete or has no times, or
// there is no room for more.
func (p *orders) tooMany() bool {
	many := len(p.subjects.pairs) >= p.cfg.PairsMax
	if !p.cfg.Last {
		return p.banded == nil && (many || !p.Budget.Roomy())
	}
	return p.places != nil && many
}

// addEdge puts an edge in the graph. An edge that is implied is stored only if
// it is a fact; one that would close a cycle is reported. It tells whether the
// order that the edge stands for holds now.
func (p *orders) addEdge(e graph.Edge, fact bool) bool {
	if p.forgotten(e) {
		return true
	}
	if !p.Budget.Certain(1) {
		p.left++
		return true
	}
	if p.bulk {
		p.g.Add(e)
		return true
	}
	// Most edges of a stream lead from what is long past to what has just come.
	if !p.ends(e) && p.reach.Reaches(e.To, e.From) {
		p.reports.reportCycle(e)
		return false
	}
	if p.reach.Reaches(e.From, e.To) {
		if fact {
			p.g.Add(e)
		}
		return true
	}
	p.g.Add(e)
	p.reach.Insert(e.From, e.To, p.subjects)
	p.entered(e)
	return true
}

// bulkRead puts the anti-dependencies of a read that was decided during a bulk
// load in the graph, as far as they are plain.
func (p *orders) bulkRead(reader slot, v vid) {
	ver := p.tab.At(v)
	if ver.Next != version.None {
		p.overwritten(reader, v)
		return
	}
	if ver.Kind != version.Initial {
		return
	}
	for _, l := range p.writers.byLine[ver.Key] { // the first writer of each line stands for the rest
		if w := l.slots[0]; w != reader && !p.reach.Reaches(p.start(reader), p.commit(w)) {
			p.addEdge(graph.Edge{From: p.start(reader), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByInitial},
				false)
		}
	}
}

// foresee puts the edges of the order of two blocks in the graph, if the closure
// decides it, but not in the closure.
func (p *orders) foresee(a, b vid) relation {
	ab, noAB := p.closes(a, b)
	ba, noBA := p.closes(b, a)
	first := p.tab.First(a) || p.tab.First(b)
	switch {
	case first || noAB == noBA:
		return undecided
	case noBA:
		p.order(a, b, verdict.ByOrder, ba)
		return isBefore
	}
	p.order(b, a, verdict.ByOrder, ab)
	return isAfter
}
