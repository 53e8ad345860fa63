package store

import "encoding/binary"

// schema is the version of the key layout in doc.go.
const schema = 1

var (
	keySchema = []byte("mschema")
	keyState  = []byte("mstate")
)

const (
	prefixOffset = 'o'
	prefixLetter = 'd'
	prefixIndex  = 'i'
	prefixAlert  = 'a'
	prefixOutbox = 'x'
)

func offsetPrefix(source string) []byte { return appendName([]byte{prefixOffset}, source) }

func offsetKey(source string, partition int) []byte {
	return binary.BigEndian.AppendUint32(offsetPrefix(source), uint32(partition))
}

func letterKey(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{prefixLetter}, id) }

func indexKey(id identity) []byte { return append([]byte{prefixIndex}, id[:]...) }

func alertKey(id string) []byte { return append([]byte{prefixAlert}, id...) }

func outboxPrefix(receiver string) []byte { return appendName([]byte{prefixOutbox}, receiver) }

func outboxKey(receiver string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(outboxPrefix(receiver), number)
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
}

func (s *state) fields() [5]*uint64 {
	return [5]*uint64{&s.letterNext, &s.letterOldest, &s.letterBytes, &s.letterDrops, &s.alertNext}
}

func (s *state) encode() []byte {
	var b []byte
	for _, f := range s.fields() {
		b = binary.BigEndian.AppendUint64(b, *f)
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

func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// readU64 reads a number that is all of a value, or its beginning.
func readU64(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint64(b), nil
}
