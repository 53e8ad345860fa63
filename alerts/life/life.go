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
	"github.com/isowatch/isowatch/alerts/text"
)

// Life is what has been found and told. It has no clock: now is Unix nanoseconds,
// and time never goes back by less than RatePer (such an instant counts as the
// latest one). Not safe for concurrent use; Snapshot makes what is.
//
// Invariants: wanting holds each group that is due once, in the order in which they
// became so; withheld is the sum of all unsaid; at most 2*GroupsMax+1+conditionsMax+1
// groups are not over, resolvedMax are, and GroupsMax were set aside, which reopen one by one.
type Life struct {
	cfg      Config
	groups   map[string]*group
	active   [tiers]int // groups that are not over
	silences []Silence  // made at run time, in the order in which they were
	// silenceEnds is when the next silence does; math.MaxInt64: none will.
	silenceEnds int64
	wanting     []*group
	withheld    int

	now  int64
	fed  int64
	sent []int64 // the notices of the last RatePer
	// backlog is since when groups that are due wait for a summary; 0: none do.
	backlog int64
	after   int64 // of a notice that is being made: the sum of when its groups were told of before
	// burst is told in summaries until all groups of it are over.
	burst burst
	dbs   map[string]*database
	// shared: a snapshot has dbs, which is copied before it changes.
	shared bool
}

// burst is what summaries are about: the groups that no notice of their own told
// of.
type burst struct {
	id      string // empty: there is none
	since   int64
	members int
	over    bool // and that is to be told
}

// The tiers of groups, see Config.GroupsMax.
const (
	tierFine = iota
	tierCoarse
	tierOverflow
	tierCondition
	tiers
)

// conditionsMax bounds how many conditions are told apart.
const conditionsMax = 256

// group is a Group and what is to be told of it.
type group struct {
	Group
	aliases []string
	tier    int
	touched int64        // when it was found last, by Life's time
	at      alerts.Place // of anomalies: where the last one was found
	unsaid  []string
	due     bool
	// told: a notice of its own was about it since it began; burst: a summary was.
	// toldAt and toldCount are when the last one was, and Count then.
	told, burst bool
	toldAt      int64
	toldCount   int64
	kept        int64 // silenced since
	// Of conditions: ends says that it is over when Over says so. over is since when it is,
	// 0 if it is not; of anomalies, since when nobody asks for a level that they break.
	ends bool
	over int64
	// farewell: that it is over is to be told.
	farewell bool
}

// News is a notice to be made: what it says, and the group whose representative
// stands for it.
type News struct {
	Notification
	State alerts.State
	Of    Group
}

// New makes an empty life.
func New(cfg Config) *Life {
	return &Life{cfg: cfg.withDefaults(), groups: map[string]*group{}, dbs: map[string]*database{},
		silenceEnds: math.MaxInt64}
}

// Configure replaces the configuration.
func (l *Life) Configure(cfg Config, now int64) {
	l.advance(now)
	l.cfg = cfg.withDefaults()
	l.mute()
}

// advance moves the time on. A clock that was set back moves all that is remembered
// back with it, so that nothing waits for hours that have been before.
func (l *Life) advance(now int64) {
	if now >= l.now {
		l.now = now
		return
	}
	if l.now-now <= int64(l.cfg.RatePer) {
		return
	}
	l.now = now
	for _, g := range l.groups {
		g.touched, g.toldAt, g.over = min(g.touched, now), min(g.toldAt, now), min(g.over, now)
	}
	for i := range l.sent {
		l.sent[i] = min(l.sent[i], now)
	}
	l.backlog = min(l.backlog, now)
}

// Full tells whether no more alerts are to be brought until a notice has told of
// some: they wait in the store.
func (l *Life) Full() bool { return l.withheld >= l.cfg.WithheldMax }

