package reach

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// A world is a random history as a closure sees it, and its closure by brute
// force.
type world struct {
	rng    *rand.Rand
	parts  graph.Parts
	g      graph.Graph
	r      Reach
	n      version.Slot // transactions
	before [][]Node     // by node, what implicit edges lead to it from
	path   [][]bool     // path[u][v]
	add    func()       // appends a transaction to r; implicit edges go into before
	banded *Banded
	base   []bool // by transaction: no edge leads to it
}

func (w *world) nodes() Node { return w.parts.Start(w.n) }

// grow makes room for one more transaction.
func (w *world) grow() {
	w.n++
	w.g.Grow(int(w.nodes()))
	for range w.parts {
		w.before = append(w.before, nil)
	}
	if w.parts == 2 {
		w.before[w.nodes()-1] = []Node{w.nodes() - 2}
	}
	w.add()
}

// close computes the closure anew: a search from each node.
func (w *world) close() [][]bool {
	n := w.nodes()
	next := make([][]Node, n)
	for v := range n {
		for _, u := range w.before[v] {
			next[u] = append(next[u], v)
		}
		for e := w.g.FirstIn(v); e != graph.None; e = w.g.NextIn(e) {
			next[w.g.Edge(e).From] = append(next[w.g.Edge(e).From], v)
		}
	}
	path := make([][]bool, n)
	for u := range n {
		path[u] = make([]bool, n)
		path[u][u] = true
		todo := []Node{u}
		for len(todo) > 0 {
			x := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, y := range next[x] {
				if !path[u][y] {
					path[u][y] = true
					todo = append(todo, y)
				}
			}
		}
	}
	return path
}

// check compares Reaches with the closure; told, if not nil, must name every
// node that something new reaches since the last check.
func (w *world) check(told map[Node]bool) error {
	path := w.close()
	for u := range w.nodes() {
		for v := range w.nodes() {
			if got := w.r.Reaches(u, v); got != path[u][v] {
				return fmt.Errorf("Reaches(%d, %d) = %v", u, v, got)
			}
			if path[u][v] && w.parts.Slot(u) != w.parts.Slot(v) && w.banded != nil && w.banded.Ends(u) {
				return fmt.Errorf("%d ends, but reaches %d", u, v)
			}
			if told != nil && path[u][v] && !w.path[u][v] && !told[v] {
				return fmt.Errorf("%d reaches %d now, and nobody was told", u, v)
			}
		}
	}
	w.path = path
	return nil
}

// contracts checks Contract on a random set of nodes.
func (w *world) contracts() error {
	var nodes []Node
	for n := range w.nodes() {
		if w.rng.IntN(3) > 0 {
			nodes = append(nodes, n)
		}
	}
	edges, extra := w.r.Contract(nodes, nil)
	n := len(nodes) + extra
	path := make([][]bool, n)
	for i := range path {
		path[i] = make([]bool, n)
		path[i][i] = true
	}
	for _, e := range edges {
		if e[0] == e[1] {
			return fmt.Errorf("Contract has a loop at %d", e[0])
		}
		path[e[0]][e[1]] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				path[i][j] = path[i][j] || path[i][k] && path[k][j]
			}
		}
	}
	for i := range n {
		for j := range n {
			if i != j && path[i][j] && path[j][i] {
				return fmt.Errorf("Contract has a cycle through %d and %d of %v: %v, %d helpers", i, j, nodes, edges, extra)
			}
			if i < len(nodes) && j < len(nodes) && path[i][j] != w.path[nodes[i]][nodes[j]] {
				return fmt.Errorf("Contract says %v of %d to %d; nodes %v, edges %v, %d helpers", path[i][j], nodes[i], nodes[j], nodes, edges, extra)
			}
		}
	}
	return nil
}

