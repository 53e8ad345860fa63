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

// identity is what tells the file, from the bytes before offset: their number,
// at most headMax, in the low bits, and a hash of them in the others. So it can be
// checked beside any offset that was stored with it. 0 where there are none.
func (h *head) identity(offset int64) int64 {
	n := min(offset, int64(len(h.b)))
	if n <= 0 {
		return 0
	}
	return int64(xxhash.Sum64(h.b[:n])>>1)&^identityLen | n
}

// identityLen are the bits of an identity that are a length: headMax fits.
const identityLen = 1<<11 - 1

// readHead reads the first n bytes of a file, at most headMax, fewer if it has
// fewer.
func readHead(r io.ReaderAt, n int64) (head, error) {
	b := make([]byte, min(n, headMax))
	k, err := r.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head{b[:k]}, err
}
