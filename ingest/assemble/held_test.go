package assemble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// count counts what an Assembler holds, piece by piece, and compares it with what it says and with
// what its options allow.
func (a *Assembler) count() error {
	bytes, n := int64(0), 0
	var last *open
	for o := a.oldest; o != nil; last, o = o, o.younger {
		n++
		of := openBytes + int64(len(o.begin.Session)+len(o.begin.Txn)+len(o.begin.DB)+len(o.begin.ID))
		numbers := map[uint32]bool{}
		for i := range o.ops {
			of += opBytes + textBytes(&o.ops[i].op)
			numbers[o.ops[i].n] = true
		}
		switch {
		case of != o.bytes:
			return fmt.Errorf("%s takes %d bytes, and says %d", o.begin.Txn, of, o.bytes)
		case len(numbers) != len(o.ops) || o.place != nil && len(o.place) != len(o.ops) || len(o.ops) > a.opt.OpsMax:
			return fmt.Errorf("%s has %d operations with %d numbers and %d places", o.begin.Txn, len(o.ops), len(numbers), len(o.place))
		case o.older != last || a.sessions[o.begin.Session] != o:
			return fmt.Errorf("%s is out of line", o.begin.Txn)
		}
		bytes += of
	}
	switch {
	case a.newest != last || n != len(a.sessions) || bytes != a.bytes:
		return fmt.Errorf("%d in line, %d sessions; %d bytes, %d counted", n, len(a.sessions), bytes, a.bytes)
	case n > a.opt.OpenMax || bytes > a.opt.BytesMax:
		return fmt.Errorf("%d open with %d bytes", n, bytes)
	case len(a.recent) > a.opt.RecentMax || len(a.order) > a.opt.RecentMax || len(a.recent) != len(a.order):
		return fmt.Errorf("%d transactions are remembered, %d in order", len(a.recent), len(a.order))
	case len(a.records) != 0 || len(a.losses) != 0:
		return fmt.Errorf("%d records and %d losses were not taken out", len(a.records), len(a.losses))
	}
	for _, name := range a.order {
		if r := a.recent[name]; r == nil || len(r.ops) > rememberedOps || len(name.session)+len(name.txn)+len(r.begin.db)+len(r.begin.id) > rememberedBytes {
			return fmt.Errorf("what is remembered of %.80v is too much", name)
		}
	}
	return nil
}

// However many sessions begin what they never end, with however much in it, no more is held
// than the options say.
func TestWhatIsHeldIsBounded(t *testing.T) {
	lost := map[Why]int64{}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		a := New(Options{MaxTransaction: 400, OpenMax: 1 + rng.IntN(40), OpsMax: 1 + rng.IntN(400), BytesMax: int64(4000 + rng.IntN(60_000)), RecentMax: 1 + rng.IntN(30)})
		text := func(most int) string { return fmt.Sprintf("%0*d", 1+rng.IntN(most), rng.IntN(4)) }
		names := map[string]string{} // the transaction of a session
		for i := range int64(3000) {
			e := Event{Session: fmt.Sprint("s", rng.IntN(60)), Time: i, HasTime: true}
			e.Txn = names[e.Session]
			switch p := rng.IntN(100); {
			case p < 8 || e.Txn == "":
				e.Txn = fmt.Sprint("t", rng.IntN(400))
				if rng.IntN(30) == 0 {
					e.Txn += text(2 * rememberedBytes)
				}
				names[e.Session] = e.Txn
				e.DB, e.ID = text(9), text(30)
			case p < 95:
				e.Kind, e.N, e.HasTime = Step, uint32(rng.IntN(500)), false
				e.Op = record.Op{Kind: record.OpKind(rng.IntN(5)), Key: text(20), Value: record.Value{Kind: record.KindString, Text: text(300)}, Where: text(20)}
			default:
				e.Kind, e.N = End, uint32(rng.IntN(500))
			}
			_, _ = a.Add(i, i, &e)
			for x, _ := a.Next(); x != nil; x, _ = a.Next() {
			}
			for _, l := range a.Losses() {
				lost[l.Why]++
			}
			if err := a.count(); err != nil {
				t.Fatalf("seed %d, event %d: %v", seed, i, err)
			}
		}
	}
	for _, why := range []Why{Incomplete, Superseded, Silent, OpenLimit, OpsLimited, BytesLimit} {
		if lost[why] == 0 {
			t.Errorf("%v never happened", why)
		}
	}
	t.Log(lost)
}
