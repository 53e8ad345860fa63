package life

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/internal/wire"
)

// ErrState is returned by Restore for bytes that no Append wrote.
var ErrState = errors.New("the state of alerts is damaged")

// VersionError is returned by Restore for a state in a form that it does not know. Another
// version wrote it: a newer one, if Form is more than Known.
type VersionError struct{ Form, Known byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the form of the state of alerts is %d, and this version reads %d", e.Form, e.Known)
}

const stateVersion = 2

// The limits of what is read: more is never written.
const (
	stateText   = 4 * textMax
	stateGroups = 1 << 16
	stateIDs    = 1 << 20
)

var (
	stateNames    = []alerts.State{alerts.Fresh, alerts.Ongoing, alerts.Resolved}
	severityNames = []name.Severity{"", Info, name.Warning, name.Error, name.Critical}
)

// Append appends the state, which Restore takes:
//
//	u8 version, now, fed, backlog, what ends a group, times of notices, burst, silences, groups by id,
//	which of these are in the line, databases by name
//
// Numbers are varints, texts and lists have their length before them. An id of
// 32 hexadecimal digits, as all are, takes 17 bytes. Of the configuration only what ends a
// group is part of it, for who reads it without one.
func (l *Life) Append(b []byte) []byte {
	w := writer{append(b, stateVersion)}
	w.ints(l.now, l.fed, l.backlog, int64(l.cfg.ResolveAfter), l.cfg.ResolveTransactions)
	w.int(int64(len(l.sent)))
	w.ints(l.sent...)
	w.id(l.burst.id)
	w.ints(l.burst.since, int64(l.burst.members))
	w.bools(l.burst.over)
	w.int(int64(len(l.silences)))
	for _, s := range l.silences {
		w.id(s.ID)
		for _, t := range []string{s.DB, s.Level, s.Name, s.Key, s.Comment, s.By} {
			w.text(t)
		}
		w.ints(s.Since, s.Until)
	}
	groups := l.ordered()
	w.int(int64(len(groups)))
	at := make(map[*group]int, len(groups))
	for i, g := range groups {
		at[g] = i
		w.group(g)
	}
	w.int(int64(len(l.wanting)))
	for _, g := range l.wanting {
		w.int(int64(at[g]))
	}
	w.int(int64(len(l.dbs)))
	for _, db := range slices.Sorted(maps.Keys(l.dbs)) {
		w.database(l.dbs[db])
	}
	return w.b
}

func (w *writer) database(d *database) {
	w.text(d.DB)
	w.place(d.Place)
	w.ints(d.LastRecord, d.began)
	w.int(int64(len(d.Levels)))
	for _, a := range d.Levels {
		w.text(a.Level)
		w.text(string(a.Complete))
	}
	w.int(int64(len(d.breaches)))
	for _, b := range d.breaches {
		w.text(b.level)
		w.ints(b.since, b.last, b.alerts, b.count)
		w.place(b.at)
		w.bools(b.ended)
	}
	w.int(int64(len(d.spans)))
	for _, s := range d.spans {
		w.ints(s.From, s.To, s.Alerts)
	}
}

func (w *writer) place(p alerts.Place) { w.ints(int64(p.History), p.Transactions, p.Time) }

func (w *writer) group(g *group) {
	w.id(g.ID)
	for _, t := range []string{g.DB, g.Level, g.Name, g.Text} {
		w.text(t)
	}
	w.id(g.Representative)
	w.texts(g.Keys)
	w.texts(g.aliases)
	w.text(g.weakest)
	w.place(g.at)
	w.b = append(w.b, byte(g.tier), byte(slices.Index(stateNames, g.State)), byte(max(0, slices.Index(severityNames, g.Severity))))
	w.bools(g.told, g.burst, g.ends, g.farewell)
	w.ints(g.Since, g.Last, g.ResolvedAt, g.Count, g.Alerts, g.Silenced, g.touched, g.toldAt, g.toldCount, g.kept, g.over)
	w.int(int64(len(g.unsaid)))
	for _, id := range g.unsaid {
		w.id(id)
	}
}

