package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/isowatch/isowatch/alerts/page"
)

// ringSteps is how many steps of the charts are kept: ten minutes.
const ringSteps = 600

// counters are counters at one moment, from which rates are made.
type counters struct{ records, transactions, conflicts, judging, proving float64 }

// point is one step of the charts.
type point struct {
	transactions, records, lag, window, judging, proving, open, conflicts, alerts float64
}

// ring has the last steps of the charts. Steps are evenly spaced: one that was missed
// has the values of the next.
type ring struct {
	points []point
	next   int   // where the next goes, once the ring is full
	last   int64 // the latest step, in steps since 1970
	was    counters
	at     time.Time
	alerts float64 // since the last step
}

// add takes in a step: counters as they are now, and what else there is.
func (r *ring) add(now time.Time, t counters, p point) {
	step := now.UnixNano() / int64(sampleEvery)
	if r.at.IsZero() {
		r.was, r.at, r.last = t, now, step
		return
	}
	dt := now.Sub(r.at).Seconds()
	if step <= r.last || dt <= 0 {
		return // the clock was set back, or this step has its values
	}
	rate := func(now, was float64) float64 { return max(0, now-was) / dt }
	p.records, p.transactions, p.conflicts = rate(t.records, r.was.records), rate(t.transactions, r.was.transactions),
		rate(t.conflicts, r.was.conflicts)
	p.judging, p.proving, p.alerts = rate(t.judging, r.was.judging), rate(t.proving, r.was.proving), r.alerts/dt
	for range min(step-r.last, ringSteps) {
		if len(r.points) < ringSteps {
			r.points = append(r.points, p)
			continue
		}
		r.points[r.next] = p
		r.next = (r.next + 1) % ringSteps
	}
	r.was, r.at, r.last, r.alerts = t, now, step, 0
}

// series are the last steps, at most so many.
func (r *ring) series(steps int) page.Series {
	n := min(steps, len(r.points))
	out := page.Series{Step: int64(sampleEvery), Start: (r.last - int64(n) + 1) * int64(sampleEvery)}
	column := func(f func(*point) float64) []float64 {
		c := make([]float64, n)
		for i := range c {
			c[i] = f(&r.points[(r.next+len(r.points)-n+i)%len(r.points)])
		}
		return c
	}
	out.Transactions = column(func(p *point) float64 { return p.transactions })
	out.Records = column(func(p *point) float64 { return p.records })
	out.Lag = column(func(p *point) float64 { return p.lag })
	out.Window = column(func(p *point) float64 { return p.window })
	out.Judging = column(func(p *point) float64 { return p.judging })
	out.Proving = column(func(p *point) float64 { return p.proving })
	out.Open = column(func(p *point) float64 { return p.open })
	out.Conflicts = column(func(p *point) float64 { return p.conflicts })
	out.Alerts = column(func(p *point) float64 { return p.alerts })
	return out
}

// each calls f for every metric that a collector has now.
func each(c prometheus.Collector, f func(*dto.Metric)) {
	ch := make(chan prometheus.Metric)
	go func() {
		c.Collect(ch)
		close(ch)
	}()
	for m := range ch {
		var d dto.Metric
		if m.Write(&d) == nil {
			f(&d)
		}
	}
}

// total is the sum of a collector's counters and gauges.
func total(c prometheus.Collector) (sum float64) {
	each(c, func(d *dto.Metric) { sum += d.GetCounter().GetValue() + d.GetGauge().GetValue() })
	return sum
}

// amount is how many metrics a collector has.
func amount(c prometheus.Collector) (n int) {
	each(c, func(*dto.Metric) { n++ })
	return n
}

// spentOn is the time spent on one kind of work so far, in seconds.
func spentOn(m *metrics, work string) float64 {
	h, ok := m.phase.WithLabelValues(work).(prometheus.Histogram)
	if !ok {
		return 0
	}
	var sum float64
	each(h, func(d *dto.Metric) { sum += d.GetHistogram().GetSampleSum() })
	return sum
}
