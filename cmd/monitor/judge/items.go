package judge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// Expanded are records as they were read, with registers in place of predicates: all that these say. Records without
// predicates, and those of which some are not judged, stay as they are. An error says that there would be too many
// operations.
func Expanded(read *packed.Records, a record.Assumptions) (*packed.Records, error) {
	q := Question{Records: read, Assume: a}
	q.fillIn()
	if q.items == nil || q.items.Unread != nil {
		return read, nil
	}
	if err := q.items.AskAll(q.items.Most); err != nil {
		return nil, err
	}
	q.repack()
	return q.Records, nil
}

// readItems takes records apart that have predicates: with registers in place of them, as package predicate makes
// them, if that can be done. Else the records stay as they are, which leaves predicates unjudged, and a note says why.
func (q *Question) readItems() {
	var err error
	a := without(q.read.Missing, q.Assume)
	unasked := predicate.Unasked{Key: q.Unasked.Key, Txn: func(t int) bool {
		return q.left[t] || q.near != nil && !q.near[t] || q.Unasked.Txn != nil && q.Unasked.Txn(t)
	}}
	q.items, err = predicate.Read(q.Records.Transactions(), whole(a), unasked,
		func() bool { return q.Stop() != verdict.NoReason })
	if err == nil && q.items.Supposed && q.Unasked.Any() {
		err = errors.New("it is not known what predicate writes hit, or made of it, and not all that they may have met")
	}
	if err != nil {
		q.items = nil
		q.notes = append(q.notes, "predicates are not judged: "+err.Error())
		return
	}
	if q.items.Unread != nil {
		q.notes = append(q.notes, "some predicate reads are not judged: "+q.items.Unread.Error())
	}
	if q.items.Supposed {
		q.notes = append(q.notes, "which rows predicate writes hit, or what else these held, is not known: "+
			"it was tried whether all is explained if the transactions ran in the order of their ends; what is violated is so "+
			"whatever they hit")
	}
	if q.itemsMax > 0 {
		q.items.Most = q.itemsMax
	}
	partly := q.items.Partly()
	if len(partly) > 0 {
		q.notes = append(q.notes, fmt.Sprintf("of %s it is judged which rows statements returned, not which they did not: "+
			"somebody unseen may have written rows, or some may have been there at first (docs/soundness.md, coverage)",
			english.OxfordWordSeries(partly, "and")))
	}
}

// with are tables, and others that are complete.
func with(tables record.Tables, complete []string) record.Tables {
	if len(complete) == 0 {
		return tables
	}
	out := record.Tables{}
	maps.Copy(out, tables)
	for _, name := range complete {
		out[name] = record.CoverageComplete
	}
	return out
}

// Tables are those under which a violation that Part found is told, of the tables of the history: a register of which
// somebody read what nobody wrote is one that nobody can have written.
func Tables(v verdict.Violation, tables record.Tables) record.Tables {
	if v.Kind == verdict.ThinAirRead && predicate.IsRegister(v.Key) {
		return with(tables, []string{v.Key})
	}
	return tables
}

// whole tells whether all writes of a table's rows are known, and that there were none at first.
func whole(a record.Assumptions) func(table string) bool {
	return func(table string) bool {
		if c, named := a.Tables[table]; named {
			return c == record.CoverageComplete
		}
		return a.Coverage == record.CoverageComplete && a.Initial == record.InitialAbsent
	}
}

