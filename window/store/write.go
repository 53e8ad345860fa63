package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// Commit makes c durable; see the package documentation for commits that are
// too large for one transaction. ctx is looked at before it begins, not after.
func (s *Badger) Commit(ctx context.Context, c Commit) error {
	if err := s.commit(ctx, c, false); err != nil {
		if errors.Is(err, ErrClosed) || errors.Is(err, ctx.Err()) {
			return err
		}
		return fmt.Errorf("store %s: commit: %w", s.opt.Path, full(err))
	}
	return nil
}

// commit does what c says, and with tidy also looks for what may go.
func (s *Badger) commit(ctx context.Context, c Commit, tidy bool) error {
	done, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !tidy { // which frees space
		if err := s.makeRoom(c.size()); err != nil {
			return err
		}
	}
	for _, db := range slices.AppendSeq(slices.AppendSeq(slices.Clone(c.Forget), maps.Keys(c.Checkpoints)),
		maps.Keys(c.Written)) {
		if err := s.finishForgetting(db); err != nil {
			return err
		}
	}
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.discard()
	if err := w.commit(c, tidy); err != nil {
		w.abandon()
		return err
	}
	// It is committed: what is left is done again by Open if it fails.
	if err := s.forgetSpilled(c); err != nil {
		s.opt.Logger.Warn().Err(err).Msg("what a history spilled before can't be removed; the next start tries again")
	}
	return nil
}

// makeRoom is room, but lets go of all evidence before it says that there is none.
// The caller holds write.
func (s *Badger) makeRoom(bytes int64) error {
	err := s.room(bytes)
	// The second is for what letting go takes itself.
	if err == nil || s.room(-s.opt.Reserve/2) != nil {
		return err
	}
	if err := s.letGo(); err != nil {
		return err
	}
	return s.room(bytes)
}

// letGo lets go of all evidence. The caller holds write, or nobody else has the store
// yet.
func (s *Badger) letGo() error {
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.discard()
	w.urgent = true
	return w.commit(Commit{}, true)
}

// size is about what c takes on disk, but for what is written by functions, of which nobody knows. What is kept in the
// database counts twice: if there is much of it, it is written down once more, see rest.go.
func (c Commit) size() int64 {
	n := int64(len(c.Life))
	for _, e := range c.Journal {
		n += int64(len(e.Data)) + frameHeader
	}
	for db, data := range c.Checkpoints {
		n += int64(len(data)+Inlined(len(data))) + 6*int64(len(db))
	}
	for _, db := range c.Forget {
		n += 2 * int64(len(db))
	}
	for _, a := range c.Alerts {
		n += int64(len(a.Body) + Inlined(len(a.Body)))
	}
	for _, x := range c.Notices {
		n += int64(len(x.Body) + Inlined(len(x.Body)))
	}
	for _, l := range c.DeadLetters {
		n += int64(len(l.Value))
	}
	return n
}

// apply commits a transaction. The caller holds write.
func (s *Badger) apply(txn *badger.Txn) error {
	if s.opt.fault != nil {
		if err := s.opt.fault(); err != nil {
			return err
		}
	}
	if err := s.await(txn.Commit); err != nil {
		s.broken = true // nobody knows what holds
		return err
	}
	return nil
}

// writer puts groups of changes into transactions, each group whole. It starts
// another transaction when a group does not fit any more.
type writer struct {
	s   *Badger
	txn *badger.Txn
	// before is the state that txn found, state what it leaves. It is read anew
	// each time: after a failed commit nobody knows which one holds.
	before, state state
	changed       bool // besides the state
	count         int64
	size          int64
	// What a transaction may hold.
	countMax, sizeMax int64

	// files were written by this transaction; they are removed if it fails. gone
	// are those that nothing refers to when it is committed.
	files []reference
	gone  []reference
	plan  *plan // of the journal, nil if it does not change
	// rest, if it is not nil, takes what does not fit into the transaction.
	rest rest
	// urgent lets all evidence go.
	urgent bool
}

func (s *Badger) writer() (*writer, error) {
	w := &writer{s: s, countMax: s.db.MaxBatchCount(), sizeMax: s.db.MaxBatchSize()}
	if err := w.begin(); err != nil {
		w.discard()
		return nil, err
	}
	return w, nil
}

// Badger counts the entry that ends a transaction, and we add the state.
const (
	reservedCount = 4
	reservedSize  = 512
	// overheadMax is more than what Badger and seal add to the size of an entry.
	overheadMax = 64
)

