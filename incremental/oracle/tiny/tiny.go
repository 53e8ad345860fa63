// Package tiny makes random histories small enough for the oracle, for property
// tests: valid ones by running a tiny transactional store under an interleaving
// of sessions, and broken ones by mutating these. The same random numbers give
// the same history.
//
// A property test draws a history, judges it with package oracle, and compares:
//
//	for seed := range uint64(10000) {
//		rng := rand.New(rand.NewPCG(seed, 0))
//		s := tiny.Random(rng, tiny.Config{Times: true, Mutations: 2})
//		want := oracle.Check(s.Txns, oracle.FromHeader(s.Header))
//		// … compare; on a difference print seed and script.Format(s)
//	}
package tiny

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/incremental/oracle/script"
	"github.com/isowatch/isowatch/ingest/record"
)

// Rand is what is needed of a *rand.Rand (math/rand/v2).
type Rand interface {
	// IntN returns a random number in [0, n).
	IntN(n int) int
}

// Config says what histories may look like. The zero value makes histories of 2
// to 5 committed transactions with unique values, without times, unmutated.
type Config struct {
	Txns     int // at most so many transactions, from 2 to 60; 0 means 5
	Keys     int // at most; 0 means 3
	Sessions int // at most; 0 means 3
	Ops      int // per transaction at most; 0 means 4

	// Times gives about half of the histories times, some with max_skew.
	Times bool
	// Duplicates lets about half of the histories write few different values,
	// null among them, to each key; otherwise every write is of a new value.
	Duplicates bool
	// Aborted lets some transactions abort; those that the store refuses to
	// commit are left out otherwise.
	Aborted bool
	// Unknown lets some transactions have an unknown outcome.
	Unknown bool
	// Partial gives about half of the histories partial coverage.
	Partial bool
	// Appends makes the first key a list in about half of the histories that
	// have complete coverage.
	Appends bool
	// Mutations is the most changes that are made to a valid history; their
	// number is random.
	Mutations int
}

// Random makes one history. Its header states the initial state and whatever
// else differs from the defaults. Transactions stand in the order of some
// arrival: by session in session order, and sessions interleaved at random.
func Random(rng Rand, cfg Config) script.Script {
	cfg.Txns = cmp.Or(cfg.Txns, 5)
	cfg.Keys = cmp.Or(cfg.Keys, 3)
	cfg.Sessions = cmp.Or(cfg.Sessions, 3)
	cfg.Ops = cmp.Or(cfg.Ops, 4)
	g := &gen{rng: rng, cfg: cfg}
	g.draw()
	g.run()
	for range rng.IntN(cfg.Mutations + 1) {
		g.mutate()
	}
	return g.finish()
}

type gen struct {
	rng Rand
	cfg Config

	keys, sessions, txns int
	initial              record.Initial
	start                []record.Value // the initial value of each key
	partial, times       bool
	duplicates, lists    bool
	serializable, strong bool
	causal               bool // each session sees commits in its own order
	maxSkew              int64

	values int64 // written so far, when each is new
	clock  int64
	log    []commit // what was committed, oldest first
	out    []record.Transaction
}

// commit is what one transaction made of the database.
type commit struct {
	visible uint64         // the commits it could see and itself, by place in the log
	values  []record.Value // by key, where wrote
	wrote   []bool
}

// running is a transaction in progress, or a session between two.
type running struct {
	txn     *record.Transaction
	ops     int            // left to do
	visible uint64         // the commits it sees, by place in the log
	reader  bool           // it reads every key
	own     []record.Value // what it sees, with its own writes
	wrote   []bool         // keys
	read    []bool         // keys, before it wrote them
	after   uint64         // the commits that the session's next transaction sees at least
	skew    int64          // of the session's clock
}

func (g *gen) coin() bool { return g.rng.IntN(2) == 0 }

// draw decides what this history has.
func (g *gen) draw() {
	g.keys = 1 + g.rng.IntN(g.cfg.Keys)
	// The better of two draws: little can go wrong in small histories.
	g.sessions = 1 + max(g.rng.IntN(g.cfg.Sessions), g.rng.IntN(g.cfg.Sessions))
	g.txns = 2 + max(g.rng.IntN(g.cfg.Txns-1), g.rng.IntN(g.cfg.Txns-1))
	g.partial = g.cfg.Partial && g.coin()
	g.times = g.cfg.Times && g.coin()
	g.duplicates = g.cfg.Duplicates && g.coin()
	g.lists = g.cfg.Appends && !g.partial && g.coin()
	g.serializable, g.strong = g.rng.IntN(3) == 0, g.coin()
	if g.causal = g.cfg.Mutations > 0 && g.rng.IntN(4) == 0; g.causal {
		// A long fork needs room, and readers of several keys.
		g.keys, g.sessions, g.txns = g.cfg.Keys, g.cfg.Sessions, g.cfg.Txns
	}
	if g.times && g.coin() {
		g.maxSkew = int64(1 + g.rng.IntN(4))
	}
	g.initial = record.Initial(g.rng.IntN(3))
	g.start = make([]record.Value, g.keys)
	for k := range g.start {
		if g.initial == record.InitialZero || g.initial == record.InitialAny && g.coin() {
			g.start[k] = record.Int(0)
		}
		if g.lists && k == 0 {
			g.start[k] = record.Null
		}
	}
}

