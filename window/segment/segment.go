package segment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// Kind says what proves the order across a cut.
type Kind uint8

// The kinds of cut.
const (
	Limit Kind = iota
	Clock
	Snapshot
	Fence
)

var kindNames = [...]string{"limit", "clock", "snapshot", "fence"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Options of a Cutter. The zero value of each means its default.
type Options struct {
	// RealTime: every level that is asked for holds real time, so that the clock
	// proves order.
	RealTime bool
	// NoClock: times are not to be used at all.
	NoClock bool
	// MaxSkew bounds the difference of any two clocks, in nanoseconds.
	MaxSkew int64
	// IdleAfter is how long a session may be silent, in nanoseconds of the
	// stream, until nobody waits for it any more. Default 10 s.
	IdleAfter int64
	// MinOverlap and MaxOverlap bound the records of an overlap. Defaults 1024 and
	// 16384. The bounds hold as far as that many records have been added.
	MinOverlap, MaxOverlap uint64
	// MaxSessions bounds the sessions that are followed; those silent longest are
	// given up. Default 65536.
	MaxSessions int
	// SnapshotKeys bounds the written keys of a segment up to which a transaction
	// may be seen to read all of them. Default 1024; negative: none.
	SnapshotKeys int
}

func (o Options) withDefaults() Options {
	if o.IdleAfter <= 0 {
		o.IdleAfter = 10e9
	}
	o.MinOverlap = cmp.Or(o.MinOverlap, 1024)
	o.MaxOverlap = cmp.Or(o.MaxOverlap, 16384)
	o.MaxOverlap = max(o.MaxOverlap, o.MinOverlap)
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1 << 16
	}
	o.SnapshotKeys = cmp.Or(o.SnapshotKeys, 1024)
	return o
}

// strayMost is how many positions a Cut lists.
const strayMost = 64

// Cut is a place to cut at.
type Cut struct {
	// From is the position of the first record of the overlap; all before it is
	// forgotten but for the frontier.
	From uint64
	Kind Kind
	// Complete: all before From, but for what straddles, is proved to precede
	// what is still to come, and nothing straddles. AssumingRealTime: that would
	// be so if the database kept real time, which the levels do not ask for.
	Complete, AssumingRealTime bool
	// At is when all before From had ended, by any clock: what begins later is
	// after it. Kind Clock only.
	At int64
	// Straddling are the positions before From of transactions that have no order
	// against what is still to come, the first of them; Straddlers counts all
	// that are known.
	Straddling []uint64
	Straddlers int
}

// Cutter follows one history. It is for one goroutine.
type Cutter struct {
	opt  Options
	next uint64 // position after the last record
	last Cut    // the last one taken; before that, one by limit, which claims nothing
	// what had been counted before the last cut, and the fence that proves it
	lastCount count
	cutPlace  uint64

	now      int64 // greatest end, or arrival where there are no times, seen
	sessions sessions
	steps    steps
	fences   fences
	snaps    snapshots

	straddled uint64 // records of which Add said that they straddle a cut
}

// New makes a Cutter to which nothing has been added.
func New(opt Options) *Cutter {
	c := &Cutter{opt: opt.withDefaults()}
	c.sessions.init()
	c.steps.init(c.opt)
	c.fences.init()
	c.snaps.init(c.opt)
	return c
}

// Seen is the greatest time at which a session did something, as far as it is followed;
// math.MinInt64 otherwise.
func (c *Cutter) Seen(session string) int64 {
	if s := c.sessions.by[session]; s != nil {
		return s.seen
	}
	return math.MinInt64
}

// Add tells of the record at position n, which is one after the last. t is as it
// was released: detached ones have a session of their own, and dropped times are
// not there. Arrival stands in for the end of one without times.
//
// It tells whether the record straddles the last cut: nothing proves that what
// is before that precedes it.
//
// Cost: O(operations).
func (c *Cutter) Add(n uint64, t *record.Transaction, arrival int64) (straddles bool) {
	c.next = n + 1
	at := arrival
	if t.HasTimes && t.Status != record.Unknown {
		at = t.End
	}
	c.now = max(c.now, at)
	s := c.sessions.of(t.Session, n, c.opt.MaxSessions)
	s.seen = max(s.seen, at)
	c.steps.add(n, t)
	if t.Status == record.Aborted {
		s.last = n + 1
		return false
	}
	if t.Status == record.Committed && t.HasTimes {
		s.end, s.timed = max(s.end, t.End), true
	}
	c.fence(n, t, s)
	if c.last.Kind == Fence && c.fences.proves(s, c.cutPlace) {
		s.fenced = c.last.From
	}
	c.snaps.add(n, t, s)
	s.last = n + 1
	if c.straddles(t, s) {
		c.straddled++
		return true
	}
	return false
}

// straddles tells whether nothing proves that the transaction comes after what is
// before the last cut.
func (c *Cutter) straddles(t *record.Transaction, s *session) bool {
	switch c.last.Kind {
	case Clock:
		return !t.HasTimes || t.Start <= c.last.At
	case Fence:
		return s.fenced < c.last.From
	case Snapshot:
		return s.snapped < c.last.From
	}
	return false // nothing was claimed of a cut by limit
}

