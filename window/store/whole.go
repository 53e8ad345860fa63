package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// Badger passes over a table with a wrong checksum, takes whatever follows a damaged entry
// of a write-ahead log for a torn end, and stops reading a table in silence where a block is
// damaged: each loses what was committed without a word. So what it gives is held to what
// was written.
//
//   - The state, which every transaction writes along, has the digest of all other records:
//     the sum of their checksums. A record too few, too many or of an earlier version is seen.
//   - The file COMMITTED says how many transactions were committed, and so does the state:
//     a database of fewer has lost its end. The file is written behind each transaction, so that
//     a process that dies leaves a database that has as many, or one more.
//
// Without SyncWrites a loss of power may take the end of the database, and leave that file.
// So its number binds only while the machine runs on, or if what it counts was synced.
const (
	markFile = "COMMITTED"
	// The file has two slots, written in turns, so that there is always a whole one: u64
	// transactions, u64 which run of the machine (0: it binds in any), u64 checksum of these.
	markSize = 24
)

// Badger's files beside its MANIFEST.
const (
	tableExt    = ".sst"
	memExt      = ".mem"
	vlogExt     = ".vlog"
	discardFile = "DISCARD"
)

// mark is what COMMITTED says.
type mark struct {
	commits uint64
	run     uint64
}

func (m mark) encode() []byte {
	b := u64(m.commits, m.run)
	return append(b, u64(checksum(b))...)
}

// machineRun is another number each time that the machine is started; 0 where that is not
// known, as on systems other than Linux, and a loss of power is damage.
func machineRun() uint64 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	return checksum(id)
}

// setMark writes a slot, and never the one that was written last.
func (s *Badger) setMark(m mark) error {
	err := s.marks.write(markFile, s.slot*markSize, m.encode())
	if err == nil {
		s.slot = 1 - s.slot
	}
	return err
}

// committed says that there were so many transactions. If that can't be written, the file says
// one less, and the end of the database may be lost by one before it is noticed.
func (s *Badger) committed(commits uint64) { _ = s.setMark(mark{commits, s.run}) }

// settleMark puts both slots right: what they said of an earlier run of the machine is over.
func (s *Badger) settleMark(commits, run uint64) error {
	err := s.setMark(mark{commits, run})
	if err == nil {
		err = s.setMark(mark{commits, run})
	}
	return err
}

// readMark is the newer of the slots, which is whole, and the number of the other; ok: there is
// one.
func readMark(dir string) (newest mark, other int64, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mark{}, 0, false, err
	}
	for slot := int64(0); slot < 2 && len(b) >= markSize; slot, b = slot+1, b[markSize:] {
		m := mark{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
		if bytes.Equal(m.encode(), b[:markSize]) && (!ok || m.commits > newest.commits) {
			newest, other, ok = m, 1-slot, true
		}
	}
	return newest, other, ok, nil
}

// database opens the database and holds it to what was committed. What is missing of its end
// is s.lost then.
func (s *Badger) database() error {
	if err := examine(s.opt.Path); err != nil {
		return err
	}
	db, err := openBadger(tuned(s.opt))
	if err != nil {
		return err
	}
	s.db = db
	s.made, err = s.version()
	if errors.Is(err, ErrForeign) {
		if _, _, ours, _ := readMark(s.opt.Path); ours {
			return &Damage{Kind: "database", Key: "all records", Why: "not even the version of the layout is there"}
		}
	}
	if err != nil {
		return err
	}
	return s.whole()
}

