package generate

import (
	"iter"
	"math/rand/v2"
	"strconv"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/heap"
)

// Generator makes one history, once.
type Generator struct {
	cfg     Config
	rng     *rand.Rand
	initial record.Value

	store   registers
	lists   lists
	choice  choice  // of versions, for levels that choose
	twitter twitter // for CTwitter
	rows    rows    // of a workload that has them
	drawer  *Drawer

	common *Popularity // the common values' popularity, for Duplicates
	values int64       // the last value given out
	now    int64       // the last instant
	steps  int64       // counts reads and commits of the store

	sessions []session
	instants []instant   // a heap by before; at most one per session
	base     int         // ordinary transactions still to be scheduled
	done     []ended     // a heap by before: ended, and waiting for whatever ends earlier
	ended    int64       // counts them
	ops      []record.Op // where the next operations are cut from

	plan planner

	// trace, for tests, is told of the events of an execution that proves the
	// history valid, by transaction id: its reads (of si alone) and its commit.
	trace func(id string, commit bool)
}

// session is one client.
type session struct {
	name    string
	seq     int64
	skew    int64 // of its clock
	running bool
	txn     running
	instant int64 // of its last step in the store
	end     int64 // of its last or running transaction
	script  []scripted
}

// running is a transaction between its scheduling and its commit.
type running struct {
	record     record.Transaction
	keys       []ref // of the operations; nil if scripted
	commit     int64 // when it commits
	snapshot   int64 // the step of its reads; -1 before
	takes      bool  // whether its commit takes effect, unless refused
	stale      bool  // whether it may see what is not the newest
	deed       deed  // what it does at C-Twitter
	asks       []ask // what it asks of rows
	isScripted bool
}

// ended is a transaction to be written in the order of recorded ends.
type ended struct {
	record record.Transaction
	end    int64
	n      int64
}

func (a *ended) before(b *ended) bool { return a.end < b.end || a.end == b.end && a.n < b.n }

// instant is when something happens in a session.
type instant struct {
	at      int64
	session int32
}

func (a *instant) before(b *instant) bool {
	return a.at < b.at || a.at == b.at && a.session < b.session
}

// New prepares a history; its errors are those of an impossible Config. Time and
// space are linear in the number of sessions and of keys, up to 4 million of them.
func New(cfg Config) (*Generator, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	g := &Generator{
		cfg:      cfg,
		rng:      rand.New(rand.NewPCG(cfg.Seed, 0x150_3a7c4)),
		sessions: make([]session, cfg.Sessions),
	}
	if cfg.Initial == record.InitialZero {
		g.initial = record.Int(0)
	}
	switch cfg.Workload {
	case Append:
		g.lists = newLists(cfg.Keys)
	case CTwitter:
		g.twitter = newTwitter(cfg.Keys)
		g.store = registers{names: g.twitter.names(), table: table[cell]{tabled: make([]cell, 2*cfg.Keys)}}
	case Predicates, Booking, Queue, Unique:
		values := 1 + max(cfg.Keys, bookingDay)
		g.rows = rows{counts: [2][]int32{make([]int32, values), make([]int32, values)}}
	case Mix:
		g.store, g.lists = newRegisters(cfg.Keys), newLists(max(1, cfg.Keys/mixLists))
	default:
		g.store = newRegisters(cfg.Keys)
	}
	if chooses(cfg.Level) {
		g.choice = newChoice(cfg.Level, cfg.Sessions, len(g.store.tabled))
		g.store.tabled = nil
	}
	g.drawer = NewDrawer(cfg, g.rng)
	if cfg.Duplicates > 0 {
		g.common = NewZipf(cfg.DuplicateValues, cfg.DuplicateExponent)
		g.values = int64(cfg.DuplicateValues) // the first are the common ones
	}
	for i := range g.sessions {
		s := &g.sessions[i]
		s.name = "s" + strconv.Itoa(i)
		s.skew = g.within(int64(cfg.MaxSkew))
		s.instant = cfg.Start
		s.end = cfg.Start
	}
	g.plan = newPlanner(cfg)
	g.base = cfg.Transactions - g.plan.transactions()
	return g, nil
}

// Len is how many transactions the whole history has.
func (g *Generator) Len() int { return g.cfg.Transactions }

