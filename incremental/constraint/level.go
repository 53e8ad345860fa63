package constraint

import (
	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// level is what is asked of the history, and what is read of it.
type level struct {
	cfg       Config
	parts     graph.Parts
	tab       *version.Table
	withdrawn map[readOf]bool // reads given up after a violation
	Stats     verdict.Stats
	// Budget is what all work is drawn from. When it has ended what is open stays so, and
	// nothing is ordered any more; what is certain goes in as long as there is enough for
	// that. New gives one without an end.
	Budget *budget.Share
	bytes  int // what Budget was told that is held
	left   int // blocks, orders, reads and edges that were not looked at, as Budget had ended
}

// readOf is a read that is known to be of v.
type readOf struct {
	reader slot
	v      vid
}

// take tells the budget that so many bytes more are held.
func (p *level) take(bytes int) {
	p.bytes += bytes
	p.Budget.Hold(bytes)
}

func (p *level) start(s slot) node  { return p.parts.Start(s) }
func (p *level) commit(s slot) node { return p.parts.Commit(s) }

// writing is the node of s that version orders lead to: where it must know the
// version before its own, which is at its start, or only follow it.
func (p *level) writing(s slot) node {
	if p.cfg.Prefix {
		return p.commit(s)
	}
	return p.start(s)
}

// Parts is how many nodes a transaction has.
func (p *level) Parts() graph.Parts { return p.parts }

// halted draws a step, and tells whether what is open is to be left so.
func (p *level) halted() bool { return !p.Budget.Take(1) }

// GaveUp tells whether something was not looked at as the budget had ended: then nothing is
// known to be satisfied.
func (p *level) GaveUp() bool { return p.left > 0 }

func (p *level) isWithdrawn(r slot, v vid) bool {
	return len(p.withdrawn) > 0 && p.withdrawn[readOf{r, v}]
}

// updates tells, where that makes no block of the two, whether s read v and wrote
// its key. A later transaction of its session that read v as well may hide it,
// which is a violation.
func (p *level) updates(s slot, v vid) bool {
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

// leaves tells whether a block, or what is new of it, is not looked at, as the budget has
// ended; that is counted. The lists of blocks are not asked for anything from then on.
func (p *level) leaves() bool {
	if p.halted() {
		p.left++
		return true
	}
	return false
}

// Config is what the polygraph was made with.
func (p *level) Config() Config { return p.cfg }

// line numbers total orders: sessions, and each transaction outside of them.
func (p *level) line(v vid) version.Line { return p.tab.Line(p.tab.At(v).Writer) }

func (p *level) antiDependency(reader, writer slot, k keyID) graph.Edge {
	return graph.Edge{From: p.start(reader), To: p.commit(writer), Key: k, Type: verdict.RW, Why: verdict.ByCase}
}

// blockHeads lists the first versions of all blocks.
func (p *level) blockHeads() []vid {
	var heads []vid
	for v := range vid(p.tab.Len()) {
		if p.tab.At(v).Kind == version.Written && p.isHead(v) {
			heads = append(heads, v)
		}
	}
	return heads
}

// isHead tells whether a written version is the first of its block.
func (p *level) isHead(v vid) bool {
	prev := p.tab.At(v).Prev
	return prev == version.None || p.tab.At(prev).Kind != version.Written
}

func (p *level) writer(v vid) slot { return p.tab.At(v).Writer }

// sides are the edges of "a before b".
func (p *level) sides(a, b vid) []graph.Edge { return p.appendSides(nil, a, b) }

func (p *level) appendSides(out []graph.Edge, a, b vid) []graph.Edge {
	tail := p.tab.Tail(a)
	tv := p.tab.At(tail)
	hw := p.writer(b)
	out = append(out, graph.Edge{From: p.commit(tv.Writer), To: p.writing(hw), Key: tv.Key, Type: verdict.WW,
		Why: verdict.ByCase})
	for r := range p.tab.Readers(tail) {
		if r != hw && !p.isWithdrawn(r, tail) {
			out = append(out, graph.Edge{From: p.start(r), To: p.commit(hw), Key: tv.Key, Type: verdict.RW, Why: verdict.ByCase})
		}
	}
	return out
}
