package life

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Health is one word on how a promise stands.
type Health string

// The healths. Nothing but what is judged leads from Broken to BrokenEarlier's end: no
// record, no time that passes, and no start of the monitor.
const (
	Holds         Health = "holds"          // nothing was found, in enough that was judged, and none of it was missed
	HoldsInPart   Health = "holds-in-part"  // nothing was found, but something may have been missed
	Broken        Health = "broken"         // an anomaly was found within the last minute
	BrokenEarlier Health = "broken-earlier" // none since, but not enough was judged to say that it is over
	NotJudged     Health = "not-judged"     // nothing has been judged, or nothing is any more
)

// brokenFor is how long after an anomaly its promise is called broken now.
const brokenFor = time.Minute

// Judged is how much was judged: transactions, and the time of the records that they span.
type Judged struct {
	Transactions int64         `json:"transactions"`
	Time         time.Duration `json:"time"` // nanoseconds
}

// reach tells whether it is as much as another.
func (j Judged) reach(enough Judged) bool {
	return j.Transactions >= enough.Transactions && j.Time >= enough.Time
}

// Standing is how a promise stands: that a database keeps a level. It is a function of
// what life remembers and the time. Times are Unix nanoseconds, 0 for none.
type Standing struct {
	Health Health `json:"health"`
	// Since is when the first anomaly of a breach was found; of what holds, since when
	// none was, in this history: by the monitor's clock or the records', whichever was behind, so
	// that it is never after Until.
	Since int64 `json:"since"`
	// Last is when an anomaly was found last, and Alerts and Violations are how many
	// different ones were found since the breach began, and how often: of one that is
	// over, too. They count what the store has dropped since (alerts.retain) and what was
	// silenced.
	Last       int64 `json:"last,omitempty"`
	Alerts     int64 `json:"alerts"`
	Violations int64 `json:"violations"`
	// Judged is how much was judged since the last anomaly, or in all if there is none;
	// Enough is how much ends a breach.
	Judged Judged `json:"judged"`
	Enough Judged `json:"enough"`
	// Until is up to when the database is judged, by the records' clock, and LastRecord when,
	// by the monitor's, the last record of it came.
	Until      int64 `json:"until"`
	LastRecord int64 `json:"last_record"`
	// Complete says how much of that is covered; empty: nothing is judged at the level.
	Complete Completeness `json:"complete"`
}

// Progress is how far a database is judged, as the monitor says from time to time.
type Progress struct {
	DB string
	alerts.Place
	LastRecord int64 // when the last record of it came
	Levels     []Asked
}

// Asked is a level that a database is judged at; with no Complete, as far as the level is about what it does.
type Asked struct {
	Level    string
	Complete Completeness
}

// Completeness is how much of what was judged a level's verdict covers.
type Completeness string

// The kinds of completeness.
const (
	Complete         Completeness = "complete"
	CompleteRealTime Completeness = "complete-assuming-real-time"
	Partial          Completeness = "partial" // something may have been missed
)

// Span is a part of a stream in which there were anomalies.
type Span struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Alerts int64 `json:"alerts"` // how many, found again included
}

// database is what is remembered of one. It does not change: what changes is a copy.
type database struct {
	Progress
	began    int64    // when Progress first was of this history, by the clock that was behind
	breaches []breach // by level
	spans    []Span   // in order, disjoint, at most spansMax
	moved    bool     // something is of another history than Progress; not part of the state
}

// breach is what was found that breaks some levels, and is allowed by weaker ones.
type breach struct {
	broken        string // as weakest has them
	since, last   int64
	alerts, count int64
	at            alerts.Place // behind it nothing was found
	ended         bool         // enough was judged, in a history before this one
}

// The bounds of what is remembered of databases.
const (
	databasesMax = 8192
	levelsMax    = 64
	spansMax     = 64
)

func (l *Life) enough() Judged {
	return Judged{Transactions: l.cfg.ResolveTransactions, Time: l.cfg.ResolveAfter}
}

// since is how much of a database was judged since a place in it.
func (d *database) since(at alerts.Place) Judged {
	if d == nil || d.History != at.History {
		return Judged{}
	}
	return Judged{Transactions: max(0, d.Transactions-at.Transactions), Time: time.Duration(max(0, d.Time-at.Time))}
}

