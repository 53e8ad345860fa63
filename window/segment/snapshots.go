package segment

import (
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// snapshots follow the keys that were written, as long as they are few, to see
// which transactions read all of them.
type snapshots struct {
	most  int
	keys  map[string]*written
	since uint64 // of writes before that position not all are known
	off   bool   // until the next cut: there were too many keys
	// blind are positions of writes that the one after them, of the same key, does not
	// follow by what is known: it neither read them nor is of their session. Ascending, and
	// one for each place where a cut may be, which size is apart.
	blind []uint64
	size  uint64
}

// written are the last writes of a key, in the order of release.
type written struct {
	writes [writesKept]write
	n      int
	met    uint64 // after the position of the last snapshot that touched it
}

type write struct {
	value   record.Value
	pos     uint64
	session string
}

const writesKept = 4

// snapshotTenths is the share of the written keys, in tenths, that a snapshot has to read at least.
const snapshotTenths = 9

func (ss *snapshots) init(opt Options) {
	ss.most = max(0, opt.SnapshotKeys)
	ss.keys = map[string]*written{}
	ss.size = stepSize(opt)
}

// add takes in the record at position n, of session s.
func (ss *snapshots) add(n uint64, t *record.Transaction, s *session) {
	if ss.most == 0 || ss.off {
		return
	}
	if len(ss.keys) > 0 && 10*len(t.Ops) >= snapshotTenths*len(ss.keys) && t.Status == record.Committed {
		ss.read(n, t, s)
	}
	for i := range t.Ops {
		o := &t.Ops[i]
		if o.Kind != record.Write && o.Kind != record.Append {
			continue
		}
		k := ss.keys[o.Key]
		if k == nil {
			if len(ss.keys) >= ss.most {
				clear(ss.keys)
				ss.off = true
				return
			}
			k = &written{}
			ss.keys[o.Key] = k
		}
		if before, ok := k.add(write{o.Value, n, t.Session}, o.Key, t.Ops); !ok {
			ss.unordered(before)
		}
	}
}

// unordered notes a position among blind. O(places where a cut may be), O(log of them)
// where there is one already.
func (ss *snapshots) unordered(pos uint64) {
	i, _ := slices.BinarySearch(ss.blind, pos-pos%ss.size)
	if i == len(ss.blind) || ss.blind[i]/ss.size != pos/ss.size {
		ss.blind = slices.Insert(ss.blind, i, pos)
	}
}

// add takes in a write of the key by the transaction with these operations. It tells
// whether it follows the one before by what is known, and the position of that.
func (k *written) add(w write, key string, ops []record.Op) (before uint64, follows bool) {
	follows = true
	if k.n > 0 {
		last := &k.writes[k.n-1]
		if last.pos == w.pos { // its own: only the last one can be read
			last.value = w.value
			return last.pos, true
		}
		read, ok := firstRead(ops, key)
		before, follows = last.pos, last.session == w.session || ok && last.shownBy(read)
	}
	if k.n == writesKept {
		copy(k.writes[:], k.writes[1:])
		k.n--
	}
	k.writes[k.n] = w
	k.n++
	return before, follows
}

// firstRead is what a transaction read of a key before it wrote it.
func firstRead(ops []record.Op, key string) (record.Value, bool) {
	for i := range ops {
		if ops[i].Key == key {
			return ops[i].Value, ops[i].Kind == record.Read
		}
	}
	return record.Null, false
}

// shownBy tells whether a read of the key shows this write: it is the value, or
// the last element of the list.
func (w *write) shownBy(read record.Value) bool {
	if read == w.value {
		return true
	}
	list := read.Elements()
	return len(list) > 0 && list[len(list)-1] == w.value
}

// read takes in a transaction that may be a snapshot.
func (ss *snapshots) read(n uint64, t *record.Transaction, s *session) {
	proves, count := n, 0
	for i := range t.Ops {
		o := &t.Ops[i]
		k := ss.keys[o.Key]
		if k == nil || k.met == n+1 {
			continue
		}
		k.met = n + 1
		if o.Kind == record.Read {
			count++
			proves = min(proves, k.until(o.Value, n))
		}
	}
	if 10*count >= snapshotTenths*len(ss.keys) && proves > s.snapped {
		s.snapped, s.partial = proves, count < len(ss.keys)
	}
}

// until is the position up to which writes of the key are at most as new as a
// value that was read before n.
func (k *written) until(read record.Value, n uint64) uint64 {
	for i := k.n - 1; i >= 0; i-- {
		if k.writes[i].shownBy(read) {
			if i+1 < k.n {
				return k.writes[i+1].pos
			}
			return n
		}
	}
	if k.n < writesKept {
		return k.writes[0].pos // what was read is older than all that is known
	}
	return 0
}

// forget forgets the writes before a position, and begins again at next if there
// were too many.
func (ss *snapshots) forget(from, next uint64) {
	if ss.off {
		ss.off, ss.since = false, next
	}
	if i, _ := slices.BinarySearch(ss.blind, from); i > 0 {
		ss.blind = slices.Delete(ss.blind, 0, i)
	}
	for key, k := range ss.keys {
		first := 0
		for first < k.n && k.writes[first].pos < from {
			first++
		}
		if first == k.n {
			delete(ss.keys, key)
			continue
		}
		copy(k.writes[:], k.writes[first:k.n])
		clear(k.writes[k.n-first : k.n])
		k.n -= first
	}
}

// bySnapshot is the latest place such that each live session has read, since, all
// that was written before it.
func (c *Cutter) bySnapshot(w window) Cut {
	ss := &c.snaps
	from, live, snapped, partial := w.latest, 0, 0, false
	for _, s := range c.sessions.by {
		if !c.live(s) {
			continue
		}
		live++
		if s.snapped > w.earliest {
			snapped++
			from = min(from, s.snapped)
			partial = partial || s.partial
		}
	}
	if ss.most == 0 || ss.off || snapped == 0 || 2*snapped < live || ss.since > c.last.From {
		return Cut{}
	}
	k := Cut{Kind: Snapshot, From: max(c.steps.down(from), w.earliest)}
	for _, pos := range ss.blind {
		if pos >= c.last.From && pos < k.From {
			k.stray(pos)
		}
	}
	c.strays(&k, false)
	k.Complete = k.Straddlers == 0 && snapped == live && !partial
	return k
}
