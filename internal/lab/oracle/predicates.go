package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// A predicate operation reads each row of its table that the history names, all at once: of those that it returned, or
// hit, a version that matches and has what was seen; of all others one that does not match. The rows that a predicate
// write hit have to be named, and it sets all columns.

func isPredicate(op *record.Op) bool {
	return op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite
}

// supportedPredicate tells why an operation is beyond the oracle.
func supportedPredicate(op *record.Op) error {
	if _, err := predicate.Parse(op.Where); err != nil {
		return err
	}
	if _, known := op.Value.Fields()[record.Hit]; op.Kind == record.PredicateWrite && !known {
		return fmt.Errorf("name the rows that were hit")
	}
	return nil
}

// named are the keys that an operation names.
func named(op *record.Op) []string {
	switch op.Kind {
	case record.PredicateRead:
		var out []string
		for key := range op.Value.Fields() {
			out = append(out, key)
		}
		slices.Sort(out)
		return out
	case record.PredicateWrite:
		return hits(op)
	}
	return []string{op.Key}
}

// written are the keys that an operation changes.
func written(op *record.Op) []string {
	switch op.Kind {
	case record.Write, record.Append:
		return []string{op.Key}
	case record.PredicateWrite:
		return hits(op)
	}
	return nil
}

func hits(op *record.Op) (out []string) {
	for _, e := range op.Value.Fields()[record.Hit].Elements() {
		out = append(out, e.Text)
	}
	return out
}

// gave is what a predicate write made of the rows that it hit.
func gave(op *record.Op) record.Value { return op.Value.Fields()["set"] }

// rows are the keys of the rows of a predicate's table.
func (h *history) rows(op *record.Op) (out []string) {
	for key := range h.keys {
		if strings.HasPrefix(key, op.Key+":") {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// fits tells whether a predicate operation saw what it did of a row that held v.
func fits(op *record.Op, key string, v record.Value) bool {
	p, err := predicate.Parse(op.Where)
	if err != nil {
		panic(err)
	}
	match, err := p.Match(v)
	if err != nil {
		panic(err)
	}
	if op.Kind == record.PredicateWrite {
		return match == slices.Contains(hits(op), key)
	}
	seen, returned := op.Value.Fields()[key]
	if match != returned {
		return false
	}
	columns := v.Fields()
	for name, c := range seen.Fields() {
		if columns[name] != c {
			return false
		}
	}
	return true
}

// mayHold notes what somebody unseen may have made of a row: that there is none, and of all contents that the
// operations tell apart one that nobody is seen to have made. Rows of a table have the same columns, here v and w, with
// small numbers.
func (h *history) mayHold(key string) {
	k := h.keys[key]
	if h.partly[key] {
		return
	}
	h.partly[key] = true
	h.unseen[k] = append(h.unseen[k], record.Null)
	told := map[string]bool{}
	column := func(n int64) record.Value {
		if n < 0 {
			return record.Null
		}
		return record.Int(n)
	}
	for v := int64(-1); v <= 6; v++ {
		for w := int64(-1); w <= 3; w++ {
			row := record.ObjectOf(map[string]record.Value{"v": column(v), "w": column(w)})
			if !h.mayBeUnseen(key, row) {
				continue
			}
			var apart []byte
			for _, t := range h.txns {
				for _, op := range t.Ops {
					same := op.Value == row && op.Key == key
					if isPredicate(&op) && strings.HasPrefix(key, op.Key+":") {
						same = fits(&op, key, row)
					}
					apart = fmt.Append(apart, same)
				}
			}
			if !told[string(apart)] {
				told[string(apart)] = true
				h.unseen[k] = append(h.unseen[k], row)
			}
		}
	}
}

// mayFind tells whether transaction t, if it finds a row to be that, may find in it what it says, as far as its
// predicates go before it writes the row itself.
func (h *history) mayFind(t, k int, v record.Value) bool {
	for _, op := range h.txns[t].Ops {
		if isPredicate(&op) {
			for _, key := range h.rows(&op) {
				if h.keys[key] == k && !fits(&op, key, v) {
					return false
				}
			}
		}
		for _, key := range written(&op) {
			if h.keys[key] == k {
				return true
			}
		}
	}
	return true
}
