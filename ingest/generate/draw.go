package generate

import (
	"math/rand/v2"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Step is an operation of a transaction before it is known what it reads or writes.
type Step struct {
	// Kind is Read, Write or Append, or PredicateRead or PredicateWrite of the rows that have a column in a range.
	Kind record.OpKind
	Item int // the number of the register or of the list, from 0
	List bool
	// Range, if not 0, says that a range of so many registers is read, of which Item is the first.
	Range int
	// Low and High are the least and the greatest values of the columns that PredicateRead and PredicateWrite ask for; with
	// a High of 0 any will do.
	Low, High Tuple
	Set       Tuple // what rows are given; nothing: PredicateWrite deletes them
	// Insert: what is written is a row that was never there, and the transaction ends before it if what it asked for last
	// met a row. A write of a row without it is of the one that was met, and the transaction ends if none was.
	Insert bool
	// Take: one row alone is read of those that are asked for, which nobody else is about to take.
	Take bool
}

// Drawer draws what transactions of a workload do, one after the other: which operations, on which of the
// registers and lists. What runs them is a simulated store here, and a real one in a canary.
type Drawer struct {
	cfg   Config
	rng   *rand.Rand
	popul *Popularity // the registers' popularity, for Zipf
	lists int         // how many there are
	only  int         // the register of the transaction in work, for LIN
	steps []Step
}

// NewDrawer makes a drawer for the workload, operations, keys, distribution and read share of cfg, which has its
// defaults. What transactions of CTwitter do depends on what they read, and is not drawn.
func NewDrawer(cfg Config, rng *rand.Rand) *Drawer {
	d := &Drawer{cfg: cfg, rng: rng}
	switch cfg.Workload {
	case Append:
		d.lists = cfg.Keys
	case Mix:
		d.lists = max(1, cfg.Keys/mixLists)
	}
	if cfg.Distribution == Zipf && cfg.Workload != CTwitter {
		d.popul = NewZipf(cfg.Keys, cfg.Exponent)
	}
	return d
}

// mixLists is how many registers Mix has for each list.
const mixLists = 100

// Lists is how many lists the workload has, numbered from 0; Registers is how many registers.
func (d *Drawer) Lists() int { return d.lists }

// Registers is how many registers the workload has, numbered from 0.
func (d *Drawer) Registers() int {
	if d.cfg.Workload == Append {
		return 0
	}
	return d.cfg.Keys
}

// Draw returns what the next transaction does, until it is called again.
func (d *Drawer) Draw() []Step {
	d.steps = d.steps[:0]
	n := d.cfg.Operations
	if d.cfg.Level == verdict.LIN {
		d.only = d.drawKey()
	}
	switch d.cfg.Workload {
	case General:
		d.general(n)
	case BlindW:
		d.blind(n)
	case ReadOnly:
		for range n {
			d.add(record.Read, d.key())
		}
	case Mini:
		d.mini()
	case Append:
		d.appends(1 + d.rng.IntN(n))
	case Mix:
		d.mix(n)
	case Lightweight:
		d.lightweight()
	case Snapshots:
		d.snapshot(n)
	case Bank:
		d.bank()
	case Ranges:
		d.ranges(n)
	case Predicates:
		d.predicates(n)
	case Booking:
		d.booking(n)
	case Queue:
		d.queue(n)
	case Unique:
		d.unique(n)
	}
	return d.steps
}

func (d *Drawer) add(kind record.OpKind, key int) {
	d.steps = append(d.steps, Step{Kind: kind, Item: key})
}

// addList adds an operation on a list.
func (d *Drawer) addList(kind record.OpKind) {
	slot := 0
	if d.cfg.Workload == Append {
		slot = d.key()
	} else {
		slot = d.rng.IntN(d.lists)
	}
	d.steps = append(d.steps, Step{Kind: kind, Item: slot, List: true})
}

// kind is Read with the probability that was asked for, else the other.
func (d *Drawer) kind(other record.OpKind) record.OpKind {
	if d.cfg.ReadShare > 0 && d.rng.Float64() < d.cfg.ReadShare {
		return record.Read
	}
	return other
}

func (d *Drawer) general(n int) {
	for range n {
		kind := d.kind(record.Write)
		d.add(kind, d.key())
	}
}

func (d *Drawer) blind(n int) {
	kind := d.kind(record.Write)
	for range n {
		d.add(kind, d.key())
	}
}

func (d *Drawer) appends(n int) {
	for range n {
		d.addList(d.kind(record.Append))
	}
}

// mix adds a transaction of another workload, or one that uses registers and
// lists.
func (d *Drawer) mix(n int) {
	switch d.rng.IntN(6) { // more are to take than there are jobs, so that they meet
	case 0:
		d.general(n)
	case 1:
		d.blind(n)
	case 2:
		d.mini()
	case 3:
		d.appends(n)
	case 4:
		for range n {
			if d.rng.IntN(2) == 0 {
				d.addList(d.kind(record.Append))
				continue
			}
			d.general(1)
		}
	}
}

// miniMax is how many operations a mini-transaction has at most.
const miniMax = 4

// mini adds one of the shapes of a mini-transaction: one or two reads, and writes only of what was read before. Two
// keys are written in their order: of transactions that lock what they write none waits for the other in a circle.
func (d *Drawer) mini() {
	x := d.key()
	y := d.key()
	for i := 0; i < 8 && d.cfg.Level != verdict.LIN; i++ { // look for another key, but not for ever: there may be one only
		if y != x {
			break
		}
		y = d.key()
	}
	shape := d.rng.IntN(7)
	if y == x {
		shape %= 2
	}
	if shape >= 5 {
		x, y = min(x, y), max(x, y)
	}
	d.add(record.Read, x)
	switch shape {
	case 0:
	case 1:
		d.add(record.Write, x)
	case 2:
		d.add(record.Read, y)
	case 3:
		d.add(record.Read, y)
		d.add(record.Write, x)
	case 4:
		d.add(record.Write, x)
		d.add(record.Read, y)
	case 5:
		d.add(record.Read, y)
		d.add(record.Write, x)
		d.add(record.Write, y)
	case 6:
		d.add(record.Write, x)
		d.add(record.Read, y)
		d.add(record.Write, y)
	}
}

// lightweight adds a compare-and-set that succeeded, or one that did not, which only
// reads.
func (d *Drawer) lightweight() {
	x := d.key()
	kind := d.kind(record.Write)
	d.add(record.Read, x)
	if kind == record.Write {
		d.add(record.Write, x)
	}
}

// snapshot adds a write of one key, or reads of n neighbours.
func (d *Drawer) snapshot(n int) {
	kind, from := d.kind(record.Write), d.key()
	if kind == record.Write {
		n = 1
	}
	for i := range min(n, d.cfg.Keys) {
		d.add(kind, (from+i)%d.cfg.Keys)
	}
}

// bank adds a transfer between two accounts, or reads of all. Amounts are not drawn, as they depend on what is read: a
// wrong total is an update that was lost or read in part, and who wrote what shows that.
func (d *Drawer) bank() {
	if d.kind(record.Write) == record.Read || d.cfg.Keys == 1 {
		d.steps = append(d.steps, Step{Kind: record.Read, Range: d.cfg.Keys})
		return
	}
	from := d.key()
	to := (from + 1 + d.rng.IntN(d.cfg.Keys-1)) % d.cfg.Keys
	for _, kind := range []record.OpKind{record.Read, record.Write} {
		d.add(kind, from)
		d.add(kind, to)
	}
}

// ranges adds reads of a range of n keys, and a write of one of them if it is to write.
func (d *Drawer) ranges(n int) {
	n = min(n, d.cfg.Keys)
	from := min(d.key(), d.cfg.Keys-n)
	d.steps = append(d.steps, Step{Kind: record.Read, Item: from, Range: n})
	if kind := d.kind(record.Write); kind == record.Write {
		d.add(kind, from+d.rng.IntN(n))
	}
}

// predicates adds reads, or writes, of the rows that have a column in a range of a tenth of its values at most.
func (d *Drawer) predicates(n int) {
	kind := d.kind(record.Write)
	for range n {
		s, c := Step{Kind: record.PredicateRead}, d.rng.IntN(2)
		s.Low[c] = 1 + d.rng.IntN(d.cfg.Keys)
		s.High[c] = s.Low[c] + d.rng.IntN(max(1, d.cfg.Keys/10))
		if kind == record.Write {
			s.Kind, s.Set = record.PredicateWrite, d.tuple()
		}
		d.steps = append(d.steps, s)
	}
}

// tuple draws what a row of Predicates holds.
func (d *Drawer) tuple() Tuple { return Tuple{1 + d.rng.IntN(d.cfg.Keys), 1 + d.rng.IntN(d.cfg.Keys)} }

// A row of Booking says from which time of the day on a resource is taken, for bookingTime.
const (
	bookingDay  = 24
	bookingTime = 4
)

// booking looks n times at what overlaps a span of a resource's time, or cancels that, or books the span if nothing
// does.
func (d *Drawer) booking(n int) {
	resource, kind := 1+d.key()/(bookingDay/bookingTime), d.kind(record.Write)
	for i := 0; i < n && (i == 0 || kind == record.Read); i++ {
		start := 1 + d.rng.IntN(bookingDay-bookingTime+1)
		d.steps = append(d.steps, Step{Kind: record.PredicateRead, Low: Tuple{resource, max(1, start-bookingTime+1)},
			High: Tuple{resource, start + bookingTime - 1}})
		switch {
		case kind == record.Read:
		case d.rng.IntN(4) == 0:
			d.steps[0].Kind = record.PredicateWrite
		default:
			d.steps = append(d.steps, Step{Kind: record.Write, Set: Tuple{resource, start}, Insert: true})
		}
	}
}

// A row of Queue says in which queue a job is, and whether it waits.
const (
	waits = 1
	taken = 2
)

// queue looks n times at what waits in a queue, puts a job into it, takes one, or deletes those that were taken.
func (d *Drawer) queue(n int) {
	queue, kind := 1+d.key()/bookingDay, d.kind(record.Write)
	job := Tuple{queue, waits}
	look := Step{Kind: record.PredicateRead, Low: job, High: job}
	for i := 0; i < n && kind == record.Read; i++ {
		d.steps = append(d.steps, look)
	}
	if kind == record.Read {
		return
	}
	done := Tuple{queue, taken}
	switch d.rng.IntN(6) { // more are to take than there are jobs, so that they meet
	case 0:
		d.steps = append(d.steps, Step{Kind: record.PredicateWrite, Low: done, High: done})
	case 1, 2:
		d.steps = append(d.steps, Step{Kind: record.Write, Set: job, Insert: true})
	default:
		look.Take = true
		d.steps = append(d.steps, look, Step{Kind: record.Write, Set: done})
	}
}

// unique looks n times at who has a name, deletes that, updates it or else inserts it, or inserts it if nobody has the
// name.
func (d *Drawer) unique(n int) {
	kind := d.kind(record.Write)
	for i := 0; i < n && (i == 0 || kind == record.Read); i++ {
		name := Tuple{1 + d.key()}
		d.steps = append(d.steps, Step{Kind: record.PredicateRead, Low: name, High: name})
		does := d.rng.IntN(4)
		if kind == record.Read {
			continue
		}
		row := Tuple{name[0], 1 + d.rng.IntN(d.cfg.Keys)}
		switch does {
		case 0:
			d.steps[0].Kind = record.PredicateWrite
			continue
		case 1:
			d.steps[0].Kind, d.steps[0].Set = record.PredicateWrite, row
		}
		d.steps = append(d.steps, Step{Kind: record.Write, Set: row, Insert: true})
	}
}

// First is what the columns of an item hold at first.
func (d *Drawer) First() Tuple {
	if d.cfg.Workload != Predicates {
		return Tuple{}
	}
	return d.tuple()
}

// key draws a key, or gives the one that the transaction has to keep to.
func (d *Drawer) key() int {
	if d.cfg.Level == verdict.LIN {
		return d.only
	}
	return d.drawKey()
}

func (d *Drawer) drawKey() int {
	n := d.cfg.Keys
	switch d.cfg.Distribution {
	case Zipf:
		return d.popul.Draw(d.rng)
	case Hotspot:
		hot := max(1, n/5)
		if n == hot || d.rng.IntN(5) < 4 {
			return d.rng.IntN(hot)
		}
		return hot + d.rng.IntN(n-hot)
	default:
		return d.rng.IntN(n)
	}
}
