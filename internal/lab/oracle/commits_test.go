package oracle_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

// The oracle looks for cycles among what the axioms of the weak levels ask for.
// Here commit orders are written down instead, all of them, one transaction after
// the other; each transaction, as it commits, picks what it read among what has
// committed, and the axiom is looked up. The two share nothing.
func TestAxiomsAgreeWithCommitOrders(t *testing.T) {
	for name, cfg := range map[string]tiny.Config{
		"unique":     {Txns: 5, Keys: 3, Aborted: true, Mutations: 2, Weak: 70},
		"duplicates": {Txns: 5, Keys: 2, Aborted: true, Duplicates: true, Values: 2, Always: true, Updates: 20, Mutations: 3, Weak: 50},
		"unknown":    {Txns: 5, Keys: 2, Aborted: true, Unknown: true, Always: true, Updates: 20, Mutations: 4, Weak: 50},
		"put back":   {Txns: 5, Keys: 2, Aborted: true, Unknown: true, Duplicates: true, Values: 2, Back: 50, Mutations: 4, Weak: 60},
		"lists":      {Txns: 5, Keys: 2, Aborted: true, Appends: true, Always: true, Mutations: 2, Weak: 60},
		"partial":    {Txns: 4, Keys: 2, Partial: true, Always: true, Mutations: 3, Weak: 60},
		"everything": {Txns: 4, Keys: 2, Aborted: true, Duplicates: true, Unknown: true, Appends: true, Mixed: true, Partial: true, PartialLists: true, Mutations: 3, Weak: 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := map[string][2]int{} // by axiom: that don't hold, that do
			for seed := range uint64(1500) {
				s, opt := random(seed, cfg)
				if seed%7 == 0 {
					opt.Sessions = record.SessionsIgnore
				}
				opt.UnseenUnique = new(opt.Coverage != record.CoveragePartial || seed%5 != 0)
				for _, a := range axioms {
					c, ok := newCommitting(a, s.Txns, opt)
					if !ok {
						continue // too many that were not seen
					}
					want, got := c.holds(), a.holds(s.Txns, opt)
					if got != want {
						t.Fatalf("seed %d: %s: the oracle says %v, commit orders %v (unseen unique %v):\n%s", seed, a.name, got, want, *opt.UnseenUnique, script.Format(s))
					}
					n := told[a.name]
					n[map[bool]int{false: 0, true: 1}[got]]++
					told[a.name] = n
				}
			}
			for name, n := range told {
				if n[0] < 50 || n[1] < 50 {
					t.Errorf("%s: %d hold and %d don't: the sample tells little", name, n[1], n[0])
				}
			}
		})
	}
}

// readAxiom is a weak level or guarantee: whether a writer that committed before
// t is visible to a read of t, the op-th operation.
type readAxiom struct {
	name    string
	holds   func([]record.Transaction, record.Assumptions) bool
	visible func(c *committing, writer, t, op int) bool
	g1      bool
}

func level(l verdict.Level, visible func(c *committing, writer, t, op int) bool) readAxiom {
	return readAxiom{name: l.String(), visible: visible, g1: l == verdict.G1, holds: func(txns []record.Transaction, opt record.Assumptions) bool {
		return oracle.Holds(l, txns, opt)
	}}
}

func guarantee(g verdict.Guarantee, visible func(c *committing, writer, t, op int) bool) readAxiom {
	return readAxiom{name: g.String(), visible: visible, holds: func(txns []record.Transaction, opt record.Assumptions) bool {
		return oracle.HoldsGuarantee(g, txns, opt)
	}}
}

