package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"time"
)

// The journal is a row of files, written at their ends and deleted whole, so that
// neither writing nor forgetting ever moves what is kept. A file is
//
//	8 bytes   "isowjrn2"
//	frames    u32 length of data, u64 number, i64 time, u32 of checksum of these,
//	          u64 checksum of header and data, data
//
// What of it counts says the database: key s has a logFile for each, and
// bytes beyond its end were never committed.
const (
	journalDir   = "journal"
	journalMagic = "isowjrn2"
	frameHeader  = 4 + 8 + 8 + 4 + 8

	cutShort = "it is cut: the file is shorter than what was committed"
)

// logFile says what is committed of a file of the journal.
type logFile struct {
	id     uint64
	first  uint64 // numbers of the entries
	last   uint64
	count  uint64
	end    int64 // of the file
	oldest int64 // times of the entries
	newest int64
}

func logFileName(id uint64) string { return fmt.Sprintf("%s/%016x.log", journalDir, id) }

func (g logFile) file() string { return logFileName(g.id) }

func (g logFile) encode() []byte {
	return u64(g.first, g.last, g.count, uint64(g.end), uint64(g.oldest), uint64(g.newest))
}

func decodeLogFile(key, b []byte) (logFile, error) {
	if len(key) != 9 || len(b) != 48 {
		return logFile{}, errDamaged
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	g := logFile{id: binary.BigEndian.Uint64(key[1:]), first: n(0), last: n(1), count: n(2), end: int64(n(3)),
		oldest: int64(n(4)), newest: int64(n(5))}
	if g.first > g.last || g.count == 0 || g.end < int64(len(journalMagic)+frameHeader) {
		return logFile{}, errDamaged
	}
	return g, nil
}

// header makes what precedes the data of an entry.
func (e Entry) header() []byte {
	b := make([]byte, 0, frameHeader)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Data)))
	b = binary.BigEndian.AppendUint64(b, e.Number)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	b = binary.BigEndian.AppendUint32(b, uint32(checksum(b)))
	return binary.BigEndian.AppendUint64(b, checksum(b, e.Data))
}

// frame is a header that was read.
type frame struct {
	size   int
	number uint64
	time   int64
	sum    uint64
}

func decodeFrame(b []byte) (frame, error) {
	if binary.BigEndian.Uint32(b[20:]) != uint32(checksum(b[:20])) {
		return frame{}, errDamaged
	}
	f := frame{size: int(binary.BigEndian.Uint32(b)), number: binary.BigEndian.Uint64(b[4:]),
		time: int64(binary.BigEndian.Uint64(b[12:])), sum: binary.BigEndian.Uint64(b[24:])}
	if f.size > LimitEntry {
		return frame{}, errDamaged
	}
	return f, nil
}

// spot is where an entry begins.
type spot struct {
	number uint64
	at     int64
}

// journal is what the database says of the journal, in memory. Files are in
// order of id and of their numbers.
type journal struct {
	files files

	mu       sync.Mutex
	logFiles []logFile
	// indexes are the spots of a few files: those looked at last, the one
	// that is written to among them.
	indexes map[uint64][]spot
	recent  []uint64
}

// indexMax bounds how many files have an index in memory.
const indexMax = 4

func (j *journal) snapshot() []logFile {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.logFiles)
}

// lives tells whether a file is still there.
func (j *journal) lives(id uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.logFiles, func(g logFile) bool { return g.id == id })
}

// set replaces the files; spots are those of entries that came with it.
func (j *journal) set(logFiles []logFile, spots map[uint64][]spot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := make(map[uint64]logFile, len(j.logFiles))
	for _, g := range j.logFiles {
		old[g.id] = g
	}
	j.logFiles = logFiles
	live := make(map[uint64]bool, len(logFiles))
	for _, g := range logFiles {
		live[g.id] = true
		have, ok := j.indexes[g.id]
		if before, was := old[g.id]; (ok || !was) && before.last <= g.last {
			j.keep(g.id, append(have, spots[g.id]...))
		} else if ok {
			j.forget(g.id)
		}
	}
	for id := range j.indexes {
		if !live[id] {
			j.forget(id)
		}
	}
}

