package alerttest

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
)

// Judge is the oracle as a judge of evidence. It knows nothing of lists under
// partial coverage; there, what an unseen writer may have written is left out
// or, in lists, written out, and what is a violation nevertheless is one.
// Histories that are too large for it are Unknown.
func Judge(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
	opt := record.Assumptions{}.Override(h)
	if opt.Coverage == record.CoveragePartial && slices.ContainsFunc(txns, appends) {
		txns = WithUnseenAppenders(withoutUnseenReads(txns))
		opt.Coverage = record.CoverageComplete
	}
	switch {
	case len(txns) > judgedMax || !slices.Contains(oracle.Levels(txns), l):
		return verdict.Unknown
	case oracle.Holds(l, txns, opt):
		return verdict.Satisfied
	}
	return verdict.Violated
}

// judgedMax keeps the oracle within milliseconds.
const judgedMax = 9

// TooLarge tells whether a history, with what is written out for it, is more than
// Judge takes on.
func TooLarge(txns []record.Transaction) bool { return len(WithUnseenAppenders(txns)) > judgedMax }

func appends(t record.Transaction) bool {
	return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Append })
}

// withoutUnseenReads leaves out the reads of keys that are no lists whose value
// nobody wrote who had not read it there before, unless the same transaction read another one too.
func withoutUnseenReads(txns []record.Transaction) []record.Transaction {
	lists := map[string]bool{}
	made := map[record.Op]bool{} // by what would read it
	for i := range txns {
		read, own := map[record.Op]bool{}, map[string]bool{}
		for _, op := range txns[i].Ops {
			lists[op.Key] = lists[op.Key] || op.Kind == record.Append
			of := record.Op{Key: op.Key, Value: op.Value}
			read[of] = read[of] || op.Kind == record.Read && !own[op.Key]
			made[of] = made[of] || op.Kind == record.Write && !read[of]
			own[op.Key] = own[op.Key] || op.Kind != record.Read
		}
	}
	out := slices.Clone(txns)
	for i := range out {
		own, first, differs := map[string]bool{}, map[string]record.Value{}, map[string]bool{}
		for _, op := range txns[i].Ops {
			if v, ok := first[op.Key]; ok && op.Kind == record.Read && !own[op.Key] && v != op.Value {
				differs[op.Key] = true
			} else if !ok && op.Kind == record.Read {
				first[op.Key] = op.Value
			}
			own[op.Key] = own[op.Key] || op.Kind == record.Write
		}
		clear(own)
		out[i].Ops = nil
		for _, op := range txns[i].Ops {
			own[op.Key] = own[op.Key] || op.Kind == record.Write
			if op.Kind != record.Read || lists[op.Key] || own[op.Key] || differs[op.Key] || made[op] {
				out[i].Ops = append(out[i].Ops, op)
			}
		}
	}
	return out
}

// WithUnseenAppenders writes out, for a judge that knows complete coverage
// alone, what partial coverage means for lists: for each element that was read
// in a list and that nobody recorded appended, a transaction in a session of its
// own, at no known time, that did. If an element is seen several times in one
// list there are as many. One element each is the most general: what appends
// several is two that follow each other at once.
func WithUnseenAppenders(txns []record.Transaction) []record.Transaction {
	known, lists, need := map[record.Cell]bool{}, map[string]bool{}, map[record.Cell]int{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append {
				known[op.Cell()] = true
				lists[op.Key] = true
			}
		}
	}
	var order []record.Cell
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind != record.Read || !lists[op.Key] {
				continue
			}
			es, _ := list.Elements(op.Value)
			count := map[record.Value]int{}
			for _, v := range es {
				e := record.Cell{Key: op.Key, Value: v}
				if known[e] {
					continue
				}
				if need[e] == 0 {
					order = append(order, e)
				}
				count[v]++
				need[e] = max(need[e], count[v])
			}
		}
	}
	out := slices.Clone(txns)
	for _, e := range order {
		for range need[e] {
			id := fmt.Sprintf("unseen-%d", len(out))
			out = append(out, record.Transaction{DB: record.DefaultDB, Session: id, ID: id,
				Ops: []record.Op{{Kind: record.Append, Key: e.Key, Value: e.Value}}})
		}
	}
	return out
}
