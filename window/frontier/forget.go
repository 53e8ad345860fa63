package frontier

import (
	"encoding/binary"
	"math"

	"github.com/isowatch/isowatch/ingest/record"
)

// touched is what a transaction did, by key, in the order in which it first
// touched them.
type touched struct {
	keys []touch
	at   map[string]int // once there are many
	next []int32        // by operation: the next one that counts on its key, or -1
	head []byte         // the packed writer
	raw  []byte         // the packed version
}

// touch is what a transaction did to one key.
type touch struct {
	key         string
	read        record.Value // by its first operation, if that is a read
	first, last int32        // operations that count: the last write and the appends since; -1: none
	hasRead     bool
	written     bool
	appended    bool
	overwritten bool // a write of its own
	reread      bool // something else than by the first read
	hit         bool // by a predicate write: what it holds then is not known
	// its last write may be of what it had read, which its stub does not show: it would seem to make the value
	putBack bool
}

// fewKeys is how many keys of a transaction are looked through one by one.
const fewKeys = 24

func (s *touched) find(key string) *touch {
	if len(s.keys) <= fewKeys {
		for i := range s.keys {
			if s.keys[i].key == key {
				return &s.keys[i]
			}
		}
	} else {
		if len(s.at) == 0 {
			if s.at == nil {
				s.at = map[string]int{}
			}
			for i := range s.keys {
				s.at[s.keys[i].key] = i
			}
		}
		if i, ok := s.at[key]; ok {
			return &s.keys[i]
		}
		s.at[key] = len(s.keys)
	}
	s.keys = append(s.keys, touch{key: key, first: -1, last: -1})
	return &s.keys[len(s.keys)-1]
}

// take reads a transaction's operations.
func (s *touched) take(ops []record.Op) {
	clear(s.keys)
	s.keys = s.keys[:0]
	clear(s.at)
	s.next = s.next[:0]
	for i := range ops {
		o := &ops[i]
		s.next = append(s.next, -1)
		switch o.Kind {
		case record.Read:
			if k := s.find(o.Key); !k.hasRead && k.first < 0 {
				k.read, k.hasRead = o.Value, true
			} else if k.first < 0 {
				k.reread = k.reread || o.Value != k.read
			}
		case record.Write:
			k := s.find(o.Key)
			k.overwritten = k.overwritten || k.first >= 0
			k.putBack = k.hasRead && k.read == o.Value || k.reread
			k.written = true
			k.first, k.last = int32(i), int32(i)
		case record.Append:
			k := s.find(o.Key)
			k.appended = true
			if k.first < 0 {
				k.first = int32(i)
			} else {
				s.next[k.last] = int32(i)
			}
			k.last = int32(i)
		}
	}
	for i := 0; i < len(ops) && len(s.keys) > 0; i++ {
		rows, _ := hits(&ops[i])
		for e := range rows.Each() {
			s.find(e.Text).hit = true
		}
	}
}

// hits are the keys that a predicate write hit, a list, where that is known.
func hits(o *record.Op) (rows record.Value, known bool) {
	if o.Kind == record.PredicateWrite {
		for name, v := range o.Value.Members() {
			if name == record.Hit {
				return v, true
			}
		}
	}
	return record.Null, false
}

// Forget folds a transaction that leaves the window. Transactions have to come in
// the order of release, as they were released: with the session they were given,
// and without times that were dropped. Arrival stands in for the end of one
// without times. Nothing of t is kept. If Needs names a key that t writes, it has
// to be answered first; else nothing is known for sure of the key any more.
//
// Cost: O(operations + versions of the keys written).
func (f *Frontier) Forget(t *record.Transaction, arrival int64) {
	f.folded++
	s := &f.touched
	s.take(t.Ops)
	s.head = s.head[:0]
	f.fetchWritten()
	for i := range s.keys {
		if k := &s.keys[i]; k.first >= 0 {
			f.forget(t, arrival, k)
		}
	}
	for i := range t.Ops {
		rows, known := hits(&t.Ops[i])
		st := Lossy
		if t.Status != record.Aborted {
			st |= Repeated
		}
		for e := range rows.Each() { // what it made of them is in no version
			f.stats.Unreadable++
			f.note(e.Text, st, newcomer{})
		}
		f.opaque = f.opaque || !known && t.Ops[i].Kind == record.PredicateWrite && t.Status != record.Aborted
	}
	f.wide = f.wide || f.table.bytes > WideBytes
}

// fetchWritten fetches the keys that the transaction at hand wrote.
func (f *Frontier) fetchWritten() {
	var names [findMost]string
	var hashes [findMost]uint32
	n := 0
	for i := range f.touched.keys {
		if k := &f.touched.keys[i]; k.first >= 0 && n < findMost {
			names[n] = k.key
			n++
		}
	}
	if n > 1 {
		f.fetch(names[:n], &hashes)
	}
}

