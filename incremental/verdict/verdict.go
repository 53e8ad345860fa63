// Package verdict holds what the engine says: levels, outcomes, edges with
// their reasons, and violations. It is all of the engine that package alerts
// may import. Transactions are named by TxnID, the dense number the engine gave
// them in the order of Step; whoever fed the engine keeps the records.
package verdict

import (
	"fmt"
	"slices"
)

// TxnID numbers the transactions of one engine in the order they were stepped,
// from 0.
type TxnID uint32

// NoTxn stands for no transaction: the initial state, or a writer not seen.
const NoTxn = ^TxnID(0)

// Level is an isolation level; docs/levels.md says what each asks for.
type Level uint8

// The levels. Their order is none of strength, which Implies has; their numbers are in checkpoints, and stay.
const (
	RC Level = iota
	RA
	CC
	G1
	PC
	SI
	StrongSI
	SER
	SSER
	LIN
	numLevels
)

var levelNames = [...]string{"rc", "ra", "cc", "g1", "pc", "si", "strong-si", "ser", "sser", "lin"}

func (l Level) String() string {
	if l < numLevels {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// ParseLevel is the inverse of String; what a person writes is for FindLevel.
func ParseLevel(s string) (Level, bool) {
	i := slices.Index(levelNames[:], s)
	return Level(max(i, 0)), i >= 0
}

// Levels lists every level.
func Levels() []Level { return upTo(numLevels) }

// upTo are all values below n.
func upTo[T ~uint8](n T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(i)
	}
	return out
}

// Names are those of levels.
func Names(ls []Level) []string {
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = l.String()
	}
	return out
}

// directlyWeaker[l] are the levels that l implies at once; Implies is its
// closure: sser => ser => si => pc => cc => ra => rc => g1 and
// sser => strong-si => si. LIN is of another kind and implies nothing here.
var directlyWeaker = [numLevels][]Level{
	SSER: {SER, StrongSI}, SER: {SI}, StrongSI: {SI}, SI: {PC}, PC: {CC}, CC: {RA}, RA: {RC}, RC: {G1},
}

// Implies tells whether every history that satisfies l satisfies m as well.
func (l Level) Implies(m Level) bool {
	if l == m {
		return true
	}
	for _, w := range directlyWeaker[l] {
		if w.Implies(m) {
			return true
		}
	}
	return false
}

// OrdersCommits tells whether a level is about one order of whole transactions: ser, sser and lin.
func (l Level) OrdersCommits() bool { return l == SER || l == SSER || l == LIN }

// RealTime tells whether times are part of a level.
func (l Level) RealTime() bool { return l == StrongSI || l == SSER || l == LIN }

// MixOrders tells whether levels with an order of whole transactions are asked beside those with one of starts and
// commits (si, strong-si). By the database's own clock they say nothing of each other, though elsewhere the former
// imply the latter.
func MixOrders(levels []Level) bool {
	split := func(l Level) bool { return l == SI || l == StrongSI }
	return slices.ContainsFunc(levels, split) && slices.ContainsFunc(levels, Level.OrdersCommits)
}

// Maximal returns those of ls that no other level of ls implies, in order.
func Maximal(ls []Level) []Level {
	var out []Level
	for _, l := range ls {
		top := true
		for _, m := range ls {
			if m != l && m.Implies(l) {
				top = false
			}
		}
		if top {
			out = append(out, l)
		}
	}
	return out
}

// Outcome is what is known of a level: "don't know" is an answer.
type Outcome uint8

// The outcomes. Unknown is never reported as satisfied.
const (
	Satisfied Outcome = iota
	Violated
	Unknown
	NotApplicable
)

var outcomeNames = [...]string{"satisfied", "violated", "unknown", "not-applicable"}

func (o Outcome) String() string { return outcomeNames[o] }

// Reason says why something is left open; a closed set.
type Reason uint8

// The reasons, weakest first: where several apply the largest is reported.
const (
	NoReason   Reason = iota
	NotChecked        // the history has what is not checked yet
	Forgotten         // what would decide it was given up
	Conflicts         // the solver's budget ended
	Memory
	Timeout
)

var reasonNames = [...]string{"", "not-checked", "forgotten", "conflicts", "memory", "timeout"}

func (r Reason) String() string { return reasonNames[r] }

// EdgeType is the kind of a dependency.
type EdgeType uint8

// The dependencies of Adya's graphs, session order and real-time order.
const (
	SO EdgeType = iota // session order
	RT                 // real-time order: From ended before To started
	WR                 // read-from: To read what From wrote
	WW                 // version order: To's version of Key follows From's
	RW                 // anti-dependency: From read a version that To's follows
)

var edgeTypeNames = [...]string{"so", "rt", "wr", "ww", "rw"}

func (t EdgeType) String() string { return edgeTypeNames[t] }

// Why says how an edge is known; a closed set.
type Why uint8

