package picture

import (
	"strings"

	"github.com/rivo/uniseg"
)

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
	var out []string
	at := ""
	for _, word := range strings.Fields(s) {
		word = head(word, n)
		switch {
		case at == "":
			at = word
		case uniseg.StringWidth(at)+1+uniseg.StringWidth(word) <= n:
			at += " " + word
		default:
			out = append(out, at)
			at = word
		}
	}
	if at != "" {
		out = append(out, at)
	}
	return out
}
