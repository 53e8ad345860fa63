package incremental

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// take gives records to a new intake, and returns what each breaks by itself.
func take(t *testing.T, txns []record.Transaction) (*history, [][]verdict.Kind) {
	t.Helper()
	in := newIntake(newHistory())
	var broken [][]verdict.Kind
	for i := range txns {
		var kinds []verdict.Kind
		for _, v := range in.read(&txns[i], verdict.TxnID(i), int64(i)) {
			kinds = append(kinds, v.Kind)
		}
		in.commit(&txns[i], verdict.TxnID(i), int64(i))
		broken = append(broken, kinds)
	}
	return in.h, broken
}

func write(key string, n int64) record.Op {
	return record.Op{Kind: record.Write, Key: key, Value: record.Int(n)}
}
func read(key string, n int64) record.Op {
	return record.Op{Kind: record.Read, Key: key, Value: record.Int(n)}
}
func add(key string, v record.Value) record.Op {
	return record.Op{Kind: record.Append, Key: key, Value: v}
}

// The waiting reads of a value are what was put there and not taken off, oldest
// first, however their room is used again.
func TestWaiters(t *testing.T) {
	in := newHistory()
	const cells = 5
	for c := range cells {
		in.cellOf(0, record.Int(int64(c)))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	waiting := make([][]uint32, cells)
	next, most, all := uint32(0), 0, 0
	for range 20_000 {
		c := cellID(rng.IntN(cells))
		switch rng.IntN(10) {
		case 0:
			var got []uint32
			in.release(c, func(i ordinal) { got = append(got, uint32(i)) })
			if !slices.Equal(got, waiting[c]) {
				t.Fatalf("%v are let go, %v waited", got, waiting[c])
			}
			all -= len(waiting[c])
			waiting[c] = nil
		case 1, 2, 3:
			w := uint32(rng.IntN(int(next) + 1))
			at := slices.Index(waiting[c], w)
			if in.unwait(c, ordinal(w)) != (at >= 0) {
				t.Fatalf("that %d waits is %v", w, at >= 0)
			}
			if at >= 0 {
				waiting[c] = slices.Delete(waiting[c], at, at+1)
				all--
			}
		default:
			in.wait(c, ordinal(next))
			waiting[c] = append(waiting[c], next)
			next++
			all++
			most = max(most, all)
		}
	}
	if len(in.waiters) > most {
		t.Errorf("room for %d waiters is kept, %d waited at most", len(in.waiters), most)
	}
}

// What a waiting read does when it is let go may be to wait again.
func TestWaitWhileReleased(t *testing.T) {
	in := newHistory()
	c := in.cellOf(0, record.Int(1))
	for i := range uint32(3) {
		in.wait(c, ordinal(i))
	}
	var got []uint32
	in.release(c, func(i ordinal) {
		got = append(got, uint32(i))
		in.wait(c, i+10)
	})
	in.release(c, func(i ordinal) { got = append(got, uint32(i)) })
	if !slices.Equal(got, []uint32{0, 1, 2, 10, 11, 12}) {
		t.Errorf("let go: %v", got)
	}
}

// All writers of a value are found, in the order of Step, until enough are.
func TestWritersOf(t *testing.T) {
	var txns []record.Transaction
	for i := range 6 {
		txns = append(txns, record.Transaction{Session: fmt.Sprint(i), Ops: []record.Op{write("x", int64(i%2)), write("y", 7)}})
	}
	txns[4].Status = record.Aborted
	in, _ := take(t, txns)
	for key, want := range map[string][]uint32{"x": {0, 2}, "y": {0, 1, 2, 3, 4}} { // indexes, which leave aborted ones out
		k, isNew := in.keys.numberOf(key, hashName(key))
		if isNew {
			t.Fatalf("no key %s", key)
		}
		n := int64(0)
		if key == "y" {
			n = 7
		}
		c := in.cellOf(k, record.Int(n))
		var got []uint32
		for i := range in.writersOf(c) {
			got = append(got, uint32(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: writers %v, not %v", key, got, want)
		}
		for stop := range want {
			got = nil
			for i := range in.writersOf(c) {
				if got = append(got, uint32(i)); len(got) > stop {
					break
				}
			}
			if !slices.Equal(got, want[:stop+1]) {
				t.Errorf("%s: writers %v, asked for %d", key, got, stop+1)
			}
		}
	}
}

// A transaction's operations are kept by key whether it touches few keys or many.
func TestManyKeysInOneTransaction(t *testing.T) {
	for _, n := range []int{1, fewKeys - 1, fewKeys, fewKeys + 1, fewKeys + 2, 10 * fewKeys} {
		var ops []record.Op
		for k := range n {
			ops = append(ops, read(fmt.Sprint(k), int64(k)), write(fmt.Sprint(k), int64(1000+k)))
		}
		for k := range n {
			ops = append(ops, read(fmt.Sprint(k), int64(1000+k)), write(fmt.Sprint(k), int64(2000+k)))
		}
		in, broken := take(t, []record.Transaction{{Session: "a", Ops: ops}, {Session: "b", Ops: append(ops[:n:n], read("0", 5))}})
		x := in.txns.At(0)
		reads, writes := in.slab(x.reads), in.slab(x.writes)
		if len(broken[0]) > 0 || len(reads) != n || len(writes) != n {
			t.Fatalf("%d keys: %d reads, %d writes, broken %v", n, len(reads), len(writes), broken[0])
		}
		for k := range n {
			if r, w := in.cells.At(reads[k]), in.cells.At(writes[k]); r.num != int64(k) || w.num != int64(2000+k) || r.key != w.key || in.nameOf(r.key) != fmt.Sprint(k) {
				t.Fatalf("%d keys: of key %d %d was read and %d written", n, k, r.num, w.num)
			}
		}
		for k := range version.Key(n) {
			if p := in.perKey.At(k); !p.met || p.shared != (k < version.Key((n+1)/2) || k == 0) {
				t.Fatalf("%d keys: that two transactions touch key %d is %v", n, k, p.shared)
			}
		}
		if kinds := broken[1]; n > 1 && !slices.Equal(kinds, []verdict.Kind{verdict.NotMyOwnWrite}) {
			t.Errorf("%d keys: the second transaction breaks %v", n, kinds)
		}
	}
}

// Names and integers are numbered once each, however many there are.
func TestNumbers(t *testing.T) {
	in := newHistory()
	const n = 5000
	cells := map[cellID]bool{}
	for round := range 2 {
		for i := range n {
			name := fmt.Sprintf("key %d", i*i)
			k := in.keyNumber(name)
			if int(k) != i || in.nameOf(k) != name {
				t.Fatalf("%q is number %d", name, k)
			}
			for _, v := range []record.Value{record.Int(int64(i)), record.Int(int64(-i) << 40), record.Null, record.Int(0), record.String(fmt.Sprint(i))} {
				c := in.cellOf(k, v)
				if at := in.cells.At(c); at.key != k || at.num != v.Num || (at.about&isNull != 0) != v.IsNull() || (at.about&isZero != 0) != (v == record.Int(0)) {
					t.Fatalf("%v of %q is cell %d: %+v", v, name, c, *at)
				}
				if round > 0 && !cells[c] {
					t.Fatalf("%v of %q has a second number", v, name)
				}
				cells[c] = true
			}
		}
	}
	if want := 5*n - 2; len(cells) != want { // three of the first key's are the same
		t.Errorf("%d values are numbered, not %d", len(cells), want)
	}
}

// A session whose clock steps back is not timed there, and what is of unknown
// outcome moves no clock.
func TestDate(t *testing.T) {
	type when struct {
		session    string
		start, end int64 // 0 0: no times
		status     record.Status
		timed      bool
		order      int64
		prev       ordinal
	}
	committed, unknown, aborted := record.Committed, record.Unknown, record.Aborted
	var txns []record.Transaction
	all := []when{
		{"a", 10, 20, committed, true, 20, none},
		{"b", 5, 8, committed, true, 8, none},
		{"a", 15, 30, committed, true, 30, 0},
		{"a", 12, 40, committed, false, 30, 2}, // began before the one before
		{"a", 16, 25, committed, false, 30, 3}, // ended before it
		{"a", 35, 50, unknown, true, 50, 4},
		{"a", 31, 45, committed, true, 45, 4},
		{"a", 0, 0, committed, false, 45, 6}, // no times: when it arrived, but after the session
		{"b", 1, 2, aborted, false, 0, none},
		{"b", 9, 9, committed, true, 9, 1},
		{"a", 1, 2, unknown, false, 45, 7}, // began before the last of its session
		{"c", 0, 0, committed, false, 11, none},
	}
	for _, x := range all {
		txns = append(txns, record.Transaction{Session: x.session, Start: x.start, End: x.end, HasTimes: x.end > 0, Status: x.status})
	}
	in, _ := take(t, txns)
	for i, x := range all {
		if in.indexOf[i] == none {
			if x.status != aborted {
				t.Errorf("transaction %d is left out", i)
			}
			continue
		}
		got := in.txns.At(in.indexOf[i])
		prev := x.prev
		if prev != none {
			prev = ordinal(uint32(in.indexOf[prev]))
		}
		if got.timed != x.timed || got.order != x.order || got.prev != prev || got.open != (x.status == unknown) {
			t.Errorf("transaction %d: timed %v, order %d, after %d", i, got.timed, got.order, got.prev)
		}
	}
}

// Two transactions that overwrote a value themselves are kept, so that the reader
// may be one of them; the first aborted one is.
func TestOtherWriters(t *testing.T) {
	txns := []record.Transaction{
		{Session: "a", Ops: []record.Op{write("x", 1), write("x", 2)}},
		{Session: "b", Ops: []record.Op{write("x", 1), write("x", 3), write("x", 1)}}, // its last write is no other
		{Session: "c", Ops: []record.Op{write("x", 1), write("x", 1), write("x", 4)}},
		{Session: "d", Ops: []record.Op{write("x", 1), write("x", 5)}},
		{Session: "e", Status: record.Aborted, Ops: []record.Op{write("x", 1)}},
		{Session: "f", Status: record.Aborted, Ops: []record.Op{write("x", 1)}},
	}
	in, _ := take(t, txns)
	o := in.others(in.cellOf(in.keyNumber("x"), record.Int(1)))
	if o.inter != 0 || o.inter2 != 2 || o.aborted != 4 {
		t.Errorf("%+v", o)
	}
	if o.interOf(0) != 2 || o.interOf(2) != 0 || o.interOf(7) != 0 {
		t.Errorf("other than 0, 2, 7: %d %d %d", o.interOf(0), o.interOf(2), o.interOf(7))
	}
	if o := in.others(in.cellOf(in.keyNumber("x"), record.Int(9))); o.inter != none || o.aborted != verdict.NoTxn {
		t.Errorf("of what nobody wrote: %+v", o)
	}
}
