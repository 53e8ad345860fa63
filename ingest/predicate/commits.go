package predicate

import (
	"math"
	"math/bits"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// CommitsMost is how many transactions ExplainCommits can take: whom each sees is a set of bits.
const CommitsMost = 1 << 15

// commits is an execution of an order of commits, in which each transaction sees some of those before it.
type commits struct {
	h        *History
	level    verdict.Level
	sessions map[string]set // whom the next one of a session sees; nil: it sees nobody for that
	past     []set          // at cc, by transaction: whom it sees, and itself
	writers  [][]made       // by place in the order: what it made of rows in the end
	placed   []int          // by transaction: its place in the order
	tables   []found        // by number
	own      map[*row]*version
	asked    map[*version]bool // rows that hold it, for the statement in work
}

// found is what a statement finds in a table.
type found struct {
	wrote []bool // by row: somebody has so far
	rows  int    // how many these are
	holds []*version
	round int32   // counts statements
	met   []int32 // by row: the last statement that finds it written,
	named []int32 // and that names it
	all   []int32 // rows that this statement finds written
}

// made is what a transaction made of a row.
type made struct {
	row *row
	as  *version
}

// set are places in the order, a bit for each.
type set []uint64

func (s *set) add(at int) {
	if more := at/64 + 1 - len(*s); more > 0 {
		*s = append(*s, make(set, more)...)
	}
	(*s)[at/64] |= 1 << (at % 64)
}

func (s *set) join(o set) {
	if more := len(o) - len(*s); more > 0 {
		*s = append(*s, make(set, more)...)
	}
	for i, w := range o {
		(*s)[i] |= w
	}
}

// ExplainCommits is Explain for an order of commits that satisfies a level, with whom reads are from, by transaction and
// operation of Transactions. A row that a statement found as the last one left it whom it sees anyway is explained: to
// read from that one, or the initial state where there is none, shows nobody more, and leaves nobody between. Whom it
// sees the axiom of the level says: at cc who happened before, at ra whom its transaction reads from and who came before
// it in the session, at rc whom it had read from by then. At g1, which has no axiom, each may have read from anybody
// before it, or the initial state. Of the other rows it asks, at ra and cc for one of those that hold the same: to read
// that shows the statement more of them.
func (h *History) ExplainCommits(level verdict.Level, keepsSessions bool, order []verdict.Event,
	reads [][]verdict.Source) (added int) {
	c := &commits{h: h, level: level, past: make([]set, len(h.Txns)), placed: make([]int, len(h.Txns)),
		tables: make([]found, len(h.tables)), own: map[*row]*version{}, asked: map[*version]bool{}}
	if keepsSessions {
		c.sessions = map[string]set{}
	}
	for _, t := range h.tables {
		n := len(t.rows)
		c.tables[t.number] = found{wrote: make([]bool, n), holds: make([]*version, n), met: make([]int32, n),
			named: make([]int32, n)}
	}
	for at, e := range order {
		if h.size > h.Most || at%stopEvery == stopEvery-1 && h.stop() {
			break
		}
		c.placed[e.Txn] = at
		added += c.explain(int(e.Txn), reads[e.Txn])
	}
	return added
}

// explain executes a transaction, the next in the order.
func (c *commits) explain(t int, reads []verdict.Source) (added int) {
	var sees set
	at, session := c.placed[t], c.h.Txns[t].Session
	upTo := func(op int) {
		for ; len(reads) > 0 && reads[0].Op < op; reads = reads[1:] {
			if w := reads[0].Writer; w != verdict.NoTxn && c.level == verdict.CC {
				sees.join(c.past[w])
			} else if w != verdict.NoTxn {
				sees.add(c.placed[w])
			}
		}
	}
	switch c.level {
	case verdict.CC, verdict.RA:
		sees.join(c.sessions[session])
		upTo(math.MaxInt)
	case verdict.G1:
		for before := range at {
			sees.add(before)
		}
	}
	acts := c.h.acts[t]
	clear(c.own)
	for i := range acts {
		if st := acts[i].statement; st != nil && !st.of.partly {
			if c.level == verdict.RC {
				upTo(st.begin)
			}
			added += c.explainOf(st, sees)
		}
		for r, v := range writes(acts[i : i+1]) {
			c.own[r] = v
			if of := &c.tables[r.of.number]; !of.wrote[r.number] {
				of.wrote[r.number] = true
				of.rows++
			}
		}
	}
	var wrote []made
	for r, v := range c.own {
		wrote = append(wrote, made{r, v})
	}
	c.writers = append(c.writers, wrote)
	if c.level == verdict.CC {
		sees.add(at)
		c.past[t] = sees
	}
	if c.sessions != nil && c.h.Txns[t].Status == record.Committed { // who is of unknown outcome precedes nobody
		next := c.sessions[session]
		if c.level == verdict.CC {
			next = sees
		} else {
			next.add(at)
		}
		c.sessions[session] = next
	}
	return added
}

// explainOf asks for what a statement does not find as those left it whom it sees.
func (c *commits) explainOf(st *statement, sees set) (added int) {
	f := &c.tables[st.of.number]
	f.round++
	f.all = f.all[:0]
	find := func(r *row, v *version) {
		if r.of == st.of && f.met[r.number] != f.round {
			f.met[r.number], f.holds[r.number], f.all = f.round, v, append(f.all, r.number)
		}
	}
	for r, v := range c.own {
		find(r, v)
	}
	owned := len(f.all)
	for i := len(sees) - 1; i >= 0 && len(f.all) < f.rows; i-- {
		for word := sees[i]; word != 0; {
			at := bits.Len64(word) - 1
			word &^= 1 << at
			for _, m := range c.writers[i*64+at] {
				find(m.row, m.as)
			}
		}
	}
	var last *version
	var matched bool
	matches := func(r int32) bool {
		v := f.holds[r]
		if v != last && c.h.look(st.where, v) {
			last, matched = v, v.matched(st.where)
		}
		return v != nil && matched
	}
	ask := func(n int, number int32) {
		if v := f.holds[number]; !c.asked[v] && c.h.ask(st, n, st.of.rows[number]) {
			c.asked[v] = c.level.Implies(verdict.RA)
			added++
		}
	}
	clear(c.asked)
	for n, number := range st.rows {
		if f.named[number] = f.round; f.met[number] != f.round {
			f.holds[number] = nil
		}
		if st.of.signs[number] != 0 && !(matches(number) && st.sees(n, f.holds[number])) {
			ask(n, number)
		}
	}
	if c.level == verdict.G1 {
		f.all = f.all[:owned]
	}
	f.all = slices.DeleteFunc(f.all, func(r int32) bool {
		return f.named[r] == f.round || st.of.signs[r] == 0 || !matches(r)
	})
	slices.Sort(f.all)
	clear(c.asked)
	for _, number := range f.all {
		ask(-1, number)
	}
	return added
}