var axioms = []readAxiom{
	level(verdict.G1, func(*committing, int, int, int) bool { return false }),
	level(verdict.RC, func(c *committing, w, t, op int) bool { return c.readFrom(t, w, op) }),
	level(verdict.RA, func(c *committing, w, t, _ int) bool { return c.inSession(w, t) || c.readFrom(t, w, all) }),
	level(verdict.CC, func(c *committing, w, t, _ int) bool { return c.past(t)&(1<<w) != 0 }),
	guarantee(verdict.ReadYourWrites, func(c *committing, w, t, _ int) bool { return c.inSession(w, t) }),
	guarantee(verdict.MonotonicReads, func(c *committing, w, t, _ int) bool {
		return slices.ContainsFunc(c.in, func(s int) bool { return c.inSession(s, t) && c.readFrom(s, w, all) })
	}),
	guarantee(verdict.MonotonicWrites, func(c *committing, w, t, _ int) bool {
		return slices.ContainsFunc(c.in, func(s int) bool { return c.readFrom(t, s, all) && c.inSession(w, s) })
	}),
	guarantee(verdict.WritesFollowReads, func(c *committing, w, t, _ int) bool {
		return slices.ContainsFunc(c.in, func(s int) bool {
			return c.readFrom(t, s, all) && (c.readFrom(s, w, all) || slices.ContainsFunc(c.in, func(p int) bool { return c.inSession(p, s) && c.readFrom(p, w, all) }))
		})
	}),
}

const all = 1 << 20 // more operations than a transaction has

const nobody = -1 // who wrote the initial state

// committing is a commit order in the making.
type committing struct {
	axiom readAxiom
	txns  []record.Transaction // the last ones were not seen
	seen  int
	opt   record.Assumptions
	in    []int // took effect

	order []int
	place []int // by transaction: in order
	start map[string]record.Value
	got   [][]fetched             // by transaction: its reads
	lists map[string][]registered // g1: the versions of each list
}

// fetched is a read of what others wrote.
type fetched struct {
	op   int
	key  string
	last int   // who wrote the version
	from []int // whose elements it has
}

// registered is a version of a key: a plain value, or elements and who appended
// each.
type registered struct {
	last  int
	plain record.Value
	texts []string
	by    []int
}

// newCommitting puts in, under partial coverage, the transactions that were not
// seen and may have written what was read: as ones of unknown outcome.
func newCommitting(a readAxiom, txns []record.Transaction, opt record.Assumptions) (*committing, bool) {
	c := &committing{axiom: a, txns: slices.Clone(txns), seen: len(txns), opt: opt}
	if opt.Coverage == record.CoveragePartial {
		for _, x := range txns {
			for _, op := range x.Ops {
				if op.Kind != record.Read || x.Status == record.Aborted {
					continue
				}
				if !c.isList(op.Key) {
					if opt.UnseenRepeat() || !madeOf(c.txns[:c.seen], op.Key, op.Value) {
						c.unseen(record.Op{Kind: record.Write, Key: op.Key, Value: op.Value})
					}
					continue
				}
				for _, e := range shown(op.Value) {
					add := record.Op{Kind: record.Append, Key: op.Key, Value: e}
					known := slices.ContainsFunc(txns, func(x record.Transaction) bool { return slices.Contains(x.Ops, add) })
					again := slices.ContainsFunc(c.txns[c.seen:], func(x record.Transaction) bool { return x.Ops[0] == add })
					if (opt.UnseenRepeat() || !known) && !again {
						c.unseen(add)
					}
				}
			}
		}
	}
	c.place = make([]int, len(c.txns))
	return c, len(c.txns) <= 6
}

func (c *committing) unseen(op record.Op) {
	name := "unseen " + string(rune('a'+len(c.txns)))
	c.txns = append(c.txns, record.Transaction{ID: name, Session: name, Status: record.Unknown, Ops: []record.Op{op}})
}

func (c *committing) isList(key string) bool {
	return slices.ContainsFunc(c.txns, func(x record.Transaction) bool {
		return slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Key == key && op.Kind == record.Append })
	})
}

// madeOf: somebody wrote the value and had not read it of others before.
func madeOf(txns []record.Transaction, key string, v record.Value) bool {
	for _, x := range txns {
		for i, op := range x.Ops {
			if op != (record.Op{Kind: record.Write, Key: key, Value: v}) {
				continue
			}
			own := slices.IndexFunc(x.Ops, func(op record.Op) bool { return op.Key == key && op.Kind != record.Read })
			if !slices.Contains(x.Ops[:min(i, own)], record.Op{Kind: record.Read, Key: key, Value: v}) {
				return true
			}
		}
	}
	return false
}

