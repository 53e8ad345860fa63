package oracle_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// The oracle executes; here are the same levels as Adya defines them: there are
// an order of the versions of every key and a version for each read such that
// the dependencies have no forbidden cycle. The two share nothing.
func TestExecutionsAgreeWithDependencies(t *testing.T) {
	for name, cfg := range map[string]tiny.Config{
		"duplicates": {Txns: 5, Keys: 2, Times: true, Aborted: true, Duplicates: true, Values: 2, Always: true, Updates: 40, Mutations: 3},
		"unknown":    {Txns: 5, Keys: 2, Times: true, Aborted: true, Unknown: true, Always: true, Updates: 50, Mutations: 5},
		"put back":   {Txns: 5, Keys: 2, Times: true, Aborted: true, Unknown: true, Duplicates: true, Values: 2, Back: 50, Mutations: 3},
		"lists":      {Txns: 5, Keys: 2, Times: true, Aborted: true, Appends: true, Always: true, Mutations: 2},
		"everything": {Txns: 5, Keys: 2, Times: true, Aborted: true, Duplicates: true, Unknown: true, Appends: true, Mixed: true, Mutations: 3},
		"one key":    {Txns: 5, Keys: 2, Times: true, Aborted: true, Duplicates: true, Unknown: true, Appends: true, OneKey: 100, Mutations: 3, Weak: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold, broken, levels := 0, 0, []verdict.Level{verdict.PC, verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}
			if cfg.OneKey > 0 {
				levels = append(levels, verdict.LIN)
			}
			for seed := range uint64(race.Draws(500, 2000)) {
				s, opt := random(seed, cfg)
				if seed%5 == 0 {
					opt.Sessions = record.SessionsIgnore
				}
				for _, l := range levels {
					want, got := holdsByGraph(l, s.Txns, opt), oracle.Holds(l, s.Txns, opt)
					if got != want {
						t.Fatalf("seed %d: %v: an execution explains it: %v; dependencies do: %v:\n%s", seed, l, got, want, script.Format(s))
					}
					if got {
						hold++
					} else {
						broken++
					}
				}
			}
			if hold*6 < broken || broken*6 < hold {
				t.Errorf("%d hold and %d are broken: the sample tells little", hold, broken)
			}
		})
	}
}

// holdsByGraph judges a history of complete coverage.
func holdsByGraph(l verdict.Level, txns []record.Transaction, opt record.Assumptions) bool {
	var in, unknown []int
	for i, x := range txns {
		switch x.Status {
		case record.Committed:
			in = append(in, i)
		case record.Unknown:
			unknown = append(unknown, i)
		}
	}
	for pick := range 1 << len(unknown) {
		g := dependencies{level: l, txns: txns, opt: opt, in: slices.Clone(in), edges: make([]uint32, 2*len(txns))}
		for b, i := range unknown {
			if pick&(1<<b) != 0 {
				g.in = append(g.in, i)
			}
		}
		g.orders()
		if g.keys(g.names()) {
			return true
		}
	}
	return false
}

// dependencies is a graph whose nodes 2i and 2i+1 are start and commit of
// transaction i; for the serializable levels both are one.
type dependencies struct {
	level verdict.Level
	txns  []record.Transaction
	opt   record.Assumptions
	in    []int
	edges []uint32 // by node: its successors
}

func (g *dependencies) start(i int) int { return 2 * i }

func (g *dependencies) commit(i int) int {
	if g.level == verdict.SER || g.level == verdict.SSER || g.level == verdict.LIN {
		return 2 * i
	}
	return 2*i + 1
}

func (g *dependencies) edge(from, to int) { g.edges[from] |= 1 << to }

// orders adds what does not depend on keys: starts before commits, sessions and
// clocks.
func (g *dependencies) orders() {
	for _, i := range g.in {
		if g.start(i) != g.commit(i) {
			g.edge(g.start(i), g.commit(i))
		}
		if g.txns[i].Status == record.Unknown {
			continue
		}
		for _, j := range g.in {
			a, b := &g.txns[i], &g.txns[j]
			session := i < j && a.Session == b.Session && g.opt.Sessions == record.SessionsKeep && g.level != verdict.LIN
			clock := (g.level == verdict.SSER || g.level == verdict.StrongSI || g.level == verdict.LIN) && a.HasTimes && b.HasTimes && a.End+g.opt.MaxSkew < b.Start
			if i != j && (session || clock) {
				g.edge(g.commit(i), g.start(j))
			}
		}
	}
}

func (g *dependencies) names() []string {
	var out []string
	for _, i := range g.in {
		for _, op := range g.txns[i].Ops {
			if !slices.Contains(out, op.Key) {
				out = append(out, op.Key)
			}
		}
	}
	return out
}

// keys tries every version order of the keys from the first on.
func (g *dependencies) keys(names []string) bool {
	if len(names) == 0 {
		return g.acyclic()
	}
	var writers []int
	for _, i := range g.in {
		if slices.ContainsFunc(g.txns[i].Ops, func(op record.Op) bool { return op.Key == names[0] && op.Kind != record.Read }) {
			writers = append(writers, i)
		}
	}
	for _, first := range g.initials(names[0]) {
		if permute(writers, 0, func() bool { return g.versions(names, first, writers) }) {
			return true
		}
	}
	return false
}

