package app

import (
	"slices"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/window/stream"
)

// stretches are those of a history for a report: none if there is one, and that is
// complete for every level that is asked for.
func stretches(all []stream.Stretch, levels []verdict.Level) []report.Stretch {
	if len(all) == 1 && !slices.ContainsFunc(levels,
		func(l verdict.Level) bool { return all[0].At(l) != stream.Complete }) {
		return nil
	}
	out := make([]report.Stretch, 0, len(all))
	for _, s := range all {
		r := report.Stretch{Transactions: [2]uint64{s.From, s.To}, From: s.Begin, To: s.End,
			Completeness: map[string]string{}, Why: s.Partial.Names()}
		for _, l := range levels {
			r.Completeness[l.String()] = s.At(l).String()
		}
		out = append(out, r)
	}
	return out
}
