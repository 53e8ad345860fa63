package tiny

import (
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// mutate changes the history somewhere, perhaps so that it breaks a level. What
// Config promises stays true: written values remain unique, sessions' times go
// forward.
func (g *gen) mutate() {
	if len(g.out) == 0 {
		return
	}
	if g.lists > 0 && g.coin() {
		g.changeList()
		return
	}
	switch g.rng.IntN(8) {
	case 0, 1, 2:
		g.changeRead()
	case 3:
		g.swapInSession()
	case 4:
		if len(g.out) > 2 {
			i := g.rng.IntN(len(g.out))
			g.out = slices.Delete(g.out, i, i+1)
		}
	case 5:
		g.shiftTimes()
	case 6:
		g.swapWrites()
	case 7:
		t := &g.out[g.rng.IntN(len(g.out))]
		switch {
		case g.cfg.Unknown && t.Status == record.Committed && g.coin():
			t.Status = record.Unknown
		case g.cfg.Unknown && t.Status == record.Unknown:
			t.Status = record.Committed
		case g.cfg.Aborted && t.Status == record.Committed:
			t.Status = record.Aborted
		case t.Status == record.Aborted:
			t.Status = record.Committed
		default:
			g.changeRead()
		}
	}
}

// place is where an operation stands.
type place struct{ txn, op int }

// places lists the operations of a kind.
func (g *gen) places(kind record.OpKind) []place {
	var out []place
	for i, t := range g.out {
		for j, op := range t.Ops {
			if op.Kind == kind {
				out = append(out, place{i, j})
			}
		}
	}
	return out
}

func (g *gen) at(p place) *record.Op { return &g.out[p.txn].Ops[p.op] }

// changeRead lets a read return what another operation on the key has, or its
// initial value, or, seldom, something new.
func (g *gen) changeRead() {
	reads := g.places(record.Read)
	if len(reads) == 0 {
		return
	}
	r := g.at(reads[g.rng.IntN(len(reads))])
	values := []record.Value{g.start[int(r.Key[0]-'x')]}
	for _, t := range g.out {
		for _, op := range t.Ops {
			if op.Key == r.Key && op.Kind != record.Append {
				values = append(values, op.Value)
			}
		}
	}
	if g.rng.IntN(10) == 0 {
		values = []record.Value{record.Int(100)}
	}
	r.Value = values[g.rng.IntN(len(values))]
}

// changeList lets a read of a list miss its end or its beginning, have two
// elements in the other order, or an element more: one twice, or of another
// append to the key.
func (g *gen) changeList() {
	reads := slices.DeleteFunc(g.places(record.Read), func(p place) bool { return !g.isList(int(g.at(p).Key[0] - 'x')) })
	if len(reads) == 0 {
		return
	}
	r := g.at(reads[g.rng.IntN(len(reads))])
	var list []string
	if r.Value.Kind == record.KindList && r.Value.Text != "[]" {
		list = strings.Split(r.Value.Text[1:len(r.Value.Text)-1], ",")
	}
	n := len(list)
	switch choice := g.rng.IntN(6); {
	case choice == 0 && n > 0:
		list = list[:g.rng.IntN(n)]
	case choice == 1 && n > 0:
		list = list[1:]
	case choice == 2 && n > 1:
		i := g.rng.IntN(n - 1)
		list[i], list[i+1] = list[i+1], list[i]
	case choice == 3 && n > 0 && g.coin():
		list = append(list, list[g.rng.IntN(n)])
	default:
		var others []string
		for _, p := range g.places(record.Append) {
			if op := g.at(p); op.Key == r.Key && !slices.Contains(list, op.Value.String()) {
				others = append(others, op.Value.String())
			}
		}
		if len(others) > 0 {
			list = slices.Insert(list, n-g.rng.IntN(min(n, 1)+1), others[g.rng.IntN(len(others))])
		}
	}
	switch {
	case len(list) > 0:
		r.Value = record.Value{Kind: record.KindList, Text: "[" + strings.Join(list, ",") + "]"}
	case g.coin():
		r.Value = record.Value{Kind: record.KindList, Text: "[]"}
	default:
		r.Value = record.Null
	}
}

// swapInSession exchanges what two transactions of a session did.
func (g *gen) swapInSession() {
	i, j := g.rng.IntN(len(g.out)), g.rng.IntN(len(g.out))
	a, b := &g.out[i], &g.out[j]
	if a.Session == b.Session {
		a.Ops, b.Ops = b.Ops, a.Ops
		a.Status, b.Status = b.Status, a.Status
	}
}

// swapWrites exchanges the values of two writes of a key.
func (g *gen) swapWrites() {
	writes := g.places(record.Write)
	if len(writes) < 2 {
		return
	}
	a := g.at(writes[g.rng.IntN(len(writes))])
	b := g.at(writes[g.rng.IntN(len(writes))])
	if a.Key == b.Key {
		a.Value, b.Value = b.Value, a.Value
	}
}

// shiftTimes moves a transaction within the time that its session's neighbours
// leave it.
func (g *gen) shiftTimes() {
	i := g.rng.IntN(len(g.out))
	t := &g.out[i]
	from, to := int64(0), g.clock+g.maxSkew
	for j, o := range g.out {
		if o.Session == t.Session && j < i {
			from = max(from, o.End)
		}
		if o.Session == t.Session && j > i {
			to = min(to, o.Start)
		}
	}
	to = max(from, to)
	t.Start = from + int64(g.rng.IntN(int(to-from)+1))
	t.End = t.Start + int64(g.rng.IntN(int(to-t.Start)+1))
}
