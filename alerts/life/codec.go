package life

import (
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/internal/wire"
)

// errState is returned by Restore for bytes that no Append wrote.
var errState = errors.New("the state of alerts is damaged")

// The limits of what is read: more is never written.
const (
	stateText   = 4 * textMax
	stateGroups = 1 << 16
	stateIDs    = 1 << 20
)

var (
	stateNames    = []alerts.State{alerts.Fresh, alerts.Ongoing, alerts.Resolved}
	severityNames = append([]name.Severity{""}, name.Severities()...)
)

// state is what of a Life is stored.
type state struct {
	*Life
	after, transactions int64 // what ends a group, for who reads it without a configuration
	groups              []*group
	wanting             []int64 // which of groups are in the line
	dbs                 []*database
}

// Append appends the state, which Restore takes:
//
//	now, fed, backlog, what ends a group, times of notices, burst, silences, groups by id,
//	which of these are in the line, databases by name
//
// Numbers are varints, texts and lists have their length before them. An id of
// 32 hexadecimal digits, as all are, takes 17 bytes.
func (l *Life) Append(b []byte) []byte {
	s := state{Life: l, after: int64(l.cfg.ResolveAfter), transactions: l.cfg.ResolveTransactions, groups: l.ordered()}
	at := make(map[*group]int, len(s.groups))
	for i, g := range s.groups {
		at[g] = i
	}
	for _, g := range l.wanting {
		s.wanting = append(s.wanting, int64(at[g]))
	}
	for _, db := range slices.Sorted(maps.Keys(l.dbs)) {
		s.dbs = append(s.dbs, l.dbs[db])
	}
	c := coder{wire.Coder{B: b}}
	s.code(&c)
	return c.B
}

// Restore makes a life anew from what Append wrote. Errors are errState. What the
// bytes say is taken as it is as long as it keeps the invariants; the limits of cfg
// apply to what comes.
func Restore(b []byte, cfg Config) (*Life, error) {
	l := New(cfg)
	s := state{Life: l}
	c := coder{wire.Reads(b)}
	c.Minimal = true
	s.code(&c)
	if !c.Done() || !s.take() {
		return nil, errState
	}
	if cfg.ResolveAfter <= 0 && cfg.ResolveTransactions <= 0 {
		l.cfg.ResolveAfter, l.cfg.ResolveTransactions = time.Duration(s.after), s.transactions
	}
	l.mute()
	return l, nil
}

func (s *state) code(c *coder) {
	c.times(&s.now, &s.fed, &s.backlog)
	c.nums(1, math.MaxInt64/4, &s.after, &s.transactions)
	list(c, &s.sent, RateLimit+1, 1, func(t *int64) { c.times(t) })
	c.id(&s.burst.id)
	c.times(&s.burst.since)
	members := int64(s.burst.members)
	if c.nums(0, stateGroups, &members); c.Reading {
		s.burst.members = int(members)
	}
	c.bools(&s.burst.over)
	list(c, &s.silences, SilencesMax, 9, func(x *Silence) {
		c.id(&x.ID)
		c.texts(&x.DB, &x.Level, &x.Name, &x.Key, &x.Comment, &x.By)
		c.times(&x.Since)
		c.nums(0, math.MaxInt64, &x.Until) // until 2099, as people write for ever
	})
	list(c, &s.groups, stateGroups, 29, func(g **group) {
		if c.Reading {
			*g = &group{}
		}
		c.group(*g)
	})
	list(c, &s.wanting, len(s.groups), 1, func(i *int64) { c.nums(0, int64(len(s.groups))-1, i) })
	list(c, &s.dbs, databasesMax, 9, func(d **database) {
		if c.Reading {
			*d = &database{moved: true}
		}
		c.database(*d)
	})
}

func (c *coder) group(g *group) {
	c.id(&g.ID)
	c.texts(&g.DB, &g.Level, &g.Name, &g.Text)
	c.id(&g.Representative)
	for _, l := range []*[]string{&g.Keys, &g.aliases} {
		list(c, l, listMax, 1, func(s *string) { c.texts(s) })
		if c.Reading && *l == nil {
			*l = []string{}
		}
	}
	c.texts(&g.Weakest, &g.broken)
	c.place(&g.at)
	tier := byte(g.tier)
	if c.byte(&tier, tiers); c.Reading {
		g.tier = int(tier)
	}
	one(c, &g.State, stateNames)
	one(c, &g.Severity, severityNames)
	c.bools(&g.told, &g.burst, &g.ends, &g.farewell)
	c.times(&g.Since, &g.Last, &g.ResolvedAt)
	c.nums(1, math.MaxInt64, &g.Count)
	c.nums(0, math.MaxInt64, &g.Alerts, &g.Silenced)
	c.times(&g.touched, &g.toldAt)
	c.nums(0, math.MaxInt64, &g.toldCount, &g.kept)
	c.times(&g.over)
	list(c, &g.unsaid, stateIDs, 2, func(id *string) { c.id(id) })
}

