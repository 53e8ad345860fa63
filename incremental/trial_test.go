package incremental_test

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A stream is a history as it may come in: in some order, online with ticks that
// are true of it.
type stream struct {
	txns []record.Transaction // in the order of arrival, each session's in order
	end  []int64              // when each truly ended, whether its record says so or not
	tick []int64              // the watermark told after each; noTick: none
	opt  incremental.Options
}

const noTick = math.MinInt64

// mustDecide lists what a history may have in it and has to be decided all the
// same; without it, unknown is an answer. What is not listed here ("mixed": a
// key that is list and register, an element appended twice; "unseen": writers
// not seen that may repeat any value; "untold": a key read as null that, online or
// with partial coverage, may turn out to be a list, or to start at zero) need never be decided. Online,
// the weak levels need not be where a read has several possible writers.
var mustDecide = map[string]bool{"duplicates": true, "unknown": true, "lists": true}

func isWeak(l verdict.Level) bool { return verdict.CC.Implies(l) }

// mustBeDecided tells whether a level of a history of some kinds has to be.
func (st *stream) mustBeDecided(l verdict.Level, kinds []string) bool {
	return !slices.ContainsFunc(kinds, func(k string) bool {
		return !mustDecide[k] || k == "duplicates" && st.opt.Online && isWeak(l)
	})
}

// A complaint is a disagreement between the engine and the definitions, or
// between the engine and itself.
type complaint struct {
	class string // of one class as long as the same goes wrong at the same level
	says  string
}

// tally counts verdicts by level, and those that are unknown by what the history
// has in it.
type tally struct {
	outcomes   map[verdict.Level]*[4]int // by outcome
	undecided  map[string]int
	guarantees int
}

func newTally() *tally {
	return &tally{outcomes: map[verdict.Level]*[4]int{}, undecided: map[string]int{}}
}

func (t *tally) count(l verdict.Level, o verdict.Outcome) {
	if t.outcomes[l] == nil {
		t.outcomes[l] = &[4]int{}
	}
	t.outcomes[l][o]++
}

func (t *tally) add(other *tally) {
	for l, n := range other.outcomes {
		for o, n := range n {
			for range n {
				t.count(l, verdict.Outcome(o))
			}
		}
	}
	for kinds, n := range other.undecided {
		t.undecided[kinds] += n
	}
	t.guarantees += other.guarantees
}

func (t *tally) of(o verdict.Outcome) (sum int) {
	for _, n := range t.outcomes {
		sum += n[o]
	}
	return sum
}

func (t *tally) String() string {
	var b strings.Builder
	for _, l := range verdict.Levels() {
		if n := t.outcomes[l]; n != nil {
			fmt.Fprintf(&b, "%v: %d satisfied, %d violated, %d unknown, %d not applicable; ", l, n[0], n[1], n[2], n[3])
		}
	}
	fmt.Fprintf(&b, "guarantees: %d; unknown: %v", t.guarantees, t.undecided)
	return b.String()
}

func (st *stream) String() string {
	h := record.Header{Initial: &st.opt.Initial, Coverage: &st.opt.Coverage, Sessions: &st.opt.Sessions, Clock: &st.opt.Clock, MaxSkew: &st.opt.MaxSkew}
	s := script.Format(script.Script{Header: h, Txns: st.txns})
	if !st.opt.Online {
		return s
	}
	var ticks []string
	for _, at := range st.tick {
		if at == noTick {
			ticks = append(ticks, "-")
		} else {
			ticks = append(ticks, fmt.Sprint(at))
		}
	}
	return s + fmt.Sprintf("# online, in this order; ticks after each: %s; true ends %v; max_transaction %d, unique values %v, unseen unique %v, at most %d violations\n",
		strings.Join(ticks, " "), st.end, st.opt.MaxTransaction, st.opt.UniqueValues, unseenUnique(st.opt), st.opt.MaxViolations)
}

