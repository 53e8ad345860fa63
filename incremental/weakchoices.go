package incremental

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/incremental/weak"
	"github.com/isowatch/isowatch/ingest/record"
)

// Reads with several possible writers, at the weak levels. The solver proposes
// writers, the level's checker judges the history with them, and each cycle it
// finds is a clause: not all of the choices that the cycle rests on. That goes on
// until a proposal holds, or none is left. Every proposal costs a pass over the
// history, so that the work is bounded; beyond that the level is undecided.

// defaultChoiceWork is Options.ChoiceWork when Options give none.
const defaultChoiceWork = 30_000_000

// witnessCost is what looking at a transaction in the search for cycles costs,
// where judging it costs one.
const witnessCost = 4

// searchSteps are granted online for the search of all levels, beside what is left: some three seconds.
const searchSteps = 1 << 28

// copySteps is what a transaction costs in steps before a proposal is judged with it.
const copySteps = 8

// choiceCycles is how many cycles are taken of one proposal's tangle.
const choiceCycles = 16

// candidate is a possible writer of a read: a slot, or the initial state. Of a
// list it is the last writer, and shows are the others.
type candidate struct {
	from  version.Slot
	shows []version.Slot
	v     int // the solver's variable
}

// precedes is 2 for a writer before the reader, 1 for the initial state, and 0
// for a later one.
func (c candidate) precedes(reader version.Slot) int {
	switch {
	case c.from == weak.Initial:
		return 1
	case c.from < reader:
		return 2
	}
	return 0
}

// weakChoice is a read that is to be decided.
type weakChoice struct {
	index ordinal
	cell  cellID
	slot  version.Slot
	reads []int // which of the transaction's
	cands []candidate
	said  int // number of the clause that it is one of them
}

// chooser searches writers for one level.
type chooser struct {
	ws      *weakChecks
	check   *weakCheck
	budget  *budget.Share
	solver  *sat.Solver
	choices []weakChoice
	of      map[version.Slot][]int // choices by reader
	in      map[ordinal]int        // by uncertain transaction: the variable that it took effect
	cycles  []refuting             // those that proposals ran into, oldest first
	work    int                    // transactions that proposals were judged with; Options.ChoiceWork bounds it
	clauses int                    // how many were given to solver
	given   []int                  // once no proposal is left: the clauses, by number, that say so
}

// refuting is a cycle that a proposal ran into, as a clause says. It is described only if it has a part in a proof.
type refuting struct {
	weak.Violation
	paths map[[2]version.Slot][]weak.Edge // those of the checker that found it, of its inferred edges
	said  int
}

func (x *refuting) path(_ weak.Level, from, to version.Slot) []weak.Edge {
	return x.paths[[2]version.Slot{from, to}]
}

// clause gives the solver a clause and returns its number.
func (ch *chooser) clause(lits ...sat.Lit) int {
	ch.solver.AddClause(lits...)
	ch.clauses++
	return ch.clauses - 1
}

// decideChoices decides a level of a history that has choices, at its end. doubtful are reads of transactions that may
// not have taken effect which are known to nobody.
func (w *weakChecks) decideChoices(c *weakCheck, share *budget.Share, doubtful []pendingRead) {
	if w.opt.ChoiceWork < 0 {
		return
	}
	ch := &chooser{ws: w, check: c, budget: share, of: map[version.Slot][]int{}, in: map[ordinal]int{}}
	ch.solver = sat.New(0, nil, sat.Options{Stop: func() bool { return !ch.budget.Take(sat.AskEvery) }})
	if !ch.collect() {
		return
	}
	for _, r := range doubtful { // does the history do without them?
		ch.clause(sat.Neg(ch.inclusion(r.index)))
	}
	conflicts := w.opt.Conflicts
	for ch.work < w.opt.ChoiceWork && ch.budget.Take(0) {
		before := ch.solver.Stats.Conflicts
		answer := ch.solver.Solve(conflicts)
		conflicts -= ch.solver.Stats.Conflicts - before
		switch {
		case answer == sat.Unsat && len(doubtful) > 0:
			return
		case answer == sat.Unsat:
			ch.given = ch.solver.Given()
			if w.out.tellWeak(c, ch.violation()) {
				c.outcome, c.open = verdict.Violated, ch.unrefuted()
			}
			return
		case answer == sat.Budget || conflicts <= 0:
			return
		case ch.holds():
			return
		}
	}
}

