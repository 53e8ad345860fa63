package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// memStore is a store in memory that outlives the App it is given to, as a disk
// does, and whose commits can be made to fail.
type memStore struct {
	mu          sync.Mutex
	offsets     map[string]map[int]int64
	letters     []store.DeadLetter
	alerts      map[string]store.Alert
	order       []string       // IDs of alerts, in the order in which they came
	pending     map[string]int // news by ID
	life        []byte
	notices     map[string]store.Notice    // all that ever were
	told        []string                   // their IDs, in the order in which they came
	outbox      map[string]map[string]bool // receiver → ids of notices
	receivers   []string
	journal     map[uint64]store.Entry
	last        uint64 // the number of the newest entry that was written last
	checkpoints map[string][]byte
	drop        uint64
	commits     int
	failAt      int  // the number of the commit that fails; 0: none
	dead        bool // once a commit failed, every other does
	news        bool // the last commit that failed was of what is to be told
	full        bool // no commit succeeds
	// spilled is by history and key; checked what it was at the last checkpoint.
	spilled, checked map[string]map[string][]byte
	spills, reads    int // keys
}

var errDisk = errors.New("no space left on device")

func newMemStore(receivers ...string) *memStore {
	return &memStore{offsets: map[string]map[int]int64{}, alerts: map[string]store.Alert{}, pending: map[string]int{}, notices: map[string]store.Notice{}, outbox: map[string]map[string]bool{}, receivers: receivers,
		journal: map[uint64]store.Entry{}, checkpoints: map[string][]byte{}, spilled: map[string]map[string][]byte{}, checked: map[string]map[string][]byte{}}
}

// die lets the n-th commit from now on fail, and all that follow; 0: none. It is to
// be called when the store is opened again: what was spilled since the last
// checkpoints is taken back.
func (s *memStore) die(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.failAt = n > 0, 0
	s.spilled = map[string]map[string][]byte{}
	for db, was := range s.checked {
		s.spilled[db] = maps.Clone(was)
	}
	if n > 0 {
		s.failAt = s.commits + n
	}
}

func (s *memStore) setFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

func (s *memStore) Offsets(_ context.Context, source string) (map[int]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.offsets[source]), nil
}

func (s *memStore) Commit(_ context.Context, c store.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := storetest.Whole(c)
	if err != nil {
		return err
	}
	if s.full {
		return fmt.Errorf("the twin: %w", store.ErrFull)
	}
	if s.commits++; s.commits == s.failAt || s.dead && s.failAt > 0 && s.commits > s.failAt {
		s.news = c.Life != nil
		return errDisk
	}
	for _, e := range c.Journal {
		for n := range s.journal {
			if n >= e.Number {
				delete(s.journal, n)
			}
		}
		e.Data = slices.Clone(e.Data)
		s.journal[e.Number] = e
		s.last = e.Number
	}
	for _, db := range c.Forget {
		delete(s.spilled, db)
		delete(s.checked, db)
	}
	for db, b := range c.Checkpoints {
		if b == nil {
			delete(s.checkpoints, db)
			delete(s.spilled, db)
			delete(s.checked, db)
			continue
		}
		s.checkpoints[db] = slices.Clone(b)
		s.checked[db] = maps.Clone(s.spilled[db])
	}
	if c.Drop > s.drop {
		s.drop = c.Drop
		for n := range s.journal {
			if n < s.drop {
				delete(s.journal, n) // what is evidence only must not be needed
			}
		}
	}
	for source, next := range c.Offsets {
		if s.offsets[source] == nil {
			s.offsets[source] = map[int]int64{}
		}
		maps.Copy(s.offsets[source], next)
	}
	for _, d := range c.DeadLetters {
		d.ID = uint64(len(s.letters) + 1)
		s.letters = append(s.letters, d)
	}
	for _, a := range c.Alerts {
		old, known := s.alerts[a.ID]
		if known && string(old.Body) == string(a.Body) {
			continue
		}
		if !known {
			s.order = append(s.order, a.ID)
		}
		s.pending[a.ID] += a.News
		s.alerts[a.ID] = store.Alert{ID: a.ID, Body: a.Body}
	}
	for _, h := range c.Handled {
		s.pending[h.ID] = max(0, s.pending[h.ID]-h.News)
	}
	for _, n := range c.Notices {
		if _, old := s.notices[n.ID]; !old {
			s.told = append(s.told, n.ID)
		}
		s.notices[n.ID] = n
		for _, r := range s.receivers {
			if s.outbox[r] == nil {
				s.outbox[r] = map[string]bool{}
			}
			s.outbox[r][n.ID] = true
		}
	}
	if c.Life != nil {
		s.life = slices.Clone(c.Life)
	}
	return nil
}

