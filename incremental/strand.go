package incremental

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/version"
)

// strand is one reading of a history: its versions, and a polygraph for each
// kind of graph that is asked of it; only one if some read has several
// candidates, as polygraphs may decide differently. The engine's main strand
// holds the whole history; others re-read it, or a part of it, without times.
//
//	add → write* → read*, choose*, follow* → settle        for each transaction, in slot order
//
// In bulk: add for all, write for all, read for all, then finish.
//
// A strand without polygraphs is the table of versions, and nothing else.
type strand struct {
	tab   version.Table
	polys []*constraint.Polygraph
	// loose: a transaction that read a version and overwrote it need not have done
	// so at once, as at prefix consistency, so that no read is withdrawn and what a
	// loose strand was told can be told any other. Its polygraphs agree on that.
	loose bool
	// keepAllReaders: sessions are not ordered, so no reader stands for another
	keepAllReaders bool

	last    []version.Slot    // by session: the latest transaction on its chain
	session []sessionID       // by slot
	line    []constraint.Line // by slot: the total order it lies on, be it alone
	fresh   []version.ID      // versions not yet given to the polygraphs
	isFresh []bool            // by version: made by a write and not given yet

	ops      []slotOps                     // by slot
	decided  map[version.Slot][]version.ID // ambiguous reads that a polygraph decided
	versions []version.ID                  // of ops
	choices  []ambiguous
	lists    []succession
	disputed map[version.Key]bool // keys of which a list contradicts what was read; see follow
	misled   map[version.Key]bool // keys of which a list contradicts what a polygraph decided
	// ruledOut are transactions that can't have taken effect.
	ruledOut []version.Slot
	// exclusive are pairs of which one at most took effect.
	exclusive [][2]version.Slot
	// candidates are all that an ambiguous read can be of.
	candidates func(version.Slot, version.Key) []version.ID
	// untimed: no polygraph has times, by which blocks that come early would be ordered.
	untimed bool
	// holds: what is written now does not become a block before reads of its key are
	// chosen or given, which have to know of it.
	holds bool
}

// slotOps say where a transaction's external reads and final writes lie in
// strand.versions: without pointers, as there are many.
type slotOps struct{ reads, writes few }

// few are n versions from at on, with room for as many as room.
type few struct{ at, n, room uint32 }

// strandTxn is what a strand is told of a transaction.
type strandTxn struct {
	session    sessionID
	start, end int64
	timed      bool
	prev       version.Slot // its predecessor, or none
	open       bool         // its outcome is unknown: it precedes nothing in its session
	base       bool         // it is of the time before all others, and follows nothing
	first      version.Slot // of a base: the first of the others, or none if its end is not known
	uncertain  bool         // it is not known whether it is in the history
	lsn        int64        // where it committed in the database's log, or 0
}

// ambiguous is a read of several candidates.
type ambiguous struct {
	slot    version.Slot
	key     version.Key
	guarded bool
}

// succession: v follows prev at once, as a list shows.
type succession struct{ prev, v version.ID }

func newStrand(cfgs []constraint.Config) *strand {
	s := &strand{loose: len(cfgs) == 0 || cfgs[0].Prefix, untimed: true}
	for _, c := range cfgs {
		s.untimed = s.untimed && !c.RealTime
		if c.Prefix != s.loose {
			panic("incremental: a strand of prefix consistency and of another level, which can't happen, because open makes " +
				"one for each")
		}
		s.polys = append(s.polys, constraint.New(c, &s.tab, s))
		s.keepAllReaders = !c.Sessions
	}
	return s
}

// expect makes room for n transactions.
func (s *strand) expect(n int) {
	s.ops, s.session, s.line = slices.Grow(s.ops, n), slices.Grow(s.session, n), slices.Grow(s.line, n)
	for _, p := range s.polys {
		p.Expect(n)
	}
}