func (c *coder) database(d *database) {
	c.texts(&d.DB)
	c.place(&d.Place)
	c.times(&d.LastRecord, &d.began)
	list(c, &d.Levels, levelsMax, 2, func(a *Asked) { c.texts(&a.Level, (*string)(&a.Complete)) })
	list(c, &d.breaches, levelsMax, 9, func(b *breach) {
		c.texts(&b.broken)
		c.times(&b.since, &b.last)
		c.nums(0, math.MaxInt64/4, &b.alerts, &b.count)
		c.place(&b.at)
		c.bools(&b.ended)
	})
	list(c, &d.spans, spansMax, 3, func(s *Span) {
		c.times(&s.From, &s.To)
		c.nums(0, math.MaxInt64/4, &s.Alerts)
	})
}

func (c *coder) place(p *alerts.Place) {
	history := int64(p.History)
	if c.nums(0, math.MaxInt64, &history); c.Reading {
		p.History = uint64(history)
	}
	c.nums(0, math.MaxInt64/4, &p.Transactions)
	c.times(&p.Time)
}

// take makes the life that the state is of, if the state keeps the invariants.
func (s *state) take() bool {
	bad := !slices.IsSorted(s.sent) || len(s.sent) > 0 && s.sent[len(s.sent)-1] > s.now
	for _, x := range s.silences {
		bad = bad || x.Validate() != nil || x.Until == 0
	}
	members := 0
	for i, g := range s.groups {
		over := g.State == alerts.Resolved
		bad = bad || g.ID == "" || g.told && g.burst || g.farewell && !over || (g.ResolvedAt > 0) != over || i > 0 &&
			g.ID <= s.groups[i-1].ID
		s.Life.groups[g.ID] = g
		if !over {
			s.active[g.tier]++
			if g.burst {
				members++
			}
		}
		s.withheld += len(g.unsaid)
	}
	for _, i := range s.wanting {
		g := s.groups[i]
		bad = bad || g.due || g.State == alerts.Resolved
		s.want(g)
	}
	for i, d := range s.dbs {
		bad = bad || i > 0 && d.DB <= s.dbs[i-1].DB || !d.ordered()
		s.Life.dbs[d.DB] = d
	}
	return !bad && (s.burst.id != "" || members == 0 && !s.burst.over) && members == s.burst.members &&
		(s.backlog <= 0 || len(s.wanting) > 0)
}

// ordered tells whether what was found is in its order.
func (d *database) ordered() bool {
	for i, b := range d.breaches {
		if i > 0 && b.broken <= d.breaches[i-1].broken {
			return false
		}
	}
	for i, s := range d.spans {
		if s.From > s.To || i > 0 && s.From <= d.spans[i-1].To {
			return false
		}
	}
	return true
}

// coder writes the state, or reads it: what it is made of is listed once for both. Writing changes nothing, as
// others may be reading a snapshot. What is read has one form only, and no number, text or list is beyond its bounds.
type coder struct{ wire.Coder }

// refuse says that what was read can't be, if so.
func (c *coder) refuse(bad bool) {
	if bad {
		c.Fail()
	}
}

// nums are numbers from least to most.
func (c *coder) nums(least, most int64, ns ...*int64) {
	c.Ints(ns...)
	for _, n := range ns {
		c.refuse(c.Reading && (*n < least || *n > most))
	}
}

// times are instants; those so late that a sum of them overflows are none.
func (c *coder) times(ts ...*int64) { c.nums(math.MinInt64/4, math.MaxInt64/4, ts...) }

// byte is a number below most.
func (c *coder) byte(x *byte, most int) {
	if !c.Reading {
		c.B = append(c.B, *x)
	} else if *x = c.Byte(); int(*x) >= most {
		c.Fail()
		*x = 0
	}
}

func (c *coder) bools(bs ...*bool) {
	for _, b := range bs {
		n := byte(0)
		if *b {
			n = 1
		}
		if c.byte(&n, 2); c.Reading {
			*b = n == 1
		}
	}
}

// one is one of all, as its place among them; the first if it is none.
func one[T comparable](c *coder, x *T, all []T) {
	at := byte(max(0, slices.Index(all, *x)))
	if c.byte(&at, len(all)); c.Reading {
		*x = all[at]
	}
}

func (c *coder) texts(ts ...*string) {
	c.Texts(ts...)
	for _, t := range ts {
		c.refuse(c.Reading && len(*t) > stateText)
	}
}

// list is a list of at most so many items of at least so many bytes each.
func list[T any](c *coder, l *[]T, most, each int, item func(*T)) {
	n := int64(len(*l))
	c.nums(0, int64(most), &n)
	if c.Reading {
		*l = nil
		c.refuse(n > int64(c.Len()/each))
		if !c.OK() || n == 0 {
			return
		}
		*l = make([]T, n)
	}
	for i := range *l {
		item(&(*l)[i])
	}
}

// id is one that is written as what its hexadecimal digits mean, if it can be.
func (c *coder) id(s *string) {
	raw, err := hex.DecodeString(*s)
	hexed := err == nil && len(raw) == alerts.IDBytes && hex.EncodeToString(raw) == *s
	form := hexed
	c.bools(&form)
	switch {
	case form && c.Reading:
		*s = hex.EncodeToString(c.Take(alerts.IDBytes))
	case form:
		c.B = append(c.B, raw...)
	default:
		c.texts(s)
		raw, err := hex.DecodeString(*s)
		c.refuse(c.Reading && err == nil && len(raw) == alerts.IDBytes && hex.EncodeToString(raw) == *s)
	}
}
