package codec

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Mapping says where a record's parts stand in objects of another form, such as the lines of a log. Parts are named by
// paths: trace.id is the field of this name, or else id in the object trace. Empty ones are not there.
//
//	{"msg":"tx","conn":7,"result":"ok","t0":1732160000.25,"t1":1732160000.26,"ops":[{"op":"get","row":"a:1","val":100}]}
//
// An object is a transaction, whole. What else is in it is passed over.
type Mapping struct {
	// Only and Is: objects in which the text at path Only is not Is are no records. Without Only all are.
	Only, Is string

	Session, ID, Seq, DB string
	// Start and End are times: numbers of Unit, or texts as in RFC 3339.
	Start, End string
	Unit       time.Duration
	// Hybrid: times are {"p":…,"l":…}, of a clock of the database's: p in Unit, and l, which counts what has p in common.
	Hybrid bool
	// Outcome is what the client learned, as one of the texts of Outcomes, by record.Status. If it is not there all are
	// committed.
	Outcome  string
	Outcomes [3][]string

	// Ops is a list of operations; if it is empty, the object itself is the one that the transaction has. Kind, Key and
	// Value are paths in each.
	Ops, Kind, Key, Value string
	// Kinds are the texts of Kind, of reads, writes and appends, in lower case; in objects their case does not matter.
	Kinds [3][]string
	// Omits: values that are null, which an empty list is too, are left out.
	Omits bool
}

// TimeKiller is the form of TimeKiller's and AION's histories:
//
//	{"tid":7,"sid":3,"sts":{"p":17,"l":0},"cts":{"p":18,"l":2},"ops":[{"t":"w","k":1,"v":5}]}
//
// All transactions are committed. sts and cts are the database's own timestamps, by p, then l; what committed at
// cts <= sts is in the snapshot at sts.
func TimeKiller(unit time.Duration) *Mapping {
	return &Mapping{Session: "sid", ID: "tid", Start: "sts", End: "cts", Unit: unit, Hybrid: true, Ops: "ops", Kind: "t",
		Key: "k", Value: "v", Kinds: [3][]string{{"r", "read"}, {"w", "write"}, {"a", "append"}}, Omits: true}
}

// Timestamp is a time as a Mapping finds it: nanoseconds in P, or both parts of a hybrid one.
type Timestamp struct{ P, L int64 }

// Record makes a record of an object, but for its times, which are returned if it has some; fields are those of the
// object. An error names the field.
func (m *Mapping) Record(object record.Value, t *record.Transaction) (start, end Timestamp, err *reject.Error) {
	*t = record.Transaction{DB: record.DefaultDB}
	if object.Kind != record.KindObject {
		return start, end, reject.New(reject.WrongType, "want one JSON object, not %s", brief([]byte(object.String())))
	}
	f := found{fields: object.Fields()}
	t.Session = f.name(m.Session)
	if m.ID != "" {
		t.ID = f.name(m.ID)
	}
	if m.DB != "" {
		t.DB = f.name(m.DB)
	}
	f.check(m.Session, CheckSession([]byte(t.Session)))
	f.check(m.DB, CheckHistory([]byte(t.DB)))
	if m.Seq != "" {
		if t.Seq, t.HasSeq = f.integer(m.Seq, f.need(m.Seq)), true; t.Seq < 0 {
			f.check(m.Seq, reject.New(reject.Negative, "%d is negative", t.Seq))
		}
		if t.ID == "" {
			t.ID = string(record.AppendSequenceID(nil, t.Session, t.Seq))
		}
	}
	t.HasTimes = m.Start != "" && m.End != ""
	if t.HasTimes {
		start, end = f.time(m, m.Start), f.time(m, m.End)
	}
	t.Status = m.status(&f)
	if m.Ops == "" {
		t.Ops = []record.Op{m.op(&f)}
		return start, end, f.err
	}
	list := f.need(m.Ops)
	if list.Kind != record.KindList {
		f.check(m.Ops, reject.New(reject.WrongType, "want a list of operations, not %s", brief([]byte(list.String()))))
	}
	for i, o := range list.Elements() {
		inner := found{fields: o.Fields()}
		t.Ops = append(t.Ops, m.op(&inner))
		if inner.err != nil {
			f.check(m.Ops, inner.err.UnderIndex(i))
			break
		}
	}
	return start, end, f.err
}

