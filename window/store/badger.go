package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/rs/zerolog"
)

// Badger is a Store in a Badger database.
type Badger struct {
	opt Options
	db  *badger.DB

	// write is held by whoever changes the database: conflict detection is off.
	write sync.Mutex

	// life guards closed; users are calls under way.
	life   sync.Mutex
	closed bool
	users  sync.WaitGroup
}

var _ Store = (*Badger)(nil)

// Open opens the store at opt.Path or makes a new one there. Close it.
// Errors wrap ErrLocked, ErrNewer or ErrForeign where that is the reason.
func Open(opt Options) (*Badger, error) {
	opt = opt.WithDefaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if !opt.InMemory {
		if err := prepare(opt.Path); err != nil {
			return nil, err
		}
	}
	db, err := badger.Open(tuned(opt))
	if err != nil {
		return nil, explainOpen(opt.Path, err)
	}
	s := &Badger{opt: opt, db: db}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// tuned are options for a small footprint. Badger's defaults are a server's and
// take 300 MB; these take 3 MB when idle and 60 MB at 60,000 commits a second.
func tuned(opt Options) badger.Options {
	path, memTable, inline := opt.Path, int64(4<<20), int64(64<<10)
	if opt.InMemory {
		// There is no value log: values are inline, of at most 1 MiB, and the
		// largest must fit a transaction, which is 15% of a memtable.
		path, memTable, inline = "", 16<<20, 1<<20
	}
	return badger.DefaultOptions(path).
		WithInMemory(opt.InMemory).
		WithSyncWrites(opt.SyncWrites).
		WithLogger(logger{opt.Logger}).
		WithMemTableSize(memTable).
		WithNumMemtables(2).
		WithBaseTableSize(2 << 20).
		WithBaseLevelSize(8 << 20).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(4).
		WithNumCompactors(2).
		WithCompactL0OnClose(true). // tells Maintain what is out of date
		WithBlockCacheSize(0).      // blocks are read from the memory map
		WithIndexCacheSize(4 << 20).
		WithCompression(options.None).
		WithValueThreshold(inline).
		WithValueLogFileSize(16 << 20).
		WithMetricsEnabled(false).
		WithDetectConflicts(false)
}

// prepare makes the directory and refuses one that holds other things.
func prepare(path string) error {
	if path == "" {
		return errors.New("store: no path is given; set store.path")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("store %s: %w; set store.path to a directory that can be written to", path, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("store %s: %w; set store.path to a directory that can be read", path, err)
	}
	if _, err := os.Stat(filepath.Join(path, badger.ManifestFilename)); err == nil {
		return nil
	}
	for _, e := range entries {
		// A mount point's own, and what a first start that was killed leaves.
		if n := e.Name(); n == "lost+found" || n == "LOCK" || strings.HasPrefix(n, "MANIFEST") {
			continue
		}
		return fmt.Errorf("store %s: %w, it holds %s; set store.path to a directory of its own", path, ErrForeign, e.Name())
	}
	return nil
}

// explainOpen says what to do about a failure to open.
func explainOpen(path string, err error) error {
	// Badger wraps the cause as text.
	if strings.Contains(err.Error(), "Cannot acquire directory lock") {
		who := ""
		if pid, err := os.ReadFile(filepath.Join(path, "LOCK")); err == nil {
			who = " (process " + strings.TrimSpace(string(pid)) + ")"
		}
		return fmt.Errorf("store %s: %w%s: a store has one user at a time, readers included; stop that one first, or set another store.path", path, ErrLocked, who)
	}
	return fmt.Errorf("store %s can't be opened: %w; if it is damaged, move the directory away: "+
		"the monitor then starts anew, from where source.kafka.start says", path, err)
}

// load checks the version, or writes it into a new database.
func (s *Badger) load() error {
	name := s.opt.Path
	version := 0
	err := s.db.View(func(txn *badger.Txn) error {
		b, err := get(txn, keySchema)
		if errors.Is(err, badger.ErrKeyNotFound) {
			it := txn.NewIterator(badger.IteratorOptions{})
			defer it.Close()
			if it.Rewind(); it.Valid() {
				return fmt.Errorf("%w, but another Badger database; set store.path to a directory of its own", ErrForeign)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if len(b) != 2 {
			return fmt.Errorf("its version is %w; move the directory away to start anew", errDamaged)
		}
		if version = int(binary.BigEndian.Uint16(b)); version > schema {
			return fmt.Errorf("%w: its layout is version %d and this program knows up to %d; use the newer program, or another store.path", ErrNewer, version, schema)
		}
		_, err = readState(txn)
		return err
	})
	if err == nil && version == 0 {
		err = s.db.Update(func(txn *badger.Txn) error {
			return errors.Join(txn.Set(keySchema, binary.BigEndian.AppendUint16(nil, schema)), txn.Set(keyState, new(state).encode()))
		})
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// enter counts a call; it fails after Close. The call ends with s.users.Done.
func (s *Badger) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.users.Add(1)
	return nil
}

// Close waits for calls under way and closes the database. It must not be
// called from within a callback. Closing again does nothing.
func (s *Badger) Close() error {
	s.life.Lock()
	again := s.closed
	s.closed = true
	s.life.Unlock()
	s.users.Wait()
	if again {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %s: closing: %w", s.opt.Path, err)
	}
	return nil
}

// Maintain frees what deleted values take in the value log. It takes as long as
// there is to rewrite; call it every few minutes.
func (s *Badger) Maintain(ctx context.Context) error {
	if s.opt.InMemory {
		return nil
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.users.Done()
	for {
		err := s.db.RunValueLogGC(0.5)
		switch {
		case errors.Is(err, badger.ErrNoRewrite), errors.Is(err, badger.ErrRejected):
			return nil
		case err != nil:
			return fmt.Errorf("store %s: freeing space: %w", s.opt.Path, err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// Stats are what a person wants to know of a store.
type Stats struct {
	DeadLetters        int64
	DeadLetterBytes    int64
	DeadLettersDropped int64 // since the store was made
	Alerts             int64 // since the store was made
	DiskBytes          int64 // as Badger last counted, which is once a minute
}

// Stats counts. O(1).
func (s *Badger) Stats(ctx context.Context) (Stats, error) {
	if err := s.enter(ctx); err != nil {
		return Stats{}, err
	}
	defer s.users.Done()
	var st state
	err := s.db.View(func(txn *badger.Txn) (err error) {
		st, err = readState(txn)
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("store %s: %w", s.opt.Path, err)
	}
	lsm, vlog := s.db.Size()
	return Stats{
		DeadLetters:        int64(st.letterNext - st.letterOldest),
		DeadLetterBytes:    int64(st.letterBytes),
		DeadLettersDropped: int64(st.letterDrops),
		Alerts:             int64(st.alertNext),
		DiskBytes:          lsm + vlog,
	}, nil
}

// logger passes Badger's log on. Its Info is about its own inner life.
type logger struct{ zerolog.Logger }

func (l logger) Errorf(f string, a ...any)   { l.Error().Msg(line(f, a)) }
func (l logger) Warningf(f string, a ...any) { l.Warn().Msg(line(f, a)) }
func (l logger) Infof(f string, a ...any)    { l.Debug().Msg(line(f, a)) }
func (l logger) Debugf(f string, a ...any)   { l.Trace().Msg(line(f, a)) }

func line(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }

// readState reads the state as txn sees it.
func readState(txn *badger.Txn) (state, error) {
	var st state
	b, err := get(txn, keyState)
	if err == nil {
		err = st.decode(b)
	}
	if err != nil {
		err = fmt.Errorf("state: %w", err)
	}
	return st, err
}

// get copies the value of a key.
func get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}
