package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// alert adds an alert, or replaces its body, and what is pending of it.
func (w *writer) alert(a Alert) error {
	key := nameKey(prefixAlert, a.ID)
	number, body, err := w.numbered(key)
	if err != nil {
		return err
	}
	if body == nil {
		number = w.state.alertNext
		w.state.alertNext++
		w.state.alertCount++
		now := u64(uint64(w.s.opt.Now().UnixNano()))
		return errors.Join(
			w.set(key, append(u64(number), a.Body...)),
			w.set(numberKey(prefixAlertOrder, number), append(now, a.ID...)),
			w.pend(number, a.ID, a.News))
	}
	if bytes.Equal(body, a.Body) {
		return nil
	}
	return errors.Join(w.set(key, append(u64(number), a.Body...)), w.pend(number, a.ID, a.News))
}

// pend adds to what is pending of an alert, or takes from it.
func (w *writer) pend(number uint64, id string, news int) error {
	if news == 0 {
		return nil
	}
	key := numberKey(prefixPending, number)
	before, _, err := w.numbered(key)
	if err != nil {
		return err
	}
	left := int64(before) + int64(news)
	if left <= 0 {
		return w.remove(key)
	}
	return w.set(key, append(u64(uint64(left)), id...))
}

// noticed is how many entries and bytes alerts and notices add to a transaction at most.
func (w *writer) noticed(c Commit) (count, size int) {
	if c.Life != nil {
		count, size = 3, Inlined(len(c.Life))+128
	}
	for _, a := range c.Alerts {
		count += 6
		size += Inlined(len(a.Body)+8) + 4*len(a.ID) + 128
	}
	for _, n := range c.Notices {
		count += 4 + len(w.s.opt.Receivers)
		size += Inlined(len(n.Body)) + 2*len(n.ID) + 256
		for _, r := range w.s.opt.Receivers {
			size += len(r) + len(n.ID) + 64
		}
	}
	for _, h := range c.Handled {
		count++
		size += len(h.ID) + 64
	}
	return count, size
}

// notices puts notices into the outboxes, takes from what is pending, and replaces
// the state of what decided so.
func (w *writer) notices(c Commit) error {
	for _, n := range c.Notices {
		if err := w.notice(n); err != nil {
			return err
		}
	}
	for _, h := range c.Handled {
		number, body, err := w.numbered(nameKey(prefixAlert, h.ID))
		if err == nil && body != nil {
			err = w.pend(number, h.ID, -h.News)
		}
		if err != nil {
			return err
		}
	}
	if c.Life == nil {
		return nil
	}
	return w.set(keyLife, c.Life)
}

// notice puts a notice into the outboxes, unless it is in one.
func (w *writer) notice(n Notice) error {
	receivers := w.s.receivers()
	if len(receivers) == 0 {
		return nil
	}
	key := nameKey(prefixNoticeID, n.ID)
	if there, err := w.get(key); there != nil || err != nil {
		return err
	}
	number := w.state.noticeNext
	w.state.noticeNext++
	err := errors.Join(
		w.set(numberKey(prefixNotice, number), n.Body),
		w.set(key, u64(number, uint64(len(receivers)))))
	for _, r := range receivers {
		err = errors.Join(err, w.set(outboxKey(r, number), []byte(n.ID)))
	}
	return err
}

// receivers are those for which outbox entries are made, each once.
func (s *Badger) receivers() []string {
	return slices.Compact(slices.Sorted(slices.Values(s.opt.Receivers)))
}

// Delivered takes a notice out of that receiver's outbox. One that is not in it
// changes nothing.
func (s *Badger) Delivered(ctx context.Context, receiver, id string) error {
	err := s.changing(ctx, 0, func(w *writer) error { return w.delivered(receiver, id) })
	if err != nil {
		return fmt.Errorf("store %s: notice %s delivered to %s: %w", s.opt.Path, id, receiver, full(err))
	}
	return nil
}

