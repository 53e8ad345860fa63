package incremental_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// losses is how many histories of each kind are robbed in each way; a failure
// prints the seed, and -losses 1 -seed SEED repeats it.
var losses = flag.Int("losses", race.Draws(20, 60), "random histories for each way of losing records and each kind of history")

// A theft says which records of a history do not arrive.
type theft struct {
	name string
	take func(rng *rand.Rand, txns []record.Transaction) []bool
}

// each loses every record with a chance in percent that is itself random.
func each(rng *rand.Rand, txns []record.Transaction) []bool {
	percent := []int{10, 30, 60}[rng.IntN(3)]
	return thoseOf(txns, func(record.Transaction) bool { return rng.IntN(100) < percent })
}

func thoseOf(txns []record.Transaction, f func(record.Transaction) bool) []bool {
	out := make([]bool, len(txns))
	for i, x := range txns {
		out[i] = f(x)
	}
	return out
}

var thefts = []theft{
	{"any", each},
	{"the first", func(rng *rand.Rand, txns []record.Transaction) []bool { // the monitor joined late
		out := make([]bool, len(txns))
		for i := range rng.IntN(len(txns)) {
			out[i] = true
		}
		return out
	}},
	{"a stretch", func(rng *rand.Rand, txns []record.Transaction) []bool {
		out := make([]bool, len(txns))
		from := rng.IntN(len(txns))
		for i := range 1 + rng.IntN(len(txns)-from) {
			out[from+i] = true
		}
		return out
	}},
	{"a session", func(rng *rand.Rand, txns []record.Transaction) []bool {
		gone := txns[rng.IntN(len(txns))].Session
		return thoseOf(txns, func(x record.Transaction) bool { return x.Session == gone })
	}},
	{"a partition", func(rng *rand.Rand, txns []record.Transaction) []bool {
		of := map[string]bool{}
		return thoseOf(txns, func(x record.Transaction) bool {
			if _, known := of[x.Session]; !known {
				of[x.Session] = rng.IntN(2) == 0
			}
			return of[x.Session]
		})
	}},
	{"writers of a key", func(rng *rand.Rand, txns []record.Transaction) []bool {
		var keys []string
		for _, x := range txns {
			keys = append(keys, writtenKeys(x.Ops)...)
		}
		if len(keys) == 0 {
			return make([]bool, len(txns))
		}
		key := keys[rng.IntN(len(keys))]
		return thoseOf(txns, func(x record.Transaction) bool { return slices.Contains(writtenKeys(x.Ops), key) && rng.IntN(4) > 0 })
	}},
	{"those who say what happened", func(rng *rand.Rand, txns []record.Transaction) []bool { // readers of what has an unknown outcome, and aborts
		return thoseOf(txns, func(x record.Transaction) bool {
			return (x.Status == record.Aborted || len(writtenKeys(x.Ops)) < len(x.Ops)) && rng.IntN(2) == 0
		})
	}},
}

// A robbery is a history and the records of it that do not arrive.
type robbery struct {
	whole stream
	lost  []bool
	// byKey: the engine is told of which keys a write is missing; otherwise of
	// none, so that coverage is partial.
	byKey bool
	// uncertain: nothing is said of what the unseen writers wrote.
	uncertain bool
}

// portion is what arrives.
func (r *robbery) portion() portion {
	p := portion{stream: stream{opt: r.whole.opt}}
	wait := r.whole.opt.MaxTransaction
	tick := int64(noTick)
	for i, x := range r.whole.txns {
		tick = max(tick, r.whole.tick[i])
		if r.lost[i] {
			p.opt.Lost = p.opt.Lost.Add(incremental.Span{From: r.whole.end[i], To: r.whole.end[i]}, wait)
			for _, k := range writtenKeys(x.Ops) {
				if r.byKey && !slices.Contains(p.lossy, k) {
					p.lossy = append(p.lossy, k)
				}
			}
			if n := len(p.tick); n > 0 { // time goes on all the same
				p.tick[n-1] = max(p.tick[n-1], tick)
				tick = noTick
			}
			continue
		}
		p.txns, p.end, p.tick, p.of = append(p.txns, x), append(p.end, r.whole.end[i]), append(p.tick, tick), append(p.of, i)
		tick = noTick
	}
	if !r.byKey {
		p.opt.Coverage = record.CoveragePartial
	}
	p.opt.UniqueValues = r.whole.opt.UniqueValues && !r.uncertain && tiny.Unique(unaborted(r.whole.txns), p.opt.Initial)
	p.opt.UnseenUnique = new(!r.uncertain && !repeatsUnseen(unaborted(r.whole.txns), unaborted(p.txns)))
	return p
}