// reuse takes the memory of old, a strand that must not be used any more, for s, which
// is empty.
func (s *strand) reuse(old *strand) {
	s.tab = old.tab.Spare()
	s.ops, s.session, s.line, s.versions = old.ops[:0], old.session[:0], old.line[:0], old.versions[:0]
	s.fresh, s.isFresh = old.fresh[:0], old.isFresh[:0]
	for i, p := range s.polys {
		if i < len(old.polys) {
			p.Reuse(old.polys[i])
		}
	}
}

// Reads are the external reads of a transaction, as far as they are known.
func (s *strand) Reads(x version.Slot) []version.ID {
	if len(s.decided) == 0 {
		return s.reads(x)
	}
	decided := s.decided[x]
	if len(decided) == 0 {
		return s.reads(x)
	}
	return slices.Concat(s.reads(x), decided)
}

// Writes are the final writes of a transaction, good until the next add, write or read.
func (s *strand) Writes(x version.Slot) []version.ID { return s.these(s.ops[x].writes) }

// AllCandidates, Decided, Held and TakeFresh: see constraint.Reading.
func (s *strand) AllCandidates(x version.Slot, k version.Key) []version.ID { return s.candidates(x, k) }

func (s *strand) Decided(x version.Slot, v version.ID) {
	if s.decided == nil {
		s.decided = map[version.Slot][]version.ID{}
	}
	s.decided[x] = append(s.decided[x], v)
	s.addReader(x, v)
}

func (s *strand) Held(v version.ID) bool { return s.isFresh[v] }

func (s *strand) TakeFresh(v version.ID) bool {
	fresh := s.isFresh[v]
	s.isFresh[v] = false
	return fresh
}

// add takes in the next transaction, with room for so many reads and writes.
func (s *strand) add(t strandTxn, reads, writes int) version.Slot {
	slot := version.Slot(len(s.ops))
	s.ops = append(s.ops, slotOps{reads: s.room(reads), writes: s.room(writes)})
	s.session = append(s.session, t.session)
	x := constraint.Txn{Prev: t.prev, Start: t.start, End: t.end, Timed: t.timed, Open: t.open, Base: t.base,
		First: t.first}
	if t.open || t.base {
		x.Chain = reach.Alone
		s.session[slot] = ^sessionID(slot) // stands for no other reader
	} else {
		for int(t.session) >= len(s.last) {
			s.last = append(s.last, version.None)
		}
		x.Chain, x.Prev = reach.Chain(t.session), s.last[t.session]
		s.last[t.session] = slot
	}
	if t.open || !t.timed {
		s.tab.Endless(slot)
	}
	if t.lsn != 0 {
		s.tab.Commits(slot, t.lsn)
	}
	x.Line = constraint.Line(x.Chain)
	if s.keepAllReaders || t.open || t.base {
		x.Line = ^constraint.Line(slot)
	}
	s.line = append(s.line, x.Line)
	for _, p := range s.polys {
		p.Add(x)
		if t.uncertain {
			p.Uncertain(slot)
		}
	}
	return slot
}

// byLine sorts versions by the total order that their writers lie on, then slot.
func (s *strand) byLine(vs []version.ID) {
	slices.SortFunc(vs, func(a, b version.ID) int {
		x, y := s.tab.At(a).Writer, s.tab.At(b).Writer
		return cmp.Or(cmp.Compare(s.line[x], s.line[y]), cmp.Compare(x, y))
	})
}

// room is room for n versions.
func (s *strand) room(n int) few {
	f := few{at: uint32(len(s.versions)), room: uint32(n)}
	s.versions = append(s.versions, make([]version.ID, n)...)
	return f
}

// push adds a version to f.
func (s *strand) push(f *few, v version.ID) {
	if f.n == f.room { // more than was announced, as a list may show
		old := s.these(*f)
		*f = s.room(int(2*f.n + 2))
		f.n = uint32(copy(s.versions[f.at:], old))
	}
	s.versions[f.at+f.n] = v
	f.n++
}

func (s *strand) these(f few) []version.ID { return s.versions[f.at : f.at+f.n : f.at+f.n] }

