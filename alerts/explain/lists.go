package explain

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// What reads of lists show: the order in which their elements were appended.

// values are two values of a key: of two lists what stands around where they differ.
func values(a, b fact) (string, string) {
	if a.op.Value.Kind != record.KindList || b.op.Value.Kind != record.KindList {
		return a.value(), b.value()
	}
	left, _ := list.Elements(a.op.Value)
	right, _ := list.Elements(b.op.Value)
	at := list.Common(left, right)
	return text.List(left, at), text.List(right, at)
}

// listOrder is a write order that a list shows, as it has both writes, or the first without the second; empty if none
// does.
func (t teller) listOrder(e verdict.Edge) string {
	first, second := t.appendsOf(e.From, e.Key), t.appendsOf(e.To, e.Key)
	if len(first) == 0 || len(second) == 0 {
		return ""
	}
	a, b := first[len(first)-1], second[0]
	for id, es := range t.lists(e.Key) {
		at, later := slices.Index(es, a), slices.Index(es, b)
		if at < 0 || later <= at {
			continue
		}
		before := "before"
		if later == at+1 {
			before = "right before"
		}
		return fmt.Sprintf("%s's %s = %s shows that %s appended %s %s %s appended %s", t.txn(id), text.Name(e.Key),
			text.List(es, at, later), t.txn(e.From), text.Element(a), before, t.txn(e.To), text.Element(b))
	}
	for id, es := range t.lists(e.Key) {
		if at := slices.Index(es, a); at >= 0 && !slices.Contains(es, b) {
			return fmt.Sprintf("%s read %s = %s, with the %s that %s appended and without the %s that %s appended, which so "+
				"came later",
				t.txn(id), text.Name(e.Key), text.List(es, at), text.Element(a), t.txn(e.From), text.Element(b), t.txn(e.To))
		}
	}
	return ""
}

// listMissed is an anti-dependency of a list: the reader saw it without what
// the other appended. Empty if it is none.
func (t teller) listMissed(e verdict.Edge, old fact) string {
	missed := t.appendsOf(e.To, e.Key)
	es, ok := list.Elements(old.op.Value)
	if len(missed) == 0 || !old.known || !ok {
		return ""
	}
	return fmt.Sprintf("%s read %s = %s, without the %s that %s appended", t.txn(e.From), text.Name(e.Key),
		text.List(es, len(es)-1), text.Element(missed[0]), t.txn(e.To))
}

func (t teller) incompatibleSentence() string {
	i := t.incompatible()
	key := text.Name(t.v.Key)
	switch {
	case len(t.v.Txns) < 2:
		return fmt.Sprintf("Two reads of the list %s show its elements in orders that contradict each other.", key)
	case !i.known:
		for _, es := range t.listsOf(i.a) {
			if s := turned(es, t.appendsOf(i.b, t.v.Key), t.txn(i.b)); s != "" {
				return fmt.Sprintf("%s read %s = %s.", t.txn(i.a), key, s)
			}
		}
		return fmt.Sprintf("%s read the list %s in an order that contradicts %s.", t.txn(i.a), key, t.txn(i.b))
	}
	return fmt.Sprintf("%s read %s = %s and %s read %s: of two reads of a list one should begin with the other.",
		t.txn(i.a), key, text.List(i.left, i.at), t.txn(i.b), text.List(i.right, i.at))
}

// turned is a list that has what somebody appended in another order, or from the middle
// on: "[2, 1], but A appended 1 before 2". Empty if it has not.
func turned(es, own []record.Value, its string) string {
	for i, first := range own {
		at := slices.Index(es, first)
		for _, second := range own[i+1:] {
			switch later := slices.Index(es, second); {
			case at > later && later >= 0:
				return fmt.Sprintf("%s, but %s appended %s before %s", text.List(es, later, at), its, text.Element(first),
					text.Element(second))
			case at < 0 && later >= 0:
				return fmt.Sprintf("%s, with the %s that %s appended, but without the %s that it appended before",
					text.List(es, later), text.Element(second), its, text.Element(first))
			}
		}
	}
	return ""
}

func (t teller) incompatibleSteps(w *writer) {
	i := t.incompatible()
	if !i.known {
		w.line(0, "%s", t.incompatibleSentence())
		w.line(0, "A list grows at its end only: it has what one transaction appended in the order in which that did.")
		return
	}
	w.line(0, "What was seen:")
	for n, s := range []struct {
		id verdict.TxnID
		es []record.Value
	}{{i.a, i.left}, {i.b, i.right}} {
		by := ""
		if ids, _ := t.appenders(s.es[i.at]); len(ids) > 0 {
			by = ", which " + t.names(ids, "and") + " appended"
		}
		w.line(1, "%d. %s read %s = %s: element %d is %s%s.", n+1, t.txn(s.id), text.Name(t.v.Key), text.List(s.es, i.at),
			i.at+1, text.Element(s.es[i.at]), by)
	}
	w.line(0, "A list grows at its end only, so that whoever read more of it read the same to begin with. These two "+
		"can't both have been the list.")
}

