package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/cespare/xxhash/v2"
	badger "github.com/dgraph-io/badger/v4"
)

// Large values have a file each, which is written before the transaction that
// refers to it and removed after the one that ends the reference. So they change
// as atomically as the others, whatever their size, and leave no garbage.
const (
	largeDir = "large"
	// inlineMax is what a value may have to be kept in the database.
	inlineMax = 64<<10 + 16<<10
	// chunk is what is written at once.
	chunk = 256 << 10
)

// spool makes a value of what is written to it: a file of its own if it is large.
type spool struct {
	w    *writer
	buf  []byte
	file *reference // what is in a file; nil: there is none yet
	sum  xxhash.Digest
}

// Write takes a part of the value.
func (p *spool) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		n := min(len(b), chunk-len(p.buf))
		p.buf, b = append(p.buf, b[:n]...), b[n:]
		if len(p.buf) == chunk {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return all, nil
}

// flush writes what is kept. The disk may have less room than was there when the commit began, as nobody knows before
// how large the value becomes.
func (p *spool) flush() error {
	s := p.w.s
	if p.file == nil {
		p.w.files = append(p.w.files, reference{id: p.w.state.largeNext})
		p.file = &p.w.files[len(p.w.files)-1]
		p.w.state.largeNext++
		p.sum.Reset()
	}
	if p.file.size+uint64(len(p.buf)) > LimitCheckpoint {
		return fmt.Errorf("store: a value has more than %d bytes, which is what can be kept", LimitCheckpoint)
	}
	if err := s.room(int64(len(p.buf))); err != nil {
		return err
	}
	if err := s.files.write(largeFile(p.file.id), int64(p.file.size), p.buf); err != nil {
		return err
	}
	_, _ = p.sum.Write(p.buf) // it never fails
	p.file.size, p.buf = p.file.size+uint64(len(p.buf)), p.buf[:0]
	return nil
}

// end stores it under a key.
func (p *spool) end(key []byte) error {
	if p.file == nil && len(p.buf) <= inlineMax {
		return p.w.put(key, seal(key, p.buf, kindInline))
	}
	if err := p.flush(); err != nil {
		return err
	}
	p.file.sum = p.sum.Sum64()
	return p.w.put(key, seal(key, p.file.encode(), kindLarge))
}

func largeFile(id uint64) string { return fmt.Sprintf("%s/%016x", largeDir, id) }

// describe names the record of a key, for messages.
func describe(key []byte) (kind, name string) {
	if len(key) == 0 {
		return "record", "without a key"
	}
	rest := key[1:]
	number := func() string {
		if len(rest) < 8 {
			return fmt.Sprintf("%q", rest)
		}
		return fmt.Sprint(binary.BigEndian.Uint64(rest[len(rest)-8:]))
	}
	named := func() (string, []byte) {
		name, rest, err := cutName(rest)
		if err != nil {
			return fmt.Sprintf("%q", key[1:]), nil
		}
		return fmt.Sprintf("%q", name), rest
	}
	switch key[0] {
	case prefixMeta:
		if string(key) == string(keyRest) {
			return "rest", "of what was committed last"
		}
		return string(rest), "of the store"
	case prefixOffset:
		source, partition := named()
		if len(partition) != 4 {
			return "offset", fmt.Sprintf("%q", rest)
		}
		return "offset", fmt.Sprintf("of %s, partition %d", source, binary.BigEndian.Uint32(partition))
	case prefixLetter:
		return "dead letter", number()
	case prefixIndex:
		return "dead letter's index", fmt.Sprintf("%x", rest)
	case prefixAlert:
		return "alert", string(rest)
	case prefixAlertOrder:
		return "alert's place", number()
	case prefixPending:
		return "pending alert", number()
	case prefixLife:
		return "state", "of alerts"
	case prefixNotice:
		return "notice", number()
	case prefixNoticeID:
		return "notice's id", string(rest)
	case prefixOutbox:
		receiver, _ := named()
		return "outbox", fmt.Sprintf("of %s, delivery %s", receiver, number())
	case prefixLogFile:
		return "journal", "what is committed of " +
			logFileName(binary.BigEndian.Uint64(append(rest[:len(rest):len(rest)], make([]byte, 8)...)))
	case prefixCheckpoint:
		return "checkpoint", fmt.Sprintf("of history %q", rest)
	case prefixGeneration:
		return "checkpoint's number", fmt.Sprintf("of history %q", rest)
	case prefixForget:
		return "forgotten history", fmt.Sprintf("%q", rest)
	case prefixSpill:
		db, k := named()
		return "spilled value", fmt.Sprintf("%q of history %s", k, db)
	case prefixUndo:
		db, k := named()
		return "spilled value's predecessor", fmt.Sprintf("%q of history %s", k[min(8, len(k)):], db)
	}
	return "record", fmt.Sprintf("%q", key)
}

