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
	t, err := d.Token()
	if err != nil {
		return nil, d.explain(err, "")
	}
	switch t {
	case json.Delim('['):
		err = d.sessions()
	case json.Delim('{'):
		err = d.wrapped()
	default:
		err = d.refuse(reject.New(reject.WrongType,
			"want an array of sessions, or an object that has one in its field data, not %s", describe(t)))
	}
	if err == nil {
		err = d.end(true)
	}
	if err != nil {
		return nil, err
	}
	zeroIsInitial(d.txns)
	return one(d.made(in.name, dbcopJSONFormat, record.InitialAbsent, d.txns, noTransaction))
}

// wrapped takes the fields of the object around the sessions.
func (d *dbcopJSON) wrapped() error {
	seen := false
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return d.explain(err, "")
		}
		if t == "data" {
			if seen {
				return d.refuse(reject.In("data", reject.DuplicateField, "the field is there twice"))
			}
			seen = true
			if err := d.open('[', "data"); err != nil {
				return err
			}
			if err := d.sessions(); err != nil {
				return err
			}
			if err := d.end(false); err != nil {
				return err
			}
			continue
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return d.explain(err, fmt.Sprintf("%.40v", t))
		}
	}
	if !seen {
		return d.refuse(reject.In("data", reject.MissingField, "the object has no field data with the sessions"))
	}
	return nil
}

// sessions takes the sessions up to the bracket that ends them.
func (d *dbcopJSON) sessions() error {
	for s := uint64(0); d.More(); s++ {
		if err := d.open('[', fmt.Sprintf("[%d]", s)); err != nil {
			return err
		}
		session := d.session(s)
		for t := 0; d.More(); t++ {
			at := fmt.Sprintf("[%d][%d]", s, t)
			var txn dbcopJSONTxn
			if err := d.Decode(&txn); err != nil {
				return d.explain(err, at)
			}
			if err := d.transaction(session, t+1, &txn); err != nil {
				return d.refuse(err.Under(at))
			}
			d.lineAt(d.InputOffset()) // so that no more line breaks are kept than needed
		}
		if err := d.end(false); err != nil {
			return err
		}
	}
	return nil
}

func (d *dbcopJSON) transaction(session string, seq int, txn *dbcopJSONTxn) *reject.Error {
	if txn.Events == nil {
		return reject.In("events", reject.MissingField, "the transaction has no events")
	}
	if txn.Committed == nil {
		return reject.In("committed", reject.MissingField, "the transaction does not say whether it committed")
	}
	d.ops = d.ops[:0]
	for i := range txn.Events {
		if err := d.event(&txn.Events[i]); err != nil {
			return err.UnderIndex(i).Under("events")
		}
	}
	status := record.Aborted
	if *txn.Committed {
		status = record.Committed
	}
	d.txns = append(d.txns, d.builder.transaction(session, seq, status))
	return nil
}

func (d *dbcopJSON) event(e *dbcopJSONEvent) *reject.Error {
	kind, access, field := record.Read, e.Read, "Read"
	if e.Write != nil {
		kind, access, field = record.Write, e.Write, "Write"
	}
	if (e.Read == nil) == (e.Write == nil) {
		return reject.New(reject.BadStructure, "an event is either a Read or a Write")
	}
	key, err := jsonName("variable", access.Variable)
	if err != nil {
		return err.Under(field)
	}
	v := record.Null
	if isNull := len(access.Version) == 0 || string(access.Version) == "null"; !isNull || kind == record.Write {
		n, err := jsonNumber("version", access.Version)
		if err != nil {
			return err.Under(field)
		}
		v = d.value(n)
	}
	d.add(kind, key, v)
	return nil
}
