// Package record holds the values that every other package speaks of: the
// transaction as a client saw it, its micro-operations, and the header that
// says how a history is to be read. It imports nothing of ours and does no I/O;
// bytes become records in ingest/codec.
//
// A transaction is what one client did between begin and the answer to its
// commit:
//
//	Transaction{DB: "orders", Session: "api-3/7", Seq: 42, ID: "api-3/7#42",
//	    Start: 1732160000123456789, End: 1732160000125000000, HasTimes: true,
//	    Status: Committed,
//	    Ops: []Op{{Kind: Read, Key: "acct:1", Value: Int(100)},
//	              {Kind: Write, Key: "acct:1", Value: Int(90)}}}
package record

import (
	"fmt"
	"slices"
	"strings"
)

// Named is the value that has the name, of those that are called so in turn.
func Named[T ~uint8](names []string, name string) (T, bool) {
	i := slices.Index(names, name)
	return T(max(i, 0)), i >= 0
}

// DefaultDB is the history a record belongs to when it names none.
const DefaultDB = "default"

// Status is the outcome of a transaction as its client learned it.
type Status uint8

// The outcomes.
const (
	// Committed: the database said so.
	Committed Status = iota
	// Aborted: the transaction definitely did not take effect.
	Aborted
	// Unknown: the client never learned; it may take effect at any later time.
	Unknown
)

