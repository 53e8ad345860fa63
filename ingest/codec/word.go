package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Eight bytes of a record at a time, as a number whose least significant byte
// is the first. A byte that is looked for gets its highest bit set in a mask; bytes
// behind the first such may get it too, so only the first counts.

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// first is the place of the first byte marked in the mask, or 8.
func first(mask uint64) int { return bits.TrailingZeros64(mask&highBits) / 8 }

// zeros marks bytes that are 0.
func zeros(w uint64) uint64 { return (w - eachByte) &^ w }

// plainBytes is how many bytes of w stand for themselves in a string, and in
// ASCII, before the first one that does not: plainByte's twin.
func plainBytes(w uint64) int {
	control := (w - ' '*eachByte) &^ w
	return first(zeros(w^'"'*eachByte) | zeros(w^'\\'*eachByte) | control | w)
}

// leadingDigits is how many bytes of w are digits before the first one that is not.
func leadingDigits(w uint64) int {
	w ^= '0' * eachByte // digits become 0 to 9
	return first(w + (0x80-10)*eachByte | w)
}

// eightDigits is the number that w writes; bytes that are 0 count as zeros.
func eightDigits(w uint64) uint64 {
	w &= 0x0f * eachByte
	w = w * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff    // pairs
	w = w * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff // fours
	return w * (10_000<<32 + 1) >> 32
}

// plainByte are the bytes that stand for themselves in a string.
var plainByte = func() (set [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// plainEnd is where the plain bytes end that stand at p.
func plainEnd(b []byte, p int) int {
	for ; len(b)-p >= 8; p += 8 {
		if n := plainBytes(binary.LittleEndian.Uint64(b[p:])); n < 8 {
			return p + n
		}
	}
	for p < len(b) && plainByte[b[p]] {
		p++
	}
	return p
}
