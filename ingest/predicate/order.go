package predicate

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Rules are what an order has to keep beside what the level says.
type Rules struct {
	Sessions bool // who follows in a session
	RealTime bool // who ended before by more than MaxSkew
	MaxSkew  int64
	Starts   bool // each reads when it starts; of two that write one row one starts when the other has committed
}

// search looks for an order of the transactions that explains what they found, by putting one behind the other, and by
// taking them back where none can follow.
//
// Few can follow: of the transactions in the order of their starts a window is open, and of those, who may have run
// beside the one that ended first, and finds what it found. Nobody follows who takes away for good what another found.
// A state from which no order goes on is remembered.
//
// With starts the order is that of commits. Who has once found what it found has started there, as late as that is, and
// may follow from then on, until somebody writes a row that it writes: then it has to find it once more.
type search struct {
	h     *History
	w     *walk
	rules Rules

	coming []int32 // transactions in the order of their starts
	next   int     // of these: the first that was never open
	least  int     // how many are open at least
	open   []int32 // of them, those that are not in the order, by their ends
	undone int     // committed ones that are not in the order
	txns   []searched
	order  []verdict.Event
	asks   []*statement // of open ones
	rows   [][]rowUses  // by table
	marks  int32

	forks   []fork
	alike   map[likeness]bool
	dead    map[uint64]bool // states, of transactions and of rows
	state   uint64
	loose   int64 // how far times are not trusted: how often as long as a transaction took
	looseAt int   // until the order is so long
	took    int   // how often it was taken back since it was longest
	most    int   // how long it was
	size    int   // rows that transactions name, as often as they do
	work    int   // rows that were looked at, but for conditions
}

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
	place      int32   // in the order, if it is in it
	at         int32   // where it has started, with starts
	ats        []int32 // where it had
	clash      int32   // a mark: it writes what another does
	lacks      *row    // it did not find as it is, while it held that
	held       *version
	from       int // of needs, where to look first
	needs      []need
	makes      []makes
	asks       []*statement
}

// need is what an open transaction has to find of a row: what it read, or what a statement returned or hit.
type need struct {
	row  *row
	st   *statement
	n    int
	read *version
	free bool // it wrote the row before, which was looked at
}

type makes struct {
	row *row
	v   *version
}

// rowUses is who needs a row or writes it, of open transactions, and what it held.
type rowUses struct {
	needs  []rowNeed
	writes []rowWrite
	past   []rowWrite
	mark   int32
	own    int32  // of what is registered, if it is marked
	sign   uint64 // equal for rows with equal needs and writes
}

// rowNeed is the i-th need of a transaction.
type rowNeed struct{ t, i int32 }

type rowWrite struct {
	t int32
	v int32 // the version's number
}

const none = -1

const (
	windowLeast = 64      // how many transactions are open at least
	tookMost    = 1 << 8  // how often the order is taken back without becoming longer, before times are trusted less
	looseMost   = 3       // how often that is
	workMost    = 400     // how often each row that a transaction names is looked at,
	workLeast   = 1 << 26 // or so many are at all
)

