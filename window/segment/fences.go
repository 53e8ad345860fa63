package segment

import (
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// fences follow one key that sessions read and write, one after the other.
type fences struct {
	// votes count transactions that read and wrote a key, of the keys of which
	// there are most (Misra and Gries).
	votes map[string]int
	key   string
	on    bool // key is followed

	// The chain: the last values written to the key, by their places in it.
	places map[record.Value]uint64
	ring   []record.Value // the values, oldest first
	first  record.Value   // what the oldest fence since base had read
	top    uint64         // place of the last one
	base   uint64         // the chain is torn before that place
	wait   []waiting      // in the order in which they came
}

// waiting is a fence that read what has not been written, as far as is known:
// records may come before those that they read from.
type waiting struct {
	read, wrote record.Value
	n           uint64
	session     string
	certain     bool // it has committed
}

const (
	votesMost = 64
	// votesAll is up to which position every record votes; afterwards one in eight.
	votesAll = 1 << 12
	// votesEnough is how often a key must have been met to be followed.
	votesEnough = 16
	chainMost   = 4096
	waitMost    = 64
	// waitLong is after how many records a fence that waits is given up, and the
	// chain torn.
	waitLong = 1 << 14
)

func (f *fences) init() {
	f.votes = map[string]int{}
	f.places = map[record.Value]uint64{}
	f.base = 1
}

// proves tells whether a session's last fence is at that place of the chain or
// behind it.
func (f *fences) proves(s *session, place uint64) bool {
	m := len(s.marks)
	return m > 0 && place >= f.base && s.marks[m-1].place >= place
}

// readAndWrote is what a transaction read first of a key, before it wrote it, and
// what it wrote last to it.
func readAndWrote(ops []record.Op, key string) (read, wrote record.Value, ok bool) {
	has := false
	for i := range ops {
		switch o := &ops[i]; {
		case o.Key != key:
		case o.Kind == record.Read && !has:
			read, has = o.Value, true
		case o.Kind == record.Write:
			if !has {
				return read, wrote, false
			}
			wrote, ok = o.Value, true
		}
	}
	return read, wrote, ok
}

// fence takes in the record at position n, of session s.
func (c *Cutter) fence(n uint64, t *record.Transaction, s *session) {
	f := &c.fences
	f.vote(n, t.Ops)
	if !f.on {
		if key, votes := f.favourite(); votes >= votesEnough {
			c.follow(key)
		}
		return
	}
	if len(f.wait) > 0 && n-f.wait[0].n > waitLong {
		f.tear()
	}
	read, wrote, ok := readAndWrote(t.Ops, f.key)
	if !ok {
		return
	}
	w := waiting{read: read, wrote: wrote, n: n, session: t.Session, certain: t.Status == record.Committed}
	place, known := f.places[read]
	switch {
	case len(f.ring) == 0:
		f.first = read
		c.put(w, s)
	case known && place == f.top:
		c.put(w, s)
		c.settle()
	case known: // two overwrote the same: there is no chain
		f.tear()
	case wrote == f.first: // it came before what is known of the chain
		f.first = read
	case len(f.wait) == waitMost:
		f.tear()
	default:
		f.wait = append(f.wait, w)
	}
}

// settle puts what waited for the last value into the chain.
func (c *Cutter) settle() {
	f := &c.fences
	for len(f.ring) > 0 {
		last := f.ring[len(f.ring)-1]
		i := slices.IndexFunc(f.wait, func(w waiting) bool { return w.read == last })
		if i < 0 {
			return
		}
		w := f.wait[i]
		f.wait = slices.Delete(f.wait, i, i+1)
		c.put(w, c.sessions.by[w.session])
	}
}

// put makes a fence the last of the chain. The session may be forgotten already.
func (c *Cutter) put(w waiting, s *session) {
	f := &c.fences
	if _, twice := f.places[w.wrote]; twice { // a value names no place any more
		f.tear()
		return
	}
	if len(f.ring) >= chainMost {
		for _, v := range f.ring[:chainMost/2] {
			delete(f.places, v)
		}
		f.ring = append(f.ring[:0], f.ring[chainMost/2:]...)
	}
	f.top++
	f.places[w.wrote] = f.top
	f.ring = append(f.ring, w.wrote)
	if !w.certain || s == nil {
		return
	}
	m := mark{place: f.top, pos: w.n}
	if w.n+1 != c.next {
		m.next = w.n + 1 // the session may have gone on since
	}
	s.proved(m)
}

// tear begins another chain: nothing before it is ordered against it.
func (f *fences) tear() {
	f.base = f.top + 1
	clear(f.places)
	f.ring, f.wait = f.ring[:0], f.wait[:0]
}

// follow begins to follow a key.
func (c *Cutter) follow(key string) {
	c.fences.tear()
	c.fences.key, c.fences.on = key, true
	for _, s := range c.sessions.by {
		s.marks = s.marks[:0]
	}
}

// vote counts the keys that a transaction read and then wrote.
func (f *fences) vote(n uint64, ops []record.Op) {
	if n >= votesAll && n*0x9e3779b97f4a7c15>>61 != 0 {
		return
	}
	ops = ops[:min(len(ops), votesMost)]
	for i := range ops {
		key := ops[i].Key
		if ops[i].Kind != record.Write || !slices.ContainsFunc(ops[:i],
			func(o record.Op) bool { return o.Kind == record.Read && o.Key == key }) ||
			slices.ContainsFunc(ops[:i], func(o record.Op) bool { return o.Kind == record.Write && o.Key == key }) {
			continue
		}
		if _, ok := f.votes[key]; ok || len(f.votes) < votesMost {
			f.votes[key]++
			continue
		}
		for k := range f.votes {
			if f.votes[k]--; f.votes[k] == 0 {
				delete(f.votes, k)
			}
		}
	}
}

// favourite is the key with most votes, the first by name of several.
func (f *fences) favourite() (key string, votes int) {
	for k, n := range f.votes {
		if n > votes || n == votes && k < key {
			key, votes = k, n
		}
	}
	return key, votes
}

// reconsider follows another key where the one that is followed does not serve,
// and begins to count again.
func (c *Cutter) reconsider(serves bool) {
	if key, votes := c.fences.favourite(); !serves && votes >= votesEnough && key != c.fences.key {
		c.follow(key)
	}
	clear(c.fences.votes)
}

// byFence is the latest place such that what is before it is in its session before
// a fence that comes before the last fence of each live session. The second
// result is the place in the chain of the first of these last fences.
func (c *Cutter) byFence(w window) (Cut, uint64) {
	f := &c.fences
	least, live, fenced := f.top+1, 0, 0
	all := c.sessions.sorted()
	for _, s := range all {
		if !c.live(s) {
			continue
		}
		live++
		if f.proves(s, f.base) {
			fenced++
			if m := s.marks[len(s.marks)-1].place; m < least {
				least = m
			}
		}
	}
	if fenced == 0 || 2*fenced < live {
		return Cut{}, 0
	}
	k := Cut{Kind: Fence, From: w.latest}
	var behind []uint64
	for _, s := range all {
		if s.last <= c.last.From { // it did nothing since the last cut
			continue
		}
		switch from, some := s.uncovered(least, f.base); {
		case !some:
		case from < w.earliest:
			behind = append(behind, max(from, c.last.From))
		default:
			k.From = min(k.From, c.steps.down(from))
		}
	}
	for _, pos := range behind {
		if pos < k.From {
			k.stray(pos)
		}
	}
	c.strays(&k, false)
	k.Complete = k.Straddlers == 0 && fenced == live && c.sessions.gone <= c.last.From
	return k, least
}

// uncovered is the position from which on nothing that the session did is proved
// to precede the fence at a place of the chain, or is in its session before that
// fence; if it did something since.
func (s *session) uncovered(place, base uint64) (uint64, bool) {
	for i := len(s.marks) - 1; i >= 0; i-- {
		if m := s.marks[i]; m.place >= base && m.place <= place {
			return m.next, m.next != 0
		}
	}
	return s.first, true
}
