package name

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// choices finds the reads of a violation's cases whose writer is a choice, as several
// transactions of the violation may have written what was read.
type choices struct {
	kinds
	by *Writers
	// initial is what readers read that a case takes to be the initial version.
	initial map[verdict.TxnID][]record.Op
}

// initials finds that.
func (c *choices) initials(cases [][]verdict.Edge) {
	c.initial = map[verdict.TxnID][]record.Op{}
	for _, cycle := range cases {
		for _, e := range cycle {
			r, ok := c.record(e.From)
			w, found := c.record(e.To)
			if !ok || !found || e.Type != verdict.RW || e.Why != verdict.ByInitial {
				continue
			}
			for _, op := range r.Ops {
				if op.Key == e.Key && op.Kind.Writes() {
					break
				}
				if op.Kind == record.Read && op.Key == e.Key && !Shows(op, w) {
					c.initial[e.From] = append(c.initial[e.From], op)
				}
			}
		}
	}
}

// mark calls such steps, of a cycle and of the reasons of its steps, supposed. The cycle is
// a copy, and so are its reasons down to becauseDepth, see plain.
func (c *choices) mark(cycle []verdict.Edge, depth int, left *int) {
	for i := range cycle {
		e := &cycle[i]
		if *left--; *left < 0 {
			return
		}
		if e.Type == verdict.WR && e.Why == verdict.ByValue && c.several(*e) {
			e.Why = verdict.ByCase
		}
		if depth < becauseDepth {
			c.mark(e.Because, depth+1, left)
		}
	}
}

// several tells whether what a step says was read may be another's, or the initial version.
func (c *choices) several(e verdict.Edge) bool {
	writers, what := c.writers(e)
	return len(writers) > 1 || len(writers) > 0 && slices.Contains(c.initial[e.To], what)
}

// writers are the transactions that may have written what a step says was read, and what
// that is: of a list, those that appended what it has of the step's writer.
func (c *choices) writers(e verdict.Edge) ([]verdict.TxnID, record.Op) {
	r, ok := c.record(e.To)
	w, found := c.record(e.From)
	if !ok || !found {
		return nil, record.Op{}
	}
	at := ReadOf(r, e.Key, w)
	if at < 0 {
		return nil, record.Op{}
	}
	what := r.Ops[at]
	writers := c.by.Of(what, e.To)
	if es, isList := list.Elements(what.Value); isList && len(es) > 0 {
		for _, op := range w.Ops {
			if op.Kind == record.Append && op.Key == e.Key && slices.Contains(es, op.Value) {
				what = op
				writers = c.by.Of(op, e.To)
			}
		}
	}
	return writers, what
}
