package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// Badger's files are read here without Badger. It passes over a table with a wrong
// checksum, takes whatever follows a damaged entry of a write-ahead log for a torn
// end, and stops reading a table in silence where a block is damaged: each loses
// what was committed without a word. So its files are looked at before it opens
// them, and Verify reads nothing but files, which also suits a copy that was made
// while the store was in use.

// rawRecord is one version of a record as Badger's files have it.
type rawRecord struct {
	key     []byte
	version uint64
	deleted bool
	value   []byte // sealed
	file    string
	offset  int64
}

const (
	memExt   = ".mem"
	tableExt = ".sst"
	vlogExt  = ".vlog"

	walHeader = 20
	// The bits of an entry's meta byte.
	bitDelete = 1 << 0
	bitTxn    = 1 << 6
	bitFin    = 1 << 7
	sector    = 512
	page      = 4096
)

// internal tells Badger's own keys from ours.
func internal(key []byte) bool { return len(key) > 0 && key[0] == '!' }

// splitVersion takes the version from the end of a key.
func splitVersion(key []byte) (user []byte, version uint64, ok bool) {
	n := len(key) - 8
	if n <= 0 {
		return nil, 0, false
	}
	return key[:n], ^binary.BigEndian.Uint64(key[n:]), true
}

// walEntry is an entry of a write-ahead log:
//
//	u8 meta, u8 user meta, varint length of key, of value, expiry, key, value, u32 CRC-32C of these
type walEntry struct {
	meta    byte
	key     []byte
	value   []byte
	size    int // of all of it
	version uint64
}

// walSizes tells where the key of the entry at the beginning of b begins and ends, and how
// long all of it is, if there may be one.
func walSizes(b []byte) (head, keyed, size int, ok bool) {
	if len(b) < 6 {
		return 0, 0, 0, false
	}
	at := 2
	var sizes [3]uint64
	for i := range sizes {
		n, size := binary.Uvarint(b[at:])
		if size <= 0 {
			return 0, 0, 0, false
		}
		sizes[i] = n
		at += size
	}
	if sizes[0] <= 8 || sizes[0] > 1<<16 || sizes[1] > 1<<20 || sizes[0]+sizes[1]+4 > uint64(len(b)-at) {
		return 0, 0, 0, false
	}
	keyed = at + int(sizes[0])
	return at, keyed, keyed + int(sizes[1]) + 4, true
}

// readWALEntry reads an entry at the beginning of b, if there is one.
func readWALEntry(b []byte) (e walEntry, ok bool) {
	at, mid, size, ok := walSizes(b)
	if !ok {
		return e, false
	}
	end := size - 4
	e.meta = b[0]
	// Versions are counted from 1: a look at one saves most checksums where an entry
	// is searched for.
	if b[mid-8] != 0xff || b[mid-7] != 0xff {
		return e, false
	}
	e.size = size
	if crc32.Checksum(b[:end], y.CastagnoliCrcTable) != binary.BigEndian.Uint32(b[end:]) {
		return e, false
	}
	e.key, e.value = b[at:mid], b[mid:end]
	var user []byte
	user, e.version, ok = splitVersion(e.key)
	e.key = user
	return e, ok
}

// readWAL calls each with the records of a write-ahead log that were committed.
// An end that was torn is passed over; damage before the end is told.
func readWAL(dir, name string, each func(rawRecord)) (*Damage, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return parseWAL(b, name, each), nil
}

