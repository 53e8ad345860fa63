// Package linear decides linearizability of registers by searching an order of each object's
// transactions by itself: lin is local, so that a history is linearizable exactly if what every
// object was asked is (Herlihy and Wing, 1990). The search is that of Wing and Gong, with what failed
// remembered by what was done and what the object then held (Lowe, 2017).
//
//	x:  ├ w 1 ┤   ├─ w 2 ─┤            available: who begins before the first end of all that is left
//	       ├──── r 1 ────┤             done at once: a read of what x holds, which changes nothing
//	                 ├ r 2 ┤           branches: writes, and who says what there was at first
//
// Where few operations overlap, which is nearly always, it takes a few steps for each. It stands before the
// polygraph, and takes from it what has neither lists nor predicates; what takes too many steps is left to it.
package linear

import (
	"cmp"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Options say what may be assumed, as a header does.
type Options struct {
	Initial record.Initial
	// Partial: who is not recorded may have written, at any time, what nobody recorded wrote or what many write,
	// but nothing else.
	Partial bool
	MaxSkew int64 // nanoseconds
	// Steps is how many may be tried of each object; 0 means StepsDefault.
	Steps int
}

// StepsDefault is some milliseconds.
const StepsDefault = 20_000

// Decide tells whether transactions, each of one object, are linearizable. What it does not decide is for
// others.
func Decide(txns []record.Transaction, opt Options) (holds, decided bool) {
	if opt.Steps == 0 {
		opt.Steps = StepsDefault
	}
	h := history{opt: opt, objects: map[string]*object{}, values: map[version]uint32{}}
	if !h.read(txns) {
		return false, false
	}
	holds, decided = true, true
	for _, o := range h.ordered {
		switch ok, known := h.linearizable(o); {
		case known && !ok:
			return false, true
		case !known:
			decided = false
		}
	}
	return holds, decided
}

// history numbers what transactions read and wrote.
type history struct {
	opt     Options
	objects map[string]*object
	ordered []*object // in the order in which they came
	values  map[version]uint32
	byValue []value
}

// version is a value of a key.
type version struct {
	key   string
	value record.Value
}

// value is a value of a cell, and who is still to read or to write it.
type value struct {
	cell     uint32 // of its object
	writer   int    // a transaction that wrote it, be it overwritten or aborted, or noWriter
	several  bool   // there are others
	common   bool   // many write it, as they delete what is there or put back what was there at first
	readers  int    // that are not done
	required int    // of these, who took effect, and can't have read it of the initial state
	writers  int    // that are not done
}

const noWriter = -1

// object has cells, one for each of its keys, and operations in the order of their starts.
type object struct {
	cells map[string]uint32
	held  []held // at first, by cell
	ops   []op
}

// held is what a cell holds: the number of a value, and two bits that say where it is from.
type held uint32

const (
	known   held = iota // somebody recorded wrote it, or it is what is stated of the initial state
	open                // nobody has read yet what there was at first
	foreign             // it was there at first, as somebody read
	origins = 4
)

func (h held) is(v uint32) bool { return h/origins == held(v) }
func (h held) origin() held     { return h % origins }

// op is what a transaction did.
type op struct {
	reads, writes []access
	start, end    int64 // the end with the skew; without a known one math.MaxInt64
	optional      bool  // it may not have taken effect
	like          int   // one that does the same, and begins and ends no later, and so may as well be the first; or noWriter
}

// access is a read of others' versions, or a last write.
type access struct {
	value uint32
	alien bool // of a read: no other transaction wrote it
}

// read takes transactions apart; false if there is what it can't judge.
func (h *history) read(txns []record.Transaction) bool {
	for i := range txns {
		for j := range txns[i].Ops {
			o := &txns[i].Ops[j]
			if o.Kind != record.Read && o.Kind != record.Write || o.Kind == record.Read && o.Value.Kind == record.KindList ||
				record.Object(o.Key) != record.Object(txns[i].Ops[0].Key) {
				return false
			}
			v := h.valueOf(o)
			if x := &h.byValue[v]; o.Kind == record.Write {
				x.several = x.several || x.writer != noWriter && x.writer != i
				x.writer = i
			}
		}
	}
	for i := range txns {
		t := &txns[i]
		if t.Status == record.Aborted || len(t.Ops) == 0 {
			continue
		}
		if t.HasTimes && t.End < t.Start {
			return false // its clock stepped back
		}
		x, possible := h.opOf(t, i)
		o := h.objects[record.Object(t.Ops[0].Key)]
		switch {
		case !possible && x.optional, x.optional && len(x.writes) == 0: // it matters to nobody
		case !possible:
			o.held = nil
		case o.held != nil:
			o.ops = append(o.ops, x)
		}
	}
	return true
}

func (h *history) objectOf(key string) *object {
	name := record.Object(key)
	o := h.objects[name]
	if o == nil {
		o = &object{cells: map[string]uint32{}}
		h.objects[name] = o
		h.ordered = append(h.ordered, o)
	}
	return o
}

// valueOf is the number of an operation's value.
func (h *history) valueOf(o *record.Op) uint32 {
	v, ok := h.values[version{o.Key, o.Value}]
	if ok {
		return v
	}
	x := h.objectOf(o.Key)
	cell, ok := x.cells[o.Key]
	if !ok {
		cell = uint32(len(x.held))
		x.cells[o.Key] = cell
		x.held = append(x.held, open)
		switch h.opt.Initial {
		case record.InitialAbsent:
			x.held[cell] = held(h.number(version{o.Key, record.Null}, cell))*origins + known
		case record.InitialZero:
			x.held[cell] = held(h.number(version{o.Key, record.Int(0)}, cell))*origins + known
		}
	}
	return h.number(version{o.Key, o.Value}, cell)
}

func (h *history) number(v version, cell uint32) uint32 {
	n, ok := h.values[v]
	if !ok {
		n = uint32(len(h.byValue))
		h.values[v] = n
		common := v.value.IsNull() || h.opt.Initial == record.InitialZero && v.value == record.Int(0)
		h.byValue = append(h.byValue, value{cell: cell, writer: noWriter, common: common})
	}
	return n
}

// opOf is what a transaction did; false if no database answers so, whatever it holds.
func (h *history) opOf(t *record.Transaction, i int) (op, bool) {
	x := op{start: math.MinInt64, end: math.MaxInt64, optional: t.Status == record.Unknown, like: noWriter}
	if t.HasTimes {
		x.start = t.Start
		if !x.optional && t.End < math.MaxInt64-h.opt.MaxSkew {
			x.end = t.End + h.opt.MaxSkew
		}
	}
	at := func(as []access, cell uint32) *access {
		for j := range as {
			if h.byValue[as[j].value].cell == cell {
				return &as[j]
			}
		}
		return nil
	}
	for j := range t.Ops {
		o := &t.Ops[j]
		v := h.valueOf(o)
		w := at(x.writes, h.byValue[v].cell)
		switch {
		case o.Kind == record.Write && w != nil:
			w.value = v
		case o.Kind == record.Write:
			x.writes = append(x.writes, access{value: v})
		case w != nil:
			if w.value != v {
				return x, false
			}
		default:
			if r := at(x.reads, h.byValue[v].cell); r != nil {
				if r.value != v {
					return x, false
				}
				continue
			}
			x.reads = append(x.reads, access{v, h.byValue[v].writer == noWriter || h.byValue[v].writer == i && !h.byValue[v].several})
		}
	}
	if h.opt.Partial {
		x.reads = slices.DeleteFunc(x.reads, func(r access) bool { return r.alien || h.byValue[r.value].common })
	}
	return x, true
}

// search is for an order of the operations of one object.
type search struct {
	values   []value
	ops      []op
	done     []uint64 // bits, by place in ops
	held     []held
	required int // that are left
	steps    int // that are left
	failed   map[string]bool
	key      []byte
	tried    []int // candidates of all that are being decided
}

// linearizable searches an order for an object; known is false if that takes too long.
func (h *history) linearizable(o *object) (ok, known bool) {
	if o.held == nil {
		return false, true
	}
	slices.SortStableFunc(o.ops, func(a, b op) int { return cmp.Compare(a.start, b.start) })
	s := search{values: h.byValue, ops: o.ops, held: o.held, done: make([]uint64, (len(o.ops)+63)/64), steps: h.opt.Steps}
	last := map[string]int{}
	for i := range s.ops {
		x := &s.ops[i]
		if len(x.writes) > 0 {
			s.key = x.effect(s.key[:0])
			if before, ok := last[string(s.key)]; ok && s.ops[before].end <= x.end && (x.optional || !s.ops[before].optional) {
				x.like = before
			}
			last[string(s.key)] = i
		}
		if !x.optional {
			s.required++
		}
		s.count(x, 1)
	}
	for i := range s.ops {
		if slices.ContainsFunc(s.ops[i].reads, func(r access) bool { return s.starved(r.value) }) {
			return false, true
		}
	}
	ok = s.next(0)
	return ok, ok || s.steps > 0
}

// effect is equal for operations that do the same.
func (x *op) effect(to []byte) []byte {
	for _, r := range x.reads {
		what := uint64(r.value) << 2
		if r.alien { // who wrote it later itself may read of the initial state what another may not
			what |= 1
		}
		to = number(to, what)
	}
	for _, w := range x.writes {
		to = number(to, uint64(w.value)<<2|2)
	}
	return to
}

// count adds an operation to those that are not done, or takes it away.
func (s *search) count(x *op, n int) {
	for _, r := range x.reads {
		s.values[r.value].readers += n
		if !x.optional && !r.alien {
			s.values[r.value].required += n
		}
	}
	for _, w := range x.writes {
		s.values[w.value].writers += n
	}
}

// starved: somebody has to read what nobody will write, and what is not there.
func (s *search) starved(v uint32) bool {
	x := &s.values[v]
	return x.required > 0 && x.writers == 0 && s.held[x.cell] != held(v)*origins+known
}

// next tells whether what is not done can be, all before from being done.
func (s *search) next(from int) bool {
	var read []int
	began := len(s.tried)
	for {
		for from < len(s.ops) && s.isDone(from) {
			from++
		}
		if s.required == 0 {
			return true
		}
		s.tried = s.available(from, s.tried[:began])
		n := len(read)
		for _, i := range s.tried[began:] { // who changes nothing may as well be next
			if x := &s.ops[i]; len(x.writes) == 0 && s.sees(x) {
				s.do(i)
				read = append(read, i)
			}
		}
		if len(read) == n {
			break
		}
	}
	ok := s.branch(from, s.tried[began:])
	s.tried = s.tried[:began]
	for _, i := range read {
		s.undo(i)
	}
	return ok
}

// branch tries each candidate.
func (s *search) branch(from int, candidates []int) bool {
	id := string(s.id(from))
	if s.failed[id] {
		return false
	}
	before := make([]held, 0, 8)
	for _, i := range candidates {
		x := &s.ops[i]
		if x.like != noWriter && !s.isDone(x.like) || x.optional && !s.useful(x) {
			continue
		}
		if s.steps--; s.steps <= 0 {
			return false
		}
		before = append(before[:0], s.held...)
		if s.apply(x) {
			s.do(i)
			starves := slices.ContainsFunc(x.writes, func(w access) bool {
				old := before[s.values[w.value].cell]
				return old.origin() == known && s.starved(uint32(old/origins))
			})
			if !starves && s.next(from) {
				return true
			}
			s.undo(i)
		}
		copy(s.held, before)
	}
	if s.steps > 0 {
		if s.failed == nil {
			s.failed = map[string]bool{}
		}
		s.failed[id] = true
	}
	return false
}

// available appends the operations that nobody else has to come before, the ones that end first in front.
func (s *search) available(from int, to []int) []int {
	began, end := len(to), int64(math.MaxInt64)
	for i := from; i < len(s.ops) && s.ops[i].start <= end; i++ {
		if !s.isDone(i) {
			to = append(to, i)
			end = min(end, s.ops[i].end)
		}
	}
	rest := slices.DeleteFunc(to[began:], func(i int) bool { return s.ops[i].start > end })
	to = to[:began+len(rest)]
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(s.ops[a].end, s.ops[b].end) })
	return to
}

