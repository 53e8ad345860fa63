package stream

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
)

var worlds = flag.Int("worlds", 24, "how many histories with wrong clocks TestWrongClocksAccuseNobody draws")

const (
	worldMS       = int64(time.Millisecond)
	worldLongest  = 400 * worldMS
	worldLateness = 30 * worldMS
	worldBase     = 1_700_000_000_000_000_000
)

// world is a database that is serial in true time, and clients with clocks of their own.
type world struct {
	rng        *rand.Rand
	partitions int
	home       map[string]int // of a session: its partition
	clocks     map[string]func(int64) int64
	stamps     int  // of the broker: its own, the clients', none
	busy       bool // there is always more to read; the broker's stamps are its own
	sent       [][]sentAt
}

type sentAt struct {
	txn   record.Transaction
	at    int64 // in true time
	stamp int64
}

// clock is one that is wrong by more than a transaction may last: always, from some time on,
// for a while, or more and more.
func (w *world) clock(length int64) func(int64) int64 {
	off := worldLongest + w.rng.Int64N(4*worldLongest)
	if w.rng.IntN(2) == 0 {
		off = -off
	}
	from := w.rng.Int64N(length)
	to := from + w.rng.Int64N(length)
	switch w.rng.IntN(4) {
	case 0:
		return func(int64) int64 { return off }
	case 1:
		return func(t int64) int64 {
			if t < from {
				return 0
			}
			return off
		}
	case 2:
		return func(t int64) int64 {
			if t < from || t > to {
				return 0
			}
			return off
		}
	}
	return func(t int64) int64 { return 2 * off * t / length }
}

// whose says whose clocks are wrong.
type whose int

const (
	oneSession whose = iota // alone in its partition, or not
	onePartition
	some // sessions anywhere
	whoses
	nobody = whoses
)

// draw makes a history of so long.
func draw(rng *rand.Rand, length int64, which whose) *world {
	w := &world{rng: rng, partitions: 1 + rng.IntN(4), home: map[string]int{}, clocks: map[string]func(int64) int64{}, stamps: rng.IntN(3)}
	if w.busy = rng.IntN(2) == 0; w.busy {
		w.stamps = 0
	}
	w.sent = make([][]sentAt, w.partitions)
	wrong := w.clock(length)
	right := func(int64) int64 { return 0 }
	var sessions []string
	for i := range w.partitions * (1 + rng.IntN(3)) {
		s := fmt.Sprint("s", i)
		sessions = append(sessions, s)
		w.home[s], w.clocks[s] = i%w.partitions, right
		switch {
		case which == oneSession && i == 0:
			w.clocks[s] = wrong
		case which == onePartition && i%w.partitions == 0:
			w.clocks[s] = wrong
		case which == some && rng.IntN(3) == 0:
			w.clocks[s] = w.clock(length)
		}
	}
	type attempt struct {
		session    string
		start, end int64
	}
	var all []attempt
	for _, s := range sessions {
		for t := rng.Int64N(20 * worldMS); t < length; t += rng.Int64N(40 * worldMS) {
			d := 1 + rng.Int64N(5*worldMS)
			if rng.IntN(20) == 0 {
				d = rng.Int64N(worldLongest - 3*worldLateness)
			}
			all = append(all, attempt{s, t, t + d})
			t += d
		}
	}
	slices.SortStableFunc(all, func(a, b attempt) int { return int(a.end - b.end) })
	state, seq, last := map[string]int64{}, map[string]int64{}, map[string]int64{}
	failed := map[string]record.Op{} // what a session will write again
	for i, a := range all {
		off := w.clocks[a.session]
		t := record.Transaction{DB: "d", Session: a.session, Seq: seq[a.session], HasSeq: true, HasTimes: true, Status: record.Committed,
			Start: worldBase + a.start + off(a.start), End: worldBase + a.end + off(a.end)}
		t.End = max(t.End, t.Start)
		t.ID = fmt.Sprint(t.Session, "#", t.Seq)
		seq[a.session]++
		key := func() string { return fmt.Sprint("k", rng.IntN(6)) }
		read := func(k string) {
			v := record.Value{}
			if n, ok := state[k]; ok {
				v = record.Int(n)
			}
			t.Ops = append(t.Ops, record.Op{Kind: record.Read, Key: k, Value: v})
		}
		if rng.IntN(3) > 0 {
			read(key())
		}
		if again, ok := failed[a.session]; ok {
			t.Ops = append(t.Ops, again)
			delete(failed, a.session)
		} else if k := key(); rng.IntN(2) == 0 {
			read(k)
			t.Ops = append(t.Ops, record.Op{Kind: record.Write, Key: k, Value: record.Int(int64(i) + 1)})
			if rng.IntN(10) == 0 {
				t.Status = record.Aborted
				failed[a.session] = t.Ops[len(t.Ops)-1]
			}
		}
		for _, o := range t.Ops {
			if o.Kind == record.Write && t.Status == record.Committed {
				state[o.Key] = o.Value.Num
			}
		}
		at := max(a.end+rng.Int64N(worldLateness), last[a.session])
		last[a.session] = at
		x := sentAt{t, at, 0}
		switch w.stamps {
		case 0:
			x.stamp = worldBase + at
		case 1:
			x.stamp = worldBase + at + off(at)
		}
		w.sent[w.home[a.session]] = append(w.sent[w.home[a.session]], x)
	}
	for _, log := range w.sent {
		slices.SortStableFunc(log, func(a, b sentAt) int { return int(a.at - b.at) })
	}
	return w
}

