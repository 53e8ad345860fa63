//go:build !linux

package rig

// UsageOf asks the system about a process.
func UsageOf(int) (Usage, error) { return Usage{}, ErrUsage }