// collect states the choices to the solver, and tells whether that is all done.
func (ch *chooser) collect() bool {
	ws := ch.ws
	for _, r := range ws.choices {
		if !ch.budget.Take(1) {
			return false
		}
		w := weakChoice{index: r.index, cell: r.cell, slot: ws.h.txns.At(r.index).slot}
		for i, c := range ws.h.external(r.index) {
			if c != r.cell {
				continue
			}
			w.reads = append(w.reads, i)
			if ch.check.name <= weak.RC { // read again, the value may be another writer's
				ch.add(w)
				w.reads = nil
			}
		}
		if len(w.reads) > 0 {
			ch.add(w)
		}
	}
	for i := range ch.choices {
		if !ch.budget.Take(len(ch.choices[i].cands)) {
			return false
		}
		ch.state(&ch.choices[i])
	}
	for _, x := range ws.exclusive {
		ch.clause(sat.Neg(ch.inclusion(x[0])), sat.Neg(ch.inclusion(x[1])))
	}
	var out []ordinal
	for index, base := range ws.ruledOut {
		if breaks(ch.check.level, base) {
			out = append(out, index)
		}
	}
	slices.Sort(out)
	for _, index := range out {
		ch.clause(sat.Neg(ch.inclusion(index)))
	}
	return true
}

// candidateBytes is about what a possible writer of a read takes, with its variable.
const candidateBytes = 256

func (ch *chooser) add(w weakChoice) {
	w.cands = ch.ws.candidatesOf(w.index, w.cell)
	ch.budget.Use(candidateSteps * len(w.cands))
	ch.budget.Hold(candidateBytes * len(w.cands))
	ch.of[w.slot] = append(ch.of[w.slot], len(ch.choices))
	ch.choices = append(ch.choices, w)
}

// inclusion is the variable that an uncertain transaction took effect. One that
// has become certain since is fixed.
func (ch *chooser) inclusion(index ordinal) int {
	v, ok := ch.in[index]
	if !ok {
		v = ch.solver.NewVar()
		ch.solver.SetPhase(v, false)
		ch.in[index] = v
		if ch.ws.h.txns.At(index).doubt == tookEffect {
			ch.clause(sat.Pos(v))
		}
	}
	return v
}

