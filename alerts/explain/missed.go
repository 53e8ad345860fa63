package explain

import (
	"fmt"
	"slices"
	"strings"

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
	t.steps(w, 1, c, 0, false)
	t.outcomes(w, nil, c)
	miss := c[len(c)-1]
	should := t.say("it should have read $wrote or something newer", miss)
	if wrote := t.written(miss.To, miss.Key); wrote.known && wrote.op.Kind == record.Append {
		should = fmt.Sprintf("the list should have had %s in it", wrote.value())
	}
	said := ""
	switch way := c[:len(c)-1]; {
	case len(way) == 1 && way[0].Type != verdict.SO && t.n.Shape() == "non-monotonic-read":
		said = t.say("When $from read $key it had already seen $to, which therefore had committed", miss)
	case len(way) == 1 && way[0].Type != verdict.SO:
		said = t.say("$from saw $to, and so was to see all of it", miss)
	case onlySessions(way):
		said = t.say("$from comes after $to in its session", miss)
	default:
		said = t.say("$from depends on $to by way of ", miss) + t.between(c, len(c)-1)
	}
	w.line(0, "%s: %s.", said, should)
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
		switch s, ok := t.premise(e); {
		case !ok:
		case len(clauses) == clausesMax:
			more++
		default:
			clauses = append(clauses, s+t.say(", so that $from came before $to", e))
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

// premise is how the order of two writes follows from what a reader would otherwise have missed: what that read, and
// why it would have missed the other write.
func (t teller) premise(e verdict.Edge) (string, bool) {
	if e.Type != verdict.WW || e.Why != verdict.ByOrder {
		return "", false
	}
	at := firstMissed(e.Because)
	if at < 0 || e.Because[at].To != e.From || e.Because[at].Why != verdict.ByCase {
		return "", false
	}
	miss := e.Because[at] // of what e is from
	visible := "depends on $to"
	switch {
	case len(e.Because) == 2 && e.Because[1-at].Type == verdict.WR:
		visible = "read from $to"
	case onlySessions(slices.Concat(e.Because[:at], e.Because[at+1:])):
		visible = "follows $to in its session"
	}
	return t.say("$from read $old of $b_to, though it "+visible, miss, e), true
}
