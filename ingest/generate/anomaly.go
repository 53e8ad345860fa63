package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// anomaly is a script for one of the 14 anomalies of MTC's Table I, or of those
// that only lists have.
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
	// The value init is the initial one; other names are new values. Of lists,
	// a(key,value) appends an element and r(key,[value,…]) reads them. Where keys are rows of a table,
	// rp(table,[key=value,…]) reads all that are there.
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

// listAnomalies are those that Elle finds in lists alone. Both break every level.
var listAnomalies = []anomaly{
	{"incompatible-order", []step{
		{'a', 0, 0, "r(x,init) a(x,x0)"},
		{'a', 1, 0, "a(x,x1)"},
		{'b', 1, 0, "a(x,x2)"},
		{'c', 1, 0, "r(x,[x0,x1,x2])"},
		{'d', 1, 0, "r(x,[x0,x2,x1])"}}},
	{"duplicate-elements", []step{
		{'a', 0, 0, "r(x,init) a(x,x0)"},
		{'b', 1, 0, "r(x,[x0]) a(x,x1)"},
		{'c', 1, 0, "r(x,[x0,x1,x1])"}}},
}

// predicateAnomalies are about which rows there are.
var predicateAnomalies = []anomaly{
	// From ra up.
	{"phantom", []step{
		{'a', 0, 0, "rp(t,[]) w(x,x0)"},
		{'b', 1, 0, "w(y,y0)"},
		{'c', 1, 0, "rp(t,[x=x0]) rp(t,[x=x0,y=y0])"}}},

	// From si up.
	{"predicate-lost-update", []step{
		{'a', 0, 0, "rp(t,[]) w(x,x0)"},
		{'a', 1, 0, "rp(t,[x=x0]) w(y,y0)"},
		{'b', 1, 0, "rp(t,[x=x0]) w(y,y1)"}}},

	// ser and sser only.
	{"predicate-write-skew", []step{
		{'a', 0, 0, "rp(t,[]) w(x,x0)"},
		{'a', 1, 0, "rp(t,[x=x0]) w(y,y0)"},
		{'b', 1, 0, "rp(t,[x=x0]) w(z,z0)"}}},
}

// Anomalies lists the names of the anomalies that can be planted, from those
// that break every level to those that break only the strongest. With the workload
// Append they are planted as anomalies of lists.
func Anomalies() []string { return anomalyNames(anomalies) }

// ListAnomalies lists the names of those that only lists have.
func ListAnomalies() []string { return anomalyNames(listAnomalies) }

// PredicateAnomalies lists the names of those of which rows there are. Each has a table of its own.
func PredicateAnomalies() []string { return anomalyNames(predicateAnomalies) }

func anomalyNames(as []anomaly) []string {
	var out []string
	for _, a := range as {
		out = append(out, a.name)
	}
	return out
}

