package reach

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/version"
)

// Banded is the closure for histories with times: transactions are numbered by
// slot as they come, about in the order of their recorded end, and real time is part of
// the order: u precedes v by the clock when end(u)+skew < start(v). Let
//
//	l(v) = start(v) - skew
//	p(v) = max { l(x)   : x reaches v or x = v }
//	m(u) = min { end(x) : u reaches the commit of x, x's end is known }
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
//	slots   0 ....... from(v) ......... slot(v) ......
//	        ^^^^^^^^^ all reach v       row(v): one bit each, in sparse words
//
// All slots before from(v) ended before p(v). Rows are sorted lists of non-zero words: a
// transaction that runs for minutes costs a word in the rows it touches, not a row as wide
// as its life. Words that fall below from(v) leave at the old end.
//
// With Instants the times are those of one clock at which transactions start and commit, so that all nodes whose time
// is known are in the order of it: l of a commit is its end, and m of a start begins with start(u). Of a
// transaction of unknown outcome only what is before its start is known: as long as nobody read from it, it must be
// possible to have it after everything, as if it had not been.
//
// A transaction without a known end (no times, or an unknown outcome) precedes
// nothing by the clock; its m comes from what it reaches. One that comes late, after
// others that ended later, has its slot among the last; with Late it precedes what its end
// says, also of what is there, be it that all come late for a while. What of a row is covered
// although its slot lies behind from(v) leaves when rows are long.
//
// Invariants: p and m are what their definitions say; from(v) is no more slots than the first
// of which each ended before p(v), if its end is known; row(v) holds every u with
// m(u) >= p(v) that reaches v, v itself included, and possibly more that reach
// v; the graph is acyclic.
type Banded struct {
	g     *graph.Graph
	parts graph.Parts
	skew  int64

	last []int64        // by slot: the greatest known end of it and all before, so it ascends
	end  []int64        // by slot: when it ended; where that is not known, as last
	l    []int64        // by slot: l, as above
	p, m []int64        // by node: p and m, as above
	at   []Node         // by node: a commit that it reaches and whose end is its m
	from []version.Slot // by node: from, as above
	row  []row          // by node: row, as above
	// sufMinL[s] = min over slots t >= s of l(t): scans for what a slot can
	// still reach stop by it.
	sufMinL []int64
	maxL    int64 // the greatest l of a slot
	maxP    int64 // the greatest p of a node
	// open has a bit, in the words of rows, for each node of a slot without a known end.
	open   []uint64
	opened version.Slot // the first slot without a known end, math.MaxUint32 if there is none
	// By block of blockSlots slots: a lower bound of the p of its nodes but those of bases, and the greatest p of its
	// nodes without a known end.
	least, most []int64
	bases       bitset.BitSet // by slot: nothing leads to it; see AddBase
	late        []uint64      // the nodes of slots that came late, in the words of rows; empty if none did

	// Late: one that comes late is taken to have ended when it says; else with the last
	// before it, as its clock may have been set back.
	Late bool

	// Instants: times are those of starts and commits themselves, and not of what a client saw of them.
	Instants bool

	slab    [][]word // pages that rows lie in
	bytes   int      // of rows
	scratch []word
	kept    []word
	stack   []Node
	told    []Node
	// named are the nodes of the Contract at hand, if one has a long row, covered those that
	// need no edge to the one at hand, in the words of rows.
	named, covered []uint64
}

// word is 64 columns of a row; idx counts words.
type word struct {
	bits uint64
	idx  uint32
}

// node is that of bit k.
func (w word) node(k int) Node { return Node(w.idx)<<6 + Node(k) }

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
func NewBanded(g *graph.Graph, parts graph.Parts, skew int64) *Banded {
	return &Banded{g: g, parts: parts, skew: skew, opened: math.MaxUint32, maxL: never, maxP: never}
}

// never is before all times, ever behind all: of a transaction without a start or end.
const never, ever = math.MinInt64, math.MaxInt64

// Add appends the next slot. A transaction that comes after one with a later end is late;
// see Late. timed: start is known; known: end is, too, and not only as when its
// client gave up. Cost: a binary search, and a step per slot that overlaps.
func (b *Banded) Add(start, end int64, timed, known bool) {
	slot := version.Slot(len(b.end))
	last := b.latest()
	l, from := int64(never), version.Slot(0)
	if timed {
		l = min(start-b.skew, ever-1) // no time is ever
		if l > start {                // by overflow: before all that there is
			l = never
		}
		from = version.Slot(sort.Search(int(slot), func(i int) bool { return b.last[i] >= l }))
	}
	late := known && end < last
	if late && !b.Late {
		end, late = last, false
	}
	b.add(l, from, end, known, false)
	if late {
		b.addLate(slot)
	}
}

