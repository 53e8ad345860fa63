package app

import (
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/config"
)

// active lists the groups that are not over and that nobody silenced: what an
// Alertmanager is told of again. It survives restarts, as the groups do.
func (a *App) active() []deliver.Active {
	var out []deliver.Active
	for _, g := range a.teller.Snapshot().Groups {
		if g.ResolvedAt != 0 || g.Muted {
			continue
		}
		out = append(out, deliver.Active{
			Group: g.ID, DB: g.DB, Level: g.Level, Name: g.Name, Severity: string(g.Severity), Keys: g.Keys,
			Since: g.Since, Count: g.Count, Alert: g.Representative, Summary: g.Text,
		})
	}
	return out
}

// holdOf is how long an Alertmanager keeps an alert that it is not told of again: not
// less than the monitor itself would have it go on, nor than some of its rounds.
func holdOf(c *config.Config) time.Duration {
	return max(c.Alerts.ResolveAfter, 5*deliver.ResendDefault)
}