func anomalyNamed(name string) *anomaly {
	all := slices.Concat(anomalies, listAnomalies, predicateAnomalies)
	if i := slices.IndexFunc(all, func(a anomaly) bool { return a.name == name }); i >= 0 {
		return &all[i]
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

// keys is how many keys the transaction with the most of them has.
func (a *anomaly) keys() int {
	most := 0
	for _, as := range a.actions() {
		keys := map[string]bool{}
		for _, x := range as {
			keys[x.key] = true
		}
		most = max(most, len(keys))
	}
	return most
}

// action is an operation of a script, in the script's words.
type action struct {
	kind   record.OpKind
	key    string
	values []string // elements, if list; else one
	list   bool
}

// parse splits up the operations of a step.
func (s step) parse() ([]action, error) {
	var out []action
	for _, text := range strings.Fields(s.ops) {
		kind, rest, ok1 := strings.Cut(strings.TrimSuffix(text, ")"), "(")
		key, values, ok2 := strings.Cut(rest, ",")
		if kind == "a" {
			kind = "append"
		}
		op, ok3 := record.ParseOpKind(kind)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("%q is no operation", text)
		}
		inner, list := strings.CutPrefix(values, "[")
		out = append(out, action{op, key, strings.Split(strings.TrimSuffix(inner, "]"), ","), list})
	}
	return out, nil
}

// actions are the parsed steps.
func (a *anomaly) actions() [][]action {
	out := make([][]action, len(a.steps))
	for i, s := range a.steps {
		as, err := s.parse()
		if err != nil {
			panic(fmt.Sprintf("generate: can't happen, because the scripts are constant: %s: %v", a.name, err))
		}
		out[i] = as
	}
	return out
}

// asLists makes a script about registers one about lists: every write appends
// its value to the version that its transaction read or wrote last, or else to the
// one written last before; every read of a value reads the list that ends with it.
func asLists(steps [][]action) [][]action {
	versions := map[string][]string{} // by value: the list that ends with it
	latest := map[string]string{}     // by key
	for _, as := range steps {
		own := map[string]string{} // the version this transaction has of a key
		for _, a := range as {
			v := a.values[0]
			if a.kind == record.Read {
				if versions[v] != nil {
					own[a.key] = v
				}
				continue
			}
			before, ok := own[a.key]
			if !ok {
				before = latest[a.key]
			}
			versions[v] = append(slices.Clone(versions[before]), v)
			own[a.key], latest[a.key] = v, v
		}
	}
	for _, as := range steps {
		for i := range as {
			a := &as[i]
			switch v := a.values[0]; {
			case a.kind == record.Write:
				a.kind = record.Append
			case a.kind == record.Read && versions[v] != nil:
				a.values, a.list = versions[v], true
			case a.kind == record.Read && v != initValue:
				a.list = true // an element that nobody appended
			}
		}
	}
	return steps
}

// initValue is what scripts call a key's initial value.
const initValue = "init"

// Scripted is a transaction of an anomaly's script.
type Scripted struct {
	Session int // which of those that take part
	// Stage orders them: all of one stage overlap each other, and follow those of the stage before.
	Stage  int
	Status record.Status
	Ops    []record.Op
}

// Script is the anomaly of that name, once: key and value are asked for new ones, and initial is what a key held
// before.
func Script(anomaly string, initial record.Value, key func() string, value func() record.Value) []Scripted {
	a := anomalyNamed(anomaly)
	if a == nil {
		return nil
	}
	var out []Scripted
	for n, ops := range instantiate(a.actions(), initial, key, value) {
		s := a.steps[n]
		out = append(out, Scripted{int(s.session - 'a'), s.stage, s.status, ops})
	}
	return out
}

// instantiate turns a script's names into keys and values. Key and value are
// asked for new ones.
func instantiate(steps [][]action, initial record.Value, key func() string, value func() record.Value) [][]record.Op {
	keys := map[string]string{}
	values := map[string]record.Value{initValue: initial}
	named := func(v string) record.Value {
		if _, ok := values[v]; !ok {
			values[v] = value()
		}
		return values[v]
	}
	out := make([][]record.Op, len(steps))
	for i, as := range steps {
		for _, a := range as {
			if _, ok := keys[a.key]; !ok {
				keys[a.key] = key()
			}
			v := record.Null
			if a.kind == record.PredicateRead {
				rows := map[string]record.Value{}
				for _, row := range a.values {
					if name, holds, is := strings.Cut(row, "="); is {
						rows[keys[name]] = named(holds)
					}
				}
				table, _, _ := strings.Cut(keys[a.key], ":")
				out[i] = append(out[i], record.Op{Kind: a.kind, Key: table, Where: "v > 0", Value: record.ObjectOf(rows)})
				continue
			}
			if a.list {
				for _, e := range a.values {
					v = extended(v, named(e))
				}
			} else {
				v = named(a.values[0])
			}
			out[i] = append(out[i], record.Op{Kind: a.kind, Key: keys[a.key], Value: v})
		}
	}
	return out
}
