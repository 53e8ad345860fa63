package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Tuple is what the two columns of a row hold. They are 0 where it is not there.
type Tuple [2]int

// columns are the names of the columns.
func (w Workload) columns() [2]string {
	switch w {
	case Booking:
		return [2]string{"resource", "start"}
	case Queue:
		return [2]string{"queue", "state"}
	case Unique:
		return [2]string{"name", "owner"}
	}
	return [2]string{"v1", "v2"}
}

// Row is what records show of a row; Null where it is not there. Number, if it is not 0, is one more column.
func (w Workload) Row(t Tuple, number int64) record.Value {
	if t == (Tuple{}) {
		return record.Null
	}
	held := map[string]record.Value{}
	for c, name := range w.columns() {
		held[name] = record.Int(int64(t[c]))
	}
	if number != 0 {
		held["number"] = record.Int(number)
	}
	return record.ObjectOf(held)
}

// Where is the condition of a step, as records have it.
func (w Workload) Where(s Step) string {
	if s.High == (Tuple{}) {
		return "true"
	}
	var all []string
	for c, name := range w.columns() {
		switch s.High[c] {
		case 0:
		case s.Low[c]:
			all = append(all, fmt.Sprintf("%s == %d", name, s.Low[c]))
		default:
			all = append(all, fmt.Sprintf("%s >= %d && %s <= %d", name, s.Low[c], name, s.High[c]))
		}
	}
	return strings.Join(all, " && ")
}

// Did is what records have of a predicate write: what the rows were given, Null if they were deleted, and which; nil:
// it is not known.
func Did(set record.Value, hit []string) record.Value {
	does := map[string]record.Value{"set": set}
	if set.IsNull() {
		does = map[string]record.Value{"delete": {Kind: record.KindBool, Text: "true"}}
	}
	if hit != nil {
		keys := []byte{'['}
		for i, key := range hit {
			if i > 0 {
				keys = append(keys, ',')
			}
			keys = record.AppendJSONString(keys, key)
		}
		does[record.Hit] = record.Value{Kind: record.KindList, Text: string(append(keys, ']'))}
	}
	return record.ObjectOf(does)
}

// rows is the state of a table "t", of which rows are read or written by conditions on its columns. With Predicates the
// first transaction inserts all, and a condition is about up to a tenth of them (BlindW-Pred, Vbox 4.1).
type rows struct {
	held   []tuple    // what somebody has inserted, or is about to
	there  []int      // which of them are there, sorted
	counts [2][]int32 // by column, how many rows hold a value
	loads  bool       // somebody does, with Predicates
}

// tuple is what a row holds.
type tuple struct {
	columns   Tuple
	committed int64 // the step of the last write
}

// ask is a step about rows.
type ask struct {
	Step
	hit []int // those that it has written
}

// asking decides what transaction t asks of the rows.
func (g *Generator) asking(t *running) {
	w, of := &g.rows, g.cfg.Workload
	var steps []Step
	if of == Predicates && !w.loads {
		w.loads = true
		for range g.cfg.Keys {
			steps = append(steps, Step{Kind: record.Write, Set: g.drawer.First(), Insert: true})
		}
	} else {
		steps = g.drawer.Draw()
	}
	t.asks = make([]ask, len(steps))
	for i, s := range steps {
		op := record.Op{Kind: s.Kind, Key: "t"}
		if s.Kind == record.Write {
			op.Value = of.Row(s.Set, 0)
		}
		t.asks[i].Step = s
		g.ops = append(g.ops, op)
	}
}

// shorten ends the span of a condition where as many rows are within as it has values.
func (w *rows) shorten(s *Step) {
	c := 0
	if s.High[0] == 0 {
		c = 1
	}
	left, counts := s.High[c]-s.Low[c]+1, w.counts[c]
	for s.High[c] = s.Low[c]; s.High[c] < len(counts)-1; s.High[c]++ {
		if left -= int(counts[s.High[c]]); left < int(counts[s.High[c]+1]) {
			break
		}
	}
}

func rowName(i int) string { return "t:" + strconv.Itoa(i) }

// meets tells whether a row that holds columns is one that a step asks for.
func (s *Step) meets(columns Tuple) bool {
	for c, v := range columns {
		if v == 0 || s.High[c] != 0 && (v < s.Low[c] || v > s.High[c]) {
			return false
		}
	}
	return true
}

// query fills in what transaction t reads, and which rows its conditions match, now.
func (g *Generator) query(t *running) {
	w, of, own, met := &g.rows, g.cfg.Workload, map[int]Tuple{}, []int(nil)
	end := func(i int) { t.asks, t.record.Ops = t.asks[:i], t.record.Ops[:i:i] }
	for i := range t.asks {
		a, op := &t.asks[i], &t.record.Ops[i]
		if op.Kind == record.Write {
			if a.Insert == (len(met) > 0) {
				end(i)
				return
			}
			if a.Insert {
				met, w.held = []int{len(w.held)}, append(w.held, tuple{})
			}
			op.Key, a.hit, met = rowName(met[0]), met, nil
			continue
		}
		if of == Predicates {
			w.shorten(&a.Step)
		}
		op.Where = of.Where(a.Step)
		found, hit := map[string]record.Value{}, []string{}
		met = nil
		for _, r := range w.there {
			columns := w.held[r].columns
			if set, mine := own[r]; mine {
				columns = set
			}
			switch {
			case !a.meets(columns):
				continue
			case op.Kind == record.PredicateRead:
				found[rowName(r)] = of.Row(columns, 0)
			default:
				hit = append(hit, rowName(r))
				a.hit, own[r] = append(a.hit, r), a.Set
			}
			met = append(met, r)
		}
		if op.Value = record.ObjectOf(found); op.Kind == record.PredicateWrite {
			op.Value = Did(of.Row(a.Set, 0), hit)
		}
		if a.Take && len(met) == 0 {
			end(i)
			return
		}
		if a.Take {
			met = met[g.rng.IntN(len(met)):][:1]
			*op = record.Op{Kind: record.Read, Key: rowName(met[0]), Value: found[rowName(met[0])]}
		}
	}
}

// overtaken tells whether somebody committed a write of a row that transaction t writes since t's reads.
func (w *rows) overtaken(t *running) bool {
	for _, a := range t.asks {
		for _, r := range a.hit {
			if w.held[r].committed > t.snapshot {
				return true
			}
		}
	}
	return false
}

// happen changes the rows when a transaction takes effect, at a step.
func (w *rows) happen(t *running, step int64) {
	for _, a := range t.asks {
		for _, r := range a.hit {
			h := &w.held[r]
			switch at, isThere := slices.BinarySearch(w.there, r); {
			case isThere && a.Set == Tuple{}:
				w.there = slices.Delete(w.there, at, at+1)
			case !isThere && a.Set != Tuple{}:
				w.there = slices.Insert(w.there, at, r)
			}
			for c, v := range h.columns {
				if w.counts[c][a.Set[c]]++; v != 0 {
					w.counts[c][v]--
				}
			}
			*h = tuple{a.Set, step}
		}
	}
}
