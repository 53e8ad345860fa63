package incremental_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// cuttings is how many histories of each kind are cut in each way; a failure
// prints the seed, and -cuttings 1 -seed SEED repeats it.
var cuttings = flag.Int("cuttings", race.Draws(20, 60), "random histories for each way of forgetting and each kind of history")

// A memory says what of the transactions before a segment its engine is given
// again: those of their operations that are not forgotten. It must not depend on
// more than them, so that a failing history can be made smaller.
type memory struct {
	name string
	// stub is what is left of past[i]; nothing, if it has no operations.
	stub func(c *cutting, past []record.Transaction, i int) []record.Op
	// late: stubs are not given first but each before the first record that
	// touches one of its keys, then without a place in a session.
	late bool
	// base: and if its engine can place them before what comes.
	base bool
}

// finals are the last write of a transaction to a key, or its appends.
func finals(ops []record.Op, key string) []record.Op {
	var out []record.Op
	for _, op := range ops {
		if op.Key != key || op.Kind == record.Read {
			continue
		}
		if op.Kind == record.Write {
			out = out[:0]
		}
		out = append(out, op)
	}
	return out
}

// frontier is what package window/frontier keeps in principle: the final writes of
// which it isn't proved that another one came later, and those of unknown outcome.
func frontier(c *cutting, past []record.Transaction, i int) []record.Op {
	var out []record.Op
	for _, k := range writtenKeys(past[i].Ops) {
		if past[i].Status == record.Aborted || slices.ContainsFunc(past, func(y record.Transaction) bool { return c.overwritten(&past[i], &y, k) }) {
			continue
		}
		out = append(out, finals(past[i].Ops, k)...)
	}
	return out
}

// overwritten: y's version of the key is after x's in the order of the clocks.
func (c *cutting) overwritten(x, y *record.Transaction, key string) bool {
	return x.Status == record.Committed && y.Status == record.Committed && len(finals(y.Ops, key)) > 0 && x.HasTimes && y.HasTimes && x.End+c.whole.opt.MaxSkew < y.Start
}

// some keeps of each key what chance says: everything, the final write, the reads,
// or nothing.
func some(c *cutting, past []record.Transaction, i int) []record.Op {
	var out []record.Op
	for _, op := range past[i].Ops {
		switch c.chance(past[i].ID, op.Key) % 5 {
		case 0:
			out = append(out, op)
		case 1, 2:
			if f := finals(past[i].Ops, op.Key); slices.Contains(f, op) {
				out = append(out, op)
			}
		case 3:
			if op.Kind == record.Read && len(finals(past[i].Ops, op.Key)) == 0 {
				out = append(out, op)
			}
		}
	}
	return out
}

func nothing(*cutting, []record.Transaction, int) []record.Op { return nil }

var memories = []memory{
	{name: "frontier", stub: frontier},
	{name: "frontier, when touched", stub: frontier, late: true},
	{name: "frontier, at the base", stub: frontier, late: true, base: true},
	{name: "some", stub: some},
	{name: "some, when touched", stub: some, late: true},
	{name: "nothing", stub: nothing},
}

// A cutting is a history, and where the engine that checks it is replaced by one
// that has forgotten most of what the one before knew.
type cutting struct {
	whole  stream
	memory *memory
	seed   uint64
	// segment and overlap are how many records are new to an engine, and how many
	// of those before it is given again.
	segment, overlap int
	byKey            bool // coverage is complete, but for lossy keys
	uncertain        bool // values are not taken to be unique
}

// chance is a number that depends on the seed, a transaction and one of its keys.
func (c *cutting) chance(id, key string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, id, "/", key)
	return h.Sum64() >> 7
}

