package rig

import (
	"errors"
	"time"
)

// Usage is what a process takes of the machine.
type Usage struct {
	Resident uint64        // bytes in memory now
	Peak     uint64        // the most that were
	CPU      time.Duration // of all cores since its start, in steps of 10 ms
}

// ErrUsage is UsageOf's answer where the system does not say.
var ErrUsage = errors.New("this system does not tell what other processes use: it takes Linux's /proc")
