package constraint

import (
	"slices"

	"github.com/bits-and-blooms/bitset"
)

// blockRef is a block in the list of its key.
type blockRef struct {
	head vid
	// low: the block is known to come after the first low blocks of the list; then
	// whoever comes after it comes after those as well.
	low uint32
}

// blocks are the blocks of each key, in an order that agrees with what is known of it, and what makes it matter.
type blocks struct {
	*known
	subjects  *subjects
	lists     [][]blockRef  // the blocks of each key that has any; the first is of none
	listAt    []uint32      // by key: the place of its list of blocks, 0 if it has no blocks
	candidate bitset.BitSet // versions that an open read may be of
	busy      bitset.BitSet // keys of which the order of some blocks matters, as a block is not idle
	reads     bitset.BitSet // transactions that read something; kept at snapshot isolation only
	putsOff   bool          // blind writes of transactions that read get pairs once a run of the history gets stuck
}

// list is the blocks of a key, good until the list of another key is made. The
// keys that have blocks may be few among those that occur.
func (p *blocks) list(k keyID) *[]blockRef {
	for int(k) >= len(p.listAt) {
		p.listAt = append(p.listAt, 0)
	}
	if p.listAt[k] == 0 {
		if p.lists == nil {
			p.lists = make([][]blockRef, 1)
		}
		p.listAt[k] = uint32(len(p.lists))
		p.lists = append(p.lists, nil)
	}
	return &p.lists[p.listAt[k]]
}

// harmless tells, of blocks that neither order decides, whether it doesn't matter which comes first. That is
// so of two versions that nobody has read, nor may have: they agree with any order of their writers, which
// at all levels but snapshot isolation is the order of transactions or commits. There a writer that reads nothing
// can be taken to begin as it commits, unless its instants are known, and two such agree with any order of their
// commits. So no pair is made before somebody reads; see matters. And if a writer does read, the pairs of what it
// writes blindly are put off until a run of the history gets stuck; see Solve.
func (p *blocks) harmless(a, b vid) bool { return p.idle(a) && p.idle(b) }

// idle tells whether the block that head heads has an order with others of its kind in any case.
func (p *blocks) idle(head vid) bool {
	return p.tab.Tail(head) == head && !p.tab.First(head) && !p.tab.HasReaders(head) && !p.candidate.Test(uint(head)) &&
		(p.parts == 1 || p.cfg.Prefix || !p.cfg.Instants && (p.putsOff || !p.reads.Test(uint(p.writer(head)))))
}

// unread tells whether the block that head heads has an order with all that its key has so far in any case, as they
// are all idle.
func (p *blocks) unread(head vid) bool {
	k := uint(p.tab.At(head).Key)
	if !p.idle(head) {
		p.busy.Set(k)
	}
	return !p.busy.Test(k)
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