// portions are what the engines get, one after the other.
func (c *cutting) portions() []portion {
	var out []portion
	for from := 0; from < len(c.whole.txns); from += c.segment {
		p := portion{stream: stream{opt: c.whole.opt}, open: from+c.segment < len(c.whole.txns)}
		again := max(0, from-c.overlap)
		stubs := c.remember(&p, again)
		loaded := map[string]bool{}
		load := func(ops []record.Op) {
			for _, op := range ops {
				if loaded[op.Key] {
					continue
				}
				loaded[op.Key] = true
				for i, x := range stubs.txns {
					of := slices.DeleteFunc(slices.Clone(x.Ops), func(o record.Op) bool { return o.Key != op.Key })
					if len(of) > 0 { // what else x did comes as another transaction, if at all
						x.Ops, x.Session, x.HasSeq = of, "stub of "+x.ID+" of "+op.Key, false // its session may have gone on
						if !c.memory.base {
							p.add(x, stubs.end[i], noTick, stubs.of[i])
						} else if c.isBase(&x, again) {
							p.add(x, stubs.end[i], noTick, stubs.of[i])
							p.base = append(p.base, true)
						} else {
							p.lose(op.Key)
						}
					}
				}
			}
		}
		if !c.memory.late {
			for i, x := range stubs.txns {
				p.add(x, stubs.end[i], noTick, stubs.of[i])
			}
		}
		p.seeds, p.base = len(p.txns), make([]bool, len(p.txns))
		for i := again; i < min(from+c.segment, len(c.whole.txns)); i++ {
			if c.memory.late {
				load(c.whole.txns[i].Ops)
			}
			tick := c.whole.tick[i]
			if i < from {
				tick = noTick
			}
			p.add(c.whole.txns[i], c.whole.end[i], tick, i)
			p.base = append(p.base, make([]bool, len(p.txns)-len(p.base))...)
		}
		c.promise(&p)
		out = append(out, p)
	}
	return out
}

func (p *portion) add(x record.Transaction, end, tick int64, of int) {
	p.txns, p.end, p.tick, p.of = append(p.txns, x), append(p.end, end), append(p.tick, tick), append(p.of, of)
}

// remember are the stubs of the first n transactions; the keys are noted of which a write is forgotten, or that what was
// written had been read there before: its writer would seem to have made it. So nothing is left of it if that was aborted.
func (c *cutting) remember(p *portion, n int) (stubs portion) {
	past := c.whole.txns[:n]
	for i, x := range past {
		ops := c.memory.stub(c, past, i)
		for _, op := range x.Ops {
			back := record.Op{Kind: record.Write, Key: op.Key, Value: op.Value}
			if !slices.Contains(ops, op) && (op.Kind != record.Read || slices.Contains(x.Ops, back)) {
				p.lose(op.Key)
				if x.Status == record.Aborted {
					ops = slices.DeleteFunc(ops, func(o record.Op) bool { return o == back })
				}
			}
		}
		if len(ops) > 0 {
			x.Ops = ops
			stubs.add(x, c.whole.end[i], noTick, i)
		}
	}
	return stubs
}

func (p *portion) lose(key string) {
	if !slices.Contains(p.lossy, key) {
		p.lossy = append(p.lossy, key)
	}
}

// isBase tells whether a stub has an end, and had it when the first record after
// the stubs of which that is known ended.
func (c *cutting) isBase(x *record.Transaction, from int) bool {
	timed := func(x *record.Transaction) bool { return x.HasTimes && x.Status == record.Committed }
	for i := from; i < len(c.whole.txns); i++ {
		if y := &c.whole.txns[i]; timed(y) {
			return timed(x) && x.End <= y.End
		}
	}
	return timed(x)
}

// promise sets what the engine may assume of a portion.
func (c *cutting) promise(p *portion) {
	if !c.byKey {
		p.opt.Coverage, p.lossy = record.CoveragePartial, nil
	}
	p.opt.UniqueValues = c.whole.opt.UniqueValues && !c.uncertain && tiny.Unique(c.whole.txns, p.opt.Initial)
	var sure []record.Transaction // the engine may take none of the others
	for i, x := range p.txns {
		if !p.base[i] {
			sure = append(sure, x)
		}
	}
	p.opt.UnseenUnique = new(!c.uncertain && !repeatsUnseen(c.whole.txns, sure))
}

