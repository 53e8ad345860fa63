package picture_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/made"
)

// allowed are the elements and attributes of our pictures. None of them can load
// or run anything.
var (
	elements   = map[string]bool{"svg": true, "title": true, "style": true, "g": true, "rect": true, "path": true, "text": true}
	attributes = map[string]bool{"xmlns": true, "class": true, "width": true, "height": true, "viewBox": true, "role": true, "aria-label": true,
		"x": true, "y": true, "rx": true, "d": true, "text-anchor": true}
)

// sizeMax is more than any picture may have.
const sizeMax = 600_000

// sound is what is wrong with a picture: it is not well-formed, or holds what ours
// don't.
func sound(svg []byte) error {
	if len(svg) > sizeMax {
		return fmt.Errorf("%d bytes", len(svg))
	}
	if !utf8.Valid(svg) {
		return errors.New("invalid UTF-8")
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	d.Strict = true
	depth, roots := 0, 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
			if !elements[tok.Name.Local] || tok.Name.Space != "http://www.w3.org/2000/svg" {
				return fmt.Errorf("an element %s of %s", tok.Name.Local, tok.Name.Space)
			}
			for _, a := range tok.Attr {
				if !attributes[a.Name.Local] {
					return fmt.Errorf("an attribute %s", a.Name.Local)
				}
			}
		case xml.EndElement:
			depth--
		case xml.CharData, xml.Attr:
		default:
			return fmt.Errorf("a %T", tok)
		}
	}
	if roots != 1 {
		return fmt.Errorf("%d roots", roots)
	}
	if n := bytes.Count(svg, []byte(picture.Style)); n != 1 {
		return fmt.Errorf("%d style sheets", n)
	}
	return nil
}

func all(a alerts.Alert) [][]byte {
	return [][]byte{picture.Cycle(a), picture.Timeline(a), picture.Sheet(a.Summary, []alerts.Alert{a, a})}
}

func TestSound(t *testing.T) {
	for _, c := range made.Cases(t) {
		for i, svg := range all(c.Alert) {
			if err := sound(svg); err != nil {
				t.Errorf("%s, %d: %v", c.Title, i, err)
			}
		}
		for range 3 {
			if !bytes.Equal(picture.Cycle(c.Alert), picture.Cycle(c.Alert)) || !bytes.Equal(picture.Timeline(c.Alert), picture.Timeline(c.Alert)) {
				t.Errorf("%s: not the same twice", c.Title)
			}
		}
	}
}

// hostile puts a string everywhere in an alert where one may come from outside.
func hostile(s string, n int, a alerts.Alert) alerts.Alert {
	a.DB, a.Level, a.Adya, a.Summary, a.Explanation = s, s, s, s, s
	if n%3 == 0 {
		a.Name, a.Severity = s, name.Severity(s)
	}
	a.Breaks, a.Holds, a.Aliases, a.Keys = []string{s}, []string{s}, []string{s}, []string{s}
	evidence := []json.RawMessage{a.Evidence[0]}
	id := func(i int) string { return fmt.Sprintf("%s%d", s, i) }
	a.Transactions, a.Cycle, a.Cases = nil, nil, nil
	for i := range n {
		r := record.Transaction{DB: s, Session: fmt.Sprintf("%s%d", s, i%3), ID: id(i), HasTimes: n%2 == 0, Start: int64(i) * 1000, End: int64(i)*1000 + 1500,
			Status: record.Status(i % 3), Ops: []record.Op{ //nolint:gosec // less than 3
				{Kind: record.Read, Key: s, Value: record.String(s)}, {Kind: record.Write, Key: s, Value: record.String(s + "w")},
				{Kind: record.Append, Key: s, Value: record.String(s)}, {Kind: record.Read, Key: s + "l", Value: record.Value{Kind: record.KindList, Text: `["` + id(i) + `"]`}},
			}}
		evidence = append(evidence, codec.AppendJSON(nil, &r))
		a.Transactions = append(a.Transactions, id(i))
		a.Cycle = append(a.Cycle, alerts.Edge{From: id(i), To: id((i + 1) % n), Type: []string{"wr", "ww", "rw", "so", "rt", s}[i%6], Key: s, Why: s, Basis: "case"})
	}
	a.Evidence = append(evidence, json.RawMessage(s), json.RawMessage(`{}`))
	switch n % 4 {
	case 1:
		a.Cases, a.Cycle = [][]alerts.Edge{a.Cycle, a.Cycle}, nil
	case 2:
		a.Cycle = nil
	}
	return a
}

var evil = []string{
	"", "</title><script>alert(1)</script>", "]]><!ENTITY x SYSTEM \"file:///etc/passwd\">", "\" onload=\"alert(1)\" x='", "&#x0;&lt;&unknown;", "\x00\x1b[2J\x07",
	"\u202eright\u202c\u2028\ufeff", "\xff\xfe\xed\xa0\x80", "a\u0300\u0301\u0302" + strings.Repeat("\u0303", 500), strings.Repeat("<", 5000), strings.Repeat("雪", 3000),
	"👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "\ufffe\uffff", "-->", "<!--", "\\", "\"", "T1\n};\n evil [URL=\"file:///\"]", "\\\" ]; x [",
}

func TestHostile(t *testing.T) {
	base := made.Cases(t)[0].Alert
	for _, s := range evil {
		for _, n := range []int{1, 2, 3, 4, 5, 6, 12} {
			a := hostile(s, n, base)
			for i, svg := range all(a) {
				if err := sound(svg); err != nil {
					t.Fatalf("%q in %d transactions, picture %d: %v\n%.3000s", s, n, i, err, svg)
				}
			}
			if err := soundDot(picture.Dot(a)); err != nil {
				t.Fatalf("%q in %d transactions: %v\n%s", s, n, err, picture.Dot(a))
			}
		}
	}
}

