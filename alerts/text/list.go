package text

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// listAround is how many elements are shown before and after the one that
// matters, listMax how many of a list that is shown whole.
const (
	listAround = 2
	listMax    = 2*listAround + 4
)

// List is a list with what stands around some places; of a short list everything, of a long one that and its length:
// […, 41, 42, 43, …] (1000 elements).
func List(elements []record.Value, places ...int) string {
	shown := func(i int) bool {
		return len(elements) <= listMax || len(places) == 0 && i < listMax ||
			slices.ContainsFunc(places, func(p int) bool { return p-listAround <= i && i <= p+listAround })
	}
	var words []string
	gap := false
	for i, e := range elements {
		if !shown(i) {
			gap = true
			continue
		}
		if gap {
			words = append(words, "…")
			gap = false
		}
		words = append(words, Element(e))
	}
	if gap {
		words = append(words, "…")
	}
	s := "[" + strings.Join(words, ", ") + "]"
	if len(elements) > listMax {
		s += " (" + strconv.Itoa(len(elements)) + " elements)"
	}
	return s
}

// elementMax is the most that is shown of an element, in runes.
const elementMax = 24

// Element is an element of a list.
func Element(v record.Value) string {
	e := v.String()
	if s, cut := head(e, elementMax); cut {
		return Printable(s+"…") + size(len(e))
	}
	return Printable(e)
}
