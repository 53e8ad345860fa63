package certificate

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// commitOrder is a replay of an order of commits, with the writer of each read
// that the axioms speak of.
type commitOrder struct {
	*replay
	repeat bool // a key read twice has to give the same

	reads   []resolved
	readsAt []span // by transaction
	writes  []finalWrite
	wroteAt []span // by transaction
	ints    map[integer]int32
	others  map[written]int32 // as ints, for values that are no integers

	has    map[uint64]struct{} // transaction and key; see wroteKey
	latest []int32             // by key: a transaction, meaningful if stamp is the one at hand
	stamp  []int32
	met    []int32 // by transaction: the last that met it
}

// resolved is a read of another transaction's write, or of the initial state
// (none).
type resolved struct {
	op, key, writer int32
}

// finalWrite is a transaction's last write of a key. before is the one of the
// same value that committed before, or none.
type finalWrite struct {
	key, txn, before int32
}

// integer is a written integer. Most values are, and it is less to hash.
type integer struct {
	key int32
	num int64
}

type span struct{ from, to int }

// commits checks an order of commits against the axioms of Biswas and Enea ("On
// the Complexity of Checking Transactional Consistency", OOPSLA 2019): whenever
// t3 reads a key from t1 and another writer t2 of it is visible to that read, t2
// commits before t1. Sessions, and that writers commit before who reads from
// them, have to be in the order as well; g1 asks for no more than that.
func (r *replay) commits(level verdict.Level) *Error {
	c := &commitOrder{replay: r, repeat: level == verdict.RA || level == verdict.CC, met: slices.Repeat([]int32{none}, len(r.txns)),
		readsAt: make([]span, len(r.txns)), wroteAt: make([]span, len(r.txns)), ints: map[integer]int32{}, others: map[written]int32{}}
	if err := c.resolve(); err != nil {
		return r.contradicted(err)
	}
	if err := r.contradicted(nil); err != nil {
		return err
	}
	c.latest, c.stamp = make([]int32, len(r.objects)), slices.Repeat([]int32{none}, len(r.objects))
	switch level {
	case verdict.RC:
		return c.monotonic()
	case verdict.RA:
		return c.atomic()
	case verdict.CC:
		return c.causal()
	}
	return nil
}

