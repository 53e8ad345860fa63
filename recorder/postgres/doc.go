// Package postgres makes records of what goes over a connection to PostgreSQL.
//
//	capture := postgres.New(rec, postgres.Options{Complete: true, Load: load})
//	c := capture.Connect()
//	c.FromClient(bytes)   // before they are sent on
//	c.FromServer(bytes)   // before the client gets them
//	c.Close()
//
// From the outside in:
//
//	wire.go      bytes to messages, messages to statements and their rows: simple and extended protocol, pipelines
//	internal/sql the text of a statement to what it reads and writes, once for each text without its literals
//	catalog.go   which tables there are, their primary keys, and what makes writes unpredictable
//	value.go     values as PostgreSQL sends them, in one form
//	keys.go      which items can be told of for certain
//	txn.go       statements to transactions: what was read and written, and how it ended
//
// # An item is a column of a row
//
// It is called table:key.column, as in accounts:17.balance. A statement that sets one column writes one item, whatever
// others hold, so that what a statement does not say needs not be known. A database that keeps a level for rows keeps
// it for their columns. A deleted row is null in all columns; SQL's NULL is another value.
//
// A row that is made while another transaction, which ends before, deletes the one of the same key, is another row.
// Below SERIALIZABLE PostgreSQL lets both commit, as it compares rows and not keys, and who makes the row may see both.
// So what is written to such a row is recorded as a transaction of its own, "anew", that commits with the one that
// wrote it, and of what that one reads there nothing is recorded.
//
// # What is not known is never guessed
//
// A read is recorded if it is certain which item it was of, and a write if its item and value are, from what the
// statement says and the server answers. What else there is falls into three kinds:
//
//   - A value that is not known, as of SET x = x - 1, is learned from RETURNING, or when the transaction reads it. If it commits
//     without that, the item is lossy.
//   - A write to rows that are not known, as WHERE balance < 0, makes the columns lossy, of all the table.
//   - A statement that may have written anything (a function of the user's, a table with triggers, a text that is not
//     understood) makes everything lossy.
//
// Where coverage is partial, the last two make nothing lossy: what the transaction reads from then on may be its own, and
// is not recorded.
//
// Of what is lossy nothing is recorded from then on, and from before the statement was sent. A history without a write
// and without what was read after it is explained by whatever explains all of it, so this hides anomalies and makes
// none. Statements that made something lossy are counted by their text.
//
// # Complete capture
//
// With Options.Complete every write to the recorded tables goes through this Capture. What an item held before is then
// known if its first statement read it, and is recorded as a transaction of its own, "initial": the history begins
// with nothing, and all that is read was written. An item that was written first, without its old value, is lossy.
// This is the history of coverage complete and initial absent; what stands in docs/soundness.md of it holds.
package postgres
