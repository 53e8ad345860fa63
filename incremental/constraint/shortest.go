package constraint

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// A cycle is told with as few transactions as can be. What counts is what a person
// reads: an edge is a step, and so is a run of session order, however many
// transactions of the session lie between its ends.
//
// walker finds such a path from src to dst. It goes back from dst, level by level,
// and where an edge of session order begins a run that goes on with another one it
// stays on its level. So there are two states of a node: before a step of session
// order (run), and before any other.
//
//	a ─wr→ b ─so→ c ─so→ d ─rw→ e      level of e: 0, of d: 1, of c, as it is before a run: 2, of b: 2, of a: 3
//
// Of the shortest paths it takes, from src on, the edge that is a plain fact of the
// records before one that needs a reason itself, then the one to the transaction
// that was admitted first. That depends on the graph alone, not on the order in
// which its edges came, so that a cycle is the same whenever it is looked for.
//
// Cost: linear in the nodes and edges that are looked at, which are those that src
// reaches and that reach dst.
type walker struct {
	p        *reports
	src, dst node
	// usable tells whether a path may pass a node, edge whether it may take an edge.
	usable func(node) bool
	edge   func(id graph.EdgeID) bool
	// most, if positive, is the number of steps that is too many.
	most int
	// budget, if there is one, is how many states may still be looked at.
	budget *int
	// clock: real time orders, beside the edges.
	clock bool

	came  map[uint64]came // by state.key
	order []state         // as they were reached
	next  []state         // of the next level
	// near are, with clock, the commits of the transactions that come right after src.
	near []node
}

// state is a node and whether a step of session order follows.
type state struct {
	node
	run bool
}

// key is the state as a number, which a map finds faster than a struct.
func (s state) key() uint64 { return uint64(s.node)<<1 | uint64(asInt(s.run)) }

// came is how a state's path goes on.
type came struct {
	by    step
	free  bool // from start to commit, which is no step
	to    state
	level int
}

// arrived is src's state at the end of the search; it is another one than src's on
// the way, where a cycle begins and ends there.
const arrived = none

// find is the path; nil if there is none, or it is not looked for any more.
func (w *walker) find() []step {
	w.begin()
	defer w.done()
	from := state{w.dst, false}
	w.order = append(w.order[:0], from)
	w.next = w.next[:0]
	w.came[from.key()] = came{}
	for level := 0; w.most <= 0 || level < w.most; level++ {
		for i := 0; i < len(w.order); i++ { // grows
			if w.budget != nil {
				if *w.budget--; *w.budget < 0 {
					return nil
				}
			}
			if w.p.leavesOff() {
				return nil
			}
			w.back(w.order[i], level)
		}
		if s, ok := w.end(level); ok {
			return w.unroll(s)
		}
		if len(w.order) == 0 {
			break
		}
		w.order, w.next = w.next, w.order[:0]
	}
	return nil
}

// walkedMax is the number of states up to which a search leaves its memory to the
// next one: to empty more would take longer than a small search does.
const walkedMax = 1 << 12

// begin takes the memory that the search before left, done leaves it to the next.
func (w *walker) begin() {
	w.came, w.p.walked = w.p.walked, nil
	if w.came == nil {
		w.came = map[uint64]came{}
	}
}

func (w *walker) done() {
	if len(w.came) <= walkedMax {
		clear(w.came)
		w.p.walked = w.came
	}
}

// end is the state of src that was reached on a level.
func (w *walker) end(level int) (state, bool) {
	plain, okPlain := w.came[state{arrived, false}.key()]
	run, okRun := w.came[state{arrived, true}.key()]
	okPlain, okRun = okPlain && plain.level <= level, okRun && run.level <= level
	switch {
	case okPlain && (!okRun || plain.level < run.level || plain.level == run.level && w.before(plain, run)):
		return state{arrived, false}, true
	case okRun:
		return state{arrived, true}, true
	}
	return state{}, false
}

// back looks at all steps that lead to a state of a level.
func (w *walker) back(at state, level int) {
	p, v := w.p, at.node
	if w.came[at.key()].level < level {
		return // reached by a run meanwhile, and looked at then
	}
	if p.parts.OnlyCommits(v) {
		w.reach(v-1, at.run, came{free: true, to: at, level: level})
	}
	looked := p.looked
	for e := p.g.FirstIn(v); e != graph.None; e = p.g.NextIn(e) {
		p.looked++
		if w.edge == nil || w.edge(e) {
			w.step(at, step{p.g.Edge(e), e}, level)
		}
	}
	p.Budget.Use(1 + p.looked - looked)
	if !w.clock || p.parts.OnlyCommits(v) && !p.cfg.Instants {
		return
	}
	own := w.src
	if !p.cfg.Instants {
		own = p.commit(p.parts.Slot(own))
	}
	if p.parts.Slot(own) != p.parts.Slot(v) && p.banded.Precedes(own, v) {
		w.step(at, w.later(own, v), level)
	}
	for _, q := range w.near {
		if p.banded.Precedes(q, v) {
			w.step(at, w.later(q, v), level)
		}
	}
	if first := p.banded.First(w.src); first != none && p.banded.Precedes(first, v) {
		w.step(at, w.later(first, v), level)
	}
}