// orders decides levels by orders of the transactions that explain all that predicates say. Where none is found, what
// breaks the level is looked for; and if anything is open then, what predicates say is in the records from now on.
func (q *Question) orders(tell func(report.Result, verdict.Level)) {
	if q.items == nil {
		return
	}
	if q.items.Unread == nil && len(q.items.Partly()) == 0 && q.Assume.Clock != record.ClockDatabase {
		levels := []verdict.Level{verdict.SSER, verdict.SER, verdict.StrongSI, verdict.SI, verdict.PC, verdict.RC,
			verdict.G1}
		for _, l := range levels {
			q.Phase("looking for an order that explains predicates")
			order, _ := q.order(l)
			if order == nil || q.stopped() != verdict.NoReason || isWeak(l) && (q.Replay || q.Proved != nil) {
				continue // a proof of a weak level says whom each read is from
			}
			r := verdict.Result{Level: l, Outcome: verdict.Satisfied, Order: order, ProvedBy: l}
			if isWeak(l) || q.items.Explain(l, order) == 0 && Replay(r, q.Assume, q.pack(false).Transactions()) == nil &&
				q.stopped() == verdict.NoReason {
				q.decided = append(q.decided, r)
			}
		}
		slices.Reverse(levels)
		for _, l := range levels {
			if slices.Contains(q.Levels, l) && !q.items.Supposed {
				q.aroundOrder(l, tell)
			}
		}
		q.left, q.share = nil, time.Time{}
	}
	if slices.ContainsFunc(q.Levels, q.isOpen) {
		q.seed()
	}
}

// seed has the records be what tells most of the predicates.
func (q *Question) seed() {
	q.items.Again()
	q.items.Seed()
	q.repack()
	q.Assume.Tables = with(q.Assume.Tables, q.items.Impossible())
}

// order looks for an order that satisfies a level, if that would decide one that is open.
func (q *Question) order(l verdict.Level) (order []verdict.Event, near []int32) {
	if !slices.ContainsFunc(q.Levels, func(asked verdict.Level) bool {
		return (asked == l || (l == verdict.SI || l == verdict.PC) && l.Implies(asked)) && !beyond(asked, q.Assume.Clock) &&
			q.inferred(asked).Outcome != verdict.Satisfied
	}) {
		return nil, nil
	}
	return q.items.Order(predicate.Rules{Level: l, Sessions: q.Assume.Sessions == record.SessionsKeep,
		RealTime: l.RealTime(), MaxSkew: q.Assume.MaxSkew})
}

// nearItems is how many operations there may be for what few transactions found, nearLeft the part of the time that is
// left to ask them. nearFirst are asked at first, and then so many times as many.
const nearItems, nearLeft, nearFirst, nearTimes = 1 << 19, 4, 8, 4

// ask judges a level by what few transactions found.
func (q *Question) ask(l verdict.Level, near []int32) (Question, verdict.Result) {
	most := q.items.Most
	q.near, q.items.Most = map[int]bool{}, min(most, nearItems)
	for _, t := range near {
		q.near[int(t)] = true
	}
	few := q.part()
	few.AnomaliesMax, few.Conflicts = 1, auxConflicts
	few.seed()
	r := few.only(l)
	q.items.Most, q.near = most, nil
	return few, r
}

// aroundOrder looks for what breaks a level in what those found that are near where an order of it was longest, as all that
// many statements found of many rows is too much to be asked. What broke one is left out then, until an order is found or
// nothing is broken.
func (q *Question) aroundOrder(l verdict.Level, tell func(report.Result, verdict.Level)) {
	began := time.Now()
	for n := 0; q.AnomaliesMax == 0 || n < q.AnomaliesMax; n++ {
		q.divide(nearLeft)
		_, near := q.order(l)
		r := []verdict.Result{{}}
		if q.inferred(l).Outcome == verdict.Violated { // there may be more
			near = near[:min(len(near), nearFirst*nearTimes)]
		}
		var few Question
		for n := nearFirst; r[0].Outcome != verdict.Violated; n *= nearTimes {
			if n >= nearTimes*len(near) || q.stopped() != verdict.NoReason {
				return
			}
			few, r[0] = q.ask(l, near[:min(n, len(near))])
		}
		q.claims(r)
		if q.left == nil {
			q.left = map[int]bool{}
		}
		had := len(q.left)
		for _, t := range r[0].Violations[0].Evidence {
			q.left[int(t)] = true
		}
		if len(q.left) == had { // it is broken whatever they read
			return
		}
		q.explainer.find = lookup(few.Records)
		first := q.explainer.first(r[0])
		first.Seconds = time.Since(began).Seconds()
		for _, m := range q.Levels {
			if m.Implies(l) && !beyond(m, q.Assume.Clock) {
				r[0].Level, first.Level = m, m.String()
				if q.inferred(m).Outcome != verdict.Violated {
					tell(first, m)
				}
				q.found = append(q.found, found{r[0], first, q.explainer.find})
			}
		}
		r[0].Level = l
		q.decided = append(q.decided, r[0])
	}
}

