package store

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/internal/wire"
)

// Schema is the version of the layout in doc.go, and of all that callers keep in it but what says itself which form it
// has: another number whenever any of that is written in another way.
const Schema = 5

var (
	keySchema = []byte("mschema")
	keyState  = []byte("mstate")
	keyRest   = []byte("mrest")
	keyLife   = []byte{prefixLife}
)

const (
	prefixMeta       = 'm'
	prefixOffset     = 'o'
	prefixLetter     = 'd'
	prefixIndex      = 'i'
	prefixAlert      = 'a'
	prefixAlertOrder = 't'
	prefixPending    = 'p'
	prefixLife       = 'l'
	prefixNotice     = 'n'
	prefixNoticeID   = 'k'
	prefixOutbox     = 'x'
	prefixLogFile    = 's'
	prefixCheckpoint = 'c'
	prefixGeneration = 'g'
	prefixForget     = 'z'
	prefixSpill      = 'f'
	prefixUndo       = 'u'
)

func offsetPrefix(source string) []byte { return wire.AppendText([]byte{prefixOffset}, source) }

func offsetKey(source string, partition int) []byte {
	return binary.BigEndian.AppendUint32(offsetPrefix(source), uint32(partition))
}

// numberKey is the key of what has a number, nameKey of what has a name.
func numberKey(prefix byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{prefix}, n) }

func nameKey[T string | []byte](prefix byte, name T) []byte { return append([]byte{prefix}, name...) }

func outboxPrefix(receiver string) []byte { return wire.AppendText([]byte{prefixOutbox}, receiver) }

func outboxKey(receiver string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(outboxPrefix(receiver), number)
}

func spillPrefix(db string) []byte { return wire.AppendText([]byte{prefixSpill}, db) }

func spillKey(db, key string) []byte { return append(spillPrefix(db), key...) }

func undoPrefix(db string) []byte { return wire.AppendText([]byte{prefixUndo}, db) }

func undoGeneration(db string, generation uint64) []byte {
	return binary.BigEndian.AppendUint64(undoPrefix(db), generation)
}

func undoKey(db string, generation uint64, key string) []byte {
	return append(undoGeneration(db, generation), key...)
}

// state is what every transaction that changes it writes along.
//
// Invariant: the dead letters kept are exactly those with oldest <= ID < next.
type state struct {
	letterNext   uint64
	letterOldest uint64
	letterBytes  uint64 // of their stored values
	letterDrops  uint64
	alertNext    uint64
	unused       uint64 // offsets were counted here once
	logFileNext  uint64 // id of the next file of the journal
	largeNext    uint64 // id of the next file of a large value
	drop         uint64 // journal entries below are evidence only
	alertCount   uint64 // alerts kept
	noticeNext   uint64
	commits      uint64 // transactions committed
	digest       uint64 // of all records but this one and the schema, see whole.go
}

func (s *state) fields() [13]*uint64 {
	return [13]*uint64{&s.letterNext, &s.letterOldest, &s.letterBytes, &s.letterDrops, &s.alertNext, &s.unused,
		&s.logFileNext, &s.largeNext, &s.drop, &s.alertCount, &s.noticeNext, &s.commits, &s.digest}
}

func (s *state) encode() []byte {
	var b []byte
	for _, f := range s.fields() {
		b = append(b, u64(*f)...)
	}
	return b
}

func (s *state) decode(b []byte) error {
	fs := s.fields()
	if len(b) != 8*len(fs) {
		return errDamaged
	}
	for i, f := range fs {
		*f = binary.BigEndian.Uint64(b[8*i:])
	}
	return nil
}

// u64 are numbers, of eight bytes each.
func u64(ns ...uint64) (out []byte) {
	for _, n := range ns {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return out
}

// readU64 reads a number that is all of a value, or its beginning.
func readU64(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint64(b), nil
}

// How a value is kept, its last byte but the checksum.
const (
	kindInline = 'v' // the value precedes
	kindLarge  = 'l' // a reference precedes: the value has a file of its own
)

// sealed is what seal adds to a value.
const sealed = 1 + 8

// seal appends to value its kind and a checksum of key, value and kind: a byte
// that flipped, or a value under another's key, is recognised.
func seal(key, value []byte, kind byte) []byte {
	out := make([]byte, 0, len(value)+sealed)
	out = append(append(out, value...), kind)
	return binary.BigEndian.AppendUint64(out, checksum(key, out))
}

// unseal is the inverse; its result shares memory with b.
func unseal(key, b []byte) (value []byte, kind byte, err error) {
	n := len(b) - sealed
	if n < 0 || binary.BigEndian.Uint64(b[n+1:]) != checksum(key, b[:n+1]) || (b[n] != kindInline && b[n] != kindLarge) {
		return nil, 0, errDamaged
	}
	return b[:n:n], b[n], nil
}

// checksum is of parts as if they were one.
func checksum(parts ...[]byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	for _, p := range parts {
		_, _ = d.Write(p) // it never fails
	}
	return d.Sum64()
}

// reference says where a large value is.
type reference struct {
	id   uint64
	size uint64
	sum  uint64
}

func (r reference) encode() []byte { return u64(r.id, r.size, r.sum) }

// largeOf is the reference that is stored, if one is.
func largeOf(raw []byte) (reference, bool) {
	n := len(raw) - sealed
	if n < 0 || raw[n] != kindLarge {
		return reference{}, false
	}
	r, err := decodeReference(raw[:n])
	return r, err == nil
}

func decodeReference(b []byte) (reference, error) {
	if len(b) != 24 {
		return reference{}, errDamaged
	}
	return reference{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}, nil
}
