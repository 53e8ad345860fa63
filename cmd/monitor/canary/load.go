package canary

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/closure"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder"
)

// Load is sessions at work on a database, each transaction of which is recorded as its client saw it.
type Load struct {
	db       target.Database
	rec      *recorder.Recorder
	cfg      *config.Canary
	settings [][]target.Setting
	// workloads take turns, a group each.
	workloads []generate.Config
	seed      uint64
	// run is what the names of items begin with in the database, where what an earlier run had under way may arrive
	// still; told is what those of sessions and items in records begin with: the same where there may be those of others,
	// else nothing.
	run, told string
	groups    groups
	values    atomic.Int64 // the last value that was given out: no two writes have the same
	closure   closure.Order
	clock     standstill
	// begun counts the transactions of the sessions, of which there are transactions at most; 0: as many as there is time
	// for.
	begun        atomic.Int64
	transactions int64
	committed    atomic.Int64 // of those
	shut         atomic.Int64 // sessions that have tried to connect, and never could
	counts       counts
	// answering is what sessions ask the database in. It ends when they are to stop and the database has stopped
	// answering.
	answering context.Context
	answers   atomic.Int64 // of the database, so far
}

// answerMax is how long a transaction, or an attempt to connect, may go unanswered. The monitor waits for a
// transaction for longer than that (window.max_transaction).
const answerMax = 30 * time.Second

// elsewhereMax is that for what makes and removes groups, where another node may do as well.
const elsewhereMax = 5 * time.Second

// The shortest and the longest pause between two attempts to connect.
const (
	reconnectMin = 100 * time.Millisecond
	reconnectMax = 5 * time.Second
)

// work runs until ctx ends; what is under way then is finished, over is called, and every item is read once more, all
// as long as the database answers. An error is an option that can't be used.
func (l *Load) work(ctx context.Context, over func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answering, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	l.answering = answering
	defer context.AfterFunc(ctx, func() { l.whileAnswered(giveUp) })()
	var clients, keep sync.WaitGroup
	nodes := l.db.Nodes()
	own := func(i int) client { // at the nodes that take writes
		return client{Load: l, number: l.cfg.Sessions + i, nodes: nodes[:writable(nodes)], node: nodes[0],
			rng: rand.New(rand.NewPCG(l.seed, 1<<32+uint64(i)))}
	}
	k, s := &keeper{client: own(0)}, &sweeper{client: own(1)}
	ready := make(chan struct{})
	var failed error
	keep.Go(func() {
		if failed = k.keep(ctx, ready); failed != nil {
			stop()
		}
	})
	keep.Go(func() { s.sweep(ctx) })
	select {
	case <-ready:
	case <-ctx.Done():
	}
	writers, start := 0, time.Now()
	for i := range l.cfg.Sessions {
		c := &client{Load: l, number: i, nodes: l.route(nodes, i), start: start,
			rng: rand.New(rand.NewPCG(l.seed, uint64(i)))}
		if c.writes = slices.ContainsFunc(c.nodes, func(n target.Node) bool { return !n.Replica }); c.writes {
			c.settings = l.settings[writers%len(l.settings)]
			writers++
		}
		clients.Go(func() { c.work(ctx) })
	}
	clients.Wait()
	stop()
	keep.Wait()
	over()
	k.leave()
	s.final(k.ahead)
	return failed
}

// silenceMax is for how long there may be no answer once sessions are to stop, beside their pauses.
const silenceMax = time.Second

// whileAnswered calls giveUp when there was no answer for too long.
func (l *Load) whileAnswered(giveUp func()) {
	for last := int64(-1); last != l.answers.Load(); {
		last = l.answers.Load()
		if wait.Sleep(l.answering, silenceMax+2*l.cfg.Pause) != nil {
			return
		}
	}
	giveUp()
}