// edge draws an edge that would close no cycle, commit to start or the other
// way round as dependencies run, or as it comes.
func (w *world) edge() (u, v Node, ok bool) {
	for range 20 {
		u, v = Node(w.rng.Uint32N(uint32(w.nodes()))), Node(w.rng.Uint32N(uint32(w.nodes())))
		if !w.path[v][u] && (w.base == nil || !w.base[w.parts.Slot(v)]) {
			return u, v, true
		}
	}
	return 0, 0, false
}

// play adds transactions and edges in random order and checks after each.
func (w *world) play(size version.Slot) error {
	w.grow()
	if err := w.check(nil); err != nil {
		return err
	}
	for step := range 4 * size {
		if w.n < size && w.rng.IntN(3) == 0 {
			w.grow()
			if err := w.check(nil); err != nil {
				return fmt.Errorf("step %d, after Add: %w", step, err)
			}
			continue
		}
		u, v, ok := w.edge()
		if !ok {
			continue
		}
		w.g.Add(graph.Edge{From: u, To: v, Type: verdict.WR})
		told := map[Node]bool{}
		w.r.Insert(u, v, watching(told))
		if err := w.check(told); err != nil {
			return fmt.Errorf("step %d, after Insert(%d, %d): %w", step, u, v, err)
		}
		if w.rng.IntN(4) == 0 {
			if err := w.contracts(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
	}
	return nil
}

// newBandedWorld has transactions of all lengths, late ones, some without a known
// end, and bases.
func newBandedWorld(rng *rand.Rand) *world {
	w := &world{rng: rng, parts: graph.Parts(1 + rng.Uint32N(2))}
	skew := int64(rng.IntN(3)) * int64(rng.IntN(4))
	open, long, late := rng.IntN(2)*rng.IntN(40), rng.IntN(30), rng.IntN(2)*rng.IntN(40)
	bases := rng.IntN(2) * rng.IntN(30)
	back, stretch := 10, version.Slot(0)
	if rng.IntN(3) == 0 { // all come late for a while
		back, stretch = 100, version.Slot(rng.Uint32N(60))
	}
	w.banded = NewBanded(&w.g, w.parts, skew)
	w.banded.Instants = rng.IntN(3) == 0
	w.banded.Late = w.banded.Instants || rng.IntN(3) > 0
	w.r = w.banded
	clock := int64(rng.IntN(10))
	var ends, order []int64 // as the closure takes them, and the last so far by slot
	var known []bool
	var starts []int64
	var timed []bool // its start is known
	took := func(end, last, start int64, isKnown, isTimed bool) {
		ends, order, starts = append(ends, end), append(order, last), append(starts, start)
		known, timed = append(known, isKnown), append(timed, isTimed)
		if w.banded.Instants {
			w.instants(starts, ends, timed, known, skew)
		}
	}
	w.add = func() {
		w.base = append(w.base, false)
		if len(known) > 0 && rng.IntN(100) < bases {
			w.base[len(known)] = true
			if rng.IntN(3) == 0 || !known[0] {
				w.banded.AddBase(math.MaxUint32)
				took(0, order[len(order)-1], 0, false, false)
				return
			}
			w.banded.AddBase(0)
			for v := range known { // also those that came before it
				if start := w.parts.Start(version.Slot(v)); slices.Contains(w.before[start], w.parts.Commit(0)) {
					w.before[start] = append(w.before[start], w.parts.Commit(w.n-1))
				}
			}
			took(ends[0], order[len(order)-1], 0, true, false)
			return
		}
		clock += int64(rng.IntN(4))
		end := clock
		if rng.IntN(100) < late || w.n < stretch {
			end -= int64(rng.IntN(back))
		}
		start := end - int64(rng.IntN(5))
		if rng.IntN(100) < long {
			start = end - int64(rng.IntN(60))
		}
		isOpen := rng.IntN(100) < open
		if isOpen && rng.IntN(2) == 0 {
			w.banded.Add(0, 0, false, false)
			last := int64(math.MinInt64)
			if len(order) > 0 {
				last = order[len(order)-1]
			}
			took(0, last, 0, false, false)
			return
		}
		w.banded.Add(start, end, true, !isOpen)
		for i := range ends {
			if known[i] && ends[i]+skew < start {
				from := w.parts.Commit(version.Slot(i))
				to := w.parts.Start(w.n - 1)
				w.before[to] = append(w.before[to], from)
			}
		}
		last := int64(math.MinInt64)
		if len(order) > 0 {
			last = order[len(order)-1]
		}
		if !isOpen && end < last && !w.banded.Late {
			end = last
		}
		if !isOpen {
			for v := range starts { // what it precedes may be there
				if start := w.parts.Start(version.Slot(v)); timed[v] && end+skew < starts[v] {
					w.before[start] = append(w.before[start], w.parts.Commit(w.n-1))
				}
			}
		}
		if !isOpen { // an end that is not known counts for nothing
			last = max(last, end)
		}
		took(end, last, start, !isOpen, true)
	}
	return w
}

// instants orders all nodes by the times of starts and commits, where these are known.
func (w *world) instants(starts, ends []int64, timed, known []bool, skew int64) {
	at := func(n Node) (out, in int64) {
		s := w.parts.Slot(n)
		out, in = math.MaxInt64, math.MinInt64
		if known[s] {
			out = ends[s]
		}
		if timed[s] {
			in = starts[s] - skew
		}
		switch {
		case !w.parts.OnlyStarts(n):
			if known[s] && !w.base[s] {
				in = max(in, ends[s])
			}
		case timed[s] && known[s]:
			out = in
		}
		return out, in
	}
	for v := range w.nodes() {
		_, in := at(v)
		for u := range w.nodes() {
			if out, _ := at(u); w.parts.Slot(u) != w.parts.Slot(v) && out < in && !slices.Contains(w.before[v], u) {
				w.before[v] = append(w.before[v], u)
			}
		}
	}
}

// newChainsWorld has transactions of a few sessions, more as they come.
func newChainsWorld(rng *rand.Rand) *world {
	w := &world{rng: rng, parts: graph.Parts(1 + rng.Uint32N(2))}
	k := 1 + rng.IntN(5)
	c := NewChains(&w.g, w.parts)
	w.r = c
	last := map[uint32]version.Slot{}
	used := uint32(0)
	w.add = func() {
		chain := min(rng.Uint32N(uint32(k)), used)
		used = max(used, chain+1)
		if p, ok := last[chain]; ok {
			w.g.Add(graph.Edge{From: w.parts.Commit(p), To: w.parts.Start(w.n - 1), Type: verdict.SO})
		}
		last[chain] = w.n - 1
		c.Add(Chain(chain), false)
	}
	return w
}

func newBitsWorld(rng *rand.Rand) *world {
	w := &world{rng: rng, parts: graph.Parts(1 + rng.Uint32N(2))}
	b := NewBits(&w.g, w.parts)
	w.r = b
	w.add = func() { b.Add(false) }
	return w
}

// Every representation is the transitive closure after every step, tells of
// every node that something new reaches, and contracts faithfully.
func TestReachIsTheClosure(t *testing.T) {
	for _, x := range []struct {
		name string
		make func(*rand.Rand) *world
	}{{"banded", newBandedWorld}, {"chains", newChainsWorld}, {"bits", newBitsWorld}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(race.Few(500, 1500)) {
				rng := rand.New(rand.NewPCG(seed, 3))
				if err := x.make(rng).play(version.Slot(2 + rng.Uint32N(10))); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for seed := range uint64(race.Few(4, 12)) { // rows of several words
				rng := rand.New(rand.NewPCG(seed, 4))
				if err := x.make(rng).play(version.Slot(70 + rng.Uint32N(30))); err != nil {
					t.Fatalf("large, seed %d: %v", seed, err)
				}
			}
		})
	}
}

// What was built at once is what was inserted edge by edge.
func TestBuildIsInserts(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		parts := 1 + rng.Uint32N(2)
		n := 1 + rng.Uint32N(12)
		k := 1 + rng.Uint32N(4)
		w := &world{rng: rng, parts: graph.Parts(parts), add: func() {}}
		chains, bits := NewChains(&w.g, graph.Parts(parts)), NewBits(&w.g, graph.Parts(parts))
		last := map[Chain]uint32{}
		for t := range n {
			w.grow()
			chain := Chain(rng.Uint32N(min(k, t+1)))
			if p, ok := last[chain]; ok {
				w.g.Add(graph.Edge{From: graph.Node(p*parts + parts - 1), To: graph.Node(t * parts), Type: verdict.SO})
			}
			if rng.IntN(3) == 0 {
				chain = Alone // whatever it follows, nothing follows it for its chain's sake
			} else {
				last[chain] = t
			}
			chains.Add(chain, true)
			bits.Add(true)
		}
		w.path = w.close()
		for range 2 * n {
			if u, v, ok := w.edge(); ok {
				w.g.Add(graph.Edge{From: u, To: v, Type: verdict.WR})
				w.path = w.close()
			}
		}
		reached := func(v Node) (c int) {
			for u := range w.nodes() {
				if w.path[u][v] {
					c++
				}
			}
			return c
		}
		for range 2 { // the second time with an edge more
			topo := make([]Node, w.nodes())
			for i := range topo {
				topo[i] = Node(i)
			}
			slices.SortFunc(topo, func(a, b Node) int { return reached(a) - reached(b) })
			for _, b := range []builder{chains, bits} {
				b.Build(topo, nil)
				w.r = b
				if err := w.check(nil); err != nil {
					t.Fatalf("seed %d: %T after Build: %v", seed, b, err)
				}
				if err := w.contracts(); err != nil {
					t.Fatalf("seed %d: %T: %v", seed, b, err)
				}
			}
			if u, v, ok := w.edge(); ok {
				w.g.Add(graph.Edge{From: u, To: v, Type: verdict.WR})
				w.path = w.close()
				for _, b := range []builder{chains, bits} {
					b.Insert(u, v, watching(nil))
				}
			}
		}
		for _, chain := range []Chain{Alone, Chain(k), 0} { // what comes later
			w.grow()
			bits.Add(false)
			if p, ok := last[chain]; ok {
				w.g.Add(graph.Edge{From: graph.Node(p*parts + parts - 1), To: graph.Node(uint32(w.n-1) * parts), Type: verdict.SO})
				bits.Insert(graph.Node(p*parts+parts-1), graph.Node(uint32(w.n-1)*parts), watching(nil))
			}
			last[chain] = uint32(w.n - 1)
			chains.Add(chain, false)
			w.path = w.close()
			w.r = chains
			if err := w.check(nil); err != nil {
				t.Fatalf("seed %d: after Add: %v", seed, err)
			}
		}
		// It goes on from there.
		more := &world{rng: rng}
		*more = *w
		if u, v, ok := more.edge(); ok {
			w.g.Add(graph.Edge{From: u, To: v, Type: verdict.WR})
			for _, b := range []builder{chains, bits} {
				told := map[Node]bool{}
				b.Insert(u, v, watching(told))
				again := *w
				again.r = b
				if err := again.check(told); err != nil {
					t.Fatalf("seed %d: %T, Insert(%d, %d) after Build: %v", seed, b, u, v, err)
				}
			}
		}
	}
}

