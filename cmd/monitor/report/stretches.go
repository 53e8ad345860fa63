package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Stretch is a part of a stream, and how complete it is.
type Stretch struct {
	// the first, from 0, and the one after the last, as they were judged
	Transactions [2]uint64         `json:"transactions"`
	From         int64             `json:"from"` // Unix nanoseconds, by the records' clocks
	To           int64             `json:"to"`
	Completeness map[string]string `json:"completeness"` // by level: complete, "complete, assuming real time", partial
	Why          []string          `json:"why,omitempty"`
}

// stretchesShown is how many stretches a text lists.
const stretchesShown = 10

// stretches writes the parts of a stream, the last ones.
func (t Text) stretches(b *strings.Builder, all []Stretch) {
	if n := len(all) - stretchesShown; n > 0 {
		fmt.Fprintf(b, "  %s\n", t.paint(dim, humanize.Comma(int64(n))+" stretches before these"))
		all = all[n:]
	}
	for _, s := range all {
		fmt.Fprintf(b, "  %s to %s, %s: %s\n", clock(s.From), clock(s.To),
			humanize.Comma(int64(s.Transactions[1]-s.Transactions[0]))+" transactions", t.completeness(s))
	}
}

// completeness is how complete a stretch is, the levels of which the same is to be said
// together.
func (t Text) completeness(s Stretch) string {
	var parts []string
	for _, c := range []struct{ said, color string }{{"complete", green}, {"complete, assuming real time", green},
		{"partial", yellow}} {
		var levels []string
		for _, l := range slices.Sorted(maps.Keys(s.Completeness)) {
			if s.Completeness[l] == c.said {
				levels = append(levels, l)
			}
		}
		if len(levels) > 0 {
			parts = append(parts, strings.Join(levels, " ")+" "+t.paint(c.color, c.said))
		}
	}
	out := strings.Join(parts, "; ")
	if len(s.Why) > 0 {
		out += " (" + strings.Join(s.Why, ", ") + ")"
	}
	return out
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z") }
