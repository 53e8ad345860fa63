package certificate

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// commitOrder is a replay of an order of commits, with the writer of each read
// that the axioms speak of; writers.go finds them.
type commitOrder struct {
	*replay
	repeat bool // a key read twice has to give the same
	// anyVersions: the versions of a list need not be in the order of commits.
	anyVersions bool

	chosen map[place]int32 // the writers that the certificate names
	used   int             // so many of them were of use

	reads   []resolved
	readsAt []span // by transaction
	writes  []finalWrite
	wroteAt []span            // by transaction
	last    map[written]int32 // the write of a value that committed last so far
	lists   map[int32]*listVersions
	mixed   map[int32]bool // keys that are both appended to and written

	latest []int32 // by key: a transaction, meaningful if stamp is this round's
	stamp  []int32
	met    []int32 // by transaction: the last round that met it
	round  int32
}

// place is an operation.
type place struct{ txn, op int32 }

// resolved is a read of another transaction's write, or of the initial state
// (none). A list is read from all who appended what it shows; those before the
// last are parts.
type resolved struct {
	op, key, writer int32
	part            bool
}

type span struct{ from, to int }

// commits checks an order of commits against the axioms of Biswas and Enea ("On
// the Complexity of Checking Transactional Consistency", OOPSLA 2019): whenever
// t3 reads a key from t1 and another writer t2 of it is visible to that read, t2
// commits before t1. Sessions, and that writers commit before who reads from
// them, have to be in the order as well; g1 asks for no more than that.
func (r *replay) commits(level verdict.Level, sources []verdict.Source) *Error {
	c := newCommitOrder(r, level)
	if err := c.choose(sources); err != nil {
		return err
	}
	if err := c.resolve(); err != nil {
		return r.contradicted(err)
	}
	if err := r.contradicted(nil); err != nil {
		return err
	}
	if err := c.allUsed(sources); err != nil {
		return err
	}
	switch level {
	case verdict.RC:
		return c.everyone((*commitOrder).monotonic)
	case verdict.RA:
		return c.atomicSessions()
	case verdict.CC:
		return c.causal()
	}
	return nil
}

func newCommitOrder(r *replay, level verdict.Level) *commitOrder {
	return &commitOrder{
		replay: r, repeat: level == verdict.RA || level == verdict.CC, anyVersions: level == verdict.G1,
		readsAt: make([]span, len(r.txns)), wroteAt: make([]span, len(r.txns)),
		last: map[written]int32{}, lists: map[int32]*listVersions{},
		latest: make([]int32, len(r.objects)), stamp: make([]int32, len(r.objects)), met: make([]int32, len(r.txns)),
	}
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

// noteSource notes that this round's reader reads from w; false if it has before, or w
// is nobody.
func (c *commitOrder) noteSource(w int32) bool {
	if w < 0 || c.met[w] == c.round {
		return false
	}
	c.met[w] = c.round
	return true
}

// nextRound begins a round: no source is noted, and nothing visible.
func (c *commitOrder) nextRound() { c.round++ }

// noteVisible notes that a key's writer t2 is visible in this round.
func (c *commitOrder) noteVisible(key, t2 int32) {
	if c.stamp[key] != c.round || c.commit[c.latest[key]] < c.commit[t2] {
		c.stamp[key], c.latest[key] = c.round, t2
	}
}

// visible is the visible writer of a key that commits last, or none.
func (c *commitOrder) visible(key int32) int32 {
	if c.stamp[key] != c.round {
		return none
	}
	return c.latest[key]
}

// axiom checks that t2, which is visible to a read, commits before the read's
// writer. why says how it is visible.
func (c *commitOrder) axiom(n int32, rd resolved, t2 int32, why string) *Error {
	if rd.part || t2 == none || t2 == rd.writer || c.commit[t2] < c.placeOf(rd.writer) {
		return nil
	}
	op, from := &c.txns[n].Ops[rd.op], "at first"
	if rd.writer != none {
		from = "as " + c.who(int(rd.writer)) + " wrote it"
	}
	return c.fail(c.commit[n], int(n), int(rd.op), "reads %s from %q, %s; but %s, %s, wrote the key too and commits later",
		brief(op.Value.String()), op.Key, from, c.who(int(t2)), why)
}

// everyone checks each transaction.
func (c *commitOrder) everyone(check func(c *commitOrder, n int32) *Error) *Error {
	for n := range int32(len(c.txns)) {
		if err := check(c, n); err != nil {
			return err
		}
	}
	return nil
}

// fewWrites are never worth looking up one by one.
const fewWrites = 32

// monotonic checks rc of a transaction: visible is what it had read from by
// then. For each writer that costs the lesser of its writes and the reads to
// come (AWDIT, 3.1).
func (c *commitOrder) monotonic(n int32) *Error {
	c.nextRound()
	reads := c.readsOf(n)
	for q, rd := range reads {
		if err := c.axiom(n, rd, c.visible(rd.key), "which it read from before"); err != nil {
			return err
		}
		if c.noteSource(rd.writer) {
			c.seeWrites(rd.writer, reads[q+1:])
		}
	}
	return nil
}

// seeWrites notes what a transaction wrote of the keys of some reads, or more.
func (c *commitOrder) seeWrites(w int32, reads []resolved) {
	if own := c.writesOf(w); len(own) <= max(fewWrites, len(reads)) {
		for i := range own {
			c.noteVisible(own[i].key, w)
		}
		return
	}
	for i := range reads {
		if c.writeOf(w, reads[i].key) != none {
			c.noteVisible(reads[i].key, w)
		}
	}
}

// atomicSessions checks ra.
func (c *commitOrder) atomicSessions() *Error {
	if err := c.everyone((*commitOrder).atomic); err != nil {
		return err
	}
	return c.sessionReads(func(n int32, at int, t2 int32) *Error {
		return c.axiom(n, c.reads[at], t2, "before it in its session")
	})
}

// atomic checks ra of a transaction: visible is what it reads from anywhere.
// What comes before it in its session is sessionReads' affair.
func (c *commitOrder) atomic(n int32) *Error {
	c.nextRound()
	reads := c.readsOf(n)
	for _, rd := range reads {
		if c.noteSource(rd.writer) {
			c.seeWrites(rd.writer, reads)
		}
	}
	for _, rd := range reads {
		if err := c.axiom(n, rd, c.visible(rd.key), "which it reads from"); err != nil {
			return err
		}
	}
	return nil
}

// sessionReads looks up, for each read, who of the transactions before it in its
// session wrote the key and commits last.
func (c *commitOrder) sessionReads(look func(n int32, read int, t2 int32) *Error) *Error {
	if c.opt.Sessions == record.SessionsIgnore {
		return nil
	}
	for _, members := range c.bySession() {
		c.nextRound()
		for _, n := range members {
			for at := c.readsAt[n].from; at < c.readsAt[n].to; at++ {
				if err := look(n, at, c.visible(c.reads[at].key)); err != nil {
					return err
				}
			}
			if c.txns[n].Status == record.Unknown {
				continue // it precedes nothing
			}
			for _, w := range c.writesOf(n) {
				c.noteVisible(w.key, n)
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