// shown are the elements of a list of numbers.
func shown(v record.Value) []record.Value {
	var out []record.Value
	n, digits := int64(0), false
	for _, c := range v.Text {
		switch {
		case v.Kind != record.KindList:
		case c >= '0' && c <= '9':
			n, digits = n*10+int64(c-'0'), true
		case digits:
			out, n, digits = append(out, record.Int(n)), 0, false
		}
	}
	return out
}

func (c *committing) holds() bool {
	var committed, open []int
	for i, x := range c.txns {
		switch x.Status {
		case record.Committed:
			committed = append(committed, i)
		case record.Unknown:
			open = append(open, i)
		}
	}
	for pick := range 1 << len(open) {
		c.in = slices.Clone(committed)
		for b, i := range open {
			if pick&(1<<b) != 0 {
				c.in = append(c.in, i)
			}
		}
		c.order, c.start, c.got = nil, map[string]record.Value{}, make([][]fetched, len(c.txns))
		for i := range c.place {
			c.place[i] = all
		}
		if c.anyLists(c.listKeys()) {
			return true
		}
	}
	return false
}

func (c *committing) listKeys() []string {
	var out []string
	for _, i := range c.in {
		for _, op := range c.txns[i].Ops {
			if c.isList(op.Key) && !slices.Contains(out, op.Key) {
				out = append(out, op.Key)
			}
		}
	}
	return out
}

// anyLists gives, for g1, the lists' versions every order; they are the commit
// order's otherwise.
func (c *committing) anyLists(keys []string) bool {
	if !c.axiom.g1 || len(keys) == 0 {
		return c.next()
	}
	if c.lists == nil {
		c.lists = map[string][]registered{}
	}
	var writers []int
	for _, i := range c.in {
		if c.writes(i, keys[0]) {
			writers = append(writers, i)
		}
	}
	return permute(writers, 0, func() bool {
		c.lists[keys[0]] = c.replayed(keys[0], writers)
		return c.anyLists(keys[1:])
	})
}

func (c *committing) writes(i int, key string) bool {
	return slices.ContainsFunc(c.txns[i].Ops, func(op record.Op) bool { return op.Key == key && op.Kind != record.Read })
}

// replayed are the versions of a list that these writers make, in this order.
func (c *committing) replayed(key string, writers []int) []registered {
	v := registered{last: nobody, plain: record.Null}
	out := []registered{v}
	for _, w := range writers {
		v = v.changed(c.txns[w].Ops, key, w)
		out = append(out, v)
	}
	return out
}

// changed is what a transaction makes of a version.
func (v registered) changed(ops []record.Op, key string, by int) registered {
	v.last, v.texts, v.by = by, slices.Clone(v.texts), slices.Clone(v.by)
	for _, op := range ops {
		switch {
		case op.Key != key || op.Kind == record.Read:
		case op.Kind == record.Write:
			v.plain, v.texts, v.by = op.Value, nil, nil
			for _, e := range shown(op.Value) {
				v.texts, v.by = append(v.texts, e.String()), append(v.by, by)
			}
		default:
			v.plain, v.texts, v.by = record.Null, append(v.texts, op.Value.String()), append(v.by, by)
		}
	}
	return v
}

// is tells whether a version of a list reads as value does.
func (v registered) is(value record.Value) bool {
	empty := func(v record.Value) bool { return v.IsNull() || v.Kind == record.KindList && v.Text == "[]" }
	if len(v.texts) == 0 {
		return v.plain == value || empty(v.plain) && empty(value)
	}
	var texts []string
	for _, e := range shown(value) {
		texts = append(texts, e.String())
	}
	return slices.Equal(v.texts, texts)
}

// next lets one more transaction commit.
func (c *committing) next() bool {
	if len(c.order) == len(c.in) {
		return true
	}
	for _, i := range c.in {
		early := slices.ContainsFunc(c.in, func(s int) bool { return c.inSession(s, i) && c.place[s] == all })
		if c.place[i] != all || early {
			continue
		}
		if c.fetch(i, 0) {
			return true
		}
	}
	return false
}

