package judge

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// Question is a history and what is asked of it.
type Question struct {
	DB string
	// Records are the transactions, each session's in session order. Txns are the
	// same, which only Replay needs; Records are made of them if they are nil.
	Records *packed.Records
	Txns    []record.Transaction
	Events  []record.Event  // that happened around it; they change no verdict
	Levels  []verdict.Level // as Levels or AllLevels gave them
	// All: every level is asked, to learn which hold; the session guarantees are
	// reported too, and levels that do not apply leave nothing undecided.
	All     bool
	Assume  record.Assumptions
	Decoded time.Duration // spent on decoding, for the report

	AnomaliesMax int // reported with evidence per level; 0: all
	// Named: anomalies are only to be named, as they were found. Nobody asks for their evidence.
	Named     bool
	Conflicts int // the solver's budget; 0: the default
	// Replay checks the proof of every satisfied verdict; one that fails is an
	// error of Check.
	Replay bool
	// Proved gets every satisfied verdict with the order that proves it; may be
	// nil. What it answers is an error of Check.
	Proved func(verdict.Result) error
	// Stop is asked often while it works; another answer than NoReason ends the
	// work, and what is undecided then is unknown for that reason. It must be
	// cheap, and go on answering the same. May be nil.
	Stop func() verdict.Reason
	// Until is when Stop will answer for lack of time; zero: never. What is left of it is shared
	// among the levels that are not decided.
	Until time.Time
	// BytesMax is what an engine may hold of what grows with more than the transactions; 0: no bound. See Part.
	BytesMax int
	// Unasked is what is left out of what was read where there are predicates. See Part.
	Unasked predicate.Unasked
	// Phase is told what is being done; may be nil.
	Phase func(string)

	read      packed.Summary     // of the records as they were read
	near      map[int]bool       // the transactions of which it is asked what they found; nil: of all
	left      map[int]bool       // but of these, as that has broken a level
	items     *predicate.History // what of predicates is asked for in Records; nil: they are not judged, or there are none
	isWhole   bool               // that is all of them
	itemsMax  int                // how many operations there may be for predicates; 0: as package predicate has it
	decided   []verdict.Result   // what holds, with its proof, and what is violated
	explainer *explainer
	notes     []string // on every result
	// renumbered: it was looked whether the numbers of sessions are wrong.
	renumbered bool
	share      time.Time   // when what is done now has had its share of the time
	pause      func() bool // waits until it is its turn again; false: it never is. nil: there is but one turn
	found      []found
	known      map[verdict.Level]report.Result
}

// found is a violated level, and the report on it before what breaks it is explained.
type found struct {
	verdict.Result
	report report.Result
	find   name.Lookup // the records in which it was found
}

// stopped is what Stop answers, or that what is done now has had all its shares of the time.
func (q *Question) stopped() verdict.Reason {
	for {
		why := q.Stop()
		switch {
		case why != verdict.NoReason || q.share.IsZero() || time.Now().Before(q.share):
			return why
		case q.pause == nil || !q.pause():
			return verdict.Timeout
		}
	}
}

// part is a copy, to be asked of other records or under other assumptions, that has its time from q.
func (q *Question) part() Question {
	p := *q
	p.Stop, p.share = q.stopped, time.Time{}
	return p
}

// divide gives what is done next the n-th part of what is left of the time.
func (q *Question) divide(n int) {
	q.share = time.Time{}
	if !q.Until.IsZero() {
		q.share = time.Now().Add(time.Until(q.Until) / time.Duration(max(n, 1)))
	}
}

// stopEvery is how many transactions and operations are taken between two looks at Stop.
const stopEvery = 1 << 10

// halts tells whether to stop before t is taken, of which left counts until Stop is looked at; first at once.
func (q *Question) halts(t *record.Transaction, left *int) bool {
	if *left -= 1 + len(t.Ops); *left >= 0 {
		return false
	}
	*left = stopEvery
	return q.stopped() != verdict.NoReason
}