// client is one session after the other. A session has a connection to each of the nodes that it uses.
type client struct {
	*Load
	number   int
	nodes    []target.Node
	writes   bool             // at one of them
	settings []target.Setting // on nodes that take writes
	rng      *rand.Rand
	start    time.Time

	started     int                       // sessions
	shut        bool                      // it is counted among those that never could
	connections map[string]target.Session // by node
	rec         *recorder.Session         // nil: no session has begun
	wait        time.Duration             // after the next attempt to connect that fails
	node        target.Node               // of the transaction in work
	session     target.Session            // its connection
	drawers     map[*group]*generate.Drawer
	follows     bool           // the next transaction reads what the last one has left
	ahead       time.Duration  // how many rounds have been used before they began
	absent      []string       // registers that the transaction in work saw not to be there
	met         []target.Item  // that what it asked for last met
	bank        bank           // what the transaction in work has seen of accounts
	failure     error          // of the transaction in work
	entry       *closure.Entry // of the transaction in work, or the last one
	there       bool           // something that it has read was there
	hides       bool           // it works on rows of which conditions are asked
	committing  bool           // its commit is under way, with its last operation or after it
}

// route is the nodes that the i-th session uses. Which one a transaction runs on is drawn.
func (l *Load) route(nodes []target.Node, i int) []target.Node {
	own := nodes[i%len(nodes)]
	switch l.cfg.Access {
	case config.AccessSplit:
		writers := writable(nodes)
		if writers == len(nodes) { // any node takes writes: what is read is read at the next one
			return []target.Node{own, nodes[(i+1)%len(nodes)]}
		}
		return []target.Node{nodes[i%writers], nodes[writers+i%(len(nodes)-writers)]}
	case config.AccessWander:
		return slices.Concat(nodes[i%len(nodes):], nodes[:i%len(nodes)])
	}
	return []target.Node{own}
}

// writable is how many of the nodes take writes; they come first.
func writable(nodes []target.Node) int {
	if i := slices.IndexFunc(nodes, func(n target.Node) bool { return n.Replica }); i >= 0 {
		return i
	}
	return len(nodes)
}

// elsewhere has the next attempt made at the next of the client's nodes that can be reached, as the one at c.node
// failed.
func (c *client) elsewhere() {
	for range c.nodes {
		c.node = c.nodes[(slices.Index(c.nodes, c.node)+1)%len(c.nodes)]
		if c.counts.node(c.node, time.Now()).State != page.NodeUnreachable {
			return
		}
	}
}

// patience is how long an answer is waited for: not for long by who can go elsewhere.
func (c *client) patience() time.Duration {
	if c.number >= c.cfg.Sessions && len(c.nodes) > 1 {
		return elsewhereMax
	}
	return answerMax
}

func (c *client) work(ctx context.Context) {
	defer c.leave()
	enough := func(begun int64) bool { return c.transactions > 0 && begun > c.transactions }
	for c.turn(ctx) == nil && !enough(c.Load.begun.Load()+1) {
		c.node = c.nodes[c.rng.IntN(len(c.nodes))]
		if !c.connect(ctx) {
			continue
		}
		if enough(c.Load.begun.Add(1)) {
			return
		}
		c.transact(ctx)
	}
}

// turn waits for the session's turn. All sessions begin a transaction in each round, within about the time that one
// takes, so that they meet however low the rate is. In some rounds those at nodes that take writes begin almost at
// once: what lasts as long as a commit, such as its way to a replica, is seen only then.
func (c *client) turn(ctx context.Context) error {
	if c.cfg.Rate == 0 || c.follows {
		return ctx.Err()
	}
	round := time.Duration(c.cfg.Sessions) * time.Second / time.Duration(c.cfg.Rate)
	number := 1 + time.Since(c.start)/round + c.ahead
	c.ahead = 0
	within := float64(min(round/2, 2*time.Duration(c.cfg.Operations)*c.cfg.Pause))
	if c.writes {
		close := rand.New(rand.NewPCG(c.seed, uint64(number))).Float64() // the same for all
		within *= close * close
	}
	return wait.Sleep(ctx, round*number-time.Since(c.start)+time.Duration(c.rng.Float64()*within))
}

