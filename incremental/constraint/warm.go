package constraint

import (
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/version"
)

// The Warm functions look at one thing each that Read or Block will need, so that the
// caller can have it fetched for many operations at once. They change nothing; what
// they return leads to the next one, or, at the end, means nothing.

// WarmKey leads from a key to its list of blocks, for WarmList.
func (p *Polygraph) WarmKey(k version.Key) uint32 {
	if int(k) >= len(p.blocks.listAt) {
		return 0
	}
	return p.blocks.listAt[k]
}

// WarmList leads from a list to the head of its last block.
func (p *Polygraph) WarmList(at uint32) version.ID {
	if at == 0 || len(p.blocks.lists[at]) == 0 {
		return version.None
	}
	return p.blocks.lists[at][len(p.blocks.lists[at])-1].head
}

// WarmVersion leads from a version to its writer.
func (p *Polygraph) WarmVersion(v version.ID) version.Slot {
	if v == version.None {
		return version.None
	}
	return p.tab.At(v).Writer
}

// WarmNode looks at the commit of a transaction.
func (p *Polygraph) WarmNode(s version.Slot) graph.EdgeID {
	if int(s) >= p.tab.Slots() {
		return 0
	}
	return p.g.FirstOut(p.commit(s))
}
