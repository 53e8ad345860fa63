package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/isowatch/isowatch/ingest/record"
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
	transactions *prometheus.CounterVec // db, status
	violations   *prometheus.CounterVec // db, level
	alerts       *prometheus.CounterVec // db, name
	unproved     prometheus.Counter
	complete     *prometheus.GaugeVec // db

	watermarkLag prometheus.Gauge
	sourceLag    *prometheus.GaugeVec // partition
	queue        *prometheus.GaugeVec // queue
	queueMax     *prometheus.GaugeVec // queue
	phase        *prometheus.HistogramVec

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
	m.records = counter("records_total", "Records read, the unusable ones too.")
	m.bytes = counter("record_bytes_total", "Bytes of the records read.")
	m.rejected = counters("rejected_total", "Records that could not be used and were set aside as dead letters.", "reason")
	m.gaps = counters("gaps_total", "Holes in the input: in a partition's offsets or in a session's seq.", "kind")
	m.missing = counters("missing_total", "Records that are known to be missing, by those holes.", "kind")
	m.retries = counter("source_retries_total", "Failures of the source that were tried again.")
	m.transactions = counters("transactions_total", "Transactions put in order and given to the engine.", "db", "status")
	m.violations = counters("violations_total", "Violations found, before those of one cause are made one alert.", "db", "level")
	m.alerts = counters("alerts_total", "Alerts raised.", "db", "name")
	m.unproved = counter("alerts_unproved_total", "Alerts whose evidence does not prove them by itself: bugs of the monitor.")
	m.ordered = counters("order_total", "What the order met in the input, by kind.", "db", "what")
	m.complete = gauges("coverage_complete", "1 while every write since the initial state is known to be seen.", "db")
	m.watermarkLag = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "isowatch", Name: "watermark_lag_seconds",
		Help: "How far the watermark is behind the newest record: what has not been judged yet."})
	m.registry.MustRegister(m.watermarkLag)
	m.sourceLag = gauges("source_lag_records", "Records in the partition that have not been read yet.", "partition")
	m.queue = gauges("queue_length", "What waits in a queue.", "queue")
	m.queueMax = gauges("queue_capacity", "How much a queue holds at most.", "queue")
	m.phase = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "isowatch", Name: "engine_seconds",
		Help:    "Time the loop spent per round, by what it did.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8)}, []string{"work"})
	m.registry.MustRegister(m.phase)
	m.deliveries = counters("deliveries_total", "Attempts to deliver an alert.", "receiver", "outcome")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// setComplete shows whether a history's coverage is complete.
func (m *metrics) setComplete(h *history) {
	v := 0.0
	if h.assume.Coverage == record.CoverageComplete {
		v = 1
	}
	m.complete.WithLabelValues(h.db).Set(v)
}

// addOrder adds what the order of a history has counted since the last time.
func (m *metrics) addOrder(h *history) {
	now, was := h.order.Counts(), h.counted
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
		if n := c.now - c.was; n > 0 {
			m.ordered.WithLabelValues(h.db, c.what).Add(float64(n))
		}
	}
	if n := now.Gaps - was.Gaps; n > 0 {
		m.gaps.WithLabelValues(gapSession).Add(float64(n))
		m.missing.WithLabelValues(gapSession).Add(float64(now.Missing - was.Missing))
	}
	h.counted = now
}
