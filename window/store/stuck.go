package store

import (
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

// Badger 4.9.6 may stand still for good: it starts the parts of a compaction before anybody takes the tables that they
// make, and twelve that are ready by then fill what they wait in. No option rules it out, and nothing but another
// process gets it going. Then a commit does not come back, nor does a transaction begin that is to see it, nor does
// the database close. So these are waited for so many looks, a second apart, or fewer once the process is asked to
// end. Looks and not time: a process that was stopped meanwhile has looked once. A disk that stands still so long can't
// be told from that.
const (
	looksMax  = 60
	looksLeft = 10
)

// await waits for what Badger does. If it does not come back the store is stuck for good: nobody asks Badger for
// anything any more, and the database stays as a kill would leave it.
func (s *Badger) await(do func() error) error {
	if s.stuck.Load() {
		return ErrStuck
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	look := s.opt.look
	if look == nil {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		look = t.C
	}
	for n := 0; n < looksMax && !s.stuck.Load() && (n < looksLeft || s.opt.Stopping == nil || !s.opt.Stopping()); n++ {
		select {
		case err := <-done:
			return err
		case <-look:
		}
	}
	s.stuck.Store(true)
	return ErrStuck
}

// transaction begins one.
func (s *Badger) transaction(update bool) (*badger.Txn, error) {
	var txn *badger.Txn
	db := s.db
	if err := s.await(func() error { txn = db.NewTransaction(update); return nil }); err != nil {
		return nil, err
	}
	return txn, nil
}

// read runs f on a snapshot.
func (s *Badger) read(f func(*badger.Txn) error) error {
	txn, err := s.transaction(false)
	if err != nil {
		return err
	}
	defer txn.Discard()
	return f(txn)
}

// closeDB closes the database, and forgets it.
func (s *Badger) closeDB() error {
	db := s.db
	if s.db = nil; db == nil {
		return nil
	}
	return s.await(db.Close)
}
