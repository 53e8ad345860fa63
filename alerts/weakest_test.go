package alerts_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
)

// What an alert says of levels is what its evidence shows when it is judged again, whether
// the engine found it in a file or in a stream: its level is the weakest promised one that
// is broken, and all promised ones that are broken are in Breaks; it needs sessions if the
// evidence is none without; and who has the evidence checked gets the same alert.
func TestAlertsSayWhatTheirEvidenceShows(t *testing.T) {
	n := uint64(race.Draws(200, 1500))
	var all, process, fallen int
	for seed := range n {
		s, levels := several(seed)
		if seed%4 == 0 {
			s, levels = oneKey(seed)
		}
		for _, online := range []bool{false, true} {
			for _, v := range foundBy(s, levels, online, seed) {
				ctx := context(s, levels...)
				ctx.Judge, ctx.Find, ctx.OneKey = engineJudge, engineFind, slices.Contains(levels, verdict.LIN)
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v\n%s\n%+v", seed, levels, err, script.Format(s), v)
				}
				all++
				if a.Level != v.Level.String() {
					fallen++
				}
				if strings.HasSuffix(a.Adya, "-process") {
					process++
				}
				shows(t, a, levels)
				if t.Failed() {
					t.Fatalf("seed %d, %v, online %v:\n%s\n%s\n%+v", seed, levels, online, script.Format(s), a.JSON(), v)
				}
			}
		}
	}
	t.Logf("%d alerts, %d at another level than they were found at, %d that need sessions", all, fallen, process)
	if !race.Brief() && (fallen*50 < all || process*50 < all) {
		t.Errorf("of %d alerts %d are at another level than they were found at, and %d need sessions: the test is too easy", all, fallen, process)
	}
}

// shows holds an alert to its evidence.
func shows(t *testing.T, a alerts.Alert, levels []verdict.Level) {
	t.Helper()
	h, txns := evidence(t, a)
	var broken []string
	for _, l := range append(name.Ordered(), verdict.LIN) {
		if slices.Contains(levels, l) && engineJudge(l, h, txns) == verdict.Violated {
			broken = append(broken, l.String())
		}
	}
	if !slices.Equal(a.Breaks, broken) || a.Level != broken[0] {
		t.Errorf("level %s, breaks %v; its evidence breaks %v", a.Level, a.Breaks, broken)
	}
	level, _ := verdict.ParseLevel(a.Level)
	weakest, _ := verdict.ParseLevel(a.Weakest)
	ignore := record.SessionsIgnore
	without := h
	without.Sessions = &ignore
	needs := engineJudge(weakest, without, txns) == verdict.Satisfied
	if said := strings.HasSuffix(a.Adya, "-process"); needs != said && !strings.HasSuffix(a.Adya, "-realtime") {
		t.Errorf("%s, %s: that its evidence satisfies %s without sessions is %v", a.Name, a.Adya, a.Weakest, needs)
	}
	var again []string
	for _, v := range engine(h, txns, level)[0].Violations {
		ctx := context(script.Script{Header: h, Txns: txns}, levels...)
		ctx.Judge, ctx.Find, ctx.OneKey = engineJudge, engineFind, slices.Contains(levels, verdict.LIN)
		b, err := alerts.New(v, ctx)
		if err != nil {
			t.Errorf("its evidence: %v", err)
		}
		again = append(again, b.ID)
	}
	if !slices.Contains(again, a.ID) {
		t.Errorf("alert %s; its evidence is %v", a.ID, again)
	}
}

// evidence is what an alert's evidence says.
func evidence(t *testing.T, a alerts.Alert) (record.Header, []record.Transaction) {
	t.Helper()
	h, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	txns := make([]record.Transaction, len(a.Evidence)-1)
	for i, line := range a.Evidence[1:] {
		if err := codec.Decode(line, &txns[i]); err != nil {
			t.Fatal(err)
		}
	}
	return h, txns
}

