package certfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

const (
	nameMax = 8 << 20         // bytes of a name
	lineMax = 6*nameMax + 256 // a name's bytes may each take \u00XX
	// levelsMax bounds the sections of a file; there are fewer levels.
	levelsMax = 64
)

// SyntaxError says where a file is not a certificate.
type SyntaxError struct {
	Line  int    // from 1
	Field string // in a header; empty if the fault is of no single one
	What  string
}

func (e *SyntaxError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("certificate, line %d: %s: %s", e.Line, e.Field, e.What)
	}
	return fmt.Sprintf("certificate, line %d: %s", e.Line, e.What)
}

// Reader reads certificates that follow each other in one file.
type Reader struct {
	in   *bufio.Reader
	line int // lines read
	buf  []byte
}

// NewReader makes a Reader. Its errors are *SyntaxErrors, or those of r. What it takes of memory is in proportion to
// what was read.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 1<<16)} }

// Next reads the next certificate; io.EOF says that there is none.
func (r *Reader) Next() (*Certificate, error) {
	line, err := r.next()
	if err != nil {
		return nil, err // io.EOF among them
	}
	var h header
	if err := r.decode(line, &h); err != nil {
		return nil, err
	}
	c := &Certificate{}
	if err := r.header(&h, c); err != nil {
		return nil, err
	}
	for _, name := range h.Levels {
		p, err := r.proof(name)
		if err != nil {
			return nil, err
		}
		c.Proofs = append(c.Proofs, p)
	}
	return c, nil
}

// next reads a line, without its end.
func (r *Reader) next() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		switch {
		case len(r.buf) > lineMax:
			return nil, &SyntaxError{Line: r.line + 1, What: fmt.Sprintf("the line has more than %d bytes", lineMax)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(r.buf) > 0:
			return nil, &SyntaxError{Line: r.line + 1, What: "the line has no end: the file was cut off"}
		case err != nil:
			return nil, err
		}
		r.line++
		return r.buf[:len(r.buf)-1], nil
	}
}

func (r *Reader) fail(field, format string, args ...any) error {
	return &SyntaxError{Line: r.line, Field: field, What: fmt.Sprintf(format, args...)}
}

// decode takes a line that is one JSON object with no fields but v's.
func (r *Reader) decode(line []byte, v any) error {
	if !utf8.Valid(line) {
		return r.fail("", "the line is not UTF-8")
	}
	if len(line) == 0 || line[0] != '{' {
		return r.fail("", "want a JSON object, not %s", quote(line))
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return r.fail("", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r.fail("", "something follows the JSON object")
	}
	return nil
}

func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}

// header checks a header and takes it over.
func (r *Reader) header(h *header, c *Certificate) error {
	switch {
	case h.Version == nil:
		return r.fail("certificate", "missing: the first line of a certificate gives its version")
	case *h.Version != Version:
		return r.fail("certificate", "version %d; this program reads version %d", *h.Version, Version)
	case h.Assumes == nil:
		return r.fail("assumes", "missing")
	case h.Records == nil:
		return r.fail("records", "missing")
	case h.Levels == nil:
		return r.fail("levels", "missing")
	case len(h.Levels) > levelsMax:
		return r.fail("levels", "%d levels, more than there are", len(h.Levels))
	}
	if err := r.assumes(h.Assumes, &c.Assumed); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		from *int
		to   *int
	}{
		{"records.transactions", h.Records.Transactions, &c.Records.Transactions},
		{"records.sessions", h.Records.Sessions, &c.Records.Sessions},
		{"records.operations", h.Records.Operations, &c.Records.Operations},
	} {
		if f.from == nil || *f.from < 0 {
			return r.fail(f.name, "want a count")
		}
		*f.to = *f.from
	}
	if s := h.Records.SHA256; len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return r.fail("records.sha256", "want 64 hexadecimal digits in lower case")
	}
	c.Records.SHA256 = h.Records.SHA256
	return nil
}

func (r *Reader) assumes(a *assumes, o *record.Assumptions) error {
	var ok bool
	if o.Initial, ok = record.ParseInitial(a.Initial); !ok {
		return r.fail("assumes.initial", "want any, absent or zero, not %q", a.Initial)
	}
	if o.Sessions, ok = record.ParseSessions(a.Sessions); !ok {
		return r.fail("assumes.sessions", "want keep or ignore, not %q", a.Sessions)
	}
	if o.Clock, ok = record.ParseClock(a.Clock); !ok {
		return r.fail("assumes.clock", "want enforce, prune or ignore, not %q", a.Clock)
	}
	if o.Coverage, ok = record.ParseCoverage(a.Coverage); !ok {
		return r.fail("assumes.coverage", "want complete or partial, not %q", a.Coverage)
	}
	if a.MaxSkew == nil || *a.MaxSkew < 0 {
		return r.fail("assumes.max_skew", "want nanoseconds")
	}
	o.MaxSkew = *a.MaxSkew
	for name, text := range a.Tables {
		coverage, ok := record.ParseCoverage(text)
		if !ok {
			return r.fail("assumes.tables", "want complete or partial of each table, not %q", text)
		}
		if o.Tables == nil {
			o.Tables = record.Tables{}
		}
		o.Tables[name] = coverage
	}
	return nil
}

