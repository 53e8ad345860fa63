package explain

import (
	"fmt"
	"iter"
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// What reads of lists show: the order in which their elements were appended.

// appendsOf are the elements that a transaction appends to key.
func (t teller) appendsOf(id verdict.TxnID, key string) []record.Value {
	if r, ok := t.record(id); ok {
		return list.Appended(r.Ops, key)
	}
	return nil
}

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

// shown is a read of a list that shows two writes, and where.
type shown struct {
	reader        verdict.TxnID
	elements      []record.Value
	first, second int // places of the first one's last element and the second one's first
}

// String is "T4's x = [1, 2, 3]".
func (s shown) tell(t teller, key string) string {
	return fmt.Sprintf("%s's %s = %s", t.txn(s.reader), text.Name(key), text.List(s.elements, s.first, s.second))
}

// lists are what was read of a list, and by whom. The transactions that take part are asked first.
func (t teller) lists(key string) iter.Seq2[verdict.TxnID, []record.Value] {
	return func(yield func(verdict.TxnID, []record.Value) bool) {
		for _, id := range slices.Concat(t.v.Txns, t.v.Evidence) {
			r, ok := t.record(id)
			if !ok || r.Status == record.Aborted {
				continue
			}
			for _, op := range r.Ops {
				if op.Kind != record.Read || op.Key != key {
					continue
				}
				if es, ok := list.Elements(op.Value); ok && !yield(id, es) {
					return
				}
			}
		}
	}
}

// shows finds a read that has what a appended to key before what b appended.
func (t teller) shows(a, b verdict.TxnID, key string) (shown, bool) {
	first, second := t.appendsOf(a, key), t.appendsOf(b, key)
	if len(first) == 0 || len(second) == 0 {
		return shown{}, false
	}
	for id, es := range t.lists(key) {
		s := shown{reader: id, elements: es, first: slices.Index(es, first[len(first)-1]), second: slices.Index(es, second[0])}
		if s.first >= 0 && s.second > s.first {
			return s, true
		}
	}
	return shown{}, false
}

// listOrder is a write order that a list shows.
func (t teller) listOrder(e verdict.Edge, from, to string) (string, bool) {
	s, ok := t.shows(e.From, e.To, e.Key)
	if !ok {
		return t.listWithout(e, from, to)
	}
	before := "before"
	if s.second == s.first+1 {
		before = "right before"
	}
	return fmt.Sprintf("%s shows that %s appended %s %s %s appended %s", s.tell(t, e.Key),
		from, text.Element(s.elements[s.first]), before, to, text.Element(s.elements[s.second])), true
}

// listWithout is a write order that a list shows because it has the first write and not
// the second.
func (t teller) listWithout(e verdict.Edge, from, to string) (string, bool) {
	first, second := t.appendsOf(e.From, e.Key), t.appendsOf(e.To, e.Key)
	if len(first) == 0 || len(second) == 0 {
		return "", false
	}
	for id, es := range t.lists(e.Key) {
		if at := slices.Index(es, first[len(first)-1]); at >= 0 && !slices.Contains(es, second[0]) {
			return fmt.Sprintf("%s read %s = %s, with the %s that %s appended and without the %s that %s appended, which so "+
				"came later",
				t.txn(id), text.Name(e.Key), text.List(es, at), text.Element(es[at]), from, text.Element(second[0]), to), true
		}
	}
	return "", false
}

// listMissed is an anti-dependency of a list: the reader saw it without what
// the other appended.
func (t teller) listMissed(e verdict.Edge, from, to string) (string, bool) {
	new := t.appendsOf(e.To, e.Key)
	old := t.readNotOf(e.From, e.Key, e.To)
	if len(new) == 0 || !old.known {
		return "", false
	}
	es, ok := list.Elements(old.op.Value)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%s read %s = %s, without the %s that %s appended", from, text.Name(e.Key),
		text.List(es, len(es)-1), text.Element(new[0]), to), true
}

// listSaw is what a read of a list shows of a writer: "x = [3, 17], with the 17
// that T1 appended".
func (t teller) listSaw(f fact, writer verdict.TxnID) (string, bool) {
	es, _ := list.Elements(f.op.Value)
	if !f.known {
		return "", false
	}
	for _, own := range slices.Backward(t.appendsOf(writer, f.key)) {
		if at := slices.Index(es, own); at >= 0 {
			return fmt.Sprintf("%s = %s, with the %s that %s appended", text.Name(f.key), text.List(es, at), text.Element(own),
				t.txn(writer)), true
		}
	}
	return "", false
}

