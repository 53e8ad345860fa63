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
//		want := oracle.Check(s.Txns, record.Assumptions{}.Override(s.Header))
//		// … compare; on a difference print seed and script.Format(s)
//	}
package tiny

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
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
	// null and initial ones among them, to each key; otherwise every write is of
	// a new value.
	Duplicates bool
	Values     int // how many different ones; 0 means 3
	// Common is the share, in percent, of writes of null, or, where that is what keys
	// hold at first, zero: what anybody may write, also where values are unique.
	Common int
	// Aborted lets some transactions abort; those that the store refuses to
	// commit are left out otherwise.
	Aborted bool
	// Unknown lets some transactions have an unknown outcome: some take effect,
	// of these some later than the next transaction of their session.
	Unknown bool
	// Partial gives about half of the histories partial coverage.
	Partial bool
	// Appends makes the first key a list in about half of the histories that
	// have complete coverage, and all keys in some of these. Elements are unique.
	Appends bool
	// PartialLists lets histories of partial coverage have lists as well.
	PartialLists bool
	// Mixed lets some lists have repeated elements, and some be overwritten by a
	// plain write.
	Mixed bool
	// Whole is the share, in percent, of writes to lists that write one as a whole: an empty one, null,
	// what it held but for the last element, or an integer.
	Whole int
	// Always gives every history what otherwise about half of them have:
	// Duplicates, Appends and Partial.
	Always bool
	// Updates is the share, in percent, of writes that read their key just
	// before.
	Updates int
	// Back is the share, in percent, of writes that put back what was read of the key
	// just before.
	Back int
	// Weak is the share, in percent, of histories that are made by stores which
	// give less than snapshots: reads that see what has been committed meanwhile,
	// or any version at all, in sessions that may forget; transactions mostly read,
	// some key several times. Into a third of these histories one is planted that
	// breaks a level.
	Weak int
	// OneKey is the share, in percent, of histories in which every transaction
	// keeps to one key.
	OneKey int
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
	cfg.Values = cmp.Or(cfg.Values, 3)
	g := &gen{rng: rng, cfg: cfg}
	g.draw()
	g.run()
	if g.planted {
		g.plant()
	}
	for range rng.IntN(cfg.Mutations + 1) {
		g.mutate()
	}
	return g.finish()
}

// store is what a weak store gives.
type store uint8

const (
	snapshots store = iota // it is not weak
	committed              // each read sees what it saw before, and some commits more
	forgetful              // the same, but a session's next transaction may see less
	atomic                 // transactions see their session's commits, and some others, whole
	forked                 // transactions see some commits with all that those saw
	anything               // each read is of any version
	stores
)

type gen struct {
	rng Rand
	cfg Config

	keys, sessions, txns int
	initial              record.Initial
	start                []record.Value // the initial value of each key
	partial, times       bool
	duplicates           bool
	lists                int // so many keys are lists
	serializable, strong bool
	causal               bool // each session sees commits in its own order
	weak                 store
	oneKey, planted      bool
	careless             bool // nobody is refused
	maxSkew              int64

	values  int64 // written so far, when each is new
	clock   int64
	log     []commit  // what was committed, oldest first
	pending []running // of unknown outcome, may still take effect
	out     []record.Transaction
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
	mine    uint64         // the session's commits
	after   uint64         // the commits that the session's next transaction sees at least
	skew    int64          // of the session's clock
	only    int            // one more than the key it keeps to, or 0
}

func (g *gen) coin() bool { return g.rng.IntN(2) == 0 }

func (g *gen) half() bool { return g.cfg.Always || g.coin() }

func (g *gen) isList(k int) bool { return k < g.lists }

