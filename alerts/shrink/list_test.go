package shrink_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// What is left of lists, with partial coverage (unseen) and without.
func TestShrinkLists(t *testing.T) {
	for _, c := range []struct {
		title, history string
		unseen         bool
		want           string
	}{
		{"an element loses its appender, its lists stay", `
			s1 A: append(l,1)
			s2 B: append(l,2)
			s3 C: r(l,[1,2])
			s4 D: r(l,[2,1])`, true, `
			s2 B: append(l,2)
			s3 C: r(l,[1,2])
			s4 D: r(l,[2,1])`},
		{"with complete coverage it may not", `
			s1 A: append(l,1)
			s2 B: append(l,2) append(l,3)
			s3 C: r(l,[1,2,3])
			s4 D: r(l,[2,3,1])`, false, `
			s1 A: append(l,1)
			s2 B: append(l,2) append(l,3)
			s3 C: r(l,[1,2,3])
			s4 D: r(l,[2,3,1])`},
		{"a list that does not hold the element stays", `
			s1 A: append(l,1) append(m,1)
			s2 B: r(l,[1]) r(m,null)
			s3 C: append(l,2)
			s4 D: r(l,[1,2])`, false, `
			s1 A: append(l,1) append(m,1)
			s2 B: r(l,[1]) r(m,null)`},
		{"what a transaction appends goes as a whole", `
			s1 A: append(l,1) append(l,2) w(y,1)
			s2 B: r(l,[1,2]) r(y,1)
			s2 C: r(l,[1])`, true, `
			s1 A: append(l,1) append(l,2)
			s2 C: r(l,[1])`},
		{"both appenders of an element stay with a list that holds it", `
			s1 A: append(l,1)
			s2 B: append(l,1)
			s3 C: r(l,[1]) r(l,[1,1])`, true, `
			s1 A: append(l,1)
			s2 B: append(l,1)
			s3 C: r(l,[1]) r(l,[1,1])`},
		{"a transaction's own list goes with its append", `
			s1 A: append(l,1) r(l,[1]) append(m,1)
			s2 B: r(m,[1]) r(m,null)`, true, `
			s1 A: append(m,1)
			s2 B: r(m,[1]) r(m,null)`},
		{"a key that is written too is left as it is", `
			s1 A: append(l,1)
			s2 B: w(l,[7])
			s3 C: r(l,[7,1]) r(l,[1])`, true, `
			s1 A: append(l,1)
			s2 B: w(l,[7])
			s3 C: r(l,[7,1]) r(l,[1])`},
	} {
		s := parse(t, "initial absent\n"+c.history)
		opt := record.Assumptions{}.Override(s.Header)
		got, _ := shrunk(s.Txns, func(txns []record.Transaction) bool {
			if c.unseen {
				txns = alerttest.WithUnseenAppenders(txns)
			}
			return !oracle.Holds(verdict.SI, txns, opt)
		}, shrink.Options{Unseen: c.unseen})
		want := parse(t, "initial absent\n"+c.want)
		if d := cmp.Diff(script.Format(withoutSeq(want)), script.Format(withoutSeq(script.Script{Header: s.Header, Txns: got}))); d != "" {
			t.Errorf("%s: -want +got:\n%s", c.title, d)
		}
	}
}

func withoutSeq(s script.Script) script.Script {
	s.Txns = slices.Clone(s.Txns)
	for i := range s.Txns {
		s.Txns[i].Seq, s.Txns[i].HasSeq = 0, false
	}
	return s
}

// A reader of a list of a thousand elements does not need the thousand transactions that appended them; and finding that
// takes few calls.
func TestLongLists(t *testing.T) {
	var txns []record.Transaction
	var elements []string
	for i := range 1000 {
		elements = append(elements, fmt.Sprint(i))
		ops := []record.Op{
			{Kind: record.Append, Key: "l", Value: record.Int(int64(i))},
			{Kind: record.Append, Key: "m", Value: record.Int(int64(i))}}
		if i%25 == 0 {
			ops = append(ops, record.Op{Kind: record.Read, Key: "l", Value: listOf(elements)})
		}
		txns = append(txns, record.Transaction{Session: "a", ID: fmt.Sprintf("A%d", i), Ops: ops})
	}
	swapped := slices.Clone(elements)
	swapped[700], swapped[701] = swapped[701], swapped[700]
	for i, es := range [][]string{elements, swapped} {
		txns = append(txns, record.Transaction{Session: "r", ID: fmt.Sprintf("R%d", i), Ops: []record.Op{{Kind: record.Read, Key: "l", Value: listOf(es)}}})
	}
	violated := func(rest []record.Transaction) bool { // two readers disagree, and it is a list
		var lists [][]record.Value
		appends := false
		for i := range rest {
			for _, op := range rest[i].Ops {
				appends = appends || op.Kind == record.Append && op.Key == "l"
				if es, ok := list.Elements(op.Value); ok && op.Key == "l" {
					lists = append(lists, es)
				}
			}
		}
		for _, a := range lists {
			for _, b := range lists {
				if appends && list.Common(a, b) < min(len(a), len(b)) {
					return true
				}
			}
		}
		return false
	}
	if got, calls := shrunk(txns, violated, shrink.Options{Unseen: true}); len(got) > 3 || calls > 60 {
		t.Errorf("%d transactions are left after %d calls", len(got), calls)
	}
}

func listOf(es []string) record.Value {
	return record.Value{Kind: record.KindList, Text: "[" + strings.Join(es, ",") + "]"}
}
