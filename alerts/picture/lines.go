package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/record"
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

// box is a transaction as it is drawn: its name, and operations beneath.
type box struct {
	id, tip string // as shown; told whole
	class   string
	lines   []line
	more    int // operations that are left out
	at      rect
}

// size is how much room its name and its operations take.
func (b *box) size() (w, h int) {
	w = px(b.id, 13)
	for _, l := range b.lines {
		wide := px(l.text, 12)
		if l.wrong {
			wide += px(" ✗", 12)
		}
		w = max(w, wide)
	}
	return w, (len(b.lines) + min(b.more, 1)) * lineH
}

// operations writes them beneath y.
func (c *canvas) operations(b *box, y int) {
	for _, l := range b.lines {
		c.line(b.at.x, y, b.at.w, l)
		y += lineH
	}
	if b.more > 0 {
		c.text(b.at.x+padX, y+13, "s dim", "start", fmt.Sprintf("… %d more", b.more))
	}
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
	slices.SortFunc(out, func(a, b line) int { return a.op - b.op })
	return out, len(t.Ops) - len(out)
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
	return strings.ToValidUTF8(s[:bytes], ""), true
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

// kinds are the types of edges in the order of the legend, with what they mean.
var kinds = []struct{ of, means string }{
	{"wr", "wr: the second read what the first wrote"},
	{"ww", "ww: the second overwrote the first"},
	{"rw", "rw: the first read what the second overwrote"},
	{"so", "so: before in the same session"},
	{"rt", "rt: ended before the other started"},
	{disagree, "≠: reads that contradict each other"},
}

const wrongMeans = "a read that can't be as it is"

// legend explains the kinds of edges that there are, below y. It returns the width
// that the picture needs, and the lower end.
func (c *canvas) legend(types map[string]bool, w, y int, arrows, wrong bool) (int, int) {
	if wrong {
		y += 20
		c.text(margin, y, "bad", "start", "✗")
		c.text(margin+40, y, "sans s dim", "start", wrongMeans)
		w = max(w, 2*margin+40+sans(wrongMeans, 11))
	}
	said := false
	for _, k := range kinds {
		if !types[k.of] {
			continue
		}
		if !said && arrows {
			said = true
			y += 20
			c.text(margin, y, "sans s dim", "start", "An arrow from A to B: A must come before B.")
			w = max(w, 2*margin+sans("An arrow from A to B: A must come before B.", 11))
		}
		y += 18
		class := k.of
		if class == disagree {
			class = "xx"
		}
		c.raw(`<path d="M%d %dH%d" class="e %s"/>`, margin, y-4, margin+28, class)
		c.text(margin+40, y, "sans s dim", "start", k.means)
		w = max(w, 2*margin+40+sans(k.means, 11))
	}
	return w, y
}

// edgeTip is what is told of an edge to who points at it.
func edgeTip(e edge) string {
	return printable(e.Why, 400)
}

// sans is how wide text is in a proportional font of so many pixels, at most.
func sans(s string, size int) int { return (uniseg.StringWidth(s)*size*56 + 99) / 100 }

// wrap breaks words into lines of at most n columns.
func wrap(s string, n int) []string {
	words := strings.Fields(s)
	for i, word := range words {
		words[i] = head(word, n)
	}
	return text.Wrap(words, n, n)
}