func parseWAL(b []byte, name string, each func(rawRecord)) *Damage {
	damage := func(at int, after, why string) *Damage {
		return &Damage{Kind: "write-ahead log", Key: after, File: name, Offset: int64(at), Why: why}
	}
	b = written(b)
	if len(b) < walHeader {
		return stray(b, 0, name) // made, and nothing written yet
	}
	if binary.BigEndian.Uint64(b) != 0 {
		return damage(0, "its header", "it names an encryption key")
	}
	at := walHeader
	var pending []rawRecord
	var pendingVersion uint64
	last := "its first record"
	for {
		e, ok := readWALEntry(b[at:])
		if !ok {
			break
		}
		if e.meta&bitFin != 0 {
			version, err := strconv.ParseUint(string(e.value), 10, 64)
			if err != nil || len(pending) == 0 || version != pendingVersion {
				return damage(at, last, "a transaction ends that did not begin")
			}
			for _, r := range pending {
				each(r)
			}
			kind, key := describe(pending[len(pending)-1].key)
			last = "the record after " + kind + ": " + key
			pending = nil
			at += e.size
			continue
		}
		if e.meta&bitTxn == 0 || (len(pending) > 0 && e.version != pendingVersion) {
			return damage(at, last, "a transaction has no end")
		}
		pendingVersion = e.version
		pending = append(pending, rawRecord{key: e.key, version: e.version, deleted: e.meta&bitDelete != 0, value: e.value, file: name, offset: int64(at)})
		at += e.size
	}
	next, sure := torn(b, at, pendingVersion, len(pending) > 0)
	if sure {
		d := damage(at, last, "the checksum of an entry is wrong, and good ones follow")
		d.seam = seam(b[:next], at)
		return d
	}
	if changedEntry(b[at:]) {
		d := damage(at, last, "one byte of it is not what was written")
		d.last = true
		return d
	}
	if end := at + complete(b[at:]); end > at {
		d := damage(at, last, "its checksum is wrong, though all of it is there")
		d.seam, d.last = seam(b[:end], at), true
		return d
	}
	return stray(b, at, name)
}

// written is b without the zeros behind its end, most of a log. An entry's checksum may
// end with some.
func written(b []byte) []byte {
	end := len(b)
	for end >= 8 && binary.NativeEndian.Uint64(b[end-8:]) == 0 {
		end -= 8
	}
	for end > 0 && b[end-1] == 0 {
		end--
	}
	return b[:min(len(b), end+4)]
}

// stray tells of a byte that is alone behind the last entry of a log, at a place. An entry
// that is being written has its length in its third byte, so that one alone is none, unless
// the others are on another page of a copy.
func stray(b []byte, at int, name string) *Damage {
	alone := slices.IndexFunc(b[min(at, len(b)):], func(x byte) bool { return x != 0 })
	if alone += at; alone < at || !allZero(b[alone+1:]) {
		return nil
	}
	return &Damage{Kind: "write-ahead log", Key: "what is behind its last record", File: name, Offset: int64(alone), Why: "there is something in it",
		last: true, seam: alone%page == 0 || alone == at && page-alone%page <= 2}
}

// complete is the size of the entry at the beginning of b if all of it was written, so that
// its checksum should fit; 0 if there is none, or if it may be torn. Entries are written from
// their beginning on, and what was not written is zeros.
func complete(b []byte) int {
	_, _, size, ok := walSizes(b)
	if !ok || binary.BigEndian.Uint32(b[size-4:]) == 0 || hole(b[:size]) {
		return 0
	}
	return size
}

// changedEntry tells whether one byte is all that keeps the beginning of b from being an
// entry. What has other lengths with another byte in its head is tried with each of them.
func changedEntry(b []byte) bool {
	if _, _, size, ok := walSizes(b); ok && changed(b[:size]) {
		return true
	}
	const headMax = 8 // kind, length of the key, which is short, and of the value; no expiry
	head := slices.Clone(b[:min(len(b), headMax)])
	b = slices.Clone(b)
	for at, was := range head {
		for x := range 256 {
			b[at] = byte(x)
			if _, ok := readWALEntry(b); ok && byte(x) != was {
				return true
			}
		}
		b[at] = was
	}
	return false
}

// torn looks at what follows the last good entry, at a place: where good ones follow, 0 if
// there are none, and whether it is sure that it is not just the end of a transaction that
// was being written.
func torn(b []byte, at int, version uint64, pending bool) (next int, sure bool) {
	versions := 0
	// What is made to look like entries everywhere is not looked at for ever.
	tried, triedMax := 0, 16*len(b)
	for q := at + 1; q < len(b) && tried < triedMax; {
		e, ok := walEntry{}, false
		if b[q] != 0 { // most of the file is zeros, behind the end
			e, ok = readWALEntry(b[q:])
		}
		if !ok {
			tried += e.size
			q++
			continue
		}
		if next == 0 {
			next = q
		}
		if !pending || e.version != version {
			versions++
			pending, version = true, e.version
		}
		q += e.size
	}
	// Several transactions follow, or a part of one without the hole that lost
	// pages leave.
	return next, next > 0 && (versions > 1 || (b[at] != 0 && !hole(b[at:next])))
}

