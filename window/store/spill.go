package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	badger "github.com/dgraph-io/badger/v4"

	"github.com/isowatch/isowatch/internal/wire"
)

// What is spilled is changed in place. The first change of a key after a
// checkpoint puts what the checkpoint knew into an undo record of the generation,
// which is the number of checkpoints so far; keys that it did not know are listed, in the record of the first of them.
// Open puts back what the records of the present generation say, the lists last: a key of one may have a record of its
// own of a later change. Those of earlier generations are not needed.

// What an undo record says.
const (
	undoValue = 1 // and the value follows
	undoNew   = 2 // and names of keys follow
)

// newMax is how many bytes such a list has at most, unless it has one name only: two fill a block of Badger's, which
// takes three times as much memory as its one entry if that is larger.
const newMax = 1900

// generation is the number of checkpoints of a history so far.
func (s *Badger) generation(txn *badger.Txn, db string) (uint64, error) {
	n, _, err := s.numbered(txn, nameKey(prefixGeneration, db))
	return n, err
}

// generationNow is generation outside of a transaction.
func (s *Badger) generationNow(db string) (n uint64, err error) {
	err = s.read(func(txn *badger.Txn) (err error) {
		n, err = s.generation(txn, db)
		return err
	})
	return n, err
}

// Spill stores pairs for a history, outside of any Commit.
func (s *Badger) Spill(ctx context.Context, db string, pairs []KV) error {
	done, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer done()
	size := int64(0)
	for _, kv := range pairs {
		size += 2 * int64(len(kv.Key)+len(kv.Value))
	}
	err = s.room(size)
	if err == nil {
		err = s.spill(db, pairs)
	}
	if err != nil {
		return fmt.Errorf("store %s: spill of %s: %w", s.opt.Path, db, full(err))
	}
	return nil
}

func (s *Badger) spill(db string, pairs []KV) error {
	if err := s.finishForgetting(db); err != nil {
		return err
	}
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.discard()
	generation, err := s.generation(w.txn, db)
	if err != nil {
		return err
	}
	var first, fresh []byte
	list := func() error {
		if fresh == nil {
			return nil
		}
		c := change{first, seal(first, fresh, kindInline)}
		fresh = nil
		return w.change(c)
	}
	for _, kv := range pairs { // before what is changed
		undo := undoKey(db, generation, kv.Key)
		undone, err := has(w.txn, undo)
		if err != nil {
			return err
		}
		if undone {
			continue
		}
		old, err := rawOf(w.txn, spillKey(db, kv.Key))
		switch {
		case err != nil:
		case old != nil:
			err = w.change(change{undo, seal(undo, append([]byte{undoValue}, old...), kindInline)})
		case len(fresh)+len(kv.Key) > newMax:
			if err = list(); err == nil {
				first, fresh = undo, wire.AppendText([]byte{undoNew}, kv.Key)
			}
		case fresh == nil:
			first, fresh = undo, wire.AppendText([]byte{undoNew}, kv.Key)
		default:
			fresh = wire.AppendText(fresh, kv.Key)
		}
		if err != nil {
			return err
		}
	}
	if err := list(); err != nil {
		return err
	}
	for _, kv := range pairs {
		c := change{key: spillKey(db, kv.Key)}
		if kv.Value != nil {
			c.raw = seal(c.key, kv.Value, kindInline)
		}
		if err := w.change(c); err != nil {
			return err
		}
	}
	return w.end()
}

