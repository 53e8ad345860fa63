package constraint

import (
	"cmp"
	"slices"
	"sort"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/paged"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// reports are the violations that were found, and what explains them.
type reports struct {
	*known
	subjects *subjects
	writers  *writers
	found    []Violation
	hopeless []choiceID                // choices without a candidate, to be explained
	forced   paged.Vec[uint32, forced] // why edges hold that were forced, ascending by edge
	// MaxFound bounds the violations that are explained; 0: no bound.
	MaxFound int
	Found    int
	// Unexplained counts the cycles that were not looked for, as LookMax steps had been taken for
	// those before; looked are these edges. 0: lookMax.
	Unexplained, looked int
	LookMax             int
	walked              map[uint64]came // empty; see walker
}

// step is an edge on a path; id is its number in the graph, or none for edges
// that are not stored: real time, and the edge a report begins with.
type step struct {
	graph.Edge
	id graph.EdgeID
}

// reportCycle reports the cycle that e would close.
func (p *reports) reportCycle(e graph.Edge) {
	if !p.more() {
		return
	}
	v := Violation{}
	walk := append([]step{{e, none}}, p.path(e.To, e.From, none)...)
	p.fill(&v, walk, nil)
	p.tell(v)
}

// reportClash reports the cycle of e, which holds because its opposite would
// close a cycle itself.
func (p *reports) reportClash(e, opposite graph.Edge) {
	if !p.more() {
		return
	}
	v := Violation{}
	walk := append([]step{{e, none}}, p.path(e.To, e.From, none)...)
	var because []step
	if opposite.From != none {
		opposite.Why = verdict.ByCase
		because = append([]step{{opposite, none}}, p.path(opposite.To, opposite.From, none)...)
	}
	p.fill(&v, walk, because)
	p.tell(v)
}

// more counts a violation and tells whether it is to be explained.
func (p *reports) more() bool {
	p.Found++
	if p.Budget.Ask() || p.MaxFound > 0 && p.Found > p.MaxFound {
		return false
	}
	if p.Spent(1) {
		p.Unexplained++
		return false
	}
	return true
}

// Look draws steps from what there is to explain violations with: edges that are looked at for cycles, and what it
// takes to judge again what a violation was found from.
func (p *reports) Look(steps int) { p.looked += steps }

// Spent tells whether all of that is used, so many times: once, and what is found from then on is only counted; twice,
// and so is what was found before.
func (p *reports) Spent(times int) bool { return p.looked >= times*cmp.Or(p.LookMax, lookMax) }

// tell keeps a violation for TakeFound, unless what explains it was cut short.
func (p *reports) tell(v Violation) {
	if p.leavesOff() {
		p.Unexplained++
		return
	}
	p.found = append(p.found, v)
}

// leavesOff tells whether a cycle is not looked for to its end: online, once Stop has said so. In batch what is
// found by then is told.
func (p *reports) leavesOff() bool { return !p.cfg.Last && p.Budget.Stopped() }

// lookMax is, by default, after how many steps (see Look) nothing is explained any more: violations that a polygraph
// finds then are counted. One of a dense history may take a million, and there may be tens of thousands; a short one is
// found within some hundred.
const lookMax = 1 << 24

// Pending is how many violations TakeFound would return.
func (p *reports) Pending() int { return len(p.found) + len(p.hopeless) }

// explainedMax bounds the edges that a proof is followed through; past it the
// whole history is the evidence.
const explainedMax = 400

// fill completes a violation from its cycle; because, if given, is why the
// first edge holds.
func (p *reports) fill(v *Violation, walk, because []step) {
	v.Cycle = edges(walk)
	v.Because = map[int][]graph.Edge{}
	todo := slices.Clone(walk[1:])
	if walk[0].Why == verdict.ByElimination {
		todo = append(todo, walk[0])
	}
	if because != nil {
		v.Because[0] = edges(because)
		v.Rest = append(v.Rest, v.Because[0]...)
		todo = append(todo, because[1:]...)
		p.spine(v, because[0].Edge)
	}
	if walk[0].Why == verdict.ByOrder {
		p.spine(v, walk[0].Edge)
	}
	for i, s := range walk {
		if reason := p.reason(s.id); reason != nil && i > 0 {
			v.Because[i] = edges(reason)
		}
	}
	p.ground(v, todo)
	p.markAssumed(v)
}

// markAssumed says whether the proof rests on times. Blocks
// may do so once a candidate was taken with the help of times.
func (p *reports) markAssumed(v *Violation) {
	v.Assumed = v.Assumed || p.subjects.byElimination && p.cfg.RealTime
	for _, list := range append([][]graph.Edge{v.Cycle, v.Rest}, v.Cases...) {
		for _, e := range list {
			v.Assumed = v.Assumed || e.Assumed || e.Type == verdict.RT
		}
	}
}

// ground follows forced edges down to facts, adding all it meets to v.Rest.
func (p *reports) ground(v *Violation, todo []step) {
	done := map[graph.EdgeID]bool{}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if s.id == none && s.Why != verdict.ByElimination || s.id != none && done[s.id] {
			continue
		}
		done[s.id] = true
		if s.Why == verdict.ByElimination {
			todo = p.groundElimination(v, s, todo)
			continue
		}
		if s.Why != verdict.ByOrder {
			continue
		}
		p.spine(v, s.Edge)
		reason := p.reason(s.id)
		if reason == nil || len(v.Rest) > explainedMax {
			v.Whole = true
			continue
		}
		v.Rest = append(v.Rest, edges(reason)...)
		todo = append(todo, reason[1:]...)
	}
}

