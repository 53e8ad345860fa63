package life

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
)

// partsMax bounds the parts of each kind that a notice has.
const partsMax = 8

// Next is the next notice to be made, if there is one and the rate lets it out; it
// counts as told from then on. Call it until there is none.
//
// Groups are told of one by one, the worst first, while there is room for two: the last
// place is for what must wait. Once one had to, all do, so that one summary has all of it;
// it comes when there is room, a gather after the notice before it. Warnings of the
// monitor itself take about half of the places at most, and none that would leave only the
// last; and what is worse than all that waits goes before it: whoever sends records that
// can't be used must not hold up the first lost update.
func (l *Life) Next(now int64) (News, bool) { return l.next(now, true) }

// NextNews is Next while more is to be brought: nothing is told to be over before that, as
// it may have been found again.
func (l *Life) NextNews(now int64) (News, bool) { return l.next(now, false) }

func (l *Life) next(now int64, ends bool) (News, bool) {
	l.advance(now)
	free := l.free()
	if free == 0 {
		l.hold()
		return News{}, false
	}
	if i := l.alone(free); i >= 0 {
		return l.single(i), true
	}
	gathered := len(l.sent) == 0 || l.now >= l.sent[len(l.sent)-1]+l.gather()
	if l.hold(); l.backlog > 0 {
		if !gathered || l.reserves(free) {
			return News{}, false
		}
		return l.summary(l.farewells(ends)), true
	}
	if ends && (gathered || free > l.cfg.RateMax/2) {
		if over := l.farewells(true); len(over) > 0 || l.burst.over {
			return l.resolved(over), true
		}
	}
	return News{}, false
}

// alone is the group in the line that is to be told of by itself, if so many notices may
// go out; -1: none is.
func (l *Life) alone(free int) int {
	if len(l.wanting) == 0 || l.tight(free) {
		return -1
	}
	if i := slices.IndexFunc(l.wanting, func(g *group) bool { return g.operational() && !g.mild() }); i >= 0 {
		return i
	}
	worst, equals := 0, 0
	for i, g := range l.wanting {
		switch r := rank(g.Severity) - rank(l.wanting[worst].Severity); {
		case r > 0:
			worst, equals = i, 1
		case r == 0:
			equals++
		}
	}
	switch g := l.wanting[worst]; {
	case g.mild() && l.cfg.RateMax > 1 && free <= l.cfg.RateMax/2:
		return -1
	case l.backlog > 0 && (equals > 1 || rank(g.Severity) <= rank(name.Warning)):
		return -1
	}
	return worst
}

// tight: there is no more than the last place, which is for a summary.
func (l *Life) tight(free int) bool { return free <= 1 && l.cfg.RateMax > 1 }

// reserves tells whether a summary has to wait although there is room for it: all of it
// are warnings of the monitor itself, and after it there would be none for what is told
// by itself.
func (l *Life) reserves(free int) bool {
	return (l.tight(free) || l.tight(free-1) && l.cfg.RateMax > 2) && len(l.wanting) > 0 &&
		!slices.ContainsFunc(l.wanting, func(g *group) bool { return !g.mild() })
}

// mild: it is trouble of the monitor or its input that does not hurt yet.
func (g *group) mild() bool { return g.operational() && rank(g.Severity) <= rank(name.Warning) }

// hold begins a backlog if there is something that must wait.
func (l *Life) hold() {
	if len(l.wanting) > 0 && l.backlog == 0 {
		l.backlog = max(l.now, 1)
	}
}

// Flush is a notice of all that none has told of yet, whatever the rate: for the end
// of the input, and before a stop.
func (l *Life) Flush(now int64) (News, bool) {
	l.advance(now)
	for _, g := range l.those(func(g *group) bool { return g.State != alerts.Resolved && len(g.unsaid) > 0 }) {
		l.want(g)
	}
	over := l.farewells(true)
	switch {
	case len(l.wanting) > 0:
		return l.summary(over), true
	case len(over) > 0 || l.burst.over:
		return l.resolved(over), true
	}
	return News{}, false
}

