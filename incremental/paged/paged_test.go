package paged

import "testing"

// Pages that are used again begin empty.
func TestAgain(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 8192, 9000} {
		var v Vec[uint32, int]
		fill := func(from, to, add int) {
			for i := from; i < to; i++ {
				if got := v.Push(i + add); got != uint32(i) {
					t.Fatalf("index %d for element %d", got, i)
				}
			}
			for i := range to {
				if want := i + add; i >= from && *v.At(uint32(i)) != want {
					t.Fatalf("after %d: element %d is %d, not %d", n, i, *v.At(uint32(i)), want)
				}
			}
		}
		fill(0, 10_000, 0)
		v.Truncate(n)
		fill(n, 10_000, 1)
		if v.Truncate(0); v.Len() != 0 {
			t.Fatalf("%d elements", v.Len())
		}
		fill(0, 20_000, 2)
	}
}
