package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Report is what Verify found.
type Report struct {
	// Damaged are records whose bytes are not those that were written, or that are
	// missing, in order of file and place.
	Damaged []*Damage
	// Notes are what is usual in a copy that was made while the store was in use.
	Notes   []string
	Records int64 // looked at, all versions of each
	Entries int64 // of the journal
	Bytes   int64 // read
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

// Verify reads all of the store at path, or of a copy, and holds every record to
// its checksum and to those that refer to it. It changes nothing. A store that is
// in use is ErrLocked; a copy made with cp meanwhile is not: what is torn at the
// end of its files, or was replaced while it was made, is noted. An error means
// that the store could not be read, not that it is damaged.
func Verify(path string) (Report, error) {
	if info, err := os.Stat(path); err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	} else if !info.IsDir() {
		return Report{}, fmt.Errorf("store %s: %w, but a file", path, ErrForeign)
	}
	unlock, err := lock(path)
	if errors.Is(err, ErrLocked) {
		return Report{}, fmt.Errorf("store %s: %w%s: copy the directory and verify the copy (cp -r is enough), or stop that one first", path, ErrLocked, holder(path))
	}
	if err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	}
	defer unlock()
	v := &verifier{path: path, files: &osFiles{dir: path}, records: make(map[string]rawRecord)}
	if _, err := os.Stat(filepath.Join(path, "LOCK")); err == nil {
		v.unclean = true
	}
	if err := v.run(); err != nil {
		return Report{}, fmt.Errorf("store %s: %w", path, err)
	}
	slices.SortStableFunc(v.report.Damaged, func(a, b *Damage) int {
		if a.File != b.File {
			if a.File < b.File {
				return -1
			}
			return 1
		}
		return int(a.Offset - b.Offset)
	})
	return v.report, nil
}

type verifier struct {
	path   string
	files  files
	report Report
	// unclean: the store was not closed, so it was in use or was killed.
	unclean bool
	// copied: it may be a copy that was made while the store was in use. Else it was
	// killed, and its own folder has all that was committed.
	copied bool
	// torn: some of its files are newer than others.
	torn bool
	// lost: newer versions of records may be in what is damaged, so that the files of older
	// ones may be gone.
	lost bool
	// records are the newest versions, without those that were spilled.
	records map[string]rawRecord
	state   state
}

func (v *verifier) damage(d *Damage) {
	if len(v.report.Damaged) < damagedMax {
		v.report.Damaged = append(v.report.Damaged, d)
	}
}

func (v *verifier) note(format string, args ...any) {
	v.report.Notes = append(v.report.Notes, fmt.Sprintf(format, args...))
}

func (v *verifier) run() error {
	if err := ours(v.path); err != nil {
		var d *Damage
		if errors.As(err, &d) {
			v.damage(d)
			return nil
		}
		return err
	}
	if err := begun(v.path); err != nil {
		return err
	}
	if err := v.database(); err != nil {
		return err
	}
	if len(v.report.Damaged) > 0 && len(v.records) == 0 {
		return nil
	}
	ok, err := v.meta()
	if err != nil || !ok {
		return err
	}
	if err := v.rest(); err != nil {
		return err
	}
	if err := v.large(); err != nil {
		return err
	}
	if err := v.entries(); err != nil {
		return err
	}
	v.references()
	return nil
}

// database reads Badger's files.
func (v *verifier) database() error {
	l, err := readLayout(v.path)
	var d *Damage
	if errors.As(err, &d) {
		v.damage(d)
		return nil
	}
	if err != nil {
		return err
	}
	if d := registry(v.path); d != nil {
		v.damage(d)
	}
	for _, look := range []func(string) (*Damage, error){placeOf, registryNumber, emptyDiscard} {
		d, err := look(v.path)
		if err != nil {
			return err
		}
		if d != nil {
			v.damage(d)
		}
	}
	for _, name := range l.vlogs {
		d, err := emptyLog(v.path, name)
		if err != nil {
			return err
		}
		if d != nil {
			v.damage(d)
		}
	}
	var seams []*Damage // of which it has to be known whether this is a copy
	found := func(ds ...*Damage) {
		for _, d := range ds {
			if d.seam {
				seams = append(seams, d)
			} else {
				v.damage(d)
			}
		}
	}
	for _, name := range l.tables {
		ds, err := readTable(v.path, name, v.record)
		if err != nil {
			return err
		}
		found(ds...)
		v.sized(name)
	}
	slices.Sort(l.logs)
	for _, name := range l.logs {
		d, err := readWAL(v.path, name, v.record)
		if err != nil {
			return err
		}
		if d != nil {
			found(d)
		}
		v.sized(name)
	}
	v.copied = v.unclean && !settled(v.path)
	v.lost = len(v.report.Damaged)+len(seams) > 0
	v.halves(l, seams)
	return v.unnamed(l)
}

