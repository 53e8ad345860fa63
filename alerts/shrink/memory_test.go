package shrink_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// violations calls f with random histories that are violated, and which.
func violations(t *testing.T, n uint64, f func(seed uint64, s script.Script, violated func([]record.Transaction) bool)) {
	t.Helper()
	if race.Brief() {
		n /= 4
	}
	found := 0
	for seed := range n {
		s := tiny.Random(rand.New(rand.NewPCG(seed, 7)), tiny.Config{Txns: 6, Duplicates: seed%2 == 0, Unknown: true, Appends: seed%3 == 0, Mutations: 2})
		violated := broken(s, verdict.SER)
		if violated(s.Txns) {
			found++
			f(seed, s, violated)
		}
	}
	if found < int(n/8) {
		t.Errorf("only %d of %d histories are violated", found, n)
	}
}

// key is equal for equal histories.
func key(txns []record.Transaction) string {
	var b []byte
	for i := range txns {
		b = append(codec.AppendJSON(b, &txns[i]), '\n')
	}
	return string(b)
}

// However good the guess is, what is left is violated and nothing more can go. A good one
// saves calls.
func TestEnough(t *testing.T) {
	right, wrong := 0, 0
	violations(t, 600, func(seed uint64, s script.Script, violated func([]record.Transaction) bool) {
		small, calls := shrunk(s.Txns, violated, shrink.Options{})
		needed := map[string]map[record.Op]bool{}
		for i := range small {
			needed[small[i].ID] = map[record.Op]bool{}
			for _, op := range small[i].Ops {
				needed[small[i].ID][op] = true
			}
		}
		rng := rand.New(rand.NewPCG(seed, 8))
		for name, enough := range map[string]func(i, j int) bool{
			"right": func(i, j int) bool { return needed[s.Txns[i].ID][s.Txns[i].Ops[j]] },
			"all":   func(int, int) bool { return true },
			"none":  func(int, int) bool { return false },
			"some":  func(int, int) bool { return rng.IntN(2) == 0 },
		} {
			got, n := shrunk(s.Txns, violated, shrink.Options{Enough: enough})
			if !violated(got) {
				t.Fatalf("seed %d, %s: no violation is left", seed, name)
			}
			if again, _ := shrunk(got, violated, shrink.Options{}); key(again) != key(got) {
				t.Fatalf("seed %d, %s: more could go: %s", seed, name, cmp.Diff(got, again))
			}
			switch name {
			case "right":
				right += n
			case "none":
				wrong += n
			}
		}
		wrong -= calls // a wrong guess costs one call
	})
	if right == 0 || wrong < 0 {
		t.Errorf("a right guess takes %d calls, a wrong one %d more than none", right, wrong)
	}
}

// What was not tried for want of work stays, and how much is tried depends on counts alone.
func TestWorkIsBounded(t *testing.T) {
	s := parse(t, "s0 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)\ns3 T3: r(x,2)\ns3 T4: w(y,7)")
	all := func(int, int) bool { return true }
	last := len(key(s.Txns)) + 1
	for work := 1; work < 40; work++ {
		handed := 0
		got, _ := shrunk(s.Txns, func(txns []record.Transaction) bool {
			handed += len(txns)
			return broken(s, verdict.SI)(txns)
		}, shrink.Options{Spent: func() bool { return handed >= work }, Enough: all})
		if handed >= work+len(s.Txns) {
			t.Errorf("%d transactions were judged of %d", handed, work)
		}
		if n := len(key(got)); n > last {
			t.Errorf("with work %d more is left than with less", work)
		} else {
			last = n
		}
		if !broken(s, verdict.SI)(got) {
			t.Errorf("with work %d no violation is left", work)
		}
	}
}
