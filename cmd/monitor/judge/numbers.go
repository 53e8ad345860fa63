package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// numbers is how the numbers (seq) of a session go with its clocks, of the transactions that have both: of how many
// neighbours the latter had ended, by the clocks, before the former began.
type numbers struct {
	any        bool
	start      int64 // of the last one
	pairs, bad int
}

// contradictMin is how often numbers have to contradict clocks to be wrong: a clock that steps back does so once.
const contradictMin = 3

// wrong tells whether it is the numbers that are wrong: at most places they run against the clocks.
func (n *numbers) wrong() bool { return n.bad >= contradictMin && 2*n.bad > n.pairs }

// next takes in the next transaction of the session by its numbers.
func (n *numbers) next(t *record.Transaction, skew int64) {
	if n.any {
		n.pairs++
		if t.End <= math.MaxInt64-skew && t.End+skew < n.start {
			n.bad++
		}
	}
	n.any, n.start = true, t.Start
}

// misnumbered are the sessions whose numbers are wrong, in order. O(records).
func misnumbered(r *packed.Records, skew int64) []string {
	all := map[string]*numbers{}
	for _, t := range r.All() {
		if !t.HasSeq || !t.HasTimes {
			continue
		}
		n := all[t.Session]
		if n == nil {
			n = &numbers{}
			all[strings.Clone(t.Session)] = n
		}
		n.next(t, skew)
	}
	var out []string
	for session, n := range all {
		if n.wrong() {
			out = append(out, session)
		}
	}
	slices.Sort(out)
	return out
}

// unnumbered are the same transactions, of which those of some sessions have no order in these: each
// is a session of its own.
func unnumbered(txns []record.Transaction, sessions []string) {
	taken := map[string]bool{}
	for i := range txns {
		taken[txns[i].Session] = true
	}
	for i := range txns {
		t := &txns[i]
		if _, wrong := slices.BinarySearch(sessions, t.Session); !wrong {
			continue
		}
		name := fmt.Sprintf("%s apart %d", t.Session, i)
		for taken[name] {
			name += "'"
		}
		taken[name] = true
		t.Session, t.HasSeq, t.Seq = name, false, 0
	}
}

// renumber is asked once a level is violated: where sessions have wrong numbers, they have no order from
// now on, and what is violated is to be judged again. That is the producer's error, and held against no database. A level
// that is satisfied with the wrong order is satisfied without it.
func (q *Question) renumber(results []verdict.Result) bool {
	violated := func(r verdict.Result) bool { return r.Outcome == verdict.Violated }
	if q.renumbered || q.Assume.Sessions == record.SessionsIgnore || !slices.ContainsFunc(results, violated) {
		return false
	}
	q.renumbered = true
	wrong := misnumbered(q.Records, q.Assume.MaxSkew)
	if len(wrong) == 0 {
		return false
	}
	if q.items != nil {
		unnumbered(q.items.Txns, wrong)
		q.repack()
	} else {
		txns := q.Records.Transactions()
		unnumbered(txns, wrong)
		q.Records = packed.Of(txns)
	}
	q.Txns = slices.Clone(q.Txns)
	unnumbered(q.Txns, wrong)
	uncertified := ""
	if q.Proved != nil { // who verifies has the numbers
		q.Proved, uncertified = nil, "; no certificate is written of what holds without it, as who verifies one goes by the numbers"
	}
	q.notes = append(q.notes, fmt.Sprintf("the numbers (seq) of %d sessions contradict the times of their own transactions, which is an error of what records them: "+
		"the order of these sessions was not used; the first is %.100q%s", len(wrong), wrong[0], uncertified))
	return true
}