// halves tells of what is not there, or not all of it: in a copy it was written or
// removed meanwhile.
func (v *verifier) halves(l layout, seams []*Damage) {
	if !v.copied {
		for _, id := range l.missing {
			v.damage(missingTable(id))
		}
		for _, d := range seams {
			v.damage(d)
		}
		return
	}
	switch {
	case len(l.missing) > 0 && l.newer:
		v.torn = true
		v.note("the copy was made while tables were merged: references between records were not compared")
	case len(l.missing) > 0: // cp copies what there was when it began
		v.torn = true
		v.note("%s is not in the copy: it was merged into others while the copy was made; in a store that was killed this is damage", missingTable(l.missing[0]).File)
	}
	for _, d := range seams {
		v.torn = true
		v.note("what %s has from byte %d on was written or removed while the copy was made, and is not looked at; in a store that was killed this is damage", d.File, d.Offset)
	}
}

// unnamed reads tables that the manifest does not name. Usually they hold nothing
// that is not elsewhere: the process was killed while it made them. In a copy they
// may have been made, and named, after the manifest was copied.
func (v *verifier) unnamed(l layout) error {
	if !v.copied || !l.newer {
		return nil
	}
	// A deleted record may be nowhere else any more: the last table that had it was
	// merged away, and not yet removed.
	found := make(map[string]rawRecord)
	for _, name := range l.others {
		_, err := readTable(v.path, name, func(r rawRecord) {
			if internal(r.key) || r.key[0] == prefixSpill || r.key[0] == prefixUndo || v.records[string(r.key)].version >= r.version {
				return
			}
			if found[string(r.key)].version < r.version {
				r.key, r.value = slices.Clone(r.key), slices.Clone(r.value)
				found[string(r.key)] = r
			}
		})
		if err != nil {
			return err
		}
	}
	newer := false
	for _, r := range found {
		if !r.deleted {
			newer = true
			v.record(r)
		}
	}
	if newer && !v.torn {
		v.torn = true
		v.note("the copy was made while a table was written: references between records were not compared")
	}
	return nil
}

func (v *verifier) sized(name string) {
	if info, err := os.Stat(filepath.Join(v.path, name)); err == nil {
		v.report.Bytes += info.Size()
	}
}

// record counts and checks a record of Badger's files.
func (v *verifier) record(r rawRecord) {
	if internal(r.key) {
		return
	}
	v.report.Records++
	v.check(r)
}

// check holds a record to its checksum, and keeps it if there is none newer.
func (v *verifier) check(r rawRecord) {
	if !r.deleted {
		// The first version of the layout had no checksums; meta tells.
		if _, _, err := unseal(r.key, r.value); err != nil && string(r.key) != string(keySchema) {
			d := damaged(r.key, "its checksum is wrong")
			d.File, d.Offset = r.file, r.offset
			v.damage(d)
			return
		}
	}
	switch r.key[0] {
	case prefixSpill, prefixUndo:
		return // there may be very many
	}
	if old, ok := v.records[string(r.key)]; ok && old.version > r.version {
		return
	}
	r.key = slices.Clone(r.key)
	if len(r.value) > 64 && r.key[0] != prefixOutbox && r.key[0] != prefixAlertOrder && r.key[0] != prefixPending && r.key[0] != prefixSegment && r.key[0] != prefixMeta && r.key[0] != prefixLarge {
		r.value = nil // inline, and looked at
	} else {
		r.value = slices.Clone(r.value)
	}
	v.records[string(r.key)] = r
}

// live calls f with the newest version of each record under a prefix that is not
// deleted, in order of key.
func (v *verifier) live(prefix byte, f func(r rawRecord)) {
	for _, k := range slices.Sorted(maps.Keys(v.records)) {
		if r := v.records[k]; k[0] == prefix && !r.deleted {
			f(r)
		}
	}
}

