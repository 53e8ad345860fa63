package app

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are a metric of which the values are asked for when they are wanted, one for each
// of the values of its labels, which are joined by labelEnd.
type gauges struct {
	desc   *prometheus.Desc
	values atomic.Pointer[func() map[string]float64] // nil: there are none yet
}

func (g *gauges) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	if f := g.values.Load(); f != nil {
		for label, v := range (*f)() {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v, strings.Split(label, labelEnd)...)
		}
	}
}

// labelEnd is in no name of a database.
const labelEnd = "\x00"

// waitingMost is how many notices of a receiver are counted: counting costs, and whoever
// sees so many knows.
const waitingMost = 10_000

// waiting are the notices that each receiver has not taken yet.
func (k *keeper) waiting() map[string]float64 {
	out := make(map[string]float64, len(k.receivers))
	for _, r := range k.receivers {
		if n, err := k.waitingFor(context.Background(), r); err == nil {
			out[r] = float64(n)
		}
	}
	return out
}

// waitingFor counts what waits for one receiver: what the store has and what is held, but
// for what was delivered without the store's knowing.
func (k *keeper) waitingFor(ctx context.Context, receiver string) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.Store.Waiting(ctx, receiver, waitingMost)
	return max(0, min(n+len(k.notices)-len(k.sent[receiver]), waitingMost)), err
}
