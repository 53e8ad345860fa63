package store

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	badger "github.com/dgraph-io/badger/v4"
)

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
			at := nameKey(prefixAlert, id)
			_, body, err := s.numbered(txn, at)
			switch {
			case errors.Is(err, errGone):
				continue // it was dropped meanwhile
			case err != nil:
				return err
			case body == nil:
				return damaged(at, "it has a place among the alerts, and is missing")
			}
			if !f(binary.BigEndian.Uint64(key[1:]), Alert{ID: string(id), Body: body}) {
				return nil
			}
		}
		return nil
	})
}
