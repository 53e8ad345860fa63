package store

import (
	"maps"
	"slices"

	"github.com/isowatch/isowatch/internal/wire"
)

// Where a Commit is more than one transaction holds, as of thousands of histories that begin, or go, with it, or of as
// many alerts, it is written down first, dead letters apart: the keys, and what is to be stored under each. A
// transaction that holds this, in a file of its own if it is large, and the counters, is the one that commits. Then it
// is done, in as many transactions as it takes, and the last one takes the record away.
//
//	write large/<id> ─▶ m rest, m state ─▶ changes ─▶ … ─▶ changes ─▶ no m rest
//	                    it is committed      a crash here: Open does all of it again
//
// What is done is the same whatever was done of it before, as nobody else writes until it
// is over.

// rest is what a Commit has left to do: what is to be stored under each key, nil for nothing any more.
type rest map[string][]byte

// change is what is to be stored under a key, nil for nothing any more.
type change struct{ key, raw []byte }

const (
	restRemove = 0
	restPut    = 1
)

// encode writes, one after the other: 1, the key and what is stored under it, sealed; or 0 and a key that goes. Each is
// its length and its bytes.
func (r rest) encode() (b []byte) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if raw := r[key]; raw == nil {
			b = wire.AppendText(append(b, restRemove), key)
		} else {
			b = wire.AppendText(wire.AppendText(append(b, restPut), key), raw)
		}
	}
	return b
}

// parseRest reads what encode wrote; what is to be stored are parts of b.
func parseRest(b []byte) (rest, error) {
	r, out := wire.NewReader(b), rest{}
	for r.Len() > 0 {
		kind, key, raw := r.Byte(), r.Bytes(), []byte(nil)
		if kind == restPut {
			raw = r.Bytes()
		}
		if !r.OK() || kind > restPut || len(key) == 0 || kind == restPut && len(raw) < sealed {
			return nil, damaged(keyRest, "it can't be decoded")
		}
		out[string(key)] = raw
	}
	return out, nil
}

// finish does what a Commit has left to do; did: there was something. The caller holds write, or
// nobody else has the store yet.
func (s *Badger) finish() (did bool, err error) {
	w, err := s.writer()
	if err != nil {
		return false, err
	}
	defer w.discard()
	b, err := s.get(w.txn, keyRest)
	if err != nil || b == nil {
		return false, err
	}
	changes, err := parseRest(b)
	if err != nil {
		return false, err
	}
	// Badger writes through memory maps.
	if err := s.room(int64(len(b)) + openRoom - s.opt.Reserve); err != nil {
		return false, err
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		if err := w.change(change{[]byte(key), changes[key]}); err != nil {
			return false, err
		}
	}
	if err := w.room(2, 64); err != nil {
		return false, err
	}
	if err := w.remove(keyRest); err != nil {
		return false, err
	}
	return true, w.end()
}

func (w *writer) change(c change) error {
	if err := w.room(1, len(c.key)+len(c.raw)); err != nil {
		return err
	}
	return w.put(c.key, c.raw)
}