// reason is the cycle that the opposite of forced edge id would have closed
// when it was forced; nil for edges that were not forced.
func (p *reports) reason(id graph.EdgeID) []step {
	if id == none {
		return nil
	}
	i := sort.Search(p.forced.Len(), func(i int) bool { return p.forced.At(uint32(i)).edge >= id })
	if i == p.forced.Len() || p.forced.At(uint32(i)).edge != id {
		return nil
	}
	o := p.forced.At(uint32(i)).opposite
	o.Why = verdict.ByCase
	back := p.path(o.To, o.From, id)
	if back == nil {
		return nil
	}
	return append([]step{{o, none}}, back...)
}

// spine adds the read-froms that hold the two blocks of an order edge together.
func (p *reports) spine(v *Violation, e graph.Edge) {
	for _, s := range [2]slot{p.parts.Slot(e.From), p.parts.Slot(e.To)} {
		for _, w := range p.tab.Writes(s) {
			if p.tab.At(w).Key == e.Key {
				p.wholeBlock(v, w)
			}
		}
		for _, r := range p.tab.Reads(s) {
			if p.tab.At(r).Key == e.Key && p.tab.At(r).Kind == version.Written {
				p.wholeBlock(v, r)
			}
		}
	}
}

// wholeBlock adds the read-froms along the block that w lies in.
func (p *reports) wholeBlock(v *Violation, w vid) {
	n := 0
	add := func(from, to vid) {
		a, b := p.tab.At(from), p.tab.At(to)
		if a.Kind == version.Written {
			v.Rest = append(v.Rest, graph.Edge{From: p.commit(a.Writer), To: p.start(b.Writer), Key: a.Key, Type: verdict.WR,
				Why: verdict.ByValue})
		}
	}
	for x := w; p.tab.At(x).Prev != version.None && p.tab.At(p.tab.At(x).Prev).Kind == version.Written &&
		n < explainedMax/4; n++ {
		add(p.tab.At(x).Prev, x)
		x = p.tab.At(x).Prev
	}
	for x := w; p.tab.At(x).Next != version.None && n < explainedMax/2; n++ {
		add(x, p.tab.At(x).Next)
		x = p.tab.At(x).Next
	}
	if n >= explainedMax/4 {
		v.Whole = true
	}
}

// groundElimination adds why the other candidates of a read-from edge have fallen to
// v.Others and v.Rest, and what that rests on to todo. An edge without a number is the
// one that closes the violation, and newer than all others.
func (p *reports) groundElimination(v *Violation, s step, todo []step) []step {
	if _, told := v.Others[s.Edge]; told {
		return todo
	}
	fallen, ruledOut, ok := p.eliminated(s.Edge, s.id)
	v.Whole = v.Whole || !ok || len(v.Rest) > explainedMax
	if v.Whole {
		return todo
	}
	for _, f := range fallen {
		todo = f.ground(v, todo)
	}
	if !ruledOut && len(fallen) <= othersMax && len(v.Others) < othersMax {
		if v.Others == nil {
			v.Others = map[graph.Edge][]Other{}
		}
		for _, f := range fallen {
			v.Others[s.Edge] = append(v.Others[s.Edge], Other{Cycle: edges(f.cycle), Order: edges(f.order)})
		}
	}
	return todo
}

// othersMax bounds the reads of which the other candidates are told, and the
// candidates of each; of a read all are told or none.
const othersMax = 32

// fallen is why a read is not of a candidate: the cycle that the dependency which
// that would make closes, which is the first step. Where that is an anti-dependency on
// a later writer, order is why that one comes later: the cycle of the opposite order.
type fallen struct{ cycle, order []step }

// ground adds to v.Rest what f is, and to todo what that rests on.
func (f fallen) ground(v *Violation, todo []step) []step {
	for _, walk := range [2][]step{f.cycle, f.order} {
		if walk != nil {
			v.Rest = append(v.Rest, edges(walk)...)
			todo = append(todo, walk[1:]...)
		}
	}
	return todo
}

// eliminated are, for the read-from edge e that was left when all other
// candidates had fallen, why these have, among the edges older than limit; ruledOut if that is
// of some of them what their writers read themselves, false if not all can be shown.
func (p *reports) eliminated(e graph.Edge, limit graph.EdgeID) (out []fallen, ruledOut, ok bool) {
	ci, ok := p.subjects.choiceOf[Read{p.parts.Slot(e.To), e.Key}]
	if !ok {
		return nil, false, false
	}
	shown := map[slot]bool{}
	out, ok = p.whyNot(p.subjects.choices[ci].reader, e.Key, e.From, limit, shown)
	return out, len(shown) > 0, ok
}

