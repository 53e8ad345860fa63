package soak

import "time"

// Disk is where the store is, to be made worse.
type Disk interface {
	Path() string
	Close() error
}

// Finite is a disk that may be filled.
type Finite interface {
	Disk
	// Fill takes all the room that is left, and says how many bytes that was.
	Fill() (int64, error)
	// Free gives it back.
	Free() error
}

// Slow is a disk that may take its time.
type Slow interface {
	Disk
	// Delay has each write and sync take up to so long more; 0: none does.
	Delay(most time.Duration)
}
