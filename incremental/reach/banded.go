package reach

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
)

// Banded is the closure for histories with times: transactions are numbered by
// slot in the order of their recorded end, and real time is part of the order:
// u precedes v by the clock when end(u)+skew < start(v).
//
// What precedes v by the clock is then a prefix [0, l(v)) of the slots. Let
//
//	p(v) = max { l(x)    : x reaches v or x = v }
//	m(u) = min { slot(x) : u reaches the commit of x, x's end is known }
//
// Then u reaches v by some path with a step of time in it iff m(u) < p(v), and
// only the other pairs need a bit:
//
//	u reaches v  iff  m(u) < p(v)  or  bit(v, u).
//
// This is Vbox's compact closure (3.4, Italiano+) with the rows turned round:
// it keeps what reaches a node where the paper keeps what a node reaches,
// because streams add edges into new nodes, which nothing else can have seen
// yet. Space is O(d·n) bits, d being the number of transactions that overlap.
//
//	slots   0 ........ p(v) ........... slot(v) ......
//	        ^^^^^^^^^^ all reach v      row(v): one bit each, in sparse words
//
// Rows are sorted lists of non-zero words: a transaction that runs for minutes
// costs a word in the rows it touches, not a row as wide as its life. Words
// that fall below p(v) leave at the old end.
//
// A transaction without a known end (no times, or an unknown outcome) precedes
// nothing by the clock; its m comes from what it reaches. One that comes late, after
// others that ended later, has its slot among the last; with Late its m is the first of
// those, so that it precedes, also of what is there, all that that one precedes.
//
// Invariants: p and m are what their definitions say; row(v) holds every u with
// m(u) >= p(v) that reaches v, v itself included, and possibly more that reach
// v; the graph is acyclic.
type Banded struct {
	g     *graph.Graph
	parts uint32
	skew  int64

	end  []int64  // by slot, monotone; see Add
	l    []uint32 // by slot
	p, m []uint32 // by node
	row  []row    // by node
	// sufMinL[s] = min over slots t >= s of l(t): scans for what a slot can
	// still reach stop by it.
	sufMinL []uint32
	maxL    uint32
	// open has a bit for each node of a slot without a known end, in the words of
	// rows; opened is the first such slot, math.MaxUint32 if there is none.
	open   []uint64
	opened uint32
	// least is, for each block of blockSlots slots, a lower bound of p of those that
	// are no bases; most is the greatest p of those without a known end.
	least, most []uint32
	bases       bitset.BitSet
	first       uint32 // of the bases; see AddBase
	late        bitset.BitSet
	lates       []uint64            // the nodes of late slots, in the words of rows
	firsts      map[uint32]uint32   // of a late slot, the first that ended no earlier
	lateAt      map[uint32][]uint32 // and the other way round

	// Late: one that comes late is taken to have ended with the first that ended no earlier;
	// else with the last before it, as its clock may have been set back.
	Late bool

	// Heeds, if it is not nil, tells whether anybody wants to know of a node that something
	// new reaches it by the prefix rule.
	Heeds func(Node) bool

	slab    [][]word // pages that rows lie in
	spare   [][]word // pages to use again, of rowPage words
	bytes   int      // of rows
	scratch []word
	kept    []word
	stack   []Node
	told    []Node
}

// word is 64 columns of a row; idx counts words.
type word struct {
	bits uint64
	idx  uint32
}

// row says where a row lies: without pointers, as there are many. page and off
// are into Banded.slab.
type row struct {
	page, off uint32
	n, room   uint32
}

// rowPage is the number of words of a page; a longer row has its own.
const rowPage = 4096

const wordSize = int(unsafe.Sizeof(word{}))

// NewBanded makes an empty closure over g. skew is in nanoseconds.
func NewBanded(g *graph.Graph, parts int, skew int64) *Banded {
	return &Banded{g: g, parts: uint32(parts), skew: skew, opened: math.MaxUint32}
}

// Room makes room for n slots altogether.
func (b *Banded) Room(n int) {
	b.end, b.l, b.sufMinL = slices.Grow(b.end, n), slices.Grow(b.l, n), slices.Grow(b.sufMinL, n)
	nodes := n * int(b.parts)
	b.p, b.m, b.row = slices.Grow(b.p, nodes), slices.Grow(b.m, nodes), slices.Grow(b.row, nodes)
}

