package order

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
)

// A snapshot is
//
//	version   byte
//	scalars   time of day, watermark, counts, ticks, what is forgotten, …
//	partitions
//	sessions  by name: where each is, and of what waits the refs
//	odd items of what waits that what can't be told from its head
//	trials    what is on trial, by partition
//	bare      IDs of records with neither seq nor times
//	patience  places that were handed out, and when their records came
//	checksum  xxhash64 of all before, 8 bytes
//
// Numbers are varints; times are differences from the greatest end. A record
// that waits takes two to four bytes.

const snapshotVersion = 6

// Errors of Restore wrap ErrDamaged where the bytes are not what Snapshot wrote.
var ErrDamaged = errors.New("the snapshot of an order is damaged")

// Snapshot appends all that the Order knows to dst, except its Options and the IDs
// of records that it has handed out. Records that wait are told by their refs. The
// same state gives the same bytes. O(records that wait + sessions).
func (o *Order) Snapshot(dst []byte) []byte {
	from := len(dst)
	e := encoder{b: append(dst, snapshotVersion), base: o.greatest}
	e.int(o.greatest)
	o.scalars(&e)
	e.uint(uint64(len(o.partitions)))
	for i := range o.partitions {
		o.partitions[i].code(&e)
	}
	names := make([]string, 0, len(o.sessions))
	for name := range o.sessions {
		names = append(names, name)
	}
	slices.Sort(names)
	e.uint(uint64(len(names)))
	last := uint64(0)
	for _, name := range names {
		s := o.sessions[name]
		e.text(name)
		s.code(&e)
		last = o.writeItems(&e, s, last)
	}
	for i := range o.partitions {
		o.writeTrial(&e, &o.partitions[i].trial)
	}
	o.bare.old.write(&e)
	o.bare.cur.write(&e)
	o.patience.write(&e)
	return binary.LittleEndian.AppendUint64(e.b, xxhash.Sum64(e.b[from:]))
}

