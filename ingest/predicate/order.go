package predicate

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Rules are what an order has to keep.
type Rules struct {
	Level    verdict.Level // g1, rc, pc, si, ser or what is as they are but for real time
	Sessions bool          // who follows in a session
	RealTime bool          // who ended before by more than MaxSkew
	MaxSkew  int64
}

// starts tells whether each reads when it starts, and not when it commits.
func (r *Rules) starts() bool { return !r.Level.OrdersCommits() }

// excludes tells whether of two that write one row one starts when the other has committed.
func (r *Rules) excludes() bool { return r.Level == verdict.SI || r.Level == verdict.StrongSI }

// search looks for an order of the transactions that explains what they found, by putting one behind the other, and by
// taking them back where none can follow.
//
// Few can follow: of the transactions in the order of their starts a window is open, and of those, who may have run
// beside the one that ended first, and finds what it found. That is asked of what all rows that match add up to
// (walk.sum), and of rows one by one only where it is not so. A state from which no order goes on is remembered.
//
// Where none goes on as somebody will not find any more what he found, he is put where he last did. Where somebody
// never did, or that was tried, the last choice is another one.
//
// With starts the order is that of commits. Who has once found what it found has started there, as late as that is, and
// may follow from then on; at si until somebody writes a row that it writes: then it has to find it once more.
type search struct {
	h     *History
	w     *walk
	rules Rules

	timed  bool
	latest map[string]int32 // committed transactions of sessions
	coming []int32          // transactions in the order of their starts
	next   int              // of these: the first that was never open
	least  int              // how many are open at least
	open   []int32          // of them, those that are not in the order, by their ends
	undone int              // committed ones that are not in the order
	txns   []searched
	order  []verdict.Event
	floor  int      // how much of the order is for good
	past   []wrote  // what the writes of the rest took the place of
	places []places // by table

	stuck   int32 // who will not find what it found, or none
	forks   []fork
	dead    map[uint64]bool // states, of transactions and of rows
	tried   map[uint64]bool // states, each with a transaction that was put there as it was stuck later
	who     uint64          // a hash of who is in the order, and has started
	what    uint64          // a sum of what rows hold
	never   bool            // some transaction contradicts itself
	loose   int64           // how far times are not trusted: how often as long as a transaction took
	looseAt int             // until the order is so long
	deepest []int32         // who was open when it was longest and did not go on, and the last that were in it
	took    int             // how often it was taken back since it was longest
	most    int             // how long it was
	size    int             // rows that transactions name, as often as they do
	work    int             // rows that were looked at, but for conditions
	from    int             // how often conditions had been looked at before
}

// places are marks on the rows of a table.
type places struct {
	wrote []int32 // the transaction that wrote it, or none; nil unless writers exclude each other
	made  []int32 // a mark, of rows that a transaction writes,
	as    []int32 // and what it makes of them
	mark  int32
}

// wrote is what a row was before it was written, and by whom.
type wrote struct{ version, by int32 }

// fork is a place in the order where several could follow.
type fork struct {
	at    int
	state uint64
	next  []int32
}

// searched is a transaction.
type searched struct {
	start, end int64
	previous   int32 // in its session
	isDone     bool
	isUnasked  bool
	place      int32   // in the order, if it is in it,
	wrote      int     // and how many rows it wrote there
	at         int32   // where it has started, with starts
	ats        []int32 // where it had
	lacks      *row    // it did not find as it is, while it held that
	held       *version
	isOld      bool   // it was looked whether it will find that row, since the order was taken back
	from       int    // of a statement's rows, where to look first
	met        int32  // where it last found what it found, or none,
	metState   uint64 // and what the state was
	makes      []makes
}

// makes are rows of a table that a transaction writes, each once, and what it makes of them.
type makes struct {
	of   *table
	rows []int32
	each []int32 // versions; nil: all are made one
	all  int32
}

// as is what it makes of the n-th.
func (m *makes) as(n int) int32 {
	if m.each == nil {
		return m.all
	}
	return m.each[n]
}

