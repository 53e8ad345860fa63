package judge_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// mutants is how many real histories lose a record, and losses how many random ones of each kind.
var (
	mutants = flag.Int("mutants", race.Draws(3, 8), "recorded histories of which one record is lost")
	losses  = flag.Int("losses", race.Draws(40, 120), "random histories of each kind of which one record is lost")
	seed    = flag.Uint64("seed", 1, "the first seed")
)

// judged is what check says of records, the proofs of all that is satisfied being replayed.
func judged(t *testing.T, txns []record.Transaction, assume record.Assumptions, levels []verdict.Level) (out report.History) {
	t.Helper()
	if err := judge.Check(judge.Question{DB: record.DefaultDB, Txns: txns, Levels: levels, Assume: assume, AnomaliesMax: 3, Replay: true}, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// hole is a history of which C2, which wrote x = 1, is lost. That values repeat is shown by z.
const hole = `
	s1 A1: r(x,1)
	s1 A2: w(y,1)
	s2 B1: r(y,1)
	s2 B2: w(x,1)
	s3 C1: w(z,1)
	s3 C3: w(z,%s)
	s4 D1: r(z,1)
	s5 E: %s`

// Where a record is missing and values are seen to repeat, a value that was read may be the missing one's. What
// shows that they do, and what shows nothing else, as the initial value and null are anybody's, and an aborted attempt
// is made again. What needs no writer is told all the same; and what is said of values goes before
// what is seen.
func TestWhoIsUnseenMayRepeat(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		title, z, more string
		unique         *bool
		want           verdict.Outcome
	}{
		{"another key's values repeat", "1", "r(z,1)", nil, verdict.Unknown},
		{"by somebody whose outcome is not known", "2", "r(z,1)\n\ts6 F unknown: w(z,2)", nil, verdict.Unknown},
		{"by somebody who overwrote it himself", "2", "r(z,1)\n\ts6 F: w(z,2) w(z,3)", nil, verdict.Unknown},
		{"by somebody who wrote back what he read", "2", "r(z,1)\n\ts6 F: r(y,7) w(y,7)", nil, verdict.Unknown},
		{"and overwrote it himself", "2", "r(z,1)\n\ts6 F: r(y,7) w(y,7) w(y,8)", nil, verdict.Unknown},
		{"by nobody who read what he had written", "2", "r(z,1)\n\ts6 F: w(y,7) r(y,7)", nil, verdict.Violated},
		{"no values repeat", "2", "r(z,1)", nil, verdict.Violated},
		{"within a transaction only", "2", "w(z,3) w(z,4) w(z,3)", nil, verdict.Violated},
		{"only deletes do", "null", "w(z,null)", nil, verdict.Violated},
		{"only aborted attempts do", "2", "r(z,1)\n\ts6 F aborted: w(z,2)", nil, verdict.Violated},
		{"they are said to be unique", "1", "r(z,1)", &yes, verdict.Violated},
		{"they are said to repeat", "2", "r(z,1)", &no, verdict.Unknown},
		{"a read that contradicts its own transaction", "1", "w(x,7) r(x,8)", nil, verdict.Violated},
		{"one value read, then another", "1", "r(x,7) r(x,8)", nil, verdict.Violated},
	} {
		s, err := script.Parse(fmt.Sprintf(hole, tc.z, tc.more))
		if err != nil {
			t.Fatal(err)
		}
		s.Txns[5].Seq = 2 // C2 is not there
		levels := []verdict.Level{verdict.RA, verdict.CC, verdict.SI, verdict.StrongSI, verdict.SER, verdict.SSER}
		h := judged(t, s.Txns, record.Assumptions{UnseenUnique: tc.unique}, levels)
		for _, r := range h.Results {
			if r.Verdict != tc.want.String() {
				t.Errorf("%s: %s is %s, want %v", tc.title, r.Level, r.Verdict, tc.want)
			}
			if len(r.Anomalies) == 0 != (tc.want != verdict.Violated) {
				t.Errorf("%s: %s has %d anomalies", tc.title, r.Level, len(r.Anomalies))
			}
		}
	}
}

// Where a record is missing, and a list is seen to be written as a whole, the missing one may have emptied another: two
// lists that don't begin alike show nothing, unless it is said that values are new.
func TestWhoIsUnseenMayEmptyAList(t *testing.T) {
	yes := true
	for _, tc := range []struct {
		c1     string
		unique *bool
		want   verdict.Outcome
	}{
		{"append(y,1) w(y,[])", nil, verdict.Unknown},
		{"append(y,1) w(y,[])", &yes, verdict.Violated},
		{"append(y,1)", nil, verdict.Violated},
	} {
		s, err := script.Parse("s1 A: append(x,1)\ns2 B: r(x,[1])\ns3 C1: " + tc.c1 + "\ns3 C3: w(z,1)\ns4 D: append(x,2)\ns5 E: r(x,[2])")
		if err != nil {
			t.Fatal(err)
		}
		s.Txns[3].Seq++ // C2, which wrote [] to x, is not there
		for _, r := range judged(t, s.Txns, record.Assumptions{UnseenUnique: tc.unique}, []verdict.Level{verdict.RC, verdict.SI, verdict.SER}).Results {
			if r.Verdict != tc.want.String() {
				t.Errorf("%s: %s is %s, want %v", tc.c1, r.Level, r.Verdict, tc.want)
			}
		}
	}
}

// Where values may repeat but nobody is unseen, a list proves an anomaly without the appenders of all its elements.
func TestListsProveWhereValuesMayRepeat(t *testing.T) {
	for _, history := range []string{
		"s1 A: append(x,11)\ns1 B: append(x,12) append(x,14)\ns2 C: append(x,15)\ns3 D: append(x,13) r(x,[11,13])\n" +
			"s2 E: append(x,16) r(x,[11,12,14,15,16])",
		"s0 A: append(x,13)\ns2 B: append(x,11) append(x,12)\ns1 C: append(x,14)\ns0 D: r(x,[14,12,11,13])",
		"s1 A: append(x,11) append(x,12)\ns1 B aborted: append(x,16)\ns1 C: r(x,[11,12,16])",
		"s1 A unknown: append(x,11) append(x,12)\ns1 B aborted: append(x,16)\ns2 C: r(x,[11,12,16,17])",
		"s1 A: append(x,11)\ns2 B: append(x,12)\ns3 C: r(x,[11,12,11])",
		"s1 A: append(x,11)\ns2 B unknown: append(x,12)\ns3 C: r(x,[11]) r(x,[11,12])",
		"s1 A: append(x,11)\ns2 B: r(x,[11]) append(x,12)\ns3 C: r(x,[11]) append(x,13)",
	} {
		s, err := script.Parse(history)
		if err != nil {
			t.Fatal(err)
		}
		no, levels := false, []verdict.Level{verdict.SI, verdict.SER}
		for _, r := range judged(t, s.Txns, record.Assumptions{UnseenUnique: &no}, levels).Results {
			if r.Verdict != verdict.Violated.String() || slices.Contains(r.Notes, report.Unproved(1)) {
				t.Errorf("%s is %s: %q\n%s", r.Level, r.Verdict, r.Notes, history)
			}
		}
	}
}

// What a key held at first is seen in complete evidence only, and there a list is one with all who appended its elements.
func TestListsBesideWhatAKeyHeldAtFirst(t *testing.T) {
	s, err := script.Parse("s3 A: w(r,5) append(x,2)\ns2 B: r(r,null) append(x,1)\ns1 C: append(x,9)\ns5 D: append(x,8)\n" +
		"s6 E: append(x,7)\ns4 F: r(x,[9,8,2,1,7,6])\ns7 G: append(x,6)")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range judged(t, s.Txns, record.Assumptions{}, []verdict.Level{verdict.SI, verdict.SER}).Results {
		if r.Verdict != verdict.Violated.String() || slices.Contains(r.Notes, report.Unproved(1)) {
			t.Errorf("%s is %s: %q", r.Level, r.Verdict, r.Notes)
		}
	}
}

// Who put back what it had read shows what its key held at first, where that is not declared, and others may have read it
// then: only what somebody made is nobody's initial value.
func TestWhoPutsBackMayHaveReadWhatWasThere(t *testing.T) {
	for _, tc := range []struct {
		title, txns string
		want        verdict.Outcome
	}{
		{"put back", "s1 C: w(x,14)\ns2 B: r(y,77) r(x,14)\ns3 A: r(y,77) r(x,14) w(y,77) w(x,1)", verdict.Satisfied},
		{"in the reader's own session", "s1 A: r(y,77)\ns1 B: r(y,77) w(y,77) w(x,1)\ns2 C: r(y,77) w(q,77)", verdict.Satisfied},
		{"null", "s1 A: r(y,null)\ns1 B: r(y,null) w(y,null)", verdict.Satisfied},
		{"by two", "s1 A: r(y,77)\ns1 B: r(y,77) w(y,77)\ns2 C: r(y,77) w(y,77)", verdict.Satisfied},
		{"and overwritten", "s1 A: r(y,77)\ns2 B: r(y,77) w(y,77) w(y,78)", verdict.Satisfied},
		{"by an attempt that was aborted", "s1 A: r(y,77)\ns2 B aborted: r(y,77) w(y,77)", verdict.Satisfied},
		{"by one whose outcome is not known", "s1 A: r(y,77)\ns1 B unknown: r(y,77) w(y,77)", verdict.Satisfied},
		{"and read from there", "s1 A: r(y,77) w(y,77) w(z,1)\ns2 B: r(z,1) r(y,77)", verdict.Satisfied},
		{"but held only one", "s1 A: r(y,77) w(y,77)\ns2 B: r(y,78) w(y,78)", verdict.Violated},
		{"but held another", "s1 A: r(y,77)\ns2 B: r(y,77) w(y,77)\ns3 C: r(y,78)", verdict.Violated},
		{"but was seen overwritten", "s1 A: r(y,77) w(y,77)\ns1 B: w(y,1)\ns1 C: r(y,77)", verdict.Violated},
		{"made by somebody", "s1 A: r(y,77)\ns1 B: r(y,77) w(y,77)\ns1 C: w(y,77)", verdict.Violated},
		{"made by an attempt that was aborted", "s1 A: r(y,77)\ns2 B aborted: w(y,77) r(y,77)", verdict.Violated},
		{"not read before", "s1 A: r(y,77)\ns1 B: w(y,77)", verdict.Violated},
	} {
		s, err := script.Parse(tc.txns)
		if err != nil {
			t.Fatal(err)
		}
		levels := []verdict.Level{verdict.RA, verdict.CC, verdict.SI, verdict.SER}
		h := judged(t, s.Txns, record.Assumptions{Coverage: record.CoverageComplete}, levels)
		for i, r := range h.Results {
			if r.Verdict != tc.want.String() || oracle.Holds(levels[i], s.Txns, record.Assumptions{}) != (tc.want == verdict.Satisfied) {
				t.Errorf("%s: %s is %s, want %v", tc.title, r.Level, r.Verdict, tc.want)
			}
		}
		if n := len(h.Results[0].Anomalies); (tc.want == verdict.Violated) != (n > 0) {
			t.Errorf("%s: it has %d proofs", tc.title, n)
		}
	}
}

// Who read other values as well before it put one back is shown with all who wrote them: no anomaly is told of a level that
// holds.
func TestWhoReadMoreThanItPutsBack(t *testing.T) {
	s, err := script.Parse("s2 A: r(x,2) r(x,null) w(x,2)\ns1 B: w(x,2)\ns2 C: r(x,null)")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range judged(t, s.Txns, record.Assumptions{}, verdict.Levels()).Results {
		for _, a := range r.Anomalies {
			if l, ok := verdict.ParseLevel(a.Level); !ok || oracle.Holds(l, s.Txns, record.Assumptions{}) {
				t.Errorf("%s: %s is told of %s", r.Level, a.Name, a.Level)
			}
		}
	}
}

// Who writes back what it read can have read it of a lost attempt like anybody else, where an earlier one was aborted.
func TestWhoWritesBackMayHaveReadALostAttempt(t *testing.T) {
	for _, tc := range []struct {
		ops  string
		lost bool
		want verdict.Outcome
	}{
		{"r(x,1)", true, verdict.Satisfied},
		{"r(x,1) w(x,1)", true, verdict.Satisfied},
		{"r(x,1) w(x,1) w(x,2)", true, verdict.Satisfied},
		{"r(x,1) w(x,1)", false, verdict.Violated},
	} {
		s, err := script.Parse("s1 A1 aborted: w(x,1)\ns1 A3: w(y,1)\ns2 T1: " + tc.ops)
		if err != nil {
			t.Fatal(err)
		}
		if tc.lost {
			s.Txns[1].Seq++ // A2 is not there
		}
		// That others are unseen, too, proves no more.
		for _, coverage := range []record.Coverage{record.CoverageComplete, record.CoveragePartial} {
			if coverage == record.CoveragePartial && !tc.lost {
				continue // who writes back what he read shows that values repeat
			}
			h := judged(t, s.Txns, record.Assumptions{Coverage: coverage}, []verdict.Level{verdict.G1, verdict.SER})
			for _, r := range h.Results {
				if r.Verdict != tc.want.String() {
					t.Errorf("%s, lost %v, %v: %s is %s, want %v", tc.ops, tc.lost, coverage, r.Level, r.Verdict, tc.want)
				}
			}
		}
	}
}

// dropped are the records without one, whose absence its session's seq shows.
func dropped(rng *rand.Rand, txns []record.Transaction) (rest []record.Transaction, gone *record.Transaction) {
	last := map[string]int64{}
	for i := range txns {
		last[txns[i].Session] = max(last[txns[i].Session], txns[i].Seq)
	}
	var shown []int // a record behind it shows that it is missing
	for i := range txns {
		if x := &txns[i]; x.HasSeq && x.Seq > 0 && x.Seq < last[x.Session] {
			shown = append(shown, i)
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	i := shown[rng.IntN(len(shown))]
	return slices.Delete(slices.Clone(txns), i, i+1), &txns[i]
}

// repeats tells whether two transactions that were not aborted wrote the same value to the same key.
func repeats(txns []record.Transaction, initial record.Initial) bool {
	of := map[record.Op]string{}
	for _, x := range txns {
		for _, op := range x.Ops {
			if x.Status == record.Aborted || op.Kind == record.Read || tiny.Unique([]record.Transaction{{Ops: []record.Op{op, op}}}, initial) {
				continue // nobody's, or anybody's
			}
			if by, ok := of[op]; ok && by != x.ID {
				return true
			}
			of[op] = x.ID
		}
	}
	return false
}

// accused are the levels that hold of a history and are violated without one of its records, and all that are
// violated then; every violation has to have its proof.
func accused(t *testing.T, whole report.History, rest []record.Transaction, assume record.Assumptions, levels []verdict.Level) (wrong, all []string) {
	t.Helper()
	for i, r := range judged(t, rest, assume, levels).Results {
		if r.Verdict != verdict.Violated.String() {
			continue
		}
		all = append(all, r.Level)
		if whole.Results[i].Verdict == verdict.Satisfied.String() || len(r.Anomalies) == 0 {
			wrong = append(wrong, fmt.Sprintf("%s, by %d anomalies, noted %q", r.Level, len(r.Anomalies), r.Notes))
		}
	}
	return wrong, all
}

// Whatever record is lost, nothing that holds is violated, where values repeat or not, as long as what is left
// shows it.
func TestLossesAccuseNobody(t *testing.T) {
	for name, cfg := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Partial, cfg.Txns, cfg.Mutations, cfg.Sessions = false, 8, cfg.Mutations/2, 2
			robbed, repeating, violated := 0, 0, 0
			for i := range uint64(*losses) {
				seed := *seed + i
				s := tiny.Random(rand.New(rand.NewPCG(seed, 51)), cfg)
				assume := record.Assumptions{}.Override(s.Header)
				rest, gone := dropped(rand.New(rand.NewPCG(seed, 52)), s.Txns)
				shows := rest != nil && repeats(rest, assume.Initial)
				if rest == nil || !shows && repeats(s.Txns, assume.Initial) {
					continue
				}
				robbed++
				if shows {
					repeating++
				}
				wrong, all := accused(t, judged(t, s.Txns, assume, verdict.Levels()), rest, assume, verdict.Levels())
				violated += len(all)
				if len(wrong) > 0 {
					t.Fatalf("seed %d: without %s violated: %s\n%s", seed, gone.ID, strings.Join(wrong, "; "), script.Format(s))
				}
			}
			if t.Logf("%d histories, values of %d repeat; %d levels violated", robbed, repeating, violated); robbed < *losses/4 || violated == 0 && *losses >= 400 {
				t.Error("that tells little")
			}
		})
	}
}

