package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// sentence says what happened, without the levels.
func (t teller) sentence() string {
	switch t.v.Kind {
	case verdict.Cycle:
		return t.cycleSentence()
	case verdict.Unsatisfiable:
		return t.casesSentence()
	case verdict.Divergence:
		if a, b, ok := name.Overwriters(t.v, t.lookup); ok {
			return t.bothOverwrote(a, b, t.v.Key)
		}
	case verdict.IncompatibleOrder:
		return t.incompatibleSentence()
	}
	return t.readSentence()
}

// bothOverwrote is a lost update.
func (t teller) bothOverwrote(a, b verdict.TxnID, key string) string {
	read := t.readNotOf(a, key, b)
	first, second := t.written(a, key), t.written(b, key)
	with := ""
	if first.known && second.known && first.op.Kind == record.Write && second.op.Kind == record.Write {
		with = fmt.Sprintf(", with %s and %s, neither seeing the other", first.value(), second.value())
	}
	if other := t.readNotOf(b, key, a); read.known && other.known && other.op.Value != read.op.Value {
		return fmt.Sprintf("%s read %v and %s read %v, and both appended to it, neither seeing the other: one of the two "+
			"updates is lost.", t.txn(a), read, t.txn(b), other)
	}
	if second.op.Kind == record.Append {
		return fmt.Sprintf("%s and %s both read %v and both appended to it, neither seeing the other: one of the two "+
			"updates is lost.", t.txn(a), t.txn(b), read)
	}
	if row, where, is := predicate.Register(key); is && read.known && !read.op.Value.IsNull() {
		return fmt.Sprintf("%s and %s both found %s where %s and both changed it, neither seeing the other: one of the two "+
			"updates is lost.", t.txn(a), t.txn(b), text.Name(row), text.Name(where))
	}
	return fmt.Sprintf("%s and %s both read %v and both overwrote it%s: one of the two updates is lost.", t.txn(a),
		t.txn(b), read, with)
}

// readSentence is for what one read shows.
func (t teller) readSentence() string {
	if len(t.v.Txns) == 0 {
		return "A read returned what it can't have."
	}
	reader := t.v.Txns[0]
	who, read := t.txn(reader), fact{key: t.v.Key}
	r, ok := t.record(reader)
	if ok && t.read >= 0 {
		read.op, read.known = r.Ops[t.read], true
	}
	writer := ""
	if len(t.v.Txns) > 1 {
		writer = t.txn(t.v.Txns[1])
	}
	if s, ok := t.listAnomaly(who, read); ok {
		return s
	}
	switch t.v.Kind {
	case verdict.DuplicateElements:
		return t.duplicateSentence(read)
	case verdict.ThinAirRead:
		if s, ok := t.foreignSentence(who, read); ok {
			return s
		}
		if id, other := t.initialReader(read); other.known {
			return fmt.Sprintf("%s read %v, which nobody wrote; nor can it be the initial value, as %s read %v.", who, read,
				t.txn(id), other)
		}
		return fmt.Sprintf("%s read %v, a value that nobody ever wrote.", who, read)
	case verdict.AbortedRead:
		return fmt.Sprintf("%s read %v, which %s wrote; but that transaction was aborted.", who, read, orSomebody(writer))
	case verdict.FutureRead:
		return fmt.Sprintf("%s read %v before it wrote that value itself.", who, read)
	case verdict.NotMyLastWrite:
		return fmt.Sprintf("%s read %v, which it had already overwritten itself with %s.", who, read,
			t.lastOwn(r, ok).value())
	case verdict.NotMyOwnWrite:
		other := ""
		if writer != "" {
			other = ", which " + writer + " wrote"
		}
		return fmt.Sprintf("%s %s and then read %v%s.", who, t.lastOwn(r, ok).did(), read, other)
	case verdict.IntermediateRead:
		last := fact{key: t.v.Key}
		if len(t.v.Txns) > 1 {
			last = t.written(t.v.Txns[1], t.v.Key)
		}
		return fmt.Sprintf("%s read %v from the middle of %s, which itself overwrote that with %s.", who, read,
			orSomebody(writer), last.value())
	case verdict.NonRepeatableRead:
		before := t.readBefore(r, ok)
		first, then := values(before, read)
		return fmt.Sprintf("%s read %s twice and got two values: first %s, then %s.", who, text.Name(t.v.Key), first, then)
	}
	return fmt.Sprintf("%s read %v, which it can't have.", who, read)
}