// rowsFound is how many rows the statements of the history found, if it has any that are judged.
func (q *Question) rowsFound() func(id, register string) (int, bool) {
	if q.items == nil {
		return nil
	}
	return q.items.Found
}

// repack makes the records of what is asked of the predicates by now.
func (q *Question) repack() { q.Records = q.pack(false) }

// pack makes them, or a part of them if all is to stop: when what asks has had its share of the time others go on with
// them.
func (q *Question) pack(few bool) *packed.Records {
	var b packed.Builder
	all := *q
	all.share = time.Time{}
	left := 0
	for t := range q.items.Transactions(few) {
		if all.halts(t, &left) {
			break
		}
		b.Add(t)
	}
	return b.Records()
}

// whole asks for all that predicates say, as levels that are defined by axioms on the order of commits need it: whom a
// read is from matters to them, whatever the order.
func (q *Question) whole(levels []verdict.Level) error {
	if q.items == nil || q.isWhole || !isWeak(levels[0]) {
		return nil
	}
	return q.askAll()
}

func isWeak(l verdict.Level) bool { return certificate.KindOf(l) == certificate.Commits }

// unjudged notes why predicates are not judged at levels.
func (q *Question) unjudged(why error, levels ...verdict.Level) {
	q.notes = append(q.notes, "predicates are not judged at "+names(levels)+": "+why.Error())
}

// askAll asks for all that predicates say. If that is too much the records stay as they are: no level is satisfied then.
func (q *Question) askAll() error {
	q.Phase("reading predicates")
	err := q.items.AskAll(q.items.Most)
	if q.isWhole = err == nil; q.isWhole {
		q.repack()
	}
	return err
}

// plainMost is up to how many operations are asked for where a level is broken.
const plainMost = 1 << 17

// plainer looks again at levels that are broken, with more of what predicates say: more of what breaks them shows then,
// and it shows more plainly, such as two that each missed the other. It returns the records
// that what breaks them is told of.
func (q *Question) plainer(w *work, results []verdict.Result) *packed.Records {
	records := q.Records
	if q.items == nil || q.isWhole || q.AnomaliesMax == 1 || w.aux {
		return records
	}
	again := work{choices: w.choices}
	for _, r := range results {
		if r.Outcome == verdict.Violated {
			again.levels = append(again.levels, r.Level)
		}
	}
	if len(again.levels) == 0 {
		return records
	}
	had := q.items.Size()
	q.isWhole = q.items.AskAll(plainMost) == nil
	if !q.isWhole && q.items.Size() == had {
		return records
	}
	q.repack()
	part := q.part()
	part.Conflicts = auxConflicts // that they are broken is known
	e, ok := part.feed(&again)
	if !ok {
		return records
	}
	more := e.Close()
	if slices.ContainsFunc(more, func(r verdict.Result) bool { return r.Outcome != verdict.Violated }) {
		return records // it was too much
	}
	for _, r := range more {
		results[slices.IndexFunc(results, func(o verdict.Result) bool { return o.Level == r.Level })] = r
	}
	return q.Records
}

// unexplained tells whether an order that satisfies a level leaves something of the predicates unexplained, which is
// asked for from now on. What was violated before is so with more.
func (q *Question) unexplained(results []verdict.Result) bool {
	if q.items == nil || q.isWhole {
		return false
	}
	added := 0
	for i, r := range results {
		if r.Level == verdict.LIN && r.Outcome != verdict.NotApplicable { // it seldom applies, and then needs all
			if q.askAll() == nil {
				return true
			}
			results[i] = q.open(r.Level)
			continue
		}
		switch {
		case r.Outcome != verdict.Satisfied:
			continue
		case isWeak(r.Level): // it takes all that predicates say
			results[i] = q.open(r.Level)
			continue
		}
		q.Phase("looking whether " + r.Level.String() + " explains predicates")
		added += q.items.Explain(r.Level, r.Order)
		if why := q.Stop(); why != verdict.NoReason { // what is asked for is in the records before others have their turn
			results[i] = verdict.Result{Level: r.Level, Outcome: verdict.Unknown, Reason: why, Count: len(q.items.Txns),
				Stats: r.Stats}
		}
	}
	if err := q.items.TooMuch(); err != nil {
		for i, r := range results {
			if r.Outcome == verdict.Satisfied {
				results[i] = q.open(r.Level)
				q.unjudged(err, r.Level)
			}
		}
		return false
	}
	if added > 0 {
		q.repack()
	}
	return added > 0
}