// A spoken is all that the engine says about a stream.
type spoken struct {
	ticked     []verdict.Violation
	results    []verdict.Result
	guarantees []verdict.GuaranteeResult
	mini       bool
}

func (st *stream) feed(opt incremental.Options) (told spoken) {
	opt.Guarantees = true
	e := incremental.New(opt)
	for i := range st.txns {
		e.Step(&st.txns[i], st.end[i])
		if opt.Online && st.tick[i] != noTick {
			told.ticked = append(told.ticked, e.Tick(st.tick[i]).Violations...)
		}
	}
	told.results = e.Close()
	for _, r := range told.results {
		told.guarantees = append(told.guarantees, r.Guarantees...)
	}
	told.mini = e.State().Mini
	return told
}

// late tells whether some records come after ones that ended later, by clocks
// that can be trusted.
func (st *stream) late() bool {
	latest := int64(math.MinInt64)
	for _, x := range trusted(st.txns, st.opt.Clock) {
		if x.HasTimes {
			if x.End < latest {
				return true
			}
			latest = max(latest, x.End)
		}
	}
	return false
}

func (st *stream) untimed() bool {
	return slices.ContainsFunc(st.txns, func(x record.Transaction) bool { return !x.HasTimes })
}

// examine feeds a stream to engines and returns what is wrong with what they
// say, or nil.
func (st *stream) examine(told *tally) (found *complaint) {
	defer func() {
		if r := recover(); r != nil {
			found = &complaint{"panic", fmt.Sprintf("the engine panics: %v\n%s", r, debug.Stack())}
		}
	}()
	want := definition(st.txns, st.opt)
	said := st.feed(st.opt)
	for _, v := range said.ticked {
		if want.holds(v.Level) {
			return &complaint{fmt.Sprintf("a tick invents %v", v.Level), fmt.Sprintf("a tick says %v broken: %+v", v.Level, v)}
		}
	}
	least := want
	if st.opt.Coverage == record.CoveragePartial {
		least = seenAlone(st.txns, st.opt, func(string) bool { return true })
	}
	for _, r := range said.results {
		told.count(r.Level, r.Outcome)
		if !want.applies(r.Level) || r.Outcome == verdict.NotApplicable {
			if want.applies(r.Level) || r.Outcome != verdict.NotApplicable {
				return &complaint{fmt.Sprintf("applicable %v", r.Level), fmt.Sprintf("%v: %v, but that it applies is %v", r.Level, r.Outcome, want.applies(r.Level))}
			}
			continue
		}
		if c := st.verdict(r, want, least, told); c != nil {
			return c
		}
		for _, v := range said.ticked {
			if v.Level == r.Level && r.Outcome != verdict.Violated {
				return &complaint{fmt.Sprintf("taken back %v", r.Level), fmt.Sprintf("%v: %v at the end, but a tick told %+v", r.Level, r.Outcome, v)}
			}
		}
		if c := st.proofs(r, want); c != nil {
			return c
		}
	}
	if mini := isMini(st.txns); said.mini != mini {
		return &complaint{"mini", fmt.Sprintf("mini-transactions only: %v, but the engine says %v", mini, said.mini)}
	}
	if c := st.guaranteed(said.guarantees, told); c != nil {
		return c
	}
	return st.alone(said.results)
}