// Check judges a history at each level and fills in h, which has its names
// already. An error means that a proof did not hold, which is a bug in the monitor,
// or is one of Proved.
//
// The levels that are defined by axioms on the commit order share an engine, as what
// they need is the same: who read from whom. So do si and strong-si, and ser and sser. Each other level has its own:
// they share little, and so their times and their memory are their own.
func Check(q Question, h *report.History) error {
	began := time.Now()
	q.fillIn()
	count(q.read, h)
	h.All = q.All
	missing := q.Records.Summary().Missing
	assume := without(missing, q.Assume)
	if missing > 0 && !(q.Assume.Coverage == record.CoveragePartial && q.Assume.Lossy) {
		q.notes = append(q.notes, fmt.Sprintf("coverage was partial: by their sessions' seq, transactions are missing, "+
			"%d at least", missing))
	}
	q.Assume = assume
	q.explainer = newExplainer(&q, lookup(q.Records))
	q.known = map[verdict.Level]report.Result{}
	tell := func(r report.Result, l verdict.Level) {
		r.Notes = append(slices.Clone(r.Notes), q.notes...)
		q.known[l] = r
	}
	if err := q.decide(h, tell); err != nil {
		return err
	}
	for i, v := range q.found {
		again := slices.ContainsFunc(q.found[:i], func(f found) bool { return f.Level == v.Level }) // of other records
		if q.Named || again && q.Stop() != verdict.NoReason {
			continue
		}
		q.Phase("explaining what breaks " + v.Level.String())
		q.divide(len(q.found) - i)
		q.explainer.find = v.find
		explaining := time.Now()
		r := q.explainer.result(v.Result)
		took := time.Since(explaining).Seconds()
		r.Seconds = v.report.Seconds + took
		r.Stats.PhaseSeconds, r.Stats.PeakBytes = v.report.Stats.PhaseSeconds, limit.Peak()
		r.Stats.PhaseSeconds.Explain = took
		if again {
			r.Anomalies = append(slices.Clone(q.known[v.Level].Anomalies), r.Anomalies...)
		}
		tell(r, v.Level)
	}
	h.Took = q.Decoded + time.Since(began)
	h.Results = make([]report.Result, 0, len(q.Levels))
	for _, l := range q.Levels { // in the order asked
		if r, ok := q.known[l]; ok {
			h.Results = append(h.Results, r)
		}
	}
	if q.All && q.known[verdict.CC].Verdict == verdict.Satisfied.String() {
		h.Guarantees = q.explainer.guarantees(implied())
	}
	h.Conclude(q.AnomaliesMax)
	return nil
}

// quickProposals is how many proposals of who wrote what was read are tried at weak levels before other levels are
// asked; auxConflicts what asking one may cost that nobody asked for.
const quickProposals, auxConflicts = 16, 2000

// work is for one engine.
type work struct {
	levels  []verdict.Level
	choices int  // how long it may search for who wrote what was read, in transactions; 0: for long
	aux     bool // nobody asked for it: only of use where it holds

	goOn func() (struct{}, bool) // for a share of the time; false once it is done. nil: it has not begun
	end  func()                  // has it end with what is decided by now
	idle time.Duration           // between its shares
}

// begin makes a work that is done in shares of the time.
func (q *Question) begin(w *work, do func()) {
	w.goOn, w.end = iter.Pull(func(yield func(struct{}) bool) {
		var pause func() bool
		pause = func() bool {
			began := time.Now()
			more := yield(struct{}{})
			w.idle += time.Since(began)
			q.pause = pause
			return more
		}
		q.pause = pause
		do()
	})
}