// seam tells whether an entry, of which b has all from a place on, was not written yet where
// it was copied: its pages are copied one by one, and one of them ends with a sector of zeros,
// or with zeros from where the entry begins, with its kind and the length of its key. Zeros
// are content too, so what one changed byte explains is damage.
func seam(b []byte, at int) bool {
	if changed(b[at:]) {
		return false
	}
	for end := (at/page + 1) * page; end < len(b); end += page {
		begun := max(at, end-sector)
		if end-begun >= 3 && allZero(b[begun:end]) {
			return true
		}
	}
	return false
}

// changed tells whether one byte of an entry is all that keeps its checksum from fitting.
// A byte changes a checksum by an entry of the table, moved on by each byte behind it: so the
// difference is moved back, byte by byte, until it is one. It takes linear time, and what
// differs in more passes for one byte once in 2^24 per byte of the entry.
func changed(e []byte) bool {
	if len(e) < 4 {
		return false
	}
	end := len(e) - 4
	return changedSum(e[:end], binary.BigEndian.Uint32(e[end:]))
}

// changedSum is changed for what has its checksum elsewhere.
func changedSum(b []byte, sum uint32) bool {
	diff := crc32.Checksum(b, y.CastagnoliCrcTable) ^ sum
	if diff == 0 {
		return false
	}
	for i := range 4 {
		if diff&^(0xff<<(8*i)) == 0 {
			return true // of the checksum itself
		}
	}
	var byTop [256]uint32 // which entry of the table has a top byte: each has another
	for x, c := range y.CastagnoliCrcTable {
		byTop[c>>24] = uint32(x)
	}
	for range b {
		x := byTop[diff>>24]
		rest := diff ^ y.CastagnoliCrcTable[x]
		if rest == 0 {
			return true
		}
		diff = rest<<8 | x
	}
	return false
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// hole tells whether a sector of b is empty.
func hole(b []byte) bool {
	zeros := 0
	for _, x := range b {
		if x != 0 {
			zeros = 0
			continue
		}
		if zeros++; zeros == sector {
			return true
		}
	}
	return false
}

// readTable calls each with the records of a table. It goes on behind a damaged
// block, and tells all damage.
func readTable(dir, name string, each func(rawRecord)) ([]*Damage, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return parseTable(b, name, each), nil
}

func parseTable(b []byte, name string, each func(rawRecord)) []*Damage {
	whole := func(why string) []*Damage {
		seam := len(b)%page == 0 || unwritten(b, max(0, len(b)-page), len(b))
		return []*Damage{{Kind: "table", Key: "every record", File: name, Why: why, seam: seam && !changedEnd(b, indexOf)}}
	}
	index, sum, ok := indexOf(b)
	if !ok {
		return whole("its end is damaged")
	}
	if !sumFits(index, sum) {
		return whole("the checksum of its index is wrong")
	}
	blocks, err := blocksOf(index)
	if err != nil {
		return whole(err.Error())
	}
	var found []*Damage
	for i, at := range blocks {
		if err := readBlock(b, at, name, each); err != nil {
			to := "the end"
			if i+1 < len(blocks) {
				to = quoteKey(blocks[i+1].first)
			}
			seam := unwritten(b, at.begin, at.begin+at.size) && !changedEnd(b[at.begin:at.begin+at.size], cutEnd)
			found = append(found, &Damage{Kind: "table", Key: fmt.Sprintf("the block of records from %s up to %s", quoteKey(at.first), to), File: name, Offset: int64(at.begin), Why: err.Error(), seam: seam})
		}
	}
	return found
}

// indexOf cuts the index off the end of a table, which is: index, its length, its checksum,
// the length of that.
func indexOf(b []byte) (index, sum []byte, ok bool) {
	if index, sum, ok = cutEnd(b); !ok {
		return nil, nil, false
	}
	size, ok := endU32(index)
	if !ok || size > len(index)-4 {
		return nil, nil, false
	}
	return index[len(index)-4-size : len(index)-4], sum, true
}

// changedEnd tells whether one byte is all that keeps the checksum at the end of b from
// fitting what cut says it is of. One of the data is found as in changed; one of what follows
// them, some bytes, is tried with each value.
func changedEnd(b []byte, cut func([]byte) (data, sum []byte, ok bool)) bool {
	if data, sum, ok := cut(b); ok {
		var c pb.Checksum
		if proto.Unmarshal(sum, &c) == nil && c.GetAlgo() == pb.Checksum_CRC32C && changedSum(data, uint32(c.GetSum())) {
			return true
		}
	}
	const endMax = 4 + 16 + 4 // lengths, and the checksum between them
	b = slices.Clone(b)
	type span struct{ begin, end int }
	sums := make(map[span]uint32) // most have the same data
	for at := max(0, len(b)-endMax); at < len(b); at++ {
		was := b[at]
		for x := range 256 {
			b[at] = byte(x)
			data, sum, ok := cut(b)
			var c pb.Checksum
			if !ok || byte(x) == was || proto.Unmarshal(sum, &c) != nil || c.GetAlgo() != pb.Checksum_CRC32C {
				continue
			}
			begin := cap(b) - cap(data)
			s := span{begin, begin + len(data)}
			if s.end > at {
				continue
			}
			if _, ok := sums[s]; !ok {
				sums[s] = crc32.Checksum(data, y.CastagnoliCrcTable)
			}
			if c.GetSum() == uint64(sums[s]) {
				return true
			}
		}
		b[at] = was
	}
	return false
}

// unwritten tells whether a part of a table ends with zeros, as no table does, or a page in
// it does with a sector of them or with nothing else, as where it was copied while Badger
// filled it. Badger makes it as long as it will be and fills it from its beginning; what is
// merged away it first cuts to nothing.
func unwritten(b []byte, from, to int) bool {
	if from < 0 || to > len(b) {
		return false
	}
	const few = 8
	if to-few >= from && allZero(b[to-few:to]) {
		return true
	}
	for at := (from/page + 1) * page; at < to; at += page {
		begun := max(from, at-sector)
		if at-begun >= few && allZero(b[begun:at]) {
			return true
		}
	}
	return false
}

func quoteKey(key []byte) string {
	user, _, ok := splitVersion(key)
	if !ok {
		return "?"
	}
	if internal(user) {
		return "the beginning"
	}
	kind, name := describe(user)
	return kind + " " + name
}

// endU32 reads the number at the end of b.
func endU32(b []byte) (int, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n := binary.BigEndian.Uint32(b[len(b)-4:])
	return int(n), n < 1<<31
}

// cutEnd takes a checksum and its length off the end of b.
func cutEnd(b []byte) (rest, sum []byte, ok bool) {
	n, ok := endU32(b)
	if !ok || n > len(b)-4 {
		return nil, nil, false
	}
	return b[:len(b)-4-n], b[len(b)-4-n : len(b)-4], true
}

func sumFits(data, sum []byte) bool {
	var c pb.Checksum
	if proto.Unmarshal(sum, &c) != nil {
		return false
	}
	switch c.GetAlgo() {
	case pb.Checksum_CRC32C, pb.Checksum_XXHash64:
		return y.VerifyChecksum(data, &c) == nil
	}
	return false // of others it panics
}

// block is where a block of a table lies.
type block struct {
	begin, size int
	first       []byte // its first key
}

// blocksOf reads an index, whose checksum fits.
func blocksOf(index []byte) (blocks []block, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("its index can't be read")
		}
	}()
	t := fb.GetRootAsTableIndex(index, 0)
	for i := range t.OffsetsLength() {
		var o fb.BlockOffset
		if !t.Offsets(&o, i) {
			return nil, errors.New("its index can't be read")
		}
		blocks = append(blocks, block{begin: int(o.Offset()), size: int(o.Len()), first: o.KeyBytes()})
	}
	return blocks, nil
}

