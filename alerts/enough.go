package alerts

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// enoughMin is of how many transactions evidence is before it is asked what of it may be
// enough: of fewer it is soon tried what can go.
const enoughMin = 24

// enough guesses which operations of a proof are enough, for shrink.Options: those of a
// violation that the finder finds in it, which comes with what it needs. One of the same
// transactions is preferred, and then the smallest. nil if the proof is small anyway, or
// nothing is found.
func enough(v verdict.Violation, level verdict.Level, p proof, ctx Context) func(i, op int) bool {
	if ctx.Find == nil || len(p.txns) < enoughMin {
		return nil
	}
	part := members(v, ctx.Lookup)
	lookup := placed(p.txns)
	best, size, same := verdict.Violation{}, 0, false
	for _, f := range ctx.Find(level, untimed(level, p.header), p.txns) {
		n := 0
		for _, x := range f.Exhibits {
			n += 1 + len(x.Reads) + len(x.Writes) + len(x.All)
		}
		is := slices.Equal(members(f, lookup), part)
		if n > 0 && (size == 0 || is && !same || is == same && n < size) {
			best, size, same = f, n, is
		}
	}
	if size == 0 {
		return nil
	}
	wanted := make([]verdict.Exhibit, len(p.txns))
	for _, x := range best.Exhibits {
		if int64(x.Txn) >= int64(len(wanted)) {
			continue
		}
		w := &wanted[x.Txn]
		w.Reads, w.Writes, w.All = append(w.Reads, x.Reads...), append(w.Writes, x.Writes...), append(w.All, x.All...)
	}
	return func(i, j int) bool {
		op, w := p.txns[i].Ops[j], &wanted[i]
		if slices.Contains(w.All, op.Key) {
			return true
		}
		if writes(op) {
			return slices.Contains(w.Writes, op.Key)
		}
		return slices.Contains(w.Reads, op.Key)
	}
}

// everything says of a proof that is not small that all of it may be enough: most of it was found to
// be needed.
func everything(p proof) func(i, op int) bool {
	if len(p.txns) < enoughMin {
		return nil
	}
	return func(int, int) bool { return true }
}

// members are the ids of the transactions of a violation, sorted.
func members(v verdict.Violation, lookup name.Lookup) []string {
	var out []string
	for _, id := range v.Txns {
		out = append(out, identifier{lookup: lookup}.of(id))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// untimed is a header without times, where these only help to judge.
func untimed(level verdict.Level, h record.Header) record.Header {
	if h.Clock != nil && *h.Clock == record.ClockPrune && !level.Implies(verdict.StrongSI) && level != verdict.LIN {
		h.Clock = new(record.ClockIgnore)
	}
	return h
}
