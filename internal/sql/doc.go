// Package sql reads statements of SQL: what each reads and writes, as far as its text alone tells. It knows the
// statements that touch one table, and what may go wrong with all others (docs/decisions/0080).
//
//	lex.go    a text to tokens; its literals are values of the execution
//	plan.go   tokens to what a statement does
package sql
