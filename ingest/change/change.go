// Package change reads what a database's change stream tells of its log: that a transaction committed, and where. It is
// pure.
//
// Two forms are understood, one JSON object each. Debezium's events of PostgreSQL, with their schema or without:
//
//	{"before":…,"after":…,"op":"u","source":{"connector":"postgresql","name":"shop","db":"orders","txId":735,
//	  "sequence":"[\"26842600\",\"26842696\"]", …}, …}
//
// and, for whoever else knows, as the source of logical decoding does:
//
//	{"logged":{"xid":"735","lsn":26842696,"db":"orders","log":"7312…"}}
//
// # Whose LSN
//
// Events of one transaction have LSNs between which those of others lie. The LSN of a change is the transaction's: of
// Debezium's events the first number of source.sequence, where the last transaction before it committed. That is the
// same in all events of a transaction, and grows from one transaction to the next.
package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Change says that a transaction committed, and where in the database's log.
type Change struct {
	XID string // as Number has it
	LSN int64  // above 0
	DB  string // the database, as the stream names it; empty: not told, and any
	Log string // which log that is, as two have nothing to do with each other; empty: not told
}

// first are the members of which one stands first in an event of a change stream, and in no record.
var first = []string{"logged", "before", "schema", "op"}

// Is tells whether a line or message is meant as an event of a change stream. The rest may be wrong; Decode says so.
func Is(b []byte) bool {
	rest, ok := bytes.CutPrefix(space(b), []byte(`{`))
	if !ok {
		return false
	}
	if rest, ok = bytes.CutPrefix(space(rest), []byte(`"`)); !ok {
		return false
	}
	name, rest, ok := bytes.Cut(rest, []byte(`"`))
	switch {
	case !ok:
		return false
	case string(name) == "status": // how a transaction begins and ends, as Debezium tells it in a topic of its own
		rest, _ = bytes.CutPrefix(space(rest), []byte(`:`))
		rest = space(rest)
		return bytes.HasPrefix(rest, []byte(`"BEGIN"`)) || bytes.HasPrefix(rest, []byte(`"END"`))
	}
	return slices.Contains(first, string(name))
}

func space(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// event is an event of either form, as far as it matters.
type event struct {
	Logged  *logged          `json:"logged"`
	Source  *origin          `json:"source"`
	Op      string           `json:"op"`
	Status  string           `json:"status"`
	Payload *json.RawMessage `json:"payload"`
}

type logged struct {
	XID string `json:"xid"`
	LSN int64  `json:"lsn"`
	DB  string `json:"db"`
	Log string `json:"log"`
}

// origin is Debezium's source.
type origin struct {
	Connector string      `json:"connector"`
	Name      string      `json:"name"`
	DB        string      `json:"db"`
	TxID      json.Number `json:"txId"`
	Sequence  string      `json:"sequence"`
}

// Decode decodes an event for which Is holds. ok is false if it tells of no transaction's place: a row of a snapshot,
// a transaction's begin or end, or the first one of a stream, before which nothing is known to have committed. An error
// is a *reject.Error without a position.
func Decode(b []byte) (c Change, ok bool, err error) {
	var e event
	if err := decode(b, &e); err != nil {
		return Change{}, false, err
	}
	if e.Payload != nil && string(*e.Payload) != "null" {
		inner := *e.Payload
		if e = (event{}); len(inner) > 0 {
			if err := decode(inner, &e); err != nil {
				return Change{}, false, err
			}
		}
	}
	switch {
	case e.Logged != nil:
		return e.Logged.change()
	case e.Status != "" || e.Source != nil && e.Op == "r":
		return Change{}, false, nil
	case e.Source == nil:
		return Change{}, false, reject.In("source", reject.MissingField, "a change has a source, or is logged")
	}
	return e.Source.change()
}

func decode(b []byte, e *event) error {
	if len(b) > codec.SizeDefault {
		return reject.New(reject.TooLarge, "the change has %d bytes, more than the limit of %d", len(b), codec.SizeDefault)
	}
	err := json.Unmarshal(b, e)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return reject.In(wrong.Field, reject.WrongType, "a change has another type there than %s", wrong.Value)
	}
	return reject.New(reject.BadJSON, "a change that is not JSON: %v", err)
}

func (l *logged) change() (Change, bool, error) {
	if l.XID == "" {
		return Change{}, false, reject.In("logged.xid", reject.MissingField, "what is logged has an xid, a text")
	}
	if e := codec.CheckLSN(l.LSN); e != nil {
		return Change{}, false, e.Under("logged.lsn")
	}
	return Change{XID: Number(l.XID), LSN: l.LSN, DB: l.DB, Log: l.Log}, true, nil
}

func (o *origin) change() (Change, bool, error) {
	if o.Connector != "postgresql" {
		return Change{}, false, reject.In("source.connector", reject.Unsupported,
			"changes of PostgreSQL are understood, not of %.40q", o.Connector)
	}
	if o.TxID == "" { // of no transaction, such as a heartbeat
		return Change{}, false, nil
	}
	var sequence [2]*string
	if o.Sequence == "" || json.Unmarshal([]byte(o.Sequence), &sequence) != nil {
		return Change{}, false, reject.In("source.sequence", reject.MissingField,
			"want two LSNs, as Debezium from 1.7 on has them, not %.60q", o.Sequence)
	}
	if sequence[0] == nil {
		return Change{}, false, nil
	}
	lsn, err := strconv.ParseInt(*sequence[0], 10, 64)
	if err != nil || lsn <= 0 {
		return Change{}, false, reject.In("source.sequence", reject.OutOfRange, "an LSN is an integer above 0, not %.40q",
			*sequence[0])
	}
	return Change{XID: Number(o.TxID.String()), LSN: lsn, DB: o.DB, Log: o.Name}, true, nil
}

// Number is a transaction's number as the log has it: of PostgreSQL's, which count further in 64 bits, the low 32.
func Number(xid string) string {
	if n, err := strconv.ParseUint(xid, 10, 64); err == nil && n > math.MaxUint32 {
		return strconv.FormatUint(n&math.MaxUint32, 10)
	}
	return xid
}

// Append appends c as a line of JSON, without a line break. Decoding that gives back c.
func (c *Change) Append(b []byte) []byte {
	b = record.AppendJSONString(append(b, `{"logged":{"xid":`...), c.XID)
	b = strconv.AppendInt(append(b, `,"lsn":`...), c.LSN, 10)
	for _, f := range [...]struct{ name, value string }{{"db", c.DB}, {"log", c.Log}} {
		if f.value != "" {
			b = record.AppendJSONString(append(append(append(b, `,"`...), f.name...), `":`...), f.value)
		}
	}
	return append(b, '}', '}')
}