// later is the step of real time from a node to one of another transaction. Slots keep the order of a session, against
// which the database's clock may have stepped back.
func (w *walker) later(from, n node) step {
	p := w.p
	a, b := p.parts.Slot(from), p.parts.Slot(n)
	if a < b && p.tab.Line(a) == p.tab.Line(b) && from == p.commit(a) && n == p.start(b) {
		return step{graph.Edge{From: from, To: n, Key: none, Type: verdict.SO, Why: verdict.BySession}, none} // as well
	}
	return step{graph.Edge{From: from, To: n, Key: none, Type: verdict.RT, Why: verdict.ByClock, Assumed: true}, none}
}

// step comes to a state by a step.
func (w *walker) step(at state, s step, level int) {
	run := s.Type == verdict.SO
	if !run || !at.run {
		level++
	}
	w.reach(s.From, run, came{by: s, to: at, level: level})
}

// reach notes a way on from a node, if it is the first or the best of its length.
func (w *walker) reach(n node, run bool, c came) {
	at := state{n, run}
	if n == w.src {
		at.node = arrived
	} else if !w.usable(n) {
		return
	}
	old, seen := w.came[at.key()]
	if seen && (old.level < c.level || old.level == c.level && !w.before(c, old)) {
		return
	}
	w.came[at.key()] = c
	if at.node == arrived || seen && old.level == c.level {
		return
	}
	if c.level > w.came[c.to.key()].level {
		w.next = append(w.next, at)
	} else {
		w.order = append(w.order, at)
	}
}

// before tells whether, of two ways of the same length, a is taken.
func (w *walker) before(a, b came) bool {
	order := func(c came) [6]int {
		if c.free {
			return [6]int{-1, 0, 0, 0, 0, asInt(c.to.run)}
		}
		return [6]int{forcedness(c.by), int(w.p.parts.Slot(c.by.To)), int(c.to.node), int(c.by.Type), int(c.by.Key),
			asInt(c.to.run)}
	}
	x, y := order(a), order(b)
	return slices.Compare(x[:], y[:]) < 0
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// forcedness is 0 for facts of the records, more for what needs a reason.
func forcedness(s step) int {
	switch s.Why {
	case verdict.ByOrder, verdict.ByCase:
		return 2
	case verdict.ByElimination, verdict.ByClock:
		return 1
	}
	return 0
}

// unroll reads the path off.
func (w *walker) unroll(s state) []step {
	out := []step{}
	for {
		c := w.came[s.key()]
		if !c.free {
			out = append(out, c.by)
		}
		if s = c.to; s.node == w.dst && !s.run && w.came[s.key()].level == 0 {
			return out
		}
	}
}

// nearMax bounds the transactions after the first of a path from which a step of
// real time is tried: any other one leads on from the earliest to end of all.
const nearMax = 32

// path finds a shortest path from src to dst among the edges older than limit; see
// walker. It only steps to nodes that src reaches, so that it wastes no step (design
// 3: no path matrix). Real time enters from the first transaction to end that src
// reaches, and from what comes right after src. nil if there is none, empty if the
// two are the same.
func (p *reports) path(src, dst node, limit graph.EdgeID) []step {
	if src == dst {
		return []step{}
	}
	w := walker{p: p, src: src, dst: dst, clock: p.banded != nil,
		usable: func(n node) bool { return p.reach.Reaches(src, n) },
		edge:   func(id graph.EdgeID) bool { return id < limit }}
	for n := src; w.clock; n++ {
		for e := p.g.FirstOut(n); e != graph.None && len(w.near) < nearMax; e = p.g.NextOut(e) {
			if e < limit {
				w.near = append(w.near, p.commit(p.parts.Slot(p.g.Edge(e).To)))
			}
		}
		if p.parts.Slot(n+1) != p.parts.Slot(src) {
			break
		}
	}
	return w.find()
}

// around is a shortest cycle through n among usable nodes and edges; nil if there is
// none of less than most steps (0: of any length), or the budget ends.
func (p *reports) around(n node, usable func(node) bool, edge func(graph.EdgeID) bool, most int, budget *int) []step {
	w := walker{p: p, src: n, dst: n, usable: usable, edge: edge, most: most, budget: budget}
	return w.find()
}

// length is the number of steps of a closed walk, as they are counted by walker.
func length(walk []step) int {
	n := 0
	for i, s := range walk {
		if last := walk[(i+len(walk)-1)%len(walk)]; s.Type != verdict.SO || last.Type != verdict.SO {
			n++
		}
	}
	return n
}
