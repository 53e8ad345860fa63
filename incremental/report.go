package incremental

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/constraint"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// readAnomaly reports a read that no level allows.
func (e *Engine) readAnomaly(kind verdict.Kind, index uint32, c cellID, writer verdict.TxnID) {
	reader := e.in.txns.At(index).id
	key := e.in.keys[e.in.cells.At(c).key]
	v := verdict.Violation{Kind: kind, Txns: []verdict.TxnID{reader}, Key: key, Read: -1,
		Exhibits: []verdict.Exhibit{{Txn: reader, All: []string{key}}}}
	if kind == verdict.FutureRead {
		e.showInitial(&v, e.in.cells.At(c).key)
	}
	if writer != verdict.NoTxn {
		v.Txns = append(v.Txns, writer)
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: writer, Writes: []string{key}})
	}
	e.reportRead(v)
}

// reportRead sorts the exhibits of a violation and reports it.
func (e *Engine) reportRead(v verdict.Violation) {
	slices.SortFunc(v.Exhibits, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	for _, x := range v.Exhibits {
		v.Evidence = append(v.Evidence, x.Txn)
	}
	e.report(v)
}

// thinAir reports a read of a value that nobody wrote and that the key did not
// hold at first: another reader saw it hold something else.
func (e *Engine) thinAir(index uint32, c cellID) {
	cl := e.in.cells.At(c)
	key := e.in.keys[cl.key]
	reader := e.in.txns.At(index).id
	v := verdict.Violation{Kind: verdict.ThinAirRead, Txns: []verdict.TxnID{reader}, Key: key, Read: -1,
		Exhibits: []verdict.Exhibit{{Txn: reader, Reads: []string{key}}}}
	e.showInitial(&v, cl.key)
	e.reportRead(v)
}

// showInitial adds a reader of the key's initial version, where no declaration
// says what it held.
func (e *Engine) showInitial(v *verdict.Violation, k version.Key) {
	init := e.main.tab.InitialOf(k)
	if init == none || e.opt.Initial != record.InitialAny {
		return
	}
	for r := range e.main.tab.Readers(init) {
		v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: e.txnOf(r), Reads: []string{e.in.keys[k]}})
		break
	}
}

func (e *Engine) txnOf(s version.Slot) verdict.TxnID { return e.in.txns.At(e.slotTx[s]).id }

// divergence reports that slot and other read one version and both overwrote it
// (MTC, Definition of DIVERGENCE): one of the updates is lost.
func (e *Engine) divergence(slot, other version.Slot, v version.ID) {
	key := e.in.keys[e.main.tab.At(v).Key]
	a, b := e.txnOf(other), e.txnOf(slot)
	viol := verdict.Violation{Kind: verdict.Divergence, Txns: []verdict.TxnID{a, b}, Key: key, Read: -1,
		Cycle: []verdict.Edge{
			{From: a, To: b, Type: verdict.WW, Key: key, Why: verdict.ByCase},
			{From: b, To: a, Type: verdict.RW, Key: key, Why: verdict.ByOverwrite},
		}}
	x := newExhibits(e)
	for _, s := range [2]version.Slot{other, slot} {
		x.write(s, e.main.tab.At(v).Key)
		x.read(s, e.main.tab.At(v).Key)
	}
	x.source(v) // slot's own read was withdrawn
	viol.Exhibits = x.list()
	for _, ex := range viol.Exhibits {
		viol.Evidence = append(viol.Evidence, ex.Txn)
	}
	e.report(viol)
}

// exhibits collect the operations that a proof needs.
type exhibits struct {
	e      *Engine
	reads  map[version.Slot]map[version.Key]bool
	writes map[version.Slot]map[version.Key]bool
	others map[verdict.TxnID]map[version.Key]bool // transactions of unknown outcome
}

func newExhibits(e *Engine) *exhibits {
	return &exhibits{e: e, reads: map[version.Slot]map[version.Key]bool{}, writes: map[version.Slot]map[version.Key]bool{},
		others: map[verdict.TxnID]map[version.Key]bool{}}
}

func mark[K comparable](m map[K]map[version.Key]bool, s K, k version.Key) bool {
	if m[s] == nil {
		m[s] = map[version.Key]bool{}
	}
	if m[s][k] {
		return false
	}
	m[s][k] = true
	return true
}

// member makes a transaction part of the evidence, with no operation.
func (x *exhibits) member(s version.Slot) {
	if x.reads[s] == nil {
		x.reads[s] = map[version.Key]bool{}
	}
}

