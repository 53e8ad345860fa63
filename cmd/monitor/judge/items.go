package judge

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// Ask makes a question of records as they were read: with registers in place of predicates, as package predicate makes
// them, if there are predicates and that can be done. Else the records stay as they are, which leaves predicates
// unjudged, and a note says why.
func Ask(read *packed.Records, a Assumptions, levels []verdict.Level) Question {
	q := Question{Records: read, Assume: a, Levels: levels, read: read.Summary()}
	if q.read.Predicates > 0 {
		if why := q.items(); why != "" {
			q.notes = append(q.notes, "predicates are not judged: "+why)
		}
	}
	return q
}

// items puts registers in place of predicates, or says why that can't be done.
func (q *Question) items() string {
	switch a := q.Assume.without(q.read.Missing); {
	case a.Coverage != record.CoverageComplete:
		return "somebody unseen may have written rows, as coverage is partial"
	case a.Initial != record.InitialAbsent:
		return fmt.Sprintf("it is not known that there are no rows at first, as initial is %s and not absent", a.Initial)
	}
	items, err := predicate.Items(q.Records.Transactions())
	if err != nil {
		return err.Error()
	}
	if q.supposed = items.Supposed; q.supposed {
		q.notes = append(q.notes, "which rows predicate writes hit, or what else these held, is not known: "+
			"it was tried whether all is explained if the transactions ran in the order of their ends")
	}
	q.Records = packed.Of(items.Transactions)
	if slices.Contains(q.Levels, verdict.RC) {
		if fewer := items.Fewer(); fewer != nil {
			q.fewer = packed.Of(fewer)
		}
	}
	return ""
}

// leave leaves open what breaks a level as predicate writes were supposed to have hit rows: they may have hit others.
func (q *Question) leave(results []verdict.Result) {
	for i, r := range results {
		if q.supposed && r.Outcome == verdict.Violated {
			results[i] = verdict.Result{Level: r.Level, Outcome: verdict.Unknown, Reason: verdict.NotChecked, Count: q.read.Predicates, Stats: r.Stats}
		}
	}
}

// unordered looks again at rc where it is broken and statements read several registers, whose order in the records is not
// one in time. What breaks it without them is told; else it is left open.
func (q *Question) unordered(results []verdict.Result, choices int) {
	i := slices.IndexFunc(results, func(r verdict.Result) bool { return r.Level == verdict.RC && r.Outcome == verdict.Violated })
	if i < 0 || q.fewer == nil {
		return
	}
	q.Phase("judging rc without the order of rows")
	open := verdict.Result{Level: verdict.RC, Outcome: verdict.Unknown, Reason: verdict.NotChecked, Count: q.read.Predicates, Stats: results[i].Stats}
	for _, ask := range []struct {
		level   verdict.Level
		records *packed.Records
	}{{verdict.RC, q.fewer}, {verdict.G1, q.Records}} { // g1 does not depend on the order, and what breaks it breaks rc
		part := *q
		part.Records = ask.records
		if e, ok := part.feed(work{levels: []verdict.Level{ask.level}, choices: choices}); ok && open.Outcome != verdict.Violated {
			if r := e.Close()[0]; r.Outcome == verdict.Violated {
				open = r
			}
		}
	}
	open.Level = verdict.RC
	results[i] = open
}