// Held is how many words the rows of the slots from s on have. Cost: these slots.
func (b *Banded) Held(s version.Slot) (words int) {
	for _, r := range b.row[min(int(b.parts.Start(s)), len(b.row)):] {
		words += int(r.n)
	}
	return words
}

// latest is the greatest known end so far.
func (b *Banded) latest() int64 {
	if n := len(b.last); n > 0 {
		return b.last[n-1]
	}
	return never
}

func (b *Banded) add(l int64, from version.Slot, end int64, known, base bool) {
	slot := version.Slot(len(b.end))
	last := b.latest()
	if known {
		if !base {
			last = max(last, end)
		}
	} else {
		b.opened = min(b.opened, slot)
		end = last
	}
	b.end, b.last = append(b.end, end), append(b.last, last)
	b.l, b.sufMinL = append(b.l, l), append(b.sufMinL, l)
	for s := int(slot) - 1; !base && s >= 0 && b.sufMinL[s] > l; s-- {
		b.sufMinL[s] = l
	}
	b.maxL, b.maxP = max(b.maxL, l), max(b.maxP, l)
	for n := b.parts.Start(slot); n <= b.parts.Commit(slot); n++ {
		bit := uint64(1) << (n & 63)
		if n&63 == 0 {
			b.open = append(b.open, 0)
		}
		if !known {
			b.open[n>>6] |= bit
		}
		if b.parts.OnlyCommits(n) {
			bit |= bit >> 1 // the start reaches the commit; 2t is even, so they share a word
		}
		r := b.fresh(2)
		r.n = 1
		b.words(r)[0] = word{bit, uint32(n >> 6)}
		b.row = append(b.row, r)
		p, from := l, from
		if b.Instants && known && !base && !b.parts.OnlyStarts(n) && end > p {
			p, from = end, version.Slot(sort.Search(int(slot), func(i int) bool { return b.last[i] >= end }))
			b.maxP = max(b.maxP, p)
		}
		m, at := int64(ever), Node(graph.None)
		switch {
		case b.Instants && b.parts.OnlyStarts(n) && known && l != never:
			m, at = l, n
		case known:
			m, at = end, b.parts.Commit(slot)
		}
		b.p, b.from = append(b.p, p), append(b.from, from)
		b.m, b.at = append(b.m, m), append(b.at, at)
	}
	block := slot / blockSlots
	if slot%blockSlots == 0 {
		b.least, b.most = append(b.least, ever), append(b.most, never)
	}
	if !base {
		b.least[block] = min(b.least[block], l)
	}
	if !known {
		b.most[block] = max(b.most[block], l)
	}
}

// addLate notes that a slot lies among others that ended later.
func (b *Banded) addLate(slot version.Slot) {
	for n := b.parts.Start(slot); n <= b.parts.Commit(slot); n++ {
		for int(n>>6) >= len(b.late) {
			b.late = append(b.late, 0)
		}
		b.late[n>>6] |= 1 << (n & 63)
	}
}

// blockSlots is how many slots share an entry of least and most.
const blockSlots = 64

// AddBase appends a transaction that ended before slot first did, or at the same
// time, but comes late: it precedes by the clock what that one precedes. No edge
// may lead to it. With None for first its end is not known. O(1).
func (b *Banded) AddBase(first version.Slot) {
	slot := version.Slot(len(b.end))
	known, end := first != math.MaxUint32, int64(never)
	if known {
		end = b.end[first]
	}
	b.add(never, 0, end, known, true) // with no start: nothing precedes it
	b.sufMinL[slot] = b.maxL          // no scan need go on for it
	b.bases.Set(uint(slot))
}

// IsBase tells whether slot s was added by AddBase.
func (b *Banded) IsBase(s version.Slot) bool { return b.bases.Test(uint(s)) }

// fresh finds room for a row of up to n words.
func (b *Banded) fresh(n int) row {
	last := len(b.slab) - 1
	if last < 0 || cap(b.slab[last])-len(b.slab[last]) < n {
		page := rowPage
		if last < 0 {
			page = 64 // most histories of tests are tiny
		}
		page = max(page, n)
		b.slab = append(b.slab, make([]word, 0, page))
		b.bytes += page * wordSize
		last++
	}
	off := len(b.slab[last])
	b.slab[last] = b.slab[last][:off+n]
	return row{page: uint32(last), off: uint32(off), room: uint32(n)}
}

