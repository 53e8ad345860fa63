package oracle

import (
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// A judge searches one level for an execution that explains the history. The
// events it returns are a witness where the level has one that the replay
// checker understands, else nil.
type judge func(h *history) ([]verdict.Event, bool)

// judges has every level.
var judges = map[verdict.Level]judge{
	verdict.SSER:     func(h *history) ([]verdict.Event, bool) { return h.serial(true) },
	verdict.SER:      func(h *history) ([]verdict.Event, bool) { return h.serial(h.opt.Clock.Enforces()) },
	verdict.StrongSI: func(h *history) ([]verdict.Event, bool) { return h.interleave(true, true) },
	verdict.SI: func(h *history) ([]verdict.Event, bool) {
		return h.interleave(true, h.opt.Clock.Enforces())
	},
	verdict.PC: func(h *history) ([]verdict.Event, bool) { return h.interleave(false, false) },
	verdict.CC: axioms(axiom{visible: visibleByPath}),
	verdict.RA: axioms(axiom{visible: visibleAtOnce}),
	verdict.RC: axioms(axiom{visible: visibleByReads}),
	verdict.G1: axioms(axiom{visible: visibleNever, anyListOrder: true}),
	verdict.LIN: func(h *history) ([]verdict.Event, bool) {
		alone := *h
		alone.opt.Sessions = record.SessionsIgnore
		return alone.serial(true)
	},
}

// Levels lists the levels that the oracle judges a history at, in the order of
// verdict: all of them, but lin only if every transaction keeps to one object.
func Levels(txns []record.Transaction) []verdict.Level {
	oneKey := true
	for _, t := range txns {
		for _, op := range t.Ops {
			oneKey = oneKey && !isPredicate(&op) && record.Object(op.Key) == record.Object(t.Ops[0].Key)
		}
	}
	return slices.DeleteFunc(verdict.Levels(), func(l verdict.Level) bool { return l == verdict.LIN && !oneKey })
}

// Supported tells why a history is beyond the oracle, or returns nil.
func Supported(txns []record.Transaction) error {
	if len(txns) > 16 {
		return fmt.Errorf("oracle: %d transactions are too many to try every order; use at most 16, better 6", len(txns))
	}
	keys := map[string]bool{}
	for _, t := range txns {
		for i, op := range t.Ops {
			if keys[op.Key] = true; len(keys) > 64 {
				return fmt.Errorf("oracle: %s, operation %d: more than 64 keys; leave out those that do not matter", t.ID, i)
			}
			if isPredicate(&op) {
				if err := supportedPredicate(&op); err != nil {
					return fmt.Errorf("oracle: %s, operation %d: %w", t.ID, i, err)
				}
			}
		}
	}
	return nil
}

// Check judges a history at every level of Levels. Transactions of one session
// stand in session order. It panics on what is not Supported, as only tests
// call it.
func Check(txns []record.Transaction, opt record.Assumptions) map[verdict.Level]bool {
	out := make(map[verdict.Level]bool, len(judges))
	for _, l := range Levels(txns) {
		_, out[l] = Explain(l, txns, opt)
	}
	return out
}

// Holds judges one level of Levels.
func Holds(l verdict.Level, txns []record.Transaction, opt record.Assumptions) bool {
	_, ok := Explain(l, txns, opt)
	return ok
}

// HoldsInTime judges pc, si and ser with real-time order added: whether some
// execution explains the history that also keeps to the clocks.
func HoldsInTime(l verdict.Level, txns []record.Transaction, opt record.Assumptions) bool {
	if err := Supported(txns); err != nil {
		panic(err)
	}
	h, holds := newHistory(txns, opt), false
	switch l {
	case verdict.PC, verdict.SI:
		_, holds = h.interleave(l == verdict.SI, true)
	case verdict.SER:
		_, holds = h.serial(true)
	default:
		panic(fmt.Sprintf("oracle: level %v has no counterpart in real time", l))
	}
	return holds
}

// Explain judges one level of Levels and returns, if it holds, an execution
// that shows so: for ser and sser each included transaction once, with Commit
// set (and likewise for lin); for si, strong-si and pc its start and its commit; for the other levels
// nil. Event.Txn indexes txns.
func Explain(l verdict.Level, txns []record.Transaction, opt record.Assumptions) ([]verdict.Event, bool) {
	if err := Supported(txns); err != nil {
		panic(err)
	}
	if !slices.Contains(Levels(txns), l) {
		panic(fmt.Sprintf("oracle: level %v is not judged for this history; use one of %v", l, Levels(txns)))
	}
	return judges[l](newHistory(txns, opt))
}

// HoldsGuarantee judges one of the session guarantees: there is a commit order
// as its axiom asks for. It panics on what is not Supported.
func HoldsGuarantee(g verdict.Guarantee, txns []record.Transaction, opt record.Assumptions) bool {
	if err := Supported(txns); err != nil {
		panic(err)
	}
	return newHistory(txns, opt).axiomatic(guarantees[g])
}
