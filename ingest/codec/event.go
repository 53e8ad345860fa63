package codec

import (
	"strconv"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

// An event is one JSON object per message or line. Its fields may stand in any order:
//
//	{"event":"begin","session":S,"txn":T,"db":…,"seq":…,"id":…,"start":…}
//	{"event":"op","session":S,"txn":T,"n":0,"op":["r",KEY,VALUE]}
//	{"event":"commit","session":S,"txn":T,"count":1,"end":…}      or abort, or unknown
//
// Db, seq, id and the times are what they are in a record, and as there may be null or
// missing; the others are needed, and not allowed in an event of another kind.

// Fields of an event, as bits of those seen.
const (
	eventEvent = 1 << iota
	eventSession
	eventTxn
	eventDB
	eventSeq
	eventID
	eventStart
	eventN
	eventOp
	eventCount
	eventEnd
)

var eventForm = form{
	fields:   []string{"event", "session", "txn", "db", "seq", "id", "start", "n", "op", "count", "end"},
	optional: eventDB | eventSeq | eventID | eventStart | eventEnd,
	has:      "an event has event, session, txn, db, seq, id, start, n, op, count, end",
}

// What the kinds of events need, and what they may have.
var (
	eventNeeds = [...]uint{assemble.Begin: eventEvent | eventSession | eventTxn,
		assemble.Step: eventEvent | eventSession | eventTxn | eventN | eventOp,
		assemble.End:  eventEvent | eventSession | eventTxn | eventCount}
	eventMays = [...]uint{assemble.Begin: eventDB | eventSeq | eventID | eventStart, assemble.Step: 0,
		assemble.End: eventEnd}
)

// Message decodes a message that is a record or an event. A record is added to c as Pack does,
// or nothing if there is an error; an event is put into *e.
func (d *Decoder) Message(b []byte, c *packed.Chunk, e *assemble.Event) (isEvent bool, err error) {
	const likely = `{"event"`
	if len(b) > len(likely) && string(b[:len(likely)]) == likely {
		return true, d.Event(b, e)
	}
	err = d.Pack(b, c)
	// The fields of records and events that have the same names hold the same, so that an
	// event is told by the first field that no record has.
	if bad := reject.From(err); bad == nil || bad.Reason != reject.UnknownField || !eventOnly(bad.Field) {
		return false, err
	}
	asEvent := d.Event(b, e)
	if bad := reject.From(asEvent); bad != nil && bad.Reason == reject.MissingField && bad.Field == "event" {
		return false, err // it is a record with a field too many
	}
	return true, asEvent
}

func eventOnly(field string) bool {
	return eventForm.bit([]byte(field))&(eventEvent|eventTxn|eventN|eventOp|eventCount) != 0
}

// Event sets *e to the event in b. An error is a *reject.Error without a position, and
// leaves *e zero.
func (d *Decoder) Event(b []byte, e *assemble.Event) error {
	*e = assemble.Event{}
	err := d.whole("event", b, func() { d.event(e) })
	if err != nil {
		*e = assemble.Event{}
	}
	return err
}

func (d *Decoder) event(e *assemble.Event) {
	given := d.object(&eventForm, "one JSON object", func(f uint) { d.eventField(f, e) })
	d.end()
	d.need(&eventForm, given, eventEvent, "an event")
	d.need(&eventForm, given, eventNeeds[e.Kind], "an event of this kind")
	if other := given &^ (eventNeeds[e.Kind] | eventMays[e.Kind]); other != 0 {
		name := eventForm.name(other)
		d.fail(reject.In(name, reject.UnknownField, "an event of this kind has no field %q", name))
	}
	if e.Kind == assemble.Begin && e.DB == "" {
		e.DB = record.DefaultDB
	}
}

func (d *Decoder) eventField(f uint, e *assemble.Event) {
	switch f {
	case eventEvent:
		e.Kind, e.Status = d.eventKind()
	case eventSession:
		e.Session = d.session()
	case eventTxn:
		e.Txn = d.name("the transaction")
	case eventDB:
		e.DB = d.history()
	case eventSeq:
		e.Seq, e.HasSeq = d.integer(), true
	case eventID:
		e.ID = string(d.nameBytes("the id"))
	case eventStart, eventEnd:
		e.Time, e.HasTime = d.integer(), true
	case eventN:
		e.N = d.count(assemble.OpsLimit - 1)
	case eventCount:
		e.N = d.count(assemble.OpsLimit)
	case eventOp:
		d.operation(&e.Op)
	}
}

func (d *Decoder) count(most int64) uint32 {
	n := d.integer()
	if n > most {
		d.fail(reject.New(reject.OutOfRange, "%d is more than %d", n, most))
	}
	return uint32(n)
}

func (d *Decoder) eventKind() (assemble.Kind, record.Status) {
	switch raw := d.wantString("the kind of the event"); string(raw) {
	case "begin":
		return assemble.Begin, 0
	case "op":
		return assemble.Step, 0
	case "commit":
		return assemble.End, record.Committed
	case "abort":
		return assemble.End, record.Aborted
	case "unknown":
		return assemble.End, record.Unknown
	default:
		d.fail(reject.New(reject.UnknownEvent, "no event is called %s: want begin, op, commit, abort or unknown",
			quoted(raw)))
	}
	return 0, 0
}

// AppendEvent appends e as one line of JSON, without a line break. Decoding that
// gives back e, provided that what its kind does not have is zero.
func AppendEvent(b []byte, e *assemble.Event) []byte {
	kind := e.Kind.String()
	if e.Kind == assemble.End {
		kind = [...]string{record.Committed: "commit", record.Aborted: "abort", record.Unknown: "unknown"}[e.Status]
	}
	b = append(append(append(b, `{"event":"`...), kind...), `","session":`...)
	b = record.AppendJSONString(b, e.Session)
	b = record.AppendJSONString(append(b, `,"txn":`...), e.Txn)
	switch e.Kind {
	case assemble.Begin:
		if e.DB != "" {
			b = record.AppendJSONString(append(b, `,"db":`...), e.DB)
		}
		if e.HasSeq {
			b = strconv.AppendInt(append(b, `,"seq":`...), e.Seq, 10)
		}
		if e.ID != "" {
			b = record.AppendJSONString(append(b, `,"id":`...), e.ID)
		}
		if e.HasTime {
			b = strconv.AppendInt(append(b, `,"start":`...), e.Time, 10)
		}
	case assemble.Step:
		b = strconv.AppendUint(append(b, `,"n":`...), uint64(e.N), 10)
		b = appendOp(append(b, `,"op":`...), &e.Op)
	case assemble.End:
		b = strconv.AppendUint(append(b, `,"count":`...), uint64(e.N), 10)
		if e.HasTime {
			b = strconv.AppendInt(append(b, `,"end":`...), e.Time, 10)
		}
	}
	return append(b, '}')
}
