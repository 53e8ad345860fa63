package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

// graphs are the polygraphs of a history, and the strands that read it into them.
type graphs struct {
	opt    *Options
	h      *history
	budget *budget.Budget
	checks []*check // levels that want a polygraph
	// plain: no polygraph is asked for, so that versions are made of lists only.
	plain bool
	// strands are readings of the history, all with the same slots and versions.
	// The first serves for look-ups; where pc is asked for it is that one's. While
	// no read has several candidates and no time misled, levels that agree on what
	// a read says of versions, and on sessions, share one; afterwards each level
	// kind has its own.
	strands []*strand
	main    *strand
	opened  bool
	// ambiguities: some reads have several candidates, or transactions of unknown
	// outcome may have been read from. Then strands have one polygraph each.
	ambiguities bool
	// shared are the candidates of reads of a value by whoever did not write it, where all that wrote it are admitted,
	// so that they stay what they are; nil elsewhere.
	shared  map[cellID][]version.ID
	rereads int // how often the history was read again
}

// check is one level, or two that share a polygraph.
type check struct {
	level  verdict.Level
	split  bool
	prefix bool                  // pc
	single bool                  // lin: without session order, and of single objects only
	timed  bool                  // real time is part of the level
	poly   *constraint.Polygraph // nil until strands are opened
	strand *strand               // the one that poly is of
	pruned bool                  // poly uses times, which are no part of the level; never with timed

	found       []verdict.Violation
	unproved    int  // findings that only times show, where it can't be read again
	partly      bool // of what was found for it, some was only counted
	notRealTime bool // satisfied or not, no order that keeps to the clocks explains it
	noTimes     bool // timed, and poly goes without times, as there are none
	budget      bool // the last search met its budget of conflicts
	// rest is how many Ticks are still to go without a search; rests how many went, or go, without one since a search
	// met its budget last: 0 after one that did not.
	rest, rests int
	// next is how many slots there have to be for a Tick to search, unless spacedTicks-1 have gone without for that;
	// 0 if the last search was not among much that had been solved before.
	next   int
	passed int  // Ticks that have gone without a search as there were fewer slots than next
	left   bool // the last Tick went without a search, for rest or for next
	cost   int  // steps that the last search took
	// searched is how many transactions had been taken in when the last search began.
	searched ordinal
}

// strandKind is what a strand is for: the levels of one share what a read says of
// versions, and whether sessions are ordered. In the order of strands.
type strandKind uint8

const (
	prefixStrand strandKind = iota
	strictStrand
	singleStrand
	strandKinds
)

func (c *check) strandKind() strandKind {
	switch {
	case c.prefix:
		return prefixStrand
	case c.single:
		return singleStrand
	}
	return strictStrand
}

// open makes the strands. timed: the history has times to use.
func (g *graphs) open(timed bool) {
	g.opened = true
	if g.h.several {
		g.dropSingle()
	}
	var cfgs [strandKinds][]constraint.Config
	which := make([]int, len(g.checks)) // place in cfgs of the kind
	for i, c := range g.checks {
		c.noTimes = c.timed && !timed && (!g.opt.Online || g.h.timed == 0) // online, they may come; see timesCame
		realTime := c.timed && !c.noTimes || !c.timed && timed && g.h.prunable()
		c.pruned = realTime && !c.timed
		cfg := g.config(c, realTime, !g.opt.Online)
		k := c.strandKind()
		if which[i] = slices.Index(cfgs[k], cfg); which[i] < 0 {
			which[i] = len(cfgs[k])
			cfgs[k] = append(cfgs[k], cfg)
		}
	}
	for k := range cfgs {
		var made []*strand
		if len(cfgs[k]) > 0 && !g.ambiguities {
			made = append(made, g.newStrand(cfgs[k]...))
		}
		for _, cfg := range cfgs[k] {
			if g.ambiguities {
				made = append(made, g.newStrand(cfg))
			}
		}
		for i, c := range g.checks {
			switch {
			case c.strandKind() != strandKind(k):
			case g.ambiguities:
				c.strand, c.poly = made[which[i]], made[which[i]].polys[0]
			default:
				c.strand, c.poly = made[0], made[0].polys[which[i]]
			}
		}
		g.strands = append(g.strands, made...)
	}
	if len(g.strands) == 0 {
		g.strands = append(g.strands, g.newStrand())
	}
	g.main = g.strands[0]
	if !g.opt.Online && g.opt.MaxViolations > 0 {
		for _, c := range g.checks {
			c.poly.MaxFound = g.opt.MaxViolations
		}
	}
}

