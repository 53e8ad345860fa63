package constraint

import (
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// What prefix consistency allows and what not, beside snapshot isolation.
var prefixes = []struct {
	name, plan string
	pc, si     bool
}{
	{"lost update", `
		Z z w(x)
		A a r(x)=Z w(x)
		B b r(x)=Z w(x)
		R r r(x)=B`, true, false},
	{"lost update of the initial version", `
		A a r(x)=- w(x)
		B b r(x)=- w(x)
		C c r(x)=A w(x)`, true, false},
	{"what was overwritten comes before", `
		Z z w(x)
		A a r(x)=Z w(x) w(y)
		B b r(y)=A r(x)=Z`, false, false},
	{"an update that the session has overwritten", `
		Z z w(x)
		A a r(x)=Z w(x)
		B a r(x)=Z w(x)`, false, false},
	{"write skew", `
		Z z w(x) w(y)
		A a r(x)=Z r(y)=Z w(x)
		B b r(x)=Z r(y)=Z w(y)`, true, true},
	{"long fork", `
		Z z w(x) w(y)
		A a r(x)=Z w(x)
		B b r(y)=Z w(y)
		R r r(x)=A r(y)=Z
		S s r(x)=Z r(y)=B`, false, false},
	{"two orders of commits", `
		A a w(x) w(y)
		B b w(x) w(y)
		R r r(x)=A r(y)=B`, false, false},
	{"an appender that saw less than came before it", `
		A a w(x)
		B b w(x)
		C c r(x)=A w(x)
		R r r(x)=C
		list x - A B C`, true, false},
	{"an appender that saw what came after it", `
		A a w(x)
		B b w(x)
		C c r(x)=B w(x)
		R r r(x)=B
		list x - A C B`, false, false},
	{"a reader of a list that comes back to less", `
		A a w(x)
		B b w(x) w(y)
		R r r(x)=A r(y)=B
		list x - A B`, false, false},
}

func TestPrefixes(t *testing.T) {
	for _, c := range prefixes {
		pl := parse(c.plan)
		each(t, func(t *testing.T, cfg Config) {
			want := c.si
			switch {
			case cfg.Prefix:
				want = c.pc
			case !cfg.Split:
				return
			}
			if pl.satisfiable(cfg) != want {
				t.Errorf("%s: by trying everything it is not %v", c.name, want)
			}
			r := feed(pl, cfg)
			if got := r.answer(); (got == sat.Sat) != want {
				t.Errorf("%s: %v, violations %+v", c.name, got, r.p.reports.TakeFound())
			}
		})
	}
}

// Whoever read a version and overwrote it is why another reader of it comes before
// it: a fact, which needs no further proof.
func TestUpdateIsWhy(t *testing.T) {
	texts := map[string]string{
		"of a version":   "Z z w(x)\nA a r(x)=Z w(x) w(y)\nB b r(y)=A r(x)=Z",
		"of the initial": "A a r(x)=- w(x) w(y)\nB b r(y)=A r(x)=-",
	}
	for name, text := range texts {
		each(t, func(t *testing.T, cfg Config) {
			if !cfg.Prefix {
				return
			}
			r := feed(parse(text), cfg)
			found := r.p.reports.TakeFound()
			if len(found) != 1 {
				t.Fatalf("%s: %d violations", name, len(found))
			}
			v := found[0]
			if err := isCycle(r.p, v.Cycle, 2); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rw := slices.IndexFunc(v.Cycle, func(e graph.Edge) bool { return e.Type == verdict.RW })
			if rw < 0 || len(v.Cycle) != 2 || v.Because[rw] != nil || v.Assumed || v.Whole {
				t.Fatalf("%s: %+v", name, v)
			}
			if why := v.Cycle[rw].Why; why != verdict.ByOverwrite && !(strings.Contains(name, "initial") && why == verdict.ByInitial) {
				t.Errorf("%s: the anti-dependency is known %v", name, why)
			}
		})
	}
}

// Why a candidate falls is shown by closed walks: T's version comes before U's
// because U read what T wrote, not because T began before U committed.
func TestWhyCandidatesFall(t *testing.T) {
	pl := parse(`
		T t r(p)=- w(x) w(a)
		U u r(a)=T w(x) w(p)
		V v w(x)
		R r r(x)=T|V r(p)=U`)
	each(t, func(t *testing.T, cfg Config) {
		r := feed(pl, cfg)
		r.check(t, "R x =V")
		fallen := r.tab.WriteOf(slot(pl.txn("T")), pl.key("x"))
		f, ok := r.p.reports.wouldClose(fallen, slot(pl.txn("R")), none)
		if !ok || f.order == nil {
			t.Fatalf("%v, %v", ok, f)
		}
		for _, c := range [2][]step{f.cycle, f.order} {
			if err := isCycle(r.p, edges(c), 2); err != nil {
				t.Errorf("%v: %+v", err, c)
			}
		}
	})
}