// put replaces what is remembered of a database. If there are too many, one is forgotten:
// one that is whole, if there is any, and of these the one that was silent for longest.
func (l *Life) put(d *database) {
	if l.shared {
		l.dbs, l.shared = maps.Clone(l.dbs), false
	}
	l.dbs[d.DB] = d
	if len(l.dbs) <= databasesMax {
		return
	}
	broken := func(x *database) int {
		if x.broken(l.enough()) {
			return 1
		}
		return 0
	}
	least := slices.MinFunc(slices.Collect(maps.Values(l.dbs)), func(a, b *database) int {
		return cmp.Or(cmp.Compare(broken(a), broken(b)), cmp.Compare(a.LastRecord, b.LastRecord), cmp.Compare(a.DB, b.DB))
	})
	delete(l.dbs, least.DB)
}

// anyBroken tells whether a database has a breach that is not over.
func (l *Life) anyBroken() bool {
	for _, d := range l.dbs {
		if d.broken(l.enough()) {
			return true
		}
	}
	return false
}

// broken tells whether it has a breach that is not over.
func (d *database) broken(enough Judged) bool {
	return slices.ContainsFunc(d.breaches, func(b breach) bool { return !d.over(&b, enough) })
}

// over tells whether enough was judged since a breach.
func (d *database) over(b *breach, enough Judged) bool {
	return b.ended || d.since(b.at).reach(enough)
}

// Judged says how far a database is judged, not counting what a run before had judged as
// well. It tells whether that is news.
//
// With another history, all that was found before counts as found where it is now: what was
// judged of the one before may have been judged otherwise. Groups of which nobody asks for a level
// that they break any more are set aside: the promise was taken back. When it is given again, so
// are they.
func (l *Life) Judged(p Progress, now int64) bool {
	l.advance(now)
	p.Time, p.From = bounded(p.Time), bounded(p.From)
	d := l.dbs[p.DB]
	same := d != nil && d.History == p.History
	if d != nil {
		p.LastRecord = max(p.LastRecord, d.LastRecord) // 0 after a restart, until one comes
	}
	if d != nil && p.Transactions == 0 {
		p.Time = max(p.Time, d.Time) // another history, of which nothing is judged so far, takes nothing back
	}
	if same {
		p.Time, p.Transactions = max(p.Time, d.Time), max(p.Transactions, d.Transactions)
		if !d.moved && p.Place == d.Place && p.LastRecord == d.LastRecord && slices.Equal(p.Levels, d.Levels) {
			return false
		}
	}
	next := &database{Progress: p, began: earlier(l.now, cmp.Or(p.From, p.Time))}
	next.Levels = slices.Clone(p.Levels)
	if d != nil {
		next.breaches, next.spans = slices.Clone(d.breaches), d.spans
		if same {
			next.began = d.began
		}
	}
	for i := range next.breaches {
		switch b := &next.breaches[i]; {
		case b.at.History != p.History:
			b.ended, b.at = d.over(b, l.enough()), p.Place
		case !next.asks(b.broken) && !d.over(b, l.enough()): // nobody looked for more of it
			b.at = later(b.at, p.Place)
		}
	}
	asked := d == nil || !slices.EqualFunc(p.Levels, d.Levels, func(a, b Asked) bool { return a.Level == b.Level })
	if !same || d.moved || asked {
		for _, g := range l.those(func(g *group) bool {
			return g.DB == p.DB && g.tier < tierOverflow && (g.State != alerts.Resolved || g.aside())
		}) {
			if at, enough := l.ends(g); g.over == 0 && !g.due && enough && (!same || l.now >= at) {
				l.resolve(g) // as it is for the breach
				continue
			}
			if g.at.History != p.History || g.aside() {
				g.at = p.Place
			}
			l.ask(g, next.promise(g)) // also of what was found before, and brought only now
		}
	}
	l.put(next)
	return true
}

