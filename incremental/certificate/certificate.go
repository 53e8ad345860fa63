package certificate

import (
	"fmt"
	"math"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Options say what the verdict assumed.
type Options struct {
	Initial  record.Initial
	Coverage record.Coverage
	Sessions record.Sessions
	// Clock: with ClockEnforce ser is replayed as sser and si as strong-si.
	Clock   record.Clock
	MaxSkew int64 // nanoseconds
}

// Error says where a certificate fails.
type Error struct {
	Event int    // its place in the order, from 0; -1 if the fault is not at an event
	Txn   string // the transaction's id; empty if the fault is of no single one
	Op    int    // the operation in the transaction, from 0; -1 if of none
	What  string
}

func (e *Error) Error() string {
	s := "certificate"
	if e.Event >= 0 {
		s += fmt.Sprintf(": event %d", e.Event)
	}
	if e.Txn != "" {
		s += ": " + e.Txn
	}
	if e.Op >= 0 {
		s += fmt.Sprintf(", operation %d", e.Op)
	}
	return s + ": " + e.What
}

// Replay checks that order proves that txns satisfy level, which is one of pc,
// si, strong-si, ser and sser. Events name transactions by their index in txns,
// in which each session's stand in session order. An order that proves it
// returns nil, any other an *Error.
//
// Time and space are linear in the size of the history.
func Replay(level verdict.Level, txns []record.Transaction, order []verdict.Event, opt Options) error {
	r := &replay{txns: txns, order: order, opt: opt}
	switch level {
	case verdict.SER, verdict.SSER:
		r.serial = true
	case verdict.SI, verdict.StrongSI:
		r.exclusive = true
	case verdict.PC:
	default:
		return &Error{-1, "", -1, fmt.Sprintf("level %v has no order to replay; use pc, si, strong-si, ser or sser", level)}
	}
	if err := r.place(); err != nil {
		return err
	}
	if err := r.sessions(); err != nil {
		return err
	}
	enforced := opt.Clock == record.ClockEnforce && level != verdict.PC
	if enforced || level == verdict.SSER || level == verdict.StrongSI {
		if err := r.realTime(); err != nil {
			return err
		}
	}
	return r.reads()
}

type replay struct {
	txns      []record.Transaction
	order     []verdict.Event
	opt       Options
	serial    bool // one event per transaction, start and commit at once
	exclusive bool // writers of a key must not overlap

	start, commit []int // by transaction, its events' places; -1 if it has none

	keys     []int32 // of all operations, as indexes of objects
	first    []int   // by transaction, the place of its first operation in keys
	objects  []object
	overlays []overlay // by object; empty between events
	writers  map[written]int
}

// written is a value written to a key.
type written struct {
	key   int32
	value record.Value
}

// several stands in writers for more than one transaction.
const several = -1

// place finds each transaction's events.
func (r *replay) place() error {
	r.start, r.commit = make([]int, len(r.txns)), make([]int, len(r.txns))
	for i := range r.txns {
		r.start[i], r.commit[i] = -1, -1
	}
	for i, e := range r.order {
		if int64(e.Txn) >= int64(len(r.txns)) {
			return &Error{i, "", -1, fmt.Sprintf("transaction %d of %d", e.Txn, len(r.txns))}
		}
		t := &r.txns[e.Txn]
		switch {
		case t.Status == record.Aborted:
			return &Error{i, t.ID, -1, "is aborted, and can't be part of an order"}
		case r.serial && !e.Commit:
			return &Error{i, t.ID, -1, "a serial order has no starts"}
		case e.Commit && r.commit[e.Txn] >= 0:
			return &Error{i, t.ID, -1, "commits a second time"}
		case !e.Commit && r.start[e.Txn] >= 0:
			return &Error{i, t.ID, -1, "starts a second time"}
		case !r.serial && e.Commit && r.start[e.Txn] < 0:
			return &Error{i, t.ID, -1, "commits before it starts"}
		}
		if e.Commit {
			r.commit[e.Txn] = i
		}
		if !e.Commit || r.serial {
			r.start[e.Txn] = i
		}
	}
	for i := range r.txns {
		if r.commit[i] < 0 && (r.txns[i].Status == record.Committed || r.start[i] >= 0) {
			return &Error{-1, r.txns[i].ID, -1, "never commits in this order"}
		}
	}
	return nil
}

// sessions checks that session order is kept.
func (r *replay) sessions() error {
	if r.opt.Sessions == record.SessionsIgnore {
		return nil
	}
	last := map[string]int{} // per session, the transaction that commits last of those before
	for i := range r.txns {
		t := &r.txns[i]
		if r.commit[i] < 0 {
			continue
		}
		p, ok := last[t.Session]
		if ok && r.start[i] < r.commit[p] {
			return &Error{r.start[i], t.ID, -1, fmt.Sprintf("starts before %s commits, its predecessor in session %s", r.txns[p].ID, t.Session)}
		}
		if t.Status != record.Unknown && (!ok || r.commit[p] < r.commit[i]) {
			last[t.Session] = i
		}
	}
	return nil
}

// realTime checks that real-time order is kept: walking back, it knows who of
// those that commit later ended first.
func (r *replay) realTime() error {
	first, end := -1, int64(math.MaxInt64)
	for i := len(r.order) - 1; i >= 0; i-- {
		n := int(r.order[i].Txn)
		t := &r.txns[n]
		if r.start[n] == i && t.HasTimes && first >= 0 && endsBefore(end, t.Start, r.opt.MaxSkew) {
			return &Error{i, t.ID, -1, fmt.Sprintf("starts before %s commits, which ended at %d, before the start at %d", r.txns[first].ID, end, t.Start)}
		}
		if r.commit[n] == i && t.HasTimes && t.Status != record.Unknown && t.End < end {
			first, end = n, t.End
		}
	}
	return nil
}

// endsBefore tells whether end + skew < start, without overflow.
func endsBefore(end, start, skew int64) bool {
	return end <= math.MaxInt64-skew && end+skew < start
}
