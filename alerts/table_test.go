package alerts_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
)

// row is a row of the table of names: the phenomena, the weakest levels that it may break, and what holds.
type row struct {
	adya           string
	weakest, holds []string
	any            bool // whatever is below holds
}

var quoted = regexp.MustCompile("`([^`]+)`")

// table is the table of names of docs/alerts.md, by name.
func table(t *testing.T) map[string]row {
	t.Helper()
	b, err := os.ReadFile("../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "| weakest level broken |")
	text, _, _ := strings.Cut(rest, "\n\n")
	out := map[string]row{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.Contains(cells[1], "`") {
			continue
		}
		words := func(cell string) (all []string) {
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				all = append(all, m[1])
			}
			return all
		}
		r := row{adya: strings.TrimSpace(cells[3]), weakest: words(cells[4]), holds: words(cells[5])}
		r.any = len(r.holds) == 0 && strings.Contains(cells[5], "what is below")
		if from, to, ok := strings.Cut(cells[4], " to "); ok {
			all := names(name.Ordered())
			r.weakest = all[slices.Index(all, words(from)[0]) : slices.Index(all, words(to)[0])+1]
		}
		for _, n := range words(cells[1]) {
			out[n] = r
		}
	}
	for _, n := range name.Names() {
		if _, ok := out[n]; !ok {
			t.Fatalf("%s is not in the table", n)
		}
	}
	return out
}

func names(levels []verdict.Level) (out []string) {
	for _, l := range levels {
		out = append(out, l.String())
	}
	return out
}

// outside says what of an alert is outside the table; "" if nothing is.
func outside(all map[string]row, a alerts.Alert) string {
	r := all[a.Name]
	phenomenon, realTime := strings.CutSuffix(strings.TrimSuffix(a.Adya, "-process"), "-realtime")
	clocks := strings.HasSuffix(r.adya, "-realtime")
	said := slices.Contains(strings.Split(strings.TrimSuffix(r.adya, "-realtime"), ", "), phenomenon) || strings.HasPrefix(r.adya, "any") ||
		strings.HasSuffix(r.adya, "and worse") && slices.Contains([]string{"G0", "G1c", "G-single"}, phenomenon)
	nothing := a.Adya == "" && len(a.Cycle)+len(a.Cases) == 0 // is told that could be one
	switch {
	case !nothing && (!said || clocks && !realTime || r.adya == "internal" && realTime):
		return "phenomenon " + a.Adya
	case a.Level == "lin": // the name is of what lin forbids, whatever else is broken
	case !slices.Contains(r.weakest, a.Weakest):
		return "weakest " + a.Weakest
	case !r.any && len(r.holds) > 0 && slices.ContainsFunc(a.Holds, func(l string) bool { return !slices.Contains(r.holds, l) }):
		return "holds " + strings.Join(a.Holds, " ")
	}
	return ""
}

// ops are the operations of a transaction that are like that.
func ops(t record.Transaction, is func(record.Op) bool) []record.Op {
	return slices.DeleteFunc(slices.Clone(t.Ops), func(op record.Op) bool { return !is(op) })
}

func reads(t record.Transaction, key string) []record.Op {
	return ops(t, func(op record.Op) bool { return op.Kind == record.Read && op.Key == key })
}

func writes(t record.Transaction, key string) []record.Op {
	return ops(t, func(op record.Op) bool { return (op.Kind == record.Write || op.Kind == record.Append) && op.Key == key })
}

