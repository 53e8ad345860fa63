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

// closes looks for an edge of the order "block a before block b" that would
// close a cycle. Cost: a reachability question per reader of a's tail.
func (p *Polygraph) closes(a, b vid) (graph.Edge, bool) {
	tail := p.tab.Tail(a)
	tv := p.tab.At(tail)
	tw, hw := tv.Writer, p.tab.At(b).Writer
	if p.reach.Reaches(p.writing(hw), p.commit(tw)) {
		return graph.Edge{From: p.commit(tw), To: p.writing(hw), Key: tv.Key, Type: verdict.WW}, true
	}
	steps := 0
	defer func() { p.Budget.Use(steps) }()
	for r := range p.tab.Readers(tail) {
		steps++
		if r != hw && p.reach.Reaches(p.commit(hw), p.start(r)) && !p.isWithdrawn(r, tail) {
			return graph.Edge{From: p.start(r), To: p.commit(hw), Key: tv.Key, Type: verdict.RW}, true
		}
	}
	return graph.Edge{}, false
}

func (p *Polygraph) isWithdrawn(r slot, v vid) bool {
	return len(p.withdrawn) > 0 && p.withdrawn[readOf{r, v}]
}

// relate decides the order of the blocks that a and b head, if only one is
// possible, and puts its edges in.
func (p *Polygraph) relate(a, b vid) relation {
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

// longBefore tells whether a's tail and all who read it precede block b by the
// clock, so that b cannot come first and no edge of the order is news: the common
// case in a stream.
func (p *Polygraph) longBefore(a, b vid) bool {
	hw := p.tab.At(b).Writer
	tail := p.tab.At(p.tab.Tail(a))
	if p.tab.First(b) {
		return false
	}
	if latest, ok := tail.Latest(); ok && p.banded.EndsBefore(latest, p.writing(hw)) {
		return true
	}
	if !p.banded.ByClock(p.commit(tail.Writer), p.writing(hw)) {
		return false
	}
	for r := range p.tab.Readers(p.tab.Tail(a)) {
		if r != hw && !p.banded.ByClock(p.start(r), p.commit(hw)) {
			return false
		}
	}
	return true
}

// clash reports an edge that must hold, as the opposite order is impossible,
// and cannot; it comes from v.
func (p *Polygraph) clash(e, opposite graph.Edge, v vid, why verdict.Why) {
	e.Why = why
	e.Assumed = p.cfg.RealTime
	if e.Type == verdict.RW && p.updates(p.SlotOf(e.To), v) {
		e.Why, e.Assumed, opposite = verdict.ByOverwrite, false, graph.Edge{From: none}
	}
	p.reportClash(e, opposite)
}

// order puts the edges of "a before b" in.
func (p *Polygraph) order(a, b vid, why verdict.Why, opposite graph.Edge) {
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

// updates tells, where that makes no block of the two, whether s read v and wrote
// its key. A later transaction of its session that read v as well may hide it,
// which is a violation.
func (p *Polygraph) updates(s slot, v vid) bool {
	if !p.cfg.Prefix {
		return false
	}
	for r := range p.tab.Readers(v) {
		if r == s {
			return !p.isWithdrawn(s, v)
		}
	}
	return false
}

// force adds an edge that is forced because the opposite edge closes a cycle, which is a step.
func (p *Polygraph) force(e, opposite graph.Edge) {
	n := p.g.Len()
	p.Budget.Use(1)
	if !p.bulk {
		p.addEdge(e, false)
	} else if !p.reach.Reaches(e.From, e.To) {
		p.g.Add(e)
	}
	if p.g.Len() > n && opposite.From != none {
		p.forced = append(p.forced, forced{graph.EdgeID(n), opposite})
		p.bytes += forcedBytes // one order may force very many
		p.Budget.Hold(forcedBytes)
	}
}

// list is the blocks of a key, good until the list of another key is made. The
// keys that have blocks may be few among those that occur.
func (p *Polygraph) list(k keyID) *[]blockRef {
	for int(k) >= len(p.listAt) {
		p.listAt = append(p.listAt, 0)
	}
	if p.listAt[k] == 0 {
		if p.lists == nil {
			p.lists = make([][]blockRef, 1)
		}
		n := len(p.lists)
		p.listAt[k] = uint32(n)
		if n < cap(p.lists) { // there may be room of a list, see Reuse
			p.lists = p.lists[:n+1]
			p.lists[n] = p.lists[n][:0]
		} else {
			p.lists = append(p.lists, nil)
		}
	}
	return &p.lists[p.listAt[k]]
}

// Block takes in a new block of one version, w, whose writer has been added.
func (p *Polygraph) Block(w version.ID) {
	if p.bulk {
		return
	}
	v := p.tab.At(w)
	p.Wrote(w)
	if p.openChoices > 0 {
		p.solved.valid = false // it may follow what they read
	}
	if p.leaves() {
		return
	}
	list := p.list(v.Key)
	if p.tab.First(w) {
		p.first(w, list)
		p.Propagate()
		return
	}
	any, alike := false, p.banded == nil && p.idle(w)
	if alike && p.reads.Test(uint(v.Writer)) {
		p.putOff()
	}
	at, low := len(*list), len(*list) // low: of those seen, the first that is not before w
	known := 0
	if alike {
		var after bool
		if known, after = p.probe(*list, w); known > 0 {
			any = true
		}
		if p.unread(w) && !after {
			low, known = known, len(*list)
		}
	}
	for i := len(*list) - 1; i >= known; i-- {
		x := (*list)[i]
		if alike && p.idle(x.head) { // nothing follows from their order, where times don't make it cheap to know
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
			if !p.harmless(x.head, w) {
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
	p.Propagate()
}

// probe is how many of the first blocks of a list w is known to come after, as far as some looks show it, and whether
// it comes before one of those that were looked at: at the last one, the 16th from the end, the 256th and so on
// until one comes before w, and at those that follow what it comes after. O(log n) relations.
func (p *Polygraph) probe(list []blockRef, w vid) (known int, before bool) {
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

// leaves tells whether a block, or what is new of it, is not looked at, as the budget has
// ended; that is counted. The lists of blocks are not asked for anything from then on.
func (p *Polygraph) leaves() bool {
	if p.halted() {
		p.left++
		return true
	}
	return false
}

// harmless tells, of blocks that neither order decides, whether it doesn't matter which comes first. That is
// so of two versions that nobody has read, nor may have: they agree with any order of their writers, which
// at all levels but snapshot isolation is the order of transactions or commits. There a writer that reads nothing
// can be taken to begin as it commits, unless its instants are known, and two such agree with any order of their
// commits. So no pair is made before somebody reads; see matters. And if a writer does read, the pairs of what it writes
// blindly are put off until a run of the history gets stuck; see Solve.
func (p *Polygraph) harmless(a, b vid) bool { return p.idle(a) && p.idle(b) }

// idle tells whether the block that head heads has an order with others of its kind in any case.
func (p *Polygraph) idle(head vid) bool {
	return p.tab.Tail(head) == head && !p.tab.First(head) && !p.tab.HasReaders(head) && !p.candidate.Test(uint(head)) &&
		(p.parts == 1 || p.cfg.Prefix || !p.cfg.Instants && (p.putsOff || !p.reads.Test(uint(p.writer(head)))))
}

// unread tells whether the block that head heads has an order with all that its key has so far in any case, as they
// are all idle.
func (p *Polygraph) unread(head vid) bool {
	k := uint(p.tab.At(head).Key)
	if !p.idle(head) {
		p.busy.Set(k)
	}
	return !p.busy.Test(k)
}

// matters makes the pairs of a version that was idle, if it is one that Block was told of.
func (p *Polygraph) matters(v vid) {
	if ver := p.tab.At(v); !p.bulk && ver.Kind == version.Written && ver.Next == version.None && p.isHead(v) &&
		!p.tab.HasReaders(v) && !p.leaves() {
		p.pairUp(v)
	}
}

// mayRead takes in that v is what some read may be of.
func (p *Polygraph) mayRead(v vid) {
	if !p.candidate.Test(uint(v)) {
		p.candidate.Set(uint(v))
		p.matters(v)
	}
}

// readsSome takes in that s reads something.
func (p *Polygraph) readsSome(s slot) {
	if p.parts == 1 || p.cfg.Prefix || p.reads.Test(uint(s)) {
		return
	}
	p.reads.Set(uint(s))
	for _, w := range p.tab.Writes(s) {
		if !p.putsOff {
			p.matters(w)
		} else if !p.tab.At(w).Fresh && p.isHead(w) && p.idle(w) {
			p.putOff()
		}
	}
}

// putOff takes in that pairs of an idle version were not made though its writer reads.
func (p *Polygraph) putOff() { p.isPutOff, p.solved.valid = true, false }

// makePutOff makes the pairs that were put off, and from then on all others at once.
func (p *Polygraph) makePutOff() {
	p.putsOff, p.isPutOff = false, false
	for s, ok := p.reads.NextSet(0); ok; s, ok = p.reads.NextSet(s + 1) {
		for _, w := range p.tab.Writes(slot(s)) {
			p.matters(w)
		}
	}
	p.Propagate()
}

// afterInitial puts the anti-dependencies of the initial version's readers to a
// writer that no known block precedes.
func (p *Polygraph) afterInitial(k keyID, w slot) {
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
func (p *Polygraph) first(w vid, list *[]blockRef) {
	p.busy.Set(uint(p.tab.At(w).Key))
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
func (p *Polygraph) constrain(a, b vid) {
	if p.banded != nil && p.banded.IsBase(p.writer(a)) && p.banded.IsBase(p.writer(b)) {
		return // neither order means an edge, as all would lead to a base
	}
	p.Stats.Constraints++
	if p.tooMany() {
		p.implicit++
		p.solved.valid = false
		return
	}
	p.open++
	p.addPair(a, b)
	p.bytes += pairBytes // one transaction may make very many
	p.Budget.Hold(pairBytes)
}

// pairSteps is what to make a pair costs, and to drop it.
const pairSteps = 4

func (p *Polygraph) addPair(a, b vid) {
	c := pairID(len(p.pairs))
	p.Budget.Use(pairSteps)
	p.pairs = append(p.pairs, pair{a: a, b: b, alive: true})
	p.window.unsettled++
	for _, h := range [2]vid{a, b} {
		p.link(c, h)
		p.watchTail(h, c)
	}
}

// watchTail lets pair c be looked at again when something new reaches a node
// that an edge of it leaves: then that edge may close a cycle.
func (p *Polygraph) watchTail(head vid, c pairID) {
	tail := p.tab.Tail(head)
	p.watchNode(p.commit(p.tab.At(tail).Writer), uint32(c))
	for r := range p.tab.Readers(tail) {
		p.watchNode(p.start(r), uint32(c))
	}
}

// Read takes in that r read v, which r has been made a reader of. Both r and
// v's writer have been added.
func (p *Polygraph) Read(r version.Slot, v version.ID) { p.readAs(r, v, verdict.ByValue) }

func (p *Polygraph) readAs(r slot, v vid, why verdict.Why) {
	p.readsSome(r)
	ver := p.tab.At(v)
	p.busy.Set(uint(ver.Key))
	if ver.Kind == version.Written {
		e := graph.Edge{From: p.commit(ver.Writer), To: p.start(r), Key: ver.Key, Type: verdict.WR, Why: why}
		e.Assumed = p.byElimination && p.cfg.RealTime
		if !p.addEdge(e, true) {
			p.withdrawn[readOf{r, v}] = true
			return
		}
	}
	if p.bulk {
		return
	}
	switch {
	case ver.Next != version.None:
		p.overwritten(r, v)
	case ver.Kind == version.Written:
		p.readTail(r, v)
	case ver.Kind == version.Initial:
		for _, x := range *p.list(ver.Key) {
			if w := p.tab.At(x.head).Writer; w != r {
				p.addEdge(graph.Edge{From: p.start(r), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByInitial},
					false)
			}
		}
	}
	p.Propagate()
}

// Follow takes in that v follows prev because a list shows it. Both have been
// written by transactions that were added.
func (p *Polygraph) Follow(prev, v version.ID) {
	a, b := p.tab.At(prev), p.tab.At(v)
	p.addEdge(graph.Edge{From: p.commit(a.Writer), To: p.writing(b.Writer), Key: a.Key, Type: verdict.WW,
		Why: verdict.ByList}, true)
	if !p.bulk {
		p.Propagate()
	}
}

// Logged takes in that the database's log shows v behind prev. That no other order of their blocks is possible, so that
// who read prev precedes v, follows. A bulk load takes in all at its end.
func (p *Polygraph) Logged(prev, v version.ID) {
	if p.bulk {
		return
	}
	p.logged(prev, v)
	p.Propagate()
}

func (p *Polygraph) logged(prev, v vid) {
	a := p.tab.At(prev)
	p.addEdge(graph.Edge{From: p.commit(a.Writer), To: p.writing(p.tab.At(v).Writer), Key: a.Key, Type: verdict.WW,
		Why: verdict.ByLog}, true)
}

// overwritten puts the anti-dependency from a reader of v to v's immediate
// successor.
func (p *Polygraph) overwritten(r slot, v vid) {
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
func (p *Polygraph) readTail(r slot, v vid) {
	head := p.tab.Head(v)
	if p.tab.At(head).Fresh || p.leaves() {
		return
	}
	if p.open > 0 {
		for c := p.firstPair(head); c != none; c = *p.nextPair(c, head) {
			p.watchNode(p.start(r), uint32(c))
			p.move(c, r)
			p.wake(c)
		}
	}
	p.pairUp(head)
}

// pairUp relates a block to those that may come after it, or before, and that it has no open pair with, and makes
// the pairs that matter. What comes after one that comes after head is passed over.
func (p *Polygraph) pairUp(head vid) {
	p.busy.Set(uint(p.tab.At(head).Key))
	relate := func(x vid) relation {
		r := p.relate(head, x)
		if r == undecided && !p.harmless(head, x) {
			p.constrain(head, x)
		}
		return r
	}
	list := *p.list(p.tab.At(head).Key)
	place := len(list) - 1
	for place >= 0 && list[place].head != head {
		place--
	}
	if place < 0 {
		return // Block is yet to be told of it
	}
	var open bitset.BitSet // the blocks that it has an open pair with
	pairs := 0
	for c := p.firstPair(head); c != none; c = *p.nextPair(c, head) {
		open.Set(uint(p.pairs[c].a ^ p.pairs[c].b ^ head))
		pairs++
	}
	p.Budget.Use((len(list) - place + pairs) / placesAStep)
	for i, after := place+1, len(list); i < len(list); i++ {
		x := list[i]
		if int(x.low) <= after && !open.Test(uint(x.head)) && relate(x.head) == isBefore {
			after = min(after, i)
		}
	}
	known := int(list[place].low) // head comes after the first so many
	for i := place - 1; i >= known; i-- {
		if x := list[i]; !open.Test(uint(x.head)) && relate(x.head) == isAfter {
			known = max(known, int(x.low))
		}
	}
}

// placesAStep is how many places of a list, looked at one after the other, are a step.
const placesAStep = 8

// Overwrite takes in that w is the immediate successor of v, which the table
// has joined: w's writer has read v, or a list shows it and Follow was told. fresh:
// w is not a block yet.
func (p *Polygraph) Overwrite(v, w version.ID, fresh bool) {
	if p.bulk {
		return
	}
	ver := p.tab.At(v)
	p.Wrote(w)
	for q := range p.tab.Readers(v) {
		p.overwritten(q, v)
	}
	switch {
	case ver.Kind != version.Written:
		if fresh {
			p.Block(w)
		} else if p.tab.First(w) && !p.leaves() { // the block is there, and now it is the first
			list := p.list(ver.Key)
			if i := slices.IndexFunc(*list, func(x blockRef) bool { return x.head == w }); i >= 0 {
				remove(list, i)
			}
			p.drop(w)
			p.first(w, list)
		}
	case fresh: // though others may have followed w already, where all was written first
		p.extend(p.tab.Head(p.tab.Tail(w)))
	default:
		p.merge(p.tab.Head(p.tab.Tail(w)), w)
	}
	p.Propagate()
}

// drop kills the pairs of a block.
func (p *Polygraph) drop(head vid) {
	for c := p.firstPair(head); c != none; c = p.firstPair(head) {
		p.kill(c)
		p.Stats.Constraints--
	}
}

// extend takes in that the block's tail has moved on by one.
func (p *Polygraph) extend(head vid) {
	if p.tab.At(head).Fresh || p.leaves() {
		return
	}
	for c := p.firstPair(head); c != none; c = *p.nextPair(c, head) {
		p.watchTail(head, c)
		p.moveTail(head, c)
		p.wake(c)
	}
	p.pairUp(head)
}

// merge takes in that the blocks of a and b, both in the list, have become one,
// headed by a. All orders that either had are drawn again for the whole.
func (p *Polygraph) merge(a, b vid) {
	if p.leaves() {
		return
	}
	list := p.list(p.tab.At(a).Key)
	p.busy.Set(uint(p.tab.At(a).Key))
	p.drop(a)
	p.drop(b)
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

// remove takes a block out of the list of its key.
func remove(list *[]blockRef, i int) {
	*list = slices.Delete(*list, i, i+1)
	for k := range *list {
		if x := &(*list)[k]; int(x.low) > i {
			x.low--
		}
	}
}
