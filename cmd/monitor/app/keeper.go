package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/window/store"
)

// keeper is what writes to the store: the journal, the offsets, checkpoints,
// alerts, dead letters. It passes everything on as long as the store takes it.
//
// A full disk stops nothing but this. Then the keeper holds in memory what is to be
// written, and alerts are delivered from there, until a write succeeds again. What
// it holds of the journal is bounded: beyond heldMax bytes, entries that no history
// needs any more are dropped. The stored offsets and checkpoints stay where they
// were, in front of everything that is held, so that a crash loses no record that
// the input still has.
//
// After entries were dropped the journal has a hole. A restart in front of it can't
// get over it; so the way back is: first all that histories still need is
// written, then, in one commit, the checkpoints of all histories, which need nothing
// older, and the offsets. Until that commit a restart begins in front of the hole,
// and takes what lies behind it for garbage, as it is not before the stored number
// of the next entry.
type keeper struct {
	store.Store // for reading; what is written goes through the methods below
	origin      string
	log         zerolog.Logger
	metrics     *metrics
	ready       *readiness
	receivers   []string
	retryEvery  time.Duration
	heldMax     int64
	durable     func(next int64) // told how far the input is stored

	mu sync.Mutex
	// floors are, by history, the least entry that its stored checkpoint needs.
	floors map[string]uint64
	waited map[int]bool // see marks
	// left is what another input left among the checkpoints, which goes with the first entry of
	// this one.
	left map[string][]byte

	// full is why nothing is written at present; nil: it is. retryAt is when the
	// next attempt is due.
	full    error
	retryAt time.Time
	// What is held: entries, whether some were dropped, where the input is behind
	// all of them, and the latest checkpoints and dead letters; held alerts are in
	// outbox.go.
	held      []kept
	heldBytes int64
	hole      bool
	moved     marks
	fresh     map[string]checkpointed
	born      map[string]checkpointed // the first ones of histories that have begun
	letters   []store.DeadLetter
	notes     map[string][]byte // see save
	outbox
	world
}

// kept is an entry as the journal has it, and what it says of the input.
type kept struct {
	number uint64
	time   int64
	data   []byte
	mark   mark
}

// checkpointed is a history's checkpoint, encoded, or what writes it.
type checkpointed struct {
	data  []byte
	write func(io.Writer) error // nil: it is data
	floor uint64
}

// The limits of what is held while the disk is full.
const (
	heldBytesMax    = 64 << 20
	heldLettersMax  = 1024
	journalChunkMax = 1 << 20
	// retryAtLeast is the least wait between two attempts to write to a full disk.
	retryAtLeast = 20 * time.Millisecond
)

func newKeeper(a *setting, st store.Store) *keeper {
	k := &keeper{Store: st, origin: a.origin, log: a.log, metrics: a.metrics, ready: &a.ready,
		receivers:  receiverNames(a.cfg),
		retryEvery: max(retryAtLeast, 4*a.cfg.Solver.Every), heldMax: a.tuning.held, floors: map[string]uint64{},
		waited: map[int]bool{}, durable: func(int64) {},
		fresh: map[string]checkpointed{}, born: map[string]checkpointed{}, notes: map[string][]byte{}, outbox: newOutbox()}
	k.moved.waited = k.waited
	return k
}

// take has what another input left go, by its names, in the commit that stores the first
// entries of this one: until then that one can go on.
func (k *keeper) take(names []string) {
	k.left = make(map[string][]byte, len(names))
	for _, name := range names {
		if name != worldName { // what happened is of no input
			k.left[name] = nil
		}
	}
}

