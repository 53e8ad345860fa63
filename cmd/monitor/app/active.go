package app

import (
	"context"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
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
		n := life.News{State: g.State, Of: g, Notification: life.Notification{Kind: life.KindOngoing, Group: g.ID, Groups: 1,
			Count: g.Count, Since: g.Since, Silenced: g.Silenced}}
		if strings.HasPrefix(g.Name, life.Operational) {
			n.Kind = life.KindOperational
		}
		out = append(out, deliver.Active{Group: g.ID, DB: g.DB, Level: g.Level, Severity: g.Severity,
			Breaks: g.Broken(a.cfg.Levels),
			Notice: func(ctx context.Context) ([]byte, error) { return a.teller.body(ctx, n) }})
	}
	return out
}

// holdOf is how long an Alertmanager keeps an alert that it is not told of again: not
// less than the monitor itself would have it go on, nor than some of its rounds.
func holdOf(c *config.Config) time.Duration {
	return max(c.Alerts.ResolveAfter, 5*deliver.ResendDefault)
}