// readBlock calls each with the records of a block:
//
//	entries, u32 begin of each (native), u32 how many, checksum of these, u32 its length
//
// and an entry is u16 bytes shared with the first key, u16 others (native), these, u8 meta,
// u8 user meta, varint expiry, value.
func readBlock(b []byte, at block, name string, each func(rawRecord)) error {
	if at.begin < 0 || at.size < 0 || at.begin > len(b) || at.size > len(b)-at.begin {
		return errors.New("it lies outside of the file")
	}
	data, sum, ok := cutEnd(b[at.begin : at.begin+at.size])
	if !ok || !sumFits(data, sum) {
		return errors.New("its checksum is wrong")
	}
	n, ok := endU32(data)
	if !ok || n > (len(data)-4)/4 {
		return errors.New("their number does not fit")
	}
	entries := data[:len(data)-4-4*n]
	begin := func(i int) int {
		if i == n {
			return len(entries)
		}
		return int(binary.NativeEndian.Uint32(data[len(entries)+4*i:]))
	}
	var base []byte
	for i := range n {
		from, to := begin(i), begin(i+1)
		if from < 0 || from+4 > to || to > len(entries) {
			return errors.New("an entry lies outside of its block")
		}
		e := entries[from:to]
		shared, other := int(binary.NativeEndian.Uint16(e)), int(binary.NativeEndian.Uint16(e[2:]))
		if shared > len(base) || other > len(e)-4 {
			return errors.New("a key lies outside of its block")
		}
		key := slices.Concat(base[:shared], e[4:4+other])
		if i == 0 {
			base = key
		}
		user, version, ok := splitVersion(key)
		value := e[4+other:]
		if !ok || len(value) < 3 {
			return errors.New("an entry is cut")
		}
		_, size := binary.Uvarint(value[2:])
		if size <= 0 {
			return errors.New("an entry is cut")
		}
		each(rawRecord{key: user, version: version, deleted: value[0]&bitDelete != 0, value: value[2+size:], file: name, offset: int64(at.begin + from)})
	}
	return nil
}

