package segment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// executed is a transaction and its place in the serial order in which a database
// executed all of them, which nobody sees.
type executed struct {
	txn   record.Transaction
	order int
	at    int64 // when it arrived
}

// world is what a random execution is made of.
type world struct {
	rng      *rand.Rand
	opt      Options
	sessions int
	keys     int // beside the fence's
	// In percent: transactions that set a fence, that write it without reading it or the
	// same value again, and that read all keys.
	fences, torn, snapshots int
	clocks                  bool // times are true up to the skew, else they mean nothing
	jitter                  int  // how far records come out of their order
}

func drawWorld(seed uint64) world {
	rng := rand.New(rand.NewPCG(seed, 9))
	w := world{rng: rng, sessions: 2 + rng.IntN(5), keys: 2 + rng.IntN(3), jitter: rng.IntN(12)}
	w.opt = Options{MinOverlap: 1 + uint64(rng.IntN(10)), MaxOverlap: 40 + uint64(rng.IntN(60)), IdleAfter: 200 + rng.Int64N(2000), NoClock: true, SnapshotKeys: -1}
	if rng.IntN(4) == 0 {
		w.opt.MaxSessions = 2 + rng.IntN(5)
	}
	switch rng.IntN(3) {
	case 0:
		w.opt.NoClock, w.opt.RealTime, w.clocks, w.opt.MaxSkew = false, rng.IntN(4) > 0, true, rng.Int64N(20)
	case 1:
		w.fences = 10 + rng.IntN(40)
		if rng.IntN(2) == 0 {
			w.torn = 1 + rng.IntN(3)
		}
	case 2:
		w.opt.SnapshotKeys, w.snapshots = 1+rng.IntN(8), 10+rng.IntN(40)
	}
	return w
}

// execute makes so many transactions, one after the other. Sessions fall silent and
// come back, and there are new ones.
func (w *world) execute(n int) []executed {
	rng := w.rng
	state := map[string]record.Value{}
	fenceWas := []record.Value{record.Null}
	quiet := map[int]int{}
	values, newcomers := int64(0), w.sessions
	all := make([]executed, 0, n)
	for turn := 0; len(all) < n; turn++ {
		who := rng.IntN(w.sessions)
		if quiet[who] > turn {
			continue
		}
		switch rng.IntN(60) {
		case 0:
			quiet[who] = turn + rng.IntN(150)
		case 1:
			who, newcomers = newcomers, newcomers+1
		}
		x := record.Transaction{Session: fmt.Sprint("s", who), ID: fmt.Sprint(len(all)), HasTimes: true}
		if rng.IntN(40) == 0 {
			x.Status = record.Status(1 + rng.IntN(2))
		}
		takes := x.Status == record.Committed || x.Status == record.Unknown && rng.IntN(2) == 0
		mine := map[string]record.Value{}
		value := func(key string) record.Value {
			if v, ok := mine[key]; ok {
				return v
			}
			return state[key]
		}
		read := func(key string) { x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: key, Value: value(key)}) }
		write := func(key string, v record.Value) {
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: key, Value: v})
			mine[key] = v
		}
		fresh := func() record.Value { values++; return record.Int(values) }
		any := func() string { return fmt.Sprint("k", rng.IntN(w.keys)) }
		switch p := rng.IntN(100); {
		case p < w.torn:
			if rng.IntN(2) == 0 {
				read("fence")
			}
			write("fence", []record.Value{fresh(), fenceWas[rng.IntN(len(fenceWas))]}[rng.IntN(2)])
		case p < w.fences:
			read("fence")
			for range 1 + rng.IntN(5)/4 { // some write it twice, and read it in between
				write("fence", fresh())
				if rng.IntN(4) == 0 {
					read("fence")
				}
			}
			if rng.IntN(4) == 0 {
				write(any(), fresh())
			}
		case p < w.snapshots:
			for k := range w.keys {
				if rng.IntN(60) > 0 {
					read(fmt.Sprint("k", k))
				}
			}
			if rng.IntN(3) == 0 {
				write(any(), fresh())
			}
		default:
			for range 1 + rng.IntN(2) {
				key := any()
				if w.snapshots == 0 || rng.IntN(30) > 0 {
					read(key)
				}
				if rng.IntN(3) > 0 {
					write(key, fresh())
				}
			}
			if rng.IntN(10) == 0 && w.fences > 0 {
				read("fence")
			}
		}
		if takes {
			for key, v := range mine {
				state[key] = v
				if key == "fence" {
					fenceWas = append(fenceWas, v)
				}
			}
		}
		all = append(all, executed{txn: x, order: len(all)})
	}
	w.date(all)
	return all
}

// date gives the transactions their times and the order in which they arrive.
func (w *world) date(all []executed) {
	rng := w.rng
	ended := map[string]int64{} // real time
	skew := map[string]int64{}
	for i := range all {
		x, now := &all[i].txn, int64(i)*10
		if _, ok := skew[x.Session]; !ok && w.opt.MaxSkew > 0 {
			skew[x.Session] = rng.Int64N(w.opt.MaxSkew + 1)
		}
		start, end := max(ended[x.Session]+1, now-rng.Int64N(60)), now+rng.Int64N(60)
		if rng.IntN(50) == 0 {
			start = max(ended[x.Session]+1, now-rng.Int64N(2000))
		}
		start, end = min(start, now), max(end, now)
		ended[x.Session] = min(end, now+9) // or sessions could do one thing in a while only
		end = ended[x.Session]
		x.Start, x.End = start+skew[x.Session], end+skew[x.Session]
		all[i].at = end
		if !w.clocks {
			all[i].at = now + rng.Int64N(10*int64(w.jitter)+1)
		}
		if rng.IntN(60) == 0 {
			x.HasTimes = false
		}
	}
	last := map[string]int64{}
	for i := range all {
		s := all[i].txn.Session
		all[i].at = max(all[i].at, last[s])
		last[s] = all[i].at
	}
	slices.SortStableFunc(all, func(a, b executed) int { return cmp.Compare(a.at, b.at) })
}

// A cut that is said to be complete is one in the order in which the database did it:
// all before it was before all that comes and of which nobody says that it straddles.
func TestCutsAreWhatTheySay(t *testing.T) {
	said := map[Kind]int{}
	for seed := range uint64(1500) {
		w := drawWorld(seed)
		all := w.execute(500)
		c := New(w.opt)
		claimed, bound := Cut{}, -1
		for n, x := range all {
			straddles := c.Add(uint64(n), &x.txn, x.at)
			if x.order < bound && !straddles && x.txn.Status == record.Committed {
				t.Fatalf("seed %d: %+v\nrecord %d (executed as %d) came after the cut %+v and is said not to straddle it, but %d was executed before the cut", seed, w.opt, n, x.order, claimed, bound)
			}
			if w.rng.IntN(40) > 0 {
				continue
			}
			claimed, bound = c.Cut(), -1
			if !claimed.Complete && !(claimed.AssumingRealTime && claimed.Straddlers == 0) {
				continue
			}
			said[claimed.Kind]++
			for _, b := range all[:claimed.From] {
				if b.txn.Status == record.Committed {
					bound = max(bound, b.order)
				}
			}
		}
	}
	t.Log(said)
	if said[Clock] < 500 || said[Fence] < 500 || said[Snapshot] < 100 {
		t.Errorf("complete cuts: %v", said)
	}
}
