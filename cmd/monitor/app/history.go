package app

import (
	"math"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/retain"
)

// history is what the loop keeps of one `db`: its order, its engine and the
// records that evidence may need.
type history struct {
	db     string
	assume judge.Assumptions
	levels []verdict.Level
	config *config.Config

	order  *order.Order
	engine *incremental.Engine
	// records are the transactions by the engine's numbers.
	records *retain.Memory

	// adds counts the records given to the order.
	adds uint64
	// open holds the records that the order holds, by their number; judged those that
	// the engine has, in the order it got them; judged[:spent] are done with.
	open   map[uint64]open
	judged []judged
	spent  int

	// oldest and newest bound the times that the stream has reached, Unix
	// nanoseconds of the clients; they serve a metric.
	oldest, newest int64

	// passed counts what the order did not wait for, as far as it is known.
	passed int64

	// alerted has the anomalies that this engine found and that there are alerts for,
	// each with the weakest level that its alert says is broken; and the alerts' ids.
	alerted map[string]verdict.Level
	ids     map[string]bool

	// before are the verdicts of the engine before coverage was lost, for the
	// report of --until-end.
	before []report.Result

	totals  totals
	counted order.Counts // what the metrics have of the order's counts
}

// open is a record that the order holds.
type open struct {
	txn    *record.Transaction
	ticket uint64
}

// judged is a record that the engine has. It need not be read again once the
// watermark is past until.
type judged struct {
	partition int
	ticket    uint64
	until     int64
}

// totals are counted for the report of --until-end only: the sets grow with the
// stream.
type totals struct {
	transactions, operations int
	sessions, keys           map[string]struct{}
	seconds                  float64
}

func newHistory(db string, c *config.Config, coverage record.Coverage, partitions []int, aheadMax time.Duration, untilEnd bool) (*history, error) {
	levels, err := judge.Levels(c.Levels, c.Clock)
	if err != nil {
		return nil, err
	}
	h := &history{
		db:     db,
		levels: levels,
		config: c,
		assume: judge.Assumptions{Initial: c.Initial, Clock: c.Clock, Coverage: coverage, MaxSkew: int64(c.Window.MaxSkew)},
		order: order.New(order.Options{
			Partitions:     partitions,
			Lateness:       c.Window.Lateness,
			MaxSkew:        c.Window.MaxSkew,
			MaxTransaction: c.Window.MaxTransaction,
			IdleAfter:      c.Window.IdleAfter,
			MaxAhead:       aheadMax,
			MaxBuffered:    c.Window.MaxTransactions,
		}),
		open: map[uint64]open{},
	}
	if untilEnd {
		h.totals.sessions, h.totals.keys = map[string]struct{}{}, map[string]struct{}{}
	}
	return h, h.restart()
}

// restart begins with an engine that knows nothing yet.
func (h *history) restart() (err error) {
	o := h.assume.Options(h.levels, 0, h.config.Solver.Conflicts)
	o.Online = true
	o.MaxTransaction = int64(h.config.Window.MaxTransaction)
	o.UniqueValues = h.config.UniqueValues
	o.UnseenUnique = h.config.UniqueValues
	h.engine, h.alerted, h.ids = incremental.New(o), map[string]verdict.Level{}, map[string]bool{}
	h.records, err = retain.New(retain.Options{Retain: h.config.Window.MaxTransactions, DB: h.db})
	return err
}

// add takes in a record. Unless it is taken, its ticket can be finished.
func (h *history) add(partition int, ticket uint64, t *record.Transaction, arrival int64) order.Fate {
	h.adds++
	head := record.HeadOf(t)
	fate := h.order.Add(partition, &head, h.adds, arrival)
	if fate.Taken() {
		h.open[h.adds] = open{t, ticket}
	}
	return fate
}