// layout is which files make a database.
type layout struct {
	tables []string // that the manifest names and that are there
	// others are tables that it does not name: Badger removes them.
	others  []string
	missing []uint64
	newer   bool // others or the missing show that the manifest is older than they
	logs    []string
	vlogs   []string
}

// readLayout reads the manifest and the names of the files.
func readLayout(dir string) (layout, error) {
	var l layout
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil // a first start that was killed, or none yet
	}
	if err != nil {
		return l, err
	}
	manifest, end, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir).WithLogger(nil))
	if err := errors.Join(err, f.Close()); err != nil {
		return l, &Damage{Kind: "database", Key: "the list of its tables", File: badger.ManifestFilename, Why: err.Error()}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	there := make(map[uint64]bool)
	newest := uint64(0)
	for id, t := range manifest.Tables {
		newest = max(newest, id)
		if t.Compression != options.None || t.KeyID != 0 {
			return l, fmt.Errorf("%w, but another Badger database; set store.path to a directory of its own", ErrForeign)
		}
	}
	for _, e := range entries {
		switch ext := filepath.Ext(e.Name()); ext {
		case memExt:
			l.logs = append(l.logs, e.Name())
		case vlogExt:
			l.vlogs = append(l.vlogs, e.Name())
		case tableExt:
			id, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ext), 10, 64)
			if err != nil {
				continue
			}
			if _, ok := manifest.Tables[id]; ok {
				there[id] = true
				l.tables = append(l.tables, e.Name())
			} else {
				l.others = append(l.others, e.Name())
				l.newer = l.newer || id > newest
			}
		}
	}
	for id := range manifest.Tables {
		if !there[id] {
			l.missing = append(l.missing, id)
		}
	}
	slices.Sort(l.missing)
	b, err := os.ReadFile(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return l, err
	}
	if end < int64(len(b)) && changedLength(b[end:]) {
		return l, &Damage{Kind: "database", Key: "the list of its tables", File: badger.ManifestFilename, Offset: end, Why: "the length of a change is wrong"}
	}
	if end < int64(len(b)) && l.newer {
		err = l.covered(dir, end)
	}
	return l, err
}

// changedLength tells whether the change at the end of a manifest, which ends before its
// length says, has another length for which its checksum fits. A change is u32 length, u32
// CRC-32C, these bytes.
func changedLength(b []byte) bool {
	const head = 8
	if len(b) < head {
		return false
	}
	want, sum := binary.BigEndian.Uint32(b[4:]), uint32(0)
	for i := head; sum != want; i++ {
		if i == len(b) {
			return false
		}
		sum = crc32.Update(sum, y.CastagnoliCrcTable, b[i:i+1])
	}
	return true
}

// covered looks at tables that a manifest does not name whose end is torn. A table
// is made, then named, then what it was made of goes, and Badger deletes tables that
// are not named: so what they hold must be elsewhere too.
func (l layout) covered(dir string, end int64) error {
	newest := make(map[string]uint64)
	remember := func(r rawRecord) { newest[string(r.key)] = max(newest[string(r.key)], r.version) }
	for _, name := range l.tables {
		if _, err := readTable(dir, name, remember); err != nil {
			return err
		}
	}
	for _, name := range l.logs {
		if _, err := readWAL(dir, name, remember); err != nil {
			return err
		}
	}
	lost := ""
	for _, name := range l.others {
		_, err := readTable(dir, name, func(r rawRecord) {
			if r.version > newest[string(r.key)] {
				lost = name
			}
		})
		if err != nil {
			return err
		}
	}
	if lost == "" {
		return nil
	}
	return &Damage{Kind: "database", Key: "the list of its tables", File: badger.ManifestFilename, Offset: end, Why: "it is cut, and does not name " + lost + ", which has records that nothing else has"}
}

