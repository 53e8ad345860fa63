package certificate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Operations are those that a source is of.
func Operations(s verdict.Source, t *record.Transaction) (out []int) {
	if s.Op >= 0 {
		return []int{s.Op}
	}
	for j := range t.Ops {
		if op := &t.Ops[j]; op.Key == s.Key && op.Kind != record.Read {
			break // the rest is its own
		} else if op.Key == s.Key {
			out = append(out, j)
		}
	}
	return out
}

// finalWrite is a transaction's last write of a key, by operation op. before is
// the one of the same value that committed before, as an index of writes, or
// none.
type finalWrite struct {
	key, txn, op, before int32
}

// choose notes the writers that a certificate names. That they are possible is
// checked where the read is.
func (c *commitOrder) choose(sources []verdict.Source) *Error {
	c.chosen = make(map[place]int32, len(sources))
	for _, s := range sources {
		if int64(s.Txn) >= int64(len(c.txns)) || s.Writer != verdict.NoTxn && int64(s.Writer) >= int64(len(c.txns)) {
			return fault("transaction %d reads from transaction %d, of %d", s.Txn, s.Writer, len(c.txns))
		}
		n, w := int32(s.Txn), int32(none)
		if s.Writer != verdict.NoTxn {
			w = int32(s.Writer)
		}
		for _, op := range Operations(s, &c.txns[n]) {
			if op >= len(c.txns[n].Ops) {
				return c.fail(c.commit[n], int(n), -1, "has no operation %d to name the writer of", op)
			}
			at := place{n, int32(op)}
			if _, twice := c.chosen[at]; twice {
				return c.fail(c.commit[n], int(n), op, "has its writer named twice")
			}
			c.chosen[at] = w
		}
	}
	return nil
}

// allUsed checks that no writer is named of what is no such read.
func (c *commitOrder) allUsed(sources []verdict.Source) *Error {
	if c.used == len(c.chosen) {
		return nil
	}
	for _, s := range sources {
		n := int(s.Txn)
		for _, op := range Operations(s, &c.txns[n]) {
			if !slices.ContainsFunc(c.readsOf(int32(n)),
				func(rd resolved) bool { return int(rd.op) == op && !c.objects[rd.key].isList }) {
				return c.fail(c.commit[n], n, op, "has its writer named, and is no read of a single recorded write")
			}
		}
	}
	return nil
}

// resolve finds each read's writer: the one that commits before the reader, or,
// where there are several, the one that the certificate names.
func (c *commitOrder) resolve() *Error {
	c.mix()
	if c.anyVersions && c.anyLists() {
		c.showLists()
	}
	for i, e := range c.order {
		n := int(e.Txn)
		c.readsAt[n].from = len(c.reads)
		if err := c.resolveTxn(int32(i), n); err != nil {
			return err
		}
		c.readsAt[n].to = len(c.reads)
		c.noteWrites(n)
	}
	return nil
}

// noteWrites notes a transaction's last writes, by key.
func (c *commitOrder) noteWrites(n int) {
	keys := c.keys[c.first[n] : c.first[n]+len(c.txns[n].Ops)]
	from := len(c.writes)
	for j := len(keys) - 1; j >= 0; j-- {
		mine, op := &c.overlays[keys[j]], &c.txns[n].Ops[j]
		if op.Kind == record.Read || mine.wrote {
			continue
		}
		mine.wrote = true
		c.writes = append(c.writes, finalWrite{keys[j], int32(n), int32(j), none})
	}
	for j, k := range keys {
		c.overlays[k] = overlay{}
		if op := &c.txns[n].Ops[j]; op.Kind == record.Append {
			c.append(int32(n), k, op.Value)
		}
	}
	own := c.writes[from:]
	slices.SortFunc(own, func(a, b finalWrite) int { return cmp.Compare(a.key, b.key) })
	for at := range own {
		if w := &own[at]; !c.objects[w.key].isList {
			v := c.txns[n].Ops[w.op].Value
			w.before = c.lastWrite(w.key, v)
			c.last[written{w.key, v}] = int32(from + at)
		}
	}
	c.wroteAt[n] = span{from, len(c.writes)}
}

// lastWrite is the write of a value that committed last so far, as an index of
// writes, or none.
func (c *commitOrder) lastWrite(key int32, v record.Value) int32 {
	if at, ok := c.last[written{key, v}]; ok {
		return at
	}
	return none
}

// writeOf is transaction n's last write of a key, as an index of writes, or none.
func (c *commitOrder) writeOf(n, key int32) int32 {
	own := c.writesOf(n)
	at, ok := slices.BinarySearchFunc(own, key, func(w finalWrite, key int32) int { return cmp.Compare(w.key, key) })
	if !ok {
		return none
	}
	return int32(c.wroteAt[n].from + at)
}