const none = -1

const (
	windowLeast = 64      // how many transactions are open at least
	tookLeast   = 1 << 5  // how often the order is taken back without becoming longer, before times are trusted less; four
	tookMost    = 1 << 8  // times as often each time; and how often if they can't be
	looseMost   = 3       // how often that is
	backMost    = 1 << 10 // how many transactions can be taken back at least
	workMost    = 400     // how often each row that a transaction names is looked at,
	workLeast   = 1 << 26 // or so many are at all
	nearLeast   = 1 << 13 // how many rows statements name at least where something is near
)

// Order looks for an order of the transactions, serial or with starts, that Explain finds nothing to ask for in, or, at
// rc and g1, one of commits that explains all that they found; it may not find one that there is: then it is nil. Each
// transaction is looked at some times, with those that run beside it.
//
// near are the transactions where an order that was not found was longest: those that might have followed, and those that
// it ended with; first who ended about when the first did that is not in it. What breaks a level is often there. nil if
// statements name few rows: then all of them are few enough to be asked.
func (h *History) Order(rules Rules) (order []verdict.Event, near []int32) {
	s := newSearch(h, rules)
	s.extend()
	switch {
	case !rules.Level.Implies(verdict.PC):
		if order, near = s.commits(); near != nil && rules.Level == verdict.RC { // rc may hold in another order
			rules.Level = verdict.G1
			_, near = h.Order(rules)
		}
		return order, near
	case s.run(nil, true):
		return s.events(), nil
	case s.size < nearLeast:
		return nil, nil
	}
	return nil, s.deepest
}

func newSearch(h *History, rules Rules) *search {
	return &search{h: h, w: h.walk(), rules: rules, dead: map[uint64]bool{}, tried: map[uint64]bool{},
		latest: map[string]int32{}, from: h.looked}
}

// run goes on with the order, to its end or, if isDecided is not nil, as far as all are known that may have run beside
// the one that ended first: until that one is not decided or, unless it ends, few are open. false: it does not go on.
func (s *search) run(isDecided func(t int) bool, ends bool) bool {
	h := s.h
	for steps := 0; s.undone > 0; steps++ {
		if len(s.order) > s.most {
			s.most, s.took = len(s.order), 0
			if s.most > s.looseAt {
				s.loose = 0
			}
		}
		if s.never || h.isStopped || steps%stopEvery == stopEvery-1 && h.stop() ||
			s.isTooMuch() ||
			s.took > tookLeast<<(2*s.loose) && !s.loosen() && s.took > tookMost {
			return false
		}
		for s.next < len(s.coming) && (len(s.open) < s.least || s.txns[s.coming[s.next]].start <= s.firstEnd()) {
			s.register(s.coming[s.next])
			s.next++
		}
		if isDecided != nil {
			first := s.first()
			if first == none || !ends && s.next == len(s.coming) && len(s.open) < s.least || !isDecided(int(first)) {
				return true
			}
		}
		next := s.follow()
		if len(next) == 0 && len(s.order) >= s.most {
			s.deepest = append(s.deepest[:0], s.open...)
			for _, e := range s.order[max(0, len(s.order)-2*windowLeast):] {
				s.deepest = append(s.deepest, int32(e.Txn))
			}
			end := s.firstEnd()
			away := func(t int32) int64 { return max(end-s.txns[t].end, s.txns[t].end-end) }
			slices.SortFunc(s.deepest, func(a, b int32) int { return cmp.Or(cmp.Compare(away(a), away(b)), cmp.Compare(a, b)) })
		}
		if len(next) == 0 {
			next = s.jump()
		}
		for len(next) == 0 {
			if len(s.forks) == 0 {
				if !s.loosen() {
					return false
				}
				break
			}
			f := &s.forks[len(s.forks)-1]
			if next = f.next; len(next) == 0 {
				s.dead[f.state] = true
				s.forks = s.forks[:len(s.forks)-1]
				continue
			}
			s.took++
			s.back(f.at)
			f.next = next[1:]
			next = next[:1]
		}
		s.forget()
		if len(next) > 1 {
			s.forks = append(s.forks, fork{len(s.order), s.state(), next[1:]})
		}
		if len(next) > 0 {
			s.do(next[0])
		}
	}
	return true
}

