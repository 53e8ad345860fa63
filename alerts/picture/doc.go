// Package picture draws an alert: its cycle, and its transactions in time.
//
//	Cycle     SVG    the transactions in a ring, an arrow for every dependency
//	Timeline  SVG    sessions as lanes, transactions as bars, arrows between
//	Sheet     SVG    several of these beneath each other, in one file
//	Dot       DOT    the cycle for Graphviz
//
// It reads nothing but the alert, so that one from the store of another monitor
// looks the same. The same alert gives the same bytes.
//
// # Non-obvious
//
//   - What came from the database passes through package text, is cut to the
//     width of its box, and is escaped by writer.text alone: no other function puts
//     a string that is not a constant of this package between the tags.
//   - A picture has no id, no reference and no script: several may stand in one
//     HTML page, closed or open, and none can fetch anything. Arrow heads are
//     drawn, as markers would need ids.
//   - Kinds of edges differ by their label and the dashes of their line, not only by
//     colour.
//   - Sizes are bounded: what is left out is said.
package picture
