package postgres

import (
	"hash/crc32"
	"slices"
	"sync"

	"github.com/isowatch/isowatch/ingest/record"
)

// standing is what is known of an item, of which a write that is not in the records would make what is read a riddle.
type standing uint8

const (
	unseen standing = iota // no statement wrote it, and none has read it
	opened                 // one connection's statements wrote it, and it is not known yet what it held before
	known                  // what it held before is recorded, and all that was written
	lossy                  // no more is recorded of it
)

type item struct {
	name     string // as the records have it
	standing standing
	owner    *Connection // of opened
}

// columnName is a column of a table; without a name all of them.
type columnName struct{ table, column string }

// itemsMax is how many items are kept apart, for good. Of more nothing is recorded.
const itemsMax = 1_000_000

// items are all of a Capture that is complete.
type items struct {
	mu    sync.Mutex
	of    map[string]item
	lossy map[columnName]bool
	all   bool // all are lossy
	// loose counts the statements under way, by label, that write rows which only their answer tells.
	loose map[string]int
	// deleted says of rows, some of which share a place, how many statements that delete them are not over, and when the
	// last one was.
	deleted [1 << 12]struct {
		under int
		last  int64
	}
}

// placeOf is where a row, or if it is empty the rows of a table that only the answer tells, stand in items.deleted.
func (c *Connection) placeOf(t *table, row string) int {
	c.name = append(append(append(c.name[:0], t.label...), ':'), row...)
	return int(crc32.ChecksumIEEE(c.name) % uint32(len(c.capture.items.deleted)))
}

// deletes takes a statement that is to delete what has this place. It is over when all that was sent is answered.
func (c *Connection) deletes(place int) {
	c.deleting = append(c.deleting, place)
	s := &c.capture.items
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted[place].under++
}

// deleted says that the connection's deletions are over.
func (c *Connection) deleted() {
	if len(c.deleting) == 0 {
		return
	}
	s := &c.capture.items
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.capture.rec.Now()
	for _, place := range c.deleting {
		s.deleted[place].under--
		s.deleted[place].last = now
	}
	c.deleting = c.deleting[:0]
}

// isAnew tells whether a row that was inserted may have been deleted by another transaction since this one began.
func (c *Connection) isAnew(t *table, row string) bool {
	s, began := &c.capture.items, c.current().start
	places := [...]int{c.placeOf(t, row), c.placeOf(t, "")}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(places[:], func(place int) bool {
		others := s.deleted[place].under
		for _, mine := range c.deleting {
			if mine == place {
				others--
			}
		}
		return others > 0 || s.deleted[place].last > began
	})
}

// isLossy tells whether no more is recorded of an item, which stands so; s.mu is held.
func (s *items) isLossy(it item, t *table, column int) bool {
	return s.all || it.standing == lossy ||
		len(s.lossy) > 0 && (s.lossy[columnName{t.label, ""}] || s.lossy[columnName{t.label, t.columns[column].name}])
}

// named is an item, and its name, which is kept once; s.mu is held.
func (s *items) named(name []byte) (it item, key string, there bool) {
	if it, there = s.of[string(name)]; there {
		return it, it.name, true
	}
	return it, string(name), false
}

// write says that a connection is about to write an item. It is true if the item was unseen: it is then opened.
// isLossy: no more is recorded of it.
func (s *items) write(name []byte, t *table, column int, c *Connection) (key string, opens, isLossy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, key, there := s.named(name)
	switch {
	case s.isLossy(it, t, column):
		return key, false, true
	case it.standing == known || it.standing == opened && it.owner == c:
		return key, false, false
	case it.standing == opened: // by another: which of them found what was there before is not known
		s.of[key] = item{name: key, standing: lossy}
		return key, false, true
	case !there && len(s.of) >= itemsMax:
		return key, false, true
	case s.loose[t.label] > 0: // that may have written it before
		s.of[key] = item{name: key, standing: lossy}
		return key, false, true
	}
	s.of[key] = item{key, opened, c}
	return key, true, false
}

// lose makes an item lossy.
func (s *items) lose(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.of[key]; there || len(s.of) < itemsMax {
		s.of[key] = item{name: key, standing: lossy}
	}
}

// loseTable makes all of a table lossy, or a column of it.
func (s *items) loseTable(t *table, column int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if column >= 0 {
		s.lossy[columnName{t.label, t.columns[column].name}] = true
	} else {
		s.lossy[columnName{t.label, ""}] = true
	}
}

func (s *items) loseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
	s.of = map[string]item{}
}

// read says that an item was read to hold v, by a connection or as what it held before the connection wrote it. held:
// the read may be recorded. What it held before all is recorded if it is known by this, before anybody else knows it.
func (s *items) read(name []byte, t *table, column int, c *Connection, before bool,
	v record.Value) (key string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, key, there := s.named(name)
	switch {
	case s.isLossy(it, t, column):
		return key, false
	case it.standing == known:
		return key, true
	case it.standing == unseen && s.loose[t.label] > 0, !there && len(s.of) >= itemsMax:
		return key, false
	case it.standing == opened && (it.owner != c || !before):
		return key, false
	case it.standing == opened && s.loose[t.label] > 0: // what was there before may be what that wrote
		s.of[key] = item{name: key, standing: lossy}
		return key, false
	}
	s.of[key] = item{name: key, standing: known}
	c.held(key, v)
	return key, true
}

// absent says that an item was made by a connection, so that there was nothing before.
func (s *items) absent(key string, t *table, c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[key] == (item{key, opened, c}) && s.loose[t.label] == 0 {
		s.of[key] = item{name: key, standing: known}
	}
}

// close ends a connection's claim to an item that it opened. undone: nothing was written after all.
func (s *items) close(key string, c *Connection, undone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[key] != (item{key, opened, c}) {
		return
	}
	it := item{name: key, standing: lossy}
	if undone {
		it.standing = unseen
	}
	s.of[key] = it
}

// await counts the statements under way that write rows of a table which are not known yet.
func (s *items) await(t *table, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loose[t.label] += n
}

// item is the name of a column of a row, until the next one.
func (c *Connection) item(t *table, row string, column int) []byte {
	c.name = append(append(append(append(append(c.name[:0], t.label...), ':'), row...), '.'), t.columns[column].name...)
	return c.name
}

// row is what a row with this key is called.
func (c *Connection) row(key []record.Value) string {
	if len(key) == 1 && key[0].Kind == record.KindString {
		return key[0].Text
	}
	c.name = c.name[:0]
	for i, v := range key {
		if i > 0 {
			c.name = append(c.name, ',')
		}
		c.name = v.AppendJSON(c.name)
	}
	return string(c.name)
}

// emptyKey is one of t whose values are still to come.
func (c *Connection) emptyKey(t *table) []record.Value {
	c.key = slices.Grow(c.key[:0], len(t.key))[:len(t.key)]
	clear(c.key)
	return c.key
}
