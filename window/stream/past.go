package stream

import (
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/frontier"
)

// addPast tells the engine, before it is given t, what the frontier knows of its keys,
// whose numbers keys are.
func (s *segments) addPast(t *record.Transaction, keys []version.Key) {
	s.listed = s.listed || lists(t)
	switch {
	case s.number == 0 || !s.complete && !s.listed && !s.lazy:
	case !s.complete && !s.listed && s.unique:
		s.addReadOfPast(t, keys)
	default:
		s.addAllOfPast(t, keys)
	}
}

// addAllOfPast takes all versions of the keys that the engine has not been told of.
func (s *segments) addAllOfPast(t *record.Transaction, keys []version.Key) {
	s.fresh = s.fresh[:0]
	for i := range t.Ops {
		if keyless(&t.Ops[i]) || s.pastGiven.has(keys[i]) {
			continue
		}
		s.pastGiven.set(keys[i])
		s.loseKey(t.Ops[i].Key)
		s.fresh = append(s.fresh, t.Ops[i].Key)
	}
	if !s.lazy || len(s.fresh) == 0 {
		return
	}
	s.refs = s.front.Find(s.refs[:0], s.fresh...)
	s.addBases()
}

// addReadOfPast takes all versions of the keys of which one is read, as soon as the key is written too. Where each
// value has one writer, and any write may be missing, the others say nothing: a write that nobody reads has no order
// but that of the clock, which is before all that the engine has. One that is read has none either until the key is
// overwritten, as nothing leads to what is of the past. At weak levels what two of them wrote says which came first.
func (s *segments) addReadOfPast(t *record.Transaction, keys []version.Key) {
	s.fresh, s.places = s.fresh[:0], s.places[:0]
	for i := range t.Ops {
		switch k := keys[i]; {
		case s.pastGiven.has(k):
			continue
		case t.Ops[i].Kind == record.Write:
			if s.written.set(k); !s.pastRead.keys.has(k) {
				continue
			}
		case t.Ops[i].Kind != record.Read || t.Status == record.Aborted: // nothing is concluded from what it read
			continue
		}
		s.fresh, s.places = append(s.fresh, t.Ops[i].Key), append(s.places, i)
	}
	if len(s.fresh) == 0 {
		return
	}
	s.met = s.front.Find(s.met[:0], s.fresh...)
	for j, i := range s.places {
		if s.met[j] == frontier.NoRef || t.Ops[i].Kind != record.Read {
			continue
		}
		writer, ok := s.front.Writer(s.met[j], t.Ops[i].Value)
		switch {
		case !ok:
			s.met[j] = frontier.NoRef
		case !s.weak && !s.written.has(keys[i]):
			s.engine.Lose(incremental.Lost{Write: &t.Ops[i]})
			s.pastRead.add(writer, keys[i], s.met[j])
			s.met[j] = frontier.NoRef
		}
	}
	s.refs = s.refs[:0]
	give := func(k version.Key, r frontier.Ref) {
		if !s.pastGiven.has(k) {
			s.pastGiven.set(k)
			s.refs = append(s.refs, r)
		}
	}
	for j, i := range s.places {
		r := s.met[j]
		if r == frontier.NoRef || s.pastGiven.has(keys[i]) {
			continue
		}
		give(keys[i], r)
		for writer := range s.front.Writers(r) { // what else is read of it orders it as well
			s.pastRead.of(writer, give)
		}
	}
	s.addBases()
}

// addBases gives the engine the transactions that refs stand for.
func (s *segments) addBases() {
	s.front.Past(s.refs, func(p frontier.Past, stub *frontier.Stub) {
		if _, ok := s.engine.Base(&stub.Txn); ok {
			s.add(fed{ref: ref(s.bases.add(p)), at: stub.Arrival, flags: base, weight: 1})
		}
	})
}

// pastReads are the keys of which something of the past was read that the engine was not given.
type pastReads struct {
	keys bits
	all  []pastRead
	last map[uint64]int // by the number of who wrote what was read: the last of all
}

// pastRead is a key of which what one transaction of the past wrote was read.
type pastRead struct {
	key    version.Key
	ref    frontier.Ref
	before int // the one before of the same writer, or -1
}

func (p *pastReads) clear() {
	p.keys.clear()
	p.all = p.all[:0]
	clear(p.last)
}

// add notes a key, and who wrote what was read.
func (p *pastReads) add(writer uint64, k version.Key, r frontier.Ref) {
	last, ok := p.last[writer]
	if !ok {
		last = -1
	}
	for i := last; i >= 0 && p.keys.has(k); i = p.all[i].before {
		if p.all[i].key == k {
			return
		}
	}
	if p.last == nil {
		p.last = map[uint64]int{}
	}
	p.keys.set(k)
	p.last[writer] = len(p.all)
	p.all = append(p.all, pastRead{k, r, last})
}

// of calls f with the keys of which what that transaction wrote was read.
func (p *pastReads) of(writer uint64, f func(version.Key, frontier.Ref)) {
	for i, ok := p.last[writer]; ok && i >= 0; i = p.all[i].before {
		f(p.all[i].key, p.all[i].ref)
	}
}

// bases are transactions of the past, most with one key.
type bases struct {
	all  []struct{ number, from uint64 }
	keys []frontier.Ref
}

func (b *bases) clear() { b.all, b.keys = b.all[:0], b.keys[:0] }

// add keeps p and returns its place.
func (b *bases) add(p frontier.Past) int {
	b.all = append(b.all, struct{ number, from uint64 }{p.Number, uint64(len(b.keys))})
	b.keys = append(b.keys, p.Keys...)
	return len(b.all) - 1
}

func (b *bases) at(i int) frontier.Past {
	to := uint64(len(b.keys))
	if i+1 < len(b.all) {
		to = b.all[i+1].from
	}
	return frontier.Past{Number: b.all[i].number, Keys: b.keys[b.all[i].from:to]}
}

// bits are a set of small numbers.
type bits []uint64

func (b bits) has(n version.Key) bool {
	return n>>6 < version.Key(len(b)) && b[n>>6]>>(n&63)&1 != 0
}

func (b *bits) set(n version.Key) {
	for n>>6 >= version.Key(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[n>>6] |= 1 << (n & 63)
}

func (b *bits) clear() { *b = (*b)[:0] }
