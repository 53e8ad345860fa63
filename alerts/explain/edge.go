package explain

import (
	"fmt"
	"os"
	"slices"
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
	t := teller{records: newRecords(v, lookup)}
	if s, ok := t.premise(e); ok {
		return t.edge(e) + ": " + s
	}
	return t.edge(e)
}

// edgeSentences are what edges are told in, by type and reason; those of anyReason where there is none of its own.
// What needs a look at the records is in the functions below.
var edgeSentences = [...]map[verdict.Why]string{
	verdict.SO: {anyReason: "$from came before $to in $session"},
	verdict.WR: {
		verdict.ByCase: "suppose that the $read that $to read was $from's",
		anyReason:      "$to read $saw",
	},
	verdict.WW: {
		verdict.ByOverwrite: "$to read $read, which $from wrote, and $then",
		verdict.ByCase:      "suppose that $from $did before $to $then",
		verdict.BySession:   "$from $did, and later in the session $to $then",
		verdict.ByList:      "$from $did before $to $then, as a read of the list shows",
		verdict.ByLog:       "$from $did before $to $then, as the database's log shows",
		verdict.ByClock:     "$from $did and had ended, by the clocks, before $to started and $then",
		anyReason:           "$from $did before $to $then",
	},
	verdict.RW: {
		verdict.ByOverwrite: "$from read $old, the version that $to $overwrote",
		verdict.ByInitial:   "$from read $old, as it was before anybody wrote it; $to $then",
		verdict.ByCase:      "$from read $old$whose; suppose that $to $then after that",
		anyReason:           "$from read $old$whose; $to $then after that version",
	},
	verdict.RT: nil, // all of it is in the records
}

const anyReason verdict.Why = 255

// say puts words into a sentence. A word with a $ before it is one of an edge: of the first, or, as $b_from, of the
// second, and so on.
func (t teller) say(sentence string, edges ...verdict.Edge) string {
	return os.Expand(sentence, func(word string) string {
		e := edges[0]
		if len(word) > 2 && word[1] == '_' {
			e, word = edges[word[0]-'a'], word[2:]
		}
		return t.word(word, e)
	})
}

func (t teller) word(word string, e verdict.Edge) string {
	switch word {
	case "from":
		return t.txn(e.From)
	case "to":
		return t.txn(e.To)
	case "session":
		if r, ok := t.record(e.From); ok && r.Session != "" {
			return "session " + text.Name(r.Session)
		}
		return "their session"
	case "key":
		return text.Name(e.Key)
	case "wrote": // by the second one
		return t.written(e.To, e.Key).String()
	case "did": // the first one
		return t.written(e.From, e.Key).did()
	case "then": // the second one did
		return t.written(e.To, e.Key).did()
	case "overwrote":
		return t.written(e.To, e.Key).overwrote()
	case "read": // from the first one
		return t.readFrom(e.To, e.Key, e.From).String()
	case "old": // what the first one read, and not from the second
		return t.readNotOf(e.From, e.Key, e.To).String()
	case "whose":
		return t.whose(t.readNotOf(e.From, e.Key, e.To))
	case "saw":
		return t.saw(e)
	case "missed":
		return t.missed(e)
	case "write":
		return t.write(e)
	case "edge":
		return t.edge(e)
	}
	panic("explain: can't happen, because the sentences are constant: there is no word $" + word)
}

func (t teller) edge(e verdict.Edge) string {
	inferred := e.Why == verdict.ByOrder || e.Why == verdict.ByElimination || e.Why == verdict.ByValue
	switch {
	case e.Type == verdict.RT:
		return t.clocks(e)
	case e.Type == verdict.WR && e.Why == verdict.ByElimination:
		return t.eliminated(e)
	case e.Type == verdict.WW && (e.Why == verdict.ByList || e.Why == verdict.ByInitial):
		if s := t.listOrder(e); s != "" {
			return s
		}
		if e.Why == verdict.ByInitial {
			return t.afterInitial(e)
		}
	case e.Type == verdict.WW && inferred && len(e.Because) == 0:
		return t.say(edgeSentences[e.Type][anyReason]+", for the opposite order contradicts other reads", e)
	case e.Type == verdict.RW:
		if s := t.anti(e); s != "" {
			return s
		}
	}
	sentence, ok := edgeSentences[e.Type][e.Why]
	if !ok {
		sentence = edgeSentences[e.Type][anyReason]
	}
	return t.say(sentence, e)
}

