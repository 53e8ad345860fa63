package codec

import (
	"strconv"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// A history file may open with a header line, which says what a reader must assume:
//
//	{"history":{"initial":"any|absent|zero","sessions":"keep|ignore","clock":"prune|enforce|ignore|database",
//	            "max_skew":"5ms","coverage":"complete|partial","unique_values":true|false}}
//
// Every setting may be missing. max_skew is a duration with its unit, or an
// integer of nanoseconds.

// IsHeader tells whether the line is meant as a header: an object whose
// first field is "history". The rest may be wrong; DecodeHeader says so.
func IsHeader(line []byte) bool {
	d := Decoder{b: line}
	if d.open('{', "") != nil {
		return false
	}
	name, more, err := d.member(true)
	return err == nil && more && string(name) == "history"
}

// DecodeHeader decodes a header line. An error is a *reject.Error without a
// position.
func DecodeHeader(line []byte) (h record.Header, err error) {
	d := Decoder{opt: Options{SizeMax: SizeDefault}}
	if err := d.whole("header", line, func() *reject.Error { return d.header(&h) }); err != nil {
		return record.Header{}, err
	}
	return h, nil
}

var headerForm = form{fields: []string{"history"}, unknown: func(name []byte) *reject.Error {
	return reject.In(brief(name), reject.UnknownField, "no field is called %s: a header has nothing but history",
		quoted(name))
}}

func (d *Decoder) header(h *record.Header) *reject.Error {
	given, err := d.object(&headerForm, "one JSON object", func(uint) *reject.Error {
		_, err := d.object(&settingsForm, "an object of settings", func(f uint) *reject.Error { return d.setting(f, h) })
		return err
	})
	switch {
	case err != nil:
		return err
	case given == 0:
		return reject.In("history", reject.MissingField, "a header needs the field \"history\"")
	}
	return d.end()
}

// Settings, as bits of those seen.
const (
	settingInitial = 1 << iota
	settingSessions
	settingClock
	settingMaxSkew
	settingCoverage
	settingUniqueValues
)

var settingsForm = form{
	fields: []string{"initial", "sessions", "clock", "max_skew", "coverage", "unique_values"},
	unknown: func(name []byte) *reject.Error {
		return reject.In(brief(name), reject.UnknownField,
			"no setting is called %s: a header has initial, sessions, clock, max_skew, coverage and unique_values",
			quoted(name))
	},
}

func (d *Decoder) setting(f uint, h *record.Header) (err *reject.Error) {
	switch f {
	case settingInitial:
		h.Initial, err = choice(d, record.ParseInitial, "any, absent or zero")
	case settingSessions:
		h.Sessions, err = choice(d, record.ParseSessions, "keep or ignore")
	case settingClock:
		h.Clock, err = choice(d, record.ParseClock, "prune, enforce, ignore or database")
	case settingMaxSkew:
		h.MaxSkew, err = d.duration()
	case settingCoverage:
		h.Coverage, err = choice(d, record.ParseCoverage, "complete or partial")
	case settingUniqueValues:
		h.UniqueValues, err = d.boolean()
	}
	return err
}

// choice takes one of a setting's values.
func choice[T any](d *Decoder, parse func(string) (T, bool), want string) (*T, *reject.Error) {
	if d.peek() != '"' {
		return nil, d.mistyped("a string: " + want)
	}
	raw, err := d.str()
	if err != nil {
		return nil, err
	}
	v, ok := parse(string(raw))
	if !ok {
		return nil, reject.New(reject.UnknownSetting, "want %s, not %s", want, quoted(raw))
	}
	return &v, nil
}

func (d *Decoder) duration() (*int64, *reject.Error) {
	if c := d.peek(); c == '-' || isDigit(c) {
		n, err := d.integer()
		return &n, err
	}
	if d.peek() != '"' {
		return nil, d.mistyped(`a duration such as "5ms", or nanoseconds`)
	}
	raw, err := d.str()
	if err != nil {
		return nil, err
	}
	v, bad := time.ParseDuration(string(raw))
	if bad != nil {
		return nil, reject.New(reject.UnknownSetting, "want a duration with its unit, such as \"5ms\", not %s", quoted(raw))
	}
	if v < 0 {
		return nil, reject.New(reject.Negative, "%s is negative", v)
	}
	n := int64(v)
	return &n, nil
}

func (d *Decoder) boolean() (*bool, *reject.Error) {
	v := d.peek() == 't'
	switch {
	case v:
		return &v, d.literal("true")
	case d.peek() == 'f':
		return &v, d.literal("false")
	}
	return nil, d.mistyped("true or false")
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
	return append(b, '}', '}')
}
