package constraint

import (
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// decisions are what reachability alone must decide. Lines of want:
//
//	A < B          A's writes are known to come before B's
//	R x T1|T2      R's read of x has these candidates left
//	R x =T1        R read T1's x
//	R x gone       R's read is out of the history
//
// Nothing else may be open. Transactions come in the order of lines, so that a
// line further down is news to those above: "late" cases fail if nobody watches
// the node that the news reaches.
var decisions = []struct {
	name, plan, want string
	open             int    // pairs and choices that stay open
	pc               string // want at prefix consistency, if it is another
	openPC           int    // open there
}{
	{name: "case I: the order that closes a cycle of version order falls", plan: `
		S s w(x) w(y)
		T t r(y)=S w(x)
		`, want: `S < T`},
	{name: "case I, late, at the first version's writer", plan: `
		T t r(q)=M w(x)
		S s w(x) w(p)
		M m r(p)=S w(q)
		`, want: `S < T`},
	{name: "case I, late, the other way round", plan: `
		S s w(x) w(p)
		T t r(q)=M w(x)
		M m r(p)=S w(q)
		`, want: `S < T`},
	{name: "case III: the order whose anti-dependency closes a cycle falls", plan: `
		T t w(x)
		U u w(x) w(y)
		S s r(x)=T r(y)=U
		`, want: `U < T`},
	{name: "case III, late, at a reader that was there", plan: `
		T t w(x)
		S s r(x)=T r(y)=M
		U u w(x) w(p)
		M m r(p)=U w(y)
		`, want: `U < T`},
	{name: "case III, late, at a reader that came to an open pair", plan: `
		T t w(x)
		U u w(x) w(p)
		S s r(x)=T r(y)=M
		M m r(p)=U w(y)
		`, want: `U < T`},
	{name: "case I, late, at a tail that has moved on", plan: `
		T t w(x)
		U u w(x) w(p)
		V v r(x)=T w(x) r(y)=M
		M m r(p)=U w(y)
		`, want: `U < T`},
	{name: "case I, late, at the commit alone of a tail that has moved on", plan: `
		T t w(x)
		U u w(x) w(p)
		V v r(x)=T w(x) w(z)
		Q q r(z)=- r(y)=M
		M m r(p)=U w(y)
		`, want: `U < T`, pc: `U < V`, openPC: 1},
	{name: "case III, late, at a reader of a tail that has moved on", plan: `
		T t w(x)
		U u w(x) w(p)
		V v r(x)=T w(x)
		S s r(x)=V r(y)=M
		M m r(p)=U w(y)
		`, want: `U < T
		U < V`, pc: `U < V
		T < V`, openPC: 1},
	{name: "blocks that become one", plan: `
		A a w(x) w(p)
		B b r(x)=C w(x)
		D d r(p)=A w(x)
		C c r(x)=D w(x)
		`, want: `A < D
		D < B`},
	{name: "case II: a writer that comes after the reader", plan: `
		T t w(x)
		R r r(x)=T|U
		U r w(x)
		`, want: `R x =T`},
	{name: "case II, late, at the writer", plan: `
		T t w(x)
		U u r(z)=M w(x)
		R r r(x)=T|U
		M r w(z)
		`, want: `R x =T`},
	{name: "case II: of many writers all but one come later", plan: `
		T t w(x)
		R r r(x)=T|A|B|C|D
		A r w(x)
		B r w(x)
		C r w(x)
		D r w(x)
		`, want: `R x =T`},
	{name: "case III: a writer with another between it and the reader", plan: `
		T t w(x)
		U t w(x) w(y)
		V v w(x)
		R r r(x)=T|V r(y)=U
		`, want: `R x =V
		U < V`},
	{name: "case III, late, before the reader", plan: `
		T t w(x)
		U t w(x) w(p)
		V v w(x)
		R r r(x)=T|V r(y)=M
		M m r(p)=U w(y)
		`, want: `R x =V`},
	{name: "case III, late, between the two writers alone", plan: `
		T t w(x) w(p)
		V v w(x)
		R r r(x)=T|V r(y)=U r(v)=M
		U u w(x) r(q)=M w(y)
		M m r(p)=T w(q) w(v)
		`, want: `R x =V`},
	{name: "a writer that began before the one between committed", plan: `
		T t r(p)=- w(x)
		U u w(x) w(p)
		V v w(x)
		R r r(x)=T|V r(p)=U
		`, want: `R x =V
		T < U`, pc: `R x T|V`, openPC: 4},
	{name: "a writer that comes to be between", plan: `
		T t w(x) w(p)
		V v w(x)
		R r r(x)=T|V r(y)=M
		M m r(p)=T w(x) w(y)
		`, want: `R x =V`},
	{name: "the initial version falls with any writer before the reader", plan: `
		T t w(x)
		U u w(x) w(y)
		R r r(x)=-|T r(y)=U
		`, want: `R x =T
		U < T`},
	{name: "the initial version, late", plan: `
		T t w(x)
		U u w(x) w(p)
		R r r(x)=-|T r(y)=M
		M m r(p)=U w(y)
		`, want: `R x =T
		U < T`},
	{name: "the initial version remains", plan: `
		R r r(x)=-|T|U
		T r w(x)
		U u r(p)=V w(x)
		V r w(p)
		`, want: `R x =-`},
	{name: "a reader that overwrites what another one has overwritten", plan: `
		T t w(x)
		V v r(x)=T w(x)
		U u w(x)
		R r r(x)=T|U w(x)
		`, want: `R x =U`, open: 1, pc: `R x T|U`, openPC: 5},
	{name: "what was taken decides the next", plan: `
		T t w(x) w(y)
		R r r(x)=T|U
		U r w(x) w(y)
		Q r r(y)=T|U
		S s r(z)=Z r(x)=T|U
		Z r w(z)
		`, want: `R x =T
		Q y =U
		S x =U
		T < U`},
	{name: "nothing decides", plan: `
		T t w(x)
		U u w(x)
		R r r(x)=-|T|U
		`, want: `R x -|T|U`, open: 2},
	{name: "who may not have taken effect binds nothing", plan: `
		T t w(x)
		U t w(x)
		R? t r(x)=T|U w(y)
		S s r(y)=R|V
		V v w(y)
		`, want: `R x U
		S y R|V`, open: 3},
	{name: "out with no candidate, and so is who read from it", plan: `
		T t w(x)
		U t w(x)
		R? t r(x)=T w(y)
		Q? q r(y)=R w(z)
		S s r(z)=Q|V
		V v w(z)
		`, want: `R x gone
		Q y gone
		S z =V`, open: 1},
	{name: "in by being all that is left, and then its reads bind", plan: `
		A a w(v)
		B a w(v)
		R? a r(v)=A|B w(x)
		S s r(x)=R|V
		V s w(x)
		`, want: `S x =R
		R v =B`},
	{name: "in by one, out by another", plan: `
		A a w(x)
		R? r w(x)
		Q? q w(x)
		S s r(x)=R|V
		V s w(x)
		W w r(x)=Q|A
		exclude R Q
		`, want: `S x =R
		W x =A`, open: 5},
	{name: "a write of a transaction whose own read was the first ambiguous one of the key", plan: `
		T t w(x)
		V v w(x)
		U? u r(x)=T w(x) w(z)
		Q q r(z)=U w(p)
		R r r(p)=Q r(x)=T|V
		`, want: `U x =T
		R x =V
		U < V`},
	{name: "the same, of which it is not known what it read", plan: `
		T u w(x)
		V v w(x)
		S s w(x)
		U? u r(x)=S|V w(x) w(z)
		Q q r(z)=U w(p)
		R r r(p)=Q r(x)=T|V
		`, want: `R x =V
		T < V`},
}

func TestDecisions(t *testing.T) {
	for _, d := range decisions {
		t.Run(d.name, func(t *testing.T) {
			pl := parse(d.plan)
			each(t, func(t *testing.T, cfg Config) {
				r := feed(pl, cfg)
				if r.p.reports.Found > 0 {
					t.Fatalf("violations: %+v", r.p.reports.TakeFound())
				}
				want, open := d.want, d.open
				if cfg.Prefix && d.pc != "" {
					want, open = d.pc, d.openPC
				}
				r.check(t, want)
				if n := r.p.Undecided(); n > open || n < open && !cfg.Bulk { // in bulk, more is known before pairs are made
					t.Errorf("%d pairs and choices are open, not %d", n, open)
				}
				if got := r.p.Solve(1 << 20); (got == sat.Sat) != pl.satisfiable(cfg) {
					t.Errorf("%v, but that it can be satisfied is %v", got, pl.satisfiable(cfg))
				}
			})
		})
	}
}

// check compares what is decided with lines of decisions' want.
func (r *rig) check(t *testing.T, want string) {
	t.Helper()
	for line := range strings.Lines(want) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[1] == "<":
			if !r.follows(f[0], f[2]) {
				t.Errorf("%s is not known to come before %s", f[0], f[2])
			}
		default:
			if got := r.left(f[0], f[1]); got != f[2] {
				t.Errorf("%s's read of %s has left %s, not %s", f[0], f[1], got, f[2])
			}
		}
	}
}
