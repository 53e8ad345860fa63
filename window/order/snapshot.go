package order

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
)

// A snapshot is
//
//	scalars   time of day, watermark, counts, ticks, what is forgotten, …
//	partitions
//	sessions  by name: where each is, and of what waits the refs
//	odd items of what waits that what can't be told from its head
//	trials    what is on trial, by partition
//	bare      IDs of records with neither seq nor times
//	patience  places that were handed out, and when their records came
//
// Numbers are varints; times are differences from the greatest end. A record
// that waits takes two to four bytes. Who keeps it has a checksum.

// Errors of Restore wrap ErrDamaged where the bytes are not what Snapshot wrote.
var ErrDamaged = errors.New("the snapshot of an order is damaged")

// Snapshot appends all that the Order knows to dst, except its Options and the IDs
// of records that it has handed out. Records that wait are told by their refs. The
// same state gives the same bytes. O(records that wait + sessions).
func (o *Order) Snapshot(dst []byte) []byte {
	c := coder{Coder: wire.Coder{B: dst}}
	_ = o.code(&c, nil) // only reading fails
	return c.B
}

// code lists what an Order knows.
func (o *Order) code(c *coder, load func(ref uint64) (record.Head, error)) error {
	c.Ints(&o.greatest)
	c.base = o.greatest
	o.scalars(c)
	wire.List(&c.Coder, &o.partitions, partitionMax, 8, func(p *partition) {
		if c.Reading {
			*p = unheard
		}
		p.code(c)
	})
	last, err := uint64(0), error(nil)
	wire.Table(&c.Coder, o.sessions, math.MaxInt, 8, func(name string, at **session) {
		if c.Reading {
			*at = &session{name: name, head: nil32, tail: nil32}
		}
		s := *at
		s.code(c)
		if !c.Reading {
			last = o.writeItems(c, s, last)
			return
		}
		if o.sessions[name] != nil {
			c.fail("session %q is there twice", name)
		}
		if n := int32(len(o.partitions)); s.partition < 0 || s.partition >= n || s.lastPartition < 0 || s.lastPartition >= n {
			c.fail("session %q is in no partition", name)
		}
		if c.there() && err == nil {
			last, err = o.readItems(c, s, last, load)
		}
	})
	if err != nil || !c.there() {
		return err
	}
	o.codeTrials(c)
	o.bare.old.code(c)
	o.bare.cur.code(c)
	o.patience.code(c)
	return nil
}

// Restore makes the Order that a snapshot was taken of. With the same options it
// goes on exactly as that one: the same records come out, flagged the same. load
// gives the head of a record that waits by its ref.
//
// The IDs of records that were handed out before are not in a snapshot. One of them
// that comes again is Stale, not Duplicate, unless Remember is told of it; and one
// with its ID and other content may be taken.
//
// Bytes that Snapshot did not write give an error that wraps ErrDamaged, at no more
// cost than their length.
func Restore(opt Options, data []byte, load func(ref uint64) (record.Head, error)) (*Order, error) {
	o := blank(opt)
	c := coder{Coder: wire.Reads(data)}
	if err := o.code(&c, load); err != nil {
		return nil, err
	}
	if c.OK() && c.Len() > 0 {
		c.fail("%d bytes are left over", c.Len())
	}
	if o.level > levelMax {
		c.fail("there is no level %d of the sample", o.level)
	}
	o.dirty = true
	if !c.there() {
		return nil, c.err
	}
	return o, nil
}

// RememberedFrom is the least ref of a record whose ID is remembered.
func (o *Order) RememberedFrom() uint64 { return o.memory.from }

// Remember tells a restored Order of a record that was added before the snapshot,
// so that it is recognised when it comes again. Those from RememberedFrom on are to be
// told, in order of ref; others are ignored. O(1).
func (o *Order) Remember(ref uint64, h *record.Head) {
	if m := o.remembers(h); h.ID != 0 && m == &o.memory && ref < o.next {
		m.recall(h.ID, h.Content, ref)
	}
}

func (o *Order) scalars(c *coder) {
	c.Flags(&o.hasNow, &o.moved, &o.flushed, &o.forgot.any, &o.ticks.pending, &o.ticks.silent, &o.returned, &o.overran)
	c.Ints(&o.now, &o.patience.now, &o.patience.raw, &o.reachedAt)
	c.times(&o.watermark, &o.mark, &o.blocked)
	c.Uints(&o.next)
	wire.Number(&c.Coder, &o.generation)
	wire.Number(&c.Coder, &o.fresh)
	c.Ints(&o.forgot.low)
	o.forgot.code(c)
	wire.Number(&c.Coder, &o.level)
	c.times(&o.ticks.last, &o.ticks.told)
	o.memory.code(c)
	o.bare.code(c)
	n := &o.counts
	c.Ints(&n.Added, &n.Released, &n.Duplicates, &n.Contradictions, &n.Stale, &n.LeftOut, &n.Late, &n.TimesDropped,
		&n.Ahead,
		&n.SteppedBack, &n.Overlong, &n.Detached, &n.Forgotten, &n.Sessions, &n.Skipped, &n.Gaps, &n.Missing, &n.Forced,
		&n.Misnumbered)
}