// guaranteed compares what the engine says of session guarantees: in batch, and
// where every read has one possible writer, it knows them.
func (st *stream) guaranteed(said []verdict.GuaranteeResult, told *tally) *complaint {
	kinds := kindsOf(st.txns, st.opt)
	if len(said) == 0 || st.opt.Online || st.opt.Coverage == record.CoveragePartial {
		return nil
	}
	for _, r := range said {
		told.guarantees++
		holds := oracle.HoldsGuarantee(r.Guarantee, trusted(st.txns, st.opt.Clock), defined(st.opt))
		say := func(class string) *complaint {
			return &complaint{fmt.Sprintf("%s %v", class, r.Guarantee), fmt.Sprintf("%v: the engine says %v, the definition says that it holds: %v; kinds %v\n%+v",
				r.Guarantee, r.Outcome, holds, kinds, r.Violations)}
		}
		switch {
		case r.Outcome == verdict.Violated && holds:
			return say("invented")
		case r.Outcome == verdict.Satisfied && !holds:
			return say("missed")
		case r.Outcome != verdict.Satisfied && r.Outcome != verdict.Violated && !slices.ContainsFunc(kinds, func(k string) bool { return k != "lists" && k != "unknown" }):
			return say("undecided")
		}
		for _, v := range r.Violations {
			if oracle.HoldsGuarantee(r.Guarantee, cutDown(v, st.txns, st.opt.Clock), defined(st.opt)) {
				return &complaint{fmt.Sprintf("evidence %v", r.Guarantee), fmt.Sprintf("the evidence of %v proves nothing: %+v", r.Guarantee, v)}
			}
		}
	}
	return nil
}

// isMini tells whether all transactions are mini-transactions (MTC, Definition
// 8) and write each value once (Definition 9): one or two reads, at most two
// writes, each after a read of its key.
func isMini(txns []record.Transaction) bool {
	wrote := map[record.Op]bool{}
	for _, x := range txns {
		if x.Status == record.Aborted {
			continue
		}
		reads, writes, read := 0, 0, map[string]bool{}
		for _, op := range x.Ops {
			switch op.Kind {
			case record.Read:
				reads, read[op.Key] = reads+1, true
			case record.Write:
				if !read[op.Key] || wrote[op] {
					return false
				}
				writes++
				wrote[op] = true
			default:
				return false
			}
		}
		if reads < 1 || reads > 2 || writes > 2 {
			return false
		}
	}
	return true
}

// verdict compares a verdict with the definition.
func (st *stream) verdict(r verdict.Result, want, least *truth, told *tally) *complaint {
	say := func(class string) *complaint {
		return &complaint{fmt.Sprintf("%s %v", class, r.Level), fmt.Sprintf("%v: the engine says %v (%v, %d), the definition says that it holds: %v; what was seen alone: %v; kinds %v\n%+v",
			r.Level, r.Outcome, r.Reason, r.Count, want.holds(r.Level), least.holds(r.Level), kindsOf(st.txns, st.opt), r.Violations)}
	}
	timed := r.Level == verdict.SSER || r.Level == verdict.StrongSI || r.Level == verdict.LIN
	switch {
	case r.Outcome == verdict.Violated && want.holds(r.Level):
		return say("invented")
	case r.Outcome == verdict.Satisfied && !least.holds(r.Level) && !(timed && st.opt.Online && st.late()):
		return say("missed")
	case r.Outcome == verdict.Unknown:
		kinds := kindsOf(st.txns, st.opt)
		if !(r.NoTimes && st.untimed()) && st.mustBeDecided(r.Level, kinds) {
			return say("undecided")
		}
		told.undecided[strings.Join(kinds, "+")]++
	}
	if r.RealTimeOnly && (timed || isWeak(r.Level) || r.Outcome != verdict.Satisfied || oracle.HoldsInTime(r.Level, trusted(st.txns, st.opt.Clock), defined(st.opt))) {
		return say("a wrong note at")
	}
	return nil
}

