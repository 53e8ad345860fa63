package certfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
)

const good = `{"certificate":1,"description":"","assumes":{"initial":"any","sessions":"keep","clock":"prune","coverage":"complete","max_skew":0},"records":{"transactions":2,"sessions":1,"operations":2,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"},"levels":["si","ser"]}
{"level":"si","kind":"events","steps":3}
start A
B
commit A
{"level":"ser","kind":"serial","steps":2}
A
@1 "s 1"
`

// read is the one certificate that a file holds.
func read(r io.Reader) (*certfile.Certificate, error) {
	in := certfile.NewReader(r)
	c, err := in.Next()
	if err != nil {
		return nil, err
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return c, nil
}

func TestParse(t *testing.T) {
	c, err := read(strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Proofs) != 2 || c.Proofs[0].Line != 2 || c.Proofs[1].Line != 6 || len(c.Proofs[0].Steps) != 3 {
		t.Errorf("%+v", c)
	}
	if s := c.Proofs[1].Steps[1]; s.Txn != (certfile.Name{Session: "s 1", Place: 1}) || !s.Start || !s.Commit {
		t.Errorf("%+v", s)
	}
	if s := c.Proofs[0].Steps[2]; s.Txn != (certfile.Name{ID: "A"}) || s.Start || !s.Commit {
		t.Errorf("%+v", s)
	}
}

// What is no certificate is refused with the line, the field and what is wanted.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{good, "A\n", `line 1: want a JSON object, not "A"`},
		{good, "{}\n", `line 1: certificate: missing: the first line of a certificate gives its version`},
		{`"certificate":1`, `"certificate":2`, `line 1: certificate: version 2; this program reads version 1`},
		{`"certificate":1`, `"certificate":1,"more":2`, `line 1: unknown field "more"`},
		{`"description":""`, `"description":3`, `line 1: cannot unmarshal number`},
		{`,"levels":["si","ser"]`, ``, `line 1: levels: missing`},
		{`"levels":["si","ser"]}`, `"levels":["si","ser"]} x`, `line 1: something follows the JSON object`},
		{`["si","ser"]`, `["si","best"]`, `line 5: levels: no level that can be proved is called "best"`},
		{`"any"`, `"some"`, `line 1: assumes.initial: want any, absent or zero, not "some"`},
		{`"keep"`, `"kept"`, `line 1: assumes.sessions: want keep or ignore, not "kept"`},
		{`"prune"`, `""`, `line 1: assumes.clock: want enforce, prune or ignore, not ""`},
		{`"coverage":"complete",`, ``, `line 1: assumes.coverage: want complete or partial, not ""`},
		{`"max_skew":0`, `"max_skew":-1`, `line 1: assumes.max_skew: want nanoseconds`},
		{`"sessions":1`, `"sessions":-1`, `line 1: records.sessions: want a count`},
		{`0000"`, `000F"`, `line 1: records.sha256: want 64 hexadecimal digits in lower case`},
		{`"level":"si"`, `"level":"pc"`, `line 2: level: want "si", which the first line names next, not "pc"`},
		{`"events"`, `"commits"`, `line 2: kind: want "events" for level si, or the kind of a stronger one, not "commits"`},
		{`"events"`, `"neither"`, `line 2: kind: want "events" for level si, or the kind of a stronger one, not "neither"`},
		{`"steps":3`, `"steps":-3`, `line 2: steps: want the number of transactions, starts and commits that follow`},
		{`"steps":3`, `"steps":2`, `line 5: want a JSON object, not "commit A"`},
		{`"steps":3`, `"steps":4`, `line 6: want a name, in quotes if it has spaces`},
		{"\nstart A", "\nstart  A", `line 3: want a name, in quotes if it has spaces or begins with one of " @ {, not " A"`},
		{"\nstart A", "\nstart \"A", `line 3: want a name or a JSON string, not "\"A"`},
		{"\nstart A", "\nstart \"\"", `line 3: the name is empty: name the transaction by place and session`},
		{"\nstart A", "\nstart \xff", `line 3: the line is not UTF-8`},
		{"\nB\n", "\n\n", `line 4: want a name`},
		{"\nA\n", "\nstart A\n", `line 7: want a transaction's name: starts and commits are not told apart in an order of kind serial`},
		{`@1 "s 1"`, `@01 s`, `line 8: want @PLACE SESSION, with a place from 0, not "@01 s"`},
		{`@1 "s 1"`, `@1`, `line 8: want @PLACE SESSION`},
		{"@1 \"s 1\"\n", ``, `line 8: the file ends before line 2 of 2 of level ser`},
		{"@1 \"s 1\"\n", `C`, `line 8: the line has no end: the file was cut off`},
		{"@1 \"s 1\"\n", "C\nD\n", `line 9: want a JSON object, not "D"`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := read(strings.NewReader(text))
		var e *certfile.SyntaxError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "certificate, "+c.want) {
			t.Errorf("%.20q for %.20q: error %v, want %s", c.new, c.old, err, c.want)
		}
	}
}

