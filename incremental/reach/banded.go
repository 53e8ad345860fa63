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
// nothing by the clock; its m comes from what it reaches.
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
	open    []uint32 // slots without a known end
	// active are those of open that may still reach a node n with p(n) >= activeP
	// by a bit alone; loose those that may reach no known end at all, and openM is at
	// least the m of the others.
	active  []uint32
	activeP uint32
	loose   []uint32
	openM   uint32
	bases   bitset.BitSet
	first   uint32 // of the bases; see AddBase

	slab    [][]word // pages that rows lie in
	spare   [][]word // pages to use again, of rowPage words
	bytes   int      // of rows
	scratch []word
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
	return &Banded{g: g, parts: uint32(parts), skew: skew}
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
	b.open, b.active, b.loose, b.scratch = old.open[:0], old.active[:0], old.loose[:0], old.scratch[:0]
	for _, page := range old.slab {
		if cap(page) == rowPage {
			b.spare = append(b.spare, page[:0])
		}
	}
}

// Add appends the next slot. A transaction that comes after one with a later
// end (a late record) is taken to have ended with it, which orders less, never
// more. timed: start is known; known: end is, too, and not only as when its
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
	if known {
		last = max(end, last)
	} else {
		m = math.MaxUint32
		b.open, b.active, b.loose = append(b.open, slot), append(b.active, slot), append(b.loose, slot)
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
	if slot%activeEvery == 0 {
		b.refresh()
	}
}

// activeEvery is after how many slots active is looked through.
const activeEvery = 32

// refresh drops from active what reaches all that is recent by the prefix rule.
func (b *Banded) refresh() {
	if len(b.active) == 0 {
		return
	}
	b.activeP = b.sufMinL[max(0, len(b.sufMinL)-activeEvery)]
	b.active = b.active[:0]
	for _, s := range b.open {
		if b.greatestM(s) >= b.activeP {
			b.active = append(b.active, s)
		}
	}
}

// greatestM is that of the nodes of slot s.
func (b *Banded) greatestM(s uint32) uint32 {
	return slices.Max(b.m[s*b.parts : (s+1)*b.parts])
}

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

// Low is the least l of the slots from s on: what lies below it precedes them
// all by the clock.
func (b *Banded) Low(s uint32) uint32 {
	if int(s) >= len(b.sufMinL) {
		return b.maxL
	}
	return b.sufMinL[s]
}

// Reaches implements Reach: O(1) for usual rows, else O(log of the row's words).
func (b *Banded) Reaches(u, v Node) bool {
	return b.ByClock(u, v) || has(b.words(b.row[v]), u)
}

// Ends tells, at once, that v reaches nothing but nodes of its own transaction: it
// is the last that was added, and no edge leaves it. False: it may.
func (b *Banded) Ends(v Node) bool {
	s := v / b.parts
	return int(s) == len(b.end)-1 && !b.g.HasOut(v) && (b.parts == 1 || v&1 == 1 || !b.g.HasOut(v+1)) && !b.bases.Test(uint(s))
}

// ByClock tells whether a path from u to v has a step of real time in it.
//
// It looks at m, which for an old u is not in the cache, only where u's own end does
// not say it: m(u) <= slot(u) where that is known.
func (b *Banded) ByClock(u, v Node) bool { return b.EndsBefore(u/b.parts, v) || b.m[u] < b.p[v] }

// EndsBefore tells whether slot s and all before it, but those without a known end,
// precede v by the clock; false also where s itself has none.
func (b *Banded) EndsBefore(s uint32, v Node) bool {
	return s < b.p[v] && (len(b.open) == 0 || s < b.open[0] || b.known(s))
}

// Precedes tells whether slot s precedes slot t by the clock itself.
func (b *Banded) Precedes(s, t uint32) bool {
	if b.bases.Test(uint(s)) {
		return b.known(s) && b.first < b.l[t]
	}
	return s < b.l[t] && b.known(s)
}

// L is the number of slots that precede slot t by the clock, if their ends are
// known.
func (b *Banded) L(t uint32) uint32 { return b.l[t] }

// Untimed tells whether slot s has no known end.
func (b *Banded) Untimed(s uint32) bool { return !b.known(s) }

// M is the least slot with a known end that u reaches; math.MaxUint32 if none.
func (b *Banded) M(u Node) uint32 { return b.m[u] }

