// Package script is a notation for tiny histories, to be read by people and
// tests alike:
//
//	# T2 overwrites what T1 wrote without having seen it.
//	initial zero
//	s1 T1: r(x,0) w(x,1) @10-20
//	s2 T2: r(x,0) w(x,2) @12-22
//	s2 T3 aborted: w(x,3)
//
// A line per transaction: session, name, an outcome (aborted or unknown;
// nothing means committed), a colon, the operations in program order, lsn= and where
// the database's log has it, if known, and, if it has times, @start-end in nanoseconds. Transactions of a session stand
// in session order; their Seq counts from 0.
//
// Operations are r(key,value), w(key,value) and append(key,value). A value is
// an integer, null, true, false, a "string", or a list of these. Keys, sessions
// and names are free of spaces and of ( ) , : @ and #.
//
// Lines before the first transaction may state what a reader must assume, as
// the header of a history file does: initial any|absent|zero, coverage
// complete|partial, sessions keep|ignore, clock enforce|prune|ignore, and
// max_skew followed by nanoseconds. Everything after a # is a comment.
package script
