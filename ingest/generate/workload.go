package generate

import (
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// opsChunk is how many operations are allocated at once.
const opsChunk = 4096

// work decides what transaction t does: its operations, with the values that it
// writes. What it reads is filled in when it does.
func (g *Generator) work(t *running) {
	most := max(2*g.cfg.Operations, miniMax)
	if g.cfg.Workload == Bank || g.cfg.Workload == Predicates && !g.rows.loads {
		most = max(most, g.cfg.Keys)
	}
	g.room(most)
	from := len(g.ops)
	switch g.cfg.Workload {
	case CTwitter:
		g.tweeting(t)
	case Predicates, Booking, Queue, Unique:
		g.asking(t)
	default:
		for _, s := range g.drawer.Draw() {
			if s.List {
				g.addList(t, s.Kind, s.Item)
				continue
			}
			for i := range max(1, s.Range) {
				g.add(t, s.Kind, s.Item+i)
			}
		}
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

// addList adds an operation on the list in a slot.
func (g *Generator) addList(t *running, kind record.OpKind, slot int) {
	k, name, element := g.lists.use(slot, kind == record.Append, g.cfg.ListAppends)
	g.ops = append(g.ops, record.Op{Kind: kind, Key: name, Value: element})
	t.keys = append(t.keys, k)
}

// value draws a value to be written to a register: a new one, or one of the common
// ones if the register is one that has duplicates. Those are spread evenly, so that
// popular keys have their share.
func (g *Generator) value(key int) record.Value {
	if d := g.cfg.Duplicates; d > 0 && math.Floor(float64(key+1)*d) > math.Floor(float64(key)*d) {
		return record.Int(int64(1 + g.common.Draw(g.rng)))
	}
	g.values++
	return record.Int(g.values)
}
