package app

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/segment"
	"github.com/isowatch/isowatch/window/stream"
)

// metrics are what /metrics shows. Each App has its own registry, so that
// several run in one process.
type metrics struct {
	registry *prometheus.Registry

	records  prometheus.Counter
	bytes    prometheus.Counter
	rejected *prometheus.CounterVec // reason
	gaps     *prometheus.CounterVec // kind
	missing  *prometheus.CounterVec // kind
	retries  prometheus.Counter

	ordered      *prometheus.CounterVec // db, what
	transactions *prometheus.CounterVec // db
	violations   *prometheus.CounterVec // db, level
	alerts       *prometheus.CounterVec // db, name
	unproved     prometheus.Counter
	complete     *prometheus.GaugeVec // db

	watermarkLag prometheus.Gauge
	sourceLag    *prometheus.GaugeVec // partition
	queue        *prometheus.GaugeVec // queue
	queueMax     *prometheus.GaugeVec // queue
	phase        *prometheus.HistogramVec

	queueBytes   *prometheus.GaugeVec // queue
	queueBytesMx *prometheus.GaugeVec // queue
	blocked      *prometheus.GaugeVec // db
	blockedTime  *prometheus.CounterVec
	sampleLevel  *prometheus.GaugeVec   // db
	leftOut      *prometheus.CounterVec // db
	forgotten    *prometheus.CounterVec // db, why
	losses       *prometheus.CounterVec // db, why
	segments     *prometheus.CounterVec // db, cut
	straddlers   *prometheus.CounterVec // db
	incomplete   *prometheus.CounterVec // db
	frontier     *prometheus.GaugeVec   // db, where
	checkpointed *prometheus.GaugeVec   // db
	restart      prometheus.Gauge

	storeFull    prometheus.Counter
	storeHolding prometheus.Gauge
	storeBytes   prometheus.Gauge
	unjournaled  prometheus.Counter
	lettersLost  prometheus.Counter
	alertsLost   prometheus.Counter

	deliveries *prometheus.CounterVec // receiver, outcome
}

