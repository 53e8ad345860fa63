package name

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// Lookup finds the record of a transaction; false when it is not kept. Names
// do without records where they must, with less precision.
type Lookup func(verdict.TxnID) (*record.Transaction, bool)

// Find is the lookup itself; a nil one, and verdict.NoTxn, have no records.
func (l Lookup) Find(id verdict.TxnID) (*record.Transaction, bool) {
	if l == nil || id == verdict.NoTxn {
		return nil, false
	}
	return l(id)
}

// Name is what a violation is called and what it means for the levels that
// were promised.
type Name struct {
	// Name is in kebab case and one of those that the package documentation
	// lists.
	Name string
	// Item is, of a name that only what is about which rows there are has, what the same is called of keys.
	Item string
	// Adya is the phenomenon as Elle writes it: G0, G1a, G1b, G1c, G-single,
	// G-nonadjacent, G2-item, with -process or -realtime; internal for a
	// transaction that contradicts itself. Empty where there is none.
	Adya string
	// Divergence: two transactions read one version and both overwrote it, which is
	// MTC's pattern of a lost update (Definition 10).
	Divergence bool
	// Phantom: what somebody missed, or did not see again, is whether a row matches a condition.
	Phantom bool
	// Again: in a phantom of two transactions, it is a row that the reader did see as well.
	Again bool
	// Guarantee is the session guarantee that is broken, as in read-your-writes;
	// empty where it is none of the four.
	Guarantee string
	// Weakest is the weakest level that the violation is known to break. It is
	// never lin, which stands apart: what breaks lin breaks sser too.
	Weakest verdict.Level
	// Breaks are the levels of those asked for that are broken, weakest first.
	Breaks []verdict.Level
	// ClockDependent: it is a violation only if the recorded times are right.
	ClockDependent bool
	// Instants: the recorded times are the database's own, which it answers for.
	Instants bool
	// Unless is what keys would have to hold before anybody writes them for it to be none; InitialAny: whatever
	// they hold, or what is declared of it, it is one.
	Unless   record.Initial
	Severity Severity
}

// Undeclared says in a sentence what a violation assumes of keys that nobody has written, if it does.
func Undeclared(unless record.Initial) string {
	if unless == record.InitialAny {
		return ""
	}
	value := map[record.Initial]string{record.InitialAbsent: "null", record.InitialZero: "0"}[unless]
	return fmt.Sprintf("What a key holds before anybody writes it is not declared. If it is %s, this is no violation: "+
		"say --initial %v, or initial: %v.", value, unless, unless)
}

// Asked is what the database promises, and what order the clocks prove.
type Asked struct {
	Levels []verdict.Level
	// Clock: if it Enforces, si means strong-si and ser means sser.
	Clock record.Clock
}

// Of names a violation. It never fails: what fits no better name has the
// general one of its kind. Linear in the size of the violation.
func Of(v verdict.Violation, lookup Lookup, asked Asked) Name {
	k := newKinds(v, lookup)
	c := k.classify()
	n := Name{Name: c.name, Adya: c.adya, Guarantee: c.guarantee, Instants: asked.Clock == record.ClockDatabase}
	n.ClockDependent = (v.ClockDependent || c.realTime) && !n.Instants
	n.Divergence = n.Name == "lost-update" && k.diverges()
	n.Phantom = phantom(v)
	n.call(n.Name)
	n.Again = n.Name == "phantom" && again(v)
	if n.Weakest = weaker(c.weakest, v.Level); slices.Contains(v.Open, n.Weakest) {
		n.Weakest = v.Level
	}
	n.Breaks = Breaks(n.Weakest, v.Level, asked)
	n.Severity = severity(n)
	return n
}

// phantom tells whether a violation is about what matches a condition.
func phantom(v verdict.Violation) bool {
	if len(v.Cycle) == 0 && len(v.Cases) == 0 {
		return predicate.IsRegister(v.Key)
	}
	return slices.ContainsFunc(slices.Concat(append(slices.Clip(v.Cases), v.Cycle)...),
		func(e verdict.Edge) bool { return e.Type == verdict.RW && predicate.IsRegister(e.Key) })
}

// again tells whether two transactions' cycle is about one row, which was seen as one of them left it, and missed.
func again(v verdict.Violation) bool {
	if len(v.Cycle) != 2 || v.Cycle[0].Type == v.Cycle[1].Type {
		return false
	}
	a, b := v.Cycle[0].Key, v.Cycle[1].Key
	return a != "" && b != "" && rowOf(a) == rowOf(b)
}

// rowOf is the row that a key is, or is a register of; of one with columns, these are left out.
func rowOf(key string) string {
	row, _, is := predicate.Register(key)
	if at := strings.LastIndex(row, " ("); is && at > 0 && strings.HasSuffix(row, ")") {
		row = row[:at]
	}
	return row
}

// ofPredicates are the names of what is about which rows match a condition, by what the same is called of rows.
var ofPredicates = map[string]string{
	"fractured-read": "phantom", "non-repeatable-reads": "phantom", "read-skew": "phantom",
	"prefix-violation": "phantom", "snapshot-cycle": "phantom", "serialization-cycle": "phantom",
	"lost-update": "predicate-lost-update", "write-skew": "predicate-write-skew",
}

