package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/isowatch/isowatch/window/store"
)

// Fault is what happens at the planned write.
type Fault uint8

// The faults.
const (
	// Fail: the write returns ErrFault and changes nothing. The store lives on.
	Fail Fault = iota
	// DieBefore: the process dies before the write is durable.
	DieBefore
	// DieAfter: the process dies after the write is durable but before that is
	// told.
	DieAfter
)

var faultNames = [...]string{"fail", "die-before", "die-after"}

func (f Fault) String() string { return faultNames[f] }

// The errors of faults.
var (
	ErrFault = errors.New("storetest: planned failure")
	// ErrDied is returned by all methods of a store whose process has died. Open
	// the disk again.
	ErrDied = errors.New("storetest: dead")
)

// Disk is what survives: stores opened on it see what earlier ones made durable.
// Use one store at a time.
type Disk struct {
	// Split makes each dead letter and all else of a Commit a write of its own, in this order, as a Badger store does
	// with commits that are too large for one transaction. Otherwise a Commit is one write.
	Split bool

	mu     sync.Mutex
	kept   contents
	writes int
	at     int // the planned write, from 1; 0 for none
	fault  Fault
	fired  bool
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{} }

// Plan makes the n-th write from now on, counted from 1, meet a fault.
func (d *Disk) Plan(n int, f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.fault, d.fired = d.writes+n, f, false
}

// Fired tells whether the planned write was reached.
func (d *Disk) Fired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

// Writes counts the writes so far.
func (d *Disk) Writes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// Open opens a store on the disk.
func (d *Disk) Open(opt store.Options) (store.Store, error) {
	opt = opt.WithDefaults()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = d.kept.clone()
	d.kept.spilled = make(map[string]map[string][]byte)
	for db, kept := range d.kept.checked {
		d.kept.spilled[db] = maps.Clone(kept)
	}
	return &memory{disk: d, opt: opt}, nil
}

// contents are what is durable. They are never changed, but replaced: a reader
// keeps its snapshot.
type contents struct {
	offsets map[string]map[int]int64
	letters []store.DeadLetter
	same    []string // their identities
	nextID  uint64
	bytes   int64 // that the letters take

	alerts []stored // in order of first commit
	// notices are those that an outbox has, outbox their IDs by receiver, oldest first.
	notices map[string]store.Notice
	outbox  map[string][]string
	life    []byte
	raised  int64 // alerts since the beginning

	journal     []store.Entry
	drop        uint64
	checkpoints map[string][]byte
	// What each history has spilled: now, and when its checkpoint was taken.
	spilled, checked map[string]map[string][]byte
}

// stored is an alert, whose News are pending, and when it came.
type stored struct {
	store.Alert
	at     int64
	number int64 // of its first commit
}

func (c contents) clone() contents {
	c.letters = slices.Clone(c.letters)
	c.same = slices.Clone(c.same)
	c.alerts = slices.Clone(c.alerts)
	c.offsets = maps.Clone(c.offsets)
	if c.offsets == nil {
		c.offsets = make(map[string]map[int]int64)
	}
	for k, v := range c.offsets {
		c.offsets[k] = maps.Clone(v)
	}
	c.journal = slices.Clone(c.journal)
	c.checkpoints = maps.Clone(c.checkpoints)
	if c.checkpoints == nil {
		c.checkpoints = make(map[string][]byte)
	}
	c.spilled, c.checked = cloneSpilled(c.spilled), cloneSpilled(c.checked)
	c.notices = maps.Clone(c.notices)
	if c.notices == nil {
		c.notices = make(map[string]store.Notice)
	}
	c.outbox = maps.Clone(c.outbox)
	if c.outbox == nil {
		c.outbox = make(map[string][]string)
	}
	for k, v := range c.outbox {
		c.outbox[k] = slices.Clone(v)
	}
	return c
}