// proof reads the section of a level.
func (r *Reader) proof(name string) (Proof, error) {
	level, ok := verdict.ParseLevel(name)
	if !ok || certificate.KindOf(level) == certificate.NoOrder {
		return Proof{}, r.fail("levels", "no level that can be proved is called %q", name)
	}
	line, err := r.inside(fmt.Sprintf("the section of level %s", name))
	if err != nil {
		return Proof{}, err
	}
	var s section
	if err := r.decode(line, &s); err != nil {
		return Proof{}, err
	}
	kind := certificate.KindNamed(s.Kind)
	switch {
	case s.Level != name:
		return Proof{}, r.fail("level", "want %q, which the first line names next, not %q", name, s.Level)
	case !kind.Proves(level):
		return Proof{}, r.fail("kind", "want %q for level %s, or the kind of a stronger one, not %q",
			certificate.KindOf(level), name, s.Kind)
	case s.Steps == nil || *s.Steps < 0 || *s.Steps > math.MaxInt32:
		return Proof{}, r.fail("steps", "want the number of transactions, starts and commits that follow")
	case s.Reads < 0 || s.Reads > math.MaxInt32 || s.Reads > 0 && kind != certificate.Commits:
		return Proof{}, r.fail("reads", "want the number of reads that follow, in orders of kind %s only", certificate.Commits)
	}
	p := Proof{Level: level, Kind: kind, Line: r.line, Steps: []Step{}}
	reads := 0
	for i := range *s.Steps + s.Reads { // what is promised takes no memory before it comes
		line, err := r.inside(fmt.Sprintf("line %d of %d of level %s", i+1, *s.Steps+s.Reads, name))
		if err != nil {
			return Proof{}, err
		}
		step, err := r.step(line, kind, reads < s.Reads)
		switch {
		case err == nil && step.Read && i == 0:
			err = r.fail("", "the line says whom a transaction reads from, and none is named yet")
		case step.Read:
			reads++
		case i-reads == *s.Steps:
			err = r.fail("", "want \"read\", an operation and a name, as there are %d steps already, not %s", *s.Steps,
				quote(line))
		}
		if err != nil {
			return Proof{}, err
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

// inside is next where the file must not end.
func (r *Reader) inside(want string) ([]byte, error) {
	line, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, &SyntaxError{Line: r.line + 1, What: "the file ends before " + want}
	}
	return line, err
}

// step reads a line of an order; reads: it may say whom a read is from.
func (r *Reader) step(line []byte, kind certificate.Kind, reads bool) (s Step, err error) {
	if !utf8.Valid(line) {
		return Step{}, r.fail("", "the line is not UTF-8")
	}
	s = Step{Start: true, Commit: true}
	rest := string(line)
	if after, ok := strings.CutPrefix(rest, "read "); ok && reads {
		op, name, from := strings.Cut(after, " ")
		n, err := strconv.Atoi(op)
		if err != nil || n < 0 || strconv.Itoa(n) != op {
			return Step{}, r.fail("", "want read OPERATION NAME, with an operation from 0, not %s", quote(line))
		}
		if s = (Step{Read: true, Op: n, Initial: !from}); !from {
			return s, nil
		}
		rest = name
	} else if after, ok := strings.CutPrefix(rest, "start "); ok {
		s.Commit, rest = false, after
	} else if after, ok := strings.CutPrefix(rest, "commit "); ok {
		s.Start, rest = false, after
	}
	if kind != certificate.Events && s.Start != s.Commit {
		return Step{}, r.fail("", "want a transaction's name: starts and commits are not told apart in an order of kind %s",
			kind)
	}
	s.Txn, err = r.txn(line, rest)
	return s, err
}

// txn reads what names a transaction, in a line.
func (r *Reader) txn(line []byte, text string) (n Name, err error) {
	if after, ok := strings.CutPrefix(text, "@"); ok {
		place, session, ok := strings.Cut(after, " ")
		if n.Place, err = strconv.Atoi(place); !ok || err != nil || n.Place < 0 || strconv.Itoa(n.Place) != place {
			return Name{}, r.fail("", "want @PLACE SESSION, with a place from 0, not %s", quote(line))
		}
		n.Session, err = r.name(session)
		return n, err
	}
	if n.ID, err = r.name(text); err == nil && n.ID == "" {
		err = r.fail("", "the name is empty: name the transaction by place and session")
	}
	return n, err
}

// name reads a name, bare or as a JSON string.
func (r *Reader) name(text string) (string, error) {
	switch {
	case strings.HasPrefix(text, `"`):
		var s string
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return "", r.fail("", "want a name or a JSON string, not %s", quote([]byte(text)))
		}
		return s, nil
	case !isBare(text):
		return "", r.fail("", "want a name, in quotes if it has spaces or begins with one of \" @ {, not %s",
			quote([]byte(text)))
	}
	return text, nil
}
