package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/rs/zerolog"
)

// Badger is a Store in a Badger database and files beside it.
type Badger struct {
	opt     Options
	files   files
	marks   files // where COMMITTED is, which stays open
	journal *journal

	// slot of COMMITTED is written next, and marked with run.
	slot int64
	run  uint64
	// What follows is of the database as it was opened: whether a store was made of it, how
	// many records it had, which large values, and what COMMITTED counts and it does not have, nil: it has all.
	made    bool
	records int64
	large   []owned
	lost    *Damage

	// largeBytes is what large values take.
	largeBytes atomic.Int64

	// write is held by whoever changes the store: conflict detection is off. It
	// guards what follows.
	write sync.Mutex
	// broken: Badger failed in a commit, so that nobody knows what holds. The next
	// writer opens it again.
	broken bool
	// stuck: Badger stands still, see await.
	stuck atomic.Bool

	// gate is held to read by whoever uses db, and to write by who replaces it,
	// with TryLock only: callbacks of readers may enter again.
	gate sync.RWMutex
	db   *badger.DB

	// life guards closed; users are calls under way.
	life   sync.Mutex
	closed bool
	users  sync.WaitGroup
}

var _ Store = (*Badger)(nil)

// Open opens the store at opt.Path or makes a new one there. Close it.
// Errors wrap ErrLocked, ErrLayout, ErrForeign, ErrDamaged or ErrFull
// where that is the reason. What a crash left is repaired; O(the size of the
// database and of the last file of the journal).
func Open(opt Options) (*Badger, error) {
	opt = opt.WithDefaults()
	if err := prepare(opt.Path); err != nil {
		return nil, err
	}
	s := &Badger{opt: opt, files: &osFiles{dir: opt.Path}, marks: &osFiles{dir: opt.Path}}
	if !opt.SyncWrites {
		s.run = machineRun()
	}
	if opt.wrap != nil {
		s.files, s.marks = opt.wrap(s.files), opt.wrap(s.marks)
	}
	s.journal = &journal{files: s.files, indexes: make(map[uint64][]spot)}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

// start opens the database and repairs what a crash left.
func (s *Badger) start() error {
	// With less than the reserve, but enough to open, evidence can be let go of.
	if err := s.room(min(0, openRoom-s.opt.Reserve)); err != nil {
		return fmt.Errorf("store %s can't be opened: %w", s.opt.Path, err)
	}
	err := s.database()
	for until := time.Now().Add(lockWait); err != nil && inUse(err) && !s.opt.AtOnce && time.Now().Before(until); {
		time.Sleep(lockWait / 50)
		err = s.database()
	}
	if err == nil {
		err = s.load()
	}
	if err == nil {
		err = s.startRoom()
	}
	if err != nil {
		return errors.Join(explainOpen(s.opt.Path, err), s.closeDB())
	}
	settle(s.opt.Path)
	return nil
}

// startRoom lets go of evidence if less than the reserve is free: a store that filled
// its disk and was killed then would otherwise wait for room that only it can make.
func (s *Badger) startRoom() error {
	if s.room(0) == nil {
		return nil
	}
	if err := s.letGo(); err != nil {
		return err
	}
	return s.room(0)
}

// tuned are options for a small footprint. Badger's defaults are a server's and
// take 300 MB; these take 3 MB when idle and 60 MB at 60,000 commits a second.
// Nothing reaches Badger's value log: large values have files of their own.
func tuned(opt Options) badger.Options {
	o := badger.DefaultOptions(opt.Path)
	o.TableSizeMultiplier = 1
	return o.
		WithSyncWrites(opt.SyncWrites).
		WithLogger(logger{opt.Logger}).
		WithMemTableSize(4 << 20).
		WithNumMemtables(2).
		// Compaction has memory for some ten tables, three times their size each; so they are as large on each level, and
		// one of a level lies over some five of the next. The smaller they are, the likelier it stands still for good, see
		// await.
		WithBaseTableSize(512 << 10).
		WithLevelSizeMultiplier(5).
		WithBaseLevelSize(2 << 20).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(3).
		WithNumCompactors(2).
		WithBlockCacheSize(0). // blocks are read from the memory map
		WithIndexCacheSize(4 << 20).
		WithCompression(options.None).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithValueThreshold(256 << 10).
		WithValueLogFileSize(1 << 20).
		WithMetricsEnabled(false).
		WithDetectConflicts(false)
}

// prepare makes the directory and refuses one that holds other things.
func prepare(path string) error {
	if path == "" {
		return errors.New("store: no path is given; set store.path")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("store %s: %w; set store.path to a directory that can be written to", path, full(err))
	}
	if err := ours(path); err != nil {
		return explainOpen(path, err)
	}
	return nil
}

// Usable tells what keeps a path from being that of a store, without making or opening anything; nil if nothing is
// seen to.
func Usable(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		switch i, err := os.Stat(at); {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at), errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			return fmt.Errorf("store %s: %w", path, err)
		case !i.IsDir():
			return fmt.Errorf("store %s: %s is no directory; set store.path to a directory that can be written to", path, at)
		case at != path:
			return nil
		default:
			if err := ours(path); err != nil {
				return explainOpen(path, err)
			}
			return nil
		}
	}
}

