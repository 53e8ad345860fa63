package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/isowatch/isowatch/ingest/record"
)

// badgerStore is a Badger store in this process.
type badgerStore struct {
	node Node
	db   *badger.DB
}

func openBadger(_ context.Context, o Options) (Database, error) {
	detect, err := isolation(o.Isolation, map[string]string{"serializable": "on", "no-conflict-detection": "off"})
	if err != nil {
		return nil, err
	}
	u, err := storeOf(o, "folder", "badger:///folder/canary")
	if err != nil {
		return nil, err
	}
	if err := onlyBadgers(u.Path); err != nil {
		return nil, err
	}
	db, err := badger.Open(badger.DefaultOptions(u.Path).WithLogger(nil).WithDetectConflicts(detect == "on").
		WithMemTableSize(8 << 20).WithNumMemtables(2).WithBlockCacheSize(1 << 20).WithIndexCacheSize(1 << 20).
		WithValueLogFileSize(16 << 20).WithNumCompactors(2).WithMetricsEnabled(false))
	if err != nil {
		return nil, &Error{Option: "--target", What: u.Path + " can't be opened", Err: err,
			Do: "name a folder that nobody else has open"}
	}
	return &badgerStore{Node{Name: filepath.Base(u.Path), address: u.Path}, db}, nil
}

func (b *badgerStore) Nodes() []Node    { return []Node{b.node} }
func (b *badgerStore) Describe() string { return "Badger v4" }
func (b *badgerStore) Close()           { b.db.Close() }

// onlyBadgers refuses a folder with something else in it than a Badger store: it would be removed with it.
func onlyBadgers(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) { // Badger makes those above it too, which Cleanup would leave
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		return &Error{Option: "--target", What: path + " can't be used", Err: err,
			Do: "name a folder that may be read and written, in one that is there"}
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == badger.ManifestFilename, name == badger.KeyRegistryFileName, name == "DISCARD", name == "LOCK":
		case slices.Contains([]string{".sst", ".mem", ".vlog"}, filepath.Ext(name)):
		default:
			return &Error{Option: "--target", What: fmt.Sprintf("%s holds %s, which no Badger store has", path, name),
				Do: "name a folder of the canary's own"}
		}
	}
	return nil
}

// ours refuses a store with keys that no canary has written.
func (b *badgerStore) ours() error {
	return b.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			if key := it.Item().Key(); !bytes.HasPrefix(key, badgerKey(Item{})) {
				return &Error{Option: "--target", What: fmt.Sprintf("%s has the key %.40q, which no canary has written",
					b.node.address, key), Do: "name a folder of the canary's own"}
			}
		}
		return nil
	})
}

func (b *badgerStore) Prepare(context.Context) error {
	if err := b.ours(); err != nil {
		return err
	}
	return b.db.DropPrefix(badgerKey(Item{}))
}

func (b *badgerStore) Cleanup(context.Context) error {
	if err := b.ours(); err != nil {
		return err
	}
	if err := b.db.Close(); err != nil {
		return err
	}
	return os.RemoveAll(b.node.address)
}

func (b *badgerStore) Discard(_ context.Context, _ Node, items []Item) error {
	batch := b.db.NewWriteBatch()
	defer batch.Cancel()
	for _, i := range items {
		if err := batch.Delete(badgerKey(i)); err != nil {
			return err
		}
	}
	return batch.Flush()
}

func (b *badgerStore) Connect(_ context.Context, _ Node, settings []Setting) (Session, error) {
	if len(settings) > 0 {
		return nil, &Error{Option: "--session-settings", What: "a Badger store has none", Do: "leave them out"}
	}
	return &badgerSession{db: b.db}, nil
}

func (b *badgerStore) Fault(err error) Fault {
	switch {
	case errors.Is(err, badger.ErrConflict):
		return Fault{Conflict, true}
	case errors.Is(err, badger.ErrBlockedWrites), errors.Is(err, badger.ErrDBClosed):
		return Fault{Down, false}
	}
	return Fault{AnythingElse, false}
}

func badgerKey(i Item) []byte { return []byte(Space + "/" + i.Name) }

// badgerSession has at most one transaction.
type badgerSession struct {
	db  *badger.DB
	txn *badger.Txn
}

func (s *badgerSession) Begin(context.Context) error {
	s.txn = s.db.NewTransaction(true)
	return nil
}

// get returns what is stored, and whether it is.
func (s *badgerSession) get(i Item) (text string, found bool, err error) {
	item, err := s.txn.Get(badgerKey(i))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	err = item.Value(func(v []byte) error { text = string(v); return nil })
	return text, true, err
}

func (s *badgerSession) Do(_ context.Context, ops ...*Op) error {
	return overTexts(ops, s.get, func(i Item, text string) error { return s.txn.Set(badgerKey(i), []byte(text)) })
}

func (s *badgerSession) Scan(ctx context.Context, registers []Item) ([]record.Value, error) {
	return each(ctx, s, registers)
}

func (s *badgerSession) Commit(context.Context) error {
	err := s.txn.Commit()
	s.txn = nil
	return err
}

func (s *badgerSession) Abort(context.Context) error {
	if s.txn != nil {
		s.txn.Discard()
		s.txn = nil
	}
	return nil
}

func (s *badgerSession) Close() { _ = s.Abort(context.Background()) }
