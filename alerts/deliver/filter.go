package deliver

import (
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/glob"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
)

// Filter says which notices a receiver gets. Each empty field lets everything pass.
// What is in doubt passes: a summary of more than it names, and what concerns no
// database in particular.
type Filter struct {
	// MinSeverity is info, warning, error or critical.
	MinSeverity name.Severity
	// Levels are those of which one has to be broken. What is operational has none
	// and passes.
	Levels []string
	// DBs are names or patterns, with * for anything and ? for one character.
	DBs []string
}

// severe tells whether a severity is enough. One that is not known is the worst.
func (f Filter) severe(severity name.Severity) bool {
	all := name.Severities()
	i := slices.Index(all, severity)
	return i < 0 || i >= slices.Index(all, f.MinSeverity)
}

func (f Filter) level(breaks []string, level string) bool {
	return len(f.Levels) == 0 || level == "" || slices.Contains(f.Levels, level) ||
		slices.ContainsFunc(breaks, func(l string) bool { return slices.Contains(f.Levels, l) })
}

func (f Filter) db(name string) bool {
	return len(f.DBs) == 0 || name == "" ||
		slices.ContainsFunc(f.DBs, func(pattern string) bool { return glob.Match(pattern, name) })
}

func (f Filter) empty() bool { return f.MinSeverity == "" && len(f.Levels) == 0 && len(f.DBs) == 0 }

// wants is what the receiver gets of a notice, and false if that is nothing. Of one that
// is not for it, it hears what is over by it: it may have heard of the beginning. One
// that can't be read passes, so that the receiver says what is wrong with it.
func (f Filter) wants(body []byte) ([]byte, bool) {
	if f.empty() {
		return body, true
	}
	n, err := parse(body)
	if err != nil || n.Notification.Kind == life.KindTest {
		return body, true
	}
	if f.lets(n) {
		return f.under(body, n), true
	}
	for _, p := range n.Notification.Over {
		switch {
		case !f.passes(p):
		case n.over():
			return body, true
		case len(n.Notification.Resolved) > 0:
			return onlyOver(body, n, p), true
		}
	}
	return nil, false
}

// lets tells whether a notice passes as it is.
func (f Filter) lets(n *notice) bool {
	if n.over() && n.Name == "" { // of what summaries told of, whatever that was
		return true
	}
	if !f.severe(n.Severity) {
		return false
	}
	if n.Notification.Groups <= 1 {
		return f.db(n.DB) && f.level(n.Breaks, n.Level)
	}
	// Several groups: the notice is of the representative's form, and of all of them.
	named := 0
	for _, p := range n.Notification.Parts {
		if named += p.Groups; f.db(p.DB) && f.level(nil, p.Level) {
			return true
		}
	}
	return named < n.Notification.Groups || f.db(n.DB) && f.level(n.Breaks, n.Level)
}

// under is a notice that passes, under a group that the receiver hears the end of: a summary
// of groups that were told of before has that of one of them, which may not be for it.
func (f Filter) under(body []byte, n *notice) []byte {
	own := slices.IndexFunc(n.Notification.Parts, func(p life.Part) bool { return p.Group == n.Notification.Group })
	if own < 0 || f.passes(n.Notification.Parts[own]) {
		return body
	}
	i := slices.IndexFunc(n.Notification.Parts, func(p life.Part) bool { return p.Group != "" && f.passes(p) })
	if i < 0 {
		return body
	}
	n.Notification.Group = n.Notification.Parts[i].Group
	return merged(body, map[string]any{"group": n.Notification.Group, "notification": n.Notification})
}

func (f Filter) passes(p life.Part) bool {
	return f.severe(p.Severity) && f.db(p.DB) && f.level(nil, p.Level)
}

// onlyOver is a notice reduced to what is over by it, for which p stands.
func onlyOver(body []byte, n *notice, p life.Part) []byte {
	k := n.Notification
	said, links := "what was told of before is over", map[string]string{}
	if l, ok := n.Links["page"]; ok {
		links["page"] = l
	}
	notification := map[string]any{"id": k.ID, "kind": life.KindResolved, "group": k.Resolved[0], "ids": []string{},
		"groups": len(k.Resolved), "count": 0, "since": 0, "silenced": 0,
		"resolved": k.Resolved, "over": k.Over}
	return merged(body, map[string]any{"id": "", "db": p.DB, "level": p.Level, "name": p.Name, "severity": p.Severity,
		"state": alerts.Resolved, "group": k.Resolved[0],
		"breaks": []string{}, "holds": []string{}, "aliases": []string{}, "adya": "", "keys": []string{},
		"transactions": []string{}, "cycle": []string{}, "cases": nil, "evidence": []string{},
		"summary": said, "explanation": said, "links": links, "notification": notification})
}

// wantsActive is wants for what is told again.
func (f Filter) wantsActive(a Active) bool {
	return f.severe(a.Severity) && f.db(a.DB) && f.level(a.Breaks, a.Level)
}
