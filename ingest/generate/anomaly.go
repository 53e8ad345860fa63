package generate

import (
	"fmt"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// anomaly is a script for one of the 14 anomalies of MTC's Table I.
type anomaly struct {
	name  string
	steps []step
}

// step is one transaction of a script.
type step struct {
	// session is which of the sessions that take part: a, b, c, d.
	session byte
	// stage orders the steps: those of one stage all overlap each other in
	// time, and follow those of the stage before. That concurrency matters
	// even where a level knows no clock: if, say, the two halves of a long fork
	// followed each other, what their sessions did in between could carry
	// information from one to the other, and break more than it should.
	stage  int
	status record.Status
	// ops are r(key,value) and w(key,value). Keys are fresh for each planting.
	// The value init is the initial one; other names are new values.
	ops string
}

// Every script begins by reading the initial values, so that they are fixed even
// for a reader that is told nothing of the initial state, and by writing
// others, so that the anomaly does not rest on the initial state.
var anomalies = []anomaly{
	// Read anomalies, which break every level.
	{"thin-air-read", []step{
		{'a', 0, 0, "r(x,init)"},
		{'b', 1, 0, "r(x,nobody)"}}},
	{"aborted-read", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, record.Aborted, "r(x,x0) w(x,x1)"},
		{'c', 1, 0, "r(x,x1)"}}},
	{"future-read", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x1) w(x,x1)"}}},
	{"not-my-last-write", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1) w(x,x2) r(x,x1)"}}},
	{"not-my-own-write", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1) r(x,x0)"}}},
	{"intermediate-read", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1) w(x,x2)"},
		{'c', 1, 0, "r(x,x1)"}}},

	// From rc up: the new version first, then the old one.
	{"non-monotonic-read", []step{
		{'a', 0, 0, "r(x,init) r(y,init) w(x,x0) w(y,y0)"},
		{'b', 1, 0, "r(x,x0) r(y,y0) w(x,x1) w(y,y1)"},
		{'c', 1, 0, "r(y,y1) r(x,x0)"}}},

	// From ra up.
	{"non-repeatable-reads", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1)"},
		{'c', 1, 0, "r(x,x0) r(x,x1)"}}},
	{"session-guarantee-violation", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1)"},
		{'b', 2, 0, "r(x,x0)"}}},
	{"fractured-read", []step{
		{'a', 0, 0, "r(x,init) r(y,init) w(x,x0) w(y,y0)"},
		{'b', 1, 0, "r(x,x0) r(y,y0) w(x,x1) w(y,y1)"},
		{'c', 1, 0, "r(x,x0) r(y,y1)"}}},

	// From cc up.
	{"causality-violation", []step{
		{'a', 0, 0, "r(x,init) r(y,init) w(x,x0) w(y,y0)"},
		{'b', 1, 0, "r(x,x0) w(x,x1)"},
		{'c', 2, 0, "r(x,x1) r(y,y0) w(y,y1)"},
		{'d', 3, 0, "r(y,y1) r(x,x0)"}}},

	// From pc up.
	{"long-fork", []step{
		{'a', 0, 0, "r(x,init) r(y,init) w(x,x0) w(y,y0)"},
		{'a', 1, 0, "r(x,x0) w(x,x1)"},
		{'b', 1, 0, "r(y,y0) w(y,y1)"},
		{'c', 1, 0, "r(x,x1) r(y,y0)"},
		{'d', 1, 0, "r(x,x0) r(y,y1)"}}},

	// From si up.
	{"lost-update", []step{
		{'a', 0, 0, "r(x,init) w(x,x0)"},
		{'a', 1, 0, "r(x,x0) w(x,x1)"},
		{'b', 1, 0, "r(x,x0) w(x,x2)"}}},

	// ser and sser only.
	{"write-skew", []step{
		{'a', 0, 0, "r(x,init) r(y,init) w(x,x0) w(y,y0)"},
		{'a', 1, 0, "r(x,x0) r(y,y0) w(x,x1)"},
		{'b', 1, 0, "r(x,x0) r(y,y0) w(y,y1)"}}},
}

// Anomalies lists the names of the anomalies that can be planted, from those
// that break every level to those that break only the strongest.
func Anomalies() []string {
	var out []string
	for _, a := range anomalies {
		out = append(out, a.name)
	}
	return out
}

func anomalyNamed(name string) *anomaly {
	for i := range anomalies {
		if anomalies[i].name == name {
			return &anomalies[i]
		}
	}
	return nil
}

// sessions is how many sessions take part.
func (a *anomaly) sessions() int {
	n := 0
	for _, s := range a.steps {
		n = max(n, int(s.session-'a')+1)
	}
	return n
}

// instantiate turns the scripts' names into keys and values. key and value are
// asked for new ones.
func (a *anomaly) instantiate(initial record.Value, key func() string, value func() record.Value) [][]record.Op {
	keys := map[string]string{}
	values := map[string]record.Value{"init": initial}
	out := make([][]record.Op, len(a.steps))
	for i, s := range a.steps {
		for _, text := range strings.Fields(s.ops) {
			kind, rest, ok1 := strings.Cut(strings.TrimSuffix(text, ")"), "(")
			k, v, ok2 := strings.Cut(rest, ",")
			op, ok3 := record.ParseOpKind(kind)
			if !ok1 || !ok2 || !ok3 {
				panic(fmt.Sprintf("generate: can't happen, because the scripts are constant: %s has %q", a.name, text))
			}
			if _, ok := keys[k]; !ok {
				keys[k] = key()
			}
			if _, ok := values[v]; !ok {
				values[v] = value()
			}
			out[i] = append(out[i], record.Op{Kind: op, Key: keys[k], Value: values[v]})
		}
	}
	return out
}