// decide judges all levels, but for those that a stronger one has answered. Each in turn has half of the time that is
// left, and goes on where it was when all have had their turn, until an eighth of the time is left, to explain what is
// broken.
func (q *Question) decide(h *report.History, tell func(report.Result, verdict.Level)) (err error) {
	kept := time.Until(q.Until) / 8
	q.orders(tell)
	plan := q.plan()
	for len(plan) > 0 {
		plan = slices.DeleteFunc(plan, func(w *work) bool {
			begins := w.goOn == nil
			if begins {
				w.levels = slices.DeleteFunc(slices.Clone(w.levels), func(l verdict.Level) bool { return !q.isOpen(l) })
				q.begin(w, func() { err = cmp.Or(err, q.round(w, h, tell)) })
			}
			over := err != nil || !begins && time.Until(q.Until) < kept
			if over || !slices.ContainsFunc(w.levels, q.isOpen) || w.aux && !slices.ContainsFunc(q.Levels, q.isOpen) {
				q.share = time.Now()
				w.end()
				return true
			}
			q.divide(2)
			_, more := w.goOn()
			return !more
		})
	}
	q.pause = nil
	if err != nil {
		return err
	}
	for _, l := range q.Levels {
		v := q.inferred(l)
		if v.Outcome != verdict.Satisfied || q.known[l].Verdict == verdict.Satisfied.String() {
			continue
		}
		tell(q.explainer.first(v), l)
		if err := q.prove(v); err != nil {
			return err
		}
	}
	return nil
}

// plan is what is to be decided, in that order: the weak levels, with a short search for who wrote what was read; the
// levels that have an order of versions, which decides most of that; and with a long search, for what is open still,
// the weak ones again. si and strong-si have a search in common wherever times decide nothing between them, and so
// have ser and sser.
func (q *Question) plan() []*work {
	var plan []*work
	share := func(l verdict.Level, with ...verdict.Level) {
		for i := range plan {
			if slices.Contains(with, plan[i].levels[0]) {
				plan[i].levels = append(plan[i].levels, l)
				return
			}
		}
		plan = append(plan, &work{levels: []verdict.Level{l}})
	}
	var weak, last []verdict.Level
	var lin []*work
	ordered := false
	for _, l := range q.Levels {
		ordered = ordered || l.Implies(verdict.PC)
		switch {
		case beyond(l, q.Assume.Clock):
			plan = append(plan, &work{levels: []verdict.Level{l}})
		case verdict.CC.Implies(l):
			weak = append(weak, l)
		case l == verdict.LIN && q.items != nil:
			lin = append(lin, &work{levels: []verdict.Level{l}})
		case l == verdict.PC && q.All: // the hardest question of all, which the others may answer
			last = append(last, l)
		case l == verdict.SI || l == verdict.StrongSI:
			share(l, verdict.SI, verdict.StrongSI)
		case l == verdict.SER || l == verdict.SSER:
			share(l, verdict.SER, verdict.SSER)
		default:
			share(l)
		}
	}
	if len(last) > 0 {
		plan = append(plan, &work{levels: last})
	}
	if len(weak) > 0 {
		if q.items == nil { // else it takes all that predicates say
			plan = slices.Insert(plan, 0, &work{levels: weak, choices: quickProposals * q.Records.Len()})
		}
		if !ordered && q.items == nil { // else an order was looked for
			plan = append(plan, &work{levels: []verdict.Level{verdict.SI}, choices: -1, aux: true})
		}
		plan = append(plan, &work{levels: weak})
	}
	return append(plan, lin...)
}

func (q *Question) fillIn() {
	if q.Phase == nil {
		q.Phase = func(string) {}
	}
	if q.Stop == nil {
		q.Stop = func() verdict.Reason { return verdict.NoReason }
	}
	if q.Records == nil {
		q.Records = packed.Of(q.Txns)
	}
	if q.read == (packed.Summary{}) {
		q.read = q.Records.Summary()
	}
	if q.read.Predicates > 0 {
		q.Phase("reading predicates")
		q.readItems()
	}
}

// Unread completes the report on a history that was not read to its end: nothing is known of any level.
func Unread(h *report.History, levels []verdict.Level, why verdict.Reason) {
	for _, l := range levels {
		r := undecided(l, why, h.Transactions)
		r.Notes = []string{"the history was not read to its end"}
		h.Results = append(h.Results, r)
	}
	h.Conclude(0)
}

// undecided is the report on a level of which nothing is known.
func undecided(l verdict.Level, why verdict.Reason, transactions int) report.Result {
	return report.Result{Level: l.String(), Verdict: verdict.Unknown.String(), Anomalies: []report.Anomaly{},
		Unknown: &report.Unknown{Reason: why.String(), Count: transactions}}
}