// examine has every portion judged.
func (c *cutting) examine() (broken int, found *complaint) {
	whole := definition(c.whole.txns, c.whole.opt)
	for i, p := range c.portions() {
		levels, wrong := p.judge(whole)
		if wrong != nil {
			wrong.says = fmt.Sprintf("engine %d: %s\n%v", i+1, wrong.says, &p)
			return broken, wrong
		}
		broken += len(levels)
	}
	return broken, nil
}

func (c *cutting) String() string {
	return fmt.Sprintf("%v# cut every %d, overlap %d, remembered: %s, by key %v", &c.whole, c.segment, c.overlap, c.memory.name, c.byKey)
}

// smaller are the cuttings of a history with one thing less.
func (c *cutting) smaller() []cutting {
	var out []cutting
	for _, w := range c.whole.smaller() {
		for _, segment := range []int{c.segment, c.segment - 1} {
			if s := *c; segment > 0 {
				s.whole, s.segment = w, segment
				out = append(out, s)
			}
		}
	}
	if c.overlap > 0 {
		s := *c
		s.overlap--
		out = append(out, s)
	}
	return out
}

// Where the engine is cut and how little the next one remembers, nobody is
// accused of what the whole history has not done, and what is there by itself is
// found.
func TestForgettingAccusesNobody(t *testing.T) {
	total := &count{}
	t.Cleanup(func() { t.Log(total) })
	for i := range memories {
		for j, k := range kinds {
			m := &memories[i]
			t.Run(m.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				var n count
				longer := func(c *tiny.Config) {
					k.set(c)
					c.Txns = max(c.Txns, 7)
				}
				for try := range *cuttings {
					seed := *seedFrom + uint64(try)
					st, ok := wholeHistory(seed, i+j, kind{k.name, longer})
					if !ok {
						continue
					}
					rng := rand.New(rand.NewPCG(seed, uint64(42+i)))
					c := cutting{whole: st, memory: m, seed: seed, segment: 1 + rng.IntN(4), overlap: rng.IntN(4),
						byKey: st.opt.Coverage == record.CoverageComplete && rng.IntN(3) > 0, uncertain: rng.IntN(8) == 0}
					broken, wrong := c.examine()
					if wrong != nil {
						small, again := reduced(c, wrong.class, func(c *cutting) *complaint { _, w := c.examine(); return w }, (*cutting).smaller)
						if again == nil {
							again = wrong
						}
						t.Fatalf("seed %d: %s: %s\n%v", seed, again.class, again.says, &small)
					}
					sound, want := 0, definition(st.txns, st.opt)
					for _, l := range within(st.opt.Levels, st.txns) {
						if want.holds(l) {
							sound++
						}
					}
					n.add(1, sound, broken, 0)
				}
				if n.sound == 0 && *cuttings >= 20 {
					t.Errorf("the sample tells little: %v", &n)
				}
				total.add(n.histories, n.sound, n.accused, 0)
			})
		}
	}
}

// silent feeds every portion of a history that keeps its levels to engines, and
// returns what they say all the same.
func (c *cutting) silent() (found *complaint) {
	defer func() {
		if r := recover(); r != nil {
			found = &complaint{"panic", fmt.Sprintf("an engine panics: %v\n%s", r, debug.Stack())}
		}
	}()
	for i, p := range c.portions() {
		said := p.feed()
		for _, v := range said.ticked {
			return &complaint{fmt.Sprintf("a false alarm at %v", v.Level), fmt.Sprintf("engine %d: a tick says %+v\n%v", i+1, v, &p)}
		}
		for _, r := range said.results {
			if r.Outcome == verdict.Violated {
				return &complaint{fmt.Sprintf("a false alarm at %v", r.Level), fmt.Sprintf("engine %d: %+v\n%v", i+1, r.Violations, &p)}
			}
		}
	}
	return nil
}

