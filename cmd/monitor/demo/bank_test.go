package demo

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

func testBank(t *testing.T) *Bank {
	t.Helper()
	var now int64
	var mu sync.Mutex
	b, err := OpenBank(t.TempDir(), 4, func() int64 { mu.Lock(); defer mu.Unlock(); now++; return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Fund(); err != nil {
		t.Fatal(err)
	}
	return b
}

// overlap runs two transfers of the same accounts, the second inside the first.
func overlap(t *testing.T, b *Bank) (outer, inner record.Transaction) {
	t.Helper()
	outer, err := b.transact(true, func(tl *teller) error {
		n, err := tl.read(account(0))
		if err != nil {
			return err
		}
		if inner, err = b.Transfer(0, 1, 10, 0); err != nil {
			return err
		}
		return tl.write(account(0), n-100)
	})
	if err != nil {
		t.Fatal(err)
	}
	return outer, inner
}

func TestTheStoreKeepsItsPromiseUntilItIsReopened(t *testing.T) {
	b := testBank(t)
	outer, inner := overlap(t, b)
	if inner.Status != record.Committed || outer.Status != record.Aborted {
		t.Errorf("with conflict detection: inner %v, outer %v", inner.Status, outer.Status)
	}
	if total, err := b.Total(); err != nil || total != 4*openingBalance {
		t.Errorf("the bank holds %d, %v", total, err)
	}
	if err := b.Reopen(false); err != nil {
		t.Fatal(err)
	}
	outer, inner = overlap(t, b)
	if inner.Status != record.Committed || outer.Status != record.Committed {
		t.Errorf("without conflict detection: inner %v, outer %v", inner.Status, outer.Status)
	}
	// Both read the same version of acct:0 and overwrote it: a lost update.
	if outer.Ops[0] != inner.Ops[0] {
		t.Errorf("read %v and %v", outer.Ops[0], inner.Ops[0])
	}
	// The inner transfer's withdrawal is lost, its deposit is not, and the outer
	// one took 100 out.
	if total, err := b.Total(); err != nil || total != 4*openingBalance+10-100 {
		t.Errorf("the bank holds %d, %v", total, err)
	}
}

func TestRecords(t *testing.T) {
	b := testBank(t)
	rec, err := b.Transfer(0, 1, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Ops) != 4 || rec.Start >= rec.End || !rec.HasTimes {
		t.Errorf("got %+v", rec)
	}
	seen := map[record.Value]bool{}
	for range 10 {
		rec, err := b.Transfer(2, 3, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range rec.Ops[2:] {
			if seen[op.Value] {
				t.Errorf("%v is written twice", op.Value)
			}
			seen[op.Value] = true
		}
	}
}

func TestLoadRecordsEverySessionInOrder(t *testing.T) {
	var mu sync.Mutex
	next := map[string]int64{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := time.Now()
	b, err := OpenBank(t.TempDir(), 4, func() int64 { return int64(time.Since(start)) })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	n := 0
	l := &Load{Bank: b, Clients: 3, Seed: 1, Record: func(rec record.Transaction) {
		mu.Lock()
		defer mu.Unlock()
		if rec.Seq != next[rec.Session] {
			t.Errorf("%s has %d after %d", rec.Session, rec.Seq, next[rec.Session]-1)
		}
		next[rec.Session]++
		if n++; n >= 60 && len(next) == 4 { // however long one waits for its turn
			cancel()
		}
	}}
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(next) != 4 {
		t.Errorf("sessions %v, want the bank and three clients", next)
	}
	if total, err := b.Total(); err != nil || total != 4*openingBalance {
		t.Errorf("the bank holds %d, %v", total, err)
	}
}
