// Package list takes apart the values that reads of appended keys return.
package list

import (
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Elements are the elements of a list, first to last. Null is the empty list, as a key that nobody has appended to
// reads; false if the value is neither. Linear in its length.
func Elements(v record.Value) ([]record.Value, bool) {
	return v.Elements(), v.IsNull() || v.Kind == record.KindList
}

// Appended are the elements that operations append to a key, as Elements has them.
func Appended(ops []record.Op, key string) []record.Value {
	var out []record.Value
	for i := range ops {
		if ops[i].Kind == record.Append && ops[i].Key == key {
			out = append(out, ops[i].Value)
		}
	}
	return out
}

// Place is where the list that v holds has element, from 0; -1 if it has not.
func Place(v record.Value, element record.Value) int {
	es, _ := Elements(v)
	return slices.Index(es, element)
}

// Common is the length of the longest common prefix of two lists.
func Common(a, b []record.Value) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Repeated is the first element that a list holds a second time, and how often
// it holds it; 0 if none.
func Repeated(es []record.Value) (element record.Value, times int) {
	seen := make(map[record.Value]bool, len(es))
	for _, e := range es {
		switch {
		case times > 0 && e == element:
			times++
		case times == 0 && seen[e]:
			element, times = e, 2
		}
		seen[e] = true
	}
	return element, times
}