// proofs has everything proved that a result says.
func (st *stream) proofs(r verdict.Result, want *truth) *complaint {
	for _, v := range r.Violations {
		if !slices.Contains(st.opt.Levels, v.Level) {
			return &complaint{fmt.Sprintf("not asked at %v", r.Level), fmt.Sprintf("%v was not asked for: %+v", v.Level, v)}
		}
		if want.holds(v.Level) {
			return &complaint{fmt.Sprintf("invented below %v", r.Level), fmt.Sprintf("%v is said broken by %+v", v.Level, v)}
		}
		if ok, why := proves(v, r.Level, st.txns, st.opt); !ok {
			return &complaint{fmt.Sprintf("evidence %v", r.Level), fmt.Sprintf("the evidence of %v %v at %v proves nothing:\n%s%+v", v.Level, v.Kind, r.Level, why, v)}
		}
	}
	nothingUnique := st.opt.Coverage == record.CoveragePartial && !unseenUnique(st.opt) // a proof would claim nothing
	// A commit order can't tell of keys that are list and register.
	nothingToSay := isWeak(r.Level) && slices.Contains(kindsOf(st.txns, st.opt), "mixed")
	if r.Outcome != verdict.Satisfied || st.opt.Online || !st.opt.Proof || nothingUnique || nothingToSay {
		return nil
	}
	err := certificate.Replay(r, st.txns, st.opt.Assumptions)
	if err != nil {
		return &complaint{fmt.Sprintf("proof %v", r.Level), fmt.Sprintf("%v: the proof fails: %v\n%v", r.Level, err, r.Order)}
	}
	return nil
}

// alone asks an engine for each level by itself: it says the same.
func (st *stream) alone(together []verdict.Result) *complaint {
	if len(together) == 1 {
		return nil
	}
	for _, r := range together {
		opt := st.opt
		opt.Levels = []verdict.Level{r.Level}
		own := st.feed(opt).results[0]
		// What is found of a list before somebody comes who wrote it otherwise is told, and not after.
		when := st.opt.Online && slices.Contains(kindsOf(st.txns, st.opt), "mixed") && (own.Outcome == verdict.Unknown || r.Outcome == verdict.Unknown)
		if own.Outcome != r.Outcome && !when {
			return &complaint{fmt.Sprintf("alone %v", r.Level), fmt.Sprintf("%v: %v alone, %v together with %v", r.Level, own.Outcome, r.Outcome, st.opt.Levels)}
		}
	}
	return nil
}

// breaks tells whether what is not m is not l either. A history of single keys
// that is lin satisfies, key by key, whatever does not ask for session order; a
// violation that needs none breaks it.
func breaks(l, m verdict.Level) bool { return l == verdict.LIN || l.Implies(m) }

// truth is what the definitions say of a history; levels are asked for when they
// are needed, and not if another one tells, as the oracle's own tests do that.
type truth struct {
	txns   []record.Transaction
	def    record.Assumptions
	known  map[verdict.Level]bool
	broken func(verdict.Level) bool // known otherwise
}

func (t *truth) applies(l verdict.Level) bool { return slices.Contains(oracle.Levels(t.txns), l) }

func (t *truth) holds(l verdict.Level) bool {
	if t.broken != nil && t.broken(l) {
		return false
	}
	if _, ok := t.known[l]; !ok && t.applies(l) {
		if l.Implies(verdict.G1) { // which tells most?
			t.ask(verdict.SI)
			t.ask(verdict.RC)
			t.ask(verdict.SSER)
		}
		t.ask(l)
	}
	return t.known[l]
}

func (t *truth) ask(l verdict.Level) {
	if _, ok := t.known[l]; ok {
		return
	}
	holds := oracle.Holds(l, t.txns, t.def)
	t.known[l] = holds
	for _, m := range verdict.Levels() {
		if t.def.Clock == record.ClockDatabase && (l == verdict.SI || l == verdict.StrongSI || m == verdict.SI || m == verdict.StrongSI) {
			continue // an order of commits says nothing of starts
		}
		if holds && l.Implies(m) || !holds && m.Implies(l) {
			t.known[m] = holds
		}
	}
}

// definition asks the oracle, telling it of no times that the engine can't trust:
// those of a client's clock that stepped back within its session.
func definition(txns []record.Transaction, opt incremental.Options) *truth {
	return &truth{txns: trusted(txns, opt.Clock), def: defined(opt), known: map[verdict.Level]bool{}}
}

// defined are the oracle's options for those of an engine.
func defined(opt incremental.Options) record.Assumptions {
	opt.UnseenUnique = new(unseenUnique(opt) || opt.Coverage != record.CoveragePartial)
	return opt.Assumptions
}