// keep remembers an index. The caller holds mu, as with forget.
func (j *journal) keep(id uint64, index []spot) {
	j.forget(id)
	j.indexes[id] = index
	j.recent = append(j.recent, id)
	if len(j.recent) > indexMax {
		j.forget(j.recent[0])
	}
}

func (j *journal) forget(id uint64) {
	delete(j.indexes, id)
	j.recent = slices.DeleteFunc(j.recent, func(x uint64) bool { return x == id })
}

// index returns the spots of a file: from memory, or from the headers of its
// file, one small read each.
func (j *journal) index(f file, g logFile) ([]spot, error) {
	j.mu.Lock()
	have, ok := j.indexes[g.id]
	j.mu.Unlock()
	if ok && uint64(len(have)) >= g.count {
		return have[:g.count:g.count], nil
	}
	index := make([]spot, 0, min(g.count, 1<<16))
	err := walk(f, g, func(at int64, h frame) (bool, error) {
		index = append(index, spot{h.number, at})
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// Only if no commit has changed it meanwhile.
	if slices.Contains(j.logFiles, g) {
		j.keep(g.id, index)
	}
	return index, nil
}

// walk calls do with each frame of a file and where it begins, until do
// returns false. It holds the file to what the database says of it.
func walk(f file, g logFile, do func(at int64, h frame) (bool, error)) error {
	damaged := func(at int64, after uint64, why string) error {
		return g.damage(at, why, "the entry after number %d", after)
	}
	buf := make([]byte, frameHeader)
	magic := buf[:len(journalMagic)]
	if _, err := f.ReadAt(magic, 0); err != nil || string(magic) != journalMagic {
		return g.damage(0, "its beginning is not that of a journal", "the file of entries %d to %d", g.first, g.last)
	}
	at, last, count := int64(len(journalMagic)), uint64(0), uint64(0)
	for at < g.end {
		if at+frameHeader > g.end {
			return damaged(at, last, "it is cut")
		}
		if _, err := f.ReadAt(buf, at); err != nil {
			return damaged(at, last, cutShort)
		}
		h, err := decodeFrame(buf)
		if err != nil {
			return damaged(at, last, "the checksum of its header is wrong")
		}
		if (count > 0 && h.number <= last) || at+frameHeader+int64(h.size) > g.end {
			return damaged(at, last, "its header does not fit its place")
		}
		if f.Size() < at+frameHeader+int64(h.size) {
			return damaged(at, last, cutShort)
		}
		count, last = count+1, h.number
		if more, err := do(at, h); err != nil || !more {
			return err
		}
		at += frameHeader + int64(h.size)
	}
	if count != g.count || last != g.last {
		return damaged(at, last, fmt.Sprintf("the file has %d entries up to number %d, committed were %d up to %d", count,
			last, g.count, g.last))
	}
	return nil
}

// readEntry reads the entry at a spot into buf, which it grows.
func readEntry(f file, g logFile, s spot, buf []byte) (Entry, []byte, error) {
	damaged := func(why string) error { return g.damage(s.at, why, "entry %d", s.number) }
	buf = slices.Grow(buf[:0], frameHeader)[:frameHeader]
	if _, err := f.ReadAt(buf, s.at); err != nil {
		return Entry{}, buf, damaged(err.Error())
	}
	h, err := decodeFrame(buf)
	if err != nil || h.number != s.number {
		return Entry{}, buf, damaged("its header is damaged")
	}
	if s.at+frameHeader+int64(h.size) > f.Size() {
		return Entry{}, buf, damaged(cutShort)
	}
	buf = slices.Grow(buf, h.size)[:frameHeader+h.size]
	data := buf[frameHeader:]
	if _, err := f.ReadAt(data, s.at+frameHeader); err != nil {
		return Entry{}, buf, damaged(err.Error())
	}
	if h.sum != checksum(buf[:24], data) {
		return Entry{}, buf, damaged("its checksum is wrong")
	}
	return Entry{Number: h.number, Time: h.time, Data: data}, buf, nil
}

// each calls f with the entries from a number on, until f returns false.
func (j *journal) each(from uint64, f func(Entry) (bool, error)) error {
	var buf []byte
	for _, g := range j.snapshot() {
		if g.last < from {
			continue
		}
		more, err := j.eachIn(g, from, &buf, f)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// eachIn is each for one of them. One that was dropped meanwhile is passed over.
func (j *journal) eachIn(g logFile, from uint64, buf *[]byte, f func(Entry) (bool, error)) (more bool, err error) {
	in, err := j.files.open(g.file())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			if !j.lives(g.id) {
				return true, nil
			}
			return false, g.missing()
		}
		return false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	index, err := j.index(in, g)
	if err != nil {
		return false, err
	}
	begin := sort.Search(len(index), func(i int) bool { return index[i].number >= from })
	for _, s := range index[begin:] {
		var e Entry
		if e, *buf, err = readEntry(in, g, s, *buf); err != nil {
			return false, err
		}
		if more, err := f(e); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// damage says why what is at a place of the file is damaged; format names it.
func (g logFile) damage(at int64, why, format string, args ...any) *Damage {
	return &Damage{Kind: "journal", Key: fmt.Sprintf(format, args...), File: g.file(), Offset: at, Why: why}
}

func (g logFile) missing() *Damage {
	return g.damage(0, "the file is missing", "entries %d to %d", g.first, g.last)
}

// plan is a change of the journal that is prepared but not committed.
type plan struct {
	j        *journal
	logFiles []logFile
	spots    map[uint64][]spot
	changed  map[uint64]bool // written in this plan
	dropped  []logFile
}

func (j *journal) plan() *plan {
	return &plan{j: j, logFiles: j.snapshot(), spots: make(map[uint64][]spot), changed: make(map[uint64]bool)}
}

// cut takes the entries with numbers from n on out of the journal.
func (p *plan) cut(n uint64) error {
	for len(p.logFiles) > 0 {
		i := len(p.logFiles) - 1
		g := p.logFiles[i]
		if g.last < n {
			return nil
		}
		if g.first >= n {
			p.drop(i)
			continue
		}
		in, err := p.j.files.open(g.file())
		if err != nil {
			return err
		}
		was := g
		err = walk(in, was, func(at int64, h frame) (bool, error) {
			if h.number >= n {
				g.end = at
				return false, nil
			}
			if g.last, g.newest = h.number, max(h.time, was.oldest); at == int64(len(journalMagic)) {
				g.count, g.newest = 0, h.time
			}
			g.count++
			return true, nil
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
		p.logFiles[i] = g
		p.changed[g.id] = true
	}
	return nil
}

func (p *plan) drop(i int) {
	p.dropped = append(p.dropped, p.logFiles[i])
	delete(p.changed, p.logFiles[i].id)
	delete(p.spots, p.logFiles[i].id)
	p.logFiles = slices.Delete(p.logFiles, i, i+1)
}

// add writes an entry behind the others; begin says that it opens a file, of that
// id.
func (p *plan) add(e Entry, begin bool, id uint64) error {
	var parts [3][]byte
	if begin {
		p.logFiles = append(p.logFiles, logFile{id: id, first: e.Number, oldest: e.Time, newest: e.Time})
		parts[0] = []byte(journalMagic)
	}
	g := &p.logFiles[len(p.logFiles)-1]
	parts[1], parts[2] = e.header(), e.Data
	if err := p.j.files.write(g.file(), g.end, parts[:]...); err != nil {
		return err
	}
	at := g.end + int64(len(parts[0]))
	p.spots[g.id] = append(p.spots[g.id], spot{e.Number, at})
	p.changed[g.id] = true
	g.end = at + int64(frameHeader+len(e.Data))
	g.last = e.Number
	g.count++
	g.oldest, g.newest = min(g.oldest, e.Time), max(g.newest, e.Time)
	return nil
}

// expire drops the oldest files of which no checkpoint needs an entry: those
// older than the time before, and as many as it takes to keep to budget bytes.
func (p *plan) expire(drop uint64, before time.Time, budget int64) {
	total := int64(0)
	for _, g := range p.logFiles {
		total += g.end
	}
	for len(p.logFiles) > 1 && p.logFiles[0].last < drop {
		g := p.logFiles[0]
		if g.newest >= before.UnixNano() && total <= budget {
			return
		}
		total -= g.end
		p.drop(0)
	}
}
