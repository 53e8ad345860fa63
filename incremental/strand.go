package incremental

import (
	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/version"
)

// strand is one reading of a history: its versions, and a polygraph for each
// kind of graph that is asked of it. The engine's main strand holds the whole
// history; others re-read it, or a part of it, without times.
//
//	add → write* → read* → settle        for each transaction, in slot order
//
// In bulk: add for all, write for all, read for all, then finish.
type strand struct {
	tab   version.Table
	polys []*constraint.Polygraph
	// keepAllReaders: sessions are not ordered, so no reader stands for another
	keepAllReaders bool

	session []uint32       // by slot
	last    []version.Slot // by session: its latest transaction
	fresh   []version.ID   // versions not yet given to the polygraphs
	isFresh []bool         // by version: made by a write and not given yet

	ops  []slotOps    // by slot
	slab []version.ID // room for ops
}

// slotOps are a transaction's external reads and final writes, by version.
type slotOps struct{ reads, writes []version.ID }

func newStrand(cfgs []constraint.Config) *strand {
	s := &strand{}
	for _, c := range cfgs {
		p := constraint.New(c, &s.tab)
		p.Reads = func(x version.Slot) []version.ID { return s.ops[x].reads }
		p.Writes = func(x version.Slot) []version.ID { return s.ops[x].writes }
		s.polys = append(s.polys, p)
		s.keepAllReaders = !c.Sessions
	}
	return s
}

// add takes in the next transaction of a session. like gives the numbers of its
// reads and writes, to make room for.
func (s *strand) add(session uint32, start, end int64, timed bool, like slotOps) version.Slot {
	slot := version.Slot(len(s.session))
	s.session = append(s.session, session)
	s.ops = append(s.ops, slotOps{s.room(len(like.reads)), s.room(len(like.writes))})
	for int(session) >= len(s.last) {
		s.last = append(s.last, version.None)
	}
	for _, p := range s.polys {
		p.Add(session, s.last[session], start, end, timed)
	}
	s.last[session] = slot
	return slot
}

// room returns an empty slice with room for n.
func (s *strand) room(n int) []version.ID {
	if len(s.slab) < n {
		s.slab = make([]version.ID, max(n, min(4096, 16+2*len(s.session)*n)))
	}
	r := s.slab[:0:n]
	s.slab = s.slab[n:]
	return r
}

// write makes the version that slot's last write to key gave it.
func (s *strand) write(slot version.Slot, key version.Key) version.ID {
	v := s.tab.New(key, version.Written, slot)
	s.isFresh = append(s.isFresh, true)
	s.fresh = append(s.fresh, v)
	s.ops[slot].writes = append(s.ops[slot].writes, v)
	return v
}

// source makes a version without a writer that was seen.
func (s *strand) source(key version.Key, kind version.Kind) version.ID {
	v := s.tab.New(key, kind, version.None)
	s.isFresh = append(s.isFresh, false)
	return v
}

// read takes in that slot read v. If slot also wrote the key, its write follows
// v at once; where another's does already, that is a divergence: the read is
// withdrawn and the other's version returned.
func (s *strand) read(slot version.Slot, v version.ID) (other version.ID, diverges bool) {
	w := version.None
	for _, x := range s.ops[slot].writes {
		if s.tab.At(x).Key == s.tab.At(v).Key {
			w = x
			break
		}
	}
	if w != version.None && s.tab.At(v).Next != version.None && s.tab.At(v).Next != w {
		return s.tab.At(v).Next, true
	}
	s.ops[slot].reads = append(s.ops[slot].reads, v)
	s.addReader(slot, v)
	for _, p := range s.polys {
		p.Read(slot, v)
	}
	if w == version.None || s.tab.At(v).Next == w {
		return version.None, false
	}
	s.tab.Overwrite(v, w)
	fresh := s.isFresh[w]
	s.isFresh[w] = false
	for _, p := range s.polys {
		p.Overwrite(v, w, fresh)
	}
	return version.None, false
}

// addReader keeps, of each session, the last reader.
func (s *strand) addReader(slot version.Slot, v version.ID) {
	if s.keepAllReaders {
		s.tab.AddReader(v, slot, nil)
		return
	}
	s.tab.AddReader(v, slot, func(r version.Slot) bool { return s.session[r] == s.session[slot] })
}

// settle gives the polygraphs the blocks that the last transaction began.
func (s *strand) settle() {
	for _, v := range s.fresh {
		if s.isFresh[v] {
			s.isFresh[v] = false
			for _, p := range s.polys {
				p.Block(v)
			}
		}
	}
	s.fresh = s.fresh[:0]
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
