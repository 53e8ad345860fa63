package generate

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec/intern"
	"github.com/isowatch/isowatch/ingest/record"
)

// Construction is one of AWDIT's reductions of triangle freeness (section 4).
type Construction uint8

// The constructions. A graph without triangles makes the first valid at cc, and one with
// triangles breaks it at rc; the second is valid at ra, and the third at rc, exactly if
// there is no triangle.
const (
	TriangleAlone Construction = iota // each transaction in a session of its own (4.1)
	TriangleRA                        // two sessions: one that writes, one that reads (4.2)
	TriangleRC                        // one session: it writes, then it reads (4.2)
)

var constructionNames = [...]string{"triangle", "triangle-ra", "triangle-rc"}

// Constructions lists their names, which are names of workloads.
func Constructions() []string { return constructionNames[:] }

// ParseConstruction is the construction of that name.
func ParseConstruction(s string) (Construction, bool) {
	return record.Named[Construction](constructionNames[:], s)
}

// Levels lists the levels at which the construction is valid if the graph has no
// triangle, strongest first.
func (c Construction) Levels() []string {
	return [][]string{{"cc", "ra", "rc", "g1"}, {"ra", "rc", "g1"}, {"rc", "g1"}}[c]
}

// TriangleConfig says what graph a triangle history is made of. Zero fields have the
// defaults that their comments name.
type TriangleConfig struct {
	DB           string // record.DefaultDB
	Seed         uint64
	Construction Construction
	// Nodes of the graph; 100.
	Nodes int
	// Density is the share of the possible edges that there are; 0.5.
	Density float64
	// Random: any two nodes may be joined, so that there are triangles unless the
	// graph is small or sparse. Else the graph is bipartite, and there are none.
	Random bool
}

// edgesMax bounds the memory that a graph takes, at 8 bytes an edge.
const edgesMax = 1 << 27

// Triangle is a graph as a history whose judgement at rc, ra or cc says whether the graph has a triangle,
// which is believed to take n^1.5 steps for n operations (AWDIT, section 4.1; without
// fast multiplication of matrices). No store executes it.
//
// For a node a there are a transaction that writes, Wa, and one that reads, Ra. With an
// edge a─b
//
//	Wa  writes x_a and x_b, and, if program order matters, y_a_b
//	Ra  reads y_b_a, which Wb wrote; and then, after all those, x_b as Wb wrote it
//
// If c is joined to a and b, Rc reads x_a from Wa after it read from Wb. If a and b are joined
// as well, Wb wrote x_a, and has to commit before Wa; and, likewise, Wa before Wb.
// Without the y the same holds at ra, where the order of reads does not matter.
type Triangle struct {
	cfg      TriangleConfig
	adjacent [][]int32
	names    []string // of x, by node
	text     intern.Text
}

// NewTriangle makes the graph: time is quadratic in the number of nodes, space linear
// in that of edges.
func NewTriangle(cfg TriangleConfig) (*Triangle, error) {
	cfg.DB = cmp.Or(cfg.DB, record.DefaultDB)
	cfg.Nodes = cmp.Or(cfg.Nodes, 100)
	cfg.Density = cmp.Or(cfg.Density, 0.5)
	if cfg.Nodes < 2 || cfg.Nodes > 1<<20 {
		return nil, fmt.Errorf("nodes of the graph: %d is out of range; use 2 to %d", cfg.Nodes, 1<<20)
	}
	if !(cfg.Density > 0 && cfg.Density <= 1) {
		return nil, fmt.Errorf("density of the graph: %v is out of range; use a number above 0 and up to 1", cfg.Density)
	}
	if int(cfg.Construction) >= len(constructionNames) {
		return nil, fmt.Errorf("construction is none of this package's constants")
	}
	pairs := float64(cfg.Nodes) * float64(cfg.Nodes) / 2
	if !cfg.Random {
		pairs /= 2
	}
	if edges := pairs * cfg.Density; edges > edgesMax {
		return nil, fmt.Errorf("the graph has %.0f edges; use fewer nodes or a lower density, for at most %d", edges,
			edgesMax)
	}
	t := &Triangle{cfg: cfg, adjacent: make([][]int32, cfg.Nodes), names: make([]string, cfg.Nodes)}
	for a := range t.names {
		t.names[a] = "x" + strconv.Itoa(a+1)
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, 0x7_41a))
	// Half of the nodes of a bipartite graph are on either side, drawn so that
	// numbers say nothing.
	side := make([]bool, cfg.Nodes)
	for i, a := range rng.Perm(cfg.Nodes) {
		side[a] = i%2 == 0
	}
	for a := range cfg.Nodes {
		for b := range a {
			if (cfg.Random || side[a] != side[b]) && rng.Float64() < cfg.Density {
				t.adjacent[a] = append(t.adjacent[a], int32(b))
				t.adjacent[b] = append(t.adjacent[b], int32(a))
			}
		}
	}
	return t, nil
}

// Header is what a reader must assume.
func (t *Triangle) Header() record.Header { return headerOf(record.InitialAny) }

// Len is how many transactions there are.
func (t *Triangle) Len() int { return 2 * t.cfg.Nodes }

// Transactions yields the history, writers before readers.
func (t *Triangle) Transactions() iter.Seq[record.Transaction] {
	return func(yield func(record.Transaction) bool) {
		for i := range 2 * t.cfg.Nodes {
			a, reads := i%t.cfg.Nodes, i >= t.cfg.Nodes
			x := record.Transaction{DB: t.cfg.DB, HasSeq: true}
			switch t.cfg.Construction {
			case TriangleAlone:
				x.Session = "w" + strconv.Itoa(a+1)
				if reads {
					x.Session = "r" + strconv.Itoa(a+1)
				}
			case TriangleRA:
				x.Session, x.Seq = "w", int64(a)
				if reads {
					x.Session = "r"
				}
			case TriangleRC:
				x.Session, x.Seq = "s", int64(i)
			}
			x.ID = x.Session + "#" + strconv.FormatInt(x.Seq, 10)
			if reads {
				x.Ops = t.reads(a)
			} else {
				x.Ops = t.writes(a)
			}
			if !yield(x) {
				return
			}
		}
	}
}

func (t *Triangle) writes(a int) []record.Op {
	bs, own := t.adjacent[a], record.Int(int64(a+1))
	ops := make([]record.Op, 0, 2*len(bs)+1)
	for _, b := range bs {
		ops = append(ops, record.Op{Kind: record.Write, Key: t.names[b], Value: own})
		if t.cfg.Construction != TriangleRA {
			ops = append(ops, record.Op{Kind: record.Write, Key: t.arrow(a, int(b)), Value: own})
		}
	}
	return append(ops, record.Op{Kind: record.Write, Key: t.names[a], Value: own})
}

func (t *Triangle) reads(a int) []record.Op {
	bs := t.adjacent[a]
	ops := make([]record.Op, 0, 2*len(bs))
	if t.cfg.Construction != TriangleRA {
		for _, b := range bs {
			ops = append(ops, record.Op{Kind: record.Read, Key: t.arrow(int(b), a), Value: record.Int(int64(b + 1))})
		}
	}
	for _, b := range bs {
		ops = append(ops, record.Op{Kind: record.Read, Key: t.names[b], Value: record.Int(int64(b + 1))})
	}
	return ops
}

// arrow is the key that leads from Wa to Rb and to nobody else.
func (t *Triangle) arrow(a, b int) string {
	var buf [32]byte
	name := strconv.AppendInt(append(buf[:0], 'y'), int64(a+1), 10)
	return t.text.String(strconv.AppendInt(append(name, '.'), int64(b+1), 10))
}