// initialReader is another transaction of the evidence that read the key, and
// what it read.
func (t teller) initialReader(read fact) (verdict.TxnID, fact) {
	for _, id := range t.v.Evidence {
		if id == t.v.Txns[0] {
			continue
		}
		if f := t.readNotOf(id, read.key, verdict.NoTxn); f.known && f.op.Value != read.op.Value {
			return id, f
		}
	}
	return 0, fact{}
}

func orSomebody(writer string) string {
	if writer == "" {
		return "another transaction"
	}
	return writer
}

// lastOwn is what the reader itself had last written to the key when it read.
func (t teller) lastOwn(r *record.Transaction, ok bool) fact {
	return t.lastBefore(r, ok, func(op record.Op) bool { return op.Kind.Writes() })
}

// readBefore is what the reader had last read of the key before.
func (t teller) readBefore(r *record.Transaction, ok bool) fact {
	return t.lastBefore(r, ok, func(op record.Op) bool { return op.Kind == record.Read })
}

func (t teller) lastBefore(r *record.Transaction, ok bool, is func(record.Op) bool) fact {
	f := fact{key: t.v.Key}
	for i := 0; ok && i < t.read; i++ {
		if op := r.Ops[i]; op.Key == t.v.Key && is(op) {
			f.op, f.known = op, true
		}
	}
	return f
}

// cycleSentence has a sentence of its own for each common shape.
func (t teller) cycleSentence() string {
	c := t.v.Cycle
	if s, ok := t.contradiction(c); ok {
		return s
	}
	if len(c) == 2 {
		seen, missed := c[0], c[1]
		if seen.Type == verdict.RW {
			seen, missed = missed, seen
		}
		if s, ok := t.pair(seen, missed); ok {
			return s
		}
	}
	switch t.n.Shape() {
	case "causality-violation":
		if i := firstMissed(c); i >= 0 {
			return fmt.Sprintf("%s %s, although it depends on %s by way of %s.", t.txn(c[i].From), t.missed(c[i]),
				t.txn(c[i].To), t.between(c, i))
		}
	case "session-guarantee-violation":
		if i := firstMissed(c); i >= 0 {
			return fmt.Sprintf("%s %s, although %s came before it in the same session.", t.txn(c[i].From), t.missed(c[i]),
				t.txn(c[i].To))
		}
	case "read-only-anomaly":
		if s, ok := t.readOnly(c); ok {
			return s
		}
	case "stale-read", "read-skew", "prefix-violation", "snapshot-cycle", "real-time-violation":
		if i := firstMissed(c); i >= 0 && firstMissed(c[i+1:]) < 0 {
			return fmt.Sprintf("%s %s, although %s comes before it.", t.txn(c[i].From), t.missed(c[i]), t.txn(c[i].To))
		}
	case "long-fork":
		if s, ok := t.fork(c); ok {
			return s
		}
	}
	return t.around(c)
}

// pair is the sentence of a cycle of two transactions; seen is its edge that
// is no anti-dependency, if it has one.
func (t teller) pair(seen, missed verdict.Edge) (string, bool) {
	reader, writer := t.txn(missed.From), t.txn(missed.To)
	switch t.n.Shape() {
	case "lost-update":
		if seen.Key == missed.Key {
			a, b := missed.To, missed.From
			if ra, rb := t.readNotOf(a, seen.Key, b),
				t.readNotOf(b, seen.Key, a); ra.known && rb.known && ra.op.Value == rb.op.Value {
				return t.bothOverwrote(a, b, seen.Key), true
			}
			return fmt.Sprintf("%s %s and %s %s without having seen it: one of the two updates is lost.",
				writer, t.written(a, seen.Key).did(), reader, t.written(b, seen.Key).did()), true
		}
		return fmt.Sprintf("%s and %s wrote the same key without either seeing the other: one of the two updates is lost.",
			reader, writer), true
	case "circular-information-flow":
		if s, ok := t.circular(seen, missed); ok {
			return s, true
		}
	case "fractured-read":
		return fmt.Sprintf("%s saw only a part of %s: it read %s, but %s.",
			reader, writer, t.saw(seen), t.missed(missed)), true
	case "non-repeatable-reads":
		old, new := t.readNotOf(missed.From, missed.Key, missed.To), t.readFrom(missed.From, missed.Key, missed.To)
		was, is := values(old, new)
		if t.lastPlace(missed.From, new) < t.lastPlace(missed.From, old) {
			return fmt.Sprintf("%s read %s twice and got two values: first %s, which %s wrote, then %s.", reader,
				text.Name(missed.Key), is, writer, was), true
		}
		return fmt.Sprintf("%s read %s twice and got two values: first %s, then %s, which %s wrote.", reader,
			text.Name(missed.Key), was, is, writer), true
	case "non-monotonic-read":
		return fmt.Sprintf("%s went back in time: it read %s, and after that %s.",
			reader, t.saw(seen), t.missed(missed)), true
	case "write-skew":
		what := "read what the other then overwrote"
		if t.n.Phantom {
			what = "looked for rows by a condition, which the other then changed for one of them"
		}
		return fmt.Sprintf("%s and %s each %s: %s %s; %s %s.",
			reader, writer, what, reader, t.missed(missed), writer, t.missed(seen)), true
	case "real-time-violation":
		if missed.Type == verdict.RT {
			seen, missed = missed, seen
		}
		if seen.Type == verdict.RT && missed.Type != verdict.RT {
			return fmt.Sprintf("%s, although %s.", t.edge(missed), t.edge(seen)), true
		}
	case "stale-read":
		if seen.Type == verdict.RT {
			return fmt.Sprintf("%s %s, although %s.", reader, t.missed(missed), t.edge(seen)), true
		}
	}
	return t.bothWays(seen, missed)
}