// dropSingle gives up lin: a transaction has several objects.
func (g *graphs) dropSingle() {
	i := slices.IndexFunc(g.checks, func(c *check) bool { return c.single })
	if i < 0 {
		return
	}
	poly := g.checks[i].poly
	g.checks = slices.Delete(g.checks, i, i+1)
	if poly != nil {
		g.drop(poly)
	} else {
		g.plain = len(g.checks) == 0
	}
}

func (g *graphs) newStrand(cfgs ...constraint.Config) *strand {
	s := newStrand(cfgs)
	s.tab.Candidates = g.candidatesOf
	for _, p := range s.polys {
		p.Budget = g.budget.Share()
	}
	return s
}

// sprawls: most transactions lack times, and for a while so few have had them that to use them costs
// more than it saves.
func (g *graphs) sprawls(c *check) bool {
	seeds := min(g.opt.Seeds, g.h.txns.Len())
	if g.h.untimed-g.h.untimedSeeds <= 16+(g.h.txns.Len()-seeds)/2 {
		return false
	}
	return c.poly.Sprawls(version.Slot(min(seeds, len(g.h.slotTx))))
}

func (g *graphs) config(k *check, realTime, bulk bool) constraint.Config {
	// A record that is late may be one whose clock was set back. Where levels have real time,
	// that would be a violation; where they don't, what rests on it is looked at again.
	late := realTime && !slices.ContainsFunc(g.checks, func(c *check) bool { return c.timed })
	c := constraint.Config{Late: late, Split: k.split, Prefix: k.prefix, RealTime: realTime, Bulk: bulk,
		Skew:     g.opt.MaxSkew,
		Sessions: g.opt.Sessions == record.SessionsKeep && !k.single, Chains: len(g.h.sessions)}
	if c.Instants = realTime && k.timed && g.opt.Clock == record.ClockDatabase; c.Instants {
		c.Late = true // its clock is not a client's, which may have been set back
	}
	c.Last = !g.opt.Online
	if bulk {
		c.Slots, c.RunFirst = g.h.txns.Len(), c.Last && !g.h.ordered
	}
	return c
}

// again reads the whole history again for the checks of which which is true, with the times
// that are left, or without any.
func (g *graphs) again(times bool, which func(*check) bool) {
	g.rereads++
	made := map[*constraint.Polygraph]*strand{}
	for _, c := range g.checks {
		if !which(c) {
			continue
		}
		old := c.poly
		if made[old] == nil {
			made[old] = g.copy(g.config(c, times, !times))
			g.strands = append(g.strands, made[old])
			made[old].finish(false)
		}
		c.strand, c.poly, c.pruned = made[old], made[old].polys[0], times && !c.timed
		c.poly.MaxFound, c.partly = g.opt.MaxViolations, false
		g.drop(old)
	}
}

// realTime: some polygraph uses times.
func (g *graphs) realTime() bool {
	for _, c := range g.checks {
		if c.pruned || c.timed && !c.noTimes {
			return true
		}
	}
	return false
}

// allRealTime: every polygraph of the main strand has real time.
func (g *graphs) allRealTime() bool {
	for _, c := range g.checks {
		if !c.pruned && (!c.timed || c.noTimes) {
			return false
		}
	}
	return true
}

func (g *graphs) settle() {
	for _, s := range g.strands {
		if !g.holds(s) {
			s.settle()
		}
	}
}

// holds tells whether blocks wait for the reads of their transactions. Where values may
// repeat these are known only when no writer can come any more. Till then, without times,
// nothing but sessions would order the blocks of all that wait: every two of a key would
// be a pair to be kept, and to be looked at again at each read that is decided.
func (g *graphs) holds(s *strand) bool {
	return g.opt.Online && !g.h.unique() && (!g.h.closed || g.h.giving) && s.untimed && len(s.polys) > 0
}

