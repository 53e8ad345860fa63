package constraint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
)

// A plan is what a polygraph is to be told, small enough to be read and to be
// solved by trying everything. As text it has a line per transaction, in the
// order of slots:
//
//	T1 a w(x)                 session a wrote x
//	T2 b r(x)=T1 w(y)         b read T1's x
//	T3 c r(x)=T1|T4|-         c read one of T1's x, T4's x, the initial x
//	T4? d @3-5 w(x)           of unknown outcome, from time 3 to time 5
//	list x - T1 T3            a list shows these versions of x, one after the other
type plan struct {
	txns  []planTxn
	facts []fact
	lists []planList
	keys  []string
}

type planTxn struct {
	name       string
	session    string
	start, end int64
	timed      bool
	maybe      bool
	reads      []planRead
	writes     []keyID
}

type planRead struct {
	key  keyID
	from []int // transactions; initially for the initial version
}

const initially = -1

type planList struct {
	key  keyID
	from []int // transactions; initially first, or not
}

// allows tells whether the version of k by w may come at once after that by prev.
func (pl *plan) allows(k keyID, prev, w int) bool {
	for _, l := range pl.lists {
		if l.key != k {
			continue
		}
		if i := slices.Index(l.from, w); i > 0 && l.from[i-1] != prev {
			return false
		}
		if i := slices.Index(l.from, prev); i >= 0 && i+1 < len(l.from) && l.from[i+1] != w {
			return false
		}
	}
	return true
}

// A fact is one about transactions of unknown outcome.
type fact struct {
	kind factKind
	s, t int
}

type factKind string

const (
	excludes   factKind = "exclude" // s and t
	includes   factKind = "include"
	impossible factKind = "impossible"
)

func (pl *plan) key(name string) keyID {
	i := slices.Index(pl.keys, name)
	if i < 0 {
		i = len(pl.keys)
		pl.keys = append(pl.keys, name)
	}
	return keyID(i)
}

func (pl *plan) txn(name string) int {
	i := slices.IndexFunc(pl.txns, func(x planTxn) bool { return x.name == name })
	if i < 0 {
		panic("no transaction " + name)
	}
	return i
}

// parse reads a plan. Further lines "include T", "impossible T", "exclude T U"
// are facts.
func parse(text string) *plan {
	pl := &plan{}
	var lines [][]string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		lines = append(lines, f)
		if k := factKind(f[0]); k != excludes && k != includes && k != impossible && k != "list" {
			name, maybe := strings.CutSuffix(f[0], "?")
			pl.txns = append(pl.txns, planTxn{name: name, maybe: maybe, session: f[1]})
		}
	}
	at := 0
	for _, f := range lines {
		switch k := factKind(f[0]); k {
		case excludes:
			pl.facts = append(pl.facts, fact{k, pl.txn(f[1]), pl.txn(f[2])})
		case includes, impossible:
			pl.facts = append(pl.facts, fact{k, pl.txn(f[1]), 0})
		case "list":
			l := planList{key: pl.key(f[1])}
			for _, n := range f[2:] {
				if n == "-" {
					l.from = append(l.from, initially)
				} else {
					l.from = append(l.from, pl.txn(n))
				}
			}
			pl.lists = append(pl.lists, l)
		default:
			pl.parseTxn(&pl.txns[at], f[2:])
			at++
		}
	}
	return pl
}

func (pl *plan) parseTxn(x *planTxn, fields []string) {
	for _, f := range fields {
		switch {
		case f[0] == '@':
			x.timed = true
			if _, err := fmt.Sscanf(f, "@%d-%d", &x.start, &x.end); err != nil {
				panic(err)
			}
		case f[0] == 'w':
			x.writes = append(x.writes, pl.key(f[2:len(f)-1]))
		default:
			k, from, _ := strings.Cut(f[2:], ")=")
			r := planRead{key: pl.key(k)}
			for _, n := range strings.Split(from, "|") {
				if n == "-" {
					r.from = append(r.from, initially)
				} else {
					r.from = append(r.from, pl.txn(n))
				}
			}
			x.reads = append(x.reads, r)
		}
	}
}

