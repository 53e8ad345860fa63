package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/store"
	"github.com/isowatch/isowatch/window/stream"
)

// previousRun is what the run before left of the input.
type previousRun struct {
	// resume are the offsets to go on at, with their identities, as sources take
	// them; empty: the input was not read yet.
	resume   map[int]int64
	seen     map[int]int64
	states   map[int][]byte
	next     uint64 // the number of the next entry
	since    int64  // marks.since; 0: not known
	complete bool
	// unread: nothing of the input was written yet.
	unread bool
	// anew: what earlier runs judged of the input is gone, as the store was used for another one since.
	anew bool
	// foreign: another input used the store last. left are the names of what it has among the
	// checkpoints: none of it is of use, and it goes when something of this one is written.
	foreign bool
	left    []string
	// from is the first entry that a history has not consumed.
	from        uint64
	checkpoints map[string]*checkpoint
}

// previous reads what the run before stored.
func (a *App) previous(ctx context.Context) (*previousRun, error) {
	s := &previousRun{checkpoints: map[string]*checkpoint{}, states: map[int][]byte{}}
	if a.origin == "" {
		s.next, s.from = 1, 1
		if s.unread = a.begins; s.unread {
			return s, nil
		}
		read, err := a.store.Offsets(ctx, passingState)
		if s.unread = len(read) == 0; err == nil && s.unread {
			// Before anything is read: however this run ends, the next one knows that there was one.
			noted := store.Commit{Offsets: map[string]map[int]int64{passingState: {stateNext: int64(s.next)}}}
			err = a.awaitRoom(ctx, func() error { return a.store.Commit(ctx, noted) })
		}
		return s, err
	}
	var err error
	if s.resume, err = a.store.Offsets(ctx, a.origin); err != nil {
		return nil, err
	}
	identities, err := a.store.Offsets(ctx, a.origin+identitySuffix)
	if err != nil {
		return nil, err
	}
	for n, id := range identities {
		s.resume[source.IdentityKey(n)] = id
	}
	if s.seen, err = a.store.Offsets(ctx, a.origin+seenSuffix); err != nil {
		return nil, err
	}
	state, err := a.store.Offsets(ctx, a.origin+stateSuffix)
	if err != nil {
		return nil, err
	}
	s.next, s.complete, s.anew = uint64(state[stateNext]), state[stateComplete] == 1, state[stateAnew] == 1
	s.since = state[stateTime]
	s.unread = s.next == 0
	names, err := a.store.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	journal, err := a.store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	checkpoints, err := a.checkpoints(ctx, names, s)
	if err != nil {
		return nil, err
	}
	if s.foreign {
		a.goOn(s, names, journal)
	}
	if s.anew && a.ends() {
		return nil, &source.StartupError{What: fmt.Sprintf("%s was read before, and the store %s was used for another "+
			"input since: what was judged of it then is gone, so that there is no verdict on all of it", a.name,
			a.cfg.Store.Path),
			Do: "give each input a store of its own (store.path), or judge it from its beginning with monitor run --rebuild, " +
				"which sets this one aside"}
	}
	if s.foreign {
		return s, nil
	}
	s.next = max(s.next, 1)
	s.from = s.next
	config, err := a.fingerprint()
	if err != nil {
		return nil, err
	}
	for db, c := range checkpoints {
		if c.consumed >= s.next {
			return nil, damaged(fmt.Errorf("history %q is at entry %d, and the journal ends before %d", db, c.consumed, s.next))
		}
		if c.tallies, err = a.countedUpTo(ctx, db, c); err != nil {
			return nil, err
		}
		if other := len(c.state) > 0 && !stream.Current(c.state); other || c.config != config {
			a.log.Warn().Str("db", db).Msg("the configuration or the version of the monitor has changed: the history is judged " +
				"anew from the records that are kept, with partial coverage")
			if c.config != config {
				c.told.doubt()
			}
			c = c.anew(config)
		}
		if c.whole && !a.untilEnd {
			a.log.Warn().Str("db", db).Msg("the store was used with --until-end, which judges all as one segment: the history " +
				"is judged anew from the records that are kept, in segments, with partial coverage")
			c = c.anew(config)
			c.whole = false
		}
		if c.proved, err = a.provedAfter(ctx, db, c); err != nil {
			return nil, err
		}
		s.checkpoints[db] = c
		s.from = min(s.from, c.consumed+1)
	}
	return s, nil
}