func (m *Mapping) status(f *found) record.Status {
	if m.Outcome == "" {
		return record.Committed
	}
	text := f.name(m.Outcome)
	for s, texts := range m.Outcomes {
		if slices.Contains(texts, text) {
			return record.Status(s)
		}
	}
	f.check(m.Outcome, reject.New(reject.UnknownStatus, "no outcome is called %s: want one of %s", quoted([]byte(text)),
		strings.Join(slices.Concat(m.Outcomes[:]...), ", ")))
	return 0
}

func (m *Mapping) op(f *found) (o record.Op) {
	kind := f.name(m.Kind)
	lower := strings.ToLower(kind)
	which := slices.IndexFunc(m.Kinds[:], func(texts []string) bool { return slices.Contains(texts, lower) })
	if which < 0 {
		f.check(m.Kind, reject.New(reject.UnknownOp, "no operation is called %s: want one of %s", quoted([]byte(kind)),
			strings.Join(slices.Concat(m.Kinds[:]...), ", ")))
		return o
	}
	o = record.Op{Kind: [3]record.OpKind{record.Read, record.Write, record.Append}[which], Key: f.name(m.Key)}
	if m.Omits {
		o.Value, _ = f.at(m.Value)
		if o.Kind == record.Read && o.Value.Kind == record.KindList && len(o.Value.Elements()) == 0 {
			o.Value = record.Null
		}
		if o.Kind == record.Append {
			o.Value = f.need(m.Value)
		}
		return o
	}
	var there bool
	if o.Value, there = f.at(m.Value); !there {
		f.check(m.Value, reject.New(reject.MissingField, "want what was read or written; null if nothing was there"))
	}
	return o
}

// found are the fields of an object, and the first thing that is wrong.
type found struct {
	fields map[string]record.Value
	err    *reject.Error
}

// check notes what is wrong with the field at a path, if anything is.
func (f *found) check(path string, e *reject.Error) {
	if e != nil && f.err == nil {
		f.err = e.Under(path)
	}
}

// at is what stands at a path.
func (f *found) at(path string) (v record.Value, there bool) {
	fields := f.fields
	for {
		if v, there = fields[path]; there {
			return v, true
		}
		first, rest, more := strings.Cut(path, ".")
		if !more {
			return record.Null, false
		}
		fields, path = fields[first].Fields(), rest
	}
}

// need is what stands at a path, where something must.
func (f *found) need(path string) record.Value {
	v, _ := f.at(path)
	if v.IsNull() {
		f.check(path, reject.New(reject.MissingField, "want a value, and it is not there"))
	}
	return v
}

// name is a text or an integer, as a name.
func (f *found) name(path string) string {
	switch v := f.need(path); v.Kind {
	case record.KindNull:
	case record.KindInt:
		return v.String()
	case record.KindString:
		if v.Text == "" {
			f.check(path, reject.New(reject.EmptyName, "the name is empty"))
		}
		return v.Text
	default:
		f.check(path, reject.New(reject.WrongType, "want a name or an integer, not %s", brief([]byte(v.String()))))
	}
	return ""
}

// integer is an integer, or a text of one.
func (f *found) integer(path string, v record.Value) int64 {
	text := v.Text
	if v.Kind != record.KindString {
		text = v.String()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case v.IsNull():
	case errors.Is(err, strconv.ErrRange):
		f.check(path, reject.New(reject.OutOfRange, "%s does not fit 64 bits", brief([]byte(text))))
	case err != nil:
		f.check(path, reject.New(reject.WrongType, "want an integer, not %s", brief([]byte(text))))
	}
	return n
}