// ask says which level a group breaks of those that are asked for now; empty: none.
func (l *Life) ask(g *group, level string) {
	before := g.Level
	switch {
	case level == "" && g.over == 0:
		if g.over = l.now; !g.due {
			l.resolve(g)
		}
	case level == "":
	case g.aside():
		g.Level = level
		l.reopen(g)
	default:
		if g.Level, g.over = level, 0; before != level && g.told {
			l.again(g) // receivers may be of a level
		}
	}
}

// promise is the weakest of the levels that are asked for which a group breaks, or empty.
func (d *database) promise(g *group) string {
	out := ""
	for _, a := range d.Levels {
		if breaks(g.broken, a.Level) && (out == "" || strength(a.Level) < strength(out)) {
			out = a.Level
		}
	}
	return out
}

// strength orders levels, the weakest first; lin, which is about single objects, is the last.
func strength(level string) int {
	return slices.IndexFunc(append(name.Ordered(), verdict.LIN), func(l verdict.Level) bool { return l.String() == level })
}

// earlier is the earlier of two times; 0 is none.
func earlier(a, b int64) int64 {
	if b != 0 {
		return min(a, b)
	}
	return a
}

// asks tells whether a level is judged that what breaks some others breaks.
func (d *database) asks(broken string) bool {
	return slices.ContainsFunc(d.Levels, func(a Asked) bool { return breaks(broken, a.Level) })
}

// breaks tells whether what breaks some levels, as weakest has them, breaks another.
func breaks(broken, level string) bool {
	l, known := verdict.ParseLevel(level)
	return !known || broken == "" || slices.ContainsFunc(strings.Fields(broken), func(of string) bool {
		b, ok := verdict.ParseLevel(of)
		return !ok || l.Implies(b)
	})
}

// weakest are those of some levels that follow from no other of them, in their order, between spaces. An anomaly may
// break several of which neither implies the other, as strong-si and ser, or si and lin.
func weakest(levels []string) string {
	out := slices.DeleteFunc(slices.Clone(levels), func(l string) bool {
		return l == "" || slices.ContainsFunc(levels, func(of string) bool { return of != "" && of != l && breaks(of, l) })
	})
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(strength(a), strength(b)) })
	return strings.Join(slices.Compact(out), " ")
}

// bounded is a time whose differences do not overflow, and that Restore takes.
func bounded(t int64) int64 { return min(max(t, math.MinInt64/4), math.MaxInt64/4) }

// broke notes where an anomaly was found, for the first time or again: behind that, nothing has been judged so far.
func (l *Life) broke(g *group, a *alerts.Alert, news int64, first bool) {
	d := l.dbs[a.DB]
	next := &database{began: l.now}
	if d != nil {
		*next = *d
	}
	next.DB = a.DB
	at := next.Place
	if a.At != nil {
		at = *a.At
		at.Time = bounded(at.Time)
	}
	next.moved = next.moved || at.History != next.History
	level := cmp.Or(a.Weakest, a.Level)
	broken := weakest(append([]string{level}, a.Breaks...))
	next.breaches = slices.Clone(next.breaches)
	i, found := slices.BinarySearchFunc(next.breaches, broken,
		func(b breach, of string) int { return cmp.Compare(b.broken, of) })
	if !found && len(next.breaches) < levelsMax {
		next.breaches = slices.Insert(next.breaches, i, breach{broken: broken, since: a.LastSeen, at: at})
	}
	b := &next.breaches[min(i, len(next.breaches)-1)]
	if next.over(b, l.enough()) {
		*b = breach{broken: b.broken, since: a.LastSeen, last: b.last, at: at}
	}
	b.last, b.at = max(b.last, a.LastSeen), later(b.at, at)
	b.count += news
	if first {
		b.alerts++
	}
	if a.At != nil && a.At.Time != 0 {
		from := at.Time
		if at.From != 0 {
			from = min(from, bounded(at.From))
		}
		next.spans = mark(next.spans, Span{From: from, To: at.Time, Alerts: news})
	}
	l.put(next)

	g.at, g.over = later(g.at, at), 0
	if g.Weakest == "" || breaks(level, g.Weakest) {
		g.Weakest = level
	}
	g.broken = weakest(append(strings.Fields(g.broken), strings.Fields(broken)...))
	for _, k := range shown(a.Keys) {
		if len(g.Keys) < listMax && !slices.Contains(g.Keys, k) {
			g.Keys = append(slices.Clip(g.Keys), k) // a snapshot may have them
		}
	}
}

