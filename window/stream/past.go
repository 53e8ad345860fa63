package stream

import (
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

// addReadOfPast takes all versions of the keys of which t reads one. Where each
// value has one writer, and any write may be missing, the others say nothing: a write that
// nobody reads has no order but that of the clock, which is before all
// that the engine has.
func (s *segments) addReadOfPast(t *record.Transaction, keys []version.Key) {
	if t.Status == record.Aborted { // nothing is concluded from what it read
		return
	}
	s.fresh, s.reads = s.fresh[:0], s.reads[:0]
	for i := range t.Ops {
		if t.Ops[i].Kind == record.Read && !s.pastGiven.has(keys[i]) {
			s.fresh, s.reads = append(s.fresh, t.Ops[i].Key), append(s.reads, i)
		}
	}
	if len(s.fresh) == 0 {
		return
	}
	s.refs = s.front.Find(s.refs[:0], s.fresh...)
	n := 0
	for j, i := range s.reads {
		if r := s.refs[j]; r != frontier.NoRef && !s.pastGiven.has(keys[i]) && s.front.Holds(r, t.Ops[i].Value) {
			s.pastGiven.set(keys[i])
			s.fresh[n], s.refs[n] = s.fresh[j], r
			n++
		}
	}
	s.fresh, s.refs = s.fresh[:n], s.refs[:n]
	s.addBases()
}

// addBases gives the engine the transactions that fresh and refs stand for.
func (s *segments) addBases() {
	s.front.Past(s.fresh, s.refs, func(p frontier.Past, stub *frontier.Stub) {
		if _, ok := s.engine.Base(&stub.Txn); ok {
			s.add(fed{ref: ref(s.bases.add(p)), at: stub.Arrival, flags: base, weight: 1})
		}
	})
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