// settleHeld gives the polygraphs the blocks of transactions whose reads are known,
// watermark being what it is for giveUp.
func (g *graphs) settleHeld(watermark int64) {
	for _, s := range g.strands {
		if g.holds(s) {
			s.settleOf(func(w version.Slot) bool { return g.h.deadline(g.h.slotTx[w]) < watermark })
		} else {
			s.settle()
		}
	}
}

// txnFor is what strands are told of a transaction.
func (g *graphs) txnFor(t *txn) constraint.Txn {
	x := constraint.Txn{Chain: reach.Chain(t.session), Start: t.start, End: t.end, Timed: t.timed, Open: t.open,
		Uncertain: t.doubt == uncertain, Prev: none}
	if t.base {
		x.Base, x.First, x.Timed = true, none, false
		if t.timed && t.end <= g.h.txns.At(g.h.slotTx[g.h.first]).end {
			x.First = g.h.first
		}
	}
	if t.prev != none {
		x.Prev = g.h.txns.At(t.prev).slot
	}
	return x
}

// write makes the version of a final write; the elements that a transaction
// appended to a list are one.
func (g *graphs) write(index ordinal, c cellID) {
	t, cl := g.h.txns.At(index), g.h.cells.At(c)
	if g.h.alone(cl.key) || g.plain && !g.h.perKey.At(cl.key).appended {
		return
	}
	v := version.ID(none)
	if g.h.perKey.At(cl.key).appended {
		v = g.main.tab.WriteOf(t.slot, cl.key) // of an element before
	}
	if v == none {
		for i, s := range g.strands {
			w := s.write(t.slot, cl.key)
			if i == 0 {
				v = w
			}
		}
	}
	if cl.final == index {
		cl.version = v
	}
}

// candidates are the versions that a read of c by index can be of: those of the
// value's admitted writers, by line and slot, and the initial one before them.
func (g *graphs) candidates(index ordinal, c cellID) []version.ID {
	if all, ok := g.shared[c]; ok && !slices.Contains(g.h.slab(g.h.txns.At(index).writes), c) {
		return all
	}
	var out []version.ID
	cl := g.h.cells.At(c)
	if g.h.perKey.At(cl.key).isListKey() {
		if cl.about&isList != 0 {
			return append(out, g.lastRecorded(g.h.elementsOf(c).elements, cl.key))
		}
		return append(out, g.initialVersion(cl.key))
	}
	if w, _ := g.h.onlyWriter(index, c); w == none {
		if v := g.main.tab.InitialOf(cl.key); v != none {
			out = append(out, v)
		}
		return out
	}
	if g.h.mayBeInitial(cl) && !g.h.lossy(cl.key) {
		out = append(out, g.initialVersion(cl.key))
	}
	n := len(out)
	for w := range g.h.writersOf(c) {
		if x := g.h.txns.At(w); w != index && x.slot != none {
			v := cl.version
			if cl.final != w || v == none {
				v = g.main.tab.WriteOf(x.slot, cl.key)
			}
			if v != none {
				out = append(out, v)
			}
		}
	}
	g.main.byLine(out[n:])
	g.h.reads.Use(candidateSteps * len(out))
	if g.shared != nil && !slices.Contains(g.h.slab(g.h.txns.At(index).writes), c) {
		g.shared[c] = out
	}
	return out
}

// candidatesOf are the versions that an ambiguous read can be of.
func (g *graphs) candidatesOf(slot version.Slot, k version.Key) []version.ID {
	index := g.h.slotTx[slot]
	return g.candidates(index, g.h.readCell(index, k))
}

// separate gives each polygraph a strand of its own, as levels may find
// different writers for the same read.
func (g *graphs) separate() {
	if g.ambiguities {
		return
	}
	g.ambiguities = true
	for _, several := range g.strands {
		for len(several.polys) > 1 {
			p := several.polys[len(several.polys)-1]
			several.polys = several.polys[:len(several.polys)-1]
			s := g.copy(p.Config())
			s.finish(false)
			s.polys[0].MaxFound = p.MaxFound
			for _, c := range g.checks {
				if c.poly == p {
					c.poly, c.strand = s.polys[0], s
				}
			}
			g.strands = append(g.strands, s)
		}
	}
}

