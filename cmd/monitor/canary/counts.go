package canary

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/ingest/record"
)

// counts are what the sessions met, by node. The zero value is ready, and safe for concurrent use.
type counts struct {
	mu    sync.Mutex
	nodes map[string]*nodeCounts
	// metrics are told the same; nil: none are. slow counts the transactions that took longer than slowAfter, if that is not 0.
	metrics   metrics
	slowAfter time.Duration
	slow      int64
	waiting   map[int]time.Time // since when a client waits for what it has asked for, by its number
}

// metrics are those of the monitor.
type metrics interface {
	Worked(node, outcome string, took time.Duration)
	Failed(node, why string)
}

// nodeCounts are those of one node.
type nodeCounts struct {
	outcomes map[record.Status]int64
	reasons  map[target.Reason]int64 // why transactions did not commit, and attempts to connect failed
	failed   int64                   // attempts to connect
	down     time.Time               // since when none has worked; zero: one did
	why      string                  // the last one failed
	trying   time.Time               // since when transactions of those that count are tried, and none is committed; zero: one was
	failure  string                  // the last one, of any kind: its reason and what the database said

	connections int64
}

// of is a node's, made when first asked for; c.mu is held.
func (c *counts) of(n target.Node) *nodeCounts {
	if c.nodes == nil {
		c.nodes = map[string]*nodeCounts{}
	}
	at := c.nodes[n.Name]
	if at == nil {
		at = &nodeCounts{outcomes: map[record.Status]int64{}, reasons: map[target.Reason]int64{}}
		c.nodes[n.Name] = at
	}
	return at
}

// asks says that a client begins a transaction, or an attempt to connect, the end of which add, reached or unreachable tells.
// writes: it is one that writes, which is what counts at a node that takes writes.
func (c *counts) asks(client int, n target.Node, writes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[int]time.Time{}
	}
	c.waiting[client] = time.Now()
	if at := c.of(n); at.trying.IsZero() && writes {
		at.trying = time.Now()
	}
}

// ended is the end of a transaction.
type ended struct {
	outcome record.Status
	why     target.Reason // it did not commit
	err     error
	writes  bool // as in asks
	took    time.Duration
}

// add counts a transaction.
func (c *counts) add(client int, n target.Node, e ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, client)
	at := c.of(n)
	at.outcomes[e.outcome]++
	if e.outcome == record.Committed {
		at.down = time.Time{}
		if e.writes {
			at.trying = time.Time{}
		}
	}
	if c.slowAfter > 0 && e.took > c.slowAfter {
		c.slow++
	}
	if c.metrics != nil {
		c.metrics.Worked(n.Name, e.outcome.String(), e.took)
	}
	if e.why != "" {
		c.fail(n, e.why, e.err)
	}
}

// fail counts why something failed; c.mu is held.
func (c *counts) fail(n target.Node, why target.Reason, err error) {
	c.of(n).reasons[why]++
	c.of(n).failure = fmt.Sprintf("%s: %s", why, oneLine(err))
	if c.metrics != nil {
		c.metrics.Failed(n.Name, string(why))
	}
}

// unreachable counts an attempt that failed; reached says that one worked.
func (c *counts) unreachable(client int, n target.Node, why target.Reason, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, client)
	at := c.of(n)
	at.failed++
	c.fail(n, why, err)
	at.why = err.Error()
	if at.down.IsZero() {
		at.down = time.Now()
	}
}

func (c *counts) reached(client int, n target.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, client)
	c.of(n).down = time.Time{}
	c.of(n).connections++
}

// left says that a connection was closed.
func (c *counts) left(n target.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(n).connections--
}

// total adds up the outcomes of all nodes and the reasons for what did not commit.
func (c *counts) total() (outcomes map[record.Status]int64, reasons map[target.Reason]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	outcomes, reasons = map[record.Status]int64{}, map[target.Reason]int64{}
	for _, at := range c.nodes {
		for o, n := range at.outcomes {
			outcomes[o] += n
		}
		for r, n := range at.reasons {
			reasons[r] += n
		}
	}
	return outcomes, reasons
}

// down is why a node can't be reached; nil: it can.
func (c *counts) down(n target.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.of(n); !at.down.IsZero() {
		return errors.New(at.why)
	}
	return nil
}

// node is what the page shows of a node.
func (c *counts) node(n target.Node) page.CanaryNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	out := page.CanaryNode{Name: n.Name, Replica: n.Replica, Connections: at.connections, Committed: at.outcomes[record.Committed], Aborted: at.outcomes[record.Aborted], Unknown: at.outcomes[record.Unknown], Reasons: map[string]int64{}}
	for r, n := range at.reasons {
		out.Reasons[string(r)] = n
	}
	if since := at.stalled(); !since.IsZero() {
		out.Stalled, out.Failure = since.UnixNano(), at.failure
	}
	return out
}

// stalled is since when sessions try and nothing goes through; zero: it does.
func (at *nodeCounts) stalled() time.Time {
	if at.trying.IsZero() || !at.down.IsZero() && at.down.Before(at.trying) {
		return at.down
	}
	return at.trying
}

// strain is how much was done, in transactions and attempts to connect, how much of it failed, other than by a
// conflict of transactions, and how much took longer than the limit; and what is still waited for at a time and is too late for
// the limit, or, being later than failing, as good as failed.
func (c *counts) strain(now time.Time, failing time.Duration) (s, late strain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, since := range c.waiting {
		slow, failed := c.slowAfter > 0 && now.Sub(since) > c.slowAfter, now.Sub(since) > failing
		late = late.plus(strain{done: one(slow || failed), slow: one(slow), failed: one(failed)})
	}
	s.slow = c.slow
	for _, at := range c.nodes {
		for _, n := range at.outcomes {
			s.done += n
		}
		s.done += at.failed
		for r, n := range at.reasons {
			if r != target.Conflict && r != target.Deadlock && r != target.Missing {
				s.failed += n
			}
		}
	}
	return s, late
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