// checkpoints reads those of histories, and into s what waits of events, or that another
// input has used the store since this one did: then neither journal nor checkpoints are of
// this one.
func (a *App) checkpoints(ctx context.Context, names []string, s *previousRun) (map[string]*checkpoint, error) {
	of, err := a.store.Offsets(ctx, journalOf)
	if err != nil {
		return nil, err
	}
	if input, known := of[0]; known {
		s.foreign = input != inputHash(a.origin)
	}
	out := map[string]*checkpoint{}
	for _, name := range names {
		if s.foreign {
			return nil, nil
		}
		b, ok, err := a.store.Checkpoint(ctx, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if n, ok := strings.CutPrefix(name, eventsPrefix); ok {
			partition, err := strconv.Atoi(n)
			if err != nil {
				return nil, damaged(err)
			}
			s.states[partition] = b
			continue
		}
		if !HistoryInStore(name) {
			continue // read with the checkpoint that it follows
		}
		c, err := parseCheckpoint(name, b)
		if err != nil {
			return nil, damaged(err)
		}
		out[name], s.foreign = c, c.origin != a.origin
	}
	return out, nil
}

// goOn makes of s where the input goes on, or begins, in a store that another one used last:
// behind all that is in the journal, so that no entry takes another's place, and without what
// was judged of it.
func (a *App) goOn(s *previousRun, left []string, journal store.Stats) {
	if !s.unread {
		s.anew = true
		if !a.ends() {
			a.log.Warn().Str("source", a.name).Msg("the store was used for another input since this one was read: its " +
				"histories are judged anew from here on, with partial coverage; give each input a store of its own (store.path)")
		}
	}
	s.left, s.states, s.complete = left, map[int][]byte{}, false
	s.next = max(s.next, journal.JournalLast+1, journal.JournalDrop)
	s.from = s.next
}

// ends tells whether the input has an end that is reported.
func (a *App) ends() bool {
	return a.untilEnd || a.cfg.Source.File != nil && !a.cfg.Source.File.Follow
}

// provedAfter is what the run before proved after a checkpoint; nil if nothing is known
// of that.
func (a *App) provedAfter(ctx context.Context, db string, c *checkpoint) (*proved, error) {
	b, ok, err := a.store.Checkpoint(ctx, provedPrefix+db)
	if err != nil || !ok {
		return nil, err
	}
	p, err := parseProved(db, b)
	if err != nil {
		return nil, damaged(err)
	}
	if !p.follows(c) {
		return nil, nil
	}
	return p, nil
}

// countedUpTo is what the run before counted, and up to where: not before a checkpoint.
func (a *App) countedUpTo(ctx context.Context, db string, c *checkpoint) (*tallies, error) {
	counts := newTallies(c.born)
	b, ok, err := a.store.Checkpoint(ctx, talliesPrefix+db)
	if err == nil && ok {
		counts, err = parseTallies(db, b)
	}
	if err != nil {
		return nil, damaged(err)
	}
	counts.passed(c.consumed + 1)
	return counts, nil
}

// anew is a checkpoint of a history that begins again where its records do.
func (c *checkpoint) anew(config uint64) *checkpoint {
	c.told.anew()
	return &checkpoint{origin: c.origin, config: config, born: c.floor, coverage: record.CoveragePartial, whole: c.whole,
		headed: true, consumed: c.floor - 1, floor: c.floor, told: c.told, tallies: c.tallies}
}

// damaged says that the store is.
func damaged(err error) error {
	return fmt.Errorf("the store is %w: %w", store.ErrDamaged, err)
}

// advise says what to do about a damaged store.
func advise(err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w; monitor store verify says what is damaged, and monitor run --rebuild sets the store aside "+
		"and begins from the input", err)
}

// start makes the worker of a history that goes on from c, and runs it. It calls back once
// when it has worked off what the run before had written.
func (in *ingest) start(db string, c *checkpoint, back func()) {
	p := c.proved
	if p == nil {
		p = provedSince(c)
	}
	counts := c.tallies
	if counts == nil || counts.born != c.born { // of what is found again it is known that it was counted
		counts = newTallies(c.born)
		if c.tallies != nil {
			counts.through = c.tallies.through
		}
	}
	w := &worker{setting: in.setting, db: db, proved: p, keeper: in.keeper, teller: in.teller, status: in.status,
		queue: newQueue(in.tuning.queue, in.pool), told: c.told, tallies: counts,
		born: c.born, coverage: c.coverage, whole: c.whole, config: c.config, replayed: in.replayed, back: back,
		causes: causes{}, beat: in.pulse.of("history " + db)}
	w.begin = func(ctx context.Context) (*stream.History, error) {
		cfg, err := in.windowOf(db, c.coverage, c.whole)
		cfg.Measure, cfg.Stop, cfg.Predicates = w.measure, w.stopping.Load, w.predicates
		if err != nil || len(c.state) == 0 {
			h := stream.New(cfg)
			if c.headed {
				h.Headed()
			}
			return h, err
		}
		h, err := stream.Restore(cfg, c.state, loader(ctx, in.keeper))
		c.state = nil // it may be large
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, damaged(err)
		}
		return h, nil
	}
	w.consumed.Store(c.consumed)
	in.metrics.begin(db, in.cfg.Levels)
	in.insert(w)
	in.teller.watches(w)
	in.group.Go(func() error { return w.run(in.working, in.going, func() bool { return in.ended }) })
}

