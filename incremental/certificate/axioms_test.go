package certificate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// executed is an order of commits with some thirty transactions: more sessions
// than are looked at together, some that write much, who reads from whom.
type executed struct {
	txns    []record.Transaction // in the order of commits
	writers [][]int              // by transaction and operation: whom it read from, -1 the initial state
	opt     record.Assumptions
}

// execute makes one in which most reads are of what was written last, and some
// of what was written before. With values other than 0 only so many are written,
// that of the initial state among them.
func execute(seed uint64, values int) executed {
	rng := rand.New(rand.NewPCG(seed, 5))
	x := executed{opt: record.Assumptions{Initial: record.InitialZero, Sessions: record.Sessions(seed % 2)}}
	value := func(w int) record.Value {
		switch {
		case w < 0:
			return record.Int(0)
		case values > 0:
			return record.Int(int64(w % values))
		}
		return record.Int(int64(w + 1))
	}
	written := map[string][]int{} // by key: who wrote it, in order
	keys := 3 + rng.IntN(8)
	for n := range 12 + rng.IntN(40) {
		t := record.Transaction{ID: fmt.Sprint("t", n), Session: fmt.Sprint("s", rng.IntN(1+rng.IntN(30)))}
		var from []int
		own := map[string]bool{}
		for range 1 + rng.IntN(5) {
			key := fmt.Sprint("k", rng.IntN(keys))
			if own[key] {
				continue
			}
			if rng.IntN(3) == 0 {
				own[key] = true
				t.Ops, from = append(t.Ops, record.Op{Kind: record.Write, Key: key, Value: value(n)}), append(from, -1)
				continue
			}
			w := -1
			if all := written[key]; len(all) > 0 {
				w = all[len(all)-1]
				if rng.IntN(12) == 0 {
					w = all[rng.IntN(len(all))]
				}
			}
			t.Ops, from = append(t.Ops, record.Op{Key: key, Value: value(w)}), append(from, w)
		}
		if rng.IntN(8) == 0 { // more writes than are ever looked through
			for k := range 50 {
				key := fmt.Sprint("k", k-keys)
				if k >= 50-keys {
					key = fmt.Sprint("k", 50-k)
				}
				if !own[key] {
					own[key] = true
					t.Ops, from = append(t.Ops, record.Op{Kind: record.Write, Key: key, Value: value(n)}), append(from, -1)
				}
			}
		}
		for key := range own {
			written[key] = append(written[key], n)
		}
		x.txns, x.writers = append(x.txns, t), append(x.writers, from)
	}
	return x
}

// holds applies the axiom as it is written.
func (x executed) holds(l verdict.Level) bool {
	n := len(x.txns)
	precedes := make([][]bool, n)
	for t := range n {
		precedes[t] = make([]bool, n)
	}
	for t := range n {
		for s := range t {
			precedes[s][t] = x.opt.Sessions == record.SessionsKeep && x.txns[s].Session == x.txns[t].Session
		}
		for j, w := range x.writers[t] {
			if x.txns[t].Ops[j].Kind == record.Read && w >= 0 {
				precedes[w][t] = true
			}
		}
	}
	if l == verdict.CC {
		for k := range n {
			for a := range n {
				for b := range n {
					precedes[a][b] = precedes[a][b] || precedes[a][k] && precedes[k][b]
				}
			}
		}
	}
	for t3 := range n {
		for j, op := range x.txns[t3].Ops {
			for t2 := range n {
				if op.Kind != record.Read || t2 == t3 || t2 == x.writers[t3][j] || !writesKey(x.txns[t2], op.Key) {
					continue
				}
				visible := precedes[t2][t3]
				if l == verdict.RC {
					visible = false
					for i := range j {
						visible = visible || x.txns[t3].Ops[i].Kind == record.Read && x.writers[t3][i] == t2
					}
				}
				if visible && t2 > x.writers[t3][j] {
					return false
				}
			}
		}
	}
	return true
}

func writesKey(t record.Transaction, key string) bool {
	for _, op := range t.Ops {
		if op.Kind == record.Write && op.Key == key {
			return true
		}
	}
	return false
}

// Orders of commits are judged as the axioms say, word for word.
func TestAxiomsWordForWord(t *testing.T) {
	kept, broken := map[verdict.Level]int{}, map[verdict.Level]int{}
	for seed := range uint64(race.Few(300, 1000)) {
		x := execute(seed, 0)
		order := make([]verdict.Event, len(x.txns))
		for i := range order {
			order[i] = verdict.Event{Txn: verdict.TxnID(i), Commit: true}
		}
		for _, l := range []verdict.Level{verdict.RC, verdict.RA, verdict.CC} {
			want := x.holds(l)
			if err := replay(l, x.txns, order, x.opt); (err == nil) != want {
				t.Fatalf("seed %d, %v: %v, and the axiom holds = %v", seed, l, err, want)
			}
			if want {
				kept[l]++
			} else {
				broken[l]++
			}
		}
	}
	for _, l := range []verdict.Level{verdict.RC, verdict.RA, verdict.CC} {
		if kept[l] < 50 || broken[l] < 50 {
			t.Errorf("%v: %d hold and %d do not", l, kept[l], broken[l])
		}
	}
}

// Where values are written again and again, the writers that were read from are
// judged as the axioms say.
func TestAxiomsWithWritersNamed(t *testing.T) {
	kept, broken := map[verdict.Level]int{}, map[verdict.Level]int{}
	for seed := range uint64(race.Few(300, 1000)) {
		x := execute(seed, 2+int(seed%5))
		order := make([]verdict.Event, len(x.txns))
		var choices []verdict.Source
		for i := range order {
			order[i] = verdict.Event{Txn: verdict.TxnID(i), Commit: true}
			for j, w := range x.writers[i] {
				if x.txns[i].Ops[j].Kind != record.Read {
					continue
				}
				choice := verdict.Source{Txn: verdict.TxnID(i), Op: j, Writer: verdict.NoTxn}
				if w >= 0 {
					choice.Writer = verdict.TxnID(w)
				}
				choices = append(choices, choice)
			}
		}
		for _, l := range []verdict.Level{verdict.RC, verdict.RA, verdict.CC} {
			want := x.holds(l)
			if err := replay(l, x.txns, order, x.opt, choices...); (err == nil) != want {
				t.Fatalf("seed %d, %v: %v, and the axiom holds = %v", seed, l, err, want)
			}
			if want {
				kept[l]++
			} else {
				broken[l]++
			}
		}
	}
	for _, l := range []verdict.Level{verdict.RC, verdict.RA, verdict.CC} {
		if kept[l] < 50 || broken[l] < 50 {
			t.Errorf("%v: %d hold and %d do not", l, kept[l], broken[l])
		}
	}
}