// read gives what was sent to f, as somebody reads it who follows all partitions and sees
// most of the time that nothing more is there; or, where they are busy, who is behind now in one and
// now in another.
func (w *world) read(f func(*Entry)) {
	number := uint64(0)
	read, until := make([]int, w.partitions), make([]int64, w.partitions)
	for now, open := int64(0), true; open; now += 1 + w.rng.Int64N(20*worldMS) {
		open = false
		for _, p := range w.rng.Perm(w.partitions) {
			log, from := w.sent[p], read[p]
			if w.busy && now < until[p] {
				open = open || from < len(log)
				continue
			}
			if w.rng.IntN(30) == 0 {
				until[p] = now + w.rng.Int64N(3*worldLongest)
			}
			var txns []record.Transaction
			for read[p] < len(log) && log[read[p]].at <= now {
				txns = append(txns, log[read[p]].txn)
				read[p]++
			}
			open = open || read[p] < len(log)
			b := batchOf(p, int64(from), txns)
			for i := range b.Arrivals {
				b.Arrivals[i] = log[from+i].stamp
			}
			b.CaughtUp = !w.busy && (w.rng.IntN(4) > 0 || now == 0)
			f(&Entry{Number: number, Time: worldBase + now, Partitions: w.partitions, Batch: b})
			number++
		}
	}
}

// config is a stream's with so much patience as these worlds need, and segments of some length.
func (w *world) config() Config {
	return Config{DB: "d", Assumptions: record.Assumptions{Clock: record.ClockPrune, Sessions: record.SessionsKeep, Coverage: record.CoverageComplete, Initial: record.InitialAbsent}, UniqueValues: true,
		MaxTransaction: time.Duration(worldLongest), Every: 20 * time.Millisecond, Segment: [...]int{60, 300, 10_000}[w.rng.IntN(3)], Overlap: 20,
		Order: order.Options{Lateness: time.Duration(worldLateness)}}
}