func (s *memStore) DeadLetters(_ context.Context, f func(store.DeadLetter) bool) error {
	s.mu.Lock()
	letters := slices.Clone(s.letters)
	s.mu.Unlock()
	for _, d := range letters {
		if !f(d) {
			break
		}
	}
	return nil
}

func (s *memStore) AlertsBefore(_ context.Context, before uint64, f func(uint64, store.Alert) bool) error {
	s.mu.Lock()
	order, alerts := slices.Clone(s.order), maps.Clone(s.alerts)
	s.mu.Unlock()
	for i := len(order) - 1; i >= 0; i-- {
		if a, ok := alerts[order[i]]; ok && (before == 0 || uint64(i) < before) && !f(uint64(i), a) {
			break
		}
	}
	return nil
}

func (s *memStore) Alert(_ context.Context, id string) (store.Alert, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.alerts[id]
	return a, ok, nil
}

func (s *memStore) Journal(_ context.Context, from uint64, f func(store.Entry) bool) error {
	s.mu.Lock()
	journal := maps.Clone(s.journal)
	s.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(journal)) {
		if n >= from && !f(journal[n]) {
			break
		}
	}
	return nil
}

func (s *memStore) Entry(_ context.Context, number uint64) (store.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.journal[number]
	return e, ok, nil
}

func (s *memStore) Checkpoint(_ context.Context, db string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.checkpoints[db]
	return b, ok, nil
}

func (s *memStore) Checkpoints(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.checkpoints)), nil
}

func (s *memStore) Spill(_ context.Context, db string, pairs []store.KV) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return fmt.Errorf("the twin: %w", store.ErrFull)
	}
	if s.spilled[db] == nil {
		s.spilled[db] = map[string][]byte{}
	}
	for _, kv := range pairs {
		s.spilled[db][kv.Key] = slices.Clone(kv.Value)
	}
	s.spills += len(pairs)
	return nil
}

func (s *memStore) Spilled(_ context.Context, db string, keys []string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([][]byte, len(keys))
	for i, key := range keys {
		if out[i] = s.spilled[db][key]; out[i] != nil {
			s.reads++
		}
	}
	return out, nil
}

func (s *memStore) Maintain(context.Context) error { return nil }

func (s *memStore) Stats(context.Context) (store.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Stats{JournalLast: s.last, JournalDrop: s.drop}, nil
}

func (s *memStore) Pending(_ context.Context, f func(store.Alert) bool) error {
	s.mu.Lock()
	var out []store.Alert
	for _, id := range s.order {
		if a := s.alerts[id]; s.pending[id] > 0 {
			a.News = s.pending[id]
			out = append(out, a)
		}
	}
	s.mu.Unlock()
	for _, a := range out {
		if !f(a) {
			break
		}
	}
	return nil
}

func (s *memStore) Life(context.Context) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life, s.life != nil, nil
}

func (s *memStore) Expire(_ context.Context, e store.Expiry) (int, error) {
	s.mu.Lock()
	all := slices.Clone(s.order)
	s.mu.Unlock()
	n := 0
	for _, id := range all {
		s.mu.Lock()
		a, pending, many := s.alerts[id], s.pending[id], len(s.order)
		s.mu.Unlock()
		if pending > 0 || e.Max == 0 || many <= e.Max || e.Keep != nil && e.Keep(a) {
			continue
		}
		s.mu.Lock()
		delete(s.alerts, id)
		s.order = slices.DeleteFunc(s.order, func(x string) bool { return x == id })
		s.mu.Unlock()
		n++
	}
	return n, nil
}

func (s *memStore) Waiting(ctx context.Context, receiver string, most int) (n int, err error) {
	err = s.Undelivered(ctx, receiver, func(store.Notice) bool {
		n++
		return n < most
	})
	return n, err
}

func (s *memStore) Undelivered(_ context.Context, receiver string, f func(store.Notice) bool) error {
	s.mu.Lock()
	var out []store.Notice
	for _, id := range s.told {
		if s.outbox[receiver][id] {
			out = append(out, s.notices[id])
		}
	}
	s.mu.Unlock()
	for _, n := range out {
		if !f(n) {
			break
		}
	}
	return nil
}

func (s *memStore) Delivered(_ context.Context, receiver, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return fmt.Errorf("the twin: %w", store.ErrFull)
	}
	delete(s.outbox[receiver], id)
	return nil
}

func (s *memStore) Close() error { return nil }
