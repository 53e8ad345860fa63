// Package findings is tests that let the canary loose on real databases. TestDrill keeps it at a database that is
// harmed every so often, and wants no accusation:
//
//	make drill DURATION=1h
package findings