func (r *reach) code(c *coder) {
	c.Ints(&r.seq)
	c.times(&r.end, &r.key)
}

func (m *memory) code(c *coder) {
	wire.Number(&c.Coder, &m.noted)
	c.Uints(&m.from, &m.since)
}

func (p *partition) code(c *coder) {
	c.Flags(&p.known, &p.heard, &p.skipped, &p.timed, &p.setBack, &p.broker, &p.unnumbered, &p.returned)
	c.times(&p.greatest, &p.place, &p.turned)
	c.Ints(&p.behind, &p.behindBefore)
	c.Ints(&p.anchor)
	c.times(&p.observed, &p.caughtUp)
	c.Ints(&p.caughtAt, &p.ended, &p.active, &p.came)
	c.times(&p.gone, &p.goneNext)
}

func (s *session) code(c *coder) {
	ahead, floored := s.aheadEnd != none, s.floor != reachesNothing
	started, holed := s.low != latest, s.holes != nil
	c.Flags(&s.moved, &s.released, &s.hasSeq, &s.leftOut, &ahead, &floored, &started, &holed)
	wire.Number(&c.Coder, &s.partition)
	wire.Number(&c.Coder, &s.lastPartition)
	wire.Number(&c.Coder, &s.generation)
	c.Ints(&s.maxSeq)
	c.times(&s.topEnd, &s.maxStart)
	c.Uints(&s.window)
	c.times(&s.maxEnd, &s.lastKey, &s.outStart, &s.lastStart, &s.lastEnd)
	c.Ints(&s.lastSeq)
	if ahead {
		c.times(&s.aheadEnd)
	} else {
		s.aheadEnd = none
	}
	if floored {
		s.floor.code(c)
	} else {
		s.floor = reachesNothing
	}
	if started {
		c.times(&s.low)
	} else {
		s.low = latest
	}
	if holed {
		s.codeHoles(c)
	}
}

func (s *session) codeHoles(c *coder) {
	wire.List(&c.Coder, &s.holes, holesMost, 4, func(x *hole) {
		c.Ints(&x.from)
		c.times(&x.low)
		c.Ints(&x.filled)
		c.times(&x.fills)
	})
}

// plain tells what an item of session s is if nothing is odd about it, so that
// its head tells it.
func plain(s *session, ref uint64, h *record.Head) item {
	it := item{key: h.End, start: h.Start, seq: s.maxSeq, ref: ref, id: h.ID, next: nil32, partition: s.partition,
		flags: isUsed | ofStatus(h.Status)}
	if h.HasTimes {
		it.flags |= hasTimes
	}
	if h.HasSeq {
		it.seq = h.Seq
		it.flags |= hasSeq
	}
	return it
}

// ordered are the items of s in session order.
func (o *Order) ordered(s *session) []turn {
	out := slices.Clone(s.strays)
	for i := s.head; i != nil32; i = o.at(i).next {
		out = append(out, o.turnOf(i))
	}
	slices.SortFunc(out, func(a, b turn) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.ref, b.ref)) })
	return out
}

// writeItems writes what waits of s: the refs in session order; then those that
// plain would not give again. Which they are can be told without the head: what is
// not flagged has its end as its key.
func (o *Order) writeItems(c *coder, s *session, last uint64) uint64 {
	items := o.ordered(s)
	c.uint(uint64(len(items)))
	odd, came := 0, o.patience.slotOf(o.greatest)
	for _, x := range items {
		it := o.at(x.item)
		c.int(int64(it.ref - last))
		c.int(it.came - came)
		came = it.came
		last = it.ref
		if it.odd(s) {
			odd++
		}
	}
	c.uint(uint64(odd))
	at := 0
	for n, x := range items {
		if it := o.at(x.item); it.odd(s) {
			c.uint(uint64(n - at))
			at = n
			it.code(c)
		}
	}
	return last
}

func (it *item) odd(s *session) bool {
	return it.flags&(hasTimes|isLate|isVague|isAhead|isOverlong|isDue|isDetached|isHeavy|isPassed|isOnTrial) != hasTimes ||
		it.partition != s.partition ||
		(it.flags&hasSeq == 0 && it.seq != s.maxSeq)
}

func (it *item) code(c *coder) {
	wire.Number(&c.Coder, &it.flags)
	wire.Number(&c.Coder, &it.partition)
	c.times(&it.key)
	c.Ints(&it.seq)
	if it.flags&isHeavy != 0 {
		wire.Number(&c.Coder, &it.more)
	}
}

