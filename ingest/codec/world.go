package codec

import (
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// An event of the world may stand wherever a record may:
//
//	{"event":{"at":NANOSECONDS,"db":…,"node":…,"kind":…,"text":…}}
//
// At and text are needed. It is told from an event that is a part of a transaction by the
// object behind its name.

const (
	worldAt = 1 << iota
	worldDB
	worldNode
	worldKind
	worldText
)

var worldForm = form{
	fields:   []string{"at", "db", "node", "kind", "text"},
	optional: worldDB | worldNode | worldKind,
	has:      "what happened has at, db, node, kind, text",
}

// IsWorldEvent tells whether a line or message is meant as an event of the world: an object whose first
// field is "event", which is an object. The rest may be wrong; DecodeWorldEvent says so. O(1) for a record.
func IsWorldEvent(b []byte) bool {
	d := Decoder{b: b}
	if d.peek() != '{' {
		return false
	}
	d.p++
	d.space()
	if !d.word(`"event"`) {
		return false
	}
	d.colon()
	return d.err == nil && d.peek() == '{'
}

// DecodeWorldEvent decodes an event of the world, which happened at now if it does not say when, and has to say where
// now is 0. An error is a *reject.Error without a position.
func DecodeWorldEvent(b []byte, now int64) (record.Event, error) {
	d, e := New(Options{NamesMax: 1}), record.Event{At: now}
	if err := d.whole("event", b, func() { d.worldEvent(&e) }); err != nil {
		return record.Event{}, err
	}
	return e, nil
}

var aroundWorldForm = form{fields: []string{"event"}, has: "beside an event that is an object there is nothing"}

func (d *Decoder) worldEvent(e *record.Event) {
	d.need(&aroundWorldForm, d.object(&aroundWorldForm, "one JSON object", func(uint) { d.happened(e) }), 1, "an event")
	d.end()
}

func (d *Decoder) happened(e *record.Event) {
	given := d.object(&worldForm, "an object, with at and text", func(f uint) { d.worldField(f, e) })
	if e.At != 0 {
		given |= worldAt
	}
	d.need(&worldForm, given, worldAt|worldText, "what happened")
}

func (d *Decoder) worldField(f uint, e *record.Event) {
	switch f {
	case worldAt:
		e.At = d.integer()
	case worldDB:
		e.DB = d.history()
	case worldNode:
		e.Node = d.worldText("the node", record.EventNameMax)
	case worldKind:
		e.Kind = d.worldText("the kind", record.EventNameMax)
	case worldText:
		e.Text = d.worldText("the text", record.EventTextMax)
	}
}

func (d *Decoder) worldText(what string, most int) string {
	raw := d.nameBytes(what)
	if len(raw) > most {
		d.fail(reject.New(reject.TooLarge, "%s has %d bytes, more than the limit of %d", what, len(raw), most))
	}
	return string(raw)
}

// AppendWorldEvent appends e as a line of JSON, without a line break. Decoding that gives back e.
func AppendWorldEvent(b []byte, e *record.Event) []byte {
	b = strconv.AppendInt(append(b, `{"event":{"at":`...), e.At, 10)
	for _, f := range [...]struct{ name, value string }{{"db", e.DB}, {"node", e.Node}, {"kind", e.Kind},
		{"text", e.Text}} {
		if f.value != "" {
			b = append(append(append(b, `,"`...), f.name...), `":`...)
			b = record.AppendJSONString(b, f.value)
		}
	}
	return append(b, '}', '}')
}