func (v *verifier) has(key []byte) bool {
	r, ok := v.records[string(key)]
	return ok && !r.deleted
}

// at is a Damage at a record.
func (v *verifier) at(r rawRecord, why string) {
	d := damaged(r.key, why)
	d.File, d.Offset = r.file, r.offset
	v.damage(d)
}

// meta reads version and counters. Without them nothing else can be compared.
func (v *verifier) meta() (bool, error) {
	r, ok := v.records[string(keySchema)]
	if !ok {
		if len(v.report.Damaged) > 0 {
			return false, nil
		}
		if v.torn {
			return false, nil // what is missing has it, and that is noted
		}
		if len(v.records) == 0 && v.unclean {
			v.note("nothing was committed yet")
			return false, nil
		}
		if len(v.records) > 0 {
			return false, fmt.Errorf("%w, but another Badger database", ErrForeign)
		}
		v.damage(&Damage{Kind: "schema", Key: "the version of the layout", Why: "it is missing"})
		return false, nil
	}
	if len(r.value) == 2 && binary.BigEndian.Uint16(r.value) == 1 {
		return false, older(1)
	}
	b, _, err := unseal(r.key, r.value)
	if err != nil || len(b) != 2 {
		v.at(r, "its checksum is wrong")
		return false, nil //nolint:nilerr // it is told as damage
	}
	switch n := int(binary.BigEndian.Uint16(b)); {
	case n > schema:
		return false, fmt.Errorf("%w: its layout is version %d and this program knows up to %d", ErrNewer, n, schema)
	case n < schema:
		return false, older(n)
	}
	r, ok = v.records[string(keyState)]
	if !ok && v.torn {
		return false, nil
	}
	if !ok {
		v.damage(&Damage{Kind: "state", Key: "the counters", Why: "they are missing"})
		return false, nil
	}
	if b, _, err = unseal(r.key, r.value); err == nil {
		err = v.state.decode(b)
	}
	if err != nil {
		v.at(r, "they can't be decoded")
		return false, nil //nolint:nilerr // it is told as damage
	}
	return true, nil
}

func older(version int) error {
	return fmt.Errorf("%w: its layout is version %d, and this program reads version %d", ErrOlder, version, schema)
}

// rest takes what a Commit has left to do for done, as Open does it. What is written there is part of
// one record; of what was done already there are others.
func (v *verifier) rest() error {
	r, ok := v.records[string(keyRest)]
	if !ok || r.deleted {
		return nil
	}
	b, ref, err := stored(r.key, r.value)
	if err != nil {
		return nil //nolint:nilerr // it is told as damage
	}
	file := r.file
	if b == nil {
		file = largeFile(ref.id)
		if b, ok, err = v.readLarge(r.key, ref); err != nil {
			return err
		}
		if !ok {
			v.torn = true
			return nil
		}
	}
	changes, err := parseRest(b)
	if err != nil {
		v.at(r, "it can't be decoded")
		return nil //nolint:nilerr // it is told as damage
	}
	for _, c := range changes {
		v.check(rawRecord{key: c.key, version: math.MaxUint64, deleted: c.raw == nil, value: c.raw, file: file})
	}
	return nil
}

// readLarge reads what a reference says; what is wrong with it is told, or noted.
func (v *verifier) readLarge(key []byte, ref reference) (_ []byte, ok bool, _ error) {
	b, err := readLarge(v.files, key, ref)
	var d *Damage
	switch {
	case v.lost && errors.Is(err, errGone):
	case v.copied && (errors.Is(err, errGone) || (errors.As(err, &d) && d.seam)):
		kind, name := describe(key)
		v.note("%s is not in the copy, or not all of it: %s %s was written or replaced while the copy was made; in a store that was killed this is damage", largeFile(ref.id), kind, name)
	case errors.Is(err, errGone):
		d := damaged(key, "its file is missing")
		d.File = largeFile(ref.id)
		v.damage(d)
	case errors.As(err, &d):
		v.damage(d)
	case err != nil:
		return nil, false, err
	default:
		v.report.Bytes += int64(ref.size)
		return b, true, nil
	}
	return nil, false, nil
}

