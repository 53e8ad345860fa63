package store

import (
	"crypto/sha256"
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
	var c wire.Coder
	l.code(&c, &id)
	return append(c.B, l.Value...)
}

// decodeLetter is the inverse of encodeLetter but for l.ID. It copies b.
func decodeLetter(b []byte) (id identity, l DeadLetter, err error) {
	c := wire.Reads(b)
	if l.code(&c, &id); !c.OK() {
		return id, l, errDamaged
	}
	l.Value = append([]byte{}, c.Rest()...)
	return id, l, nil
}

func (l *DeadLetter) code(c *wire.Coder, id *identity) {
	partition, size := int64(l.Pos.Partition), int64(l.Size)
	c.Raw(id[:])
	c.Texts(&l.Reason, &l.Detail, &l.Pos.Source)
	c.Ints(&partition, &l.Pos.Offset, &l.Pos.Line, &l.Time, &size)
	c.Flags(&l.Pos.Kafka)
	l.Pos.Partition, l.Size = int(partition), int(size)
}

// Stored is the size of l as a store keeps it, which MaxDeadLetterBytes bounds in
// sum. l is Fit.
func (l DeadLetter) Stored() int64 { return int64(len(encodeLetter(identity{}, l))) }