// fetch lets transaction i find what it read from its op-th operation on, and
// then commit.
func (c *committing) fetch(i, op int) bool {
	ops := c.txns[i].Ops
	if op == len(ops) {
		return c.commit(i)
	}
	o := ops[op]
	if o.Kind != record.Read {
		return c.fetch(i, op+1)
	}
	wrote, touched := false, false
	for _, before := range ops[:op] {
		if before.Key == o.Key {
			wrote = wrote || before.Kind == record.Write
			touched = touched || before.Kind != record.Read
		}
	}
	if wrote {
		own := registered{plain: record.Null}.changed(ops[:op], o.Key, i)
		return (own.is(o.Value) && c.isList(o.Key) || !c.isList(o.Key) && own.plain == o.Value) && c.fetch(i, op+1)
	}
	found := func(last int, from []int) bool {
		c.got[i] = append(c.got[i], fetched{op: op, key: o.Key, last: last, from: from})
		ok := c.fetch(i, op+1)
		c.got[i] = c.got[i][:len(c.got[i])-1]
		return ok
	}
	if c.isList(o.Key) {
		for _, v := range c.versions(o.Key) {
			now := v
			if touched {
				now = v.changed(ops[:op], o.Key, i)
			}
			ready := v.last == nobody || c.place[v.last] != all
			for _, w := range v.by {
				ready = ready && c.place[w] != all
			}
			if ready && now.is(o.Value) && found(v.last, v.by) {
				return true
			}
		}
		return false
	}
	for _, w := range c.order {
		if w >= c.seen && (c.opt.UnseenUnique == nil || *c.opt.UnseenUnique) && madeOf(c.txns[:c.seen], o.Key, o.Value) {
			continue
		}
		if c.writes(w, o.Key) && write(c.txns[w].Ops, o.Key, record.Null) == o.Value && found(w, nil) {
			return true
		}
	}
	return c.initially(i, o, func() bool { return found(nobody, nil) })
}

// versions are those of a list so far.
func (c *committing) versions(key string) []registered {
	if c.axiom.g1 {
		return c.lists[key]
	}
	return c.replayed(key, slices.DeleteFunc(slices.Clone(c.order), func(w int) bool { return !c.writes(w, key) }))
}

// initially calls found if what transaction i read may be the initial value.
func (c *committing) initially(i int, o record.Op, found func() bool) bool {
	switch c.opt.Initial {
	case record.InitialAbsent:
		return o.Value.IsNull() && found()
	case record.InitialZero:
		return o.Value == record.Int(0) && found()
	}
	if madeOf(c.txns[:c.seen], o.Key, o.Value) {
		return false
	}
	if held, known := c.start[o.Key]; known {
		return held == o.Value && found()
	}
	c.start[o.Key] = o.Value
	ok := found()
	delete(c.start, o.Key)
	return ok
}

// commit appends transaction i, if the axiom is kept by what it read.
func (c *committing) commit(i int) bool {
	for _, r := range c.got[i] {
		at := -1
		if r.last != nobody {
			at = c.place[r.last]
		}
		for _, w := range c.order[at+1:] {
			if c.writes(w, r.key) && c.axiom.visible(c, w, i, r.op) {
				return false
			}
		}
	}
	got := c.got[i]
	c.place[i] = len(c.order)
	c.order = append(c.order, i)
	if c.next() {
		return true
	}
	c.order = c.order[:len(c.order)-1]
	c.place[i], c.got[i] = all, got
	return false
}

// inSession tells whether a precedes b in their session.
func (c *committing) inSession(a, b int) bool {
	return c.opt.Sessions == record.SessionsKeep && a < b && c.txns[a].Session == c.txns[b].Session && c.txns[a].Status == record.Committed
}

// readFrom tells whether t read from w before its op-th operation.
func (c *committing) readFrom(t, w, op int) bool {
	return slices.ContainsFunc(c.got[t], func(r fetched) bool { return r.op < op && (r.last == w || slices.Contains(r.from, w)) })
}

// past is whatever a path of session order and read-from leads to t from.
func (c *committing) past(t int) uint32 {
	var out uint32
	for _, w := range c.order {
		if w != t && (c.inSession(w, t) || c.readFrom(t, w, all)) {
			out |= c.past(w) | 1<<w
		}
	}
	return out
}
