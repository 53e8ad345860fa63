package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

// Info is what a store holds, for people.
type Info struct {
	Path   string `json:"path"`
	Schema int    `json:"schema"`
	Bytes  struct {
		Disk    int64 `json:"disk"`
		Journal int64 `json:"journal"`
		Needed  int64 `json:"journal_needed"` // by a restart; the rest is evidence
		Large   int64 `json:"large"`          // checkpoints and other large values
	} `json:"bytes"`
	Offsets   map[string]map[int]int64 `json:"offsets"`   // source, partition: the next one
	Histories map[string]History       `json:"histories"` // that have a checkpoint, by name
	Journal   *Entries                 `json:"journal"`   // null if it is empty
	Alerts    struct {
		All     int64            `json:"all"`
		ByState map[string]int64 `json:"by_state"` // to be filled in by who knows what alerts are
	} `json:"alerts"`
	Undelivered  map[string]int64 `json:"undelivered"`  // by receiver
	DeadLetters  map[string]int64 `json:"dead_letters"` // by reason
	LettersGone  int64            `json:"dead_letters_dropped"`
	LettersBytes int64            `json:"dead_letter_bytes"`
}

// Entries are those of a journal.
type Entries struct {
	Entries int64  `json:"entries"`
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	Needed  uint64 `json:"needed_from"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// History is what a store has of one.
type History struct {
	Checkpoints uint64 `json:"checkpoints"` // committed so far
	Bytes       int64  `json:"bytes"`       // of the last one
}

// Inspect looks at all but the bodies. O(records).
func (s *Badger) Inspect(ctx context.Context) (Info, error) {
	st, err := s.Stats(ctx)
	if err != nil {
		return Info{}, err
	}
	info := Info{Path: s.opt.Path, Schema: Schema, Offsets: make(map[string]map[int]int64),
		Histories: make(map[string]History), Undelivered: make(map[string]int64), DeadLetters: make(map[string]int64),
		LettersGone: st.DeadLettersDropped, LettersBytes: st.DeadLetterBytes}
	info.Bytes.Journal, info.Bytes.Needed, info.Bytes.Large = st.JournalBytes, st.JournalNeeded, st.LargeBytes
	info.Alerts.All, info.Alerts.ByState = st.Alerts, make(map[string]int64)
	if info.Bytes.Disk, err = DiskUse(s.opt.Path); err != nil {
		return Info{}, err
	}
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, g := range s.journal.snapshot() {
		oldest, newest = min(oldest, g.oldest), max(newest, g.newest)
	}
	if st.JournalEntries > 0 {
		at := func(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
		info.Journal = &Entries{Entries: st.JournalEntries, First: st.JournalFirst, Last: st.JournalLast,
			Needed: max(st.JournalDrop, st.JournalFirst), From: at(oldest), To: at(newest)}
	}
	err = s.DeadLetters(ctx, func(l DeadLetter) bool { info.DeadLetters[l.Reason]++; return true })
	if err != nil {
		return Info{}, err
	}
	err = s.view(ctx, "inspecting", func(txn *badger.Txn) error {
		for prefix, f := range map[byte]func(key, raw []byte) error{
			prefixOffset:     info.offset,
			prefixCheckpoint: func(key, raw []byte) error { return s.history(txn, &info, key, raw) },
			prefixOutbox: func(key, _ []byte) error {
				receiver, _, err := cutName(key[1:])
				info.Undelivered[receiver]++
				return err
			},
		} {
			from := []byte{prefix}
			err := scan(ctx, txn, from, from, func(key, raw []byte) (bool, error) { return true, f(key, raw) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return info, err
}

func (info *Info) offset(key, raw []byte) error {
	source, partition, err := cutName(key[1:])
	b, _, err2 := unseal(key, raw)
	if err != nil || err2 != nil || len(partition) != 4 || len(b) != 8 {
		return damaged(key, "its checksum is wrong")
	}
	if info.Offsets[source] == nil {
		info.Offsets[source] = make(map[int]int64)
	}
	info.Offsets[source][int(binary.BigEndian.Uint32(partition))] = int64(binary.BigEndian.Uint64(b))
	return nil
}

func (s *Badger) history(txn *badger.Txn, info *Info, key, raw []byte) error {
	b, r, err := stored(key, raw)
	if err != nil {
		return err
	}
	h := History{Bytes: int64(r.size)}
	if b != nil {
		h.Bytes = int64(len(b))
	}
	name := string(key[1:])
	if h.Checkpoints, err = s.generation(txn, name); err != nil {
		return err
	}
	info.Histories[name] = h
	return nil
}

// Compact frees what is not needed any more in the store of opt, and what deleted
// records still take. Nobody else may use it; it takes as long as there is to merge.
func Compact(ctx context.Context, opt Options) (err error) {
	s, err := Open(opt)
	if err != nil {
		return err
	}
	err = s.Maintain(ctx)
	// Closing makes tables of what Badger has in memory.
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if s, err = Open(opt); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.db.Flatten(2); err != nil {
		return fmt.Errorf("store %s: compact: %w", opt.Path, full(err))
	}
	return ctx.Err()
}

// DiskUse sums the files of a store, as far as they have space.
func DiskUse(path string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += allocated(info)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("store %s: %w", path, err)
	}
	return total, nil
}

// asidePrefix begins the names of folders in which a store is set aside that could not
// be renamed.
const asidePrefix = "set-aside-"

// SetAside renames the store at path, so that Open makes a new one there, and returns
// the new name. Nothing is deleted. Where path can't be renamed, as a mount point, its
// files go to a folder in it, which Open passes over. ErrLocked if it is in use.
func SetAside(path string, now time.Time) (string, error) {
	unlock, err := lock(path)
	if err != nil {
		return "", fmt.Errorf("store %s can't be set aside: %w", path, err)
	}
	defer unlock()
	suffix := now.UTC().Format("20060102T150405Z")
	path = filepath.Clean(path)
	to, err := unused(path + "." + suffix)
	if err != nil {
		return "", err
	}
	err = os.Rename(path, to)
	if err == nil {
		return to, nil
	}
	if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EXDEV) && !errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("store %s can't be set aside: %w", path, err)
	}
	if to, err = unused(filepath.Join(path, asidePrefix+suffix)); err != nil {
		return "", err
	}
	if err := moveInto(path, to); err != nil {
		return "", fmt.Errorf("store %s can't be set aside: %w", path, err)
	}
	return to, nil
}

// unused returns name, or name with a number that nothing is called.
func unused(name string) (string, error) {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s-%d", name, i)
		}
		_, err := os.Lstat(try)
		if errors.Is(err, os.ErrNotExist) {
			return try, nil
		}
		if err != nil {
			return "", fmt.Errorf("set aside: %w", err)
		}
	}
}

// moveInto moves what is in a directory into a new folder in it.
func moveInto(dir, to string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if n := e.Name(); passedOver(n) {
			continue
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// passedOver tells what in a directory does not keep it from being a store's: what
// belongs to a mount point, and earlier stores.
func passedOver(name string) bool {
	return name == "lost+found" || strings.HasPrefix(name, asidePrefix)
}
