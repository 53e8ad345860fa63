package explain

import (
	"fmt"
	"os"
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
	row, where, isRow := predicate.Register(key)
	both := fmt.Sprintf("%s and %s both read %v and both overwrote it", t.txn(a), t.txn(b), read)
	unseen := ", neither seeing the other"
	switch other := t.readNotOf(b, key, a); {
	case read.known && other.known && other.op.Value != read.op.Value:
		both = fmt.Sprintf("%s read %v and %s read %v, and both appended to it", t.txn(a), read, t.txn(b), other)
	case second.op.Kind == record.Append:
		both = fmt.Sprintf("%s and %s both read %v and both appended to it", t.txn(a), t.txn(b), read)
	case isRow && read.known && !read.op.Value.IsNull():
		both = fmt.Sprintf("%s and %s both found %s where %s and both changed it", t.txn(a), t.txn(b), text.Name(row),
			text.Name(where))
	case first.known && second.known && first.op.Kind == record.Write && second.op.Kind == record.Write:
		both += fmt.Sprintf(", with %s and %s", first.value(), second.value())
	default:
		unseen = ""
	}
	return both + unseen + ": one of the two updates is lost."
}

// readSentences are for what one read shows, by kind.
var readSentences = map[verdict.Kind]string{
	verdict.ThinAirRead:       "$who read $read, a value that nobody ever wrote.",
	verdict.AbortedRead:       "$who read $read, which $writer wrote; but that transaction was aborted.",
	verdict.FutureRead:        "$who read $read before it wrote that value itself.",
	verdict.NotMyLastWrite:    "$who read $read, which it had already overwritten itself with $own.",
	verdict.NotMyOwnWrite:     "$who $did and then read $read$by.",
	verdict.IntermediateRead:  "$who read $read from the middle of $writer, which itself overwrote that with $last.",
	verdict.NonRepeatableRead: "$who read $key twice and got two values: first $first, then $second.",
}

func (t teller) readSentence() string {
	if len(t.v.Txns) == 0 {
		return "A read returned what it can't have."
	}
	read, last, writer, by := fact{key: t.v.Key}, fact{}, "another transaction", ""
	if r, ok := t.record(t.v.Txns[0]); ok && t.read >= 0 {
		read.op, read.known = r.Ops[t.read], true
	}
	if len(t.v.Txns) > 1 {
		writer, last = t.txn(t.v.Txns[1]), t.written(t.v.Txns[1], t.v.Key)
		by = ", which " + writer + " wrote"
	}
	if s := t.listAnomaly(read); s != "" {
		return s
	}
	sentence, ok := readSentences[t.v.Kind]
	if !ok {
		sentence = "$who read $read, which it can't have."
	}
	id, other := t.initialReader(read)
	if t.v.Kind == verdict.ThinAirRead && other.known {
		sentence = "$who read $read, which nobody wrote; nor can it be the initial value, as $other."
	}
	own := t.lastBefore(record.OpKind.Writes)
	first, second := values(t.lastBefore(func(k record.OpKind) bool { return k == record.Read }), read)
	return os.Expand(sentence, func(word string) string {
		return map[string]string{"who": t.txn(t.v.Txns[0]), "read": read.String(), "key": text.Name(t.v.Key),
			"writer": writer, "by": by, "last": last.value(), "own": own.value(), "did": own.did(), "first": first,
			"second": second, "other": fmt.Sprintf("%s read %v", t.txn(id), other)}[word]
	})
}

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
		if s := t.pair(seen, missed); s != "" {
			return s
		}
	}
	i := firstMissed(c)
	switch t.n.Shape() {
	case "causality-violation":
		if i >= 0 {
			return t.say("$from $missed, although it depends on $to by way of ", c[i]) + t.between(c, i) + "."
		}
	case "session-guarantee-violation":
		if i >= 0 {
			return t.say("$from $missed, although $to came before it in the same session.", c[i])
		}
	case "read-only-anomaly":
		for i, e := range c {
			if e.Type != verdict.RW && len(c) == 3 {
				return t.say("$to, which only reads, saw $write and not $b_write; yet $b_to had to come first, as it missed "+
					"$c_write.", e, c[(i+1)%3], c[(i+2)%3])
			}
		}
	case "stale-read", "read-skew", "prefix-violation", "snapshot-cycle", "serialization-cycle", "real-time-violation":
		if i >= 0 && firstMissed(c[i+1:]) < 0 {
			return t.say("$from $missed, although $to comes before it.", c[i])
		}
	case "long-fork":
		if len(c) != 4 || i < 0 {
			break
		}
		c := slices.Concat(c[i:], c[:i]) // two reads of which each missed what the other saw
		if c[1].Type == verdict.WR && c[2].Type == verdict.RW && c[3].Type == verdict.WR {
			return t.say("$from and $c_from saw two writes in opposite orders: $from saw $d_write and not $write; $c_from saw "+
				"$b_write and not $c_write.", c...)
		}
	}
	return t.around(c)
}

