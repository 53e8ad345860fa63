package canary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/ingest/record"
)

// counts are what the canary met, by node, and how each node stands. The zero value is ready, and safe for concurrent
// use.
type counts struct {
	sessions int // clients with a lower number are sessions; others make and remove groups

	mu    sync.Mutex
	nodes map[string]*node
	// metrics are told the same; nil: none are. slow counts the transactions that took longer than slowAfter, if that is
	// not 0.
	metrics   metrics
	slowAfter time.Duration
	slow      int64
	wrong     int64     // totals of accounts
	keyless   time.Time // since when sessions wait for a group, as none can be made; zero: they have one

	clock *standstill   // nil: the process does not stand still
	stood time.Duration // of clock, as far as it is taken into account
}

// metrics are those of the monitor.
type metrics interface {
	Worked(node, outcome string, took time.Duration)
	Failed(node, why string)
}

// node is what was met at a node, and how it stands: unreachable while the observer has no answer, stalled where
// sessions try and nothing comes of it for page.StalledAfter, else up. Only sessions count for that: at a node where
// none is at work nothing is due.
type node struct {
	observed
	outcomes    map[record.Status]int64
	reasons     map[target.Reason]int64 // why transactions did not commit, and attempts to connect failed
	failed      int64                   // attempts to connect
	connections int64

	used     bool      // a session has been at work there
	promoted bool      // it was given as a replica, and is a primary
	refused  time.Time // since when no session could connect; zero: one could
	// since when sessions try to write, or to read at a replica, and nothing is committed; zero: something was
	trying  time.Time
	failure string    // the last one since then that may be why: its reason and what the database said
	did     time.Time // when something was committed last
}

// lost is since when a node can't be reached: it does not answer when asked how it is, and commits nothing.
func (at *node) lost() time.Time {
	if at.did.After(at.down) {
		return time.Time{}
	}
	return at.down
}

// awake has what is due since before a standstill of the process be due later by as much; c.mu is held.
func (c *counts) awake() {
	if c.clock == nil {
		return
	}
	later := c.clock.stood() - c.stood
	if c.stood += later; later == 0 {
		return
	}
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(later)
		}
	}
	for _, at := range c.nodes {
		shift(&at.refused)
		shift(&at.trying)
	}
	shift(&c.keyless)
}

// of is a node's, made when first asked for; c.mu is held.
func (c *counts) of(n target.Node) *node {
	c.awake()
	if c.nodes == nil {
		c.nodes = map[string]*node{}
	}
	at := c.nodes[n.Name]
	if at == nil {
		at = &node{outcomes: map[record.Status]int64{}, reasons: map[target.Reason]int64{}}
		c.nodes[n.Name] = at
	}
	return at
}

// asks says that a client begins a transaction, which may write, or an attempt to connect. At a replica something is
// due that shows what was written.
func (c *counts) asks(client int, n target.Node, writes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.of(n); client < c.sessions {
		at.used = true
		if at.trying.IsZero() && (writes || n.Replica) {
			at.trying = time.Now()
		}
	}
}

// lacks says whether sessions wait for a group.
func (c *counts) lacks(group bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !group {
		c.keyless = time.Time{}
	} else if c.keyless.IsZero() {
		c.keyless = time.Now()
	}
}

// ended is the end of a transaction.
type ended struct {
	outcome record.Status
	why     target.Reason // it did not commit
	err     error
	does    bool // it writes, or, at a replica, has read what is there
	took    time.Duration
}

// add counts a transaction.
func (c *counts) add(client int, n target.Node, e ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	at.outcomes[e.outcome]++
	if e.outcome == record.Committed {
		at.did = time.Now()
	}
	switch {
	case e.outcome != record.Committed || client >= c.sessions:
	case e.does:
		at.refused, at.trying, at.failure = time.Time{}, time.Time{}, ""
	case n.Replica:
		at.failure = "it shows nothing of what is written"
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
	// That transactions collide stalls nothing, and what is canceled the canary gave up as it ends.
	if why != target.Conflict && why != target.Deadlock && !errors.Is(err, context.Canceled) {
		c.of(n).failure = fmt.Sprintf("%s: %s", why, oneLine(err))
	}
	if c.metrics != nil {
		c.metrics.Failed(n.Name, string(why))
	}
}

// unreachable counts an attempt that failed; reached says that one worked.
func (c *counts) unreachable(client int, n target.Node, why target.Reason, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	at.failed++
	c.fail(n, why, err)
	if at.refused.IsZero() && client < c.sessions {
		at.refused = time.Now()
	}
}

func (c *counts) reached(client int, n target.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	at.connections++
	if client < c.sessions {
		at.refused = time.Time{}
	}
}

// left says that a connection was closed.
func (c *counts) left(n target.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(n).connections--
}

// total adds up the outcomes of all nodes, the reasons for what did not commit, and wrong totals of accounts.
func (c *counts) total() (outcomes map[record.Status]int64, reasons map[target.Reason]int64, wrong int64) {
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
	return outcomes, reasons, c.wrong
}

// wrongTotal counts that a transaction saw accounts that do not hold together what they did at first.
func (c *counts) wrongTotal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong++
}

// refused is why no session can connect to a node; nil: one can.
func (c *counts) refused(n target.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.of(n); !at.refused.IsZero() {
		return errors.New(at.failure)
	}
	return nil
}

// promoted is why what a node shows says nothing: it was given as a replica, and is one no more; nil: it does.
func (c *counts) promoted(n target.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of(n).promoted {
		return errors.New("it became primary, and what it shows says nothing of the one that it was a replica of; give the " +
			"nodes as they are now")
	}
	return nil
}

// used tells whether a session has been at work at a node.
func (c *counts) used(n target.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(n).used
}

// node is how a node is shown, and how it stands at a time.
func (c *counts) node(n target.Node, now time.Time) page.CanaryNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	out := page.CanaryNode{Name: n.Name, Replica: n.Replica, Role: at.Role, Connections: at.connections,
		Committed: at.outcomes[record.Committed],
		Aborted:   at.outcomes[record.Aborted], Unknown: at.outcomes[record.Unknown], Reasons: map[string]int64{}, Lag: -1,
		State: page.NodeUp}
	for r, n := range at.reasons {
		out.Reasons[string(r)] = n
	}
	if at.asked && at.lag >= 0 {
		out.Lag = at.lag.Seconds()
	}
	since := at.since(c.keyless)
	if since.IsZero() {
		return out
	}
	out.Since = since.UnixNano()
	switch {
	case !at.lost().IsZero():
		out.State, out.Why, out.Since = page.NodeUnreachable, at.why, at.lost().UnixNano()
	case now.Sub(since) >= page.StalledAfter:
		out.State, out.Why = page.NodeStalled, cmp.Or(at.failure, "no answer that says why")
	}
	return out
}

// idle is since when a node can't be reached or nothing comes of what sessions try there; zero: it can, and something
// does.
func (c *counts) idle(n target.Node) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	return at.since(c.keyless)
}

// since is since when a node can't be reached, or nothing comes of what sessions try, or, where they have been at work,
// they have no keys; zero: it can, and something does.
func (at *node) since(keyless time.Time) (first time.Time) {
	if !at.used {
		keyless = time.Time{}
	}
	for _, t := range []time.Time{at.lost(), at.refused, at.trying, keyless} {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if at.lost().IsZero() && !first.IsZero() && first.Before(at.up) { // sessions come back later than the node
		first = at.up
	}
	return first
}

// strain is how much was done, in transactions and attempts to connect, how much of it failed, other than by a
// conflict of transactions, and how much took longer than the limit.
func (c *counts) strain() (s strain) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	return s
}