// read keeps s's read of k, and what it read from.
func (x *exhibits) read(s version.Slot, k version.Key) {
	if !mark(x.reads, s, k) {
		return
	}
	if v := x.e.readOf(s, k); v != none {
		x.source(v)
	}
}

// source keeps the write that made v.
func (x *exhibits) source(v version.ID) {
	switch ver := x.e.main.tab.At(v); ver.Kind {
	case version.Written:
		x.write(ver.Writer, ver.Key)
	case version.Unseen:
		if w := x.e.in.others(x.e.unseenOf[v]).unknown; w != verdict.NoTxn {
			mark(x.others, w, ver.Key)
		}
	}
}

func (x *exhibits) write(s version.Slot, k version.Key) {
	x.member(s)
	mark(x.writes, s, k)
}

// edge keeps what makes the edge known.
func (x *exhibits) edge(ed graph.Edge, p *constraint.Polygraph) {
	from, to := p.SlotOf(ed.From), p.SlotOf(ed.To)
	x.member(from)
	x.member(to)
	switch ed.Type {
	case verdict.WR:
		x.write(from, ed.Key)
		x.read(to, ed.Key)
	case verdict.WW:
		x.write(from, ed.Key)
		x.write(to, ed.Key)
		x.fromInitial(from, ed.Key)
	case verdict.RW:
		x.read(from, ed.Key)
		x.write(to, ed.Key)
		x.fromInitial(from, ed.Key)
		if ed.Why == verdict.ByOverwrite {
			x.read(to, ed.Key)
		}
	}
}

// fromInitial keeps the read of the initial version by which the block that
// holds s's version of k is known to be the first.
func (x *exhibits) fromInitial(s version.Slot, k version.Key) {
	v := x.e.writeOf(s, k)
	if v == none {
		v = x.e.readOf(s, k)
	}
	tab := &x.e.main.tab
	for n := 0; v != none && n < 200; n++ {
		ver := tab.At(v)
		if ver.Kind != version.Written || ver.Prev == none {
			return
		}
		if tab.At(ver.Prev).Kind == version.Initial {
			x.read(ver.Writer, k)
			return
		}
		v = ver.Prev
	}
}