// connect takes the connection to the node, and makes one if there is none yet; false: the node can't be reached now,
// or refuses what Rehearse found it to take. A session begins with its first connection.
func (c *client) connect(ctx context.Context) bool {
	promoted := c.counts.promoted(c.node)
	if c.session = c.connections[c.node.Name]; c.session != nil && promoted == nil {
		return true
	}
	var settings []target.Setting
	if !c.node.Replica {
		settings = c.settings
	}
	attempt, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	c.counts.asks(c.number, c.node, false)
	var s target.Session
	reason, err := target.AnythingElse, promoted
	if err == nil {
		if s, err = c.db.Connect(attempt, c.node, settings); err != nil {
			reason = c.db.Fault(err).Reason
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			c.counts.unreachable(c.number, c.node, reason, err)
			if c.started == 0 && !c.shut && c.number < c.cfg.Sessions {
				c.shut = true
				c.Load.shut.Add(1)
			}
		}
		c.wait = min(max(2*c.wait, reconnectMin), reconnectMax)
		_ = wait.Sleep(ctx, c.wait)
		return false
	}
	if c.shut {
		c.shut = false
		c.Load.shut.Add(-1)
	}
	if c.rec == nil {
		c.connections = map[string]target.Session{}
		c.rec = c.Load.rec.Session(fmt.Sprintf("%ss%d.%d", c.told, c.number, c.started))
		c.started++
	}
	c.session, c.connections[c.node.Name], c.wait = s, s, 0
	c.answers.Add(1)
	c.counts.reached(c.number, c.node)
	return true
}

// leave ends the session.
func (c *client) leave() {
	for node, s := range c.connections {
		s.Close()
		c.counts.left(target.Node{Name: node})
	}
	c.connections, c.session, c.rec = nil, nil, nil
}

// transact runs a transaction and records it.
func (c *client) transact(ctx context.Context) {
	g, err := c.groups.enter(ctx)
	if err != nil {
		return // asked to stop
	}
	defer c.groups.leave(g)
	drawer := c.drawers[g]
	if drawer == nil {
		drawer = generate.NewDrawer(g.config, c.rng)
		c.drawers = map[*group]*generate.Drawer{g: drawer} // those before are not used any more
	}
	steps := drawer.Draw()
	if c.follows || c.node.Replica || c.cfg.Access == config.AccessSplit && c.node == c.nodes[1] {
		steps = g.snapshot(c.rng.IntN(len(g.items)), snapshotMax)
	}
	if c.follows {
		c.ahead++
	}
	writes := slices.ContainsFunc(steps, func(s generate.Step) bool {
		return s.Kind != record.Read &&
			s.Kind != record.PredicateRead
	})
	outcome := c.record(writes, func(ctx context.Context, t *recorder.Transaction) (record.Status, target.Reason) {
		return c.perform(ctx, t, g, steps)
	})
	if outcome == record.Committed {
		c.committed.Add(1)
		if !writes && c.bank.wrongTotal(len(g.items)) {
			c.counts.wrongTotal()
		}
	}
	c.follows = outcome == record.Committed && c.rng.Float64() < followShare && writes
}

// followShare is after how many of the transactions that write a session reads the whole group at once, in place of its
// next turn. Whether two see the same order of commits shows only in what reads the items of both, and nowhere sooner
// than right behind one of them.
const followShare = 0.5

// snapshotMax is how many items of a large group it reads.
const snapshotMax = 32

// record runs a transaction to its end, and records and counts it. writes: it writes something.
func (c *client) record(writes bool, run func(context.Context, *recorder.Transaction) (record.Status,
	target.Reason)) record.Status {
	c.clock.atWork.RLock()
	defer c.clock.atWork.RUnlock()
	began := c.clock.now()
	c.counts.asks(c.number, c.node, writes)
	t := c.rec.Begin()
	t.At(c.node.Name)
	c.committing, c.failure, c.there, c.hides = false, nil, false, false
	c.entry = &closure.Entry{Last: c.entry}
	answering, cancel := context.WithTimeout(c.answering, c.patience())
	defer cancel()
	outcome, reason := run(answering, t)
	does := writes || c.node.Replica && c.there
	c.closure.End(c.entry, nil, t.Hold(outcome))
	c.counts.add(c.number, c.node, ended{outcome, reason, c.failure, does, c.clock.now().Sub(began)})
	return outcome
}

