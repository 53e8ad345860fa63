package frontier

// The flags of an entry in memory.
const (
	flagOnDisk = 1 << iota // the disk has the same
	flagGiven              // by Spill, and not changed since
	flagLive               // the slot is in use
	flagRecent             // written, or read back, since the hand passed
)

const noSlot = ^uint32(0)

// entry is a key in memory and where its body lies. 16 bytes.
type entry struct {
	hash  uint32
	block uint32 // of the arena's class; the next free slot, of a free one
	used  uint32 // the epoch in which it was asked for last
	class uint8
	flags uint8
}

// entriesPerPage makes the table grow without copying entries.
const (
	entryShift     = 10
	entriesPerPage = 1 << entryShift
)

// table finds entries by key: open addressing with linear probing, at most
// seven eighths full; deletion moves back what followed, so there are no
// tombstones.
type table struct {
	index []uint32 // slot+1, or 0
	pages []*[entriesPerPage]entry
	slots uint32 // in use or free
	free  uint32 // list of free ones
	hand  uint32 // the slot at which the search for keys that have to go goes on
	count int
	bytes int64 // of bodies
	arena arena
}

func newTable() table {
	return table{index: make([]uint32, 64), free: noSlot}
}

func (t *table) at(slot uint32) *entry {
	return &t.pages[slot>>entryShift][slot&(entriesPerPage-1)]
}

func (t *table) body(e *entry) []byte { return t.arena.at(e.class, e.block) }

// find returns the slot of a key.
func (t *table) find(key string) (uint32, bool) { return t.probe(key, hashOf(key)) }

// probe is find, of a key with that hash.
func (t *table) probe(key string, h uint32) (uint32, bool) {
	mask := uint32(len(t.index) - 1)
	for i := h & mask; t.index[i] != 0; i = (i + 1) & mask {
		slot := t.index[i] - 1
		if e := t.at(slot); e.hash == h && string(keyOf(t.body(e))) == key {
			return slot, true
		}
	}
	return noSlot, false
}

// insert adds a key, which must not be there, with its body.
func (t *table) insert(key string, body []byte) uint32 {
	if 8*(t.count+1) > 7*len(t.index) {
		t.grow()
	}
	slot := t.free
	if slot == noSlot {
		if slot = t.slots; slot>>entryShift == uint32(len(t.pages)) {
			t.pages = append(t.pages, new([entriesPerPage]entry))
		}
		t.slots++
	} else {
		t.free = t.at(slot).block
	}
	e := t.at(slot)
	*e = entry{hash: hashOf(key), flags: flagLive | flagRecent}
	e.class, e.block = t.arena.put(body)
	t.place(slot, e.hash)
	t.count++
	t.bytes += int64(len(body))
	return slot
}

func (t *table) place(slot, hash uint32) {
	mask := uint32(len(t.index) - 1)
	i := hash & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = slot + 1
}

func (t *table) grow() {
	old := t.index
	t.index = make([]uint32, 2*len(old))
	for _, s := range old {
		if s != 0 {
			t.place(s-1, t.at(s-1).hash)
		}
	}
}

// set gives an entry another body.
func (t *table) set(e *entry, body []byte) {
	t.bytes += int64(len(body)) - int64(len(t.body(e)))
	e.class, e.block = t.arena.replace(e.class, e.block, body)
}

// remove takes an entry out.
func (t *table) remove(slot uint32) {
	e := t.at(slot)
	t.bytes -= int64(len(t.body(e)))
	t.arena.free(e.class, e.block)
	mask := uint32(len(t.index) - 1)
	i := e.hash & mask
	for t.index[i] != slot+1 {
		i = (i + 1) & mask
	}
	// What follows moves back to where probing from its own place finds it.
	for j := (i + 1) & mask; t.index[j] != 0; j = (j + 1) & mask {
		home := t.at(t.index[j]-1).hash & mask
		if (j-home)&mask >= (j-i)&mask {
			t.index[i] = t.index[j]
			i = j
		}
	}
	t.index[i] = 0
	*e = entry{block: t.free}
	t.free = slot
	t.count--
}

// pass moves the hand over one slot and returns it. ok is false of one that is
// free, or was written since the hand passed last. So the hand finds keys roughly
// in the order of writing, without a list that takes 8 bytes a key.
func (t *table) pass() (slot uint32, e *entry, ok bool) {
	if t.hand >= t.slots {
		t.hand = 0
	}
	slot = t.hand
	t.hand++
	e = t.at(slot)
	if e.flags&flagRecent != 0 {
		e.flags &^= flagRecent
		return slot, e, false
	}
	return slot, e, e.flags&flagLive != 0
}
