// Package tail keeps the end of what a process says, for the error that tells of it.
package tail

import (
	"bytes"
	"sync"
)

// Max is how many bytes are kept.
const Max = 64 << 10

// Writer keeps the last Max bytes that were written to it. It may be written and read at
// the same time. The zero value is empty.
type Writer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write takes all of p; it never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if over := w.buf.Len() - Max; over > 0 {
		w.buf.Next(over)
	}
	return len(p), nil
}

// String is what is kept.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