// commits says that the commit is about to be sent.
func (c *client) commits() {
	if c.committing = true; c.hides {
		c.closure.Writes(c.entry, anyRow)
	}
}

// anyRow is what those write and read who work on rows of which conditions are asked, once they commit: of a row that is
// not met nobody is told who has changed it.
const anyRow = "rows"

// perform does what a transaction does, and tells how it ended.
func (c *client) perform(ctx context.Context, t *recorder.Transaction, g *group,
	steps []generate.Step) (record.Status, target.Reason) {
	return c.finish(ctx, c.operate(ctx, t, g, steps))
}

// finish commits, or gives up what has failed with err. It leaves the session if its connection is of no more use.
func (c *client) finish(ctx context.Context, err error) (record.Status, target.Reason) {
	if err == nil {
		c.commits()
		if err = c.session.Commit(ctx); err == nil {
			c.answers.Add(1)
			return record.Committed, ""
		}
	}
	c.failure = err
	// What was not committed is undone: by the database itself where the connection is gone. A COMMIT that was refused may
	// have left the transaction open, for the next one's BEGIN to commit.
	f := target.Fault{Reason: target.Missing, Answered: true}
	if !errors.Is(err, errNotThere) {
		f = c.db.Fault(err)
	}
	if !f.Answered || c.session.Abort(ctx) != nil {
		c.leave()
	}
	if !f.Answered && c.committing {
		return record.Unknown, f.Reason
	}
	return record.Aborted, f.Reason
}

// errNotThere says that an item that was to be changed is not there.
var errNotThere = errors.New("what was to be changed is not there")

// operate begins a transaction and does all of it but the commit, which may go with its last operation.
func (c *client) operate(ctx context.Context, t *recorder.Transaction, g *group, steps []generate.Step) error {
	if err := c.session.Begin(ctx); err != nil {
		return err
	}
	c.absent, c.bank = c.absent[:0], bank{seen: map[string]int64{}}
	c.hides, c.met = g.config.Workload.HasRows(), nil
	for i := 0; i < len(steps); {
		if i > 0 && c.cfg.Pause > 0 {
			time.Sleep(time.Duration(c.rng.Int64N(2 * int64(c.cfg.Pause))))
		}
		some := steps[i : i+c.together(steps[i:])]
		if i += len(some); c.hides && some[0].Kind == record.Write && some[0].Insert == (len(c.met) > 0) {
			return nil
		}
		// What a predicate write hit is known before the commit, so that it is where that has no answer.
		if e, ok := c.session.(target.Ender); ok && i == len(steps) && some[0].Kind != record.PredicateWrite {
			e.Last()
			c.commits()
		}
		if err := c.do(ctx, t, g, some); err != nil {
			return err
		}
		if c.hides {
			c.closure.Reads(c.entry, anyRow)
		}
		c.answers.Add(1)
	}
	return nil
}

// togetherMax is how many operations are asked for together at most.
const togetherMax = 64

// together is how many of some steps are asked for before the first is answered: those between which there is no
// pause, but a write has to know what was read. An update, and an insert where that met nothing, are one statement.
func (c *client) together(steps []generate.Step) int {
	n, isRead := 0, false
	for _, s := range steps {
		isRead = isRead || s.Kind == record.Read
		switch {
		case n == togetherMax, n > 0 && (c.cfg.Pause > 0 || !ofOne(s) || s.Kind != record.Read && isRead):
			return n
		case s.Kind == record.PredicateWrite && len(steps) > 1 && steps[1].Insert:
			return 2
		case !ofOne(s):
			return 1
		}
		n++
	}
	return n
}

// ofOne tells whether a step is about one item.
func ofOne(s generate.Step) bool {
	return s.Range == 0 && s.Kind != record.PredicateRead && s.Kind != record.PredicateWrite
}

