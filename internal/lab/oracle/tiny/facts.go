package tiny

import (
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Unique tells whether no key is written the same value twice, but for null, the empty list, and the
// declared initial one, which anybody may write. Who writes another list as a whole may write what others appended.
func Unique(txns []record.Transaction, initial record.Initial) bool {
	seen := map[record.Op]bool{}
	for _, x := range txns {
		for _, op := range x.Ops {
			if op.Kind == record.Read || op.Value.IsNull() || op.Value.Text == "[]" || initial == record.InitialZero &&
				op.Value == record.Int(0) {
				continue
			}
			if seen[op] || op.Value.Kind == record.KindList {
				return false
			}
			seen[op] = true
		}
	}
	return true
}

// Possible tells whether no read ended before its writer had started, by clocks
// that differ by at most skew: what a bound on transactions (MaxTransaction) presumes.
func Possible(txns []record.Transaction, skew int64) bool {
	start := map[record.Op]int64{}
	for _, w := range txns {
		for _, op := range w.Ops {
			if op.Kind != record.Read {
				start[record.Op{Key: op.Key, Value: op.Value}] = w.Start
			}
		}
	}
	for _, r := range txns {
		for _, op := range r.Ops {
			if op.Kind != record.Read || !r.HasTimes {
				continue
			}
			shown := []record.Value{op.Value}
			if op.Value.Kind == record.KindList {
				for _, e := range strings.Split(strings.Trim(op.Value.Text, "[]"), ",") {
					n, _ := strconv.ParseInt(e, 10, 64)
					shown = append(shown, record.Int(n))
				}
			}
			for _, v := range shown {
				if at, ok := start[record.Op{Key: op.Key, Value: v}]; ok && at > r.End+skew {
					return false
				}
			}
		}
	}
	return true
}