// resolveTxn finds the writers of a transaction's reads, and checks those of its
// own writes.
func (c *commitOrder) resolveTxn(i int32, n int) *Error {
	t := &c.txns[n]
	keys := c.keys[c.first[n] : c.first[n]+len(t.Ops)]
	for j, k := range keys {
		op, mine := &t.Ops[j], &c.overlays[k]
		var err *Error
		switch {
		case op.Kind != record.Read:
			mine.apply(op)
		case c.objects[k].isList:
			err = c.readList(i, n, j, k)
		case mine.wrote:
			if mine.value != op.Value {
				err = c.differs(i, n, j, content{value: mine.value}, "reads %s from %q, its own write left %s")
			}
		case c.repeat && mine.read && mine.seen != op.Value:
			err = c.differs(i, n, j, content{value: mine.seen}, "reads %s from %q, after %s before")
		default:
			mine.read, mine.seen = true, op.Value
			err = c.readValue(i, n, j, k)
		}
		if err != nil {
			return err
		}
	}
	for _, k := range keys {
		c.overlays[k] = overlay{}
	}
	return nil
}

// readValue finds who wrote what operation j of transaction n read. It may be
// nobody who has a place in the order, and then the read says nothing.
func (c *commitOrder) readValue(i int32, n, j int, key int32) *Error {
	v, o := c.txns[n].Ops[j].Value, &c.objects[key]
	partial := o.unseen
	if partial && (c.saysNothing(v) || c.putBack[written{key, v}]) {
		return nil
	}
	stated := o.initial != record.InitialAny
	initial := !partial && (stated && o.value == v || !stated && c.putBack[written{key, v}] &&
		(o.from == open || o.value == v))
	at := c.lastWrite(key, v)
	if w, ok := c.chosen[place{int32(n), int32(j)}]; ok {
		c.used++
		if err := c.possible(i, n, j, key, w, initial); err != nil {
			return err
		}
		if w == none && !stated {
			o.value, o.from = v, foreign
		}
		c.readFrom(j, key, w)
		return nil
	}
	switch {
	case at != none && c.writes[at].before != none:
		return c.ambiguous(i, n, j, c.writes[c.writes[at].before].txn, c.writes[at].txn)
	case at != none && initial:
		return c.ambiguous(i, n, j, none, c.writes[at].txn)
	case at != none:
		c.readFrom(j, key, c.writes[at].txn)
		return nil
	case stated && initial:
	case stated && !partial:
		return c.nobody(i, n, j, key)
	case partial:
		c.presume(i, n, j, key, v, "")
		return nil
	case o.from == open:
		o.value, o.from = v, foreign
		c.presume(i, n, j, key, v, "")
	case o.value != v:
		return c.nobody(i, n, j, key)
	default:
		c.presume(i, n, j, key, v, "")
	}
	c.readFrom(j, key, none)
	return nil
}

func (c *commitOrder) readFrom(j int, key, w int32) {
	c.reads = append(c.reads, resolved{op: int32(j), key: key, writer: w})
}

// possible checks that w may have written what operation j of transaction n read
// from a key.
func (c *commitOrder) possible(i int32, n, j int, key, w int32, initial bool) *Error {
	op := &c.txns[n].Ops[j]
	found := brief(op.Value.String())
	if w == none {
		if !initial {
			return c.fail(i, n, j, "reads %s from %q, which the initial state is not known to hold", found, op.Key)
		}
		return nil
	}
	name := c.who(int(w))
	if c.commit[w] < 0 || c.commit[w] >= i {
		return c.fail(i, n, j, "reads %s from %q, as %s wrote it; but that does not commit before", found, op.Key, name)
	}
	at := c.writeOf(w, key)
	if at == none {
		return c.fail(i, n, j, "reads %s from %q, as %s wrote it; but that did not write the key", found, op.Key, name)
	}
	if v := c.txns[w].Ops[c.writes[at].op].Value; v != op.Value {
		return c.differs(i, n, j, content{value: v},
			"reads %s from %q, as "+strings.ReplaceAll(name, "%", "%%")+" wrote it; but that left %s")
	}
	return nil
}

// ambiguous is the Error of a read that both w and m may have written.
func (c *commitOrder) ambiguous(i int32, n, j int, w, m int32) *Error {
	first := "the initial state"
	if w != none {
		first = c.who(int(w))
	}
	op := &c.txns[n].Ops[j]
	return c.fail(i, n, j, "reads %s from %q, which %s and %s both hold: an order of commits does not say whose it is, "+
		"so the certificate has to",
		brief(op.Value.String()), op.Key, first, c.who(int(m)))
}

// nobody is the Error of a read that no transaction before it in the order wrote
// last, nor is the value the initial one.
func (c *commitOrder) nobody(i int32, n, j int, key int32) *Error {
	op := &c.txns[n].Ops[j]
	for m := range c.txns {
		if m != n && c.commit[m] > i && slices.Contains(c.txns[m].Ops,
			record.Op{Kind: record.Write, Key: op.Key, Value: op.Value}) {
			return c.fail(i, n, j, "reads %s from %q, whose writer %s has not committed yet", brief(op.Value.String()), op.Key,
				c.who(m))
		}
	}
	return c.differs(i, n, j, content{value: c.objects[key].value},
		"reads %s from %q, which nobody wrote before, and which held %s at first")
}