// readItems is the inverse of writeItems. Refs of what waits are loaded.
func (o *Order) readItems(c *coder, s *session, last uint64, load func(uint64) (record.Head, error)) (uint64, error) {
	first, came := o.items.Len(), o.patience.slotOf(o.greatest)
	for range c.count(c.Len(), 2) {
		last += uint64(c.Int())
		if !c.there() {
			return 0, c.err
		}
		h, err := load(last)
		if err != nil {
			return 0, fmt.Errorf("record %d, which waits for its place: %w", last, err)
		}
		if h.Session != s.name {
			return 0, fmt.Errorf("%w: record %d is of session %q, not %q", ErrDamaged, last, h.Session, s.name)
		}
		it := plain(s, last, &h)
		came += c.Int()
		it.came = came
		o.items.Push(it)
		o.Remember(last, &h)
	}
	n := first
	for i := range c.count(o.items.Len()-first, 5) {
		skip := c.count(o.items.Len()-n, 0)
		if n += skip; n >= o.items.Len() || (skip == 0 && i > 0) {
			c.fail("an item of session %q is none", s.name)
		}
		if !c.there() {
			return 0, c.err
		}
		it := o.at(int32(n))
		was, own, end := it.flags, it.seq, it.key
		it.code(c)
		if it.flags&isAhead != 0 {
			it.start = end
		}
		if it.flags&isDetached != 0 {
			it.behind = behind(it.seq, own)
		}
		if (it.flags^was)&(isUsed|hasSeq|hasTimes|isCommitted|isUnknown) != 0 || it.partition < 0 ||
			int(it.partition) >= len(o.partitions) {
			c.fail("what is said about record %d contradicts it", it.ref)
		}
	}
	for i := first; i < o.items.Len() && c.there(); i++ {
		if i > first && !earlier(new(o.turnOf(int32(i-1))), new(o.turnOf(int32(i)))) {
			c.fail("session %q is not in order", s.name)
		}
		o.push(s, int32(i))
		o.patience.enter(o.at(int32(i)).came)
		o.held++
		o.more += int(o.at(int32(i)).more)
	}
	if s.head != nil32 {
		o.put(s)
	}
	return last, c.err
}

// codeTrials codes what is on trial. Of the records that wait it is just those that say so.
func (o *Order) codeTrials(c *coder) {
	waits := map[uint64]int32{} // that were read
	for i := int32(0); c.Reading && int(i) < o.items.Len(); i++ {
		if it := o.at(i); it.flags&isOnTrial != 0 {
			waits[it.ref] = i
		}
	}
	for n := range o.partitions {
		t := &o.partitions[n].trial
		wire.List(&c.Coder, &t.ends, trialMost, 3, func(x *probe) {
			if x == &t.ends[0] {
				c.Ints(&t.since)
			}
			ref := uint64(0)
			if x.own {
				ref = o.at(x.item).ref + 1
			}
			c.Texts(&x.session)
			c.Uints(&ref)
			if c.times(&x.end); !c.Reading || ref == 0 {
				return
			}
			it, ok := waits[ref-1]
			if x.item, x.own = it, true; !ok || o.sessions[x.session] == nil || int(o.at(it).partition) != n {
				c.fail("record %d is on trial and does not wait", ref-1)
			}
			delete(waits, ref-1)
		})
	}
	if len(waits) > 0 {
		c.fail("%d records are on no trial that should be", len(waits))
	}
}

// code codes the IDs of a table in an order of their own.
func (t *table) code(c *coder) {
	var all []slot
	for i, s := range t.slots {
		if t.tags[i] != 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b slot) int { return cmp.Compare(a.id, b.id) })
	wire.List(&c.Coder, &all, math.MaxInt, 16, func(s *slot) { c.Words(&s.id, &s.content) })
	for i := 0; c.Reading && i < len(all); i++ {
		t.insert(all[i].id, all[i].content)
	}
}

// coder codes a snapshot; after the first error everything that is read is 0.
type coder struct {
	wire.Coder
	base int64
	err  error
}

func (c *coder) uint(v uint64) { c.Uints(&v) } // writes
func (c *coder) int(v int64)   { c.Ints(&v) }

// times are near the greatest end; what wraps around does so again when it is read.
func (c *coder) times(ts ...*int64) {
	for _, t := range ts {
		v := *t - c.base
		if c.Ints(&v); c.Reading {
			*t = v + c.base
		}
	}
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
	}
	c.Fail()
}

// there tells whether all that was read was there.
func (c *coder) there() bool {
	if !c.OK() {
		c.fail("it ends too early, or a number is out of bounds")
	}
	return c.err == nil
}

// count reads a number of things: at most limit, each of at least so many bytes.
func (c *coder) count(limit, bytes int) int {
	if bytes == 0 {
		n := c.Uint()
		if n > uint64(limit) {
			c.fail("it counts %d of what can be %d", n, limit)
			return 0
		}
		return int(n)
	}
	return c.Count(limit, bytes)
}