// Anomaly takes in an alert that was found, for the first time or again; so many detections of it, at least one, are
// news.
func (l *Life) Anomaly(a alerts.Alert, detections int, now int64) {
	l.advance(now)
	a.LastSeen = cmp.Or(a.LastSeen, l.now)
	l.fed = max(l.fed, a.LastSeen)
	g := l.place(&a)
	began := g.Count == 0
	if began {
		g.Since = a.LastSeen
	} else {
		g.State = alerts.Ongoing
	}
	news, count := int64(max(detections, 1)), int64(a.Count)
	if len(a.Suspicion) > 0 {
		count++ // one more of what others tell of
	}
	first := count <= news
	isNew := first || began
	g.Count += news
	g.Last, g.touched = max(g.Last, a.LastSeen), l.now
	if isNew {
		g.Alerts++
	}
	l.broke(g, &a, news, first)
	if g.Representative == "" || rank(a.Severity) > rank(g.Severity) {
		g.Representative, g.Severity = a.ID, a.Severity
	}
	if g.Muted || l.silenced(func(s *Silence) bool { return s.matches(g, a.Keys) }) {
		g.Silenced += news
		g.kept += news
		if !g.Muted && (g.told || g.burst) {
			g.toldCount += news // nobody is told that there is more of it
		}
		return
	}
	if isNew {
		g.unsaid = append(g.unsaid, a.ID)
		l.withheld++
	}
	if l.isNews(g) {
		l.want(g)
	}
	if l.withheld >= l.cfg.WithheldMax*3/4 {
		for _, g := range l.those(func(g *group) bool { return len(g.unsaid) > 0 && !g.due && g.State != alerts.Resolved }) {
			l.want(g)
		}
	}
}

// place finds or makes the group of an alert.
func (l *Life) place(a *alerts.Alert) *group {
	weakest := cmp.Or(a.Weakest, a.Level)
	for _, p := range []struct {
		tier, most int
		id         string
		g          Group
	}{
		{tierFine, l.cfg.GroupsMax, groupID(a.DB, weakest, a.Name),
			Group{DB: a.DB, Level: a.Level, Name: a.Name, Keys: []string{}}},
		{tierCoarse, l.cfg.GroupsMax, coarseID(a.DB, weakest),
			Group{DB: a.DB, Level: a.Level, Name: severalNames, Keys: []string{}}},
		{tierOverflow, 1, overflowID, Group{Keys: []string{}}},
	} {
		g := l.groups[p.id]
		if g != nil && g.aside() {
			l.reopen(g)
		}
		if g != nil && g.State != alerts.Resolved {
			return g
		}
		if l.active[p.tier] < p.most {
			var aliases []string
			if p.tier == tierFine {
				aliases = shown(a.Aliases)
			}
			p.g.ID = p.id
			return l.begin(p.g, p.tier, aliases)
		}
	}
	panic("life: no place for an alert; can't happen, because the last tier has one group, which is there or can be made")
}

// begin makes a group, or a new one in the place of one that is over: what was to
// be told of that one still is.
func (l *Life) begin(g Group, tier int, aliases []string) *group {
	n := &group{Group: g, tier: tier, aliases: aliases, touched: l.now}
	n.State, n.Since, n.Last = alerts.Fresh, l.now, l.now
	if old := l.groups[g.ID]; old != nil && old.farewell {
		// It is not over after all, as far as anybody was told.
		n.told, n.toldAt, n.toldCount, n.unsaid = old.told, old.toldAt, 0, old.unsaid
		n.State = alerts.Ongoing
	}
	l.groups[g.ID] = n
	l.active[tier]++
	n.Muted = l.muted(n)
	return n
}

// Raise says that a condition is the case: again and again as long as it is, or once
// for each time that an event happens.
func (l *Life) Raise(c Condition, now int64) {
	l.advance(now)
	g := l.condition(c, true)
	if g.Count == 0 {
		g.Count = max(c.Count, 1)
	} else if c.Count > 0 {
		g.Count += c.Count
		g.State = alerts.Ongoing
	}
	g.Text, g.over = text.Cut(c.Text, 2*textMax), 0
	g.Last, g.touched = l.now, l.now
	if rank(c.Severity) > rank(g.Severity) {
		g.Severity = c.Severity
	}
	if g.Muted {
		if more := g.Count - g.toldCount - g.kept; more > 0 {
			g.kept += more
			g.Silenced += more
		}
		return
	}
	if l.isNews(g) {
		l.want(g)
	}
}

// Is tells whether a condition is the case already, in these words.
func (l *Life) Is(c Condition) bool {
	g := l.condition(c, false)
	return g != nil && g.over == 0 && g.Text == text.Cut(c.Text, 2*textMax)
}

// Over says that a condition is the case no more.
func (l *Life) Over(c Condition, now int64) {
	l.advance(now)
	if g := l.condition(c, false); g != nil && g.ends && g.over == 0 {
		g.over = l.now
	}
}

// Conditions are those that are the case and are over when Over says so, in the
// order of their groups' ids. Text and Severity are as raised last.
func (l *Life) Conditions() []Condition {
	var out []Condition
	for _, g := range l.ordered() {
		if g.tier == tierCondition && g.ends && g.over == 0 && g.State != alerts.Resolved {
			c := Condition{Kind: strings.TrimPrefix(g.Name, Operational), DB: g.DB, Text: g.Text, Severity: g.Severity}
			if len(g.Keys) > 0 {
				c.Of = g.Keys[0]
			}
			out = append(out, c)
		}
	}
	return out
}