// bothWays is the sentence of two steps that say the opposite of each other and are both
// plain facts: orders of sessions, of lists, and reads.
func (t teller) bothWays(a, b verdict.Edge) (string, bool) {
	plain := func(e verdict.Edge) bool {
		return e.Type != verdict.RW && (e.Why == verdict.BySession || e.Why == verdict.ByValue || e.Why == verdict.ByList ||
			e.Why == verdict.ByLog)
	}
	if !plain(a) || !plain(b) {
		return "", false
	}
	if a.Type == verdict.WW && b.Type != verdict.WW {
		a, b = b, a
	}
	return fmt.Sprintf("%s, but %s.", t.edge(a), t.edge(b)), true
}

// circular is the sentence of two transactions that each depend on the other.
func (t teller) circular(a, b verdict.Edge) (string, bool) {
	if a.Type == verdict.SO {
		a, b = b, a
	}
	switch {
	case a.Type != verdict.WR:
		return "", false
	case b.Type == verdict.SO:
		return fmt.Sprintf("%s, although that came only later in the same session.", t.edge(a)), true
	case b.Type == verdict.WR:
		return fmt.Sprintf("Two transactions saw each other's writes: %s; %s.", t.edge(a), t.edge(b)), true
	}
	return "", false
}

// readOnly is the sentence of Fekete's read-only anomaly.
func (t teller) readOnly(c []verdict.Edge) (string, bool) {
	for i, e := range c {
		first, second := c[(i+1)%len(c)], c[(i+2)%len(c)]
		if e.Type != verdict.RW && len(c) == 3 {
			return fmt.Sprintf("%s, which only reads, saw %s and not %s; yet %s had to come first, as it missed %s.",
				t.txn(e.To), t.of(e), t.of(first), t.txn(first.To), t.of(second)), true
		}
	}
	return "", false
}

// missed is what an anti-dependency says of its reader: "read x = 0 and missed that T1 wrote x = 1", or "looked for rows
// where "v > 0" and found 3; a fourth, t:4, which T1 had made one of them, was not there".
func (t teller) missed(e verdict.Edge) string {
	read, wrote := t.readNotOf(e.From, e.Key, e.To), t.written(e.To, e.Key)
	if row, where, is := predicate.Register(e.Key); is && read.known && read.op.Value.IsNull() && wrote.known {
		before := ""
		if t.n.Shape() != "stale-read" && t.committedBefore(e.To, e.From) {
			before = " and committed before it began, by the clocks"
		}
		n, said := 0, false
		if r, ok := t.record(e.From); ok && t.found != nil {
			n, said = t.found(r.ID, e.Key)
		}
		if !said {
			return fmt.Sprintf("looked for rows where %s and did not find %s, which %s had made one of them%s", text.Name(where),
				text.Name(row), t.txn(e.To), before)
		}
		found, another := "none", ""
		if n > 0 {
			found, another = strconv.Itoa(n), "another, "
		}
		if n > 0 && n < len(ordinals) {
			another = ordinals[n] + ", "
		}
		return fmt.Sprintf("looked for rows where %s and found %s; %s%s, which %s had made one of them%s, was not there",
			text.Name(where), found, another, text.Name(row), t.txn(e.To), before)
	}
	return fmt.Sprintf("read %v and missed that %s %s", read, t.txn(e.To), wrote.did())
}

// ordinals are what a row is called that was not found beside so many.
var ordinals = []string{"", "a second", "a third", "a fourth", "a fifth", "a sixth", "a seventh", "an eighth", "a ninth"}

// committedBefore tells whether, by the recorded times, one transaction had ended when another began.
func (t teller) committedBefore(a, b verdict.TxnID) bool {
	x, known := t.record(a)
	y, found := t.record(b)
	return known && found && x.HasTimes && y.HasTimes && x.End < y.Start
}

