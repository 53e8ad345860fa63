package order

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
)

// message is a record in a partition's log, with the time at which the broker
// appended it.
type message struct {
	txn     *record.Transaction
	arrival int64
}

// drawLogs makes partitions in which all goes wrong that can: clients whose clocks
// step and run ahead, records later than allowed, doubled ones, holes,
// transactions that last too long, sessions with and without seqs and times.
func drawLogs(t *rapid.T) [][]message {
	logs := make([][]message, rapid.IntRange(1, 3).Draw(t, "partitions"))
	for s := range rapid.IntRange(1, 5).Draw(t, "sessions") {
		p := rapid.IntRange(0, len(logs)-1).Draw(t, "partition")
		kind := rapid.SampledFrom([]string{"good", "unordered", "stepping", "late", "no seq", "no times", "bare"}).Draw(t, "kind")
		real, clock, appended := rapid.Int64Range(100, 200).Draw(t, "begin"), int64(0), int64(0)
		seq := int64(0)
		var own []message
		for range rapid.IntRange(0, 12).Draw(t, "length") {
			real += rapid.Int64Range(0, 30).Draw(t, "pause")
			seq++
			switch rapid.IntRange(0, 9).Draw(t, "special") {
			case 0:
				seq += 2 // a hole
			case 1:
				if kind == "stepping" {
					clock = rapid.Int64Range(-200, 300).Draw(t, "step")
				}
			}
			takes := rapid.Int64Range(0, 30).Draw(t, "takes")
			delay := rapid.Int64Range(0, simLateness).Draw(t, "delay")
			if kind == "late" {
				delay *= 5
			}
			at := real + takes + delay
			if kind != "unordered" && kind != "late" {
				at = max(at, appended)
			}
			appended = at
			x := txn(fmt.Sprintf("s%d", s), seq, real+clock, real+takes+clock)
			x.ID = fmt.Sprintf("%s#%d", x.Session, seq)
			real += takes
			if kind == "no seq" || kind == "bare" {
				noSeq(x)
			}
			if kind == "no times" || kind == "bare" {
				noTimes(x)
			}
			own = append(own, message{x, at})
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				own = append(own, message{x, at + rapid.Int64Range(0, 100).Draw(t, "later")})
			}
		}
		logs[p] = append(logs[p], own...)
	}
	for _, log := range logs {
		slices.SortStableFunc(log, func(a, b message) int { return cmp.Compare(a.arrival, b.arrival) })
	}
	return logs
}

// event is what a caller sees: a release, or a tick.
type event struct {
	ID     string
	Tick   int64 // of a tick
	What   Release
	Gap    Gap
	Status Fate // of an Add, where these are compared
}

// player feeds logs to an Order and notes what comes out.
type player struct {
	*Order
	logs   [][]message
	next   []int
	refs   []*record.Transaction // by ref
	events []event
	fates  []Fate
	// without: there is no broker that says when records arrived.
	without bool
}

func play(opt Options, logs [][]message) *player {
	opt.Partitions = nil
	for p := range logs {
		opt.Partitions = append(opt.Partitions, p)
	}
	return &player{Order: New(opt), logs: logs, next: make([]int, len(logs))}
}

// left are the partitions that have more.
func (g *player) left() []int {
	var out []int
	for p, log := range g.logs {
		if g.next[p] < len(log) {
			out = append(out, p)
		}
	}
	return out
}

func (g *player) add(p int) {
	m := g.logs[p][g.next[p]]
	if g.without {
		m.arrival = 0
	}
	g.next[p]++
	h := record.HeadOf(m.txn)
	g.refs = append(g.refs, m.txn)
	g.fates = append(g.fates, g.Add(p, &h, uint64(len(g.refs)-1), m.arrival))
}

func (g *player) load(ref uint64) (record.Head, error) { return record.HeadOf(g.refs[ref]), nil }

// drain takes out what is due.
func (g *player) drain() {
	for r, ok := g.Next(); ok; r, ok = g.Next() {
		if r.Tick {
			g.events = append(g.events, event{Tick: r.TickAt})
		}
		if r.Silent {
			g.events = append(g.events, event{Tick: r.TickAt})
		}
		e := event{ID: g.refs[r.Ref].ID, What: r}
		if r.Gap != nil {
			e.Gap = *r.Gap
		}
		e.What.Ref, e.What.Gap, e.What.Tick, e.What.Silent, e.What.TickAt = 0, nil, false, false, 0
		g.events = append(g.events, e)
	}
	for at, due := g.Tick(); due; at, due = g.Tick() {
		g.events = append(g.events, event{Tick: at})
	}
}

func (g *player) finish() {
	g.Flush()
	g.drain()
}
