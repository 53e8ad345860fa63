// Package wire takes apart the bytes that the monitor writes for itself: batches,
// entries of the journal, checkpoints, state. They come back from a disk, so that they
// may be anything.
//
//	b := wire.AppendText(binary.AppendVarint(nil, offset), name)
//
//	r := wire.NewReader(b)
//	offset, name := r.Int(), r.Text()
//	if !r.Done() {
//		return errDamaged
//	}
//
// Numbers are varints as encoding/binary has them; a text is its length and its bytes. What is
// read is looked at once, at the end: a Reader that has met what can't be is empty, so
// that all that follows is zero, and no loop over it goes on for long.
//
// What is written and read in the same order is listed once, with a Coder.
package wire

import "encoding/binary"

// AppendText appends a text: its length and its bytes.
func AppendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Reader takes fields off the front of bytes. Methods never panic, and what they
// return is no larger than what is left, whatever the bytes are.
type Reader struct {
	b   []byte
	bad bool

	// Minimal refuses a number that is written in more bytes than it needs, so that
	// what is read has one form only.
	Minimal bool
}

// NewReader reads b. What it returns as bytes are parts of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// OK tells whether all so far was there.
func (r *Reader) OK() bool { return !r.bad }

// Done tells whether all was there, and nothing else.
func (r *Reader) Done() bool { return !r.bad && len(r.b) == 0 }

// Len is how many bytes are left; 0 if anything was not there.
func (r *Reader) Len() int { return len(r.b) }

// Rest is what is left.
func (r *Reader) Rest() []byte { return r.b }

// Fail says that what was read can't be.
func (r *Reader) Fail() { r.b, r.bad = nil, true }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.b) == 0 {
		r.Fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// Uint reads a number that is not negative.
func (r *Reader) Uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are small
		c := r.b[0]
		r.b = r.b[1:]
		return uint64(c)
	}
	return r.long()
}

func (r *Reader) long() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || r.Minimal && n > 1 && r.b[n-1] == 0 {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Int reads any number.
func (r *Reader) Int() int64 {
	u := r.Uint()
	return int64(u>>1) ^ -int64(u&1)
}

// Fixed reads a number of eight bytes, the least first.
func (r *Reader) Fixed() uint64 {
	if len(r.b) < 8 {
		r.Fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// Count reads a number of things: at most so many, each of at least so many bytes (one
// or more), so that room for them may be made at once.
func (r *Reader) Count(most, each int) int {
	n := r.Uint()
	if n > uint64(min(most, len(r.b)/each)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Take reads so many bytes.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.Fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Bytes reads a text without copying it.
func (r *Reader) Bytes() []byte { return r.Take(r.Uint()) }

// Text reads a text.
func (r *Reader) Text() string { return string(r.Bytes()) }
