//go:build !unix

package file

import (
	"io"
	"time"
)

// waitsOn is nil: whether there is something to read can't be told here.
func waitsOn(io.Reader) func(time.Duration) bool { return nil }
