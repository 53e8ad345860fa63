package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// The violations of rc, ra and cc: somebody missed a write that was visible to
// it, or several did and contradict each other.

// missedWrite is the cycle of one anti-dependency, with that at the end, if all
// else in it is session order and reads and a weak level forbids it; false if not.
func (t teller) missedWrite(c []verdict.Edge) ([]verdict.Edge, bool) {
	if !verdict.CC.Implies(t.n.Weakest) {
		return nil, false
	}
	at := firstMissed(c)
	for i, e := range c {
		switch {
		case i == at, e.Type == verdict.SO, e.Type == verdict.WR:
		case e.Type == verdict.WW && e.Why == verdict.ByOverwrite: // read as well
		default:
			return nil, false
		}
	}
	if at < 0 || len(c) < 2 {
		return nil, false
	}
	return slices.Concat(c[at+1:], c[:at+1]), true
}

// missedSteps tells such a cycle: how the write was visible, and that something
// older was read.
func (t teller) missedSteps(w *writer, c []verdict.Edge) {
	w.line(0, "What was seen, and what follows:")
	t.stepsTo(w, 1, c, 0, false)
	t.outcomes(w, c)
	miss := c[len(c)-1]
	reader, writer := t.txn(miss.From), t.txn(miss.To)
	wrote := t.written(miss.To, miss.Key)
	should := fmt.Sprintf("it should have read %v or something newer", wrote)
	if wrote.known && wrote.op.Kind == record.Append {
		should = fmt.Sprintf("the list should have had %s in it", wrote.value())
	}
	switch way := c[:len(c)-1]; {
	case len(way) == 1 && way[0].Type != verdict.SO && t.n.Shape() == "non-monotonic-read":
		w.line(0, "When %s read %s it had already seen %s, which therefore had committed: %s.", reader, text.Name(miss.Key),
			writer, should)
	case len(way) == 1 && way[0].Type != verdict.SO:
		w.line(0, "%s saw %s, and so was to see all of it: %s.", reader, writer, should)
	case onlySessions(way):
		w.line(0, "%s comes after %s in its session: %s.", reader, writer, should)
	default:
		w.line(0, "%s depends on %s by way of %s: %s.", reader, writer, t.between(c, len(c)-1), should)
	}
}

// guarantee tells of the session guarantee that is broken, if it is one.
func (t teller) guarantee(w *writer) {
	if g, ok := guarantees[t.n.Guarantee]; ok {
		w.line(0, "That breaks the session guarantee %s: %s.", strings.ReplaceAll(t.n.Guarantee, "-", " "), g)
	}
}

func onlySessions(c []verdict.Edge) bool {
	return !slices.ContainsFunc(c, func(e verdict.Edge) bool { return e.Type != verdict.SO })
}

// guarantees say what each session guarantee is.
var guarantees = map[string]string{
	verdict.ReadYourWrites.String(): "a session sees what it has written itself",
	verdict.MonotonicReads.String(): "what a session has seen once it goes on to see",
	verdict.MonotonicWrites.String(): "who sees a write of a session sees what the session wrote before, and in that " +
		"order",
	verdict.WritesFollowReads.String(): "who sees a write sees what its session had read before",
}

// contradiction is the sentence of a cycle in which nobody missed anything, but
// orders of writes were inferred from what others missed; false if none was.
func (t teller) contradiction(c []verdict.Edge) (string, bool) {
	if firstMissed(c) >= 0 {
		return "", false
	}
	var clauses []string
	more := 0
	for _, e := range c {
		s, ok := t.inference(e)
		switch {
		case !ok:
		case len(clauses) == clausesMax:
			more++
		default:
			clauses = append(clauses, s)
		}
	}
	if len(clauses) == 0 {
		return "", false
	}
	if more > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d more such orders follow", more))
	}
	return strings.Join(clauses, "; ") + ": there is no order in which they can have committed.", true
}

// clausesMax bounds how many inferred orders a sentence tells.
const clausesMax = 3

// inference is how the order of two writes follows from what a reader would
// otherwise have missed.
func (t teller) inference(e verdict.Edge) (string, bool) {
	s, ok := t.premise(e)
	return fmt.Sprintf("%s, so that %s came before %s", s, t.txn(e.From), t.txn(e.To)), ok
}

// premise is what that reader read, and why it would have missed the other write.
func (t teller) premise(e verdict.Edge) (string, bool) {
	if e.Type != verdict.WW || e.Why != verdict.ByOrder {
		return "", false
	}
	at := firstMissed(e.Because)
	if at < 0 || e.Because[at].To != e.From || e.Because[at].Why != verdict.ByCase {
		return "", false
	}
	miss := e.Because[at]
	seen := t.txn(e.From)
	visible := "depends on " + seen
	switch {
	case len(e.Because) == 2 && e.Because[1-at].Type == verdict.WR:
		visible = "read from " + seen
	case onlySessions(slices.Concat(e.Because[:at], e.Because[at+1:])):
		visible = "follows " + seen + " in its session"
	}
	return fmt.Sprintf("%s read %v of %s, though it %s", t.txn(miss.From), t.readNotOf(miss.From, miss.Key, miss.To),
		t.txn(e.To), visible), true
}
