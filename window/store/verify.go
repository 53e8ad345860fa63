package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is what Verify found: if nothing is Damaged and there are no Notes, the store is whole.
type Report struct {
	Records int64 `json:"records"`         // looked at
	Entries int64 `json:"journal_entries"` // of the journal
	Bytes   int64 `json:"bytes"`           // read
	// Damaged are records whose bytes are not those that were written, or that are
	// missing, in order of file and place.
	Damaged []*Damage `json:"damaged"`
	// Notes are what would be damage, but for a copy that was made while the store was in use
	// or a loss of power, which explain it: whether the store is whole is not known.
	Notes []string `json:"notes"`
}

// damagedMax bounds how many damaged records a Report names.
const damagedMax = 1000

// Exists is nil if there is a store at path, be it damaged, or of another version; otherwise the
// error says what there is, and wraps fs.ErrNotExist or ErrForeign. Open makes a store in an
// empty directory: who wants one that is there asks first. Nothing is written.
func Exists(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("store %s: %w", path, err)
	case !info.IsDir():
		return fmt.Errorf("store %s: %w, but a file", path, ErrForeign)
	}
	err = ours(path)
	if err == nil {
		err = begun(path)
	}
	if err == nil || errors.Is(err, ErrDamaged) {
		return nil // whoever opens it says what is wrong with it
	}
	return fmt.Errorf("store %s: %w", path, err)
}

// begun tells whether a directory that may be used as a store is one.
func begun(path string) error {
	if _, err := os.Stat(filepath.Join(path, "MANIFEST")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is none in that directory", ErrForeign)
	}
	return nil
}

// Verify reads all of the store at path, or of a copy, and holds it to what was committed. It
// changes nothing: it opens a copy of the database, in os.TempDir. A store that is in use is
// ErrLocked. A copy made with cp meanwhile is not, but its files are of different moments: what
// may come of that is noted. An error means that the store could not be read, not that it is
// damaged.
func Verify(path string) (Report, error) {
	if info, err := os.Stat(path); err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	} else if !info.IsDir() {
		return Report{}, fmt.Errorf("store %s: %w, but a file", path, ErrForeign)
	}
	unlock, err := lock(path)
	if errors.Is(err, ErrLocked) {
		return Report{}, fmt.Errorf("store %s: %w%s: copy the directory and verify the copy (cp -r is enough), or stop "+
			"that one first", path, ErrLocked, holder(path))
	}
	if err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	}
	defer unlock()
	v := &verifier{path: path, report: Report{Damaged: []*Damage{}, Notes: []string{}}}
	if _, err := os.Stat(filepath.Join(path, "LOCK")); err == nil { // it was not closed
		v.copied = !settled(path)
	}
	if err := v.run(); err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	}
	slices.SortStableFunc(v.report.Damaged, func(a, b *Damage) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return v.report, nil
}

type verifier struct {
	path   string
	report Report
	// copied: it may be a copy that was made while the store was in use. Else it was closed or
	// killed, and its own folder has all that was committed.
	copied bool
	s      *Badger // the database is a copy, files are those of the store
}

// found takes err if it is a Damage, and notes it instead where something else may explain it:
// that the store was copied while it was written, in what torn says.
func (v *verifier) found(err error, torn bool) error {
	var d *Damage
	switch {
	case err == nil:
	case !errors.As(err, &d):
		return err
	case v.copied && torn:
		v.report.Notes = append(v.report.Notes, d.Error()+", or was written while the copy was made")
	case d.power:
		v.report.Notes = append(v.report.Notes, d.Error()+", or the machine went down before they were on the disk")
	case len(v.report.Damaged) < damagedMax:
		v.report.Damaged = append(v.report.Damaged, d)
	}
	return nil
}

func (v *verifier) run() (err error) {
	if err := ours(v.path); err != nil {
		return v.found(err, false)
	}
	if err := begun(v.path); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "isowatch-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyDatabase(v.path, dir); err != nil {
		return fmt.Errorf("its database is copied to be looked at: %w", full(err))
	}
	v.s = &Badger{opt: Options{Path: dir, Reserve: 1}.WithDefaults(), files: frozen{&osFiles{dir: v.path}},
		marks: &osFiles{dir: dir}}
	defer func() {
		err = errors.Join(err, v.s.marks.close(), v.s.closeDB())
	}()
	if err := v.s.database(); err != nil {
		return v.found(err, true)
	}
	v.report.Records = v.s.records
	if v.s.lost != nil {
		if err := v.found(v.s.lost, true); err != nil {
			return err
		}
	}
	if !v.s.made {
		return nil
	}
	did, err := v.s.finish()
	if err == nil && did {
		err = v.s.whole()
	}
	if err != nil {
		return v.found(err, true)
	}
	if err := v.large(); err != nil {
		return err
	}
	return v.entries()
}

// frozen are files that are only read.
type frozen struct{ files }

func (frozen) remove(string) error { return nil }

// copyDatabase copies Badger's files, and COMMITTED.
func copyDatabase(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == "LOCK" {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// large reads the files of large values.
func (v *verifier) large() error {
	for _, o := range v.s.large {
		_, err := readLarge(v.s.files, o.key, o.reference)
		if errors.Is(err, errGone) {
			err = noLarge(o.key, o.reference)
		}
		v.report.Bytes += int64(o.size)
		var d *Damage
		if err := v.found(err, errors.As(err, &d) && d.short); err != nil {
			return err
		}
	}
	return nil
}

// entries reads the journal.
func (v *verifier) entries() error {
	logFiles, err := v.s.logFiles()
	if err != nil {
		return v.found(err, false)
	}
	for _, g := range logFiles {
		if err := v.logFile(g); err != nil {
			return err
		}
	}
	return nil
}

// logFile reads a file of the journal.
func (v *verifier) logFile(g logFile) (err error) {
	f, err := v.s.files.open(g.file())
	if errors.Is(err, fs.ErrNotExist) {
		return v.found(g.missing(), true)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	v.report.Bytes += min(f.Size(), g.end)
	var buf []byte
	err = walk(f, g, func(at int64, h frame) (bool, error) {
		v.report.Entries++
		_, b, err := readEntry(f, g, spot{h.number, at}, buf)
		buf = b
		return true, v.found(err, false)
	})
	var d *Damage
	torn := errors.As(err, &d) && f.Size() < g.end && (d.Offset+frameHeader > f.Size() || d.Why == cutShort)
	return v.found(err, torn)
}
