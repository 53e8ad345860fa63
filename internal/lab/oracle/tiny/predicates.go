package tiny

import (
	"fmt"
	"math/rand/v2"

	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// Predicates is a small history of a table "t" with columns v and w. Most reads are of some state that the table
// was in.
func Predicates(r *rand.Rand, more int) []record.Transaction {
	keys := []string{"t:1", "t:2", "t:3"}[:1+r.IntN(3)]
	row := func() record.Value {
		if r.IntN(5) == 0 {
			return record.Null
		}
		return record.ObjectOf(map[string]record.Value{"v": record.Int(r.Int64N(4)), "w": record.Int(r.Int64N(2))})
	}
	states := []map[string]record.Value{{}}
	var txns []record.Transaction
	sessions := map[string]int64{}
	for n := range 2 + r.IntN(more) {
		s := fmt.Sprintf("s%d", r.IntN(3))
		sessions[s]++
		x := record.Transaction{DB: "d", Session: s, Seq: sessions[s], HasSeq: true, ID: fmt.Sprintf("%s#%d", s, sessions[s])}
		switch r.IntN(8) {
		case 0:
			x.Status = record.Aborted
		case 1:
			x.Status = record.Unknown
		}
		snapshot := states[max(0, len(states)-1-r.IntN(3))]
		own := map[string]record.Value{}
		for range 1 + r.IntN(3) {
			if r.IntN(8) == 0 { // not repeatable
				snapshot = states[r.IntN(len(states))]
			}
			seen := func(key string) record.Value {
				if v, ok := own[key]; ok {
					return v
				}
				return snapshot[key]
			}
			key := keys[r.IntN(len(keys))]
			switch k := r.IntN(6); k {
			case 0:
				x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: key, Value: seen(key)})
			case 1, 2:
				v := row()
				own[key] = v
				x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: key, Value: v})
			default:
				op := record.Op{Kind: record.PredicateRead, Key: "t", Where: randomCondition(r)}
				p, err := predicate.Parse(op.Where)
				if err != nil {
					panic(err)
				}
				rows, hit, given := map[string]record.Value{}, []byte("["), row()
				for _, key := range keys {
					v := seen(key)
					match, err := p.Match(v)
					if err != nil {
						panic(err)
					}
					if r.IntN(25) == 0 {
						match, v = !match, row()
					}
					if !match {
						continue
					}
					columns := v.Fields()
					if n%2 == 0 {
						delete(columns, "w")
					}
					if columns == nil {
						columns = map[string]record.Value{}
					}
					rows[key] = record.ObjectOf(columns)
					if k == 5 {
						if len(hit) > 1 {
							hit = append(hit, ',')
						}
						hit, own[key] = record.AppendJSONString(hit, key), given
					}
				}
				op.Value = record.ObjectOf(rows)
				if k == 5 {
					op.Kind = record.PredicateWrite
					change := map[string]record.Value{record.Hit: {Kind: record.KindList, Text: string(append(hit, ']'))},
						"set": given}
					if given.IsNull() {
						delete(change, "set")
						change["delete"] = record.Value{Kind: record.KindBool, Text: "true"}
					}
					op.Value = record.ObjectOf(change)
				}
				x.Ops = append(x.Ops, op)
			}
		}
		if x.Status == record.Committed || x.Status == record.Unknown && r.IntN(2) == 0 {
			next := map[string]record.Value{}
			for k, v := range states[len(states)-1] {
				next[k] = v
			}
			for k, v := range own {
				next[k] = v
			}
			states = append(states, next)
		}
		txns = append(txns, x)
	}
	return txns
}

func randomCondition(r *rand.Rand) string {
	n := r.IntN(4)
	return []string{
		fmt.Sprintf("v == %d", n), fmt.Sprintf("v >= %d && v < %d", n, n+2), fmt.Sprintf("v != %d", n), "w = 1 or v > 2",
		"true",
		fmt.Sprintf("not (v in (%d, 3)) AND w = 0", n), "v is null", "w between 1 and 2",
	}[r.IntN(8)]
}
