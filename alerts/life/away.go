package life

import "github.com/isowatch/isowatch/alerts"

// Await says that a run of the monitor begins. Nobody has looked for what is not over
// since the last one ended, so groups of anomalies do not end by the time that has
// passed: Config.ResolveAfter counts anew for each from when Judged says that its
// database is looked at again. Await does not survive Append and Restore.
func (l *Life) Await() {
	l.awaited = map[string]bool{}
	for _, g := range l.groups {
		if g.tier < tierCondition && g.State != alerts.Resolved {
			l.awaited[g.DB] = true
		}
	}
}

// Judged says that records of a database have been judged that came in this run. Only
// the first time in a run matters.
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
