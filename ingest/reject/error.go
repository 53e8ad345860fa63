package reject

import (
	"errors"
	"fmt"

	"github.com/isowatch/isowatch/ingest/record"
)

// Error is one refused record or input.
type Error struct {
	Pos    record.Position // where it is; the zero Position is not known (yet)
	Field  string          // the place in the record, as ops[2][1]; empty for all of it
	Reason Reason
	Detail string // what is wrong and what was expected, without Pos and Field
}

// Error is "POS: field FIELD: DETAIL (REASON)", without what is not known.
func (e *Error) Error() string {
	var b []byte
	if e.Pos != (record.Position{}) {
		b = append(append(b, e.Pos.String()...), ": "...)
	}
	if e.Field != "" {
		b = append(append(append(b, "field "...), e.Field...), ": "...)
	}
	detail := e.Detail
	if detail == "" {
		detail = e.Reason.Meaning()
	}
	return string(append(append(append(append(b, detail...), " ("...), e.Reason.String()...), ')'))
}

// Is makes errors.Is(err, &Error{Reason: r}) true for every Error with that
// reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason && (*t == Error{Reason: t.Reason})
}

// New makes an Error about a whole record or input; its place comes with At.
func New(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// In makes an Error about a field.
func In(field string, r Reason, format string, args ...any) *Error {
	return &Error{Field: field, Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// Under moves the error's field below prefix, which is a field name or an index
// with its brackets: Under("ops") makes "[2]" into "ops[2]". It returns e.
func (e *Error) Under(prefix string) *Error {
	switch {
	case e.Field == "" || e.Field[0] == '[' || prefix == "":
		e.Field = prefix + e.Field
	default:
		e.Field = prefix + "." + e.Field
	}
	return e
}

// UnderIndex is Under with the index of an array's element.
func (e *Error) UnderIndex(i int) *Error { return e.Under(fmt.Sprintf("[%d]", i)) }

// At sets where the refused thing is, and returns e.
func (e *Error) At(pos record.Position) *Error {
	e.Pos = pos
	return e
}

// From finds the Error in err's chain; nil if there is none.
func From(err error) *Error {
	if err == nil { // the usual case, without an allocation
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