// state adds a choice: one of the candidates, if the reader took effect; and who
// is read from took effect. The solver is free to make several true; the first of
// them counts. They are in the order in which they are likely: who comes last
// before the reader first, who comes after it last.
func (ch *chooser) state(w *weakChoice) {
	ws := ch.ws
	var clause []sat.Lit
	if ws.h.txns.At(w.index).open {
		clause = append(clause, sat.Neg(ch.inclusion(w.index)))
	}
	slices.SortStableFunc(w.cands, func(a, b candidate) int {
		if before, other := a.precedes(w.slot), b.precedes(w.slot); before != other {
			return cmp.Compare(other, before)
		} else if before == 0 {
			return cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(b.from, a.from)
	})
	for i := range w.cands {
		c := &w.cands[i]
		c.v = ch.solver.NewVar()
		clause = append(clause, sat.Pos(c.v))
	}
	w.said = ch.clause(clause...)
	for _, c := range w.cands {
		for _, from := range append([]version.Slot{c.from}, c.shows...) {
			if from < weak.Initial && ws.h.txns.At(ws.h.slotTx[from]).open {
				ch.clause(sat.Neg(c.v), sat.Pos(ch.inclusion(ws.h.slotTx[from])))
			}
		}
	}
}

// weakCandidates are the possible writers of a read, by slot, the initial state
// first.
func (w *weakChecks) candidatesOf(index ordinal, c cellID) []candidate {
	cl := w.h.cells.At(c)
	if w.h.perKey.At(cl.key).isListKey() {
		if cl.about&isList == 0 || w.h.isNothing(c) {
			return []candidate{{from: weak.Initial}}
		}
		from := w.h.shownBy(w.h.elementsOf(c))
		if len(from) == 0 {
			return []candidate{{from: weak.Unseen}}
		}
		return []candidate{{from: from[len(from)-1], shows: from[:len(from)-1]}}
	}
	var out []candidate
	if only, _ := w.h.onlyWriter(index, c); only == none || w.h.mayBeInitial(cl) && !w.h.lossy(cl.key) {
		out = append(out, candidate{from: weak.Initial})
	}
	n := len(out)
	for by := range w.h.writersOf(c) {
		if x := w.h.txns.At(by); by != index && x.slot != none {
			out = append(out, candidate{from: x.slot})
		}
	}
	slices.SortFunc(out[n:], func(a, b candidate) int { return int(a.from) - int(b.from) })
	return out
}

// chosen is the candidate that the solver proposes, or nil if the reader is not
// in the history.
func (ch *chooser) chosen(w *weakChoice) *candidate {
	if v, ok := ch.in[w.index]; ok && !ch.solver.Value(v) {
		return nil
	}
	for i := range w.cands {
		if ch.solver.Value(w.cands[i].v) {
			return &w.cands[i]
		}
	}
	return nil
}

// holds judges the proposal; if it fails, its cycles become clauses.
func (ch *chooser) holds() bool {
	ws := ch.ws
	trial := ws.Without(ch.check.name)
	trial.Witnesses, trial.Take = choiceCycles, ch.budget.Take
	ch.budget.Use(copySteps * ws.Len())
	proposal := make([]*candidate, len(ch.choices))
	for i := range ch.choices {
		w := &ch.choices[i]
		c := ch.chosen(w)
		if proposal[i] = c; !ch.budget.Take(1 + len(w.cands)/candidateSteps) {
			return false
		} else if c == nil {
			continue
		}
		for _, r := range w.reads {
			trial.Read(w.slot, r, c.from)
			for _, s := range c.shows {
				trial.Shows(w.slot, r, s)
			}
		}
	}
	for _, index := range ch.included() {
		t := ws.h.txns.At(index)
		ws.h.eachAppended(t, func(k version.Key) { trial.AppendsLast(k, t.slot) })
	}
	found := trial.Tick(true)
	ch.work += ws.Len() + 1 + witnessCost*trial.Visited
	if !ch.budget.Take(0) { // it may have ended early
		return false
	}
	if len(found) == 0 {
		ch.check.outcome = verdict.Satisfied
		ch.check.order = trial.Order(ch.check.name)
		ch.check.excluded, ch.check.from = ch.excluded(), ch.sources(proposal)
		return true
	}
	for _, v := range found {
		var clause []sat.Lit
		x := refuting{Violation: v, paths: map[[2]version.Slot][]weak.Edge{}}
		for _, i := range ch.reasons(trial, &x, proposal) {
			clause = append(clause, sat.Neg(proposal[i].v))
		}
		x.said = ch.clause(clause...)
		ch.cycles = append(ch.cycles, x)
	}
	return false
}

// sources are whom the reads are from in a proposal, of what is written: a list says it itself, and the
// initial state is the only one if it is not stated.
func (ch *chooser) sources(proposal []*candidate) (out []verdict.Source) {
	in := ch.ws.h
	for i, c := range proposal {
		w := &ch.choices[i]
		k := in.cells.At(w.cell).key
		if c == nil || in.perKey.At(k).isListKey() || c.from >= weak.Initial &&
			(ch.ws.h.lossy(k) || ch.ws.h.initial(k) == record.InitialAny && len(w.cands) == 1) {
			continue
		}
		s := verdict.Source{Txn: in.txns.At(w.index).id, Op: -1, Key: in.nameOf(k), Writer: verdict.NoTxn}
		if c.from < weak.Initial {
			s.Writer = ch.ws.h.txnOf(c.from)
		}
		for _, r := range w.reads {
			if at, kept := in.placesOf[w.index]; kept {
				s.Op = at[r]
			}
			out = append(out, s)
		}
	}
	return out
}

// unrefuted is, when no proposal is left, how many choices have no part in why: another
// violation may lie in them.
func (ch *chooser) unrefuted() (n int) {
	for i := range ch.choices {
		if !ch.serves(ch.choices[i].said) {
			n++
		}
	}
	return n
}

// serves tells, when no proposal is left, whether that rests on a clause.
func (ch *chooser) serves(said int) bool {
	_, used := slices.BinarySearch(ch.given, said)
	return used
}

// included are the uncertain transactions that the proposal has.
func (ch *chooser) included() []ordinal {
	var out []ordinal
	for index, v := range ch.in {
		if ch.solver.Value(v) && ch.ws.h.txns.At(index).doubt == uncertain {
			out = append(out, index)
		}
	}
	slices.Sort(out)
	return out
}

// excluded are the uncertain transactions that the proposal leaves out.
func (ch *chooser) excluded() map[ordinal]bool {
	out := map[ordinal]bool{}
	for index, v := range ch.in {
		if !ch.solver.Value(v) {
			out[index] = true
		}
	}
	return out
}

// reasons are the choices that a cycle rests on; it notes the paths.
func (ch *chooser) reasons(trial *weak.Checker, v *refuting, proposal []*candidate) []int {
	var out []int
	var edge func(ed weak.Edge)
	because := func(reader version.Slot, on func(from version.Slot) bool, k version.Key) {
		var found []int
		for _, i := range ch.of[reader] {
			c := proposal[i]
			if c == nil || ch.ws.h.cells.At(ch.choices[i].cell).key != k {
				continue
			}
			if on(c.from) || slices.ContainsFunc(c.shows, on) {
				found = append(found, i)
			}
		}
		if len(found) > 0 && !ch.ws.ReadsFrom(reader, k, on) {
			out = append(out, found...)
		}
	}
	edge = func(ed weak.Edge) {
		switch ed.Kind {
		case weak.WR:
			because(ed.To, func(from version.Slot) bool { return from == ed.From }, ed.Key)
		case weak.Anti:
			because(ed.From, func(from version.Slot) bool { return from == weak.Initial }, ed.Key)
		case weak.Inferred:
			because(ed.By, func(from version.Slot) bool { return from == ed.To }, ed.Key)
			path := trial.Path(v.Level, ed.From, ed.By)
			v.paths[[2]version.Slot{ed.From, ed.By}] = path
			for _, p := range path {
				edge(p)
			}
		case weak.Listed:
			for i := range ch.choices { // whatever list showed it
				if proposal[i] != nil && ch.ws.h.cells.At(ch.choices[i].cell).key == ed.Key {
					out = append(out, i)
				}
			}
		}
	}
	for _, ed := range v.Cycle {
		edge(ed)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mayNotBe: the candidate may not have taken effect.
func (w *weakChecks) mayNotBe(c candidate) bool {
	return c.from < weak.Initial && w.h.txns.At(w.h.slotTx[c.from]).doubt == uncertain
}

// violation is the proof that no proposal holds: the cycles that it rests on.
func (ch *chooser) violation() verdict.Violation {
	ws := ch.ws
	v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: ch.check.level, Read: -1}
	for i := range ch.cycles {
		if !ch.serves(ch.cycles[i].said) {
			continue
		}
		x := ws.ev.weakViolation(ch.cycles[i].path, ch.cycles[i].Violation, ch.check.level)
		v.Cases = append(v.Cases, x.Cycle)
		for _, t := range x.Txns {
			if !slices.Contains(v.Txns, t) {
				v.Txns = append(v.Txns, t)
			}
		}
		v.Exhibits = append(v.Exhibits, x.Exhibits...)
	}
	all := newExhibits(ws.h, ws.ev.g.main)
	for _, w := range ch.choices {
		t := ws.h.txns.At(w.index)
		if ch.serves(w.said) || slices.Contains(v.Txns, t.id) || t.open || slices.ContainsFunc(w.cands, ws.mayNotBe) {
			all.read(w.slot, ws.h.cells.At(w.cell).key)
		}
		if t.doubt == uncertain {
			all.member(w.slot)
		}
	}
	v.Exhibits = merged(append(v.Exhibits, all.list()...))
	return v
}