// Cut chooses where to cut now, and takes it for the last cut. It is by the kind
// that proves most: a complete one, else one that is complete assuming real time,
// else one that leaves little out.
func (c *Cutter) Cut() Cut { return c.CutIn(0, math.MaxUint64) }

// CutIn is Cut at or before latest, after the last one and not before what Reach asked to
// remember; and not before earliest, as there is no room for what lies there, whatever
// MinOverlap and latest say. It may be as much before that as places lie apart.
func (c *Cutter) CutIn(earliest, latest uint64) Cut {
	w := c.window()
	if pos := latest; pos < w.latest {
		w = c.windowBefore(pos, w)
	}
	if earliest > w.earliest {
		w.earliest = max(w.earliest, min(c.steps.up(earliest), c.steps.list[len(c.steps.list)-1].pos))
		w.latest = max(w.latest, w.earliest)
	}
	return c.cut(w)
}

// windowBefore is a window that ends at a position or before.
func (c *Cutter) windowBefore(pos uint64, w window) window {
	first := max(c.last.From, c.steps.list[0].pos)
	w.latest = max(first, c.steps.down(pos))
	room := min(w.latest, c.opt.MaxOverlap-c.opt.MinOverlap)
	w.earliest = min(w.latest, max(first, c.steps.up(w.latest-room)))
	return w
}

// Reach asks for memory of where a cut may be in so many of the last records, as far as they
// come behind the last cut. It has to be asked again after Restore.
func (c *Cutter) Reach(records uint64) { c.steps.reach(max(records, c.opt.MaxOverlap)) }

func (c *Cutter) cut(w window) Cut {
	best := Cut{From: w.latest, Kind: Limit}
	fence, place := c.byFence(w)
	c.reconsider(fence.Kind == Fence)
	for _, k := range []Cut{c.byClock(w), fence, c.bySnapshot(w)} {
		if k.better(best) {
			best = k
		}
	}
	if best.Kind == Fence {
		c.cutPlace = place
		for _, s := range c.sessions.by {
			if c.fences.proves(s, place) {
				s.fenced = best.From
			}
		}
	}
	c.last, c.lastCount = best, c.steps.at(best.From).count
	c.steps.forget(best.From)
	c.sessions.forget(c.now-c.opt.IdleAfter, best.From)
	c.snaps.forget(best.From, c.next)
	return best
}

// window is where a cut may be: at places of steps from earliest to latest.
type window struct{ earliest, latest uint64 }

func (c *Cutter) window() window {
	w := window{c.last.From, c.last.From}
	if c.next > c.opt.MaxOverlap {
		w.earliest = max(w.earliest, c.steps.up(c.next-c.opt.MaxOverlap))
	}
	w.latest = max(w.latest, w.earliest)
	if c.next > c.opt.MinOverlap {
		w.latest = max(w.latest, c.steps.down(c.next-c.opt.MinOverlap))
	}
	return w
}

// live tells whether somebody has to wait for the session.
func (c *Cutter) live(s *session) bool { return s.seen >= c.now-c.opt.IdleAfter }

// rank orders cuts by what they prove.
func (k Cut) rank() int {
	switch {
	case k.Complete:
		return 4
	case k.AssumingRealTime && k.Straddlers == 0:
		return 3
	case k.Kind == Fence || k.Kind == Snapshot:
		return 2
	case k.Kind == Clock:
		return 1
	}
	return 0
}

// better tells whether k proves more than the other, or as much with less that
// straddles, or with a shorter overlap.
func (k Cut) better(other Cut) bool {
	if k.rank() != other.rank() {
		return k.rank() > other.rank()
	}
	if k.Straddlers != other.Straddlers {
		return k.Straddlers < other.Straddlers
	}
	return k.From > other.From
}

// stray counts a transaction, or several from that position on, that straddle.
func (k *Cut) stray(pos uint64) {
	k.Straddlers++
	if len(k.Straddling) < strayMost {
		k.Straddling = append(k.Straddling, pos)
	}
}

// strays counts what was not certain between the last cut and this one.
func (c *Cutter) strays(k *Cut, untimed bool) {
	n := c.steps.at(k.From).count
	k.Straddlers += int(n.unknown - c.lastCount.unknown)
	list := c.steps.unknown
	if untimed {
		k.Straddlers += int(n.untimed - c.lastCount.untimed)
		list = append(slices.Clone(list), c.steps.untimed...)
		slices.Sort(list)
	}
	for _, pos := range list {
		if pos >= c.last.From && pos < k.From && len(k.Straddling) < strayMost {
			k.Straddling = append(k.Straddling, pos)
		}
	}
}

// byClock is the latest place before which all ended before what any live session
// may begin next.
func (c *Cutter) byClock(w window) Cut {
	bound, live := int64(math.MaxInt64), 0
	for _, s := range c.sessions.by {
		if s.timed && c.live(s) {
			bound = min(bound, s.end)
			live++
		}
	}
	if c.opt.NoClock || live == 0 {
		return Cut{}
	}
	at, ok := c.steps.endsBefore(bound, c.opt.MaxSkew, w)
	if !ok {
		return Cut{}
	}
	k := Cut{From: at.pos, Kind: Clock, At: at.end + c.opt.MaxSkew}
	c.strays(&k, true)
	k.Complete = c.opt.RealTime && k.Straddlers == 0
	k.AssumingRealTime = !c.opt.RealTime
	return k
}
