// Package name says what a violation is called, which levels it breaks and how
// bad it is. The engine knows levels and cycles; people know lost updates and
// write skews. This package is the dictionary between the two:
//
//	T1 ──wr(x)──▶ T2 ──wr(y)──▶ T1      circular-information-flow    G1c   g1 and up
//	T1 ──wr(x)──▶ T2 ──rw(y)──▶ T1      non-monotonic-read           G-single   rc and up, if x was read first
//	T1 ──wr(x)──▶ T2 ──rw(y)──▶ T1      fractured-read    G-single   ra and up
//	T1 ──so─────▶ T2 ──rw(y)──▶ T1      session-guarantee-violation  G-single-process   ra and up
//	T1 ─ … so, wr … ▶ T2 ──rw(y)──▶ T1  causality-violation          G-single   cc and up
//	T1 ──ww(x)──▶ T2 ──rw(x)──▶ T1      lost-update       G-single   si and up
//	T1 ──rw(x)──▶ T2 ──rw(y)──▶ T1      write-skew        G2-item    ser and up
//
// # Files
//
//   - name.go: Name, and Of, which makes one.
//   - shape.go: what a cycle looks like, and the rules from shape to name.
//   - missed.go: cycles that rc, ra and cc forbid, and session guarantees.
//   - plain.go: a violation in the terms that all levels share.
//   - levels.go: what is broken besides, weakest first; levels in words, severity.
//   - strength.go: the weakest level that a cycle breaks.
//   - records.go: what the rules need to look up in the records.
//
// # The words
//
// Kebab-case names are the 14 anomalies of MTC (Table I of "Boosting End-to-End
// Database Isolation Checking via Mini-Transactions") wherever one of them fits.
// Not every cycle is one of them; the others get the name under which the
// literature or Elle knows them:
//
//   - dirty-write: a cycle of write orders alone (G0).
//   - circular-information-flow: nobody missed anything, and still each
//     transaction comes before itself (G1c).
//   - read-skew: one anti-dependency, in a cycle that is none of MTC's or needs an
//     order of writes that only prefix consistency or more has (G-single).
//   - read-only-anomaly: Fekete, O'Neil and O'Neil's, where only a reader shows
//     that the writers were not serial.
//   - stale-read: something that had ended by the clock was missed.
//   - real-time-violation: any other cycle that needs the clock.
//   - incompatible-order: two reads of a list of which neither is a prefix of the
//     other (Elle; implies G1a).
//   - duplicate-elements: a list that holds an element more often than it was
//     appended (Elle).
//   - commit-order-cycle, prefix-violation, snapshot-cycle, serialization-cycle: no
//     better name. The first is made of missed writes of several kinds, which no
//     order of commits explains (rc, ra or cc); of the others the last has two
//     adjacent anti-dependencies and breaks serializability alone, the one before
//     breaks snapshot isolation, and the second prefix consistency too.
//
// What is about whether a row matches a condition, a register of package predicate, has a name of its own where that
// says more (docs/decisions/0033):
//
//   - phantom: a fractured read, a non-repeatable read or a read skew of rows (P3; A3 where the row was seen, too), or
//     a cycle that has no better name.
//   - predicate-lost-update, predicate-write-skew (G2): these of rows.
//
// Where what was missed is one of the four session guarantees (Terry et al., 1994),
// a name says which. Read your writes is part of read atomic, the others of
// causal consistency:
//
//	so          read-your-writes        wr so       monotonic-reads
//	so wr       monotonic-writes        wr [so] wr  writes-follow-reads
//
// Adya's phenomena carry Elle's suffixes: -process when the cycle needs session
// order, -realtime when it needs the clock.
//
// # Non-obvious
//
//   - The weak levels' engine tells an order of writes that an axiom asks for as
//     an inferred edge, and as the reason what somebody would have missed
//     otherwise; where one of these is enough for a cycle, it tells the missed
//     write itself. Snapshot isolation's tells the latter always. Both have the
//     same name: that of the missed writes which the strongest level is needed for.
//   - Linearizability stands apart: it is strict serializability without sessions, of
//     histories whose transactions have one key each. Weakest is therefore never
//     lin, and whether lin is among the broken levels is found out by itself.
//   - A version order that was inferred (verdict.ByOrder) may have been inferred
//     by a rule of the level that was checked. A cycle may then look like a
//     fractured read and still break no more than snapshot isolation: it is called
//     read-skew. The weakest level therefore counts the reasons of the edges too,
//     see strength.go.
//   - The same holds for a read whose writer was found by elimination: what rules
//     the others out may be a rule of the level that was checked.
//   - A write order that is known because the later transaction read what it
//     overwrote (verdict.ByOverwrite) is a read dependency as well, and names
//     the cycle as one.
package name
