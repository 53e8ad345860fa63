package oracle

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// interleave searches an order of starts and commits in which every
// transaction reads what was committed at its start. With firstCommitterWins,
// writers of a common key must not overlap.
func (h *history) interleave(firstCommitterWins, realTime bool) ([]verdict.Event, bool) {
	before := h.before(realTime, false)
	for _, all := range h.choices() {
		h.take(all)
		r := interleaver{history: h, before: before, all: all, firstCommitterWins: firstCommitterWins,
			instants: realTime && h.opt.Clock == record.ClockDatabase, failed: map[string]bool{}}
		if r.run(0, 0, h.initial()) {
			return r.order, true
		}
	}
	return nil, false
}

// interleaver searches for one choice of transactions that took effect.
type interleaver struct {
	*history
	before             []set // of each, who must commit before it starts
	all                set   // who took effect
	firstCommitterWins bool
	instants           bool            // starts and commits are in the order of their times
	failed             map[string]bool // what started, what committed, and what the database held
	order              []verdict.Event // so far
}

// run tells whether what has not happened yet can, from the state s on.
func (r *interleaver) run(started, committed set, s state) bool {
	if committed == r.all {
		return true
	}
	id := string(s.text([]byte{byte(started), byte(started >> 8), byte(committed), byte(committed >> 8)}))
	if r.failed[id] {
		return false
	}
	running := started &^ committed
	var busy set // keys that a running transaction writes
	if r.firstCommitterWins {
		for t := range r.txns {
			if running.has(t) {
				busy |= r.writes[t]
			}
		}
	}
	for t := range r.txns {
		switch {
		case running.has(t):
			if r.onTime(t, true, started, committed) && !r.overtaken(t, committed) && r.commitNext(t, started, committed, s) {
				return true
			}
		case r.all.has(t) && !started.has(t):
			if r.onTime(t, false, started, committed) && r.startNext(t, started, committed, busy, s) {
				return true
			}
		}
	}
	r.failed[id] = true
	return false
}

// commitNext is run with t's commit as the next event. Between start and commit an
// unseen append may have made a list longer that t only adds to; where writers may not
// overlap it came before.
func (r *interleaver) commitNext(t int, started, committed set, s state) bool {
	for _, now := range r.foreignAppends(t, s, r.firstCommitterWins) {
		now = now.clone()
		r.commit(t, now)
		r.order = append(r.order, verdict.Event{Txn: verdict.TxnID(t), Commit: true})
		if r.run(started, committed.with(t), now) {
			return true
		}
		r.order = r.order[:len(r.order)-1]
	}
	return false
}

// startNext is run with t's start as the next event.
func (r *interleaver) startNext(t int, started, committed, busy set, s state) bool {
	if r.before[t]&r.all&^committed != 0 {
		return false // somebody must commit first
	}
	if r.writes[t]&busy != 0 {
		return false // it would overlap a writer of the same key
	}
	for _, now := range r.foreignCommits(t, s, busy) {
		now = now.clone()
		if !r.answers(t, now) {
			continue
		}
		r.order = append(r.order, verdict.Event{Txn: verdict.TxnID(t)})
		if r.run(started.with(t), committed, now) {
			return true
		}
		r.order = r.order[:len(r.order)-1]
	}
	return false
}