func (w *writer) begin() error {
	txn, err := w.s.transaction(true)
	if err != nil {
		return err
	}
	w.txn = txn
	w.count, w.size, w.changed = reservedCount, reservedSize, false
	w.before, err = readState(w.txn)
	w.state = w.before
	return err
}

// discard gives up what is not committed. What Badger stands still with is its own.
func (w *writer) discard() {
	if !w.s.stuck.Load() {
		w.txn.Discard()
	}
}

// abandon removes the files of a transaction that failed. Where that fails too,
// the next Open does it.
func (w *writer) abandon() {
	if w.s.broken {
		return // perhaps it holds
	}
	for _, r := range w.files {
		_ = w.s.files.remove(largeFile(r.id))
	}
}

// end commits what there is.
func (w *writer) end() error {
	left := w.rest
	if w.rest = nil; len(left) > 0 {
		if err := w.set(keyRest, left.encode()); err != nil {
			return err
		}
	}
	if len(left) == 0 && !w.changed && w.state == w.before {
		w.discard()
		w.clear()
		return nil
	}
	w.state.commits++
	if err := w.txn.Set(keyState, seal(keyState, w.state.encode(), kindInline)); err != nil {
		return err
	}
	if w.s.opt.SyncWrites {
		for _, r := range w.files {
			if err := w.s.files.sync(largeFile(r.id)); err != nil {
				return err
			}
		}
		if w.plan != nil {
			for _, g := range w.plan.logFiles {
				if len(w.plan.spots[g.id]) > 0 {
					if err := w.s.files.sync(g.file()); err != nil {
						return err
					}
				}
			}
		}
	}
	if err := w.s.apply(w.txn); err != nil {
		return err
	}
	w.s.committed(w.state.commits)
	for _, r := range w.files {
		w.s.largeBytes.Add(int64(r.size))
	}
	w.files = nil
	if len(left) > 0 {
		if _, err := w.s.finish(); err != nil {
			w.later(err)
			return nil
		}
	}
	w.clear()
	return nil
}

// later leaves what is written down of a commit to the next writer, who opens the database again. It is committed: were
// that an error, it would be committed once more, and news of alerts counted twice.
func (w *writer) later(err error) {
	w.s.opt.Logger.Warn().Err(err).Msg("what is written down of a commit can't be done as yet; it is done before the next one")
	w.s.broken = true
	if w.plan != nil {
		w.s.journal.set(w.plan.logFiles, w.plan.spots)
	}
	w.plan, w.gone = nil, nil // what files are not needed any more the next start finds
}

// put stores what is sealed under a key; nil takes the key away.
func (w *writer) put(key, raw []byte) error {
	if w.rest != nil {
		w.letGoOf(w.rest[string(key)], raw)
		w.rest[string(key)] = raw
		return nil
	}
	if err := w.replace(key, raw); err != nil {
		return err
	}
	if raw == nil {
		return w.txn.Delete(key)
	}
	return w.txn.Set(key, raw)
}

func (w *writer) remove(key []byte) error { return w.put(key, nil) }

// replace puts what is stored under a key, nil for nothing, in the digest, and lets go of what
// was stored there.
func (w *writer) replace(key, raw []byte) error {
	w.changed = true
	if raw != nil {
		w.state.digest += sumOf(raw)
	}
	item, err := w.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return item.Value(func(old []byte) error {
		w.state.digest -= sumOf(old)
		w.letGoOf(old, raw)
		return nil
	})
}

// letGoOf lets go of the file of what was stored, if it has one, in the place of which raw is stored. What a rest has
// left to do may be done twice.
func (w *writer) letGoOf(old, raw []byte) {
	if r, ok := largeOf(old); ok && !bytes.Equal(old, raw) {
		w.gone = append(w.gone, r)
	}
}

// get is the value of a key as it will be, nil if there is none.
func (w *writer) get(key []byte) ([]byte, error) {
	raw, ok := w.rest[string(key)]
	if !ok {
		return w.s.get(w.txn, key)
	}
	if raw == nil {
		return nil, nil
	}
	return w.s.value(key, raw)
}

// numbered is get of a value that begins with a number; the rest is nil if there is none.
func (w *writer) numbered(key []byte) (n uint64, rest []byte, err error) {
	b, err := w.get(key)
	if err != nil || b == nil {
		return 0, nil, err
	}
	return split(key, b)
}

