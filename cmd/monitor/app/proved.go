package app

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/wire"
)

// proved remembers what came of proving anomalies since the last checkpoint. The store
// has it, in one commit with the alerts that were made, so that a run that works off the
// same entries again need not prove the same again: an alert's id is known only when it
// is proved (docs/decisions/0044), and a hundred proofs can take longer than a run lives.
//
// What it says follows from the entries: with it and without it a run does the same.
type proved struct {
	// of whom it is: a history of this input and configuration that goes on from the
	// checkpoint at this entry. For any other it says nothing.
	origin   string
	config   uint64
	consumed uint64

	outcomes map[toldKey]outcome
	met      met
}

// met counts the anomalies that were found at the last entry, from metAtEnd on those at the end of the input.
type met struct {
	entry uint64
	n     int
}

const metAtEnd = 1 << 30

func (m met) atEnd() bool { return m.n > metAtEnd }

func (m met) compare(other met) int {
	return cmp.Or(cmp.Compare(m.entry, other.entry), cmp.Compare(m.n, other.n))
}

// meeting is what was found, at a level, and when: as the n-th at an entry. The same
// anomaly may be met again, and then something else may come of it: what proved it may be
// forgotten meanwhile, or may only then have come. So an outcome is that of one meeting.
type meeting struct {
	met
	same, kind string
	at         verdict.Level
}

// meet is the meeting with the next anomaly of those found at an entry. All that are found have
// to be counted, whether or not they are proved: a run that works off the same entries
// again then counts alike.
func (p *proved) meet(entry uint64, same string, at verdict.Level) meeting {
	if p.met.entry != entry {
		p.met = met{entry: entry}
	}
	p.met.n++
	return meeting{met: p.met, same: same, at: at}
}

// outcome is the alert that an anomaly is, by its id, and at which level; without an id
// it was withheld.
type outcome struct {
	level verdict.Level
	share byte // of what the proofs of its kind may take, see told.add
	id    string
}

// withheld is the outcome of an anomaly that is not told.
var withheld outcome

func outcomeOf(a *alerts.Alert) outcome {
	level, _ := verdict.ParseLevel(a.Level)
	return outcome{level: level, id: a.ID}
}

// provedPrefix and a history name what the store has of it, among the checkpoints.
const provedPrefix = reserved + "proved "

// provedMax bounds how many outcomes are remembered: as many as told has at most. Beyond
// it they are proved again after a crash.
const provedMax = 2 * toldMax

// provedSince is what is proved after a checkpoint: nothing yet.
func provedSince(c *checkpoint) *proved {
	return &proved{origin: c.origin, config: c.config, consumed: c.consumed, outcomes: map[toldKey]outcome{}}
}

// follows tells whether p goes on from c.
func (p *proved) follows(c *checkpoint) bool {
	return p.origin == c.origin && p.config == c.config && p.consumed == c.consumed
}

func (m *meeting) hash() toldKey {
	return toldHash(fmt.Sprintf("%d of entry %d at %v", m.n, m.entry, m.at), m.same)
}

// get is what came of a meeting.
func (p *proved) get(m meeting) (outcome, bool) {
	o, ok := p.outcomes[m.hash()]
	return o, ok
}

// put notes what came of one.
func (p *proved) put(m meeting, o outcome) {
	if len(p.outcomes) < provedMax {
		p.outcomes[m.hash()] = o
	}
}

// append writes what code lists.
func (p *proved) append(b []byte) []byte {
	c := wire.Coder{B: b}
	p.code(&c)
	return c.B
}

func (p *proved) code(c *wire.Coder) {
	c.Texts(&p.origin)
	c.Words(&p.config)
	c.Uints(&p.consumed)
	codeByKey(c, p.outcomes, provedMax, 3, func(o *outcome) {
		wire.Octet(c, &o.level)
		wire.Octet(c, &o.share)
		c.Texts(&o.id)
	})
}

// parseProved is the inverse of append.
func parseProved(db string, b []byte) (*proved, error) {
	c, p := wire.Reads(b), proved{outcomes: map[toldKey]outcome{}}
	if p.code(&c); !c.Done() {
		return nil, fmt.Errorf("history %q: what is noted of its proofs is damaged", db)
	}
	return &p, nil
}

// HistoryInStore tells whether what a store has among its checkpoints is that of a history,
// and not something else that the monitor keeps there.
func HistoryInStore(name string) bool {
	return !strings.HasPrefix(name, reserved)
}