// Reuse takes the memory of old, which must not be used any more, for b, which is
// empty.
func (b *Banded) Reuse(old *Banded) {
	b.end, b.l, b.sufMinL = old.end[:0], old.l[:0], old.sufMinL[:0]
	b.p, b.m, b.row = old.p[:0], old.m[:0], old.row[:0]
	clear(old.firsts)
	clear(old.lateAt)
	b.firsts, b.lateAt = old.firsts, old.lateAt
	b.lates, b.kept = old.lates[:0], old.kept[:0]
	b.open, b.least, b.most, b.scratch, b.stack, b.told = old.open[:0], old.least[:0], old.most[:0], old.scratch[:0], old.stack[:0], old.told[:0]
	for _, page := range old.slab {
		if cap(page) == rowPage {
			b.spare = append(b.spare, page[:0])
		}
	}
}

// Add appends the next slot. A transaction that comes after one with a later end (a
// late record) is taken to have ended with that one, or the first of those (Late), which
// orders less, never more. timed: start is known; known: end is, too, and not only as when its
// client gave up. Cost: a binary search, and a step per slot that overlaps.
func (b *Banded) Add(start, end int64, timed, known bool) { b.add(start, end, timed, known, false) }

func (b *Banded) add(start, end int64, timed, known, base bool) {
	slot := uint32(len(b.end))
	last := int64(math.MinInt64)
	if slot > 0 {
		last = b.end[slot-1]
	}
	var l uint32
	m := slot
	if timed {
		l = uint32(sort.Search(int(slot), func(i int) bool { return !before(b.end[i], b.skew, start) }))
	}
	switch {
	case known && end < last && b.Late:
		m = uint32(sort.Search(int(slot), func(i int) bool { return b.end[i] >= end }))
		b.addLate(slot, m)
	case known:
		last = max(end, last)
	default:
		m = math.MaxUint32
		b.opened = min(b.opened, slot)
	}
	b.end = append(b.end, last)
	b.l = append(b.l, l)
	b.sufMinL = append(b.sufMinL, l)
	for s := int(slot) - 1; !base && s >= 0 && b.sufMinL[s] > l; s-- {
		b.sufMinL[s] = l
	}
	b.maxL = max(b.maxL, l)
	for k := range b.parts {
		n := slot*b.parts + k
		bit := uint64(1) << (n & 63)
		if n&63 == 0 {
			b.open, b.lates = append(b.open, 0), append(b.lates, 0)
		}
		if b.late.Test(uint(slot)) {
			b.lates[n>>6] |= bit
		}
		if !known {
			b.open[n>>6] |= bit
		}
		if k == 1 {
			bit |= bit >> 1 // the start reaches the commit; 2t is even, so they share a word
		}
		r := b.fresh(2)
		r.n = 1
		b.words(r)[0] = word{bit, n >> 6}
		b.row = append(b.row, r)
		b.p = append(b.p, l)
		b.m = append(b.m, m)
	}
	block := slot / blockSlots
	if slot%blockSlots == 0 {
		b.least, b.most = append(b.least, math.MaxUint32), append(b.most, 0)
	}
	if !base {
		b.least[block] = min(b.least[block], l)
	}
	if !known {
		b.most[block] = max(b.most[block], l)
	}
}

// addLate notes that a slot ended no later than slot first did, which is not its own.
func (b *Banded) addLate(slot, first uint32) {
	if b.firsts == nil {
		b.firsts, b.lateAt = map[uint32]uint32{}, map[uint32][]uint32{}
	}
	b.late.Set(uint(slot))
	b.firsts[slot] = first
	b.lateAt[first] = append(b.lateAt[first], slot)
}

// LateAt are the slots that came late, of which slot first is the first that ended no
// earlier: they precede what that one precedes.
func (b *Banded) LateAt(first uint32) []uint32 { return b.lateAt[first] }

// blockSlots is how many slots share an entry of least and most.
const blockSlots = 64

