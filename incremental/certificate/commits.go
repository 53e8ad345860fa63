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
	repeat    bool // a key read twice has to give the same
	reads     []resolved
	firstRead []int32 // by transaction, and one more: its part of reads
	writes    []int32 // keys
	firstKey  []int32 // by transaction, and one more: the keys it wrote, its part of writes
	has       map[uint64]struct{}

	latest []int32 // by key: a transaction, meaningful if stamp is the one at hand
	stamp  []int32
	met    []int32 // by transaction: the last that met it
}

// resolved is a read of another transaction's write, or of the initial state
// (none).
type resolved struct {
	op, key, writer int32
}

// commits checks an order of commits against the axioms of Biswas and Enea ("On
// the Complexity of Checking Transactional Consistency", OOPSLA 2019): whenever
// t3 reads a key from t1 and another writer t2 of it is visible to that read, t2
// commits before t1. Sessions, and that writers commit before who reads from
// them, have to be in the order as well; g1 asks for no more than that.
func (r *replay) commits(level verdict.Level) *Error {
	c := &commitOrder{replay: r, repeat: level == verdict.RA || level == verdict.CC, met: slices.Repeat([]int32{none}, len(r.txns))}
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
	writers := c.finalWrites()
	c.firstRead = make([]int32, len(c.txns)+1)
	perTxn := make([][]resolved, len(c.txns))
	for i, e := range c.order {
		n := int(e.Txn)
		reads, err := c.resolveTxn(int32(i), n, writers)
		if err != nil {
			return err
		}
		perTxn[n] = reads
	}
	for n, reads := range perTxn {
		c.firstRead[n] = int32(len(c.reads))
		c.reads = append(c.reads, reads...)
		perTxn[n] = nil
	}
	c.firstRead[len(c.txns)] = int32(len(c.reads))
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

// finalWrites are the last writes of each transaction in the order, and who made
// them, in the order of commits.
func (c *commitOrder) finalWrites() map[written][]int32 {
	out := map[written][]int32{}
	c.firstKey = make([]int32, len(c.txns)+1)
	perTxn := make([][]int32, len(c.txns))
	for _, e := range c.order {
		n := int(e.Txn)
		keys := c.keys[c.first[n] : c.first[n]+len(c.txns[n].Ops)]
		for j := len(keys) - 1; j >= 0; j-- {
			if mine := &c.overlays[keys[j]]; c.txns[n].Ops[j].Kind == record.Write && !mine.wrote {
				mine.wrote = true
				w := written{keys[j], c.txns[n].Ops[j].Value}
				out[w] = append(out[w], int32(n))
				perTxn[n] = append(perTxn[n], keys[j])
			}
		}
		for _, k := range keys {
			c.overlays[k] = overlay{}
		}
	}
	for n, keys := range perTxn {
		c.firstKey[n] = int32(len(c.writes))
		c.writes = append(c.writes, keys...)
	}
	c.firstKey[len(c.txns)] = int32(len(c.writes))
	return out
}

// resolveTxn finds the writers of a transaction's reads, and checks those of its
// own writes.
func (c *commitOrder) resolveTxn(i int32, n int, writers map[written][]int32) (out []resolved, err *Error) {
	t := &c.txns[n]
	keys := c.keys[c.first[n] : c.first[n]+len(t.Ops)]
	for j, k := range keys {
		op, mine := &t.Ops[j], &c.overlays[k]
		switch {
		case op.Kind == record.Write:
			mine.wrote, mine.value = true, op.Value
		case mine.wrote:
			if mine.value != op.Value {
				return nil, c.differs(i, n, j, content{value: mine.value}, "reads %s from %q, its own write left %s")
			}
		case c.repeat && mine.read && mine.seen != op.Value:
			return nil, c.differs(i, n, j, content{value: mine.seen}, "reads %s from %q, after %s before")
		default:
			mine.read, mine.seen = true, op.Value
			w, says, err := c.writer(i, n, j, k, writers)
			if err != nil {
				return nil, err
			}
			if says {
				out = append(out, resolved{int32(j), k, w})
			}
		}
	}
	for _, k := range keys {
		c.overlays[k] = overlay{}
	}
	return out, nil
}

// writer is who wrote what operation j of transaction n read. It may be nobody
// who has a place in the order, and then the read says nothing.
func (c *commitOrder) writer(i int32, n, j int, key int32, writers map[written][]int32) (w int32, says bool, err *Error) {
	v, o := c.txns[n].Ops[j].Value, &c.objects[key]
	partial := c.opt.Coverage == record.CoveragePartial
	if partial && c.saysNothing(o, v) {
		return none, false, nil
	}
	stated := c.opt.Initial != record.InitialAny && !partial && o.value == v
	all := writers[written{key, v}]
	w = none
	for _, m := range all {
		switch {
		case int(m) == n || c.commit[m] > i:
		case w != none || stated:
			return none, false, c.ambiguous(i, n, j, w, m)
		default:
			w = m
		}
	}
	switch {
	case w != none || stated:
		return w, true, nil
	case c.opt.Initial != record.InitialAny && !partial:
		return none, false, c.nobody(i, n, j, key, all)
	case partial:
		c.presume(i, n, j, key, v, "")
		return none, false, nil
	case o.from == open:
		o.value, o.from = v, foreign
	case o.value != v:
		return none, false, c.differs(i, n, j, content{value: o.value}, "reads %s from %q, which nobody wrote before, and which held %s at first")
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
// last, nor is the value the stated initial one.
func (c *commitOrder) nobody(i int32, n, j int, key int32, later []int32) *Error {
	for _, m := range later {
		if int(m) != n {
			op := &c.txns[n].Ops[j]
			return c.fail(i, n, j, "reads %s from %q, whose writer %s has not committed yet", brief(op.Value.String()), op.Key, c.who(int(m)))
		}
	}
	return c.differs(i, n, j, content{value: c.objects[key].value}, "reads %s from %q, which nobody wrote before, and which held %s at first")
}

func (c *commitOrder) readsOf(n int32) []resolved { return c.reads[c.firstRead[n]:c.firstRead[n+1]] }
func (c *commitOrder) writesOf(n int32) []int32   { return c.writes[c.firstKey[n]:c.firstKey[n+1]] }

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
			for _, k := range c.writesOf(int32(m)) {
				c.has[uint64(m)<<32|uint64(k)] = struct{}{}
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
			if w := c.writesOf(rd.writer); len(w) <= len(reads)-q {
				for _, k := range w {
					see(k, rd.writer)
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
			if w := c.writesOf(rd.writer); len(w) <= len(reads) {
				for _, k := range w {
					see(k, rd.writer)
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
			for _, k := range c.writesOf(n) {
				see(k, n)
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
