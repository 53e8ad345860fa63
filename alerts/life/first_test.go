package life

import (
	"fmt"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/name"
)

// However many warnings of the monitor itself there are, the first anomaly is told at once:
// they take half of the places, go into a summary, and leave the last place.
func TestWarningsHoldUpNoAnomaly(t *testing.T) {
	for _, warnings := range []int{1, 3, 5, 20} {
		for _, wait := range []time.Duration{0, 3 * time.Second, 13 * time.Second, 40 * time.Second, 59 * time.Second} {
			s := newSim(t, Config{Repeat: time.Hour})
			told := 0
			for i := range warnings {
				s.l.Raise(Condition{Kind: "dead-letters", Of: fmt.Sprint(i), Severity: name.Warning, Event: true, Count: 1}, s.now)
				told += len(s.next())
			}
			told += len(s.pass(wait))
			if told >= RateMaxDefault {
				t.Errorf("%d warnings, %v: they took %d places", warnings, wait, told)
			}
			got := s.find(lost("1", "x"))
			if len(got) == 0 || got[0].Kind != KindAlert || got[0].Of.Name != "lost-update" {
				t.Errorf("%d warnings, %v: of the anomaly is told %s", warnings, wait, says(got))
			}
			s.pass(2 * time.Minute)
			if s.l.Snapshot().Withheld != 0 || len(s.l.wanting) != 0 {
				t.Errorf("%d warnings, %v: %d groups are never told of", warnings, wait, len(s.l.wanting))
			}
		}
	}
}

// What is worse than all that waits is told first, and what is as bad waits with it.
func TestWorstFirst(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	mild := lost("1", "x")
	mild.Severity = name.Warning
	for i := range 8 {
		mild.ID, mild.DB = fmt.Sprint("w", i), fmt.Sprint(i)
		s.find(mild)
	}
	s.pass(50 * time.Second) // four by themselves, four in a summary
	s.pass(11 * time.Second) // there is room again
	for i := range 3 {
		mild.ID, mild.DB = fmt.Sprint("v", i), fmt.Sprint("v", i)
		s.l.Anomaly(mild, 1, s.now)
	}
	s.l.Anomaly(lost("c", "y"), 1, s.now)
	got := s.next()
	if len(got) == 0 || got[0].Of.Representative != "c" {
		t.Errorf("told is %s", says(got))
	}
}
