package app

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metric is what there is to say of a metric. Its type is that of the field of
// metrics that it is for.
type metric struct {
	into   any // points to the field
	name   string
	help   string
	labels []string
	bounds []float64 // of a histogram's buckets
}

// The buckets of durations, in seconds.
var (
	// workBounds: from the least step to what nobody should have to wait for.
	workBounds = prometheus.ExponentialBuckets(0.0001, 4, 10)
	// canaryBounds: from a transaction in memory to the longest that an operation may go unanswered.
	canaryBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	// latencyBounds: from at once to what window.max_transaction and an outage make of it.
	latencyBounds = []float64{0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 120, 300, 900, 3600}
)

// counts tells of a metric whose values are asked for whether they only grow.
func (d metric) counts() bool { return strings.HasSuffix(d.name, "_total") }

// of is a metric by these labels, and no histogram.
func of(into any, name, help string, labels ...string) metric {
	return metric{into, name, help, labels, nil}
}

// list is every metric of the monitor's own, in the order of docs/metrics.md.
func (m *metrics) list() []metric {
	return []metric{
		// Input
		of(&m.records, "records_total", "Records read, the unusable ones too."),
		of(&m.bytes, "record_bytes_total", "Bytes of the records read."),
		of(&m.rejected, "rejected_total", "Records that could not be used and were set aside as dead letters.", "reason"),
		of(&m.logged, "logged_total", "Records that named their transaction, by whether a change stream told in time where the "+
			"database's log has it: yes or no.", "found"),
		of(&m.unrecorded, "unrecorded_total", "Transactions that a change stream told of, and no record in time: where all that "+
			"is written is said to be recorded, that is not so."),
		of(&m.events, "events_total", "Events of the world, such as failovers, that were read or given."),
		of(&m.eventsDropped, "events_dropped_total", "Old events that were dropped, as there were too many."),
		of(&m.gaps, "gaps_total", "Holes in the input: in a partition's offsets or in a session's seq.", "kind"),
		of(&m.missing, "missing_total", "Records that are known to be missing, by those holes.", "kind"),
		of(&m.retries, "source_retries_total", "Failures of the source that were tried again."),
		of(&m.sourceLag, "source_lag_records", "Records in the partition that have not been read yet.", "partition"),

		// Queues
		of(&m.queue, "queue_length", "What waits in a queue.", "queue"),
		of(&m.queueMax, "queue_capacity", "How much a queue holds at most.", "queue"),
		of(&m.queueBytes, "queue_bytes", "The bytes of what waits in a queue.", "queue"),
		of(&m.queueBytesMx, "queue_capacity_bytes", "How many bytes a queue holds at most.", "queue"),
		{&m.queueWait, "queue_wait_seconds", "How long what was read waited until its history took it.", nil, workBounds},
		of(&m.blocked, "overload_blocked", "1 while reading waits for the history's queue.", "db"),
		of(&m.blockedTime, "overload_blocked_seconds_total", "Time for which reading waited for the history's "+
			"queue.", "db"),
		of(&m.blockedMost, "overload_blocked_longest_seconds", "The longest that reading has waited at once for a "+
			"history's queue."),
		of(&m.backlog, "backlog_records", "Records that wait in the journal, as the history's queue is full.", "db"),
		of(&m.backlogBytes, "backlog_bytes", "The bytes of the journal that have these.", "db"),
		of(&m.backlogMax, "backlog_capacity_bytes", "How many bytes of the journal may wait for a history before "+
			"reading waits too: half of store.max_bytes."),
		of(&m.sampleLevel, "overload_sampled", "Of the history's sessions, 1 in 2 to the power of this is taken; 0: "+
			"all are.", "db"),
		of(&m.leftOut, "overload_left_out_total", "Records left out because the history was overloaded (overload: "+
			"sample-sessions).", "db"),

		// Judging
		of(&m.transactions, "transactions_total", "Transactions put in order and given to the engine.", "db"),
		of(&m.waiting, "waiting_records", "Records that wait until they are in order before they are judged.", "db"),
		of(&m.watermarkLag, "watermark_lag_seconds", "How far judging is behind the newest record, by the records' times."),
		of(&m.unjudged, "unjudged_age_seconds", "How old, by the monitor's clock, is the oldest time of which records "+
			"may not have been judged yet; 0 while none waits.", "db"),
		of(&m.complete, "coverage_complete", "1 while every write since the initial state is known to be seen.", "db"),
		of(&m.completeAge, "complete_age_seconds", "How long ago, by the monitor's clock, the last stretch ended that "+
			"was judged completely at all levels that are checked.", "db"),
		of(&m.losses, "losses_total", "What is missing in the input, or may be, by cause: from the first on, absence "+
			"proves nothing, but for wrong-seq, which only leaves a session's order unused.", "db", "why"),
		of(&m.ordered, "order_total", "What the order met in the input, by kind.", "db", "what"),
		of(&m.forgotten, "forgotten_total", "What was given up to bound memory, by kind: what it could have shown may "+
			"be missed.", "db", "why"),
		of(&m.segment, "segment_transactions", "Transactions in the segment that is being judged, those before it that "+
			"are judged with it included.", "db"),
		of(&m.segments, "segments_total", "Segments that were closed, by the kind of cut at their end.", "db", "cut"),
		of(&m.straddlers, "straddlers_total", "Transactions known to have no order against what lies on the other side "+
			"of a cut.", "db"),
		of(&m.incomplete, "incomplete_cuts_total", "Cuts that do not prove that what is before them precedes what "+
			"comes after, not even if the database keeps real time.", "db"),
		of(&m.frontier, "frontier_keys", "Keys of which the last writes are kept, by where they are.", "db", "where"),
		{&m.phase, "engine_seconds", "Time spent per round, by what was done: `journal`, and of a history `step`, " +
			"`tick` (solving what is open), `segment` (beginning the next one), `alert` (proving one anomaly), " +
			"`checkpoint`; the round is what nothing else of its history can interrupt.", []string{"work"}, workBounds},

		// Alerts
		of(&m.suspicions, "suspicions_total", "Anomalies beyond those of their kind and segment that are alerts, by "+
			"whether they are kept to be explained when somebody looks.", "db", "kept"),
		of(&m.violations, "violations_total", "Violations found, before those of one cause are made one "+
			"alert.", "db", "level"),
		of(&m.alerts, "alerts_total", "Alerts raised.", "db", "name"),
		of(&m.unproved, "alerts_unproved_total", "Alerts whose evidence does not prove them by itself: bugs of the "+
			"monitor, or judged in part."),
		{&m.detection, "alert_detection_seconds", "From the end of the last of the transactions that show an anomaly, " +
			"by the client's clock, to its alert.", nil, latencyBounds},
		of(&m.deliveries, "deliveries_total", "Attempts to deliver an alert.", "receiver", "outcome"),
		{&m.delivery, "alert_delivery_seconds", "From the end of the last of the transactions that show an anomaly, by " +
			"the client's clock, to the delivery of its alert; summaries are left out.", []string{"receiver"}, latencyBounds},
		of(&m.outbox, "outbox_notices", "Notices that the receiver has not taken yet, as it is down, refuses, or asked "+
			"to be left alone (Retry-After); of more than 10,000, 10,000.", "receiver"),
		of(&m.promises, "promise", "How it stands with a level of a history: 1 for what is the case of `holds`, "+
			"`holds-in-part`, `broken`, `broken-earlier` and `not-judged`, 0 for the others.", "db", "level", "health"),
		of(&m.groups, "alert_groups", "Groups of alerts, and operational alerts, that are not over."),
		of(&m.notices, "notices_total", "What receivers were to be told, by kind.", "kind"),
		of(&m.withheld, "alerts_withheld", "Alerts that no receiver was told of yet, as the rate of alerts.rate was "+
			"used up or their group was told of lately."),
		of(&m.expired, "alerts_expired_total", "Alerts that were dropped from the store, by alerts.retain or "+
			"alerts.max_alerts."),
		of(&m.alertsLost, "alerts_lost_total", "Alerts that could be neither stored nor held."),

		// Canary
		of(&m.worked, "canary_transactions_total", "Transactions of the canary, by how they ended: `committed`, "+
			"`aborted`, `unknown`.", "node", "outcome"),
		of(&m.workFailed, "canary_failures_total", "Transactions of the canary that did not commit, and attempts to "+
			"connect that failed, by why.", "node", "reason"),
		{&m.workTook, "canary_transaction_seconds", "How long the canary's transactions took, pauses between their " +
			"operations included.", []string{"node"}, canaryBounds},
		of(&m.workUp, "canary_node_up", "1 while the canary reaches the node.", "node"),
		of(&m.workStalled, "canary_stalled_seconds", "For how long nothing has been committed at a node that answers, "+
			"though sessions try; 0 before that is ten seconds.", "node"),
		of(&m.workLag, "canary_replica_lag_seconds", "How old the newest transaction is that the replica shows, as far "+
			"as the database says so; 0 when it has all.", "node"),
		of(&m.workConnections, "canary_connections", "Connections of the canary's sessions.", "node"),

		// Proxy
		of(&m.proxyConnections, "proxy_connections", "Clients that are connected."),
		of(&m.proxyTransactions, "proxy_transactions_total", "Transactions that went through, by how they ended: "+
			"`committed`, `aborted`, `unknown`; those of which there was nothing to record, too.", "outcome"),
		of(&m.proxyDropped, "proxy_records_dropped_total", "Records that are lost, as there was no room for them, or too "+
			"much was not known of what they are of."),
		of(&m.proxyUnclear, "proxy_unclear_total", "Statements of which something is not recorded, by why, and by their "+
			"text without its literals; of more than 200 texts, the others together. One that writes only what is not "+
			"recorded any more is not counted.", "reason", "statement"),
		of(&m.proxyBlind, "proxy_blind", "1 when nothing is recorded any more, as a statement may have written anything."),

		// Store
		of(&m.storeBytes, "store_bytes", "How much the store takes on the disk."),
		of(&m.storeHolding, "store_full", "1 while the disk is full and what is to be stored is held in memory."),
		of(&m.storeFull, "store_full_total", "How often the store could not be written as the disk was full."),
		of(&m.unjournaled, "journal_dropped_total", "Entries of the journal that were never written, as the disk was "+
			"full for long and no history needed them any more."),
		of(&m.lettersLost, "dead_letters_lost_total", "Dead letters that could be neither stored nor held."),
		of(&m.checkpointed, "checkpoint_timestamp_seconds", "When the history's last checkpoint was written.", "db"),
		of(&m.restart, "restart_seconds", "How long it took at the start until every history had worked off what the "+
			"last run had read."),

		// The monitor itself
		of(&m.build, "build_info", "1, with what this program is.", "version", "goversion"),
		of(&m.stalled, "stalled_seconds", "For how long the loop or a history has been busy with one and the same "+
			"piece of work, the longest of them; /healthz fails at 300."),
		of(&m.reloaded, "config_last_reload_successful", "1 unless the configuration could not be read again when that "+
			"was last asked for (SIGHUP)."),
		of(&m.reloadedAt, "config_last_reload_success_timestamp_seconds", "When the configuration was last read."),
		of(&m.certificate, "certificate_expiry_timestamp_seconds", "When the certificate of http.tls is no longer "+
			"valid; 0 without one."),
		of(&m.refused, "http_refused_total", "Requests that were refused, by why. too-many-connections: connections "+
			"that were closed in favour of others, those first that had shown no token.", "reason"),
	}
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	for _, d := range m.list() {
		m.registry.MustRegister(m.collector(d))
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

const namespace = "isowatch"

// collector makes a metric and puts it where it belongs.
func (m *metrics) collector(d metric) prometheus.Collector {
	counter := prometheus.CounterOpts{Namespace: namespace, Name: d.name, Help: d.help}
	gauge := prometheus.GaugeOpts{Namespace: namespace, Name: d.name, Help: d.help}
	histogram := prometheus.HistogramOpts{Namespace: namespace, Name: d.name, Help: d.help, Buckets: d.bounds}
	switch into := d.into.(type) {
	case *prometheus.Counter:
		*into = prometheus.NewCounter(counter)
		return *into
	case **prometheus.CounterVec:
		*into = prometheus.NewCounterVec(counter, d.labels)
		return *into
	case *prometheus.Gauge:
		*into = prometheus.NewGauge(gauge)
		return *into
	case **prometheus.GaugeVec:
		*into = prometheus.NewGaugeVec(gauge, d.labels)
		return *into
	case **gauges:
		*into = &gauges{desc: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", d.name), d.help, d.labels, nil),
			kind: prometheus.GaugeValue, labelled: len(d.labels) > 0}
		if d.counts() {
			(*into).kind = prometheus.CounterValue
		}
		return *into
	case *prometheus.Histogram:
		*into = prometheus.NewHistogram(histogram)
		return *into
	case **prometheus.HistogramVec:
		*into = prometheus.NewHistogramVec(histogram, d.labels)
		return *into
	}
	panic(fmt.Sprintf("can't happen, because every field of metrics is of a known type: %s is %T", d.name, d.into))
}