// several is a random history that breaks something now and then, and some levels.
func several(seed uint64) (script.Script, []verdict.Level) {
	rng := rand.New(rand.NewPCG(seed, 51))
	s := tiny.Random(rng, tiny.Config{Txns: 6, Times: seed%2 == 0, Aborted: seed%5 == 0, Appends: seed%4 == 1, Keys: 1 + int(seed%3), Mutations: 3})
	switch seed % 4 {
	case 1:
		mutateLists(rng, s.Txns)
	case 3: // values that come again, unknown outcomes, partial coverage
		s, rng = ambiguous(seed, 3)
	}
	slices.SortStableFunc(s.Txns, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) }) // as a stream has them
	return s, some(rng, name.Ordered())
}

// some are two or more of some levels.
func some(rng *rand.Rand, levels []verdict.Level) []verdict.Level {
	rng.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
	return levels[:2+rng.IntN(len(levels)-1)]
}

// oneKey is a random history of single keys, of which lin can be asked, with values that come
// again, and some levels.
func oneKey(seed uint64) (script.Script, []verdict.Level) {
	rng := rand.New(rand.NewPCG(seed, 54))
	s := tiny.Random(rng, tiny.Config{Txns: 7, Times: true, OneKey: 100, Keys: 1, Unknown: seed%3 == 0, Duplicates: true, Always: true, Values: 2, Mutations: 3})
	slices.SortStableFunc(s.Txns, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	levels := name.Ordered()
	if slices.Contains(oracle.Levels(s.Txns), verdict.LIN) {
		levels = verdict.Levels()
	}
	return s, some(rng, levels)
}

// foundBy is what the engine finds: in a file, or in a stream with ticks.
func foundBy(s script.Script, levels []verdict.Level, online bool, seed uint64) []verdict.Violation {
	var out []verdict.Violation
	if !online {
		for _, r := range engine(s.Header, s.Txns, levels...) {
			out = append(out, r.Violations...)
		}
		return out
	}
	o := record.Assumptions{}.Override(s.Header)
	e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Coverage: o.Coverage, Clock: o.Clock, Sessions: o.Sessions, MaxSkew: o.MaxSkew}, UniqueValues: tiny.Unique(s.Txns, o.Initial), Online: true, Levels: levels})
	rng := rand.New(rand.NewPCG(seed, 52))
	for i := range s.Txns {
		e.Step(&s.Txns[i], int64(i))
		if rng.IntN(2) == 0 {
			watermark := int64(i) + 1
			if s.Txns[i].HasTimes {
				watermark = s.Txns[i].End
			}
			out = append(out, e.Tick(watermark).Violations...)
		}
	}
	for _, r := range e.Close() {
		out = append(out, r.Violations...)
	}
	return out
}

// rereading is a random history in which some transactions read a key once more and found what else was
// written to it: by who committed, or may have. Of a read that is evidence for who took effect, the others of its
// key may be of writers who are not evidence.
func rereading(seed uint64) (script.Script, []verdict.Level) {
	rng := rand.New(rand.NewPCG(seed, 58))
	s := tiny.Random(rng, tiny.Config{Txns: 6, Keys: 2, Ops: 3, Sessions: 4, Times: seed%2 == 0, Aborted: seed%4 == 0, Unknown: true, Appends: seed%3 == 1, Duplicates: seed%3 == 0,
		Updates: 40, Weak: 60, Always: true, Mutations: int(seed % 3)})
	if seed%5 == 0 {
		initial := record.InitialAny
		s.Header.Initial = &initial
	}
	for i := range s.Txns {
		for j, op := range s.Txns[i].Ops {
			from := &s.Txns[rng.IntN(len(s.Txns))]
			at := slices.IndexFunc(from.Ops, func(o record.Op) bool { return o.Key == op.Key && o.Kind != record.Append })
			if op.Kind == record.Read && at >= 0 && rng.IntN(3) == 0 {
				again := record.Op{Kind: record.Read, Key: op.Key, Value: from.Ops[at].Value}
				s.Txns[i].Ops = slices.Insert(slices.Clone(s.Txns[i].Ops), j+rng.IntN(2), again)
				break
			}
		}
	}
	slices.SortStableFunc(s.Txns, func(a, b record.Transaction) int { return cmp.Compare(a.End, b.End) })
	return s, some(rng, name.Ordered())
}

