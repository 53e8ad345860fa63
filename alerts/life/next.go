package life

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts"
)

// partsMax bounds the parts of a summary.
const partsMax = 8

// Next is the next notice to be made, if there is one and the rate lets it out; it
// counts as told from then on. Call it until there is none.
//
// Groups are told of one by one while there is room for two: the last place is for
// what must wait. Once one had to, all do, so that one summary has all of it; it
// comes when there is room, a gather after the notice before it.
func (l *Life) Next(now int64) (News, bool) {
	l.advance(now)
	free := l.free()
	if free == 0 {
		l.hold()
		return News{}, false
	}
	spare := free > 1 || l.cfg.RateMax == 1
	if spare {
		if i := slices.IndexFunc(l.wanting, func(g *group) bool { return g.tier == tierCondition }); i >= 0 {
			return l.single(i), true
		}
		if len(l.wanting) > 0 && l.backlog == 0 {
			return l.single(0), true
		}
	}
	gathered := len(l.sent) == 0 || l.now >= l.sent[len(l.sent)-1]+l.gather()
	if l.hold(); l.backlog > 0 {
		if !gathered {
			return News{}, false
		}
		return l.summary(), true
	}
	if gathered || free > l.cfg.RateMax/2 {
		if over := l.farewells(); len(over) > 0 || l.burst.over {
			return l.resolved(over), true
		}
	}
	return News{}, false
}

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
	over := l.farewells()
	switch {
	case len(l.wanting) > 0:
		return l.summary(), true
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
	n.Group = g.ID
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

// summary is a notice of all groups in the line, and of all that is over. One group
// alone is told of by itself.
func (l *Life) summary() News {
	l.backlog = 0
	over := l.farewells()
	if len(l.wanting) == 1 && len(over) == 0 && !l.burst.over {
		return l.single(0)
	}
	if l.burst.id == "" {
		l.burst = burst{id: hash("burst", fmt.Sprint(l.now), l.wanting[0].ID), since: l.now}
	}
	l.burst.over = false
	n := News{State: alerts.Ongoing}
	n.Kind, n.Group = KindSummary, l.burst.id
	if l.burst.since == l.now {
		n.State = alerts.Fresh
	}
	parts := map[Part]*Part{}
	for _, g := range l.wanting {
		k := Part{DB: g.DB, Level: g.Level, Name: g.Name}
		if parts[k] == nil {
			parts[k] = &Part{DB: g.DB, Level: g.Level, Name: g.Name}
		}
		parts[k].Groups++
		parts[k].Alerts += len(g.unsaid)
		l.say(&n, g)
		if !g.told && !g.burst {
			g.burst = true
			l.burst.members++
		}
	}
	l.wanting = nil
	for _, p := range parts {
		n.Parts = append(n.Parts, *p)
	}
	slices.SortFunc(n.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Alerts, a.Alerts), cmp.Compare(b.Groups, a.Groups), strings.Compare(a.DB, b.DB), strings.Compare(a.Level, b.Level), strings.Compare(a.Name, b.Name))
	})
	n.Parts = n.Parts[:min(len(n.Parts), partsMax)]
	l.bury(&n, over)
	if l.burst.members == 0 {
		l.burst.over = true // all of it have notices of their own
	}
	return l.sign(n)
}

// farewells are the groups of which it is to be told that they are over.
func (l *Life) farewells() []*group {
	var out []*group
	for _, g := range l.groups {
		if g.farewell {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, byEnd)
	return out
}

// resolved is a notice of groups, and the burst, that are over.
func (l *Life) resolved(over []*group) News {
	n := News{State: alerts.Resolved}
	n.Kind = KindResolved
	l.bury(&n, over)
	if len(n.Resolved) > 0 {
		n.Group = n.Resolved[0]
	} else if !l.burst.over && len(over) > 0 {
		n.Group = over[0].ID // a burst's, of which something was not told yet
	}
	if l.burst.over {
		if n.Group == "" {
			n.Group = l.burst.id
		}
		if len(over) == 0 {
			n.Since = l.burst.since
			n.Of = Group{ID: l.burst.id, Keys: []string{}, State: alerts.Resolved, Since: l.burst.since, Last: l.now, ResolvedAt: l.now}
		}
		n.Resolved = append(n.Resolved, l.burst.id)
		l.burst = burst{}
	}
	return l.sign(n)
}

// bury adds groups that are over to a notice.
func (l *Life) bury(n *News, over []*group) {
	for _, g := range over {
		if g.told {
			n.Resolved = append(n.Resolved, g.ID)
		}
		l.say(n, g)
		g.farewell = false
	}
}

// say adds a group to a notice: what of it was not told is told by it.
func (l *Life) say(n *News, g *group) {
	n.IDs = append(n.IDs, g.unsaid...)
	l.after += g.toldAt
	l.withheld -= len(g.unsaid)
	g.unsaid, g.due = nil, false
	n.Count += g.Count
	n.Silenced += g.kept
	if n.Groups == 0 || g.Since < n.Since {
		n.Since = g.Since
	}
	if n.Groups++; n.Groups == 1 || rank(g.Severity) > rank(n.Of.Severity) {
		n.Of = g.Group
	}
	g.kept, g.toldAt, g.toldCount = 0, l.now, g.Count
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
	parts := []string{string(n.Kind), n.Group, fmt.Sprint(after), fmt.Sprint(n.Since), fmt.Sprint(n.Count), fmt.Sprint(len(n.IDs)), fmt.Sprint(before)}
	n.ID = hash("notice", slices.Concat(parts, n.IDs, n.Resolved)...)
	n.Of.Keys = slices.Clone(n.Of.Keys)
	return n
}