// isTooMuch tells whether more has been looked at than what the transactions name is worth.
func (s *search) isTooMuch() bool {
	return s.work+s.h.looked-s.from > max(workLeast, workMost*s.size)
}

// state tells the transactions in the order, those that have started, and the rows from others.
func (s *search) state() uint64 { return mix(s.who, s.what) }

// forget has the older part of the order be for good, once it is long enough.
func (s *search) forget() {
	to, n := len(s.order)-backMost, 0
	if to < s.floor+backMost {
		return
	}
	s.forks = slices.DeleteFunc(s.forks, func(f fork) bool { return f.at < to })
	for ; s.floor < to; s.floor++ {
		n += s.txns[s.order[s.floor].Txn].wrote
	}
	s.past = slices.Delete(s.past, 0, n)
	clear(s.dead)
	clear(s.tried)
}

// jump goes back to where the transaction that is stuck last found what it found, if it was not put there before.
func (s *search) jump() []int32 {
	t := s.stuck
	if t == none {
		t = s.first()
	}
	if t == none || int(s.txns[t].met) < s.floor || int(s.txns[t].met) >= len(s.order) {
		return nil
	}
	at, tried := int(s.txns[t].met), mix(s.txns[t].metState, uint64(t))
	if s.tried[tried] {
		return nil
	}
	s.tried[tried], s.dead[s.state()] = true, true
	s.took++
	instead := int32(s.order[at].Txn)
	s.back(at)
	for len(s.forks) > 0 && s.forks[len(s.forks)-1].at > at {
		s.forks = s.forks[:len(s.forks)-1]
	}
	if n := len(s.forks); n > 0 && s.forks[n-1].at == at {
		f := &s.forks[n-1]
		f.next = append([]int32{instead}, slices.DeleteFunc(f.next, func(o int32) bool { return o == t })...)
	} else {
		s.forks = append(s.forks, fork{at, s.state(), []int32{instead}})
	}
	return []int32{t}
}

// events are the order, with starts if these are in it.
func (s *search) events() []verdict.Event {
	if !s.rules.starts() {
		return s.order
	}
	started := make([][]verdict.Event, len(s.order)+1)
	for _, e := range s.order {
		at := s.startOf(int32(e.Txn), none)
		started[at] = append(started[at], verdict.Event{Txn: e.Txn})
	}
	out := make([]verdict.Event, 0, 2*len(s.order))
	for i, e := range s.order {
		out = append(append(out, started[i]...), e)
	}
	return out
}

// starts notes where a transaction has started; none: nowhere.
func (s *search) starts(t, at int32) {
	x := &s.txns[t]
	if (x.at == none) != (at == none) {
		s.who ^= sign(uint64(t)<<2 + 1)
	}
	x.at = at
}

// startOf is where a transaction that is in the order at a place has started.
func (s *search) startOf(t, place int32) int32 {
	if ats := s.txns[t].ats; s.rules.starts() {
		return ats[len(ats)-1]
	}
	return place
}

// restarts notes where a transaction has started when the order ends at a place where it was before.
func (s *search) restarts(t int32) {
	x, at := &s.txns[t], int32(none)
	had := len(x.ats)
	for len(x.ats) > 0 && int(x.ats[len(x.ats)-1]) > len(s.order) {
		x.ats = x.ats[:len(x.ats)-1]
	}
	if n := len(x.ats); n > 0 && (n == had || int(x.ats[n-1]) >= s.floor) {
		at = x.ats[n-1]
	}
	for i := 0; i < len(x.makes) && at != none && s.rules.excludes(); i++ {
		m := &x.makes[i]
		wrote := s.places[m.of.number].wrote
		s.work += len(m.rows)
		if slices.ContainsFunc(m.rows, func(r int32) bool { return wrote[r] != none && s.txns[wrote[r]].place >= at }) {
			at = none
		}
	}
	s.starts(t, at)
}