// Rows of many blocks, built at once and then inserted into, are those of a matrix.
func TestBitsOfManyBlocks(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 6))
		parts, n := 1+uint32(seed%2), uint32(1500)
		var g graph.Graph
		b := NewBits(&g, graph.Parts(parts))
		nodes := n * parts
		g.Grow(int(nodes))
		matrix := make([]bitset.BitSet, nodes)
		for v := range nodes {
			matrix[v].Set(uint(v))
			if uint32(v)%parts == 1 {
				matrix[v].Set(uint(v - 1))
			}
		}
		for range n {
			b.Add(true)
		}
		// time runs backwards, so that places are not numbers
		topo := make([]Node, 0, nodes)
		for t := range n {
			for k := range parts {
				topo = append(topo, Node((n-1-t)*parts+k))
			}
		}
		for t := range n {
			for range min(3, n-1-t) {
				u := (t+1+rng.Uint32N(min(300, n-1-t)))*parts + parts - 1
				g.Add(graph.Edge{From: graph.Node(u), To: graph.Node(t * parts), Type: verdict.WR})
			}
		}
		insert := func(u, v Node) {
			for w := range nodes {
				if matrix[w].Test(uint(v)) {
					matrix[w].InPlaceUnion(&matrix[u])
				}
			}
		}
		for _, v := range topo {
			for e := g.FirstIn(v); e != graph.None; e = g.NextIn(e) {
				matrix[v].InPlaceUnion(&matrix[g.Edge(e).From])
			}
			if uint32(v)%parts == 1 {
				matrix[v].InPlaceUnion(&matrix[v-1])
			}
		}
		b.Build(topo, nil)
		compare := func() {
			t.Helper()
			for v := range nodes {
				for u := range nodes {
					if want := matrix[v].Test(uint(u)); b.Reaches(Node(u), Node(v)) != want {
						t.Fatalf("seed %d: Reaches(%d, %d) = %v", seed, u, v, !want)
					}
				}
			}
		}
		compare()
		for range 300 {
			u, v := rng.Uint32N(nodes), rng.Uint32N(nodes)
			if matrix[u].Test(uint(v)) {
				continue
			}
			g.Add(graph.Edge{From: graph.Node(u), To: graph.Node(v), Type: verdict.WR})
			b.Insert(Node(u), Node(v), watching(nil))
			insert(Node(u), Node(v))
		}
		compare()
	}
}