func unseenUnique(opt incremental.Options) bool { return opt.UnseenUnique == nil || *opt.UnseenUnique }

func trusted(txns []record.Transaction, clock record.Clock) []record.Transaction {
	if clock == record.ClockDatabase {
		return txns
	}
	txns = slices.Clone(txns)
	start, end := map[string]int64{}, map[string]int64{}
	for i := range txns {
		x := &txns[i]
		if x.Status != record.Committed || !x.HasTimes {
			continue
		}
		if before, ok := end[x.Session]; ok && (x.Start < start[x.Session] || x.End < before) {
			x.HasTimes = false
			continue
		}
		start[x.Session], end[x.Session] = x.Start, x.End
	}
	return txns
}

// seenAlone are the levels that hold under partial coverage when reads that an
// unseen writer may have answered, of keys that are lossy, count for nothing, as
// they are promised to prove nothing. What is broken then has to be found.
func seenAlone(txns []record.Transaction, opt incremental.Options, lossy func(key string) bool) *truth {
	var cut []record.Transaction
	own, same := true, true
	for _, x := range trusted(txns, opt.Clock) {
		if x.Status == record.Committed {
			readsOwn, repeats := repeats(txns, x.Ops, lossy)
			own, same = own && readsOwn, same && repeats
		}
		x.Ops = slices.Clone(x.Ops)
		wrote := map[string]bool{}
		added := map[string]string{}
		x.Ops = slices.DeleteFunc(x.Ops, func(op record.Op) bool {
			wrote[op.Key] = wrote[op.Key] || op.Kind == record.Write
			if op.Kind == record.Append {
				added[op.Key] += "," + op.Value.String()
			}
			if op.Kind == record.Read && !wrote[op.Key] && len(opt.Lost) > 0 && slices.ContainsFunc(txns, func(x record.Transaction) bool {
				return x.Status == record.Aborted && slices.Contains(writtenKeys(x.Ops), op.Key)
			}) {
				return true // what was tried again may be missing
			}
			return op.Kind == record.Read && !wrote[op.Key] && lossy(op.Key) && (!unseenUnique(opt) || maybeUnseen(txns, op, added[op.Key], opt))
		})
		cut = append(cut, x)
	}
	def := defined(opt)
	def.Coverage = record.CoverageComplete
	return &truth{txns: cut, def: def, known: map[verdict.Level]bool{}, broken: func(l verdict.Level) bool {
		return !own || !same && breaks(l, verdict.RA)
	}}
}

// repeats tells whether a transaction reads its own write of a key after it, and
// whether it reads a key twice the same. An empty list and no value are the same of a
// list, and of a key of which nobody may have seen that it is one.
func repeats(txns []record.Transaction, ops []record.Op, lossy func(key string) bool) (own, same bool) {
	held, wrote := map[string]record.Value{}, map[string]bool{}
	own, same = true, true
	for _, op := range ops {
		if op.Value.Kind == record.KindList && op.Value.Text == "[]" && (isList(txns, op.Key) || lossy(op.Key)) {
			op.Value = record.Null
		}
		v, known := held[op.Key]
		switch differs := known && v != op.Value; {
		case op.Kind == record.Read && differs && wrote[op.Key]:
			own = false
		case op.Kind == record.Read && differs:
			same = false
		}
		held[op.Key] = op.Value
		wrote[op.Key] = wrote[op.Key] || op.Kind == record.Write
		if op.Kind == record.Append {
			delete(held, op.Key)
		}
	}
	return own, same
}

