// Package list takes apart the values that reads of appended keys return.
package list

import (
	"encoding/json"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Elements are the elements of a list as canonical JSON texts, first to last:
// of [3,"a"] they are 3 and "a". Null is the empty list, as a key that nobody
// has appended to reads; false if the value is neither. Linear in its length.
func Elements(v record.Value) ([]string, bool) {
	if v.IsNull() {
		return nil, true
	}
	if v.Kind != record.KindList {
		return nil, false
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(v.Text), &raw); err != nil {
		return nil, false
	}
	out := make([]string, len(raw))
	for i, r := range raw {
		out[i] = string(r)
	}
	return out, true
}

// Appended are the elements that operations append to a key, as Elements has them.
func Appended(ops []record.Op, key string) []string {
	var out []string
	for i := range ops {
		if ops[i].Kind == record.Append && ops[i].Key == key {
			out = append(out, ops[i].Value.String())
		}
	}
	return out
}

// Place is where the list that v holds has element, from 0; -1 if it has not.
func Place(v record.Value, element record.Value) int {
	es, _ := Elements(v)
	return slices.Index(es, element.String())
}

// Common is the length of the longest common prefix of two lists.
func Common(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Repeated is the first element that a list holds a second time, and how often
// it holds it; 0 if none.
func Repeated(es []string) (element string, times int) {
	count := make(map[string]int, len(es))
	for _, e := range es {
		if count[e]++; count[e] == 2 && element == "" {
			element = e
		}
	}
	return element, count[element]
}
