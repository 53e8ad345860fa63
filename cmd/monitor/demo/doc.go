// Package demo shows the monitor at work, with real parts and nothing installed:
//
//	canary's sessions ──▶ Badger store      several transactions at once
//	   │
//	   └─ what each saw ─▶ Kafka topic ─▶ the monitor ─▶ webhook receiver
//	                       (in-process)   (package app)   (checks and prints)
//
// For a while the store keeps its promise: it detects conflicting transactions
// and refuses one of them. Then the same files are reopened with that detection
// switched off, which is an option of Badger's. Nothing else changes, no error is
// ever returned, and clients begin to overwrite each other's writes. Only what
// the clients saw tells so.
package demo