// maybeUnseen tells whether a transaction's read shows what somebody who was not
// seen may have done. What is only put back is among it, and a
// list of nothing but what the reader added: somebody may have emptied it.
func maybeUnseen(txns []record.Transaction, read record.Op, added string, opt incremental.Options) bool {
	v := read.Value
	if len(opt.Lost) > 0 { // and not seen to have tried again
		txns = slices.DeleteFunc(slices.Clone(txns), func(x record.Transaction) bool { return x.Status == record.Aborted })
	}
	switch {
	case v.IsNull(), opt.Initial == record.InitialZero && v == record.Int(0):
		return true
	case v.Kind == record.KindList && isList(txns, read.Key):
		inner := v.Text[1 : len(v.Text)-1]
		if inner == strings.TrimPrefix(added, ",") {
			return true
		}
		for _, e := range strings.Split(inner, ",") {
			if !slices.ContainsFunc(txns, func(x record.Transaction) bool {
				return slices.ContainsFunc(x.Ops, func(op record.Op) bool {
					return op.Key == read.Key && op.Kind == record.Append && op.Value.String() == e
				})
			}) {
				return true
			}
		}
		return false
	}
	return !oracle.Made(txns, read.Key, v)
}

func isList(txns []record.Transaction, key string) bool {
	return slices.ContainsFunc(txns, func(x record.Transaction) bool {
		return slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Key == key && op.Kind == record.Append })
	})
}