// do does one operation, or several on an item each. A write is recorded whatever the answer is, as it may have
// happened, unless there was nothing to write to.
func (c *client) do(ctx context.Context, t *recorder.Transaction, g *group, steps []generate.Step) error {
	switch s := steps[0]; {
	case ofOne(s):
	case s.Kind != record.Read:
		return c.ask(ctx, t, g, steps)
	default:
		registers := g.items[s.Item : s.Item+s.Range]
		values, err := c.session.Scan(ctx, registers)
		if err != nil {
			return err
		}
		for i, v := range values {
			c.saw(t, g, registers[i], v)
		}
		return nil
	}
	ops := make([]*target.Op, len(steps))
	for i, s := range steps {
		op := &target.Op{Kind: s.Kind, Item: g.item(s), Create: s.Insert}
		switch {
		case s.Insert:
			op.Item, op.Sole = g.insert(s)
		case c.hides && s.Kind == record.Write:
			op.Item = c.met[0]
		}
		if ops[i] = op; op.Kind != record.Read {
			op.Value = c.value(g, op.Item, s.Set)
		}
		if at := slices.Index(c.absent, op.Item.Name); op.Kind == record.Write && at >= 0 {
			c.absent[at], op.Create = "", true
		}
	}
	err := c.session.Do(ctx, ops...)
	missing := false
	for _, op := range ops {
		switch {
		case op.Kind == record.Read && err == nil:
			c.saw(t, g, op.Item, op.Read)
		case op.Kind == record.Read:
		case op.Missing:
			missing = true
		case op.Kind == record.Append:
			t.Append(c.called(op.Item), g.shown(record.Int(op.Value)))
		default:
			t.Write(c.called(op.Item), g.shown(record.Int(op.Value)))
		}
	}
	if err == nil && missing && !c.committing {
		err = errNotThere
	}
	return err
}

// ask reads, writes or deletes the rows for which a condition is true; the step after it inserts one where it updates
// none. Which were met is recorded where that was answered; what was refused may have been seen by others until then.
// That other rows would be met too is not said by one that takes one.
func (c *client) ask(ctx context.Context, t *recorder.Transaction, g *group, steps []generate.Step) error {
	s := steps[0]
	asked := target.Condition{Registers: g.items, Low: s.Low, High: s.High, Take: s.Take}
	writes, set := s.Kind == record.PredicateWrite, record.Null
	if asked.Delete = writes && s.Set == (generate.Tuple{}); writes && !asked.Delete {
		asked.Set = c.value(g, target.Item{}, s.Set)
		set = g.shown(record.Int(asked.Set))
	}
	if len(steps) > 1 {
		asked.Insert, asked.Sole = g.insert(steps[1])
	}
	found, err := c.session.(target.Asker).Where(ctx, asked)
	if err != nil && !writes {
		return err
	}
	rows, hit := map[string]record.Value{}, []string{}
	c.met = nil
	for i, v := range found {
		if c.reads(v); !v.IsNull() && g.items[i] != asked.Insert {
			c.met = append(c.met, g.items[i])
			key := c.called(g.items[i])
			rows[key], hit = g.shown(v), append(hit, key)
		}
	}
	does := record.ObjectOf(rows)
	switch {
	case s.Take:
		for key, v := range rows {
			t.Read(key, v)
		}
		return nil
	case writes && err != nil:
		does = generate.Did(set, nil)
	case writes:
		does = generate.Did(set, hit)
	}
	t.Where(s.Kind, c.called(target.Item{Name: g.table()}), g.config.Workload.Where(s), does)
	if len(steps) > 1 && len(hit) == 0 {
		t.Write(c.called(asked.Insert), set)
	}
	return err
}

// called is what records call an item.
func (l *Load) called(item target.Item) string { return item.Name[len(l.run)-len(l.told):] }

// reads takes a value that was read.
func (c *client) reads(v record.Value) {
	c.there = c.there || !v.IsNull()
	switch v.Kind {
	case record.KindInt:
		c.closure.Reads(c.entry, v.String())
	case record.KindList:
		for element := range strings.SplitSeq(strings.Trim(v.Text, "[]"), ",") {
			c.closure.Reads(c.entry, element)
		}
	}
}

