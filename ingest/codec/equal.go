package codec

import (
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Equal tells whether two records say the same, however they were written. A
// record that comes again, with the same id, is a duplicate if it is Equal to the
// first and a contradiction otherwise.
func Equal(a, b *record.Transaction) bool {
	return a.ID == b.ID && a.DB == b.DB && a.Session == b.Session && a.Node == b.Node && a.Statements == b.Statements && a.HasSeq == b.HasSeq &&
		a.Seq == b.Seq &&
		a.HasTimes == b.HasTimes && a.Start == b.Start && a.End == b.End && a.Status == b.Status && slices.Equal(a.Ops, b.Ops)
}
