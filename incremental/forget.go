package incremental

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
)

// An engine holds one segment of a stream: what it has taken in it never forgets.
// To forget is to go on with a new engine, which takes first what of the past a
// later transaction may still refer to (design 4, "Closing"):
//
//	Lose(key)…       the keys of which a write is forgotten
//	Step(stub)…      the last writers of these keys, reduced to those writes
//	Step(overlap)…   the latest records once more
//	Step(record)…    what is new
//
// This is sound because a history from which operations are taken away has no
// more dependencies than before, as long as the writes among them are known to be
// missing: every conclusion from the absence of a write (thin air, initial
// version, the only candidate) is withheld for a lossy key. What it can't find is a
// cycle through what is gone.

// Lose says that a write to the key may be missing from the input: from now on
// nothing is concluded from the absence of one, as with partial coverage. It is
// to be called before the first Step that touches the key.
func (e *Engine) Lose(key string) { e.in.perKey.At(e.in.keyNumber(key)).lossy = true }

// lossy: somebody who was not seen may have written the key.
func (e *Engine) lossy(k version.Key) bool {
	return e.opt.Coverage == record.CoveragePartial || e.in.perKey.At(k).lossy
}

// Waiting are the reads whose writer has not come, by transaction, in the order
// of Step, and for each the keys. An engine that goes on in place of this one
// needs them to find what those reads prove.
func (e *Engine) Waiting() []verdict.Exhibit {
	var out []verdict.Exhibit
	at := map[uint32]int{}
	for _, w := range e.waiting {
		if !e.in.waits(w.cell, w.index) {
			continue
		}
		i, ok := at[w.index]
		if !ok {
			i = len(out)
			at[w.index] = i
			out = append(out, verdict.Exhibit{Txn: e.in.txns.At(w.index).id})
		}
		if key := e.in.nameOf(e.in.cells.At(w.cell).key); !slices.Contains(out[i].Reads, key) {
			out[i].Reads = append(out[i].Reads, key)
		}
	}
	slices.SortFunc(out, func(a, b verdict.Exhibit) int { return int(a.Txn) - int(b.Txn) })
	return out
}

// waits tells whether index's read of c waits for the writer.
func (in *intake) waits(c cellID, index uint32) bool {
	for at := in.cells.At(c).waiting; at != none; at = in.waiters[at].next {
		if in.waiters[at].index == index {
			return true
		}
	}
	return false
}

// Retried tells whether Options.Retried was set, or an aborted transaction's value
// has been written by another one.
func (e *Engine) Retried() bool { return e.opt.Retried || e.in.retried }

// Unique tells whether UniqueValues was asked for and has held so far.
func (e *Engine) Unique() bool { return e.opt.UniqueValues }