// fewer are the cuttings of the history's parts: what keeps a level does so
// without its last transactions, and without what nobody read.
func (c *cutting) fewer() []cutting {
	var out []cutting
	n := len(c.whole.txns)
	for k := n / 2; k > 0; k /= 2 {
		s := *c
		s.whole.txns, s.whole.end, s.whole.tick = c.whole.txns[:n-k], c.whole.end[:n-k], c.whole.tick[:n-k]
		out = append(out, s)
	}
	for i, x := range c.whole.txns {
		reads := slices.DeleteFunc(slices.Clone(x.Ops), func(op record.Op) bool { return op.Kind != record.Read })
		for _, ops := range [][]record.Op{nil, reads} {
			if len(ops) < len(x.Ops) && (n < 60 || i%4 == 0) && !c.isRead(writesOf(x.Ops), i) {
				s := *c
				s.whole = c.whole.clone()
				s.whole.txns[i].Ops = ops
				out = append(out, s)
			}
		}
		if n < 60 && len(x.Ops) == 0 {
			s := *c
			s.whole = c.whole.clone()
			s.whole.txns, s.whole.end, s.whole.tick = slices.Delete(s.whole.txns, i, i+1), slices.Delete(s.whole.end, i, i+1), slices.Delete(s.whole.tick, i, i+1)
			out = append(out, s)
		}
	}
	return out
}

func writesOf(ops []record.Op) []record.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op record.Op) bool { return op.Kind == record.Read })
}

// isRead tells whether another transaction than the i-th read one of some writes.
func (c *cutting) isRead(writes []record.Op, i int) bool {
	for j, x := range c.whole.txns {
		for _, op := range x.Ops {
			if j != i && op.Kind == record.Read && slices.ContainsFunc(writes, func(w record.Op) bool { return w.Key == op.Key && w.Value == op.Value }) {
				return true
			}
		}
	}
	return false
}

// So it is with larger histories, which a store has made that gives a level: no
// engine of any segment says anything.
func TestForgettingInLargeHistories(t *testing.T) {
	for i, load := range loads {
		for _, level := range verdict.Levels() {
			if race.Brief() && (i+int(level))%4 != 0 {
				continue // each load at every fourth level
			}
			t.Run(fmt.Sprintf("load %d/%v", i, level), func(t *testing.T) {
				t.Parallel()
				for round := range 1 + *cuttings/60 {
					seed := *seedFrom + uint64(100*i+round)
					rng := rand.New(rand.NewPCG(seed, 31))
					cfg := load
					cfg.Level, cfg.Seed, cfg.Transactions = level, seed, 120+rng.IntN(100)
					cfg.Keys = 5 + rng.IntN(40)
					cfg.NoTimes = !strings.Contains(level.String(), "s") && level != verdict.LIN && rng.IntN(2) == 0
					txns := produce(t, cfg)
					c := cutting{memory: &memories[rng.IntN(len(memories))], seed: seed, segment: 3 + rng.IntN(18), overlap: 1 + rng.IntN(5), byKey: rng.IntN(3) > 0,
						whole: stream{txns: txns, opt: incremental.Options{Levels: implied(level), Assumptions: record.Assumptions{Initial: cfg.Initial, MaxSkew: int64(cfg.MaxSkew), Clock: []record.Clock{record.ClockPrune, record.ClockEnforce}[rng.IntN(2)]}, Online: true, UniqueValues: true, MaxTransaction: longest(txns)}}}
					if !level.Implies(verdict.SSER) && !(level == verdict.StrongSI) {
						c.whole.opt.Clock = record.ClockPrune
					}
					for n, x := range txns {
						c.whole.end = append(c.whole.end, cmp.Or(x.End, int64(n)))
						c.whole.tick = append(c.whole.tick, noTick)
						if rng.IntN(3) == 0 {
							c.whole.tick[n] = x.End
						}
					}
					if wrong := c.silent(); wrong != nil {
						small, again := reduced(c, wrong.class, (*cutting).silent, (*cutting).fewer)
						t.Fatalf("seed %d: %s: %s\n%v", seed, again.class, again.says, &small)
					}
				}
			})
		}
	}
}
