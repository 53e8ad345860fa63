package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/window/store"
)

// memory is an outbox in memory; the rest of store.Store is not used here.
type memory struct {
	store.Store
	mu     sync.Mutex
	boxes  map[string][]store.Notice
	failed int // the next so many calls fail
	// The most that one call of Undelivered gave out, if that is measured.
	measure         bool
	most, mostBytes int
}

func newMemory(receivers []string, ids ...string) *memory {
	m := &memory{boxes: map[string][]store.Notice{}}
	for _, r := range receivers {
		m.boxes[r] = nil
	}
	for _, id := range ids {
		m.add(id)
	}
	return m
}

func (m *memory) add(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.boxes {
		m.boxes[r] = append(m.boxes[r], store.Notice{ID: id, Body: []byte(`{"id":"` + id + `"}`)})
	}
}

// put adds a notice with a body.
func (m *memory) put(id, body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.boxes {
		m.boxes[r] = append(m.boxes[r], store.Notice{ID: id, Body: []byte(body)})
	}
}

func (m *memory) fail(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = n
}

// left are the ids in a receiver's outbox.
func (m *memory) left(receiver string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := []string{}
	for _, a := range m.boxes[receiver] {
		ids = append(ids, a.ID)
	}
	return ids
}

func (m *memory) failing() error {
	if m.failed > 0 {
		m.failed--
		return errors.New("disk full")
	}
	return nil
}

func (m *memory) Undelivered(ctx context.Context, receiver string, f func(store.Notice) bool) error {
	m.mu.Lock()
	box, err := slices.Clone(m.boxes[receiver][:min(len(m.boxes[receiver]), 2*deliver.ScanMax)]), m.failing() // more is not read
	m.mu.Unlock()
	if err != nil {
		return err
	}
	n, size := 0, 0
	for _, a := range box {
		n, size = n+1, size+len(a.Body)
		if !f(a) {
			break
		}
	}
	if m.measure {
		m.mu.Lock()
		m.most, m.mostBytes = max(m.most, n), max(m.mostBytes, size)
		m.mu.Unlock()
	}
	return ctx.Err()
}

func (m *memory) Delivered(ctx context.Context, receiver, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing(); err != nil {
		return err
	}
	i := slices.IndexFunc(m.boxes[receiver], func(a store.Notice) bool { return a.ID == id })
	if i < 0 {
		return fmt.Errorf("%s is not in the outbox of %s", id, receiver)
	}
	if i == 0 {
		m.boxes[receiver] = m.boxes[receiver][1:]
	} else {
		m.boxes[receiver] = slices.Delete(m.boxes[receiver], i, i+1)
	}
	return ctx.Err()
}

// call is one Notify.
type call struct {
	id string
	at time.Time
}

// answers is a Receiver that answers by a function and remembers the calls.
type answers struct {
	mu     sync.Mutex
	calls  []call
	answer func(n int, id string) (time.Duration, bool, error) // n counts from 1
}

func (r *answers) Close() error { return nil }

func (r *answers) Notify(ctx context.Context, body []byte, id string) (time.Duration, bool, error) {
	r.mu.Lock()
	r.calls = append(r.calls, call{id, time.Now()})
	n := len(r.calls)
	r.mu.Unlock()
	if r.answer == nil {
		return 0, false, nil
	}
	return r.answer(n, id)
}

func (r *answers) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := []string{}
	for _, c := range r.calls {
		ids = append(ids, c.id)
	}
	return ids
}

// events is an Observer that remembers.
type events struct {
	mu  sync.Mutex
	all []deliver.Event
}

func (e *events) Observe(ev deliver.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) outcomes() []deliver.Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []deliver.Outcome
	for _, ev := range e.all {
		out = append(out, ev.Outcome)
	}
	return out
}

// item is a notice as the outbox has it.
func item(id string, body []byte) store.Notice { return store.Notice{ID: id, Body: body} }
