package history

import (
	"fmt"

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

var looksDbcopJSON = begins(`^\s*(?:\{\s*"(?:params|info|data)"|\[\s*\[\s*\{\s*"(?:events|committed)")\s*:`)

type dbcopJSON struct {
	builder
	*forms
	txns []record.Transaction
}

func readDbcopJSON(in *input) ([]History, error) {
	d := &dbcopJSON{builder: newBuilder(), forms: newForms(in, in.r, true)}
	if d.what = "history"; d.first() == '{' {
		d.wrapped()
	} else {
		d.sessions()
	}
	if d.end(); d.err != nil {
		return nil, d.err
	}
	zeroIsInitial(d.txns)
	return one(d.made(in.name, dbcopJSONFormat, record.InitialAbsent, d.txns, noTransaction))
}

// wrapped takes the fields of the object around the sessions.
func (d *dbcopJSON) wrapped() {
	seen := false
	d.skip()
	for i := 0; d.another('}', separator('{', 2*i)); i++ {
		d.begin()
		name, _ := d.forms.value(0)
		d.another(0, separator('{', 1))
		switch {
		case d.err != nil:
		case name != "data":
			d.forms.value(0)
		case seen:
			d.fail(reject.DuplicateField, "the field is there twice")
		default:
			seen = true
			d.sessions()
		}
		d.under(fmt.Sprintf("%.40v", name))
	}
	if !seen {
		d.fail(reject.MissingField, "the object has no field data with the sessions")
		d.under("data")
	}
}

// sessions takes the sessions.
func (d *dbcopJSON) sessions() {
	d.elements("an array of sessions, or an object that has one in its field data", func(s int) {
		session := d.session(uint64(s))
		d.elements("a session, which is an array of transactions", func(t int) {
			if v, ok := d.forms.value(0); ok {
				d.transaction(session, t+1, v)
			}
		})
	})
}

func (d *dbcopJSON) transaction(session string, seq int, txn any) {
	events, _ := fieldOf(txn, "events")
	list, isList := events.([]any)
	success, _ := fieldOf(txn, "committed")
	committed, isFlag := success.(bool)
	switch {
	case !isList:
		d.wrong("events", events, "the events of a transaction, which are an array")
	case !isFlag:
		d.wrong("committed", success, "true or false, by which a transaction says whether it committed")
	}
	d.ops = d.ops[:0]
	for i := 0; i < len(list) && d.err == nil; i++ {
		d.event(list[i])
		d.under(fmt.Sprintf("events[%d]", i))
	}
	d.txns = append(d.txns, d.builder.transaction(session, seq, either(committed, record.Committed, record.Aborted)))
}

func (d *dbcopJSON) event(e any) {
	read, reads := fieldOf(e, "Read")
	write, writes := fieldOf(e, "Write")
	if reads == writes {
		d.fail(reject.BadStructure, "an event is either a Read or a Write")
		return
	}
	kind, access := record.Read, read
	if writes {
		kind, access = record.Write, write
	}
	variable, _ := fieldOf(access, "variable")
	version, _ := fieldOf(access, "version")
	key, isName := variable.(string)
	if !isName {
		key, isName = numberText(variable)
	}
	if !isName || key == "" {
		d.wrong("variable", variable, "a name or a number")
	}
	v := record.Null
	if kind == record.Write || version != nil {
		text, isNumber := numberText(version)
		n, err := unsigned("version", []byte(text))
		if !isNumber || err != nil {
			d.wrong("version", version, "an unsigned integer")
		}
		v = d.builder.value(n)
	}
	d.under(either(writes, "Write", "Read"))
	d.add(kind, key, v)
}

// wrong refuses the value of a field.
func (d *dbcopJSON) wrong(field string, v any, want string) {
	if v == nil {
		d.fail(reject.MissingField, "want %s, and it is not there", want)
	} else {
		d.fail(reject.WrongType, "want %s, not %.60s", want, appendText(nil, v))
	}
	d.under(field)
}