// AddBase appends a transaction that ended before slot first did, or at the same
// time, but comes late: it precedes by the clock what that one precedes. No edge
// may lead to it. With None for first its end is not known. O(1).
func (b *Banded) AddBase(first uint32) {
	slot := uint32(len(b.end))
	last := int64(math.MinInt64)
	if slot > 0 {
		last = b.end[slot-1]
	}
	known := first != math.MaxUint32
	b.add(last, last, false, known, true)       // with no start: nothing precedes it
	b.l[slot], b.sufMinL[slot] = b.maxL, b.maxL // no scan need go on for it
	b.bases.Set(uint(slot))
	if !known {
		return
	}
	b.first = first
	for n := slot * b.parts; n < (slot+1)*b.parts; n++ {
		b.m[n] = first
	}
}

// IsBase tells whether slot s was added by AddBase.
func (b *Banded) IsBase(s uint32) bool { return b.bases.Test(uint(s)) }

// before is end+skew < start, without overflow.
func before(end, skew, start int64) bool {
	return end <= math.MaxInt64-skew && end+skew < start
}

// fresh finds room for a row of up to n words.
func (b *Banded) fresh(n int) row {
	last := len(b.slab) - 1
	if last < 0 || cap(b.slab[last])-len(b.slab[last]) < n {
		page := rowPage
		if last < 0 {
			page = 64 // most histories of tests are tiny
		}
		page = max(page, n)
		if k := len(b.spare) - 1; k >= 0 && n <= rowPage {
			page = rowPage
			b.slab, b.spare = append(b.slab, b.spare[k]), b.spare[:k]
		} else {
			b.slab = append(b.slab, make([]word, 0, page))
		}
		b.bytes += page * wordSize
		last++
	}
	off := len(b.slab[last])
	b.slab[last] = b.slab[last][:off+n]
	return row{page: uint32(last), off: uint32(off), room: uint32(n)}
}

// words are the words of a row, to read and to change.
func (b *Banded) words(r row) []word { return b.slab[r.page][r.off : r.off+r.n] }

// Slots is the number of slots added.
func (b *Banded) Slots() int { return len(b.end) }

// Low is how many slots precede all slots from s on by the clock, or what leads to
// them, bases left out. Cost: those slots.
func (b *Banded) Low(s uint32) uint32 {
	low := b.maxL
	for ; int(s) < len(b.end); s++ {
		if p := b.p[s*b.parts]; p < low && !b.bases.Test(uint(s)) {
			low = p
		}
	}
	return low
}

// Fresh is Low of those from s on whose end is known.
func (b *Banded) Fresh(s uint32) uint32 {
	low := b.maxL
	for ; int(s) < len(b.end); s++ {
		if p := b.p[s*b.parts]; p < low && b.known(s) && !b.bases.Test(uint(s)) {
			low = p
		}
	}
	return low
}

// Before is how many slots precede the start of slot s by the clock, or what leads to
// it.
func (b *Banded) Before(s uint32) uint32 { return b.p[s*b.parts] }

// Past is a slot so that what it precedes by the clock is reached by the commit of s as
// well: s, if its end is known and it did not come late; math.MaxUint32 if there is none.
func (b *Banded) Past(s uint32) uint32 {
	if b.known(s) && !b.late.Test(uint(s)) {
		return s
	}
	return b.m[(s+1)*b.parts-1]
}

// Reaches implements Reach: O(1) for usual rows, else O(log of the row's words).
func (b *Banded) Reaches(u, v Node) bool {
	return b.ByClock(u, v) || has(b.words(b.row[v]), u)
}

// Ends tells, at once, that v reaches nothing but nodes of its own transaction: it
// is the last that was added, and no edge leaves it. False: it may.
func (b *Banded) Ends(v Node) bool {
	s := v / b.parts
	return int(s) == len(b.end)-1 && b.maxL <= s && !b.late.Test(uint(s)) && !b.g.HasOut(v) && (b.parts == 1 || v&1 == 1 || !b.g.HasOut(v+1)) && !b.bases.Test(uint(s))
}

// ByClock tells whether a path from u to v has a step of real time in it.
//
// It looks at m, which for an old u is not in the cache, only where u's own end does
// not say it: m(u) <= slot(u) where that is known.
func (b *Banded) ByClock(u, v Node) bool { return b.EndsBefore(u/b.parts, v) || b.m[u] < b.p[v] }

