package constraint

import (
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// writers are, of keys that are read ambiguously, who wrote them, and so what a read may be of.
type writers struct {
	*known
	subjects *subjects
	blocks   *blocks
	byLine   [][]writersOnLine // by key, if tracked
	tracked  []bool            // by key
	scratch  []slot            // of narrow: the writers that precede the reader
}

// writersOnLine are the writers of one key on one line (session), in order.
type writersOnLine struct {
	line  version.Line
	slots []slot
}

// trackWriters keeps the writers of a key by line from now on.
func (p *writers) trackWriters(k keyID) {
	for int(k) >= len(p.byLine) {
		p.byLine = append(p.byLine, nil)
		p.tracked = append(p.tracked, false)
	}
	if p.tracked[k] {
		return
	}
	p.tracked[k] = true
	for _, b := range *p.blocks.list(k) {
		for v := b.head; v != version.None; v = p.tab.At(v).Next {
			p.trackWriter(v)
		}
	}
}

// Wrote takes in a new version, or one that it may have been told of. held: Block will only be told of it when other
// transactions have come, and a read of its key has to know of it before.
func (p *writers) Wrote(v version.ID, held bool) {
	k := p.tab.At(v).Key
	if held && !p.bulk { // after a bulk load all are tracked
		p.trackWriters(k)
	}
	if int(k) < len(p.tracked) && p.tracked[k] {
		p.trackWriter(v)
	}
}

func (p *writers) trackWriter(v vid) {
	k, w, line := p.tab.At(v).Key, p.writer(v), p.line(v)
	lists := p.byLine[k]
	i, ok := slices.BinarySearchFunc(lists, line, func(l writersOnLine, x version.Line) int {
		return int(l.line) - int(x)
	})
	if !ok {
		lists = slices.Insert(lists, i, writersOnLine{line: line})
		p.byLine[k] = lists
	}
	l := &lists[i].slots
	if at, tracked := slices.BinarySearch(*l, w); !tracked {
		*l = slices.Insert(*l, at, w)
	}
}

// trackAll keeps the writers of the keys of all choices, at the end of a bulk
// load.
func (p *writers) trackAll() {
	if len(p.subjects.choices) == 0 {
		return
	}
	for i := range p.subjects.choices {
		k := p.subjects.choices[i].key
		for int(k) >= len(p.byLine) {
			p.byLine = append(p.byLine, nil)
			p.tracked = append(p.tracked, false)
		}
		p.tracked[k] = true
	}
	for v := range vid(p.tab.Len()) {
		if ver := p.tab.At(v); ver.Kind == version.Written && int(ver.Key) < len(p.tracked) && p.tracked[ver.Key] {
			p.trackWriter(v)
		}
	}
}

// behind are, of each line, the last writer of key that precedes reader: what a
// read by it can't go back behind. It appends to out.
func (p *writers) behind(key keyID, reader slot, out []slot) []slot {
	for _, l := range p.byLine[key] {
		if n := p.preceding(l.slots, reader); n > 0 {
			out = append(out, l.slots[n-1])
		}
	}
	return out
}

// preceding is how many of the writers of a line precede reader. Whatever precedes a
// transaction of a line does so for its successors there, so a binary search finds it.
func (p *writers) preceding(slots []slot, reader slot) int {
	start := p.start(reader)
	return sort.Search(len(slots), func(i int) bool {
		return slots[i] == reader || !p.reach.Reaches(p.commit(slots[i]), start)
	})
}

// beside appends the heads of the blocks that a read may have missed whatever it is of: they neither follow
// its transaction nor precede it, as what comes before one that does is no candidate any more.
// Cost: per line of writers two binary searches, and what is found.
func (p *writers) beside(c *choice, out []vid) []vid {
	start := p.start(c.reader)
	for _, l := range p.byLine[c.key] {
		slots := l.slots[p.preceding(l.slots, c.reader):]
		slots = slots[:sort.Search(len(slots), func(i int) bool { return p.reach.Reaches(start, p.commit(slots[i])) })]
		for _, w := range slots {
			if v := p.tab.WriteOf(w, c.key); w != c.reader && p.isHead(v) && !p.tab.At(v).Fresh {
				out = append(out, v)
			}
		}
		p.Budget.Use(2*behindSteps + len(slots))
	}
	return out
}

// excluded tells why reader can't have read v: the dependency of that read that
// would close a cycle. behind are the writers of the key that precede reader.
func (p *writers) excluded(v vid, reader slot, behind []slot) (graph.Edge, bool) {
	ver := p.tab.At(v)
	start := p.start(reader)
	p.Budget.Use(len(behind) / placesAStep)
	if ver.Kind == version.Initial {
		for _, x := range behind {
			return p.antiDependency(reader, x, ver.Key), true
		}
	} else {
		w := ver.Writer
		if p.subjects.maybe[w] == isOut {
			return graph.Edge{From: none}, true
		}
		if p.reach.Reaches(start, p.commit(w)) {
			return graph.Edge{From: p.commit(w), To: start, Key: ver.Key, Type: verdict.WR, Why: verdict.ByCase}, true
		}
		first := p.writing(w)
		for i, x := range behind {
			if x != w && p.reach.Reaches(first, p.commit(x)) {
				behind[0], behind[i] = x, behind[0] // most likely it excludes the next one too
				return p.antiDependency(reader, x, ver.Key), true
			}
		}
	}
	// If reader overwrote v, nobody else did.
	if ver.Next != version.None && !p.cfg.Prefix {
		if n := p.tab.At(ver.Next).Writer; n != reader && p.tab.WriteOf(reader, ver.Key) != version.None {
			return p.antiDependency(reader, n, ver.Key), true
		}
	}
	return graph.Edge{}, false
}

// behindSteps is what the search in one line of writers costs.
const behindSteps = 8

// narrow drops the candidates of a choice that the graph excludes, and leaves
// the writers of the key that precede the reader in p.scratch. Cost: per line
// of writers a binary search, per candidate at most a reachability question for
// each of those.
func (p *writers) narrow(c *choice) {
	p.scratch = p.behind(c.key, c.reader, p.scratch[:0])
	p.Budget.Use(behindSteps*len(p.byLine[c.key]) + len(c.cands))
	var kept []vid
	dropped := false
	for i, v := range c.cands {
		_, out := p.excluded(v, c.reader, p.scratch)
		switch {
		case !out && dropped:
			kept = append(kept, v)
		case out && !dropped:
			dropped = true
			if c.own {
				kept = c.cands[:i]
			} else {
				kept = append(make([]vid, 0, len(c.cands)-1), c.cands[:i]...)
			}
		}
	}
	if dropped {
		p.subjects.candidates -= len(c.cands) - len(kept)
		c.cands, c.own = kept, true
	}
}