const withReads = `{"certificate":1,"description":"","assumes":{"initial":"any","sessions":"keep","clock":"prune","coverage":"complete","max_skew":0},"records":{"transactions":2,"sessions":1,"operations":2,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"},"levels":["rc"]}
{"level":"rc","kind":"commits","steps":3,"reads":3}
A
read
read 0 A
read 12 @1 "s 1"
read 0
C
`

// Reads follow the reader's step; "read" alone is a name.
func TestParseReads(t *testing.T) {
	text := withReads
	c, err := read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []certfile.Step{{Read: true, Txn: certfile.Name{ID: "A"}}, {Read: true, Op: 12, Txn: certfile.Name{Session: "s 1", Place: 1}}, {Read: true, Initial: true}}
	if p := c.Proofs[0]; len(p.Steps) != 6 || p.Steps[1].Txn.ID != "read" || !slices.Equal(p.Steps[2:5], want) {
		t.Errorf("%+v", p)
	}
	_, lines, _ := strings.Cut(text, "\n")
	if again := write(t, c); !strings.HasSuffix(again, "\n"+lines) {
		t.Errorf("written again:\n%s", again)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"reads":3`, `"reads":2`, `line 7: want a name, in quotes if it has spaces or begins with one of " @ {, not "read 0"`},
		{`"reads":3`, `"reads":4`, `line 9: the file ends before line 7 of 7 of level rc`},
		{`"steps":3`, `"steps":2`, `line 8: want a JSON object, not "C"`},
		{`"steps":3,"reads":3`, `"steps":2,"reads":4`, `line 8: want "read", an operation and a name, as there are 2 steps already, not "C"`},
		{`"reads":3`, `"reads":-1`, `line 2: reads: want the number of reads that follow`},
		{`"reads":3`, `"reads":null`, `line 5: want a name`},
		{"\nA\n", "\nread 0 B\nA\n", `line 3: the line says whom a transaction reads from, and none is named yet`},
		{"read 0 A", "read 00 A", `line 5: want read OPERATION NAME, with an operation from 0, not "read 00 A"`},
		{"read 0 A", "read x", `line 5: want read OPERATION NAME`},
		{"read 0 A", "read -1 A", `line 5: want read OPERATION NAME`},
		{"read 0 A", "read 0 ", `line 5: want a name, in quotes if it has spaces`},
		{"read 0 A", `read 0 ""`, `line 5: the name is empty`},
		{"read 0 A", "read 0 \xff", `line 5: the line is not UTF-8`},
	} {
		_, err := read(strings.NewReader(strings.Replace(withReads, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), "certificate, "+c.want) {
			t.Errorf("%q for %q: error %v, want %s", c.new, c.old, err, c.want)
		}
	}
	_, err = read(strings.NewReader(strings.Replace(good, `"steps":3`, `"steps":3,"reads":1`, 1)))
	if err == nil || !strings.Contains(err.Error(), "line 2: reads: want the number of reads that follow, in orders of kind commits only") {
		t.Errorf("reads among starts and commits: %v", err)
	}
}

// endless is a line that never ends.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	e.n += int64(len(b))
	return len(b), nil
}

func TestLinesAreBounded(t *testing.T) {
	in := &endless{}
	_, err := read(in)
	if err == nil || !strings.Contains(err.Error(), "line 1: the line has more than") {
		t.Errorf("error %v", err)
	}
	if in.n > 64<<20 {
		t.Errorf("%d bytes were read of a line that has no end", in.n)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestErrorsOfTheReaderPass(t *testing.T) {
	if _, err := read(broken{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// FuzzRead reads any bytes: what is accepted is written and read as the same, and
// verifying it against some history does not panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	golden, err := os.ReadFile(filepath.Join("testdata", "write-skew.certificate"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(withReads))
	f.Add([]byte(strings.ReplaceAll(good, "A", `"A \u00e9\ud800"`)))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := read(strings.NewReader(string(in)))
		if err != nil {
			var e *certfile.SyntaxError
			if !errors.As(err, &e) || e.Line < 1 || e.What == "" {
				t.Fatalf("an error without line or cause: %v", err)
			}
			return
		}
		text := write(t, c)
		again, err := read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, text)
		}
		if third := write(t, again); third != text {
			t.Fatalf("written again:\n%s\nat first:\n%s", third, text)
		}
		s, _ := parse(t, skew)
		again.Records = certfile.Describe(s.Txns)
		if err := certfile.Verify(again, s.Txns, again.Assumed); err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}
