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
	// unordered: sessions are not, so each transaction has a line of its own
	unordered bool

	last     []version.Slot // by session: the latest transaction on its chain
	settled  version.ID     // all versions before it were given to the polygraphs
	choices  []ambiguous
	lists    []succession
	disputed map[version.Key]bool // keys of which a list contradicts what was read; see follow
	misled   map[version.Key]bool // keys of which a list contradicts what a polygraph decided
	// ruledOut are transactions that can't have taken effect.
	ruledOut []version.Slot
	// exclusive are pairs of which one at most took effect.
	exclusive [][2]version.Slot
	// untimed: no polygraph has times, by which blocks that come early would be ordered.
	untimed bool
	// holds: what is written now does not become a block before reads of its key are
	// chosen or given, which have to know of it.
	holds bool
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
	s.tab.OneReader = len(cfgs) == 0
	for _, c := range cfgs {
		s.untimed = s.untimed && !c.RealTime
		if c.Prefix != s.loose {
			panic("incremental: a strand of prefix consistency and of another level, which can't happen, because open makes " +
				"one for each")
		}
		s.polys = append(s.polys, constraint.New(c, &s.tab))
		s.unordered = !c.Sessions
	}
	return s
}

// add takes in the next transaction, with room for so many reads and writes. It lies on the chain of its session; one
// that is open precedes nothing there, and a base follows nothing. lsn is where it committed in the database's log,
// or 0.
func (s *strand) add(x constraint.Txn, lsn int64, reads, writes int) version.Slot {
	slot := version.Slot(s.tab.Slots())
	if x.Open || x.Base {
		x.Chain = reach.Alone
	} else {
		for int(x.Chain) >= len(s.last) {
			s.last = append(s.last, version.None)
		}
		x.Prev, s.last[x.Chain] = s.last[x.Chain], slot
	}
	if x.Open || !x.Timed {
		s.tab.Endless(slot)
	}
	if lsn != 0 {
		s.tab.Commits(slot, lsn)
	}
	line := version.Line(x.Chain)
	if s.unordered || x.Open || x.Base {
		line = ^version.Line(slot)
	}
	s.tab.Add(line, reads, writes)
	for _, p := range s.polys {
		p.Add(x)
	}
	return slot
}

// byLine sorts versions by the total order that their writers lie on, then slot.
func (s *strand) byLine(vs []version.ID) {
	slices.SortFunc(vs, func(a, b version.ID) int {
		x, y := s.tab.At(a).Writer, s.tab.At(b).Writer
		return cmp.Or(cmp.Compare(s.tab.Line(x), s.tab.Line(y)), cmp.Compare(x, y))
	})
}

// write makes the version that slot's last write to key gave it.
func (s *strand) write(slot version.Slot, key version.Key) version.ID {
	v := s.tab.Write(slot, key)
	if len(s.polys) > 0 {
		s.tab.At(v).Fresh = true
	}
	for _, p := range s.polys {
		p.Wrote(v, s.holds)
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

// source makes a version without a writer that was seen.
func (s *strand) source(key version.Key, kind version.Kind) version.ID {
	return s.tab.New(key, kind, version.None)
}

// read takes in that slot read v. If slot also wrote the key, its write follows
// v at once, unless the strand is loose; where another's does already, that is a
// divergence: the read is withdrawn and the other's version returned.
func (s *strand) read(slot version.Slot, v version.ID) (other version.ID, diverges bool) {
	if s.loose {
		s.noteRead(slot, v, s.polys)
		return version.None, false
	}
	w := s.tab.WriteOf(slot, s.tab.At(v).Key)
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
	s.tab.Read(slot, v)
	for _, p := range polys {
		p.Read(slot, v)
	}
}

// decidedToFollow: next follows v only because a polygraph decided that its
// writer, which may have read several versions, read v.
func (s *strand) decidedToFollow(v, next version.ID) bool {
	return s.tab.Decided(s.tab.At(next).Writer, v)
}

func (s *strand) overwrite(v, w version.ID) {
	s.tab.Overwrite(v, w)
	if len(s.polys) == 0 {
		return
	}
	fresh := s.tab.At(w).Fresh
	s.tab.At(w).Fresh = false
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

// settle gives the polygraphs the blocks that the last transaction began, and those
// that were held.
func (s *strand) settle() { s.settleOf(func(version.Slot) bool { return true }) }

// settleOf gives the polygraphs the blocks that transactions began of which due says so.
func (s *strand) settleOf(due func(version.Slot) bool) {
	n := version.ID(s.tab.Len())
	held := n
	for v := s.settled; v < n; v++ {
		switch ver := s.tab.At(v); {
		case !ver.Fresh:
		case !due(ver.Writer):
			held = min(held, v)
		default:
			ver.Fresh = false
			for _, p := range s.polys {
				p.Block(v)
			}
		}
	}
	s.settled = held
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
