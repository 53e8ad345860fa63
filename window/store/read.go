package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// view runs f on a snapshot.
func (s *Badger) view(ctx context.Context, what string, f func(*badger.Txn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.read(f); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.As(err, new(*Damage)) {
			return fmt.Errorf("store %s: %w", s.opt.Path, err) // it names the record
		}
		return fmt.Errorf("store %s: %s: %w", s.opt.Path, what, err)
	}
	return nil
}

// scan calls f with each key under prefix, from the key from on, and a copy of
// what is stored under it, until f returns false.
func scan(ctx context.Context, txn *badger.Txn, prefix, from []byte, f func(key, raw []byte) (bool, error)) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = prefix
	opt.PrefetchSize = 16
	it := txn.NewIterator(opt)
	defer it.Close()
	for it.Seek(from); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := it.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		if more, err := f(it.Item().Key(), raw); err != nil || !more {
			return err
		}
	}
	return nil
}

// values is scan with the value of each key; it is nil where that was replaced meanwhile.
func (s *Badger) values(ctx context.Context, txn *badger.Txn, prefix, from []byte,
	f func(key, value []byte) (bool, error)) error {
	return scan(ctx, txn, prefix, from, func(key, raw []byte) (bool, error) {
		value, err := s.value(key, raw)
		if err != nil && !errors.Is(err, errGone) {
			return false, err
		}
		return f(key, value)
	})
}

// has tells whether anything is stored under a key.
func has(txn *badger.Txn, key []byte) (bool, error) {
	_, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, err
}

