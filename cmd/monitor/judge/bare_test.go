package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Evidence is judged without describing what is found, and without times that are no part of
// the level. The verdict is the one that a file of the same records has.
func TestEvidenceIsJudgedAsAFile(t *testing.T) {
	n := uint64(race.Draws(400, 1500))
	found := map[verdict.Level]map[verdict.Outcome]int{}
	for _, l := range verdict.Levels() {
		found[l] = map[verdict.Outcome]int{}
	}
	for seed := range n {
		s := tiny.Random(rand.New(rand.NewPCG(seed, 9)), tiny.Config{Txns: 6, Times: true, Duplicates: seed%2 == 0, Aborted: true, Unknown: true,
			Partial: seed%5 == 0, Appends: seed%3 == 0, Keys: int(seed % 4), Mutations: int(seed % 4)})
		for _, clock := range []record.Clock{record.ClockPrune, record.ClockEnforce, record.ClockDatabase, record.ClockIgnore} {
			s.Header.Clock = &clock
			for _, l := range verdict.Levels() {
				want := small(l, s.Header, s.Txns, incremental.Options{}).Outcome
				if got := unlimited(l, s.Header, s.Txns); got != want {
					t.Fatalf("seed %d, %v, clock %v: %v, as a file %v\n%s", seed, l, clock, got, want, script.Format(s))
				}
				found[l][want]++
			}
		}
	}
	for _, l := range verdict.Levels() {
		if found[l][verdict.Violated] < 10 || found[l][verdict.Satisfied] < 10 {
			t.Errorf("%v: %v", l, found[l])
		}
	}
}