// Precedes, After, Time and First mean what they say.
func TestBandedByClock(t *testing.T) {
	var g graph.Graph
	b := NewBanded(&g, 1, 5)
	ends := []int64{10, 20, 20, 30}
	starts := []int64{0, 15, 16, 26}
	g.Grow(5)
	for i := range ends {
		b.Add(starts[i], ends[i], true, true)
	}
	b.Add(100, 0, false, false)
	for s := range uint32(4) {
		for v := range uint32(4) {
			if got, want := b.Precedes(Node(s), Node(v)), s < v && ends[s]+5 < starts[v]; got != want {
				t.Errorf("Precedes(%d, %d) = %v", s, v, got)
			}
		}
		if end, known := b.Time(Node(s)); b.First(Node(s)) != Node(s) || b.After(Node(s)) != starts[s]-5 || end != ends[s] || !known {
			t.Errorf("slot %d: first %d, after %d, ended %d, %v", s, b.First(Node(s)), b.After(Node(s)), end, known)
		}
	}
	if _, known := b.Time(4); known || b.After(4) != math.MinInt64 || b.Precedes(4, 3) || b.First(4) != math.MaxUint32 {
		t.Errorf("a slot without times is after %d, first %d, known %v", b.After(4), b.First(4), known)
	}
	if b.Bytes() <= 0 {
		t.Errorf("%d bytes", b.Bytes())
	}
}

