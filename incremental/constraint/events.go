package constraint

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// Block takes in a new block of one version, w, whose writer has been added.
func (p *Polygraph) Block(w version.ID) {
	if !p.bulk && p.orders.block(w) {
		p.propagate()
	}
}

// Read takes in that r read v, which r has been made a reader of. Both r and
// v's writer have been added.
func (p *Polygraph) Read(r version.Slot, v version.ID) { p.read(r, v, verdict.ByValue) }

func (p *Polygraph) read(r slot, v vid, why verdict.Why) {
	if p.orders.readAs(r, v, why) {
		p.propagate()
	}
}

// Follow takes in that v follows prev because a list shows it. Both have been
// written by transactions that were added.
func (p *Polygraph) Follow(prev, v version.ID) {
	p.orders.listed(prev, v)
	if !p.bulk {
		p.propagate()
	}
}

// Logged takes in that the database's log shows v behind prev. That no other order of their blocks is possible, so that
// who read prev precedes v, follows. A bulk load takes in all at its end.
func (p *Polygraph) Logged(prev, v version.ID) {
	if !p.bulk {
		p.orders.logged(prev, v)
		p.propagate()
	}
}

// Overwrite takes in that w is the immediate successor of v, which the table
// has joined: w's writer has read v, or a list shows it and Follow was told. fresh:
// w is not a block yet.
func (p *Polygraph) Overwrite(v, w version.ID, fresh bool) {
	if !p.bulk {
		p.orders.overwrite(v, w, fresh)
		p.propagate()
	}
}

// makePutOff makes the pairs that were put off, and from then on all others at once.
func (p *Polygraph) makePutOff() {
	p.blocks.putsOff, p.orders.isPutOff = false, false
	for s, ok := p.blocks.reads.NextSet(0); ok; s, ok = p.blocks.reads.NextSet(s + 1) {
		for _, w := range p.tab.Writes(slot(s)) {
			p.orders.matters(w)
		}
	}
	p.propagate()
}
