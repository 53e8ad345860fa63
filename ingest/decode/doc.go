// Package decode turns a source's messages into batches of packed records, in
// parallel and yet in the source's order.
package decode