// words are the words of a row, to read and to change.
func (b *Banded) words(r row) []word { return b.slab[r.page][r.off : r.off+r.n] }

// Fresh is the least Before of the slots from s on whose end is known, bases left out, and at
// most the greatest start of all.
func (b *Banded) Fresh(s version.Slot) int64 {
	low := b.maxL
	for ; int(s) < len(b.end); s++ {
		if p := b.p[b.parts.Start(s)]; p < low && b.known(s) && !b.bases.Test(uint(s)) {
			low = p
		}
	}
	return low
}

// Before is a time so that what ended before it, which is known, precedes the start of slot s
// by the clock, or what leads to it.
func (b *Banded) Before(s version.Slot) int64 { return b.p[b.parts.Start(s)] }

// Past is the least known end of a slot that the commit of s reaches by edges, s's own for one;
// so the commit reaches whatever begins later. math.MaxInt64 if there is none.
func (b *Banded) Past(s version.Slot) int64 {
	if b.known(s) {
		return b.end[s]
	}
	return b.m[b.parts.Commit(s)]
}

// Reaches implements Reach: O(1) for usual rows, else O(log of the row's words).
func (b *Banded) Reaches(u, v Node) bool {
	return b.ByClock(u, v) || has(b.words(b.row[v]), u)
}

// Ends tells, at once, that v reaches nothing but nodes of its own transaction: it
// is the last that was added, nothing begins after it, and no edge leaves it. False: it may.
func (b *Banded) Ends(v Node) bool {
	s := b.parts.Slot(v)
	return int(s) == len(b.end)-1 && b.m[v] >= b.maxP && !b.g.HasOut(v) && (!b.parts.OnlyStarts(v) || !b.g.HasOut(v+1))
}

// ByClock tells whether a path from u to v has a step of real time in it.
//
// It looks at m, which for an old u is not in the cache, only where u's own end does
// not say it: m(u) <= end(u) where that is known.
func (b *Banded) ByClock(u, v Node) bool { return b.EndsBefore(b.parts.Slot(u), v) || b.m[u] < b.p[v] }

// EndsBefore tells, at once, whether slot s and all before it, but those without a known
// end, precede v by the clock; false also where s itself has none. False: they may.
func (b *Banded) EndsBefore(s version.Slot, v Node) bool {
	return s < b.from[v] && (s < b.opened || b.known(s))
}

// Precedes tells whether node u precedes node v by the clock itself.
func (b *Banded) Precedes(u, v Node) bool {
	at, known := b.Time(u)
	return known && at < b.After(v)
}

// Time is the time of node u, if it is known: what is After it comes after u. Without Instants that is when
// its transaction ended.
func (b *Banded) Time(u Node) (at int64, known bool) {
	s := b.parts.Slot(u)
	if b.Instants && b.parts.OnlyStarts(u) && b.known(s) && b.l[s] != never {
		return b.l[s], true
	}
	return b.end[s], b.known(s)
}

// After is the time before which a node must be to precede v by the clock; math.MinInt64 if none does. Without
// Instants that is when its transaction starts.
func (b *Banded) After(v Node) int64 {
	s := b.parts.Slot(v)
	if b.Instants && !b.parts.OnlyStarts(v) && b.known(s) && !b.bases.Test(uint(s)) {
		return max(b.end[s], b.l[s])
	}
	return b.l[s]
}

// First is the node with the least known Time of those that u reaches by edges; graph.None if there is none.
func (b *Banded) First(u Node) Node { return b.at[u] }

func (b *Banded) known(s version.Slot) bool {
	n := b.parts.Start(s)
	return b.open[n>>6]>>(n&63)&1 == 0
}

