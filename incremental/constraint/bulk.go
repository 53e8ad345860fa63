package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// Finish ends bulk loading: anti-dependencies of overwritten and of initial
// versions go in, cycles of the known graph are reported and cut, and the closure is built in
// one pass along a topological order, O(edges · chains). Blocks comes next.
func (p *Polygraph) Finish() {
	if !p.bulk {
		return
	}
	for v := range vid(p.tab.Len()) {
		ver := p.tab.At(v)
		if ver.Next == version.None {
			continue
		}
		w := p.tab.At(ver.Next).Writer
		for q := range p.tab.Readers(v) {
			if q != w {
				p.g.Add(graph.Edge{From: p.start(q), To: p.commit(w), Key: ver.Key, Type: verdict.RW, Why: verdict.ByOverwrite})
			}
		}
	}
	p.heads = p.blockHeads()
	for _, h := range p.heads { // the initial version precedes every block
		head := p.tab.At(h)
		init := p.tab.InitialOf(head.Key)
		if init == version.None || p.tab.At(init).Next != version.None {
			continue
		}
		for r := range p.tab.Readers(init) {
			if r != head.Writer {
				p.g.Add(graph.Edge{From: p.start(r), To: p.commit(head.Writer), Key: head.Key, Type: verdict.RW, Why: verdict.ByInitial})
			}
		}
	}
	p.build()
	p.rounds()
	if len(p.choices) > 0 {
		p.heads = p.blockHeads()
	}
	p.bulk = false
}

// build makes the closure of the graph as it is. Cycles are reported and cut.
func (p *Polygraph) build() {
	p.topo = p.topological()
	if p.chains != nil {
		p.chains.Build(p.topo)
	} else {
		p.bits.Build(p.topo)
	}
}

// Blocks takes in all blocks of a bulk load, those that begin early first. It
// follows Finish and does nothing where nothing was loaded in bulk.
func (p *Polygraph) Blocks() {
	if p.topo == nil {
		return
	}
	at := make([]uint32, p.g.Nodes())
	for i, n := range p.topo {
		at[n] = uint32(i)
	}
	heads := p.heads
	p.topo, p.heads = nil, nil
	slices.SortFunc(heads, func(a, b vid) int {
		x, y := at[p.commit(p.tab.At(a).Writer)], at[p.commit(p.tab.At(b).Writer)]
		if x != y {
			return int(x) - int(y)
		}
		return int(a) - int(b)
	})
	for _, h := range heads {
		if p.halted() {
			return
		}
		p.Block(h)
	}
	p.settleChoices()
}

// settleChoices looks at all open choices once, after which they watch.
func (p *Polygraph) settleChoices() {
	for ci := range p.choices {
		p.wakeChoice(uint32(ci))
	}
	p.Propagate()
}

// blockHeads lists the first versions of all blocks.
func (p *Polygraph) blockHeads() []vid {
	var heads []vid
	for v := range vid(p.tab.Len()) {
		ver := p.tab.At(v)
		if ver.Kind == version.Written && (ver.Prev == version.None || p.tab.At(ver.Prev).Kind != version.Written) {
			heads = append(heads, v)
		}
	}
	return heads
}

// topological orders all nodes, oldest layer first. A cycle is reported and one
// of its edges left out, until there is none.
func (p *Polygraph) topological() []node {
	n := p.g.Nodes()
	in := make([]int32, n)
	for i := range p.g.Len() {
		in[p.g.Edge(uint32(i)).To]++
	}
	if p.parts == 2 {
		for i := 1; i < n; i += 2 {
			in[i]++
		}
	}
	topo := make([]node, 0, n)
	for i := range n {
		if in[i] == 0 {
			topo = append(topo, node(i))
		}
	}
	var cut map[uint32]bool
	lower := func(v node) {
		if in[v]--; in[v] == 0 {
			topo = append(topo, v)
		}
	}
	next := 0
	for at := 0; ; {
		for ; at < len(topo); at++ {
			u := topo[at]
			if p.parts == 2 && u%2 == 0 {
				lower(u + 1)
			}
			for e := p.g.FirstOut(u); e != graph.None; e = p.g.NextOut(e) {
				if !cut[e] {
					lower(p.g.Edge(e).To)
				}
			}
		}
		if len(topo) == n {
			break
		}
		if cut == nil {
			cut = map[uint32]bool{}
		}
		for in[next] <= 0 {
			next++
		}
		e := p.cutCycle(node(next), in, cut)
		cut[e] = true
		lower(p.g.Edge(e).To)
	}
	if cut != nil {
		old := p.g
		p.g = graph.Graph{}
		p.g.Grow(n)
		for i := range old.Len() {
			if !cut[uint32(i)] {
				p.g.Add(old.Edge(uint32(i)))
			}
		}
	}
	return topo
}

// cutCycle finds a cycle behind n among the nodes that still wait (in > 0),
// reports a shortest one through it, and returns the edge of it to leave out:
// a read's, not a session's.
func (p *Polygraph) cutCycle(n node, in []int32, cut map[uint32]bool) uint32 {
	seen := map[node]bool{}
	for !seen[n] {
		seen[n] = true
		n = p.waitsFor(n, in, cut)
	}
	walk := p.shortest(n, in, cut)
	if p.more() {
		v := Violation{Cycle: edges(walk), Because: map[int][]graph.Edge{}}
		p.found = append(p.found, v)
	}
	best := walk[0]
	for _, s := range walk {
		if rank(s.Type) > rank(best.Type) {
			best = s
		}
	}
	return best.id
}

// rank prefers anti-dependencies to read-froms to session order.
func rank(t verdict.EdgeType) int {
	switch t {
	case verdict.RW:
		return 2
	case verdict.WR:
		return 1
	}
	return 0
}

// waitsFor returns a predecessor of n that still waits itself.
func (p *Polygraph) waitsFor(n node, in []int32, cut map[uint32]bool) node {
	if p.parts == 2 && n%2 == 1 && in[n-1] > 0 {
		return n - 1
	}
	for e := p.g.FirstIn(n); e != graph.None; e = p.g.NextIn(e) {
		if u := p.g.Edge(e).From; in[u] > 0 && !cut[e] {
			return u
		}
	}
	panic("constraint: a node waits for nothing, which can't happen, because its count of predecessors is above zero")
}

// shortest is a shortest cycle through n among the nodes that wait.
func (p *Polygraph) shortest(n node, in []int32, cut map[uint32]bool) []step {
	type came struct {
		next node
		by   step
		free bool
	}
	via := map[node]came{}
	queue := []node{n}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		back := func(u node, c came) bool {
			if in[u] <= 0 {
				return false
			}
			if _, ok := via[u]; ok {
				return false
			}
			via[u] = c
			queue = append(queue, u)
			return u == n
		}
		found := p.parts == 2 && v%2 == 1 && back(v-1, came{next: v, free: true})
		for e := p.g.FirstIn(v); e != graph.None && !found; e = p.g.NextIn(e) {
			if !cut[e] {
				ed := p.g.Edge(e)
				found = back(ed.From, came{next: v, by: step{ed, e}})
			}
		}
		if found {
			var walk []step
			for u := n; ; {
				c := via[u]
				if !c.free {
					walk = append(walk, c.by)
				}
				if u = c.next; u == n {
					return walk
				}
			}
		}
	}
	panic("constraint: no cycle through a node found on one, which can't happen, because its predecessors wait")
}
