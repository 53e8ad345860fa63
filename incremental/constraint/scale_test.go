package constraint

import (
	"math/rand/v2"
	"testing"

	"github.com/bits-and-blooms/bitset"

	"github.com/isowatch/isowatch/incremental/budget"
	"github.com/isowatch/isowatch/incremental/graph"
	"github.com/isowatch/isowatch/incremental/reach"
	"github.com/isowatch/isowatch/incremental/sat"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// hot is a load of writers of one key, from the sessions in turn.
type hot struct {
	budget            *budget.Budget // what it draws from, or nil
	writers, sessions int
	overlap           int  // with times: how many run at once
	ties              int  // a tie with another session at every so manieth writer; 0: never
	updates           bool // each has read the key's version before its own
	reads             bool // each has read a key that nobody wrote
}

func (h hot) load(cfg Config) *Polygraph {
	tab := &version.Table{}
	p := New(cfg, tab)
	if h.budget != nil {
		p.Budget = h.budget.Share()
	}
	last := make([]slot, h.sessions)
	for i := range last {
		last[i] = version.None
	}
	latest := version.None
	ties := make([]version.ID, 0, h.writers) // by writer: its version of its own key
	add := func(i, session int) slot {
		s := tab.Add(version.Line(session), 0, 0)
		p.Add(Txn{Chain: reach.Chain(uint32(session)), Prev: last[session], Timed: h.overlap > 0,
			Start: int64(10 * i), End: int64(10*i + 10*h.overlap)})
		last[session] = s
		return s
	}
	write := func(s slot, k keyID) version.ID {
		v := tab.Write(s, k)
		p.writers.Wrote(v, false)
		return v
	}
	for i := range h.writers {
		s := add(i, i%h.sessions)
		v := write(s, 0)
		own := write(s, keyID(i+1))
		ties = append(ties, own)
		if h.ties > 0 && i%h.ties == 0 && i > 0 {
			tab.Read(s, ties[i-1])
			p.Read(s, ties[i-1])
		}
		if h.reads {
			initial := tab.New(keyID(h.writers+i+1), version.Initial, version.None)
			tab.Read(s, initial)
			p.Read(s, initial)
		}
		if h.updates && latest != version.None {
			tab.Read(s, version.ID(latest))
			p.Read(s, version.ID(latest))
		}
		latest = int(v)
		if !cfg.Bulk {
			p.Block(v)
			p.Block(own)
		}
	}
	if cfg.Bulk {
		p.Finish()
		p.Blocks()
	}
	return p
}

// A hot key makes few constraints where sessions see of each other, or clocks do:
// one for each two writers that are concurrent and that somebody may have read.
func TestHotKeyMakesFewPairs(t *testing.T) {
	const n = 10_000
	for _, c := range []struct {
		name  string
		hot   hot
		cfg   Config
		pairs int // at most
	}{
		{"chains", hot{writers: n, sessions: 20, ties: 1}, Config{Sessions: true, Chains: 20}, 0},
		{"chains, si", hot{writers: n, sessions: 20, ties: 1}, Config{Sessions: true, Chains: 20, Split: true}, 0},
		{"chains, si, writers that read", hot{writers: n, sessions: 20, reads: true}, Config{Sessions: true, Chains: 20, Split: true}, 0},
		{"chains, bulk", hot{writers: n, sessions: 20, ties: 1}, Config{Sessions: true, Chains: 20, Bulk: true}, 0},
		{"chains, bulk, unread", hot{writers: n / 4, sessions: 20}, Config{Sessions: true, Chains: 20, Bulk: true, Last: true}, 0},
		{"chains, pc", hot{writers: n, sessions: 20, ties: 1}, Config{Sessions: true, Chains: 20, Split: true, Prefix: true}, 0},
		{"chains, pc, updates", hot{writers: n, sessions: 20, updates: true}, Config{Sessions: true, Chains: 20, Split: true, Prefix: true}, 0},
		{"chains, pc, updates in bulk", hot{writers: n, sessions: 20, updates: true}, Config{Sessions: true, Chains: 20, Split: true, Prefix: true, Bulk: true}, 0},
		{"chains, pc, unread in bulk", hot{writers: n / 4, sessions: 20}, Config{Sessions: true, Chains: 20, Split: true, Prefix: true, Bulk: true, Last: true}, 0},
		{"banded, a tie each", hot{writers: n, sessions: 20, overlap: 20, ties: 1}, Config{Sessions: true, RealTime: true}, 0},
		{"banded", hot{writers: n / 4, sessions: 20, overlap: 5}, Config{Sessions: true, RealTime: true}, 5 * n / 4},
		{"banded, pc", hot{writers: n / 4, sessions: 20, overlap: 5}, Config{Sessions: true, RealTime: true, Split: true, Prefix: true}, 5 * n / 4},
		{"banded, pc, updates", hot{writers: n, sessions: 20, overlap: 1, updates: true}, Config{Sessions: true, RealTime: true, Split: true, Prefix: true}, 0},
		{"banded, si", hot{writers: n / 4, sessions: 20, overlap: 5, reads: true}, Config{Sessions: true, RealTime: true, Split: true}, 5 * n / 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.hot.load(c.cfg)
			if p.reports.Found > 0 {
				t.Fatalf("%d violations", p.reports.Found)
			}
			if len(p.subjects.pairs) > c.pairs || p.Stats.Constraints > c.pairs || len(p.subjects.watches) > 4*c.pairs {
				t.Errorf("%d pairs, %d constraints and %d watches for %d writers", len(p.subjects.pairs), p.Stats.Constraints, len(p.subjects.watches), c.hot.writers)
			}
			if p.Solve(1000) != sat.Sat {
				t.Error("not satisfied")
			}
		})
	}
}