// resolve finds each read's writer: the one that commits before the reader.
// Where there are several, an order of commits does not say which was read.
func (c *commitOrder) resolve() *Error {
	if err := c.noLists(); err != nil {
		return err
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

// noLists: what the axioms mean for appends is not settled.
func (c *commitOrder) noLists() *Error {
	for n := range c.txns {
		for j := range c.txns[n].Ops {
			if c.txns[n].Ops[j].Kind == record.Append {
				return c.fail(none, n, j, "appends: an order of commits can't be checked for lists; prove pc or a stronger level instead")
			}
		}
	}
	return nil
}

// noteWrites notes a transaction's last writes.
func (c *commitOrder) noteWrites(n int) {
	keys := c.keys[c.first[n] : c.first[n]+len(c.txns[n].Ops)]
	c.wroteAt[n].from = len(c.writes)
	for j := len(keys) - 1; j >= 0; j-- {
		mine, op := &c.overlays[keys[j]], &c.txns[n].Ops[j]
		if op.Kind != record.Write || mine.wrote {
			continue
		}
		mine.wrote = true
		w := finalWrite{keys[j], int32(n), c.lastWrite(keys[j], op.Value)}
		if op.Value.Kind == record.KindInt {
			c.ints[integer{keys[j], op.Value.Num}] = int32(len(c.writes))
		} else {
			c.others[written{keys[j], op.Value}] = int32(len(c.writes))
		}
		c.writes = append(c.writes, w)
	}
	c.wroteAt[n].to = len(c.writes)
	for _, k := range keys {
		c.overlays[k] = overlay{}
	}
}

// lastWrite is the write of a value that committed last so far, as an index of
// writes, or none.
func (c *commitOrder) lastWrite(key int32, v record.Value) int32 {
	var at int32
	var ok bool
	if v.Kind == record.KindInt {
		at, ok = c.ints[integer{key, v.Num}]
	} else {
		at, ok = c.others[written{key, v}]
	}
	if !ok {
		return none
	}
	return at
}

// resolveTxn finds the writers of a transaction's reads, and checks those of its
// own writes.
func (c *commitOrder) resolveTxn(i int32, n int) *Error {
	t := &c.txns[n]
	keys := c.keys[c.first[n] : c.first[n]+len(t.Ops)]
	for j, k := range keys {
		op, mine := &t.Ops[j], &c.overlays[k]
		switch {
		case op.Kind == record.Write:
			mine.wrote, mine.value = true, op.Value
		case mine.wrote:
			if mine.value != op.Value {
				return c.differs(i, n, j, content{value: mine.value}, "reads %s from %q, its own write left %s")
			}
		case c.repeat && mine.read && mine.seen != op.Value:
			return c.differs(i, n, j, content{value: mine.seen}, "reads %s from %q, after %s before")
		default:
			mine.read, mine.seen = true, op.Value
			w, says, err := c.writer(i, n, j, k)
			if err != nil {
				return err
			}
			if says {
				c.reads = append(c.reads, resolved{int32(j), k, w})
			}
		}
	}
	for _, k := range keys {
		c.overlays[k] = overlay{}
	}
	return nil
}

// writer is who wrote what operation j of transaction n read. It may be nobody
// who has a place in the order, and then the read says nothing.
func (c *commitOrder) writer(i int32, n, j int, key int32) (w int32, says bool, err *Error) {
	v, o := c.txns[n].Ops[j].Value, &c.objects[key]
	partial := c.opt.Coverage == record.CoveragePartial
	if partial && c.saysNothing(o, v) {
		return none, false, nil
	}
	stated := c.opt.Initial != record.InitialAny
	if at := c.lastWrite(key, v); at != none {
		w, before := c.writes[at].txn, c.writes[at].before
		switch {
		case before != none:
			return none, false, c.ambiguous(i, n, j, c.writes[before].txn, w)
		case stated && !partial && o.value == v:
			return none, false, c.ambiguous(i, n, j, none, w)
		}
		return w, true, nil
	}
	switch {
	case stated && !partial && o.value == v:
		return none, true, nil
	case stated && !partial:
		return none, false, c.nobody(i, n, j, key)
	case partial:
		c.presume(i, n, j, key, v, "")
		return none, false, nil
	case o.from == open:
		o.value, o.from = v, foreign
	case o.value != v:
		return none, false, c.nobody(i, n, j, key)
	}
	c.presume(i, n, j, key, v, "")
	return none, true, nil
}

// ambiguous is the Error of a read that both w and m may have written.
func (c *commitOrder) ambiguous(i int32, n, j int, w, m int32) *Error {
	first := "the initial state"
	if w != none {
		first = c.who(int(w))
	}
	op := &c.txns[n].Ops[j]
	return c.fail(i, n, j, "reads %s from %q, which %s and %s both hold: an order of commits does not say whose it is", brief(op.Value.String()), op.Key, first, c.who(int(m)))
}

// nobody is the Error of a read that no transaction before it in the order wrote
// last, nor is the value the initial one.
func (c *commitOrder) nobody(i int32, n, j int, key int32) *Error {
	op := &c.txns[n].Ops[j]
	for m := range c.txns {
		if m != n && c.commit[m] > i && slices.Contains(c.txns[m].Ops, record.Op{Kind: record.Write, Key: op.Key, Value: op.Value}) {
			return c.fail(i, n, j, "reads %s from %q, whose writer %s has not committed yet", brief(op.Value.String()), op.Key, c.who(m))
		}
	}
	return c.differs(i, n, j, content{value: c.objects[key].value}, "reads %s from %q, which nobody wrote before, and which held %s at first")
}

func (c *commitOrder) readsOf(n int32) []resolved {
	return c.reads[c.readsAt[n].from:c.readsAt[n].to]
}

func (c *commitOrder) writesOf(n int32) []finalWrite {
	return c.writes[c.wroteAt[n].from:c.wroteAt[n].to]
}

// placeOf is a writer's place in the order; that of the initial state is before
// all.
func (c *commitOrder) placeOf(w int32) int32 {
	if w == none {
		return none
	}
	return c.commit[w]
}

// wroteKey tells whether transaction n wrote a key.
func (c *commitOrder) wroteKey(n, key int32) bool {
	if c.has == nil {
		c.has = map[uint64]struct{}{}
		for m := range c.txns {
			for _, w := range c.writesOf(int32(m)) {
				c.has[uint64(m)<<32|uint64(w.key)] = struct{}{}
			}
		}
	}
	_, ok := c.has[uint64(n)<<32|uint64(key)]
	return ok
}

// meet notes that n reads from w; false if it has before, or w is nobody.
func (c *commitOrder) meet(n, w int32) bool {
	if w == none || c.met[w] == n {
		return false
	}
	c.met[w] = n
	return true
}

// see forgets what was visible, and returns what notes that a key's writer t2
// is.
func (c *commitOrder) see(stamp int32) func(key, t2 int32) {
	return func(key, t2 int32) {
		if c.stamp[key] != stamp || c.commit[c.latest[key]] < c.commit[t2] {
			c.stamp[key], c.latest[key] = stamp, t2
		}
	}
}

// visible is the visible writer of a key that commits last, or none.
func (c *commitOrder) visible(stamp, key int32) int32 {
	if c.stamp[key] != stamp {
		return none
	}
	return c.latest[key]
}

// axiom checks that t2, which is visible to a read, commits before the read's
// writer. why says how it is visible.
func (c *commitOrder) axiom(n int32, rd resolved, t2 int32, why string) *Error {
	if t2 == none || t2 == rd.writer || c.commit[t2] < c.placeOf(rd.writer) {
		return nil
	}
	op, from := &c.txns[n].Ops[rd.op], "at first"
	if rd.writer != none {
		from = "as " + c.who(int(rd.writer)) + " wrote it"
	}
	return c.fail(c.commit[n], int(n), int(rd.op), "reads %s from %q, %s; but %s, %s, wrote the key too and commits later",
		brief(op.Value.String()), op.Key, from, c.who(int(t2)), why)
}

// fewWrites are never worth looking up one by one.
const fewWrites = 32

// monotonic checks rc: visible is what the transaction had read from by then.
// For each writer it costs the lesser of its writes and the reads to come
// (AWDIT, 3.1).
func (c *commitOrder) monotonic() *Error {
	for n := range int32(len(c.txns)) {
		reads := c.readsOf(n)
		see := c.see(n)
		for q, rd := range reads {
			if err := c.axiom(n, rd, c.visible(n, rd.key), "which it read from before"); err != nil {
				return err
			}
			if !c.meet(n, rd.writer) {
				continue
			}
			if w := c.writesOf(rd.writer); len(w) <= max(fewWrites, len(reads)-q) {
				for _, own := range w {
					see(own.key, rd.writer)
				}
				continue
			}
			for _, later := range reads[q+1:] {
				if c.wroteKey(rd.writer, later.key) {
					see(later.key, rd.writer)
				}
			}
		}
	}
	return nil
}

// atomic checks ra: visible is what the transaction reads from anywhere, and its
// predecessors in the session, of which the last writer of a key is the one that
// commits last.
func (c *commitOrder) atomic() *Error {
	for n := range int32(len(c.txns)) {
		reads := c.readsOf(n)
		see := c.see(n)
		for _, rd := range reads {
			if !c.meet(n, rd.writer) {
				continue
			}
			if w := c.writesOf(rd.writer); len(w) <= max(fewWrites, len(reads)) {
				for _, own := range w {
					see(own.key, rd.writer)
				}
				continue
			}
			for _, other := range reads {
				if c.wroteKey(rd.writer, other.key) {
					see(other.key, rd.writer)
				}
			}
		}
		for _, rd := range reads {
			if err := c.axiom(n, rd, c.visible(n, rd.key), "which it reads from"); err != nil {
				return err
			}
		}
	}
	if c.opt.Sessions == record.SessionsIgnore {
		return nil
	}
	return c.sessionReads()
}

// sessionReads checks that nobody reads what a predecessor in its session has
// overwritten.
func (c *commitOrder) sessionReads() *Error {
	for i := range c.stamp {
		c.stamp[i] = none
	}
	for s, members := range c.bySession() {
		see := c.see(int32(s))
		for _, n := range members {
			for _, rd := range c.readsOf(n) {
				if err := c.axiom(n, rd, c.visible(int32(s), rd.key), "before it in its session"); err != nil {
					return err
				}
			}
			if c.txns[n].Status == record.Unknown {
				continue // it precedes nothing
			}
			for _, w := range c.writesOf(n) {
				see(w.key, n)
			}
		}
	}
	return nil
}

// bySession lists the transactions in the order by session, in session order.
func (c *commitOrder) bySession() [][]int32 {
	var out [][]int32
	at := map[string]int{}
	for n := range c.txns {
		if c.commit[n] < 0 {
			continue
		}
		s, ok := at[c.txns[n].Session]
		if !ok {
			s = len(out)
			at[c.txns[n].Session] = s
			out = append(out, nil)
		}
		out[s] = append(out[s], int32(n))
	}
	return out
}
