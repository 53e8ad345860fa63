package file

import (
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
)

// headMax is how many of a file's first bytes tell it from others.
const headMax = 1 << 10

// head is the beginning of a file, as far as it was read.
type head struct{ b []byte }

// feed takes the file's next bytes.
func (h *head) feed(b []byte) { h.b = append(h.b, b[:min(len(b), headMax-len(h.b))]...) }

// identity is the identity to store with an offset: a hash of the head before
// it. 0 where there is nothing before it.
func (h *head) identity(offset int64) int64 {
	n := min(offset, int64(len(h.b)))
	if n <= 0 {
		return 0
	}
	return max(int64(xxhash.Sum64(h.b[:n])>>1), 1)
}

// readHead reads the head of a file up to offset.
func readHead(r io.ReaderAt, offset int64) (head, error) {
	b := make([]byte, min(offset, headMax))
	n, err := r.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head{b[:n]}, err
}
