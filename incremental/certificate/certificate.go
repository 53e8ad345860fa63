package certificate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Error says where a certificate fails, and at what.
type Error struct {
	Level    verdict.Level // meaningful if HasLevel
	HasLevel bool
	Line     int    // the step's line in the certificate's file, from 1; 0 if it was not read from one
	Event    int    // its place in the order, from 0; -1 if the fault is not at an event
	Txn      string // the transaction's id, or what it is called without one; empty if the fault is of no single one
	Op       int    // the operation in the transaction, from 0; -1 if of none
	What     string // the fault, in words
	// Expected is the value, as JSON text, that the replay has where the history
	// has Found, if the fault is a difference of values.
	Expected, Found string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("certificate")
	if e.HasLevel {
		fmt.Fprintf(&b, " of %v", e.Level)
	}
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, ", line %d", e.Line)
	case e.Event >= 0:
		fmt.Fprintf(&b, ": event %d", e.Event)
	}
	if e.Txn != "" {
		b.WriteString(": " + e.Txn)
	}
	if e.Op >= 0 {
		fmt.Fprintf(&b, ", operation %d", e.Op)
	}
	b.WriteString(": " + e.What)
	return b.String()
}

// fault is an Error that is at no event.
func fault(format string, args ...any) *Error {
	return &Error{Event: -1, Op: -1, What: fmt.Sprintf(format, args...)}
}

// brief cuts a text that may be long, such as a list, for a message.
func brief(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}

// Kind is what kind of order proves a level; a closed set.
type Kind uint8

// The kinds.
const (
	// NoOrder: the level can't be proved by an order.
	NoOrder Kind = iota
	// Serial is an order of transactions, each of which runs by itself.
	Serial
	// Events is an order of starts and commits.
	Events
	// Commits is an order of commits, to be held against axioms.
	Commits
)

var kindNames = [...]string{"none", "serial", "events", "commits"}

func (k Kind) String() string { return kindNames[k] }

// KindNamed is the kind that String calls so; NoOrder if there is none.
func KindNamed(name string) Kind { return Kind(max(0, slices.Index(kindNames[:], name))) }

// Proves tells whether such an order can prove a level: it is of the kind of the level or of
// stronger ones, whose orders prove it as well.
func (k Kind) Proves(l verdict.Level) bool { return k != NoOrder && k <= KindOf(l) }

// KindOf tells what kind of order proves a level, if it is not that of a stronger one.
func KindOf(l verdict.Level) Kind {
	switch l {
	case verdict.SER, verdict.SSER, verdict.LIN:
		return Serial
	case verdict.PC, verdict.SI, verdict.StrongSI:
		return Events
	case verdict.G1, verdict.RC, verdict.RA, verdict.CC:
		return Commits
	}
	return NoOrder
}

// Replay checks that the order of a satisfied verdict proves that txns satisfy its level. Events name
// transactions by their index in txns, in which each session's stand in session
// order; an order of transactions or of commits has a commit event for each. Where an order of commits
// leaves open which transaction a read is from, the verdict has to say it. An
// order that proves it returns nil, any other an *Error. Under a clock that Enforces, ser is replayed as sser and si as
// strong-si.
//
// Time and space are linear in the size of the history, but for cc, which takes
// a time that grows with the number of sessions, and rc and ra, which take
// O(n^1.5) at worst.
func Replay(v verdict.Result, txns []record.Transaction, opt record.Assumptions) error {
	if err := Check(v.Level, KindOf(v.ProvedBy), txns, v.Order, v.Sources, opt); err != nil {
		return err // not what is nil, which is a pointer
	}
	return nil
}

// Check is Replay of an order of a kind; nil if it proves the level.
func Check(level verdict.Level, kind Kind, txns []record.Transaction, order []verdict.Event,
	sources []verdict.Source, opt record.Assumptions) *Error {
	if !kind.Proves(level) {
		return fault("an order of kind %s does not prove level %v", kind, level)
	}
	r := &replay{txns: txns, order: order, opt: opt, serial: kind != Events}
	if err := r.frame(level); err != nil {
		return err
	}
	if kind == Commits {
		return r.commits(level, sources)
	}
	if len(sources) > 0 {
		return fault("names writers, of which an order of kind %s has no need", kind)
	}
	return r.walk()
}

