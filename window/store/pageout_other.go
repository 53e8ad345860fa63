//go:build !linux

package store

// PageOut does nothing here.
func PageOut(string) {}
