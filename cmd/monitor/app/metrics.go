package app

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/segment"
	"github.com/isowatch/isowatch/window/stream"
)

// metrics are what /metrics shows; metricslist.go says what each is. Each App has its
// own registry, so that several run in one process.
type metrics struct {
	ages     ages
	registry *prometheus.Registry

	records       prometheus.Counter
	bytes         prometheus.Counter
	rejected      *prometheus.CounterVec // reason
	logged        *prometheus.CounterVec // found
	unrecorded    prometheus.Counter
	events        prometheus.Counter
	eventsDropped prometheus.Counter
	gaps          *prometheus.CounterVec // kind
	missing       *prometheus.CounterVec // kind
	retries       prometheus.Counter
	sourceLag     *prometheus.GaugeVec // partition

	queue        *prometheus.GaugeVec // queue
	queueMax     *prometheus.GaugeVec // queue
	queueBytes   *prometheus.GaugeVec // queue
	queueBytesMx *prometheus.GaugeVec // queue
	queueWait    prometheus.Histogram
	blocked      *prometheus.GaugeVec   // db
	blockedTime  *prometheus.CounterVec // db
	blockedMost  prometheus.Gauge
	backlog      *prometheus.GaugeVec // db
	backlogBytes *prometheus.GaugeVec // db
	backlogMax   prometheus.Gauge
	sampleLevel  *prometheus.GaugeVec   // db
	leftOut      *prometheus.CounterVec // db

	ordered      *prometheus.CounterVec // db, what
	transactions *prometheus.CounterVec // db
	waiting      *prometheus.GaugeVec   // db
	watermarkLag prometheus.Gauge
	unjudged     *prometheus.GaugeVec // db
	complete     *prometheus.GaugeVec // db
	losses       *prometheus.CounterVec
	forgotten    *prometheus.CounterVec // db, why
	segments     *prometheus.CounterVec // db, cut
	segment      *prometheus.GaugeVec   // db
	straddlers   *prometheus.CounterVec // db
	incomplete   *prometheus.CounterVec // db
	frontier     *prometheus.GaugeVec   // db, where
	phase        *prometheus.HistogramVec

	violations *prometheus.CounterVec // db, level
	suspicions *prometheus.CounterVec // db, kept
	alerts     *prometheus.CounterVec // db, name
	unproved   prometheus.Counter
	detection  prometheus.Histogram
	deliveries *prometheus.CounterVec // receiver, outcome
	delivery   *prometheus.HistogramVec
	outbox     *gauges // receiver

	checkpointed *prometheus.GaugeVec // db
	restart      prometheus.Gauge
	storeFull    prometheus.Counter
	storeHolding prometheus.Gauge
	storeBytes   prometheus.Gauge
	unjournaled  prometheus.Counter
	lettersLost  prometheus.Counter
	alertsLost   prometheus.Counter
	groups       prometheus.Gauge
	promises     *gauges // db, level, health
	withheld     prometheus.Gauge
	notices      *prometheus.CounterVec // kind
	expired      prometheus.Counter

	worked          *prometheus.CounterVec   // node, outcome
	workFailed      *prometheus.CounterVec   // node, reason
	workTook        *prometheus.HistogramVec // node
	workUp          *gauges                  // node
	workStalled     *gauges                  // node
	workLag         *gauges                  // node
	workConnections *gauges                  // node
	completeAge     *gauges                  // db

	proxyConnections  *gauges
	proxyTransactions *gauges // outcome
	proxyDropped      *gauges
	proxyUnclear      *gauges // reason, statement
	proxyBlind        *gauges

	build       *prometheus.GaugeVec // version, go
	reloaded    prometheus.Gauge
	reloadedAt  prometheus.Gauge
	certificate prometheus.Gauge
	refused     *prometheus.CounterVec // reason
	stalled     *gauges
}

// The names of loss in isowatch_gaps_total and isowatch_missing_total.
const (
	gapOffset  = "offset"  // a hole in a partition's offsets
	gapSession = "session" // a hole in a session's seq
)

// The queues, as metrics name them; a history's is queueHistory and its db.
const (
	queueInputs  = "inputs"
	queueHeld    = "held"
	queueHistory = "history "
)

// The kinds of work in isowatch_engine_seconds.
const (
	workJournal = "journal"
	workStep    = "step"
	workTick    = "tick"
	workSegment = "segment"
	workAlert   = "alert"

	workCheckpoint = "checkpoint"
)

// setComplete shows whether a history's coverage is complete.
func (m *metrics) setComplete(db string, complete bool) {
	m.complete.WithLabelValues(db).Set(float64(bit(complete)))
}

// begin gives a history's counters their zeros: one that begins with 1 has not grown,
// to who asks for its growth.
func (m *metrics) begin(db string, levels []verdict.Level) {
	for _, l := range levels {
		m.violations.WithLabelValues(db, l.String())
	}
	for _, why := range stream.LossWhys() {
		m.losses.WithLabelValues(db, why.String())
	}
	m.transactions.WithLabelValues(db)
	m.leftOut.WithLabelValues(db)
}