// draw decides what this history has.
func (g *gen) draw() {
	g.keys = 1 + g.rng.IntN(g.cfg.Keys)
	// The better of two draws: little can go wrong in small histories.
	g.sessions = 1 + max(g.rng.IntN(g.cfg.Sessions), g.rng.IntN(g.cfg.Sessions))
	g.txns = 2 + max(g.rng.IntN(g.cfg.Txns-1), g.rng.IntN(g.cfg.Txns-1))
	g.partial = g.cfg.Partial && g.half()
	g.times = g.cfg.Times && g.coin()
	g.duplicates = g.cfg.Duplicates && g.half()
	g.serializable, g.strong = g.rng.IntN(3) == 0, g.coin()
	if g.causal = g.cfg.Mutations > 0 && g.rng.IntN(4) == 0; g.causal {
		// A long fork needs room, and readers of several keys.
		g.keys, g.sessions, g.txns = g.cfg.Keys, g.cfg.Sessions, g.cfg.Txns
	}
	g.careless = g.cfg.Mutations > 0 && g.rng.IntN(3) == 0
	g.oneKey = g.cfg.OneKey > 0 && g.rng.IntN(100) < g.cfg.OneKey
	if g.cfg.Weak > 0 && g.rng.IntN(100) < g.cfg.Weak {
		g.weak = committed + store(g.rng.IntN(int(stores-committed)))
		g.careless, g.causal, g.sessions = true, g.weak == forked, g.cfg.Sessions
		g.keys, g.txns = max(g.keys, min(2, g.cfg.Keys)), max(g.txns, g.cfg.Txns-1)
		if g.planted = !g.oneKey && g.rng.IntN(3) == 0; g.planted {
			g.weak, g.causal = snapshots, false
			g.keys, g.txns = 1+g.rng.IntN(2), max(2, g.cfg.Txns-4)
		}
	}
	if g.cfg.Appends && (!g.partial || g.cfg.PartialLists) && g.half() {
		if g.lists = 1; g.coin() {
			g.lists = g.keys + plantKeys
		}
	}
	if g.times && g.coin() {
		g.maxSkew = int64(1 + g.rng.IntN(4))
	}
	g.initial = record.Initial(g.rng.IntN(3))
	g.start = make([]record.Value, g.keys+plantKeys)
	for k := range g.start {
		if g.initial == record.InitialZero || g.initial == record.InitialAny && g.coin() {
			g.start[k] = record.Int(0)
		}
		if g.isList(k) {
			g.start[k] = record.Null
		}
	}
}

// run executes transactions, interleaved, on a multi-version store that gives
// snapshot isolation, or serializability by refusing whoever read a version
// that is not the latest any more. Where histories may be broken, some are made
// by a store that is only causally consistent, and some by one that lets updates
// get lost.
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
		g.takeLateEffect()
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
	g.forgetUnusedLists()
}

func (g *gen) isAppended(key string) bool {
	return slices.ContainsFunc(g.places(record.Append), func(p place) bool { return g.at(p).Key == key })
}

// forgetUnusedLists: what nobody appends to is no list, and holds at first what
// all keys do.
func (g *gen) forgetUnusedLists() {
	for k := range g.lists {
		key := string(rune('x' + k))
		appended := g.isAppended(key)
		for _, p := range g.places(record.Read) {
			if op := g.at(p); !appended && op.Key == key && op.Value.IsNull() && g.initial == record.InitialZero {
				op.Value = record.Int(0)
			}
		}
	}
}