// loosen goes back some way, and on with less trust in times; false if that was so already.
func (s *search) loosen() bool {
	if s.loose == looseMost || s.rules.RealTime && s.loose == min(1, s.rules.MaxSkew) {
		return false
	}
	s.loose++
	s.took, s.looseAt = 0, s.most+windowLeast
	s.forks = slices.DeleteFunc(s.forks, func(f fork) bool { return f.at > len(s.order)-windowLeast })
	s.back(max(s.floor, len(s.order)-windowLeast))
	clear(s.dead)
	return true
}

// extend takes the transactions that the history has got since.
func (s *search) extend() {
	known := len(s.txns)
	s.txns = append(s.txns, make([]searched, len(s.h.Txns)-known)...)
	if known == 0 {
		s.timed = !slices.ContainsFunc(s.h.Txns, func(t record.Transaction) bool { return !t.HasTimes })
	}
	s.coming, s.next = slices.Clone(s.coming[s.next:]), 0
	for i := known; i < len(s.txns); i++ {
		t, x := &s.h.Txns[i], &s.txns[i]
		// Records stand nearly in the order of their ends.
		*x = searched{start: int64(i - windowLeast), end: int64(i), previous: none, at: none, met: none,
			isUnasked: s.h.unasked.txn(i)}
		if t.Status == record.Aborted {
			continue
		}
		s.coming = append(s.coming, int32(i))
		if p, is := s.latest[t.Session]; is && s.rules.Sessions {
			x.previous, x.start = p, max(x.start, int64(p))
		}
		if s.timed {
			x.start, x.end = t.Start, t.End
		}
		for a := range s.h.acts[i] {
			if st := s.h.acts[i][a].statement; st != nil {
				s.size += len(st.rows)
			}
			s.size++
		}
		if t.Status == record.Committed {
			s.latest[t.Session] = int32(i)
			s.undone++
		}
	}
	s.least = min(windowLeast, 2*len(s.latest))
	slices.SortFunc(s.coming, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.txns[a].start, s.txns[b].start), cmp.Compare(a, b))
	})
	s.w.grow()
	s.places = append(s.places, make([]places, len(s.h.tables)-len(s.places))...)
	for _, t := range s.h.tables {
		p := &s.places[t.number]
		more := make([]int32, len(t.rows)-len(p.made))
		p.made, p.as = append(p.made, more...), append(p.as, more...)
		if s.rules.excludes() {
			p.wrote = append(p.wrote, slices.Repeat([]int32{none}, len(more))...)
		}
	}
}

// slack is how much later than a transaction ends another may start that comes before it.
func (s *search) slack(t int32) int64 {
	if s.rules.RealTime {
		return s.loose * s.rules.MaxSkew
	}
	return (1<<s.loose - 1) * (s.txns[t].end - s.txns[t].start)
}

// first is the transaction that ended first of those that are not in the order.
func (s *search) first() int32 {
	for _, t := range s.open {
		if s.h.Txns[t].Status == record.Committed {
			return t
		}
	}
	return none
}

// firstEnd is when that was.
func (s *search) firstEnd() int64 {
	if t := s.first(); t != none {
		return s.txns[t].end
	}
	return s.txns[s.coming[s.next]].start
}

// register opens a transaction.
func (s *search) register(t int32) {
	x := &s.txns[t]
	x.lacks, x.from, x.met = nil, 0, none
	at, _ := slices.BinarySearchFunc(s.open, t, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.txns[a].end, s.txns[b].end), cmp.Compare(a, b))
	})
	s.open = slices.Insert(s.open, at, t)
	x.makes = s.h.makes(t)
}

