// Package version keeps the versions of every key: who wrote each, who read it,
// and which version overwrote it by a read-modify-write.
//
// Under SI and SER a transaction that read a version and wrote the same key
// makes its write the immediate successor of what it read (MTC). So
// versions form blocks, chains of immediate successors, and only whole blocks
// remain to be ordered against each other:
//
//	x:  [v0 → v3 → v7]   [v1]   [v2 → v5]      three blocks, three pairs
//	     head      tail
package version

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/paged"
)

// ID numbers versions; Key numbers keys; Slot numbers the committed
// transactions of a history in the order the engine took them in.
type (
	ID   uint32
	Key  uint32
	Slot uint32
)

// None is no version, no slot.
const None = math.MaxUint32

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
	// tail, of a block's first version, is its last; head, of its last, its
	// first. On others they are stale.
	tail, head ID
	readers    uint32 // the latest reader noted, in Table.readers
	latest     Slot   // the greatest slot of its writer and of those who were ever noted as readers
	Kind       Kind
	endless    bool // one of these has no known end
	// Fresh: it was written, and is no block yet: who takes it into one says so.
	Fresh bool
}

// Latest is a slot that neither the writer nor a reader of the version comes after;
// false if there may be one whose end is not known.
func (v *Version) Latest() (Slot, bool) { return v.latest, !v.endless }

// reader is a reader of a version, and the one noted before it.
type reader struct {
	slot Slot
	next uint32
}

// Table holds all versions of a history, and what its transactions read and wrote of them.
//
// Invariants: Next and Prev are inverse to each other; only Written versions
// lie in blocks; Head(Tail(h)) == h.
type Table struct {
	// OneReader: of a version the last reader is kept alone, as nobody asks for the others.
	OneReader bool
	// Candidates are, as far as it is known now, all versions that an ambiguous read of a slot can be of, be it that
	// some are excluded: it is asked where that is explained. They ascend by line and slot, an initial version first.
	Candidates func(Slot, Key) []ID

	slots   []slotOps
	ops     []ID          // of slots
	decided map[Slot][]ID // reads that no record shows
	v       paged.Vec[ID, Version]
	readers paged.Vec[uint32, reader]
	initial []ID     // by key
	endless []uint64 // by slot, a bit; see Endless
	lsns    []int64  // by slot; what is missing at the end is 0, not known
	logged  [][]ID   // by key: the versions whose writers have an LSN, by that
}

// Commits says where in the database's log a slot committed, which has no versions yet: at lsn, above 0. Of one key,
// versions whose writers have one are in its order.
func (t *Table) Commits(s Slot, lsn int64) {
	t.lsns = append(t.lsns, make([]int64, int(s)+1-len(t.lsns))...)
	t.lsns[s] = lsn
}

func (t *Table) lsn(s Slot) int64 {
	if int(s) < len(t.lsns) {
		return t.lsns[s]
	}
	return 0
}

// Log puts a new version among those of its key that the log orders, and returns those that it has directly before and
// behind that: none if there are none, or its writer has no LSN. Several of one LSN, which no log has, are in no order.
// The slices are good until the next Log.
func (t *Table) Log(v ID) (before, behind []ID) {
	ver := t.At(v)
	lsn := t.lsn(ver.Writer)
	if lsn == 0 {
		return nil, nil
	}
	for int(ver.Key) >= len(t.logged) {
		t.logged = append(t.logged, nil)
	}
	list := t.logged[ver.Key]
	from, to := len(list), len(list) // those of the same LSN
	if to > 0 && t.lsnOf(list[to-1]) >= lsn {
		from = sort.Search(len(list), func(i int) bool { return t.lsnOf(list[i]) >= lsn })
		to = sort.Search(len(list), func(i int) bool { return t.lsnOf(list[i]) > lsn })
	}
	list = slices.Insert(list, to, v)
	t.logged[ver.Key] = list
	first, last := from, to+1
	for first > 0 && t.lsnOf(list[first-1]) == t.lsnOf(list[from-1]) {
		first--
	}
	for last < len(list) && t.lsnOf(list[last]) == t.lsnOf(list[to+1]) {
		last++
	}
	return list[first:from], list[to+1 : last]
}

func (t *Table) lsnOf(v ID) int64 { return t.lsn(t.At(v).Writer) }

// Logged are all pairs of versions of which the log shows one directly behind the other, by key.
func (t *Table) Logged() iter.Seq2[ID, ID] {
	return func(yield func(prev, v ID) bool) {
		for _, list := range t.logged {
			first, from := 0, 0 // of those directly before, and of those of the same LSN
			for i, v := range list {
				if i > 0 && t.lsnOf(v) != t.lsnOf(list[i-1]) {
					first, from = from, i
				}
				for _, prev := range list[first:from] {
					if !yield(prev, v) {
						return
					}
				}
			}
		}
	}
}

// Endless says that the end of a slot, which has no versions yet and has read none, is
// not known.
func (t *Table) Endless(s Slot) {
	for int(s>>6) >= len(t.endless) {
		t.endless = append(t.endless, 0)
	}
	t.endless[s>>6] |= 1 << (s & 63)
}

func (t *Table) isEndless(s Slot) bool {
	return int(s>>6) < len(t.endless) && t.endless[s>>6]>>(s&63)&1 != 0
}

// At is a version; the pointer is good until the next New.
func (t *Table) At(v ID) *Version { return t.v.At(v) }

// Len is the number of versions.
func (t *Table) Len() int { return t.v.Len() }

// New adds a version.
func (t *Table) New(key Key, kind Kind, writer Slot) ID {
	id := ID(t.v.Len())
	t.v.Push(Version{Key: key, Kind: kind, Writer: writer, Next: None, Prev: None, tail: id, head: id, readers: None,
		latest: writer, endless: kind != Written || t.isEndless(writer)})
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
func (t *Table) Tail(head ID) ID { return t.At(head).tail }

// Head is the first version of the block that tail ends.
func (t *Table) Head(tail ID) ID { return t.At(tail).head }

// Overwrite makes w the immediate successor of v. Unseen versions begin no
// block: without an order of their own, their successor heads it. So does the
// successor of the initial version, which is the first block of its key.
func (t *Table) Overwrite(v, w ID) {
	a, b := t.At(v), t.At(w)
	a.Next, b.Prev = w, v
	if a.Kind != Written {
		return
	}
	h, l := a.head, b.tail
	t.At(h).tail, t.At(l).head = l, h
}

// First tells whether the block that head begins is known to be the first of
// its key: it overwrote the initial version.
func (t *Table) First(head ID) bool {
	p := t.At(head).Prev
	return p != None && t.At(p).Kind == Initial
}

// addReader notes a reader of v. The last one of a line stands for the others, as these precede it.
func (t *Table) addReader(s Slot, v ID) {
	ver := t.At(v)
	ver.latest, ver.endless = max(ver.latest, s), ver.endless || t.isEndless(s)
	for r := ver.readers; r != None; {
		x := t.readers.At(r)
		if t.OneReader || t.Line(x.slot) == t.Line(s) {
			x.slot = max(x.slot, s)
			return
		}
		r = x.next
	}
	ver.readers = t.readers.Push(reader{s, ver.readers})
}

// HasReaders tells whether anybody is known to have read v.
func (t *Table) HasReaders(v ID) bool { return t.At(v).readers != None }

// Readers are the readers of v that matter, the latest noted first.
func (t *Table) Readers(v ID) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for r := t.At(v).readers; r != None; {
			x := t.readers.At(r)
			if !yield(x.slot) {
				return
			}
			r = x.next
		}
	}
}
