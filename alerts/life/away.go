package life

import (
	"slices"

	"github.com/isowatch/isowatch/alerts"
)

// Await says that nobody looks for what is not over, of the databases that are named or,
// without any, of all: a run of the monitor begins, its input can't be read, or a history
// gets nowhere. So groups of anomalies do not end by the time that passes:
// Config.ResolveAfter counts anew for each from when Judged says that its database is
// looked at again. Await does not survive Append and Restore.
func (l *Life) Await(dbs ...string) {
	if l.awaited == nil {
		l.awaited = map[string]bool{}
	}
	for _, g := range l.groups {
		if g.tier < tierCondition && g.State != alerts.Resolved && (len(dbs) == 0 || slices.Contains(dbs, g.DB)) {
			l.awaited[g.DB] = true
		}
	}
}

// Judged says that records of a database have been judged that came since Await. Only
// the first time after it matters.
func (l *Life) Judged(db string, now int64) {
	// A group that is shared by all databases has none.
	if !l.awaited[db] && !l.awaited[""] {
		return
	}
	l.advance(now)
	for _, g := range l.groups {
		if g.tier < tierCondition && (g.DB == db || g.DB == "") {
			g.touched = l.now
		}
	}
	delete(l.awaited, db)
	delete(l.awaited, "")
}

// awaits tells whether nobody has looked yet whether there is more of a group.
func (l *Life) awaits(g *group) bool { return g.tier < tierCondition && l.awaited[g.DB] }
