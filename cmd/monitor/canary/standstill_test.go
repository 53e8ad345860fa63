package canary

import (
	"testing"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
)

// What sessions try does not last longer for a standstill of the process, nor does a transaction.
func TestStandstillIsNobodysFault(t *testing.T) {
	n, clock := target.Node{Name: "db-1"}, &standstill{}
	c := counts{sessions: 2, clock: clock}
	began := clock.now()
	c.asks(0, n, true)
	for _, gap := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
		c.nodes[n.Name].trying = c.nodes[n.Name].trying.Add(-gap)
		clock.beat = clock.beat.Add(-gap)
		if since := c.idle(n); since.IsZero() || time.Since(since) > gap/2 {
			t.Errorf("it has tried since %v, %v ago", since, time.Since(since))
		}
	}
	if took := clock.now().Sub(began); took > -20*time.Minute {
		t.Errorf("a transaction took %v of a clock that was set forward by 30 minutes", took)
	}
}