// What is valid is valid whatever clients' clocks say, wherever no level holds real time: that a
// write has not come by some time, by clocks that are wrong, is nobody's fault. Where a
// level has real time nothing is told that rests on absence. Nor does a restart change that.
func TestWrongClocksAccuseNobody(t *testing.T) {
	levels := [][]verdict.Level{{verdict.SER}, {verdict.SI}, {verdict.PC}, {verdict.CC}, {verdict.RA}, {verdict.RC, verdict.SI}, {verdict.G1}, {verdict.SSER}, {verdict.StrongSI}}
	whole := 0
	for seed := range uint64(*worlds) {
		rng := rand.New(rand.NewPCG(seed, 17))
		w := draw(rng, 3*int64(time.Second), whose(rng.IntN(int(whoses))))
		cfg := w.config()
		cfg.Levels, cfg.UniqueValues = levels[rng.IntN(len(levels))], rng.IntN(4) > 0
		if rng.IntN(2) == 0 {
			cfg.Initial = record.InitialAny
		}
		h := New(cfg)
		var entries []*Entry
		var found []verdict.Kind
		drain := func() {
			for h.Run(100) {
				h.take(&found)
			}
			h.take(&found)
		}
		w.read(func(e *Entry) {
			entries = append(entries, e)
			h.Take(e)
			drain()
			if rng.IntN(900) > 0 {
				return
			}
			state := checkpointOf(h)
			again, err := Restore(cfg, state, func(n uint64) (*decode.Batch, error) { return entries[n].Batch, nil })
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if h = again; !bytes.Equal(state, checkpointOf(h)) {
				t.Errorf("seed %d: what is restored has another checkpoint", seed)
			}
		})
		h.Flush()
		drain()
		if h.Complete() {
			whole++
		}
		h.Close()
		h.take(&found)
		if h.realTime { // a cycle may rest on clocks
			found = slices.DeleteFunc(found, func(k verdict.Kind) bool {
				return k == verdict.Cycle || k == verdict.Unsatisfiable || k == verdict.Divergence
			})
		}
		if len(found) > 0 {
			t.Errorf("seed %d, %v, %d partitions, stamps %d, busy %v, %v, unique values %v, complete %v: %d found, %v first", seed, cfg.Levels, w.partitions, w.stamps, w.busy, cfg.Initial, cfg.UniqueValues, h.Complete(), len(found), found[0])
		}
	}
	if whole < *worlds/8 {
		t.Errorf("of %d histories %d were complete to their end", *worlds, whole)
	}
}

func (h *History) take(found *[]verdict.Kind) {
	for _, v := range h.Found() {
		*found = append(*found, v.Kind)
	}
}

// With good clocks a value out of thin air is told as soon as by the clocks its writer can't come
// any more, however many partitions there are.
func TestGoodClocksAreBelieved(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 18))
		w := draw(rng, 2*int64(time.Second), nobody)
		w.busy = false
		var read int64 // when it ended
		for _, log := range w.sent {
			for i := range log {
				if x := &log[i].txn; x.Status == record.Committed && len(x.Ops) == 1 && x.Ops[0].Kind == record.Read && x.End > worldBase+int64(time.Second) && read == 0 {
					x.Ops[0].Value, read = record.Int(-1), x.End
				}
			}
		}
		cfg := w.config()
		cfg.Levels, cfg.Segment = []verdict.Level{verdict.SER}, 10_000
		h := New(cfg)
		var found []verdict.Kind
		told := int64(0)
		w.read(func(e *Entry) {
			h.Take(e)
			for h.Run(100) {
				h.take(&found)
			}
			if h.take(&found); len(found) > 0 && told == 0 {
				told = e.Time
			}
		})
		// Until enough has come that ended so late, and is read in every partition; and a tick.
		var after []int64
		for _, log := range w.sent {
			for _, x := range log {
				if x.txn.End > read+worldLongest+worldLateness {
					after = append(after, worldBase+x.at)
				}
			}
		}
		slices.Sort(after)
		most := after[fewRecords] + 5*20*worldMS
		if len(found) != 1 || found[0] != verdict.ThinAirRead || told > most {
			t.Errorf("seed %d: found %v, %v after the read, at most %v was to be", seed, found, time.Duration(told-read), time.Duration(most-read))
		}
	}
}