func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// listAnomaly is the sentence of a read anomaly on a list; empty if it is about none.
func (t teller) listAnomaly(read fact) string {
	es, isList := list.Elements(read.op.Value)
	writer := t.v.Txns[min(len(t.v.Txns)-1, 1)]
	own := t.appendsOf(writer, t.v.Key)
	switch {
	case t.v.Kind == verdict.DuplicateElements:
		return t.duplicate(read, es)
	case !read.known || !isList:
		return ""
	case t.v.Kind == verdict.ThinAirRead:
		return t.foreign(read, es)
	case len(own) == 0:
		return ""
	}
	who, key, its := t.txn(t.v.Txns[0]), text.Name(t.v.Key), t.txn(writer)
	at := func(e record.Value) int { return slices.Index(es, e) }
	in := slices.IndexFunc(own, func(e record.Value) bool { return at(e) >= 0 })
	not := slices.IndexFunc(own, func(e record.Value) bool { return at(e) < 0 })
	with := func(what string) string { // one of its elements
		return fmt.Sprintf("%s read %s = %s"+what, who, key, text.List(es, at(own[in])), text.Element(own[in]))
	}
	switch {
	case t.v.Kind == verdict.AbortedRead && in >= 0:
		return with(", with the %s that ") + its + " appended; but that transaction was aborted."
	case t.v.Kind == verdict.IntermediateRead && in >= 0 && not >= 0:
		return fmt.Sprintf("%s read %s = %s from the middle of %s: with the %s that it appended, and without its %s.",
			who, key, text.List(es, at(own[in])), its, text.Element(own[in]), text.Element(own[not]))
	case t.v.Kind == verdict.IntermediateRead && in >= 0: // all of it is there, but not in one piece
		for i := range own[1:] {
			a, b := at(own[i]), at(own[i+1])
			if b <= a+1 {
				continue
			}
			between := text.Element(es[a+1])
			if ids, _ := t.appenders(es[a+1]); len(ids) > 0 {
				between += " of " + t.names(ids, "and")
			}
			return fmt.Sprintf("%s read %s = %s from the middle of %s: with %s between the %s and the %s that it appended.",
				who, key, text.List(es, a, a+1, b), its, between, text.Element(own[i]), text.Element(own[i+1]))
		}
	case t.v.Kind == verdict.FutureRead && in >= 0:
		return with(", with the %s that it appended only after that.")
	case t.v.Kind == verdict.NotMyOwnWrite && len(t.v.Txns) == 1:
		if s := turned(es, t.ownBefore(), "it"); s != "" {
			return fmt.Sprintf("%s read %s = %s itself.", who, key, s)
		}
	case t.v.Kind == verdict.NotMyLastWrite && not >= 0:
		return fmt.Sprintf("%s appended %s to %s and then read %s without it.", who, text.Element(own[not]), key,
			text.List(es, len(es)-1))
	}
	return ""
}

// duplicate is the sentence of a list with an element that is in it too often.
func (t teller) duplicate(read fact, es []record.Value) string {
	who := t.txn(t.v.Txns[0])
	e, times := list.Repeated(es)
	if !read.known || times == 0 {
		return fmt.Sprintf("%s read the list %s with an element more often than it was appended.", who, text.Name(t.v.Key))
	}
	first := slices.Index(es, e)
	second := first + 1 + slices.Index(es[first+1:], e)
	s := fmt.Sprintf("%s read %s = %s, which holds %s %s", who, text.Name(t.v.Key), text.List(es, first, second),
		text.Element(e), often(times))
	if ids, n := t.appenders(e); n > 0 && n < times {
		return s + fmt.Sprintf("; it was appended %s, by %s.", often(n), t.names(ids, "and"))
	}
	return s + ", more often than it was appended."
}

// foreign is the sentence of a list with something that nobody appended; empty if it is no such. Not all appenders need
// be in the evidence.
func (t teller) foreign(read fact, es []record.Value) string {
	foreign, _ := name.Foreign(t.v, t.lookup, read.op.Value)
	who, key := t.txn(t.v.Txns[0]), text.Name(t.v.Key)
	switch {
	case len(foreign) == 0:
		return ""
	case len(foreign) > 1:
		return fmt.Sprintf("%s read %s = %s, in which there is something that nobody ever appended.", who, key,
			text.List(es, len(es)-1))
	}
	return fmt.Sprintf("%s read %s = %s, with %s, which nobody ever appended.", who, key,
		text.List(es, slices.Index(es, foreign[0])), text.Element(foreign[0]))
}
