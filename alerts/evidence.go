package alerts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// proof is a history that stands alone.
type proof struct {
	header record.Header
	txns   []record.Transaction
	// whole is what the proof was before it was made small.
	whole []record.Transaction
	// large: it was not tried of everything whether it can be left out.
	large bool
}

// lines are the proof's records as JSON, the header first.
func (p proof) lines() []json.RawMessage {
	out := []json.RawMessage{codec.AppendHeader(nil, &p.header)}
	for i := range p.txns {
		out = append(out, codec.AppendJSON(nil, &p.txns[i]))
	}
	return out
}

// prove finds the evidence of a violation: a small history that the judge calls
// violated at the weakest level of n.Breaks, and at those beside it as far as any is, or
// where it was found. Where the judge agrees only to a
// stronger one, at most to the level that the engine proved, n is corrected to it.
func prove(v verdict.Violation, n *name.Name, ctx Context) (proof, error) {
	full, err := records(v, ctx.Lookup)
	candidates := candidates(v, full, ctx)
	if ctx.Judge == nil || err != nil {
		return candidates[0](), err
	}
	last := name.Breaks(v.Level, v.Level, ctx.asked())[0]
	open := true
	for pass := 0; open && pass < passes; pass++ {
		open = false
		var best proof // breaks n.Breaks[at] and most levels beside it
		at, most, found := -1, -1, false
		for i, level := range n.Breaks {
			beside := ctx.beside(level)
			for _, made := range candidates {
				p := made()
				outcome := ctx.Judge(level, p.header, p.txns)
				open = open || outcome == verdict.Unknown
				if outcome != verdict.Violated {
					continue
				}
				broken := p.broken(beside, ctx)
				here := !slices.Contains(beside, v.Level) || slices.Contains(broken, v.Level)
				if at < 0 || here && !found || here == found && at == i && len(broken) > most {
					best, at, most, found = p, i, len(broken), here
				}
				if found && most == len(beside) {
					break
				}
			}
			if found || level == last {
				break
			}
		}
		if at >= 0 {
			level := n.Breaks[at]
			if at > 0 {
				n.Fall(level, ctx.asked())
			}
			return smaller(v, level, best, ctx), nil
		}
	}
	why := ErrUnproved
	if open {
		why = ErrUnjudged
	}
	return candidates[len(candidates)-1](), fmt.Errorf("%s at %v, %d transactions: %w", n.Name, n.Breaks[0], len(full), why)
}

// passes is how often a judge is asked that does not know at first, as it does not look for long.
const passes = 3

// beside are the promised levels that say nothing of a level, nor it of them; of lin all are, and it need break none.
func (c Context) beside(level verdict.Level) (out []verdict.Level) {
	for _, l := range c.Levels {
		if level != verdict.LIN && !l.Implies(level) && !level.Implies(l) && (l != verdict.LIN || c.OneKey) {
			out = append(out, l)
		}
	}
	return out
}

// broken are those of some levels that a proof breaks.
func (p proof) broken(levels []verdict.Level, ctx Context) []verdict.Level {
	holds := func(l verdict.Level) bool { return ctx.Judge(l, p.header, p.txns) != verdict.Violated }
	return slices.DeleteFunc(slices.Clone(levels), holds)
}

// breaking tells of a part of a proof whether it breaks a level, and those beside it that all of it does: they
// follow from no evidence of that level, so they would be violated without any.
func (p proof) breaking(level verdict.Level, ctx Context) func([]record.Transaction) bool {
	levels := append([]verdict.Level{level}, p.broken(ctx.beside(level), ctx)...)
	return func(txns []record.Transaction) bool {
		holds := func(l verdict.Level) bool { return ctx.Judge(l, p.header, txns) != verdict.Violated }
		return !slices.ContainsFunc(levels, holds)
	}
}

