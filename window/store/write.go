package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// Commit makes c durable; see the package documentation for commits that are
// too large for one transaction. ctx is looked at before it begins, not after.
func (s *Badger) Commit(ctx context.Context, c Commit) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if s.opt.InMemory {
		for _, a := range c.Alerts {
			if len(a.Body) > LimitBodyInMemory {
				return fmt.Errorf("store: alert %s has a body of %d bytes; at most %d can be kept in memory, so give the store a path", a.ID, len(a.Body), LimitBodyInMemory)
			}
		}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.users.Done()
	s.write.Lock()
	defer s.write.Unlock()
	w, err := s.writer()
	if err == nil {
		defer w.discard()
		err = w.commit(c)
	}
	if err != nil {
		return fmt.Errorf("store %s: commit: %w", s.opt.Path, err)
	}
	return nil
}

// Delivered takes an alert out of that receiver's outbox. One that is not in it
// changes nothing.
func (s *Badger) Delivered(ctx context.Context, receiver, id string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.users.Done()
	s.write.Lock()
	defer s.write.Unlock()
	err := s.db.Update(func(txn *badger.Txn) error {
		b, err := get(txn, alertKey(id))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		number, err := readU64(b)
		if err != nil {
			return err
		}
		return txn.Delete(outboxKey(receiver, number))
	})
	if err != nil {
		return fmt.Errorf("store %s: alert %s delivered to %s: %w", s.opt.Path, id, receiver, err)
	}
	return nil
}

// writer puts groups of changes into transactions, each group whole. It starts
// another transaction when a group does not fit any more.
type writer struct {
	s   *Badger
	txn *badger.Txn
	// before is the state that txn found, state what it leaves. It is read anew
	// each time: after a failed commit nobody knows which one holds.
	before, state state
	count         int64
	size          int64
	// What a transaction may hold.
	countMax, sizeMax int64
}

func (s *Badger) writer() (*writer, error) {
	w := &writer{s: s, countMax: s.db.MaxBatchCount(), sizeMax: s.db.MaxBatchSize()}
	if err := w.begin(); err != nil {
		w.discard()
		return nil, err
	}
	return w, nil
}

// Badger counts the entry that ends a transaction, and we add the state.
const (
	reservedCount = 4
	reservedSize  = 256
	// overheadMax is more than what Badger adds to the size of an entry.
	overheadMax = 64
)

func (w *writer) begin() error {
	w.txn = w.s.db.NewTransaction(true)
	w.count, w.size = reservedCount, reservedSize
	var err error
	w.before, err = readState(w.txn)
	w.state = w.before
	return err
}

// discard gives up what is not committed.
func (w *writer) discard() { w.txn.Discard() }

// end commits what there is.
func (w *writer) end() error {
	if w.state != w.before {
		if err := w.txn.Set(keyState, w.state.encode()); err != nil {
			return err
		}
	}
	return w.txn.Commit()
}

// room makes sure that a group of so many entries and bytes fits.
func (w *writer) room(count int, size int) error {
	c, z := int64(count), int64(size)+int64(count)*overheadMax
	if w.count+c >= w.countMax || w.size+z >= w.sizeMax {
		if w.count > reservedCount {
			if err := w.end(); err != nil {
				return err
			}
			if err := w.begin(); err != nil {
				return err
			}
		}
	}
	w.count += c
	w.size += z
	return nil
}

// stored is what a value adds to a transaction: large ones go to the value log.
func (w *writer) stored(value []byte) int {
	if !w.s.opt.InMemory && int64(len(value)) >= w.s.db.Opts().ValueThreshold {
		return 0
	}
	return len(value)
}

func (w *writer) commit(c Commit) error {
	for _, l := range c.DeadLetters {
		if err := w.letter(l.Fit(w.s.opt.MaxValue)); err != nil {
			return err
		}
	}
	for _, a := range c.Alerts {
		if err := w.alert(a); err != nil {
			return err
		}
	}
	return w.offsets(c.Offsets)
}

// letter adds a dead letter that is not there yet, and drops old ones.
func (w *writer) letter(l DeadLetter) error {
	id := identify(l)
	value := encodeLetter(nil, id, l)
	// Room first: it may begin another transaction.
	if err := w.room(2, w.stored(value)+64); err != nil {
		return err
	}
	if _, err := w.txn.Get(indexKey(id)); err == nil || !errors.Is(err, badger.ErrKeyNotFound) {
		return err
	}
	number := w.state.letterNext
	if err := errors.Join(w.txn.Set(letterKey(number), value), w.txn.Set(indexKey(id), u64(number))); err != nil {
		return err
	}
	w.state.letterNext++
	w.state.letterBytes += uint64(len(value))
	for {
		kept := w.state.letterNext - w.state.letterOldest
		if kept <= 1 || (kept <= uint64(w.s.opt.MaxDeadLetters) && w.state.letterBytes <= uint64(w.s.opt.MaxDeadLetterBytes)) {
			return nil
		}
		if err := w.dropOldest(); err != nil {
			return err
		}
	}
}

func (w *writer) dropOldest() error {
	if err := w.room(2, 64); err != nil {
		return err
	}
	key := letterKey(w.state.letterOldest)
	value, err := get(w.txn, key)
	if err != nil {
		return fmt.Errorf("oldest dead letter %d: %w", w.state.letterOldest, err)
	}
	id, _, err := decodeLetter(value)
	if err != nil {
		return fmt.Errorf("oldest dead letter %d: %w", w.state.letterOldest, err)
	}
	w.state.letterOldest++
	w.state.letterBytes -= uint64(len(value))
	w.state.letterDrops++
	return errors.Join(w.txn.Delete(key), w.txn.Delete(indexKey(id)))
}

// alert adds an alert and its outbox entries, or replaces the body.
func (w *writer) alert(a Alert) error {
	size := w.stored(a.Body) + len(a.ID) + 16
	for _, r := range w.s.opt.Receivers {
		size += len(r) + len(a.ID) + 24
	}
	if err := w.room(1+len(w.s.opt.Receivers), size); err != nil {
		return err
	}
	key := alertKey(a.ID)
	old, err := get(w.txn, key)
	switch {
	case err == nil:
		number, err := readU64(old)
		if err != nil {
			return fmt.Errorf("alert %s: %w", a.ID, err)
		}
		if bytes.Equal(old[8:], a.Body) {
			return nil
		}
		return w.txn.Set(key, append(u64(number), a.Body...))
	case !errors.Is(err, badger.ErrKeyNotFound):
		return err
	}
	number := w.state.alertNext
	w.state.alertNext++
	if err := w.txn.Set(key, append(u64(number), a.Body...)); err != nil {
		return err
	}
	for _, r := range w.s.opt.Receivers {
		if err := w.txn.Set(outboxKey(r, number), []byte(a.ID)); err != nil {
			return err
		}
	}
	return nil
}

// offsets puts all offsets into the last transaction and commits it.
func (w *writer) offsets(offsets map[string]map[int]int64) error {
	count, size := 0, 0
	for source, parts := range offsets {
		count += len(parts)
		size += len(parts) * (len(source) + 24)
	}
	if err := w.room(count, size); err != nil {
		return err
	}
	for _, source := range slices.Sorted(maps.Keys(offsets)) {
		for partition, next := range offsets[source] {
			if err := w.txn.Set(offsetKey(source, partition), u64(uint64(next))); err != nil {
				return err
			}
		}
	}
	return w.end()
}
