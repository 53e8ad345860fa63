package oracle

import "github.com/isowatch/isowatch/incremental/verdict"

// interleave searches an order of starts and commits in which every
// transaction reads what was committed at its start. With firstCommitterWins,
// writers of a common key must not overlap.
func (h *history) interleave(firstCommitterWins, realTime bool) ([]verdict.Event, bool) {
	before := h.before(realTime)
	for _, all := range h.choices() {
		failed := map[string]bool{} // what started, what committed, and what the database held
		var order []verdict.Event
		var run func(started, committed set, s state) bool
		run = func(started, committed set, s state) bool {
			if committed == all {
				return true
			}
			id := string(s.text([]byte{byte(started), byte(started >> 8), byte(committed), byte(committed >> 8)}))
			if failed[id] {
				return false
			}
			running := started &^ committed
			var busy set // keys that a running transaction writes
			if firstCommitterWins {
				for t := range h.txns {
					if running.has(t) {
						busy |= h.writes[t]
					}
				}
			}
			for t := range h.txns {
				switch {
				case running.has(t):
					// Between start and commit an unseen append may have made a list
					// longer that t only adds to; where writers may not overlap it
					// came before.
					for _, now := range h.foreignAppends(t, s, firstCommitterWins) {
						now = now.clone()
						h.commit(t, now)
						order = append(order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
						if run(started, committed.with(t), now) {
							return true
						}
						order = order[:len(order)-1]
					}
				case all.has(t) && !started.has(t):
					if before[t]&all&^committed != 0 {
						continue // somebody must commit first
					}
					if h.writes[t]&busy != 0 {
						continue // it would overlap a writer of the same key
					}
					for _, now := range h.foreignCommits(t, s, busy) {
						now = now.clone()
						if !h.answers(t, now) {
							continue
						}
						order = append(order, verdict.Event{Txn: verdict.TxnID(t)})
						if run(started.with(t), committed, now) {
							return true
						}
						order = order[:len(order)-1]
					}
				}
			}
			failed[id] = true
			return false
		}
		if run(0, 0, h.initial()) {
			return order, true
		}
	}
	return nil, false
}
