package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// numbers is how the numbers (seq) of a session go with its clocks, of the transactions that have both: how often the next one by
// numbers is the later one by the clocks, and how often the earlier one. Two that the clocks can't tell apart, as they overlap
// or are no further apart than clocks differ, say neither, and what comes next is compared with the first of them.
type numbers struct {
	start, end int64
	pairs      int // with what says neither
	good, bad  int
}

// contradictMin is how often the numbers of a session have to contradict its clocks to be wrong, as a clock that steps back does
// so once; and in how many sessions, where most have fewer numbers than that.
const contradictMin = 3

// agreeShare is how many sessions have to contradict for each that agrees, so that they are the producer's error together.
const agreeShare = 10

// next takes in the next transaction of the session by its numbers.
func (n *numbers) next(t *record.Transaction, skew int64) {
	switch n.pairs++; {
	case n.pairs == 1:
	case before(n.end, t.Start, skew):
		n.good++
	case before(t.End, n.start, skew):
		n.bad++
	default:
		return
	}
	n.start, n.end = t.Start, t.End
}

// before tells whether an end is before a start, by clocks that differ by at most a skew.
func before(end, start, skew int64) bool {
	return end < start && uint64(start)-uint64(end) > uint64(skew)
}

// misnumbered are the sessions whose numbers are wrong, in order, and how many others contradict their clocks. A session's are
// wrong if they contradict at most places, and more than once or twice. Many short sessions say together what one of them
// can't: where hardly any of a history agrees with its clocks, numbers are right only of those that do. O(records).
func misnumbered(r *packed.Records, skew int64) (wrong []string, doubtful int) {
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
	agree, contradict := 0, 0
	for _, n := range all {
		switch {
		case n.bad > n.good:
			contradict++
		case n.good > 0:
			agree++
		}
	}
	together := contradict >= contradictMin && agreeShare*agree <= contradict
	for session, n := range all {
		switch {
		case n.bad > n.good && (together || n.bad >= contradictMin), together && n.pairs > 1 && n.good == 0:
			wrong = append(wrong, session)
		case n.bad > 0:
			doubtful++
		}
	}
	slices.Sort(wrong)
	return wrong, doubtful
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
	wrong, doubtful := misnumbered(q.Records, q.Assume.MaxSkew)
	if doubtful > 0 {
		q.notes = append(q.notes, fmt.Sprintf("the numbers (seq) of %d sessions contradict the times of their own transactions now and then, as where a clock is set back: "+
			"the numbers were believed", doubtful))
	}
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