// frame checks all that does not depend on values, and prepares for the rest.
func (r *replay) frame(level verdict.Level) *Error {
	timed := false
	switch level {
	case verdict.SER, verdict.SI:
		timed = r.opt.Clock.Enforces()
	case verdict.SSER, verdict.StrongSI:
		timed = true
	case verdict.LIN:
		timed = true
		r.opt.Sessions = record.SessionsIgnore
		if err := r.oneObjectEach(); err != nil {
			return err
		}
	}
	r.exclusive = level == verdict.SI || level == verdict.StrongSI
	if err := r.place(); err != nil {
		return err
	}
	if err := r.sessions(); err != nil {
		return err
	}
	if timed {
		if err := r.realTime(); err != nil {
			return err
		}
	}
	return r.prepare()
}

// replay is one order held against one history.
type replay struct {
	txns      []record.Transaction
	order     []verdict.Event
	opt       record.Assumptions
	serial    bool // one event per transaction, start and commit at once
	exclusive bool // writers of a key must not overlap

	start, commit []int32 // by transaction, its events' places; none if it has none

	keys     []int32 // of all operations, as indexes of objects
	first    []int   // by transaction, the place of its first operation in keys
	objects  []object
	overlays []overlay // by object; empty between events
	appended map[element]struct{}
	claims   map[written]*claim
	putBack  map[written]bool // values that are written, and that nobody made
}

// none stands for no place, and for no transaction.
const none = -1

// fail is an Error at an event.
func (r *replay) fail(event int32, txn, op int, format string, args ...any) *Error {
	return &Error{Event: int(event), Txn: r.who(txn), Op: op, What: fmt.Sprintf(format, args...)}
}

// who names a transaction in a message.
func (r *replay) who(n int) string {
	t := &r.txns[n]
	if t.ID != "" {
		return t.ID
	}
	place := 0
	for m := range n {
		if r.txns[m].Session == t.Session {
			place++
		}
	}
	return fmt.Sprintf("transaction %d of session %q", place, t.Session)
}

// place finds each transaction's events.
func (r *replay) place() *Error {
	r.start = slices.Repeat([]int32{none}, len(r.txns))
	r.commit = slices.Repeat([]int32{none}, len(r.txns))
	for i, e := range r.order {
		if int64(e.Txn) >= int64(len(r.txns)) {
			err := fault("transaction %d of %d", e.Txn, len(r.txns))
			err.Event = i
			return err
		}
		n, at := int(e.Txn), int32(i)
		switch {
		case r.txns[n].Status == record.Aborted:
			return r.fail(at, n, -1, "is aborted, and can't be part of an order")
		case r.serial && !e.Commit:
			return r.fail(at, n, -1, "starts, and a serial order, or one of commits, has no starts")
		case e.Commit && r.commit[n] >= 0:
			return r.fail(at, n, -1, "commits a second time")
		case !e.Commit && r.start[n] >= 0:
			return r.fail(at, n, -1, "starts a second time")
		case !r.serial && e.Commit && r.start[n] < 0:
			return r.fail(at, n, -1, "commits before it starts")
		}
		if e.Commit {
			r.commit[n] = at
		}
		if !e.Commit || r.serial {
			r.start[n] = at
		}
	}
	for n := range r.txns {
		if r.commit[n] < 0 && (r.txns[n].Status == record.Committed || r.start[n] >= 0) {
			return r.fail(none, n, -1, "never commits in this order")
		}
	}
	return nil
}

// sessions checks that session order is kept.
func (r *replay) sessions() *Error {
	if r.opt.Sessions == record.SessionsIgnore {
		return nil
	}
	last := map[string]int{} // per session, the transaction that commits last of those before
	for n := range r.txns {
		t := &r.txns[n]
		if r.commit[n] < 0 {
			continue
		}
		p, ok := last[t.Session]
		if ok && r.start[n] < r.commit[p] {
			return r.fail(r.start[n], n, -1, "starts before %s commits, its predecessor in session %q", r.who(p), t.Session)
		}
		if t.Status != record.Unknown && (!ok || r.commit[p] < r.commit[n]) {
			last[t.Session] = n
		}
	}
	return nil
}

// oneObjectEach checks that each transaction keeps to one object, as lin is
// about.
func (r *replay) oneObjectEach() *Error {
	for n := range r.txns {
		for j := range r.txns[n].Ops {
			if ops := r.txns[n].Ops; record.Object(ops[j].Key) != record.Object(ops[0].Key) {
				return r.fail(none, n, j, "uses %q beside %q: lin is of transactions on one object each", ops[j].Key, ops[0].Key)
			}
		}
	}
	return nil
}
