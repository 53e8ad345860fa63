package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// shownMetrics is a registry in which every metric has a value.
func shownMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	m := newMetrics()
	for _, d := range m.list() {
		values := make([]string, len(d.labels))
		for i := range values {
			values[i] = "x"
		}
		switch into := d.into.(type) {
		case **prometheus.CounterVec:
			(*into).WithLabelValues(values...)
		case **prometheus.GaugeVec:
			(*into).WithLabelValues(values...)
		case **prometheus.HistogramVec:
			(*into).WithLabelValues(values...)
		case **gauges:
			one := func() map[string]float64 { return map[string]float64{strings.Join(values, labelEnd): 1} }
			(*into).values.Store(&one)
		}
	}
	return m.registry
}

// TestMetricNames: names, units and descriptions are as Prometheus has them, and all
// of metrics is in the list.
func TestMetricNames(t *testing.T) {
	families, err := shownMetrics(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), namespace+"_") {
			own++
		}
	}
	if want := len(new(metrics).list()); own != want {
		t.Errorf("%d metrics are shown, %d are listed", own, want)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, namespace+"_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestMetricsAreDocumented holds docs/metrics.md to the list.
func TestMetricsAreDocumented(t *testing.T) {
	const file, begin, end = "../../../docs/metrics.md", "<!-- metrics: begin, written by the tests of cmd/monitor/app -->\n", "<!-- metrics: end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the metrics", file)
	}
	want := before + begin + metricsTable() + end + after
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not that of the list: run make docs\n%s", file, diff)
	}
}

// kind is what Prometheus calls the type of a metric.
func (d metric) kind() string {
	switch d.into.(type) {
	case *prometheus.Counter, **prometheus.CounterVec:
		return "counter"
	case *prometheus.Histogram, **prometheus.HistogramVec:
		return "histogram"
	case **gauges:
		if d.counts() {
			return "counter"
		}
	}
	return "gauge"
}

// sections are those of docs/metrics.md, by the first metric of each: what it is called, and what it has.
var sections = map[string][2]string{
	"records_total":             {"Input", "What is read, and what could not be used."},
	"queue_length":              {"Queues", "What waits inside the monitor: `inputs` between reading and the journal, `held` for a full disk, and one queue for each history."},
	"transactions_total":        {"Judging", "How far each history has been judged, how completely, and at what cost."},
	"suspicions_total":          {"Alerts", "What was found, and how long it took until somebody knew."},
	"canary_transactions_total": {"Canary", "What `monitor canary` meets in the database that it works on."},
	"proxy_connections":         {"Proxy", "What goes through `monitor proxy`."},
	"store_bytes":               {"Store", "What is on the disk, and what could not be written."},
	"build_info":                {"The monitor itself", "Beside these there are the metrics of the Go runtime (`go_…`), of the process (`process_…`) and of scraping (`promhttp_…`)."},
}

// metricsTable is what docs/metrics.md has of the metrics, in Markdown.
func metricsTable() string {
	var b strings.Builder
	for _, d := range new(metrics).list() {
		if s, ok := sections[d.name]; ok {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "## %s\n\n%s\n\n| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n", s[0], s[1])
		}
		names := make([]string, len(d.labels))
		for i, l := range d.labels {
			names[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s_%s` | %s | %s | %s |\n", namespace, d.name, d.kind(), strings.Join(names, ", "), d.help)
	}
	b.WriteString("\n")
	return b.String()
}