func (r *robbery) examine() ([]verdict.Level, *complaint) {
	p := r.portion()
	if len(p.txns) == 0 {
		return nil, nil
	}
	return p.judge(definition(r.whole.txns, r.whole.opt))
}

// pass ends the test, with a smaller robbery, if something is wrong with this one; otherwise it
// gives the levels that are accused.
func (r *robbery) pass(t *testing.T, seed uint64) []verdict.Level {
	t.Helper()
	broken, wrong := r.examine()
	if wrong != nil {
		small, again := reduced(*r, wrong.class, func(r *robbery) *complaint { _, c := r.examine(); return c }, (*robbery).smaller)
		if again == nil {
			again = wrong
		}
		t.Fatalf("seed %d: %s: %s\n%v", seed, again.class, again.says, &small)
	}
	return broken
}

func (r *robbery) String() string {
	p := r.portion()
	var gone []string
	for i, x := range r.whole.txns {
		if r.lost[i] {
			gone = append(gone, x.ID)
		}
	}
	return fmt.Sprintf("%v# lost: %s; so the engine gets\n%v", &r.whole, strings.Join(gone, " "), &p)
}

// smaller are the robberies of which one thing less is to be read.
func (r *robbery) smaller() []robbery {
	var out []robbery
	for i := range r.whole.txns {
		s := *r
		s.whole = r.whole.clone()
		s.lost = slices.Delete(slices.Clone(r.lost), i, i+1)
		s.whole.txns, s.whole.end, s.whole.tick = slices.Delete(s.whole.txns, i, i+1), slices.Delete(s.whole.end, i, i+1), slices.Delete(s.whole.tick, i, i+1)
		out = append(out, s)
		if r.lost[i] {
			s := *r
			s.lost = slices.Clone(r.lost)
			s.lost[i] = false
			out = append(out, s)
		}
	}
	for _, w := range r.whole.smaller() {
		if len(w.txns) == len(r.whole.txns) {
			s := *r
			s.whole = w
			out = append(out, s)
		}
	}
	return out
}

// reduced is a smaller trial of which the same is wrong.
func reduced[T any](trial T, class string, examine func(*T) *complaint, smaller func(*T) []T) (T, *complaint) {
	wrong := func(x *T) *complaint {
		if c := examine(x); c != nil && c.class == class {
			return c
		}
		return nil
	}
	last := wrong(&trial)
	for again := last != nil; again; {
		again = false
		for _, s := range smaller(&trial) {
			if c := wrong(&s); c != nil {
				trial, last, again = s, c, true
				break
			}
		}
	}
	return trial, last
}

// A count tells how much a test has tried.
type count struct {
	mu                                 sync.Mutex
	histories, sound, accused, missing int
}

func (c *count) add(histories, sound, accused, missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.histories, c.sound, c.accused, c.missing = c.histories+histories, c.sound+sound, c.accused+accused, c.missing+missing
}

func (c *count) String() string {
	return fmt.Sprintf("%d histories; %d levels that hold of the whole, not accused; %d accused with proof; %d missing", c.histories, c.sound, c.accused, c.missing)
}

// whole draws a history as it would come in if nothing were lost.
func wholeHistory(seed uint64, i int, k kind) (stream, bool) {
	rng := rand.New(rand.NewPCG(seed, 21))
	c := &courses[(i+int(seed))%len(courses)]
	cfg := c.cfg
	k.set(&cfg)
	cfg.Mixed, cfg.Mutations = false, cfg.Mutations*rng.IntN(2)
	if st, ok := c.draw(seed, cfg); ok && rng.IntN(4) > 0 {
		st.txns = trusted(st.txns, st.opt.Clock) // package order sees whose clock steps back before anything is lost
		return st, len(st.opt.Levels) > 0 && len(st.txns) > 0
	}
	cfg.Times = false
	w := &way{name: "untimed", cfg: cfg, change: unchanged, online: true, quiet: rng.IntN(4) == 0}
	st := w.draw(seed, cfg)
	st.opt.Proof = false
	return st, len(st.txns) > 0
}

