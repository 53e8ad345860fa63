package shrink

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/ingest/record"
)

// cells say who wrote and who read which value of which key.
type cells struct {
	readers map[record.Cell][]unit // reads that returned a value
	keyed   map[string][]unit      // all reads of the keys in lists
	lists   map[string]*appended   // keys that are appended to
	holders map[record.Cell][]unit // reads of pure lists that hold an element
	makers  map[record.Cell]int    // operations that append it, whatever their outcome
	made    map[record.Cell]bool   // somebody wrote it who had not read it there before
	rows    bool                   // there are predicate reads: no write may go alone
}

// appended is a key that somebody appends to. It is pure if nobody writes it in
// another way and all that was read of it are lists; of any other one it is not
// known which write shows in which read.
type appended struct {
	pure    bool
	appends []unit
}

func index(txns []record.Transaction) cells {
	c := cells{readers: map[record.Cell][]unit{}, keyed: map[string][]unit{}, lists: map[string]*appended{},
		holders: map[record.Cell][]unit{}, makers: map[record.Cell]int{}, made: map[record.Cell]bool{}}
	for i := range txns {
		for j, op := range txns[i].Ops {
			switch op.Kind {
			case record.Append:
				if c.lists[op.Key] == nil {
					c.lists[op.Key] = &appended{pure: true}
				}
				l := c.lists[op.Key]
				l.appends = append(l.appends, unit{i, j})
				c.makers[op.Cell()]++
			case record.PredicateRead:
				c.rows = true
			}
		}
	}
	for i := range txns {
		read, own := map[record.Cell]bool{}, map[string]bool{}
		for j, op := range txns[i].Ops {
			l, v := c.lists[op.Key], op.Cell()
			read[v] = read[v] || op.Kind == record.Read && !own[op.Key]
			c.made[v] = c.made[v] || op.Kind == record.Write && !read[v]
			own[op.Key] = own[op.Key] || op.Kind != record.Read
			switch {
			case op.Kind == record.Write && l != nil:
				l.pure = false
			case op.Kind == record.Read && l != nil:
				c.keyed[op.Key] = append(c.keyed[op.Key], unit{i, j})
				c.hold(op, unit{i, j}, l)
			case op.Kind == record.Read:
				c.readers[v] = append(c.readers[v], unit{i, j})
			}
		}
	}
	return c
}

// hold notes what a read of a list holds of what somebody here appended.
func (c *cells) hold(op record.Op, u unit, l *appended) {
	es, ok := list.Elements(op.Value)
	if !ok {
		l.pure = false
	}
	for _, v := range es {
		e := record.Cell{Key: op.Key, Value: v}
		if c.makers[e] == 0 {
			continue
		}
		if h := c.holders[e]; len(h) == 0 || h[len(h)-1] != u {
			c.holders[e] = append(h, u)
		}
	}
}

// unseen tells whether an append may be left out as if a transaction that was
// not recorded had made it: the judge allows for these, the list has no other
// writes, and nothing else appends the element, as what somebody recorded wrote
// nobody else is taken to have.
func (s *shrinker) unseen(u unit) bool {
	op := s.txns[u.txn].Ops[u.op]
	return s.opt.Unseen && op.Kind == record.Append && s.lists[op.Key].pure &&
		s.makers[op.Cell()] == 1
}

// dependents are the reads that must go with a write: all that returned its
// value or hold its element, or, where the element goes on to be seen, those of
// the transaction itself, which saw it before anybody else could.
func (s *shrinker) dependents(u unit) []unit {
	op := s.txns[u.txn].Ops[u.op]
	l := s.lists[op.Key]
	switch {
	case l == nil:
		return s.readers[op.Cell()]
	case !l.pure:
		return s.keyed[op.Key]
	case s.unseen(u):
		return s.ownReads(u)
	}
	return s.holders[op.Cell()]
}

// ownReads are the reads of a list after an append to it in the same
// transaction, up to the next append, which has its own.
func (s *shrinker) ownReads(u unit) []unit {
	key := s.txns[u.txn].Ops[u.op].Key
	var out []unit
	for j, o := range s.txns[u.txn].Ops[u.op+1:] {
		switch {
		case o.Key != key:
		case o.Kind == record.Append:
			return out
		case o.Kind == record.Read:
			out = append(out, unit{u.txn, u.op + 1 + j})
		}
	}
	return out
}

// PutsBack tells whether t reads by its i-th operation what others left of a key, and writes the same to it later.
// Without that read it would seem to have made the value, which so could be no key's initial one, nor an unseen
// transaction's.
func PutsBack(t *record.Transaction, i int) bool {
	op := t.Ops[i]
	of := func(o record.Op) bool { return o.Key == op.Key && o.Kind != record.Read }
	op.Kind = record.Write
	return t.Ops[i].Kind == record.Read && !slices.ContainsFunc(t.Ops[:i], of) && slices.Contains(t.Ops[i+1:], op)
}

// group are the other writes of its transaction to the same key that must go
// with a write. With an append whose element goes on to be seen all of them: what
// a transaction appends comes into the list in one piece, and no other
// transaction can put the missing part in its midst. With a last write the
// earlier ones: none of these was ever there for others to read, nor is to look as if
// it had been.
func (s *shrinker) group(u unit) []unit {
	t := &s.txns[u.txn]
	if t.Status == record.Aborted {
		return nil // none of it was
	}
	unseen := s.unseen(u)
	var out []unit
	for j, o := range t.Ops {
		if j == u.op || o.Key != t.Ops[u.op].Key || !s.writesAt(unit{u.txn, j}) {
			continue
		}
		if j > u.op && !unseen {
			return nil // not the last one
		}
		out = append(out, unit{u.txn, j})
	}
	return out
}