// list is the exhibits by transaction, sorted.
func (x *exhibits) list() []verdict.Exhibit {
	names := func(m map[version.Key]bool) []string {
		var out []string
		for k := range m {
			out = append(out, x.e.in.keys[k])
		}
		slices.Sort(out)
		return out
	}
	var out []verdict.Exhibit
	for s := range x.reads {
		out = append(out, verdict.Exhibit{Txn: x.e.txnOf(s), Reads: names(x.reads[s]), Writes: names(x.writes[s])})
	}
	for id, ks := range x.others {
		out = append(out, verdict.Exhibit{Txn: id, Writes: names(ks)})
	}
	slices.SortFunc(out, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	return out
}

// slots lists the members, sorted.
func (x *exhibits) slots() []version.Slot {
	var out []version.Slot
	for s := range x.reads {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// everything makes every read and write of the members an exhibit, and the
// writers of what they read members.
func (x *exhibits) everything() {
	tab := &x.e.main.tab
	for _, s := range x.slots() {
		for _, v := range x.e.main.ops[s].writes {
			x.write(s, tab.At(v).Key)
		}
		for _, v := range x.e.main.ops[s].reads {
			x.read(s, tab.At(v).Key)
		}
	}
}

func (e *Engine) readOf(s version.Slot, k version.Key) version.ID {
	for _, v := range e.main.ops[s].reads {
		if e.main.tab.At(v).Key == k {
			return v
		}
	}
	return none
}

func (e *Engine) writeOf(s version.Slot, k version.Key) version.ID {
	for _, v := range e.main.ops[s].writes {
		if e.main.tab.At(v).Key == k {
			return v
		}
	}
	return none
}

// collect turns what the polygraphs found into violations of the levels, after
// checking again what rests on assumptions.
func (e *Engine) collect() {
	var polys []*constraint.Polygraph
	for _, c := range e.checks {
		if !slices.Contains(polys, c.poly) {
			polys = append(polys, c.poly)
		}
	}
	for _, p := range polys {
		found := p.TakeFound()
		var users []*check
		for _, c := range e.checks {
			if c.poly == p {
				users = append(users, c)
			}
		}
		for _, c := range users {
			c.count = p.Found
		}
		for i := range found {
			for _, c := range users {
				if c.poly == p {
					e.judge(c, &found[i])
				}
			}
		}
	}
}

// judge decides whether what the polygraph found breaks check c, and with which
// evidence. What rests on times that are no part of the level, or on an order
// that was chosen, only counts if the records without them say so too; if the
// transactions of the proof don't, the whole history is read again.
func (e *Engine) judge(c *check, f *constraint.Violation) {
	x := newExhibits(e)
	for _, list := range append([][]graph.Edge{f.Cycle, f.Rest}, f.Cases...) {
		for _, ed := range list {
			x.edge(ed, c.poly)
		}
	}
	proved := e.violated(c, x)
	if !proved {
		x.everything()
		proved = e.violated(c, x)
	}
	if !proved && (f.Assumed && !c.timed || f.Chosen) {
		e.retreat(c)
		c.notRealTime = !f.Chosen // then times alone said violated
		return
	}
	v := e.violation(c, f)
	if proved {
		v.Exhibits = x.list()
		for _, ex := range v.Exhibits {
			v.Evidence = append(v.Evidence, ex.Txn)
		}
	} else {
		for i := range uint32(e.in.txns.Len()) {
			v.Evidence = append(v.Evidence, e.in.txns.At(i).id)
		}
	}
	e.tell(c, v)
}

// tell records a violation of c's level, once.
func (e *Engine) tell(c *check, v verdict.Violation) {
	name := c.level.String() + v.Kind.String() + canonical(v)
	if e.seen[name] {
		return
	}
	e.seen[name] = true
	c.found = append(c.found, v)
	if e.opt.Online {
		e.out = append(e.out, v)
	}
}

// canonical names a violation by its transactions, whatever the order.
func canonical(v verdict.Violation) string {
	ids := slices.Clone(v.Txns)
	slices.Sort(ids)
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// violation puts a polygraph's finding in terms of transactions.
func (e *Engine) violation(c *check, f *constraint.Violation) verdict.Violation {
	v := verdict.Violation{Kind: verdict.Cycle, Level: c.level, Read: -1, ClockDependent: c.timed && f.Assumed}
	if len(f.Cycle) == 0 {
		v.Kind = verdict.Unsatisfiable
	}
	v.Cycle = e.edges(c.poly, f.Cycle, f.Because)
	for _, cy := range f.Cases {
		v.Cases = append(v.Cases, e.edges(c.poly, cy, nil))
	}
	for _, cy := range append([][]verdict.Edge{v.Cycle}, v.Cases...) {
		for _, ed := range cy {
			if !slices.Contains(v.Txns, ed.From) {
				v.Txns = append(v.Txns, ed.From)
			}
		}
	}
	return v
}

// edges names the transactions and keys of a closed walk; steps along one
// session become one.
func (e *Engine) edges(p *constraint.Polygraph, walk []graph.Edge, because map[int][]graph.Edge) []verdict.Edge {
	var out []verdict.Edge
	for i, ed := range walk {
		v := verdict.Edge{From: e.txnOf(p.SlotOf(ed.From)), To: e.txnOf(p.SlotOf(ed.To)), Type: ed.Type, Why: ed.Why}
		if ed.Key != none {
			v.Key = e.in.keys[ed.Key]
		}
		if b := because[i]; b != nil {
			v.Because = e.edges(p, b, nil)
		}
		if n := len(out); n > 0 && v.Type == verdict.SO && out[n-1].Type == verdict.SO {
			out[n-1].To = v.To
			continue
		}
		out = append(out, v)
	}
	if n := len(out); n > 2 && out[0].Type == verdict.SO && out[n-1].Type == verdict.SO {
		out[0].From = out[n-1].From
		out = out[:n-1]
	}
	return out
}

// violated checks the exhibits by themselves at c's level.
func (e *Engine) violated(c *check, x *exhibits) bool {
	slots := x.slots()
	s, diverges := e.reread(slots, c, func(s version.Slot, k version.Key) bool { return x.reads[s][k] },
		func(s version.Slot, k version.Key) bool { return x.writes[s][k] })
	if diverges {
		return true
	}
	s.finish(false)
	p := s.polys[0]
	if p.Found > 0 {
		return true
	}
	return p.Solve(e.opt.Conflicts) == sat.Unsat
}

// reread feeds some of the history, cut down to some of its reads and writes,
// to a new strand for c's level as it is defined: with times only if they are
// part of it. Reads whose writer is left out are left out too.
func (e *Engine) reread(slots []version.Slot, c *check, reads, writes func(version.Slot, version.Key) bool) (*strand, bool) {
	cfg := e.config(c.split, c.timed && !c.noTimes, true)
	cfg.Slots = len(slots)
	s := newStrand([]constraint.Config{cfg})
	renamed := make(map[version.Slot]version.Slot, len(slots))
	sessions := map[uint32]uint32{}
	versions := map[version.ID]version.ID{}
	for _, old := range slots {
		t := e.in.txns.At(e.slotTx[old])
		session, ok := sessions[t.session]
		if !ok {
			session = uint32(len(sessions))
			sessions[t.session] = session
		}
		renamed[old] = s.add(session, t.start, t.end, t.timed, e.main.ops[old])
	}
	tab := &e.main.tab
	for _, old := range slots {
		for _, v := range e.main.ops[old].writes {
			if writes(old, tab.At(v).Key) {
				versions[v] = s.write(renamed[old], tab.At(v).Key)
			}
		}
	}
	for _, old := range slots {
		for _, v := range e.main.ops[old].reads {
			if !reads(old, tab.At(v).Key) {
				continue
			}
			n, ok := versions[v]
			if !ok {
				if tab.At(v).Kind == version.Written {
					continue
				}
				n = s.source(tab.At(v).Key, tab.At(v).Kind)
				versions[v] = n
			}
			if _, diverges := s.read(renamed[old], n); diverges {
				return s, true
			}
		}
	}
	s.settle()
	return s, false
}

// retreat reads the whole history again as the level is defined. From here on
// the level goes without times (or, if it has them, without orders chosen along
// them).
func (e *Engine) retreat(c *check) {
	all := make([]version.Slot, len(e.slotTx))
	for i := range all {
		all[i] = version.Slot(i)
	}
	s := e.copy(c)
	c.pruned = false
	old := c.poly
	if e.opt.Online {
		e.extra = append(e.extra, s)
	}
	c.poly, c.strand = s.polys[0], s
	c.poly.MaxFound = e.opt.MaxViolations
	s.finish(false)
	e.solve(c)
	found := c.poly.TakeFound()
	c.count = c.poly.Found
	for i := range found {
		e.judge(c, &found[i])
	}
	if !slices.ContainsFunc(e.checks, func(o *check) bool { return o.poly == old }) {
		e.main.polys = slices.DeleteFunc(e.main.polys, func(p *constraint.Polygraph) bool { return p == old })
		for _, x := range e.extra {
			x.polys = slices.DeleteFunc(x.polys, func(p *constraint.Polygraph) bool { return p == old })
		}
	}
}

// copy feeds the whole history, with the same numbers of slots and versions, to
// a new strand for c's level as it is defined.
func (e *Engine) copy(c *check) *strand {
	s := newStrand([]constraint.Config{e.config(c.split, c.timed && !c.noTimes, true)})
	for slot, i := range e.slotTx {
		t := e.in.txns.At(i)
		s.add(t.session, t.start, t.end, t.timed, e.main.ops[slot])
	}
	tab := &e.main.tab
	for v := range version.ID(tab.Len()) {
		if ver := tab.At(v); ver.Kind == version.Written {
			s.write(ver.Writer, ver.Key)
		} else {
			s.source(ver.Key, ver.Kind)
		}
	}
	for slot := range e.main.ops {
		for _, v := range e.main.ops[slot].reads {
			s.read(version.Slot(slot), v)
		}
	}
	s.settle()
	return s
}

// result is the verdict on one level.
func (e *Engine) result(c *check) verdict.Result {
	r := verdict.Result{Level: c.level, NoTimes: c.timed && e.in.timed == 0, Stats: c.poly.Stats,
		Partial: e.opt.Coverage == record.CoveragePartial}
	r.Violations = append(r.Violations, e.shared...)
	r.Violations = append(r.Violations, c.found...)
	notChecked := e.in.skipped + e.in.unknown + e.blocked
	switch {
	case len(r.Violations) > 0:
		r.Outcome = verdict.Violated
	case c.budget:
		r.Outcome, r.Reason, r.Count = verdict.Unknown, verdict.Conflicts, c.poly.Open()
		r.Decided = 1 - float64(r.Count)/float64(max(1, c.poly.Stats.Constraints))
	case notChecked > 0:
		r.Outcome, r.Reason, r.Count = verdict.Unknown, verdict.NotChecked, notChecked
		r.Decided = 1 - min(1, float64(notChecked)/float64(max(1, e.in.total)))
	default:
		r.Outcome, r.RealTimeOnly = verdict.Satisfied, c.notRealTime
		if e.opt.Proof && !e.opt.Online {
			r.Order = c.poly.Order()
			for i := range r.Order {
				r.Order[i].Txn = e.txnOf(version.Slot(r.Order[i].Txn))
			}
		}
	}
	return r
}