// incompatible are two reads of a list of which neither is a prefix of the other.
type incompatible struct {
	a, b        verdict.TxnID
	left, right []record.Value
	at          int // where they differ
	known       bool
}

func (t teller) incompatible() incompatible {
	if len(t.v.Txns) < 2 {
		return incompatible{}
	}
	out := incompatible{a: t.v.Txns[0], b: t.v.Txns[1]}
	for _, l := range t.listsOf(out.a) {
		for _, r := range t.listsOf(out.b) {
			if n := list.Common(l, r); n < min(len(l), len(r)) && !out.known {
				out.left, out.right, out.at, out.known = l, r, n, true
			}
		}
	}
	return out
}

// listsOf are the lists that a transaction read of the violation's key, the one
// that the violation is about first.
func (t teller) listsOf(id verdict.TxnID) [][]record.Value {
	r, ok := t.record(id)
	if !ok {
		return nil
	}
	var out [][]record.Value
	for i, op := range r.Ops {
		if es, ok := list.Elements(op.Value); ok && op.Kind == record.Read && op.Key == t.v.Key {
			if id == t.v.Txns[0] && i == t.read {
				out = slices.Insert(out, 0, es)
			} else {
				out = append(out, es)
			}
		}
	}
	return out
}

func (t teller) incompatibleSentence() string {
	i := t.incompatible()
	key := text.Name(t.v.Key)
	switch {
	case len(t.v.Txns) < 2:
		return fmt.Sprintf("Two reads of the list %s show its elements in orders that contradict each other.", key)
	case !i.known:
		for _, es := range t.listsOf(i.a) {
			if s, ok := t.turned(es, t.appendsOf(i.b, t.v.Key), t.txn(i.b)); ok {
				return fmt.Sprintf("%s read %s = %s.", t.txn(i.a), key, s)
			}
		}
		return fmt.Sprintf("%s read the list %s in an order that contradicts %s.", t.txn(i.a), key, t.txn(i.b))
	}
	return fmt.Sprintf("%s read %s = %s and %s read %s: of two reads of a list one should begin with the other.",
		t.txn(i.a), key, text.List(i.left, i.at), t.txn(i.b), text.List(i.right, i.at))
}

// turned is a list that has what somebody appended in another order, or from the middle
// on: "[2, 1], but A appended 1 before 2".
func (t teller) turned(es, own []record.Value, its string) (string, bool) {
	for i, first := range own {
		at := slices.Index(es, first)
		for _, second := range own[i+1:] {
			switch later := slices.Index(es, second); {
			case at > later && later >= 0:
				return fmt.Sprintf("%s, but %s appended %s before %s", text.List(es, later, at), its, text.Element(first),
					text.Element(second)), true
			case at < 0 && later >= 0:
				return fmt.Sprintf("%s, with the %s that %s appended, but without the %s that it appended before",
					text.List(es, later), text.Element(second), its, text.Element(first)), true
			}
		}
	}
	return "", false
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
		w.line(1, "%d. %s read %s = %s: element %d is %s%s.", n+1, t.txn(s.id), text.Name(t.v.Key), text.List(s.es, i.at),
			i.at+1, text.Element(s.es[i.at]), t.appendedBy(s.es[i.at]))
	}
	w.line(0, "A list grows at its end only, so that whoever read more of it read the same to begin with. These two "+
		"can't both have been the list.")
}

// appendedBy says who appended an element to the violation's key, if that is
// known.
func (t teller) appendedBy(e record.Value) string {
	ids, _ := t.appenders(e)
	if len(ids) == 0 {
		return ""
	}
	return ", which " + t.names(ids, "and") + " appended"
}

// appenders are the transactions of the evidence that append an element to the
// violation's key, and how often they do.
func (t teller) appenders(e record.Value) (ids []verdict.TxnID, times int) {
	all := slices.Concat(t.v.Txns, t.v.Evidence)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		n := 0
		for _, own := range t.appendsOf(id, t.v.Key) {
			if own == e {
				n++
			}
		}
		if n > 0 {
			ids = append(ids, id)
			times += n
		}
	}
	return ids, times
}

