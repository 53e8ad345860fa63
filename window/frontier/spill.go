package frontier

import "fmt"

// KV is a key with what is known of it, packed.
type KV struct {
	Key   string
	Value []byte
}

// over tells whether so many keys with so many bytes are too many.
func (f *Frontier) over(keys int, bytes int64) bool {
	return f.opt.MaxKeys > 0 && keys > f.opt.MaxKeys || f.opt.MaxBytes > 0 && bytes > f.opt.MaxBytes
}

// evict forgets keys not written for long that do not fit, where nothing keeps
// them. The last key stays.
func (f *Frontier) evict() {
	for f.table.count > 1 && f.over(f.table.count, f.table.bytes) {
		slot, e, ok := f.table.pass()
		if !ok {
			continue
		}
		if e.saved != 0 {
			f.evicted = append(f.evicted, string(keyOf(f.table.body(e))))
		}
		f.remove(slot)
		f.stats.Evicted++
		f.lost = true
	}
}

func (f *Frontier) remove(slot uint32) {
	f.versions -= int(f.table.body(f.table.at(slot))[1])
	f.table.remove(slot)
}

// scanMost bounds how many keys Spill looks at: so many for each that it may give.
const scanMost = 16

// Spill gives at most max keys that have to leave memory, not written for long. They have to be on disk, in place of what it has of them, before the
// next Checkpoint is made durable. It may give none though there are too many:
// what has changed since the last durable checkpoint stays until the next.
//
// Ask names keys of which the disk may have older versions that have to be
// answered before they can go.
func (f *Frontier) Spill(max int) (out []KV, ask []string) {
	if !f.opt.Spilling {
		return nil, nil
	}
	keys, bytes := f.table.count-f.present(&f.leaving)-len(f.left), f.table.bytes
	for _, slot := range f.leaving {
		bytes -= int64(len(f.table.body(f.table.at(slot))))
	}
	for _, d := range f.left {
		if e := f.table.at(d.slot); e.flags&flagLeft != 0 {
			bytes -= int64(len(f.table.body(e)))
		}
	}
	for looked := 0; f.over(keys, bytes) && len(out)+len(ask) < max && looked < scanMost*max; looked++ {
		slot, e, ok := f.table.pass()
		if !ok {
			continue
		}
		body := f.table.body(e)
		switch {
		case e.flags&(flagLeft|flagLeaving) != 0:
			continue
		case e.flags&flagOnDisk != 0:
			keys, bytes = keys-1, bytes-int64(len(body))
			f.remove(slot)
			continue
		case State(body[0])&below != 0:
			ask = append(ask, string(keyOf(body)))
			continue
		case e.saved == 0 || e.saved > f.durable:
			continue
		}
		out = append(out, KV{string(keyOf(body)), append([]byte(nil), body...)})
		e.flags |= flagLeaving
		f.leaving = append(f.leaving, slot)
		keys, bytes = keys-1, bytes-int64(len(body))
	}
	return out, ask
}

// present drops from a list of leaving slots those that have changed since, or
// are there twice, and counts the others.
func (f *Frontier) present(list *[]uint32) int {
	kept := (*list)[:0]
	for _, slot := range *list {
		if e := f.table.at(slot); e.flags&flagLeaving != 0 {
			e.flags &^= flagLeaving // until all have been looked at
			kept = append(kept, slot)
		}
	}
	for _, slot := range kept {
		f.table.at(slot).flags |= flagLeaving
	}
	*list = kept
	return len(kept)
}

// Answer takes what the disk has of a key that Needs or Spill named: a value that
// Spill gave, or none. The error says that the value is damaged, or that it is
// from a time that this frontier has not reached; nothing has changed then.
func (f *Frontier) Answer(key string, value []byte) error {
	if len(value) > 0 {
		if !check(value, f.folded) {
			return fmt.Errorf("frontier: what is stored of key %q is damaged, or newer than the checkpoint: rebuild the store", key)
		}
		if string(keyOf(value)) != key {
			return fmt.Errorf("frontier: what is stored of key %q is of key %q: rebuild the store", key, keyOf(value))
		}
	}
	slot, ok := f.table.find(key)
	if ok && State(f.table.body(f.table.at(slot))[0])&below == 0 {
		return nil
	}
	f.stats.Read++
	var st State
	if len(value) == 0 && f.lost {
		st = Lossy
	}
	if !ok {
		if len(value) == 0 {
			value = appendHead(f.buf[:0], st, key)
		}
		slot = f.table.insert(key, value)
		f.table.at(slot).flags |= flagOnDisk
		f.versions += int(value[1])
		return nil
	}
	f.change(slot)
	e := f.table.at(slot)
	e.saved = 0 // the parts so far have it as something to be put upon what is on disk
	f.beneath(f.table.body(e), st, value)
	f.table.set(e, f.buf)
	return nil
}

// beneath puts into buf a body with what the disk has of its key beneath it.
func (f *Frontier) beneath(body []byte, st State, disk []byte) {
	st |= State(body[0]) &^ below
	if len(disk) == 0 {
		f.buf = append(f.buf[:0], body...)
		f.buf[0] = byte(st)
		return
	}
	own := append([]byte(nil), body...)
	f.versions += int(disk[1]) - int(own[1])
	all := append([]byte(nil), disk...)
	all[0] |= byte(st)
	for r := versionsOf(own); len(r.b) > 0; {
		f.add(all, st, newcomerOf(r.bytes()))
		all = append(all[:0], f.buf...)
	}
	f.buf = append(f.buf[:0], all...)
}
