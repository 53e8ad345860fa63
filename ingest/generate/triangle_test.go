package generate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// triangles counts them by trying all nodes.
func (t *Triangle) triangles() int {
	n := 0
	for a := range t.adjacent {
		for _, b := range t.adjacent[a] {
			for _, c := range t.adjacent[b] {
				if int(b) > a && c > b && slices.Contains(t.adjacent[a], c) {
					n++
				}
			}
		}
	}
	return n
}

// AWDIT's Lemmas 4.2 to 4.4, on small graphs, by the oracle.
func TestTriangleLemmas(t *testing.T) {
	for name, weakest := range map[string]verdict.Level{"triangle": verdict.RC, "triangle-ra": verdict.RA, "triangle-rc": verdict.RC} {
		c, ok := ParseConstruction(name)
		if !ok || constructionNames[c] != name {
			t.Fatalf("%s is parsed as %v, %v", name, c, ok)
		}
		seen := map[bool]int{}
		for seed := range uint64(60) {
			cfg := TriangleConfig{Seed: seed, Construction: c, Nodes: 3 + int(seed%4), Density: 0.3 + 0.2*float64(seed%4), Random: seed%5 > 0}
			tr, err := NewTriangle(cfg)
			if err != nil {
				t.Fatal(err)
			}
			free := tr.triangles() == 0
			if !free && !cfg.Random {
				t.Fatalf("%+v: a bipartite graph has a triangle", cfg)
			}
			seen[free]++
			txns, opt := slices.Collect(tr.Transactions()), record.Assumptions{}.Override(tr.Header())
			levels := map[verdict.Level]bool{weakest: true}
			for _, l := range c.Levels() {
				level, _ := verdict.ParseLevel(l)
				levels[level] = true
			}
			for l := range levels {
				if want := free || !l.Implies(weakest); oracle.Holds(l, txns, opt) != want {
					t.Fatalf("%+v, %d triangles: %v holds = %v:\n%s", cfg, tr.triangles(), l, !want, script.Format(script.Script{Txns: txns}))
				}
			}
		}
		if seen[true] < 10 || seen[false] < 10 {
			t.Errorf("%s: free of triangles or not: %v", name, seen)
		}
	}
}

func TestTriangleRecords(t *testing.T) {
	for c, ops := range []int{8, 4, 8} { // for each edge, and one for each node
		cfg := TriangleConfig{DB: "d", Seed: 3, Construction: Construction(c), Nodes: 30, Density: 0.4}
		tr, err := NewTriangle(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m := 0
		for _, bs := range tr.adjacent {
			m += len(bs)
		}
		if m /= 2; m < 60 || m > 120 { // 90 of the 225 that there could be
			t.Errorf("%d edges", m)
		}
		txns := slices.Collect(tr.Transactions())
		seq, written, ids, n := map[string]int64{}, map[string]map[record.Value]bool{}, map[string]bool{}, 0
		for _, x := range txns {
			if x.DB != "d" || x.HasTimes || !x.HasSeq || x.Seq != seq[x.Session] || ids[x.ID] {
				t.Fatalf("%+v", x)
			}
			seq[x.Session]++
			ids[x.ID] = true
			n += len(x.Ops)
			for _, op := range x.Ops {
				if written[op.Key] == nil {
					written[op.Key] = map[record.Value]bool{}
				}
				if written[op.Key][op.Value] == (op.Kind == record.Write) {
					t.Fatalf("%s: %v is written twice, or read before", x.ID, op)
				}
				written[op.Key][op.Value] = true
			}
		}
		if want := ops*m + 30; n != want || len(txns) != 60 || tr.Len() != 60 {
			t.Errorf("%v: %d operations of %d transactions, want %d of 60", Construction(c), n, len(txns), want)
		}
		if want := []int{60, 2, 1}[c]; len(seq) != want {
			t.Errorf("%v: %d sessions, want %d", Construction(c), len(seq), want)
		}
		again, _ := NewTriangle(cfg)
		if d := cmp.Diff(txns, slices.Collect(again.Transactions())); d != "" {
			t.Error(d)
		}
	}
	for _, cfg := range []TriangleConfig{{Nodes: 1}, {Nodes: 1 << 21}, {Density: -1}, {Density: 1.5}, {Nodes: 1 << 20}, {Construction: 7}} {
		if _, err := NewTriangle(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
