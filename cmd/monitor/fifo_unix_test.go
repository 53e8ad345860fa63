//go:build unix

package main

import (
	"os"
	"syscall"
)

// fifo makes a named pipe and holds both its ends, so that whoever reads it never
// comes to an end.
func fifo(name string) (*os.File, error) {
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_RDWR, 0)
}
