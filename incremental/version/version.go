// Package version keeps the versions of every key: who wrote each, who read it,
// and which version overwrote it by a read-modify-write.
//
// Under SI and SER a transaction that read a version and wrote the same key
// makes its write the immediate successor of what it read (design 3; MTC). So
// versions form blocks, chains of immediate successors, and only whole blocks
// remain to be ordered against each other:
//
//	x:  [v0 → v3 → v7]   [v1]   [v2 → v5]      three blocks, three pairs
//	     head      tail
package version

// ID numbers versions; Key numbers keys; Slot numbers the committed
// transactions of a history in the order the engine took them in.
type (
	ID   = uint32
	Key  = uint32
	Slot = uint32
)

// None is no version, no slot.
const None = ^uint32(0)

// Kind says where a version comes from.
type Kind uint8

// The kinds.
const (
	// Written: the last write of a committed transaction to its key.
	Written Kind = iota
	// Initial: the key's initial state, before all other versions.
	Initial
	// Unseen: written by a transaction that was not seen, without any order.
	Unseen
)

// Version is one version of a key.
type Version struct {
	Key    Key
	Writer Slot // None unless Written
	Next   ID   // its immediate successor, or None
	Prev   ID   // the version its writer read and overwrote, or None
	Kind   Kind
	// Readers are those that matter: of each session the last.
	Readers []Slot
}

// Table holds all versions of a history.
//
// Invariants: Next and Prev are inverse to each other; only Written and Initial
// versions have a Prev or lie in blocks; head[tail[h]] == h.
type Table struct {
	V []Version
	// tail[v] is the last version of the block that v heads; head[v] the first
	// of the block that v ends. Other entries are stale.
	tail, head []ID
	initial    []ID // by key
}

// New adds a version.
func (t *Table) New(key Key, kind Kind, writer Slot) ID {
	id := ID(len(t.V))
	t.V = append(t.V, Version{Key: key, Kind: kind, Writer: writer, Next: None, Prev: None})
	t.tail = append(t.tail, id)
	t.head = append(t.head, id)
	if kind == Initial {
		for int(key) >= len(t.initial) {
			t.initial = append(t.initial, None)
		}
		t.initial[key] = id
	}
	return id
}

// InitialOf is the key's initial version, or None while nobody read it.
func (t *Table) InitialOf(key Key) ID {
	if int(key) < len(t.initial) {
		return t.initial[key]
	}
	return None
}

// Tail is the last version of the block that head begins.
func (t *Table) Tail(head ID) ID { return t.tail[head] }

// Head is the first version of the block that tail ends.
func (t *Table) Head(tail ID) ID { return t.head[tail] }

// Overwrite makes w the immediate successor of v. Unseen versions begin no
// block: without an order of their own, their successor heads it. So does the
// successor of the initial version, which is the first block of its key.
func (t *Table) Overwrite(v, w ID) {
	t.V[v].Next, t.V[w].Prev = w, v
	if t.V[v].Kind != Written {
		return
	}
	h, l := t.head[v], t.tail[w]
	t.tail[h], t.head[l] = l, h
}

// First tells whether the block that head begins is known to be the first of
// its key: it overwrote the initial version.
func (t *Table) First(head ID) bool {
	p := t.V[head].Prev
	return p != None && t.V[p].Kind == Initial
}

// IsTail tells whether v ends a block that has an order: it is Written and
// nothing is known to follow it at once.
func (t *Table) IsTail(v ID) bool { return t.V[v].Kind == Written && t.V[v].Next == None }
