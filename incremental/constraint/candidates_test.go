package constraint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/version"
)

// crowded is a plan of many writers of x, in sessions and of unknown outcome,
// tied by reads of other keys, and of reads of x that could be of any of them.
func crowded(rng *rand.Rand) *plan {
	var b strings.Builder
	const writers, readers = 45, 8
	for i := range writers {
		maybe := ""
		if rng.IntN(6) == 0 {
			maybe = "?"
		}
		fmt.Fprintf(&b, "W%d%s s%d w(x) w(k%d)", i, maybe, rng.IntN(5), i)
		if i > 0 && maybe == "" {
			fmt.Fprintf(&b, " r(k%[1]d)=W%[1]d", rng.IntN(i))
		}
		b.WriteByte('\n')
	}
	for i := range readers {
		if i > 0 && rng.IntN(2) == 0 { // a tie that comes late
			fmt.Fprintf(&b, "L%d s%d w(l%d) r(k%[4]d)=W%[4]d\n", i, rng.IntN(5), i, rng.IntN(writers))
		}
		fmt.Fprintf(&b, "R%d %s r(k%[3]d)=W%[3]d r(x)=", i, map[bool]string{true: "r", false: fmt.Sprintf("s%d", rng.IntN(5))}[rng.IntN(2) == 0], rng.IntN(writers))
		var from []string
		few := rng.IntN(2) == 0
		for j := range writers {
			if few && rng.IntN(20) == 0 || !few && rng.IntN(4) > 0 || len(from) == 0 && j == writers-1 {
				from = append(from, fmt.Sprintf("W%d", j))
			}
		}
		if rng.IntN(2) == 0 {
			from = append(from, "-")
		}
		b.WriteString(strings.Join(from, "|") + "\n")
	}
	return parse(b.String())
}

// Of many candidates, which are told by lines, the same are left as if each had
// been asked for: when all is decided, an open read has exactly those that
// nothing excludes, and one that was taken is the only such.
func TestManyCandidates(t *testing.T) {
	each(t, func(t *testing.T, cfg Config) {
		t.Parallel()
		open, taken, dropped := 0, 0, 0
		for seed := range uint64(60) {
			r := feed(crowded(rand.New(rand.NewPCG(seed, 9))), cfg)
			p := r.p
			for ci := range p.subjects.choices {
				c := &p.subjects.choices[ci]
				all := p.tab.Candidates(c.reader, c.key)
				if c.state == choiceGone || p.reports.Found > 0 {
					continue
				}
				var want []version.ID
				behind := p.writers.behind(c.key, c.reader, nil)
				for _, v := range all {
					if _, out := p.writers.excluded(v, c.reader, behind); !out {
						want = append(want, v)
					}
				}
				if c.state == choiceTaken {
					taken++
				} else {
					open++
				}
				if len(all) > 16 {
					dropped += len(all) - len(want)
				}
				if !slices.Equal(c.cands, want) {
					t.Fatalf("seed %d: %s has left %v, but %v are not excluded", seed, r.pl.txns[c.reader].name, c.cands, want)
				}
			}
		}
		if open < 50 || taken == 0 || dropped < 500 {
			t.Errorf("the sample tells little: %d open, %d taken, %d candidates dropped", open, taken, dropped)
		}
	})
}

// Slices of candidates may be shared between reads, and stay as they are.
func TestSharedCandidates(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "W%d s%d w(x) w(k%d)\n", i, i%3, i)
	}
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("W%d", i))
	}
	for i, few := range [][]string{all, all, all[:5], all[:5]} { // each comes after another writer
		fmt.Fprintf(&b, "R%d r%d r(k%d)=W%d r(x)=%s\n", i, i, []int{9, 14, 3, 4}[i], []int{9, 14, 3, 4}[i], strings.Join(few, "|"))
	}
	pl := parse(b.String())
	each(t, func(t *testing.T, cfg Config) {
		r := newRig(pl, cfg)
		lent := map[string][]version.ID{}
		copies := map[string][]version.ID{}
		r.lend = func(cands []version.ID) []version.ID {
			name := fmt.Sprint(cands)
			if lent[name] == nil {
				lent[name], copies[name] = cands, slices.Clone(cands)
			}
			return lent[name]
		}
		r.feed(nil)
		if len(lent) != 2 {
			t.Fatalf("%d slices", len(lent))
		}
		for name, vs := range lent {
			if !slices.Equal(vs, copies[name]) {
				t.Errorf("candidates %v have become %v", copies[name], vs)
			}
		}
		var left []int
		for i := range r.p.subjects.choices {
			left = append(left, len(r.p.subjects.choices[i].cands))
		}
		if slices.Contains(left[:2], 20) || slices.Contains(left[2:], 5) {
			t.Errorf("nothing was dropped: %d candidates are left", left)
		}
	})
}