// reads are those of a transaction that no polygraph decided, good until the next add, write or read.
func (s *strand) reads(x version.Slot) []version.ID { return s.these(s.ops[x].reads) }

// write makes the version that slot's last write to key gave it.
func (s *strand) write(slot version.Slot, key version.Key) version.ID {
	v := s.tab.New(key, version.Written, slot)
	if len(s.polys) > 0 {
		s.isFresh = append(s.isFresh, true)
		s.fresh = append(s.fresh, v)
	}
	s.push(&s.ops[slot].writes, v)
	for _, p := range s.polys {
		if s.holds {
			p.Hold(v)
		} else {
			p.Wrote(v)
		}
	}
	before, behind := s.tab.Log(v)
	for _, p := range s.polys {
		for _, prev := range before {
			p.Logged(prev, v)
		}
		for _, next := range behind {
			p.Logged(v, next)
		}
	}
	return v
}

// writeOf is the version that slot made of key, or none.
func (s *strand) writeOf(slot version.Slot, key version.Key) version.ID {
	for _, x := range s.Writes(slot) {
		if s.tab.At(x).Key == key {
			return x
		}
	}
	return version.None
}

// source makes a version without a writer that was seen.
func (s *strand) source(key version.Key, kind version.Kind) version.ID {
	v := s.tab.New(key, kind, version.None)
	if len(s.polys) > 0 {
		s.isFresh = append(s.isFresh, false)
	}
	return v
}

// read takes in that slot read v. If slot also wrote the key, its write follows
// v at once, unless the strand is loose; where another's does already, that is a
// divergence: the read is withdrawn and the other's version returned.
func (s *strand) read(slot version.Slot, v version.ID) (other version.ID, diverges bool) {
	if s.loose {
		s.noteRead(slot, v, s.polys)
		return version.None, false
	}
	w := s.writeOf(slot, s.tab.At(v).Key)
	next := s.tab.At(v).Next
	if w != version.None && next != version.None && next != w {
		if !s.decidedToFollow(v, next) {
			return next, true
		}
		// A polygraph took v for what another transaction read that overwrote it,
		// and will find that both can't be. There is none if its levels go without times now.
		s.noteRead(slot, v, s.polys[:min(1, len(s.polys))])
		return version.None, false
	}
	if w != version.None && s.tab.At(w).Prev != version.None && s.tab.At(w).Prev != v {
		return s.tab.At(w).Prev, true // a list says that it follows another version
	}
	s.noteRead(slot, v, s.polys)
	// Taking the read in may have made a polygraph decide another one, of a
	// transaction that overwrote v as well; then it finds that both can't be.
	if w != version.None && s.tab.At(v).Next == version.None {
		s.overwrite(v, w)
	}
	return version.None, false
}

// noteRead notes a read and tells polys of it.
func (s *strand) noteRead(slot version.Slot, v version.ID, polys []*constraint.Polygraph) {
	s.push(&s.ops[slot].reads, v)
	s.addReader(slot, v)
	for _, p := range polys {
		p.Read(slot, v)
	}
}

// decidedToFollow: next follows v only because a polygraph decided that its
// writer, which may have read several versions, read v.
func (s *strand) decidedToFollow(v, next version.ID) bool {
	return slices.Contains(s.decided[s.tab.At(next).Writer], v)
}

func (s *strand) overwrite(v, w version.ID) {
	s.tab.Overwrite(v, w)
	if len(s.polys) == 0 {
		return
	}
	fresh := s.isFresh[w]
	s.isFresh[w] = false
	for _, p := range s.polys {
		p.Overwrite(v, w, fresh)
	}
}

