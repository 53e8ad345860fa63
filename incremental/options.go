package incremental

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Options say what is asked of an Engine and what it may assume.
type Options struct {
	Levels []verdict.Level
	record.Assumptions
	// MaxTransaction bounds end-start of any transaction, in nanoseconds: what
	// was not written that long after a read ended will not be. 0: unbounded,
	// candidates close at Close only.
	MaxTransaction int64
	// UniqueValues: no two recorded transactions write the same value to a key,
	// so that online a read is known to be its writer's as soon as that has come.
	// Otherwise it waits until no other writer can come (MaxTransaction), as reads of
	// null, and of what keys hold at first if that is declared, do in any case: anybody may
	// write those. The assumption is given up when the stream breaks it; see State. Batch needs none.
	UniqueValues bool
	// UniqueAttempts: UniqueValues is meant of aborted transactions too, so that a
	// client that tries again writes other values. Then a read of an aborted value is
	// known for one at once; otherwise only when no other writer can come. It is
	// given up when the stream breaks it.
	UniqueAttempts bool
	// Lost are the times in which records are known to be missing, all where Lossy; see Engine.LoseTimes.
	Lost Losses
	// Conflicts is the solver's budget per Tick or Close; 0 means the default.
	Conflicts int
	// ChoiceWork bounds, for each weak level, the transactions that proposals of who wrote what was read are
	// judged with at Close; 0: a default of some millions, negative: none are made.
	ChoiceWork int
	// MaxViolations bounds the violations reported per level with their
	// evidence by Close; 0 means all.
	MaxViolations int
	// Bare: what is found is not described, where that decides nothing: a violation may be
	// without its transactions, its cycle and its evidence (batch only). For who only asks
	// whether there is one.
	Bare bool
	// Proof: Close gives the order that proves a satisfied level (batch only).
	Proof bool
	// Guarantees: where cc is asked for and does not hold Close judges the session guarantees too.
	Guarantees bool
	// Stop, if set, is asked now and then during Close and Tick; once it returns
	// another reason than NoReason, which ends the work early, what is undecided
	// is unknown for that reason. What limits it watches (time, memory) is the
	// caller's affair; without it the engine depends on its input alone.
	Stop func() verdict.Reason
	// Steps is how much work is granted online with each transaction, in steps of some ten
	// nanoseconds, for all levels together (see package budget). What is used up is given up: no
	// level that wants it is satisfied any more, and only what the records show by themselves is
	// found. 0 means the default.
	Steps int
	// BytesMax bounds in the same way the memory of what may grow with more than the transactions: closures, open
	// pairs, edges that these force and what open reads may be of, over all levels. 0: online a default of 256 MiB.
	BytesMax int
	// BytesEach is how many more bytes each transaction grants, as closures grow with them.
	BytesEach int
	// SolveAt is how many pairs of versions may have come to be open since what is open was
	// solved last, where times are used, before it is solved between Ticks. 0: a default of
	// some thousands.
	SolveAt int
	// Spacing is how many transactions have to come, after a search among other things of
	// 1,024 open pairs of versions and reads that had been solved before, for a Tick to search
	// again, and in proportion: so what searching costs does not grow with what is open, all of which is
	// solved anew where times don't help. Every eighth Tick searches in any case, and none
	// waits for fewer than 128 transactions. 0: 128. See Solve.
	Spacing int
	// Seeds is how many of the transactions, the first ones, stand for what was before: that
	// many of them have no times says nothing of those that come, which have ended at the end of the last one or later.
	Seeds int
	// Online: edges are known as soon as they are proved and Tick reports as
	// the stream goes. Otherwise all is done by Close, which is faster.
	Online bool
}

// Output is what was found since the last one, in an order that depends on the input alone.
type Output struct {
	Violations []verdict.Violation
}