func (b *Banded) known(s uint32) bool {
	_, open := slices.BinarySearch(b.open, s)
	return !open
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
// few words. Otherwise the slots that overlap are scanned.
func (b *Banded) Insert(u, v Node, changed func(Node)) {
	slot := v / b.parts
	top := b.top(u)
	isStart := b.parts == 2 && v%2 == 0
	if !b.g.HasOut(v) && b.maxL <= slot && (!isStart || !b.g.HasOut(v+1)) {
		if b.take(v, u) {
			changed(v)
		}
		if isStart && b.take(v+1, u) {
			changed(v + 1)
		}
	} else {
		// What v reaches is not among the slots below p(v), which reach v,
		// unless it has no known end. Past the last slot that top can overlap,
		// all that v reaches is reached from u by the prefix rule already.
		from := b.p[v]
		for _, s := range b.open {
			if s < from {
				b.visit(u, v, s, changed)
			}
		}
		for s := from; s < uint32(len(b.end)) && b.sufMinL[s] <= top; s++ {
			b.visit(u, v, s, changed)
		}
	}
	b.lower(u, b.m[v])
}

// visit lets the nodes of slot s that v reaches take over what reaches u, unless u
// reached them before.
func (b *Banded) visit(u, v Node, s uint32, changed func(Node)) {
	for k := range b.parts {
		if n := s*b.parts + k; b.Reaches(v, n) && !b.Reaches(u, n) && b.take(n, u) {
			changed(n)
		}
	}
}

// top is an upper bound of m over u and what reaches u beyond the prefix.
func (b *Banded) top(u Node) uint32 {
	r := b.words(b.row[u])
	w := r[len(r)-1]
	t := (w.idx<<6 + 63 - uint32(bits.LeadingZeros64(w.bits))) / b.parts
	if len(b.open) == 0 {
		return t
	}
	b.tighten()
	for _, s := range b.loose {
		for n := s * b.parts; n < (s+1)*b.parts; n++ {
			if has(r, n) {
				return math.MaxUint32
			}
		}
	}
	return max(t, b.openM)
}

// tighten drops from loose what reaches a known end by now.
func (b *Banded) tighten() {
	kept := b.loose[:0]
	for _, s := range b.loose {
		if m := b.greatestM(s); m == math.MaxUint32 {
			kept = append(kept, s)
		} else {
			b.openM = max(b.openM, m)
		}
	}
	b.loose = kept
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

// take makes n reached by u and by all that reaches u; it tells whether that
// was news.
func (b *Banded) take(n, u Node) bool {
	grew := false
	if b.p[u] > b.p[n] {
		b.p[n] = b.p[u]
		grew = true
	}
	// With its end known m(w) <= slot(w), so the prefix covers the words below.
	from := (b.p[n] * b.parts) >> 6
	if len(b.open) > 0 && b.words(b.row[u])[0].idx < from && b.takeOpen(n, u, from) {
		grew = true
	}
	dst, src := b.words(b.row[n]), b.words(b.row[u])
	for len(src) > 0 && src[0].idx < from {
		src = src[1:]
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

// takeOpen makes n reached by those without a known end that reach u from words
// below from, as far as the prefix does not cover them.
func (b *Banded) takeOpen(n, u Node, from uint32) bool {
	list := b.active
	if b.p[n] < b.activeP {
		list = b.open
	}
	grew := false
	for _, s := range list {
		for x := s * b.parts; x < (s+1)*b.parts; x++ {
			if x>>6 >= from || b.m[x] < b.p[n] || !has(b.words(b.row[u]), x) || has(b.words(b.row[n]), x) {
				continue
			}
			b.put(n, word{1 << (x & 63), x >> 6})
			grew = true
		}
	}
	return grew
}

// put adds a word's bits to row n.
func (b *Banded) put(n Node, w word) {
	dst := b.words(b.row[n])
	i := sort.Search(len(dst), func(i int) bool { return dst[i].idx >= w.idx })
	if i < len(dst) && dst[i].idx == w.idx {
		dst[i].bits |= w.bits
		return
	}
	b.scratch = append(append(append(b.scratch[:0], dst[:i]...), w), dst[i:]...)
	b.store(n, b.scratch)
}

// openOf is what has to be kept of a word below p in the row of a node with that p:
// those without a known end that the prefix does not cover.
func (b *Banded) openOf(w word, p uint32) word {
	var keep uint64
	for i := sort.Search(len(b.open), func(i int) bool { return (b.open[i]+1)*b.parts > w.idx<<6 }); i < len(b.open) && b.open[i]*b.parts>>6 <= w.idx; i++ {
		for x := b.open[i] * b.parts; x < (b.open[i]+1)*b.parts; x++ {
			if x>>6 == w.idx && b.m[x] >= p {
				keep |= 1 << (x & 63)
			}
		}
	}
	return word{w.bits & keep, w.idx}
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
func (b *Banded) Contract(nodes []Node) ([][2]uint32, int) {
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
	var edges [][2]uint32
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
	return b.bytes + len(b.end)*16 + len(b.p)*8 + len(b.row)*16
}
