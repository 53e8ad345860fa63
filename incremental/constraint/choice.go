package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// Impossible declares that slot, which is uncertain, breaks something by itself
// and so can't be in the history.
func (p *Polygraph) Impossible(s version.Slot) {
	m, uncertain := p.subjects.maybe[s]
	switch {
	case uncertain && m == mayBeIn:
		p.ruleOut(s)
		if !p.bulk {
			p.propagate()
		}
	case uncertain && m == isIn:
		p.reports.Misled()
	}
}

// Ambiguous takes in that reader read one of the candidates, versions of one
// key none of which is its own; no other can have been read. cands ascend by
// line and slot, an initial version first; they may be shared and are not
// changed. guarded: reader is uncertain.
func (p *Polygraph) Ambiguous(reader version.Slot, key version.Key, cands []version.ID, guarded bool) {
	if guarded && p.subjects.maybe[reader] == isOut {
		return
	}
	p.Budget.Use(len(cands))
	if !p.bulk && p.leaves() {
		return
	}
	guarded = guarded && p.subjects.maybe[reader] == mayBeIn
	ci := choiceID(len(p.subjects.choices))
	p.subjects.choices = append(p.subjects.choices, choice{reader: reader, key: key, guarded: guarded,
		single: len(cands) == 1, cands: cands, last: none})
	p.subjects.openChoices++
	p.subjects.candidates += len(cands)
	p.subjects.current = false
	p.Stats.Choices++
	p.orders.readsSome(reader)
	if p.subjects.choiceOf == nil {
		p.subjects.choiceOf = map[Read]choiceID{}
	}
	p.subjects.choiceOf[Read{reader, key}] = ci
	if guarded {
		if p.subjects.guardedBy == nil {
			p.subjects.guardedBy = map[slot][]choiceID{}
		}
		p.subjects.guardedBy[reader] = append(p.subjects.guardedBy[reader], ci)
	}
	if p.bulk {
		return
	}
	p.writers.trackWriters(key)
	p.subjects.wakeChoice(ci)
	p.propagate()
}

// Undecided is the number of constraints that reachability does not decide: the
// pairs without an order and the reads without a version.
// Where a bulk load was stopped, the blocks that were not looked at count too.
func (p *Polygraph) Undecided() int {
	return p.subjects.openPairs + p.orders.implicit + p.subjects.openChoices + p.left
}

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
	if p.subjects.exclusive == nil {
		p.subjects.exclusive = map[slot][]slot{}
	}
	p.subjects.exclusive[s] = append(p.subjects.exclusive[s], t)
	p.subjects.exclusive[t] = append(p.subjects.exclusive[t], s)
	p.subjects.current = false
	for _, x := range [2][2]slot{{s, t}, {t, s}} {
		if p.subjects.maybe[x[0]] == isIn {
			p.Impossible(x[1])
		}
	}
}

// Include: s, which is uncertain, took effect.
func (p *Polygraph) Include(s version.Slot) {
	p.include(s)
	if !p.bulk {
		p.propagate()
	}
}

// settleChoice narrows a choice, and takes what remains alone.
func (p *Polygraph) settleChoice(ci choiceID) {
	c := &p.subjects.choices[ci]
	p.writers.narrow(c)
	if p.decide(ci) {
		return
	}
	for _, v := range c.cands {
		p.orders.mayRead(v)
	}
	// What may change it: something new before the reader, before a candidate,
	// or between a candidate and a writer that the reader has behind it.
	p.subjects.watchChoice(ci, p.start(c.reader))
	for _, v := range c.cands {
		if ver := p.tab.At(v); ver.Kind == version.Written {
			p.subjects.watchChoice(ci, p.commit(ver.Writer))
		}
	}
	for _, x := range p.writers.scratch {
		p.subjects.watchChoice(ci, p.commit(x))
	}
}

// decide ends a choice that has at most one candidate left.
func (p *Polygraph) decide(ci choiceID) bool {
	c := &p.subjects.choices[ci]
	switch {
	case len(c.cands) == 0 && c.guarded:
		p.ruleOut(c.reader)
		return true
	case len(c.cands) == 0:
		if p.reports.more() {
			p.reports.hopeless = append(p.reports.hopeless, ci) // explained when all candidates are there
		}
		p.subjects.endChoice(c, choiceGone)
		return true
	case len(c.cands) == 1 && !c.guarded:
		p.decideRead(ci)
		return true
	}
	return false
}