// saw is what the reader of a read dependency saw: "x = 5, which T1 wrote", or "x = [3, 17], with the 17 that T1
// appended".
func (t teller) saw(e verdict.Edge) string {
	f := t.readFrom(e.To, e.Key, e.From)
	es, _ := list.Elements(f.op.Value)
	for _, own := range slices.Backward(t.appendsOf(e.From, f.key)) {
		if at := slices.Index(es, own); f.known && at >= 0 {
			return fmt.Sprintf("%s = %s, with the %s that %s appended", text.Name(f.key), text.List(es, at), text.Element(own),
				t.txn(e.From))
		}
	}
	return fmt.Sprintf("%v, which %s wrote", f, t.txn(e.From))
}

// whose says who wrote what a read returned, if that is known.
func (t teller) whose(f fact) string {
	id, ok := t.writer(f)
	switch {
	case !ok || f.own:
		return ""
	case len(t.appendsOf(id, f.key)) > 0:
		return ", to which " + t.txn(id) + " appended last"
	}
	return ", which " + t.txn(id) + " wrote"
}

// clocks tells of an edge of real time. By the database's own clock it is what is so of their starts and commits, the
// most that can be said.
func (t teller) clocks(e verdict.Edge) string {
	a, ok := t.record(e.From)
	b, found := t.record(e.To)
	if !ok || !found || !a.HasTimes || !b.HasTimes {
		return t.say("$from had ended before $to started, by the clocks", e)
	}
	switch starts, commits := a.Start < b.Start, a.End < b.End; {
	case a.End < b.Start:
		return t.say(fmt.Sprintf("$from had ended %v before $to started, by the clocks", time.Duration(b.Start-a.End)), e)
	case starts && commits:
		return t.say("$from started and committed before $to did, by the database's clock", e)
	case starts:
		return t.say("$from started before $to did, by the database's clock", e)
	case commits:
		return t.say("$from committed before $to did, by the database's clock", e)
	}
	return t.say("$from started before $to committed, by the database's clock", e)
}

// afterInitial is the order of two writes of which the first is the initial version's
// successor, or follows that in a run of updates.
func (t teller) afterInitial(e verdict.Edge) string {
	read := t.readNotOf(e.From, e.Key, e.To)
	if !read.known {
		return t.say("$from $did before $to $then, as the first of those who did", e)
	}
	was := ", as it was before anybody wrote it, "
	if ws := t.writersOf(read.op, e.From); t.hasRuns() && len(ws) == 1 {
		was = ", which " + t.txn(ws[0]) + " wrote on top of the initial version, "
	}
	return t.say("$from read $old", e) + was +
		t.say("and $did; $to $then after that, for nothing comes between an update and what it read", e)
}

// anti is what the records show of an anti-dependency beyond its reason; empty if that is nothing.
func (t teller) anti(e verdict.Edge) string {
	old := t.readNotOf(e.From, e.Key, e.To)
	initial := e.Why == verdict.ByInitial
	maybe := initial && t.maybeInitial(e)
	es, _ := list.Elements(old.op.Value) // of appenders that are not recorded
	if old.own || e.Why == verdict.ByList || initial && !maybe && len(es) > 0 {
		if s := t.listMissed(e, old); s != "" {
			return s
		}
	}
	switch {
	case maybe:
		return t.say("suppose that the $old that $from read was the initial one; $to $then", e)
	case initial:
		if w, ok := name.Updater(t.v, e, t.lookup); ok && t.hasRuns() {
			return t.say("$from read $old, which ", e) + t.txn(w) + t.say(" wrote on top of the initial version; $to $then "+
				"after that, for nothing comes between an update and what it read", e)
		}
		return ""
	case e.Why == verdict.ByOverwrite:
		return ""
	}
	w, ok := t.writer(old)
	if !ok || old.own || !t.initialElsewhere(e.From, old) {
		return ""
	}
	supposed := t.say("suppose that the $old that $from read was ", e) + t.txn(w)
	if e.Why == verdict.ByCase {
		return supposed + t.say("'s, and that $to $then after that", e)
	}
	return supposed + t.say("'s; $to $then after that version", e)
}