// condition finds the group of a condition, or makes it. If there are too many,
// conditions of a kind share one, which is over when it is not raised any more.
func (l *Life) condition(c Condition, make bool) *group {
	g := Group{DB: text.Cut(c.DB, textMax), Name: Operational + c.Kind, Keys: []string{}}
	if c.Of != "" {
		g.Keys = shown([]string{c.Of})
	}
	g.ID = conditionID(g.DB, g.Name, g.Keys)
	have := l.groups[g.ID]
	if have != nil && have.State != alerts.Resolved {
		return have
	}
	if !make {
		return nil
	}
	ends := !c.Event
	if l.active[tierCondition] >= conditionsMax {
		g = Group{ID: conditionID("", g.Name, nil), Name: g.Name, Keys: []string{}}
		if have = l.groups[g.ID]; have != nil && have.State != alerts.Resolved {
			return have
		}
		ends = false
	}
	n := l.begin(g, tierCondition, nil)
	n.ends = ends
	return n
}

// isNews tells whether a group that was found once more is to be told of now.
func (l *Life) isNews(g *group) bool {
	switch {
	case !g.told && !g.burst:
		return g.Count > g.Silenced || !l.hushed(g)
	case g.Count <= g.toldCount && len(g.unsaid) == 0 && !g.lasts():
		return false
	case l.cfg.Repeat <= 0:
		return g.Count > g.toldCount || len(g.unsaid) > 0
	}
	return g.Count/10 >= g.toldCount || l.now-g.toldAt >= int64(l.cfg.Repeat)
}

// lasts: it is a condition that is the case, of which one is reminded.
func (g *group) lasts() bool {
	return g.tier == tierCondition && g.ends && g.over == 0 && g.State != alerts.Resolved
}

// want puts a group in the line of those to be told of.
func (l *Life) want(g *group) {
	if !g.due {
		g.due = true
		l.wanting = append(l.wanting, g)
	}
}

// Tick lets time pass: groups end, silences end, reminders are due.
func (l *Life) Tick(now int64) {
	l.advance(now)
	if l.now >= l.silenceEnds {
		l.mute()
	}
	for _, g := range l.those(func(g *group) bool {
		if g.State == alerts.Resolved || g.due {
			return false
		}
		at, ok := l.ends(g)
		return ok && l.now >= at || !g.Muted && l.isNews(g)
	}) {
		if at, ok := l.ends(g); ok && l.now >= at {
			l.resolve(g)
		} else {
			l.want(g)
		}
	}
	l.forget()
}

// ends is when a group is over by the time that passes alone, if it is: of anomalies, only
// if enough has been judged without them, or nobody asks for their level any more.
func (l *Life) ends(g *group) (int64, bool) {
	switch {
	case g.tier == tierOverflow:
		return l.now, !l.anyBroken()
	case g.tier != tierCondition:
		return g.touched + min(int64(brokenFor), int64(l.cfg.ResolveAfter)),
			g.over > 0 || l.dbs[g.DB].since(g.at).reach(l.enough())
	case !g.ends:
		return g.touched + int64(l.cfg.ResolveAfter), true
	}
	return g.over + min(int64(settle), int64(l.cfg.ResolveAfter)), g.over > 0
}

// resolve ends a group.
func (l *Life) resolve(g *group) {
	g.State, g.ResolvedAt = alerts.Resolved, l.now
	l.active[g.tier]--
	g.farewell = g.told || len(g.unsaid) > 0
	if g.burst {
		if l.burst.members--; l.burst.members == 0 {
			l.burst.over = true
		}
	}
}

// aside: it is resolved as nobody asks for a level that it breaks, and not because enough was
// judged without it: who asks again finds it as it was.
func (g *group) aside() bool {
	return g.State == alerts.Resolved && g.over > 0 && g.tier < tierOverflow
}

// reopen takes back that nobody asks for a group. Who was told that it is over is told that it is not.
func (l *Life) reopen(g *group) {
	g.State, g.ResolvedAt, g.over = alerts.Ongoing, 0, 0
	l.active[g.tier]++
	unheard := g.farewell && g.told
	if g.farewell, g.burst = false, false; !unheard {
		l.again(g)
	}
}

// again puts a group in the line that receivers are to hear of once more, if they may.
func (l *Life) again(g *group) {
	if !g.Muted && (g.told || l.isNews(g)) {
		l.want(g)
	}
}