// feed gives all records to an engine; false if it was stopped.
func (q *Question) feed(w *work) (*incremental.Engine, bool) {
	o := incremental.Options{Levels: w.levels, Assumptions: q.Assume, MaxViolations: q.AnomaliesMax,
		Conflicts: q.Conflicts}
	if w.aux {
		o.Bare, o.MaxViolations, o.Conflicts = true, 1, auxConflicts
	}
	o.Proof = q.Replay || q.Proved != nil || q.items != nil
	o.Guarantees = q.All && (q.items == nil || !q.items.Supposed)
	o.Stop, o.ChoiceWork, o.BytesMax = q.stopped, w.choices, q.BytesMax
	e := incremental.New(o)
	if q.stopped() != verdict.NoReason { // there may be no records, as it was so already when they were made
		return nil, false
	}
	left, known := 0, make([]version.Key, q.Records.Names())
	for n := range known {
		known[n] = incremental.NoKey
	}
	var keys []version.Key // of a transaction: a name is looked up once
	for t, numbers := range q.Records.Numbered() {
		if q.halts(t, &left) {
			return nil, false // an engine that has not seen all writers must not be asked
		}
		keys = keys[:0]
		for i, n := range numbers {
			if known[n] == incremental.NoKey {
				e.Number(known[n:n+1], func(int) string { return t.Ops[i].Key })
			}
			keys = append(keys, known[n])
		}
		e.Step(t, 0, keys...)
	}
	return e, true
}

// round does one work and tells each result: of a level that is violated with one anomaly as it was found. What
// breaks it is explained when all levels are judged. One that it has no time to begin with is as it was known.
func (q *Question) round(w *work, h *report.History, tell func(report.Result, verdict.Level)) error {
	if l := w.levels[0]; beyond(l, q.Assume.Clock) {
		tell(report.Result{Level: l.String(), Verdict: verdict.NotApplicable.String(), Anomalies: []report.Anomaly{},
			Notes: []string{"it holds real time, which the clock setting ignore takes away"}}, l)
		return nil
	}
	phases := report.Phases{Decode: q.Decoded.Seconds()}
	began := time.Now()
	if err := q.whole(w.levels); err != nil {
		q.unjudged(err, w.levels...)
		for _, l := range w.levels {
			tell(resultOf(q.open(l)), l)
		}
		return nil
	}
	q.Phase("judging " + names(w.levels))
	records := q.Records // others may ask for more of them, or find them to be numbered wrongly, before it is done
	e, ok := q.feed(w)
	if !ok {
		for _, l := range w.levels {
			if _, judged := q.known[l]; !judged && q.isOpen(l) {
				r := undecided(l, q.stopped(), q.Records.Len())
				r.Seconds = (time.Since(began) - w.idle).Seconds()
				tell(r, l)
			}
		}
		return nil
	}
	phases.Construct = (time.Since(began) - w.idle).Seconds()
	results := e.Close()
	if records != q.Records || q.renumber(results) || q.unexplained(results) {
		return q.round(w, h, tell)
	}
	find := lookup(q.plainer(w, results))
	if unique := q.Assume.UnseenUnique; q.Assume.SomeUnseen() && (unique == nil || !*unique) {
		q.suppose(results, w.choices)
	}
	q.leave(results)
	ofRC := q.unordered(results, w.choices)
	q.claims(results)
	doubtful := q.Assume.SomeUnseen() && !e.State().UnseenUnique
	if doubtful {
		q.Assume.UnseenUnique = new(bool) // it is false
	}
	judged := (time.Since(began) - w.idle).Seconds()
	phases.Solve = judged - phases.Construct
	is := e.State()
	h.Mini, q.explainer.single = is.Mini && q.items == nil, is.SingleObjects

	peak := limit.Peak()
	// others have answered since it began
	results = slices.DeleteFunc(results, func(v verdict.Result) bool { return !q.isOpen(v.Level) })
	for _, v := range results {
		if q.explainer.find = find; v.Level == verdict.RC && ofRC != nil {
			q.explainer.find = lookup(ofRC)
		}
		r := q.explainer.first(v)
		if doubtful && v.Outcome == verdict.Unknown {
			r.Notes = append(r.Notes, "values repeat, so that somebody unseen may have written what was read "+
				"(--unique-values=true says that nobody did)")
		}
		r.Seconds = q.known[v.Level].Seconds + judged
		r.Stats.PhaseSeconds = phases
		r.Stats.PeakBytes = peak
		tell(r, v.Level)
		if w.aux {
			if v.Outcome == verdict.Satisfied {
				q.decided = append(q.decided, v)
			}
			continue
		}
		if v.Outcome == verdict.Violated {
			q.decided = append(q.decided, v)
			q.found = append(q.found, found{v, r, q.explainer.find})
		}
		if err := q.prove(v); err != nil {
			return err
		}
	}
	for _, v := range results {
		if v.Guarantees != nil {
			q.explainer.find = find
			h.Guarantees = q.explainer.guarantees(v.Guarantees)
		}
	}
	return nil
}