// showQueue shows what waits for a history.
func (m *metrics) showQueue(w *worker) {
	records, bytes := w.queue.length()
	name := queueHistory + w.db
	m.queue.WithLabelValues(name).Set(float64(records))
	m.queueMax.WithLabelValues(name).Set(float64(w.queue.recordsMax))
	m.queueBytes.WithLabelValues(name).Set(float64(bytes))
	m.queueBytesMx.WithLabelValues(name).Set(float64(w.queue.pool.share + w.queue.pool.max))
	left, leftBytes := w.queue.backlog()
	m.backlog.WithLabelValues(w.db).Set(float64(left))
	m.backlogBytes.WithLabelValues(w.db).Set(float64(leftBytes))
}

// showAge shows how old the oldest is that a history may not have judged yet.
func (m *metrics) showAge(w *worker, now time.Time) {
	age := 0.0
	if oldest := w.unjudged.Load(); oldest > 0 {
		age = max(0, float64(now.UnixNano()-oldest)/1e9)
	}
	m.unjudged.WithLabelValues(w.db).Set(age)
}

// shown is what the metrics have of a history's counts.
type shown struct {
	orders order.Counts
	stats  stream.Stats
}

// show adds what a history has counted since the last time.
func (w *worker) show() {
	m, now, was := w.metrics, w.history.OrderCounts(), w.shown.orders
	add := func(c *prometheus.CounterVec, n int64, labels ...string) {
		if n > 0 {
			c.WithLabelValues(labels...).Add(float64(n))
		}
	}
	for _, c := range []struct {
		what     string
		now, was int64
	}{
		{"duplicate", now.Duplicates, was.Duplicates},
		{"late", now.Late, was.Late},
		{"times-dropped", now.TimesDropped, was.TimesDropped},
		{"ahead", now.Ahead, was.Ahead},
		{"overlong", now.Overlong, was.Overlong},
		{"detached", now.Detached, was.Detached},
		{"forced", now.Forced, was.Forced},
	} {
		add(m.ordered, c.now-c.was, w.db, c.what)
	}
	add(m.gaps, now.Gaps-was.Gaps, gapSession)
	add(m.missing, now.Missing-was.Missing, gapSession)
	w.shown.orders = now

	stats, had := w.history.Stats(), w.shown.stats
	addStat := func(c *prometheus.CounterVec, now, was uint64, labels ...string) { add(c, int64(now-was), labels...) }
	addStat(m.transactions, stats.Transactions, had.Transactions, w.db)
	addStat(m.forgotten, stats.Forgotten, had.Forgotten, w.db, "transaction")
	addStat(m.forgotten, stats.Dropped, had.Dropped, w.db, "version")
	addStat(m.forgotten, stats.Unawaited, had.Unawaited, w.db, "awaited-read")
	addStat(m.forgotten, stats.Undecided, had.Undecided, w.db, "undecided")
	addStat(m.forgotten, stats.Withheld, had.Withheld, w.db, "evidence")
	addStat(m.forgotten, stats.Unexplained, had.Unexplained, w.db, "explanation")
	addStat(m.straddlers, stats.Straddlers, had.Straddlers, w.db)
	addStat(m.incomplete, stats.Incomplete, had.Incomplete, w.db)
	for i, n := range stats.Cuts {
		addStat(m.segments, n, had.Cuts[i], w.db, segment.Kind(i).String())
	}
	for i, n := range stats.Losses {
		addStat(m.losses, n, had.Losses[i], w.db, stream.LossWhy(i).String())
	}
	add(m.leftOut, now.LeftOut-was.LeftOut, w.db)
	if stats.Untimely > had.Untimely && w.once(stream.WhyTimes.Names()[0]) {
		w.log.Warn().Str("db", w.db).Msg("a transaction's times contradict its session's, or the time when it came: they " +
			"are not used, or not to the full, so that a violation of levels with real time may be missed; more of this kind " +
			"is counted")
	}
	if stats.Short > had.Short && w.once("awaited reads") {
		w.log.Warn().Str("db", w.db).Msg("values may repeat, or there are predicates, and more transactions come in " +
			"window.max_transaction than window.segment: what was read is known too late, and anomalies are missed. A shorter " +
			"window.max_transaction, or a larger window.segment, which takes memory, helps; more of this is counted")
	}
	w.shown.stats = stats
	kept := w.history.Frontier()
	m.frontier.WithLabelValues(w.db, "memory").Set(float64(kept.Keys))
	m.frontier.WithLabelValues(w.db, "disk").Set(float64(kept.OnDisk))

	m.segment.WithLabelValues(w.db).Set(float64(w.history.Segment()))
	waiting := w.history.Waiting()
	m.waiting.WithLabelValues(w.db).Set(float64(waiting))
	oldest := int64(0)
	if waiting > 0 {
		oldest = w.history.Mark()
	}
	w.unjudged.Store(oldest)

	if latest := w.history.Latest(); latest != math.MinInt64 {
		if w.oldest == 0 {
			w.oldest = latest
		}
		w.lag.Store(latest - max(w.history.Mark(), w.oldest))
	}
}