// What nobody reads is written in steps that grow with the writes.
func TestUnreadWritesCostStepsEach(t *testing.T) {
	const n = 10_000
	for _, c := range []struct{ bulk, split bool }{{}, {bulk: true}, {split: true}} {
		b := budget.Unlimited()
		hot{writers: n, sessions: 20, budget: b, reads: c.split}.load(Config{Sessions: true, Chains: 20, Bulk: c.bulk, Split: c.split})
		if used := b.Used(); used > 100*n {
			t.Errorf("%+v: %d steps for %d writers", c, used, n)
		}
	}
}

// Constraints grow with the number of writers, not with its square, where
// sessions now and then see of each other.
func TestPairsGrowLinearly(t *testing.T) {
	for _, cfg := range []Config{{Sessions: true, Chains: 20, Split: true}, {Sessions: true, Chains: 20, Split: true, Bulk: true}} {
		n := race.Few(500, 1500)
		few := hot{writers: n, sessions: 20, ties: 3, reads: true}.load(cfg)
		many := hot{writers: 2 * n, sessions: 20, ties: 3, reads: true}.load(cfg)
		if !cfg.Bulk {
			few.makePutOff()
			many.makePutOff()
		}
		if len(few.subjects.pairs) == 0 || len(many.subjects.pairs) > 5*len(few.subjects.pairs)/2 {
			t.Errorf("bulk %v: %d pairs of %d writers, %d of %d", cfg.Bulk, len(few.subjects.pairs), n, len(many.subjects.pairs), 2*n)
		}
	}
}

// A stream of very many sessions leaves chains for bits, which know what chains knew and what comes
// after.
func TestManySessionsLeaveChains(t *testing.T) {
	for _, split := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 4))
		tab := &version.Table{}
		p := New(Config{Sessions: true, Split: split}, tab)
		n := slot(4000) // 32 MB of chains are left on the way
		if split {
			n = 2800
		}
		var last []slot // by session
		for s := range n {
			session, prev := uint32(len(last)), version.None
			if rng.IntN(6) == 0 && s > 0 {
				session = uint32(rng.IntN(len(last)))
				prev = int(last[session])
			} else {
				last = append(last, 0)
			}
			last[session] = s
			tab.Add(version.Line(session), 0, 0)
			p.Add(Txn{Chain: reach.Chain(session), Prev: slot(prev)})
			for range min(2, int(s)) {
				w := s - 1 - slot(rng.IntN(min(int(s), 100)))
				p.orders.addEdge(graph.Edge{From: p.commit(w), To: p.start(s), Key: none, Type: verdict.WR}, true)
			}
			if chains := p.chains != nil; s == 1000 && !chains || s == n-1 && chains {
				t.Fatalf("%d sessions: chains are there: %v", len(last), chains)
			}
		}
		nodes := p.g.Nodes()
		before := make([]bitset.BitSet, nodes) // all edges lead to later nodes
		for v := range node(nodes) {
			before[v].Set(uint(v))
			if split && v%2 == 1 {
				before[v].InPlaceUnion(&before[v-1])
			}
			for e := p.g.FirstIn(v); e != graph.None; e = p.g.NextIn(e) {
				before[v].InPlaceUnion(&before[p.g.Edge(e).From])
			}
			for u := v % 7; u <= v; u += 7 { // some of them
				if want := before[v].Test(uint(u)); p.reach.Reaches(u, v) != want || u < v && p.reach.Reaches(v, u) {
					t.Fatalf("split %v: %d reaches %d: %v", split, u, v, !want)
				}
			}
		}
	}
}