func (g *gen) begin(r *running, session, id string) {
	r.txn = &record.Transaction{DB: record.DefaultDB, Session: session, ID: id, Start: g.clock + r.skew}
	r.ops = 1 + g.rng.IntN(g.cfg.Ops)
	if r.reader = (g.causal || g.weak == atomic) && g.coin(); r.reader {
		r.ops = g.keys
	}
	r.visible = r.after
	if g.oneKey {
		r.only = 1 + g.rng.IntN(g.keys)
	}
	switch {
	case g.weak == atomic:
		r.visible = g.someCommits(r.mine)
	case g.weak == forgetful:
		r.visible = g.someCommits(0)
	case g.weak != snapshots && !g.causal:
		r.visible = g.someCommits(r.visible)
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
	r.wrote = make([]bool, g.keys)
	r.read = make([]bool, g.keys)
	g.look(r)
}

// look lets a transaction see the latest visible version of every key that it
// has not written.
func (g *gen) look(r *running) {
	for k := range g.keys {
		if r.wrote[k] {
			continue
		}
		r.own[k] = g.start[k]
		for i, c := range g.log {
			if c.wrote[k] && r.visible&(1<<i) != 0 {
				r.own[k] = c.values[k]
			}
		}
	}
}

// someCommits are these and some others of the commits.
func (g *gen) someCommits(visible uint64) uint64 {
	for i := range g.log {
		if g.coin() {
			visible |= 1 << i
		}
	}
	return visible
}

func (g *gen) operation(r *running) {
	k := g.rng.IntN(g.keys)
	if r.reader {
		k = r.ops
	}
	if r.only > 0 {
		k = r.only - 1
	}
	switch {
	case g.weak == committed || g.weak == forgetful:
		r.visible = g.someCommits(r.visible)
		g.look(r)
	case g.weak == anything:
		r.visible = g.someCommits(0)
		g.look(r)
	}
	if r.reader || g.coin() || g.weak != snapshots && g.coin() {
		g.read(r, k)
		return
	}
	if g.rng.IntN(100) < g.cfg.Updates {
		g.read(r, k)
	}
	op := record.Op{Kind: record.Write, Key: string(rune('x' + k)), Value: g.value(k)}
	whole := g.isList(k) && g.cfg.Whole > 0 && g.rng.IntN(100) < g.cfg.Whole
	if whole && g.rng.IntN(4) > 0 {
		op.Value = []record.Value{{Kind: record.KindList, Text: "[]"}, record.Null, shortened(r.own[k])}[g.rng.IntN(3)]
	}
	if g.cfg.Back > 0 && !g.isList(k) && g.rng.IntN(100) < g.cfg.Back {
		g.read(r, k)
		op.Value = r.own[k]
	}
	if g.isList(k) && !whole && !(g.cfg.Mixed && g.rng.IntN(12) == 0) {
		op.Kind = record.Append
		text := "["
		if l := r.own[k].Text; l != "" && l != "[]" {
			text = l[:len(l)-1] + ","
		}
		r.own[k] = record.Value{Kind: record.KindList, Text: text + op.Value.String() + "]"}
	} else {
		r.own[k] = op.Value
	}
	r.wrote[k] = true
	r.txn.Ops = append(r.txn.Ops, op)
}

// shortened is a list without its last element.
func shortened(v record.Value) record.Value {
	out := record.Value{Kind: record.KindList, Text: "[]"}
	if at := strings.LastIndexByte(v.Text, ','); at > 0 {
		out.Text = v.Text[:at] + "]"
	}
	return out
}

func (g *gen) read(r *running, k int) {
	r.txn.Ops = append(r.txn.Ops, record.Op{Key: string(rune('x' + k)), Value: r.own[k]})
	r.read[k] = r.read[k] || !r.wrote[k]
}

// value is one to be written to a key, or appended.
func (g *gen) value(k int) record.Value {
	again := g.duplicates
	if g.isList(k) {
		again = g.cfg.Mixed && g.rng.IntN(6) == 0
	}
	switch {
	case !g.isList(k) && g.cfg.Common > 0 && g.rng.IntN(100) < g.cfg.Common:
		if g.initial == record.InitialZero && g.coin() {
			return record.Int(0)
		}
		return record.Null
	case !again:
		g.values++
		return record.Int(g.values)
	case g.rng.IntN(6) == 0 && !g.isList(k):
		return []record.Value{record.Null, record.Int(0)}[g.rng.IntN(2)]
	}
	return record.Int(int64(1 + g.rng.IntN(g.cfg.Values)))
}

func (g *gen) end(r *running) {
	t := r.txn
	r.txn = nil
	t.End = g.clock + r.skew
	unknown := g.cfg.Unknown && g.rng.IntN(4) == 0
	switch {
	case unknown && g.rng.IntN(3) == 0: // it may take effect later
		late := *r
		g.pending = append(g.pending, late)
	case g.conflicts(r) || g.cfg.Aborted && g.rng.IntN(8) == 0:
		t.Status = record.Aborted
	default:
		r.mine |= 1 << len(g.log)
		r.after = g.commit(r)
	}
	if unknown {
		t.Status = record.Unknown
	}
	if t.Status == record.Aborted && !g.cfg.Aborted {
		return
	}
	g.out = append(g.out, *t)
}

// conflicts tells whether somebody whom r did not see was first to commit what
// r wrote, or, if the store is serializable, read.
func (g *gen) conflicts(r *running) bool {
	if g.careless {
		return false
	}
	for i, c := range g.log {
		for k := range g.keys {
			if r.visible&(1<<i) == 0 && c.wrote[k] && (r.wrote[k] || g.serializable && r.read[k]) {
				return true
			}
		}
	}
	return false
}

// commit makes what r wrote part of the database and returns what its session
// sees from then on.
func (g *gen) commit(r *running) uint64 {
	visible := r.visible | 1<<len(g.log)
	g.log = append(g.log, commit{visible: visible, values: r.own, wrote: r.wrote})
	return visible
}

// takeLateEffect commits, now and then, a transaction of which nobody learned
// that it would.
func (g *gen) takeLateEffect() {
	if len(g.pending) == 0 || g.rng.IntN(6) > 0 {
		return
	}
	r := &g.pending[0]
	if !g.conflicts(r) {
		g.commit(r)
	}
	g.pending = g.pending[1:]
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
	for _, p := range g.places(record.Read) {
		if op := g.at(p); op.Value.Kind == record.KindList && op.Value.Text == "[]" && !g.isAppended(op.Key) {
			op.Value = record.Null // what nobody appends to is no empty list
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

// Log gives most transactions a place in the database's log, most of them in their order, and some the same.
func Log(rng *rand.Rand, txns []record.Transaction) {
	places := make([]int64, len(txns))
	for i := range places {
		places[i] = int64(i + 1)
	}
	for range rng.IntN(3) {
		i, j := rng.IntN(len(places)), rng.IntN(len(places))
		if places[i], places[j] = places[j], places[i]; rng.IntN(3) == 0 {
			places[i] = places[j]
		}
	}
	for i := range txns {
		if rng.IntN(8) > 0 {
			txns[i].LSN = places[i]
		}
	}
}