// Real histories lose a record each: no level that they satisfy is violated then.
func TestLossesOfRealHistories(t *testing.T) {
	dir := os.Getenv("ISOWATCH_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "recorded", "*.jsonl.gz"))
	if len(files) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("the corpus of real histories is missing in %s; set ISOWATCH_CORPUS to its folder", dir)
		}
		t.Skip("SKIPPED: NO REAL HISTORY LOSES A RECORD; set ISOWATCH_CORPUS to the corpus folder")
	}
	const most = 400 // transactions: the beginning of a recording
	levels := []verdict.Level{verdict.RC, verdict.RA, verdict.CC, verdict.SI, verdict.SER}
	robbed, repeating, satisfied, violated := 0, 0, 0, 0
	for i := range *mutants {
		file := files[i%len(files)]
		rng := rand.New(rand.NewPCG(*seed+uint64(i), 53))
		hs, err := history.Open(file, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		assume := record.Assumptions{}.Override(hs[0].Header)
		txns := hs[0].Transactions
		slices.SortStableFunc(txns, func(a, b record.Transaction) int { return int(a.End - b.End) })
		txns = slices.Clone(txns[:min(len(txns), most/2+rng.IntN(most))])
		whole := judged(t, txns, assume, levels)
		for _, r := range whole.Results {
			if r.Verdict == verdict.Satisfied.String() {
				satisfied++
			}
		}
		rest, gone := dropped(rng, txns)
		if rest == nil {
			continue
		}
		robbed++
		if repeats(rest, assume.Initial) {
			repeating++
		}
		wrong, all := accused(t, whole, rest, assume, levels)
		violated += len(all)
		if len(wrong) > 0 {
			t.Errorf("%s, seed %d: %d transactions, without %s violated: %s", filepath.Base(file), *seed+uint64(i), len(txns), gone.ID, strings.Join(wrong, "; "))
		}
	}
	if t.Logf("%d real histories with one record lost, values of %d repeat; %d levels satisfied before, %d violated after", robbed, repeating, satisfied, violated); robbed < *mutants/2 || satisfied == 0 {
		t.Error("that tells little")
	}
}
