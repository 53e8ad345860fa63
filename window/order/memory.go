package order

// memory remembers by hash which IDs came, and with what content, in two
// generations: when the current one holds limit entries it becomes the old one,
// and the old one is forgotten. So it holds the last limit to 2*limit records,
// without a queue beside the table. Two of n remembered IDs share a hash with
// probability n*n/2^65: a new record then is taken for a contradiction, once
// in about 10^13 records for a million remembered.
type memory struct {
	cur, old table
	limit    int
	noted    int // in the current generation
	// The generations begin at these refs; the older one at from.
	from, since uint64
}

// table is an open-addressed hash table, at most three quarters full. A byte of
// each hash stands apart from the slots, as nearly every search finds nothing:
// it then touches a byte array that fits a cache, not the slots.
type table struct {
	tags  []uint8 // 0: free
	slots []slot  // as many: a power of two, or none
	n     int
}

type slot struct{ id, content uint64 }

// tag is the byte of id; its other bits choose the place.
func tag(id uint64) uint8 { return uint8(id>>56) | 1 }

// find looks an ID up: Duplicate if it is remembered with that content,
// Contradiction if with another, and otherwise Taken and the place for note. O(1).
func (m *memory) find(id, content uint64) (uint64, Fate) {
	m.cur.room()
	if len(m.old.slots) > 0 {
		if i, found := m.old.find(id); found {
			return 0, again(m.old.slots[i].content == content)
		}
	}
	i, found := m.cur.find(id)
	if found {
		return 0, again(m.cur.slots[i].content == content)
	}
	return i, Taken
}

// has tells whether an ID is remembered, whatever the content. O(1).
func (m *memory) has(id uint64) bool {
	for _, t := range [...]*table{&m.old, &m.cur} {
		if t.n > 0 {
			if _, found := t.find(id); found {
				return true
			}
		}
	}
	return false
}

// note remembers an ID that find has just not found, at the place that it gave.
// It tells whether a generation was forgotten for it. That depends on the number
// of calls alone, not on what the tables hold. Amortised O(1).
func (m *memory) note(id, content, ref, i uint64) bool {
	m.cur.tags[i], m.cur.slots[i] = tag(id), slot{id, content}
	m.cur.n++
	if m.noted++; m.noted < m.limit {
		return false
	}
	m.noted = 0
	m.from, m.since = m.since, ref+1
	m.cur, m.old = m.old, m.cur
	clear(m.cur.tags)
	m.cur.n = 0
	return true
}

// recall notes what was noted under ref before a snapshot. O(1).
func (m *memory) recall(id, content, ref uint64) {
	t := &m.old
	switch {
	case ref < m.from:
		return
	case ref >= m.since:
		t = &m.cur
	}
	t.insert(id, content)
}

func again(same bool) Fate {
	if same {
		return Duplicate
	}
	return Contradiction
}

// find returns the index of id, or that of the free slot where it belongs.
func (t *table) find(id uint64) (i uint64, found bool) {
	want, mask := tag(id), uint64(len(t.tags)-1)
	for i = id & mask; ; i = (i + 1) & mask {
		switch t.tags[i] {
		case 0:
			return i, false
		case want:
			if t.slots[i].id == id {
				return i, true
			}
		}
	}
}

// insert puts an ID in unless it is there.
func (t *table) insert(id, content uint64) {
	t.room()
	if i, found := t.find(id); !found {
		t.tags[i], t.slots[i] = tag(id), slot{id, content}
		t.n++
	}
}

// room makes sure that one more entry fits. Amortised O(1).
func (t *table) room() {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
}

func (t *table) grow() {
	old := *t
	n := max(64, 2*len(old.slots))
	t.tags, t.slots = make([]uint8, n), make([]slot, n)
	for i, s := range old.slots {
		if old.tags[i] != 0 {
			at, _ := t.find(s.id)
			t.tags[at], t.slots[at] = old.tags[i], s
		}
	}
}
