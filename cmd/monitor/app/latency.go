package app

import (
	"sync"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// ages measures how long it takes from a transaction's end to the alert that it
// makes, and to who is told of it. Both ends are needed, so that what was found by a run
// before is not measured. The zero value is ready, and safe for concurrent use.
type ages struct {
	mu sync.Mutex
	// ends are, of alerts and of notices, by ID, when the last transaction that shows
	// the anomaly had ended. The latest agesMax are kept in each of two generations.
	cur, old map[string]int64
}

const agesMax = 4096

func (a *ages) put(id string, end int64) {
	if a.cur == nil {
		a.cur = map[string]int64{}
	}
	if a.cur[id] = end; len(a.cur) >= agesMax {
		a.cur, a.old = nil, a.cur
	}
}

func (a *ages) get(id string) (int64, bool) {
	if end, ok := a.cur[id]; ok {
		return end, true
	}
	end, ok := a.old[id]
	return end, ok
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
		return // m summary is late on purpose
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
