package oracle

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// serial searches a serial order of the transactions.
func (h *history) serial(realTime bool) ([]verdict.Event, bool) {
	before := h.before(realTime, realTime && h.opt.Clock == record.ClockDatabase)
	for _, all := range h.choices() {
		h.take(all)
		failed := map[string]bool{} // what was done and what the database held
		var order []verdict.Event
		var run func(done set, s state) bool
		run = func(done set, s state) bool {
			if done == all {
				return true
			}
			id := string(s.text([]byte{byte(done), byte(done >> 8)}))
			if failed[id] {
				return false
			}
			for t := range h.txns {
				if !all.has(t) || done.has(t) || before[t]&all&^done != 0 || h.overtaken(t, done) {
					continue
				}
				for _, now := range h.foreignCommits(t, s, 0) {
					now = now.clone()
					if !h.answers(t, now) {
						continue
					}
					h.commit(t, now)
					order = append(order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
					if run(done.with(t), now) {
						return true
					}
					order = order[:len(order)-1]
				}
			}
			failed[id] = true
			return false
		}
		if run(0, h.initial()) {
			return order, true
		}
	}
	return nil, false
}