// smaller leaves out of a proof of a level what it can do without: first all but the transactions that take part, so
// that it is about these and not about what else is wrong beside them, and then, unless it is so large that it is told
// as it was found (see told), whatever can go of these; the transactions too where a finder tells what is left.
func smaller(v verdict.Violation, level verdict.Level, p proof, ctx Context) proof {
	violated := p.breaking(level, ctx)
	opt := p.options(ctx, enough(v, level, p, ctx))
	part := map[string]bool{}
	for _, id := range members(v, ctx.Lookup) {
		part[id] = true
	}
	takesPart := func(t *record.Transaction) bool { return part[t.ID] }
	p.whole, opt.Keep, opt.KeepOps = p.txns, takesPart, true
	p.txns = shrink.Shrink(p.txns, violated, opt)
	if opt = p.options(ctx, everything(p)); ctx.Find == nil {
		opt.Keep = takesPart
	}
	if len(p.txns) <= reachMax {
		p.txns = shrink.Shrink(p.txns, violated, opt)
	}
	return p
}

// options are for leaving out what a proof can do without, of which it is known what is likely to be enough.
func (p proof) options(ctx Context, enough func(i, op int) bool) shrink.Options {
	partial := *p.header.Coverage == record.CoveragePartial
	return shrink.Options{Unseen: partial, Undeclared: partial || *p.header.Initial == record.InitialAny, Spent: ctx.over,
		Enough: enough}
}