// decideRead makes the one candidate that is left the version that was read.
func (p *Polygraph) decideRead(ci choiceID) {
	c := &p.subjects.choices[ci]
	v, reader, key := c.cands[0], c.reader, c.key
	why := verdict.ByElimination
	if c.single {
		why = verdict.ByValue
	}
	p.subjects.endChoice(c, choiceTaken)
	p.Stats.Eliminated++
	p.subjects.byElimination = true
	if ver := p.tab.At(v); ver.Kind == version.Written {
		p.include(ver.Writer)
	}
	w := vid(none) // its version that follows v at once
	if !p.cfg.Prefix {
		w = p.tab.WriteOf(reader, key)
	}
	p.tab.Decide(reader, v)
	p.read(reader, v, why)
	if w == version.None || p.tab.At(v).Next != version.None || p.tab.At(w).Prev != version.None {
		if p.bulk {
			p.orders.bulkRead(reader, v)
		}
		return
	}
	p.tab.Overwrite(v, w)
	if p.bulk {
		for q := range p.tab.Readers(v) {
			p.orders.overwritten(q, v)
		}
		return
	}
	fresh := p.tab.At(w).Fresh
	p.tab.At(w).Fresh = false
	p.Overwrite(v, w, fresh)
}

// include: somebody in the history read from s, so it took effect, and its own
// reads bind.
func (p *Polygraph) include(s slot) {
	m, uncertain := p.subjects.maybe[s]
	if !uncertain || m == isIn {
		return
	}
	p.subjects.current = false
	if m == isOut {
		p.reports.Misled()
		return
	}
	p.subjects.maybe[s] = isIn
	for _, ci := range p.subjects.guardedBy[s] {
		c := &p.subjects.choices[ci]
		if c.state == choiceOpen {
			c.guarded = false
			p.subjects.wakeChoice(ci)
		}
	}
	for _, t := range p.subjects.exclusive[s] {
		p.Impossible(t)
	}
}

// ruleOut: s can't be in the history, and nobody read from it.
func (p *Polygraph) ruleOut(s slot) {
	p.subjects.maybe[s] = isOut
	p.subjects.current = false
	for _, ci := range p.subjects.guardedBy[s] {
		p.subjects.endChoice(&p.subjects.choices[ci], choiceGone)
	}
	p.subjects.Reached(p.commit(s)) // a choice that may be of s watches it, or is yet to be looked at
}

// resolveRound narrows all open choices against the closure as it is, and puts
// the edges of those decided in the graph without it. It returns how many. To narrow goes key by key, as
// what it looks at is the key's; to decide in the order of readers, so that the edges of each lie together.
func (p *Polygraph) resolveRound() int {
	byKey := make([]uint64, 0, p.subjects.openChoices)
	for ci := range p.subjects.choices {
		if c := &p.subjects.choices[ci]; c.state == choiceOpen {
			c.dirty = false
			byKey = append(byKey, uint64(c.key)<<32|uint64(ci))
		}
	}
	slices.Sort(byKey)
	for i, x := range byKey {
		if i&1023 == 0 && p.halted() {
			return 0
		}
		p.writers.narrow(&p.subjects.choices[uint32(x)])
	}
	n := 0
	for ci := range p.subjects.choices {
		if ci&1023 == 0 && p.halted() {
			return 0
		}
		c := &p.subjects.choices[ci]
		if c.state != choiceOpen {
			continue
		}
		if len(c.cands) == 1 && p.tab.At(c.cands[0]).Next != version.None { // since this round, it may be
			p.writers.narrow(c)
		}
		if p.decide(choiceID(ci)) {
			n++
		}
	}
	for _, ci := range p.subjects.dirtyChoices { // the next round, or settleChoices, looks at all
		p.subjects.choices[ci].dirty = false
	}
	p.subjects.dirtyChoices = p.subjects.dirtyChoices[:0]
	return n
}

// rounds resolves choices while that goes in large steps, building the closure
// anew each time, which is much cheaper than inserting the edges one by one.
func (p *Polygraph) rounds() {
	p.writers.trackAll()
	for p.subjects.openChoices > 0 {
		n := p.resolveRound()
		if n == 0 {
			return
		}
		p.loader.build()
		if n < p.subjects.openChoices/50 {
			return
		}
	}
}