// sees tells whether an operation reads what is there.
func (s *search) sees(x *op) bool {
	return !slices.ContainsFunc(x.reads, func(r access) bool {
		h := s.held[s.values[r.value].cell]
		return !h.is(r.value) || h.origin() == open || h.origin() == foreign && !r.alien
	})
}

// apply does an operation to what is held; false if it can't read what it did.
func (s *search) apply(x *op) bool {
	for _, r := range x.reads {
		h := &s.held[s.values[r.value].cell]
		switch {
		case h.origin() != open && h.is(r.value) && (h.origin() == known || r.alien):
		case r.alien && h.origin() == open:
			*h = held(r.value)*origins + foreign
		default:
			return false
		}
	}
	for _, w := range x.writes {
		s.held[s.values[w.value].cell] = held(w.value)*origins + known
	}
	return true
}

// useful: somebody may read what an operation would write.
func (s *search) useful(x *op) bool {
	return slices.ContainsFunc(x.writes, func(w access) bool {
		v := &s.values[w.value]
		return v.readers > 0 && s.held[v.cell] != held(w.value)*origins+known
	})
}

func (s *search) isDone(i int) bool { return s.done[i>>6]&(1<<(i&63)) != 0 }

func (s *search) do(i int) {
	s.done[i>>6] |= 1 << (i & 63)
	s.note(i, 1)
}

func (s *search) undo(i int) {
	s.done[i>>6] &^= 1 << (i & 63)
	s.note(i, -1)
}

func (s *search) note(i, n int) {
	x := &s.ops[i]
	s.count(x, -n)
	if !x.optional {
		s.required -= n
	}
}

// id says what is done, of which all before from is, and what is held, which always is as long.
func (s *search) id(from int) []byte {
	k := number(s.key[:0], uint64(from>>6))
	for last := len(s.done); from>>6 < last; last-- {
		if s.done[last-1] != 0 {
			for _, d := range s.done[from>>6 : last] {
				k = number(k, d)
			}
			break
		}
	}
	for _, h := range s.held {
		k = number(k, uint64(h))
	}
	s.key = k
	return k
}

// number appends eight bytes.
func number(to []byte, n uint64) []byte {
	return append(to, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48), byte(n>>56))
}
