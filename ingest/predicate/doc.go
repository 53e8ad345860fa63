// Package predicate reads the conditions of predicate operations, and says what they mean for each row.
//
// A condition is a text: columns, constants, comparisons, and, or, not, in C's spelling or in SQL's:
//
//	v1 >= 10 && v1 < 20
//	status = 'open' AND NOT (owner IS NULL OR owner IN ('ann', 'bob'))
//	name like 'a%' || n between 3 and 7
//	true
//
// It is SQL's logic of three values: a comparison with null is neither true nor false, and a row matches where the
// whole is true. Texts are compared byte by byte, numbers exactly; what SQL would convert, as a text beside a
// number, is an error. A row that is absent matches nothing, and a column that a row does not have is null.
//
// # Predicates as registers
//
// Whether a row matches a condition is a register of its own (History): who writes the row writes the register too,
// with what the condition shows of the new row, or null where it does not match. Reading the rows of a table that match
// is reading these registers, one for each row that any transaction ever made match; so is finding the rows that a
// predicate write changes. That is what a predicate read means (Adya, "Weak Consistency", 1999, section 4.3: a version
// of each row of the table is read, whether or not it matches), and every level is defined by one order of
// transactions, in which a row and its registers change together. So a history without predicates, in which many write
// one value, is satisfied exactly where the one with predicates is, at every level, and so it is judged.
//
// Not every register is made. History asks for few reads at first, and Explain executes the transactions in an order,
// and asks for what that order leaves unexplained: with fewer reads more is allowed, and what is not allowed even then
// is not allowed by the history. So the cost is that of the rows that were returned and hit, and of those that matter.
//
// The registers are named after the row and the condition: orders:4 where status == 'open'.
package predicate