// keysOf are the keys of a transaction.
func keysOf(t record.Transaction) (out []string) {
	for _, op := range t.Ops {
		out = append(out, op.Key)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pair tells whether two transactions are like that.
func pair(txns []record.Transaction, is func(a, b record.Transaction) bool) bool {
	for i := range txns {
		for j := range txns {
			if i != j && is(txns[i], txns[j]) {
				return true
			}
		}
	}
	return false
}

// one tells whether a key of a transaction is like that.
func one(txns []record.Transaction, is func(t record.Transaction, key string) bool) bool {
	return slices.ContainsFunc(txns, func(t record.Transaction) bool {
		return slices.ContainsFunc(keysOf(t), func(key string) bool { return is(t, key) })
	})
}

func differ(a, b []record.Op) bool {
	return slices.ContainsFunc(a, func(x record.Op) bool {
		return slices.ContainsFunc(b, func(y record.Op) bool { return x.Value != y.Value })
	})
}

// shapes are what a name says at least of who did what.
var shapes = map[string]func(a alerts.Alert, txns []record.Transaction) bool{
	"aborted-read": func(_ alerts.Alert, txns []record.Transaction) bool {
		return slices.ContainsFunc(txns, func(t record.Transaction) bool { return t.Status == record.Aborted })
	},
	"not-my-last-write": ownWriteThenRead, "not-my-own-write": ownWriteThenRead,
	"future-read": func(_ alerts.Alert, txns []record.Transaction) bool {
		return one(txns, func(t record.Transaction, key string) bool { return len(reads(t, key)) > 0 && len(writes(t, key)) > 0 })
	},
	"intermediate-read": func(_ alerts.Alert, txns []record.Transaction) bool {
		return one(txns, func(t record.Transaction, key string) bool { return len(writes(t, key)) > 1 })
	},
	"duplicate-elements": func(_ alerts.Alert, txns []record.Transaction) bool {
		return one(txns, func(t record.Transaction, key string) bool {
			return slices.ContainsFunc(reads(t, key), func(op record.Op) bool {
				es, _ := list.Elements(op.Value)
				_, n := list.Repeated(es)
				return n > 1
			})
		})
	},
	"circular-information-flow": func(a alerts.Alert, _ []record.Transaction) bool {
		return !slices.ContainsFunc(a.Cycle, func(e alerts.Edge) bool { return e.Type == "rw" })
	},
	"dirty-write": func(_ alerts.Alert, txns []record.Transaction) bool { return pair(txns, conflict) },
	"non-repeatable-reads": func(_ alerts.Alert, txns []record.Transaction) bool {
		return one(txns, func(t record.Transaction, key string) bool { return differ(reads(t, key), reads(t, key)) })
	},
	"non-monotonic-read": twoReads, "fractured-read": twoReads,
	"read-skew": func(_ alerts.Alert, txns []record.Transaction) bool {
		return slices.ContainsFunc(txns, func(t record.Transaction) bool {
			return one([]record.Transaction{t}, func(_ record.Transaction, key string) bool {
				return len(reads(t, key)) > 0 && slices.ContainsFunc(keysOf(t), func(other string) bool { return other != key && len(reads(t, other)) > 0 })
			})
		})
	},
	"session-guarantee-violation": func(_ alerts.Alert, txns []record.Transaction) bool {
		return pair(txns, func(a, b record.Transaction) bool { return a.Session == b.Session })
	},
	"long-fork": func(_ alerts.Alert, txns []record.Transaction) bool { // each has read from a transaction that the other missed
		return pair(txns, func(t, u record.Transaction) bool {
			return pair(txns, func(a, b record.Transaction) bool {
				return saw(a, t) && missed(a, u) && saw(b, u) && missed(b, t)
			})
		})
	},
	"lost-update": func(_ alerts.Alert, txns []record.Transaction) bool { return pair(txns, conflict) },
	"write-skew": func(_ alerts.Alert, txns []record.Transaction) bool {
		return pair(txns, func(a, b record.Transaction) bool {
			missed := func(a, b record.Transaction) bool {
				return slices.ContainsFunc(keysOf(a), func(key string) bool { return len(reads(a, key)) > 0 && len(writes(b, key)) > 0 })
			}
			return missed(a, b) && missed(b, a)
		})
	},
	"read-only-anomaly": func(_ alerts.Alert, txns []record.Transaction) bool {
		return slices.ContainsFunc(txns, func(t record.Transaction) bool {
			return len(ops(t, func(op record.Op) bool { return op.Kind == record.Read })) == len(t.Ops)
		})
	},
	"stale-read": timed, "real-time-violation": timed,
}

// saw tells whether a transaction read something that another one wrote, and missed whether it read something else of a
// key that the other one wrote.
func saw(t, writer record.Transaction) bool {
	return one([]record.Transaction{writer}, func(_ record.Transaction, key string) bool {
		return slices.ContainsFunc(reads(t, key), func(op record.Op) bool { return name.Shows(op, &writer) })
	})
}

func missed(t, writer record.Transaction) bool {
	return one([]record.Transaction{writer}, func(_ record.Transaction, key string) bool {
		return len(writes(writer, key)) > 0 && slices.ContainsFunc(reads(t, key), func(op record.Op) bool { return !name.Shows(op, &writer) })
	})
}

func conflict(a, b record.Transaction) bool {
	return slices.ContainsFunc(keysOf(a), func(key string) bool { return len(writes(a, key)) > 0 && len(writes(b, key)) > 0 })
}

func ownWriteThenRead(_ alerts.Alert, txns []record.Transaction) bool {
	return one(txns, func(t record.Transaction, key string) bool {
		own := ops(t, func(op record.Op) bool { return op.Key == key })
		at := slices.IndexFunc(own, func(op record.Op) bool { return op.Kind != record.Read })
		return at >= 0 && slices.ContainsFunc(own[at:], func(op record.Op) bool { return op.Kind == record.Read })
	})
}

func twoReads(_ alerts.Alert, txns []record.Transaction) bool {
	return slices.ContainsFunc(txns, func(t record.Transaction) bool {
		return len(ops(t, func(op record.Op) bool { return op.Kind == record.Read })) > 1
	})
}

func timed(a alerts.Alert, txns []record.Transaction) bool {
	return a.ClockDependent && len(slices.DeleteFunc(slices.Clone(txns), func(t record.Transaction) bool { return !t.HasTimes })) > 1
}

// rough is a random history of what recordings have: lists, nulls and values that come again, unknown outcomes, weak
// stores, a lost record, a wrong clock.
func rough(seed uint64) (script.Script, []verdict.Level) {
	rng := rand.New(rand.NewPCG(seed, 57))
	s := tiny.Random(rng, tiny.Config{Txns: 7, Keys: 1 + int(seed%3), Sessions: 4, Times: seed%2 == 0, Duplicates: seed%3 == 0, Common: 10 * int(seed%5), Aborted: seed%4 == 0,
		Unknown: seed%5 == 0, Partial: seed%6 == 0, Appends: seed%3 == 1, Weak: 50, Updates: int(seed%2) * 40, Mutations: 2})
	if at := rng.IntN(len(s.Txns) + 1); seed%4 == 1 && at < len(s.Txns) && len(s.Txns) > 2 {
		s.Txns = slices.Delete(s.Txns, at, at+1)
		partial := record.CoveragePartial
		s.Header.Coverage = &partial
	}
	if at := rng.IntN(len(s.Txns) + 1); seed%4 == 2 && at < len(s.Txns) && s.Txns[at].HasTimes {
		by := rng.Int64N(100)
		s.Txns[at].Start, s.Txns[at].End = s.Txns[at].Start+by, s.Txns[at].End+by
	}
	came, latest := map[string]int64{}, map[string]int64{} // who ended before one in front of it in its session comes behind that
	for _, x := range s.Txns {
		latest[x.Session] = max(latest[x.Session], x.End)
		came[x.ID] = latest[x.Session]
	}
	slices.SortStableFunc(s.Txns, func(a, b record.Transaction) int { return cmp.Compare(came[a.ID], came[b.ID]) })
	return s, some(rng, name.Ordered())
}

// told makes an alert of a violation and holds it to the table of names, to what its name says and to its evidence,
// which alone is violated at its level. False if it is not proved.
func told(t *testing.T, all map[string]row, v verdict.Violation, ctx alerts.Context) (alerts.Alert, bool) {
	t.Helper()
	ctx.Judge, ctx.Find = engineJudge, engineFind
	a, err := alerts.New(v, ctx)
	if err != nil {
		t.Log(err)
		return a, false
	}
	h, txns := evidence(t, a)
	if level, _ := verdict.ParseLevel(a.Level); engineJudge(level, h, txns) != verdict.Violated {
		t.Errorf("the evidence satisfies %s", a.Level)
	}
	if is, ok := shapes[a.Name]; ok && !is(a, txns) {
		t.Errorf("the evidence is no %s", a.Name)
	}
	if why := outside(all, a); why != "" {
		t.Errorf("outside the table: %s: %s", a.Name, why)
	}
	if t.Failed() {
		t.Fatalf("%s\n%s", script.Format(script.Script{Header: h, Txns: txns}), a.Explanation)
	}
	return a, true
}

// Every anomaly of random histories is inside the table of names, is what its name says, and its evidence alone is
// violated at the level of the alert.
func TestNamesAreInTheTable(t *testing.T) {
	all, found := table(t), map[string]int{}
	made, unproved := 0, 0
	for seed := *seeds.First; seed < *seeds.First+uint64(race.Draws(300, 1800)); seed++ {
		s, levels := rough(seed)
		switch seed % 8 {
		case 0, 4:
			s, levels = several(seed)
		case 1:
			s, levels = oneKey(seed)
		}
		for _, online := range []bool{false, true} {
			for _, v := range foundBy(s, levels, online, seed) {
				ctx := context(s, levels...)
				ctx.OneKey = slices.Contains(levels, verdict.LIN)
				a, ok := told(t, all, v, ctx)
				if t.Failed() || !ok {
					t.Logf("seed %d, %v, online %v:\n%s", seed, levels, online, script.Format(s))
				}
				made++
				if found[a.Name]++; !ok {
					unproved++
				}
			}
		}
	}
	t.Log(found)
	if unproved*1000 > made {
		t.Errorf("of %d anomalies %d are not proved", made, unproved)
	}
}

// Where sessions read all keys right behind their own writes, at a primary and at a standby that makes some commits
// visible in another order, a fork is a long fork: each of two readers has read what the other one missed, though
// the order of a session says of one of them what its read says as well.
func TestForksOfAStandby(t *testing.T) {
	found, all := map[string]int{}, table(t)
	for seed := range uint64(40) {
		s := standby(rand.New(rand.NewPCG(seed, 18)))
		for _, v := range foundBy(s, []verdict.Level{verdict.SI}, seed%2 == 0, seed) {
			a, ok := told(t, all, v, context(s, verdict.SI))
			if found[a.Name]++; !ok || a.Name != "long-fork" && forks(a, s.Txns) {
				t.Fatalf("seed %d: %s, %v\n%s\n%s", seed, a.Name, ok, script.Format(s), a.Explanation)
			}
		}
	}
	if t.Log(found); found["long-fork"] < 20 {
		t.Error("the test is too easy")
	}
}

// standby is a history of two sessions at a primary, which write and read all right behind, and of two at its
// standby, which sees every other pair of commits the other way round.
func standby(rng *rand.Rand) script.Script {
	s := script.Script{}
	keys, last := []string{"x", "y", "z"}, int64(0)
	primary, replica := map[string]record.Value{}, map[string]record.Value{}
	add := func(session string, ops ...record.Op) {
		s.Txns = append(s.Txns, record.Transaction{Session: session, ID: fmt.Sprintf("T%d", len(s.Txns)+1), Ops: ops})
	}
	write := func(key string) record.Op {
		last++
		return record.Op{Kind: record.Write, Key: key, Value: record.Int(last)}
	}
	snapshot := func(session string, state map[string]record.Value) {
		var ops []record.Op
		for _, i := range rng.Perm(len(keys)) {
			ops = append(ops, record.Op{Kind: record.Read, Key: keys[i], Value: state[keys[i]]})
		}
		add(session, ops...)
	}
	var first []record.Op
	for _, k := range keys {
		first = append(first, write(k))
		primary[k], replica[k] = first[len(first)-1].Value, first[len(first)-1].Value
	}
	add("s0", first...)
	for range 4 {
		p := rng.Perm(len(keys))
		a, b := write(keys[p[0]]), write(keys[p[1]])
		add("s1", a)
		primary[a.Key] = a.Value
		if rng.IntN(2) == 0 {
			snapshot("s1", primary)
		}
		add("s2", b)
		replica[b.Key] = b.Value
		if rng.IntN(2) == 0 {
			snapshot("s3", replica)
		}
		primary[b.Key], replica[a.Key] = b.Value, a.Value
		if rng.IntN(2) == 0 {
			snapshot("s2", primary)
		}
		if rng.IntN(2) == 0 {
			snapshot("s4", replica)
		}
	}
	return s
}

// forks tells whether a cycle is of two transactions that missed one write each, and each of them read, as it was
// recorded, what the other one missed.
func forks(a alerts.Alert, txns []record.Transaction) bool {
	if len(a.Cycle) != 4 {
		return false
	}
	at := map[string]record.Transaction{}
	for _, t := range txns {
		at[t.ID] = t
	}
	missed := 0
	for i, e := range a.Cycle {
		reader, writer := a.Cycle[(i+1)%4], at[e.To]
		if e.Type != "rw" {
			continue
		}
		wrote := writes(writer, e.Key)
		if reader.Type == "rw" || len(wrote) == 0 || !slices.ContainsFunc(reads(at[reader.To], e.Key), func(op record.Op) bool { return op.Value == wrote[len(wrote)-1].Value }) {
			return false
		}
		missed++
	}
	return missed == 2
}

// The anomalies of recorded histories likewise.
func TestNamesOfRealAnomalies(t *testing.T) {
	dir := cmp.Or(os.Getenv("ISOWATCH_CORPUS"), filepath.Join("..", "..", "shared", "corpus"))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if len(files) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("the corpus of real histories is missing in %s; set ISOWATCH_CORPUS to its folder", dir)
		}
		t.Skip("SKIPPED: NO ANOMALY OF A REAL HISTORY IS NAMED; set ISOWATCH_CORPUS to the corpus folder")
	}
	all, found, histories := table(t), map[string]int{}, 0
	for i, file := range files {
		if i%race.Few(4, 2) != 0 {
			continue
		}
		hs, err := history.Open(file, history.Options{})
		if err != nil || len(hs[0].Transactions) > race.Few(24, 120) {
			continue // what can't be read, other tests say
		}
		s := script.Script{Header: hs[0].Header, Txns: hs[0].Transactions}
		levels := name.Ordered()
		histories++
		for _, r := range engine(s.Header, s.Txns, levels...) {
			for _, v := range r.Violations[:min(len(r.Violations), 2)] {
				a, ok := told(t, all, v, context(s, levels...))
				if found[a.Name]++; !ok || t.Failed() {
					t.Errorf("%s at %v: %s", file, r.Level, a.Name)
				}
			}
		}
	}
	if t.Logf("%d histories: %v", histories, found); len(found) < 5 {
		t.Error("that tells little")
	}
}
