package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"
)

// view runs f on a snapshot.
func (s *Badger) view(ctx context.Context, what string, f func(*badger.Txn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.users.Done()
	if err := s.db.View(f); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("store %s: %s: %w", s.opt.Path, what, err)
	}
	return nil
}

// scan calls f with each key under prefix, from the key from on, and a copy of
// its value, until f returns false.
func scan(ctx context.Context, txn *badger.Txn, prefix, from []byte, f func(key, value []byte) (bool, error)) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = prefix
	opt.PrefetchSize = 16
	it := txn.NewIterator(opt)
	defer it.Close()
	for it.Seek(from); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		if more, err := f(it.Item().Key(), value); err != nil || !more {
			return err
		}
	}
	return nil
}

// Offsets returns the stored next offsets of a source by partition.
func (s *Badger) Offsets(ctx context.Context, source string) (map[int]int64, error) {
	out := make(map[int]int64)
	prefix := offsetPrefix(source)
	err := s.view(ctx, "offsets of "+source, func(txn *badger.Txn) error {
		return scan(ctx, txn, prefix, prefix, func(key, value []byte) (bool, error) {
			n, err := readU64(value)
			if err != nil || len(key) != len(prefix)+4 {
				return false, errDamaged
			}
			out[int(binary.BigEndian.Uint32(key[len(prefix):]))] = int64(n)
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeadLetters calls f for each stored dead letter in order of ID, until f
// returns false. f may call other methods, Close excepted; it sees the store as
// it was at the beginning.
func (s *Badger) DeadLetters(ctx context.Context, f func(DeadLetter) bool) error {
	return s.view(ctx, "dead letters", func(txn *badger.Txn) error {
		st, err := readState(txn)
		if err != nil {
			return err
		}
		return scan(ctx, txn, []byte{prefixLetter}, letterKey(st.letterOldest), func(key, value []byte) (bool, error) {
			id, err := readU64(key[1:])
			if err != nil {
				return false, err
			}
			_, l, err := decodeLetter(value)
			if err != nil {
				return false, fmt.Errorf("dead letter %d: %w", id, err)
			}
			l.ID = id
			return f(l), nil
		})
	})
}

// Alerts calls f for each stored alert in order of ID, until f returns false.
// The same holds for f as with DeadLetters.
func (s *Badger) Alerts(ctx context.Context, f func(Alert) bool) error {
	return s.view(ctx, "alerts", func(txn *badger.Txn) error {
		prefix := []byte{prefixAlert}
		return scan(ctx, txn, prefix, prefix, func(key, value []byte) (bool, error) {
			if len(value) < 8 {
				return false, fmt.Errorf("alert %s: %w", key[1:], errDamaged)
			}
			return f(Alert{ID: string(key[1:]), Body: value[8:]}), nil
		})
	})
}

// HasAlert tells whether an alert of that ID was ever committed.
func (s *Badger) HasAlert(ctx context.Context, id string) (bool, error) {
	found := false
	err := s.view(ctx, "alert "+id, func(txn *badger.Txn) error {
		_, err := txn.Get(alertKey(id))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		found = err == nil
		return err
	})
	return found, err
}

// Undelivered calls f for each alert that is still to be delivered to that
// receiver, oldest first, until f returns false. The same holds for f as with
// DeadLetters.
func (s *Badger) Undelivered(ctx context.Context, receiver string, f func(Alert) bool) error {
	return s.view(ctx, "outbox of "+receiver, func(txn *badger.Txn) error {
		prefix := outboxPrefix(receiver)
		return scan(ctx, txn, prefix, prefix, func(_, value []byte) (bool, error) {
			id := string(value)
			b, err := get(txn, alertKey(id))
			if err == nil && len(b) < 8 {
				err = errDamaged
			}
			if err != nil {
				return false, fmt.Errorf("alert %s: %w", id, err)
			}
			return f(Alert{ID: id, Body: b[8:]}), nil
		})
	})
}
