package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Writer writes notices to a stream, a JSON object a line.
type Writer struct{ w io.Writer }

// NewWriter makes a receiver of a stream. It is the only one that writes to it while
// notices are delivered.
func NewWriter(w io.Writer) *Writer { return &Writer{w} }

// Notify implements Receiver. A line is written whole, or written again.
func (w *Writer) Notify(_ context.Context, body []byte, _ string) (time.Duration, bool, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return 0, false, fmt.Errorf("standard output: the notice can't be read, and is given up: %w", err)
	}
	line.WriteByte('\n')
	if _, err := w.w.Write(line.Bytes()); err != nil {
		return 0, true, fmt.Errorf("standard output: %w", err)
	}
	return 0, false, nil
}

// String is what errors call it.
func (w *Writer) String() string { return "standard output" }
