package process

import (
	"bytes"
	"sync"
)

// tailMax is how many bytes of what a process says are kept.
const tailMax = 64 << 10

// tail keeps the last tailMax bytes that were written to it. It may be written and read at
// the same time. The zero value is empty.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write takes all of p; it never fails.
func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if over := w.buf.Len() - tailMax; over > 0 {
		w.buf.Next(over)
	}
	return len(p), nil
}

// String is what is kept.
func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