// initialVersion is the key's initial version, made when it is first needed.
func (g *graphs) initialVersion(k version.Key) version.ID {
	if v := g.main.tab.InitialOf(k); v != none {
		return v
	}
	v := version.ID(none)
	for i, s := range g.strands { // versions have the same numbers in all
		w := s.source(k, version.Initial)
		if i == 0 {
			v = w
		}
	}
	return v
}

// writerOf is the slot that made a version, as the weak levels' checker has it.
func (g *graphs) writerOf(v version.ID) version.Slot {
	switch x := g.main.tab.At(v); x.Kind {
	case version.Written:
		return x.Writer
	case version.Initial:
		return weak.Initial
	}
	return weak.Unseen
}

// versionBy is what index made of k.
func (g *graphs) versionBy(index ordinal, k version.Key) version.ID {
	return g.main.tab.WriteOf(g.h.txns.At(index).slot, k)
}

// lastRecorded is the version of k that a list of elements shows, as far as
// recorded transactions made it.
func (g *graphs) lastRecorded(elements []cellID, k version.Key) version.ID {
	for i := len(elements) - 1; i >= 0; i-- {
		if w := g.h.cells.At(elements[i]).final; w != none {
			return g.versionBy(w, k)
		}
	}
	return g.initialVersion(k)
}

// drop forgets a polygraph that no level uses any more.
func (g *graphs) drop(old *constraint.Polygraph) {
	if slices.ContainsFunc(g.checks, func(c *check) bool { return c.poly == old }) {
		return
	}
	old.Drop()
	for _, x := range g.strands {
		x.polys = slices.DeleteFunc(x.polys, func(p *constraint.Polygraph) bool { return p == old })
	}
	g.strands = slices.DeleteFunc(g.strands, func(x *strand) bool { return x != g.main && len(x.polys) == 0 })
}

// copy feeds the whole history, with the same numbers of slots and versions, to a new strand: in the order in which it
// was taken in, as a closure that grows with it has to carry an edge to all that came after what it leads to. Reads of
// what came later are last, those first whose transactions overwrote what they read, as in wakeReaders.
func (g *graphs) copy(cfg constraint.Config) *strand {
	s := g.newStrand(cfg)
	s.holds = len(g.main.choices) > 0
	tab := &g.main.tab
	var cands [][]version.ID // they may ask for initial versions, which are copied with the others
	for _, ch := range g.main.choices {
		if g.h.reads.Stopped() {
			break
		}
		cands = append(cands, g.candidatesOf(ch.slot, ch.key))
	}
	next := version.ID(0)
	var late [2][]func()
	for slot := range version.Slot(len(g.h.slotTx)) {
		reads := g.main.tab.Recorded(slot)
		t := g.h.txns.At(g.h.slotTx[slot])
		s.add(g.txnFor(t), t.lsn, len(reads), len(g.main.tab.Writes(slot)))
		for ; next < version.ID(tab.Len()); next++ {
			if ver := tab.At(next); ver.Kind != version.Written {
				s.source(ver.Key, ver.Kind)
			} else if ver.Writer <= slot {
				s.write(ver.Writer, ver.Key)
			} else {
				break
			}
		}
		for _, v := range reads {
			switch {
			case v < next:
				s.read(slot, v)
			case g.main.tab.WriteOf(slot, tab.At(v).Key) != version.None:
				late[0] = append(late[0], func() { s.read(slot, v) })
			default:
				late[1] = append(late[1], func() { s.read(slot, v) })
			}
		}
	}
	for _, read := range slices.Concat(late[0], late[1]) {
		read()
	}
	for _, l := range g.main.lists {
		s.follow(l.prev, l.v)
	}
	for i, c := range cands {
		ch := g.main.choices[i]
		s.choose(ch.slot, ch.key, c, ch.guarded)
	}
	for _, x := range g.main.exclusive {
		s.exclude(x[0], x[1])
	}
	for _, slot := range g.main.ruledOut {
		s.impossible(slot)
	}
	s.settle()
	return s
}