// saw records what was read of an item.
func (c *client) saw(t *recorder.Transaction, g *group, item target.Item, v record.Value) {
	t.Read(c.called(item), g.shown(v))
	c.reads(v)
	if g.sparse() && v.IsNull() {
		c.absent = append(c.absent, item.Name)
	}
	if g.config.Workload == generate.Bank && !v.IsNull() {
		c.bank.seen[item.Name] = target.ColumnsOf(v.Num)
	}
}

// balanceFirst is what an account holds at first. Its balance is what its columns hold, as target has them.
const balanceFirst = 100

// bank is what a transaction has seen that accounts hold, and what it takes from the first that it writes to give it
// to the second.
type bank struct {
	seen  map[string]int64
	taken int64
	gives bool // the first is written
}

// wrongTotal tells whether all accounts were seen, and do not hold together what they did at first.
func (b *bank) wrongTotal(accounts int) bool {
	total := int64(accounts) * balanceFirst
	for _, balance := range b.seen {
		total -= balance
	}
	return len(b.seen) == accounts && total != 0
}

// value is what is written to an item next; to a row, with its columns.
func (c *client) value(g *group, item target.Item, columns generate.Tuple) int64 {
	v := c.content(g, item, columns, c.values.Add(1))
	c.closure.Writes(c.entry, strconv.FormatInt(v, 10))
	return v
}

// content is what an item is given, with a number that is in no other.
func (c *client) content(g *group, item target.Item, columns generate.Tuple, v int64) int64 {
	switch {
	case g.config.Workload.HasRows():
		return v<<target.ColumnsBits | int64(columns[1])<<target.ColumnBits | int64(columns[0])
	case g.config.Workload != generate.Bank:
		return v
	}
	balance, isKnown := c.bank.seen[item.Name]
	switch {
	case !isKnown: // the account is new, or not there
		balance = balanceFirst
	case c.bank.gives:
		balance += c.bank.taken
	default:
		c.bank.gives, c.bank.taken = true, c.rng.Int64N(balance+1)
		balance -= c.bank.taken
	}
	return v<<target.ColumnsBits | balance
}

// group is items that are used together for a while, by one workload.
type group struct {
	config generate.Config
	items  []target.Item // the registers, then the lists
	lists  int           // where these begin
	// inserted is how many of the items were inserted, of which at first there are none.
	inserted atomic.Int64
	left     int // transactions that it is used for still
	users    int // transactions in work
}

// sparse tells whether some registers are not there before they are written.
func (g *group) sparse() bool { return g.config.Workload == generate.Ranges }

// shown is a value as records have it: a row's with its columns.
func (g *group) shown(v record.Value) record.Value {
	if !g.config.Workload.HasRows() || v.IsNull() {
		return v
	}
	columns := int(target.ColumnsOf(v.Num))
	return g.config.Workload.Row(generate.Tuple{columns & (1<<target.ColumnBits - 1), columns >> target.ColumnBits},
		v.Num>>target.ColumnsBits)
}

// item is the item that a step is about.
func (g *group) item(s generate.Step) target.Item {
	if s.List {
		return g.items[g.lists+s.Item]
	}
	return g.items[s.Item]
}

// table is what the names of its rows begin with.
func (g *group) table() string {
	table, _, _ := strings.Cut(g.items[0].Name, ":")
	return table
}

// insert is the item that a step inserts, and what it alone has.
func (g *group) insert(s generate.Step) (item target.Item, sole string) {
	if g.config.Workload == generate.Unique {
		sole = fmt.Sprintf("%s:%d", g.table(), s.Set[0])
	}
	return g.items[g.inserted.Add(1)-1], sole
}

// used are the items that may be there.
func (g *group) used() []target.Item {
	if g.config.Workload.Inserts() {
		return g.items[:g.inserted.Load()]
	}
	return g.items
}

// snapshot is reads of all items, from the given one on.
func (g *group) snapshot(from, most int) []generate.Step {
	var steps []generate.Step
	if g.config.Workload.Inserts() {
		return append(steps, generate.Step{Kind: record.PredicateRead})
	}
	for i := range min(most, len(g.items)) {
		s := generate.Step{Kind: record.Read, Item: (from + i) % len(g.items)}
		if s.Item >= g.lists {
			s.Item, s.List = s.Item-g.lists, true
		}
		steps = append(steps, s)
	}
	return steps
}