// The names of loss in isowatch_gaps_total and isowatch_missing_total.
const (
	gapOffset  = "offset"  // a hole in a partition's offsets
	gapSession = "session" // a hole in a session's seq
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "isowatch", Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "isowatch", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "isowatch", Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "isowatch", Name: name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	m.records = counter("records_total", "Records read, the unusable ones too.")
	m.bytes = counter("record_bytes_total", "Bytes of the records read.")
	m.rejected = counters("rejected_total", "Records that could not be used and were set aside as dead letters.", "reason")
	m.gaps = counters("gaps_total", "Holes in the input: in a partition's offsets or in a session's seq.", "kind")
	m.missing = counters("missing_total", "Records that are known to be missing, by those holes.", "kind")
	m.retries = counter("source_retries_total", "Failures of the source that were tried again.")
	m.transactions = counters("transactions_total", "Transactions put in order and given to the engine.", "db")
	m.violations = counters("violations_total", "Violations found, before those of one cause are made one alert.", "db", "level")
	m.alerts = counters("alerts_total", "Alerts raised.", "db", "name")
	m.unproved = counter("alerts_unproved_total", "Alerts whose evidence does not prove them by itself: bugs of the monitor.")
	m.ordered = counters("order_total", "What the order met in the input, by kind.", "db", "what")
	m.complete = gauges("coverage_complete", "1 while every write since the initial state is known to be seen.", "db")
	m.watermarkLag = gauge("watermark_lag_seconds", "How far the watermark is behind the newest record: what has not been judged yet.")
	m.sourceLag = gauges("source_lag_records", "Records in the partition that have not been read yet.", "partition")
	m.queue = gauges("queue_length", "What waits in a queue.", "queue")
	m.queueMax = gauges("queue_capacity", "How much a queue holds at most.", "queue")
	m.queueBytes = gauges("queue_bytes", "The bytes of what waits in a queue.", "queue")
	m.queueBytesMx = gauges("queue_capacity_bytes", "How many bytes a queue holds at most.", "queue")
	m.blocked = gauges("overload_blocked", "1 while reading waits for the history's queue.", "db")
	m.blockedTime = counters("overload_blocked_seconds_total", "Time for which reading waited for the history's queue.", "db")
	m.sampleLevel = gauges("overload_sampled", "Of the history's sessions, 1 in 2 to the power of this is taken; 0: all are.", "db")
	m.leftOut = counters("overload_left_out_total", "Records left out because the history was overloaded (overload: sample-sessions).", "db")
	m.forgotten = counters("forgotten_total", "What was given up to bound memory, by kind: what it could have shown may be missed.", "db", "why")
	m.losses = counters("losses_total", "What is missing in the input, or may be, by cause: from the first on, absence proves nothing.", "db", "why")
	m.segments = counters("segments_total", "Segments that were closed, by the kind of cut at their end.", "db", "cut")
	m.straddlers = counters("straddlers_total", "Transactions known to have no order against what lies on the other side of a cut.", "db")
	m.incomplete = counters("incomplete_cuts_total", "Cuts that do not prove that what is before them precedes what comes after, not even if the database keeps real time.", "db")
	m.frontier = gauges("frontier_keys", "Keys of which the last writes are kept, by where they are.", "db", "where")
	m.checkpointed = gauges("checkpoint_timestamp_seconds", "When the history's last checkpoint was written.", "db")
	m.restart = gauge("restart_seconds", "How long it took at the start until the state of the last run was restored.")
	m.storeFull = counter("store_full_total", "How often the store could not be written as the disk was full.")
	m.storeHolding = gauge("store_full", "1 while the disk is full and what is to be stored is held in memory.")
	m.storeBytes = gauge("store_bytes", "How much the store takes on the disk.")
	m.unjournaled = counter("journal_dropped_total", "Entries of the journal that were never written, as the disk was full for long and no history needed them any more.")
	m.lettersLost = counter("dead_letters_lost_total", "Dead letters that could be neither stored nor held.")
	m.alertsLost = counter("alerts_lost_total", "Alerts that could be neither stored nor held.")
	m.phase = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "isowatch", Name: "engine_seconds",
		Help:    "Time spent per round, by what was done.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8)}, []string{"work"})
	m.registry.MustRegister(m.phase)
	m.deliveries = counters("deliveries_total", "Attempts to deliver an alert.", "receiver", "outcome")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

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
	workSolve   = "solve"
	workAlert   = "alert"

	workCheckpoint = "checkpoint"
)

// setComplete shows whether a history's coverage is complete.
func (m *metrics) setComplete(db string, complete bool) {
	v := 0.0
	if complete {
		v = 1
	}
	m.complete.WithLabelValues(db).Set(v)
}

// showQueue shows what waits for a history.
func (m *metrics) showQueue(w *worker) {
	records, bytes := w.queue.length()
	name := queueHistory + w.db
	m.queue.WithLabelValues(name).Set(float64(records))
	m.queueMax.WithLabelValues(name).Set(float64(w.queue.recordsMax))
	m.queueBytes.WithLabelValues(name).Set(float64(bytes))
	m.queueBytesMx.WithLabelValues(name).Set(float64(w.queue.pool.share + w.queue.pool.max))
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
	addStat(m.straddlers, stats.Straddlers, had.Straddlers, w.db)
	addStat(m.incomplete, stats.Incomplete, had.Incomplete, w.db)
	for i, n := range stats.Cuts {
		addStat(m.segments, n, had.Cuts[i], w.db, segment.Kind(i).String())
	}
	for i, n := range stats.Losses {
		addStat(m.losses, n, had.Losses[i], w.db, stream.LossWhy(i).String())
	}
	add(m.leftOut, now.LeftOut-was.LeftOut, w.db)
	w.shown.stats = stats
	kept := w.history.Frontier()
	m.frontier.WithLabelValues(w.db, "memory").Set(float64(kept.Keys))
	m.frontier.WithLabelValues(w.db, "disk").Set(float64(kept.OnDisk))

	if newest := w.history.Newest(); newest != math.MinInt64 {
		if w.oldest == 0 {
			w.oldest = newest
		}
		w.lag.Store(newest - max(w.history.Watermark(), w.oldest))
	}
}

// spend notes the time since began as spent on some work.
func (w *worker) spend(work string, began time.Time) {
	took := time.Since(began).Seconds()
	w.totals.seconds += took
	w.metrics.phase.WithLabelValues(work).Observe(took)
}