// Whatever records do not arrive, nobody is accused of what the whole history
// has not done, and what is told is proved by the records that arrived.
func TestLossesAccuseNobody(t *testing.T) {
	total := &count{}
	t.Cleanup(func() { t.Log(total) })
	for i, th := range thefts {
		for j, k := range kinds {
			t.Run(th.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				var c count
				for n := range *losses {
					seed := *seedFrom + uint64(n)
					st, ok := wholeHistory(seed, i+j, k)
					if !ok {
						continue
					}
					rng := rand.New(rand.NewPCG(seed, uint64(22+i)))
					r := robbery{whole: st, lost: th.take(rng, st.txns), byKey: st.opt.Coverage == record.CoverageComplete && rng.IntN(2) == 0, uncertain: rng.IntN(6) == 0}
					broken := r.pass(t, seed)
					sound, want := 0, definition(st.txns, st.opt)
					for _, l := range within(st.opt.Levels, st.txns) {
						if want.holds(l) {
							sound++
						}
					}
					c.add(1, sound, len(broken), 0)
				}
				if c.sound == 0 && *losses >= 20 {
					t.Errorf("the sample tells little: %v", &c)
				}
				total.add(c.histories, c.sound, c.accused, 0)
			})
		}
	}
}

// unaborted are the transactions that were not aborted.
func unaborted(txns []record.Transaction) []record.Transaction {
	return slices.DeleteFunc(slices.Clone(txns), func(x record.Transaction) bool { return x.Status == record.Aborted })
}

// retried puts in front of some transactions an attempt of the same client to make the same writes that was
// aborted, and tells which are second attempts.
func retried(rng *rand.Rand, st stream) (out stream, second []bool) {
	out = stream{opt: st.opt}
	begun := int64(0)
	for i, x := range st.txns {
		again := x.Status == record.Committed && len(writtenKeys(x.Ops)) > 0 && rng.IntN(2) == 0
		if again {
			first := x
			first.ID, first.Status, first.HasTimes = x.ID+" aborted", record.Aborted, false
			first.Ops = slices.DeleteFunc(slices.Clone(x.Ops), func(op record.Op) bool { return op.Kind == record.Read })
			out.txns, out.end, out.tick = append(out.txns, first), append(out.end, max(begun, x.Start)), append(out.tick, noTick)
		}
		out.txns, out.end, out.tick, second = append(out.txns, x), append(out.end, st.end[i]), append(out.tick, st.tick[i]), append(second, again)
		if again {
			second = append(second[:len(second)-1], false, true)
		}
		begun = st.end[i]
	}
	return out, second
}

// An aborted attempt and a read of what it wrote prove nothing where the record of a second attempt
// may be missing, in which the client wrote the same.
func TestLostRetriesAccuseNobody(t *testing.T) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var c count
			for n := range 2 * *losses {
				seed := *seedFrom + uint64(n)
				st, ok := wholeHistory(seed, i, k)
				if !ok {
					continue
				}
				rng := rand.New(rand.NewPCG(seed, 41))
				st, second := retried(rng, st)
				lost := make([]bool, len(second))
				for i := range second {
					lost[i] = second[i] && rng.IntN(3) > 0
				}
				r := robbery{whole: st, lost: lost, byKey: st.opt.Coverage == record.CoverageComplete && rng.IntN(2) == 0}
				broken := r.pass(t, seed)
				c.add(1, 0, len(broken), 0)
			}
			if c.histories == 0 && *losses >= 20 {
				t.Errorf("the sample tells nothing: %v", &c)
			}
		})
	}
}

// So it is with larger histories, which a store has made that gives a level: of
// those, and of what is left of them, nothing is told.
func TestLossesFromLargeHistories(t *testing.T) {
	for i, load := range loads {
		for _, level := range verdict.Levels() {
			t.Run(fmt.Sprintf("load %d/%v", i, level), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(*seedFrom, uint64(i)))
				cfg := load
				cfg.Level, cfg.Seed, cfg.Transactions = level, *seedFrom+uint64(10*i), cfg.Transactions/4
				txns := produce(t, cfg)
				for range 1 + *losses/60 {
					th := thefts[rng.IntN(len(thefts))]
					r := robbery{whole: stream{txns: txns, opt: incremental.Options{Levels: implied(level), Assumptions: record.Assumptions{Initial: cfg.Initial, MaxSkew: int64(cfg.MaxSkew)},
						Online: true, UniqueValues: true, MaxTransaction: longest(txns)}}, lost: th.take(rng, txns), byKey: rng.IntN(2) == 0}
					for n, x := range txns {
						r.whole.end = append(r.whole.end, x.End)
						r.whole.tick = append(r.whole.tick, noTick)
						if rng.IntN(20) == 0 {
							r.whole.tick[n] = x.End
						}
					}
					p := r.portion()
					said := p.feed()
					for _, v := range said.ticked {
						t.Fatalf("%s of seed %d lost, by key %v: a tick says %+v", th.name, cfg.Seed, r.byKey, v)
					}
					for _, s := range said.results {
						if s.Outcome == verdict.Violated {
							t.Fatalf("%s of seed %d lost, by key %v: %+v", th.name, cfg.Seed, r.byKey, s.Violations[0])
						}
					}
				}
			})
		}
	}
}