// conclude says, at the end of a run that lasted so long, how much was judged, and of all histories together
// what was given up or was missing, by reason: what the counters show; and, where the input has ended, what
// the reports leave open, by level.
func (m *metrics) conclude(log zerolog.Logger, took time.Duration, reports []report.History) {
	judged, gaveUp := total(m.transactions), zerolog.Dict()
	for _, c := range []prometheus.Collector{m.forgotten, m.losses, m.leftOut} {
		reasons := map[string]float64{}
		each(c, func(d *dto.Metric) {
			why := "overload_left_out"
			for _, l := range d.GetLabel() {
				if l.GetName() == "why" {
					why = l.GetValue()
				}
			}
			reasons[why] += d.GetCounter().GetValue()
		})
		for _, why := range sortedKeys(reasons) {
			if reasons[why] > 0 {
				gaveUp.Float64(why, reasons[why])
			}
		}
	}
	open, levels := map[string]int{}, zerolog.Dict()
	for i := range reports {
		for _, r := range reports[i].Results {
			if r.Unknown != nil {
				open[r.Level] += r.Unknown.Count
			}
		}
	}
	for _, level := range sortedKeys(open) {
		levels.Int(level, open[level])
	}
	log.Info().Float64("transactions", judged).Float64("per_second", math.Round(judged/max(took.Seconds(), 1e-3))).
		Dict("given_up", gaveUp).Dict("left_open", levels).Msg("judged in this run")
}

// spend notes the time since began as spent on some work.
func (w *worker) spend(work string, began time.Time) {
	took := time.Since(began)
	w.totals.seconds += took.Seconds()
	w.metrics.phase.WithLabelValues(work).Observe(took.Seconds())
}

// spendStep is spend of a step, without what the history did within it that is counted
// apart.
func (w *worker) spendStep(began time.Time) {
	w.spend(workStep, began.Add(w.within))
	w.within = 0
}

// measure counts a part of a step apart, with all that is part of it.
func (w *worker) measure(p stream.Part) func() {
	began := time.Now()
	solved := func() {}
	if p == stream.PartTick {
		w.solving.work(began)
		solved = w.solving.rest
	}
	if w.measuring {
		return solved
	}
	w.measuring = true
	return func() {
		solved()
		w.measuring = false
		w.within += time.Since(began)
		work := workTick
		if p == stream.PartSegment {
			work = workSegment
		}
		w.spend(work, began)
	}
}

// ages measures how long it takes from a transaction's end to the alert that it
// makes, and to who is told of it. Both ends are needed, so that what was found by a run
// before is not measured. The zero value is ready, and safe for concurrent use.
type ages struct {
	mu sync.Mutex
	// when the last transaction that shows an anomaly had ended, by the ID of an alert or a notice
	generations[string, int64]
}

// agesMax is how many are kept in each generation.
const agesMax = 4096

func (a *ages) put(id string, end int64) {
	a.generations.put(id, end, agesMax, func(int64) bool { return false })
}

// lastEnd is when the last of the transactions that take part in a violation ended,
// by the client's clock; false if none of them has times.
func lastEnd(v *verdict.Violation, lookup func(verdict.TxnID) (*record.Transaction, bool)) (end int64, ok bool) {
	for _, id := range v.Txns {
		if t, known := lookup(id); known && t.HasTimes {
			end, ok = max(end, t.End), true
		}
	}
	return end, ok
}

// raised notes and measures a new alert.
func (m *metrics) raised(id string, v *verdict.Violation, lookup func(verdict.TxnID) (*record.Transaction, bool),
	now time.Time) {
	end, ok := lastEnd(v, lookup)
	if !ok {
		return
	}
	m.detection.Observe(since(end, now))
	m.ages.mu.Lock()
	defer m.ages.mu.Unlock()
	m.ages.put(id, end)
}

// noticed notes that a notice is the news of an alert.
func (m *metrics) noticed(notice string, alerts []string) {
	m.ages.mu.Lock()
	defer m.ages.mu.Unlock()
	if len(alerts) != 1 {
		return // a summary is late on purpose
	}
	if end, ok := m.ages.get(alerts[0]); ok {
		m.ages.put(notice, end)
	}
}

// arrivedAt measures a notice that a receiver has taken.
func (m *metrics) arrivedAt(receiver, notice string, now time.Time) {
	m.ages.mu.Lock()
	end, ok := m.ages.get(notice)
	m.ages.mu.Unlock()
	if ok {
		m.delivery.WithLabelValues(receiver).Observe(since(end, now))
	}
}

// since is a time span in seconds; clocks that disagree make no negative one.
func since(end int64, now time.Time) float64 {
	return max(0, time.Duration(now.UnixNano()-end).Seconds())
}
