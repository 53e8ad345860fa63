package codec

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// A history file may open with a header line, which says what a reader must assume:
//
//	{"history":{"initial":"any|absent|zero","sessions":"keep|ignore","clock":"prune|enforce|ignore|database",
//	            "max_skew":"5ms","coverage":"complete|partial","unique_values":true|false,
//	            "tables":{"orders":"complete|partial"}}}
//
// Every setting may be missing. max_skew is a duration with its unit, or an
// integer of nanoseconds.

// IsHeader tells whether the line is meant as a header: an object whose
// first field is "history". The rest may be wrong; DecodeHeader says so.
func IsHeader(line []byte) bool {
	d := Decoder{b: line}
	d.open('{', "")
	name, more := d.member(true)
	return d.err == nil && more && string(name) == "history"
}

// DecodeHeader decodes a header line. An error is a *reject.Error without a
// position.
func DecodeHeader(line []byte) (h record.Header, err error) {
	d := Decoder{opt: Options{SizeMax: SizeDefault}}
	if err := d.whole("header", line, func() { d.header(&h) }); err != nil {
		return record.Header{}, err
	}
	return h, nil
}

var headerForm = form{fields: []string{"history"}, has: "a header has nothing but history"}

func (d *Decoder) header(h *record.Header) {
	given := d.object(&headerForm, "one JSON object", func(uint) {
		d.object(&settingsForm, "an object of settings", func(f uint) { d.setting(f, h) })
	})
	d.need(&headerForm, given, 1, "a header")
	d.end()
}

// Settings, as bits of those seen.
const (
	settingInitial = 1 << iota
	settingSessions
	settingClock
	settingMaxSkew
	settingCoverage
	settingUniqueValues
	settingTables
)

var settingsForm = form{
	fields: []string{"initial", "sessions", "clock", "max_skew", "coverage", "unique_values", "tables"},
	has:    "a header has initial, sessions, clock, max_skew, coverage, unique_values and tables",
	word:   "setting",
}

func (d *Decoder) setting(f uint, h *record.Header) {
	switch f {
	case settingInitial:
		h.Initial = choice(d, record.ParseInitial, "any, absent or zero")
	case settingSessions:
		h.Sessions = choice(d, record.ParseSessions, "keep or ignore")
	case settingClock:
		h.Clock = choice(d, record.ParseClock, "prune, enforce, ignore or database")
	case settingMaxSkew:
		h.MaxSkew = d.duration()
	case settingCoverage:
		h.Coverage = choice(d, record.ParseCoverage, "complete or partial")
	case settingUniqueValues:
		h.UniqueValues = d.boolean()
	case settingTables:
		h.Tables = d.tables()
	}
}

// tables takes the coverage of tables by their names.
func (d *Decoder) tables() record.Tables {
	out := record.Tables{}
	d.open('{', "an object with the coverage of tables")
	for d.err == nil {
		raw, more := d.member(len(out) == 0)
		if !more {
			break
		}
		table := string(raw)
		if _, twice := out[table]; twice {
			d.fail(reject.In(table, reject.DuplicateField, "the table %q is there twice", table))
		}
		if d.colon(); d.err != nil {
			break
		}
		if c := choice(d, record.ParseCoverage, "complete or partial"); d.err == nil {
			out[table] = *c
		}
		d.under(table)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// choice takes one of a setting's values.
func choice[T any](d *Decoder, parse func(string) (T, bool), want string) *T {
	if d.peek() != '"' {
		d.fail(d.mistyped("a string: " + want))
		return nil
	}
	raw := d.str()
	v, ok := parse(string(raw))
	if !ok {
		d.fail(reject.New(reject.UnknownSetting, "want %s, not %s", want, quoted(raw)))
	}
	return &v
}

func (d *Decoder) duration() *int64 {
	if c := d.peek(); c == '-' || isDigit(c) {
		n := d.integer()
		return &n
	}
	if d.peek() != '"' {
		d.fail(d.mistyped(`a duration such as "5ms", or nanoseconds`))
		return nil
	}
	raw := d.str()
	v, err := time.ParseDuration(string(raw))
	switch {
	case err != nil:
		d.fail(reject.New(reject.UnknownSetting, "want a duration with its unit, such as \"5ms\", not %s", quoted(raw)))
	case v < 0:
		d.fail(reject.New(reject.Negative, "%s is negative", v))
	}
	n := int64(v)
	return &n
}

func (d *Decoder) boolean() *bool {
	v := d.peek() == 't'
	switch {
	case v:
		d.literal("true")
	case d.peek() == 'f':
		d.literal("false")
	default:
		d.fail(d.mistyped("true or false"))
	}
	return &v
}

// AppendHeader appends h as a header line, without a line break. Decoding that
// gives back h.
func AppendHeader(b []byte, h *record.Header) []byte {
	b = append(b, `{"history":{`...)
	comma := ""
	name := func(name string) {
		b = append(append(append(append(b, comma...), '"'), name...), `":`...)
		comma = ","
	}
	set := func(field, value string) {
		name(field)
		b = record.AppendJSONString(b, value)
	}
	if h.Initial != nil {
		set("initial", h.Initial.String())
	}
	if h.Sessions != nil {
		set("sessions", h.Sessions.String())
	}
	if h.Clock != nil {
		set("clock", h.Clock.String())
	}
	if h.MaxSkew != nil {
		set("max_skew", time.Duration(*h.MaxSkew).String())
	}
	if h.Coverage != nil {
		set("coverage", h.Coverage.String())
	}
	if h.UniqueValues != nil {
		name("unique_values")
		b = strconv.AppendBool(b, *h.UniqueValues)
	}
	if len(h.Tables) > 0 {
		name("tables")
		for i, table := range slices.Sorted(maps.Keys(h.Tables)) {
			b = append(b, "{,"[min(i, 1)])
			b = append(record.AppendJSONString(b, table), ':')
			b = record.AppendJSONString(b, h.Tables[table].String())
		}
		b = append(b, '}')
	}
	return append(b, '}', '}')
}
