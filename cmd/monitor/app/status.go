package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// status is what the page sees of the running monitor: page.Data. Workers put
// snapshots of their histories into it, at most one in publishEvery; nobody waits for
// a reader of the page. It is safe for concurrent use.
type status struct {
	*setting
	hub     page.Hub
	started time.Time
	events  *rate.Limiter // of alerts

	mu        sync.Mutex
	keeper    *keeper                 // nil before Run
	life      lifeView                // nil before Run
	views     map[string]*historyView // by database
	receivers map[string]*page.Receiver
	ring      ring
	stored    store.Stats
}

// lifeView is what the page needs of the life of alerts.
type lifeView interface {
	Snapshot() *life.Snapshot
	Silence(ctx context.Context, s life.Silence) (life.Silence, error)
	Expire(ctx context.Context, id string) error
}

// publishEvery is how often a worker shows the page how it is doing.
const publishEvery = time.Second

func newStatus(a *setting) *status {
	s := &status{setting: a, started: time.Now(), events: rate.NewLimiter(rationMax, rationMax),
		views: map[string]*historyView{}, receivers: map[string]*page.Receiver{}}
	for _, name := range receiverNames(a.cfg) {
		s.receivers[name] = &page.Receiver{Name: name}
	}
	return s
}

// begin says where alerts are read from. It is called once.
func (s *status) begin(k *keeper, l lifeView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper, s.life = k, l
}

func (s *status) parts() (*keeper, *life.Snapshot, lifeView) {
	s.mu.Lock()
	k, l := s.keeper, s.life
	s.mu.Unlock()
	if l == nil {
		return k, nil, nil
	}
	return k, l.Snapshot(), l
}

// historyView is a history as its worker last showed it.
type historyView struct {
	newest          int64 // as stream has it: its least time, or 0, if there is none
	lastRecord      int64 // by the monitor's clock
	lag             time.Duration
	waiting, queued int
	undecided       int64 // of Stats.Transactions, how many what is still to come may decide
	stats           stream.Stats
	leftOut         int64
	stretches       []stream.Stretch
	complete        bool
	frontier        int
	sample          uint8
	solver          verdict.Stats
}

// behind is how long, in seconds, the record that is judged next has waited since it was
// read; 0 if none waits. The time that records of a history have to wait until they are in order
// is not part of it.
func (v *historyView) behind(now time.Time) float64 {
	if v.queued == 0 || v.lastRecord == 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, v.lastRecord)).Seconds())
}

// publish shows the page how the history is doing, if it is time to.
func (w *worker) publish(now time.Time, must bool) {
	if !must && now.Sub(w.published) < publishEvery {
		return
	}
	w.published = now
	records, _ := w.queue.length()
	left, _ := w.queue.backlog()
	records += left
	kept := w.history.Frontier()
	stretches, work := w.history.Standing()
	judged := w.judged()
	v := &historyView{undecided: int64(w.history.Stats().Transactions) - judged.Transactions,
		newest: w.history.Newest(), lastRecord: w.lastRecord,
		lag: time.Duration(w.lag.Load()), waiting: w.history.Waiting(), queued: records,
		stats: w.history.Stats(), leftOut: w.history.OrderCounts().LeftOut, stretches: stretches,
		complete: w.history.Complete(), frontier: kept.Keys + kept.OnDisk,
		sample: w.sampling, solver: work}
	w.status.show(w.db, v)
	if through := must && w.history.Next() > w.replayed; w.replays() && !through {
		return // the run before was further
	}
	p := &life.Progress{DB: w.db, Place: judged, LastRecord: w.lastRecord}
	if len(v.stretches) > 0 {
		p.From = v.stretches[0].Begin
	}
	for _, l := range w.cfg.Levels {
		p.Levels = append(p.Levels, life.Asked{Level: l.String(), Complete: completeness(name.Effective(l, w.cfg.Clock), v)})
	}
	w.progress.Store(p)
}

func (s *status) show(db string, v *historyView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views[db] = v
}

