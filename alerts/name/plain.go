package name

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Plain is a violation with its cycles put in the terms that all levels share.
// Where snapshot isolation says that the run of updates of somebody who read the
// initial version comes before another write, that transaction also missed the
// write, which is the same to it and more to weaker levels: they know of no runs.
// For the same reason somebody who read the initial version missed not only its
// first update but every later write. Nothing is replaced where two
// anti-dependencies would come to be adjacent, as snapshot isolation allows that.
// Of a violation with cases, a read that several transactions may have written is supposed
// to be of the one that a case is about, which weak levels do not say.
// Linear in the size of the violation.
func Plain(v verdict.Violation, lookup Lookup) verdict.Violation {
	k := newKinds(v, lookup)
	left := reasonsMax + edgesOf(v)
	if c := k.shortcut(k.plain(v.Cycle, 0, &left)); len(c) < len(v.Cycle) {
		v.Cycle, v.Txns = c, nil
		for _, e := range c {
			v.Txns = append(v.Txns, e.From)
		}
	} else {
		v.Cycle = c
	}
	if len(v.Cases) > 0 {
		v.Cases = slices.Clone(v.Cases)
		choices := choices{kinds: k, by: NewWriters(k.v, k.lookup)}
		choices.initials(v.Cases)
		for i := range v.Cases {
			v.Cases[i] = k.plain(v.Cases[i], 0, &left)
			choices.mark(v.Cases[i], 0, &left)
		}
	}
	return v
}

func (k kinds) plain(c []verdict.Edge, depth int, left *int) []verdict.Edge {
	out := slices.Clone(c)
	for i, e := range out {
		if *left--; *left < 0 {
			return out
		}
		if depth < becauseDepth {
			if len(e.Because) > 0 {
				out[i].Because = k.plain(e.Because, depth+1, left)
			}
			if len(e.Others) > 0 {
				out[i].Others = slices.Clone(e.Others)
				for j := range e.Others {
					out[i].Others[j] = k.plain(e.Others[j], depth+1, left)
				}
			}
		}
		if e.Type == verdict.RW && e.Why == verdict.ByOrder && k.overwrote(e) {
			out[i].Why, out[i].Because = verdict.ByOverwrite, nil
		}
		n := len(out)
		if e.Type != verdict.WW || e.Why != verdict.ByInitial || out[(i+n-1)%n].Type == verdict.RW ||
			out[(i+1)%n].Type == verdict.RW {
			continue
		}
		if k.afterInitial(e.From, e.Key) {
			out[i].Type = verdict.RW
		}
	}
	return out
}

// overwrote tells whether an anti-dependency needs no reason: its writer read the version
// that the reader read, of which there is one writer, and overwrote it.
func (k kinds) overwrote(e verdict.Edge) bool {
	r, ok := k.record(e.From)
	w, found := k.record(e.To)
	if !ok || !found || !updates(w, e.Key) {
		return false
	}
	read := w.Ops[FirstRead(w, e.Key)]
	old := -1
	for i, op := range r.Ops {
		if op.Key == e.Key && op.Kind.Writes() {
			break
		}
		if op.Kind == record.Read && op.Key == e.Key && !Shows(op, w) {
			old = i
		}
	}
	if old < 0 || r.Ops[old].Value != read.Value {
		return false
	}
	writers := map[verdict.TxnID]bool{}
	for _, id := range slices.Concat(k.v.Txns, k.v.Evidence) {
		if t, ok := k.record(id); ok && Shows(read, t) {
			writers[id] = true
		}
	}
	return len(writers) == 1
}

// shortcut leaves out who first updated the initial version between a reader of
// that and a later writer. Two edges are left at least.
func (k kinds) shortcut(c []verdict.Edge) []verdict.Edge {
	n := len(c)
	for i, e := range c {
		next, after := c[(i+1)%n], c[(i+2)%n]
		if n < 3 || e.Type != verdict.RW || next.Type != verdict.WW || next.Why != verdict.ByInitial || next.Key != e.Key ||
			after.Type == verdict.RW {
			continue
		}
		if t, ok := k.record(e.From); !ok || FirstRead(t, e.Key) < 0 || len(k.updaters(t, e.Key)) > 0 ||
			!k.afterInitial(e.To, e.Key) {
			continue
		}
		missed := verdict.Edge{From: e.From, To: next.To, Type: verdict.RW, Key: e.Key, Why: verdict.ByInitial}
		rest := slices.Concat(c[i:], c[:i])[2:]
		return k.shortcut(append([]verdict.Edge{missed}, rest...))
	}
	return c
}

// afterInitial tells whether a transaction updated the initial version of a key
// itself.
func (k kinds) afterInitial(id verdict.TxnID, key string) bool {
	t, ok := k.record(id)
	return ok && updates(t, key) && len(k.updaters(t, key)) == 0
}
