package generate

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/heap"
)

// planner knows which anomalies are to be planted when. One is planted at a
// time.
type planner struct {
	anomaly *anomaly
	due     []int // plant the next one when so many ordinary transactions are left
	left    int   // transactions of the current one that haven't ended yet
	keys    int   // keys used up, beyond those of the workload
	planted []Planting
}

// scripted is a step of an anomaly waiting for its session to get to it.
type scripted struct {
	planting, step int // where its id goes
	status         record.Status
	ops            []record.Op
	start, end     int64
}

func newPlanner(cfg Config) planner {
	p := planner{anomaly: anomalyNamed(cfg.Anomaly), keys: cfg.Keys}
	if p.anomaly == nil {
		return p
	}
	base := cfg.Transactions - cfg.Planted*len(p.anomaly.steps)
	for i := range cfg.Planted {
		p.due = append(p.due, base-int(int64(base)*int64(i+1)/int64(cfg.Planted+1)))
	}
	return p
}

// transactions is how many transactions all plantings take.
func (p *planner) transactions() int {
	if p.anomaly == nil {
		return 0
	}
	return len(p.due) * len(p.anomaly.steps)
}

// plantIfDue begins the next anomaly when it is time for it: it gives its steps to
// sessions, which take them up after what they are doing.
func (g *Generator) plantIfDue() {
	p := &g.plan
	if len(p.due) == 0 || p.left > 0 || g.base > p.due[0] {
		return
	}
	p.due = p.due[1:]

	taking := g.someSessions(p.anomaly.sessions())
	begin := max(g.cfg.Start, g.now)
	for _, i := range taking {
		begin = max(begin, g.sessions[i].end)
	}
	key := func() string {
		p.keys++
		return keyName(p.keys - 1)
	}
	value := func() record.Value {
		g.values++
		return record.Int(g.values)
	}
	isPredicate := slices.Contains(PredicateAnomalies(), p.anomaly.name)
	if isPredicate {
		table, rows := fmt.Sprintf("planted%d", len(p.planted)), 0
		key = func() string {
			rows++
			return fmt.Sprintf("%s:%d", table, rows)
		}
		value = func() record.Value {
			g.values++
			return record.ObjectOf(map[string]record.Value{"v": record.Int(g.values)})
		}
	}
	p.planted = append(p.planted, Planting{p.anomaly.name, make([]string, len(p.anomaly.steps))})
	p.left = len(p.anomaly.steps)
	span := max(int64(g.cfg.Duration), 16)
	steps, initial := p.anomaly.actions(), g.initial
	if lists := slices.Contains(ListAnomalies(), p.anomaly.name); !isPredicate && (lists || g.cfg.Workload == Append) {
		if !lists {
			steps = asLists(steps)
		}
		initial = record.Null
	}
	for n, ops := range instantiate(steps, initial, key, value) {
		s := p.anomaly.steps[n]
		// A stage takes one span and a half. Starts fall into its first
		// quarter of the span, ends into the last.
		start := begin + 1 + int64(s.stage)*(span+span/2) + g.within(span/4)
		end := begin + 1 + int64(s.stage)*(span+span/2) + span - g.within(span/4)
		at := &g.sessions[taking[s.session-'a']]
		at.script = append(at.script, scripted{len(p.planted) - 1, n, s.status, ops, start, end})
	}
	for _, i := range taking {
		if !g.sessions[i].running {
			g.schedule(i)
		}
	}
}

// scheduleScripted gives session i its next scripted transaction. To the store
// it is an instant like others, at its end: what it reads and writes is fixed.
func (g *Generator) scheduleScripted(i int) {
	s := &g.sessions[i]
	x := s.script[0]
	s.script = s.script[1:]
	s.txn = running{record: g.newRecord(s, x.start, x.end), keys: s.txn.keys, commit: x.end, isScripted: true}
	s.txn.record.Status = x.status
	s.txn.record.Ops = x.ops
	g.plan.planted[x.planting].Transactions[x.step] = s.txn.record.ID
	s.end = x.end
	s.running = true
	heap.Push(&g.instants, instant{x.end, int32(i)}, (*instant).before)
}

// someSessions draws n different sessions.
func (g *Generator) someSessions(n int) []int {
	var out []int
	for len(out) < n {
		// The i-th of those not drawn yet.
		i := g.rng.IntN(len(g.sessions) - len(out))
		taken := map[int]bool{}
		for _, o := range out {
			taken[o] = true
		}
		for j := 0; ; j++ {
			if taken[j] {
				continue
			}
			if i == 0 {
				out = append(out, j)
				break
			}
			i--
		}
	}
	return out
}