// release gives the engine what the order hands out, and tells each record to
// seen.
func (h *history) release(seen func(*order.Release, *record.Transaction)) error {
	horizon := int64(h.config.Window.MaxTransaction + h.config.Window.MaxSkew)
	for {
		r, ok := h.order.Next()
		if !ok {
			return nil
		}
		// What has no times is placed by the stream's time, not by the broker's:
		// a replayed stream may be of last week.
		at := saturated(h.order.Watermark(), int64(h.config.Window.Lateness+h.config.Window.MaxSkew))
		from := h.open[r.Ref]
		delete(h.open, r.Ref)
		r.Apply(from.txn)
		if err := h.records.Append(h.engine.Step(from.txn, at), from.txn); err != nil {
			return err
		}
		h.judged = append(h.judged, judged{r.Partition, from.ticket, saturated(h.order.Watermark(), horizon)})
		h.count(from.txn)
		seen(&r, from.txn)
	}
}

func (h *history) count(t *record.Transaction) {
	if h.totals.sessions == nil {
		return
	}
	h.totals.transactions++
	h.totals.operations += len(t.Ops)
	h.totals.sessions[t.Session] = struct{}{}
	for _, op := range t.Ops {
		h.totals.keys[op.Key] = struct{}{}
	}
}

// settle calls finish for each record that a restart need not read again.
func (h *history) settle(finish func(partition int, ticket uint64)) {
	w := h.order.Watermark()
	for h.spent < len(h.judged) && h.judged[h.spent].until < w {
		finish(h.judged[h.spent].partition, h.judged[h.spent].ticket)
		h.spent++
	}
	if h.spent >= len(h.judged)-h.spent {
		h.judged = append(h.judged[:0], h.judged[h.spent:]...)
		h.spent = 0
	}
}

// settleAll is settle at the end of the input: nothing has to be read again.
func (h *history) settleAll(finish func(partition int, ticket uint64)) {
	for _, j := range h.judged[h.spent:] {
		finish(j.partition, j.ticket)
	}
	h.judged, h.spent = nil, 0
}

// lose says that a write of this history may have been missed. From now on
// absence proves nothing: a complete coverage becomes partial, with a new engine
// that reads the kept records again, for what the old one concluded from absence
// may be wrong. The old one's violations remain: carry is called with its
// verdicts, and what it found since the last tick.
func (h *history) lose(carry func(found []verdict.Violation, results []verdict.Result) error) (bool, error) {
	if h.assume.Coverage == record.CoveragePartial {
		return false, nil
	}
	// Nothing is concluded from absence any more.
	found := h.engine.Tick(math.MinInt64).Violations
	if err := carry(found, h.engine.Results()); err != nil {
		return false, err
	}
	h.assume.Coverage = record.CoveragePartial
	old := h.records
	if err := h.restart(); err != nil {
		return false, err
	}
	for id := old.First(); id < old.Next(); id++ {
		if t, ok := old.Get(id); ok {
			if err := h.records.Append(h.engine.Step(t, t.End), t); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// covered tells whether an anomaly has an alert already that says that it breaks this
// level: what breaks a level breaks those that imply it, each of which may find it for
// itself.
func (h *history) covered(same string, at verdict.Level) bool {
	level, ok := h.alerted[same]
	return ok && at.Implies(level)
}

// cover notes the alert that was made of an anomaly; false if there is that alert already.
func (h *history) cover(same string, a alerts.Alert) bool {
	h.alerted[same], _ = verdict.ParseLevel(a.Level)
	again := h.ids[a.ID]
	h.ids[a.ID] = true
	return !again
}

// saturated is t + d, at most the greatest time there is.
func saturated(t, d int64) int64 {
	if s := t + d; s >= t {
		return s
	}
	return math.MaxInt64
}

// levelNames are the levels that the history is held to.
func (h *history) levelNames() []string {
	out := make([]string, len(h.levels))
	for i, l := range h.levels {
		out[i] = l.String()
	}
	return out
}
