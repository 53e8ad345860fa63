package constraint

import (
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

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
	state   choiceState
	dirty   bool
	own     bool   // cands is the choice's own and may be changed
	cands   []vid  // candidates left, ascending by line, then slot
	watched []node // nodes that wake it, ascending
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

// writersOnLine are the writers of one key on one line (session), in order.
type writersOnLine struct {
	line version.Line
	vs   []vid
}

// itemChoice marks the watches of choices among those of pairs.
const itemChoice = uint32(1) << 31

// Impossible declares that slot, which is uncertain, breaks something by itself
// and so can't be in the history.
func (p *Polygraph) Impossible(s version.Slot) {
	m, uncertain := p.maybe[s]
	switch {
	case uncertain && m == mayBeIn:
		p.ruleOut(s)
		if !p.bulk {
			p.Propagate()
		}
	case uncertain && m == isIn:
		p.impossibleIn()
	}
}

// Ambiguous takes in that reader read one of the candidates, versions of one
// key none of which is its own; no other can have been read. cands ascend by
// line and slot, an initial version first; they may be shared and are not
// changed. guarded: reader is uncertain.
func (p *Polygraph) Ambiguous(reader version.Slot, key version.Key, cands []version.ID, guarded bool) {
	if guarded && p.maybe[reader] == isOut {
		return
	}
	p.Budget.Use(len(cands))
	if !p.bulk && p.leaves() {
		return
	}
	guarded = guarded && p.maybe[reader] == mayBeIn
	ci := choiceID(len(p.choices))
	p.choices = append(p.choices, choice{reader: reader, key: key, guarded: guarded, cands: cands})
	p.openChoices++
	p.candidates += len(cands)
	p.solved.valid = false
	p.Stats.Choices++
	p.readsSome(reader)
	if p.choiceOf == nil {
		p.choiceOf = map[Read]choiceID{}
	}
	p.choiceOf[Read{reader, key}] = ci
	if guarded {
		if p.guardedBy == nil {
			p.guardedBy = map[slot][]choiceID{}
		}
		p.guardedBy[reader] = append(p.guardedBy[reader], ci)
	}
	if p.bulk {
		return
	}
	p.trackWriters(key)
	p.wakeChoice(ci)
	p.Propagate()
}

// Undecided is the number of constraints that reachability does not decide: the
// pairs without an order and the reads without a version.
// Where a bulk load was stopped, the blocks that were not looked at count too.
func (p *Polygraph) Undecided() int { return p.open + p.implicit + p.openChoices + p.left }

// Decided is the share of what had to be decided that reachability decided.
func (p *Polygraph) Decided() float64 {
	if p.bulk { // stopped before anything was
		return 0
	}
	all := p.Stats.Constraints + p.Stats.Choices + p.left
	return 1 - float64(p.Undecided())/float64(max(1, all))
}

// Exclude declares that not both s and t, which are uncertain, took effect.
func (p *Polygraph) Exclude(s, t version.Slot) {
	if p.exclusive == nil {
		p.exclusive = map[slot][]slot{}
	}
	p.exclusive[s] = append(p.exclusive[s], t)
	p.exclusive[t] = append(p.exclusive[t], s)
	p.solved.valid = false
	for _, x := range [2][2]slot{{s, t}, {t, s}} {
		if p.maybe[x[0]] == isIn {
			p.Impossible(x[1])
		}
	}
}

// Include: s, which is uncertain, took effect.
func (p *Polygraph) Include(s version.Slot) {
	p.include(s)
	if !p.bulk {
		p.Propagate()
	}
}

// Config is what the polygraph was made with.
func (p *Polygraph) Config() Config { return p.cfg }

// line numbers total orders: sessions, and each transaction outside of them.
func (p *Polygraph) line(v vid) version.Line { return p.tab.Line(p.tab.At(v).Writer) }

// trackWriters keeps the writers of a key by line from now on.
func (p *Polygraph) trackWriters(k keyID) {
	for int(k) >= len(p.byLine) {
		p.byLine = append(p.byLine, nil)
		p.tracked = append(p.tracked, false)
	}
	if p.tracked[k] {
		return
	}
	p.tracked[k] = true
	for _, b := range *p.list(k) {
		for v := b.head; v != version.None; v = p.tab.At(v).Next {
			p.trackWriter(v)
		}
	}
}

// Hold is Wrote for a version that Block will only be told of when other transactions
// have come: a read of its key knows of it before.
func (p *Polygraph) Hold(v version.ID) {
	if p.bulk {
		return // all are tracked when it ends
	}
	p.trackWriters(p.tab.At(v).Key)
	p.trackWriter(v)
}

// Wrote takes in a new version, or one that it may have been told of.
func (p *Polygraph) Wrote(v version.ID) {
	if k := p.tab.At(v).Key; int(k) < len(p.tracked) && p.tracked[k] {
		p.trackWriter(v)
	}
}

func (p *Polygraph) trackWriter(v vid) {
	k, line := p.tab.At(v).Key, p.line(v)
	lists := p.byLine[k]
	i, ok := slices.BinarySearchFunc(lists, line, func(l writersOnLine, x version.Line) int { return int(l.line) - int(x) })
	if !ok {
		lists = slices.Insert(lists, i, writersOnLine{line: line})
		p.byLine[k] = lists
	}
	l := &lists[i].vs
	at := len(*l)
	for at > 0 && p.tab.At((*l)[at-1]).Writer > p.tab.At(v).Writer {
		at--
	}
	if at > 0 && (*l)[at-1] == v {
		return
	}
	*l = slices.Insert(*l, at, v)
}

// trackAll keeps the writers of the keys of all choices, at the end of a bulk
// load.
func (p *Polygraph) trackAll() {
	if len(p.choices) == 0 {
		return
	}
	for i := range p.choices {
		k := p.choices[i].key
		for int(k) >= len(p.byLine) {
			p.byLine = append(p.byLine, nil)
			p.tracked = append(p.tracked, false)
		}
		p.tracked[k] = true
	}
	for v := range vid(p.tab.Len()) {
		if ver := p.tab.At(v); ver.Kind == version.Written && int(ver.Key) < len(p.tracked) && p.tracked[ver.Key] {
			p.trackWriter(v)
		}
	}
}

// behind are, of each line, the last writer of key that precedes reader: what a
// read by it can't go back behind. It appends to out.
func (p *Polygraph) behind(key keyID, reader slot, out []slot) []slot {
	for _, l := range p.byLine[key] {
		if n := p.preceding(l.vs, reader); n > 0 {
			out = append(out, p.writer(l.vs[n-1]))
		}
	}
	return out
}

// preceding is how many of the writers of a line precede reader. Whatever precedes a
// transaction of a line does so for its successors there, so a binary search finds it.
func (p *Polygraph) preceding(vs []vid, reader slot) int {
	start := p.start(reader)
	return sort.Search(len(vs), func(i int) bool {
		w := p.writer(vs[i])
		return w == reader || !p.reach.Reaches(p.commit(w), start)
	})
}

// beside appends the heads of the blocks that a read may have missed whatever it is of: they neither follow
// its transaction nor precede it, as what comes before one that does is no candidate any more.
// Cost: per line of writers two binary searches, and what is found.
func (p *Polygraph) beside(c *choice, out []vid) []vid {
	start := p.start(c.reader)
	for _, l := range p.byLine[c.key] {
		vs := l.vs[p.preceding(l.vs, c.reader):]
		vs = vs[:sort.Search(len(vs), func(i int) bool { return p.reach.Reaches(start, p.commit(p.writer(vs[i]))) })]
		for _, v := range vs {
			if p.writer(v) != c.reader && p.isHead(v) && !p.tab.At(v).Fresh {
				out = append(out, v)
			}
		}
		p.Budget.Use(2*behindSteps + len(vs))
	}
	return out
}

// excluded tells why reader can't have read v: the dependency of that read that
// would close a cycle. behind are the writers of the key that precede reader.
func (p *Polygraph) excluded(v vid, reader slot, behind []slot) (graph.Edge, bool) {
	ver := p.tab.At(v)
	start := p.start(reader)
	p.Budget.Use(len(behind) / placesAStep)
	if ver.Kind == version.Initial {
		for _, x := range behind {
			return p.antiDependency(reader, x, ver.Key), true
		}
	} else {
		w := ver.Writer
		if p.maybe[w] == isOut {
			return graph.Edge{From: none}, true
		}
		if p.reach.Reaches(start, p.commit(w)) {
			return graph.Edge{From: p.commit(w), To: start, Key: ver.Key, Type: verdict.WR, Why: verdict.ByCase}, true
		}
		first := p.writing(w)
		for _, x := range behind {
			if x != w && p.reach.Reaches(first, p.commit(x)) {
				return p.antiDependency(reader, x, ver.Key), true
			}
		}
	}
	// If reader overwrote v, nobody else did.
	if ver.Next != version.None && !p.cfg.Prefix {
		if n := p.tab.At(ver.Next).Writer; n != reader && p.tab.WriteOf(reader, ver.Key) != version.None {
			return p.antiDependency(reader, n, ver.Key), true
		}
	}
	return graph.Edge{}, false
}

func (p *Polygraph) antiDependency(reader, writer slot, k keyID) graph.Edge {
	return graph.Edge{From: p.start(reader), To: p.commit(writer), Key: k, Type: verdict.RW, Why: verdict.ByCase}
}

// behindSteps is what the search in one line of writers costs.
const behindSteps = 8

// narrow drops the candidates of a choice that the graph excludes, and leaves
// the writers of the key that precede the reader in p.scratch. Cost: per line
// of writers a binary search, per candidate concurrent with the reader a
// reachability question for each of those.
func (p *Polygraph) narrow(c *choice) {
	p.scratch = p.behind(c.key, c.reader, p.scratch[:0])
	p.Budget.Use(behindSteps*len(p.byLine[c.key]) + len(c.cands))
	var kept []vid
	dropped := false
	drop := func(i int) {
		if dropped {
			return
		}
		dropped = true
		if c.own {
			kept = c.cands[:i]
		} else {
			kept = append(make([]vid, 0, len(c.cands)-1), c.cands[:i]...)
		}
	}
	try := func(i int) {
		v := c.cands[i]
		if _, out := p.excluded(v, c.reader, p.scratch); out {
			drop(i)
		} else if dropped {
			kept = append(kept, v)
		}
	}
	if len(c.cands) <= 16 {
		for i := range c.cands {
			try(i)
		}
	} else {
		p.eachLine(c, drop, try)
	}
	if dropped {
		p.candidates -= len(c.cands) - len(kept)
		c.cands, c.own = kept, true
	}
}

// eachLine calls try for the candidates that may be left by their line alone
// and drop for the others: of a line, those concurrent with the reader and the
// last one before it.
func (p *Polygraph) eachLine(c *choice, drop, try func(i int)) {
	start := p.start(c.reader)
	for a := 0; a < len(c.cands); {
		if p.tab.At(c.cands[a]).Kind != version.Written {
			try(a)
			a++
			continue
		}
		line := p.line(c.cands[a])
		b := a + 1
		for b < len(c.cands) && p.line(c.cands[b]) == line {
			b++
		}
		before := sort.Search(b-a, func(i int) bool { return !p.reach.Reaches(p.commit(p.writer(c.cands[a+i])), start) })
		after := sort.Search(b-a, func(i int) bool { return p.reach.Reaches(start, p.commit(p.writer(c.cands[a+i]))) })
		for i := a; i < b; i++ {
			if i < a+before-1 || i >= a+after {
				drop(i)
			} else {
				try(i)
			}
		}
		a = b
	}
}

func (p *Polygraph) wakeChoice(ci choiceID) {
	c := &p.choices[ci]
	if c.state == choiceOpen && !c.dirty {
		c.dirty = true
		p.dirtyChoices = append(p.dirtyChoices, ci)
	}
}

// settleChoice narrows a choice, and takes what remains alone.
func (p *Polygraph) settleChoice(ci choiceID) {
	c := &p.choices[ci]
	p.narrow(c)
	if p.decide(ci) {
		return
	}
	for _, v := range c.cands {
		p.mayRead(v)
	}
	// What may change it: something new before the reader, before a candidate,
	// or between a candidate and a writer that the reader has behind it.
	p.watchChoice(ci, p.start(c.reader))
	for _, v := range c.cands {
		if ver := p.tab.At(v); ver.Kind == version.Written {
			p.watchChoice(ci, p.commit(ver.Writer))
		}
	}
	for _, x := range p.scratch {
		p.watchChoice(ci, p.commit(x))
	}
}

// decide ends a choice that has at most one candidate left.
func (p *Polygraph) decide(ci choiceID) bool {
	c := &p.choices[ci]
	switch {
	case len(c.cands) == 0 && c.guarded:
		p.ruleOut(c.reader)
		return true
	case len(c.cands) == 0:
		if p.more() {
			p.hopeless = append(p.hopeless, ci) // explained when all candidates are there
		}
		p.endChoice(c, choiceGone)
		return true
	case len(c.cands) == 1 && !c.guarded:
		p.decideRead(ci)
		return true
	}
	return false
}

func (p *Polygraph) endChoice(c *choice, s choiceState) {
	if c.state == choiceOpen {
		c.state = s
		c.watched = nil
		p.openChoices--
		p.candidates -= len(c.cands)
	}
}

func (p *Polygraph) watchChoice(ci choiceID, n node) {
	c := &p.choices[ci]
	if i, watched := slices.BinarySearch(c.watched, n); !watched {
		c.watched = slices.Insert(c.watched, i, n)
		p.watchNode(n, uint32(ci)|itemChoice)
	}
}

// decideRead makes the one candidate that is left the version that was read.
func (p *Polygraph) decideRead(ci choiceID) {
	c := &p.choices[ci]
	v, reader, key := c.cands[0], c.reader, c.key
	p.endChoice(c, choiceTaken)
	p.Stats.Eliminated++
	p.byElimination = true
	why := verdict.ByElimination
	if len(p.tab.Candidates(reader, key)) == 1 {
		why = verdict.ByValue // its transaction was in doubt, not its writer
	}
	if ver := p.tab.At(v); ver.Kind == version.Written {
		p.include(ver.Writer)
	}
	w := vid(none) // its version that follows v at once
	if !p.cfg.Prefix {
		w = p.tab.WriteOf(reader, key)
	}
	p.tab.Decide(reader, v)
	p.readAs(reader, v, why)
	if w == version.None || p.tab.At(v).Next != version.None || p.tab.At(w).Prev != version.None {
		if p.bulk {
			p.bulkRead(reader, v)
		}
		return
	}
	p.tab.Overwrite(v, w)
	if p.bulk {
		for q := range p.tab.Readers(v) {
			p.overwritten(q, v)
		}
		return
	}
	fresh := p.tab.At(w).Fresh
	p.tab.At(w).Fresh = false
	p.Overwrite(v, w, fresh)
}

// bulkRead puts the anti-dependencies of a read that was decided during a bulk
// load in the graph, as far as they are plain.
func (p *Polygraph) bulkRead(reader slot, v vid) {
	ver := p.tab.At(v)
	if ver.Next != version.None {
		p.overwritten(reader, v)
		return
	}
	if ver.Kind != version.Initial {
		return
	}
	for _, l := range p.byLine[ver.Key] { // the first writer of each line stands for the rest
		if w := p.writer(l.vs[0]); w != reader && !p.reach.Reaches(p.start(reader), p.commit(w)) {
			p.addEdge(graph.Edge{From: p.start(reader), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByInitial},
				false)
		}
	}
}

// include: somebody in the history read from s, so it took effect, and its own
// reads bind.
func (p *Polygraph) include(s slot) {
	m, uncertain := p.maybe[s]
	if !uncertain || m == isIn {
		return
	}
	p.solved.valid = false
	if m == isOut {
		p.impossibleIn()
		return
	}
	p.maybe[s] = isIn
	for _, ci := range p.guardedBy[s] {
		c := &p.choices[ci]
		if c.state == choiceOpen {
			c.guarded = false
			p.wakeChoice(ci)
		}
	}
	for _, t := range p.exclusive[s] {
		p.Impossible(t)
	}
}

// impossibleIn reports that a transaction took effect, as somebody can have read
// from nobody else, that can't have.
func (p *Polygraph) impossibleIn() {
	if p.more() {
		p.found = append(p.found, Violation{Whole: true, Because: map[int][]graph.Edge{}, Assumed: p.cfg.RealTime})
	}
}

// Misled reports that what was decided of an ambiguous read can't be, as the records
// show.
func (p *Polygraph) Misled() { p.impossibleIn() }

// ruleOut: s can't be in the history, and nobody read from it.
func (p *Polygraph) ruleOut(s slot) {
	p.maybe[s] = isOut
	p.solved.valid = false
	for _, ci := range p.guardedBy[s] {
		p.endChoice(&p.choices[ci], choiceGone)
	}
	p.changed(p.commit(s)) // a choice that may be of s watches it, or is yet to be looked at
}

// resolveRound narrows all open choices against the closure as it is, and puts
// the edges of those decided in the graph without it. It returns how many.
func (p *Polygraph) resolveRound() int {
	n := 0
	for ci := range p.choices {
		if ci&1023 == 0 && p.halted() {
			return 0
		}
		if c := &p.choices[ci]; c.state == choiceOpen {
			c.dirty = false
			p.narrow(c)
			if p.decide(choiceID(ci)) {
				n++
			}
		}
	}
	for _, ci := range p.dirtyChoices { // the next round, or settleChoices, looks at all
		p.choices[ci].dirty = false
	}
	p.dirtyChoices = p.dirtyChoices[:0]
	return n
}

// rounds resolves choices while that goes in large steps, building the closure
// anew each time, which is much cheaper than inserting the edges one by one.
func (p *Polygraph) rounds() {
	p.trackAll()
	for p.openChoices > 0 {
		n := p.resolveRound()
		if n == 0 {
			return
		}
		p.build()
		if n < p.openChoices/50 {
			return
		}
	}
}
