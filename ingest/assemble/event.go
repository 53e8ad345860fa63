package assemble

import "github.com/isowatch/isowatch/ingest/record"

// Kind says what an event is.
type Kind uint8

// The kinds. JSON names the last one by its outcome: commit, abort or unknown.
const (
	Begin Kind = iota // a transaction begins
	Step              // one operation of it
	End               // its outcome is known, or known to stay unknown
)

var kindNames = [...]string{"begin", "op", "end"}

func (k Kind) String() string { return kindNames[k] }

// Event is one message of a transaction that is told as it happens. Session and
// Txn, which tie it to the others, are never empty once decoded.
type Event struct {
	Kind    Kind
	HasSeq  bool
	HasTime bool
	Status  record.Status // of an End
	Session string
	Txn     string // the transaction's name in its session
	DB      string // of a Begin; never empty once decoded
	ID      string // of a Begin; empty: it has to be made
	Seq     int64  // of a Begin, if HasSeq
	// Time is the client's clock, if HasTime: the start that a Begin tells, the end
	// that an End tells. Unix nanoseconds.
	Time int64
	// N is the number of a Step's operation, from 0, or how many operations an End
	// says there were.
	N  uint32
	Op record.Op // of a Step
}

// OpsLimit bounds what an event may say of operations: their numbers are below
// it, whatever Options.OpsMax is.
const OpsLimit = 1 << 24