func damaged(key []byte, why string) *Damage {
	kind, name := describe(key)
	return &Damage{Kind: kind, Key: name, Why: why}
}

// errGone: a large value was replaced while it was read.
var errGone = errors.New("replaced meanwhile")

// noLarge says that a file of a large value is missing.
func noLarge(key []byte, r reference) *Damage {
	d := damaged(key, "its file is missing")
	d.File, d.short = largeFile(r.id), true
	return d
}

// readLarge reads what a reference says.
func readLarge(from files, key []byte, r reference) (_ []byte, err error) {
	damage := func(why string) *Damage {
		d := damaged(key, why)
		d.File = largeFile(r.id)
		return d
	}
	f, err := from.open(largeFile(r.id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if uint64(f.Size()) < r.size {
		d := damage(fmt.Sprintf("the file has %d bytes of %d", f.Size(), r.size))
		d.short = true
		return nil, d
	}
	b := make([]byte, r.size)
	if _, err := f.ReadAt(b, 0); err != nil && r.size > 0 {
		return nil, damage(err.Error())
	}
	if checksum(b) != r.sum {
		return nil, damage("its checksum is wrong")
	}
	return b, nil
}

// stored is the value of a key, if that is stored under it, or nil and where it is.
func stored(key, raw []byte) (value []byte, r reference, err error) {
	b, kind, err := unseal(key, raw)
	if err != nil {
		return nil, r, damaged(key, "its checksum is wrong")
	}
	if kind == kindInline {
		return b, r, nil
	}
	if r, err = decodeReference(b); err != nil {
		return nil, r, damaged(key, "its reference is cut")
	}
	return nil, r, nil
}

// value gives the value of a key from what is stored under it. The result shares
// memory with raw.
func (s *Badger) value(key, raw []byte) ([]byte, error) {
	b, r, err := stored(key, raw)
	if err != nil || b != nil {
		return b, err
	}
	out, err := readLarge(s.files, key, r)
	if !errors.Is(err, errGone) {
		return out, err
	}
	return s.successor(key, r)
}

// successor reads a value whose file is gone. A reader sees the database as it
// was when it began, and the value may have been replaced meanwhile: then the new
// one is given.
func (s *Badger) successor(key []byte, gone reference) ([]byte, error) {
	for {
		var raw []byte
		err := s.read(func(txn *badger.Txn) (err error) {
			raw, err = rawOf(txn, key)
			return err
		})
		if err != nil {
			return nil, err
		}
		if raw == nil {
			return nil, errGone
		}
		b, r, err := stored(key, raw)
		if err != nil || b != nil {
			return b, err
		}
		if r == gone {
			return nil, noLarge(key, r)
		}
		out, err := readLarge(s.files, key, r)
		if !errors.Is(err, errGone) {
			return out, err
		}
		gone = r
	}
}

// owned is a large value that there is.
type owned struct {
	key []byte
	reference
}

// loadLarge removes files that nothing refers to, and counts the others.
func (s *Badger) loadLarge() error {
	sizes, err := s.files.list(largeDir)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, o := range s.large {
		name := path.Base(largeFile(o.id))
		size, ok := sizes[name]
		if !ok {
			return noLarge(o.key, o.reference)
		}
		total += size
		delete(sizes, name)
	}
	for name := range sizes {
		if err := s.files.remove(largeDir + "/" + name); err != nil {
			return err
		}
	}
	s.largeBytes.Store(total)
	s.large = nil
	return nil
}
