package config

import (
	"fmt"
	"path"
	"time"
)

// rateLimit is what alerts.rate.max may be at most: when each was is remembered.
const rateLimit = 10_000

// life checks when people are told.
func (v *validator) life(a Alerts) {
	v.atLeast("alerts.repeat", a.Repeat, 0)
	v.atLeast("alerts.resolve_after", a.ResolveAfter, time.Second)
	if a.ResolveTransactions < 1 {
		v.errorf("alerts.resolve_transactions", "must be at least 1, not %d: what is not judged resolves nothing",
			a.ResolveTransactions)
	}
	v.atLeast("alerts.silent_after", a.SilentAfter, 0)
	v.atLeast("alerts.lag_max", a.LagMax, 0)
	v.atLeast("alerts.retain", a.Retain, 0)
	if a.MaxAlerts < 0 {
		v.errorf("alerts.max_alerts", "must be at least 0, not %d", a.MaxAlerts)
	}
	if a.Rate.Max < 1 || a.Rate.Max > rateLimit {
		v.errorf("alerts.rate.max", "must be at least 1 and at most %d, not %d", rateLimit, a.Rate.Max)
	}
	v.atLeast("alerts.rate.per", a.Rate.Per, time.Millisecond)
	for _, s := range a.Severity.all() {
		if s.severity != "" {
			v.oneOf("alerts.severity."+s.level, s.severity)
		}
	}
	for i, s := range a.Silences {
		at := fmt.Sprintf("alerts.silences[%d]", i)
		all := true
		for _, p := range []struct{ key, text string }{{"db", s.DB}, {"level", s.Level}, {"name", s.Name}, {"key", s.Key}} {
			if _, err := path.Match(p.text, ""); err != nil || len(p.text) > patternMax {
				v.errorf(at+"."+p.key, "%.100q is no pattern of at most %d bytes: write a [ as \\[", p.text, patternMax)
			}
			all = all && p.text == ""
		}
		if len(s.Comment) > patternMax {
			v.errorf(at+".comment", "has %d bytes; at most %d can be", len(s.Comment), patternMax)
		}
		if all {
			v.errorf(at, "says nothing of what is silenced: name a db, level, name or key; db: \"*\" is all of them")
		}
	}
}

// patternMax is how long a pattern or a comment of a silence may be.
const patternMax = 1024