// EndsBefore tells whether slot s and all before it, but those without a known end,
// precede v by the clock; false also where s itself has none.
func (b *Banded) EndsBefore(s uint32, v Node) bool {
	return s < b.p[v] && (s < b.opened || b.known(s))
}

// Precedes tells whether slot s precedes slot t by the clock itself.
func (b *Banded) Precedes(s, t uint32) bool {
	if b.bases.Test(uint(s)) {
		return b.known(s) && b.first < b.l[t]
	}
	if b.late.Test(uint(s)) {
		return b.firsts[s] < b.l[t]
	}
	return s < b.l[t] && b.known(s)
}

// L is the number of slots that precede slot t by the clock, if their ends are
// known.
func (b *Banded) L(t uint32) uint32 { return b.l[t] }

// Untimed tells whether slot s has no known end.
func (b *Banded) Untimed(s uint32) bool { return !b.known(s) }

// M is the least slot with a known end that u reaches, or of which it reaches one that
// came late (LateAt); math.MaxUint32 if none.
func (b *Banded) M(u Node) uint32 { return b.m[u] }

func (b *Banded) known(s uint32) bool {
	n := s * b.parts
	return b.open[n>>6]>>(n&63)&1 == 0
}

func has(r []word, n Node) bool {
	idx, bit := n>>6, uint64(1)<<(n&63)
	if len(r) > 8 {
		i := sort.Search(len(r), func(i int) bool { return r[i].idx >= idx })
		return i < len(r) && r[i].idx == idx && r[i].bits&bit != 0
	}
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].idx == idx {
			return r[i].bits&bit != 0
		}
	}
	return false
}

// Insert implements Reach. What v reaches takes over what reaches u. Where v is
// new, with nothing behind it, that is v itself (and its commit): a union of a
// few words. Otherwise what changes is looked for from v along the edges, and what
// changes by the prefix rule alone among the slots that overlap.
func (b *Banded) Insert(u, v Node, changed func(Node)) {
	slot := v / b.parts
	isStart := b.parts == 2 && v%2 == 0
	if !b.g.HasOut(v) && b.maxL <= slot && !b.late.Test(uint(slot)) && (!isStart || !b.g.HasOut(v+1)) {
		if b.take(v, u) {
			changed(v)
		}
		if isStart && b.take(v+1, u) {
			changed(v + 1)
		}
		b.lower(u, b.m[v])
		return
	}
	b.told = b.told[:0]
	b.byPrefix(u, v)
	b.lower(u, b.m[v])
	b.byEdges(u, v)
	slices.Sort(b.told) // for whoever is told, in the order of time
	for _, n := range b.told {
		changed(n)
	}
}

// byPrefix notes in told what u is about to reach by the prefix rule, as v does: the
// nodes n with m(v) < p(n) <= m(u) that it has no bit for.
func (b *Banded) byPrefix(u, v Node) {
	low, high := b.m[v], b.m[u]
	if low >= high {
		return
	}
	for block := min(b.opened, low+1) / blockSlots; int(block) < len(b.least); block++ {
		s := block * blockSlots
		if s+blockSlots <= low+1 {
			if b.most[block] <= low { // p(n) <= slot(n) where the end of n is known
				continue
			}
		} else if s > low && b.sufMinL[s] > high {
			break
		} else if b.least[block] > high {
			continue
		}
		b.byPrefixIn(u, s, low, high)
	}
}

// byPrefixIn does it for the block that begins with slot s, and finds its least p.
func (b *Banded) byPrefixIn(u Node, s, low, high uint32) {
	least := uint32(math.MaxUint32)
	for end := min(s+blockSlots, uint32(len(b.end))); s < end; s++ {
		for n := s * b.parts; n < (s+1)*b.parts; n++ {
			p := b.p[n]
			if low < p && p <= high && (b.Heeds == nil || b.Heeds(n)) && !has(b.words(b.row[n]), u) {
				b.told = append(b.told, n)
			}
			if p < least && (p > 0 || !b.bases.Test(uint(s))) {
				least = p
			}
		}
	}
	b.least[(s-1)/blockSlots] = least
}

