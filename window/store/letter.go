package store

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/internal/wire"
)

// A stored dead letter is
//
//	16 bytes  identity, which is its key among the i's
//	name      reason, detail, source
//	varint    partition, offset, line, time, size
//	byte      1 for Kafka
//	the rest  the bytes as they came, cut

// identity is the part of a hash that stands for a dead letter.
type identity [16]byte

// Fit cuts l to what a store keeps, and fills in Size if it is missing.
func (l DeadLetter) Fit(valueMax int) DeadLetter {
	l.Size = max(l.Size, len(l.Value))
	l.Value = l.Value[:min(len(l.Value), valueMax)]
	l.Reason, l.Detail, l.Pos.Source = cut(l.Reason), cut(l.Detail), cut(l.Pos.Source)
	return l
}

// cut shortens s to detailMax bytes, at the end of a character.
func cut(s string) string {
	const mark = "…"
	if len(s) <= detailMax {
		return s
	}
	return strings.ToValidUTF8(s[:detailMax-len(mark)], "") + mark
}

// identify gives what is the same for the same record set aside again, however
// often it is read: all but ID and time. l is Fit.
func identify(l DeadLetter) identity {
	l.Time = 0
	var id identity
	sum := sha256.Sum256(encodeLetter(id, l))
	copy(id[:], sum[:])
	return id
}

func encodeLetter(id identity, l DeadLetter) []byte {
	b := slices.Clone(id[:])
	b = wire.AppendText(b, l.Reason)
	b = wire.AppendText(b, l.Detail)
	b = wire.AppendText(b, l.Pos.Source)
	for _, n := range [...]int64{int64(l.Pos.Partition), l.Pos.Offset, l.Pos.Line, l.Time, int64(l.Size)} {
		b = binary.AppendVarint(b, n)
	}
	kafka := byte(0)
	if l.Pos.Kafka {
		kafka = 1
	}
	return append(append(b, kafka), l.Value...)
}

// decodeLetter is the inverse of encodeLetter but for l.ID. It copies b.
func decodeLetter(b []byte) (id identity, l DeadLetter, err error) {
	if len(b) < len(id) {
		return id, l, errDamaged
	}
	b = b[copy(id[:], b):]
	r := wire.NewReader(b)
	l.Reason, l.Detail, l.Pos.Source = r.Text(), r.Text(), r.Text()
	l.Pos.Partition, l.Pos.Offset, l.Pos.Line, l.Time, l.Size = int(r.Int()), r.Int(), r.Int(), r.Int(), int(r.Int())
	l.Pos.Kafka = r.Byte() == 1
	if !r.OK() {
		return id, l, errDamaged
	}
	l.Value = append([]byte{}, r.Rest()...)
	return id, l, nil
}

// Identity is the same for the same record set aside again for the same reason,
// whenever that is. l is Fit.
func (l DeadLetter) Identity() [16]byte { return identify(l) }

// Stored is the size of l as a store keeps it, which MaxDeadLetterBytes bounds in
// sum. l is Fit.
func (l DeadLetter) Stored() int64 { return int64(len(encodeLetter(identity{}, l))) }