// free is how many notices the rate lets out now.
func (l *Life) free() int {
	for len(l.sent) > 0 && l.sent[0]+int64(l.cfg.RatePer) <= l.now {
		l.sent = l.sent[1:]
	}
	return max(0, l.cfg.RateMax-len(l.sent))
}

// single is a notice of the i-th group in the line.
func (l *Life) single(i int) News {
	g := l.wanting[i]
	l.wanting = slices.Delete(l.wanting, i, i+1)
	n := News{State: g.State}
	switch {
	case g.tier == tierCondition:
		n.Kind = KindOperational
	case !g.told && !g.burst:
		n.Kind = KindAlert
	default:
		n.Kind, n.State = KindOngoing, alerts.Ongoing
	}
	n.Group, n.Of = g.ID, g.Group
	l.say(&n, g)
	if g.burst {
		l.leaveBurst(g)
	}
	g.told = true
	return l.sign(n)
}

// leaveBurst: from now on the group has notices of its own.
func (l *Life) leaveBurst(g *group) {
	g.burst = false
	if l.burst.members--; l.burst.members == 0 {
		l.burst.over = true
	}
}

// summary is a notice of all groups in the line, and of those that are over. One group
// alone is told of by itself. What stands for it, how bad it is and whether it is new is
// that of the groups in the line: what is over is only said to be so. If all of them have
// notices of their own, it is one of the group that stands for them: there would be
// nothing that a burst is open for.
func (l *Life) summary(over []*group) News {
	l.backlog = 0
	if len(l.wanting) == 1 && len(over) == 0 && !l.burst.over {
		return l.single(0)
	}
	own := !slices.ContainsFunc(l.wanting, func(g *group) bool { return !g.told })
	if l.burst.id == "" && !own {
		l.burst = burst{id: alerts.Hash("burst", fmt.Sprint(l.now), l.wanting[0].ID), since: l.now}
	}
	l.burst.over = false
	n := News{State: alerts.Ongoing}
	n.Kind, n.Group = KindSummary, l.burst.id
	if own {
		n.Group = foremost(l.wanting).ID
	}
	n.Parts = partsOf(l.wanting)
	for _, g := range l.wanting {
		l.say(&n, g)
		if !g.told && !g.burst {
			n.State = alerts.Fresh
			g.burst = true
			l.burst.members++
		}
	}
	n.Of = foremost(l.wanting)
	l.wanting = nil
	n.Over = partsOf(over)
	for _, g := range over {
		l.bury(&n, g)
	}
	if l.burst.id != "" && l.burst.members == 0 {
		l.burst.over = true // all of it have notices of their own
	}
	return l.sign(n)
}

// foremost is the group that stands for several: of the anomalies, or if there are none
// of the conditions, the worst, and of these the first. It is as bad as the worst of all.
func foremost(all []*group) Group {
	of := worst(all)
	if anomalies := slices.DeleteFunc(slices.Clone(all), (*group).operational); len(anomalies) > 0 {
		severity := of.Severity
		of = worst(anomalies)
		of.Severity = severity
	}
	return of
}

func (g *group) operational() bool { return g.tier == tierCondition }

// partsOf are the groups by what they have in common: first anomalies, the most
// frequent in front, then conditions, the worst in front; of each at most partsMax.
func partsOf(all []*group) []Part {
	type of struct{ db, level, name string }
	parts := map[of]*Part{}
	for _, g := range all {
		k := of{g.DB, g.Level, g.Name}
		p := parts[k]
		if p == nil {
			p = &Part{Group: g.ID, DB: g.DB, Level: g.Level, Name: g.Name, Text: g.Text, Severity: g.Severity}
			parts[k] = p
		}
		if rank(g.Severity) > rank(p.Severity) {
			p.Severity = g.Severity
		}
		p.Groups++
		p.Alerts += len(g.unsaid)
	}
	var anomalies, conditions []Part
	for _, p := range parts {
		if strings.HasPrefix(p.Name, Operational) {
			conditions = append(conditions, *p)
		} else {
			anomalies = append(anomalies, *p)
		}
	}
	byName := func(a, b Part) int {
		return cmp.Or(strings.Compare(a.DB, b.DB), strings.Compare(a.Level, b.Level), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(anomalies, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Alerts, a.Alerts), cmp.Compare(b.Groups, a.Groups), byName(a, b))
	})
	slices.SortFunc(conditions, func(a, b Part) int {
		return cmp.Or(cmp.Compare(rank(b.Severity), rank(a.Severity)),
			byName(a, b))
	})
	return append(anomalies[:min(len(anomalies), partsMax)], conditions[:min(len(conditions), partsMax)]...)
}