// Restore makes a life anew from what Append wrote. Errors are a *VersionError, or ErrState. What the
// bytes say is taken as it is as long as it keeps the invariants; the limits of cfg
// apply to what comes.
func Restore(b []byte, cfg Config) (*Life, error) {
	l := New(cfg)
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrState)
	}
	if b[0] != stateVersion {
		return nil, &VersionError{Form: b[0], Known: stateVersion}
	}
	r := reader{wire.NewReader(b[1:])}
	r.Minimal = true
	l.now, l.fed, l.backlog = r.time(), r.time(), r.time()
	after, transactions := time.Duration(r.int(1, math.MaxInt64/4)), r.int(1, math.MaxInt64/4)
	if cfg.ResolveAfter <= 0 && cfg.ResolveTransactions <= 0 {
		l.cfg.ResolveAfter, l.cfg.ResolveTransactions = after, transactions
	}
	for range r.count(RateLimit+1, 1) {
		l.sent = append(l.sent, r.time())
	}
	r.refuse(!slices.IsSorted(l.sent) || len(l.sent) > 0 && l.sent[len(l.sent)-1] > l.now)
	l.burst.id = r.id()
	l.burst.since, l.burst.members = r.time(), int(r.int(0, stateGroups))
	l.burst.over = r.bool()
	for range r.count(SilencesMax, 9) {
		s := Silence{ID: r.id()}
		for _, t := range []*string{&s.DB, &s.Level, &s.Name, &s.Key, &s.Comment, &s.By} {
			*t = r.text()
		}
		s.Since, s.Until = r.time(), r.int(0, math.MaxInt64) // until 2099, as people write for ever
		r.refuse(s.Validate() != nil || s.Until == 0)
		l.silences = append(l.silences, s)
	}
	var groups []*group
	members := 0
	for range r.count(stateGroups, 29) {
		g := r.group()
		if !r.OK() || len(groups) > 0 && g.ID <= groups[len(groups)-1].ID {
			return nil, ErrState
		}
		groups = append(groups, g)
		l.groups[g.ID] = g
		if g.State != alerts.Resolved {
			l.active[g.tier]++
			if g.burst {
				members++
			}
		}
		l.withheld += len(g.unsaid)
	}
	for range r.count(len(groups), 1) {
		i := r.int(0, int64(len(groups))-1)
		if !r.OK() || groups[i].due || groups[i].State == alerts.Resolved {
			return nil, ErrState
		}
		l.want(groups[i])
	}
	last := ""
	for i := range r.count(databasesMax, 9) {
		d := r.database()
		if !r.OK() || i > 0 && d.DB <= last {
			return nil, ErrState
		}
		last = d.DB
		l.dbs[d.DB] = d
	}
	r.refuse(l.burst.id == "" && (members > 0 || l.burst.over))
	if !r.Done() || members != l.burst.members || l.backlog > 0 && len(l.wanting) == 0 {
		return nil, ErrState
	}
	l.mute()
	return l, nil
}

func (r *reader) group() *group {
	g := &group{}
	g.ID = r.id()
	for _, t := range []*string{&g.DB, &g.Level, &g.Name, &g.Text} {
		*t = r.text()
	}
	g.Representative = r.id()
	g.Keys, g.aliases = r.texts(), r.texts()
	g.weakest, g.at = r.text(), r.place()
	tier, state, severity := r.Byte(), r.Byte(), r.Byte()
	if int(tier) >= tiers || int(state) >= len(stateNames) || int(severity) >= len(severityNames) {
		r.Fail()
		return g
	}
	g.tier, g.State, g.Severity = int(tier), stateNames[state], severityNames[severity]
	g.told, g.burst, g.ends, g.farewell = r.bool(), r.bool(), r.bool(), r.bool()
	g.Since, g.Last, g.ResolvedAt = r.time(), r.time(), r.time()
	g.Count, g.Alerts, g.Silenced = r.int(1, math.MaxInt64), r.int(0, math.MaxInt64), r.int(0, math.MaxInt64)
	g.touched, g.toldAt, g.toldCount, g.kept, g.over = r.time(), r.time(), r.int(0, math.MaxInt64), r.int(0, math.MaxInt64), r.time()
	for range r.count(stateIDs, 2) {
		g.unsaid = append(g.unsaid, r.id())
	}
	over := g.State == alerts.Resolved
	r.refuse(g.ID == "" || g.told && g.burst || g.farewell && !over || (g.ResolvedAt > 0) != over)
	return g
}