// waysMax is in how many ways predicate writes may have hit rows for all to be tried, and waysWork how many operations
// these may have.
const waysMax, waysWork = 1 << 10, 1 << 20

// leave leaves open what breaks a level as predicate writes were supposed to have hit rows: they may have hit others,
// unless it is broken whatever they hit. Likewise what satisfies a level, if there are reads that are not understood, or
// not asked.
func (q *Question) leave(results []verdict.Result) {
	for i, r := range results {
		if q.items != nil && (q.items.Supposed && r.Outcome == verdict.Violated && !q.always(r.Level) ||
			r.Outcome == verdict.Satisfied && (q.items.Unread != nil || !q.byRecorded(r.Level))) {
			results[i] = q.open(r.Level)
			results[i].Stats = r.Stats
		}
	}
}

// byRecorded tells whether what statements did not return, too, is explained by the recorded writers, where it is not
// known that there are no others.
func (q *Question) byRecorded(l verdict.Level) bool {
	partly := q.items.Partly()
	if len(partly) == 0 {
		return true
	}
	q.Phase("judging " + l.String() + " by the recorded writers")
	a := q.Assume
	a.Tables = with(a.Tables, partly)
	return q.under(a, q.items.Txns, l) == verdict.Satisfied
}

// under judges a level of transactions, and under assumptions, of its own.
func (q *Question) under(a record.Assumptions, txns []record.Transaction, l verdict.Level) verdict.Outcome {
	way := Question{Records: packed.Of(txns), Assume: a, Stop: q.stopped, Conflicts: q.Conflicts, AnomaliesMax: 1}
	if way.fillIn(); way.items == nil || way.items.Supposed {
		return verdict.Unknown
	}
	way.seed()
	if way.whole([]verdict.Level{l}) != nil {
		return verdict.Unknown
	}
	return way.only(l).Outcome
}

// claims has what breaks a level say of no other what is not known of it: predicate writes may have hit other rows, and
// the rows of one statement have no order.
func (q *Question) claims(results []verdict.Result) {
	if q.items == nil {
		return
	}
	for _, r := range results {
		open := []verdict.Level{verdict.RC}
		if q.items.Supposed {
			open = verdict.Levels()
		} else if !q.items.Several() {
			continue
		}
		open = slices.DeleteFunc(open, func(l verdict.Level) bool { return l.Implies(r.Level) })
		for i := range r.Violations {
			v := &r.Violations[i]
			if v.Open = open; slices.Contains(open, v.Level) {
				v.Level = r.Level
			}
		}
	}
}

// always tells whether a level is violated whatever predicate writes hit of which the records don't say it, as far as
// that is few.
func (q *Question) always(l verdict.Level) bool {
	ways := q.items.Ways(min(waysMax, waysWork/max(1, q.items.Size())))
	if ways == nil {
		return false
	}
	for txns := range ways {
		q.Phase("judging " + l.String() + " with other rows hit")
		if q.under(q.Assume, txns, l) != verdict.Violated {
			return false
		}
	}
	return true
}

// only is the result of one level. Then q.Records are those that it is told of.
func (q *Question) only(l verdict.Level) verdict.Result {
	for {
		e, ok := q.feed(&work{levels: []verdict.Level{l}})
		if !ok {
			return q.open(l)
		}
		if results := e.Close(); !q.unexplained(results) {
			if told := q.unordered(results, 0); told != nil {
				q.Records = told
			}
			return results[0]
		}
	}
}

// open is the result of a level for which predicates are not judged.
func (q *Question) open(l verdict.Level) verdict.Result {
	return verdict.Result{Level: l, Outcome: verdict.Unknown, Reason: verdict.NotChecked, Count: q.read.Predicates}
}

