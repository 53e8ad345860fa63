package name_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// TestWriters: who may have written what was read are those who left it behind, once each,
// in order, whether they committed or nobody knows; not who overwrote it himself, was
// aborted, or read it.
func TestWriters(t *testing.T) {
	write := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Write, Key: key, Value: record.Int(value)}
	}
	read := func(key string, value int64) record.Op { return record.Op{Key: key, Value: record.Int(value)} }
	add := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Append, Key: key, Value: record.Int(value)}
	}
	txns := []record.Transaction{
		{Ops: []record.Op{write("x", 1), write("x", 2), add("l", 7), add("l", 7)}},
		{Status: record.Unknown, Ops: []record.Op{write("x", 2), add("l", 7), add("l", 8)}},
		{Status: record.Aborted, Ops: []record.Op{write("x", 2), add("l", 7)}},
		{Ops: []record.Op{write("x", 2), write("y", 2)}},
		{Ops: []record.Op{write("x", 2)}}, // not of the violation
	}
	find := func(id verdict.TxnID) (*record.Transaction, bool) {
		if int(id) >= len(txns) {
			return nil, false
		}
		return &txns[id], true
	}
	w := name.NewWriters(verdict.Violation{Txns: []verdict.TxnID{3, 0}, Evidence: []verdict.TxnID{0, 1, 2, 9}}, find)
	for _, tc := range []struct {
		what      string
		got, want []verdict.TxnID
	}{
		{"the last value", w.Of(read("x", 2), 9), []verdict.TxnID{0, 1, 3}},
		{"but for the reader", w.Of(read("x", 2), 1), []verdict.TxnID{0, 3}},
		{"once more", w.Of(read("x", 2), 9), []verdict.TxnID{0, 1, 3}},
		{"one that was overwritten", w.Of(read("x", 1), 9), nil},
		{"another key", w.Of(read("y", 2), 9), []verdict.TxnID{3}},
		{"an element", w.Of(add("l", 7), 9), []verdict.TxnID{0, 1}},
		{"an element that is not the last", w.Of(add("l", 7), 0), []verdict.TxnID{1}},
		{"another element", w.Of(add("l", 8), 9), []verdict.TxnID{1}},
		{"a value that is no element", w.Of(add("x", 2), 9), nil},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, tc.got, tc.want)
		}
	}
}