// groups hands out the group in use.
type groups struct {
	lacks   func(bool) // told when a session waits for a group, and when one is there
	mu      sync.Mutex
	changed chan struct{} // closed when current has changed
	current *group        // nil: none is ready
	past    chan *group   // those that nobody uses any more
	unread  []target.Item // of those for which there was no room in past
	full    atomic.Bool   // so much waits to be removed that no more is to be made
	wanted  chan struct{} // has an element when current has to be replaced
}

func newGroups(lacks func(bool)) groups {
	return groups{lacks: lacks, changed: make(chan struct{}), past: make(chan *group, 16), wanted: make(chan struct{}, 1)}
}

// enter takes a group for one transaction, waiting until there is one.
func (gs *groups) enter(ctx context.Context) (*group, error) {
	for {
		gs.mu.Lock()
		g, changed := gs.current, gs.changed
		if g != nil {
			g.left--
			g.users++
			if g.left <= 0 { // used up: the next one waits to be used
				gs.current = nil
				gs.want()
			}
		} else {
			gs.lacks(true)
		}
		gs.mu.Unlock()
		if g != nil {
			return g, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (gs *groups) want() { wait.Signal(gs.wanted) }

// leave ends a transaction's use of a group. The last one hands it to the sweeper, only to be removed if that is far
// behind.
func (gs *groups) leave(g *group) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g.users--
	if g.users == 0 && g.left <= 0 {
		select {
		case gs.past <- g:
		default:
			gs.unread = append(gs.unread, g.used()...)
		}
	}
}

// use makes a group the current one.
func (gs *groups) use(g *group) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.current = g
	gs.lacks(false)
	close(gs.changed)
	gs.changed = make(chan struct{})
}

// retire takes the current group out of use and returns it if nobody uses it; nil: there is none, or who uses it
// hands it on.
func (gs *groups) retire() *group {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.current
	gs.current = nil
	if g == nil {
		return nil
	}
	g.left = 0
	if g.users > 0 {
		return nil
	}
	return g
}

// keeper is the session that makes groups, at whichever node takes them.
type keeper struct {
	client
	ahead *group // made, and not in use yet
}

// keep makes groups before they are wanted until ctx ends. ready is closed when the first one is in use.
func (k *keeper) keep(ctx context.Context, ready chan<- struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		if k.groups.full.Load() { // no more rows while those that are there can't be removed
			_ = wait.Sleep(ctx, time.Second)
			continue
		}
		var err error
		if k.ahead, err = k.make(ctx, n); err != nil {
			return err
		}
		if k.ahead == nil {
			k.elsewhere()
			continue // it failed, and is tried with another
		}
		if ready == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-k.groups.wanted:
			}
		}
		k.groups.use(k.ahead)
		k.ahead = nil
		if ready != nil {
			close(ready)
			ready = nil
		}
	}
	return nil
}

// sweeper reads and removes the groups that were used. A node that does not answer holds it up, and nobody else.
type sweeper struct {
	client
	undone []target.Item // that nobody uses any more, and that could not be removed yet
}

// sweep works until ctx ends.
func (s *sweeper) sweep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case old := <-s.groups.past:
			s.remove(ctx, old)
		case <-time.After(time.Second):
			s.discard(ctx)
		}
	}
}

// finalMax is how long reading what is left at the end may take.
const finalMax = 20 * time.Second

// final reads and removes what is left when nobody is at work any more.
func (s *sweeper) final(ahead *group) {
	ctx, cancel := context.WithTimeout(s.answering, finalMax)
	defer cancel()
	left := []*group{s.groups.retire(), ahead}
	for len(s.groups.past) > 0 {
		left = append(left, <-s.groups.past)
	}
	for _, g := range left {
		if g != nil {
			s.remove(ctx, g)
		}
	}
}

