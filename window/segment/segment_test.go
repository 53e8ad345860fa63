package segment

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

func w(key string, v int64) record.Op { return record.Op{Kind: record.Write, Key: key, Value: record.Int(v)} }
func r(key string, v int64) record.Op { return record.Op{Kind: record.Read, Key: key, Value: record.Int(v)} }

// small cutters have overlaps that a test can fill.
var small = Options{MinOverlap: 8, MaxOverlap: 64, IdleAfter: 1000}

// feed makes records of several sessions in turn, one every ten ticks that lasts
// nine each.
type feed struct {
	c        *Cutter
	n        uint64
	sessions int
	seq      map[string]int64
	values   int64
	straddle []uint64
}

func newFeed(opt Options, sessions int) *feed {
	return &feed{c: New(opt), sessions: sessions, seq: map[string]int64{}}
}

func (f *feed) add(t record.Transaction) {
	if f.c.Add(f.n, &t, int64(f.n)*10) {
		f.straddle = append(f.straddle, f.n)
	}
	f.n++
}

func (f *feed) txn(ops ...record.Op) record.Transaction {
	s := fmt.Sprintf("s%d", f.n%uint64(f.sessions))
	f.seq[s]++
	at := int64(f.n) * 10
	return record.Transaction{Session: s, ID: fmt.Sprint(f.n), Start: at - 9, End: at, HasTimes: true, Ops: ops}
}

func TestClockCut(t *testing.T) {
	opt := small
	opt.RealTime, opt.MaxSkew = true, 5
	f := newFeed(opt, 4)
	for range 200 {
		f.values++
		f.add(f.txn(w("x", f.values)))
	}
	k := f.c.Cut()
	if k.Kind != Clock || !k.Complete || k.From != 192 || k.At != 191*10+5 {
		t.Fatalf("%+v", k)
	}
	long := f.txn(w("x", 0))
	long.Start = k.At
	f.add(long)
	f.add(f.txn(w("x", 1)))
	if len(f.straddle) != 1 || f.straddle[0] != 200 {
		t.Errorf("straddling: %v", f.straddle)
	}
	if !bytes.Equal(f.c.Snapshot(nil), f.c.Snapshot(nil)) {
		t.Error("two snapshots differ")
	}
	if d, err := Restore(opt, f.c.Snapshot(nil)); err != nil || !bytes.Equal(d.Snapshot(nil), f.c.Snapshot(nil)) {
		t.Errorf("%v\n%s\n%s", err, d.Snapshot(nil), f.c.Snapshot(nil))
	}
}