// clear removes the files that nothing refers to any more. What fails is done by
// the next Open.
func (w *writer) clear() {
	if w.plan != nil {
		w.s.journal.set(w.plan.logFiles, w.plan.spots)
		for _, g := range w.plan.dropped {
			if err := w.s.files.remove(g.file()); err != nil {
				w.s.opt.Logger.Warn().Err(err).Str("file", g.file()).
					Msg("a file of the journal that is not needed any more can't be removed; the next start tries again")
			}
		}
		w.plan = nil
	}
	for _, r := range w.gone {
		w.s.largeBytes.Add(-int64(r.size))
		if err := w.s.files.remove(largeFile(r.id)); err != nil {
			w.s.opt.Logger.Warn().Err(err).Str("file", largeFile(r.id)).
				Msg("a file that is not needed any more can't be removed; the next start tries again")
		}
	}
	w.gone = nil
}

// holds tells whether the transaction has room for so many entries and bytes more.
func (w *writer) holds(count int, size int) bool {
	c, z := int64(count), int64(size)+int64(count)*overheadMax
	return w.count+c < w.countMax && w.size+z < w.sizeMax
}

// room makes sure that a group of so many entries and bytes fits, if it does into any
// transaction.
func (w *writer) room(count int, size int) error {
	if !w.holds(count, size) && w.count > reservedCount {
		if err := w.end(); err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.count += int64(count)
	w.size += int64(size) + int64(count)*overheadMax
	return nil
}

// set stores a value, in a file of its own if it is large.
func (w *writer) set(key, value []byte) error {
	if len(value) <= inlineMax {
		return w.put(key, seal(key, value, kindInline))
	}
	return w.setBy(key, writes(value))
}

// writes writes a value.
func writes(value []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(value)
		return err
	}
}

// setBy is set of what write writes.
func (w *writer) setBy(key []byte, write func(io.Writer) error) error {
	p := spool{w: w}
	if err := write(&p); err != nil {
		return err
	}
	return p.end(key)
}

func (w *writer) commit(c Commit, tidy bool) error {
	for _, l := range c.DeadLetters {
		if err := w.letter(l.Fit(w.s.opt.MaxValue)); err != nil {
			return err
		}
	}
	return w.last(c, tidy)
}

// letter adds a dead letter that is not there yet, and drops old ones.
func (w *writer) letter(l DeadLetter) error {
	id := identify(l)
	value := encodeLetter(id, l)
	// Room first: it may begin another transaction.
	if err := w.room(3, Inlined(len(value))+64); err != nil {
		return err
	}
	index := nameKey(prefixIndex, id[:])
	if there, err := has(w.txn, index); there || err != nil {
		return err
	}
	number := w.state.letterNext
	if err := errors.Join(w.set(numberKey(prefixLetter, number), value), w.set(index, u64(number))); err != nil {
		return err
	}
	w.state.letterNext++
	w.state.letterBytes += uint64(len(value))
	for {
		kept := w.state.letterNext - w.state.letterOldest
		if kept <= 1 || (kept <= uint64(w.s.opt.MaxDeadLetters) &&
			w.state.letterBytes <= uint64(w.s.opt.MaxDeadLetterBytes)) {
			return nil
		}
		if err := w.dropOldest(); err != nil {
			return err
		}
	}
}

func (w *writer) dropOldest() error {
	if err := w.room(3, 96); err != nil {
		return err
	}
	key := numberKey(prefixLetter, w.state.letterOldest)
	value, err := w.s.get(w.txn, key)
	if err != nil {
		return err
	}
	if value == nil {
		return damaged(key, "it is missing")
	}
	id, _, err := decodeLetter(value)
	if err != nil {
		return damaged(key, "it can't be decoded")
	}
	w.state.letterOldest++
	w.state.letterBytes -= uint64(len(value))
	w.state.letterDrops++
	return errors.Join(w.remove(key), w.remove(nameKey(prefixIndex, id[:])))
}