// suppose completes results that leave open who was read, as values repeat and some of their writers are
// unseen: what the recorded ones explain without the others is satisfied. That they don't explain it shows
// nothing.
func (q *Question) suppose(results []verdict.Result, choices int) {
	var open []verdict.Level
	for _, r := range results {
		if r.Outcome == verdict.Unknown && r.Reason == verdict.NotChecked {
			open = append(open, r.Level)
		}
	}
	if len(open) == 0 {
		return
	}
	q.Phase("judging " + names(open) + " by the recorded writers")
	supposed := q.part()
	supposed.Assume.UnseenUnique = new(true)
	e, ok := supposed.feed(&work{levels: open, choices: choices})
	if !ok {
		return
	}
	for _, v := range e.Close() {
		if i := slices.IndexFunc(results, func(r verdict.Result) bool { return r.Level == v.Level }); v.Outcome == verdict.Satisfied {
			results[i] = v
		}
	}
}

// implied are the session guarantees of a causally consistent history: all hold.
func implied() (out []verdict.GuaranteeResult) {
	for _, g := range verdict.Guarantees() {
		out = append(out, verdict.GuaranteeResult{Guarantee: g, Outcome: verdict.Satisfied})
	}
	return out
}

func names(levels []verdict.Level) string { return strings.Join(verdict.Names(levels), ", ") }

// isOpen tells whether a level is to be judged. What a weaker one's anomaly breaks is judged once, for its own ones.
func (q *Question) isOpen(l verdict.Level) bool {
	r, judged := q.known[l]
	v := q.inferred(l)
	return v.Outcome == verdict.Unknown && (!judged || r.Unknown != nil) || v.Outcome == verdict.Violated && !judged
}

// inferred is what follows for a level from what is decided, which may be nothing.
func (q *Question) inferred(l verdict.Level) verdict.Result {
	open := []verdict.Result{{Level: l, Outcome: verdict.Unknown}}
	verdict.Infer(open, q.decided)
	return open[0]
}

// prove does what was asked with the proof of a satisfied verdict.
func (q *Question) prove(v verdict.Result) error {
	if v.Outcome != verdict.Satisfied {
		return nil
	}
	if q.Replay {
		q.Phase("replaying the proof of " + v.Level.String())
		if err := Replay(v, q.Assume, q.Txns); err != nil {
			return fmt.Errorf("level %s was found satisfied, but its proof does not hold: %w", v.Level, err)
		}
	}
	q.decided = append(q.decided, v)
	if q.Proved == nil {
		return nil
	}
	return q.Proved(v)
}

// count fills in the size of the history.
func count(s packed.Summary, h *report.History) {
	h.Transactions, h.Operations, h.Sessions, h.Keys = s.Records, s.Operations, s.Sessions, s.Keys
}

// recent is how many of the records that were looked up are kept unpacked: what
// explains an anomaly looks at the same few again and again.
const recent = 1 << 8

func lookup(records *packed.Records) name.Lookup {
	kept := map[verdict.TxnID]*record.Transaction{}
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if int64(id) >= int64(records.Len()) {
			return nil, false
		}
		t, ok := kept[id]
		if !ok {
			if len(kept) >= recent {
				clear(kept)
			}
			t = new(records.At(int(id)))
			kept[id] = t
		}
		return t, true
	}
}