// Current tells whether a snapshot has the version that this program writes. What is no
// snapshot is current: Restore says what is wrong with it.
func Current(data []byte) bool {
	return len(data) == 0 || data[0] == snapshotVersion
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
	body := len(data) - 8
	if body < 1 || xxhash.Sum64(data[:body]) != binary.LittleEndian.Uint64(data[body:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	if data[0] != snapshotVersion {
		return nil, fmt.Errorf("the snapshot of an order has version %d, this program knows %d: use the program that wrote it, or begin anew", data[0], snapshotVersion)
	}
	o := blank(opt)
	d := decoder{in: wire.NewReader(data[1:body])}
	o.greatest = d.int()
	d.base = o.greatest
	o.scalars(&d)
	for range d.count(partitionMax, 8) {
		o.partitions = append(o.partitions, unheard)
		o.partitions[len(o.partitions)-1].code(&d)
	}
	last := uint64(0)
	for range d.count(len(data), 8) {
		s := &session{name: d.text(), head: nil32, tail: nil32}
		s.code(&d)
		if o.sessions[s.name] != nil {
			d.fail("session %q is there twice", s.name)
		}
		if n := int32(len(o.partitions)); s.partition < 0 || s.partition >= n || s.lastPartition < 0 || s.lastPartition >= n {
			d.fail("session %q is in no partition", s.name)
		}
		if len(s.holes) > holesMost {
			d.fail("session %q has %d holes", s.name, len(s.holes))
		}
		if d.err != nil {
			break
		}
		o.sessions[s.name] = s
		var err error
		if last, err = o.readItems(&d, s, last, load); err != nil {
			return nil, err
		}
	}
	o.readTrials(&d)
	o.bare.old.read(&d)
	o.bare.cur.read(&d)
	o.patience.read(&d)
	if d.err == nil && d.in.Len() > 0 {
		d.fail("%d bytes are left over", d.in.Len())
	}
	if o.level > LevelMax {
		d.fail("there is no level %d of the sample", o.level)
	}
	o.dirty = true
	if d.err != nil {
		return nil, d.err
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

// coder is an encoder or a decoder: what is coded is listed once for both.
type coder interface {
	num(*int64)     // any number
	time(*int64)    // near the greatest end
	bits(*uint64)   // a number that is not negative
	flags(...*bool) // at most eight
}

func (o *Order) scalars(c coder) {
	c.flags(&o.hasNow, &o.moved, &o.flushed, &o.forgot.any, &o.ticks.pending, &o.ticks.silent)
	c.num(&o.now)
	c.num(&o.patience.now)
	c.num(&o.patience.raw)
	c.num(&o.reachedAt)
	c.time(&o.watermark)
	c.time(&o.blocked)
	c.bits(&o.next)
	codeUint(c, &o.generation)
	codeUint(c, &o.fresh)
	c.num(&o.forgot.low)
	o.forgot.code(c)
	codeUint(c, &o.level)
	c.time(&o.ticks.last)
	c.time(&o.ticks.told)
	o.memory.code(c)
	o.bare.code(c)
	n := &o.counts
	for _, p := range []*int64{&n.Added, &n.Released, &n.Duplicates, &n.Contradictions, &n.Stale, &n.LeftOut, &n.Late, &n.TimesDropped, &n.Ahead,
		&n.SteppedBack, &n.Overlong, &n.Detached, &n.Forgotten, &n.Sessions, &n.Skipped, &n.Gaps, &n.Missing, &n.Forced, &n.Misnumbered} {
		c.num(p)
	}
}

func (r *reach) code(c coder) {
	c.num(&r.seq)
	c.time(&r.end)
	c.time(&r.key)
}

func (m *memory) code(c coder) {
	codeUint(c, &m.noted)
	c.bits(&m.from)
	c.bits(&m.since)
}

func (p *partition) code(c coder) {
	c.flags(&p.known, &p.heard, &p.skipped, &p.timed, &p.setBack)
	c.time(&p.greatest)
	c.num(&p.anchor)
	c.time(&p.observed)
	c.time(&p.caughtUp)
	c.num(&p.caughtAt)
	c.num(&p.ended)
	c.num(&p.active)
	c.num(&p.came)
	c.time(&p.gone)
	c.time(&p.goneNext)
}

func (s *session) code(c coder) {
	ahead, floored := s.aheadEnd != none, s.floor != reachesNothing
	started, holed := s.low != latest, s.holes != nil
	c.flags(&s.moved, &s.released, &s.hasSeq, &s.leftOut, &ahead, &floored, &started, &holed)
	codeUint(c, &s.partition)
	codeUint(c, &s.lastPartition)
	codeUint(c, &s.generation)
	c.num(&s.maxSeq)
	c.time(&s.topEnd)
	c.bits(&s.window)
	c.time(&s.maxEnd)
	c.time(&s.lastKey)
	c.time(&s.lastStart)
	c.time(&s.lastEnd)
	c.num(&s.lastSeq)
	if ahead {
		c.time(&s.aheadEnd)
	} else {
		s.aheadEnd = none
	}
	if floored {
		s.floor.code(c)
	} else {
		s.floor = reachesNothing
	}
	if started {
		c.time(&s.low)
	} else {
		s.low = latest
	}
	if holed {
		s.codeHoles(c)
	}
}

func (s *session) codeHoles(c coder) {
	n := uint8(len(s.holes))
	codeUint(c, &n)
	n = min(n, holesMost+1) // that many are too many
	s.holes = slices.Grow(s.holes, int(n))[:n]
	for i := range s.holes {
		x := &s.holes[i]
		c.num(&x.from)
		c.time(&x.low)
		c.num(&x.filled)
		c.time(&x.fills)
	}
}

// codeUint codes a number that is never negative.
func codeUint[T uint8 | uint16 | uint32 | int32 | int](c coder, v *T) {
	u := uint64(*v)
	c.bits(&u)
	*v = T(u)
}

// plain tells what an item of session s is if nothing is odd about it, so that
// its head tells it.
func plain(s *session, ref uint64, h *record.Head) item {
	it := item{key: h.End, start: h.Start, seq: s.maxSeq, ref: ref, id: h.ID, next: nil32, partition: s.partition, flags: isUsed | ofStatus(h.Status)}
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
func (o *Order) ordered(s *session) []int32 {
	var out []int32
	for i := s.head; i != nil32; i = o.at(i).next {
		out = append(out, i)
	}
	if len(s.strays) > 0 {
		out = append(out, s.strays...)
		slices.SortFunc(out, func(a, b int32) int {
			if o.before(a, b) {
				return -1
			}
			return 1
		})
	}
	return out
}

// writeItems writes what waits of s: the refs in session order; then those that
// plain would not give again. Which they are can be told without the head: what is
// not flagged has its end as its key.
func (o *Order) writeItems(e *encoder, s *session, last uint64) uint64 {
	items := o.ordered(s)
	e.uint(uint64(len(items)))
	odd, came := 0, o.patience.slotOf(o.greatest)
	for _, i := range items {
		it := o.at(i)
		e.int(int64(it.ref - last))
		e.int(it.came - came)
		came = it.came
		last = it.ref
		if it.odd(s) {
			odd++
		}
	}
	e.uint(uint64(odd))
	at := 0
	for n, i := range items {
		if it := o.at(i); it.odd(s) {
			e.uint(uint64(n - at))
			at = n
			it.code(e)
		}
	}
	return last
}

func (it *item) odd(s *session) bool {
	return it.flags&(hasTimes|isLate|isVague|isAhead|isOverlong|isDue|isDetached|isHeavy|isOnTrial) != hasTimes || it.partition != s.partition ||
		(it.flags&hasSeq == 0 && it.seq != s.maxSeq)
}

func (it *item) code(c coder) {
	codeUint(c, &it.flags)
	codeUint(c, &it.partition)
	c.time(&it.key)
	c.num(&it.seq)
	if it.flags&isHeavy != 0 {
		codeUint(c, &it.more)
	}
}

// readItems is the inverse of writeItems. Refs of what waits are loaded.
func (o *Order) readItems(d *decoder, s *session, last uint64, load func(uint64) (record.Head, error)) (uint64, error) {
	first, came := o.items.Len(), o.patience.slotOf(o.greatest)
	for range d.count(d.in.Len(), 2) {
		last += uint64(d.int())
		if d.err != nil {
			return 0, d.err
		}
		h, err := load(last)
		if err != nil {
			return 0, fmt.Errorf("record %d, which waits for its place: %w", last, err)
		}
		if h.Session != s.name {
			return 0, fmt.Errorf("%w: record %d is of session %q, not %q", ErrDamaged, last, h.Session, s.name)
		}
		it := plain(s, last, &h)
		came += d.int()
		it.came = came
		o.items.Push(it)
		o.Remember(last, &h)
	}
	n := first
	for i := range d.count(o.items.Len()-first, 5) {
		skip := d.count(o.items.Len()-n, 0)
		if n += skip; n >= o.items.Len() || (skip == 0 && i > 0) {
			d.fail("an item of session %q is none", s.name)
		}
		if d.err != nil {
			return 0, d.err
		}
		it := o.at(int32(n))
		was, own, end := it.flags, it.seq, it.key
		it.code(d)
		if it.flags&isAhead != 0 {
			it.start = end
		}
		if it.flags&isDetached != 0 {
			it.behind = behind(it.seq, own)
		}
		if (it.flags^was)&(isUsed|hasSeq|hasTimes|isCommitted|isUnknown) != 0 || it.partition < 0 || int(it.partition) >= len(o.partitions) {
			d.fail("what is said about record %d contradicts it", it.ref)
		}
	}
	for i := first; i < o.items.Len() && d.err == nil; i++ {
		if i > first && !o.before(int32(i-1), int32(i)) {
			d.fail("session %q is not in order", s.name)
		}
		o.push(s, int32(i))
		o.patience.enter(o.at(int32(i)).came)
		o.held++
		o.more += int(o.at(int32(i)).more)
	}
	if s.head != nil32 {
		o.put(s)
	}
	return last, d.err
}

func (o *Order) writeTrial(e *encoder, t *trial) {
	e.uint(uint64(len(t.ends)))
	if len(t.ends) == 0 {
		return
	}
	e.int(t.since)
	for i := range t.ends {
		x, ref := &t.ends[i], uint64(0)
		if x.own {
			ref = o.at(x.item).ref + 1
		}
		e.text(x.session)
		e.uint(ref)
		e.time(&x.end)
	}
}

// readTrials reads what is on trial. Of the records that wait it is just those that say so.
func (o *Order) readTrials(d *decoder) {
	waits := map[uint64]int32{}
	for i := range o.items.Len() {
		if it := o.at(int32(i)); it.flags&isOnTrial != 0 {
			waits[it.ref] = int32(i)
		}
	}
	for n := range o.partitions {
		t := &o.partitions[n].trial
		for i := range d.count(trialMost, 3) {
			if i == 0 {
				t.since = d.int()
			}
			x := probe{session: d.text()}
			ref := d.uint()
			d.time(&x.end)
			if ref > 0 {
				x.item, x.own = waits[ref-1], true
				if it, ok := waits[ref-1]; !ok || o.sessions[x.session] == nil || int(o.at(it).partition) != n {
					d.fail("record %d is on trial and does not wait", ref-1)
					return
				}
				delete(waits, ref-1)
			}
			t.ends = append(t.ends, x)
		}
	}
	if len(waits) > 0 {
		d.fail("%d records are on no trial that should be", len(waits))
	}
}

// write puts the IDs of a table out in an order of their own.
func (t *table) write(e *encoder) {
	all := make([]slot, 0, t.n)
	for i, s := range t.slots {
		if t.tags[i] != 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b slot) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	e.uint(uint64(len(all)))
	for _, s := range all {
		e.b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(e.b, s.id), s.content)
	}
}

func (t *table) read(d *decoder) {
	for range d.count(d.in.Len(), 16) {
		id, content := d.in.Fixed(), d.in.Fixed()
		t.insert(id, content)
	}
}

type encoder struct {
	b    []byte
	base int64
}

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)   { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) text(s string) { e.b = wire.AppendText(e.b, s) }

func (e *encoder) num(v *int64)   { e.int(*v) }
func (e *encoder) time(v *int64)  { e.int(*v - e.base) } // may wrap around, and so does its inverse
func (e *encoder) bits(v *uint64) { e.uint(*v) }

func (e *encoder) flags(vs ...*bool) {
	b := byte(0)
	for i, v := range vs {
		if *v {
			b |= 1 << i
		}
	}
	e.b = append(e.b, b)
}

// decoder reads what encoder wrote; after the first error everything is 0.
type decoder struct {
	in   wire.Reader
	base int64
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
	}
	d.in.Fail()
}

// there makes it an error if what was read last was not there.
func (d *decoder) there() {
	if !d.in.OK() {
		d.fail("it ends too early")
	}
}

func (d *decoder) uint() uint64 {
	v := d.in.Uint()
	d.there()
	return v
}

func (d *decoder) int() int64 {
	v := d.in.Int()
	d.there()
	return v
}

// count reads a number of things: at most limit, each of at least so many bytes.
func (d *decoder) count(limit, bytes int) int {
	n := d.uint()
	if bytes > 0 {
		limit = min(limit, d.in.Len()/bytes)
	}
	if n > uint64(limit) {
		d.fail("it counts %d of what can be %d", n, limit)
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return string(d.in.Take(uint64(d.count(d.in.Len(), 1)))) }

func (d *decoder) num(v *int64)   { *v = d.int() }
func (d *decoder) time(v *int64)  { *v = d.int() + d.base }
func (d *decoder) bits(v *uint64) { *v = d.uint() }

func (d *decoder) flags(vs ...*bool) {
	b := d.in.Byte()
	d.there()
	for i, v := range vs {
		*v = b>>i&1 != 0
	}
}
