package picture

import (
	"bytes"
	"fmt"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/text"
)

// Cycle is the alert's cycle as an SVG document: transactions with the operations
// that matter in a ring, edges with their type and key. Of an alert with cases
// these are drawn beneath each other; of one about a single read, the read and
// its writer. Time and size are linear in the evidence and bounded.
func Cycle(a alerts.Alert) []byte { return newScene(a).cycle().document() }

// Timeline is an SVG document with the alert's sessions as lanes, and their
// transactions as bars from start to end; by order where the records have no times,
// which it says. Time and size are linear in the evidence and bounded.
func Timeline(a alerts.Alert) []byte { return newScene(a).timeline().document() }

// Sheet is one SVG document with both pictures of every alert, as far as there is
// room, beneath a title; and what it says if there are none.
func Sheet(title string, as []alerts.Alert) []byte {
	ds := []drawing{words(title)}
	for i, a := range as {
		if i == sheetMax {
			ds = append(ds, words(fmt.Sprintf("… and %d more, which are not drawn", len(as)-sheetMax)))
			break
		}
		ds = append(ds, words(text.Name(a.Name)+": "+printable(a.Summary, 600)), newScene(a).cycle(), newScene(a).timeline())
	}
	return beneath(printable(title, 600), ds...).document()
}

// Unstyled is a picture of this package without its style sheet, for a page that has
// Style once for all of them.
func Unstyled(svg []byte) []byte {
	return bytes.Replace(svg, []byte("<style>"+Style+"</style>\n"), nil, 1)
}

// words is a picture of a text.
func words(s string) drawing {
	s = printable(s, 600)
	c, d := &canvas{}, drawing{h: 10, label: s}
	for _, l := range wrap(s, titleCols) {
		d.h += 22
		c.text(margin, d.h, "sans h ink", "start", l)
		d.w = max(d.w, 2*margin+sans(l, 15))
	}
	d.h += 12
	d.body = c.b.String()
	return d
}

const titleCols = 72

// label is what is read out in a picture's place.
func (s *scene) label(kind string) string {
	return kind + " of " + text.Name(s.alert.Name) + ": " + printable(s.alert.Summary, 600)
}