// unordered looks again at rc where it is broken and statements read several registers, whose order in the records is
// not one in time. What breaks it with one of each statement is told, of the records that it returns; else it is left
// open.
func (q *Question) unordered(results []verdict.Result, choices int) (told *packed.Records) {
	i := slices.IndexFunc(results, func(r verdict.Result) bool {
		return r.Level == verdict.RC &&
			r.Outcome == verdict.Violated
	})
	if i < 0 || q.items == nil || !q.items.Several() {
		return nil
	}
	q.Phase("judging rc without the order of rows")
	open := q.open(verdict.RC)
	open.Stats = results[i].Stats
	for _, ask := range []struct {
		level   verdict.Level
		records *packed.Records
	}{{verdict.RC, q.pack(true)}, {verdict.G1, q.Records}} {
		// g1 does not depend on the order, and what breaks it breaks rc
		part := q.part()
		part.Records = ask.records
		if e, ok := part.feed(&work{levels: []verdict.Level{ask.level}, choices: choices}); ok &&
			open.Outcome != verdict.Violated {
			if r := e.Close()[0]; r.Outcome == verdict.Violated {
				open, told = r, ask.records
			}
		}
	}
	open.Level = verdict.RC
	results[i] = open
	return told
}

// partAsks is for Part, partItems how many operations there may be for predicates, and itemBytes what one of them
// takes, in an engine and beside it.
const partAsks, partItems, itemBytes = 1000, 1 << 20, 256

// Part judges records that have predicates, and are a part of a history, at several levels: what breaks them is in the
// results, of which the i-th is of the transactions that find(i) finds, with registers in place of predicates. What
// Unasked names was not read, as far as is known. None: the predicates can't be judged. What takes too long is left
// open: after partAsks questions whether to stop, and one for every two records, each of which stands for some half
// of a millisecond; and what takes more than BytesMax.
// count is how many rows statements found, by their registers.
func (q Question) Part() (results []verdict.Result, find func(i int) func(verdict.TxnID) (*record.Transaction, bool),
	count func(id, register string) (rows int, known bool)) {
	q.Named, q.read = true, q.Records.Summary()
	q.read.Missing = 0 // of a session a part is known
	asked, most, stop := 0, partAsks+q.Records.Len()/2, q.Stop
	if q.itemsMax = partItems; q.BytesMax > 0 {
		q.itemsMax = min(partItems, q.BytesMax/itemBytes)
	}
	q.Stop = func() verdict.Reason {
		if asked++; asked > most {
			return verdict.Conflicts
		}
		if stop == nil {
			return verdict.NoReason
		}
		return stop()
	}
	if q.fillIn(); q.items == nil {
		return nil, nil, nil
	}
	q.explainer = newExplainer(&q, nil)
	q.known = map[verdict.Level]report.Result{}
	if err := q.decide(&report.History{}, func(r report.Result, l verdict.Level) { q.known[l] = r }); err != nil {
		panic(fmt.Sprintf("judge: %v; can't happen, because no proof was asked for", err))
	}
	of := make([]int, len(q.Levels)) // where each was found
	for i, l := range q.Levels {
		r := q.inferred(l)
		of[i] = slices.IndexFunc(q.found, func(f found) bool { return f.Level == l })
		switch {
		case of[i] >= 0:
			r = q.found[of[i]].Result
		case r.Outcome == verdict.Violated: // as another is, of which the violations are
			r.Violations = nil
			of[i] = slices.IndexFunc(q.found, func(f found) bool { return l.Implies(f.Level) && f.Outcome == verdict.Violated })
			if of[i] >= 0 {
				r.Violations = q.found[of[i]].Violations
			}
		case r.Outcome == verdict.Unknown:
			r = q.open(l)
		}
		results = append(results, r)
	}
	for i, f := range q.found { // others of other records
		if slices.Contains(q.Levels, f.Level) && !slices.Contains(of, i) {
			results, of = append(results, f.Result), append(of, i)
		}
	}
	return results, func(i int) func(verdict.TxnID) (*record.Transaction, bool) { return q.found[of[i]].find }, q.rowsFound()
}