// pairSentences are for cycles of two steps: of what was missed, and of what was seen.
var pairSentences = map[string]string{
	"fractured-read":     "$from saw only a part of $to: it read $b_saw, but $missed.",
	"non-monotonic-read": "$from went back in time: it read $b_saw, and after that $missed.",
	"write-skew":         "$from and $to each read what the other then overwrote: $from $missed; $to $b_missed.",
}

// pair is for a cycle of two steps; empty if nothing else is to be said of it than of others.
func (t teller) pair(seen, missed verdict.Edge) string {
	switch shape := t.n.Shape(); shape {
	case "lost-update":
		a, b := missed.To, missed.From
		ra, rb := t.readNotOf(a, seen.Key, b), t.readNotOf(b, seen.Key, a)
		switch {
		case seen.Key != missed.Key:
			return t.say("$from and $to wrote the same key without either seeing the other: one of the two updates is lost.",
				missed)
		case ra.known && rb.known && ra.op.Value == rb.op.Value:
			return t.bothOverwrote(a, b, seen.Key)
		}
		return t.say("$to $then and $from $did without having seen it: one of the two updates is lost.", missed)
	case "circular-information-flow":
		a, b := seen, missed
		if a.Type == verdict.SO {
			a, b = b, a
		}
		switch {
		case a.Type == verdict.WR && b.Type == verdict.SO:
			return t.say("$edge, although that came only later in the same session.", a)
		case a.Type == verdict.WR && b.Type == verdict.WR:
			return t.say("Two transactions saw each other's writes: $edge; $b_edge.", a, b)
		}
	case "fractured-read", "non-monotonic-read", "write-skew":
		if t.n.Phantom && shape == "write-skew" {
			return t.say("$from and $to each looked for rows by a condition, which the other then changed for one of them: "+
				"$from $missed; $to $b_missed.", missed, seen)
		}
		return t.say(pairSentences[shape], missed, seen)
	case "non-repeatable-reads":
		old, new := t.readNotOf(missed.From, missed.Key, missed.To), t.readFrom(missed.From, missed.Key, missed.To)
		first, second := values(old, new)
		by := ", which " + t.txn(missed.To) + " wrote"
		if t.lastPlace(missed.From, new) < t.lastPlace(missed.From, old) {
			first, second, by = second+by, first, ""
		}
		return fmt.Sprintf("%s read %s twice and got two values: first %s, then %s%s.", t.txn(missed.From),
			text.Name(missed.Key), first, second, by)
	case "real-time-violation":
		if missed.Type == verdict.RT {
			seen, missed = missed, seen
		}
		if seen.Type == verdict.RT && missed.Type != verdict.RT {
			return t.say("$edge, although $b_edge.", missed, seen)
		}
	case "stale-read":
		if seen.Type == verdict.RT {
			return t.say("$from $missed, although $b_edge.", missed, seen)
		}
	}
	return t.bothWays(seen, missed)
}

// bothWays is for two steps that are plain from the records: one way, but the other way as well. Empty if they are not.
func (t teller) bothWays(a, b verdict.Edge) string {
	plain := func(e verdict.Edge) bool {
		return e.Type != verdict.RW && (e.Why == verdict.BySession || e.Why == verdict.ByValue || e.Why == verdict.ByList ||
			e.Why == verdict.ByLog)
	}
	if !plain(a) || !plain(b) {
		return ""
	}
	if a.Type == verdict.WW && b.Type != verdict.WW {
		a, b = b, a
	}
	return t.say("$edge, but $b_edge.", a, b)
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

// write names the write behind an edge: "x = 1 of T1", "the 1 that T1 appended to x".
func (t teller) write(e verdict.Edge) string {
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