// makes are what a transaction makes of rows in the end.
func (h *History) makes(t int32) (out []makes) {
	acts := h.acts[t]
	if len(acts) == 1 {
		if st := acts[0].statement; st != nil && st.made == nil && st.follows == nil {
			if st.op.Kind == record.PredicateWrite && len(st.rows) > 0 {
				out = []makes{{of: st.of, rows: st.rows, all: st.set.num()}}
			}
			return out
		}
	}
	type place struct{ table, row int }
	var at map[*row]place
	for r, v := range writes(acts) {
		p, is := at[r]
		if !is {
			if p.table = slices.IndexFunc(out, func(m makes) bool { return m.of == r.of }); p.table < 0 {
				p.table, out = len(out), append(out, makes{of: r.of, each: []int32{}})
			}
			m := &out[p.table]
			p.row, m.rows, m.each = len(m.rows), append(m.rows, r.number), append(m.each, 0)
			if at == nil {
				at = map[*row]place{}
			}
			at[r] = p
		}
		out[p.table].each[p.row] = v.num()
	}
	return out
}

// meets tells whether a version of the n-th row is what a statement found.
func (st *statement) meets(n int, v *version) bool { return v.matched(st.where) && st.sees(n, v) }

// found tells whether a version of a row is what all that a transaction did found of it.
func (s *search) found(t int32, r *row, v *version) bool {
	if s.txns[t].isUnasked || r.sign() == 0 {
		return true
	}
	for i := range s.h.acts[t] {
		a := &s.h.acts[t][i]
		n, st := -1, a.statement
		if st != nil && st.of == r.of {
			s.work += len(st.rows)
			n = slices.Index(st.rows, r.number)
		}
		switch {
		case st == nil && a.row == r && a.isWrite:
			return true // what comes later finds that
		case st == nil && a.row == r:
			if a.made != v {
				return false
			}
		case st == nil || st.of != r.of:
		case n < 0 && v.matched(st.where), n >= 0 && !st.meets(n, v):
			return false
		case n >= 0 && st.op.Kind == record.PredicateWrite:
			return true
		}
	}
	return true
}

// follow are the transactions that may follow, the likeliest first.
func (s *search) follow() []int32 {
	s.stuck = none
	if s.dead[s.state()] {
		return nil
	}
	var met, likely, taking, early, unknown []int32
	wanted := map[*row]bool{}
	first, end := s.first(), s.firstEnd()
	late := end
	if first != none {
		late += s.slack(first)
	}
	for _, t := range s.open {
		x := &s.txns[t]
		committed := s.h.Txns[t].Status == record.Committed
		if x.previous != none && !s.txns[x.previous].isDone || s.rules.RealTime && first != none && x.start > late {
			continue
		}
		if x.at == none && (x.lacks == nil || s.w.held(x.lacks) != x.held) {
			if x.lacks = s.lack(t); x.lacks != nil {
				x.held, x.isOld = s.w.held(x.lacks), false
			}
		}
		if x.at == none && x.lacks != nil {
			if !x.isOld && committed && !s.willFind(t, x.lacks) {
				s.dead[s.state()], s.stuck = true, t
				return nil
			}
			x.isOld = true
			wanted[x.lacks] = wanted[x.lacks] || committed
			continue
		}
		x.met, x.metState = int32(len(s.order)), s.state()
		if s.rules.starts() && x.at == none {
			x.ats = append(x.ats, int32(len(s.order)))
			s.starts(t, int32(len(s.order)))
		}
		if len(x.makes) == 0 && committed {
			return []int32{t} // it changes nothing
		}
		met = append(met, t)
	}
	for _, t := range met { // now that it is known who has started
		x, committed := &s.txns[t], s.h.Txns[t].Status == record.Committed
		switch {
		case committed && (x.start > late || x.start > end && len(likely) > 0 && s.loose == 0):
		case len(met) > 1 && t != first && s.takes(t):
			if committed {
				taking = append(taking, t)
			} else {
				unknown = append(unknown, t)
			}
		case !committed:
			unknown = append(unknown, t)
		case x.start > end:
			early = append(early, t)
		default:
			likely = append(likely, t)
		}
	}
	if s.dead[s.state()] { // somebody has started
		return nil
	}
	// What is not known to have happened has, only if somebody found it.
	for _, t := range unknown {
		for i := range s.txns[t].makes {
			m := &s.txns[t].makes[i]
			if slices.ContainsFunc(m.rows, func(r int32) bool { return wanted[m.of.rows[r]] }) {
				early = append(early, t)
				break
			}
		}
	}
	return append(append(likely, taking...), early...)
}