// insert puts a history among the others.
func (in *ingest) insert(w *worker) {
	in.workers[w.db] = w
	at, _ := slices.BinarySearchFunc(in.order, w.db, func(w *worker, db string) int { return strings.Compare(w.db, db) })
	in.order = slices.Insert(in.order, at, w)
}

// restore begins the histories that the store has, and gives them the entries that
// they have not consumed. It returns when these are in the queues, or left in the journal,
// from where the workers take them: it waits for no history, so that the input is opened.
func (in *ingest) restore(ctx context.Context, s *previousRun) error {
	in.keeper.take(s.left)
	if !s.foreign {
		in.replayed = s.next - 1
	}
	in.behind.Store(int64(len(s.checkpoints)))
	for n := range s.states {
		in.keeper.waited[n] = true
	}
	births := map[string]checkpointed{}
	for db, c := range s.checkpoints {
		in.keeper.floors[db] = c.floor
		if len(c.state) == 0 {
			births[db] = checkpointed{data: c.append(nil), floor: c.floor}
		}
	}
	if len(births) > 0 { // what they spilled before they began anew is of no use to them
		if err := in.keeper.append(ctx, nil, nil, births); err != nil {
			return err
		}
	}
	for db, c := range s.checkpoints {
		in.start(db, c, in.back)
	}
	want, failed := s.from, error(nil)
	err := in.keeper.Journal(ctx, s.from, func(x store.Entry) bool {
		if x.Number >= s.next {
			return false
		}
		if x.Number != want {
			failed = damaged(fmt.Errorf("the journal has no entry %d", want))
			return false
		}
		var e *entry
		if e, failed = parseEntry(x.Number, x.Data); failed != nil {
			failed = damaged(failed)
			return false
		}
		failed = in.replay(e)
		want++
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if want < s.next {
		return damaged(fmt.Errorf("the journal ends before entry %d", want))
	}
	return nil
}

// replay hands an entry of the run before to every history that has not consumed it.
func (in *ingest) replay(e *entry) error {
	if in.going.Err() != nil {
		return in.halted()
	}
	mine := shares(e)
	for _, w := range in.order {
		if e.number <= w.consumed.Load() {
			continue
		}
		if x := e.queued(mine[w.db]); !w.queue.offer(x) {
			w.queue.leave(x)
		}
	}
	return nil
}

// back takes note that a history has worked off what the run before had written. It is called by the worker.
func (in *ingest) back() {
	if in.behind.Add(-1) > 0 {
		return
	}
	took := in.now().Sub(in.began)
	in.metrics.restart.Set(took.Seconds())
	in.ready.ready(whoRestart)
	in.log.Info().Str("took", took.Round(time.Millisecond).String()).
		Msg("all histories have caught up with what the last run had read")
}

// loader reads batches of the journal again. It keeps the last one: references come
// in the order of the journal.
func loader(ctx context.Context, st store.Store) func(uint64) (*decode.Batch, error) {
	var last *entry
	return func(number uint64) (*decode.Batch, error) {
		if last != nil && last.number == number {
			return last.batch, nil
		}
		x, ok, err := st.Entry(ctx, number)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("the journal has no entry %d", number)
		}
		if last, err = parseEntry(number, x.Data); err != nil {
			return nil, err
		}
		return last.batch, nil
	}
}

// again tells whether a run that stores nothing is followed by one that reads from the same
// place: what is read where the input ends now would otherwise move on with it.
func (s *previousRun) again(k *config.Kafka) bool { return !s.unread || s.fresh(k) }

// fresh tells whether the input is read from its beginning.
func (s *previousRun) fresh(k *config.Kafka) bool {
	return len(s.resume) == 0 && (k == nil || k.Start.At == config.StartStored || k.Start.At == config.StartEarliest)
}