// farewells are the groups of which it is to be told that they are over, if that may be.
func (l *Life) farewells(may bool) []*group {
	if !may {
		return nil
	}
	var out []*group
	for _, g := range l.groups {
		if g.farewell {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, byEnd)
	return out
}

// resolved is a notice of groups, and the burst, that are over. What stands for it is the
// worst of those that had a notice of their own, and if none had, of all.
func (l *Life) resolved(over []*group) News {
	n := News{State: alerts.Resolved}
	n.Kind = KindResolved
	if len(over) > 1 || len(over) > 0 && l.burst.over {
		n.Over = partsOf(over)
	}
	told := slices.DeleteFunc(slices.Clone(over), func(g *group) bool { return !g.told })
	switch {
	case len(told) > 0:
		n.Of = worst(told)
		n.Group = n.Of.ID
	case len(over) > 0:
		n.Of = worst(over) // a burst's, of which something was not told yet
		n.Group = n.Of.ID
	}
	for _, g := range over {
		l.say(&n, g)
		l.bury(&n, g)
	}
	if l.burst.over {
		if len(told) == 0 {
			n.Group = l.burst.id
		}
		if len(over) == 0 {
			n.Since = l.burst.since
			n.Of = Group{ID: l.burst.id, Keys: []string{}, State: alerts.Resolved, Since: l.burst.since, Last: l.now,
				ResolvedAt: l.now}
		}
		if n.Over != nil {
			n.Over = append(n.Over, Part{Groups: 1}) // of whatever summaries told
		}
		n.Resolved = append(n.Resolved, l.burst.id)
		l.burst = burst{}
	}
	return l.sign(n)
}

// worst is the worst group, and of these the first.
func worst(all []*group) Group {
	return slices.MaxFunc(all, func(a, b *group) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) }).Group
}

// bury has a notice say that a group is over.
func (l *Life) bury(n *News, g *group) {
	if g.told {
		n.Resolved = append(n.Resolved, g.ID)
	}
	l.name(n, g)
	g.farewell = false
}

// say adds a group to what a notice is about: what of it was not told is told by it.
func (l *Life) say(n *News, g *group) {
	n.Count += g.Count
	if n.Groups == 0 || g.Since < n.Since {
		n.Since = g.Since
	}
	n.Groups++
	l.after += g.toldAt
	l.name(n, g)
	g.toldAt, g.toldCount = l.now, g.Count
}

// name lists in a notice what no earlier one had of a group.
func (l *Life) name(n *News, g *group) {
	n.IDs = append(n.IDs, g.unsaid...)
	l.withheld -= len(g.unsaid)
	g.unsaid, g.due = nil, false
	n.Silenced += g.kept
	g.kept = 0
}

// sign gives a notice its id, which is the same whenever it says the same, and another
// for what begins again in the instant in which it ended.
func (l *Life) sign(n News) News {
	before := 0 // in this instant
	for i := len(l.sent) - 1; i >= 0 && l.sent[i] == l.now; i-- {
		before++
	}
	l.sent = append(l.sent, l.now)
	if len(l.wanting) == 0 {
		l.backlog = 0
	}
	after := l.after // else a reminder would be the one before it
	l.after = 0
	parts := []string{"notice", string(n.Kind), n.Group, fmt.Sprint(after), fmt.Sprint(n.Since), fmt.Sprint(n.Count),
		fmt.Sprint(len(n.IDs)), fmt.Sprint(before)}
	n.ID = alerts.Hash(slices.Concat(parts, n.IDs, n.Resolved)...)
	n.Of.Keys = slices.Clone(n.Of.Keys)
	return n
}
