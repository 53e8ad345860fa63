package picture

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/rivo/uniseg"
)

// How many columns of a monospaced font names and values may take.
const (
	idCols      = 26
	sessionCols = 22
	keyCols     = 16
	labelCols   = 12 // a key beside an edge
	valueCols   = 18
)

// line is an operation as it stands in a box.
type line struct {
	text    string
	op      int // its place in the transaction
	matters bool
	wrong   bool
}

// lines are the operations of a transaction to be shown, those that matter before
// others, in their order, and how many are left out.
func (s *scene) lines(at, most int) ([]line, int) {
	t := &s.txns[at]
	var out []line
	add := func(matters bool) {
		for i, op := range t.Ops {
			wrong, ok := s.marks[mark{at, i}]
			if ok == matters && len(out) < most {
				out = append(out, line{text: operation(op), op: i, matters: ok, wrong: wrong})
			}
		}
	}
	add(true)
	add(false)
	sortLines(out)
	return out, len(t.Ops) - len(out)
}

func sortLines(ls []line) {
	for i := 1; i < len(ls); i++ {
		for j := i; j > 0 && ls[j].op < ls[j-1].op; j-- {
			ls[j], ls[j-1] = ls[j-1], ls[j]
		}
	}
}

func operation(op record.Op) string {
	if row, ok := text.Row(op.Key, op.Value); ok && op.Kind == record.Read {
		return "read " + head(row, keyCols+valueCols)
	} else if ok && op.Kind == record.Write {
		return "write " + head(row, keyCols+valueCols)
	}
	key := middle(text.Name(op.Key), keyCols)
	switch op.Kind {
	case record.Read:
		return "read " + key + " = " + value(op.Value)
	case record.Write:
		if op.Value.IsNull() {
			return "delete " + key
		}
		return "write " + key + " = " + value(op.Value)
	case record.Append:
		return "append " + value(op.Value) + " to " + key
	case record.PredicateRead:
		return "read " + key + " where " + head(text.Name(op.Where), valueCols)
	}
	return "write " + key + " where " + head(text.Name(op.Where), valueCols)
}

func value(v record.Value) string {
	if v.Kind == record.KindList {
		if es, ok := list.Elements(v); ok && len(es) > 0 {
			if s := text.List(es); uniseg.StringWidth(s) <= valueCols {
				return s
			}
			last := text.Element(es[len(es)-1])
			return "[… " + head(last, valueCols-8) + fmt.Sprintf("] (%d)", len(es))
		}
	}
	return head(text.Value(v), valueCols)
}

// head is s, or as much of its beginning as n columns hold. It looks at no more
// than that.
func head(s string, n int) string {
	c, cut := clip(s, n*clusterMax)
	if !cut && uniseg.StringWidth(c) <= n {
		return s
	}
	return first(c, n-1) + "…"
}

// clip is s cut after about so many bytes, and whether it was.
func clip(s string, bytes int) (string, bool) {
	if len(s) <= bytes {
		return s, false
	}
	for bytes > 0 && !utf8.RuneStart(s[bytes]) {
		bytes--
	}
	return s[:bytes], true
}

// printable is the beginning of a text of any length, on one line.
func printable(s string, cols int) string {
	c, cut := clip(s, cols*8)
	if c = head(text.Printable(c), cols); cut && !strings.HasSuffix(c, "…") {
		c += "…"
	}
	return c
}

// middle is s, or beginning and end of it.
func middle(s string, n int) string {
	if uniseg.StringWidth(s) <= n {
		return s
	}
	return first(s, n-1-n/3) + "…" + last(s, n/3)
}

// first are the first characters, as a person counts them, within n columns; at
// most clusterMax bytes of each are looked at, as marks can be piled up without end.
func first(s string, n int) string {
	var b strings.Builder
	state := -1
	for s != "" {
		var c string
		var w int
		c, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		if w > n || len(c) > clusterMax {
			break
		}
		n -= w
		b.WriteString(c)
	}
	return b.String()
}

const clusterMax = 32

func last(s string, n int) string {
	var cs []string
	state := -1
	for rest := s; rest != ""; {
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		cs = append(cs, c)
	}
	at := len(cs)
	for at > 0 && len(cs[at-1]) <= clusterMax && uniseg.StringWidth(strings.Join(cs[at-1:], "")) <= n {
		at--
	}
	return strings.Join(cs[at:], "")
}

// px is how wide text is, in pixels, in a monospaced font of so many pixels; it is
// taken to be a little wider than any common one.
func px(s string, size int) int { return (uniseg.StringWidth(s)*size*62 + 99) / 100 }
