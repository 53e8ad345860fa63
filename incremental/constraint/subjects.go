package constraint

import (
	"slices"
)

// pairID numbers pairs, choiceID choices, in the order in which they are made.
type (
	pairID   uint32
	choiceID uint32
)

// open constraint: the blocks that a and b head, on one key. It lies in the lists of
// the pairs of a and of b.
type pair struct {
	a, b         vid
	next, prev   [2]pairID // in a's list and b's; the first's prev is the last
	top          int64     // if settled: see scope
	alive, dirty bool
	ab           bool // a came first in the solution that had the pair last
	tried        bool // there was one
	settled      bool // it was part of the last solution; see window.go
	moved        bool // and means more now
}

// subjects are what is open: the orders of pairs of blocks, the versions of reads, and whether transactions of unknown
// outcome took effect. Whatever something new reaches wakes those that watch it.
type subjects struct {
	*known
	pairs     []pair
	openPairs int
	pairsOf   []pairID // by the version that heads a block: its first pair
	unsettled int      // open pairs that the last solution did not have as they are

	choices       []choice
	openChoices   int
	candidates    int                 // of all choices that are open
	choiceOf      map[Read]choiceID   // by reader and key
	maybe         map[slot]maybe      // transactions of unknown outcome; in, where missing
	guardedBy     map[slot][]choiceID // the choices of uncertain transactions
	exclusive     map[slot][]slot     // uncertain transactions of which one at most took effect
	byElimination bool                // a candidate was taken: blocks may rest on it

	firstWatch   []uint32 // by node, into watches
	watches      []watch
	dirty        []pairID // woken, to be looked at again
	dirtyChoices []choiceID
	// current: the last solution is one of all that is open.
	current bool
}

// watch lets item, a pair or a choice, be looked at again when something new
// reaches node.
type watch struct {
	item uint32 // a pairID, or with itemChoice a choiceID
	node node
	next uint32
}

// pairBytes is what an open pair takes with its watches, and while its order is searched for, candidateBytes what a
// candidate of an open choice does, and forcedBytes a forced edge, with why it is.
const pairBytes, candidateBytes, forcedBytes = 512, 64, 64

// Watched and Reached: see reach.Watcher.
func (p *subjects) Watched(n node) bool { return p.firstWatch[n] != none }

// Reached wakes what watches n.
func (p *subjects) Reached(n node) {
	steps := p.wide
	defer func() { p.Budget.Use(steps) }()
	for w := p.firstWatch[n]; w != none; w = p.watches[w].next {
		steps++
		if item := p.watches[w].item; item&itemChoice != 0 {
			p.wakeChoice(choiceID(item &^ itemChoice))
		} else {
			p.wake(pairID(item))
		}
	}
}

func (p *subjects) wake(c pairID) {
	if p.pairs[c].alive && !p.pairs[c].dirty {
		p.pairs[c].dirty = true
		p.dirty = append(p.dirty, c)
	}
}

func (p *subjects) watchNode(n node, item uint32) {
	p.Budget.Use(1)
	p.watches = append(p.watches, watch{item, n, p.firstWatch[n]})
	p.firstWatch[n] = uint32(len(p.watches) - 1)
}

// compact drops the bookkeeping of pairs that are decided: a stream decides as
// many as it makes.
func (p *subjects) compact() {
	old := p.pairs
	p.pairs = nil
	for _, w := range p.watches {
		p.firstWatch[w.node] = none
	}
	p.watches = p.watches[:0]
	for _, pr := range old {
		p.pairsOf[pr.a], p.pairsOf[pr.b] = none, none
	}
	p.current = false
	p.unsettled = 0
	for _, pr := range old {
		if pr.alive {
			p.addPair(pr.a, pr.b)
			x := &p.pairs[len(p.pairs)-1]
			x.ab, x.tried = pr.ab, pr.tried
			if pr.settled {
				p.settle(x, pr.top)
				x.moved = pr.moved
			}
		}
	}
	for ci := range p.choices { // the numbers of choices stay
		c := &p.choices[ci]
		for _, n := range c.watched {
			p.watchNode(n, itemChoice|uint32(ci))
		}
	}
}

func (p *subjects) kill(c pairID) {
	pr := &p.pairs[c]
	pr.alive = false
	p.openPairs--
	if !pr.settled {
		p.unsettled--
	}
	for side, h := range [2]vid{pr.a, pr.b} {
		first, next, prev := p.pairsOf[h], pr.next[side], pr.prev[side]
		if c == first {
			first = next
			p.pairsOf[h] = first
		} else {
			*p.nextPair(prev, h) = next
		}
		switch {
		case next != none:
			*p.prevPair(next, h) = prev
		case first != none:
			*p.prevPair(first, h) = prev
		}
	}
}