// append makes entries durable, whose data it does not keep, with the dead letters that they gave and the first
// checkpoints of the histories that they begin. When it returns, the workers may
// have the entries.
func (k *keeper) append(ctx context.Context, entries []kept, letters []store.DeadLetter,
	births map[string]checkpointed) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for db, b := range births {
		k.floors[db] = b.floor
	}
	if k.full == nil {
		c := k.commit(entries)
		maps.Copy(c.Checkpoints, k.encoded(births))
		maps.Copy(c.Checkpoints, k.news())
		c.DeadLetters = letters
		c.Forget = k.begun(births) // another history of that name may have spilled
		err := k.Store.Commit(ctx, c)
		if err == nil {
			k.left = nil
			k.unsaved = false
			for _, e := range entries {
				k.durable(e.mark.seen)
			}
			return nil
		}
		if !k.hold(err) {
			return err
		}
	}
	for _, e := range entries {
		e.data = bytes.Clone(e.data) // the caller writes over it
		k.held = append(k.held, e)
		k.heldBytes += int64(len(e.data))
		k.moved.set(e)
	}
	maps.Copy(k.fresh, births)
	maps.Copy(k.born, births)
	k.holdLetters(letters)
	k.trim()
	k.show()
	return nil
}

// commit is the Commit of entries, with the offsets behind the last of them.
func (k *keeper) commit(entries []kept) store.Commit {
	c := store.Commit{Checkpoints: map[string][]byte{}}
	if k.origin == "" || len(entries) == 0 {
		return c
	}
	m := marks{waited: k.waited}
	for _, e := range entries {
		m.set(e)
		c.Journal = append(c.Journal, store.Entry{Number: e.number, Time: e.time, Data: e.data})
	}
	c.Offsets = m.offsets(k.origin)
	maps.Copy(c.Checkpoints, k.left)
	maps.Copy(c.Checkpoints, m.states())
	return c
}

// encoded are checkpoints as the store takes them; empty if the input can't be read
// again.
func (k *keeper) encoded(checkpoints map[string]checkpointed) map[string][]byte {
	out := make(map[string][]byte, len(checkpoints))
	if k.origin == "" {
		return out
	}
	for db, c := range checkpoints {
		out[db] = c.data
	}
	return out
}

// save makes a history's checkpoint durable, and alerts and dead letters that it found with what is noted of them, by
// its name among the checkpoints; nil leaves what the store has.
func (k *keeper) save(ctx context.Context, db string, c *checkpointed, found []store.Alert,
	letters []store.DeadLetter, notes map[string][]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full == nil {
		commit := store.Commit{Alerts: found, DeadLetters: letters}
		if c != nil {
			if k.origin != "" {
				commit.Written = map[string]func(io.Writer) error{db: c.write}
			}
			commit.Drop = k.dropWith(db, c.floor)
		}
		if k.origin != "" {
			commit.Checkpoints = notes
		}
		err := k.Store.Commit(ctx, commit)
		if err == nil {
			if c != nil {
				k.floors[db] = c.floor
			}
			return nil
		}
		if !k.hold(err) {
			return err
		}
	}
	if c != nil {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			return err
		}
		k.fresh[db] = checkpointed{data: b.Bytes(), floor: c.floor}
	}
	k.holdAlerts(found)
	maps.Copy(k.notes, notes)
	k.holdLetters(letters)
	k.trim()
	k.show()
	return nil
}

// dropWith is the least entry that a restart needs if db has a checkpoint with that
// floor.
func (k *keeper) dropWith(db string, floor uint64) uint64 {
	for other, f := range k.floors {
		if other != db {
			floor = min(floor, f)
		}
	}
	return floor
}

// Spill puts pairs of a history aside. While checkpoints are held nothing is
// spilled, as what is spilled after a checkpoint must not become part of it.
func (k *keeper) Spill(ctx context.Context, db string, pairs []store.KV) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full != nil {
		return k.full
	}
	err := k.Store.Spill(ctx, k.spilling(db), pairs)
	if err != nil && k.hold(err) {
		k.show()
	}
	return err
}

// Spilled gives back what Spill put aside.
func (k *keeper) Spilled(ctx context.Context, db string, keys []string) ([][]byte, error) {
	return k.Store.Spilled(ctx, k.spilling(db), keys)
}