// large reads the files of large values.
func (v *verifier) large() error {
	var err error
	for _, prefix := range []byte{prefixAlert, prefixCheckpoint, prefixLetter, prefixLife, prefixNotice} {
		v.live(prefix, func(r rawRecord) {
			b, kind, err2 := unseal(r.key, r.value)
			if err != nil || err2 != nil || kind != kindLarge {
				return
			}
			ref, err2 := decodeReference(b)
			if err2 != nil {
				v.at(r, "its reference is cut")
				return
			}
			_, _, err = v.readLarge(r.key, ref)
		})
	}
	return err
}

// entries reads the journal.
func (v *verifier) entries() error {
	sizes, err := v.files.list(journalDir)
	if err != nil {
		return err
	}
	var segments []segment
	v.live(prefixSegment, func(r rawRecord) {
		b, _, err := unseal(r.key, r.value)
		var g segment
		if err == nil {
			g, err = decodeSegment(r.key, b)
		}
		if err != nil {
			v.at(r, "it can't be decoded")
			return
		}
		segments = append(segments, g)
	})
	newest := uint64(0)
	for _, g := range segments {
		if _, ok := sizes[filepath.Base(g.file())]; ok {
			newest = max(newest, g.id)
		}
	}
	for _, g := range segments {
		size, ok := sizes[filepath.Base(g.file())]
		switch {
		case !ok && v.lost:
			continue
		case !ok && v.copied:
			v.note("%s is not in the copy: it was begun or dropped while the copy was made; in a store that was killed this is damage", g.file())
			continue
		case !ok:
			v.damage(missing(g))
			continue
		}
		if err := v.segment(g, size, g.id == newest); err != nil {
			return err
		}
	}
	return nil
}

// segment reads a file of the journal.
func (v *verifier) segment(g segment, size int64, last bool) (err error) {
	f, err := v.files.open(g.file())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	v.report.Bytes += size
	short := size < g.end && last && v.copied
	var buf []byte
	err = walk(f, g, func(at int64, h frame) (bool, error) {
		v.report.Entries++
		_, b, err := readEntry(f, g, spot{h.number, at}, buf)
		buf = b
		var d *Damage
		if errors.As(err, &d) {
			v.damage(d)
			return true, nil
		}
		return true, err
	})
	var d *Damage
	if errors.As(err, &d) {
		if short && (d.Offset+frameHeader > size || d.Why == cutShort) {
			v.note("%s ends before what was committed: the copy was made while it was written; in a store that was killed this is damage", g.file())
			return nil
		}
		v.damage(d)
		return nil
	}
	return err
}

// references holds records to those that they refer to.
func (v *verifier) references() {
	if v.torn || len(v.report.Damaged) > 0 {
		return // one loss would be told many times
	}
	v.live(prefixOutbox, func(r rawRecord) {
		id, _, err := unseal(r.key, r.value)
		if number := r.key[len(r.key)-min(8, len(r.key)):]; err != nil || !v.has(append([]byte{prefixNotice}, number...)) || !v.has(noticeIDKey(string(id))) {
			v.at(r, fmt.Sprintf("its notice %q is missing", id))
		}
	})
	for _, prefix := range []byte{prefixAlertOrder, prefixPending} {
		v.live(prefix, func(r rawRecord) {
			b, _, err := unseal(r.key, r.value)
			if err != nil || len(b) < 8 || !v.has(alertKey(string(b[8:]))) {
				v.at(r, "its alert is missing")
			}
		})
	}
	for id := v.state.letterOldest; id < v.state.letterNext; id++ {
		if !v.has(letterKey(id)) {
			v.damage(damaged(letterKey(id), "it is missing"))
		}
	}
	count := func(prefix byte) (n uint64) {
		v.live(prefix, func(rawRecord) { n++ })
		return n
	}
	for _, c := range []struct {
		kind string
		want uint64
		have uint64
	}{
		{"alerts", v.state.alertCount, count(prefixAlert)},
		{"alerts' places", v.state.alertCount, count(prefixAlertOrder)},
		{"notices", count(prefixNoticeID), count(prefixNotice)},
		{"offsets", v.state.offsetCount, count(prefixOffset)},
		{"dead letters", v.state.letterNext - v.state.letterOldest, count(prefixLetter)},
	} {
		if c.want != c.have {
			v.damage(&Damage{Kind: c.kind, Key: fmt.Sprintf("all %d", c.want), Why: fmt.Sprintf("there are %d", c.have)})
		}
	}
}