func (g *dependencies) isList(key string) bool {
	return slices.ContainsFunc(g.txns, func(x record.Transaction) bool {
		return slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Key == key && op.Kind == record.Append })
	})
}

// stated tells whether it is known what a key held at first.
func (g *dependencies) stated(key string) bool {
	return g.opt.Initial != record.InitialAny || g.isList(key)
}

// initials are the values that a key may have held at first.
func (g *dependencies) initials(key string) []record.Value {
	switch {
	case g.isList(key) || g.opt.Initial == record.InitialAbsent:
		return []record.Value{record.Null}
	case g.opt.Initial == record.InitialZero:
		return []record.Value{record.Int(0)}
	}
	out := []record.Value{record.String("never read")}
	for _, i := range g.in {
		for _, op := range g.txns[i].Ops {
			if op.Key == key && op.Kind == record.Read && !madeOf(g.txns, key, op.Value) && !slices.Contains(out, op.Value) {
				out = append(out, op.Value)
			}
		}
	}
	return out
}

// versions gives a key this order of writers, and tries every version for each
// transaction that reads it.
func (g *dependencies) versions(names []string, first record.Value, writers []int) bool {
	values := []record.Value{first}
	for p, w := range writers {
		values = append(values, write(g.txns[w].Ops, names[0], values[p]))
	}
	before := slices.Clone(g.edges)
	defer func() { g.edges = before }()
	to := g.start
	if g.level == verdict.PC {
		to = g.commit
	}
	for p, w := range writers {
		for _, later := range writers[p+1:] {
			g.edge(g.commit(w), to(later))
		}
	}
	return g.acyclic() && g.readers(names, values, writers, g.in)
}

// readers tries every version for the reads of the first name by these and the
// following transactions, then goes on to the next name.
func (g *dependencies) readers(names []string, values []record.Value, writers, left []int) bool {
	if len(left) == 0 {
		return g.keys(names[1:])
	}
	i := left[0]
	if !readsOthers(g.txns[i].Ops, names[0]) {
		return g.answers(i, names[0], record.Null) && g.readers(names, values, writers, left[1:])
	}
	before := slices.Clone(g.edges)
	for v, held := range values {
		switch {
		case v > 0 && writers[v-1] == i, !g.answers(i, names[0], held):
			continue
		case v == 0 && !g.stated(names[0]) && madeOf(g.txns, names[0], held):
			continue // not the initial value then
		}
		g.edges = slices.Clone(before)
		if v > 0 {
			g.edge(g.commit(writers[v-1]), g.start(i))
		}
		for _, later := range writers[v:] {
			if later != i {
				g.edge(g.start(i), g.commit(later))
			}
		}
		if g.acyclic() && g.readers(names, values, writers, left[1:]) {
			return true
		}
	}
	g.edges = before
	return false
}

func (g *dependencies) acyclic() bool {
	left := uint32(1)<<len(g.edges) - 1
	for left != 0 {
		var pointed uint32
		for n, e := range g.edges {
			if left&(1<<n) != 0 {
				pointed |= e
			}
		}
		if left&^pointed == 0 {
			return false
		}
		left &= pointed
	}
	return true
}

// permute calls f with every order of a[k:], until it says yes.
func permute(a []int, k int, f func() bool) bool {
	if k == len(a) {
		return f()
	}
	for i := k; i < len(a); i++ {
		a[k], a[i] = a[i], a[k]
		if permute(a, k+1, f) {
			return true
		}
		a[k], a[i] = a[i], a[k]
	}
	return false
}

// write is what a transaction makes of a key that held v.
func write(ops []record.Op, key string, v record.Value) record.Value {
	for _, op := range ops {
		switch {
		case op.Key != key:
		case op.Kind == record.Write:
			v = op.Value
		case op.Kind == record.Append && (v.Kind != record.KindList || v.Text == "[]"):
			v = record.Value{Kind: record.KindList, Text: "[" + op.Value.String() + "]"}
		case op.Kind == record.Append:
			v.Text = v.Text[:len(v.Text)-1] + "," + op.Value.String() + "]"
		}
	}
	return v
}

// readsOthers tells whether some read of the key shows what others wrote: it has
// no plain write before it.
func readsOthers(ops []record.Op, key string) bool {
	for _, op := range ops {
		if op.Key == key && op.Kind != record.Append {
			return op.Kind == record.Read
		}
	}
	return false
}

// answers tells whether a transaction that found v reads the key as it did.
func (g *dependencies) answers(i int, key string, v record.Value) bool {
	normal := func(v record.Value) record.Value {
		if v.Kind == record.KindList && v.Text == "[]" && g.isList(key) {
			return record.Null
		}
		return v
	}
	ops := g.txns[i].Ops
	for j, op := range ops {
		if op.Key == key && op.Kind == record.Read && normal(op.Value) != normal(write(ops[:j], key, v)) {
			return false
		}
	}
	return true
}
