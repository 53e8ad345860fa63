package life

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Condition is trouble of the monitor or its input: what is the case until it is
// over.
type Condition struct {
	Kind string // silent, lag, …: the name is operational/ and this
	DB   string // empty: it is not of one history
	Of   string // which one of several: a partition, a receiver; may be empty
	// Text says what is the case and what to do, in a sentence or two.
	Text     string
	Severity name.Severity
	// Event: it has happened and has no end of its own. It is over when nothing of
	// the kind has happened for Config.ResolveAfter.
	Event bool
	// Count is how many times more it happened; 0 for what only lasts.
	Count int64
}

// Operational begins the names of conditions.
const Operational = "operational/"

// Group is what belongs together: alerts of one database and name that break the same weakest
// level, which as a rule have one cause, or a condition. What is asked for changes no group's id.
type Group struct {
	ID string `json:"id"`
	DB string `json:"db"`
	// Level is the weakest that is asked for of those that it breaks; of what breaks none, the last one.
	Level string `json:"level"`
	// Weakest is the weakest level that it breaks, whether anybody asked for that or not; empty for a condition.
	Weakest  string        `json:"weakest,omitempty"`
	Name     string        `json:"name"`
	Keys     []string      `json:"keys"` // some of those that its alerts are about
	State    alerts.State  `json:"state"`
	Severity name.Severity `json:"severity"` // the worst
	// Since is when it began, Last when it was last found, ResolvedAt when it was
	// over, 0 if it is not; Unix nanoseconds.
	Since      int64 `json:"since"`
	Last       int64 `json:"last"`
	ResolvedAt int64 `json:"resolved_at,omitempty"`
	// Count is how often it was found, Alerts how many different ones there are,
	// Silenced how much of Count fell under a silence.
	Count    int64 `json:"count"`
	Alerts   int64 `json:"alerts"`
	Silenced int64 `json:"silenced"`
	// Muted: a silence holds now.
	Muted bool `json:"muted"`
	// Representative is the alert that stands for it: the worst, and of these the
	// first. Empty for a condition.
	Representative string `json:"representative,omitempty"`
	// Text is what a condition says.
	Text string `json:"text,omitempty"`

	broken string // its levels, as weakest has them
}

// Broken are those of some levels that it breaks; of a condition, none.
func (g *Group) Broken(asked []verdict.Level) (out []string) {
	if g.broken == "" {
		return nil
	}
	for _, l := range asked {
		if breaks(g.broken, l.String()) {
			out = append(out, l.String())
		}
	}
	return out
}

// GroupOf is the group of an alert.
func GroupOf(a alerts.Alert) string { return groupID(a.DB, cmp.Or(a.Weakest, a.Level), a.Name) }

func groupID(db, weakest, of string) string { return alerts.Hash("group", db, weakest, of) }

// coarseID is the group of alerts that share all but the name, overflowID that of
// everything else; see Config.GroupsMax.
func coarseID(db, weakest string) string { return alerts.Hash("coarse", db, weakest) }

// severalNames is the name of a group of alerts that have different ones.
const severalNames = "several"

// conditionID is the group of a condition; one without a database and what it is of has
// those of its kind for which there is no room.
func conditionID(db, of string, what []string) string {
	return alerts.Hash(append([]string{"condition", db, of}, what...)...)
}

var overflowID = alerts.Hash("overflow")

// Snapshot is what there is at an instant, for readers. It does not change.
type Snapshot struct {
	// Groups that are not over, the latest first, then those that are.
	Groups   []Group
	Silences []Silence
	// Withheld counts the alerts that no notice has told of yet.
	Withheld int
	byID     map[string]int
	fed      int64 // when the latest alert that is part of it was found
	dbs      map[string]*database
	enough   Judged
}

// Group finds a group.
func (s *Snapshot) Group(id string) (Group, bool) {
	if s == nil {
		return Group{}, false
	}
	i, ok := s.byID[id]
	if !ok {
		return Group{}, false
	}
	return s.Groups[i], true
}

// Of is the group that an alert is in, if it is still remembered.
func (s *Snapshot) Of(a alerts.Alert) (Group, bool) {
	for _, id := range []string{GroupOf(a), coarseID(a.DB, cmp.Or(a.Weakest, a.Level)), overflowID} {
		if g, ok := s.Group(id); ok && a.LastSeen <= max(g.Last, g.ResolvedAt) && a.LastSeen >= g.Since {
			return g, true
		}
	}
	return Group{}, false
}

// Overlay is an alert as it is now: resolved if its group is over, or so long over
// that it is forgotten; of the level that its group is of.
func (s *Snapshot) Overlay(a alerts.Alert) alerts.Alert {
	a.Group = GroupOf(a)
	if len(a.Suspicion) > 0 { // it was never told of
		return a
	}
	g, ok := s.Of(a)
	switch {
	case !ok && s != nil && a.LastSeen < s.fed: // a later one may not be part of it yet
		a.State = alerts.Resolved
	case ok && g.State == alerts.Resolved:
		a.State, a.ResolvedAt = alerts.Resolved, g.ResolvedAt
	}
	if ok {
		a.Group = g.ID
		a = g.Asked(a)
	}
	return a
}

// Asked is an alert of the group as it is by what is asked for now: of the group's level, which is one more
// that it breaks.
func (g *Group) Asked(a alerts.Alert) alerts.Alert {
	if g.Level == "" || g.Level == a.Level {
		return a
	}
	if a.Level = g.Level; !slices.Contains(a.Breaks, g.Level) {
		a.Breaks = append(slices.Clone(a.Breaks), g.Level)
		slices.SortFunc(a.Breaks, func(x, y string) int { return cmp.Compare(strength(x), strength(y)) })
	}
	return a
}