func cloneSpilled(from map[string]map[string][]byte) map[string]map[string][]byte {
	out := make(map[string]map[string][]byte, len(from))
	for db, pairs := range from {
		out[db] = maps.Clone(pairs)
	}
	return out
}

// memory is one opening of a disk.
type memory struct {
	disk   *Disk
	opt    store.Options
	mu     sync.Mutex
	dead   bool
	closed bool
}

// read takes a snapshot.
func (m *memory) read(ctx context.Context) (contents, error) {
	if err := ctx.Err(); err != nil {
		return contents{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return contents{}, store.ErrClosed
	case m.dead:
		return contents{}, ErrDied
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.kept, nil
}

// write makes changes durable, one write each, until one meets the fault.
func (m *memory) write(changes ...func(*contents)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return store.ErrClosed
	case m.dead:
		return ErrDied
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.kept.clone()
	defer func() { d.kept = next }()
	for _, change := range changes {
		d.writes++
		hit := d.writes == d.at
		d.fired = d.fired || hit
		if hit && d.fault == Fail {
			return ErrFault
		}
		if !hit || d.fault == DieAfter {
			change(&next)
		}
		if hit {
			m.dead = true
			return ErrDied
		}
	}
	return nil
}

func (m *memory) Commit(ctx context.Context, c store.Commit) error {
	if _, err := m.read(ctx); err != nil {
		return err
	}
	var changes []func(*contents)
	for _, l := range c.DeadLetters {
		l = l.Fit(m.opt.MaxValue)
		l.Value = bytes.Clone(l.Value)
		changes = append(changes, func(to *contents) { m.putLetter(to, l) })
	}
	alerts := slices.Clone(c.Alerts)
	for i := range alerts {
		alerts[i].Body = bytes.Clone(alerts[i].Body)
	}
	notices := slices.Clone(c.Notices)
	for i := range notices {
		notices[i].Body = bytes.Clone(notices[i].Body)
	}
	handled, life := slices.Clone(c.Handled), bytes.Clone(c.Life)
	entries := slices.Clone(c.Journal)
	for i := range entries {
		entries[i].Data = bytes.Clone(entries[i].Data)
	}
	c, err := Whole(c)
	if err != nil {
		return err
	}
	checkpoints := maps.Clone(c.Checkpoints)
	for db, data := range checkpoints {
		checkpoints[db] = bytes.Clone(data)
	}
	forget := slices.Clone(c.Forget)
	changes = append(changes, func(to *contents) {
		for _, a := range alerts {
			m.putAlert(to, a)
		}
		for _, n := range notices {
			m.putNotice(to, n)
		}
		for _, h := range handled {
			for i := range to.alerts {
				if a := &to.alerts[i]; a.ID == h.ID {
					a.News = max(0, a.News-h.News)
				}
			}
		}
		if life != nil {
			to.life = life
		}
		for _, db := range forget {
			delete(to.spilled, db)
			delete(to.checked, db)
		}
		for source, parts := range c.Offsets {
			if to.offsets[source] == nil {
				to.offsets[source] = make(map[int]int64)
			}
			maps.Copy(to.offsets[source], parts)
		}
		to.drop = max(to.drop, c.Drop)
		for _, e := range entries {
			to.journal = append(slices.DeleteFunc(to.journal, func(old store.Entry) bool { return old.Number >= e.Number }), e)
		}
		for db, data := range checkpoints {
			if data == nil {
				delete(to.checkpoints, db)
				delete(to.spilled, db)
				delete(to.checked, db)
				continue
			}
			to.checkpoints[db] = data
			to.checked[db] = maps.Clone(to.spilled[db])
		}
	})
	if m.disk.Split {
		return m.write(changes...)
	}
	return m.write(func(to *contents) {
		for _, change := range changes {
			change(to)
		}
	})
}

func (m *memory) putLetter(to *contents, l store.DeadLetter) {
	id := fmt.Sprint(l.Pos, l.Reason, l.Detail, l.Size, l.Value) // whenever it is set aside
	if slices.Contains(to.same, id) {
		return
	}
	l.ID = to.nextID
	to.nextID++
	to.letters = append(to.letters, l)
	to.same = append(to.same, id)
	to.bytes += l.Stored()
	for len(to.letters) > 1 && (len(to.letters) > m.opt.MaxDeadLetters || to.bytes > m.opt.MaxDeadLetterBytes) {
		to.bytes -= to.letters[0].Stored()
		to.letters, to.same = to.letters[1:], to.same[1:]
	}
}

func (m *memory) putAlert(to *contents, a store.Alert) {
	for i := range to.alerts {
		if old := &to.alerts[i]; old.ID == a.ID {
			if !bytes.Equal(old.Body, a.Body) {
				old.Body, old.News = a.Body, old.News+a.News
			}
			return
		}
	}
	to.alerts = append(to.alerts, stored{a, m.opt.Now().UnixNano(), to.raised})
	to.raised++
}

func (m *memory) putNotice(to *contents, n store.Notice) {
	if _, ok := to.notices[n.ID]; ok || len(m.opt.Receivers) == 0 {
		return
	}
	to.notices[n.ID] = n
	for _, r := range slices.Compact(slices.Sorted(slices.Values(m.opt.Receivers))) {
		to.outbox[r] = append(to.outbox[r], n.ID)
	}
}

func (m *memory) Offsets(ctx context.Context, source string) (map[int]int64, error) {
	c, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[int]int64)
	maps.Copy(out, c.offsets[source])
	return out, nil
}

func (m *memory) DeadLetters(ctx context.Context, f func(store.DeadLetter) bool) error {
	c, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, l := range c.letters {
		l.Value = append([]byte{}, l.Value...)
		if !f(l) {
			break
		}
	}
	return nil
}

func (m *memory) AlertsBefore(ctx context.Context, before uint64, f func(uint64, store.Alert) bool) error {
	c, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(c.alerts) {
		n := uint64(a.number)
		if (before == 0 || n < before) && !f(n, store.Alert{ID: a.ID, Body: append([]byte{}, a.Body...)}) {
			break
		}
	}
	return nil
}

func (m *memory) Alert(ctx context.Context, id string) (store.Alert, bool, error) {
	c, err := m.read(ctx)
	if err != nil {
		return store.Alert{}, false, err
	}
	for _, a := range c.alerts {
		if a.ID == id {
			return store.Alert{ID: a.ID, Body: append([]byte{}, a.Body...)}, true, nil
		}
	}
	return store.Alert{}, false, nil
}

func (m *memory) Pending(ctx context.Context, f func(store.Alert) bool) error {
	c, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, a := range c.alerts {
		a.Body = append([]byte{}, a.Body...)
		if a.News > 0 && !f(a.Alert) {
			break
		}
	}
	return nil
}

func (m *memory) Life(ctx context.Context) ([]byte, bool, error) {
	c, err := m.read(ctx)
	return bytes.Clone(c.life), c.life != nil, err
}

func (m *memory) Expire(ctx context.Context, e store.Expiry) (int, error) {
	c, err := m.read(ctx)
	if err != nil {
		return 0, err
	}
	gone := map[string]bool{}
	for _, a := range c.alerts {
		tooMany := e.Max > 0 && len(c.alerts)-len(gone) > e.Max
		if (a.at < e.Before || tooMany) && a.News == 0 &&
			(e.Keep == nil || !e.Keep(store.Alert{ID: a.ID, Body: append([]byte{}, a.Body...)})) {
			gone[a.ID] = true
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	return len(gone), m.write(func(to *contents) {
		to.alerts = slices.DeleteFunc(to.alerts, func(a stored) bool { return gone[a.ID] && a.News == 0 })
	})
}

func (m *memory) Journal(ctx context.Context, from uint64, f func(store.Entry) bool) error {
	c, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, e := range c.journal {
		if e.Number < from {
			continue
		}
		e.Data = append([]byte{}, e.Data...)
		if !f(e) {
			break
		}
	}
	return nil
}

func (m *memory) Entry(ctx context.Context, number uint64) (store.Entry, bool, error) {
	c, err := m.read(ctx)
	if err != nil {
		return store.Entry{}, false, err
	}
	for _, e := range c.journal {
		if e.Number == number {
			e.Data = append([]byte{}, e.Data...)
			return e, true, nil
		}
	}
	return store.Entry{}, false, nil
}

func (m *memory) Checkpoint(ctx context.Context, db string) ([]byte, bool, error) {
	c, err := m.read(ctx)
	if err != nil {
		return nil, false, err
	}
	data, ok := c.checkpoints[db]
	if !ok {
		return nil, false, nil
	}
	return append([]byte{}, data...), true, nil
}

func (m *memory) Checkpoints(ctx context.Context) ([]string, error) {
	c, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(c.checkpoints)), nil
}

func (m *memory) Spill(ctx context.Context, db string, pairs []store.KV) error {
	if _, err := m.read(ctx); err != nil {
		return err
	}
	pairs = slices.Clone(pairs)
	for i := range pairs {
		pairs[i].Value = bytes.Clone(pairs[i].Value)
	}
	return m.write(func(to *contents) {
		if to.spilled[db] == nil {
			to.spilled[db] = make(map[string][]byte)
		}
		for _, kv := range pairs {
			if kv.Value == nil {
				delete(to.spilled[db], kv.Key)
			} else {
				to.spilled[db][kv.Key] = kv.Value
			}
		}
	})
}

func (m *memory) Spilled(ctx context.Context, db string, keys []string) ([][]byte, error) {
	c, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		if v, ok := c.spilled[db][k]; ok {
			out[i] = append([]byte{}, v...)
		}
	}
	return out, nil
}

// Maintain does nothing: what is kept as evidence is kept for ever.
func (m *memory) Maintain(ctx context.Context) error {
	_, err := m.read(ctx)
	return err
}

func (m *memory) Stats(ctx context.Context) (store.Stats, error) {
	c, err := m.read(ctx)
	if err != nil {
		return store.Stats{}, err
	}
	st := store.Stats{DeadLetters: int64(len(c.letters)), DeadLetterBytes: c.bytes,
		DeadLettersDropped: int64(c.nextID) - int64(len(c.letters)),
		Alerts:             int64(len(c.alerts)), AlertsDropped: c.raised - int64(len(c.alerts)),
		JournalEntries: int64(len(c.journal)), JournalDrop: c.drop}
	for i, e := range c.journal {
		if i == 0 {
			st.JournalFirst = e.Number
		}
		st.JournalLast = e.Number
		st.JournalBytes += int64(len(e.Data))
		if e.Number >= c.drop {
			st.JournalNeeded += int64(len(e.Data))
		}
	}
	return st, nil
}

func (m *memory) Waiting(ctx context.Context, receiver string, most int) (n int, err error) {
	err = m.Undelivered(ctx, receiver, func(store.Notice) bool {
		n++
		return n < most
	})
	return n, err
}

func (m *memory) Undelivered(ctx context.Context, receiver string, f func(store.Notice) bool) error {
	c, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, id := range c.outbox[receiver] {
		n := c.notices[id]
		n.Body = append([]byte{}, n.Body...)
		if !f(n) {
			break
		}
	}
	return nil
}

func (m *memory) Delivered(ctx context.Context, receiver, id string) error {
	if _, err := m.read(ctx); err != nil {
		return err
	}
	return m.write(func(to *contents) {
		to.outbox[receiver] = slices.DeleteFunc(to.outbox[receiver], func(x string) bool { return x == id })
		for _, ids := range to.outbox {
			if slices.Contains(ids, id) {
				return
			}
		}
		delete(to.notices, id)
	})
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
