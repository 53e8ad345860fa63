package frontier

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/isowatch/isowatch/internal/wire"
)

// A snapshot is
//
//	flags, counters
//	bodies     their number; each its length·2, plus 1 if the disk has the same, and its bytes
//
// Bodies come in the order of their slots. Who keeps it has a checksum.

// code lists all but the bodies.
func (f *Frontier) code(c *wire.Coder, bodies *uint64) {
	total := uint64(f.total)
	c.Flags(&f.gone, &f.opaque, &f.wide)
	c.Uints(&f.folded, &total, &f.stats.Superseded, &f.stats.Dropped, &f.stats.Unreadable, &f.stats.Spilled,
		&f.stats.Read, bodies)
	f.total = int(total)
}

// Snapshot writes all that is in memory, some at a time: together it is large with many keys. What is only on disk has
// to be there, as it is now, when the snapshot is restored.
//
// Cost: O(keys in memory).
func (f *Frontier) Snapshot(to io.Writer) error {
	c, bodies := wire.Coder{}, uint64(f.table.count)
	f.code(&c, &bodies)
	b := c.B
	for slot := range f.table.slots {
		e := f.table.at(slot)
		if e.flags&flagLive == 0 {
			continue
		}
		body := f.table.body(e)
		same := uint64(0)
		if e.flags&flagOnDisk != 0 {
			same = 1
		}
		b = binary.AppendUvarint(b, uint64(len(body))<<1|same)
		if b = append(b, body...); len(b) >= snapshotPart {
			if _, err := to.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := to.Write(b)
	return err
}

// snapshotPart is about how much of a snapshot is written at once.
const snapshotPart = 16 << 10

var errDamaged = errors.New("frontier: the snapshot is damaged: rebuild the store")

// Restore makes the frontier that gave the snapshot.
func Restore(opt Options, snapshot []byte) (*Frontier, error) {
	f := New(opt)
	if !f.load(snapshot) {
		return nil, errDamaged
	}
	return f, nil
}

func (f *Frontier) load(b []byte) bool {
	r, count := wire.Reads(b), uint64(0)
	f.code(&r, &count)
	if !r.OK() || count > uint64(r.Len()) || f.total < 0 || f.total > 1<<60 {
		return false
	}
	for range count {
		size := r.Uint()
		body := r.Take(size >> 1)
		if !check(body, f.folded) {
			return false
		}
		key := string(keyOf(body))
		if _, ok := f.table.find(key); ok {
			return false
		}
		slot := f.table.insert(key, body)
		e := f.table.at(slot)
		e.flags &^= flagRecent
		if size&1 != 0 {
			e.flags |= flagOnDisk
		}
		f.versions += int(body[1])
		if absent(body) {
			f.absent++
		}
	}
	return r.Done()
}
