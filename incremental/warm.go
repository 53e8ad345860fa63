package incremental

import (
	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// warmMost is of how many operations what they need is fetched side by side.
const warmMost = 16

func warmBlocks(p *constraint.Polygraph, keys []version.Key, versions []version.ID) uint32 {
	var lists [warmMost]uint32
	var heads [warmMost]version.ID
	var writers [warmMost]version.Slot
	for i, k := range keys {
		lists[i] = p.WarmKey(k)
	}
	for i := range keys {
		heads[i] = p.WarmList(lists[i])
	}
	seen := uint32(0)
	for i, v := range versions {
		seen += uint32(p.WarmVersion(heads[i]))
		writers[i] = p.WarmVersion(v)
	}
	for _, w := range writers[:len(versions)] {
		seen += uint32(p.WarmNode(w))
	}
	return seen
}

// warm looks at what the operations of a transaction are about to need: the state of
// their keys, the values and versions that they read, the blocks that their writes
// will be compared with. In a stream hardly any of it is in the processor's first
// caches. One operation after the other would wait for each in turn, as each depends
// on the one before; here every step looks at one thing for all operations, and what
// is missing comes at the same time. It changes nothing.
func (g *graphs) warm(ops []record.Op, keys []version.Key) uint32 {
	if len(g.h.slots) == 0 || !g.opened || g.plain {
		return 0
	}
	if len(ops) > warmMost {
		ops = ops[:warmMost]
	}
	var hashes [warmMost]uint32
	var entries [warmMost]uint64
	var versions [warmMost]version.ID
	mask := uint32(len(g.h.slots) - 1)
	seen := uint32(0) // keeps what is looked at from being optimised away
	for i := range ops {
		seen += uint32(g.h.perKey.At(keys[i]).recent)
		hashes[i] = hash(keys[i], ops[i].Value.Num)
		entries[i] = g.h.slots[hashes[i]&mask]
	}
	var writers [warmMost]ordinal
	for i := range ops {
		versions[i], writers[i] = version.None, none
		if ops[i].Kind != record.Read {
			continue
		}
		x := entries[i]
		for at := hashes[i] & mask; x != 0 && uint32(x>>32) != hashes[i]; x = g.h.slots[at] {
			at = (at + 1) & mask
		}
		if x != 0 {
			cl := g.h.cells.At(cellID(x) - 1)
			versions[i], writers[i] = cl.version, cl.final
		}
	}
	for _, w := range writers[:len(ops)] {
		if w != none {
			seen += uint32(g.h.txns.At(w).slot)
		}
	}
	s := g.main
	for _, p := range s.polys {
		seen += warmBlocks(p, keys[:len(ops)], versions[:len(ops)])
	}
	return seen
}
