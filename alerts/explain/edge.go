package explain

import (
	"fmt"
	"time"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Edge is an edge of a violation with its reason, as a sentence without full
// stop:
//
//	orders/api-3#42 read acct:1 = 100, which orders/api-1#7 wrote
func Edge(v verdict.Violation, e verdict.Edge, lookup name.Lookup) string {
	t := newTeller(v, name.Name{}, lookup)
	if s, ok := t.premise(e); ok {
		return t.edge(e) + ": " + s
	}
	return t.edge(e)
}

func (t teller) edge(e verdict.Edge) string {
	from, to := t.txn(e.From), t.txn(e.To)
	switch e.Type {
	case verdict.SO:
		return t.sessionEdge(e, from, to)
	case verdict.RT:
		return t.clockEdge(e, from, to)
	case verdict.WR:
		return t.readEdge(e, from, to)
	case verdict.WW:
		return t.writeEdge(e, from, to)
	default:
		return t.antiEdge(e, from, to)
	}
}

func (t teller) readEdge(e verdict.Edge, from, to string) string {
	f := t.readFrom(e.To, e.Key, e.From)
	switch e.Why {
	case verdict.ByCase:
		return fmt.Sprintf("suppose that the %v that %s read was %s's", f, to, from)
	case verdict.ByElimination:
		return t.eliminated(e, from, to)
	}
	return fmt.Sprintf("%s read %s", to, t.saw(e))
}

// saw is what the reader of a read dependency saw: "x = 5, which T1 wrote".
func (t teller) saw(e verdict.Edge) string {
	f := t.readFrom(e.To, e.Key, e.From)
	if s, ok := t.listSaw(f, e.From); ok {
		return s
	}
	return fmt.Sprintf("%v, which %s wrote", f, t.txn(e.From))
}

func (t teller) sessionEdge(e verdict.Edge, from, to string) string {
	if r, ok := t.record(e.From); ok && r.Session != "" {
		return fmt.Sprintf("%s came before %s in session %s", from, to, text.Name(r.Session))
	}
	return fmt.Sprintf("%s came before %s in their session", from, to)
}

func (t teller) clockEdge(e verdict.Edge, from, to string) string {
	a, ok := t.record(e.From)
	b, found := t.record(e.To)
	if !ok || !found || !a.HasTimes || !b.HasTimes {
		return fmt.Sprintf("%s had ended before %s started, by the clocks", from, to)
	}
	if a.End < b.Start {
		return fmt.Sprintf("%s had ended %v before %s started, by the clocks", from, time.Duration(b.Start-a.End), to)
	}
	// By the database's own: what is so of their starts and commits, the most that can be said.
	what := "started before %s committed"
	switch starts, commits := a.Start < b.Start, a.End < b.End; {
	case starts && commits:
		what = "started and committed before %s did"
	case starts:
		what = "started before %s did"
	case commits:
		what = "committed before %s did"
	}
	return fmt.Sprintf("%s "+what+", by the database's clock", from, to)
}

func (t teller) writeEdge(e verdict.Edge, from, to string) string {
	first, second := t.written(e.From, e.Key), t.written(e.To, e.Key)
	switch e.Why {
	case verdict.ByOverwrite:
		return fmt.Sprintf("%s read %v, which %s wrote, and %s", to, t.readFrom(e.To, e.Key, e.From), from, second.did())
	case verdict.ByInitial:
		return t.afterInitial(e, from, to)
	case verdict.ByCase:
		return fmt.Sprintf("suppose that %s %s before %s %s", from, first.did(), to, second.did())
	case verdict.BySession:
		return fmt.Sprintf("%s %s, and later in the session %s %s", from, first.did(), to, second.did())
	case verdict.ByList:
		if s, ok := t.listOrder(e, from, to); ok {
			return s
		}
		return fmt.Sprintf("%s %s before %s %s, as a read of the list shows", from, first.did(), to, second.did())
	case verdict.ByLog:
		return fmt.Sprintf("%s %s before %s %s, as the database's log shows", from, first.did(), to, second.did())
	case verdict.ByClock:
		return fmt.Sprintf("%s %s and had ended, by the clocks, before %s started and %s", from, first.did(), to,
			second.did())
	}
	s := fmt.Sprintf("%s %s before %s %s", from, first.did(), to, second.did())
	if len(e.Because) == 0 {
		return s + ", for the opposite order contradicts other reads"
	}
	return s
}

// afterInitial is the order of two writes of which the first is the initial version's
// successor, or follows that in a run of updates.
func (t teller) afterInitial(e verdict.Edge, from, to string) string {
	if s, ok := t.listOrder(e, from, to); ok {
		return s
	}
	first, second := t.written(e.From, e.Key), t.written(e.To, e.Key)
	read := t.readNotOf(e.From, e.Key, e.To)
	switch {
	case !read.known:
		return fmt.Sprintf("%s %s before %s %s, as the first of those who did", from, first.did(), to, second.did())
	case t.hasRuns():
		if ws := t.writersOf(read.op, e.From); len(ws) == 1 {
			return fmt.Sprintf("%s read %v, which %s wrote on top of the initial version, and %s; %s %s after that, for "+
				"nothing comes between an update and what it read",
				from, read, t.txn(ws[0]), first.did(), to, second.did())
		}
	}
	return fmt.Sprintf("%s read %v, as it was before anybody wrote it, and %s; %s %s after that, for nothing comes "+
		"between an update and what it read",
		from, read, first.did(), to, second.did())
}

func (t teller) antiEdge(e verdict.Edge, from, to string) string {
	old, new := t.readNotOf(e.From, e.Key, e.To), t.written(e.To, e.Key)
	if old.own {
		if s, ok := t.listMissed(e, from, to); ok {
			return s
		}
	}
	switch e.Why {
	case verdict.ByInitial:
		if t.maybeInitial(e) {
			return fmt.Sprintf("suppose that the %v that %s read was the initial one; %s %s", old, from, to, new.did())
		}
		if es, ok := list.Elements(old.op.Value); ok && len(es) > 0 { // of appenders that are not recorded
			if s, ok := t.listMissed(e, from, to); ok {
				return s
			}
		}
		if w, ok := name.Updater(t.v, e, t.lookup); ok && t.hasRuns() {
			return fmt.Sprintf("%s read %v, which %s wrote on top of the initial version; %s %s after that, for nothing comes "+
				"between an update and what it read",
				from, old, t.txn(w), to, new.did())
		}
		return fmt.Sprintf("%s read %v, as it was before anybody wrote it; %s %s", from, old, to, new.did())
	case verdict.ByList:
		if s, ok := t.listMissed(e, from, to); ok {
			return s
		}
	case verdict.ByOverwrite:
		return fmt.Sprintf("%s read %v, the version that %s %s", from, old, to, new.overwrote())
	}
	if w, ok := t.writer(old); ok && !old.own && t.initialElsewhere(e.From, old) {
		if e.Why == verdict.ByCase {
			return fmt.Sprintf("suppose that the %v that %s read was %s's, and that %s %s after that", old, from, t.txn(w), to,
				new.did())
		}
		return fmt.Sprintf("suppose that the %v that %s read was %s's; %s %s after that version", old, from, t.txn(w), to,
			new.did())
	}
	whose := t.whose(old)
	if e.Why == verdict.ByCase {
		return fmt.Sprintf("%s read %v%s; suppose that %s %s after that", from, old, whose, to, new.did())
	}
	return fmt.Sprintf("%s read %v%s; %s %s after that version", from, old, whose, to, new.did())
}
