package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// partMagic opens every part; its last byte is the version of the form.
const partMagic = "IWF\x01"

// What of the frontier a part's flags say.
const (
	partGone = 1 << iota
	partLost
	partOpaque

	partFlags = partGone | partLost | partOpaque
)

const (
	// shareLeast is how many bytes of what is unchanged a part has at least: up to
	// that a frontier is one part.
	shareLeast = 32 << 10
	// sharesMost bounds the parts of a round.
	sharesMost = 128
	// skipped is what it counts for to pass over a slot.
	skipped = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checkpoint appends the next part to dst. It has to be kept under its Part. A
// restart needs all parts from Floor to the last durable one; older ones may be
// deleted once this one is durable, which is to be told by Durable.
//
// Cost: O(what changed since the part before), and a bounded share of the rest.
func (f *Frontier) Checkpoint(dst []byte) []byte {
	if f.whole || f.part == 0 {
		f.stay()
		f.round, f.cursor = f.part+1, 0
	}
	f.part++
	gone := f.depart()
	changed, bytes := f.changes()
	share := f.share(bytes)
	for _, slot := range changed {
		f.table.at(slot).flags &^= flagChanged | flagListed
	}
	f.whole = false

	from := len(dst)
	dst = append(dst, partMagic...)
	dst = f.appendHeader(dst)
	dst = binary.AppendUvarint(dst, uint64(len(gone)))
	for _, key := range gone {
		dst = binary.AppendUvarint(dst, uint64(len(key)))
		dst = append(dst, key...)
	}
	for _, slots := range [2][]uint32{share, changed} {
		dst = binary.AppendUvarint(dst, uint64(len(slots)))
		for _, slot := range slots {
			body := f.table.body(f.table.at(slot))
			dst = binary.AppendUvarint(dst, uint64(len(body)))
			dst = append(dst, body...)
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// Part is the number of the last part that Checkpoint gave, counted from 1; Floor
// of the first that is still needed with it.
func (f *Frontier) Part() uint64 { return uint64(f.part) }

// Floor see Part.
func (f *Frontier) Floor() uint64 { return uint64(f.floor) }

// Whole makes the next part hold everything, as if it were the first: to be called
// when a part that Checkpoint gave can't be kept.
func (f *Frontier) Whole() { f.whole = true }

// Durable says that all parts up to one are durable, and with them what Spill gave
// before: what that part says is gone leaves memory.
func (f *Frontier) Durable(part uint64) {
	f.durable = max(f.durable, uint32(min(part, uint64(f.part))))
	kept := f.left[:0]
	for _, d := range f.left {
		switch e := f.table.at(d.slot); {
		case e.flags&flagLeft == 0: // it has changed since
		case d.part > f.durable:
			kept = append(kept, d)
		default:
			f.remove(d.slot)
			f.stats.Spilled++
		}
	}
	f.left = kept
}

// stay keeps in memory what was to go, as it is not known that it can be read.
func (f *Frontier) stay() {
	for _, d := range f.left {
		if f.table.at(d.slot).flags&flagLeft != 0 {
			f.change(d.slot)
		}
	}
	f.present(&f.leaving)
	for _, slot := range f.leaving {
		f.change(slot)
	}
	f.left, f.leaving = f.left[:0], f.leaving[:0]
}

// depart lists the keys that this part says are gone.
func (f *Frontier) depart() []string {
	gone := f.evicted
	f.evicted = nil
	if f.present(&f.leaving) > 0 {
		f.gone = true
	}
	for _, slot := range f.leaving {
		e := f.table.at(slot)
		gone = append(gone, string(keyOf(f.table.body(e))))
		e.flags = e.flags&^(flagLeaving|flagChanged) | flagLeft
		e.saved = 0
		f.left = append(f.left, departure{slot, f.part})
	}
	f.leaving = f.leaving[:0]
	return gone
}

// changes lists the slots that have changed since the part before, and flags
// them as listed.
func (f *Frontier) changes() (out []uint32, bytes int) {
	for _, slot := range f.changed {
		e := f.table.at(slot)
		if e.flags&flagChanged == 0 || e.flags&flagListed != 0 {
			continue
		}
		e.flags |= flagListed
		if e.saved == 0 {
			e.saved = f.part
		}
		out = append(out, slot)
		bytes += len(f.table.body(e))
	}
	f.changed = f.changed[:0]
	return out, bytes
}

// share lists the unchanged slots whose turn it is, for a part in which so many
// bytes changed, and sets the floor when the round is complete.
func (f *Frontier) share(bytes int) (out []uint32) {
	left := max(bytes, shareLeast, int(f.table.bytes/sharesMost))
	if f.whole {
		left = math.MaxInt
	}
	for ; f.cursor < f.table.slots && left > 0; f.cursor++ {
		e := f.table.at(f.cursor)
		if e.saved == 0 || e.flags&(flagListed|flagLeft) != 0 {
			left -= skipped
			continue
		}
		left -= len(f.table.body(e))
		out = append(out, f.cursor)
	}
	if f.cursor >= f.table.slots {
		f.floor, f.round, f.cursor = f.round, f.part+1, 0
	}
	return out
}

func (f *Frontier) appendHeader(dst []byte) []byte {
	var flags byte
	if f.gone {
		flags |= partGone
	}
	if f.lost {
		flags |= partLost
	}
	if f.opaque {
		flags |= partOpaque
	}
	dst = append(dst, flags)
	for _, n := range []uint64{uint64(f.part), uint64(f.floor), f.folded, f.stats.Superseded, f.stats.Dropped, f.stats.Unreadable, f.stats.Evicted,
		f.stats.Spilled, f.stats.Read} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// Restore makes the frontier that gave these parts, one after the other, the last
// of them last and none that it needs left out. The error says which is damaged.
func Restore(opt Options, parts ...[]byte) (*Frontier, error) {
	if len(parts) == 0 {
		return nil, errors.New("frontier: a checkpoint without parts")
	}
	f := New(opt)
	first := uint32(0)
	for i, p := range parts {
		if err := f.load(p, i > 0); err != nil {
			return nil, fmt.Errorf("frontier: part %d of %d of the checkpoint: %w", i+1, len(parts), err)
		}
		if i == 0 {
			first = f.part
		}
	}
	if f.floor < first {
		return nil, fmt.Errorf("frontier: the checkpoint needs parts from %d, the first given is %d", f.floor, first)
	}
	for slot := range f.table.slots {
		f.table.at(slot).flags &^= flagChanged
	}
	f.changed = f.changed[:0]
	f.durable, f.round, f.cursor = f.part, f.part+1, 0
	return f, nil
}

var errDamaged = errors.New("damaged: rebuild the store")

// load takes one part in. If follows, another was before it.
func (f *Frontier) load(p []byte, follows bool) error {
	n := len(p) - 4
	if n < len(partMagic) || string(p[:3]) != partMagic[:3] {
		return errDamaged
	}
	if p[3] != partMagic[3] {
		return fmt.Errorf("of form %d, but this version of the monitor reads form %d", p[3], partMagic[3])
	}
	if crc32.Checksum(p[:n], castagnoli) != binary.LittleEndian.Uint32(p[n:]) {
		return errDamaged
	}
	return f.loadBody(p[len(partMagic):n], follows)
}

func (f *Frontier) loadBody(b []byte, follows bool) error {
	r := reader{b, true}
	flags := r.byte()
	part, floor, folded := r.uint(), r.uint(), r.uint()
	for _, n := range []*uint64{&f.stats.Superseded, &f.stats.Dropped, &f.stats.Unreadable, &f.stats.Evicted, &f.stats.Spilled, &f.stats.Read} {
		*n = r.uint()
	}
	if !r.ok || flags&^partFlags != 0 || part == 0 || part >= math.MaxUint32 || floor == 0 || floor > part || folded < f.folded {
		return errDamaged
	}
	if follows && part != uint64(f.part)+1 {
		return fmt.Errorf("it is number %d, but number %d was to follow", part, f.part+1)
	}
	f.part, f.floor, f.folded = uint32(part), uint32(floor), folded
	f.gone, f.lost, f.opaque = flags&partGone != 0, flags&partLost != 0, flags&partOpaque != 0
	for n := r.uint(); n > 0 && r.ok; n-- {
		if slot, ok := f.table.find(string(r.bytes())); ok {
			f.remove(slot)
		}
	}
	for _, changed := range [2]bool{false, true} {
		for n := r.uint(); n > 0 && r.ok; n-- {
			body := r.bytes()
			if !check(body, folded) {
				return errDamaged
			}
			f.keep(body, changed)
		}
	}
	if !r.ok || len(r.b) > 0 {
		return errDamaged
	}
	return nil
}

// keep takes in what a part says of a key.
func (f *Frontier) keep(body []byte, changed bool) {
	key := string(keyOf(body))
	slot, ok := f.table.find(key)
	if !ok {
		slot = f.table.insert(key, body)
		f.versions += int(body[1])
		f.table.at(slot).saved = f.part
		if !changed { // it has not been written for long
			f.table.at(slot).flags &^= flagRecent
		}
		return
	}
	e := f.table.at(slot)
	f.versions += int(body[1]) - int(f.table.body(e)[1])
	f.table.set(e, body)
	if changed {
		e.flags |= flagRecent
	}
}
