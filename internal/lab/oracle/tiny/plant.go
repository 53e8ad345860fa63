package tiny

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// shapes are small histories on keys of their own that each break some level,
// most of which a store seldom makes by chance. A transaction is a session, a
// colon, and its operations: r or w, a key and the number of a version, 0 the
// initial one.
var shapes = []string{
	// ra and no more: what was seen by way of others is not shown
	"a: wx1, b: rx1 wy1, c: ry1 rx0",
	"a: wx1, c: rx1, c: rx0",
	"a: wx1, a: wy1, c: ry1 rx0",
	"a: wx1, b: rx1, b: wy1, c: ry1 rx0",
	"a: wx1 wy1, b: wx2 wz1, c: rz1, c: rx1, d: ry1, d: rx2",
	"a: wx1, b: rx1 wx2, c: rx2 wy1, d: ry1 rx1",
	// cc and no more
	"a: wx1, b: wy1, c: rx1 ry0, d: rx0 ry1",
	"a: wx1, b: wy1, a: ry0, b: rx0",
	"a: wx1, b: wx2, c: rx1, c: rx2, d: rx2",
	// pc and no more
	"a: rx0 wx1, b: rx0 wx2",
	// rc and no more
	"a: wx1, a: rx0",
	"a: wx1 wy1, b: ry0 rx1",
	"a: wx1 wy1, b: wx2 wz1, c: rx1 rz1, d: rx2 ry1",
	"a: wx1, a: wx2, b: rx1 rx2",
	// g1 and no more
	"a: wx1 wy1, b: rx1 ry0",
	"a: wx1, b: wx2, c: rx1 rx2, d: rx2 rx1",
	"a: wx1 wy1, b: wx2 wz1, c: rz1 rx1, d: ry1 rx2",
	// nothing: a cycle of read-from and session order
	"a: rx1 wy1, b: ry1 wx1",
	"a: rx1, a: wy1, b: ry1, b: wx1",
}

// plantKeys are those that shapes use.
const plantKeys = 3

// plant adds a shape to the history, its transactions in the sessions there are
// and somewhere among the others.
func (g *gen) plant() {
	first := g.keys
	sessions := map[string]string{}
	from := g.rng.IntN(g.sessions)
	at := g.rng.IntN(len(g.out) + 1)
	clock := int64(0) // ends of those before
	for _, t := range g.out[:at] {
		clock = max(clock, t.End)
	}
	values := map[string][]int64{} // by key: what its versions added
	var in []record.Transaction
	for i, text := range strings.Split(shapes[g.rng.IntN(len(shapes))], ", ") {
		name, ops, _ := strings.Cut(text, ": ")
		if sessions[name] == "" {
			sessions[name] = fmt.Sprintf("s%d", 1+(from+len(sessions))%max(g.sessions, 4))
		}
		t := record.Transaction{DB: record.DefaultDB, Session: sessions[name], ID: fmt.Sprintf("P%d", i+1), Start: clock}
		for _, op := range strings.Fields(ops) {
			k := first + int(op[1]-'x')
			key, n := string(rune('x'+k)), int(op[2]-'0')
			for len(values[key]) < n {
				g.values++
				values[key] = append(values[key], g.values)
			}
			o := record.Op{Key: key, Value: g.start[k]}
			switch {
			case op[0] == 'w':
				if o.Kind, o.Value = record.Write, record.Int(values[key][n-1]); g.isList(k) {
					o.Kind = record.Append
				}
			case n > 0 && g.isList(k):
				var list []string
				for _, v := range values[key][:n] {
					list = append(list, fmt.Sprint(v))
				}
				o.Value = record.Value{Kind: record.KindList, Text: "[" + strings.Join(list, ",") + "]"}
			case n > 0:
				o.Value = record.Int(values[key][n-1])
			}
			t.Ops = append(t.Ops, o)
		}
		clock += int64(g.rng.IntN(3))
		t.End = clock
		in = append(in, t)
	}
	for i := at; i < len(g.out); i++ {
		g.out[i].Start, g.out[i].End = g.out[i].Start+clock, g.out[i].End+clock
	}
	g.clock += clock
	g.out = slices.Insert(g.out, at, in...)
}
