package deliver

import (
	"slices"

	"github.com/isowatch/isowatch/window/store"
)

const (
	// batchMax and batchBytes bound how many notices a lane holds at once, and how many
	// bytes of them (but for one that is larger by itself): what waits for a receiver is
	// on the disk.
	batchMax   = 64
	batchBytes = 4 << 20
	// scanMax bounds how many notices are looked at for a batch, and with it how many a
	// lane remembers to have failed.
	scanMax = 256
	// troubledMax bounds how many of a batch may be ones that keep failing, so
	// that they can't fill it.
	troubledMax = 16
	// triesMax is how often the oldest notice is tried before younger ones get
	// their turn: it may be the notice that is at fault, not the receiver.
	triesMax = 5
	// aloneMax is how often a notice fails again while others are delivered until it is
	// the one that is at fault. Before, it was the receiver.
	aloneMax = 2
	// holdMax is how often a notice fails until others about its groups do not wait for
	// it any more.
	holdMax = 64
)

// tries are the failed attempts by notice id, until it is delivered.
type tries struct {
	of map[string]*try
	// taken is how many notices the receiver has taken.
	taken int
}

// try is what is known of a notice that failed.
type try struct {
	failed int // how often, or how often that counts
	alone  int // how often while others were delivered
	since  int // tries.taken when it failed last
}

func newTries() *tries { return &tries{of: map[string]*try{}} }

// failed notes a failed attempt.
func (t *tries) failed(id string) {
	x := t.of[id]
	if x == nil {
		x = &try{}
		t.of[id] = x
	} else if t.taken > x.since {
		x.alone++
	}
	x.failed++
	x.since = t.taken
}

// count is how often a notice has failed.
func (t *tries) count(id string) int {
	if x := t.of[id]; x != nil {
		return x.failed
	}
	return 0
}

// delivered notes that the receiver has taken a notice. Those that failed before may
// have done so as it was down: they are tried once more before what came after them.
func (t *tries) delivered(id string) {
	delete(t.of, id)
	t.taken++
	for _, x := range t.of {
		if x.alone < aloneMax {
			x.failed = min(x.failed, triesMax-1)
		}
	}
}

// troubled tells whether a notice has failed so often that others may pass it.
func (t *tries) troubled(id string) bool { return t.count(id) >= triesMax }

// holds tells whether others about the same groups may not.
func (t *tries) holds(id string) bool {
	x := t.of[id]
	return x != nil && x.alone < aloneMax && x.failed < holdMax
}

// collect returns a function for store.Undelivered that fills batch: the oldest, but
// for troubled notices beyond troubledMax, and those about a group of which an older
// notice is troubled: a group's end that comes before its beginning would leave an
// incident open for ever. They do not wait for one that is at fault itself.
func (t *tries) collect(batch *[]store.Notice) func(store.Notice) bool {
	troubled, scanned, size := 0, 0, 0
	passed := map[string]bool{} // the groups of what others may pass
	return func(a store.Notice) bool {
		scanned++
		take, isTroubled, about := true, t.troubled(a.ID), []string(nil)
		if isTroubled || len(passed) > 0 {
			about = groups(a.Body)
			take = !slices.ContainsFunc(about, func(g string) bool { return passed[g] })
		}
		if !take || isTroubled && t.holds(a.ID) {
			for _, g := range about {
				passed[g] = true
			}
		}
		if isTroubled && take {
			troubled++
			take = troubled <= troubledMax
		}
		if take && (len(*batch) == 0 || size+len(a.Body) <= batchBytes) {
			*batch = append(*batch, a)
			size += len(a.Body)
		} else if take {
			return false
		}
		return len(*batch) < batchMax && scanned < scanMax
	}
}

// groups are those that a notice is about; none if it can't be read.
func groups(body []byte) []string {
	n, err := parse(body)
	if err != nil {
		return nil
	}
	return n.about()
}

// next is the place in batch of the notice to try: the oldest of those that
// failed least, where failing less than triesMax times is as good as never.
func (t *tries) next(batch []store.Notice) int {
	best, least := 0, -1
	for i, a := range batch {
		n := max(0, t.count(a.ID)-triesMax+1)
		if least < 0 || n < least {
			best, least = i, n
		}
	}
	return best
}
