package packed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/record"
)

// A text in a record may be as long as the record, and what watches a stream keeps texts in
// many places: of each key its name, of each write its value, of each session and each alert.
// None of them does anything with a text but compare it with another one. So a Chunk that is to
// make texts short puts in place of a long one its beginning, its length and its SHA-256:
//
//	The quick brown fox…(1048576 bytes, sha256 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12…)
//
// Equal texts stay equal and different ones different, so that every verdict is what it would
// have been; and a short text stays as it is, so that to do it again changes nothing.

const (
	// TextMax is up to how many bytes a text is short.
	TextMax = 1 << 10
	// beginning is about how much of a long one is kept.
	beginning = 160
)

// Shortened is the text if it is short, or what stands for it. O(len).
func Shortened[T string | []byte](text T) T {
	if len(text) <= TextMax {
		return text
	}
	n := beginning
	for n > beginning-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	sum := sha256.Sum256([]byte(text))
	b := append([]byte(nil), text[:n]...)
	b = strconv.AppendInt(append(b, "…("...), int64(len(text)), 10)
	b = hex.AppendEncode(append(b, " bytes, sha256 "...), sum[:])
	return T(append(b, ')'))
}

// ShortOp is the operation with a short key, and short texts in its value; predicates stay. O(its
// texts).
func ShortOp(op record.Op) record.Op {
	op.Key, op.Value = Shortened(op.Key), shortValue(op.Value)
	return op
}

// shortValue is v with short texts, also within lists and objects; names of an object's fields
// stay, and so does a list or object of many short ones. O(len).
func shortValue(v record.Value) record.Value {
	if len(v.Text) <= TextMax {
		return v
	}
	switch v.Kind {
	case record.KindString:
		v.Text = Shortened(v.Text)
	case record.KindNumber: // no computer counts so far: it is a text
		v = record.String(Shortened(v.Text))
	case record.KindList, record.KindObject:
		if !endOften(v.Text) {
			v.Text = shortWithin(v.Text)
		}
	}
	return v
}

// endOften tells, at a look at a few bytes, that no text within the canonical text of a list or an object is long: it
// would fill a half of TextMax with no quotes but escaped ones. false: there may be one.
func endOften(text string) bool {
	const half = TextMax / 2
	for ; len(text) >= half; text = text[half:] {
		if i := strings.IndexByte(text[1:half], '"'); i < 0 || text[i] == '\\' {
			return false
		}
	}
	return true
}

// shortWithin makes the texts within the canonical text of a list or an object short.
func shortWithin(text string) string {
	var out []byte
	kept := 0 // up to where text is in out
	for i := 0; i < len(text); {
		end := tokenEnd(text, i)
		if end-i > TextMax && (end == len(text) || text[end] != ':') {
			plain := text[i:end]
			if text[i] == '"' && json.Unmarshal([]byte(text[i:end]), &plain) != nil {
				plain = text[i:end] // not reached: it is canonical
			}
			if short := Shortened(plain); len(short) < len(plain) {
				out = record.AppendJSONString(append(out, text[kept:i]...), short)
				kept = end
			}
		}
		i = end
	}
	if out == nil {
		return text
	}
	return string(append(out, text[kept:]...))
}

// tokenEnd is where what begins at i ends: a string, a number or word, or a single sign.
func tokenEnd(text string, i int) int {
	switch text[i] {
	case '"':
		for i++; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		return min(i+1, len(text))
	case '[', ']', '{', '}', ',', ':':
		return i + 1
	}
	for i < len(text) && text[i] != ',' && text[i] != ']' && text[i] != '}' {
		i++
	}
	return i
}