var statusNames = [...]string{"committed", "aborted", "unknown"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// OpKind says what a micro-operation does.
type OpKind uint8

// The micro-operations, as Jepsen names them, and Vbox's predicate forms.
const (
	Read          OpKind = iota // "r": Key had Value
	Write                       // "w": Key is given Value (Null deletes)
	Append                      // "append": Value is added to the list at Key
	PredicateRead               // "rp": the rows of table Key matching Where were Value (an Object)
	// PredicateWrite, "wp": the rows of table Key matching Where were given the member "set" of Value (an Object), or
	// deleted if there is "delete"; member Hit has their keys, if they are known.
	PredicateWrite
)

// Hit is the member of a predicate write's value that names the rows it hit.
const Hit = "hit"

var opNames = [...]string{"r", "w", "append", "rp", "wp"}

func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// Writes tells whether an operation gives its key a value or an element.
func (k OpKind) Writes() bool { return k == Write || k == Append }

// ParseOpKind is the inverse of String.
func ParseOpKind(s string) (OpKind, bool) { return Named[OpKind](opNames[:], s) }

// Op is one micro-operation, in program order within its transaction.
type Op struct {
	Kind  OpKind
	Key   string // the object; for predicate operations the table
	Value Value  // what was read or written; rows for predicate operations
	Where string // the predicate's text, empty for all others
}

// Cell is a value of a key, or an element of the list there.
type Cell struct {
	Key   string
	Value Value
}

// Cell is what was read, written or appended.
func (o *Op) Cell() Cell { return Cell{o.Key, o.Value} }

// Transaction is one transaction as its client saw it.
type Transaction struct {
	DB      string // the history it belongs to; never empty once decoded
	Session string // transactions of a session follow each other
	Seq     int64  // place in the session, from 0 on, counting aborted ones; meaningful if HasSeq
	ID      string // unique in its history
	// Node is the server that it ran on, and Statements the text of what it asked for, such as its SQL, if these are
	// known. They are shown, and change no verdict. Statements has no U+0000.
	Node, Statements string
	// XID is the database's own number of it, by which its changes are found in the database's log; empty: not known.
	XID string
	// LSN is where in that log it committed; 0: not known. Of two transactions that wrote one key the one with the
	// smaller LSN wrote first. Of others it says nothing.
	LSN int64
	// Start and End are the client's clock at begin and at the commit's
	// answer, in nanoseconds; meaningful if HasTimes, and then Start <= End.
	Start, End int64
	HasSeq     bool
	HasTimes   bool
	Status     Status
	Ops        []Op
}

// Label is Node and Statements as one text.
func (t *Transaction) Label() string {
	if t.Statements == "" && strings.IndexByte(t.Node, 0) < 0 {
		return t.Node
	}
	return t.Node + "\x00" + t.Statements
}

// SetLabel is the inverse of Label.
func (t *Transaction) SetLabel(label string) {
	t.Node, t.Statements = label, ""
	if i := strings.LastIndexByte(label, 0); i >= 0 {
		t.Node, t.Statements = label[:i], label[i+1:]
	}
}

// Initial says what a key holds before anybody wrote it.
type Initial uint8

// The possibilities of `--initial`.
const (
	// InitialAny: one unknown initial version per key, a candidate only for
	// values that nobody wrote who had not read them there before.
	InitialAny Initial = iota
	// InitialAbsent: every key starts as Null.
	InitialAbsent
	// InitialZero: every key starts as the integer 0.
	InitialZero
)

var initialNames = [...]string{"any", "absent", "zero"}

func (i Initial) String() string { return initialNames[i] }

// ParseInitial is the inverse of String.
func ParseInitial(s string) (Initial, bool) { return Named[Initial](initialNames[:], s) }

// Clock says what the recorded times may be used for.
type Clock uint8

// The possibilities of `--clock`; docs/soundness.md.
const (
	// ClockPrune uses times to cut work and never to change a verdict.
	ClockPrune Clock = iota
	// ClockEnforce makes real-time order part of the level: ser is read as
	// sser and si as strong-si.
	ClockEnforce
	// ClockIgnore uses no times at all.
	ClockIgnore
	// ClockDatabase: starts and commits are instants of the database's own clock, such as TiDB's or Dgraph's timestamps.
	// si and strong-si are held to their order, ser and sser to that of the commits (TimeKiller, AION): a transaction
	// reads what was committed before its start and, at ser, before its commit. What happens at one instant is in no
	// order.
	ClockDatabase
)

// Enforces tells whether real-time order is part of si and ser: they are read as strong-si and sser.
func (c Clock) Enforces() bool { return c == ClockEnforce || c == ClockDatabase }

var clockNames = [...]string{"prune", "enforce", "ignore", "database"}

func (c Clock) String() string { return clockNames[c] }

// ParseClock is the inverse of String.
func ParseClock(s string) (Clock, bool) { return Named[Clock](clockNames[:], s) }

// Coverage says whether the input holds every write since the initial state.
type Coverage uint8

// The possibilities of `coverage`.
const (
	// CoverageComplete: a value that nobody wrote is thin air.
	CoverageComplete Coverage = iota
	// CoveragePartial: such a value belongs to a writer that was not seen.
	CoveragePartial
)

var coverageNames = [...]string{"complete", "partial"}

func (c Coverage) String() string { return coverageNames[c] }

// ParseCoverage is the inverse of String.
func ParseCoverage(s string) (Coverage, bool) { return Named[Coverage](coverageNames[:], s) }

// Tables are tables whose coverage is not that of the whole: by name, whether all writes of their rows since they were
// empty are in the input. Of one that is complete every row is absent at first, whatever is said of other keys.
type Tables map[string]Coverage

// Of is the coverage of a key's table, if it is one of them: the keys of a table's rows begin with its name and a
// colon. A key may be named as well.
func (t Tables) Of(key string) (c Coverage, named bool) {
	if len(t) == 0 {
		return 0, false
	}
	if c, named = t[key]; named {
		return c, true
	}
	for i := range len(key) {
		if key[i] == ':' {
			if c, named = t[key[:i]]; named {
				return c, true
			}
		}
	}
	return 0, false
}

// Has tells whether one of them has a coverage.
func (t Tables) Has(c Coverage) bool {
	for _, other := range t {
		if other == c {
			return true
		}
	}
	return false
}

// Sessions says whether session order is part of the levels.
type Sessions uint8

// The possibilities of `--sessions`.
const (
	SessionsKeep   Sessions = iota // as PolySI, dbcop, AWDIT and Cobra have it
	SessionsIgnore                 // as Elle has it
)

var sessionsNames = [...]string{"keep", "ignore"}

func (s Sessions) String() string { return sessionsNames[s] }

// ParseSessions is the inverse of String.
func ParseSessions(s string) (Sessions, bool) { return Named[Sessions](sessionsNames[:], s) }

// Header is the line a history file may open with: what a reader must assume
// to judge it, see Assumptions. A nil field is not stated.
type Header struct {
	Initial  *Initial
	Sessions *Sessions
	Clock    *Clock
	MaxSkew  *int64 // nanoseconds
	Coverage *Coverage
	Tables   Tables
	// UniqueValues is Assumptions.UnseenUnique.
	UniqueValues *bool
}

// Position says where a record came from, for messages that a person can act
// on: a file and line, or a topic, partition and offset.
type Position struct {
	Source    string // file name, "-" for standard input, or topic
	Kafka     bool
	Partition int
	Offset    int64 // Kafka offset, or byte offset of the line in a file
	Line      int64 // 1-based line of a file; 0 for Kafka
}

func (p Position) String() string {
	if p.Kafka {
		return fmt.Sprintf("%s/%d@%d", p.Source, p.Partition, p.Offset)
	}
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d", p.Source, p.Line)
	}
	if p.Offset > 0 { // the line is not known any more
		return fmt.Sprintf("%s at byte %d", p.Source, p.Offset)
	}
	return p.Source
}

// Object is the object that a key is part of, of which lin speaks: what comes
// before the first " = " of it. A register that says whether another one holds a
// value, as failed compare-and-sets are recorded, is named after that one.
func Object(key string) string {
	object, _, _ := strings.Cut(key, " = ")
	return object
}
