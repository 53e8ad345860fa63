package version

import "slices"

// Line numbers the total orders that slots lie on: a session, or a line of its own for one that is in no order with
// others.
type Line uint32

// slotOps say what a slot read and wrote.
type slotOps struct {
	line          Line
	reads, writes few
}

// few are n versions in Table.ops from at on, with room for as many as room: without pointers, as there are many.
type few struct{ at, n, room uint32 }

// Add adds the next slot, with room for so many reads and writes.
func (t *Table) Add(line Line, reads, writes int) Slot {
	t.slots = append(t.slots, slotOps{line: line, reads: t.room(reads), writes: t.room(writes)})
	return Slot(len(t.slots) - 1)
}

// Slots is the number of slots.
func (t *Table) Slots() int { return len(t.slots) }

// Line is the total order that s lies on.
func (t *Table) Line(s Slot) Line { return t.slots[s].line }

// Recorded are the external reads of s that its record shows, good until the next Add, Write or Read.
func (t *Table) Recorded(s Slot) []ID { return t.these(t.slots[s].reads) }

// Reads are the external reads of s, those that were decided behind those that its record shows.
func (t *Table) Reads(s Slot) []ID {
	if len(t.decided[s]) == 0 {
		return t.Recorded(s)
	}
	return slices.Concat(t.Recorded(s), t.decided[s])
}

// Writes are the final writes of s, good until the next Add, Write or Read.
func (t *Table) Writes(s Slot) []ID { return t.these(t.slots[s].writes) }

// WriteOf is the version that s made of k, or None.
func (t *Table) WriteOf(s Slot, k Key) ID {
	for _, w := range t.Writes(s) {
		if t.At(w).Key == k {
			return w
		}
	}
	return None
}

// ReadOf is the version of k that s read, as far as it is known, or None.
func (t *Table) ReadOf(s Slot, k Key) ID {
	for _, v := range t.Reads(s) {
		if t.At(v).Key == k {
			return v
		}
	}
	return None
}

// Write adds the version that the last write of s to k made.
func (t *Table) Write(s Slot, k Key) ID {
	v := t.New(k, Written, s)
	t.push(&t.slots[s].writes, v)
	return v
}

// Read takes in that the record of s shows that it read v.
func (t *Table) Read(s Slot, v ID) {
	t.push(&t.slots[s].reads, v)
	t.addReader(s, v)
}

// Decide takes in that s, which may have read several versions, read v.
func (t *Table) Decide(s Slot, v ID) {
	if t.decided == nil {
		t.decided = map[Slot][]ID{}
	}
	t.decided[s] = append(t.decided[s], v)
	t.addReader(s, v)
}

// Decided tells whether s was decided to have read v.
func (t *Table) Decided(s Slot, v ID) bool { return slices.Contains(t.decided[s], v) }

// room is room for n versions.
func (t *Table) room(n int) few {
	f := few{at: uint32(len(t.ops)), room: uint32(n)}
	t.ops = append(t.ops, make([]ID, n)...)
	return f
}

// push adds a version to f.
func (t *Table) push(f *few, v ID) {
	if f.n == f.room { // more than was announced, as a list may show
		old := t.these(*f)
		*f = t.room(int(2*f.n + 2))
		f.n = uint32(copy(t.ops[f.at:], old))
	}
	t.ops[f.at+f.n] = v
	f.n++
}

func (t *Table) these(f few) []ID { return t.ops[f.at : f.at+f.n : f.at+f.n] }
