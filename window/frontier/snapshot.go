package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/isowatch/isowatch/internal/wire"
)

// A snapshot is
//
//	magic      4 bytes, the last of them the version of the form
//	flags      1 byte
//	counters   varints: forgotten, keys, …
//	bodies     their number; each its length·2, plus 1 if the disk has the same, and its bytes
//	CRC-32C    4 bytes, of all before
//
// Bodies come in the order of their slots.

const snapshotMagic = "IWF\x02"

// What of the frontier a snapshot's flags say.
const (
	snapshotGone = 1 << iota
	snapshotLost
	snapshotOpaque
	snapshotWide

	snapshotFlags = snapshotGone | snapshotLost | snapshotOpaque | snapshotWide
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot appends to dst all that is in memory. What is only on disk has to be
// there, as it is now, when the snapshot is restored.
//
// Cost: O(keys in memory).
func (f *Frontier) Snapshot(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, snapshotMagic...)
	var flags byte
	for _, x := range [...]struct {
		is   bool
		flag byte
	}{{f.gone, snapshotGone}, {f.lost, snapshotLost}, {f.opaque, snapshotOpaque}, {f.wide, snapshotWide}} {
		if x.is {
			flags |= x.flag
		}
	}
	dst = append(dst, flags)
	for _, n := range []uint64{f.folded, uint64(f.total), f.stats.Superseded, f.stats.Dropped, f.stats.Unreadable, f.stats.Evicted, f.stats.Spilled, f.stats.Read,
		uint64(f.table.count)} {
		dst = binary.AppendUvarint(dst, n)
	}
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
		dst = binary.AppendUvarint(dst, uint64(len(body))<<1|same)
		dst = append(dst, body...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// SnapshotSize is about how many bytes Snapshot appends.
func (f *Frontier) SnapshotSize() int {
	return int(f.table.bytes) + 2*f.table.count + 128
}

var errDamaged = errors.New("frontier: the snapshot is damaged: rebuild the store")

// Restore makes the frontier that gave the snapshot.
func Restore(opt Options, snapshot []byte) (*Frontier, error) {
	n := len(snapshot) - 4
	if n < len(snapshotMagic) || string(snapshot[:3]) != snapshotMagic[:3] {
		return nil, errDamaged
	}
	if snapshot[3] != snapshotMagic[3] {
		return nil, fmt.Errorf("frontier: the snapshot is of form %d, but this version of the monitor reads form %d", snapshot[3], snapshotMagic[3])
	}
	if crc32.Checksum(snapshot[:n], castagnoli) != binary.LittleEndian.Uint32(snapshot[n:]) {
		return nil, errDamaged
	}
	f := New(opt)
	if !f.load(snapshot[len(snapshotMagic):n]) {
		return nil, errDamaged
	}
	return f, nil
}

func (f *Frontier) load(b []byte) bool {
	r := wire.NewReader(b)
	flags := r.Byte()
	f.gone, f.lost, f.opaque, f.wide = flags&snapshotGone != 0, flags&snapshotLost != 0, flags&snapshotOpaque != 0, flags&snapshotWide != 0
	var total, count uint64
	for _, n := range []*uint64{&f.folded, &total, &f.stats.Superseded, &f.stats.Dropped, &f.stats.Unreadable, &f.stats.Evicted, &f.stats.Spilled, &f.stats.Read, &count} {
		*n = r.Uint()
	}
	if !r.OK() || flags&^snapshotFlags != 0 || count > uint64(r.Len()) || total > 1<<60 {
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
	f.total = int(total)
	return r.Done()
}