// raised takes note of an alert that was committed, and tells who listens.
func (s *status) raised(a *alerts.Alert) {
	s.mu.Lock()
	s.ring.alerts++
	s.mu.Unlock()
	if s.hub.Listened() && s.events.Allow() {
		_, groups, _ := s.parts()
		s.hub.Publish(page.Event{Type: page.EventAlert, Data: summary(groups.Overlay(*a), 0)})
	}
}

// rationMax is how many alerts a reader of events is told of one by one, a second. Of more, the next status says how
// many there are.
const rationMax = 20

// delivered takes note of an attempt to deliver.
func (s *status) delivered(e deliver.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.receivers[e.Receiver]
	if r == nil {
		return
	}
	switch e.Outcome {
	case deliver.Delivered, deliver.Resent:
		r.Delivered++
		r.Failed, r.Error, r.Last = 0, "", time.Now().UnixNano()
	case deliver.Retrying, deliver.Refused:
		r.Failed++
		if e.Err != nil {
			r.Error = e.Err.Error()
		}
	}
}

// sampleEvery is one step of the charts, storeEvery how often the store is asked
// for its size.
const (
	sampleEvery = time.Second
	storeEvery  = 5 // samples
)

// watch fills the charts and tells who listens, until ctx ends.
func (s *status) watch(ctx context.Context) {
	defer s.hub.Close()
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for n := 0; ; n++ {
		s.sample(ctx, time.Now(), n%storeEvery == 0)
		if s.hub.Listened() {
			if st, err := s.at(ctx, tellSteps); err == nil {
				s.hub.Publish(page.Event{Type: page.EventStatus, Data: st})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// tellSteps is how many steps of the charts a status has that is sent every step:
// more than one, as one may be lost.
const tellSteps = 5

func (s *status) sample(ctx context.Context, now time.Time, size bool) {
	reading := counters{records: total(s.metrics.records),
		judging: spentOn(s.metrics, workStep) + spentOn(s.metrics, workTick) + spentOn(s.metrics, workSegment),
		proving: spentOn(s.metrics, workAlert)}
	stored, known := store.Stats{}, false
	if k, _, _ := s.parts(); size && k != nil {
		var err error
		stored, err = k.Stats(ctx)
		known = err == nil // it fails when the store is being closed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known {
		s.stored = stored
	}
	var p point
	for _, v := range s.views {
		reading.transactions += float64(v.stats.Transactions)
		reading.conflicts += float64(v.solver.Conflicts)
		p.lag = max(p.lag, v.lag.Seconds()+v.behind(now)) // never below 0: the mark may be ahead of all records
		p.window += float64(v.waiting + v.queued)
		p.open += float64(v.solver.Constraints - v.solver.Pruned)
	}
	s.ring.add(now, reading, p)
}

// Status implements page.Data.
func (s *status) Status(ctx context.Context) (page.Status, error) { return s.at(ctx, ringSteps) }

func (s *status) at(_ context.Context, steps int) (page.Status, error) {
	now := time.Now().UnixNano()
	k, groups, _ := s.parts()
	out := page.Status{Version: s.version, Now: now, Started: s.started.UnixNano(), Health: life.NotJudged,
		Waits: s.ready.reasons(), Source: s.source(),
		Histories: []page.History{}, Operational: conditions(groups), Events: page.Events{Latest: []record.Event{}},
		Settings: s.settings()}
	if s.canary != nil {
		out.Canary = new(s.canary())
	}
	idle := s.idle(groups, now)
	held := 0
	if k != nil {
		out.Events = shownEvents(k.World())
		held = k.holding()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, db := range s.databases(groups) {
		out.Histories = append(out.Histories, s.history(db, groups, idle, now))
	}
	for _, h := range out.Histories {
		out.Health = worse(out.Health, h.Health)
	}
	out.Receivers = make([]page.Receiver, 0, len(s.receivers))
	for _, r := range s.receivers {
		out.Receivers = append(out.Receivers, *r)
	}
	slices.SortFunc(out.Receivers, func(a, b page.Receiver) int { return strings.Compare(a.Name, b.Name) })
	out.Alerts.Total = s.stored.Alerts + int64(held)
	for _, g := range open(groups) {
		if !strings.HasPrefix(g.Name, life.Operational) {
			out.Alerts.Groups++
		}
	}
	out.Store = page.StoreStatus{Bytes: s.stored.DiskBytes, Full: total(s.metrics.storeHolding) > 0}
	out.Series = s.ring.series(steps)
	return out, nil
}

// databases are those that a worker has shown, and those of which something is known from
// before, in order. s.mu is held.
func (s *status) databases(groups *life.Snapshot) []string {
	out := append(groups.Databases(), slices.Collect(maps.Keys(s.views))...)
	slices.Sort(out)
	return slices.Compact(out)
}

// broken tells whether a level of a database is, as far as is remembered, or was, and not enough was judged since.
func (s *status) broken(db, level string) bool {
	_, groups, _ := s.parts()
	health := groups.Standing(db, level, time.Now().UnixNano()).Health
	return health == life.Broken || health == life.BrokenEarlier
}

// worse is the health that counts of two.
func worse(a, b life.Health) life.Health {
	for _, h := range []life.Health{life.Broken, life.BrokenEarlier, life.HoldsInPart, life.Holds} {
		if a == h || b == h {
			return h
		}
	}
	return life.NotJudged
}

func (s *status) source() page.Source {
	src := page.Source{Kind: "stdin", Records: int64(total(s.metrics.records)), Rejected: int64(total(s.metrics.rejected)),
		Behind: -1}
	switch c := s.cfg.Source; {
	case c.Kafka != nil:
		src.Kind, src.Name, src.Brokers, src.Behind = "kafka", c.Kafka.Topic, c.Kafka.Brokers,
			int64(total(s.metrics.sourceLag))
	case c.File != nil:
		src.Kind, src.Name = "file", c.File.Path
	case c.HTTP != nil:
		src.Kind = "http"
	}
	src.Partitions = amount(s.metrics.sourceLag)
	return src
}

func (s *status) settings() page.StatusConfig {
	return page.StatusConfig{Levels: verdict.Names(s.cfg.Levels), Clock: s.cfg.Clock.String(),
		Coverage: s.cfg.Coverage.String(), Values: s.cfg.Alerts.Values, Lateness: s.cfg.Window.Lateness.Seconds()}
}

// open are the groups that are not over.
func open(s *life.Snapshot) []life.Group {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.Groups, func(g life.Group) bool { return g.State == alerts.Resolved }); i >= 0 {
		return s.Groups[:i]
	}
	return s.Groups
}

// conditions are the operational alerts that are not over.
func conditions(s *life.Snapshot) []page.Condition {
	out := []page.Condition{}
	for _, g := range open(s) {
		if kind, ok := strings.CutPrefix(g.Name, life.Operational); ok {
			out = append(out, page.Condition{Kind: kind, DB: g.DB, Severity: string(g.Severity), Text: g.Text, Since: g.Since})
		}
	}
	return out
}

// history is a history as the page shows it: what its worker has shown, and what is known
// from before as long as it has not. s.mu is held.
func (s *status) history(db string, groups *life.Snapshot, idle bool, now int64) page.History {
	v := s.views[db]
	if v == nil {
		v = &historyView{} // its worker has shown nothing yet
	}
	h := page.History{DB: db, Health: life.NotJudged, Coverage: record.CoveragePartial.String(),
		Lag: max(0, v.lag.Seconds()), Behind: v.behind(time.Unix(0, now)), LastRecord: v.lastRecord,
		Stretches: shownStretches(v.stretches, judge.Read(s.cfg.Levels, s.cfg.Clock)), Broken: groups.Spans(db),
		Losses: losses(v), Transactions: int64(v.stats.Transactions), Waiting: int64(v.waiting), Queued: int64(v.queued),
		Undecided: v.undecided, Segments: int64(v.stats.Segments), FrontierKeys: int64(v.frontier), SampledOneIn: 1 << v.sample,
		Newest: moment(v.newest)}
	if v.complete {
		h.Coverage = record.CoverageComplete.String()
	}
	if h.Broken == nil {
		h.Broken = []life.Span{}
	}
	if n := len(h.Stretches); n > 0 {
		h.Since, h.Until = h.Stretches[0].From, h.Stretches[n-1].To
	}
	if p, ok := groups.Progress(db); ok {
		h.LastRecord, h.Transactions, h.Until = max(h.LastRecord, p.LastRecord), max(h.Transactions, p.Transactions),
			max(h.Until, p.Time)
	}
	if n := len(h.Broken); n > 0 && (h.Since == 0 || h.Broken[0].To < h.Since) { // found by a history before this one
		before := page.Stretch{From: h.Broken[0].From, To: cmp.Or(h.Since, max(h.Until, h.Broken[n-1].To)),
			Why: []page.Reason{reason("judged-before", 0)}}
		h.Stretches = slices.Insert(h.Stretches, 0, before)
		h.Since, h.Until = before.From, max(h.Until, before.To)
	}
	for _, l := range s.cfg.Levels {
		x := levelStatus(groups, db, l.String(), idle, now)
		x.Why += coverages[v.complete]
		h.Health = worse(h.Health, x.Health)
		h.Levels = append(h.Levels, x)
	}
	return h
}

// moment is a time of the stream, 0 if there is none.
func moment(t int64) int64 {
	if t == math.MinInt64 || t == math.MaxInt64 {
		return 0
	}
	return t
}

// idle tells whether nothing is judged any more: no record has come for alerts.silent_after, or the canary commits
// nothing at any node that takes writes.
func (s *status) idle(groups *life.Snapshot, now int64) bool {
	if slices.ContainsFunc(open(groups), func(g life.Group) bool { return g.Name == life.Operational+troubleSilent }) {
		return true
	}
	if s.canary == nil {
		return false
	}
	c, writable := s.canary(), false
	for i := range c.Nodes {
		if n := &c.Nodes[i]; !n.Replica {
			if !unreachable(n, now) && n.State != page.NodeStalled {
				return false
			}
			writable = true
		}
	}
	return writable
}

// levelStatus is how it stands with a level: what page, API, commands and metrics say. What is idle keeps no promise.
func levelStatus(groups *life.Snapshot, db, level string, idle bool, now int64) page.LevelStatus {
	out := page.LevelStatus{Level: level, Title: level, Standing: groups.Standing(db, level, now)}
	if idle && (out.Health == life.Holds || out.Health == life.HoldsInPart) {
		out.Health = life.NotJudged
	}
	if l, ok := verdict.ParseLevel(level); ok {
		phrase := name.LevelPhrase(l)
		out.Title = strings.ToUpper(phrase[:1]) + phrase[1:]
	}
	switch out.Complete {
	case life.Complete:
		out.Why = "every violation among the transactions that are judged is found"
	case life.CompleteRealTime:
		out.Why = "every violation among the transactions that are judged is found if the database keeps real time; else one may lead " +
			"from one segment into another"
	case life.Partial:
		out.Why = "a violation may be missed in some stretches"
	default:
		out.Why = "nothing is judged at this level"
		if level == verdict.LIN.String() && out.Judged.Transactions > 0 {
			out.Why += ": " + whyTexts["several-keys"]
		}
	}
	return out
}

// coverages say what is known of writes that nobody has seen.
var coverages = map[bool]string{
	false: "; what nobody is seen to have written may have been written by somebody unseen",
	true:  "; every write since the initial state is seen",
}

// promises are the values of isowatch_promise.
func (s *status) promises() map[string]float64 {
	out := map[string]float64{}
	_, groups, _ := s.parts()
	s.mu.Lock()
	dbs := s.databases(groups)
	s.mu.Unlock()
	now := time.Now().UnixNano()
	idle := s.idle(groups, now)
	for _, db := range dbs {
		for _, l := range s.cfg.Levels {
			for _, h := range []life.Health{life.Holds, life.HoldsInPart, life.Broken, life.BrokenEarlier, life.NotJudged} {
				out[strings.Join([]string{db, l.String(), string(h)}, labelEnd)] = 0
			}
			out[strings.Join([]string{db, l.String(), string(levelStatus(groups, db, l.String(), idle, now).Health)},
				labelEnd)] = 1
		}
	}
	return out
}

// completeAges are the values of isowatch_complete_age_seconds.
func (s *status) completeAges() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]float64{}
	now := time.Now().UnixNano()
	for db, v := range s.views {
		for _, x := range slices.Backward(shownStretches(v.stretches, judge.Read(s.cfg.Levels, s.cfg.Clock))) {
			if x.Complete {
				out[db] = max(0, float64(now-x.To)/1e9)
				break
			}
		}
	}
	return out
}

// completeness is how much of a history is judged completely at a level; empty if it is none that the level is about.
func completeness(l verdict.Level, v *historyView) life.Completeness {
	if len(v.stretches) == 0 {
		return "" // nothing is judged so far
	}
	least := stream.Complete
	for i := range v.stretches {
		if l == verdict.LIN && v.stretches[i].Partial&stream.WhyKeys != 0 {
			return ""
		}
		least = min(least, v.stretches[i].At(l))
	}
	switch least {
	case stream.Complete:
		return life.Complete
	case stream.AssumingRealTime:
		return life.CompleteRealTime
	}
	return life.Partial
}

// whyTexts say in words why something may be missed; the names are those of
// stream.LossWhy and stream.Whys.
var whyTexts = map[string]string{
	"records-missing":        "records are missing in the input",
	"unusable-record":        "records could not be used",
	"incomplete-transaction": "transactions came without their end",
	"same-id":                "two records had one id and different content",
	"stale-record":           "records of long ago came again",
	"sampling":               "sessions were left out under overload",
	"session-gap":            "a session's numbers have a hole",
	"late-record":            "records came later than window.lateness",
	"session-forgotten":      "sessions had been forgotten",
	"overlong-transaction":   "transactions took longer than window.max_transaction",
	"not-waited-for":         "a silent partition was not waited for, or came back behind what was judged",
	"wrong-seq":              "numbers of a session contradict its clocks, so that its order was not used",
	"forgotten":              "versions or reads that still mattered were given up, or what would prove an anomaly",
	"undecided":              "something is left open: it is not checked, or the search met its budget",
	"straddling":             "transactions have no order against what lies beyond a cut",
	"cut-by-limit":           "a segment was cut where nothing proves an order",
	"several-keys":           "a transaction has several keys, and lin is about single ones",
	"times-unused": "times of transactions contradict their sessions', or when they came, so that they are " +
		"not used to the full",
	"cut":           "what is stale is legal at this level, so that an anomaly may cross a cut",
	"left-out":      "records were left out under overload",
	"judged-before": "it was judged before the configuration or the version of the monitor changed, and not again since",
}

func reason(why string, count int64) page.Reason {
	text, ok := whyTexts[why]
	if !ok {
		text = strings.ReplaceAll(why, "-", " ")
	}
	return page.Reason{Why: why, Text: text, Count: count}
}

// shownStretches are the parts of a history without gaps and overlaps: what has no order
// belongs to two.
func shownStretches(in []stream.Stretch, levels []verdict.Level) []page.Stretch {
	out := []page.Stretch{}
	for i := range in {
		x := &in[i]
		from, to := moment(x.Begin), moment(x.End)
		if n := len(out); n > 0 {
			from = out[n-1].To
		}
		if from == 0 || to <= from && len(out) > 0 {
			continue
		}
		least := stream.Complete
		for _, l := range levels {
			least = min(least, x.At(l))
		}
		p := page.Stretch{From: from, To: max(from, to), Complete: least != stream.Partial}
		for _, why := range x.Partial.Names() {
			p.Why = append(p.Why, reason(why, 0))
		}
		if !p.Complete && x.Partial == 0 {
			p.Why = []page.Reason{reason("cut", 0)}
		}
		out = append(out, p)
	}
	return out
}

// losses count what was missing or given up since the history began.
func losses(v *historyView) []page.Reason {
	out := []page.Reason{}
	add := func(why string, n int64) {
		if n > 0 {
			out = append(out, reason(why, n))
		}
	}
	for i, n := range v.stats.Losses {
		add(stream.LossWhy(i).String(), int64(n))
	}
	add("forgotten", int64(v.stats.Dropped+v.stats.Unawaited+v.stats.Withheld))
	add("undecided", int64(v.stats.Undecided))
	add("straddling", int64(v.stats.Straddlers))
	add("times-unused", int64(v.stats.Untimely))
	add("left-out", v.leftOut)
	return out
}

// shownEvents are the newest events, and how many there are.
func shownEvents(w World) page.Events {
	latest := slices.Clone(w.Events[max(0, len(w.Events)-page.EventsShown):])
	slices.Reverse(latest)
	return page.Events{Latest: append([]record.Event{}, latest...), Kept: len(w.Events), Dropped: w.Dropped}
}

// Happen implements page.Data.
func (s *status) Happen(ctx context.Context, e record.Event) error {
	k, _, _ := s.parts()
	if k == nil {
		return errNotYet
	}
	return k.add(ctx, e)
}

// Subscribe implements page.Data.
func (s *status) Subscribe(ctx context.Context) <-chan page.Event { return s.hub.Subscribe(ctx) }

// Alerts implements page.Data.
func (s *status) Alerts(ctx context.Context, f page.Filter) (page.List, error) {
	k, groups, _ := s.parts()
	if k == nil {
		return page.List{}, nil
	}
	l := lister{filter: f, groups: groups}
	err := k.AlertsBefore(ctx, f.After, l.take)
	if l.err != nil {
		err = l.err
	}
	if err != nil {
		return l.list, err
	}
	stored, err := k.Stats(ctx) // not what the last sample says: nothing is "no alert" but no alert
	l.list.Total = max(stored.Alerts+int64(k.holding()), int64(len(l.list.Alerts)))
	return l.list, err
}

// A request looks at so many alerts at most, and at so many bytes.
const (
	scanMax      = 2000
	scanBytesMax = 32 << 20
)

// lister collects one page of alerts.
type lister struct {
	filter page.Filter
	groups *life.Snapshot
	list   page.List
	bytes  int
	err    error
}

// take looks at one alert; false when the page is full.
func (l *lister) take(number uint64, stored store.Alert) bool {
	if len(l.list.Alerts) >= max(l.filter.Limit, 1) || l.list.Scanned >= scanMax || l.bytes >= scanBytesMax {
		l.list.Next = number + 1
		return false
	}
	l.list.Scanned++
	l.bytes += len(stored.Body)
	a, err := alerts.Parse(stored.Body)
	if err != nil {
		l.err = err
		return false
	}
	a = l.groups.Overlay(a)
	if matches(l.filter, &a) {
		l.list.Alerts = append(l.list.Alerts, summary(a, number))
	}
	return true
}

// matches tells whether a filter lets an alert through. A level is that of every
// alert that breaks it. What waits to be explained is there for who asks for that state, or for a text.
func matches(f page.Filter, a *alerts.Alert) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	if !is(f.DB, a.DB) || !is(f.State, string(a.State)) || f.State == "" && f.Text == "" && len(a.Suspicion) > 0 ||
		!is(f.Severity, string(a.Severity)) || !is(f.Group, a.Group) || a.LastSeen < f.Since {
		return false
	}
	if f.Level != "" && a.Level != f.Level && !slices.Contains(a.Breaks, f.Level) {
		return false
	}
	if f.Name != "" && !name.Matches(a.Name, append([]string{a.Adya}, a.Aliases...), f.Name) {
		return false
	}
	if f.Text == "" {
		return true
	}
	text := strings.ToLower(f.Text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(a.ID) || has(a.Summary) || has(a.Name) || slices.ContainsFunc(a.Keys, has) ||
		slices.ContainsFunc(a.Transactions, has)
}

// What of an alert the list shows is cut at these.
const (
	listTextMax = 2 << 10
	listKeyMax  = 256
)

func summary(a alerts.Alert, number uint64) page.Summary {
	out := page.Summary{ID: a.ID, Number: number, DB: a.DB, Level: a.Level, Breaks: a.Breaks, Name: a.Name, Adya: a.Adya,
		Severity: string(a.Severity), State: string(a.State), ClockDependent: a.ClockDependent,
		FirstSeen: a.FirstSeen, LastSeen: a.LastSeen, Count: a.Count, Summary: short(a.Summary, listTextMax),
		Keys: []string{}, Group: a.Group}
	for _, k := range a.Keys {
		out.Keys = append(out.Keys, short(k, listKeyMax))
	}
	return out
}

// short is the beginning of a string, whole characters of it.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Alert implements page.Data.
func (s *status) Alert(ctx context.Context, id string) (alerts.Alert, error) {
	k, groups, _ := s.parts()
	if k == nil {
		return alerts.Alert{}, page.ErrNotFound
	}
	stored, ok, err := k.Alert(ctx, id)
	if err != nil {
		return alerts.Alert{}, err
	}
	if !ok {
		return alerts.Alert{}, page.ErrNotFound
	}
	a, err := readAlert(ctx, stored.Body, groups)
	if err != nil {
		return a, err
	}
	return a.Near(k.World().Events), nil
}

// Groups implements page.Data.
func (s *status) Groups(context.Context) ([]page.Group, error) {
	_, groups, _ := s.parts()
	out := []page.Group{}
	if groups == nil {
		return out, nil
	}
	for _, g := range groups.Groups {
		if strings.HasPrefix(g.Name, life.Operational) {
			continue
		}
		x := page.Group{ID: g.ID, DB: g.DB, Level: g.Level, Weakest: g.Weakest, Breaks: notNil(g.Broken(s.cfg.Levels)),
			Name: g.Name, Keys: []string{}, State: string(g.State), Severity: string(g.Severity), Since: g.Since, Last: g.Last,
			Count: g.Count, Alerts: g.Alerts, Silenced: g.Muted}
		for _, k := range g.Keys {
			x.Keys = append(x.Keys, short(k, listKeyMax))
		}
		out = append(out, x)
	}
	return out, nil
}

// notNil is a list that JSON has as one.
func notNil(s []string) []string { return append([]string{}, s...) }

// Silences implements page.Data.
func (s *status) Silences(context.Context) ([]life.Silence, error) {
	if _, groups, _ := s.parts(); groups != nil {
		return append([]life.Silence{}, groups.Silences...), nil
	}
	return []life.Silence{}, nil
}

// errNotYet is the answer to who wants to change something before it is there.
var errNotYet = errors.New("the monitor is starting: its store is not open yet; try again soon")

// Silence implements page.Data.
func (s *status) Silence(ctx context.Context, x life.Silence) (life.Silence, error) {
	_, _, l := s.parts()
	if l == nil {
		return x, errNotYet
	}
	made, err := l.Silence(ctx, x)
	if errors.Is(err, life.ErrSilence) {
		return x, &page.Invalid{Msg: err.Error(),
			Hint: "give db, level, name or key, as patterns, and until, in nanoseconds since 1970, after now"}
	}
	if err != nil {
		return x, err
	}
	s.hub.Publish(page.Event{Type: page.EventSilences})
	return made, nil
}

// Expire implements page.Data.
func (s *status) Expire(ctx context.Context, id string) error {
	_, _, l := s.parts()
	if l == nil {
		return errNotYet
	}
	err := l.Expire(ctx, id)
	switch {
	case errors.Is(err, life.ErrNoSilence):
		return page.ErrNotFound
	case errors.Is(err, life.ErrConfigured):
		return &page.Invalid{Field: "id", Msg: err.Error(), Hint: "take it out of alerts.silences, and reload"}
	case err != nil:
		return err
	}
	s.hub.Publish(page.Event{Type: page.EventSilences})
	return nil
}