func (w *writer) delivered(receiver, id string) error {
	key := nameKey(prefixNoticeID, id)
	number, rest, err := w.s.numbered(w.txn, key)
	if err != nil || rest == nil {
		return err
	}
	left, rest, err := split(key, rest)
	if err != nil || len(rest) > 0 {
		return damaged(key, "it is cut")
	}
	box := outboxKey(receiver, number)
	if there, err := has(w.txn, box); !there || err != nil {
		return err
	}
	if err := w.remove(box); err != nil {
		return err
	}
	if left > 1 {
		return w.set(key, u64(number, left-1))
	}
	return errors.Join(w.remove(numberKey(prefixNotice, number)), w.remove(key))
}

// changing runs f on a writer and commits what it did, one transaction. room is
// what it adds, in bytes; below 0 it frees some.
func (s *Badger) changing(ctx context.Context, room int64, f func(*writer) error) error {
	done, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.room(room); err != nil {
		return err
	}
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.discard()
	if err := f(w); err != nil {
		return err
	}
	return w.end()
}

// expireMax is how many alerts go in one transaction.
const expireMax = 128

// Expire drops alerts as e says, and returns how many. e.Keep may call what reads,
// Close excepted.
func (s *Badger) Expire(ctx context.Context, e Expiry) (int, error) {
	total, from := 0, uint64(0)
	for {
		victims, next, err := s.victims(ctx, e, from)
		if err == nil && len(victims) > 0 {
			err = s.changing(ctx, -s.opt.Reserve/2, func(w *writer) error { return w.expire(victims) })
		}
		if err != nil {
			return total, fmt.Errorf("store %s: dropping old alerts: %w", s.opt.Path, full(err))
		}
		total += len(victims)
		if next == 0 {
			return total, nil
		}
		from = next
	}
}

// victims are the next alerts to be dropped, and where to go on; 0: there are no
// more.
func (s *Badger) victims(ctx context.Context, e Expiry, from uint64) (out []uint64, next uint64, err error) {
	err = s.view(ctx, "old alerts", func(txn *badger.Txn) error {
		st, err := readState(txn)
		if err != nil {
			return err
		}
		tooMany := int64(0)
		if e.Max > 0 {
			tooMany = int64(st.alertCount) - int64(e.Max)
		}
		first := numberKey(prefixAlertOrder, from)
		return s.values(ctx, txn, first[:1], first, func(key, value []byte) (bool, error) {
			at, id, err := split(key, value)
			if err != nil || len(key) != 9 {
				return false, damaged(key, "it is cut")
			}
			number := binary.BigEndian.Uint64(key[1:])
			if int64(at) >= e.Before && int64(len(out)) >= tooMany {
				return false, nil
			}
			if len(out) == expireMax {
				next = number
				return false, nil
			}
			keep, err := s.keeps(txn, number, id, e.Keep)
			if err == nil && !keep {
				out = append(out, number)
			}
			return true, err
		})
	})
	return out, next, err
}

// keeps tells whether an alert is not to be dropped.
func (s *Badger) keeps(txn *badger.Txn, number uint64, id []byte, keep func(Alert) bool) (bool, error) {
	if pending, err := has(txn, numberKey(prefixPending, number)); pending || err != nil {
		return true, err
	}
	if keep == nil {
		return false, nil
	}
	body, err := s.body(txn, id, noAlert)
	if err != nil || body == nil {
		return err == nil, err
	}
	return keep(Alert{ID: string(id), Body: body}), nil
}

// expire drops alerts of which nothing became pending meanwhile.
func (w *writer) expire(numbers []uint64) error {
	for _, number := range numbers {
		pending, err := has(w.txn, numberKey(prefixPending, number))
		if err != nil {
			return err
		}
		_, id, err := w.s.numbered(w.txn, numberKey(prefixAlertOrder, number))
		if err != nil {
			return err
		}
		if pending || id == nil {
			continue
		}
		if err := errors.Join(w.remove(nameKey(prefixAlert, id)), w.remove(numberKey(prefixAlertOrder, number))); err != nil {
			return err
		}
		w.state.alertCount--
	}
	return nil
}
