package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
)

// Load is clients at work on a Bank: each is a session that transfers money and
// audits accounts, one transaction after the other.
type Load struct {
	Bank    *Bank
	Clients int
	Seed    uint64
	// Record is told of every transaction, by the client that ran it.
	Record func(record.Transaction)

	Committed, Refused atomic.Int64
}

// Share of transactions that are audits, accounts that one audits, and the
// times between and inside transactions: enough contention that conflicts are
// common, few enough transactions that a person could read along.
const (
	auditShare    = 0.3
	auditAccounts = 3
	pauseMax      = 8 * time.Millisecond
	thinkMax      = 3 * time.Millisecond
)

// Run funds the bank and works until ctx ends or a store operation fails.
func (l *Load) Run(ctx context.Context) error {
	rec, err := l.Bank.Fund()
	if err != nil {
		return err
	}
	l.record(rec, "bank", 0)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, l.Clients)
	for i := range l.Clients {
		wg.Go(func() {
			if err := l.client(ctx, i); err != nil {
				errs[i] = fmt.Errorf("client %d: %w", i, err)
				cancel() // the others stop too
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *Load) client(ctx context.Context, i int) error {
	rng := rand.New(rand.NewPCG(l.Seed, uint64(i)))
	session := fmt.Sprintf("client-%d", i)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for seq := int64(0); ; seq++ {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		var rec record.Transaction
		var err error
		if pick := rng.Perm(l.Bank.accounts); rng.Float64() < auditShare {
			rec, err = l.Bank.Audit(pick[:min(auditAccounts, len(pick))]...)
		} else {
			rec, err = l.Bank.Transfer(pick[0], pick[1], 1+rng.IntN(50), time.Duration(rng.Int64N(int64(thinkMax))))
		}
		if err != nil {
			return err
		}
		l.record(rec, session, seq)
		pause.Reset(time.Duration(rng.Int64N(int64(pauseMax))))
	}
}

func (l *Load) record(rec record.Transaction, session string, seq int64) {
	if rec.Status == record.Committed {
		l.Committed.Add(1)
	} else {
		l.Refused.Add(1)
	}
	rec.DB, rec.Session, rec.Seq, rec.HasSeq = DB, session, seq, true
	rec.ID = fmt.Sprintf("%s#%d", session, seq)
	l.Record(rec)
}

// DB is the name of the demo's history.
const DB = "bank"
