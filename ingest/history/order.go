package history

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// lined are the transactions of one database, with their lines.
type lined struct {
	txns  []record.Transaction
	lines []int64
}

// order makes ids unique and sessions ordered, and returns how many records had
// come before. O(n log n).
func (l *lined) order(in *input) (duplicates int, err error) {
	for i := range l.txns {
		if t := &l.txns[i]; t.ID == "" { // no seq either: the line is all there is
			t.ID = t.Session + "@" + strconv.FormatInt(l.lines[i], 10)
		}
	}
	if duplicates, err = l.deduplicate(in); err != nil {
		return 0, err
	}
	return duplicates, l.sortSessions(in)
}

// deduplicate drops records that came before.
func (l *lined) deduplicate(in *input) (dropped int, err error) {
	places := make(map[string]int, len(l.txns))
	kept := 0
	for i := range l.txns {
		t := &l.txns[i]
		if p, known := places[t.ID]; known {
			if !codec.Equal(&l.txns[p], t) {
				return 0, in.at(reject.In("id", reject.DuplicateID, "line %d has the id %.80q too, with other content", l.lines[p],
					t.ID), l.lines[i], 0)
			}
			continue
		}
		places[t.ID] = kept
		l.txns[kept], l.lines[kept] = *t, l.lines[i]
		kept++
	}
	dropped = len(l.txns) - kept
	clear(l.txns[kept:])
	l.txns, l.lines = l.txns[:kept], l.lines[:kept]
	return dropped, nil
}

// sortSessions puts each session's records in the order of their seqs, in the
// places that the session has. Records without seq are in order as they are.
func (l *lined) sortSessions(in *input) error {
	places := map[string][]int{}
	for i := range l.txns {
		s := l.txns[i].Session
		places[s] = append(places[s], i)
	}
	// In the order of first lines, so that the same error is found first.
	for _, of := range slices.SortedFunc(maps.Values(places), func(a, b []int) int { return a[0] - b[0] }) {
		if err := l.sortSession(in, of); err != nil {
			return err
		}
	}
	return nil
}

func (l *lined) sortSession(in *input, places []int) error {
	without, inOrder := -1, true
	previous := int64(-1)
	for _, p := range places {
		t := &l.txns[p]
		if !t.HasSeq {
			without = p
			continue
		}
		inOrder = inOrder && t.Seq > previous
		previous = t.Seq
	}
	if inOrder {
		return nil
	}
	if without >= 0 {
		return in.at(reject.In("seq", reject.SeqMixed,
			"the record of session %.80q has no seq, and the others are not in the order of theirs", l.txns[without].Session),
			l.lines[without], 0)
	}
	sorted := slices.Clone(places)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(l.txns[a].Seq, l.txns[b].Seq) })
	txns := make([]record.Transaction, len(sorted))
	lines := make([]int64, len(sorted))
	for i, p := range sorted {
		if txns[i], lines[i] = l.txns[p], l.lines[p]; i > 0 && txns[i].Seq == txns[i-1].Seq {
			return in.at(reject.In("seq", reject.DuplicateSeq, "line %d has the seq %d of session %.80q too", lines[i-1],
				txns[i].Seq, txns[i].Session), lines[i], 0)
		}
	}
	for i, p := range places {
		l.txns[p], l.lines[p] = txns[i], lines[i]
	}
	return nil
}