// rawOf is what is stored under a key, nil if nothing is.
func rawOf(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// get is the value of a key, nil if there is none.
func (s *Badger) get(txn *badger.Txn, key []byte) ([]byte, error) {
	raw, err := rawOf(txn, key)
	if err != nil || raw == nil {
		return nil, err
	}
	return s.value(key, raw)
}

// numbered is get of a value that begins with a number; the rest is nil if there is none.
func (s *Badger) numbered(txn *badger.Txn, key []byte) (n uint64, rest []byte, err error) {
	b, err := s.get(txn, key)
	if err != nil || b == nil {
		return 0, nil, err
	}
	return split(key, b)
}

// split takes apart a value that begins with a number.
func split(key, b []byte) (n uint64, rest []byte, err error) {
	if n, err = readU64(b); err != nil {
		return 0, nil, damaged(key, "it is cut")
	}
	return n, b[8:], nil
}

// Offsets returns the stored next offsets of a source by partition.
func (s *Badger) Offsets(ctx context.Context, source string) (map[int]int64, error) {
	out := make(map[int]int64)
	prefix := offsetPrefix(source)
	err := s.view(ctx, "offsets of "+source, func(txn *badger.Txn) error {
		return s.values(ctx, txn, prefix, prefix, func(key, value []byte) (bool, error) {
			n, err := readU64(value)
			if err != nil || len(key) != len(prefix)+4 {
				return false, damaged(key, "it is cut")
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
		next := st.letterOldest
		stopped := false
		oldest := numberKey(prefixLetter, st.letterOldest)
		err = s.values(ctx, txn, oldest[:1], oldest, func(key, value []byte) (bool, error) {
			if id, err := readU64(key[1:]); err != nil || id != next {
				return false, damaged(numberKey(prefixLetter, next), "it is missing")
			}
			next++
			if value == nil {
				return true, nil
			}
			_, l, err := decodeLetter(value)
			if err != nil {
				return false, damaged(key, "it can't be decoded")
			}
			l.ID = next - 1
			stopped = !f(l)
			return !stopped, nil
		})
		if err == nil && !stopped && next != st.letterNext {
			return damaged(numberKey(prefixLetter, next), "it is missing")
		}
		return err
	})
}

// Alert returns the alert of that ID, and whether there is one.
func (s *Badger) Alert(ctx context.Context, id string) (Alert, bool, error) {
	var body []byte
	err := s.view(ctx, "alert "+id, func(txn *badger.Txn) (err error) {
		_, body, err = s.numbered(txn, nameKey(prefixAlert, id))
		return err
	})
	if err != nil || body == nil {
		return Alert{}, false, err
	}
	return Alert{ID: id, Body: body}, true, nil
}

// body is that of an alert, of which another record says that it is there, or else why it is damaged; nil: it was
// replaced or dropped meanwhile.
func (s *Badger) body(txn *badger.Txn, id []byte, why string) ([]byte, error) {
	at := nameKey(prefixAlert, id)
	_, body, err := s.numbered(txn, at)
	switch {
	case errors.Is(err, errGone):
		return nil, nil
	case err == nil && body == nil:
		return nil, damaged(at, why)
	}
	return body, err
}

// Undelivered calls f for each notice that is still to be delivered to that
// receiver, oldest first, until f returns false. The same holds for f as with
// DeadLetters.
func (s *Badger) Undelivered(ctx context.Context, receiver string, f func(Notice) bool) error {
	return s.view(ctx, "outbox of "+receiver, func(txn *badger.Txn) error {
		prefix := outboxPrefix(receiver)
		return s.values(ctx, txn, prefix, prefix, func(key, id []byte) (bool, error) {
			if len(key) != len(prefix)+8 {
				return false, damaged(key, "it is cut")
			}
			at := numberKey(prefixNotice, binary.BigEndian.Uint64(key[len(prefix):]))
			body, err := s.get(txn, at)
			switch {
			case errors.Is(err, errGone):
				return true, nil // it was delivered meanwhile
			case err != nil:
				return false, err
			case body == nil:
				return false, damaged(at, "it is to be delivered, and missing")
			}
			return f(Notice{ID: string(id), Body: body}), nil
		})
	})
}

// Waiting counts what is to be delivered to that receiver; of more than most, most.
func (s *Badger) Waiting(ctx context.Context, receiver string, most int) (n int, err error) {
	err = s.view(ctx, "outbox of "+receiver, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: outboxPrefix(receiver)})
		defer it.Close()
		for it.Rewind(); it.Valid() && n < most; it.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// Pending calls f for each alert of which there is news, oldest first, until f
// returns false. The same holds for f as with DeadLetters.
func (s *Badger) Pending(ctx context.Context, f func(Alert) bool) error {
	return s.view(ctx, "pending alerts", func(txn *badger.Txn) error {
		prefix := []byte{prefixPending}
		return s.values(ctx, txn, prefix, prefix, func(key, value []byte) (bool, error) {
			news, id, err := split(key, value)
			if err != nil {
				return false, err
			}
			body, err := s.body(txn, id, "there is news of it, and it is missing")
			if err != nil || body == nil {
				return err == nil, err
			}
			return f(Alert{ID: string(id), Body: body, News: int(news)}), nil
		})
	})
}

// Life returns the state that was committed last, and whether there is one.
func (s *Badger) Life(ctx context.Context) ([]byte, bool, error) {
	return s.one(ctx, "state of alerts", keyLife)
}

// one is what is stored under a key, and whether there is anything.
func (s *Badger) one(ctx context.Context, what string, key []byte) (out []byte, found bool, err error) {
	err = s.view(ctx, what, func(txn *badger.Txn) (err error) {
		if out, err = s.get(txn, key); errors.Is(err, errGone) {
			return nil
		}
		return err
	})
	return out, out != nil, err
}

// Journal calls f for each stored entry with Number >= from, in ascending order,
// until f returns false. The same holds for f as with DeadLetters.
func (s *Badger) Journal(ctx context.Context, from uint64, f func(Entry) bool) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	err := s.journal.each(from, func(e Entry) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return f(e), nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("store %s: %w", s.opt.Path, err)
	}
	return err
}

// Entry returns one entry, and whether it is there. O(log entries), but for the
// first one of a file, of which the headers are read.
func (s *Badger) Entry(ctx context.Context, number uint64) (Entry, bool, error) {
	if err := s.enter(ctx); err != nil {
		return Entry{}, false, err
	}
	defer s.leave()
	var found Entry
	ok := false
	for _, g := range s.journal.snapshot() {
		if number < g.first || number > g.last {
			continue
		}
		var buf []byte
		_, err := s.journal.eachIn(g, number, &buf, func(e Entry) (bool, error) {
			if e.Number == number {
				found, ok = e, true
			}
			return false, nil
		})
		if err != nil {
			return Entry{}, false, fmt.Errorf("store %s: %w", s.opt.Path, err)
		}
	}
	return found, ok, nil
}

// Checkpoint returns the last committed checkpoint of a history, and whether
// there is one.
func (s *Badger) Checkpoint(ctx context.Context, db string) ([]byte, bool, error) {
	return s.one(ctx, "checkpoint of "+db, nameKey(prefixCheckpoint, db))
}

// Checkpoints returns the names of the histories that have one, sorted.
func (s *Badger) Checkpoints(ctx context.Context) ([]string, error) {
	var out []string
	err := s.view(ctx, "checkpoints", func(txn *badger.Txn) error {
		prefix := []byte{prefixCheckpoint}
		return scan(ctx, txn, prefix, prefix, func(key, _ []byte) (bool, error) {
			out = append(out, string(key[1:]))
			return true, nil
		})
	})
	slices.Sort(out)
	return out, err
}

const noAlert = "it has a place among the alerts, and is missing"

// AlertsBefore calls f for alerts, the one stored last first, until f returns false.
func (s *Badger) AlertsBefore(ctx context.Context, before uint64, f func(number uint64, a Alert) bool) error {
	return s.view(ctx, "alerts", func(txn *badger.Txn) error {
		opt := badger.DefaultIteratorOptions
		opt.Reverse, opt.PrefetchValues, opt.Prefix = true, false, []byte{prefixAlertOrder}
		it := txn.NewIterator(opt)
		defer it.Close()
		from := uint64(math.MaxUint64)
		if before > 0 {
			from = before - 1
		}
		for it.Seek(numberKey(prefixAlertOrder, from)); it.ValidForPrefix(opt.Prefix); it.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := it.Item().KeyCopy(nil)
			if len(key) != 9 {
				return damaged(key, "it is cut")
			}
			_, id, err := s.numbered(txn, key)
			if err != nil {
				return err
			}
			body, err := s.body(txn, id, noAlert)
			if err != nil {
				return err
			}
			if body != nil && !f(binary.BigEndian.Uint64(key[1:]), Alert{ID: string(id), Body: body}) {
				return nil
			}
		}
		return nil
	})
}