// forget drops what has been over for longest, and was told. Of what was set aside more is kept.
func (l *Life) forget() {
	var over, aside []*group
	for _, g := range l.groups {
		switch {
		case g.State != alerts.Resolved || g.farewell:
		case g.aside():
			aside = append(aside, g)
		default:
			over = append(over, g)
		}
	}
	l.forgetOf(over, resolvedMax)
	l.forgetOf(aside, l.cfg.GroupsMax)
}

func (l *Life) forgetOf(over []*group, most int) {
	if len(over) <= most {
		return
	}
	slices.SortFunc(over, byEnd)
	for _, g := range over[:len(over)-most] {
		delete(l.groups, g.ID)
	}
}

// byEnd orders groups that are over.
func byEnd(a, b *group) int {
	return cmp.Or(cmp.Compare(a.ResolvedAt, b.ResolvedAt), strings.Compare(a.ID, b.ID))
}

// ordered are all groups by id.
func (l *Life) ordered() []*group { return l.those(func(*group) bool { return true }) }

// those are the groups that a filter lets through, by id.
func (l *Life) those(filter func(*group) bool) []*group {
	var out []*group
	for _, g := range l.groups {
		if filter(g) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *group) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Due is when Tick or Next may have something to do, if nothing else happens;
// math.MaxInt64: never. It may be too early, and is never too late.
func (l *Life) Due() int64 {
	due := int64(math.MaxInt64)
	at := func(t int64) { due = min(due, t) }
	waits := len(l.wanting) > 0 || l.burst.over
	for _, g := range l.groups {
		waits = waits || g.farewell
		if g.State == alerts.Resolved || g.due {
			continue
		}
		if t, ok := l.ends(g); ok {
			at(t)
		}
		if !g.Muted && l.cfg.Repeat > 0 && (g.told || g.burst) && (g.Count > g.toldCount || len(g.unsaid) > 0 || g.lasts()) {
			at(g.toldAt + int64(l.cfg.Repeat))
		}
	}
	at(l.silenceEnds)
	if waits {
		at(l.opens())
	}
	return due
}

// opens is when a notice is the next to be let out: now, unless there is no room, or
// a summary gathers.
func (l *Life) opens() int64 {
	t := l.now
	free := l.free()
	if free == 0 {
		t = l.sent[len(l.sent)-l.cfg.RateMax] + int64(l.cfg.RatePer)
	}
	if len(l.sent) > 0 && (l.backlog > 0 || free <= l.cfg.RateMax/2) {
		gathered := l.sent[len(l.sent)-1] + l.gather()
		// Room that comes before may do as well.
		room := int64(math.MaxInt64)
		for _, s := range l.sent {
			if s+int64(l.cfg.RatePer) > l.now {
				room = min(room, s+int64(l.cfg.RatePer))
			}
		}
		if l.reserves(free) {
			gathered = room
		}
		t = max(t, min(gathered, room))
	}
	return t
}

// Snapshot is what there is now.
func (l *Life) Snapshot() *Snapshot {
	s := &Snapshot{Groups: make([]Group, 0, len(l.groups)), Silences: l.Silences(), Withheld: l.withheld, fed: l.fed,
		dbs: l.dbs, enough: l.enough(),
		byID: make(map[string]int, len(l.groups))}
	for i, g := range slices.SortedFunc(maps.Values(l.groups), byLast) {
		c := g.Group
		c.Keys = slices.Clone(c.Keys)
		s.Groups, s.byID[c.ID] = append(s.Groups, c), i
	}
	l.shared = true
	return s
}

// byLast orders groups for who looks at them: those that are not over first, the latest of each.
func byLast(a, b *group) int {
	if over := a.State == alerts.Resolved; over != (b.State == alerts.Resolved) {
		if over {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Last, a.Last), strings.Compare(a.ID, b.ID))
}

// Withheld is how many alerts a summary is still to tell of.
func (l *Life) Withheld() int { return l.withheld }

// rank orders severities.
func rank(s name.Severity) int {
	return slices.Index(name.Severities(), s) + 1
}

// The limits of what is shown of a group.
const (
	listMax = 16
	keyMax  = 256
)

// shown is the beginning of a list of texts.
func shown(list []string) []string {
	out := make([]string, 0, min(len(list), listMax))
	for _, s := range list[:min(len(list), listMax)] {
		out = append(out, text.Cut(s, keyMax))
	}
	return out
}

// gather is how long a summary waits after the notice before it, so that it has
// more to tell.
func (l *Life) gather() int64 { return int64(l.cfg.RatePer / time.Duration(l.cfg.RateMax)) }
