package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/closure"
	"github.com/isowatch/isowatch/internal/sql"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder"
)

// Options of a Capture.
type Options struct {
	// Complete: all that writes the recorded tables goes through this Capture. Else what an item held before is not
	// known, reads are recorded all the same, and the history is one of partial coverage.
	Complete bool
	// Prefix is what the names of sessions begin with, and of items if capture is complete: what an earlier one knew of
	// them ends with it.
	Prefix string
	// Load asks the database for its tables, at first and when they have changed.
	Load func(context.Context) (*Catalog, error)
	// Failed is told why nothing is recorded, or not yet: what was at work before goes on, or the tables could not be
	// asked for again; nil: nobody is.
	Failed func(error)
}

// loadMax is how long the tables may be waited for.
const loadMax = 10 * time.Second

// Capture makes records of the connections to one database.
type Capture struct {
	rec         *recorder.Recorder
	options     Options
	catalog     atomic.Pointer[Catalog]
	items       items
	order       closure.Order
	connections atomic.Int64
	outcomes    [3]atomic.Int64

	loading sync.Mutex // by who asks for the tables: what was asked last holds
	mu      sync.Mutex
	plans   map[string][]*sql.Plan
	unclear map[Unclear]int64
}

// New makes a Capture that records with rec. If it is to be complete, what was at work before has to end: what that
// wrote later on would be written by nobody. The error is that of Options.Load.
func New(ctx context.Context, rec *recorder.Recorder, o Options) (*Capture, error) {
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	c := &Capture{rec: rec, options: o, plans: map[string][]*sql.Plan{}, unclear: map[Unclear]int64{},
		order: closure.Order{Patience: recorder.HeldMax},
		items: items{of: map[string]item{}, lossy: map[columnName]bool{}, loose: map[string]int{}}}
	ends := time.Now().Add(loadMax)
	catalog, err := o.Load(ctx)
	for looks := 0; o.Complete && err == nil && catalog.isAtWork; looks++ { // for one that was killed
		if looks == 1 {
			o.Failed(fmt.Errorf("transactions are at work that have begun before: they are waited for, %v at most", loadMax))
		}
		if wait.Sleep(ctx, atWorkPause) != nil || time.Now().After(ends) {
			goesOn := "a transaction that has begun before, and goes on"
			c.anything(&sql.Plan{Text: "(" + goesOn + ")"})
			o.Failed(errors.New("nothing is recorded, because of " + goesOn))
			break
		}
		catalog, err = o.Load(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.adopt(catalog)
	return c, nil
}

// atWorkPause is how long it is waited for transactions to end before it is looked again.
const atWorkPause = 50 * time.Millisecond

// adopt takes what the database says of its tables from here on. What was of one that is not recorded any more, or is
// called something else, is not what there will be under its name.
func (c *Capture) adopt(catalog *Catalog) {
	if before := c.catalog.Load(); before != nil {
		for oid, t := range before.byOID {
			if now := catalog.byOID[oid]; t.key != nil && (now == nil || now.key == nil || now.called != t.called) {
				c.items.loseTable(t, -1)
			}
		}
	}
	for _, t := range catalog.byOID {
		if t.label = t.called; c.options.Complete {
			t.label = c.options.Prefix + t.called
		}
	}
	c.catalog.Store(catalog)
}

// Catalog is what the database said of its tables last.
func (c *Capture) Catalog() *Catalog { return c.catalog.Load() }

// Reload asks for the tables again. If that fails nothing is known of them, and a statement may write anything.
func (c *Capture) Reload() {
	c.loading.Lock()
	defer c.loading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), loadMax)
	defer cancel()
	catalog, err := c.options.Load(ctx)
	if err != nil {
		c.options.Failed(fmt.Errorf("tables were made or changed, and nothing is recorded any more: %w", err))
		c.items.loseAll()
		return
	}
	c.adopt(catalog)
}