// later is the later place of two: of two histories, the one that was said last.
func later(a, b alerts.Place) alerts.Place {
	if a.History != b.History {
		return b
	}
	return alerts.Place{History: a.History, Transactions: max(a.Transactions, b.Transactions), Time: max(a.Time, b.Time)}
}

// mark notes where there were anomalies. Where there are too many spans, the two that are
// closest become one.
func mark(spans []Span, x Span) []Span {
	i, _ := slices.BinarySearchFunc(spans, x.From, func(s Span, at int64) int { return cmp.Compare(s.To, at) })
	end := i
	for ; end < len(spans) && spans[end].From <= x.To; end++ {
		x = Span{From: min(x.From, spans[end].From), To: max(x.To, spans[end].To), Alerts: x.Alerts + spans[end].Alerts}
	}
	spans = slices.Replace(slices.Clone(spans), i, end, x)
	if len(spans) <= spansMax {
		return spans
	}
	closest := 1
	for j := 2; j < len(spans); j++ {
		if spans[j].From-spans[j-1].To < spans[closest].From-spans[closest-1].To {
			closest = j
		}
	}
	a, b := &spans[closest-1], spans[closest]
	a.To, a.Alerts = b.To, a.Alerts+b.Alerts
	return slices.Delete(spans, closest, closest+1)
}

// Databases are those of which something is known, in order.
func (s *Snapshot) Databases() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.dbs))
}

// Progress is how far a database was judged, as far as that is known.
func (s *Snapshot) Progress(db string) (Progress, bool) {
	if s == nil || s.dbs[db] == nil {
		return Progress{}, false
	}
	return s.dbs[db].Progress, true
}

// Spans are where on the records' clock there were anomalies in a database.
func (s *Snapshot) Spans(db string) []Span {
	if s == nil || s.dbs[db] == nil {
		return nil
	}
	return s.dbs[db].spans
}

// Standing is how it stands with a level of a database, at an instant of the monitor's
// clock. A breach is of this level if what was found breaks it, whatever was asked for
// then.
func (s *Snapshot) Standing(db, level string, now int64) Standing {
	out := Standing{Health: NotJudged}
	if s == nil {
		return out
	}
	out.Enough = s.enough
	d := s.dbs[db]
	if d == nil {
		return out
	}
	out.Since, out.Until, out.LastRecord, out.Judged = d.began, d.Time, d.LastRecord,
		Judged{d.Transactions, time.Duration(max(0, d.Time-d.began))}
	i := slices.IndexFunc(d.Levels, func(a Asked) bool { return a.Level == level })
	if i >= 0 {
		out.Complete = d.Levels[i].Complete
	}
	open := false
	for _, b := range d.breaches {
		if !breaks(b.broken, level) {
			continue
		}
		judged := d.since(b.at)
		over := d.over(&b, s.enough) && now-b.last >= int64(brokenFor)
		switch {
		case over && open:
			continue
		case open: // several at once
			out.Since, out.Alerts, out.Violations = min(out.Since, b.since), out.Alerts+b.alerts, out.Violations+b.count
			out.Judged = Judged{min(out.Judged.Transactions, judged.Transactions), min(out.Judged.Time, judged.Time)}
		case !over:
			out.Since, out.Alerts, out.Violations, out.Judged, open = b.since, b.alerts, b.count, judged, true
		case b.last > out.Last:
			out.Since, out.Alerts, out.Violations, out.Judged = earlier(b.last, b.at.Time), b.alerts, b.count, judged
		default:
			continue
		}
		out.Last = max(out.Last, b.last)
	}
	switch {
	case open && now-out.Last < int64(brokenFor):
		out.Health = Broken
	case open:
		out.Health = BrokenEarlier
	case out.Complete == "" || d.Transactions == 0:
		out.Since = 0
	case out.Complete == Partial:
		out.Health = HoldsInPart
	default:
		out.Health = Holds
	}
	return out
}
