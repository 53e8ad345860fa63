package order

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/ingest/record"
)

// memory remembers by hash which IDs came, and with what content, in two
// generations: when the current one holds limit entries it becomes the old one,
// and the old one is forgotten. So it holds the last limit to 2*limit records,
// without a queue beside the table. Two of n remembered IDs share a hash with
// probability n*n/2^65: a new record then is taken for a contradiction, once
// in about 10^13 records for a million remembered.
type memory struct {
	cur, old table
	limit    int
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

// see looks t up and remembers it if it is new. Records without an ID are
// always new. O(size of t).
func (m *memory) see(t *record.Transaction) Fate {
	if t.ID == "" {
		return Taken
	}
	id, content := xxhash.Sum64String(t.ID), hash(t)
	if 4*(m.cur.n+1) > 3*len(m.cur.slots) {
		m.cur.grow()
	}
	if len(m.old.slots) > 0 {
		if i, found := m.old.find(id); found {
			return again(m.old.slots[i].content == content)
		}
	}
	i, found := m.cur.find(id)
	if found {
		return again(m.cur.slots[i].content == content)
	}
	m.cur.tags[i], m.cur.slots[i] = tag(id), slot{id, content}
	if m.cur.n++; m.cur.n >= m.limit {
		m.cur, m.old = m.old, m.cur
		clear(m.cur.tags)
		m.cur.n = 0
	}
	return Taken
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

// hash is a fingerprint of all that a record says.
func hash(t *record.Transaction) uint64 {
	h := text(uint64(len(t.Ops)), t.Session)
	flags := uint64(t.Status) << 2
	if t.HasSeq {
		h = mix(h, uint64(t.Seq))
		flags |= 1
	}
	if t.HasTimes {
		h = mix(mix(h, uint64(t.Start)), uint64(t.End))
		flags |= 2
	}
	h = mix(h, flags)
	for i := range t.Ops {
		op := &t.Ops[i]
		h = text(h, op.Key)
		h = mix(h^uint64(op.Kind)<<8^uint64(op.Value.Kind), uint64(op.Value.Num))
		if op.Value.Text != "" {
			h = text(h, op.Value.Text)
		}
		if op.Where != "" {
			h = text(h, op.Where)
		}
	}
	return h
}

func text(h uint64, s string) uint64 { return mix(h, xxhash.Sum64String(s)) }

// mix folds v into h by a 128-bit product with odd constants, which spreads
// every bit of both.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	return hi ^ lo
}
