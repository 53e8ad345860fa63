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

// table is an open-addressed hash table, at most three quarters full.
type table struct {
	slots []slot // a power of two of them, or none
	n     int
}

type slot struct {
	id      uint64 // 0: free
	content uint64
}

// see looks t up and remembers it if it is new. Records without an ID are
// always new. O(size of t).
func (m *memory) see(t *record.Transaction) Fate {
	if t.ID == "" {
		return Taken
	}
	id := xxhash.Sum64String(t.ID)
	if id == 0 {
		id = 1
	}
	content := hash(t)
	if old := m.old.find(id); old != nil && old.id == id {
		return again(old.content == content)
	}
	if 4*(m.cur.n+1) > 3*len(m.cur.slots) {
		m.cur.grow()
	}
	at := m.cur.find(id)
	if at.id == id {
		return again(at.content == content)
	}
	*at = slot{id, content}
	if m.cur.n++; m.cur.n >= m.limit {
		m.cur, m.old = m.old, m.cur
		clear(m.cur.slots)
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

// find returns the slot of id, or the free one where it belongs; nil if the
// table has no slots.
func (t *table) find(id uint64) *slot {
	if len(t.slots) == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := id & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.id == id || s.id == 0 {
			return s
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.id != 0 {
			*t.find(s.id) = s
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