// between names the transactions on the way from the end of edge i round to
// its start.
func (t teller) between(c []verdict.Edge, i int) string {
	var names []string
	for j := 1; j < len(c)-1; j++ {
		if j > shownMax {
			names = append(names, fmt.Sprintf("%d more", len(c)-2-shownMax))
			break
		}
		names = append(names, t.txn(c[(i+j)%len(c)].To))
	}
	return enumerate(names)
}

// firstMissed is the place of the first anti-dependency; -1 if there is none.
func firstMissed(c []verdict.Edge) int {
	return slices.IndexFunc(c, func(e verdict.Edge) bool { return e.Type == verdict.RW })
}

// fork is the sentence of the four-transaction long fork.
func (t teller) fork(c []verdict.Edge) (string, bool) {
	i := firstMissed(c)
	if len(c) != 4 || i < 0 {
		return "", false
	}
	at := func(j int) verdict.Edge { return c[(i+j)%4] }
	if at(1).Type != verdict.WR || at(2).Type != verdict.RW || at(3).Type != verdict.WR {
		return "", false
	}
	return fmt.Sprintf("%s and %s saw two writes in opposite orders: %s saw %s and not %s; %s saw %s and not %s.",
		t.txn(at(0).From), t.txn(at(2).From),
		t.txn(at(0).From), t.of(at(3)), t.of(at(0)),
		t.txn(at(2).From), t.of(at(1)), t.of(at(2))), true
}

// of names the write behind an edge: "x = 1 of T1", "the 1 that T1 appended to x".
func (t teller) of(e verdict.Edge) string {
	id := e.From
	if e.Type == verdict.RW {
		id = e.To
	}
	w := t.written(id, e.Key)
	if w.known && w.op.Kind == record.Append {
		return fmt.Sprintf("the %s that %s appended to %s", w.value(), t.txn(id), text.Name(e.Key))
	}
	return fmt.Sprintf("%v of %s", w, t.txn(id))
}

// shownMax bounds how many transactions a sentence names.
const shownMax = 6

// around is the sentence of any cycle.
func (t teller) around(c []verdict.Edge) string {
	if len(c) == 0 {
		return "What was read contradicts itself."
	}
	names := make([]string, 0, shownMax+1)
	for i, e := range c {
		if i == shownMax {
			names = append(names, fmt.Sprintf("… (%d more)", len(c)-shownMax))
			break
		}
		names = append(names, t.txn(e.From))
	}
	return fmt.Sprintf("%d transactions would each have to come before the next, and the last before the first: %s → %s.",
		len(c), strings.Join(names, " → "), t.txn(c[0].From))
}

// casesSentence is for what no choice of write orders, and of writers of what
// was read, explains.
func (t teller) casesSentence() string {
	seen := map[string]bool{}
	var keys, reads []string
	add := func(words *[]string, word string) {
		if !seen[word] {
			seen[word] = true
			*words = append(*words, word)
		}
	}
	for _, c := range t.v.Cases {
		for _, e := range c {
			if read, ok := t.presumed(c, e); ok {
				e = read
			}
			switch {
			case e.Why != verdict.ByCase || e.Key == "":
			case e.Type == verdict.WR:
				add(&reads, fmt.Sprintf("the %v that %s read", t.readFrom(e.To, e.Key, e.From), t.txn(e.To)))
			default:
				add(&keys, text.Name(e.Key))
			}
		}
	}
	most := func(words []string) []string {
		if len(words) > shownMax {
			return append(words[:shownMax:shownMax], fmt.Sprintf("%d more", len(words)-shownMax))
		}
		return words
	}
	what := "the writes"
	switch {
	case len(t.v.Cases) == 0:
		return "There is no order of the writes that fits what was read."
	case len(reads) > 0 && len(keys) == 0:
		return fmt.Sprintf("Nobody can have written %s: whoever it is taken to be, what was read contradicts itself.",
			enumerate(most(reads)))
	case len(reads) > 0:
		return fmt.Sprintf("There is no order of the writes of %s, and nobody who can have written %s, that fits what %s "+
			"read: every possibility contradicts itself.",
			enumerate(most(keys)), enumerate(most(reads)), text.Count(len(t.v.Txns), "transaction", "transactions"))
	case len(keys) > 0:
		what = "the writes of " + enumerate(most(keys))
	}
	return fmt.Sprintf("There is no order of %s that fits what %s read: every possibility contradicts itself.",
		what, text.Count(len(t.v.Txns), "transaction", "transactions"))
}

func enumerate(words []string) string { return english.WordSeries(words, "and") }
