package segment

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
)

// Snapshot appends all that the Cutter knows to dst. Equal Cutters give equal
// bytes. Cost: O(what is followed); with few sessions some hundreds of bytes.
func (c *Cutter) Snapshot(dst []byte) []byte {
	w := wire.Coder{B: dst}
	c.code(&w)
	return w.B
}

var errDamaged = errors.New("segment: the state of the cuts is damaged: rebuild the store")

// Restore makes the Cutter of which Snapshot told. The options need not be the
// same; other bounds hold from the next cut on. Bytes that Snapshot did not write are
// an error, or a Cutter that can go on: who keeps them has a checksum.
func Restore(opt Options, data []byte) (*Cutter, error) {
	c := New(opt)
	r := wire.Reads(data)
	if c.code(&r); !r.Done() || !c.sound() {
		return nil, errDamaged
	}
	for i, v := range c.fences.ring {
		c.fences.places[v] = c.fences.top - uint64(len(c.fences.ring)-1-i)
	}
	return c, nil
}

// code lists what a Cutter knows.
func (c *Cutter) code(w *wire.Coder) {
	w.Uints(&c.next, &c.last.From, &c.lastCount.untimed, &c.lastCount.unknown, &c.cutPlace, &c.straddled, &c.sessions.gone,
		&c.snaps.since)
	w.Ints(&c.now, &c.last.At)
	wire.Number(w, &c.last.Kind)
	wire.Number(w, &c.last.Straddlers)
	w.Flags(&c.last.Complete, &c.last.AssumingRealTime, &c.fences.on, &c.snaps.off)
	for _, l := range []*[]uint64{&c.last.Straddling, &c.steps.unknown, &c.steps.untimed, &c.snaps.blind} {
		wire.List(w, l, math.MaxInt, 1, func(pos *uint64) { w.Uints(pos) })
	}
	wire.Table(w, c.sessions.by, math.MaxInt, 8, func(name string, at **session) {
		if w.Reading {
			*at = &session{name: name}
		}
		s := *at
		w.Uints(&s.first, &s.last, &s.fenced, &s.snapped)
		w.Ints(&s.seen, &s.end)
		w.Flags(&s.timed, &s.partial)
		wire.List(w, &s.marks, marksMost, 3, func(m *mark) { w.Uints(&m.place, &m.pos, &m.next) })
	})
	wire.List(w, &c.steps.list, math.MaxInt, 4, func(s *step) { s.code(w) })
	c.steps.now.code(w)
	c.fences.code(w)
	wire.Table(w, c.snaps.keys, math.MaxInt, 2, func(_ string, at **written) {
		if w.Reading {
			*at = &written{}
		}
		k := *at
		w.Uints(&k.met)
		writes := k.writes[:k.n]
		wire.List(w, &writes, writesKept, 4, func(x *write) {
			value(w, &x.value)
			w.Uints(&x.pos)
			w.Texts(&x.session)
		})
		if w.Reading {
			k.n = copy(k.writes[:], writes)
		}
	})
}

func (s *step) code(w *wire.Coder) {
	w.Uints(&s.pos, &s.count.untimed, &s.count.unknown)
	w.Ints(&s.end)
}

func (f *fences) code(w *wire.Coder) {
	w.Texts(&f.key)
	value(w, &f.first)
	w.Uints(&f.top, &f.base)
	wire.Table(w, f.votes, votesMost, 1, func(_ string, n *int) { wire.Number(w, n) })
	wire.List(w, &f.ring, chainMost, 2, func(v *record.Value) { value(w, v) })
	wire.List(w, &f.wait, waitMost, 7, func(x *waiting) {
		value(w, &x.read)
		value(w, &x.wrote)
		w.Uints(&x.n)
		w.Texts(&x.session)
		w.Flags(&x.certain)
	})
}

func value(w *wire.Coder, v *record.Value) {
	wire.Number(w, &v.Kind)
	if v.Kind == record.KindInt {
		w.Ints(&v.Num)
	} else {
		w.Texts(&v.Text)
	}
}

// placeMost is more than positions in a stream and places in a chain reach.
const placeMost = 1 << 62

// sound tells whether what is used without another look is as it must be.
func (c *Cutter) sound() bool {
	steps, f := c.steps.list, &c.fences
	if len(steps) == 0 || !slices.IsSortedFunc(steps, func(a, b step) int { return cmp.Compare(a.pos, b.pos) }) ||
		steps[len(steps)-1].pos > c.next || c.last.From > c.next || c.next > placeMost || c.last.Kind > Fence ||
		f.top > placeMost || f.base > f.top+1 || f.base == 0 || uint64(len(f.ring)) > f.top {
		return false
	}
	for _, k := range c.snaps.keys {
		if k.n == 0 {
			return false
		}
	}
	return true
}