// passingPrefix and a history name what is spilled of an input that can't be read again, of
// which nothing stays.
const passingPrefix = reserved + "passing "

// spilling is under which name the store has what a history spills. That of an input that
// can't be read again must not take the place of what a checkpoint of another one needs.
func (k *keeper) spilling(db string) string {
	if k.origin == "" {
		return passingPrefix + db
	}
	return db
}

// begun are the names under which histories spill that begin.
func (k *keeper) begun(births map[string]checkpointed) []string {
	out := make([]string, 0, len(births))
	for _, db := range slices.Sorted(maps.Keys(births)) {
		out = append(out, k.spilling(db))
	}
	return out
}

// spills tells whether Spill may be tried.
func (k *keeper) spills() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.full == nil
}

// stored tells whether an entry that some history has not consumed is in the journal:
// it is, unless it is held.
func (k *keeper) stored(number uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held) == 0 || number < k.held[0].number
}

// retry writes what is held, if it is time to try.
func (k *keeper) retry(ctx context.Context, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full == nil || now.Before(k.retryAt) {
		return nil
	}
	k.retryAt = now.Add(k.retryEvery)
	err := k.recover(ctx)
	switch {
	case err == nil:
		k.full = nil
		k.ready.ready(whoStore)
		k.log.Warn().Msg("the store takes writes again; what was held in memory has been written")
	case errors.Is(err, store.ErrFull):
		k.full, err = err, nil
		k.ready.wait(whoStore, k.full.Error())
	}
	k.show()
	return err
}

// recover writes all that is held. With the entries that histories begin with go their first
// checkpoints: those that are held may be behind what is stored then. Behind a
// hole the offsets come last, together with the checkpoints of all histories, of which none
// needs what was dropped; see trim.
func (k *keeper) recover(ctx context.Context) error {
	if err := k.saveEvents(ctx); err != nil { // before the offsets behind them
		return err
	}
	for len(k.held) > 0 {
		n := chunk(k.held)
		c, births := k.commit(k.held[:n]), k.bornBy(k.held[n-1].number)
		if k.hole {
			c.Offsets, c.Checkpoints = nil, nil
		} else {
			maps.Copy(c.Checkpoints, k.encoded(births))
			c.Forget = k.begun(births)
		}
		if err := k.Store.Commit(ctx, c); err != nil {
			return err
		}
		if !k.hole {
			k.left = nil
			maps.DeleteFunc(k.born, func(db string, _ checkpointed) bool { _, ok := births[db]; return ok })
		}
		for _, e := range k.held[:n] {
			k.heldBytes -= int64(len(e.data))
		}
		k.held = k.held[n:]
	}
	// Alerts with the checkpoints, and the notes of what was counted, that say that they were found.
	c := store.Commit{Checkpoints: map[string][]byte{}, DeadLetters: k.letters, Forget: k.begun(k.born)}
	for _, id := range k.raised {
		c.Alerts = append(c.Alerts, k.alerts[id])
	}
	// Before the first entry the store is still the other input's.
	taken := k.moved.next > 0
	if k.origin != "" && taken {
		c.Offsets = k.moved.offsets(k.origin)
		maps.Copy(c.Checkpoints, k.left)
		maps.Copy(c.Checkpoints, k.moved.states())
	}
	maps.Copy(c.Checkpoints, k.encoded(k.fresh))
	if k.origin != "" {
		maps.Copy(c.Checkpoints, k.notes)
	}
	if err := k.Store.Commit(ctx, c); err != nil {
		return err
	}
	if taken {
		k.left = nil
	}
	for db, f := range k.fresh {
		k.floors[db] = f.floor
	}
	clear(k.fresh)
	clear(k.born)
	clear(k.notes)
	clear(k.alerts)
	k.raised, k.bytes = nil, 0
	for _, m := range k.moved.partitions {
		k.durable(m.seen)
	}
	k.moved, k.letters, k.held, k.hole = marks{waited: k.waited}, nil, nil, false
	return k.storeNotices(ctx)
}

