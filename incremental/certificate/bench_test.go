package certificate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// large is a history of 100,000 transactions of 20 operations, half of them
// writes, on 50,000 keys, in 20 sessions, and the order in which they ran: one
// after the other.
func large() ([]record.Transaction, []verdict.Event, record.Assumptions) {
	const n, ops, sessions = 100_000, 20, 20
	keys := make([]string, 50_000)
	state := make([]int64, len(keys))
	for k := range keys {
		keys[k] = fmt.Sprintf("k%d", k)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	txns := make([]record.Transaction, n)
	order := make([]verdict.Event, n)
	values := int64(0)
	for i := range txns {
		t := &txns[i]
		t.ID, t.Session = fmt.Sprintf("t%d", i), keys[i%sessions]
		for range ops {
			k := rng.IntN(len(keys))
			op := record.Op{Key: keys[k], Value: record.Int(state[k])}
			if rng.IntN(2) == 0 {
				values++
				state[k] = values
				op.Kind, op.Value = record.Write, record.Int(values)
			}
			t.Ops = append(t.Ops, op)
		}
		order[i] = verdict.Event{Txn: verdict.TxnID(i), Commit: true}
	}
	return txns, order, record.Assumptions{Initial: record.InitialZero}
}

// apart gives each commit its start.
func apart(order []verdict.Event) []verdict.Event {
	var out []verdict.Event
	for _, e := range order {
		out = append(out, verdict.Event{Txn: e.Txn}, e)
	}
	return out
}

func BenchmarkReplay(b *testing.B) {
	txns, order, opt := large()
	for _, l := range []verdict.Level{verdict.SER, verdict.SSER, verdict.SI, verdict.RC, verdict.RA, verdict.CC} {
		b.Run(l.String(), func(b *testing.B) {
			order := order
			if certificate.KindOf(l) == certificate.Events {
				order = apart(order)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := replay(l, txns, order, opt); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(txns))*float64(b.N)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}

// BenchmarkLists replays 20,000 transactions that append to one list each, of
// 100, and read it from time to time.
func BenchmarkLists(b *testing.B) {
	const n, lists = 20_000, 100
	held := make([][]byte, lists)
	txns := make([]record.Transaction, n)
	order := make([]verdict.Event, n)
	for i := range txns {
		k := i * 7 % lists
		key := fmt.Sprintf("l%d", k)
		if i/lists%10 == 9 {
			txns[i].Ops = []record.Op{{Key: key, Value: record.Value{Kind: record.KindList, Text: "[" + string(held[k]) + "]"}}}
		} else {
			if len(held[k]) > 0 {
				held[k] = append(held[k], ',')
			}
			held[k] = fmt.Appendf(held[k], "%d", i)
			txns[i].Ops = []record.Op{{Kind: record.Append, Key: key, Value: record.Int(int64(i))}}
		}
		order[i] = verdict.Event{Txn: verdict.TxnID(i), Commit: true}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := replay(verdict.SER, txns, order, record.Assumptions{Sessions: record.SessionsIgnore}); err != nil {
			b.Fatal(err)
		}
	}
}