// call gives what is called name among keys its name.
func (n *Name) call(name string) {
	n.Name, n.Item = name, ""
	if of, is := ofPredicates[name]; is && n.Phantom {
		n.Name, n.Item = of, name
	}
}

// Shape is the name that the same has if it is about keys.
func (n Name) Shape() string { return cmp.Or(n.Item, n.Name) }

// Phenomenon is Adya's name of it; of predicates G2, of which G2-item is the part that has none.
func (n Name) Phenomenon() string {
	if base, suffix := unsuffixed(n.Adya); n.Phantom && base == "G2-item" {
		return "G2" + suffix
	}
	return n.Adya
}

// kinds classifies one violation.
type kinds struct {
	v      verdict.Violation
	lookup Lookup
	// How many more edges of reasons may be looked at for levels, and for clocks.
	levels, clocks *int
}

func newKinds(v verdict.Violation, lookup Lookup) kinds {
	levels := reasonsMax + edgesOf(v)
	clocks := levels
	return kinds{v: v, lookup: lookup, levels: &levels, clocks: &clocks}
}

// edgesOf is the number of edges of a violation's cycles, without reasons: they may be
// as many as the window has transactions, and all of them count.
func edgesOf(v verdict.Violation) int {
	n := len(v.Cycle)
	for _, c := range v.Cases {
		n += len(c)
	}
	return n
}

// class is what classify found.
type class struct {
	name, adya, guarantee string
	weakest               verdict.Level
	realTime              bool // an edge of the proof is by the clock
}

// intra are the kinds that are found in one read: no cycle to look at.
// Levels: design, "Levels imply levels".
var intra = map[verdict.Kind]class{
	verdict.ThinAirRead:       {name: "thin-air-read", weakest: verdict.G1},
	verdict.AbortedRead:       {name: "aborted-read", adya: "G1a", weakest: verdict.G1},
	verdict.FutureRead:        {name: "future-read", adya: "internal", weakest: verdict.G1},
	verdict.NotMyLastWrite:    {name: "not-my-last-write", adya: "internal", weakest: verdict.G1},
	verdict.NotMyOwnWrite:     {name: "not-my-own-write", adya: "internal", weakest: verdict.G1},
	verdict.IntermediateRead:  {name: "intermediate-read", adya: "G1b", weakest: verdict.G1},
	verdict.NonRepeatableRead: {name: "non-repeatable-reads", adya: "internal", weakest: verdict.RA},
	verdict.Divergence:        {name: "lost-update", adya: "G-single", weakest: verdict.SI},
	// Elle's two of lists. Of two orders that contradict each other one was never
	// there, so that somebody read what was not committed; Adya has no lists.
	verdict.IncompatibleOrder: {name: "incompatible-order", adya: "G1a", weakest: verdict.G1},
	verdict.DuplicateElements: {name: "duplicate-elements", weakest: verdict.G1},
}

func (k kinds) classify() class {
	if c, ok := intra[k.v.Kind]; ok {
		return c
	}
	if k.v.Kind == verdict.Unsatisfiable {
		return k.cases()
	}
	return k.cycle(k.v.Cycle)
}

// cases names what no choice avoids. Every case is a cycle of its own, and a
// level is broken if it forbids all of them: the strongest case decides, and
// gives the name unless others that are as strong are called differently.
func (k kinds) cases() class {
	if len(k.v.Cases) == 0 {
		return class{name: general(k.v.Level), weakest: k.v.Level}
	}
	var out class
	process := false
	for i, edges := range k.v.Cases {
		c := k.cycle(edges)
		process = process || strings.HasSuffix(c.adya, "-process")
		if i == 0 {
			out = c
			continue
		}
		if c.guarantee != out.guarantee {
			out.guarantee = "" // now of this one, now of that
		}
		weakest := stronger(out.weakest, c.weakest)
		switch {
		case c.name == out.name || weakest == out.weakest && c.weakest != weakest:
		case weakest == c.weakest && out.weakest != weakest:
			out.name = c.name
		default:
			out.name = general(weakest)
		}
		out.weakest = weakest
		out.realTime = out.realTime || c.realTime
		if phenomenon(c.adya) > phenomenon(out.adya) {
			out.adya = c.adya
		}
	}
	if i := phenomenon(out.adya); i >= 0 {
		out.adya = suffixed(phenomena[i], out.realTime, process)
	}
	return out
}

// general is the name of a cycle that has no better one.
func general(l verdict.Level) string {
	switch l {
	case verdict.StrongSI, verdict.SSER:
		return "real-time-violation"
	case verdict.SER, verdict.LIN:
		return "serialization-cycle"
	case verdict.SI:
		return "snapshot-cycle"
	case verdict.PC:
		return "prefix-violation"
	case verdict.G1:
		return "circular-information-flow"
	}
	return "commit-order-cycle"
}