// whole holds all records to their checksums and to the digest, and their number of
// transactions to that of COMMITTED.
func (s *Badger) whole() error {
	var st state
	digest := uint64(0)
	s.records, s.large, s.lost = 0, nil, nil
	err := s.read(func(txn *badger.Txn) (err error) {
		if !s.made {
			return nil
		}
		if st, err = readState(txn); err != nil {
			return err
		}
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			s.records++
			key := it.Item().Key()
			if string(key) == string(keySchema) || string(key) == string(keyState) {
				continue
			}
			err := it.Item().Value(func(raw []byte) error {
				if _, _, err := unseal(key, raw); err != nil {
					return damaged(key, "its checksum is wrong")
				}
				digest += sumOf(raw)
				if r, ok := largeOf(raw); ok {
					s.large = append(s.large, owned{slices.Clone(key), r})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if digest != st.digest {
		return &Damage{Kind: "database", Key: "all records",
			Why: "they are not those that were committed: some are missing, or are there again"}
	}
	m, other, ok, err := readMark(s.opt.Path)
	switch {
	case err != nil:
		return err
	case !ok && s.made:
		return &Damage{Kind: "database", Key: "how many transactions it has", File: markFile,
			Why: "the file is missing, or both of its checksums are wrong"}
	case m.commits > st.commits:
		s.lost = &Damage{
			Kind: "database", Key: fmt.Sprintf("the last %d of %d transactions", m.commits-st.commits, m.commits),
			Why:   "they are missing",
			power: m.run != 0 && m.run != machineRun(),
		}
	}
	s.slot = other
	return nil
}

// sumOf is what a sealed record adds to the digest: its checksum.
func sumOf(raw []byte) uint64 { return binary.BigEndian.Uint64(raw[len(raw)-8:]) }

// examine looks at the tables before Badger opens them, by what Badger has for that: it ends
// the process where some bytes of one are others.
func examine(dir string) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeEmpty(dir); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a first start that was killed, or none yet
	}
	if err != nil {
		return err
	}
	manifest, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir).WithLogger(nil))
	if err := errors.Join(err, f.Close()); err != nil {
		return &Damage{Kind: "database", Key: "the list of its tables", File: badger.ManifestFilename, Why: err.Error()}
	}
	keys, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: dir, ReadOnly: true})
	if err == nil {
		err = keys.Close()
	}
	if err != nil {
		return &Damage{Kind: "database", Key: "the list of encryption keys, which is empty", File: badger.KeyRegistryFileName,
			Why: err.Error()}
	}
	for _, id := range slices.Sorted(maps.Keys(manifest.Tables)) {
		if t := manifest.Tables[id]; t.Compression != options.None || t.KeyID != 0 {
			return fmt.Errorf("%w, but another Badger database; set store.path to a directory of its own", ErrForeign)
		}
		name := table.IDToFilename(id)
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &Damage{Kind: "table", Key: "every record", File: name, Why: "the file is missing"}
		case err != nil:
			return err
		case !wholeTable(b, id):
			return &Damage{Kind: "table", Key: "some records", File: name, Why: "a checksum is wrong"}
		}
	}
	return nil
}

// wholeTable tells whether all checksums of a table are right. Badger panics on some that are
// not.
func wholeTable(b []byte, id uint64) (ok bool) {
	defer func() { _ = recover() }()
	t, err := table.OpenInMemoryTable(b, id, &table.Options{ChkMode: options.OnTableAndBlockRead})
	return err == nil && t.VerifyChecksum() == nil
}

// removeEmpty removes logs without any byte, which Badger leaves if it is killed
// between making and extending one, and then refuses to open.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if ext != memExt && ext != vlogExt {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Size() == 0 {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openBadger opens a database. What Badger can't read is a Damage, unless the system says no.
func openBadger(opt badger.Options) (db *badger.DB, err error) {
	unreadable := func(why any) error {
		text, _, _ := strings.Cut(fmt.Sprint(why), "\n")
		return &Damage{Kind: "database", Key: "its files", Why: "they can't be read: " + text}
	}
	defer func() {
		if why := recover(); why != nil {
			db, err = nil, unreadable(why)
		}
	}()
	if db, err = badger.Open(opt); err == nil {
		return db, nil
	}
	// Badger wraps causes as text.
	for _, why := range []string{
		lockTaken, syscall.EACCES.Error(), syscall.EPERM.Error(), syscall.EROFS.Error(), syscall.ENOSPC.Error(),
		syscall.EDQUOT.Error(),
		syscall.EMFILE.Error(), syscall.ENFILE.Error(), syscall.ENOMEM.Error(), syscall.EIO.Error(),
	} {
		if strings.Contains(err.Error(), why) {
			return nil, err
		}
	}
	return nil, unreadable(err)
}
