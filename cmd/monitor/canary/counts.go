package canary

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/ingest/record"
)

// counts are what the sessions met, by node. The zero value is ready, and safe for concurrent use.
type counts struct {
	mu    sync.Mutex
	nodes map[string]*nodeCounts
}

// nodeCounts are those of one node.
type nodeCounts struct {
	outcomes map[record.Status]int64
	reasons  map[target.Reason]int64 // why transactions did not commit
	spent    time.Duration           // in transactions, all together
	failed   int64                   // attempts to connect
	down     time.Time               // since when none has worked; zero: one did
	why      string                  // the last one failed
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

// add counts a transaction.
func (c *counts) add(n target.Node, outcome record.Status, why target.Reason, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	at.outcomes[outcome]++
	at.spent += took
	if why != "" {
		at.reasons[why]++
	}
}

// unreachable counts an attempt that failed; reached says that one worked.
func (c *counts) unreachable(n target.Node, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of(n)
	at.failed++
	at.why = err.Error()
	if at.down.IsZero() {
		at.down = time.Now()
	}
}

func (c *counts) reached(n target.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(n).down = time.Time{}
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

// down lists the nodes that can't be reached, with why, sorted.
func (c *counts) down() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		if at := c.nodes[name]; !at.down.IsZero() {
			out = append(out, name+": "+at.why)
		}
	}
	return out
}
