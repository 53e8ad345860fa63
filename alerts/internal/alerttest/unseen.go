package alerttest

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/internal/list"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// WithUnseenAppenders writes out, for a judge that knows complete coverage
// alone, what partial coverage means for lists: for each element that was read
// in a list and that nobody recorded appended, a transaction in a session of its
// own, at no known time, that did. If an element is seen several times in one
// list there are as many. One element each is the most general: what appends
// several is two that follow each other at once.
func WithUnseenAppenders(txns []record.Transaction) []record.Transaction {
	type element struct{ key, text string }
	known, lists, need := map[element]bool{}, map[string]bool{}, map[element]int{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append {
				known[element{op.Key, op.Value.String()}] = true
				lists[op.Key] = true
			}
		}
	}
	var order []element
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind != record.Read || !lists[op.Key] {
				continue
			}
			es, _ := list.Elements(op.Value)
			count := map[string]int{}
			for _, text := range es {
				e := element{op.Key, text}
				if known[e] {
					continue
				}
				if need[e] == 0 {
					order = append(order, e)
				}
				count[text]++
				need[e] = max(need[e], count[text])
			}
		}
	}
	out := slices.Clone(txns)
	for _, e := range order {
		for range need[e] {
			id := fmt.Sprintf("unseen-%d", len(out))
			out = append(out, record.Transaction{DB: record.DefaultDB, Session: id, ID: id,
				Ops: []record.Op{{Kind: record.Append, Key: e.key, Value: value(e.text)}}})
		}
	}
	return out
}

func value(text string) record.Value {
	v, err := codec.ParseValue([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%s: %v; can't happen, as it is part of a value", text, err))
	}
	return v
}
