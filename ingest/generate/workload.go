package generate

import (
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// opsChunk is how many operations are allocated at once.
const opsChunk = 4096

// mixLists is how many registers Mix has for each list.
const mixLists = 100

// work decides what transaction t does: its operations, with the values that it
// writes. What it reads is filled in when it does.
func (g *Generator) work(t *running) {
	n := g.cfg.Operations
	g.room(max(n, miniMax))
	from := len(g.ops)
	if g.cfg.Level == LIN {
		g.only = g.drawKey()
	}
	switch g.cfg.Workload {
	case General:
		g.general(t, n)
	case BlindW:
		g.blind(t, n)
	case ReadOnly:
		for range n {
			g.add(t, record.Read, g.key())
		}
	case Mini:
		g.mini(t)
	case Append:
		g.appends(t, 1+g.rng.IntN(n))
	case Mix:
		g.mix(t, n)
	case Lightweight:
		g.lightweight(t)
	case CTwitter:
		g.tweeting(t)
	}
	// Capacity ends with the transaction: an append by a reader of the record
	// must not run into the next one.
	t.record.Ops = g.ops[from:len(g.ops):len(g.ops)]
}

// room makes sure that the next n operations have a place.
func (g *Generator) room(n int) {
	if cap(g.ops)-len(g.ops) < n {
		g.ops = make([]record.Op, 0, max(opsChunk, n))
	}
}

// add adds an operation on a register.
func (g *Generator) add(t *running, kind record.OpKind, key int) {
	op := record.Op{Kind: kind, Key: g.store.name(ref(key))}
	if kind == record.Write {
		op.Value = g.value(key)
	}
	g.ops = append(g.ops, op)
	t.keys = append(t.keys, ref(key))
}

// addList adds an operation on a list.
func (g *Generator) addList(t *running, kind record.OpKind) {
	var slot int
	if g.cfg.Workload == Append {
		slot = g.key()
	} else {
		slot = g.rng.IntN(len(g.lists.active))
	}
	k, name, element := g.lists.use(slot, kind == record.Append, g.cfg.ListAppends)
	g.ops = append(g.ops, record.Op{Kind: kind, Key: name, Value: element})
	t.keys = append(t.keys, k)
}

// kind is Read with the probability that was asked for, else the other.
func (g *Generator) kind(other record.OpKind) record.OpKind {
	if g.chance(g.cfg.ReadShare) {
		return record.Read
	}
	return other
}

func (g *Generator) general(t *running, n int) {
	for range n {
		kind := g.kind(record.Write)
		g.add(t, kind, g.key())
	}
}

func (g *Generator) blind(t *running, n int) {
	kind := g.kind(record.Write)
	for range n {
		g.add(t, kind, g.key())
	}
}

func (g *Generator) appends(t *running, n int) {
	for range n {
		g.addList(t, g.kind(record.Append))
	}
}

// mix adds a transaction of another workload, or one that uses registers and
// lists.
func (g *Generator) mix(t *running, n int) {
	switch g.rng.IntN(5) {
	case 0:
		g.general(t, n)
	case 1:
		g.blind(t, n)
	case 2:
		g.mini(t)
	case 3:
		g.appends(t, n)
	case 4:
		for range n {
			if g.rng.IntN(2) == 0 {
				g.addList(t, g.kind(record.Append))
				continue
			}
			g.general(t, 1)
		}
	}
}

// miniMax is how many operations a mini-transaction has at most.
const miniMax = 4

// mini adds one of the shapes of a mini-transaction: one or two reads, and
// writes only of what was read before.
func (g *Generator) mini(t *running) {
	add := func(kind record.OpKind, key int) { g.add(t, kind, key) }
	x := g.key()
	y := g.key()
	for i := 0; i < 8 && g.cfg.Level != LIN; i++ { // look for another key, but not for ever: there may be one only
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

// lightweight adds a compare-and-set that succeeded, or one that did not, which only
// reads.
func (g *Generator) lightweight(t *running) {
	x := g.key()
	kind := g.kind(record.Write)
	g.add(t, record.Read, x)
	if kind == record.Write {
		g.add(t, record.Write, x)
	}
}

// key draws a key, or gives the one that the transaction has to keep to.
func (g *Generator) key() int {
	if g.cfg.Level == LIN {
		return g.only
	}
	return g.drawKey()
}

func (g *Generator) drawKey() int {
	n := g.cfg.Keys
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

// value draws a value to be written to a register: a new one, or one of the common
// ones if the register is one that has duplicates. Those are spread evenly, so that
// popular keys have their share.
func (g *Generator) value(key int) record.Value {
	if d := g.cfg.Duplicates; d > 0 && math.Floor(float64(key+1)*d) > math.Floor(float64(key)*d) {
		return record.Int(int64(1 + g.common.draw(g.rng)))
	}
	g.values++
	return record.Int(g.values)
}