// soundDot reads a graph: braces balance outside of strings, strings end, and no
// attribute but ours is there.
func soundDot(dot []byte) error {
	if len(dot) > sizeMax || !utf8.Valid(dot) {
		return fmt.Errorf("%d bytes, or invalid UTF-8", len(dot))
	}
	var outside strings.Builder
	depth, in := 0, false
	for i := 0; i < len(dot); i++ {
		switch c := dot[i]; {
		case in && c == '\\':
			i++
		case c == '"':
			in = !in
			outside.WriteByte('"')
		case in && c == '\n':
			return errors.New("a string that goes on in the next line")
		case in:
		default:
			outside.WriteByte(c)
			if c == '{' {
				depth++
			} else if c == '}' {
				depth--
			}
		}
	}
	if in || depth != 0 {
		return fmt.Errorf("in a string: %v, depth %d", in, depth)
	}
	for _, w := range []string{"URL", "href", "image", "shapefile", "evil", "script", "<"} {
		if strings.Contains(outside.String(), w) {
			return fmt.Errorf("%s outside of strings", w)
		}
	}
	return nil
}

// What is too much is left out, and that is said.
func TestBounded(t *testing.T) {
	a := hostile("x", 4, made.Cases(t)[0].Alert)
	a.Summary = strings.Repeat("long ", 1_000_000)
	big := strings.Repeat("y", 1<<20)
	one := a.Evidence[1]
	a.Evidence = a.Evidence[:1]
	a.Cycle, a.Cases = nil, nil
	for i := range 6000 {
		r := record.Transaction{Session: fmt.Sprint(i % 97), ID: fmt.Sprint(i), Ops: []record.Op{{Kind: record.Write, Key: "k", Value: record.Int(int64(i))}}}
		if i == 3 {
			for range 1000 {
				r.Ops = append(r.Ops, record.Op{Kind: record.Read, Key: "k"})
			}
		}
		a.Evidence = append(a.Evidence, codec.AppendJSON(nil, &r))
		a.Cycle = append(a.Cycle, alerts.Edge{From: fmt.Sprint(i), To: fmt.Sprint((i + 1) % 6000), Type: "rw", Key: big, Why: big})
	}
	a.Evidence = append(a.Evidence, one)
	for range 3000 {
		a.Cases = append(a.Cases, a.Cycle)
	}
	for name, want := range map[string][]string{
		string(picture.Cycle(a)):    {"… 5977 more …", "… 995 more"},
		string(picture.Timeline(a)): {"and 5745 more transactions"},
	} {
		if err := sound([]byte(name)); err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(name, w) {
				t.Errorf("it doesn't say %q:\n%.2000s", w, name)
			}
		}
	}
	if !bytes.Contains(picture.Dot(a), []byte("// 5976 more edges")) {
		t.Error("the graph doesn't say what it leaves out")
	}
	a.Cycle = nil
	if c := picture.Cycle(a); !bytes.Contains(c, []byte("and 2992 more cases")) {
		t.Errorf("it doesn't say how many cases are left out")
	} else if err := sound(c); err != nil {
		t.Error(err)
	}
	var many []alerts.Alert
	single := made.Cases(t)[0].Alert
	for range 100 {
		many = append(many, single)
	}
	if s := picture.Sheet("t", many); !bytes.Contains(s, []byte("and 80 more, which are not drawn")) {
		t.Error("it doesn't say how many alerts are left out")
	} else if err := sound(s); err != nil {
		t.Error(err)
	}
}

// An alert of another monitor, or of none, is drawn somehow.
func TestForeign(t *testing.T) {
	for _, a := range []alerts.Alert{
		{},
		{Name: "new", Transactions: []string{"T1"}},
		{Name: "new", Cycle: []alerts.Edge{{}}},
		{Name: "new", Cycle: []alerts.Edge{{From: "a", To: "a", Type: "so"}}},
		{Name: "new", Cycle: []alerts.Edge{{From: "a", To: "b", Type: "new"}, {From: "b", To: "c"}, {To: "a"}}, Evidence: []json.RawMessage{nil, nil}},
		{Name: "new", Cases: [][]alerts.Edge{nil, {}, {{From: "a"}}}},
	} {
		for i, svg := range all(a) {
			if err := sound(svg); err != nil {
				t.Errorf("%+v, %d: %v\n%s", a, i, err, svg)
			}
		}
		if err := soundDot(picture.Dot(a)); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func FuzzPicture(f *testing.F) {
	for _, c := range made.Cases(f) {
		f.Add(c.Alert.JSON(), "x")
	}
	f.Add([]byte(`{"version":1,"cycle":[{"from":"","to":"","type":"wr"}],"evidence":[{},{"session":"s","ops":[["r","x",[1,2]]]}]}`), "</svg>")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		a, err := alerts.Parse(b)
		if err != nil {
			return
		}
		if s != "" {
			for i := range a.Cycle {
				a.Cycle[i].Key, a.Cycle[i].Why = s, s
			}
			a.Summary = s
		}
		for i, svg := range all(a) {
			if err := sound(svg); err != nil {
				t.Fatalf("picture %d: %v\n%s", i, err, svg)
			}
		}
		if err := soundDot(picture.Dot(a)); err != nil {
			t.Fatal(err)
		}
	})
}