// byEdges lets what v reaches by edges alone take over what reaches u, unless u
// reached it before: then it reached all that comes after it, too. What v reaches by
// the prefix rule needs nothing: u reaches it so since its m is at most that of v, and
// its p is at least that of u.
func (b *Banded) byEdges(u, v Node) {
	b.stack = append(b.stack[:0], v)
	for len(b.stack) > 0 {
		n := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		if b.Reaches(u, n) {
			continue
		}
		if b.take(n, u) {
			b.told = append(b.told, n)
		}
		if b.parts == 2 && n&1 == 0 {
			b.stack = append(b.stack, n+1)
		}
		for e := b.g.FirstOut(n); e != graph.None; e = b.g.NextOut(e) {
			b.stack = append(b.stack, b.g.To(e))
		}
	}
}

// lower lets u and all that reaches it reach slot m. Nodes that reach u by the
// prefix rule alone have a smaller m: m(w) < p(u) <= m(v), or v would reach u.
func (b *Banded) lower(u Node, m uint32) {
	if m >= b.top(u) {
		return
	}
	for _, w := range b.words(b.row[u]) {
		for x := w.bits; x != 0; x &= x - 1 {
			n := w.idx<<6 + uint32(bits.TrailingZeros64(x))
			b.m[n] = min(b.m[n], m)
		}
	}
}

// top is an upper bound of m over u and what reaches u beyond the prefix: the last
// slot of them, if the ends of all are known.
func (b *Banded) top(u Node) uint32 {
	r := b.words(b.row[u])
	w := r[len(r)-1]
	top := (w.idx<<6 + 63 - uint32(bits.LeadingZeros64(w.bits))) / b.parts
	if b.opened == math.MaxUint32 {
		return top
	}
	for _, w := range r {
		for x := w.bits & b.open[w.idx]; x != 0; x &= x - 1 {
			top = max(top, b.m[w.idx<<6+uint32(bits.TrailingZeros64(x))])
		}
	}
	return top
}

// take makes n reached by u and by all that reaches u; it tells whether that
// was news.
func (b *Banded) take(n, u Node) bool {
	grew := false
	if b.p[u] > b.p[n] {
		b.p[n] = b.p[u]
		if s := n / b.parts; !b.known(s) {
			b.most[s/blockSlots] = max(b.most[s/blockSlots], b.p[n])
		}
		grew = true
	}
	// With its end known m(w) <= slot(w), so the prefix covers the words below.
	from := (b.p[n] * b.parts) >> 6
	if b.opened != math.MaxUint32 && b.takeOpen(n, u, from) {
		grew = true
	}
	dst, src := b.words(b.row[n]), b.words(b.row[u])
	for len(src) > 0 && src[0].idx < from {
		src = src[1:]
	}
	if len(b.firsts) > 0 {
		src = b.timely(src, b.p[n])
	}
	i := 0
	for k := range src { // usually the same words: neighbours in time
		for i < len(dst) && dst[i].idx < src[k].idx {
			i++
		}
		if i == len(dst) || dst[i].idx != src[k].idx {
			b.merge(n, src, from)
			return true
		}
		if src[k].bits&^dst[i].bits != 0 {
			dst[i].bits |= src[k].bits
			grew = true
		}
	}
	return grew
}

// timely is what has to be kept of words in the row of a node with that p: without those
// that came late and that the prefix covers although their slots lie behind it. Rows would
// not get shorter for as long as there is a late one in every word.
func (b *Banded) timely(src []word, p uint32) []word {
	i := 0
	for i < len(src) && b.lates[src[i].idx]&src[i].bits == 0 {
		i++
	}
	if i == len(src) {
		return src
	}
	b.kept = append(b.kept[:0], src[:i]...)
	for _, w := range src[i:] {
		for x := w.bits & b.lates[w.idx]; x != 0; x &= x - 1 {
			if k := bits.TrailingZeros64(x); b.m[w.idx<<6+uint32(k)] < p {
				w.bits &^= 1 << k
			}
		}
		if w.bits != 0 {
			b.kept = append(b.kept, w)
		}
	}
	return b.kept
}

// takeOpen makes n reached by those without a known end that reach u from words
// below from, as far as the prefix does not cover them.
func (b *Banded) takeOpen(n, u Node, from uint32) bool {
	grew := false
	for _, w := range b.words(b.row[u]) {
		if w.idx >= from {
			break
		}
		if w = b.openOf(w, b.p[n]); w.bits != 0 && b.put(n, w) {
			grew = true
		}
	}
	return grew
}