// kindsOf tells what a history has in it that makes it harder to judge: see
// mustDecide. In a fixed order.
func kindsOf(txns []record.Transaction, opt incremental.Options) []string {
	var out []string
	note := func(kind string, is bool) {
		if is && !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	writers, appends, kind := map[record.Op]int{}, map[record.Op]int{}, map[string]record.OpKind{}
	scalar := map[string]bool{} // keys that hold no lists
	for _, x := range txns {
		last := map[string]record.Op{}
		for _, op := range x.Ops {
			if op.Kind == record.Read {
				continue
			}
			if k, known := kind[op.Key]; known && k != op.Kind {
				note("mixed", true)
			}
			kind[op.Key] = op.Kind
			scalar[op.Key] = scalar[op.Key] || op.Kind == record.Write && op.Value.Kind != record.KindList && !op.Value.IsNull()
			last[op.Key] = op
			if op.Kind == record.Append {
				appends[op]++
				note("mixed", appends[op] > 1)
			}
		}
		for _, op := range last {
			if x.Status != record.Aborted {
				writers[record.Op{Key: op.Key, Value: op.Value}]++
			}
		}
	}
	for _, x := range txns {
		note("unknown", x.Status == record.Unknown)
		wrote, null, empty := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, op := range x.Ops {
			null[op.Key] = null[op.Key] || op.Value.IsNull()
			empty[op.Key] = empty[op.Key] || op.Value.Text == "[]"
			note("untold", opt.Coverage == record.CoveragePartial && null[op.Key] && empty[op.Key] && !scalar[op.Key])
			if wrote[op.Key] = wrote[op.Key] || op.Kind == record.Write; op.Kind != record.Read || wrote[op.Key] {
				continue
			}
			list := kind[op.Key] == record.Append
			note("mixed", list && !op.Value.IsNull() && op.Value.Kind != record.KindList)
			n := writers[op]
			if opt.Initial == record.InitialAbsent && op.Value.IsNull() || opt.Initial == record.InitialZero && op.Value == record.Int(0) ||
				opt.Initial == record.InitialAny && !oracle.Made(txns, op.Key, op.Value) {
				n++
			}
			note("duplicates", !list && n > 1)
			note("untold", opt.Online && kind[op.Key] != record.Write && opt.Initial == record.InitialZero && op.Value.IsNull())
		}
	}
	for _, k := range kind {
		note("lists", k == record.Append)
	}
	note("unseen", opt.Coverage == record.CoveragePartial && !unseenUnique(opt))
	slices.Sort(out)
	return out
}

// cutDown are the records of a violation's evidence, only what its exhibits name.
func cutDown(v verdict.Violation, txns []record.Transaction, clock record.Clock) []record.Transaction {
	txns = trusted(txns, clock)
	var cut []record.Transaction
	for i, id := range v.Evidence {
		x := txns[id]
		if len(v.Exhibits) > 0 {
			x.Ops = exhibited(x.Ops, v.Exhibits[i])
		}
		cut = append(cut, x)
	}
	return cut
}

// proves tells whether the oracle, and the engine, call the evidence of v
// violated by itself, cut down to its exhibits.
func proves(v verdict.Violation, level verdict.Level, txns []record.Transaction, opt incremental.Options) (bool, string) {
	for _, id := range v.Txns {
		if !slices.Contains(v.Evidence, id) {
			return false, fmt.Sprintf("transaction %d takes part and is no evidence\n", id)
		}
	}
	if !slices.IsSorted(v.Evidence) {
		return false, "evidence is not sorted\n"
	}
	cut := cutDown(v, txns, opt.Clock)
	text := script.Format(script.Script{Txns: cut})
	for _, l := range []verdict.Level{v.Level, level} {
		if oracle.Holds(l, cut, defined(opt)) {
			return false, fmt.Sprintf("the definition says that %v holds of\n%s", l, text)
		}
	}
	opt.Online, opt.Proof, opt.MaxViolations, opt.MaxTransaction, opt.Levels = false, false, 0, 0, []verdict.Level{level}
	again := stream{txns: cut, end: make([]int64, len(cut)), opt: opt}
	if r := again.feed(opt).results[0]; r.Outcome != verdict.Violated {
		return false, fmt.Sprintf("the engine says %v of\n%s", r.Outcome, text)
	}
	return true, ""
}

// exhibited are the operations that an exhibit names.
func exhibited(ops []record.Op, x verdict.Exhibit) []record.Op {
	var out []record.Op
	wrote := map[string]bool{}
	for _, op := range ops {
		isRead := op.Kind == record.Read
		if slices.Contains(x.All, op.Key) || isRead && !wrote[op.Key] && slices.Contains(x.Reads, op.Key) ||
			!isRead && slices.Contains(x.Writes, op.Key) {
			out = append(out, op)
		}
		wrote[op.Key] = wrote[op.Key] || !isRead
	}
	return out
}

// shrunk is a smaller stream of which the same is wrong: without transactions,
// operations, ticks and times that do not matter.
func (st stream) shrunk(class string) (stream, *complaint) {
	wrong := func(s *stream) *complaint {
		if c := s.examine(newTally()); c != nil && c.class == class {
			return c
		}
		return nil
	}
	last := wrong(&st)
	for again := last != nil; again; {
		again = false
		for _, smaller := range st.smaller() {
			if c := wrong(&smaller); c != nil {
				st, last, again = smaller, c, true
				break
			}
		}
	}
	return st, last
}

// smaller are the streams with one thing less.
func (st *stream) smaller() []stream {
	var out []stream
	for i := range st.txns {
		s := st.clone()
		s.txns = slices.Delete(s.txns, i, i+1)
		s.end = slices.Delete(s.end, i, i+1)
		if s.tick != nil {
			s.tick = slices.Delete(s.tick, i, i+1)
		}
		out = append(out, s)
	}
	for i := range st.txns {
		for j := range st.txns[i].Ops {
			s := st.clone()
			s.txns[i].Ops = slices.Delete(slices.Clone(s.txns[i].Ops), j, j+1)
			out = append(out, s)
		}
	}
	for i := range st.txns {
		if st.tick != nil && st.tick[i] != noTick {
			s := st.clone()
			s.tick[i] = noTick
			out = append(out, s)
		}
		if st.txns[i].HasTimes {
			s := st.clone()
			s.txns[i].HasTimes, s.txns[i].Start, s.txns[i].End = false, 0, 0
			out = append(out, s)
		}
	}
	if st.opt.MaxSkew != 0 {
		s := st.clone()
		s.opt.MaxSkew = 0
		out = append(out, s)
	}
	return out
}

func (st *stream) clone() stream {
	s := *st
	s.txns, s.end, s.tick = slices.Clone(s.txns), slices.Clone(s.end), slices.Clone(s.tick)
	return s
}