// The reasons of edges.
const (
	// BySession: From precedes To in their session.
	BySession Why = iota
	// ByClock: From's end lies before To's start by more than the skew.
	ByClock
	// ByValue: the value read names its writer.
	ByValue
	// ByOverwrite: To read From's version (or, for RW, the version that From
	// read) and overwrote it; nothing fits between.
	ByOverwrite
	// ByInitial: what From read is the initial version, the first of all.
	ByInitial
	// ByOrder: the opposite version order would close the cycle in Because.
	ByOrder
	// ByCase: one case of an order, or of a read's writer, that is not known; the
	// other cases are other branches of the violation.
	ByCase
	// ByElimination: several transactions may have written the value that was
	// read, and all but From would close the cycles in Others.
	ByElimination
	// ByList: a list that was read shows the order of its elements.
	ByList
	// ByLog: the database's log shows the order of the two writes.
	ByLog
)

var whyNames = [...]string{"session", "clock", "value", "overwrite", "initial", "order", "case", "elimination", "list", "log"}

func (w Why) String() string { return whyNames[w] }

// Edge is a dependency between two transactions and the reason it is known.
type Edge struct {
	From, To TxnID
	Type     EdgeType
	Key      string // empty for SO and RT
	Why      Why
	// Because is, for ByOrder edges in an explanation, the cycle that the
	// opposite version order would close; nil when it is not spelled out.
	Because []Edge
	// Others are, for ByElimination edges in an explanation, the cycles that the
	// other candidate writers would close, one each; nil when not spelled out.
	Others [][]Edge
}

// Kind is what kind of violation was found; a closed set.
type Kind uint8

// The kinds. The first group are the read anomalies of Read Consistency and
// INT, found in one transaction and its writer; Divergence is MTC's: two
// transactions read one version and both overwrote it; Cycle is a cycle of
// known edges; Unsatisfiable means that every choice of the remaining version
// orders, and of the remaining reads' writers, closes some cycle.
// IncompatibleOrder and DuplicateElements are Elle's: two reads of a list of
// which neither is a prefix of the other, and a list that holds an element more
// often than it was appended.
const (
	ThinAirRead Kind = iota
	AbortedRead
	FutureRead
	NotMyLastWrite
	NotMyOwnWrite
	IntermediateRead
	NonRepeatableRead
	Divergence
	Cycle
	Unsatisfiable
	IncompatibleOrder
	DuplicateElements
)

var kindNames = [...]string{"thin-air-read", "aborted-read", "future-read", "not-my-last-write", "not-my-own-write",
	"intermediate-read", "non-repeatable-reads", "divergence", "cycle", "unsatisfiable", "incompatible-order",
	"duplicate-elements"}

func (k Kind) String() string { return kindNames[k] }

// Violation is one proved breach.
type Violation struct {
	Kind Kind
	// Level is the weakest level, of those the engine was asked for, that is
	// proved broken.
	Level Level
	// Txns are the transactions that take part, the reader first for read
	// anomalies, in the order of the cycle for cycles.
	Txns []TxnID
	// Key and Read locate a read anomaly or a divergence: the operation at
	// index Read of Txns[0] is the offending read. Read is -1 if there is none, or
	// if it is the transaction's first read of Key.
	Key  string
	Read int
	// Cycle closes: Cycle[i].To == Cycle[i+1].From, around. Empty for read
	// anomalies and Unsatisfiable.
	Cycle []Edge
	// Cases are, for Unsatisfiable, the cycles that the choices run into.
	Cases [][]Edge
	// Evidence are transactions sufficient to prove it: their records alone,
	// read with partial coverage (or complete for ThinAirRead), are violated.
	// It contains Txns. Sorted.
	Evidence []TxnID
	// Untimed are those of Evidence whose recorded times say nothing, as they contradict
	// what else their session did: that may not be in the evidence, and then nothing would
	// show it.
	Untimed []TxnID
	// Exhibits say which operations of the evidence the proof needs, by
	// transaction, in the order of Evidence. Records cut down to them are
	// violated too, and every read left in them finds its writer among them
	// unless it read the initial state or, with partial coverage, an unseen
	// writer. Empty: all operations of Evidence, which then is all that the engine knows.
	Exhibits []Exhibit
	// Torn: where coverage is declared to be complete, the exhibits prove it only with what an engine that goes on in place
	// of another knows beside them: as a history of their own they would need partial coverage.
	Torn bool
	// ClockDependent: the proof needs the recorded times.
	ClockDependent bool
	// Open are levels that may hold though the evidence breaks them: it says more than is known, such as an order of
	// the rows of one statement. Level is none of them.
	Open []Level
}

// Exhibit is the part of a transaction that a proof needs.
type Exhibit struct {
	Txn TxnID
	// Reads are the keys whose reads before any own write to them are needed;
	// Writes those whose writes are; All those of which every operation is.
	Reads, Writes, All []string
	// Open are the places of reads of these keys that are no part of it, as others may come who wrote what they
	// returned.
	Open []int
}

