package constraint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/version"
)

// What polygraphs make of histories, to be read: a file for each kind of what may be open. The command
//
//	graph [ser|si|pc] [times] [bulk]
//
// takes a plan (see plan in rig_test.go) and draws the known graph, each edge with why it is known, then what is open,
// then an order that proves a solution, or the cycles of the violations. At si and pc T1. is the start of T1, and .T1
// its commit. What is said of satisfiability is compared with what comes of trying everything.
// To renew: go test ./incremental/constraint -run TestScripts -rewrite, and read the difference.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "graph" {
				d.Fatalf(t, "command %q: use graph", d.Cmd)
			}
			cfg := Config{Sessions: true, RealTime: d.HasArg("times"), Bulk: d.HasArg("bulk"), Split: !d.HasArg("ser"), Prefix: d.HasArg("pc")}
			pl := parse(d.Input)
			r := feed(pl, cfg)
			var b strings.Builder
			r.draw(&b)
			answer := r.answer()
			if want := pl.satisfiable(cfg); want != (answer == sat.Sat) {
				d.Fatalf(t, "%v, but by trying everything satisfiable: %v", answer, want)
			}
			r.drawAnswer(&b, answer)
			return b.String()
		})
	})
}

// name is a node, as in T1. and .T1; T1 where a transaction has one.
func (r *rig) name(n node) string {
	t := r.pl.txns[r.p.parts.Slot(n)].name
	switch {
	case r.p.parts.OnlyStarts(n):
		return t + "."
	case r.p.parts.OnlyCommits(n):
		return "." + t
	}
	return t
}

// drawEdge is an edge, as in .T1 -wr(x) by value-> T2.
func (r *rig) drawEdge(e graph.Edge) string {
	key := ""
	if e.Key != none {
		key = "(" + r.pl.keys[e.Key] + ")"
	}
	return fmt.Sprintf("%s -%v%s by %v-> %s", r.name(e.From), e.Type, key, e.Why, r.name(e.To))
}

// draw writes the known graph, and what is open.
func (r *rig) draw(b *strings.Builder) {
	for _, e := range r.p.allEdges() {
		fmt.Fprintf(b, "known: %s\n", r.drawEdge(e))
	}
	block := func(h vid) string {
		var names []string
		for v := h; v != version.None; v = r.tab.At(v).Next {
			names = append(names, r.nameOf(v))
		}
		return "[" + strings.Join(names, " ") + "]"
	}
	for _, x := range r.p.subjects.pairs {
		if x.alive {
			fmt.Fprintf(b, "open: %s of %s and of %s\n", r.pl.keys[r.tab.At(x.a).Key], block(x.a), block(x.b))
		}
	}
	for _, c := range r.p.subjects.choices {
		if c.state == choiceOpen {
			guard := ""
			if c.guarded {
				guard = ", if it took effect"
			}
			reader, key := r.pl.txns[c.reader].name, r.pl.keys[c.key]
			fmt.Fprintf(b, "open: %s read %s of %s%s\n", reader, key, r.left(reader, key), guard)
		}
	}
	for s, x := range r.pl.txns {
		if x.maybe {
			fmt.Fprintf(b, "%s: %s\n", x.name, [...]string{isIn: "took effect", mayBeIn: "may have taken effect",
				isOut: "can't have taken effect"}[r.p.subjects.maybe[slot(s)]])
		}
	}
}

// drawAnswer writes an order that proves a solution, or what was found.
func (r *rig) drawAnswer(b *strings.Builder, answer sat.Answer) {
	if answer == sat.Sat {
		var names []string
		for _, ev := range r.p.Order() {
			n := r.p.commit(slot(ev.Txn))
			if !ev.Commit {
				n = r.p.start(slot(ev.Txn))
			}
			names = append(names, r.name(n))
		}
		fmt.Fprintf(b, "satisfied by %s\n", strings.Join(names, " "))
		return
	}
	if r.diverged {
		b.WriteString("violated: two transactions overwrote one version\n")
	}
	for _, v := range r.p.TakeFound() {
		b.WriteString("violated\n")
		for _, walk := range slices.Concat([][]graph.Edge{v.Cycle}, v.Cases) {
			for i, e := range walk {
				fmt.Fprintf(b, "  %s %s\n", [...]string{"cycle:", "      "}[min(i, 1)], r.drawEdge(e))
			}
		}
		for i, walk := range v.Because {
			for k, e := range walk {
				fmt.Fprintf(b, "  edge %d, or else %s %s\n", i, [...]string{"cycle:", "      "}[min(k, 1)], r.drawEdge(e))
			}
		}
	}
}