// Order looks for an order of the transactions, serial or with starts, that Explain finds nothing to ask for in; it may
// not find one that there is: then it is nil. Each transaction is looked at some times, with those that run beside it.
func (h *History) Order(rules Rules) []verdict.Event {
	s := &search{h: h, w: h.walk(), rules: rules, txns: make([]searched, len(h.Txns)),
		rows: make([][]rowUses, len(h.tables)), dead: map[uint64]bool{}, alike: map[likeness]bool{}}
	for _, t := range h.tables {
		s.rows[t.number] = make([]rowUses, len(t.rows))
	}
	s.begin()
	from := h.looked
	for steps := 0; s.undone > 0; steps++ {
		if len(s.order) > s.most {
			s.most, s.took = len(s.order), 0
			if s.most > s.looseAt {
				s.loose = 0
			}
		}
		if h.isStopped || steps%stopEvery == stopEvery-1 && h.stop() ||
			s.work+h.looked-from > max(workLeast, workMost*s.size) ||
			s.took > tookMost && !s.loosen() {
			return nil
		}
		for s.next < len(s.coming) && (len(s.open) < s.least || s.txns[s.coming[s.next]].start <= s.firstEnd()) {
			if !s.register(s.coming[s.next]) {
				return nil
			}
			s.next++
		}
		next := s.follow()
		for len(next) == 0 {
			if len(s.forks) == 0 {
				if !s.loosen() {
					return nil
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
		if len(next) > 1 {
			s.forks = append(s.forks, fork{len(s.order), s.state, next[1:]})
		}
		if len(next) > 0 {
			s.do(next[0])
		}
	}
	return s.events()
}

// events are the order, with starts if these are in it.
func (s *search) events() []verdict.Event {
	if !s.rules.Starts {
		return s.order
	}
	started := make([][]verdict.Event, len(s.order)+1)
	for _, e := range s.order {
		ats := s.txns[e.Txn].ats
		at := ats[len(ats)-1]
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
		s.state ^= mix(uint64(t), 5)
	}
	x.at = at
}

// restarts notes where a transaction has started when the order ends at a place where it was before.
func (s *search) restarts(t int32) {
	x, at := &s.txns[t], int32(none)
	for len(x.ats) > 0 && int(x.ats[len(x.ats)-1]) > len(s.order) {
		x.ats = x.ats[:len(x.ats)-1]
	}
	if len(x.ats) > 0 {
		at = x.ats[len(x.ats)-1]
	}
	for _, m := range x.makes {
		if past := s.uses(m.row).past; len(past) > 0 && s.txns[past[len(past)-1].t].place >= at {
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
	s.back(max(0, len(s.order)-windowLeast))
	clear(s.dead)
	return true
}

func (s *search) begin() {
	last := map[string]int32{}
	timed := !slices.ContainsFunc(s.h.Txns, func(t record.Transaction) bool { return !t.HasTimes })
	for i := range s.h.Txns {
		t, x := &s.h.Txns[i], &s.txns[i]
		// Records stand nearly in the order of their ends.
		*x = searched{start: int64(i - windowLeast), end: int64(i), previous: none, at: none}
		if t.Status == record.Aborted {
			continue
		}
		s.coming = append(s.coming, int32(i))
		if p, is := last[t.Session]; is && s.rules.Sessions {
			x.previous, x.start = p, max(x.start, int64(p))
		}
		if timed {
			x.start, x.end = t.Start, t.End
		}
		for range writes(s.h.acts[i]) {
			s.size++
		}
		for _, a := range s.h.acts[i] {
			for range a.needs() {
				s.size++
			}
		}
		if t.Status == record.Committed {
			last[t.Session] = int32(i)
			s.undone++
		}
	}
	s.least = min(windowLeast, 2*len(last))
	slices.SortStableFunc(s.coming, func(a, b int32) int { return cmp.Compare(s.txns[a].start, s.txns[b].start) })
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

func (s *search) uses(r *row) *rowUses { return &s.rows[r.of.number][r.number] }

func (s *search) held(r *row) *version { return s.w.held(r) }

// register opens a transaction; false if it can't be in any order.
func (s *search) register(t int32) bool {
	x := &s.txns[t]
	x.lacks, x.makes, x.from = nil, nil, 0
	at, _ := slices.BinarySearchFunc(s.open, t, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.txns[a].end, s.txns[b].end), cmp.Compare(a, b))
	})
	s.open = slices.Insert(s.open, at, t)
	acts := s.h.acts[t]
	s.marks++
	mark := s.marks
	add := func(n need) {
		x.needs = append(x.needs, n)
		u := s.uses(n.row)
		u.needs = append(u.needs, rowNeed{t, int32(len(x.needs) - 1)})
		u.sign ^= n.sign(t)
	}
	for i := range acts {
		a := &acts[i]
		if a.statement != nil {
			s.asks, x.asks = append(s.asks, a.statement), append(x.asks, a.statement)
			for _, m := range x.makes {
				add(need{row: m.row, st: a.statement, free: true})
			}
		}
		for n := range a.needs() {
			switch u := s.uses(n.row); {
			case s.isUnasked(t, n.row):
			case u.mark != mark:
				add(n)
			case !n.met(x.makes[u.own].v):
				return false
			}
		}
		for r, v := range writes(acts[i : i+1]) {
			u := s.uses(r)
			if u.mark == mark {
				x.makes[u.own].v = v
				continue
			}
			u.mark, u.own = mark, int32(len(x.makes))
			x.makes = append(x.makes, makes{r, v})
		}
	}
	s.work += len(x.needs) + len(x.makes)
	for _, m := range x.makes {
		u := s.uses(m.row)
		u.writes = append(u.writes, rowWrite{t, m.v.num()})
		u.sign ^= m.sign(t)
	}
	return true
}

// needs are the rows that an operation found.
func (a *act) needs() iter.Seq[need] {
	return func(yield func(need) bool) {
		switch {
		case a.statement != nil:
			for n := range a.statement.rows {
				if !yield(need{row: a.statement.row(n), st: a.statement, n: n}) {
					return
				}
			}
		case !a.isWrite:
			yield(need{row: a.row, read: a.made})
		}
	}
}

// met tells whether a version of the row is what was found.
func (n *need) met(v *version) bool {
	switch {
	case n.free:
		return true
	case n.st == nil:
		return v == n.read
	}
	return v != nil && v == n.st.saw(n.n) || v.matched(n.st.where) && n.st.sees(n.n, v)
}

func (s *search) isUnasked(t int32, r *row) bool {
	return s.h.unasked != nil && s.h.unasked(int(t), r.key)
}

// of are what a transaction needs of a row, by the shorter of the two lists that have it.
func (s *search) of(t int32, r *row) iter.Seq[*need] {
	return func(yield func(*need) bool) {
		x, u := &s.txns[t], s.uses(r)
		if len(x.needs) < len(u.needs) {
			for i := range x.needs {
				if n := &x.needs[i]; n.row == r && !yield(n) {
					return
				}
			}
			return
		}
		for _, n := range u.needs {
			if n.t == t && !yield(&x.needs[n.i]) {
				return
			}
		}
	}
}

// has tells whether a row was found by a statement, or is none that it could have found.
func (s *search) has(r *row, st *statement) bool {
	for n := range s.of(int32(st.txn), r) {
		if n.st == st {
			return true
		}
	}
	return false
}

// fits tells whether a version of a row is what a transaction found of it, and all its statements.
func (s *search) fits(t int32, r *row, v *version) bool {
	if s.isUnasked(t, r) {
		return true
	}
	s.work += min(len(s.txns[t].needs), len(s.uses(r).needs))
	for n := range s.of(t, r) {
		if !n.met(v) {
			return false
		}
	}
	for _, st := range s.txns[t].asks {
		if st.of == r.of && v.matched(st.where) && !s.has(r, st) {
			return false
		}
	}
	return true
}

// follow are the transactions that may follow, the likeliest first.
func (s *search) follow() []int32 {
	if s.dead[s.state] {
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
		if x.at == none && (x.lacks == nil || s.held(x.lacks) != x.held) {
			if x.lacks = s.lack(t); x.lacks != nil {
				if x.held = s.held(x.lacks); committed && !s.willFit(t, x.lacks) {
					s.dead[s.state] = true
					return nil
				}
			}
		}
		if x.at == none && x.lacks != nil {
			wanted[x.lacks] = wanted[x.lacks] || committed
			continue
		}
		if s.rules.Starts && x.at == none {
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
		if committed && x.start > late {
			continue // before what it takes away is looked at, which is long
		}
		taken := s.takes(t)
		switch {
		case taken == forGood:
		case !committed:
			unknown = append(unknown, t)
		case x.start > end && len(likely) > 0 && s.loose == 0:
		case x.start > end:
			early = append(early, t)
		case taken == forNow && t != first:
			taking = append(taking, t)
		default:
			likely = append(likely, t)
		}
	}
	if s.dead[s.state] { // somebody has started
		return nil
	}
	// What is not known to have happened has, only if somebody found it.
	for _, t := range unknown {
		if slices.ContainsFunc(s.txns[t].makes, func(m makes) bool { return wanted[m.row] }) {
			early = append(early, t)
		}
	}
	return append(append(likely, taking...), early...)
}

// willFit tells whether somebody who is open makes a row what a transaction found.
func (s *search) willFit(t int32, r *row) bool {
	for _, o := range s.uses(r).writes {
		if o.t != t && s.fits(t, r, r.of.versions[o.v]) && s.txns[o.t].start <= s.txns[t].end+s.slack(t) {
			return true
		}
	}
	return s.mayMeetMore(t)
}

// lack is a row that is not what a transaction found, if there is one.
func (s *search) lack(t int32) *row {
	x := &s.txns[t]
	s.work += len(x.needs)
	for i := range x.needs { // what was not met last first
		i = (x.from + i) % len(x.needs)
		if n := &x.needs[i]; !n.met(s.held(n.row)) {
			x.from = i
			return n.row
		}
	}
	acts := s.h.acts[t]
	clear(s.w.own)
	for i := range acts {
		if st := acts[i].statement; st != nil {
			s.marks++
			for _, r := range st.rows {
				s.rows[st.of.number][r].mark = s.marks
			}
			for r := range s.w.matching(st.of, st.where) {
				if s.uses(r).mark != s.marks && !s.isUnasked(t, r) {
					return r
				}
			}
		}
		if i+1 < len(acts) {
			for r, v := range writes(acts[i : i+1]) {
				s.w.own[r] = v
			}
		}
	}
	return nil
}

// taken is what a transaction takes away that open ones found: nothing, what somebody else may bring back, or
// what nobody does.
type taken int

const (
	nothing taken = iota
	forNow
	forGood
)

// likeness is what a row is looked at for.
type likeness struct {
	held, made *version
	sign       uint64
}

// takes tells what a transaction takes away.
func (s *search) takes(t int32) (out taken) {
	x := &s.txns[t]
	clear(s.alike)
	s.marks++
	if s.rules.Starts {
		s.clashes(t, func(o int32) { s.txns[o].clash = s.marks })
	}
	var last likeness
	var finds *version
	var finding []*statement
	for _, m := range x.makes {
		u, held := s.uses(m.row), s.held(m.row)
		like := likeness{held, m.v, u.sign}
		if like == last || s.alike[like] {
			continue
		}
		last, s.alike[like] = like, true
		s.work += 1 + len(u.needs)
		for _, n := range u.needs {
			if n.t != t && !s.txns[n.t].needs[n.i].met(m.v) {
				out = max(out, s.takesFrom(n.t, m, t))
			}
		}
		if finds != m.v {
			finds, finding = m.v, finding[:0]
			for _, st := range s.asks {
				if int32(st.txn) != t && m.v.matched(st.where) {
					finding = append(finding, st)
				}
			}
		}
		for _, st := range finding {
			if st.of == m.row.of && !held.matched(st.where) && !s.has(m.row, st) {
				out = max(out, s.takesFrom(int32(st.txn), m, t))
			}
		}
		if out == forGood {
			return out
		}
	}
	return out
}

// clashes are the open transactions that have started and write what another one writes.
func (s *search) clashes(t int32, do func(o int32)) {
	for _, m := range s.txns[t].makes {
		for _, o := range s.uses(m.row).writes {
			if o.t != t && s.txns[o.t].at != none {
				do(o.t)
			}
		}
	}
}

// takesFrom tells what a write takes away from somebody who does not find it.
func (s *search) takesFrom(from int32, m makes, t int32) taken {
	if f := &s.txns[from]; f.at != none && f.clash != s.marks {
		return nothing // it has found it
	}
	if s.h.Txns[from].Status != record.Committed || s.isUnasked(from, m.row) || !s.fits(from, m.row, s.held(m.row)) {
		return nothing
	}
	for _, o := range s.uses(m.row).writes {
		if o.t != t && o.t != from && s.txns[o.t].start <= s.txns[from].end+s.slack(from) &&
			s.fits(from, m.row, m.row.of.versions[o.v]) {
			if s.txns[from].start > s.txns[t].end {
				return nothing
			}
			return forNow
		}
	}
	if s.mayMeetMore(from) {
		return forNow
	}
	return forGood
}

// mayMeetMore tells whether a transaction may have run beside one that is not open yet.
func (s *search) mayMeetMore(t int32) bool {
	return s.next < len(s.coming) && s.txns[s.coming[s.next]].start <= s.txns[t].end+s.slack(t)
}

func mix(a, b uint64) uint64 {
	a = (a ^ b) * 0x9E3779B97F4A7C15
	return a ^ a>>29
}

func (v *version) sign(x uint64) uint64 {
	if v == nil {
		return mix(x, 0)
	}
	return mix(x, uint64(v.number))
}

func (n *need) sign(t int32) uint64 {
	x, v := uint64(t)<<32+1, n.read
	if n.st != nil {
		x += 2 * n.st.number
		if !n.free {
			v = n.st.saw(n.n)
		}
	}
	return v.sign(x)
}

func (m makes) sign(t int32) uint64 { return m.v.sign(uint64(t) << 32) }

// do puts a transaction at the end of the order.
func (s *search) do(t int32) {
	x := &s.txns[t]
	x.isDone, x.place = true, int32(len(s.order))
	s.starts(t, none)
	s.clashes(t, func(o int32) { s.starts(o, none) })
	s.state ^= mix(uint64(t), 3)
	s.order = append(s.order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
	for _, m := range x.makes {
		u := s.uses(m.row)
		u.past = append(u.past, rowWrite{t, m.v.num()})
		s.put(m.row, m.v)
	}
	s.close(t)
	if s.h.Txns[t].Status == record.Committed {
		s.undone--
	}
}

func (s *search) put(r *row, v *version) {
	x := mix(uint64(r.of.number), uint64(r.number))
	s.state ^= s.held(r).sign(x) ^ v.sign(x)
	s.w.put(r, v)
}

// close takes a transaction out of those that are open.
func (s *search) close(t int32) {
	x := &s.txns[t]
	for i := range x.needs {
		n := &x.needs[i]
		u := s.uses(n.row)
		u.sign ^= n.sign(t)
		j := slices.Index(u.needs, rowNeed{t, int32(i)})
		last := len(u.needs) - 1
		u.needs[j] = u.needs[last]
		u.needs = u.needs[:last]
	}
	for _, m := range x.makes {
		u := s.uses(m.row)
		u.sign ^= m.sign(t)
		u.writes = slices.DeleteFunc(u.writes, func(o rowWrite) bool { return o.t == t })
	}
	x.needs, x.asks, x.makes = nil, nil, nil
	s.asks = slices.DeleteFunc(s.asks, func(st *statement) bool { return int32(st.txn) == t })
	s.open = slices.DeleteFunc(s.open, func(o int32) bool { return o == t })
}

// back takes back all from a place in the order on.
func (s *search) back(to int) {
	for ; len(s.order) > to; s.order = s.order[:len(s.order)-1] {
		t := int32(s.order[len(s.order)-1].Txn)
		s.txns[t].isDone = false
		s.state ^= mix(uint64(t), 3)
		for r := range writes(s.h.acts[t]) {
			u := s.uses(r)
			n := len(u.past)
			if n == 0 || u.past[n-1].t != t {
				continue // it wrote it twice
			}
			var v *version
			if u.past = u.past[:n-1]; n > 1 {
				v = r.of.versions[u.past[n-2].v]
			}
			s.put(r, v)
		}
		if s.h.Txns[t].Status == record.Committed {
			s.undone++
		}
		s.register(t)
	}
	for _, t := range s.open {
		s.txns[t].lacks = nil
		s.restarts(t)
	}
}