// What is said of transactions of unknown outcome may be said in any order.
var anyOrder = []struct{ name, plan, want string }{
	{"one in, the other out", `
		U? u w(x)
		V? v w(x)
		R r r(x)=U|V
		exclude U V
		include U
		`, "R x =U"},
	{"what needs the excluded one is out too", `
		U? u w(x)
		V? v w(x) w(y)
		W? w r(y)=V w(z)
		R r r(z)=W|T
		T t w(z)
		exclude U V
		include U
		`, "R z =T"},
	{"one impossible", `
		U? u w(x)
		V? v w(x)
		R r r(x)=U|V
		exclude U V
		impossible V
		`, "R x =U"},
	{"both impossible", `
		U? u w(x)
		V? v w(x)
		R r r(x)=U|V
		impossible U
		impossible V
		`, "R x gone"},
	{"in and impossible", `
		U? u w(x)
		V? v w(x)
		include U
		impossible U
		exclude V U
		`, ""},
	{"two that exclude each other are needed", `
		U? u w(x)
		V? v w(y)
		R r r(x)=U|A r(y)=V|B
		A r w(x)
		B r w(y)
		exclude U V
		`, ""},
	{"a third of which each excludes one", `
		U? u w(x)
		V? v w(x)
		W? w w(x)
		R r r(x)=U|V|W
		exclude U W
		exclude V W
		include W
		`, "R x =W"},
	{"it needs what it excludes", `
		T? t w(x)
		U? u r(x)=T
		exclude T U
		include U
		`, ""},
	{"it needs what it excludes, and need not be", `
		T? t w(x)
		U? u r(x)=T w(y)
		R r r(y)=U|V
		V v w(y)
		exclude T U
		`, ""},
}

func TestFactsInAnyOrder(t *testing.T) {
	for _, c := range anyOrder {
		t.Run(c.name, func(t *testing.T) {
			pl := parse(c.plan)
			each(t, func(t *testing.T, cfg Config) {
				want := pl.satisfiable(cfg)
				permutations(pl.events(), func(order []event) {
					r := newRig(pl, cfg)
					r.feedEvents(order)
					if got := r.answer(); (got == sat.Sat) != want {
						t.Fatalf("%v, but that it can be satisfied is %v; in the order %+v", got, want, order)
					}
					if want {
						r.check(t, c.want)
						if err := pl.replay(r.p.solver.Order(), cfg); err != nil {
							t.Fatalf("the order is wrong: %v; in the order %+v", err, order)
						}
					}
				})
			})
		})
	}
}

// An event is a read or a fact.
type event struct {
	read want
	fact fact
}

func (pl *plan) events() []event {
	var out []event
	for i, x := range pl.txns {
		for _, rd := range x.reads {
			out = append(out, event{read: want{i, rd}})
		}
	}
	for _, f := range pl.facts {
		out = append(out, event{fact: f})
	}
	return out
}

// feedEvents gives all transactions, then the events in this order.
func (r *rig) feedEvents(order []event) {
	for i := range r.pl.txns {
		r.add(i)
		r.write(i)
		if !r.p.bulk {
			r.settle()
		}
	}
	for _, e := range order {
		if e.fact.kind != "" {
			r.tell(e.fact)
		} else {
			r.read(e.read)
		}
	}
	r.settle()
	r.p.Finish()
	r.p.Blocks()
}

func permutations(of []event, f func([]event)) {
	var put func(done, rest []event)
	put = func(done, rest []event) {
		if len(rest) == 0 {
			f(done)
		}
		for i := range rest {
			put(append(slices.Clone(done), rest[i]), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	put(nil, of)
}

// A transaction of unknown outcome that somebody certainly read from, though it
// can't have taken effect, is a violation; so is one that takes the last writer.
func TestIncludeOfTheRuledOut(t *testing.T) {
	each(t, func(t *testing.T, cfg Config) {
		for name, text := range map[string]string{
			"impossible":           "U? u w(x)\nimpossible U\ninclude U",
			"its read is too late": "A a w(x)\nB a w(x)\nU? a r(x)=A\ninclude U",
			"it excludes itself":   "T? t w(x)\nU? u r(x)=T\nexclude T U\ninclude U",
			"excluded":             "T? t w(x)\nU? u w(x)\nexclude T U\ninclude T\ninclude U",
		} {
			r := feed(parse(text), cfg)
			if r.answer() != sat.Unsat || r.p.reports.Found == 0 || len(r.p.reports.TakeFound()) == 0 {
				t.Errorf("%s: %v, %d violations", name, r.answer(), r.p.reports.Found)
			}
		}
	})
}

// A solution is not kept when what it rests on is no more.
func TestSolutionIsNotStale(t *testing.T) {
	pl := parse(`
		U? u w(x)
		V v w(x)
		W w w(x)
		X x w(x)
		R r r(x)=U|V|W
		`)
	each(t, func(t *testing.T, cfg Config) {
		if cfg.Bulk && !cfg.RealTime {
			return
		}
		r := feed(pl, cfg)
		u, reader := slot(pl.txn("U")), slot(pl.txn("R"))
		for range 3 { // until it reads from U
			if r.p.Solve(1000) != sat.Sat {
				t.Fatal("not satisfied")
			}
		}
		r.p.Impossible(u)
		if got := r.p.Solve(1000); got != sat.Sat {
			t.Fatalf("%v without U", got)
		}
		for _, c := range r.p.subjects.choices {
			if c.state == choiceOpen && c.reader == reader && c.last != none && r.nameOf(c.last) == "U" {
				t.Error("the solution still reads from U")
			}
		}
		for _, ev := range r.p.solver.Order() {
			if slot(ev.Txn) == u {
				t.Error("U is in the order though it is out")
			}
		}
		r.p.Include(u)
		if r.p.reports.Found == 0 {
			t.Error("U is in and out")
		}
	})
}