// examineMax bounds how much of the tables is read before a database is opened.
const examineMax = 1 << 30

// examine looks at the files of a database before Badger opens them.
func examine(dir string) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := readLayout(dir)
	if err != nil {
		return err
	}
	if len(l.missing) > 0 {
		return missingTable(l.missing[0])
	}
	if d := registry(dir); d != nil {
		return d
	}
	if err := removeEmpty(dir, append(l.vlogs, l.logs...)); err != nil {
		return err
	}
	for _, name := range l.vlogs {
		// What follows the header says nothing: an older layout had values there.
		d, err := emptyLog(dir, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if d != nil && d.Offset < walHeader {
			return d
		}
	}
	none := func(rawRecord) {}
	for _, name := range l.logs {
		d, err := readWAL(dir, name, none)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if d != nil && !d.last { // what is not there is read again
			return d
		}
	}
	left := int64(examineMax)
	for _, name := range l.tables {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if left -= info.Size(); left < 0 {
			break
		}
		ds, err := readTable(dir, name, none)
		if err != nil {
			return err
		}
		if len(ds) > 0 {
			return ds[0]
		}
	}
	return nil
}

// removeEmpty removes logs without any byte, which Badger leaves if it is killed
// between making and extending one, and then refuses to open.
func removeEmpty(dir string, names []string) error {
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Size() == 0 {
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func missingTable(id uint64) *Damage {
	return &Damage{Kind: "table", Key: "every record", File: fmt.Sprintf("%06d%s", id, tableExt), Why: "the file is missing"}
}

// discardFile counts what may be freed in value logs: nothing.
const discardFile = "DISCARD"

// emptyDiscard looks at it.
func emptyDiscard(dir string) (*Damage, error) {
	b, err := os.ReadFile(filepath.Join(dir, discardFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if i := slices.IndexFunc(written(b), func(x byte) bool { return x != 0 }); i >= 0 {
		return &Damage{Kind: "value log", Key: "the list of what may be freed, which is empty", File: discardFile, Offset: int64(i), Why: "there is something in it"}, nil
	}
	return nil, nil
}

// emptyLog looks at a value log, in which the store keeps nothing.
func emptyLog(dir, name string) (*Damage, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	for i, x := range written(b) {
		if x != 0 && (i < 8 || i >= walHeader) {
			return &Damage{Kind: "value log", Key: "which is empty", File: name, Offset: int64(i), Why: "there is something in it"}, nil
		}
	}
	return nil, nil
}

// registryHead is the size of the random number at the beginning of Badger's list of
// encryption keys.
const registryHead = 16

// plainRegistry puts zeros in the place of the random number, which says nothing without
// encryption: where zeros are, a changed byte is seen.
func plainRegistry(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, badger.KeyRegistryFileName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, registryHead)
	_, err = f.ReadAt(b, 0)
	if err == nil && !allZero(b) {
		clear(b)
		_, err = f.WriteAt(b, 0)
	}
	return errors.Join(err, f.Close())
}

// registryNumber looks at the number. One that is random, of a store that was opened by an
// earlier version last, has no more than a few zeros.
func registryNumber(dir string) (*Damage, error) {
	b, err := os.ReadFile(filepath.Join(dir, badger.KeyRegistryFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b = b[:min(len(b), registryHead)]
	const changedMax = 4
	others := 0
	for _, x := range b {
		if x != 0 {
			others++
		}
	}
	if others == 0 || others > changedMax {
		return nil, nil
	}
	at := slices.IndexFunc(b, func(x byte) bool { return x != 0 })
	return &Damage{Kind: "database", Key: "the list of encryption keys, which begins with zeros", File: badger.KeyRegistryFileName, Offset: int64(at), Why: "there is something in them"}, nil
}

// registry looks at Badger's list of encryption keys, of which there are none.
func registry(dir string) *Damage {
	kr, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: dir, ReadOnly: true})
	if err == nil {
		err = kr.Close()
	}
	if err == nil {
		return nil
	}
	return &Damage{Kind: "database", Key: "the list of encryption keys, which is empty", File: badger.KeyRegistryFileName, Why: err.Error()}
}
