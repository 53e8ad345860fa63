package history

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// dbcop's JSON: an array of sessions of
//
//	{"events":[{"Read":{"variable":V,"version":N|null}},{"Write":{"variable":V,"version":N}}],"committed":true}
//
// bare, or under "data" beside "params", "info", "start" and "end". Versions mean
// what they mean in its text (hist.go): null, and 0 that no committed transaction
// wrote, are the initial state.

const dbcopJSONFormat = "dbcop-json"

func looksDbcopJSON(head []byte) bool {
	switch brackets, fields := shape(head); brackets {
	case "{":
		return slices.Contains(fields, "data") || slices.Contains(fields, "params")
	case "[[{":
		return slices.Contains(fields, "events") || slices.Contains(fields, "committed")
	}
	return false
}

// dbcopJSONTxn is one transaction.
type dbcopJSONTxn struct {
	Events    []dbcopJSONEvent `json:"events"`
	Committed *bool            `json:"committed"`
}

type dbcopJSONEvent struct {
	Read, Write *dbcopJSONAccess
}

type dbcopJSONAccess struct {
	Variable json.RawMessage `json:"variable"`
	Version  json.RawMessage `json:"version"`
}

type dbcopJSON struct {
	builder
	*jsonInput
	txns []record.Transaction
}

func readDbcopJSON(in *input) ([]History, error) {
	j, err := newJSON(in)
	if err != nil {
		return nil, err
	}
	d := &dbcopJSON{builder: newBuilder(), jsonInput: j}
	switch t := d.token(); t {
	case json.Delim('['):
		d.sessions()
	case json.Delim('{'):
		d.wrapped()
	default:
		d.fail(reject.New(reject.WrongType,
			"want an array of sessions, or an object that has one in its field data, not %s", describe(t)))
	}
	if d.end(); d.bad != nil {
		return nil, d.bad
	}
	zeroIsInitial(d.txns)
	return one(d.made(in.name, dbcopJSONFormat, record.InitialAbsent, d.txns, noTransaction))
}

// wrapped takes the fields of the object around the sessions.
func (d *dbcopJSON) wrapped() {
	seen := false
	for d.more() {
		t := d.token()
		switch {
		case d.bad != nil:
		case t != "data":
			d.piece(new(json.RawMessage))
			d.under(fmt.Sprintf("%.40v", t))
		case seen:
			d.fail(reject.In("data", reject.DuplicateField, "the field is there twice"))
		default:
			seen = true
			d.open('[')
			d.under("data")
			d.sessions()
			d.token()
		}
	}
	if !seen {
		d.fail(reject.In("data", reject.MissingField, "the object has no field data with the sessions"))
	}
}

// sessions takes the sessions up to the bracket that ends them.
func (d *dbcopJSON) sessions() {
	for s := uint64(0); d.more(); s++ {
		d.open('[')
		d.under(fmt.Sprintf("[%d]", s))
		session := d.session(s)
		for t := 0; d.more(); t++ {
			var txn dbcopJSONTxn
			if d.piece(&txn) {
				d.transaction(session, t+1, &txn)
			}
			d.under(fmt.Sprintf("[%d][%d]", s, t))
			d.lineAt(d.InputOffset()) // so that no more line breaks are kept than needed
		}
		d.token()
	}
}

func (d *dbcopJSON) transaction(session string, seq int, txn *dbcopJSONTxn) {
	if txn.Events == nil {
		d.fail(reject.In("events", reject.MissingField, "the transaction has no events"))
		return
	}
	if txn.Committed == nil {
		d.fail(reject.In("committed", reject.MissingField, "the transaction does not say whether it committed"))
		return
	}
	d.ops = d.ops[:0]
	for i := 0; i < len(txn.Events) && d.bad == nil; i++ {
		d.event(&txn.Events[i])
		d.underIndex(i)
		d.under("events")
	}
	d.txns = append(d.txns, d.builder.transaction(session, seq, either(*txn.Committed, record.Committed, record.Aborted)))
}

func (d *dbcopJSON) event(e *dbcopJSONEvent) {
	kind, access, field := record.Read, e.Read, "Read"
	if e.Write != nil {
		kind, access, field = record.Write, e.Write, "Write"
	}
	if (e.Read == nil) == (e.Write == nil) {
		d.fail(reject.New(reject.BadStructure, "an event is either a Read or a Write"))
		return
	}
	key, v := d.name("variable", access.Variable), record.Null
	if kind == record.Write || !isNull(access.Version) {
		v = d.value(d.number("version", access.Version))
	}
	d.under(field)
	d.add(kind, key, v)
}
