package intern

import (
	"fmt"
	"testing"
	"unsafe"
)

func TestTableGivesEqualStrings(t *testing.T) {
	for _, limit := range []int{0, 256, 1 << 14} {
		table := NewTable(limit)
		for round := range 3 {
			for i := range 5000 {
				want := fmt.Sprintf("key:%d", i)
				if got := table.String([]byte(want)); got != want {
					t.Fatalf("limit %d, round %d: %q became %q", limit, round, want, got)
				}
			}
		}
		if len(table.slots) > table.limit {
			t.Errorf("limit %d: grew to %d slots", table.limit, len(table.slots))
		}
		used := 0
		for _, s := range table.slots {
			if s != "" {
				used++
			}
		}
		if used != table.entries {
			t.Errorf("limit %d: counts %d entries, has %d", limit, table.entries, used)
		}
	}
}

// A name in use is made once, however many names pass by in between.
func TestTableKeepsWhatIsUsed(t *testing.T) {
	table := NewTable(256)
	hot := []byte("hot")
	first := table.String(hot)
	for i := range 100_000 {
		table.String(fmt.Appendf(nil, "passing-%d", i))
		if got := table.String(hot); unsafe.StringData(got) != unsafe.StringData(first) {
			t.Fatalf("made again after %d others", i+1)
		}
	}
}

func TestTableLeavesLongOnesOut(t *testing.T) {
	table := NewTable(256)
	long := make([]byte, NameMax+1)
	if table.String(long) != string(long) || table.String(nil) != "" || table.entries != 0 {
		t.Error("long or empty names are kept")
	}
}

func TestSlab(t *testing.T) {
	var s Slab[int]
	var all [][]int
	for n := range 700 {
		v := s.Take(n)
		if len(v) != n || cap(v) != n {
			t.Fatalf("Take(%d): length %d, capacity %d", n, len(v), cap(v))
		}
		for i := range v {
			if v[i] != 0 {
				t.Fatalf("Take(%d) gave out a used element", n)
			}
			v[i] = n
		}
		all = append(all, v)
	}
	for n, v := range all {
		for _, x := range v {
			if x != n {
				t.Fatalf("slice %d was overwritten by %d", n, x)
			}
		}
	}
}

func TestText(t *testing.T) {
	var text Text
	var got []string
	buf := []byte{}
	for i := range 6000 {
		buf = append(fmt.Appendf(buf[:0], "%d", i), make([]byte, i)...)
		got = append(got, text.String(buf))
	}
	for i, s := range got {
		if want := fmt.Sprintf("%d", i) + string(make([]byte, i)); s != want {
			t.Fatalf("string %d changed", i)
		}
	}
	if text.String(nil) != "" {
		t.Error("the empty string is not empty")
	}
}
