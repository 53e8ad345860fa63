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
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// What an alert says of levels is what its evidence shows when it is judged again, whether
// the engine found it in a file or in a stream: its level is the weakest promised one that
// is broken, and all promised ones that are broken are in Breaks; it needs sessions if the
// evidence is none without; and who has the evidence checked gets the same alert.
func TestAlertsSayWhatTheirEvidenceShows(t *testing.T) {
	n := uint64(1500)
	if race.Brief() {
		n = 200
	}
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
	o := oracle.FromHeader(s.Header)
	e := incremental.New(incremental.Options{UnseenUnique: true, UniqueValues: tiny.Unique(s.Txns, o.Initial), Online: true, Levels: levels, Initial: o.Initial, Coverage: o.Coverage,
		Clock: o.Clock, Sessions: o.Sessions, MaxSkew: o.MaxSkew})
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