// follow takes in that v, of the versions that were written by recorded
// transactions, is the next after prev, as a list shows. Where that contradicts
// what one of the two writers read, late is that one's version and first the
// version that it missed. From then on what was read is believed of the key, and no
// list: with half of the order of one the other half would prove what is not so.
//
// Where it contradicts only what a polygraph took a transaction to have read, it is
// that polygraph's affair: what made it do so does not hold, or its level does not.
func (s *strand) follow(prev, v version.ID) (late, first version.ID, clash bool) {
	a, b := s.tab.At(prev), s.tab.At(v)
	if s.disputed[a.Key] {
		return version.None, version.None, false
	}
	otherNext, otherPrev := a.Next != version.None && a.Next != v, b.Prev != version.None && b.Prev != prev
	if otherNext && !s.decidedToFollow(prev, a.Next) {
		s.dispute(a.Key)
		return a.Next, v, true
	}
	if otherPrev && !s.decidedToFollow(b.Prev, v) {
		s.dispute(a.Key)
		return v, prev, true
	}
	if otherNext || otherPrev || s.misled[a.Key] {
		s.mislead(a.Key)
		s.lists = append(s.lists, succession{prev, v})
		return version.None, version.None, false
	}
	s.lists = append(s.lists, succession{prev, v})
	if a.Kind == version.Written {
		for _, p := range s.polys {
			p.Follow(prev, v)
		}
	}
	if a.Next != v {
		s.overwrite(prev, v)
	}
	return version.None, version.None, false
}

// mislead has the polygraph say, once for a key, that it decided what can't be.
func (s *strand) mislead(k version.Key) {
	if s.misled[k] {
		return
	}
	if s.misled == nil {
		s.misled = map[version.Key]bool{}
	}
	s.misled[k] = true
	for _, p := range s.polys {
		p.Misled()
	}
}

func (s *strand) dispute(k version.Key) {
	if s.disputed == nil {
		s.disputed = map[version.Key]bool{}
	}
	s.disputed[k] = true
}

// choose takes in that slot read one of cands, versions of key by line and
// slot, and no other. It leaves the strand one polygraph.
func (s *strand) choose(slot version.Slot, key version.Key, cands []version.ID, guarded bool) {
	s.choices = append(s.choices, ambiguous{slot, key, guarded})
	for _, p := range s.polys {
		p.Ambiguous(slot, key, cands, guarded)
	}
}

// include: slot, of unknown outcome, took effect.
func (s *strand) include(slot version.Slot) {
	for _, p := range s.polys {
		p.Include(slot)
	}
}

// exclude: of a and b, of unknown outcome, one at most took effect.
func (s *strand) exclude(a, b version.Slot) {
	s.exclusive = append(s.exclusive, [2]version.Slot{a, b})
	for _, p := range s.polys {
		p.Exclude(a, b)
	}
}

// impossible: slot, of unknown outcome, can't have taken effect.
func (s *strand) impossible(slot version.Slot) {
	s.ruledOut = append(s.ruledOut, slot)
	for _, p := range s.polys {
		p.Impossible(slot)
	}
}

// addReader keeps, of each session, the last reader; one altogether, if there is no
// polygraph to ask for them.
func (s *strand) addReader(slot version.Slot, v version.ID) {
	if len(s.polys) == 0 {
		s.tab.AddReader(v, slot, func(version.Slot) bool { return true })
		return
	}
	if s.keepAllReaders {
		s.tab.AddReader(v, slot, nil)
		return
	}
	s.tab.AddReader(v, slot, func(r version.Slot) bool { return s.session[r] == s.session[slot] })
}

// settle gives the polygraphs the blocks that the last transaction began, and those
// that were held.
func (s *strand) settle() { s.settleOf(func(version.Slot) bool { return true }) }

// settleOf gives the polygraphs the blocks that transactions began of which due says so.
func (s *strand) settleOf(due func(version.Slot) bool) {
	all := s.fresh
	held := all[:0]
	for _, v := range all {
		switch {
		case !s.isFresh[v]:
		case !due(s.tab.At(v).Writer):
			held = append(held, v)
		default:
			s.isFresh[v] = false
			for _, p := range s.polys {
				p.Block(v)
			}
		}
	}
	s.fresh = held
}

// finish ends a bulk load.
func (s *strand) finish(stopEarly bool) {
	for _, p := range s.polys {
		p.Finish()
		if p.Found == 0 || !stopEarly {
			p.Blocks()
		}
	}
}
