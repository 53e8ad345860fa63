package record

import (
	"encoding/hex"
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Head is what must be known of a record to put it in order: all but its
// operations. A record that waits is kept packed, and its head beside it.
type Head struct {
	DB      string
	Session string
	Seq     int64 // meaningful if HasSeq
	Start   int64 // Unix nanoseconds of the client; meaningful if HasTimes
	End     int64
	// ID and Content are hashes: of the record's ID, and of all that it says.
	// Records of equal ID and Content are the same record delivered twice. The ID's
	// is 0 if it is empty. The same record has the same hashes everywhere and always.
	ID, Content uint64
	Ops         int // how many operations it has
	Bytes       int // about what it takes where it is kept; 0: not known
	Status      Status
	HasSeq      bool
	HasTimes    bool
}

// HeadOf is the head of t. O(size of t).
func HeadOf(t *Transaction) Head {
	h := Head{DB: t.DB, Session: t.Session, Seq: t.Seq, Start: t.Start, End: t.End, Ops: len(t.Ops), Status: t.Status,
		HasSeq: t.HasSeq, HasTimes: t.HasTimes}
	h.ID = idHash(t.ID)
	d := NewDigest(&h, Hash(t.Session))
	for i := range t.Ops {
		op := &t.Ops[i]
		d = d.Op(op, Hash(op.Key))
	}
	if label := t.Label(); label != "" {
		d = d.Label(Hash(label))
	}
	h.Content = d.Sum(len(t.Ops))
	return h
}

// Hash is the hash of a text that a Digest is made of.
func Hash(s string) uint64 { return xxhash.Sum64String(s) }

// HashBytes is Hash.
func HashBytes(s []byte) uint64 { return xxhash.Sum64(s) }

// idHash is the hash of an ID: 0 if that is empty, and else not.
func idHash(id string) uint64 {
	if id == "" {
		return 0
	}
	return max(xxhash.Sum64String(id), 1)
}

// IDHashBytes is idHash.
func IDHashBytes(id []byte) uint64 {
	if len(id) == 0 {
		return 0
	}
	return max(xxhash.Sum64(id), 1)
}

// Digest is the hash of what a record says, as far as it has been told: of all but
// its DB and ID in the end. Hashes of names are handed in, as who packs records may
// have them.
type Digest uint64

// NewDigest begins the digest of the record with the head h, whose session has
// the hash session. Of h, only Seq, Start, End and Status and what says whether they
// mean something are looked at.
func NewDigest(h *Head, session uint64) Digest {
	d, flags := session, uint64(h.Status)<<2
	if h.HasSeq {
		d = mix(d, uint64(h.Seq))
		flags |= 1
	}
	if h.HasTimes {
		d = mix(mix(d, uint64(h.Start)), uint64(h.End))
		flags |= 2
	}
	return Digest(mix(d, flags))
}

// Op goes on with an operation, whose key has the hash key.
func (d Digest) Op(op *Op, key uint64) Digest {
	d = d.value(op.Kind, op.Value.Kind, key, op.Value.Num)
	if op.Value.Text != "" {
		d = Digest(mix(uint64(d), Hash(op.Value.Text)))
	}
	if op.Where != "" {
		d = Digest(mix(uint64(d), Hash(op.Where)))
	}
	return d
}

// Int is Op for an integer, without a predicate.
func (d Digest) Int(kind OpKind, key uint64, n int64) Digest { return d.value(kind, KindInt, key, n) }

// Null is Op for null, likewise.
func (d Digest) Null(kind OpKind, key uint64) Digest { return d.value(kind, KindNull, key, 0) }

func (d Digest) value(kind OpKind, value ValueKind, key uint64, n int64) Digest {
	h := mix(uint64(d), key)
	return Digest(mix(h^uint64(kind)<<8^uint64(value), uint64(n)))
}

// Label goes on with a record's label, by its hash; one without says nothing of it.
func (d Digest) Label(label uint64) Digest { return Digest(mix(uint64(d), label)) }

// Sum ends the digest, of so many operations.
func (d Digest) Sum(ops int) uint64 { return mix(uint64(d), uint64(ops)) }

// mix folds v into h by a 128-bit product with odd constants, which spreads
// every bit of both.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	return hi ^ lo
}

// AppendSequenceID appends the ID of a record that names itself by its place in its
// session alone: SESSION#SEQ.
func AppendSequenceID[T string | []byte](b []byte, session T, seq int64) []byte {
	return strconv.AppendInt(append(append(b, session...), '#'), seq, 10)
}

// AppendContentID appends the ID of a record that names itself neither by id nor
// by seq, but has times: SESSION~HASH. A session does one thing at a time, so that
// the same again is the same record, delivered twice.
func AppendContentID[T string | []byte](b []byte, session T, content uint64) []byte {
	var raw [8]byte
	for i := range raw {
		raw[i] = byte(content >> (56 - 8*i))
	}
	return hex.AppendEncode(append(append(b, session...), '~'), raw[:])
}

// AppendPositionID appends the ID of a record that has not even times:
// SOURCE/PARTITION@OFFSET. The same record read again has the same ID.
func AppendPositionID(b []byte, p Position) []byte {
	b = append(append(b, p.Source...), '/')
	b = append(strconv.AppendInt(b, int64(p.Partition), 10), '@')
	return strconv.AppendInt(b, p.Offset, 10)
}
