package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// misnumbered are the transactions, by their places, whose numbers contradict their session's clock, and their
// sessions. O(records).
func misnumbered(r *packed.Records) (wrong []int, sessions []string) {
	latest := map[string]int64{} // the greatest start of a session's committed transactions
	for i, t := range r.All() {
		if !t.HasSeq || !t.HasTimes {
			continue
		}
		switch last, ok := latest[t.Session]; {
		case ok && record.RunsBack(t.End, last):
			wrong = append(wrong, i)
			sessions = append(sessions, strings.Clone(t.Session))
		case t.Status == record.Committed && (!ok || t.Start > last):
			latest[strings.Clone(t.Session)] = t.Start
		}
	}
	slices.Sort(sessions)
	return wrong, slices.Compact(sessions)
}

// apart gives some transactions a session of their own each, and takes away their times: either these or their numbers
// are wrong.
func apart(txns []record.Transaction, wrong []int) {
	taken := map[string]bool{}
	for i := range txns {
		taken[txns[i].Session] = true
	}
	for _, i := range wrong {
		t := &txns[i]
		name := fmt.Sprintf("%s apart %d", t.Session, i)
		for taken[name] {
			name += "'"
		}
		taken[name] = true
		t.Session, t.HasSeq, t.Seq = name, false, 0
		t.HasTimes, t.Start, t.End = false, 0, 0
	}
}

// renumber is asked once a level is violated: transactions whose numbers contradict their session's clock have no
// place in it from now on, and what is violated is to be judged again. That is the error of who recorded them, and
// held against no database. A level that is satisfied with the wrong order is satisfied without it.
func (q *Question) renumber(results []verdict.Result) bool {
	violated := func(r verdict.Result) bool { return r.Outcome == verdict.Violated }
	if q.renumbered || q.Assume.Sessions == record.SessionsIgnore || q.Assume.Clock == record.ClockDatabase ||
		q.Assume.Clock == record.ClockIgnore || !slices.ContainsFunc(results, violated) {
		return false
	}
	q.renumbered = true
	wrong, sessions := misnumbered(q.Records)
	if len(wrong) == 0 {
		return false
	}
	if q.items != nil {
		apart(q.items.Txns, wrong)
		q.repack()
	} else {
		txns := q.Records.Transactions()
		apart(txns, wrong)
		q.Records = packed.Of(txns)
	}
	if q.Txns != nil {
		q.Txns = slices.Clone(q.Txns)
		apart(q.Txns, wrong)
	}
	uncertified := ""
	if q.Proved != nil { // who verifies has the numbers
		q.Proved, uncertified = nil, "; no certificate is written of what holds without them, as who verifies one goes by "+
			"the numbers"
	}
	q.notes = append(q.notes, fmt.Sprintf("the numbers (seq) and the times of %d transactions contradict each other, in "+
		"%d sessions, as where they are numbered wrongly "+
		"or a clock was set back: neither was used of these; the first session is %.100q%s", len(wrong), len(sessions),
		sessions[0], uncertified))
	return true
}
