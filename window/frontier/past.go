package frontier

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wire"
)

// Ref is a key that is in memory, as Find has found it: the same until the next
// Begin.
type Ref uint32

// NoRef is what Find gives for a key of which nothing is known in memory.
const NoRef = Ref(noSlot)

// findMost is how many keys Find looks up side by side.
const findMost = 16

// Find appends to dst a Ref for each of the keys. The keys that are found stay in
// memory until the next Begin. Where Needs names one of them it has to be answered
// first.
func (f *Frontier) Find(dst []Ref, keys ...string) []Ref {
	var hashes [findMost]uint32
	for len(keys) > 0 {
		some := keys[:min(findMost, len(keys))]
		f.fetch(some, &hashes)
		for i, key := range some {
			slot, ok := f.table.probe(key, hashes[i])
			if ok {
				f.use(slot)
			}
			dst = append(dst, Ref(slot))
		}
		keys = keys[len(some):]
	}
	return dst
}

// fetch hashes at most findMost keys, and looks where they are, in steps that each go to one
// thing of all of them: what is not in the cache is then waited for together, not
// one after the other.
func (f *Frontier) fetch(keys []string, hashes *[findMost]uint32) {
	t := &f.table
	var slots [findMost]uint32
	mask := uint32(len(t.index) - 1)
	for i, key := range keys {
		hashes[i] = hashOf(key)
	}
	for i := range keys {
		slots[i] = t.index[hashes[i]&mask]
	}
	for i := range keys {
		if slots[i] == 0 {
			continue
		}
		if e := t.at(slots[i] - 1); e.hash == hashes[i] {
			f.seen |= t.body(e)[0]
		}
	}
}

// Holds tells whether one of the key's versions is a write of that value.
func (f *Frontier) Holds(r Ref, value record.Value) bool {
	for versions := versionsOf(f.table.body(f.table.at(uint32(r)))); versions.Len() > 0; {
		v, _ := parse(versions.Bytes())
		if o := v.last(); !o.append && o.is(value) {
			return true
		}
	}
	return false
}

// Past is a Stub in a form that takes little room: the transaction of that number,
// with what it wrote to some keys.
type Past struct {
	Number uint64
	Keys   []Ref
}

// Past calls take with the stubs of keys, as All gives those of all, which refs
// stand for, in the same order, without their IDs. Both arguments are good until take returns.
//
// Cost: O(v log v) for v versions.
func (f *Frontier) Past(keys []string, refs []Ref, take func(Past, *Stub)) {
	places := f.places[:0]
	for i, r := range refs {
		if r != NoRef {
			places = appendVersions(places, keys[i], r, f.table.body(f.table.at(uint32(r))))
		}
	}
	f.places = places
	if len(places) > 1 {
		slices.SortFunc(places, byNumber)
	}
	s := &f.scratch
	for len(places) > 0 {
		v, _ := parse(places[0].raw)
		*s = Stub{Txn: f.writerOf(&v, s.Txn.Ops[:0]), Number: v.number, Arrival: v.end}
		s.Txn.Session = f.sessions.text(v.session)
		p := Past{v.number, f.refs[:0]}
		for len(places) > 0 && places[0].number == v.number {
			s.Txn.Ops = appendOps(s.Txn.Ops, &places[0])
			p.Keys = append(p.Keys, places[0].ref)
			places = places[1:]
		}
		f.refs = p.Keys
		take(p, s)
	}
	clear(f.places)
	clear(s.Txn.Ops)
}

// Stub is the transaction that Past gave, with its ID; nothing may have been
// forgotten meanwhile. Nothing of p is kept.
func (f *Frontier) Stub(p Past) Stub {
	var places []place
	for _, r := range p.Keys {
		body := f.table.body(f.table.at(uint32(r)))
		places = appendVersions(places, string(keyOf(body)), r, body)
	}
	places = slices.DeleteFunc(places, func(x place) bool { return x.number != p.Number })
	if len(places) == 0 {
		return Stub{Number: p.Number}
	}
	return f.stubsOf(places)[0]
}

func byNumber(a, b place) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.key, b.key))
}

// appendOps appends the operations of a version.
func appendOps(dst []record.Op, p *place) []record.Op {
	v, _ := parse(p.raw)
	ops := wire.NewReader(v.ops)
	for range v.count {
		o := readOp(&ops)
		dst = append(dst, o.record(p.key))
	}
	return dst
}

// texts gives equal strings the same memory, as far as it remembers them.
type texts [1 << 8]string

func (t *texts) text(b []byte) string {
	if len(b) > textMost {
		return string(b)
	}
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	at := &t[(h^h>>16)%uint32(len(t))]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// textMost bounds the strings that are remembered.
const textMost = 64