// time is a time.
func (f *found) time(m *Mapping, path string) Timestamp {
	v := f.need(path)
	switch {
	case v.IsNull():
		return Timestamp{}
	case m.Hybrid:
		parts := found{fields: v.Fields()}
		if parts.fields == nil {
			f.check(path, reject.New(reject.WrongType, `want a timestamp such as {"p":17,"l":0}, not %s`,
				brief([]byte(v.String()))))
			return Timestamp{}
		}
		out := Timestamp{P: parts.integer("p", parts.need("p"))}
		if l, _ := parts.at("l"); !l.IsNull() {
			out.L = parts.integer("l", l)
		}
		f.check(path, parts.err)
		return out
	case v.Kind == record.KindString && strings.Contains(v.Text, "T"):
		at, err := time.Parse(time.RFC3339Nano, v.Text)
		if err != nil || at.Before(time.Unix(0, 0)) || at.After(time.Unix(0, math.MaxInt64)) {
			f.check(path, reject.New(reject.OutOfRange, "%s is no time after 1970", quoted([]byte(v.Text))))
			return Timestamp{}
		}
		return Timestamp{P: at.UnixNano()}
	}
	text := v.Text
	if v.Kind == record.KindInt {
		text = v.String()
	}
	ns, ok := decimal(text, m.Unit)
	if !ok {
		f.check(path, reject.New(reject.OutOfRange, "want a time not before 1970, as a number without exponent or as in "+
			"2026-01-31T12:00:00Z, not %s", quoted([]byte(text))))
	}
	return Timestamp{P: ns}
}

// decimal is a number of units, such as 1732160000.25, in nanoseconds; what is smaller is cut off.
func decimal(text string, unit time.Duration) (ns int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63) // which takes no sign
	if err != nil || int64(n) > math.MaxInt64/int64(unit)-1 {
		return 0, false
	}
	part := int64(unit)
	for _, c := range []byte(fraction) {
		if !isDigit(c) {
			return 0, false
		}
		part /= 10
		ns += int64(c-'0') * part
	}
	return int64(n)*int64(unit) + ns, true
}

// nanoseconds are the start and end of a record that is not to be ranked among others. Where the times are the
// database's, l is told by nanoseconds, two each, so that what committed at a timestamp precedes what starts at it; if
// these are the unit, they say nothing of what has the same timestamp.
func (m *Mapping) nanoseconds(start, end Timestamp) (from, to int64, err *reject.Error) {
	if !m.Hybrid {
		return start.P, end.P, nil
	}
	at := func(path string, c Timestamp, starts bool) (ns int64) {
		unit := int64(m.Unit)
		ns = c.L
		if unit > 1 {
			ns *= 2
			if starts {
				ns++
			}
		}
		if err == nil && (c.P < 0 || c.P > math.MaxInt64/unit-1 || c.L < 0 || c.L >= max(unit/2, 1)) {
			err = reject.In(path, reject.OutOfRange, `{"p":%d,"l":%d} does not fit: p is in units of %v, and has room for %d l`,
				c.P, c.L, m.Unit, max(unit/2, 1))
		}
		return c.P*unit + ns
	}
	return at(m.Start, start, true), at(m.End, end, start == end), err
}

// Mapped decodes messages of another form. It is for one goroutine.
type Mapped struct {
	mapping *Mapping
	decoder *Decoder
	txn     record.Transaction
}

// NewMapped makes a Mapped.
func NewMapped(m *Mapping, opt Options) *Mapped { return &Mapped{mapping: m, decoder: New(opt)} }

// ErrNoRecord is what Message says of an object that is none of a Mapping's records.
var ErrNoRecord = errors.New("this is no record")

// Message adds the record in b to c, or nothing if there is an error.
func (d *Mapped) Message(b []byte, c *packed.Chunk, _ *assemble.Event) (isEvent bool, err error) {
	v, err := d.decoder.Value(b)
	if err != nil {
		return false, err
	}
	m := d.mapping
	if m.Only != "" {
		f := found{fields: v.Fields()}
		if what, _ := f.at(m.Only); what.Kind != record.KindString || what.Text != m.Is {
			return false, ErrNoRecord
		}
	}
	start, end, e := m.Record(v, &d.txn)
	if e == nil && d.txn.HasTimes {
		d.txn.Start, d.txn.End, e = m.nanoseconds(start, end)
	}
	if e == nil {
		if _, e = CheckTimes(d.txn.HasTimes, d.txn.HasTimes, d.txn.Start, d.txn.End); e != nil {
			e.Field = m.End
		}
	}
	if e != nil {
		return false, e
	}
	c.Add(&d.txn)
	return false, nil
}
