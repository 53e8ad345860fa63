package incremental

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

func listOf(text string) record.Value { return record.Value{Kind: record.KindList, Text: text} }

// What a transaction found before its own appends is the list without them, if
// they are its end.
func TestWithoutOwn(t *testing.T) {
	one, two, text, comma := record.Int(1), record.Int(2), record.String("a"), record.String(`x,1`)
	for _, c := range []struct {
		found string
		own   []record.Value
		want  string
		ok    bool
	}{
		{"[1]", []record.Value{one}, "[]", true},
		{"[3,1]", []record.Value{one}, "[3]", true},
		{"[3,1,2]", []record.Value{one, two}, "[3]", true},
		{"[1,2]", []record.Value{one, two}, "[]", true},
		{"[2,1]", []record.Value{one, two}, "", false},
		{"[1,3]", []record.Value{one}, "", false},
		{"[]", []record.Value{one}, "", false},
		{"[21]", []record.Value{one}, "", false},
		{"[11]", []record.Value{one}, "", false},
		{"[1,11]", []record.Value{one}, "", false},
		{"[-1]", []record.Value{one}, "", false},
		{"[[2,1]]", []record.Value{one}, "", false},
		{`["x,1"]`, []record.Value{one}, "", false},
		{`["x,1",1]`, []record.Value{one}, `["x,1"]`, true},
		{`[1,"x,1"]`, []record.Value{comma}, "[1]", true},
		{`["a"]`, []record.Value{text}, "[]", true},
		{`["b","a"]`, []record.Value{text}, `["b"]`, true},
		{`["b,a"]`, []record.Value{text}, "", false},
		{`[[1,2],[2]]`, []record.Value{listOf("[2]")}, "[[1,2]]", true},
	} {
		in := newIntake(newHistory())
		k := in.h.keyNumber("x")
		other := in.h.keyNumber("y")
		in.apps = append(in.apps, ownAppend{other, 0, two})
		for _, v := range c.own {
			in.apps = append(in.apps, ownAppend{k, in.h.cellOf(k, v), v})
		}
		in.apps = append(in.apps, ownAppend{other, 0, one})
		got, ok := in.withoutOwn(k, listOf(c.found))
		if ok != c.ok || ok && got != listOf(c.want) {
			t.Errorf("%s without %v is %s, %v", c.found, c.own, got.Text, ok)
		}
	}
}

// The elements of a list are values of its key; those that occur twice are noted
// each time they do so again.
func TestElementsOf(t *testing.T) {
	in := newHistory()
	k := in.keyNumber("x")
	c := in.cellOf(k, listOf(`[3,1,"1",1,[1],3,1]`))
	in.noteList(c, listOf(`[3,1,"1",1,[1],3,1]`))
	l := in.elementsOf(c)
	name := func(v record.Value) cellID { return in.cellOf(k, v) }
	one, three := name(record.Int(1)), name(record.Int(3))
	if want := []cellID{three, one, name(record.String("1")), one, name(listOf("[1]")), three, one}; !slices.Equal(l.elements, want) {
		t.Errorf("elements %v, not %v", l.elements, want)
	}
	if !slices.Equal(l.twice, []cellID{one, three, one}) {
		t.Errorf("twice: %v", l.twice)
	}
	if again := in.elementsOf(c); again != l || len(again.twice) != 3 {
		t.Error("read a second time")
	}
}

// A key that is only appended to holds lists; a plain write, committed or not, or
// an element that two transactions append, makes it none.
func TestListKeys(t *testing.T) {
	el := func(n int64) record.Op { return add("x", record.Int(n)) }
	for _, c := range []struct {
		name string
		txns []record.Transaction
		is   bool
	}{
		{"appended", []record.Transaction{{Ops: []record.Op{el(1), el(2)}}}, true},
		{"appended by an aborted one", []record.Transaction{{Status: record.Aborted, Ops: []record.Op{el(1)}}}, true},
		{"never", []record.Transaction{{Ops: []record.Op{read("x", 1)}}}, false},
		{"written", []record.Transaction{{Ops: []record.Op{el(1)}}, {Ops: []record.Op{write("x", 1)}}}, false},
		{"written by an aborted one", []record.Transaction{{Ops: []record.Op{el(1)}}, {Status: record.Aborted, Ops: []record.Op{write("x", 1)}}}, false},
		{"an element of two", []record.Transaction{{Ops: []record.Op{el(1)}}, {Ops: []record.Op{el(1)}}}, false},
		{"an element twice", []record.Transaction{{Ops: []record.Op{el(1), el(1)}}}, false},
		{"an element of an aborted one too", []record.Transaction{{Ops: []record.Op{el(1)}}, {Status: record.Aborted, Ops: []record.Op{el(1)}}}, true},
	} {
		in, _ := take(t, c.txns)
		if got := in.perKey.At(in.keyNumber("x")).isListKey(); got != c.is {
			t.Errorf("%s: that it holds lists is %v", c.name, got)
		}
	}
}

// The versions of a list follow each other in the order of the longest one read,
// a transaction's elements being one version; what was not read has no place.
func TestListsOrderVersions(t *testing.T) {
	el := func(n int64) record.Op { return add("x", record.Int(n)) }
	found := func(text string) record.Op {
		return record.Op{Kind: record.Read, Key: "x", Value: listOf(text)}
	}
	txns := []record.Transaction{
		{Session: "a", Ops: []record.Op{el(1), el(2)}},
		{Session: "b", Ops: []record.Op{el(3)}},
		{Session: "c", Ops: []record.Op{el(4), el(5), el(6)}},
		{Session: "d", Ops: []record.Op{el(7)}},
		{Session: "e", Ops: []record.Op{found("[4,5,6]")}},
		{Session: "f", Ops: []record.Op{found("[4,5,6,3]")}},
		{Session: "g", Ops: []record.Op{found("[4,5,6,3,1,2]")}},
		{Session: "h", Ops: []record.Op{found("[4,5,6,3]"), found("[4,5,6,3]")}},
	}
	want := []int{2, 1, 0} // by transaction; 3's follows all
	orders := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {6, 0, 3, 4, 2, 7, 1, 5}}
	for _, online := range []bool{false, true} {
		for _, order := range orders {
			e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, Online: online, UniqueValues: true})
			id := map[int]verdict.TxnID{}
			for _, i := range order {
				id[i] = e.Step(&txns[i], 0)
				e.Tick(0)
			}
			if r := e.Close()[0]; r.Outcome != verdict.Satisfied {
				t.Fatalf("online %v, order %v: %v %+v", online, order, r.Outcome, r.Violations)
			}
			k := e.h.keyNumber("x")
			versionOf := func(i int) version.ID { return e.g.versionBy(e.h.indexOf[id[i]], k) }
			prev := e.g.initialVersion(k)
			for _, i := range want {
				v := versionOf(i)
				if got := e.g.main.tab.At(v).Prev; got != prev {
					t.Errorf("online %v, order %v: transaction %d's version follows %d, not %d", online, order, i, got, prev)
				}
				prev = v
			}
			if next := e.g.main.tab.At(prev).Next; next != none {
				t.Errorf("online %v, order %v: version %d follows the last one read", online, order, next)
			}
			if last := e.g.main.tab.At(versionOf(3)); last.Prev != none {
				t.Errorf("online %v, order %v: what was not read has a place: %+v", online, order, *last)
			}
		}
	}
}