// Result is what is known of one level.
type Result struct {
	Level   Level
	Outcome Outcome
	// Reason is why something is left open: that is what makes it Unknown. Of an engine
	// that is online it is set of a level that is Violated, too: there may be other
	// violations than those that were found. (In batch nothing more is looked for.)
	Reason     Reason
	Decided    float64 // with a Reason: the share that was decided, 0 to 1
	Count      int     // with a Reason: how many operations, transactions or constraints were not
	Pending    int     // of these, how many more input, or its end, may decide
	Violations []Violation
	// Unexplained is how many more signs of violations were met, of which it is only known that they are there, as it
	// would have taken too long to look for all of them, or what shows them is in other parts of the history.
	Unexplained int
	// RealTimeOnly: satisfied, but an order kept to the clocks is not; a note.
	RealTimeOnly bool
	// NoTimes: a real-time level was asked of a history without times, so that
	// real-time order is empty.
	NoTimes bool
	// Disbelieved is how many transactions have times that a real-time level does not use, as they contradict
	// those of their session's transactions before.
	Disbelieved int
	// Partial: complete only under the assumptions named in docs/soundness.md.
	Partial bool
	// ProvedBy is, of a satisfied verdict, the level that was found to hold: Level, or one that implies it.
	ProvedBy Level
	// Order is the proof of a satisfied verdict in batch, of ProvedBy.
	// For SER, SSER and LIN it is the included transactions in serial order; for PC, SI and
	// StrongSI, start and commit events; for G1, RC, RA and CC the commit order.
	Order []Event
	// Sources say whom reads are from of which a commit order leaves that open.
	Sources []Source
	// Guarantees, of cc that does not hold, are the session guarantees; nil: they were not asked for. Where it holds all do.
	Guarantees []GuaranteeResult
	Stats      Stats
}

// OpenForGood tells whether something is left open that no more input decides.
func (r *Result) OpenForGood() bool {
	return r.Reason != NoReason && (r.Count > r.Pending || r.Pending == 0)
}

// Infer decides what is open by what is decided: what breaks a level breaks all that imply it, and what satisfies it
// satisfies all that it implies, which its order proves as well.
func Infer(open, decided []Result) {
	for i := range open {
		r := &open[i]
		for _, x := range decided {
			switch {
			case r.Outcome != Unknown:
			case x.Outcome == Violated && r.Level.Implies(x.Level):
				r.Outcome, r.Violations = Violated, x.Violations
			case x.Outcome == Satisfied && x.Level.Implies(r.Level):
				r.Outcome, r.Reason, r.Count, r.Decided = Satisfied, NoReason, 0, 0
				r.ProvedBy, r.Order, r.Sources, r.Partial = x.ProvedBy, x.Order, x.Sources, x.Partial
			}
		}
	}
}

// Event is one step of a satisfied verdict's proof. For SER and the weak levels
// every transaction occurs once with Commit set; for SI and PC once without (its
// start) and once with.
type Event struct {
	Txn    TxnID
	Commit bool
}

// Source is whom a transaction's read is from.
type Source struct {
	Txn TxnID
	// Op is the operation, from 0, or -1: all that read Key, which it has not written by then.
	Op     int
	Key    string
	Writer TxnID // NoTxn: the initial state
}

// Stats count the engine's work for one level.
type Stats struct {
	Choices     int `json:"choices"`     // reads with several possible writers
	Eliminated  int `json:"eliminated"`  // of these, decided by reachability
	Constraints int `json:"constraints"` // undecided block pairs that were made
	Pruned      int `json:"pruned"`      // of these, decided by reachability
	Residual    int `json:"residual"`    // of these, left to completion and solver
	Conflicts   int `json:"conflicts"`   // of the solver
	Inferred    int `json:"inferred"`    // commit orders that a weak level's axiom asked for
}

// Guarantee is one of the four session guarantees (Terry et al., "Session
// Guarantees for Weakly Consistent Replicated Data", 1994), as axioms on the
// commit order like those of the weak levels: if t3 reads x from t1, another
// writer t2 of x commits before t1 whenever
type Guarantee uint8

// The session guarantees. Causal consistency is all of them and their closure.
const (
	ReadYourWrites  Guarantee = iota // t2 precedes t3 in its session
	MonotonicReads                   // a predecessor of t3 in its session read from t2
	MonotonicWrites                  // t3 reads from a transaction that t2 precedes in its session
	// t3 reads from a transaction that itself, or a predecessor in its session, read from t2
	WritesFollowReads
	numGuarantees
)

var guaranteeNames = [...]string{"read-your-writes", "monotonic-reads", "monotonic-writes", "writes-follow-reads"}

func (g Guarantee) String() string { return guaranteeNames[g] }

// Guarantees lists the session guarantees.
func Guarantees() []Guarantee { return upTo(numGuarantees) }

// GuaranteeResult is what is known of a session guarantee. Violations has one
// witness where it is violated.
type GuaranteeResult struct {
	Guarantee  Guarantee
	Outcome    Outcome
	Violations []Violation
}