// firstPair is the first of the pairs of the block that h heads, or none; nextPair goes
// on. While a pair is killed they must not be walked.
func (p *subjects) firstPair(h vid) pairID {
	if int(h) >= len(p.pairsOf) {
		return none
	}
	return p.pairsOf[h]
}

func (p *subjects) nextPair(c pairID, h vid) *pairID { return &p.pairs[c].next[p.pairs[c].side(h)] }

func (p *subjects) prevPair(c pairID, h vid) *pairID { return &p.pairs[c].prev[p.pairs[c].side(h)] }

// side is where the pair keeps what concerns h, one of its two.
func (x *pair) side(h vid) int {
	if x.a == h {
		return 0
	}
	return 1
}

// link puts pair c at the end of h's pairs.
func (p *subjects) link(c pairID, h vid) {
	for int(h) >= len(p.pairsOf) {
		p.pairsOf = append(p.pairsOf, none)
	}
	first := p.pairsOf[h]
	*p.nextPair(c, h) = none
	if first == none {
		p.pairsOf[h], *p.prevPair(c, h) = c, c
		return
	}
	last := *p.prevPair(first, h)
	*p.nextPair(last, h), *p.prevPair(c, h), *p.prevPair(first, h) = c, last, c
}

// pairSteps is what to make a pair costs, and to drop it.
const pairSteps = 4

func (p *subjects) addPair(a, b vid) {
	c := pairID(len(p.pairs))
	p.Budget.Use(pairSteps)
	p.pairs = append(p.pairs, pair{a: a, b: b, alive: true})
	p.unsettled++
	for _, h := range [2]vid{a, b} {
		p.link(c, h)
		p.watchTail(h, c)
	}
}

// watchTail lets pair c be looked at again when something new reaches a node
// that an edge of it leaves: then that edge may close a cycle.
func (p *subjects) watchTail(head vid, c pairID) {
	tail := p.tab.Tail(head)
	p.watchNode(p.commit(p.tab.At(tail).Writer), uint32(c))
	for r := range p.tab.Readers(tail) {
		p.watchNode(p.start(r), uint32(c))
	}
}

// drop kills the pairs of a block.
func (p *subjects) drop(head vid) {
	for c := p.firstPair(head); c != none; c = p.firstPair(head) {
		p.kill(c)
		p.Stats.Constraints--
	}
}

// choice is a read of which several versions are candidates: VeriStrong's
// hyper-edge of a hyper-polygraph (4.2). One of them was read.
//
// A candidate v falls when the dependencies that reading it would make close a
// cycle (VeriStrong 6.1.1): its writer comes after the reader, or another
// writer of the key comes after v's and before the reader. What remains alone
// is an edge. This is looked at again when something new reaches the reader, a
// candidate or a writer that the reader has behind it.
//
// The read of a transaction of unknown outcome, which is in the history only
// if somebody read from it, binds only then: guarded.
type choice struct {
	reader  slot
	key     keyID
	guarded bool
	single  bool // it had one candidate from the start: its transaction was in doubt, not its writer
	state   choiceState
	dirty   bool
	own     bool   // cands is the choice's own and may be changed
	cands   []vid  // candidates left, ascending by line, then slot
	watched []node // nodes that wake it, ascending
	last    vid    // what it read in the solution that had it last, or none
}

type choiceState uint8

const (
	choiceOpen choiceState = iota
	choiceTaken
	choiceGone // given up after a violation, or its transaction is not in the history
)

// maybe is what is known of a transaction of unknown outcome.
type maybe uint8

const (
	isIn maybe = iota
	mayBeIn
	isOut
)

// itemChoice marks the watches of choices among those of pairs.
const itemChoice = uint32(1) << 31

func (p *subjects) wakeChoice(ci choiceID) {
	c := &p.choices[ci]
	if c.state == choiceOpen && !c.dirty {
		c.dirty = true
		p.dirtyChoices = append(p.dirtyChoices, ci)
	}
}

func (p *subjects) endChoice(c *choice, s choiceState) {
	if c.state == choiceOpen {
		c.state = s
		c.watched = nil
		p.openChoices--
		p.candidates -= len(c.cands)
	}
}

func (p *subjects) watchChoice(ci choiceID, n node) {
	c := &p.choices[ci]
	if i, watched := slices.BinarySearch(c.watched, n); !watched {
		c.watched = slices.Insert(c.watched, i, n)
		p.watchNode(n, uint32(ci)|itemChoice)
	}
}

// undecided lists what is open.
func (p *subjects) undecided() (pairs []pairID, choices []choiceID) {
	pairs = make([]pairID, 0, p.openPairs)
	for c := range p.pairs {
		if p.pairs[c].alive {
			pairs = append(pairs, pairID(c))
		}
	}
	for c := range p.choices {
		if p.choices[c].state == choiceOpen {
			choices = append(choices, choiceID(c))
		}
	}
	return pairs, choices
}
