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
