package alerts_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// online runs the engine over a history as it comes: it may tell of an anomaly before it has
// seen all.
func online(h record.Header, txns []record.Transaction, unique bool, level verdict.Level) []verdict.Violation {
	o := record.Assumptions{}.Override(h)
	e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Coverage: o.Coverage, Clock: o.Clock, Sessions: o.Sessions, MaxSkew: o.MaxSkew}, UniqueValues: unique, Online: true, Levels: []verdict.Level{level}})
	for i := range txns {
		e.Step(&txns[i], int64(i))
		e.Tick(int64(i))
	}
	return e.Close()[0].Violations
}

// What rules out a transaction of unknown outcome is in the evidence of what follows from that,
// and what says nothing of an anomaly does not spoil it: of what is found wrong with a history, that is
// whole or still comes, something is proved. All of it need not be: a read that nobody can
// have made, and that is told, shows that others took effect, of which more may follow.
func TestWhatIsFoundIsProved(t *testing.T) {
	n := uint64(race.Draws(200, 3000))
	for _, kind := range []struct {
		name string
		cfg  tiny.Config
	}{
		{"unknown outcomes and values that repeat", tiny.Config{Txns: 6, Keys: 2, Ops: 3, Values: 2, Duplicates: true, Unknown: true, Aborted: true, Always: true}},
		{"unknown outcomes of short transactions", tiny.Config{Txns: 8, Keys: 2, Ops: 2, Sessions: 4, Duplicates: true, Unknown: true, Aborted: true, Always: true, Updates: 40}},
		{"values that are put back", tiny.Config{Txns: 6, Keys: 2, Ops: 3, Values: 2, Duplicates: true, Unknown: true, Aborted: true, Back: 50}},
		{"lists with unknown outcomes", tiny.Config{Txns: 6, Keys: 2, Ops: 3, Appends: true, Unknown: true, Aborted: true, Always: true}},
		{"lists that are written as a whole", tiny.Config{Txns: 6, Keys: 3, Ops: 3, Appends: true, Whole: 20, Aborted: true, Always: true}},
		{"lists of any kind, with unknown outcomes", tiny.Config{Txns: 6, Keys: 3, Ops: 3, Appends: true, Mixed: true, Whole: 10, Unknown: true, Duplicates: true, Aborted: true}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			found := map[string]int{}
			for seed := range n {
				rng := rand.New(rand.NewPCG(seed, 21))
				kind.cfg.Mutations = 1 + int(seed%3)
				s := tiny.Random(rng, kind.cfg)
				if len(s.Txns) == 0 {
					continue
				}
				complete := record.CoverageComplete
				s.Header.Coverage = &complete
				if seed%2 == 0 {
					initial := record.InitialAny
					s.Header.Initial = &initial
				}
				discredit(rng, s.Txns)
				level := oneOf(rng, s.Txns)
				unique := tiny.Unique(s.Txns, record.Assumptions{}.Override(s.Header).Initial)
				for way, vs := range [2][]verdict.Violation{engine(s.Header, s.Txns, level)[0].Violations, online(s.Header, s.Txns, unique, level)} {
					lost := error(nil)
					for _, v := range vs {
						ctx := context(s, level)
						ctx.Judge, ctx.Find = engineJudge, engineFind
						a, err := alerts.New(v, ctx)
						if err != nil {
							lost = err
							continue
						}
						found[a.Name]++
						recheck(t, a)
						if unique {
							breaksWhatItSays(t, a, s)
						}
					}
					if lost != nil {
						t.Errorf("seed %d, %v, %s: %v\n%s\n%+v", seed, level, [2]string{"whole", "as it came"}[way], lost, script.Format(s), vs)
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			}
			t.Log(found)
		})
	}
}

// What was found, and not proved, once.
func TestWhatWasLostIsProved(t *testing.T) {
	for _, c := range []struct{ title, history, level, name string }{
		{"what rules out T11 is who read the first y", `initial any
s1 T5: r(y,null) w(x,3)
s2 T12: r(x,3) w(x,4)
s1 T11 unknown: w(x,3) r(y,1)
s2 T14: r(x,3)
`, "si", "session-guarantee-violation"},
		{"null may be anybody's unless coverage is complete, so all of the list has appenders", `initial any
s2 T1: append(x,1)
s2 T2: r(y,null)
s2 T3: append(x,2) append(x,3)
s1 T4: w(y,null) r(x,[1,2,3])
`, "ser", "circular-information-flow"},
		{"the list that shows that T1 took effect has appenders, as null needs complete coverage", `initial any
s1 T3 aborted: w(y,null)
s2 T2 unknown: append(x,1)
s4 T1 unknown: r(y,null) append(x,2)
s2 T5: r(x,[1,2])
`, "ser", "aborted-read"},
		{"T1, which was ruled out, turns out to have taken effect", `initial any
s2 T1 unknown: r(y,8) w(x,2)
s2 T3: r(x,2) w(x,3) w(x,null)
s1 T2: r(x,0) r(x,0) r(y,0)
s2 T5: w(x,1)
s1 T4: r(x,2) w(x,2) r(x,2)
`, "si", "thin-air-read"},
		{"T1 and T3 saw different first values", `initial any
s3 T3 unknown: r(y,null) w(x,1)
s1 T1 unknown: r(y,8) w(y,2) w(x,1) w(y,2)
s2 T2: w(y,3) r(x,null)
s3 T4: r(x,1)
`, "ser", ""},
		{"the list that shows that T1 took effect has an aborted element", `initial zero
s1 T2: r(x,[1,2,3])
s2 T1 unknown: r(z,1) append(x,1) append(x,2)
s1 T3 aborted: append(x,3) r(x,[1,2,3]) r(x,[1,2,3])
`, "rc", "aborted-read"},
		{"a list without the element that its reader, of unknown outcome, had appended", `initial any
s2 T1: r(z,null)
s1 T2: r(z,0)
s1 T3 unknown: w(z,null) append(x,4) r(x,[1])
`, "rc", "not-my-own-write"},
		{"T1, which T3 shows to have taken effect, read a value that nobody wrote", `initial absent
s1 T1 unknown: r(x,1) w(x,2) w(y,null) r(x,2)
s1 T2: r(y,null) w(y,2)
s1 T3: w(y,2) w(y,2) r(x,2)
s1 T4: w(y,1)
s1 T5 unknown: r(x,2) w(y,2) r(x,2)
`, "strong-si", "thin-air-read"},
		{"the list that shows that T1 took effect has an element that nobody appended", `initial absent
s1 T1 unknown: r(z,0) append(x,1)
s1 T3: r(x,[1,2]) append(x,3) r(x,[1,2,3])
`, "strong-si", "thin-air-read"},
		{"so has the list that shows that T1 and T2 did, which read what nobody wrote", `initial zero
s1 T1 unknown: r(z,0) r(x,null) append(x,1)
s1 T2 unknown: r(y,7) append(x,2)
s1 T4: append(x,5) r(x,[1,2,3,4,5])
`, "g1", "thin-air-read"},
		{"who shows what x held at first read it again as well, and that is what a list holds", `initial any
s1 T1 unknown: r(x,8) w(x,1) w(x,null)
s1 T4: r(x,null) r(x,[])
s1 T6: w(x,null)
`, "g1", ""},
		{"who shows what x held at first read it again as well, of somebody who can't have written it", `initial any
s3 T1 unknown: r(x,100) w(x,null)
s3 T3: r(x,8) r(x,null)
s2 T2 unknown: r(x,null) w(x,null)
`, "rc", ""},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		level, _ := verdict.ParseLevel(c.level)
		var names []string
		unique := tiny.Unique(s.Txns, record.Assumptions{}.Override(s.Header).Initial)
		for _, v := range slices.Concat(engine(s.Header, s.Txns, level)[0].Violations, online(s.Header, s.Txns, unique, level)) {
			ctx := context(s, level)
			ctx.Judge, ctx.Find = engineJudge, engineFind
			a, err := alerts.New(v, ctx)
			if err != nil {
				t.Errorf("%s: %v of %+v", c.title, err, v)
				continue
			}
			recheck(t, a)
			names = append(names, a.Name)
		}
		if len(names) == 0 || c.name != "" && !slices.Contains(names, c.name) {
			t.Errorf("%s: %q is proved, want %s", c.title, names, c.name)
		}
	}
}

// breaksWhatItSays: no level that an alert names holds of the whole history.
func breaksWhatItSays(t *testing.T, a alerts.Alert, s script.Script) {
	t.Helper()
	for _, name := range a.Breaks {
		if broken, _ := verdict.ParseLevel(name); oracle.Holds(broken, s.Txns, record.Assumptions{}.Override(s.Header)) {
			t.Errorf("%s is told at %v, which holds:\n%s\n%s", a.Name, broken, a.Summary, script.Format(s))
		}
	}
}

// discredit has some transactions of unknown outcome read first what they can hardly have
// read, so that they did not take effect.
func discredit(rng *rand.Rand, txns []record.Transaction) {
	for i := range txns {
		if txns[i].Status != record.Unknown || rng.IntN(2) == 0 {
			continue
		}
		values := []record.Value{record.Null, record.Int(0), record.Int(1), record.Int(7), record.Int(8)}
		key := []string{"x", "y", "z"}[rng.IntN(3)]
		txns[i].Ops = slices.Insert(slices.Clone(txns[i].Ops), 0, record.Op{Kind: record.Read, Key: key, Value: values[rng.IntN(len(values))]})
	}
}
