// Package findings is tests that let the canary loose on real databases. TestFindings runs it for a while at each
// database, topology and isolation level of a list, and writes down what it found: testdata/findings holds the results
// and a small history for each, docs/findings.md the table of them. TestDrill keeps it at a database that is harmed
// every so often, and wants no accusation.
//
//	make findings DURATION=60s
//	make drill DURATION=1h
package findings
