package demo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/isowatch/isowatch/ingest/record"
)

// openingBalance is what every account holds at first.
const openingBalance = 1000

// Bank is a number of accounts in a Badger store. Its methods may be called by
// many clients at once.
type Bank struct {
	dir      string
	accounts int
	now      func() int64  // the clients' clock, Unix nanoseconds
	writes   atomic.Uint64 // so far, over all clients: makes values unique

	mu sync.RWMutex // held for reading by every transaction, for writing by Reopen
	db *badger.DB
}

// OpenBank opens the store in dir with conflict detection on. now is the clock
// that records are stamped with, in Unix nanoseconds; it must not run backwards.
func OpenBank(dir string, accounts int, now func() int64) (*Bank, error) {
	b := &Bank{dir: dir, accounts: accounts, now: now}
	if err := b.open(true); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bank) open(detectConflicts bool) error {
	opt := badger.DefaultOptions(b.dir).
		WithLogger(nil).
		WithDetectConflicts(detectConflicts).
		// Small buffers: the whole bank is a few kilobytes.
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithBlockCacheSize(1 << 20).
		WithIndexCacheSize(1 << 20).
		WithValueLogFileSize(16 << 20).
		WithNumCompactors(2).
		WithMetricsEnabled(false)
	db, err := badger.Open(opt)
	if err != nil {
		return fmt.Errorf("open the bank's store in %s: %w", b.dir, err)
	}
	b.db = db
	return nil
}

// Reopen closes the store when the running transactions have ended and opens
// the same files again, with or without conflict detection.
func (b *Bank) Reopen(detectConflicts bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close the bank's store: %w", err)
	}
	return b.open(detectConflicts)
}

// Close closes the store; no transaction may follow.
func (b *Bank) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.db.Close()
}

func account(i int) string { return "acct:" + strconv.Itoa(i) }

// Fund gives every account its opening balance, in one transaction.
func (b *Bank) Fund() (record.Transaction, error) {
	return b.transact(true, func(t *teller) error {
		for i := range b.accounts {
			if err := t.write(account(i), openingBalance); err != nil {
				return err
			}
		}
		return nil
	})
}

// Transfer moves amount, or as much of it as there is, from one account to
// another, thinking for a while between looking at the balances and changing
// them.
func (b *Bank) Transfer(from, to, amount int, think time.Duration) (record.Transaction, error) {
	return b.transact(true, func(t *teller) error {
		a, err := t.read(account(from))
		if err != nil {
			return err
		}
		c, err := t.read(account(to))
		if err != nil {
			return err
		}
		time.Sleep(think)
		amount := min(amount, max(a, 0))
		if err := t.write(account(from), a-amount); err != nil {
			return err
		}
		return t.write(account(to), c+amount)
	})
}

// Audit reads some accounts.
func (b *Bank) Audit(accounts ...int) (record.Transaction, error) {
	return b.transact(false, func(t *teller) error {
		for _, i := range accounts {
			if _, err := t.read(account(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Total is the money in the bank. Transfers do not change it, if they are
// isolated.
func (b *Bank) Total() (total int, err error) {
	_, err = b.transact(false, func(t *teller) error {
		for i := range b.accounts {
			n, err := t.read(account(i))
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return total, err
}

// teller is a transaction and the record of it.
type teller struct {
	bank *Bank
	txn  *badger.Txn
	rec  record.Transaction
}

// transact runs one transaction and returns its record, without session and
// id. A transaction that the store refused is no error: its record is aborted.
func (b *Bank) transact(update bool, f func(*teller) error) (record.Transaction, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t := &teller{bank: b, rec: record.Transaction{HasTimes: true, Start: b.now()}}
	t.txn = b.db.NewTransaction(update)
	defer t.txn.Discard()
	if err := f(t); err != nil {
		return t.rec, err
	}
	err := t.txn.Commit()
	t.rec.End = b.now()
	if errors.Is(err, badger.ErrConflict) {
		t.rec.Status = record.Aborted
		err = nil
	}
	return t.rec, err
}

func (t *teller) read(key string) (balance int, err error) {
	item, err := t.txn.Get([]byte(key))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	raw, err := item.ValueCopy(nil)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	text, _, _ := strings.Cut(string(raw), "#")
	if balance, err = strconv.Atoi(text); err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	t.rec.Ops = append(t.rec.Ops, record.Op{Kind: record.Read, Key: key, Value: record.String(string(raw))})
	return balance, nil
}

func (t *teller) write(key string, balance int) error {
	value := fmt.Sprintf("%d#%d", balance, t.bank.writes.Add(1))
	if err := t.txn.Set([]byte(key), []byte(value)); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	t.rec.Ops = append(t.rec.Ops, record.Op{Kind: record.Write, Key: key, Value: record.String(value)})
	return nil
}
