package app

import (
	"fmt"
	"time"
)

// A history that can't keep up must not hold up the others. What its queue has no room
// for stays in the journal, where every entry is before any history gets it, and the
// queue is filled from there as it empties. So the ingest waits only
//
//   - where there is no journal (standard input), or what is read is not in it, as the
//     disk is full;
//   - where as much is left in the journal as may be, so that the store stays within
//     its size;
//   - for a history that is alone and gets on: it holds up nobody, and what it has no
//     time for is better left where it comes from, as what is left in the journal is read
//     twice. A search that takes long is not waited for even then.
//
// After a restart it waits for nobody before all that was in the journal is handed out or
// left there: see replay.
const (
	// solveMax is for how long the ingest waits for a history that is alone and solves what
	// is open.
	solveMax = 50 * time.Millisecond
	// pieceMax is for how long it waits for one that is at one and the same piece of other work,
	// which takes longer than usual where others want the processor.
	pieceMax = 2 * time.Second
	// backlogShare is what part of store.max_bytes a history may leave in the journal.
	backlogShare = 2
)

// leaves leaves an entry, which does not fit into the history's queue, in the journal,
// if it may be.
func (in *ingest) leaves(w *worker, x queued) bool {
	if in.origin == "" || !in.keeper.stored(x.entry.number) {
		return false
	}
	if _, bytes := w.queue.backlog(); bytes+x.entry.size > in.backlogMax() {
		return false
	}
	if now := in.now(); len(in.order) == 1 && w.solving.busy(now) < solveMax && w.beat.busy(now) < pieceMax {
		return false
	}
	if in.once("behind " + w.db) {
		in.log.Warn().Str("db", w.db).Msg("the history's queue is full: what more comes for it waits in the journal, and " +
			"its alerts are late; more of this is counted")
	}
	in.later(w, x)
	return true
}

// later leaves an entry that is in the journal there, until the history has room for it.
func (in *ingest) later(w *worker, x queued) {
	if w.queue.leave(x) {
		in.group.Go(func() error { return in.refill(w) })
	}
}

// backlogMax is how many bytes a history may leave in the journal.
func (in *ingest) backlogMax() int64 {
	if in.tuning.backlog > 0 {
		return in.tuning.backlog
	}
	return int64(in.cfg.Store.MaxBytes) / backlogShare
}

// refill fills a history's queue with what was left in the journal, until nothing is.
func (in *ingest) refill(w *worker) error {
	for number := w.queue.next(); number > 0; number = w.queue.next() {
		x, ok, err := in.keeper.Entry(in.going, number)
		if in.going.Err() != nil {
			return nil //nolint:nilerr // a stop, which is not an error: the next run goes on with it
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", in.cfg.Store.Path, err)
		}
		if !ok {
			return damaged(fmt.Errorf("the journal has no entry %d", number))
		}
		e, err := parseEntry(number, x.Data)
		if err != nil {
			return damaged(err)
		}
		if w.queue.refill(in.going, e.queued(shares(e)[w.db])) != nil {
			return nil //nolint:nilerr // as above: it gives nothing back but the end of in.going
		}
	}
	return nil
}

// await waits until an entry fits into the history's queue, or may be left in the
// journal: reading pauses meanwhile.
func (in *ingest) await(w *worker, x queued) error {
	began := in.now()
	w.blocked.Store(true)
	in.metrics.blocked.WithLabelValues(w.db).Set(1)
	if in.once("full " + w.db) {
		in.log.Warn().Str("db", w.db).Msg("the history's queue is full: reading waits for it, and the lag grows; more of " +
			"this is counted")
	}
	in.beat.rest() // the history's own beat tells how it gets on
	defer func() {
		now := in.now()
		in.beat.work(now)
		w.blocked.Store(false)
		in.metrics.blocked.WithLabelValues(w.db).Set(0)
		in.metrics.blockedTime.WithLabelValues(w.db).Add(now.Sub(began).Seconds())
		in.waited(now.Sub(began))
	}()
	again := time.NewTicker(solveMax) // what a history is at, and what is stored, changes without a word
	defer again.Stop()
	for !w.queue.offer(x) && !in.leaves(w, x) {
		select {
		case <-w.queue.room():
		case <-again.C:
			in.show() // what waits is told also while it does
		case <-in.going.Done():
			return in.halted()
		}
	}
	return nil
}

// waited notes for how long reading has waited at once.
func (in *ingest) waited(d time.Duration) {
	if d > in.longest {
		in.longest = d
		in.metrics.blockedMost.Set(d.Seconds())
	}
}