// bornBy are the first checkpoints of the histories that have begun by an entry. One of a later
// one would be ahead of the journal, should the process die before that is written.
func (k *keeper) bornBy(number uint64) map[string]checkpointed {
	out := maps.Clone(k.born)
	maps.DeleteFunc(out, func(_ string, c checkpointed) bool { return c.floor > number })
	return out
}

// chunk is how many entries go into one commit.
func chunk(entries []kept) int {
	size := 0
	for i, e := range entries {
		if size += len(e.data); size > journalChunkMax && i > 0 {
			return i
		}
	}
	return len(entries)
}

// hold begins to hold what is to be written, if err says that the disk is full;
// other failures are not survived.
func (k *keeper) hold(err error) bool {
	if !errors.Is(err, store.ErrFull) {
		return false
	}
	k.full, k.retryAt = err, time.Now().Add(k.retryEvery)
	k.metrics.storeFull.Inc()
	k.ready.wait(whoStore, err.Error())
	k.log.Error().Err(err).Msg("the store is full: the monitor goes on in memory, and tries again; until then a crash " +
		"sets it back to what is stored")
	return true
}

// trim drops entries that are held and that no history's latest checkpoint needs,
// if there are more than heldMax bytes. What can't be dropped is bounded by the
// windows and queues of the histories.
func (k *keeper) trim() {
	if k.full == nil || k.heldBytes <= k.heldMax {
		return
	}
	floor := uint64(math.MaxUint64)
	for db, f := range k.floors {
		if c, ok := k.fresh[db]; ok {
			f = c.floor
		}
		floor = min(floor, f)
	}
	n := 0
	for n < len(k.held) && k.held[n].number < floor && k.heldBytes > k.heldMax {
		k.heldBytes -= int64(len(k.held[n].data))
		n++
	}
	if n == 0 {
		return
	}
	k.held = append([]kept(nil), k.held[n:]...)
	k.metrics.unjournaled.Add(float64(n))
	if !k.hole {
		k.hole = true
		k.log.Warn().Msg("the store has been full for so long that records will be missing in what is kept for evidence; " +
			"nothing is missed in judging")
	}
}

// holdLetters keeps dead letters for later, as many as may be held.
func (k *keeper) holdLetters(letters []store.DeadLetter) {
	n := min(len(letters), heldLettersMax-len(k.letters))
	k.letters = append(k.letters, letters[:n]...)
	k.metrics.lettersLost.Add(float64(len(letters) - n))
}

// show tells the metrics what is held.
func (k *keeper) show() {
	k.metrics.queue.WithLabelValues(queueHeld).Set(float64(len(k.held)))
	k.metrics.queueBytes.WithLabelValues(queueHeld).Set(float64(k.heldBytes))
	k.metrics.storeHolding.Set(float64(bit(k.full != nil)))
}

// heldBase is the number of the first alert that is held; those in the store never
// come so far. A number below 2^53 is the same in every JSON parser.
const heldBase = 1 << 50

// holding is how many alerts the store has not taken yet.
func (k *keeper) holding() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.raised)
}

// AlertsBefore calls f for alerts, the latest first: what is held, then what the store
// has; see there.
func (k *keeper) AlertsBefore(ctx context.Context, before uint64, f func(number uint64, a store.Alert) bool) error {
	k.mu.Lock()
	held := make([]store.Alert, 0, len(k.raised))
	newer := make(map[string]bool, len(k.raised))
	for _, id := range k.raised {
		held = append(held, k.alerts[id])
		newer[id] = true
	}
	k.mu.Unlock()
	for i := len(held) - 1; i >= 0; i-- {
		number := uint64(heldBase + i)
		if (before == 0 || number < before) && !f(number, held[i]) {
			return nil
		}
	}
	if before > heldBase {
		before = 0
	}
	return k.Store.AlertsBefore(ctx, before, func(number uint64, a store.Alert) bool {
		return newer[a.ID] || f(number, a)
	})
}
