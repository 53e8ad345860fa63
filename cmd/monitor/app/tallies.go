package app

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/internal/wire"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// tallies are how a history counts anomalies of which nothing else is kept: as found with the last alert or suspicion
// of their kind. The store has it in one commit with what it counted, so that each is counted once, however often the
// monitor is started: what is found again up to the last meeting that is counted was counted before.
type tallies struct {
	born    uint64 // of the history whose kinds they are
	through met    // the last meeting that was noted, or counted
	kinds   map[toldKey]tally
	changed bool // since it was stored
}

// tally is what is counted of a kind with what was last kept of it.
type tally struct {
	segment uint64
	id      string       // of what it is counted with; empty: that was removed
	since   int64        // when that ended
	newly   bool         // that was found among what was counted before, and is new: so is what is counted with it
	n       int          // counted and not told yet
	at      alerts.Place // of the last that was counted, From the first
	// ended are those that were counted at the end of the input: no checkpoint has these, so that they are found again,
	// at the end or before it, should the input go on. again are those that this run has found at the end.
	ended, again int
}

// talliesPrefix and a history name what the store has of it, among the checkpoints.
const talliesPrefix = reserved + "tallies "

// talliesMax bounds how many kinds are kept: more than the names of anomalies at all levels in two segments.
const talliesMax = toldMax

func newTallies(born uint64) *tallies { return &tallies{born: born, kinds: map[toldKey]tally{}} }

// tallyOf is the key of a kind.
func tallyOf(kind string) toldKey { return toldHash("kind", kind) }

// with has what is counted of the kind of a meeting from here on counted with an alert or suspicion, found there, which
// the store knows or not. What was counted with another one has to be told, see addCounted, or is told with this one.
// Kinds of segments long over go, as no more is found of them; what the end of the input found stays, as it is found
// again.
func (c *tallies) with(m meeting, segment uint64, id string, at alerts.Place, known bool) {
	before := m.compare(c.through) <= 0
	if before && known {
		return
	}
	maps.DeleteFunc(c.kinds, func(_ toldKey, x tally) bool { return x.segment+1 < segment && x.n == 0 && !m.atEnd() })
	if len(c.kinds) < talliesMax {
		x := c.kinds[tallyOf(m.kind)]
		if x.n == 0 {
			x.at = alerts.Place{}
		}
		x.segment, x.id, x.since, x.newly = segment, id, at.Time, before
		c.note(m, x)
	}
}

// note has the tally of the kind of a meeting stored, and up to where it is counted.
func (c *tallies) note(m meeting, x tally) {
	c.kinds[tallyOf(m.kind)], c.changed = x, true
	if m.compare(c.through) > 0 {
		c.through = m.met
	}
}

// before tells whether what was met was counted before, as what it is counted with was known before.
func (c *tallies) before(m meeting) bool {
	return m.compare(c.through) <= 0 && !c.kinds[tallyOf(m.kind)].newly
}

// add counts an anomaly that was met, unless it was counted before; false if there is nothing to count it with, so far
// from it at most.
func (c *tallies) add(m meeting, at alerts.Place, most time.Duration) bool {
	k := tallyOf(m.kind)
	x, ok := c.kinds[k]
	switch {
	case ok && m.atEnd():
		if x.again++; x.again <= x.ended {
			c.kinds[k] = x
			return true
		}
		x.ended = x.again
		c.kinds[k] = x
	case c.before(m):
		return true
	case x.ended > 0:
		x.ended--
		c.note(m, x)
		return true
	}
	from, to := min(x.since, at.Time), max(x.since, at.Time)
	if x.id == "" || uint64(to)-uint64(from) > uint64(most) {
		return false
	}
	if at.From, at.Time = from, to; x.at.From != 0 {
		at.From, at.Time = min(from, x.at.From), max(to, x.at.Time)
	}
	x.n, x.at = x.n+1, at
	c.note(m, x)
	return true
}

// passed takes note that all that is found up to an entry, but at the end of the input, was counted if it had to be.
func (c *tallies) passed(entry uint64) {
	if all := (met{entry, metAtEnd}); all.compare(c.through) > 0 {
		c.through = all
	}
}

// countedNear is how far an anomaly may be from what it is counted with: the page shows all in between as broken.
const countedNear = time.Minute

// append writes what code lists.
func (c *tallies) append(b []byte) []byte {
	w := wire.Coder{B: b}
	c.code(&w)
	return w.B
}

func (c *tallies) code(w *wire.Coder) {
	w.Uints(&c.born, &c.through.entry)
	wire.Number(w, &c.through.n)
	codeByKey(w, c.kinds, talliesMax, 4, func(x *tally) {
		w.Uints(&x.segment)
		w.Texts(&x.id)
		w.Ints(&x.since)
		wire.Number(w, &x.ended)
	})
}

// parseTallies is the inverse of append.
func parseTallies(db string, b []byte) (*tallies, error) {
	r, c := wire.Reads(b), newTallies(0)
	if c.code(&r); !r.Done() {
		return nil, fmt.Errorf("history %q: what is noted of its counts is damaged", db)
	}
	return c, nil
}

// another counts an anomaly of a kind of which enough is kept; false as of add.
func (w *worker) another(v *stream.Violation, m meeting, most time.Duration) bool {
	if !w.tallies.add(m, w.foundAt(v), most) {
		return false
	}
	w.metrics.suspicions.WithLabelValues(w.db, "no").Inc()
	return true
}

// countWith is tallies.with.
func (w *worker) countWith(ctx context.Context, m meeting, segment uint64, id string, at alerts.Place,
	known bool) error {
	if w.tallies.kinds[tallyOf(m.kind)].n > 0 {
		if err := w.addCounted(ctx, time.Now().UnixNano()); err != nil {
			return err
		}
	}
	w.tallies.with(m, segment, id, at, known)
	return nil
}

// addCounted has what was counted found once more, as what it is counted with.
func (w *worker) addCounted(ctx context.Context, now int64) error {
	kinds := w.tallies.kinds
	order := func(x, y toldKey) int { return bytes.Compare(x[:], y[:]) }
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), order) {
		c := kinds[kind]
		if c.n == 0 || c.id == "" {
			continue
		}
		i := slices.IndexFunc(w.piece.found, func(a store.Alert) bool { return a.ID == c.id })
		if i < 0 {
			stored, known, err := w.keeper.Alert(ctx, c.id)
			if err != nil {
				return err
			}
			if !known { // it was removed meanwhile: the next one of its kind is kept, and tells of these too
				c.id = ""
				kinds[kind] = c
				continue
			}
			stored.News = 0
			i = len(w.piece.found)
			w.piece.keep(stored)
		}
		found := &w.piece.found[i]
		a, err := alerts.Parse(found.Body)
		if err != nil {
			return err
		}
		at := c.at
		a.Count, a.LastSeen, a.At = a.Count+c.n, max(a.LastSeen, now), &at
		found.Body, found.News = a.JSON(), found.News+c.n
		c.n = 0
		kinds[kind] = c
	}
	return nil
}
