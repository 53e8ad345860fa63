package explain

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Reads whose writer is not plain from the value: several transactions wrote
// it, or one whose outcome was never learned.

// names joins the ids of transactions; no more than shownMax of them.
func (t teller) names(ids []verdict.TxnID, and string) string {
	var words []string
	for i, id := range ids {
		if i == shownMax {
			words = append(words, fmt.Sprintf("%d more", len(ids)-shownMax))
			break
		}
		words = append(words, t.txn(id))
	}
	return english.WordSeries(words, and)
}

// supposed is the edge of a cycle that supposes the writer of a read; false if
// there is none.
func supposed(c []verdict.Edge, reader verdict.TxnID, key string) (verdict.Edge, bool) {
	for _, e := range c {
		if e.Type == verdict.WR && e.To == reader && e.Key == key {
			return e, true
		}
	}
	return verdict.Edge{}, false
}

// candidate is the writer whom one of the cycles of an eliminated read is about: the
// read that is supposed, or the write that somebody whom the reader missed wrote after.
// False if the cycle is about the initial version.
func candidate(c []verdict.Edge, read verdict.Edge) (verdict.TxnID, bool) {
	if s, ok := supposed(c, read.To, read.Key); ok {
		return s.From, true
	}
	if len(c) > 0 && c[0].Type == verdict.RW && c[0].From == read.To && c[0].Key == read.Key {
		if s, ok := name.Supposed(c[0]); ok {
			return s.To, true
		}
	}
	return 0, false
}

// eliminated tells of a read whose other possible writers are ruled out.
func (t teller) eliminated(e verdict.Edge) string {
	ids := []verdict.TxnID{e.From}
	for _, c := range e.Others {
		if w, ok := candidate(c, e); ok && !slices.Contains(ids, w) {
			ids = append(ids, w)
		}
	}
	slices.Sort(ids)
	if len(ids) < 2 {
		return t.say("$to read $read, which several transactions wrote, but only $from can have been the one", e)
	}
	return t.say("$to read $read, which ", e) + t.names(ids, "or") + t.say(" may have written; only $from can have been the one", e)
}

// elimination tells why the other writers of a read are ruled out, one by one.
func (t teller) elimination(w *writer, depth int, e verdict.Edge, reasons int) {
	for i, c := range e.Others {
		if w.full() {
			return
		}
		if i == casesMax {
			w.line(depth, "… and %s, each ruled out in the same way.",
				text.Count(len(e.Others)-casesMax, "more writer", "more writers"))
			break
		}
		who := "nobody, and the value that of the beginning"
		if id, ok := candidate(c, e); ok {
			who = t.txn(id)
		}
		w.line(depth, "If it were %s:", who)
		t.steps(w, depth+1, c, reasons+1, true)
		w.line(depth, "which leads back to %s: a contradiction.", t.first(c))
	}
	w.line(depth, "So it was %s.", t.txn(e.From))
}

// outcomes tells, of some transactions and those of some cycles whose outcome was never
// learned, how it is known that they took effect.
func (t teller) outcomes(w *writer, ids []verdict.TxnID, cycles ...[]verdict.Edge) {
	ids = slices.Clone(ids)
	for _, e := range slices.Concat(cycles...) {
		ids = append(ids, e.From, e.To)
	}
	told := map[verdict.TxnID]bool{}
	for _, id := range ids {
		r, ok := t.record(id)
		if !ok || r.Status != record.Unknown || told[id] {
			continue
		}
		if told[id] = true; len(told) > shownMax {
			w.line(0, "There are more whose outcome was never learned.")
			return
		}
		if reader, key, ok := t.effect(id, cycles); ok {
			w.line(0, "The outcome of %s was never learned, but %s read its write of %s, so it took effect.", t.txn(id),
				t.txn(reader), text.Name(key))
		} else {
			w.line(0, "The outcome of %s was never learned; it took effect if somebody read its write.", t.txn(id))
		}
	}
}
