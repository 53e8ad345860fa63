package generate

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// HardConfig says what formula a hard history is made of. Zero fields have the
// defaults that their comments name.
type HardConfig struct {
	DB   string // record.DefaultDB
	Seed uint64
	// Variables of the formula; 100.
	Variables int
	// Ratio of clauses to variables, 4.26: there half of the random formulas are
	// satisfiable, and those of either kind are hardest to tell. Fewer clauses
	// make a history that is valid, more one that is not.
	Ratio float64
}

// Hard is a history whose judgement at ser, and likewise at si, is a question of
// propositional logic: both levels hold exactly if a random formula of three literals a
// clause is satisfiable, which nobody knows beforehand. It is the reduction
// of MTC's Appendix C (Theorem 8) and of Biswas and Enea's Theorem 3.2, which it
// follows. The appendix needs duplicate values, because its transactions read what
// they write; with blind writes values may be unique, as they are here.
//
// For a variable there are two transactions, a and b, that only others refer to; the
// variable is true if b precedes a. For each literal there are three:
//
//	variable true          literal x            literal not x
//	                   y ──▶ a   b ──▶ w     y ──▶ b   a ──▶ w
//	     b ··▶ a        y and z write v; w reads z's version
//
// If z precedes y, w, which read z's version, precedes y as well, and then b ─▶ w ─▶ y ─▶ a:
// the variable has the value that makes the literal true. So the literal is
// true if z precedes y. Within a clause each z precedes the next literal's y, around:
// were y before z for all of them, that would be a cycle.
//
// Conversely, given a satisfying assignment, let z precede y for the true literals
// and follow it for the others. The y of a true literal reaches a or b alone, and from there only the
// w of false literals, which reach nothing; and a clause's circle is broken
// at a true literal. So there is no cycle, and ser holds. No cycle above has two
// adjacent anti-dependencies, hence si is broken whenever ser is.
//
// The arrows that cross sessions are reads of keys that nobody else uses.
type Hard struct {
	txns []record.Transaction
}

// Satisfiable random formulas turn into unsatisfiable ones at this ratio.
const threshold = 4.26

// clauseSize is how many literals a clause has.
const clauseSize = 3

// NewHard makes the history; time and space are linear in the number of clauses.
func NewHard(cfg HardConfig) (*Hard, error) {
	cfg.DB = cmp.Or(cfg.DB, record.DefaultDB)
	cfg.Variables = cmp.Or(cfg.Variables, 100)
	cfg.Ratio = cmp.Or(cfg.Ratio, threshold)
	if cfg.Variables < clauseSize || cfg.Variables > 1<<20 {
		return nil, fmt.Errorf("variables: %d is out of range; use %d to %d", cfg.Variables, clauseSize, 1<<20)
	}
	if !(cfg.Ratio > 0 && cfg.Ratio <= 100) {
		return nil, fmt.Errorf("clauses per variable: %v is out of range; use a number above 0 and up to 100", cfg.Ratio)
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, 0x3_5a7))
	f := formula{variables: cfg.Variables}
	for range max(1, int(math.Round(cfg.Ratio*float64(cfg.Variables)))) {
		f.clauses = append(f.clauses, randomClause(rng, cfg.Variables))
	}
	return &Hard{f.history(cfg.DB, rng)}, nil
}

// Header is what a reader must assume.
func (h *Hard) Header() record.Header { return headerOf(record.InitialAny) }

// Len is how many transactions there are.
func (h *Hard) Len() int { return len(h.txns) }

// Transactions yields the history, writers before their readers.
func (h *Hard) Transactions() iter.Seq[record.Transaction] { return slices.Values(h.txns) }

// literal is a variable or its negation.
type literal struct {
	variable int
	negated  bool
}

// formula is in conjunctive normal form.
type formula struct {
	variables int
	clauses   [][]literal
}

// randomClause draws different variables and their signs.
func randomClause(rng *rand.Rand, variables int) []literal {
	var c []literal
	for len(c) < clauseSize {
		l := literal{rng.IntN(variables), rng.IntN(2) == 0}
		if !slices.ContainsFunc(c, func(o literal) bool { return o.variable == l.variable }) {
			c = append(c, l)
		}
	}
	return c
}

// history is the formula's history. Sessions carry the arrows z ─▶ y of a clause, and
// those from a and from b, whose w may as well follow each other. Of what has no
// order the order in the file is drawn from rng.
func (f *formula) history(db string, rng *rand.Rand) []record.Transaction {
	write := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Write, Key: key, Value: record.Int(value)}
	}
	read := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Read, Key: key, Value: record.Int(value)}
	}
	var zs, ys, ws []record.Transaction
	ends := make([]record.Transaction, 2*f.variables) // a, b of each variable
	end := func(variable int, b bool) *record.Transaction {
		if b {
			return &ends[2*variable+1]
		}
		return &ends[2*variable]
	}
	for i := range ends {
		ends[i] = record.Transaction{Session: "x" + strconv.Itoa(i/2) + string("ab"[i%2])}
	}
	for i, c := range f.clauses {
		for j, l := range c {
			name := strconv.Itoa(i) + "." + strconv.Itoa(j)
			next := strconv.Itoa(i) + "." + strconv.Itoa((j+1)%len(c))
			version, arrow := "v"+name, "y"+name
			to, from := end(l.variable, l.negated), end(l.variable, !l.negated)
			zs = append(zs, record.Transaction{Session: "c" + next, Ops: []record.Op{write(version, 2)}})
			ys = append(ys, record.Transaction{Session: "c" + name, Ops: []record.Op{write(version, 1), write(arrow, 1)}})
			to.Ops = append(to.Ops, read(arrow, 1))
			ws = append(ws, record.Transaction{Session: from.Session, Ops: []record.Op{read(version, 2)}})
		}
	}
	// Each step only follows what stands before it.
	var out []record.Transaction
	for _, step := range [][]record.Transaction{zs, ys, ends, ws} {
		rng.Shuffle(len(step), func(i, j int) { step[i], step[j] = step[j], step[i] })
		out = append(out, step...)
	}
	seq := map[string]int64{}
	for i := range out {
		t := &out[i]
		t.DB, t.HasSeq, t.Seq = db, true, seq[t.Session]
		t.ID = t.Session + "#" + strconv.FormatInt(t.Seq, 10)
		seq[t.Session]++
	}
	return out
}