// last puts all but the dead letters into one transaction and commits it. If it has no room for that, it has what is
// left to do (rest.go).
func (w *writer) last(c Commit, tidy bool) error {
	count, size := 0, 0
	for source, parts := range c.Offsets {
		count += len(parts)
		size += len(parts) * (len(source) + 24)
	}
	for db, data := range c.Checkpoints {
		count += 6
		size += Inlined(len(data)) + 6*len(db) + 128
	}
	for db := range c.Written {
		count += 6
		size += inlineMax + 6*len(db) + 128
	}
	for _, db := range c.Forget {
		count++
		size += len(db) + 64
	}
	plan, err := w.journal(c, tidy)
	if err != nil {
		return err
	}
	count += len(plan.changed) + len(plan.dropped)
	size += 72 * (len(plan.changed) + len(plan.dropped))
	n, z := w.noticed(c)
	count, size = count+n, size+z
	whole := w.holds(count, size)
	if !whole {
		count, size = 3, inlineMax+128 // the record of what is left
	}
	if err := w.room(count, size); err != nil {
		return err
	}
	if !whole {
		w.rest = rest{}
	}
	for _, a := range c.Alerts {
		if err := w.alert(a); err != nil {
			return err
		}
	}
	if err := w.notices(c); err != nil {
		return err
	}
	if err := w.offsets(c.Offsets); err != nil {
		return err
	}
	for _, db := range slices.Sorted(maps.Keys(c.Checkpoints)) {
		if err := w.checkpoint(db, c.Checkpoints[db]); err != nil {
			return err
		}
	}
	for _, db := range slices.Sorted(maps.Keys(c.Written)) {
		if err := w.replaced(db, c.Written[db]); err != nil {
			return err
		}
	}
	for _, db := range c.Forget {
		if err := w.set(nameKey(prefixForget, db), nil); err != nil {
			return err
		}
	}
	// The state was read anew if room began another transaction.
	w.state.drop = max(w.state.drop, c.Drop)
	for _, g := range plan.logFiles {
		w.state.logFileNext = max(w.state.logFileNext, g.id+1)
		if plan.changed[g.id] {
			if err := w.set(numberKey(prefixLogFile, g.id), g.encode()); err != nil {
				return err
			}
		}
	}
	for _, g := range plan.dropped {
		if err := w.remove(numberKey(prefixLogFile, g.id)); err != nil {
			return err
		}
	}
	if w.count == reservedCount && w.state == w.before {
		return nil // nothing to do
	}
	w.plan = plan
	return w.end()
}

func (w *writer) offsets(offsets map[string]map[int]int64) error {
	for _, source := range slices.Sorted(maps.Keys(offsets)) {
		for partition, next := range offsets[source] {
			if err := w.set(offsetKey(source, partition), u64(uint64(next))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Files of the journal are at most so large, and at least so many if the store is
// bounded tightly: what is forgotten goes in whole files.
const (
	logFileMax   = 64 << 20
	logFileMin   = 64 << 10
	logFileParts = 16
)

// journal writes the entries of c and plans what is forgotten.
func (w *writer) journal(c Commit, tidy bool) (*plan, error) {
	s := w.s
	p := s.journal.plan()
	id, begun := w.state.logFileNext, tidy
	sizeMax := min(logFileMax, max(logFileMin, s.opt.MaxBytes/logFileParts))
	for i, e := range c.Journal {
		begin := len(p.logFiles) == 0
		if !begin {
			g := p.logFiles[len(p.logFiles)-1]
			if i == 0 && e.Number <= g.last {
				if err := p.cut(e.Number); err != nil {
					return nil, err
				}
				begin = true
			}
			begin = begin || g.end+frameHeader+int64(len(e.Data)) > sizeMax ||
				(s.opt.Retain > 0 && e.Time-g.oldest > int64(s.opt.Retain/logFileParts))
		}
		if err := p.add(e, begin, id); err != nil {
			return nil, err
		}
		if begin {
			id, begun = id+1, true
		}
	}
	if begun {
		lsm, vlog := s.db.Size()
		budget := s.opt.MaxBytes - lsm - vlog - s.largeBytes.Load()
		if w.urgent {
			budget = 0
		}
		p.expire(max(w.state.drop, c.Drop), s.opt.Now().Add(-s.opt.Retain), budget)
	}
	return p, nil
}

// checkpoint replaces the checkpoint of a history, or deletes it.
func (w *writer) checkpoint(db string, data []byte) error {
	if data == nil {
		return errors.Join(w.remove(nameKey(prefixCheckpoint, db)), w.remove(nameKey(prefixGeneration, db)),
			w.set(nameKey(prefixForget, db), nil))
	}
	return w.replaced(db, writes(data))
}

// replaced replaces the checkpoint of a history by what write writes.
func (w *writer) replaced(db string, write func(io.Writer) error) error {
	n, _, err := w.numbered(nameKey(prefixGeneration, db))
	if err != nil {
		return err
	}
	return errors.Join(w.setBy(nameKey(prefixCheckpoint, db), write), w.set(nameKey(prefixGeneration, db), u64(n+1)))
}