// Header is what a reader must assume.
func (g *Generator) Header() record.Header {
	h := headerOf(g.cfg.Initial)
	if g.cfg.MaxSkew > 0 {
		h.MaxSkew = new(int64(g.cfg.MaxSkew))
	}
	return h
}

// headerOf is the header of a history that is complete, in the order of its sessions.
func headerOf(initial record.Initial) record.Header {
	return record.Header{Initial: &initial, Sessions: new(record.SessionsKeep), Coverage: new(record.CoverageComplete)}
}

// Planting is an anomaly as it was planted.
type Planting struct {
	Anomaly      string
	Transactions []string // ids, in the order of the script
}

// Planted lists the anomalies planted so far.
func (g *Generator) Planted() []Planting { return g.plan.planted }

// Transactions runs the simulation and yields its transactions in the order of
// their recorded ends. It can be ranged over once; a second time it yields what
// is left.
func (g *Generator) Transactions() iter.Seq[record.Transaction] {
	return func(yield func(record.Transaction) bool) {
		for i := range g.sessions {
			if !g.sessions[i].running {
				g.schedule(i)
			}
		}
		for {
			g.plantIfDue()
			if len(g.instants) == 0 {
				break
			}
			now := heap.Pop(&g.instants, (*instant).before)
			g.step(now)
			// Whatever is still to end will do so later than now, and its
			// clock is not behind.
			for len(g.done) > 0 && g.done[0].end <= now.at {
				if !yield(heap.Pop(&g.done, (*ended).before).record) {
					return
				}
			}
		}
		for len(g.done) > 0 {
			if !yield(heap.Pop(&g.done, (*ended).before).record) {
				return
			}
		}
	}
}

// within is a random number from 0 to n.
func (g *Generator) within(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return g.rng.Int64N(n + 1)
}

// chance is true with probability p.
func (g *Generator) chance(p float64) bool { return p > 0 && g.rng.Float64() < p }

// schedule gives session i its next transaction, if there is one.
func (g *Generator) schedule(i int) {
	s := &g.sessions[i]
	if len(s.script) > 0 {
		g.scheduleScripted(i)
		return
	}
	if g.base == 0 {
		return
	}
	g.base--
	start := s.end + g.within(2*int64(g.cfg.Pause))
	duration := int64(g.cfg.Duration)/2 + g.within(int64(g.cfg.Duration))
	end := start + duration
	t := &s.txn
	*t = running{record: g.newRecord(s, start, end), keys: t.keys[:0], snapshot: -1, takes: true}
	g.work(t)

	t.stale = g.chance(g.cfg.Stale)
	span := duration / 4
	if g.cfg.Level.OrdersCommits() {
		span = duration
	}
	first := start + g.within(span)
	if t.stale && !chooses(g.cfg.Level) {
		first = s.instant + g.within(start-s.instant)
	}
	t.commit = first
	if !g.cfg.Level.OrdersCommits() {
		t.commit = end - g.within(duration/4)
	}
	switch {
	case g.chance(g.cfg.AbortRate):
		t.record.Status, t.takes = record.Aborted, false
	case g.chance(g.cfg.UnknownRate):
		t.record.Status, t.takes = record.Unknown, g.rng.IntN(2) == 0
	}
	s.end = end
	s.running = true
	heap.Push(&g.instants, instant{first, int32(i)}, (*instant).before)
}

// newRecord begins the record of session s's next transaction.
func (g *Generator) newRecord(s *session, start, end int64) record.Transaction {
	t := record.Transaction{DB: g.cfg.DB, Session: s.name, Seq: s.seq, HasSeq: true,
		ID: s.name + "#" + strconv.FormatInt(s.seq, 10)}
	s.seq++
	if !g.cfg.NoTimes {
		t.Start, t.End, t.HasTimes = start+s.skew, end+s.skew, true
	}
	return t
}