// run executes transactions, interleaved, on a multi-version store that gives
// snapshot isolation, or serializability by refusing whoever read a version
// that is not the latest any more. Where histories may be broken, some are made
// by a store that is only causally consistent.
func (g *gen) run() {
	sessions := make([]running, g.sessions)
	for i := range sessions {
		if g.maxSkew > 0 {
			sessions[i].skew = int64(g.rng.IntN(int(g.maxSkew) + 1))
		}
	}
	begun, active := 0, 0
	for begun < g.txns || active > 0 {
		g.clock += int64(g.rng.IntN(3))
		i := g.rng.IntN(len(sessions))
		r := &sessions[i]
		switch {
		case r.txn == nil && begun < g.txns:
			begun++
			active++
			g.begin(r, fmt.Sprintf("s%d", i+1), fmt.Sprintf("T%d", begun))
		case r.txn == nil:
		case r.ops > 0:
			r.ops--
			g.operation(r)
		default:
			active--
			g.end(r)
		}
	}
}

func (g *gen) begin(r *running, session, id string) {
	r.txn = &record.Transaction{DB: record.DefaultDB, Session: session, ID: id, Start: g.clock + r.skew}
	r.ops = 1 + g.rng.IntN(g.cfg.Ops)
	if r.reader = g.causal && g.coin(); r.reader {
		r.ops = g.keys
	}
	r.visible = r.after
	switch {
	case g.causal:
		for _, c := range g.log {
			if g.coin() {
				r.visible |= c.visible
			}
		}
	case g.strong:
		r.visible = 1<<len(g.log) - 1
	default: // as old as the session allows
		oldest := bits.Len64(r.after)
		r.visible = 1<<(oldest+g.rng.IntN(len(g.log)-oldest+1)) - 1
	}
	r.own = slices.Clone(g.start)
	for i, c := range g.log {
		for k, wrote := range c.wrote {
			if wrote && r.visible&(1<<i) != 0 {
				r.own[k] = c.values[k]
			}
		}
	}
	r.wrote = make([]bool, g.keys)
	r.read = make([]bool, g.keys)
}

func (g *gen) operation(r *running) {
	k := g.rng.IntN(g.keys)
	if r.reader {
		k = r.ops
	}
	op := record.Op{Key: string(rune('x' + k))}
	switch {
	case r.reader || g.coin():
		op.Value = r.own[k]
		r.read[k] = r.read[k] || !r.wrote[k]
	case g.lists && k == 0:
		op.Kind, op.Value = record.Append, g.value()
		text := "["
		if l := r.own[k].Text; l != "" {
			text = l[:len(l)-1] + ","
		}
		r.own[k] = record.Value{Kind: record.KindList, Text: text + op.Value.String() + "]"}
		r.wrote[k] = true
	default:
		op.Kind, op.Value = record.Write, g.value()
		if g.duplicates && g.rng.IntN(6) == 0 {
			op.Value = record.Null
		}
		r.own[k] = op.Value
		r.wrote[k] = true
	}
	r.txn.Ops = append(r.txn.Ops, op)
}

func (g *gen) value() record.Value {
	if g.duplicates {
		return record.Int(int64(1 + g.rng.IntN(3)))
	}
	g.values++
	return record.Int(g.values)
}

func (g *gen) end(r *running) {
	t := r.txn
	r.txn = nil
	t.End = g.clock + r.skew
	for i, c := range g.log {
		for k := range g.keys {
			if r.visible&(1<<i) == 0 && c.wrote[k] && (r.wrote[k] || g.serializable && r.read[k]) {
				t.Status = record.Aborted // somebody else was first
			}
		}
	}
	if g.cfg.Aborted && g.rng.IntN(8) == 0 {
		t.Status = record.Aborted
	}
	if t.Status == record.Committed {
		r.after = r.visible | 1<<len(g.log)
		g.log = append(g.log, commit{visible: r.after, values: r.own, wrote: r.wrote})
	}
	if g.cfg.Unknown && g.rng.IntN(6) == 0 {
		t.Status = record.Unknown
	}
	if t.Status == record.Aborted && !g.cfg.Aborted {
		return
	}
	g.out = append(g.out, *t)
}

// finish gives the history its header, its order of arrival, and the numbers in
// the sessions.
func (g *gen) finish() script.Script {
	s := script.Script{Header: record.Header{Initial: &g.initial}}
	if g.partial {
		p := record.CoveragePartial
		s.Header.Coverage = &p
		if len(g.out) > 2 && g.coin() {
			i := g.rng.IntN(len(g.out))
			g.out = slices.Delete(g.out, i, i+1)
		}
	}
	if g.maxSkew > 0 {
		s.Header.MaxSkew = &g.maxSkew
	}
	for i := range g.out { // let sessions overtake each other
		if i > 0 && g.out[i-1].Session != g.out[i].Session && g.rng.IntN(4) == 0 {
			g.out[i-1], g.out[i] = g.out[i], g.out[i-1]
		}
	}
	next := map[string]int64{}
	for i := range g.out {
		t := &g.out[i]
		t.Seq, t.HasSeq = next[t.Session], true
		next[t.Session]++
		if g.times {
			t.HasTimes = true
		} else {
			t.Start, t.End = 0, 0
		}
	}
	s.Txns = g.out
	return s
}