// make makes the n-th group in one recorded transaction; nil: it failed.
func (k *keeper) make(ctx context.Context, n int) (*group, error) {
	cfg := k.workloads[n%len(k.workloads)]
	d := generate.NewDrawer(cfg, k.rng)
	g := &group{config: cfg, left: k.cfg.Group, lists: d.Registers()}
	registers := d.Registers()
	if cfg.Workload.Inserts() {
		registers = k.cfg.Group // a transaction inserts one at most
	}
	digits := len(strconv.Itoa(registers - 1)) // so that the order of the names is that of the numbers
	between := "."
	if cfg.Workload.HasRows() {
		between = ":" // a row of a table
	}
	for i := range registers {
		g.items = append(g.items, target.Item{Name: fmt.Sprintf("%sk%d%s%0*d", k.run, n, between, digits, i)})
	}
	for i := range d.Lists() {
		g.items = append(g.items, target.Item{Name: fmt.Sprintf("%sl%d.%d", k.run, n, i), List: true, Array: i%2 == 1})
	}
	if !k.connect(ctx) {
		return nil, nil
	}
	if _, ok := k.session.(target.Asker); !ok && cfg.Workload.HasRows() {
		return nil, &target.Error{Option: "--workload",
			What: "the database does not tell which rows a statement with a condition meets, as those of " +
				cfg.Workload.String() + " are", Do: "use another"}
	}
	if cfg.Workload.Inserts() {
		return g, nil // nothing is there at first
	}
	if k.record(true, func(ctx context.Context, t *recorder.Transaction) (record.Status, target.Reason) {
		return k.create(ctx, t, g, d)
	}) != record.Committed {
		_ = wait.Sleep(ctx, 100*time.Millisecond)
		return nil, nil
	}
	return g, nil
}

// create writes all items of a group, and every other one of those that need not be there.
func (k *keeper) create(ctx context.Context, t *recorder.Transaction, g *group, d *generate.Drawer) (record.Status,
	target.Reason) {
	var ops []*target.Op
	for i, item := range g.items {
		if g.sparse() && i%2 == 1 {
			continue
		}
		op := &target.Op{Kind: record.Write, Create: true, Item: item}
		if !item.List { // a list is empty at first, which is no write
			op.Value = k.value(g, item, d.First())
			t.Write(k.called(item), g.shown(record.Int(op.Value)))
		}
		ops = append(ops, op)
	}
	err := k.session.Begin(ctx)
	if err == nil {
		err = k.session.Do(ctx, ops...)
	}
	return k.finish(ctx, err)
}

// remove reads all of a group once more, at each node, and removes it: nobody uses it any more.
func (s *sweeper) remove(ctx context.Context, g *group) {
	for _, n := range s.db.Nodes() {
		if s.counts.node(n, time.Now()).State == page.NodeUnreachable || s.counts.promoted(n) != nil {
			continue
		}
		reader := &client{Load: s.Load, number: s.number, node: n, rng: s.rng, started: s.started}
		s.started++
		attempt, cancel := context.WithTimeout(ctx, answerMax)
		there := false
		for !there && attempt.Err() == nil {
			there = reader.connect(attempt)
		}
		if there {
			reader.record(false, func(ctx context.Context, t *recorder.Transaction) (record.Status, target.Reason) {
				return reader.perform(ctx, t, g, g.snapshot(0, len(g.items)))
			})
			reader.leave()
		}
		cancel()
	}
	s.undone = append(s.undone, g.used()...)
	s.discard(ctx)
}

// undoneMax is how many items may wait to be removed before no more are made.
const undoneMax = 10_000

// discard removes what nobody uses any more; what can't be removed now is, with the next.
func (s *sweeper) discard(ctx context.Context) {
	s.groups.mu.Lock()
	s.undone, s.groups.unread = append(s.undone, s.groups.unread...), nil
	s.groups.mu.Unlock()
	if len(s.undone) == 0 {
		return
	}
	defer func() { s.groups.full.Store(len(s.undone) > undoneMax) }()
	attempt, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	switch err := s.db.Discard(attempt, s.node, s.undone); {
	case err == nil:
		s.undone = nil
	case ctx.Err() == nil:
		s.counts.unreachable(s.number, s.node, s.db.Fault(err).Reason, err)
		s.elsewhere()
	}
}