// willFind tells whether somebody who is open, or may be later, makes a row what a transaction found.
func (s *search) willFind(t int32, r *row) bool {
	if s.mayMeetMore(t) {
		return true
	}
	for _, o := range s.open {
		if o == t || s.txns[o].start > s.txns[t].end+s.slack(t) {
			continue
		}
		for i := range s.txns[o].makes {
			m := &s.txns[o].makes[i]
			if m.of != r.of || m.each == nil && !s.found(t, r, r.of.versions[m.all]) {
				continue
			}
			s.work += len(m.rows)
			if n := slices.Index(m.rows, r.number); n >= 0 && (m.each == nil || s.found(t, r, r.of.versions[m.each[n]])) {
				return true
			}
		}
	}
	return false
}

// lack is a row that is not what a transaction found, if there is one.
func (s *search) lack(t int32) *row {
	if s.txns[t].isUnasked {
		return nil
	}
	lacks := s.w.lack(s.h.acts[t], func(st *statement) *row { return s.lackOf(t, st) })
	_, own := s.w.own[lacks]
	s.never = s.never || own && s.h.Txns[t].Status == record.Committed
	return lacks
}

// lackOf is a row that is not what a statement found.
func (s *search) lackOf(t int32, st *statement) *row {
	if !st.isPart && s.w.sum(st) == st.sum {
		return nil
	}
	x := &s.txns[t]
	s.work += len(st.rows)
	for n, r := range s.w.lacks(st, x.from) { // what was not met last first
		if n >= 0 {
			x.from = n
		}
		return r
	}
	return nil
}

// takes tells whether a transaction takes away what open ones find now.
func (s *search) takes(t int32) bool {
	x := &s.txns[t]
	var made []*version
	for i := range x.makes {
		m := &x.makes[i]
		p := &s.places[m.of.number]
		p.mark++
		s.work += len(m.rows)
		for n, r := range m.rows {
			p.made[r], p.as[r] = p.mark, m.as(n)
			if v := m.of.versions[m.as(n)]; v != nil && (len(made) == 0 || made[len(made)-1] != v) {
				made = append(made, v)
			}
		}
		mark := p.mark
		for _, o := range s.open {
			if o == t || s.h.Txns[o].Status != record.Committed || s.txns[o].isUnasked || s.txns[o].start > s.txns[t].end {
				continue
			}
			if s.txns[o].at != none && !(s.rules.excludes() && s.isMarked(o, m.of, mark)) {
				continue // it has found it
			}
			for j := range s.h.acts[o] {
				if s.takesFrom(&s.h.acts[o][j], m, made, mark) {
					return true
				}
			}
		}
		made = made[:0]
	}
	return false
}

// isMarked tells whether a transaction writes rows that another does.
func (s *search) isMarked(t int32, of *table, mark int32) bool {
	for i := range s.txns[t].makes {
		if m := &s.txns[t].makes[i]; m.of == of {
			made := s.places[of.number].made
			s.work += len(m.rows)
			return slices.ContainsFunc(m.rows, func(r int32) bool { return made[r] == mark })
		}
	}
	return false
}