// forget folds what a transaction did to a key.
func (f *Frontier) forget(t *record.Transaction, arrival int64, k *touch) {
	var st State
	if k.written {
		st |= Written
	}
	if k.appended {
		st |= Appended
	}
	if k.overwritten || k.putBack {
		st |= Lossy
		f.stats.Unreadable++
	}
	var n newcomer
	if t.Status == record.Aborted || k.hit {
		st |= Lossy
		f.stats.Unreadable++
	} else {
		n = newcomerOf(f.pack(t, arrival, k))
		n.key = k
	}
	f.note(k.key, st, n)
}

// note adds what is known of a key.
func (f *Frontier) note(key string, st State, n newcomer) {
	slot, ok := f.table.find(key)
	if !ok {
		if f.gone { // what the disk has may be anything, and will be lost
			st |= stateMask
		}
		if len(n.raw) > bodyMost {
			n.raw = nil
			st |= Lossy
			f.stats.Dropped++
		}
		f.buf = appendHead(f.buf[:0], st, key)
		if n.raw != nil {
			f.buf = appendVersion(f.buf, 0, n.raw)
			f.versions++
		}
		f.table.insert(key, f.buf)
		f.total++
		return
	}
	e := f.table.at(slot)
	e.flags = e.flags&^(flagOnDisk|flagGiven) | flagRecent
	if absent(f.table.body(e)) {
		f.absent--
		f.total++
	} else if known := State(f.table.body(e)[0]); n.raw == nil && known|st == known {
		return
	}
	f.add(f.table.body(e), st, n)
	f.table.set(e, f.buf)
}

// pack packs the version that t makes of a key.
func (f *Frontier) pack(t *record.Transaction, arrival int64, k *touch) []byte {
	s := &f.touched
	if len(s.head) == 0 {
		s.head = packWriter(s.head, t, f.folded, arrival)
	}
	count := uint64(0)
	for i := k.first; i >= 0; i = s.next[i] {
		count++
	}
	s.raw = append(s.raw[:0], s.head...)
	s.raw = binary.AppendUvarint(s.raw, count)
	for i := k.first; i >= 0; i = s.next[i] {
		s.raw = packOp(s.raw, &t.Ops[i])
	}
	return s.raw
}

// newcomer is a version to be added. Without raw there is none.
type newcomer struct {
	v   version
	raw []byte
	key *touch // what its transaction did; nil if that is not known any more
	op  op     // its last write
}

func newcomerOf(raw []byte) newcomer {
	v, _ := parse(raw)
	return newcomer{v: v, raw: raw, op: v.last()}
}

// add puts into buf a body with another version and more state.
func (f *Frontier) add(body []byte, st State, n newcomer) {
	st |= State(body[0])
	kept, superseded := f.kept[:0], 0
	late := false // the newcomer is superseded itself
	for r := versionsOf(body); r.Len() > 0; {
		raw := r.Bytes()
		if n.raw == nil {
			kept = append(kept, raw)
			continue
		}
		v, _ := parse(raw)
		if o := v.last(); o.append && n.op.append && o.kind == n.op.kind && o.num == n.op.num &&
			string(o.text) == string(n.op.text) {
			st |= Repeated
		}
		late = late || f.byClock(&n.v, &v)
		if f.supersedes(n, &v) {
			superseded++
			continue
		}
		kept = append(kept, raw)
	}
	switch {
	case n.raw == nil:
	case late:
		superseded++
	default:
		kept = append(kept, n.raw)
	}
	dropped := max(0, len(kept)-f.opt.MaxPerKey)
	size := 0
	for _, raw := range kept[dropped:] {
		size += len(raw)
	}
	for ; size > bodyMost; dropped++ {
		size -= len(kept[dropped])
	}
	f.stats.Superseded += uint64(superseded)
	f.stats.Dropped += uint64(dropped)
	if superseded+dropped > 0 {
		st |= Lossy
	}
	f.buf = appendHead(f.buf[:0], st, keyOf(body))
	for _, raw := range kept[dropped:] {
		f.buf = appendVersion(f.buf, 0, raw)
	}
	f.versions += int(f.buf[1]) - int(body[1])
	f.kept = kept
}

// supersedes tells whether the newcomer is proved to come after v.
func (f *Frontier) supersedes(n newcomer, v *version) bool {
	if !n.v.committed() {
		return false
	}
	if n.key != nil && n.key.hasRead && shows(n.key.read, v) {
		return true
	}
	return v.committed() && string(v.session) == string(n.v.session) || f.byClock(v, &n.v)
}

// byClock tells whether a is before b in real time.
func (f *Frontier) byClock(a, b *version) bool {
	return a.committed() && b.committed() && a.timed() && b.timed() && a.end <= math.MaxInt64-f.opt.MaxSkew &&
		a.end+f.opt.MaxSkew < b.start
}

// shows tells whether who read the value saw the version: it is what the version
// left, or a list with the last element that it appended.
func shows(read record.Value, v *version) bool {
	o := v.last()
	if !o.append {
		return o.is(read)
	}
	for _, x := range read.Elements() {
		if o.is(x) {
			return true
		}
	}
	return false
}