func (t teller) duplicateSentence(read fact) string {
	who := t.txn(t.v.Txns[0])
	es, _ := list.Elements(read.op.Value)
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

func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// foreignSentence is for a list with an element that nobody appended.
func (t teller) foreignSentence(who string, read fact) (string, bool) {
	if !read.known {
		return "", false
	}
	foreign, ok := name.Foreign(t.v, t.lookup, read.op.Value)
	if !ok || len(foreign) == 0 {
		return "", false
	}
	es, _ := list.Elements(read.op.Value)
	if len(foreign) > 1 { // not all appenders need be in the evidence
		return fmt.Sprintf("%s read %s = %s, in which there is something that nobody ever appended.", who, text.Name(t.v.Key),
			text.List(es, len(es)-1)), true
	}
	return fmt.Sprintf("%s read %s = %s, with %s, which nobody ever appended.", who, text.Name(t.v.Key),
		text.List(es, slices.Index(es, foreign[0])), text.Element(foreign[0])), true
}

// listAnomaly is the sentence of a read anomaly on a list that a transaction
// appended to; false if it is about no list.
func (t teller) listAnomaly(who string, read fact) (string, bool) {
	writer := t.v.Txns[0]
	if len(t.v.Txns) > 1 {
		writer = t.v.Txns[1]
	}
	own := t.appendsOf(writer, t.v.Key)
	es, ok := list.Elements(read.op.Value)
	if !read.known || !ok || len(own) == 0 {
		return "", false
	}
	key, its := text.Name(t.v.Key), t.txn(writer)
	at := func(e record.Value) int { return slices.Index(es, e) }
	in := slices.IndexFunc(own, func(e record.Value) bool { return at(e) >= 0 })
	not := slices.IndexFunc(own, func(e record.Value) bool { return at(e) < 0 })
	switch {
	case t.v.Kind == verdict.AbortedRead && in >= 0:
		return fmt.Sprintf("%s read %s = %s, with the %s that %s appended; but that transaction was aborted.",
			who, key, text.List(es, at(own[in])), text.Element(own[in]), its), true
	case t.v.Kind == verdict.IntermediateRead && in >= 0 && not >= 0:
		return fmt.Sprintf("%s read %s = %s from the middle of %s: with the %s that it appended, and without its %s.",
			who, key, text.List(es, at(own[in])), its, text.Element(own[in]), text.Element(own[not])), true
	case t.v.Kind == verdict.IntermediateRead && in >= 0:
		return t.torn(who, its, es, own)
	case t.v.Kind == verdict.FutureRead && in >= 0:
		return fmt.Sprintf("%s read %s = %s, with the %s that it appended only after that.", who, key,
			text.List(es, at(own[in])), text.Element(own[in])), true
	case t.v.Kind == verdict.NotMyOwnWrite && len(t.v.Txns) == 1:
		if s, ok := t.turned(es, t.ownBefore(), "it"); ok {
			return fmt.Sprintf("%s read %s = %s itself.", who, key, s), true
		}
	case t.v.Kind == verdict.NotMyLastWrite && not >= 0:
		return fmt.Sprintf("%s appended %s to %s and then read %s without it.", who, text.Element(own[not]), key,
			text.List(es, len(es)-1)), true
	}
	return "", false
}

// ownBefore are the elements that the reader of the violation had appended to its key when
// it read.
func (t teller) ownBefore() []record.Value {
	if r, ok := t.record(t.v.Txns[0]); ok {
		return list.Appended(r.Ops[:max(t.read, 0)], t.v.Key)
	}
	return nil
}

// torn is the sentence of a list that has all that a transaction appended, but not in one
// piece.
func (t teller) torn(who, its string, es, own []record.Value) (string, bool) {
	for i := range own[1:] {
		a, b := slices.Index(es, own[i]), slices.Index(es, own[i+1])
		if b <= a+1 {
			continue
		}
		between := es[a+1]
		what := text.Element(between)
		if ids, _ := t.appenders(between); len(ids) > 0 {
			what += " of " + t.names(ids, "and")
		}
		return fmt.Sprintf("%s read %s = %s from the middle of %s: with %s between the %s and the %s that it appended.",
			who, text.Name(t.v.Key), text.List(es, a, a+1, b), its, what, text.Element(own[i]), text.Element(own[i+1])), true
	}
	return "", false
}
