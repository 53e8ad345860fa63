package store

import (
	"context"

	badger "github.com/dgraph-io/badger/v4"
)

// Counter is a Store that counts what waits without reading it. Badger is one.
type Counter interface {
	// Waiting is how many notices are still to be delivered to that receiver; of more
	// than most, most. It costs as much as it counts.
	Waiting(ctx context.Context, receiver string, most int) (int, error)
}

// Waiting implements Counter.
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
