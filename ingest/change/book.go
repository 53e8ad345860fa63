package change

import (
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Book is what is known of where transactions committed. The zero Book is empty.
type Book struct {
	logs map[string]string // by database: its log
	lsns map[place]int64
}

// place is what a transaction is found by.
type place struct{ db, xid string }

// Add takes in a change. What was said of a transaction first holds: a stream may send an event again. An error is a
// *reject.Error without a position: the database's changes come from another log, whose LSNs can't be compared.
func (b *Book) Add(c Change) error {
	if b.lsns == nil {
		b.logs, b.lsns = map[string]string{}, map[place]int64{}
	}
	switch log, known := b.logs[c.DB]; {
	case !known:
		b.logs[c.DB] = c.Log
	case log != c.Log:
		return reject.New(reject.Contradiction, "changes of database %.60q come from the log %.60q, and before came from %.60q",
			c.DB, c.Log, log)
	}
	if at := (place{c.DB, c.XID}); b.lsns[at] == 0 {
		b.lsns[at] = c.LSN
	}
	return nil
}

// Drop forgets a change, and tells whether it was there.
func (b *Book) Drop(c Change) bool {
	at := place{c.DB, c.XID}
	_, was := b.lsns[at]
	delete(b.lsns, at)
	return was
}

// LSN is where a transaction of a history committed, or 0. A history without a name is of the only database there is.
func (b *Book) LSN(db, xid string) int64 {
	xid = Number(xid)
	for _, of := range [2]string{db, ""} {
		if lsn := b.lsns[place{of, xid}]; lsn != 0 {
			return lsn
		}
	}
	if db == record.DefaultDB && len(b.logs) == 1 {
		for of := range b.logs {
			return b.lsns[place{of, xid}]
		}
	}
	return 0
}