// Spilled returns the values of keys, in their order, nil for one that has none.
func (s *Badger) Spilled(ctx context.Context, db string, keys []string) ([][]byte, error) {
	out := make([][]byte, len(keys))
	err := s.view(ctx, "what "+db+" has spilled", func(txn *badger.Txn) error {
		for i, k := range keys {
			var err error
			if out[i], err = s.get(txn, spillKey(db, k)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// forgetSpilled drops what c made useless: the undo records of the generation
// that its checkpoints end, and all of histories that it deletes. The caller
// holds write. After a crash in between Open does it.
func (s *Badger) forgetSpilled(c Commit) error {
	forgotten, replaced := slices.Clone(c.Forget), slices.Collect(maps.Keys(c.Written))
	for db, data := range c.Checkpoints {
		if data == nil {
			forgotten = append(forgotten, db)
		} else {
			replaced = append(replaced, db)
		}
	}
	for _, db := range replaced {
		n, err := s.generationNow(db)
		if err == nil {
			err = s.deleteAll(undoGeneration(db, n-1))
		}
		if err != nil {
			return err
		}
	}
	return s.forgetHistories(forgotten)
}

// finishForgetting ends what an earlier Commit could not: a history that begins
// anew must not find what another of its name has left.
func (s *Badger) finishForgetting(db string) error {
	marked := false
	err := s.read(func(txn *badger.Txn) (err error) {
		marked, err = has(txn, nameKey(prefixForget, db))
		return err
	})
	if err != nil || !marked {
		return err
	}
	return s.forgetHistories([]string{db})
}

// forgetHistories drops all that deleted histories have spilled, and the marks that
// say so last.
func (s *Badger) forgetHistories(dbs []string) error {
	if len(dbs) == 0 {
		return nil
	}
	for _, db := range dbs {
		if err := s.deleteAll(undoPrefix(db)); err != nil {
			return err
		}
		if err := s.deleteAll(spillPrefix(db)); err != nil {
			return err
		}
	}
	marks := make([]change, len(dbs))
	for i, db := range dbs {
		marks[i].key = nameKey(prefixForget, db)
	}
	return s.update(marks)
}

// deleteAll deletes the keys under a prefix, some at a time.
func (s *Badger) deleteAll(prefix []byte) error {
	const batch = 1000
	// From the prefix again, a round would pass over all that the rounds before it
	// have deleted.
	for from := prefix; ; {
		var gone []change
		err := s.read(func(txn *badger.Txn) error {
			opt := badger.IteratorOptions{Prefix: prefix}
			it := txn.NewIterator(opt)
			defer it.Close()
			for it.Seek(from); it.Valid() && len(gone) < batch; it.Next() {
				gone = append(gone, change{key: it.Item().KeyCopy(nil)})
			}
			return nil
		})
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := s.update(gone); err != nil {
			return err
		}
		from = gone[len(gone)-1].key
	}
}

// update makes changes in as many transactions as it takes.
func (s *Badger) update(changes []change) error {
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.discard()
	for _, c := range changes {
		if err := w.change(c); err != nil {
			return err
		}
	}
	return w.end()
}

// loadSpill takes back what was spilled after the last checkpoint of each history,
// and ends what a crash interrupted.
func (s *Badger) loadSpill() error {
	var forgotten []string
	undone := make(map[string]bool)
	err := s.read(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefixForget}})
		for it.Rewind(); it.Valid(); it.Next() {
			forgotten = append(forgotten, string(it.Item().Key()[1:]))
		}
		it.Close()
		it = txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefixUndo}})
		defer it.Close()
		for it.Rewind(); it.Valid(); {
			key := it.Item().Key()
			db, _, err := cutName(key[1:])
			if err != nil {
				return damaged(key, "its name is cut")
			}
			undone[db] = true
			// On to the next history.
			it.Seek(append(undoPrefix(db), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.forgetHistories(forgotten); err != nil {
		return err
	}
	for _, db := range forgotten {
		delete(undone, db)
	}
	for db := range undone {
		if err := s.takeBack(db); err != nil {
			return err
		}
	}
	return nil
}

// takeBack puts back what the last checkpoint of a history knew. Doing it again
// does no harm: the records go last.
func (s *Badger) takeBack(db string) error {
	n, err := s.generationNow(db)
	if err != nil {
		return err
	}
	prefix := undoGeneration(db, n)
	for _, lists := range []bool{false, true} {
		for from := prefix; from != nil; {
			var changes []change
			next := []byte(nil)
			err := s.read(func(txn *badger.Txn) error {
				return s.values(context.Background(), txn, prefix, from, func(key, value []byte) (bool, error) {
					if len(changes) >= 1000 {
						next = append([]byte{}, key...)
						return false, nil
					}
					undone, isList, ok := undo(db, string(key[len(prefix):]), value)
					if !ok {
						return false, damaged(key, "it can't be decoded")
					}
					if isList == lists {
						changes = append(changes, undone...)
					}
					return true, nil
				})
			})
			if err == nil {
				err = s.update(changes)
			}
			if err != nil {
				return err
			}
			from = next
		}
	}
	return s.deleteAll(undoPrefix(db))
}

// undo is what an undo record, that of a key, says.
func undo(db, key string, value []byte) (changes []change, isList, ok bool) {
	switch {
	case len(value) > sealed && value[0] == undoValue:
		return []change{{spillKey(db, key), slices.Clone(value[1:])}}, false, true
	case len(value) > 1 && value[0] == undoNew:
		r := wire.NewReader(value[1:])
		for !r.Done() && r.OK() {
			changes = append(changes, change{key: spillKey(db, r.Text())})
		}
		return changes, true, r.OK()
	}
	return nil, false, false
}

// cutName reads the name at the beginning of b, and what follows it.
func cutName(b []byte) (name string, rest []byte, err error) {
	r := wire.NewReader(b)
	if name = r.Text(); !r.OK() {
		return "", nil, errDamaged
	}
	return name, r.Rest(), nil
}
