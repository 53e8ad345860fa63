package config

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Place is where a setting came from.
type Place struct {
	Origin string `json:"file,omitempty"`   // or an environment variable, or a flag as it was written
	Line   int    `json:"line,omitempty"`   // 1-based; 0 where there are no lines
	Column int    `json:"column,omitempty"` // 1-based; 0 where it is not known
}

func (p Place) String() string {
	switch {
	case p.Line > 0 && p.Column > 0:
		return fmt.Sprintf("%s:%d:%d", p.Origin, p.Line, p.Column)
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.Origin, p.Line)
	}
	return p.Origin
}

// Error is one thing that is wrong with a configuration.
type Error struct {
	Place
	Path string `json:"field,omitempty"` // the key, as in source.kafka.topic; empty for the file as a whole
	Msg  string `json:"message"`
}

func (e *Error) Error() string {
	var b strings.Builder
	if at := e.Place.String(); at != "" {
		b.WriteString(at)
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Errors is everything that is wrong with a configuration, in the order of the
// places; it is never empty when returned as an error.
type Errors []*Error

// Sort puts what is wrong in one file in its order there.
func (es Errors) Sort() {
	sort.SliceStable(es, func(i, j int) bool {
		a, b := es[i].Place, es[j].Place
		return a.Origin == b.Origin && a.Line > 0 && b.Line > 0 &&
			(a.Line < b.Line || a.Line == b.Line && a.Column < b.Column)
	})
}

// About tells whether something is wrong with a key, or a part of it.
func (es Errors) About(path string) bool {
	return slices.ContainsFunc(es, func(e *Error) bool {
		rest, ok := strings.CutPrefix(e.Path, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single errors to errors.As.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}