// step lets happen what happens at an instant.
func (g *Generator) step(now instant) {
	s := &g.sessions[now.session]
	t := &s.txn
	s.instant, g.now = now.at, now.at
	g.steps++
	if !t.isScripted {
		if t.snapshot < 0 {
			g.read(t, int(now.session))
			if !g.cfg.Level.OrdersCommits() {
				g.note(t, false)
				heap.Push(&g.instants, instant{max(now.at, t.commit), now.session}, (*instant).before)
				return
			}
		}
		g.write(t, int(now.session))
		for _, k := range t.keys {
			if k < 0 && k != unread {
				g.lists.release(k)
			}
		}
	} else if g.cfg.Level == verdict.CC {
		g.choice.catchUp(int(now.session), g.steps) // it may have read, from another session, what nobody's replica knows of
	}
	if t.record.Status == record.Committed || t.takes {
		g.note(t, true)
	}
	if t.isScripted {
		g.plan.left--
	}
	heap.Push(&g.done, ended{t.record, s.end + s.skew, g.ended}, (*ended).before)
	g.ended++
	s.running = false
	g.schedule(int(now.session))
}

func (g *Generator) note(t *running, commit bool) {
	if g.trace != nil {
		g.trace(t.record.ID, commit)
	}
}

// read fills in what transaction t of a session reads, now.
func (g *Generator) read(t *running, session int) {
	t.snapshot = g.steps
	if !chooses(g.cfg.Level) {
		g.readAll(t)
		return
	}
	g.choice.begin(session, t.stale, g.rng, g.steps)
	if !g.readAll(t) {
		// What was chosen does not go with any version of the next key. The
		// newest versions of all keys always go together.
		g.choice.beginNewest(session, g.steps)
		g.readAll(t)
	}
}

// readAll does the reads one after the other. It returns false if one of them has
// no version to return.
func (g *Generator) readAll(t *running) bool {
	if t.deed.looks() {
		return g.look(t)
	}
	g.query(t)
	for i, k := range t.keys {
		op := &t.record.Ops[i]
		if op.Kind != record.Read {
			continue
		}
		own := false
		for j := range i {
			own = own || t.keys[j] == k && t.record.Ops[j].Kind == record.Write
		}
		if !own {
			var ok bool
			if op.Value, ok = g.holds(k); !ok {
				return false
			}
		}
		for j := range i {
			if t.keys[j] != k {
				continue
			}
			switch own := &t.record.Ops[j]; own.Kind {
			case record.Write:
				op.Value = own.Value
			case record.Append:
				op.Value = extended(op.Value, own.Value)
			}
		}
	}
	return true
}

// holds is what the store holds at a key, for the transaction that reads; false if
// it has nothing that goes with what it was asked before.
func (g *Generator) holds(k ref) (record.Value, bool) {
	if k < 0 {
		return g.lists.all[k].value, true
	}
	var v int64
	ok := true
	if chooses(g.cfg.Level) {
		v, ok = g.choice.read(k, g.rng)
	} else {
		v = g.store.get(k).value
	}
	if v != 0 {
		return record.Int(v), ok
	}
	return g.initial, ok
}

// committed is the step at which a key was committed last.
func (g *Generator) committed(k ref) int64 {
	if k < 0 {
		return g.lists.all[k].committed
	}
	return g.store.get(k).committed
}

// write makes transaction t's writes take effect, now, or refuses to, at levels that
// do, if somebody committed another write of the same key since t's reads.
func (g *Generator) write(t *running, session int) {
	if refuses(g.cfg.Level) && g.conflicts(t) {
		if t.takes { // an abort of its own, or an unknown outcome, stays what it is
			t.takes = false
			if t.record.Status == record.Committed {
				t.record.Status = record.Aborted
			}
		}
		return
	}
	if !t.takes {
		return
	}
	for i, k := range t.keys {
		op := &t.record.Ops[i]
		switch {
		case k == unread:
		case op.Kind == record.Append:
			l := g.lists.all[k]
			l.value, l.committed = extended(l.value, op.Value), g.steps
		case op.Kind != record.Write:
		case chooses(g.cfg.Level):
			g.choice.write(k, version{op.Value.Num, g.steps, int32(session)})
		default:
			g.store.set(k, cell{op.Value.Num, g.steps})
		}
	}
	g.twitter.happen(t.deed)
	g.rows.happen(t, g.steps)
}

// conflicts tells whether somebody committed a write of what t writes since t's reads.
func (g *Generator) conflicts(t *running) bool {
	for i, k := range t.keys {
		if k != unread && t.record.Ops[i].Kind != record.Read && g.committed(k) > t.snapshot {
			return true
		}
	}
	return g.rows.overtaken(t)
}