// put adds a word's bits to row n; it tells whether that was news.
func (b *Banded) put(n Node, w word) bool {
	dst := b.words(b.row[n])
	i := sort.Search(len(dst), func(i int) bool { return dst[i].idx >= w.idx })
	if i < len(dst) && dst[i].idx == w.idx {
		news := w.bits&^dst[i].bits != 0
		dst[i].bits |= w.bits
		return news
	}
	b.scratch = append(append(append(b.scratch[:0], dst[:i]...), w), dst[i:]...)
	b.store(n, b.scratch)
	return true
}

// openOf is what has to be kept of a word below p in the row of a node with that p:
// those without a known end that the prefix does not cover.
func (b *Banded) openOf(w word, p uint32) word {
	w.bits &= b.open[w.idx]
	for x := w.bits; x != 0; x &= x - 1 {
		if k := bits.TrailingZeros64(x); b.m[w.idx<<6+uint32(k)] < p {
			w.bits &^= 1 << k
		}
	}
	return w
}

// merge unites row n with src where src has words that the row lacks.
func (b *Banded) merge(n Node, src []word, from uint32) {
	dst := b.words(b.row[n])
	out := b.scratch[:0]
	for len(dst) > 0 && dst[0].idx < from {
		if w := b.openOf(dst[0], b.p[n]); w.bits != 0 {
			out = append(out, w)
		}
		dst = dst[1:]
	}
	for len(dst) > 0 && len(src) > 0 {
		switch {
		case dst[0].idx < src[0].idx:
			out = append(out, dst[0])
			dst = dst[1:]
		case src[0].idx < dst[0].idx:
			out = append(out, src[0])
			src = src[1:]
		default:
			out = append(out, word{dst[0].bits | src[0].bits, dst[0].idx})
			dst, src = dst[1:], src[1:]
		}
	}
	out = append(append(out, dst...), src...)
	b.scratch = out
	b.store(n, out)
}

// store makes row n those words.
func (b *Banded) store(n Node, out []word) {
	r := b.row[n]
	if int(r.room) < len(out) {
		r = b.fresh(len(out) + len(out)/2)
	}
	r.n = uint32(len(out))
	copy(b.words(r), out)
	b.row[n] = r
}

// Contract implements Reach: bits become edges, and time becomes a chain of
// helpers, one for each distinct p, entered by u at the least p above m(u).
func (b *Banded) Contract(nodes []Node, edges [][2]uint32) ([][2]uint32, int) {
	ps := make([]uint32, 0, len(nodes))
	for _, v := range nodes {
		ps = append(ps, b.p[v])
	}
	sort.Slice(ps, func(i, j int) bool { return ps[i] < ps[j] })
	k := 0
	for i, p := range ps {
		if i == 0 || p != ps[k-1] {
			ps[k] = p
			k++
		}
	}
	ps = ps[:k]
	n := uint32(len(nodes))
	for i := 1; i < len(ps); i++ {
		edges = append(edges, [2]uint32{n + uint32(i) - 1, n + uint32(i)})
	}
	for i, v := range nodes {
		at := sort.Search(len(ps), func(k int) bool { return ps[k] >= b.p[v] })
		edges = append(edges, [2]uint32{n + uint32(at), uint32(i)})
		if at := sort.Search(len(ps), func(k int) bool { return ps[k] > b.m[v] }); at < len(ps) {
			edges = append(edges, [2]uint32{uint32(i), n + uint32(at)})
		}
		for _, w := range b.words(b.row[v]) {
			lo := sort.Search(len(nodes), func(k int) bool { return nodes[k] >= w.idx<<6 })
			for k := lo; k < len(nodes) && nodes[k]>>6 == w.idx; k++ {
				if k != i && w.bits&(1<<(nodes[k]&63)) != 0 && b.m[nodes[k]] >= b.p[v] {
					edges = append(edges, [2]uint32{uint32(k), uint32(i)})
				}
			}
		}
	}
	return edges, len(ps)
}

// Bytes implements Reach.
func (b *Banded) Bytes() int {
	return b.bytes + len(b.end)*16 + len(b.p)*8 + len(b.row)*16 + len(b.open)*8 + len(b.least)*4
}