func (r *reader) database() *database {
	d := &database{moved: true}
	d.DB, d.Place = r.text(), r.place()
	d.LastRecord, d.began = r.time(), r.time()
	for range r.count(levelsMax, 2) {
		d.Levels = append(d.Levels, Asked{r.text(), Completeness(r.text())})
	}
	for range r.count(levelsMax, 9) {
		b := breach{level: r.text(), since: r.time(), last: r.time(), alerts: r.int(0, math.MaxInt64/4), count: r.int(0, math.MaxInt64/4), at: r.place(), ended: r.bool()}
		r.refuse(len(d.breaches) > 0 && b.level <= d.breaches[len(d.breaches)-1].level)
		d.breaches = append(d.breaches, b)
	}
	for range r.count(spansMax, 3) {
		s := Span{r.time(), r.time(), r.int(0, math.MaxInt64/4)}
		r.refuse(s.From > s.To || len(d.spans) > 0 && s.From <= d.spans[len(d.spans)-1].To)
		d.spans = append(d.spans, s)
	}
	return d
}

func (r *reader) place() alerts.Place {
	return alerts.Place{History: uint64(r.int(0, math.MaxInt64)), Transactions: r.int(0, math.MaxInt64/4), Time: r.time()}
}

// writer and reader are the two ends of the state's encoding.
type writer struct{ b []byte }

func (w *writer) int(n int64) { w.b = binary.AppendVarint(w.b, n) }

func (w *writer) ints(ns ...int64) {
	for _, n := range ns {
		w.int(n)
	}
}

func (w *writer) bools(bs ...bool) {
	for _, x := range bs {
		n := byte(0)
		if x {
			n = 1
		}
		w.b = append(w.b, n)
	}
}

func (w *writer) text(s string) {
	w.b = wire.AppendText(w.b, s)
}

func (w *writer) texts(list []string) {
	w.int(int64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

// idHex marks an id that is written as what its hexadecimal digits mean.
const (
	idText = iota
	idHex
)

func (w *writer) id(s string) {
	if raw, err := hex.DecodeString(s); err == nil && len(raw) == idBytes && hex.EncodeToString(raw) == s {
		w.b = append(append(w.b, idHex), raw...)
		return
	}
	w.b = append(w.b, idText)
	w.text(s)
}

// reader reads the state; each number has one form.
type reader struct{ wire.Reader }

func (r *reader) bool() bool {
	b := r.Byte()
	r.refuse(b > 1)
	return b == 1
}

// refuse says that what was read can't be, if so.
func (r *reader) refuse(bad bool) {
	if bad {
		r.Fail()
	}
}

func (r *reader) int(least, most int64) int64 {
	n := r.Int()
	if n < least || n > most {
		r.Fail()
	}
	if !r.OK() {
		return 0
	}
	return n
}

// time reads an instant; those so late that a sum of them overflows are none.
func (r *reader) time() int64 { return r.int(math.MinInt64/4, math.MaxInt64/4) }

// count reads a length of at most so many items of at least so many bytes each.
func (r *reader) count(most, each int) int {
	n := int(r.int(0, int64(most)))
	if n > r.Len()/each {
		r.Fail()
		return 0
	}
	return n
}

func (r *reader) text() string {
	n := r.Uint()
	r.refuse(n > stateText)
	return string(r.Take(n))
}

func (r *reader) texts() []string {
	out := []string{}
	for range r.count(listMax, 1) {
		out = append(out, r.text())
	}
	return out
}

func (r *reader) id() string {
	switch r.Byte() {
	case idHex:
		return hex.EncodeToString(r.Take(idBytes))
	case idText:
		s := r.text()
		raw, err := hex.DecodeString(s)
		r.refuse(err == nil && len(raw) == idBytes && hex.EncodeToString(raw) == s)
		return s
	}
	r.Fail()
	return ""
}