func (pl *plan) String() string {
	var b strings.Builder
	for _, x := range pl.txns {
		b.WriteString(x.name)
		if x.maybe {
			b.WriteByte('?')
		}
		b.WriteString(" " + x.session)
		if x.timed {
			fmt.Fprintf(&b, " @%d-%d", x.start, x.end)
		}
		for _, r := range x.reads {
			var from []string
			for _, w := range r.from {
				from = append(from, pl.nameOf(w))
			}
			fmt.Fprintf(&b, " r(%s)=%s", pl.keys[r.key], strings.Join(from, "|"))
		}
		for _, k := range x.writes {
			fmt.Fprintf(&b, " w(%s)", pl.keys[k])
		}
		b.WriteByte('\n')
	}
	for _, l := range pl.lists {
		b.WriteString("list " + pl.keys[l.key])
		for _, w := range l.from {
			b.WriteString(" " + pl.nameOf(w))
		}
		b.WriteByte('\n')
	}
	for _, f := range pl.facts {
		fmt.Fprintf(&b, "%s %s", f.kind, pl.txns[f.s].name)
		if f.kind == excludes {
			b.WriteString(" " + pl.txns[f.t].name)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (pl *plan) nameOf(i int) string {
	if i == initially {
		return "-"
	}
	return pl.txns[i].name
}

// A setting is one way to keep a polygraph.
type setting struct {
	name string
	cfg  Config
}

// settings are all closures, in bulk and transaction by transaction, at SER, at
// SI and at PC.
func settings() []setting {
	base := []setting{
		{"chains", Config{Sessions: true}},
		{"chains, bulk", Config{Sessions: true, Bulk: true}},
		{"bits", Config{Sessions: true, Chains: 1000, Slots: 1}},
		{"bits, bulk", Config{Sessions: true, Chains: 1000, Slots: 1, Bulk: true}},
		{"chains, all in bulk", Config{Sessions: true, Bulk: true, Last: true}},
		{"bits, all in bulk", Config{Sessions: true, Chains: 1000, Slots: 1, Bulk: true, Last: true}},
		{"banded", Config{Sessions: true, RealTime: true}},
		{"banded, late ones in place", Config{Sessions: true, RealTime: true, Late: true}},
		{"banded, a batch", Config{Sessions: true, RealTime: true, Last: true, Bulk: true}},
	}
	var out []setting
	for _, s := range base {
		si, pc := s, s
		s.name += ", ser"
		si.name += ", si"
		si.cfg.Split = true
		pc.name += ", pc"
		pc.cfg.Split, pc.cfg.Prefix = true, true
		out = append(out, s, si, pc)
	}
	return out
}

// stopAt has the work ended as soon as stop says so.
func (r *rig) stopAt(stop func() bool) {
	all := budget.Unlimited()
	all.Stop = stop
	r.p.Budget = all.Share()
}

// rig feeds a plan to a polygraph as the engine would.
type rig struct {
	pl       *plan
	p        *Polygraph
	tab      version.Table
	fresh    []version.ID
	last     map[string]slot
	chains   map[string]uint32
	nChains  uint32
	waiting  []want
	unlisted []planList // not told yet
	// diverged: two transactions read the same version and both overwrote it,
	// which the engine reports, not the polygraph.
	diverged bool
	// each, if set, is called after every event.
	each func()
	// lend, if set, gives the slice of candidates to be told instead of this one.
	lend func([]version.ID) []version.ID
}

// want is a read that waits for its writers.
type want struct {
	reader int
	read   planRead
}

func newRig(pl *plan, cfg Config) *rig {
	r := &rig{pl: pl, last: map[string]slot{}, chains: map[string]uint32{}}
	r.tab.Candidates = func(s slot, k keyID) []version.ID {
		for _, rd := range pl.txns[s].reads {
			if rd.key == k {
				return r.versions(rd)
			}
		}
		return nil
	}
	r.p = New(cfg, &r.tab)
	return r
}

// feed makes a polygraph of a plan, facts last.
func feed(pl *plan, cfg Config) *rig {
	r := newRig(pl, cfg)
	r.feed(nil)
	return r
}

// feed tells all of the plan. rng, if given, mixes facts in and delays reads.
func (r *rig) feed(rng *rand.Rand) {
	facts := slices.Clone(r.pl.facts)
	r.unlisted = slices.Clone(r.pl.lists)
	if rng != nil {
		rng.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	}
	if r.p.bulk {
		r.feedBulk(rng, facts)
		return
	}
	for i := range r.pl.txns {
		r.add(i)
		r.write(i)
		for _, rd := range r.pl.txns[i].reads {
			r.waiting = append(r.waiting, want{i, rd})
		}
		r.serve(i, rng, func(w want) bool { return w.reader == i })
		r.settle()
		r.serve(i, rng, nil)
		r.tellLists(i, rng)
		for k := 0; k < len(facts) && rng != nil; {
			if f := facts[k]; max(f.s, f.t) > i || rng.IntN(3) > 0 {
				k++
			} else {
				r.tell(f)
				facts = slices.Delete(facts, k, k+1)
			}
		}
	}
	r.serve(len(r.pl.txns), nil, nil)
	r.settle()
	r.tellLists(len(r.pl.txns), nil)
	for _, f := range facts {
		r.tell(f)
	}
}

// tellLists tells of the lists whose transactions are there, as far as these are;
// with rng some of it only later.
func (r *rig) tellLists(upTo int, rng *rand.Rand) {
	for i := range r.unlisted {
		l := &r.unlisted[i]
		for len(l.from) > 1 && max(l.from[0], l.from[1]) <= upTo && (rng == nil || rng.IntN(2) == 0) {
			r.follow(l.key, l.from[0], l.from[1])
			l.from = l.from[1:]
		}
	}
}

// follow is that k's version by w comes at once after the one by prev.
func (r *rig) follow(k keyID, prev, w int) {
	a, b := r.versions(planRead{k, []int{prev}})[0], r.tab.WriteOf(slot(w), k)
	next := r.tab.At(a).Next
	if next != version.None && next != b || r.tab.At(b).Prev != version.None && r.tab.At(b).Prev != a {
		r.diverged = true
		return
	}
	if prev != initially {
		r.p.Follow(a, b)
	}
	if next != b {
		r.tab.Overwrite(a, b)
		was := r.tab.At(b).Fresh
		r.tab.At(b).Fresh = false
		r.p.Overwrite(a, b, was)
	}
	r.did()
}

func (r *rig) feedBulk(rng *rand.Rand, facts []fact) {
	for i := range r.pl.txns {
		r.add(i)
	}
	for i := range r.pl.txns {
		r.write(i)
	}
	if rng != nil && rng.IntN(2) == 0 {
		for _, f := range facts {
			r.tell(f)
		}
		facts = nil
	}
	for i := range r.pl.txns {
		for _, rd := range r.pl.txns[i].reads {
			r.waiting = append(r.waiting, want{i, rd})
		}
	}
	slices.SortStableFunc(r.waiting, func(a, b want) int { // plain ones first
		return cmp.Compare(min(2, len(a.read.from)), min(2, len(b.read.from)))
	})
	r.serve(len(r.pl.txns), nil, nil)
	r.tellLists(len(r.pl.txns), nil)
	for _, f := range facts {
		r.tell(f)
	}
	r.settle()
	r.p.Finish()
	r.p.Blocks()
}

// serve takes in the waiting reads whose writers are there, those that are asked
// for; with rng some of the ambiguous ones only later.
func (r *rig) serve(upTo int, rng *rand.Rand, only func(want) bool) {
	for k := 0; k < len(r.waiting); {
		w := r.waiting[k]
		late := slices.ContainsFunc(w.read.from, func(x int) bool { return x > upTo })
		if late || only != nil && !only(w) || rng != nil && len(w.read.from) > 1 && rng.IntN(2) == 0 {
			k++
			continue
		}
		r.waiting = slices.Delete(r.waiting, k, k+1)
		r.read(w)
	}
}

func (r *rig) did() {
	if r.each != nil && !r.p.bulk {
		r.each()
	}
}

func (r *rig) add(i int) {
	x := &r.pl.txns[i]
	t := Txn{Prev: version.None, Start: x.start, End: x.end, Timed: x.timed, Open: x.maybe, Uncertain: x.maybe}
	if s, ok := r.last[x.session]; ok {
		t.Prev = s
	}
	if c, ok := r.chains[x.session]; x.maybe {
		t.Chain = reach.Alone
	} else if ok {
		t.Chain = reach.Chain(c)
	} else {
		t.Chain = reach.Chain(r.nChains)
		r.nChains++
	}
	line := version.Line(t.Chain)
	if x.maybe {
		line = ^version.Line(i)
	} else {
		r.last[x.session], r.chains[x.session] = slot(i), uint32(t.Chain)
	}
	if x.maybe || !x.timed {
		r.tab.Endless(slot(i))
	}
	r.tab.Add(line, 0, 0)
	r.p.Add(t)
}

func (r *rig) write(i int) {
	for _, k := range r.pl.txns[i].writes {
		v := r.tab.Write(slot(i), k)
		r.tab.At(v).Fresh = true
		r.fresh = append(r.fresh, v)
		r.p.writers.Wrote(v, false)
	}
	r.did()
}

func (r *rig) settle() {
	for _, v := range r.fresh {
		if r.tab.At(v).Fresh {
			r.tab.At(v).Fresh = false
			r.p.Block(v)
			r.did()
		}
	}
	r.fresh = nil
}

// versions are the candidates of a read, by line and slot, the initial one first.
func (r *rig) versions(rd planRead) []version.ID {
	var out []version.ID
	for _, w := range rd.from {
		if w == initially {
			if r.tab.InitialOf(rd.key) == version.None {
				r.tab.New(rd.key, version.Initial, version.None)
			}
			out = append(out, r.tab.InitialOf(rd.key))
		} else {
			out = append(out, r.tab.WriteOf(slot(w), rd.key))
		}
	}
	line := func(v version.ID) int64 {
		if r.tab.At(v).Kind == version.Initial {
			return -1
		}
		return int64(r.tab.Line(r.tab.At(v).Writer))
	}
	slices.SortFunc(out, func(a, b version.ID) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(r.tab.At(a).Writer, r.tab.At(b).Writer))
	})
	return out
}

func (r *rig) read(w want) {
	s := slot(w.reader)
	cands := r.versions(w.read)
	if len(cands) > 1 || r.pl.txns[s].maybe {
		if r.lend != nil {
			cands = r.lend(cands)
		}
		r.p.Ambiguous(s, w.read.key, cands, r.pl.txns[s].maybe)
		r.did()
		return
	}
	v := cands[0]
	if x := w.read.from[0]; x != initially && r.pl.txns[x].maybe {
		r.p.Include(slot(x))
		r.did()
	}
	own, next := r.tab.WriteOf(s, w.read.key), r.tab.At(v).Next
	if r.p.cfg.Prefix {
		own = version.None
	}
	if own != version.None && next != version.None && next != own && r.plainly(r.tab.At(next).Writer, w.read.key) {
		r.diverged = true
		return
	}
	if own != version.None && r.tab.At(own).Prev != version.None && r.tab.At(own).Prev != v {
		r.diverged = true // a list shows that another one is before its own
		return
	}
	r.tab.Read(s, v)
	r.p.Read(s, v)
	if own != version.None && r.tab.At(v).Next == version.None { // unless the read has decided another one
		r.tab.Overwrite(v, own)
		was := r.tab.At(own).Fresh
		r.tab.At(own).Fresh = false
		r.p.Overwrite(v, own, was)
	}
	r.did()
}

// plainly: s read k from the one transaction that it can be from.
func (r *rig) plainly(s slot, k keyID) bool {
	if r.pl.isList(k) {
		return true // or a list shows it
	}
	return !r.pl.txns[s].maybe && slices.ContainsFunc(r.pl.txns[s].reads, func(rd planRead) bool { return rd.key == k && len(rd.from) == 1 })
}

func (r *rig) tell(f fact) {
	switch f.kind {
	case excludes:
		r.p.Exclude(slot(f.s), slot(f.t))
	case includes:
		r.p.Include(slot(f.s))
	case impossible:
		r.p.Impossible(slot(f.s))
	}
	r.did()
}

// answer solves what is open.
func (r *rig) answer() sat.Answer {
	if r.diverged || r.p.reports.Found > 0 {
		return sat.Unsat
	}
	return r.p.Solve(1 << 20)
}

// left are the candidates that the read of key by the named transaction still
// has, "|" between them; "gone" if the read is out, and the one version if it
// was taken.
func (r *rig) left(reader, key string) string {
	s, k := slot(r.pl.txn(reader)), r.pl.key(key)
	ci, ok := r.p.subjects.choiceOf[Read{s, k}]
	if !ok {
		return "no choice"
	}
	c := r.p.subjects.choices[ci]
	if c.state == choiceGone {
		return "gone"
	}
	var names []string
	for _, v := range c.cands {
		names = append(names, r.nameOf(v))
	}
	slices.Sort(names)
	out := strings.Join(names, "|")
	if c.state == choiceTaken {
		out = "=" + out
	}
	return out
}

func (r *rig) nameOf(v version.ID) string {
	if r.tab.At(v).Kind == version.Initial {
		return "-"
	}
	return r.pl.txns[r.tab.At(v).Writer].name
}

// follows tells whether what the second transaction writes is known to come after
// what the first does.
func (r *rig) follows(a, b string) bool {
	return r.p.reach.Reaches(r.p.commit(slot(r.pl.txn(a))), r.p.writing(slot(r.pl.txn(b))))
}

// isAcyclic orders edges between n nodes, and the steps from start to commit.
func isAcyclic(n int, parts graph.Parts, edges []graph.Edge) bool {
	in := make([]int, n)
	out := make([][]node, n)
	link := func(u, v node) {
		out[u] = append(out[u], v)
		in[v]++
	}
	for _, e := range edges {
		link(e.From, e.To)
	}
	if parts == 2 {
		for u := 0; u < n; u += 2 {
			link(node(u), node(u+1))
		}
	}
	var todo []node
	for u := range n {
		if in[u] == 0 {
			todo = append(todo, node(u))
		}
	}
	done := 0
	for ; len(todo) > 0; done++ {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, v := range out[u] {
			if in[v]--; in[v] == 0 {
				todo = append(todo, v)
			}
		}
	}
	return done == n
}

func (p *Polygraph) allEdges() []graph.Edge {
	out := make([]graph.Edge, p.g.Len())
	for i := range out {
		out[i] = p.g.Edge(graph.EdgeID(i))
	}
	return out
}

// brute tells whether a plan can be satisfied, by trying everything: which
// transactions of unknown outcome are in the history, what every read of those
// that are in it read, and every order of the versions of every key. The edges
// that follow must leave no cycle.
type brute struct {
	pl    *plan
	cfg   Config
	parts int
	in    []bool
	from  [][]int // by transaction and read
}

func (pl *plan) satisfiable(cfg Config) bool {
	b := &brute{pl: pl, cfg: cfg, parts: 1, in: make([]bool, len(pl.txns)), from: make([][]int, len(pl.txns))}
	if cfg.Split {
		b.parts = 2
	}
	for i := range pl.txns {
		b.from[i] = make([]int, len(pl.txns[i].reads))
	}
	return b.decideIn(0)
}

func (b *brute) start(i int) int  { return i * b.parts }
func (b *brute) commit(i int) int { return i*b.parts + b.parts - 1 }

// closure is, by node, the set of nodes that it reaches.
type closure [32]uint32

// with adds an edge, or returns false if it closes a cycle.
func (c closure) with(u, v int) (closure, bool) {
	if c[v]&(1<<u) != 0 {
		return c, false
	}
	for x := range c {
		if c[x]&(1<<u) != 0 {
			c[x] |= c[v]
		}
	}
	return c, true
}

func (b *brute) decideIn(i int) bool {
	if i < len(b.pl.txns) {
		if b.in[i] = true; b.decideIn(i + 1) {
			return true
		}
		if !b.pl.txns[i].maybe {
			return false
		}
		b.in[i] = false
		return b.decideIn(i + 1)
	}
	for _, f := range b.pl.facts {
		switch f.kind {
		case excludes:
			if b.in[f.s] && b.in[f.t] {
				return false
			}
		case includes:
			if !b.in[f.s] {
				return false
			}
		case impossible:
			if b.in[f.s] {
				return false
			}
		}
	}
	var c closure
	for u := range c {
		c[u] = 1 << u
	}
	ok := true
	link := func(u, v int) {
		if ok {
			c, ok = c.with(u, v)
		}
	}
	last := map[string]int{}
	for i, x := range b.pl.txns {
		if b.parts == 2 {
			link(b.start(i), b.commit(i))
		}
		if p, is := last[x.session]; is && b.cfg.Sessions {
			link(b.commit(p), b.start(i))
		}
		if !x.maybe {
			last[x.session] = i
		}
		for j, y := range b.pl.txns {
			if b.cfg.RealTime && x.timed && y.timed && !x.maybe && x.end+b.cfg.Skew < y.start {
				link(b.commit(i), b.start(j))
			}
		}
	}
	return ok && b.decideRead(0, 0, c)
}

func (b *brute) decideRead(i, r int, c closure) bool {
	if i == len(b.pl.txns) {
		return b.decideOrder(0, c)
	}
	if !b.in[i] || r == len(b.pl.txns[i].reads) {
		return b.decideRead(i+1, 0, c)
	}
	for _, w := range b.pl.txns[i].reads[r].from {
		if b.from[i][r] = w; w == initially {
			if b.decideRead(i, r+1, c) {
				return true
			}
		} else if b.in[w] {
			if d, ok := c.with(b.commit(w), b.start(i)); ok && b.decideRead(i, r+1, d) {
				return true
			}
		}
	}
	return false
}

func (b *brute) decideOrder(k int, c closure) bool {
	if k == len(b.pl.keys) {
		return true
	}
	var writers []int
	for i, x := range b.pl.txns {
		if b.in[i] && slices.Contains(x.writes, keyID(k)) {
			writers = append(writers, i)
		}
	}
	return b.permute(k, writers, initially, c)
}

// permute puts one of the rest next after prev.
func (b *brute) permute(k int, rest []int, prev int, c closure) bool {
	if len(rest) == 0 {
		return b.decideOrder(k+1, c)
	}
	for n, w := range rest {
		if !b.pl.allows(keyID(k), prev, w) {
			continue
		}
		d, ok := c, true
		if to := b.start(w); prev != initially {
			if b.cfg.Prefix {
				to = b.commit(w)
			}
			d, ok = d.with(b.commit(prev), to)
		}
		for i, x := range b.pl.txns {
			for r, rd := range x.reads {
				if ok && b.in[i] && int(rd.key) == k && b.from[i][r] == prev && i != w {
					d, ok = d.with(b.start(i), b.commit(w))
				}
			}
		}
		if ok && b.permute(k, slices.Delete(slices.Clone(rest), n, n+1), w, d) {
			return true
		}
	}
	return false
}

// replay checks an order by executing it: every read returns what was written
// last before its transaction (its start), no two overlapping ones write the
// same key at SI (but not at PC), and sessions, clocks and facts are kept.
func (pl *plan) replay(order []verdict.Event, cfg Config) error {
	started, committed := map[int]int{}, map[int]int{}
	last := make([]int, len(pl.keys))
	for k := range last {
		last[k] = initially
	}
	for at, ev := range order {
		i := int(ev.Txn)
		x := &pl.txns[i]
		if !ev.Commit || !cfg.Split {
			if _, twice := started[i]; twice {
				return fmt.Errorf("%s starts twice", x.name)
			}
			started[i] = at
			for _, rd := range x.reads {
				if !slices.Contains(rd.from, last[rd.key]) {
					return fmt.Errorf("%s reads %s from %s", x.name, pl.keys[rd.key], pl.nameOf(last[rd.key]))
				}
			}
		}
		if !ev.Commit {
			continue
		}
		if _, ok := started[i]; !ok || committed[i] > 0 {
			return fmt.Errorf("%s commits at a wrong place", x.name)
		}
		committed[i] = at + 1
		for _, k := range x.writes {
			if w := last[k]; w != initially && !cfg.Prefix && committed[w]-1 > started[i] {
				return fmt.Errorf("%s and %s overlap and both write %s", x.name, pl.txns[w].name, pl.keys[k])
			}
			if !pl.allows(k, last[k], i) {
				return fmt.Errorf("a list has no place for %s after %s", x.name, pl.nameOf(last[k]))
			}
			last[k] = i
		}
	}
	before := func(a, b int) bool { return committed[a] > 0 && committed[b] > 0 && committed[a]-1 < started[b] }
	prev := map[string]int{}
	for i, x := range pl.txns {
		if committed[i] == 0 {
			if !x.maybe {
				return fmt.Errorf("%s is missing", x.name)
			}
			continue
		}
		if p, ok := prev[x.session]; ok && cfg.Sessions && !before(p, i) {
			return fmt.Errorf("%s comes before %s of its session", x.name, pl.txns[p].name)
		}
		if !x.maybe {
			prev[x.session] = i
		}
		for j, y := range pl.txns {
			if cfg.RealTime && committed[j] > 0 && x.timed && y.timed && !x.maybe && x.end+cfg.Skew < y.start && !before(i, j) {
				return fmt.Errorf("%s does not come before %s", x.name, y.name)
			}
		}
	}
	for _, f := range pl.facts {
		s, t := committed[f.s] > 0, committed[f.t] > 0
		if f.kind == excludes && s && t || f.kind == includes && !s || f.kind == impossible && s {
			return fmt.Errorf("%s %s %s does not hold", f.kind, pl.txns[f.s].name, pl.txns[f.t].name)
		}
	}
	return nil
}

// each runs a test for every setting.
func each(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Helper()
	for _, s := range settings() {
		t.Run(s.name, func(t *testing.T) { f(t, s.cfg) })
	}
}
