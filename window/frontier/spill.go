package frontier

import (
	"fmt"
	"iter"
)

// KV is a key with what is known of it, packed.
type KV struct {
	Key   string
	Value []byte
}

// keyBytes is about what a key takes in memory beside its body.
const keyBytes = 24

// over tells whether so many keys with so many bytes of bodies are too many.
func (f *Frontier) over(keys int, bytes int64) bool {
	return f.opt.MaxKeys > 0 && keys > f.opt.MaxKeys || f.opt.MaxBytes > 0 &&
		bytes+keyBytes*int64(keys) > f.opt.MaxBytes && (f.wide || keys > max(1, f.opt.MinKeys))
}

func (f *Frontier) remove(slot uint32) {
	body := f.table.body(f.table.at(slot))
	f.versions -= int(body[1])
	if absent(body) {
		f.absent--
	}
	f.table.remove(slot)
}

// Begin says that another engine begins: the keys that were asked for before may
// leave memory. Those that are asked for from now on stay until the next Begin.
func (f *Frontier) Begin() { f.epoch++ }

// use notes that a key has been asked for.
func (f *Frontier) use(slot uint32) { f.table.at(slot).used = f.epoch }

// spillMost bounds a key and what is known of it together, as disks need a bound;
// bodyMost what is known of it without its name.
const (
	spillMost = 64<<10 - 256
	bodyMost  = 56 << 10
)

// Spill gives at most max keys that should leave memory as there are too many,
// not written for long: to be stored in place of what the disk has of them. They
// leave when Gone says that this is done; without it nothing has changed. None:
// there are not too many, or what there is was asked for since Begin.
//
// Cost: O(keys in memory) at worst, O(max) amortised over a round of calls.
func (f *Frontier) Spill(max int) []KV {
	for _, slot := range f.given {
		f.table.at(slot).flags &^= flagGiven
	}
	f.given = f.given[:0]
	var out []KV
	keys, bytes := f.table.count, f.table.bytes
	// In the first round the hand may find nothing but what was just written.
	for looked := 2 * uint64(f.table.slots); looked > 0 && len(out) < max && f.over(keys, bytes); looked-- {
		slot, e, ok := f.table.pass()
		if !ok || e.used == f.epoch || e.flags&flagGiven != 0 {
			continue
		}
		body := f.table.body(e)
		if len(body)+len(keyOf(body)) > spillMost { // its name is too long
			continue
		}
		keys, bytes = keys-1, bytes-int64(len(body))
		if e.flags&flagOnDisk != 0 {
			f.remove(slot)
			continue
		}
		out = append(out, KV{string(keyOf(body)), append([]byte(nil), body...)})
		e.flags |= flagGiven
		f.given = append(f.given, slot)
	}
	return out
}

// Gone says that what Spill gave last is stored: it leaves memory, but for what was
// written or asked for meanwhile. When keys leave for the first time, those that were
// asked for since Begin, which met gives, stay known, also if what is known is that
// there is nothing: Needs has not named them, so nobody can answer that again after a
// Restore. Nil: there are none.
func (f *Frontier) Gone(met iter.Seq[string]) {
	if !f.gone && len(f.given) > 0 && met != nil {
		for key := range met {
			if slot, ok := f.table.find(key); ok {
				f.use(slot)
			} else {
				f.answer(key, nil)
			}
		}
	}
	for _, slot := range f.given {
		e := f.table.at(slot)
		if e.flags&flagGiven == 0 {
			continue // it has changed since
		}
		e.flags = e.flags&^flagGiven | flagOnDisk
		f.gone = true
		f.stats.Spilled++
		if e.used != f.epoch {
			f.remove(slot)
		}
	}
	f.given = f.given[:0]
}

// Spilled tells whether keys have left memory for the disk: if not, Needs names
// none.
func (f *Frontier) Spilled() bool { return f.gone }

// Needs appends to dst those keys that may be on disk and have to be answered
// before anything else is asked about them, or a write of them is forgotten. The
// others stay in memory until the next Begin, as do those that are answered.
func (f *Frontier) Needs(dst []string, keys ...string) []string {
	for _, key := range keys {
		if slot, ok := f.table.find(key); ok {
			f.use(slot)
		} else if f.gone {
			dst = append(dst, key)
		}
	}
	return dst
}

// Answer takes what the disk has of a key that Needs named: a value that Spill
// gave, or none. The error says that the value is damaged, or that it is from a
// time that this frontier has not reached; nothing has changed then.
func (f *Frontier) Answer(key string, value []byte) error {
	if len(value) > 0 {
		if !check(value, f.folded) {
			return fmt.Errorf("frontier: what is stored of key %q is damaged, or newer than the checkpoint: rebuild the store",
				key)
		}
		if string(keyOf(value)) != key {
			return fmt.Errorf("frontier: what is stored of key %q is of key %q: rebuild the store", key, keyOf(value))
		}
	}
	if slot, ok := f.table.find(key); ok {
		f.use(slot)
		return nil
	}
	f.stats.Read++
	f.answer(key, value)
	return nil
}

// answer takes in what the disk has of a key that is not in memory.
func (f *Frontier) answer(key string, value []byte) {
	if len(value) == 0 { // remembered, so as not to be asked for again
		f.buf = appendHead(f.buf[:0], 0, key)
		value = f.buf
	}
	if absent(value) {
		f.absent++
	}
	slot := f.table.insert(key, value)
	f.table.at(slot).flags |= flagOnDisk
	f.use(slot)
	f.versions += int(value[1])
}

// absent tells whether a body says that its key was never written.
func absent(body []byte) bool { return State(body[0])&(Written|Appended) == 0 }
