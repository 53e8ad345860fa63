package report

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// height is how many levels a level implies, itself included: more for the stronger of
// any two of which one implies the other.
func height(level string) int {
	l, ok := verdict.ParseLevel(level)
	if !ok {
		return 0
	}
	n := 0
	for _, m := range verdict.Levels() {
		if l.Implies(m) {
			n++
		}
	}
	return n
}

// weakestFirst orders the anomalies of each level by the weakest level that they break,
// each once, and at most so many; 0: all. A level that fails for what breaks a weaker
// one lists that first, though its own search may have met other things before.
func (h *History) weakestFirst(anomaliesMax int) {
	for i := range h.Results {
		r := &h.Results[i]
		if len(r.Anomalies) == 0 {
			continue
		}
		all := slices.Clone(r.Anomalies)
		if w := h.weakest(r.Level); w != nil {
			all = append([]Anomaly{*w}, all...)
		}
		slices.SortStableFunc(all, func(a, b Anomaly) int { return height(a.Level) - height(b.Level) })
		seen := map[string]bool{}
		all = slices.DeleteFunc(all, func(a Anomaly) bool {
			again := seen[a.Alert.ID]
			seen[a.Alert.ID] = true
			return again
		})
		if anomaliesMax > 0 {
			all = all[:min(len(all), anomaliesMax)]
		}
		r.Anomalies = all
	}
}

// weakest is the anomaly that breaks the weakest level of those that a level implies,
// itself included.
func (h *History) weakest(level string) *Anomaly {
	l, ok := verdict.ParseLevel(level)
	if !ok {
		return nil
	}
	var out *Anomaly
	for i := range h.Results {
		m, ok := verdict.ParseLevel(h.Results[i].Level)
		if !ok || !l.Implies(m) {
			continue
		}
		for j := range h.Results[i].Anomalies {
			if a := &h.Results[i].Anomalies[j]; out == nil || height(a.Level) < height(out.Level) {
				out = a
			}
		}
	}
	return out
}

// lattice are the results from the strongest level to the weakest; lin, which is of
// another kind, comes last.
func (h *History) lattice() []*Result {
	out := make([]*Result, len(h.Results))
	for i := range h.Results {
		out[i] = &h.Results[i]
	}
	ordered := verdict.Names(name.Ordered()) // lin is none of them
	slices.SortStableFunc(out, func(a, b *Result) int {
		return slices.Index(ordered, b.Level) - slices.Index(ordered, a.Level)
	})
	return out
}