// Connect begins a connection of which the first message is still to come.
func (c *Capture) Connect() *Connection {
	return &Connection{capture: c, client: framer{isUntyped: true}, starting: true, status: 'I',
		statements: map[string]*statement{}, described: map[*sql.Plan]*rows{},
		portals: map[string]*portal{}, unresolved: map[string]*sql.Plan{}, temporary: map[string]bool{}}
}

// Reason is why what a statement did is not recorded.
type Reason string

// The reasons; a closed set.
const (
	// ReasonAnything: it may have written anything. In complete capture nothing is recorded any more.
	ReasonAnything Reason = "may-write-anything"
	// ReasonRows: which rows it wrote is not told. In complete capture the columns are not recorded any more.
	ReasonRows Reason = "rows-not-told"
	// ReasonValue: what it wrote is not told. In complete capture the rows' columns are not recorded any more.
	ReasonValue Reason = "value-not-told"
)

// Unclear is a statement of which something is not recorded.
type Unclear struct {
	Reason Reason
	Text   string // without literals
}

// Counted is how often there was one.
type Counted struct {
	Unclear
	Count int64
}

// unclearMax is how many texts are counted apart.
const unclearMax = 200

func (c *Capture) count(p *sql.Plan, why Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := Unclear{why, p.Text}
	if _, there := c.unclear[u]; !there && len(c.unclear) >= unclearMax {
		u.Text = "(others)"
	}
	c.unclear[u]++
}

// Unclear is what was not understood, the worst and most frequent first.
func (c *Capture) Unclear() []Counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Counted
	for u, n := range c.unclear {
		out = append(out, Counted{u, n})
	}
	slices.SortFunc(out, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	return out
}

// Outcomes is how many transactions ended so; with those that had nothing to record.
func (c *Capture) Outcomes(s record.Status) int64 { return c.outcomes[s].Load() }

func (c *Capture) ended(s record.Status) { c.outcomes[s].Add(1) }

// anything says that a statement may write anything.
func (c *Capture) anything(p *sql.Plan) {
	c.count(p, ReasonAnything)
	if c.options.Complete {
		c.items.loseAll()
	}
}

// plansMax and planTextMax bound what is kept of texts, and of their rows.
const (
	plansMax    = 4096
	planTextMax = 16 << 10
)

// plan is what the statements of a text do, and its literals.
func (c *Connection) plan(text string) ([]*sql.Plan, []sql.Token) {
	if c.strange {
		return []*sql.Plan{{Verb: sql.Anything, Text: "(a text with standard_conforming_strings off)"}}, nil
	}
	tokens, err := sql.Scan(c.tokens[:0], text)
	if err != nil {
		return []*sql.Plan{{Verb: sql.Anything, Text: "(a text that can't be read: " + err.Error() + ")"}}, nil
	}
	shape, values := c.shape[:0], sql.Literals(tokens)
	for _, t := range tokens {
		if shape = append(shape, byte('0'+t.Kind)); !t.IsLiteral() {
			shape = append(append(shape, t.Text...), 0)
		}
	}
	plans := c.capture.plan(shape, tokens)
	if clear(tokens); len(text) <= planTextMax {
		c.tokens, c.shape = tokens, shape
	}
	return plans, values
}

// plan is what the statements of tokens do, which are alike if their shape is.
func (c *Capture) plan(shape []byte, tokens []sql.Token) []*sql.Plan {
	c.mu.Lock()
	plans, ok := c.plans[string(shape)]
	c.mu.Unlock()
	if ok {
		return plans
	}
	if plans = sql.Plans(tokens); len(shape) <= planTextMax {
		c.mu.Lock()
		if len(c.plans) >= plansMax {
			clear(c.plans)
		}
		c.plans[string(shape)] = plans
		c.mu.Unlock()
	}
	return plans
}

// Blind tells whether nothing is recorded any more, as something may have written anything.
func (c *Capture) Blind() bool {
	c.items.mu.Lock()
	defer c.items.mu.Unlock()
	return c.items.all
}
