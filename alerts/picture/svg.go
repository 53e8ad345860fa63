package picture

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is the style sheet of every picture. It is constant, so that a page with a
// strict content security policy can allow it by its hash.
//
//go:embed style.css
var Style string

// canvas is an SVG document in the making. Coordinates are whole pixels: sums of
// floating-point numbers may differ between machines.
type canvas struct {
	b bytes.Buffer
	// taken are places that labels keep away from.
	taken []rect
}

type rect struct{ x, y, w, h int }

func (r rect) meets(o rect) bool {
	return r.x < o.x+o.w && o.x < r.x+r.w && r.y < o.y+o.h && o.y < r.y+r.h
}

type point struct{ x, y int }

// raw writes markup; its arguments are constants of this package and numbers.
func (c *canvas) raw(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// escape is a string for character data and attributes. What XML does not allow,
// and what may turn the direction of reading, is not to be expected, as it passed
// through package text, and becomes a replacement character.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case !strconv.IsPrint(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// text writes a line; anchor is start, middle or end.
func (c *canvas) text(x, y int, class, anchor, s string) {
	c.raw(`<text x="%d" y="%d" class="%s"`, x, y, class)
	if anchor != "start" {
		c.raw(` text-anchor="%s"`, anchor)
	}
	c.raw(">%s</text>\n", escape(s))
}

// title is what a reader is told who points at what follows, or can't see it.
func (c *canvas) title(s string) { c.raw("<title>%s</title>", escape(s)) }

func (c *canvas) box(r rect, class string) {
	c.raw(`<rect x="%d" y="%d" width="%d" height="%d" rx="8" class="%s"/>`+"\n", r.x, r.y, r.w, r.h, class)
}

// Directions of arrow heads.
const (
	right = iota
	left
	down
	up
)

// arrow writes an arrow head whose point is at p.
func (c *canvas) arrow(p point, direction int, class string) {
	const long, half = 9, 5
	var q, r point
	switch direction {
	case right:
		q, r = point{p.x - long, p.y - half}, point{p.x - long, p.y + half}
	case left:
		q, r = point{p.x + long, p.y - half}, point{p.x + long, p.y + half}
	case down:
		q, r = point{p.x - half, p.y - long}, point{p.x + half, p.y - long}
	default:
		q, r = point{p.x - half, p.y + long}, point{p.x + half, p.y + long}
	}
	c.raw(`<path d="M%d %dL%d %dL%d %dZ" class="a %s"/>`+"\n", p.x, p.y, q.x, q.y, r.x, r.y, class)
}

// drawing is a picture without its outermost tags.
type drawing struct {
	w, h  int
	label string // read out in its place
	body  string
}

// document puts the tags round a picture.
func (d drawing) document() []byte {
	var b bytes.Buffer
	label := escape(d.label)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="iw" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", d.w, d.h, d.w, d.h, label)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", label, Style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" class="bg"/>`+"\n%s</svg>\n", d.w, d.h, d.body)
	return b.Bytes()
}

// beneath puts pictures beneath each other.
func beneath(label string, ds ...drawing) drawing {
	out := drawing{label: label}
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, `<svg x="0" y="%d" width="%d" height="%d" role="img" aria-label="%s">`+"\n%s</svg>\n", out.h, d.w,
			d.h, escape(d.label), d.body)
		out.w = max(out.w, d.w)
		out.h += d.h
	}
	out.body = b.String()
	return out
}

// kindOf is the style of an edge.
func kindOf(e edge) string {
	switch e.Type {
	case "wr", "ww", "rw", "so", "rt":
		return e.Type
	}
	return "xx"
}