// A base precedes by the clock what the slot it was given precedes, whatever bases
// come after; one that was given none precedes nothing.
func TestBasesByClock(t *testing.T) {
	var g graph.Graph
	b := NewBanded(&g, 1, 0)
	g.Grow(5)
	b.Add(10, 20, true, true)
	b.AddBase(0)
	b.AddBase(math.MaxUint32)
	b.AddBase(0)
	b.Add(30, 40, true, true)
	for s, want := range []bool{true, true, false, true} {
		_, known := b.Time(Node(s))
		if r, c, p := b.Reaches(Node(s), 4), b.ByClock(Node(s), 4), b.Precedes(Node(s), 4); r != want || c != want || p != want || known != want {
			t.Errorf("slot %d before the last: reaches %v, by clock %v, precedes %v, its end is known %v; want %v", s, r, c, p, known, want)
		}
	}
}

// Where few transactions have times rows are long. Contracted they mean the same, and are not as many
// edges as there are pairs of nodes.
func TestContractOfLongRows(t *testing.T) {
	const slots, sessions = 3000, 6
	for parts := uint32(1); parts <= 2; parts++ {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 77))
			var g graph.Graph
			b := NewBanded(&g, graph.Parts(parts), 0)
			for s := range uint32(slots) {
				g.Grow(int((s + 1) * parts))
				timed := rng.IntN(40) == 0 && seed > 0
				b.Add(int64(s), int64(s)+2, timed, timed)
				from := []uint32{s - sessions, s - 1 - rng.Uint32N(s+1), s - 1 - rng.Uint32N(s+1)}
				if seed == 3 { // all in a row
					from = []uint32{s - 1}
				}
				for _, u := range from {
					if u >= s { // none
						continue
					}
					from, to := u*parts+parts-1, s*parts
					if !b.Reaches(Node(from), Node(to)) && !b.Reaches(Node(to), Node(from)) {
						g.Add(graph.Edge{From: graph.Node(from), To: graph.Node(to)})
						b.Insert(Node(from), Node(to), watching(nil))
					}
				}
			}
			for _, first := range []uint32{0, slots / 3, slots * 5 / 6} {
				last := first + 1 + rng.Uint32N(slots-first-1)
				var nodes []Node
				for n := first * parts; n < last*parts; n++ {
					if rng.IntN(4) == 0 || n == first*parts {
						nodes = append(nodes, Node(n))
					}
				}
				edges, extra := b.Contract(nodes, nil)
				if len(edges) > 66*len(nodes) { // a short row may have 64 bits of them
					t.Errorf("parts %d, seed %d: %d nodes from %d to %d have %d edges", parts, seed, len(nodes), first, last, len(edges))
				}
				out := make([][]uint32, len(nodes)+extra)
				for _, e := range edges {
					out[e[0]] = append(out[e[0]], e[1])
				}
				for i := range nodes {
					seen := make([]bool, len(out))
					seen[i] = true
					for todo := []uint32{uint32(i)}; len(todo) > 0; {
						n := todo[len(todo)-1]
						todo = todo[:len(todo)-1]
						for _, x := range out[n] {
							if !seen[x] {
								seen[x] = true
								todo = append(todo, x)
							}
						}
					}
					for j := range nodes {
						if seen[j] != b.Reaches(nodes[i], nodes[j]) {
							t.Fatalf("parts %d, seed %d, nodes from %d to %d: a path from %d to %d is %v", parts, seed, first, last, nodes[i], nodes[j], seen[j])
						}
					}
				}
			}
		}
	}
}

// Transactions on no chain take as many columns as are concurrent.
func TestAloneShareColumns(t *testing.T) {
	const n, concurrent = 200, 4
	var g graph.Graph
	c := NewChains(&g, 1)
	g.Grow(n)
	topo := make([]Node, n)
	for i := range n {
		topo[i] = Node(i)
		if i >= concurrent {
			g.Add(graph.Edge{From: Node(i - concurrent), To: Node(i), Type: verdict.WR})
		}
		c.Add(Alone, true)
	}
	c.Build(topo, nil)
	if c.Len() != concurrent {
		t.Errorf("%d columns; want %d", c.Len(), concurrent)
	}
}

// builder is a Reach that can be computed at once.
type builder interface {
	Reach
	Build(topo []Node, stop func() bool)
}

// watching watches all nodes, and notes those that are reached, unless it is nil.
type watching map[Node]bool

func (watching) Watched(Node) bool { return true }

func (w watching) Reached(n Node) {
	if w != nil {
		w[n] = true
	}
}