func has(r []word, n Node) bool {
	idx, bit := uint32(n>>6), uint64(1)<<(n&63)
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
func (b *Banded) Insert(u, v Node, w Watcher) {
	isStart := b.parts.OnlyStarts(v)
	if !b.g.HasOut(v) && b.m[v] >= b.maxP && (!isStart || !b.g.HasOut(v+1)) {
		if b.inherit(v, u) {
			w.Reached(v)
		}
		if isStart && b.inherit(v+1, u) {
			w.Reached(v + 1)
		}
		b.lower(u, v)
		return
	}
	b.told = b.told[:0]
	b.byPrefix(u, v, w)
	b.lower(u, v)
	b.byEdges(u, v)
	slices.Sort(b.told) // for whoever is told, in the order of time
	for _, n := range b.told {
		w.Reached(n)
	}
}

// byPrefix notes in told what u is about to reach by the prefix rule, as v does: the
// nodes n with m(v) < p(n) <= m(u) that it has no bit for.
func (b *Banded) byPrefix(u, v Node, w Watcher) {
	low, high := b.m[v], b.m[u]
	if low >= high {
		return
	}
	// p(n) <= end(n) where that is known: so first is the first slot that need be looked at, but
	// for those without.
	first := version.Slot(sort.Search(len(b.last), func(i int) bool { return b.last[i] > low }))
	for block := min(b.opened, first) / blockSlots; int(block) < len(b.least); block++ {
		s := block * blockSlots
		if s+blockSlots <= first {
			if b.most[block] <= low {
				continue
			}
		} else if s >= first && b.sufMinL[s] > high {
			break
		} else if b.least[block] > high {
			continue
		}
		b.byPrefixIn(u, s, low, high, w)
	}
}

// byPrefixIn does it for the block that begins with slot s, and finds its least p.
func (b *Banded) byPrefixIn(u Node, s version.Slot, low, high int64, w Watcher) {
	least := int64(ever)
	for end := min(s+blockSlots, version.Slot(len(b.end))); s < end; s++ {
		for n := b.parts.Start(s); n <= b.parts.Commit(s); n++ {
			p := b.p[n]
			if low < p && p <= high && w.Watched(n) && !has(b.words(b.row[n]), u) {
				b.told = append(b.told, n)
			}
			if p < least && (p > never || !b.bases.Test(uint(s))) {
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
		if b.inherit(n, u) {
			b.told = append(b.told, n)
		}
		if b.parts.OnlyStarts(n) {
			b.stack = append(b.stack, n+1)
		}
		for e := b.g.FirstOut(n); e != graph.None; e = b.g.NextOut(e) {
			b.stack = append(b.stack, b.g.To(e))
		}
	}
}

// lower lets u and all that reaches it reach what v reaches first. Nodes that reach u by the
// prefix rule alone have a smaller m: m(w) < p(u) <= m(v), or v would reach u.
func (b *Banded) lower(u, v Node) {
	m, at := b.m[v], b.at[v]
	if m == ever || m >= b.top(u) {
		return
	}
	for _, w := range b.words(b.row[u]) {
		for x := w.bits; x != 0; x &= x - 1 {
			if n := w.node(bits.TrailingZeros64(x)); b.m[n] > m {
				b.m[n], b.at[n] = m, at
			}
		}
	}
}

// top is an upper bound of m over u and what reaches u beyond the prefix: the last
// end of them, if the ends of all are known.
func (b *Banded) top(u Node) int64 {
	r := b.words(b.row[u])
	w := r[len(r)-1]
	top := b.last[b.parts.Slot(w.node(63-bits.LeadingZeros64(w.bits)))]
	if b.opened == math.MaxUint32 {
		return top
	}
	for _, w := range r {
		for x := w.bits & b.open[w.idx]; x != 0; x &= x - 1 {
			top = max(top, b.m[w.node(bits.TrailingZeros64(x))])
		}
	}
	return top
}

// inherit makes n reached by u and by all that reaches u; it tells whether that
// was news.
func (b *Banded) inherit(n, u Node) bool {
	grew := false
	if b.p[u] > b.p[n] {
		b.p[n], b.from[n] = b.p[u], max(b.from[n], b.from[u])
		if s := b.parts.Slot(n); !b.known(s) {
			b.most[s/blockSlots] = max(b.most[s/blockSlots], b.p[n])
		}
		grew = true
	}
	// With its end known m(w) <= end(w), so the prefix covers the words below.
	from := uint32(b.parts.Start(b.from[n]) >> 6)
	if b.opened != math.MaxUint32 && b.inheritOpen(n, u, from) {
		grew = true
	}
	dst, src := b.words(b.row[n]), b.words(b.row[u])
	for len(src) > 0 && src[0].idx < from {
		src = src[1:]
	}
	if len(b.late) > 0 && len(src) > rowMost {
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

// rowMost is how many words of a row are taken over as they are: to leave out those of late
// transactions, each has to be looked at.
const rowMost = 16

// timely is what has to be kept of words in the row of a node with that p: without those
// that came late and that the prefix covers although their slots lie behind it. Rows would
// not get shorter for as long as there is a late one in every word.
func (b *Banded) timely(src []word, p int64) []word {
	if int(src[0].idx) >= len(b.late) {
		return src
	}
	b.kept = b.kept[:0]
	for _, w := range src {
		if int(w.idx) < len(b.late) {
			for x := w.bits & b.late[w.idx]; x != 0; x &= x - 1 {
				if k := bits.TrailingZeros64(x); b.m[w.node(k)] < p {
					w.bits &^= 1 << k
				}
			}
		}
		if w.bits != 0 {
			b.kept = append(b.kept, w)
		}
	}
	return b.kept
}

// inheritOpen makes n reached by those without a known end that reach u from words
// below from, as far as the prefix does not cover them.
func (b *Banded) inheritOpen(n, u Node, from uint32) bool {
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
func (b *Banded) openOf(w word, p int64) word {
	w.bits &= b.open[w.idx]
	for x := w.bits; x != 0; x &= x - 1 {
		if k := bits.TrailingZeros64(x); b.m[w.node(k)] < p {
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
	ps := make([]int64, 0, len(nodes))
	for _, v := range nodes {
		ps = append(ps, b.p[v])
	}
	slices.Sort(ps)
	k := 0
	for i, p := range ps {
		if i == 0 || p != ps[k-1] {
			ps[k] = p
			k++
		}
	}
	ps = ps[:k]
	n := uint32(len(nodes))
	long := false
	for i := 1; i < len(ps); i++ {
		edges = append(edges, [2]uint32{n + uint32(i) - 1, n + uint32(i)})
	}
	for i, v := range nodes {
		at := sort.Search(len(ps), func(k int) bool { return ps[k] >= b.p[v] })
		edges = append(edges, [2]uint32{n + uint32(at), uint32(i)})
		if at := sort.Search(len(ps), func(k int) bool { return ps[k] > b.m[v] }); at < len(ps) {
			edges = append(edges, [2]uint32{uint32(i), n + uint32(at)})
		}
		row := b.words(b.row[v])
		if len(row) > rowShort {
			if !long {
				long = true
				b.name(nodes)
			}
			edges = b.nearest(nodes, uint32(i), row, edges)
			continue
		}
		for _, w := range row {
			lo := sort.Search(len(nodes), func(k int) bool { return nodes[k] >= w.node(0) })
			for k := lo; k < len(nodes) && nodes[k] <= w.node(63); k++ {
				if k != i && w.bits&(1<<(nodes[k]&63)) != 0 && b.m[nodes[k]] >= b.p[v] {
					edges = append(edges, [2]uint32{uint32(k), uint32(i)})
				}
			}
		}
	}
	return edges, len(ps)
}

// rowShort is up to how many words of a row all bits are made edges.
const rowShort = 4

// name makes named the nodes.
func (b *Banded) name(nodes []Node) {
	words := int(nodes[len(nodes)-1]>>6) + 1
	b.named, b.covered = slices.Grow(b.named[:0], words)[:words], slices.Grow(b.covered[:0], words)[:words]
	clear(b.named)
	clear(b.covered)
	for _, v := range nodes {
		b.named[v>>6] |= 1 << (v & 63)
	}
}

// nearest appends edges to nodes[i], of which row is the row, from those of the nodes that reach it
// by a bit, and not through another one that does. While few have times a row is as long as
// what has come since, and all of its bits would be an edge for each two nodes. Cost: the words of
// the row, and of the rows of those that are found.
func (b *Banded) nearest(nodes []Node, i uint32, row []word, edges [][2]uint32) [][2]uint32 {
	v := nodes[i]
	for len(row) > 0 && int(row[len(row)-1].idx) >= len(b.named) {
		row = row[:len(row)-1]
	}
	for _, w := range slices.Backward(row) { // those that came last cover most
		for {
			left := w.bits & b.named[w.idx] &^ b.covered[w.idx]
			if left == 0 {
				break
			}
			u := w.node(63 - bits.LeadingZeros64(left))
			b.covered[w.idx] |= 1 << (u & 63)
			if u == v || b.m[u] < b.p[v] {
				continue
			}
			at, _ := slices.BinarySearch(nodes, u)
			edges = append(edges, [2]uint32{uint32(at), i})
			for _, x := range b.words(b.row[u]) {
				if x.idx >= row[0].idx && x.idx <= w.idx {
					b.covered[x.idx] |= x.bits
				}
			}
		}
	}
	if len(row) > 0 {
		clear(b.covered[row[0].idx : row[len(row)-1].idx+1])
	}
	return edges
}

// Bytes implements Reach.
func (b *Banded) Bytes() int {
	return b.bytes + len(b.end)*32 + len(b.p)*24 + len(b.row)*16 + (len(b.open)+len(b.late))*8 + len(b.least)*16
}