func appends(t record.Transaction, key string) []record.Op {
	return ops(t, func(op record.Op) bool { return op.Kind == record.Append && op.Key == key })
}

// TestNoOtherLevelIsInvented: what the oracle says of evidence it says of all that was recorded too, at each level, also at
// those below the one that the evidence is for.
func TestNoOtherLevelIsInvented(t *testing.T) {
	made, several := 0, 0
	for seed := *seeds.First; seed < *seeds.First+uint64(race.Draws(500, 3000)); seed++ {
		s, levels := rereading(seed)
		if oracle.Supported(s.Txns) != nil {
			continue
		}
		var holds map[verdict.Level]bool
		for _, online := range []bool{false, true} {
			for _, v := range foundBy(s, levels, online, seed) {
				ctx := context(s, levels...)
				ctx.Judge, ctx.Find, ctx.UnseenUnique = engineJudge, engineFind, new(seed%4 <= 1)
				a, err := alerts.New(v, ctx)
				if err != nil {
					continue // it is not told
				}
				if holds == nil {
					holds = oracle.Check(s.Txns, record.Assumptions{}.Override(s.Header))
				}
				made++
				h, txns := evidence(t, a)
				if one(txns, func(x record.Transaction, key string) bool { return differ(reads(x, key), reads(x, key)) }) {
					if several++; *h.Coverage == record.CoveragePartial && one(txns, func(x record.Transaction, key string) bool { return len(appends(x, key)) > 0 }) {
						continue // of values that nobody wrote beside lists the judge knows only that they differ
					}
				}
				for _, l := range name.Ordered() {
					if holds[l] && alerttest.Judge(l, h, txns) == verdict.Violated {
						t.Fatalf("seed %d, %v, online %v: evidence breaks %v, which holds:\n%s\n%s\n%+v", seed, levels, online, l, script.Format(s), a.JSON(), v)
					}
				}
			}
		}
	}
	t.Logf("%d alerts, %d in whose evidence a key is read twice and not the same", made, several)
	if several*20 < made || made == 0 {
		t.Error("that tells little")
	}
}

// What was once told with evidence of something else, or with none, though it comes in pieces.
func TestEvidenceOfUnknownOutcomes(t *testing.T) {
	for _, c := range []struct {
		title, history string
		weakest        []string
	}{
		{"T7 did not write what T5 read, as it is later, nor did T6, as it did not see T2", `initial any
max_skew 4
s2 T2: w(x,1) r(x,1) @5-9
s2 T4: r(x,1) @10-21
s1 T5: r(x,2) @15-23
s2 T7 unknown: w(x,2) w(x,2) r(x,2) @28-30
s3 T6 unknown: r(x,null) w(x,1) w(x,2) @20-32
`, []string{"strong-si"}},
		{"T5 shows that T2 took effect, and may have written what T2 read; so may T4", `initial zero
s1 T2 unknown: r(y,2) r(y,0) w(x,1)
s1 T4: w(y,2)
s1 T5: r(x,1) w(y,2)
`, []string{"rc", "ra"}},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for seed := range uint64(16) {
			for _, v := range foundBy(s, name.Ordered(), seed > 0, seed) {
				ctx := context(s, name.Ordered()...)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil || !slices.Contains(c.weakest, a.Weakest) {
					t.Errorf("%s: %s at %s: %v", c.title, a.Name, a.Weakest, err)
				}
				told++
			}
		}
		if told < 16 {
			t.Errorf("%s: told %d times", c.title, told)
		}
	}
}