// whyNot is why reader can't have read of key what any but the writer with commit node but
// wrote: each candidate closes a cycle, or its writer did not take effect, as it
// can't have read what it did. It is false, and the rest is told, if not all can be shown. shown are
// these writers; false, of whom it can't be shown, or not yet.
func (p *reports) whyNot(reader slot, key keyID, but node, limit graph.EdgeID,
	shown map[slot]bool) (out []fallen, ok bool) {
	ok = true
	for _, v := range p.tab.Candidates(reader, key) {
		ver := p.tab.At(v)
		if ver.Kind == version.Written && p.commit(ver.Writer) == but {
			continue
		}
		f, closes := p.wouldClose(v, reader, limit)
		switch {
		case closes:
			out = append(out, f)
		case ver.Kind != version.Written || p.subjects.maybe[ver.Writer] != isOut:
			ok = false
		default:
			if _, met := shown[ver.Writer]; !met {
				shown[ver.Writer] = false
				for _, ci := range p.subjects.guardedBy[ver.Writer] {
					if own, all := p.whyNot(ver.Writer, p.subjects.choices[ci].key, none, limit, shown); all {
						out, shown[ver.Writer] = append(out, own...), true
						break
					}
				}
			}
			ok = ok && shown[ver.Writer]
		}
	}
	return out, ok
}

// wouldClose shows why reader can't have read v; false if it can't be shown with the
// edges older than limit.
func (p *reports) wouldClose(v vid, reader slot, limit graph.EdgeID) (fallen, bool) {
	key := p.tab.At(v).Key
	if p.tab.At(v).Kind == version.Written {
		w := p.writer(v)
		if back := p.path(p.start(reader), p.commit(w), limit); back != nil {
			e := graph.Edge{From: p.commit(w), To: p.start(reader), Key: key, Type: verdict.WR, Why: verdict.ByCase}
			return fallen{cycle: append([]step{{e, none}}, back...)}, true
		}
	}
	for _, x := range p.writers.behind(key, reader, nil) {
		back := p.path(p.commit(x), p.start(reader), limit)
		if back == nil {
			continue
		}
		cycle := append([]step{{p.antiDependency(reader, x, key), none}}, back...)
		if p.tab.At(v).Kind != version.Written {
			return fallen{cycle: cycle}, true
		}
		if w := p.writer(v); x != w {
			if later := p.path(p.writing(w), p.commit(x), limit); later != nil {
				opposite := graph.Edge{From: p.commit(x), To: p.writing(w), Key: key, Type: verdict.WW, Why: verdict.ByCase}
				return fallen{cycle, append([]step{{opposite, none}}, later...)}, true
			}
		}
	}
	return fallen{}, false
}

// explainNoCandidate reports that nothing can have written what was read: each
// candidate would close a cycle. Once Stop has said so it is not shown, as the closure may be half made.
func (p *reports) explainNoCandidate(c *choice) {
	v := Violation{Because: map[int][]graph.Edge{}, Assumed: p.cfg.RealTime, Reads: []Read{{c.reader, c.key}}}
	var all []fallen
	ok := !p.Budget.Stopped()
	if ok {
		all, ok = p.whyNot(c.reader, c.key, none, none, map[slot]bool{})
	}
	v.Whole = !ok
	var todo []step
	for _, f := range all {
		v.Cases = append(v.Cases, edges(f.cycle))
		todo = f.ground(&v, todo)
		for _, cy := range [2][]step{f.cycle, f.order} {
			if cy != nil {
				p.spine(&v, cy[0].Edge)
			}
		}
	}
	if len(v.Cases) == 1 {
		v.Cycle, v.Cases = v.Cases[0], nil
	}
	p.ground(&v, todo)
	p.markAssumed(&v)
	p.tell(v)
}

func edges(walk []step) []graph.Edge {
	if walk == nil {
		return nil
	}
	out := make([]graph.Edge, len(walk))
	for i, s := range walk {
		out[i] = s.Edge
	}
	return out
}

// forced remembers why an edge was forced: the edge of the opposite order that
// would have closed a cycle.
type forced struct {
	edge     graph.EdgeID
	opposite graph.Edge
}

// TakeFound returns the violations found since the last call.
func (p *reports) TakeFound() []Violation {
	for _, ci := range p.hopeless {
		if p.Spent(1) {
			p.Unexplained++
		} else {
			p.explainNoCandidate(&p.subjects.choices[ci])
		}
	}
	p.hopeless = nil
	f := p.found
	p.found = nil
	return f
}

// Misled reports that what was decided of an ambiguous read can't be, as the records show: somebody can have read
// from a transaction alone that can't have taken effect, say.
func (p *reports) Misled() {
	if p.more() {
		p.found = append(p.found, Violation{Whole: true, Because: map[int][]graph.Edge{}, Assumed: p.cfg.RealTime})
	}
}