// takesFrom tells whether rows that are marked, and of which versions are made, are not what an operation found any
// more.
func (s *search) takesFrom(a *act, m *makes, made []*version, mark int32) bool {
	p, st := &s.places[m.of.number], a.statement
	if st == nil {
		return !a.isWrite && a.row.of == m.of && p.made[a.row.number] == mark &&
			m.of.versions[p.as[a.row.number]] != a.made && s.w.held(a.row) == a.made
	}
	if st.of != m.of {
		return false
	}
	s.work += len(st.rows)
	t := s.w.tables[m.of.number]
	versions, held := m.of.versions, t.held
	t.mark++
	for n, r := range st.rows {
		t.named[r] = t.mark
		if p.made[r] == mark && p.as[r] != held[r] && st.of.signs[r] != 0 &&
			!st.meets(n, versions[p.as[r]]) && st.meets(n, versions[held[r]]) {
			return true
		}
	}
	if !slices.ContainsFunc(made, func(v *version) bool { return v.matched(st.where) }) {
		return false
	}
	s.work += len(m.rows)
	for n, r := range m.rows {
		if t.named[r] != t.mark && st.of.signs[r] != 0 &&
			versions[m.as(n)].matched(st.where) && !versions[held[r]].matched(st.where) {
			return true
		}
	}
	return false
}

// mayMeetMore tells whether a transaction may have run beside one that is not open yet.
func (s *search) mayMeetMore(t int32) bool {
	return s.next < len(s.coming) && s.txns[s.coming[s.next]].start <= s.txns[t].end+s.slack(t)
}

func mix(a, b uint64) uint64 {
	a = (a ^ b) * 0x9E3779B97F4A7C15
	return a ^ a>>29
}

// do puts a transaction at the end of the order.
func (s *search) do(t int32) {
	x := &s.txns[t]
	x.isDone, x.place = true, int32(len(s.order))
	s.starts(t, none)
	s.who ^= sign(uint64(t) << 2)
	s.order = append(s.order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
	for i := range x.makes {
		m := &x.makes[i]
		p := &s.places[m.of.number]
		s.work += len(m.rows)
		p.mark++
		for n, r := range m.rows {
			was := wrote{s.put(m.of, r, m.as(n)), none}
			if p.made[r] = p.mark; p.wrote != nil {
				was.by, p.wrote[r] = p.wrote[r], t
			}
			s.past = append(s.past, was)
		}
		for _, o := range s.open {
			if s.rules.excludes() && s.txns[o].at != none && s.isMarked(o, m.of, p.mark) {
				s.starts(o, none)
			}
		}
	}
	x.wrote = 0
	for i := range x.makes {
		x.wrote += len(x.makes[i].rows)
	}
	s.open = slices.DeleteFunc(s.open, func(o int32) bool { return o == t })
	x.makes = nil
	if s.h.Txns[t].Status == record.Committed {
		s.undone--
	}
}

// put makes a row hold a version; it returns the one that it held.
func (s *search) put(of *table, r, version int32) int32 {
	n := s.w.tables[of.number]
	held := n.held[r]
	s.what += of.signs[r] * (of.versions[version].sign() - of.versions[held].sign())
	n.put(r, version)
	return held
}

// back takes back all from a place in the order on.
func (s *search) back(to int) {
	for ; len(s.order) > to; s.order = s.order[:len(s.order)-1] {
		t := int32(s.order[len(s.order)-1].Txn)
		x := &s.txns[t]
		x.isDone = false
		s.register(t)
		for i := len(x.makes) - 1; i >= 0; i-- {
			m := &x.makes[i]
			p := &s.places[m.of.number]
			s.work += len(m.rows)
			for n := len(m.rows) - 1; n >= 0; n-- {
				was := s.past[len(s.past)-1]
				s.past = s.past[:len(s.past)-1]
				if s.put(m.of, m.rows[n], was.version); p.wrote != nil {
					p.wrote[m.rows[n]] = was.by
				}
			}
		}
		s.who ^= sign(uint64(t) << 2)
		if s.h.Txns[t].Status == record.Committed {
			s.undone++
		}
	}
	for _, t := range s.open {
		x := &s.txns[t]
		x.isOld = false
		if int(x.met) > len(s.order) {
			x.met = none
		}
		s.restarts(t)
	}
}
