package life

import (
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
)

// While more is to be brought nothing is told to be over: what is found again goes on, as
// far as anybody was told.
func TestNothingIsOverBeforeAllIsBrought(t *testing.T) {
	for _, summary := range []bool{false, true} {
		s := newSim(t, Config{Repeat: time.Hour, ResolveAfter: time.Minute})
		s.find(lost("1", "x"))
		s.find(another("2", "y"))
		s.now += 2 * int64(time.Minute)
		s.judged += ResolveTransactionsDefault
		s.judge(s.l)
		s.l.Tick(s.now)
		if summary { // what waits is told of with what is over
			for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
				s.l.Anomaly(another("of "+k, k), 1, s.now)
			}
		}
		for {
			n, ok := s.l.NextNews(s.now)
			if !ok {
				if !summary || len(s.l.wanting) == 0 {
					break
				}
				s.now += int64(time.Second)
				continue
			}
			if len(n.Resolved) > 0 || n.Kind == KindResolved || len(n.Over) > 0 {
				t.Errorf("summary %v: told is %s, over %v", summary, says([]News{n}), n.Over)
			}
		}
		s.l.Anomaly(alerts.Alert{ID: "1", DB: "shop", Level: "si", Name: "lost-update", Keys: []string{"x"}, Count: 2}, 1, s.now)
		over := map[string]bool{}
		for range 100 {
			s.now += int64(time.Second)
			for _, n := range s.next() {
				for _, id := range n.Resolved {
					over[id] = true
				}
			}
		}
		if x, y := groupID("shop", "si", "lost-update"), groupID("y", "si", "lost-update"); over[x] || !over[y] {
			t.Errorf("summary %v: over are x: %v, y: %v; want y alone", summary, over[x], over[y])
		}
	}
}

// A summary of groups of which each has notices of its own opens nothing, so that nothing
// is told to be over while all of them go on.
func TestSummaryOfToldGroups(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	first := append(s.find(lost("1", "x")), s.find(another("2", "y"))...)
	s.now += int64(time.Second)
	s.find(lost("3", "x"))
	s.find(another("4", "y"))
	n, ok := s.l.Flush(s.now)
	if !ok || n.Kind != KindSummary || n.State != alerts.Ongoing || len(n.IDs) != 2 {
		t.Fatalf("told is %s", says([]News{n}))
	}
	if !slices.ContainsFunc(first, func(f News) bool { return f.Group == n.Group }) {
		t.Errorf("it is of group %s, which nobody heard of", n.Group)
	}
	if n, ok := s.l.Flush(s.now); ok {
		t.Errorf("then told is %s, over %v", says([]News{n}), n.Resolved)
	}
	// One that is new opens one, as it has no notice of its own.
	s.find(lost("5", "x"))
	s.l.Anomaly(another("6", "z"), 1, s.now)
	s.l.Anomaly(another("7", "w"), 1, s.now)
	if n, ok := s.l.Flush(s.now); !ok || n.State != alerts.Fresh || n.Group != s.l.burst.id || s.l.burst.members != 2 {
		t.Errorf("told is %s of %s", says([]News{n}), n.Group)
	}
}
