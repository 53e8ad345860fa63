package generate

import "github.com/isowatch/isowatch/ingest/record"

// opsChunk is how many operations are allocated at once.
const opsChunk = 4096

// work decides what transaction t does: its operations, with the values that it
// writes. What it reads is filled in when it does.
func (g *Generator) work(t *running) {
	n := g.cfg.Operations
	if g.cfg.Workload == Mini {
		n = 4
	}
	if cap(g.ops)-len(g.ops) < n {
		g.ops = make([]record.Op, 0, max(opsChunk, n))
	}
	from := len(g.ops)
	add := func(kind record.OpKind, key int) {
		op := record.Op{Kind: kind, Key: g.keys[key]}
		if kind == record.Write {
			op.Value = g.value()
		}
		g.ops = append(g.ops, op)
		t.keys = append(t.keys, int32(key))
	}
	switch g.cfg.Workload {
	case General:
		for range n {
			kind := record.Write
			if g.chance(g.cfg.ReadShare) {
				kind = record.Read
			}
			add(kind, g.key())
		}
	case BlindW, ReadOnly:
		kind := record.Write
		if g.cfg.Workload == ReadOnly || g.chance(g.cfg.ReadShare) {
			kind = record.Read
		}
		for range n {
			add(kind, g.key())
		}
	case Mini:
		g.mini(add)
	}
	// Capacity ends with the transaction: an append by a reader of the record
	// must not run into the next one.
	t.record.Ops = g.ops[from:len(g.ops):len(g.ops)]
}

// mini adds one of the shapes of a mini-transaction: one or two reads, and
// writes only of what was read before.
func (g *Generator) mini(add func(record.OpKind, int)) {
	x := g.key()
	y := g.key()
	for range 8 { // look for another key, but not for ever: there may be one only
		if y != x {
			break
		}
		y = g.key()
	}
	shape := g.rng.IntN(7)
	if y == x {
		shape %= 2
	}
	add(record.Read, x)
	switch shape {
	case 0:
	case 1:
		add(record.Write, x)
	case 2:
		add(record.Read, y)
	case 3:
		add(record.Read, y)
		add(record.Write, x)
	case 4:
		add(record.Write, x)
		add(record.Read, y)
	case 5:
		add(record.Read, y)
		add(record.Write, x)
		add(record.Write, y)
	case 6:
		add(record.Write, x)
		add(record.Read, y)
		add(record.Write, y)
	}
}

// key draws a key.
func (g *Generator) key() int {
	n := len(g.keys)
	switch g.cfg.Distribution {
	case Zipf:
		return g.popul.draw(g.rng)
	case Hotspot:
		hot := max(1, n/5)
		if n == hot || g.rng.IntN(5) < 4 {
			return g.rng.IntN(hot)
		}
		return hot + g.rng.IntN(n-hot)
	default:
		return g.rng.IntN(n)
	}
}

// value draws a value to be written: a new one, or one of the common ones.
func (g *Generator) value() record.Value {
	if g.chance(g.cfg.Duplicates) {
		return record.Int(int64(1 + g.common.draw(g.rng)))
	}
	g.values++
	return record.Int(g.values)
}
