package life

import (
	"cmp"
	"time"
)

// Config says when something is news. Zero values mean the defaults, but for
// Repeat.
type Config struct {
	// Repeat is how long after a notice of a group the next one may come if there is
	// more of it; earlier ones come when it has grown tenfold. 0: every alert is
	// news.
	Repeat time.Duration
	// ResolveAfter and ResolveTransactions are how much has to be judged of a database, in
	// the time of its records and in transactions, without anything more of a group until
	// that is over. What only passes of time, and what is not judged, ends no group. Of an
	// event, ResolveAfter is how long it has not happened.
	ResolveAfter        time.Duration
	ResolveTransactions int64
	// RateMax is how many notices there are at most in any RatePer. What it keeps
	// back goes into one summary.
	RateMax int
	RatePer time.Duration
	// Silences of the configuration.
	Silences []Silence
	// GroupsMax is how many groups that are not over are told apart: alerts of
	// further ones share groups by database and level, of which there are at
	// most as many again; and then one.
	GroupsMax int
	// WithheldMax is how many alerts may wait for a notice until no more are taken.
	WithheldMax int
}

// The defaults.
const (
	ResolveAfterDefault = 15 * time.Minute
	// ResolveTransactionsDefault: of anomalies that one in 300 transactions has, so many
	// without one come once in 28 times.
	ResolveTransactionsDefault = 1000
	RateMaxDefault             = 5
	RatePerDefault             = time.Minute
	GroupsMaxDefault           = 1024
	WithheldMaxDefault         = 16_384
	// RateLimit bounds RateMax: when each was is remembered.
	RateLimit = 10_000
)

// settle is how long a condition has to be over until it is told so: what comes and
// goes every second is one condition.
const settle = 30 * time.Second

// resolvedMax is how many groups are remembered that are over.
const resolvedMax = 256

func (c Config) withDefaults() Config {
	c.ResolveAfter = cmp.Or(c.ResolveAfter, ResolveAfterDefault)
	c.ResolveTransactions = cmp.Or(c.ResolveTransactions, ResolveTransactionsDefault)
	c.RateMax = min(cmp.Or(c.RateMax, RateMaxDefault), RateLimit)
	c.RatePer = cmp.Or(c.RatePer, RatePerDefault)
	c.GroupsMax = cmp.Or(c.GroupsMax, GroupsMaxDefault)
	c.WithheldMax = cmp.Or(c.WithheldMax, WithheldMaxDefault)
	silences := make([]Silence, 0, len(c.Silences))
	for _, s := range c.Silences {
		s.Configured, s.Since = true, 0
		silences = append(silences, s.named())
	}
	c.Silences = silences
	return c
}