// ours tells whether a directory is a store, or empty.
func ours(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("%w; set store.path to a directory that can be read", err)
	}
	if _, err := os.Stat(filepath.Join(path, badger.ManifestFilename)); err == nil {
		return nil
	}
	used := false
	for _, e := range entries {
		n := e.Name()
		switch ext := filepath.Ext(n); {
		case passedOver(n), n == "LOCK", strings.HasPrefix(n, badger.ManifestFilename):
			// A mount point's own, and what a first start that was killed leaves.
		case n == journalDir, n == largeDir, n == badger.KeyRegistryFileName, n == discardFile, n == placeFile, n == markFile,
			ext == tableExt, ext == memExt, ext == vlogExt:
			used = true
		default:
			return fmt.Errorf("%w, it holds %s; set store.path to a directory of its own", ErrForeign, n)
		}
	}
	if used {
		return &Damage{Kind: "database", Key: "the list of its files", File: badger.ManifestFilename,
			Why: "the file is missing"}
	}
	return nil
}

// Holder is the number of the process that has the store at path open, or had it last;
// 0 if that is not known.
func Holder(path string) int {
	text, err := os.ReadFile(filepath.Join(path, "LOCK"))
	if err != nil || len(text) > 32 {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return max(pid, 0)
}

// holder says which process has a store open, for messages.
func holder(path string) string {
	if pid := Holder(path); pid > 0 {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

// lockWait is how long a store that is in use is waited for: who only looks at it has soon done so, one that has ended
// may have forked a process that did not run its program yet, and holds what was open until it does.
const lockWait = time.Second

// inUse tells whether a store was not opened because somebody has it open. Badger wraps the cause as text.
func inUse(err error) bool {
	return errors.Is(err, ErrLocked) || strings.Contains(err.Error(), lockTaken)
}

// lockTaken is what Badger says if another process has the database.
const lockTaken = "Cannot acquire directory lock"

// explainOpen says what to do about a failure to open.
func explainOpen(path string, err error) error {
	switch {
	case inUse(err):
		return fmt.Errorf("store %s: %w%s: a store has one user at a time, readers included; stop that one first, or set "+
			"another store.path", path, ErrLocked, holder(path))
	case errors.Is(full(err), ErrFull):
		return fmt.Errorf("store %s can't be opened: %w", path, full(err))
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("store %s: %w; --rebuild sets it aside and begins anew, from where source.kafka.start says", path,
			err)
	case errors.Is(err, ErrForeign), errors.Is(err, ErrLayout):
		return fmt.Errorf("store %s: %w", path, err)
	case errors.Is(err, os.ErrPermission), strings.Contains(err.Error(), syscall.EACCES.Error()),
		strings.Contains(err.Error(), syscall.EROFS.Error()):
		return fmt.Errorf("store %s can't be opened: %w; whoever opens a store writes to it, to look at it too: let it be "+
			"written to, or copy the directory and take the copy", path, err)
	}
	return fmt.Errorf("store %s can't be opened: %w; if nothing else helps, --rebuild sets it aside and begins anew, "+
		"from where source.kafka.start says", path, err)
}

// load ends what a crash interrupted, and makes the files what the database says.
func (s *Badger) load() error {
	if s.lost != nil && !s.lost.power {
		return s.lost
	}
	if s.lost != nil {
		s.opt.Logger.Warn().Str("lost", s.lost.Key).
			Msg("the machine went down, and the store has not all that was committed before: it is read again; store.sync " +
				"keeps it")
	}
	st, err := s.state()
	if err != nil {
		return err
	}
	if err := s.settleMark(st.commits, s.run); err != nil {
		return err
	}
	if !s.made {
		if err := s.create(); err != nil {
			return err
		}
		s.made = true
	}
	did, err := s.finish()
	if err == nil && did {
		err = s.whole()
	}
	if err != nil {
		return err
	}
	if err := s.loadJournal(); err != nil {
		return err
	}
	if err := s.loadLarge(); err != nil {
		return err
	}
	return s.loadSpill()
}

// version checks the version of the layout; made: there is one.
func (s *Badger) version() (made bool, err error) {
	err = s.read(func(txn *badger.Txn) error {
		b, err := rawOf(txn, keySchema)
		if err == nil && b == nil {
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
		made = true
		if b, _, err = unseal(keySchema, b); err != nil || len(b) != 2 {
			return &Damage{Kind: "schema", Key: "the version of the layout", Why: "its checksum is wrong"}
		}
		switch n := binary.BigEndian.Uint16(b); {
		case n < Schema:
			return fmt.Errorf("%w: its layout is version %d, and this program reads version %d; --rebuild sets it aside and "+
				"begins anew, from where source.kafka.start says (alerts found again have the ids they had)", ErrLayout, n, Schema)
		case n > Schema:
			return fmt.Errorf("%w: its layout is version %d and this program knows up to %d; use the newer program, or "+
				"another store.path", ErrLayout, n, Schema)
		}
		return nil
	})
	return made, err
}

// create makes a store of an empty database. COMMITTED is on the disk before there is something
// that it counts.
func (s *Badger) create() error {
	if err := s.marks.sync(markFile); err != nil {
		return err
	}
	return s.db.Update(func(txn *badger.Txn) error {
		return errors.Join(
			txn.Set(keySchema, seal(keySchema, binary.BigEndian.AppendUint16(nil, Schema), kindInline)),
			txn.Set(keyState, seal(keyState, new(state).encode(), kindInline)))
	})
}

// state is what the last transaction wrote along; of a database that is no store yet, nothing.
func (s *Badger) state() (st state, err error) {
	if !s.made {
		return st, nil
	}
	err = s.read(func(txn *badger.Txn) (err error) {
		st, err = readState(txn)
		return err
	})
	return st, err
}

// logFiles are what the database says of the journal.
func (s *Badger) logFiles() (logFiles []logFile, err error) {
	err = s.read(func(txn *badger.Txn) error {
		prefix := []byte{prefixLogFile}
		return scan(context.Background(), txn, prefix, prefix, func(key, raw []byte) (bool, error) {
			value, _, err := unseal(key, raw)
			var g logFile
			if err == nil {
				g, err = decodeLogFile(key, value)
			}
			if err == nil && len(logFiles) > 0 && g.first <= logFiles[len(logFiles)-1].last {
				err = errDamaged
			}
			if err != nil {
				return false, damaged(key, "its checksum is wrong")
			}
			logFiles = append(logFiles, g)
			return true, nil
		})
	})
	return logFiles, err
}

// loadJournal reads them and takes away what was never committed.
func (s *Badger) loadJournal() error {
	logFiles, err := s.logFiles()
	if err != nil {
		return err
	}
	sizes, err := s.files.list(journalDir)
	if err != nil {
		return err
	}
	for i, g := range logFiles {
		name := filepath.Base(g.file())
		size, ok := sizes[name]
		delete(sizes, name)
		switch {
		case !ok:
			return g.missing()
		case size < g.end:
			return g.damage(size, "the file is shorter than what was committed", "an entry up to %d", g.last)
		case size > g.end && i == len(logFiles)-1:
			if err := s.files.truncate(g.file(), g.end); err != nil {
				return err
			}
		}
	}
	for name := range sizes {
		if err := s.files.remove(journalDir + "/" + name); err != nil {
			return err
		}
	}
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.logFiles = logFiles
	clear(s.journal.indexes)
	s.journal.recent = nil
	return nil
}

// enter counts a call; it fails after Close. The call ends with s.leave.
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
	s.gate.RLock()
	if s.db == nil {
		s.leave()
		return errors.New("store: its database failed; it is opened again with the next commit")
	}
	return nil
}

// exclusive is enter for a call that writes: no other does until done is called, which
// ends the call. A database that failed is opened again.
func (s *Badger) exclusive(ctx context.Context) (done func(), err error) {
	s.write.Lock()
	if err := s.revive(); err != nil {
		s.write.Unlock()
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		s.write.Unlock()
		return nil, err
	}
	return func() {
		s.leave()
		s.write.Unlock()
	}, nil
}

func (s *Badger) leave() {
	s.gate.RUnlock()
	s.users.Done()
}

// Close waits for calls under way and closes the database. It must not be
// called from within a callback. Closing again does nothing. On a disk without
// any room the database is left as a kill would leave it, and Close says ErrFull;
// closing again when there is room ends it. It is left so too where it stands still, which is ErrStuck.
func (s *Badger) Close() error {
	s.life.Lock()
	s.closed = true
	s.life.Unlock()
	s.users.Wait()
	s.write.Lock()
	defer s.write.Unlock()
	if s.db == nil {
		return s.files.close()
	}
	// Badger writes a table when it closes, through a memory map.
	if free, ok := s.free(); ok && free < closeRoom {
		return fmt.Errorf("store %s: closing: %w: what was committed is kept, and the next start looks after it", s.opt.Path,
			ErrFull)
	}
	st, err := s.state()
	err = errors.Join(err, s.files.close(), s.closeDB())
	if err == nil {
		err = s.settleMark(st.commits, 0) // all is synced
	}
	if err = errors.Join(err, s.marks.close()); err != nil {
		return fmt.Errorf("store %s: closing: %w", s.opt.Path, err)
	}
	return nil
}

// revive opens the database again after it failed. The caller holds write, and
// has not entered.
func (s *Badger) revive() error {
	switch {
	case s.stuck.Load(): // its directory is locked as long as the process lives
		return ErrStuck
	case !s.broken:
		return nil
	}
	s.life.Lock()
	closed := s.closed
	s.life.Unlock()
	if closed {
		return ErrClosed
	}
	if err := s.room(0); err != nil {
		return err
	}
	if !s.gate.TryLock() {
		return errors.New("the database failed and is in use; it is opened again when nobody reads")
	}
	defer s.gate.Unlock()
	switch err := s.closeDB(); {
	case errors.Is(err, ErrStuck):
		return err
	case err != nil:
		s.opt.Logger.Warn().Err(err).Msg("the store's database failed; it is opened again")
	}
	if err := s.start(); err != nil {
		return err
	}
	s.broken = false
	return nil
}

// Room that is needed to open and to close.
const (
	closeRoom = 24 << 20
	openRoom  = closeRoom
	// filesReserve is how many files more two compactions may have open.
	filesReserve = 100
)

// room says ErrFull when so many bytes more would leave less than Reserve. Where a table can't be opened that Badger
// 4.9.6 makes of others it lets go of these all the same (subcompact), so there must be files left too.
func (s *Badger) room(bytes int64) error {
	if open, most := opened(); most < open+filesReserve {
		return fmt.Errorf("%d files are open, of %d that the process may have, and %d are kept in reserve; raise the limit "+
			"(ulimit -n)", open, most, filesReserve)
	}
	free, ok := s.free()
	if !ok || free-bytes >= s.opt.Reserve {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are left where the store is, and %d MiB are kept in reserve; free some, or lower "+
		"store.max_bytes", ErrFull, free>>20, s.opt.Reserve>>20)
}

func (s *Badger) free() (int64, bool) {
	free, ok := available(s.opt.Path)
	return int64(min(free, math.MaxInt64)), ok
}

// Maintain frees what is not needed any more: entries of the journal that are
// too old or too many.
func (s *Badger) Maintain(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.commit(ctx, Commit{}, true); err != nil {
		return fmt.Errorf("store %s: freeing space: %w", s.opt.Path, err)
	}
	return nil
}

// Stats counts. O(files of the journal).
func (s *Badger) Stats(ctx context.Context) (Stats, error) {
	if err := s.enter(ctx); err != nil {
		return Stats{}, err
	}
	defer s.leave()
	st, err := s.state()
	if err != nil {
		return Stats{}, fmt.Errorf("store %s: %w", s.opt.Path, err)
	}
	lsm, vlog := s.db.Size()
	large := s.largeBytes.Load()
	out := Stats{
		DeadLetters:        int64(st.letterNext - st.letterOldest),
		DeadLetterBytes:    int64(st.letterBytes),
		DeadLettersDropped: int64(st.letterDrops),
		Alerts:             int64(st.alertCount),
		AlertsDropped:      int64(st.alertNext - st.alertCount),
		JournalDrop:        st.drop,
		LargeBytes:         large,
		DiskBytes:          lsm + vlog + large,
	}
	for i, g := range s.journal.snapshot() {
		if i == 0 {
			out.JournalFirst = g.first
		}
		out.JournalLast = g.last
		out.JournalEntries += int64(g.count)
		out.JournalBytes += g.end
		if g.last >= st.drop {
			out.JournalNeeded += g.end
		}
	}
	out.DiskBytes += out.JournalBytes
	return out, nil
}

// logger passes Badger's log on. Its Info is about its own inner life.
type logger struct{ zerolog.Logger }

// What matters of Badger's own messages is also an error of a call, said in the
// monitor's words, with what to do.
func (l logger) Errorf(f string, a ...any)   { l.Debug().Msg(line(f, a)) }
func (l logger) Warningf(f string, a ...any) { l.Debug().Msg(line(f, a)) }
func (l logger) Infof(f string, a ...any)    { l.Debug().Msg(line(f, a)) }
func (l logger) Debugf(f string, a ...any)   { l.Trace().Msg(line(f, a)) }

func line(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }

// readState reads the state as txn sees it.
func readState(txn *badger.Txn) (state, error) {
	var st state
	item, err := txn.Get(keyState)
	if err != nil {
		return st, &Damage{Kind: "state", Key: "the counters", Why: err.Error()}
	}
	err = item.Value(func(raw []byte) error {
		b, _, err := unseal(keyState, raw)
		if err == nil {
			err = st.decode(b)
		}
		return err
	})
	if err != nil {
		return st, &Damage{Kind: "state", Key: "the counters", Why: "their checksum is wrong"}
	}
	return st, nil
}