// records are the records of the evidence, in the order in which the engine got them, but that of a session where seq
// says it: the engine may have been reminded late of what came first, and of one transaction's writes one by one. They
// are without times where these say nothing. Those that are no longer there are left out, with an error.
func records(v verdict.Violation, lookup name.Lookup) ([]record.Transaction, error) {
	ids := slices.Clone(v.Evidence)
	if len(ids) == 0 {
		ids = slices.Clone(v.Txns)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	untimed := slices.Sorted(slices.Values(v.Untimed))
	var out []record.Transaction
	var missing []verdict.TxnID
	places := map[[2]string]int{} // in out, by session and ID
	for _, id := range ids {
		if r, ok := lookup.Find(id); ok {
			if i, is := places[[2]string{r.Session, r.ID}]; is {
				out[i].Ops = slices.Concat(out[i].Ops, r.Ops)
				continue
			}
			places[[2]string{r.Session, r.ID}] = len(out)
			out = append(out, *r)
			if _, no := slices.BinarySearch(untimed, id); no {
				out[len(out)-1].HasTimes, out[len(out)-1].Start, out[len(out)-1].End = false, 0, 0
			}
		} else if id != verdict.NoTxn {
			missing = append(missing, id)
		}
	}
	bySession := map[string][]int{} // the places of those that have a seq
	for i := range out {
		if out[i].HasSeq {
			bySession[out[i].Session] = append(bySession[out[i].Session], i)
		}
	}
	given := slices.Clone(out)
	for _, places := range bySession {
		from := slices.Clone(places)
		slices.SortStableFunc(from, func(i, j int) int { return cmp.Compare(given[i].Seq, given[j].Seq) })
		for n, i := range places {
			out[i] = given[from[n]]
		}
	}
	if len(missing) > 0 {
		return out, fmt.Errorf("alert: %d of %d records of its evidence are not kept (first: transaction %d); "+
			"a larger window keeps them longer", len(missing), len(ids), missing[0])
	}
	return out, nil
}

// candidates are the histories to try as evidence, best first: cut down to what
// the engine says is needed before everything; claiming partial coverage, which
// assumes less, before what is declared. The last one has every write. All of them are
// implied by what was recorded; see docs/soundness.md, "Why evidence never
// invents a violation". Each is made when it is asked for, and once: as a rule
// the first one proves.
func candidates(v verdict.Violation, full []record.Transaction, ctx Context) []func() proof {
	full = withoutSeq(full)
	var out []func() proof
	var exhibited []func() []record.Transaction
	cut := func(from []record.Transaction, everyWrite bool) func() []record.Transaction {
		return sync.OnceValue(func() []record.Transaction { return exhibit(v, from, ctx.Lookup, everyWrite) })
	}
	if len(v.Exhibits) > 0 {
		exhibited = append(exhibited, cut(full, false))
		if v.Kind == verdict.Cycle || v.Kind == verdict.Unsatisfiable {
			if others, ok := vouching(full); ok {
				exhibited = append(exhibited, cut(others, false))
			}
		}
	}
	uncut := cut(full, true)
	if v.Kind != verdict.ThinAirRead {
		for _, txns := range append(exhibited, uncut) {
			out = append(out, func() proof { return proof{header: header(v, ctx, record.CoveragePartial, nil), txns: txns()} })
		}
	}
	declared := ctx.Coverage
	if v.Kind == verdict.ThinAirRead && !ctx.Tables.Has(record.CoverageComplete) {
		declared = record.CoverageComplete
	}
	if declared == record.CoverageComplete || ctx.Tables.Has(record.CoverageComplete) {
		for _, txns := range append(exhibited, uncut) {
			out = append(out, sync.OnceValue(func() proof {
				return proof{header: header(v, ctx, declared, ctx.Tables), txns: closed(v, txns(), ctx)}
			}))
		}
	}
	return out
}

// header states what a reader must assume.
func header(v verdict.Violation, ctx Context, coverage record.Coverage, tables record.Tables) record.Header {
	a := ctx.Assumptions
	a.Coverage, a.Tables, a.UnseenUnique = coverage, tables, nil
	if a.SomeUnseen() { // of a part that is cut out it can't be seen
		a.UnseenUnique = new(!ctx.UnseenRepeat())
	}
	if a.Clock == record.ClockEnforce && !v.ClockDependent {
		a.Clock = record.ClockPrune // it holds without
	}
	h := a.Header()
	if a.Clock == record.ClockIgnore {
		h.MaxSkew = nil
	}
	return h
}

// withoutSeq are the transactions without sequence numbers; see the package
// documentation.
func withoutSeq(txns []record.Transaction) []record.Transaction {
	out := slices.Clone(txns)
	for i := range out {
		out[i].Seq, out[i].HasSeq = 0, false
	}
	return out
}

// exhibit cuts transactions down to the operations that the engine says are
// needed, or to its reads and every write. If the engine says nothing, which
// stands for everything, it is everything. The engine knows all writers of what
// the reads that it exhibits returned; of any other read, somebody outside the
// evidence may have written the same, and so it goes.
func exhibit(v verdict.Violation, full []record.Transaction, lookup name.Lookup, everyWrite bool) []record.Transaction {
	if len(v.Exhibits) == 0 {
		return full
	}
	wanted := map[string]verdict.Exhibit{}
	type operation struct {
		txn string
		op  record.Op
	}
	open := map[operation]bool{}
	for _, x := range v.Exhibits {
		if r, ok := lookup.Find(x.Txn); ok { // who reads its own write may be there twice
			w := wanted[r.ID]
			wanted[r.ID] = verdict.Exhibit{Reads: slices.Concat(w.Reads, x.Reads), Writes: slices.Concat(w.Writes, x.Writes),
				All: slices.Concat(w.All, x.All)}
			for _, j := range x.Open {
				open[operation{r.ID, r.Ops[j]}] = true
			}
		}
	}
	reader, offending, offends := offender(v, lookup)
	// Where transactions see snapshots, or are one moment each, a key has one value in
	// a transaction; if it read another one as well that is a violation of its own, whose
	// writers are not exhibited here. Where nothing less proves, the list that shows an order,
	// whose elements name who appended them, and the value that shows what took effect may be
	// what it read later. Below, all its reads are.
	repeatable := v.Level.Implies(verdict.PC) || v.Level == verdict.LIN
	lists := writersOf(full)
	keep := make([][]bool, len(full))
	for i := range full {
		x := wanted[full[i].ID]
		keep[i] = make([]bool, len(full[i].Ops))
		written := map[string]bool{}
		first := map[string]record.Value{}
		for j, op := range full[i].Ops {
			switch all := slices.Contains(x.All, op.Key); {
			case writes(op):
				written[op.Key] = true
				keep[i][j] = all || everyWrite || slices.Contains(x.Writes, op.Key)
			case all:
				keep[i][j] = !offends || full[i].ID != reader || op.Key != v.Key || op.Value == offending ||
					vouches(op, reader, offending, full) ||
					slices.Contains(x.Reads, op.Key) // it shows the initial version too
			case written[op.Key]: // may be why it did not take effect
				keep[i][j] = full[i].Status == record.Unknown && slices.Contains(x.Writes, op.Key)
			case slices.Contains(x.Reads, op.Key):
				if _, ok := first[op.Key]; !ok {
					first[op.Key] = op.Value
				}
				keep[i][j] = op.Value == first[op.Key] || everyWrite &&
					(lists.appends[op.Key] > 0 || vouches(op, full[i].ID, first[op.Key], full))
				if !repeatable { // it may be any of them, and of thin air and the initial version both
					keep[i][j] = !offends || v.Kind == verdict.ThinAirRead || full[i].ID != reader || op.Key != v.Key ||
						op.Value == offending
				}
			}
			keep[i][j] = keep[i][j] && !open[operation{full[i].ID, op}]
		}
	}
	complete(full, keep)
	out := slices.Clone(full)
	for i := range out {
		out[i].Ops = nil
		for j, op := range full[i].Ops {
			if keep[i][j] {
				out[i].Ops = append(out[i].Ops, op)
			}
		}
	}
	return out
}

// vouches tells whether a read shows that a transaction of unknown outcome took
// effect, where the offending one of the same key does not.
func vouches(op record.Op, reader string, offending record.Value, txns []record.Transaction) bool {
	other := op
	other.Value = offending
	return slices.ContainsFunc(txns, func(t record.Transaction) bool {
		return t.Status == record.Unknown && t.ID != reader && name.Shows(op, &t) && !name.Shows(other, &t)
	})
}

// vouching are the transactions as seen by who read a key several times and found by a
// later one of these reads that a transaction of unknown outcome took effect: without
// the reads of the key before it, of which otherwise the first would stand for all. ok tells
// whether there is any such.
func vouching(txns []record.Transaction) (out []record.Transaction, ok bool) {
	if !slices.ContainsFunc(txns, func(t record.Transaction) bool { return t.Status == record.Unknown }) {
		return nil, false
	}
	out = slices.Clone(txns)
	for i := range out {
		by := map[string]int{} // key: the place of the read that vouches
		first, own := map[string]record.Value{}, map[string]bool{}
		for j, op := range out[i].Ops {
			was, again := first[op.Key]
			_, vouched := by[op.Key]
			switch {
			case writes(op):
				own[op.Key] = true
			case op.Kind != record.Read || own[op.Key]:
			case !again:
				first[op.Key] = op.Value
			case !vouched && op.Value != was && vouches(op, out[i].ID, was, txns):
				by[op.Key] = j
			}
		}
		if len(by) == 0 {
			continue
		}
		ok = true
		var ops []record.Op
		for j, op := range out[i].Ops {
			if at, vouched := by[op.Key]; !vouched || op.Kind != record.Read || j >= at || shrink.PutsBack(&out[i], j) {
				ops = append(ops, op)
			}
		}
		out[i].Ops = ops
	}
	return out, ok
}

// offender is who read, and what, where a violation is about one read and not
// about how it agrees with others of the same transaction.
func offender(v verdict.Violation, lookup name.Lookup) (id string, value record.Value, ok bool) {
	switch v.Kind {
	case verdict.ThinAirRead, verdict.AbortedRead, verdict.IntermediateRead, verdict.FutureRead, verdict.IncompatibleOrder,
		verdict.DuplicateElements:
	default:
		return "", record.Null, false
	}
	at := name.Read(v, lookup)
	if at < 0 || v.Kind == verdict.IncompatibleOrder && len(v.Txns) > 1 && v.Txns[0] == v.Txns[1] {
		return "", record.Null, false
	}
	r, _ := lookup.Find(v.Txns[0])
	return r.ID, r.Ops[at].Value, true
}

func writes(op record.Op) bool {
	return op.Kind.Writes() || op.Kind == record.PredicateWrite
}

// closed leaves out the lists of which somebody else than txns appended a part, so that complete coverage may be
// claimed of the rest: to know the order of two elements the engine need not exhibit the appenders of all. What else
// remains was read from one of txns, from the reader itself, or from the initial state: the engine exhibits all writers
// of what is read, or exhibits nothing, and then it is the whole history.
func closed(v verdict.Violation, txns []record.Transaction, ctx Context) []record.Transaction {
	w := writersOf(txns)
	initial := initialReads(v, ctx.Lookup)
	known := func(t *record.Transaction, op record.Op) bool {
		if op.Kind != record.Read || w.appends[op.Key] == 0 ||
			v.Kind == verdict.ThinAirRead && initial[read{t.ID, op.Key}] {
			return true
		}
		es, _ := list.Elements(op.Value)
		nobodys := func(e record.Value) bool { return w.elements[record.Cell{Key: op.Key, Value: e}] == 0 }
		return !slices.ContainsFunc(es, nobodys)
	}
	out := slices.Clone(txns)
	for i := range out {
		var ops []record.Op
		own := map[string]bool{}
		for _, op := range out[i].Ops {
			// What misses an own append is wrong whoever appended the rest.
			missed := v.Kind == verdict.NotMyOwnWrite && own[op.Key] && initial[read{out[i].ID, op.Key}]
			if missed || known(&txns[i], op) {
				ops = append(ops, op)
			}
			own[op.Key] = own[op.Key] || writes(op)
		}
		out[i].Ops = ops
	}
	return out
}

// read is all reads of a key in a transaction.
type read struct{ txn, key string }

// initialReads are the reads that the proof says returned the initial version,
// and those that it is about.
func initialReads(v verdict.Violation, lookup name.Lookup) map[read]bool {
	out := map[read]bool{}
	add := func(id verdict.TxnID, key string) {
		if r, ok := lookup.Find(id); ok {
			out[read{r.ID, key}] = true
		}
	}
	for _, c := range append([][]verdict.Edge{v.Cycle}, v.Cases...) {
		eachEdge(c, func(e verdict.Edge) {
			if e.Why == verdict.ByInitial && e.Type == verdict.RW {
				add(e.From, e.Key)
			}
		})
	}
	if name.Read(v, lookup) >= 0 {
		for _, id := range v.Txns {
			add(id, v.Key)
		}
	}
	if v.Kind == verdict.ThinAirRead { // and who saw the initial version instead
		for _, id := range v.Evidence {
			add(id, v.Key)
		}
	}
	return out
}

// reasonDepth bounds how deep reasons of reasons are followed, reasonsMax how
// many of their edges: they may share parts.
const (
	reasonDepth = 4
	reasonsMax  = 50_000
)

// eachEdge visits the edges of a cycle and of its reasons.
func eachEdge(c []verdict.Edge, f func(verdict.Edge)) {
	left := reasonsMax
	var visit func(c []verdict.Edge, depth int)
	visit = func(c []verdict.Edge, depth int) {
		for _, e := range c {
			f(e)
			if left--; depth == reasonDepth || left < 0 {
				continue
			}
			visit(e.Because, depth+1)
			for _, o := range e.Others {
				visit(o, depth+1)
			}
		}
	}
	visit(c, 0)
}
